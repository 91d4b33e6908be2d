/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding up tallies and totals: nothing is lost, and the sum of two processes is what one process would measure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "harness/run/measured.h"

static struct hx_measured *new_measured(void) {
    struct hx_measured *measured = hx_measured_new();
    assert_non_null(measured);
    measured->counters = calloc(2, sizeof(uint64_t));
    assert_non_null(measured->counters);
    return measured;
}

/* Different numbers for every member, from `base` on. */
static void fill(struct hx_totals *totals, uint64_t base) {
    uint64_t next = base;
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        struct hx_op_stats *stats = &totals->ops[kind];
        stats->count = next++;
        stats->entries = next++;
        stats->shared = next++;
        stats->outcomes[HX_OUTCOMES - 1] = next++;
        stats->account.round_trips = next++;
        dm_hist_record(&stats->latency_ns, next++);
        dm_hist_record(&stats->service_ns, next++);
    }
    totals->memory.bytes[0] = next++;
    totals->memory.freed = next++;
    totals->memory.chunk_bytes = next++;
    totals->memory.chip_bytes = next++;
    hx_pace_note(&totals->pace, next++ * HX_PACE_WIDTH_NS, 5);
#define X(name, how) totals->name = next++;
    HX_TOTALS(X)
#undef X
}

static void merging_into_nothing_gives_the_same(void **state) {
    (void)state;
    struct hx_totals *from = calloc(1, sizeof(*from)), *into = calloc(1, sizeof(*into));
    assert_non_null(from);
    assert_non_null(into);
    hx_totals_clear(from);
    hx_totals_clear(into);
    fill(from, 1000);
    hx_totals_merge(into, from);
    assert_memory_equal(into, from, sizeof(*into));
    free(from);
    free(into);
}

/* How processes add up each number of HX_TOTALS, written down a second time. */
enum combined { ADDED, LEAST, GREATEST };
static const struct number {
    const char *name;
    size_t offset;
    enum combined how;
} numbers[] = {
#define NUMBER(name, how)                                                                                              \
    { #name, offsetof(struct hx_totals, name), how }
    NUMBER(operations, ADDED),      NUMBER(succeeded, ADDED),
    NUMBER(drawn, ADDED),           NUMBER(verbs, ADDED),
    NUMBER(bypassed, ADDED),        NUMBER(warmup_ns, GREATEST),
    NUMBER(start_ns, LEAST),        NUMBER(end_ns, GREATEST),
    NUMBER(cache_bytes, GREATEST),  NUMBER(cache_entry_bytes, GREATEST),
    NUMBER(rdwc_bytes, GREATEST),   NUMBER(due_first_ns, LEAST),
    NUMBER(due_last_ns, GREATEST),  NUMBER(begun_last_ns, GREATEST),
    NUMBER(delay_max_ns, GREATEST), NUMBER(waits, ADDED),
    NUMBER(wait_max_ns, GREATEST),
#undef NUMBER
};

static uint64_t number_of(const struct hx_totals *totals, const struct number *number) {
    uint64_t value;
    memcpy(&value, (const char *)totals + number->offset, sizeof(value));
    return value;
}

/* Every number of `low` is below that of `high`. */
static void numbers_check(const struct hx_totals *sum, const struct hx_totals *low, const struct hx_totals *high) {
    size_t rows = 0, count = sizeof(numbers) / sizeof(numbers[0]);
#define X(name, how) rows++;
    HX_TOTALS(X)
#undef X
    assert_int_equal(count, rows);
    for (size_t i = 0; i < count; i++) {
        uint64_t less = number_of(low, &numbers[i]), more = number_of(high, &numbers[i]);
        uint64_t expected = numbers[i].how == ADDED ? less + more : numbers[i].how == LEAST ? less : more;
        assert_true(less < more);
        if (number_of(sum, &numbers[i]) != expected) {
            fail_msg("%s is not combined as it should be", numbers[i].name);
        }
    }
}

/* The operations of `pace`, whose slices may have become wider. */
static uint64_t pace_operations(const struct hx_pace *pace) {
    uint64_t operations = 0;
    for (size_t i = 0; i < pace->grid.used; i++) {
        operations += pace->slices[i].operations;
    }
    return operations;
}

static void each_number_is_combined_as_its_row_says(void **state) {
    (void)state;
    struct hx_totals *low = calloc(1, sizeof(*low)), *high = calloc(1, sizeof(*high));
    assert_non_null(low);
    assert_non_null(high);
    hx_totals_clear(low);
    hx_totals_clear(high);
    fill(low, 1000);
    fill(high, 5000);
    struct hx_measured *measured = new_measured(), *reversed = new_measured();
    uint64_t counters[] = {3, 4};
    hx_measured_merge(reversed, high, counters, 2);
    hx_measured_merge(reversed, low, counters, 2);
    numbers_check(&reversed->totals, low, high);
    hx_measured_free(reversed);
    hx_measured_merge(measured, low, counters, 2);
    hx_measured_merge(measured, high, counters, 2);
    const struct hx_totals *sum = &measured->totals;
    numbers_check(sum, low, high);
    assert_int_equal(hx_measured_duration_ns(measured), high->end_ns - low->start_ns);
    const struct hx_op_stats *stats = &sum->ops[WL_SCAN];
    assert_int_equal(stats->count, low->ops[WL_SCAN].count + high->ops[WL_SCAN].count);
    assert_int_equal(stats->entries, low->ops[WL_SCAN].entries + high->ops[WL_SCAN].entries);
    assert_int_equal(stats->latency_ns.count, 2);
    assert_int_equal(pace_operations(&sum->pace), 2);
    assert_int_equal(sum->memory.freed, low->memory.freed + high->memory.freed);
    assert_int_equal(sum->memory.chip_bytes, high->memory.chip_bytes);
    assert_int_equal(measured->counters[0], 6);
    assert_int_equal(measured->counters[1], 8);
    hx_measured_free(measured);
    free(low);
    free(high);
}

static void parts_of_an_rmw_count_for_both(void **state) {
    (void)state;
    struct hx_measured *measured = new_measured();
    struct hx_tally *tally = hx_tally_new(0, 0);
    assert_non_null(tally);
    tally->totals.ops[WL_GET].account.round_trips = 10;
    tally->totals.ops[WL_UPDATE].account.round_trips = 20;
    tally->rmw_get.round_trips = 1;
    tally->rmw_update.round_trips = 3;
    hx_measured_add(measured, tally, 0);
    hx_measured_add(measured, tally, 0);
    assert_int_equal(measured->totals.ops[WL_GET].account.round_trips, 22);
    assert_int_equal(measured->totals.ops[WL_UPDATE].account.round_trips, 46);
    assert_int_equal(measured->totals.ops[WL_RMW].account.round_trips, 8);
    hx_tally_free(tally);
    hx_measured_free(measured);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_into_nothing_gives_the_same),
        cmocka_unit_test(each_number_is_combined_as_its_row_says),
        cmocka_unit_test(parts_of_an_rmw_count_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
