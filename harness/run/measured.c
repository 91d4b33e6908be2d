/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding up what clients and processes measured. Every number of struct hx_totals is a row of HX_TOTALS, which says how
 * two of them are combined: a new one cannot be forgotten here, nor when totals are sent to another process.
 */
#include "harness/run/measured.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

enum { COUNTERS_OF_OP = offsetof(struct hx_op_stats, account) / sizeof(uint64_t) };
static_assert(COUNTERS_OF_OP == 3 + HX_OUTCOMES, "op_stats_add adds every counter");
static_assert(sizeof(struct dm_memory_use) == (DM_MEM_KIND_COUNT + 3) * sizeof(uint64_t), "memory_add adds every kind");

static uint64_t combine_SUM(uint64_t a, uint64_t b) {
    return a + b;
}

static uint64_t combine_MAX(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t combine_MIN(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* What changes nothing when it is combined with another number. */
enum { NEUTRAL_SUM = 0, NEUTRAL_MAX = 0 };
#define NEUTRAL_MIN UINT64_MAX

void hx_totals_clear(struct hx_totals *totals) {
    *totals = (struct hx_totals){
#define X(name, how) .name = NEUTRAL_##how,
        HX_TOTALS(X)
#undef X
    };
    hx_pace_clear(&totals->pace);
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        dm_hist_clear(&totals->ops[kind].latency_ns);
        dm_hist_clear(&totals->ops[kind].service_ns);
    }
}

static void op_stats_add(struct hx_op_stats *into, const struct hx_op_stats *from) {
    into->count += from->count;
    into->entries += from->entries;
    into->shared += from->shared;
    for (int i = 0; i < HX_OUTCOMES; i++) {
        into->outcomes[i] += from->outcomes[i];
    }
    dm_account_add(&into->account, &from->account);
    dm_hist_merge(&into->latency_ns, &from->latency_ns);
    dm_hist_merge(&into->service_ns, &from->service_ns);
}

static void memory_add(struct dm_memory_use *into, const struct dm_memory_use *from) {
    for (int kind = 0; kind < DM_MEM_KIND_COUNT; kind++) {
        into->bytes[kind] += from->bytes[kind];
    }
    into->freed += from->freed;
    into->chunk_bytes += from->chunk_bytes;
    into->chip_bytes = combine_MAX(into->chip_bytes, from->chip_bytes);
}

void hx_totals_merge(struct hx_totals *into, const struct hx_totals *from) {
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        op_stats_add(&into->ops[kind], &from->ops[kind]);
    }
    memory_add(&into->memory, &from->memory);
    hx_pace_merge(&into->pace, &from->pace);
#define X(name, how) into->name = combine_##how(into->name, from->name);
    HX_TOTALS(X)
#undef X
}

struct hx_tally *hx_tally_new(size_t counter_count, uint64_t interval_ns) {
    struct hx_tally *tally = calloc(1, sizeof(*tally));
    if (!tally) {
        return NULL;
    }
    hx_totals_clear(&tally->totals);
    tally->counters = calloc(counter_count + 1, sizeof(*tally->counters));
    tally->over_time = interval_ns > 0 ? hx_over_time_new(interval_ns) : NULL;
    if (!tally->counters || (interval_ns > 0 && !tally->over_time)) {
        hx_tally_free(tally);
        return NULL;
    }
    return tally;
}

static void account_sample(struct hx_sample *sample, const struct dm_account *account) {
    sample->round_trips += account->round_trips;
    for (int cause = 0; cause < DM_RETRY_COUNT; cause++) {
        sample->retries += account->retries[cause];
    }
}

void hx_tally_sample(struct hx_tally *tally, struct hx_sample sample, const struct dm_topology *topology,
                     double *worked_ns) {
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        account_sample(&sample, &tally->totals.ops[kind].account);
    }
    account_sample(&sample, &tally->rmw_get);
    account_sample(&sample, &tally->rmw_update);
    hx_over_time_sample(tally->over_time, &sample, topology, worked_ns);
}

void hx_tally_free(struct hx_tally *tally) {
    if (tally) {
        free(tally->counters);
        free(tally->over_time);
        free(tally);
    }
}

struct hx_measured *hx_measured_new(void) {
    struct hx_measured *measured = calloc(1, sizeof(*measured));
    if (measured) {
        hx_totals_clear(&measured->totals);
    }
    return measured;
}

void hx_measured_free(struct hx_measured *measured) {
    if (!measured) {
        return;
    }
    for (size_t i = 0; i < measured->resource_count; i++) {
        free((char *)(uintptr_t)measured->resources[i].name);
    }
    free(measured->resources);
    free(measured->over_time);
    free(measured->counters);
    free(measured);
}

void hx_measured_merge(struct hx_measured *into, const struct hx_totals *from, const uint64_t *counters,
                       size_t counter_count) {
    hx_totals_merge(&into->totals, from);
    for (size_t i = 0; i < counter_count; i++) {
        into->counters[i] += counters[i];
    }
}

void hx_measured_add(struct hx_measured *into, const struct hx_tally *from, size_t counter_count) {
    struct hx_op_stats *ops = into->totals.ops;
    hx_measured_merge(into, &from->totals, from->counters, counter_count);
    if (into->over_time) {
        hx_over_time_merge(into->over_time, from->over_time);
    }
    dm_account_add(&ops[WL_GET].account, &from->rmw_get);
    dm_account_add(&ops[WL_UPDATE].account, &from->rmw_update);
    dm_account_add(&ops[WL_RMW].account, &from->rmw_get);
    dm_account_add(&ops[WL_RMW].account, &from->rmw_update);
}

uint64_t hx_measured_duration_ns(const struct hx_measured *measured) {
    const struct hx_totals *totals = &measured->totals;
    return totals->end_ns > totals->start_ns ? totals->end_ns - totals->start_ns : 0;
}

const struct dm_resource *hx_bottleneck(const struct hx_measured *measured) {
    const struct dm_resource *busiest = NULL;
    for (size_t i = 0; i < measured->resource_count; i++) {
        if (!busiest || measured->resources[i].busy > busiest->busy) {
            busiest = &measured->resources[i];
        }
    }
    return busiest;
}
