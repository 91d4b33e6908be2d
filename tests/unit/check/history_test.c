/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as bytes; history files are read back as written, and malformed ones are refused with the line.
 */
#include "check/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int folder_make(void **state) {
    (void)state;
    snprintf(path, sizeof(path), "/tmp/history-test-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int folder_remove(void **state) {
    (void)state;
    return unlink(path);
}

static void file_put(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void values_are_identified_by_their_bytes_and_damage_is_detected(void **state) {
    (void)state;
    for (uint64_t value = 1; value < 2000; value += 7) {
        for (uint32_t bytes = 8; bytes <= 64; bytes += 5) {
            unsigned char text[64];
            ck_value_write(3, value, text, bytes);
            assert_int_equal(ck_value_read(3, text, bytes), value);
            text[(value * 13) % bytes] ^= 0x10;
            assert_int_equal(ck_value_read(3, text, bytes), CK_VALUE_STRANGE);
        }
    }
}

static void a_mixture_of_two_values_is_neither(void **state) {
    (void)state;
    unsigned char one[32], two[32];
    ck_value_write(3, 10, one, sizeof(one));
    ck_value_write(3, 11, two, sizeof(two));
    for (size_t cut = 1; cut < sizeof(one); cut++) {
        unsigned char mixed[32];
        memcpy(mixed, one, cut);
        memcpy(mixed + cut, two + cut, sizeof(two) - cut);
        assert_int_equal(ck_value_read(3, mixed, sizeof(mixed)), CK_VALUE_STRANGE);
    }
}

static void a_history_is_read_back_as_written(void **state) {
    (void)state;
    struct ck_pair initial[] = {{3, 1}, {UINT64_MAX - 1, 2}}, pairs[] = {{3, 1}, {9, 0}};
    struct ck_op ops[] = {
        {.client = 0,
         .kind = WL_INSERT,
         .finished = true,
         .outcome = DM_EXISTS,
         .key = 3,
         .value = 70,
         .invoke = 1,
         .response = 4,
         .invoke_ns = 100,
         .response_ns = 2000},
        {.client = 0, .kind = WL_GET, .finished = true, .key = 3, .value = 1, .invoke = 5, .response = 6},
        {.client = 1,
         .kind = WL_SCAN,
         .finished = true,
         .key = 0,
         .wanted = 5,
         .found = 2,
         .pairs = pairs,
         .invoke = 2,
         .response = 3},
        {.client = 2, .kind = WL_DELETE, .key = UINT64_MAX - 1, .invoke = 7},
    };
    struct ck_history history = {
        .index = "toy", .seed = UINT64_MAX, .initial = initial, .initial_count = 2, .ops = ops, .op_count = 4};
    struct ck_history read;
    struct dm_err err = {0};
    assert_int_equal(ck_history_store(&history, path, &err), 0);
    if (ck_history_load(path, &read, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(read.index, "toy");
    assert_true(read.seed == UINT64_MAX);
    assert_int_equal(read.initial_count, 2);
    assert_memory_equal(read.initial, initial, sizeof(initial));
    assert_int_equal(read.op_count, 4);
    for (size_t i = 0; i < 4; i++) {
        struct ck_op op = read.ops[i];
        if (ops[i].pairs) {
            assert_memory_equal(op.pairs, pairs, sizeof(pairs));
        }
        op.pairs = ops[i].pairs;
        assert_int_equal(op.client, ops[i].client);
        assert_int_equal(op.kind, ops[i].kind);
        assert_int_equal(op.finished, ops[i].finished);
        assert_int_equal(op.outcome, ops[i].outcome);
        assert_true(op.key == ops[i].key && op.value == ops[i].value);
        assert_true(op.wanted == ops[i].wanted && op.found == ops[i].found);
        assert_true(op.invoke == ops[i].invoke && op.response == ops[i].response);
        assert_true(op.invoke_ns == ops[i].invoke_ns && op.response_ns == ops[i].response_ns);
    }
    ck_history_fini(&read);
}

#define HEAD "{\"kind\": \"dmbench history\", \"schema_version\": 1, \"index\": \"x\", \"seed\": 1,\n"

static void malformed_files_are_refused_with_the_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *line, *message;
    } cases[] = {
        {"", ":1:", ""},
        {"[1]", ":1:1", "not an object"},
        {HEAD "\"initial\": [], \"operations\": [\n", ":3:", ""},
        {"{\"kind\": \"other\"}", "", "not a history"},
        {"{\"kind\": \"dmbench history\", \"schema_version\": 2}", "", "schema_version"},
        {HEAD "\"initial\": [], \"operations\": [], \"more\": 1}", "", "unknown member \"more\""},
        {HEAD "\"may_fail\": \"io\", \"initial\": [], \"operations\": []}", "", "\"may_fail\" must be"},
        {HEAD "\"may_fail\": [\"corrupt\"], \"initial\": [], \"operations\": []}", "", "\"may_fail\" must be"},
        {HEAD "\"initial\": [[1, 5],\n[1, 6]], \"operations\": []}", ":3: pair 1", "ascending"},
        {HEAD "\"initial\": [[1, 0]], \"operations\": []}", ":2: pair 0", "from 1 up"},
        {HEAD
         "\"initial\": [], \"operations\": [\n"
         "{\"client\": 0, \"op\": \"get\", \"key\": 1, \"invoke\": 1, \"response\": 2, \"outcome\": \"not_found\"},\n"
         "{\"client\": 0, \"op\": \"get\", \"key\": 1, \"invoke\": 9, \"response\": 8, \"outcome\": \"not_found\"}]}",
         ":4: operation 1", "its response is before its invocation"},
        {HEAD
         "\"initial\": [[1, 5], [2, 6]], \"operations\": [\n"
         "{\"client\": 0, \"op\": \"delete\", \"key\": 1, \"invoke\": 1, \"response\": 9, \"outcome\": \"ok\"},\n\n"
         "{\"client\": 0, \"op\": \"delete\", \"key\": 1, \"invoke\": 5, \"response\": 12, \"outcome\": \"ok\"}]}",
         ":5: operation 1", "begins before the previous operation"},
        {HEAD "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"read\", \"key\": 1, \"invoke\": 1}]}",
         ":2: operation 0", "\"op\" must be"},
        {HEAD "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"get\", \"key\": -1, \"invoke\": 1}]}",
         ":2: operation 0", "\"key\""},
        {HEAD
         "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"get\", \"key\": 1, \"invoke\": 1, \"x\": 1}]}",
         ":2: operation 0", "unknown member \"x\""},
        {HEAD
         "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"get\", \"key\": 1, \"invoke\": 1, \"response\": "
         "2}]}",
         ":2: operation 0", "both be present"},
        {HEAD "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"update\", \"key\": 1, \"invoke\": 1}]}",
         ":2: operation 0", "needs a \"value\""},
        {HEAD "\"initial\": [[1, 5]], \"operations\": [\n{\"client\": 0, \"op\": \"update\", \"key\": 1, \"value\": 5, "
              "\"invoke\": 1}]}",
         ":3: operation 0", "same value as another write"},
        {HEAD "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"scan\", \"key\": 1, \"invoke\": 1}]}",
         ":2: operation 0", "needs a \"count\""},
        {HEAD
         "\"initial\": [], \"operations\": [{\"client\": 0, \"op\": \"scan\", \"key\": 1, \"count\": 2, \"invoke\": 1, "
         "\"response\": 2, \"outcome\": \"ok\", \"pairs\": [[1]]}]}",
         ":2: operation 0", "\"pairs\""},
        {HEAD "\"initial\": [], \"operations\": [7]}", "", "is not an object"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ck_history history;
        struct dm_err err = {0};
        file_put(cases[i].text);
        assert_true(ck_history_load(path, &history, &err) < 0);
        ck_history_fini(&history);
        if (!strstr(err.text, cases[i].line) || !strstr(err.text, cases[i].message)) {
            fail_msg("case %zu: '%s' should contain '%s' and '%s'", i, err.text, cases[i].line, cases[i].message);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_identified_by_their_bytes_and_damage_is_detected),
        cmocka_unit_test(a_mixture_of_two_values_is_neither),
        cmocka_unit_test(a_history_is_read_back_as_written),
        cmocka_unit_test(malformed_files_are_refused_with_the_line),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
