/* SPDX-License-Identifier: Apache-2.0
 *
 * From measurements to JSON: counts have the right names, and the histogram can be read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/result.h"

static struct hx_config *config_of_rate(const char *rate) {
    struct hx_config *config = hx_config_new();
    struct dm_err err = {0};
    assert_non_null(config);
    assert_int_equal(hx_config_set(config, "rate", rate, &err), 0);
    assert_int_equal(hx_config_set(config, "index", "null", &err), 0);
    assert_int_equal(hx_config_set(config, "clients", "2", &err), 0);
    assert_int_equal(hx_config_set(config, "keys", "1K", &err), 0);
    if (hx_config_resolve(config, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return config;
}

static struct hx_config *null_config(void) {
    return config_of_rate("0");
}

static struct hx_measured *new_measured(const struct hx_config *config) {
    struct hx_measured *measured = hx_measured_new();
    assert_non_null(measured);
    measured->counters = calloc(ix_counter_count(config->index) + 1, sizeof(uint64_t));
    assert_non_null(measured->counters);
    return measured;
}

static json_int_t integer_at(const json_t *object, const char *first, const char *second, const char *third) {
    const json_t *value = json_object_get(json_object_get(object, first), second);
    value = third ? json_object_get(value, third) : value;
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void counts_latencies_and_outcomes_arrive(void **state) {
    (void)state;
    struct hx_config *config = null_config();
    struct hx_measured *measured = new_measured(config);
    struct hx_op_stats *get = &measured->totals.ops[WL_GET];
    measured->is_virtual = true;
    measured->totals.operations = measured->totals.succeeded = 4;
    measured->totals.start_ns = 1000;
    measured->totals.end_ns = 3000;
    get->count = 4;
    get->outcomes[DM_OK + HX_OUTCOME_ZERO] = 3;
    get->outcomes[DM_NOT_FOUND + HX_OUTCOME_ZERO] = 1;
    get->account.round_trips = 6;
    get->account.verbs[DM_VERB_READ] = 8;
    get->account.bytes_read = 4096;
    for (uint64_t i = 1; i <= 4; i++) {
        dm_hist_record(&get->latency_ns, i * 10);
    }
    json_t *result = hx_result_new(config, measured);
    assert_non_null(result);
    assert_string_equal(json_string_value(json_object_get(result, "time_base")), "virtual");
    assert_true(json_real_value(json_object_get(result, "throughput_ops_per_s")) == 2e6);
    const json_t *ops = json_object_get(result, "ops");
    assert_int_equal(json_object_size(ops), 1);
    assert_int_equal(integer_at(ops, "get", "count", NULL), 4);
    assert_int_equal(integer_at(ops, "get", "outcomes", "ok"), 3);
    assert_int_equal(integer_at(ops, "get", "outcomes", "not_found"), 1);
    assert_int_equal(integer_at(ops, "get", "latency_ns", "p50"), 20);
    assert_int_equal(integer_at(ops, "get", "latency_ns", "max"), 40);
    assert_null(json_object_get(json_object_get(ops, "get"), "service_ns"));
    assert_null(json_object_get(result, "load"));
    const json_t *op = json_object_get(ops, "get");
    assert_true(json_real_value(json_object_get(op, "round_trips_mean")) == 1.5);
    assert_true(json_real_value(json_object_get(json_object_get(op, "verbs_mean"), "read")) == 2.0);
    assert_true(json_real_value(json_object_get(op, "bytes_read_mean")) == 1024.0);

    struct dm_hist *read_back = calloc(1, sizeof(*read_back));
    assert_non_null(read_back);
    assert_int_equal(dm_hist_decode(read_back, json_string_value(json_object_get(op, "histogram"))), 0);
    assert_memory_equal(read_back, &get->latency_ns, sizeof(*read_back));
    free(read_back);
    json_decref(result);
    hx_measured_free(measured);
    hx_config_close(config);
}

/* 101 operations that are due at one per us and began at one per `distance_ns`. */
static json_t *open_result(uint64_t distance_ns) {
    struct hx_config *config = config_of_rate("1M");
    struct hx_measured *measured = new_measured(config);
    struct hx_op_stats *get = &measured->totals.ops[WL_GET];
    measured->totals.operations = measured->totals.succeeded = get->count = 101;
    measured->totals.start_ns = measured->totals.due_first_ns = 5000;
    measured->totals.due_last_ns = 105000;
    measured->totals.begun_last_ns = 5000 + 100 * distance_ns;
    measured->totals.delay_max_ns = 77;
    dm_hist_record(&get->latency_ns, 90);
    dm_hist_record(&get->service_ns, 30);
    json_t *result = hx_result_new(config, measured);
    assert_non_null(result);
    assert_int_equal(integer_at(json_object_get(result, "ops"), "get", "latency_ns", "max"), 90);
    assert_int_equal(integer_at(json_object_get(result, "ops"), "get", "service_ns", "max"), 30);
    hx_measured_free(measured);
    hx_config_close(config);
    return result;
}

static void an_open_loop_is_compared_with_its_schedule(void **state) {
    (void)state;
    json_t *kept = open_result(1005), *missed = open_result(2000);
    const json_t *load = json_object_get(kept, "load");
    assert_true(json_is_true(json_object_get(load, "is_reached")));
    assert_int_equal(json_integer_value(json_object_get(load, "target_ops_per_s")), 1000000);
    assert_true(json_real_value(json_object_get(load, "offered_ops_per_s")) == 1e6);
    assert_int_equal(json_integer_value(json_object_get(load, "start_delay_max_ns")), 77);
    load = json_object_get(missed, "load");
    assert_true(json_is_false(json_object_get(load, "is_reached")));
    assert_true(json_real_value(json_object_get(load, "achieved_ops_per_s")) == 5e5);
    json_decref(kept);
    json_decref(missed);
}

static void memory_kinds_sum_to_what_was_handed_out(void **state) {
    (void)state;
    struct hx_config *config = null_config();
    struct hx_measured *measured = new_measured(config);
    measured->totals.memory.bytes[DM_MEM_LEAF] = 700;
    measured->totals.memory.bytes[DM_MEM_INNER] = 100;
    measured->totals.memory.freed = 50;
    measured->totals.memory.chunk_bytes = 1000;
    json_t *result = hx_result_new(config, measured);
    assert_non_null(result);
    const json_t *memory = json_object_get(result, "memory_bytes");
    json_int_t sum = 0;
    const char *kind;
    json_t *bytes;
    json_object_foreach((json_t *)(uintptr_t)memory, kind, bytes) {
        sum += json_integer_value(bytes);
    }
    assert_int_equal(sum, 1000);
    assert_int_equal(json_integer_value(json_object_get(memory, "unused")), 150);
    json_decref(result);
    hx_measured_free(measured);
    hx_config_close(config);
}

static void the_bottleneck_is_the_busiest_resource(void **state) {
    (void)state;
    struct hx_measured measured = {.resource_count = 0};
    assert_null(hx_bottleneck(&measured));
    char name_a[] = "nic_rx", name_b[] = "link_out", name_c[] = "cores";
    struct dm_resource resources[] = {
        {.node = 0, .name = name_a, .busy = 0.5}, {.node = 1, .name = name_b, .busy = 0.9}, {.name = name_c}};
    measured.resources = resources;
    measured.resource_count = 3;
    assert_ptr_equal(hx_bottleneck(&measured), &resources[1]);
}

/* Every outcome of the table has a counter of its own. */
static void every_code_has_a_counter(void **state) {
    (void)state;
#define X(name, value, text) assert_in_range((value) + HX_OUTCOME_ZERO, 0, HX_OUTCOMES - 1);
    DM_CODES(X)
#undef X
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_latencies_and_outcomes_arrive),
        cmocka_unit_test(an_open_loop_is_compared_with_its_schedule),
        cmocka_unit_test(memory_kinds_sum_to_what_was_handed_out),
        cmocka_unit_test(the_bottleneck_is_the_busiest_resource),
        cmocka_unit_test(every_code_has_a_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
