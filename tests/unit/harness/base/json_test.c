/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON helpers: strict members, deep merge, dotted paths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "harness/base/json.h"

static json_t *parse(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

static void a_merge_puts_members_over_members_at_every_depth(void **state) {
    (void)state;
    json_t *base = parse("{\"a\": 1, \"set\": {\"x\": 1, \"y\": 2}, \"b\": {\"z\": 1}}");
    json_t *over = parse("{\"set\": {\"y\": 3, \"w\": 4}, \"b\": 5}");
    json_t *merged = hx_json_merge(base, over);
    json_t *wanted = parse("{\"a\": 1, \"set\": {\"x\": 1, \"y\": 3, \"w\": 4}, \"b\": 5}");
    assert_true(json_equal(merged, wanted));
    assert_int_equal(json_integer_value(hx_json_find(base, "set.y")), 2);
    json_decref(base);
    json_decref(over);
    json_decref(merged);
    json_decref(wanted);
}

static void a_path_finds_members_and_elements(void **state) {
    (void)state;
    json_t *tree =
        parse("{\"ops\": {\"get\": {\"latency_ns\": {\"p99_9\": 7}}}, \"nodes\": [{\"busy\": 1}, {\"busy\": 2}]}");
    assert_int_equal(json_integer_value(hx_json_find(tree, "ops.get.latency_ns.p99_9")), 7);
    assert_int_equal(json_integer_value(hx_json_find(tree, "nodes.1.busy")), 2);
    assert_null(hx_json_find(tree, "nodes.2.busy"));
    assert_null(hx_json_find(tree, "nodes.x.busy"));
    assert_null(hx_json_find(tree, "ops.put.count"));
    assert_null(hx_json_find(tree, "ops.get.latency_ns.p99_9.more"));
    assert_null(hx_json_find(NULL, "ops"));
    json_decref(tree);
}

static void put_creates_missing_objects_of_the_path(void **state) {
    (void)state;
    json_t *tree = parse("{\"set\": {\"x\": 1}, \"flat\": 3}");
    json_t *value = json_integer(9);
    assert_int_equal(hx_json_put(tree, "set.node_bytes", value), 0);
    assert_int_equal(hx_json_put(tree, "transport_set.deep.name", value), 0);
    assert_int_equal(hx_json_put(tree, "flat", value), 0);
    json_t *wanted =
        parse("{\"set\": {\"x\": 1, \"node_bytes\": 9}, \"flat\": 9, \"transport_set\": {\"deep\": {\"name\": 9}}}");
    assert_true(json_equal(tree, wanted));
    json_decref(value);
    json_decref(tree);
    json_decref(wanted);
}

static void unknown_members_and_wrong_types_are_named(void **state) {
    (void)state;
    static const char *const known[] = {"label", "config", NULL};
    struct dm_err err;
    const json_t *value;
    json_t *tree = parse("{\"label\": 5, \"confg\": {}}");
    assert_int_equal(hx_json_check(tree, known, "f.json: panels[2]", &err), DM_ERR_INVALID);
    assert_string_equal(err.text, "f.json: panels[2]: unknown member 'confg'; did you mean 'config'?");
    assert_int_equal(hx_json_get(tree, "label", JSON_STRING, true, "f.json", &value, &err), DM_ERR_INVALID);
    assert_string_equal(err.text, "f.json.label: must be a string");
    assert_int_equal(hx_json_get(tree, "title", JSON_STRING, true, "f.json", &value, &err), DM_ERR_INVALID);
    assert_string_equal(err.text, "f.json: member 'title' is missing");
    assert_int_equal(hx_json_get(tree, "title", JSON_STRING, false, "f.json", &value, &err), 0);
    assert_null(value);
    assert_int_equal(hx_json_get(tree, "label", JSON_REAL, true, "f.json", &value, &err), 0);
    json_decref(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merge_puts_members_over_members_at_every_depth),
        cmocka_unit_test(a_path_finds_members_and_elements),
        cmocka_unit_test(put_creates_missing_objects_of_the_path),
        cmocka_unit_test(unknown_members_and_wrong_types_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
