/* SPDX-License-Identifier: Apache-2.0
 *
 * What was measured, as JSON. In virtual time all of it depends on the configuration alone; what depends on the host
 * and its speed is in provenance.c.
 */
#include "harness/run/result.h"

#include <math.h>
#include <stdlib.h>

#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/result_time.h"

#define NS_TO_S 1e-9

/* Puts a new value into an object; false when out of memory. A number that JSON cannot represent becomes null. */
static bool put(json_t *object, const char *name, json_t *value) {
    return json_object_set_new(object, name, value) == 0;
}

static json_t *whole(uint64_t number) {
    return json_integer((json_int_t)number);
}

static json_t *real(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}

static double ratio(uint64_t sum, uint64_t count) {
    return count > 0 ? (double)sum / (double)count : 0;
}

static json_t *latency_object(const struct dm_hist *hist) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "min", (json_int_t)(hist->count ? hist->min : 0), "p50",
                     (json_int_t)dm_hist_quantile(hist, 0.50), "p90", (json_int_t)dm_hist_quantile(hist, 0.90), "p99",
                     (json_int_t)dm_hist_quantile(hist, 0.99), "p99_9", (json_int_t)dm_hist_quantile(hist, 0.999),
                     "max", (json_int_t)hist->max, "mean", real(dm_hist_mean(hist)));
}

/* Means by name. */
static json_t *means_object(const char *const *names, const uint64_t *sums, size_t n, uint64_t count) {
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++) {
        put(object, names[i], real(ratio(sums[i], count)));
    }
    return object;
}

static json_t *verbs_object(const struct dm_account *account, uint64_t count) {
    static const char *const names[] = {
#define X(name, text) [name] = text,
        DM_VERBS(X)
#undef X
    };
    return means_object(names, account->verbs, DM_VERB_KIND_COUNT, count);
}

static json_t *retries_object(const struct dm_account *account, uint64_t count) {
    static const char *const names[] = {
#define X(name, text) [name] = text,
        DM_RETRIES(X)
#undef X
    };
    return means_object(names, account->retries, DM_RETRY_COUNT, count);
}

static json_t *outcomes_object(const struct hx_op_stats *stats) {
    json_t *object = json_object();
    for (int slot = 0; slot < HX_OUTCOMES; slot++) {
        if (stats->outcomes[slot] > 0) {
            put(object, dm_code_name(slot - HX_OUTCOME_ZERO), whole(stats->outcomes[slot]));
        }
    }
    return object;
}

static json_t *histogram_string(const struct dm_hist *hist) {
    size_t bytes = dm_hist_encode(hist, NULL, 0) + 1;
    char *text = malloc(bytes);
    if (!text) {
        return NULL;
    }
    dm_hist_encode(hist, text, bytes);
    json_t *string = json_string(text);
    free(text);
    return string;
}

/* Mean ns an operation by phase, of those that took time; NULL if there are none. */
static json_t *phases_object(const struct dm_account *account, uint64_t count) {
    static const char *const names[DM_PHASE_COUNT] = {
#define X(name, text) text,
        DM_PHASES(X)
#undef X
    };
    json_t *object = NULL;
    for (int i = 0; i < DM_PHASE_COUNT; i++) {
        if (account->phase_ns[i] > 0) {
            object = object ? object : json_object();
            if (!put(object, names[i], real(ratio(account->phase_ns[i], count)))) {
                break;
            }
        }
    }
    return object;
}

static json_t *op_object(enum wl_op_kind kind, const struct hx_op_stats *stats, bool has_rdwc) {
    const struct dm_account *account = &stats->account;
    uint64_t count = stats->count;
    json_t *object = json_object();
    bool is_whole = put(object, "count", whole(count)) &&
                    put(object, "latency_ns", latency_object(&stats->latency_ns)) &&
                    put(object, "round_trips_mean", real(ratio(account->round_trips, count))) &&
                    put(object, "verbs_mean", verbs_object(account, count)) &&
                    put(object, "bytes_read_mean", real(ratio(account->bytes_read, count))) &&
                    put(object, "bytes_written_mean", real(ratio(account->bytes_written, count))) &&
                    put(object, "doorbells_mean", real(ratio(account->doorbells, count))) &&
                    put(object, "cas_failures_mean", real(ratio(account->cas_failures, count))) &&
                    put(object, "masked_emulated_mean", real(ratio(account->masked_emulated, count))) &&
                    put(object, "retries_mean", retries_object(account, count)) &&
                    put(object, "outcomes", outcomes_object(stats)) &&
                    put(object, "histogram", histogram_string(&stats->latency_ns));
    json_t *phases = phases_object(account, count);
    is_whole = is_whole && (!phases || put(object, "phases_ns_mean", phases));
    if (is_whole && stats->service_ns.count > 0) {
        is_whole = put(object, "service_ns", latency_object(&stats->service_ns));
    }
    if (is_whole && has_rdwc && (kind == WL_GET || kind == WL_UPDATE)) {
        is_whole = put(object, "shared", whole(stats->shared));
    }
    if (is_whole && kind == WL_SCAN) {
        is_whole = put(object, "entries_mean", real(ratio(stats->entries, count)));
    }
    if (!is_whole) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *ops_object(const struct hx_measured *measured, bool has_rdwc) {
    json_t *object = json_object();
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        const struct hx_op_stats *stats = &measured->totals.ops[kind];
        if (stats->count > 0 && !put(object, wl_op_names[kind], op_object((enum wl_op_kind)kind, stats, has_rdwc))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *nodes_array(const struct dm_topology *topology, const struct hx_measured *measured) {
    json_t *nodes = json_array();
    for (unsigned node = 0; node < dm_first_cn(topology) + topology->cns; node++) {
        json_t *resources = json_array();
        for (size_t i = 0; i < measured->resource_count; i++) {
            const struct dm_resource *resource = &measured->resources[i];
            if (resource->node == node) {
                json_array_append_new(resources,
                                      json_pack("{s:s, s:o, s:o, s:I}", "name", resource->name, "busy",
                                                real(resource->busy), "queue_mean", real(resource->queue_mean),
                                                "served", (json_int_t)resource->served));
            }
        }
        json_array_append_new(nodes, json_pack("{s:I, s:s, s:o}", "node", (json_int_t)node, "role",
                                               hx_node_role(topology, node), "resources", resources));
    }
    return nodes;
}

static json_t *bottleneck_object(const struct dm_topology *topology, const struct hx_measured *measured) {
    const struct dm_resource *busiest = hx_bottleneck(measured);
    if (!busiest) {
        return json_null();
    }
    return json_pack("{s:I, s:s, s:s, s:o}", "node", (json_int_t)busiest->node, "role",
                     hx_node_role(topology, busiest->node), "resource", busiest->name, "busy", real(busiest->busy));
}

/* Bytes by kind, freed bytes, and bytes that threads have in chunks but have not used. They add up to the bytes of all
 * chunks. */
static json_t *memory_object(const struct dm_memory_use *use) {
    static const char *const names[] = {
#define X(name, text) [name] = text,
        DM_MEM_KINDS(X)
#undef X
    };
    json_t *object = json_object();
    uint64_t known = use->freed;
    for (int kind = 0; kind < DM_MEM_KIND_COUNT; kind++) {
        put(object, names[kind], whole(use->bytes[kind]));
        known += use->bytes[kind];
    }
    put(object, "free", whole(use->freed));
    put(object, "unused", whole(use->chunk_bytes > known ? use->chunk_bytes - known : 0));
    put(object, "on_chip", whole(use->chip_bytes));
    return object;
}

static json_t *counters_object(const struct ix_ops *index, const struct hx_measured *measured) {
    json_t *object = json_object();
    for (size_t i = 0; i < ix_counter_count(index); i++) {
        put(object, index->counters[i].name, whole(measured->counters[i]));
    }
    return object;
}

/* Set-up costs no virtual time, so its duration is 0 there. */
static json_t *phases_array(const struct hx_settings *run, const struct hx_measured *measured) {
    double load_s = measured->is_virtual ? 0 : measured->host.load_s;
    return json_pack("[{s:s, s:o, s:I}, {s:s, s:o, s:I}, {s:s, s:o, s:I}]", "name", "load", "duration_s", real(load_s),
                     "operations", (json_int_t)measured->loaded_keys, "name", "warmup", "duration_s",
                     real((double)measured->totals.warmup_ns * NS_TO_S), "operations", (json_int_t)run->warmup, "name",
                     "measure", "duration_s", real((double)hx_measured_duration_ns(measured) * NS_TO_S), "operations",
                     (json_int_t)measured->totals.operations);
}

static json_t *verify_object(const struct ix_report *report) {
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:s}", "keys", (json_int_t)report->keys, "leaves",
                     (json_int_t)report->leaves, "inner_nodes", (json_int_t)report->inner_nodes, "height",
                     (json_int_t)report->height, "leaf_fill", real(report->leaf_fill), "broken",
                     (json_int_t)report->broken, "first_problem", report->first_problem);
}

static double throughput(const struct hx_measured *measured) {
    uint64_t ns = hx_measured_duration_ns(measured);
    return ns > 0 ? (double)measured->totals.succeeded * 1e9 / (double)ns : 0;
}

static double rate_over(uint64_t count, uint64_t ns, double otherwise) {
    return count > 0 && ns > 0 ? (double)count * 1e9 / (double)ns : otherwise;
}

/* Rates between the first and the last operation: what the schedule demanded, and what was achieved. */
static json_t *load_object(const struct hx_settings *run, const struct hx_measured *measured) {
    static const double tolerance = 0.01;
    const struct hx_totals *totals = &measured->totals;
    uint64_t distances = totals->operations - 1;
    double offered = rate_over(distances, totals->due_last_ns - totals->due_first_ns, (double)run->rate);
    double achieved = rate_over(distances, totals->begun_last_ns - totals->start_ns, offered);
    return json_pack("{s:I, s:o, s:o, s:b, s:I}", "target_ops_per_s", (json_int_t)run->rate, "offered_ops_per_s",
                     real(offered), "achieved_ops_per_s", real(achieved), "is_reached",
                     achieved >= offered * (1 - tolerance), "start_delay_max_ns", (json_int_t)totals->delay_max_ns);
}

/* Inserts that waited until an older one was acknowledged: another client starved. */
static json_t *waits_object(const struct hx_totals *totals) {
    return json_pack("{s:I, s:I}", "count", (json_int_t)totals->waits, "longest_ns", (json_int_t)totals->wait_max_ns);
}

/* Read delegation and write combining; see also `shared` of the operations. */
static json_t *rdwc_object(const struct hx_config *config, const struct hx_measured *measured) {
    return json_pack("{s:b, s:I, s:I}", "is_linearizable", config->run.rdwc == IX_RDWC_ON, "bypassed",
                     (json_int_t)measured->totals.bypassed, "bytes_per_cn", (json_int_t)measured->totals.rdwc_bytes);
}

static json_t *notes_object(const struct hx_measured *measured) {
    json_t *object = json_object();
    for (size_t i = 0; i < measured->note_count; i++) {
        put(object, measured->notes[i].name, json_string(measured->notes[i].value));
    }
    return object;
}

json_t *hx_result_new(const struct hx_config *config, const struct hx_measured *measured) {
    char hash[17];
    bool has_rdwc = config->run.rdwc != IX_RDWC_OFF;
    hx_config_hash(config, hash);
    json_t *result = json_object();
    bool is_whole = put(result, "schema_version", json_integer(HX_SCHEMA_VERSION)) &&
                    put(result, "time_base", json_string(measured->is_virtual ? "virtual" : "real")) &&
                    put(result, "config", hx_config_to_json(config)) && put(result, "config_hash", json_string(hash)) &&
                    put(result, "throughput_ops_per_s", real(throughput(measured))) &&
                    put(result, "ops", ops_object(measured, has_rdwc)) &&
                    put(result, "nodes", nodes_array(&config->topology, measured)) &&
                    put(result, "bottleneck", bottleneck_object(&config->topology, measured)) &&
                    put(result, "cache_bytes_per_cn", whole(measured->totals.cache_bytes)) &&
                    put(result, "memory_bytes", memory_object(&measured->totals.memory)) &&
                    put(result, "counters", counters_object(config->index, measured)) &&
                    put(result, "phases", phases_array(&config->run, measured)) &&
                    put(result, "settled", hx_settled_json(config, measured));
    if (is_whole && measured->is_partial) {
        is_whole = put(result, "is_partial", json_true());
    }
    if (is_whole && measured->totals.cache_entry_bytes > 0) {
        is_whole = put(result, "cache_entry_bytes_per_cn", whole(measured->totals.cache_entry_bytes));
    }
    if (is_whole && measured->over_time) {
        is_whole = put(result, "over_time", hx_over_time_json(config, measured));
    }
    if (is_whole && has_rdwc) {
        is_whole = put(result, "rdwc", rdwc_object(config, measured));
    }
    if (is_whole && measured->note_count > 0) {
        is_whole = put(result, "fabric", notes_object(measured));
    }
    if (is_whole && config->run.rate > 0) {
        is_whole = put(result, "load", load_object(&config->run, measured));
    }
    if (is_whole && measured->totals.waits > 0) {
        is_whole = put(result, "waits", waits_object(&measured->totals));
    }
    if (is_whole && measured->verified) {
        is_whole = put(result, "verify", verify_object(&measured->report));
    }
    if (!is_whole) {
        json_decref(result);
        return NULL;
    }
    return result;
}
