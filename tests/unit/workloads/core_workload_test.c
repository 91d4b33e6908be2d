/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the core workload with YCSB's, call by call. The same random stream must give the same operations, keys and
 * scan lengths for A to F and both insert orders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/workloads/vectors.h"
#include "workloads/core_workload.h"

struct fixture {
    struct wl_spec spec;
    struct wl_keymap map;
    struct wl_core *core;
    struct wl_core_stream stream;
};

static void fixture_open(struct fixture *fixture, const char *properties, uint64_t operations, uint64_t seed) {
    struct dm_err err = {0};
    const struct wl_config nothing = {0};
    wl_spec_defaults(&fixture->spec);
    assert_int_equal(wl_spec_apply_properties(&fixture->spec, properties, &err), 0);
    assert_int_equal(wl_spec_resolve(&fixture->spec, &nothing, &err), 0);
    assert_int_equal(wl_keymap_open(&fixture->map, "", fixture->spec.record_count, 0, fixture->spec.ordered, 1, &err),
                     0);
    fixture->core = aligned_alloc(_Alignof(struct wl_core), sizeof(struct wl_core));
    assert_non_null(fixture->core);
    assert_int_equal(wl_core_open(fixture->core, &fixture->spec, &fixture->map, operations, 1), 0);
    fixture->stream = wl_core_stream_make(fixture->core, (struct dm_prng){.state = seed}, 0);
}

static void fixture_close(struct fixture *fixture) {
    wl_keymap_close(&fixture->map);
    wl_core_close(fixture->core);
    free(fixture->core);
}

/* The vector's parameters as "name=value,...", without those of fields. */
static void properties_of(const json_t *params, char *text, size_t capacity) {
    const char *name;
    const json_t *value;
    text[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)params, name, value) {
        size_t used = strlen(text);
        if (strcmp(name, "workload") == 0 || strncmp(name, "field", 5) == 0 || strcmp(name, "operationcount") == 0) {
            continue;
        }
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        snprintf(text + used, capacity - used, "%s%s=%s", used > 0 ? "," : "", name,
                 json_is_string(value) ? json_string_value(value) : number);
    }
}

static void call_check(const json_t *calls, size_t *next, const char *what, const struct wl_op *op) {
    char text[80];
    int used = snprintf(text, sizeof text, "%s user%llu", what, (unsigned long long)op->key);
    if (op->kind == WL_SCAN) {
        snprintf(text + used, sizeof text - (size_t)used, " %u", op->scan_length);
    }
    assert_string_equal(text, json_string_value(json_array_get(calls, (*next)++)));
}

static void calls_check(const json_t *entry) {
    static const char *const words[WL_OP_KIND_COUNT] = {
        [WL_GET] = "READ", [WL_UPDATE] = "UPDATE", [WL_INSERT] = "INSERT", [WL_SCAN] = "SCAN"};
    struct fixture fixture;
    char properties[512];
    const json_t *params = json_object_get(entry, "params"), *calls = json_object_get(entry, "calls");
    properties_of(params, properties, sizeof properties);
    fixture_open(&fixture, properties, (uint64_t)vector_number(params, "operationcount"),
                 (uint64_t)vector_number(entry, "splitmix64_seed"));
    /* the draws that YCSB's constructors discard */
    dm_prng_u64(&fixture.stream.prng);
    if (fixture.spec.dist == WL_DIST_LATEST) {
        dm_prng_u64(&fixture.stream.prng);
    }
    size_t next = 0;
    while (next < json_array_size(calls)) {
        struct wl_op op;
        assert_int_equal(wl_core_next(&fixture.stream, &op), 0);
        if (op.kind == WL_RMW) {
            call_check(calls, &next, "READ", &op);
            call_check(calls, &next, "UPDATE", &op);
        } else {
            call_check(calls, &next, words[op.kind], &op);
        }
        if (op.kind == WL_UPDATE || op.kind == WL_RMW) {
            dm_prng_u64(&fixture.stream.prng); /* YCSB draws a field here */
        }
        wl_core_done(fixture.core, &op, 0);
    }
    fixture_close(&fixture);
}

static void every_call_of_a_to_f_is_that_of_ycsb(void **state) {
    (void)state;
    json_t *vectors = vectors_load();
    size_t i, checked = 0;
    json_t *entry;
    json_array_foreach(json_object_get(vectors, "deterministic"), i, entry) {
        if (vector_is(entry, "coreworkload_calls", NULL)) {
            calls_check(entry);
            checked++;
        }
    }
    assert_true(checked >= 10);
    json_decref(vectors);
}

static void no_key_is_chosen_before_its_insert_was_acknowledged(void **state) {
    (void)state;
    static const char *const distributions[] = {"zipfian", "latest", "exponential", "uniform"};
    for (size_t d = 0; d < 4; d++) {
        struct fixture fixture;
        char properties[200];
        snprintf(properties, sizeof properties,
                 "recordcount=100,insertorder=ordered,readproportion=0.5,updateproportion=0,insertproportion=0.5,"
                 "requestdistribution=%s",
                 distributions[d]);
        fixture_open(&fixture, properties, 20000, 4);
        uint64_t acknowledged = 99, greatest_read = 0;
        struct wl_op open = {0};
        bool has_open = false;
        for (int i = 0; i < 20000; i++) {
            struct wl_op op;
            assert_int_equal(wl_core_next(&fixture.stream, &op), 0);
            if (op.kind != WL_INSERT) {
                assert_true(op.key <= acknowledged);
                greatest_read = op.key > greatest_read ? op.key : greatest_read;
            } else if (!has_open) {
                open = op; /* is not acknowledged while later ones are */
                has_open = true;
            } else {
                wl_core_done(fixture.core, &op, 0);
                if (op.ticket % 7 == 0) {
                    wl_core_done(fixture.core, &open, 0);
                    acknowledged = op.ticket;
                    has_open = false;
                }
            }
        }
        /* uniform never reads an inserted key; the others do */
        assert_true(d == 3 ? greatest_read == 99 : greatest_read > 5000);
        fixture_close(&fixture);
    }
}

static void keys_above_the_newest_are_drawn_again_not_clamped(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture,
                 "recordcount=1000,insertorder=ordered,readproportion=0.95,updateproportion=0,insertproportion=0.05,"
                 "requestdistribution=zipfian",
                 1000000, 8);
    unsigned newest_hits = 0;
    for (int i = 0; i < 100000; i++) {
        struct wl_op op;
        assert_int_equal(wl_core_next(&fixture.stream, &op), 0);
        newest_hits += op.kind == WL_GET && op.key == 999 ? 1 : 0;
        if (op.kind == WL_INSERT) {
            fixture.core->ack.next--; /* so that the newest number stays the same */
        }
    }
    /* the range is 101 001 wide: clamping would give key 999 almost all of the draws */
    assert_in_range(newest_hits, 1, 2000);
    fixture_close(&fixture);
}

/* A client that starves holds the oldest number. The inserts of others must wait, and a stream continues with what it
 * would have drawn. */
static void an_insert_that_must_wait_is_drawn_once(void **state) {
    (void)state;
    static const char properties[] = "recordcount=1000,insertorder=ordered,readproportion=0.5,updateproportion=0,"
                                     "insertproportion=0.5,requestdistribution=uniform";
    struct fixture waiting, plain;
    fixture_open(&waiting, properties, 4000000, 8);
    fixture_open(&plain, properties, 4000000, 8);
    struct wl_op oldest, op, expected;
    unsigned waits = 0;
    do {
        assert_int_equal(wl_core_next(&waiting.stream, &oldest), 0);
        assert_int_equal(wl_core_next(&plain.stream, &expected), 0);
    } while (oldest.kind != WL_INSERT);
    wl_core_done(plain.core, &expected, 0);
    for (unsigned i = 0; i < 3 * WL_ACK_WINDOW; i++) {
        int rc = wl_core_next(&waiting.stream, &op);
        for (unsigned again = 0; rc == DM_ERR_RETRY_LIMIT; again++) {
            waits++;
            if (again == 5) {
                wl_core_done(waiting.core, &oldest, 0);
            }
            rc = wl_core_next(&waiting.stream, &op);
        }
        assert_int_equal(rc, 0);
        assert_int_equal(wl_core_next(&plain.stream, &expected), 0);
        assert_int_equal(op.kind, expected.kind);
        wl_core_done(waiting.core, &op, 0);
        wl_core_done(plain.core, &expected, 0);
    }
    assert_int_equal(waits, 6);
    fixture_close(&waiting);
    fixture_close(&plain);
}

static void sequential_chooses_every_key_in_turn(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_open(
        &fixture,
        "recordcount=10,insertorder=ordered,readproportion=1,updateproportion=0,requestdistribution=sequential", 100,
        8);
    for (uint64_t i = 0; i < 100; i++) {
        struct wl_op op;
        assert_int_equal(wl_core_next(&fixture.stream, &op), 0);
        assert_int_equal(op.key, i % 10);
    }
    fixture_close(&fixture);
}

static void insertstart_shifts_the_keys_that_are_loaded_and_chosen(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture,
                 "recordcount=1000,insertstart=400,insertcount=100,insertorder=ordered,readproportion=1,"
                 "updateproportion=0,requestdistribution=uniform",
                 100, 8);
    bool low = false, high = false;
    for (int i = 0; i < 10000; i++) {
        struct wl_op op;
        assert_int_equal(wl_core_next(&fixture.stream, &op), 0);
        assert_in_range(op.key, 400, 499);
        low |= op.key == 400;
        high |= op.key == 499;
    }
    assert_true(low && high);
    fixture_close(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_a_to_f_is_that_of_ycsb),
        cmocka_unit_test(no_key_is_chosen_before_its_insert_was_acknowledged),
        cmocka_unit_test(keys_above_the_newest_are_drawn_again_not_clamped),
        cmocka_unit_test(an_insert_that_must_wait_is_drawn_once),
        cmocka_unit_test(sequential_chooses_every_key_in_turn),
        cmocka_unit_test(insertstart_shifts_the_keys_that_are_loaded_and_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
