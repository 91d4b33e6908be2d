/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds as files: what is read is what was written, for worlds of every index, and damaged files are refused by
 * member.
 */
#include "check/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct ck_world world, read_back;
static char path[] = "/tmp/dmbench_world.XXXXXX";

static void draw(const char *index, uint64_t seed) {
    const struct ck_request request = {.index = ix_find(index), .transport = "sim"};
    assert_int_equal(ck_world_draw(&request, seed, &world, NULL), 0);
}

static void a_world_that_was_read_is_the_world_that_was_written(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        for (uint64_t seed = 1; seed <= 30 && !((*ops)->caps & IX_CAP_NO_DATA); seed++) {
            char text[2][3000];
            struct dm_err err = {0};
            draw((*ops)->name, seed);
            assert_int_equal(ck_world_store(&world, "a test", path, &err), 0);
            if (ck_world_load(path, &read_back, &err) < 0) {
                fail_msg("%s, seed %llu: %s", (*ops)->name, (unsigned long long)seed, err.text);
            }
            assert_string_equal(ck_world_text(&world, text[0], sizeof(text[0])),
                                ck_world_text(&read_back, text[1], sizeof(text[1])));
            assert_true(read_back.seed == seed && read_back.step_count == world.step_count);
            assert_memory_equal(read_back.steps, world.steps, sizeof(world.steps));
            assert_memory_equal(read_back.keys, world.keys, sizeof(world.keys));
            assert_memory_equal(read_back.loaded, world.loaded, sizeof(world.loaded));
            ck_world_fini(&world);
            ck_world_fini(&read_back);
        }
    }
}

static void a_run_of_a_world_that_was_read_has_the_same_history(void **state) {
    (void)state;
    struct ck_part part;
    struct ck_result first, second;
    draw("sherman", 3);
    assert_int_equal(ck_world_store(&world, "a test", path, NULL), 0);
    assert_int_equal(ck_world_load(path, &read_back, NULL), 0);
    ck_part_all(&world, &part);
    assert_int_equal(ck_run(&world, &part, &first, NULL), 0);
    ck_part_all(&read_back, &part);
    assert_int_equal(ck_run(&read_back, &part, &second, NULL), 0);
    assert_int_equal(first.history.op_count, second.history.op_count);
    for (size_t i = 0; i < first.history.op_count; i++) {
        assert_true(first.history.ops[i].response_ns == second.history.ops[i].response_ns);
        assert_int_equal(first.history.ops[i].outcome, second.history.ops[i].outcome);
    }
    ck_result_fini(&first);
    ck_result_fini(&second);
    ck_world_fini(&world);
    ck_world_fini(&read_back);
}

/* Replaces the first occurrence of a text in the file. */
static void damage(const char *old, const char *new) {
    static char text[1 << 20], changed[1 << 20];
    FILE *file = fopen(path, "r");
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    char *at = strstr(text, old);
    assert_non_null(at);
    *at = '\0';
    snprintf(changed, sizeof(changed), "%s%s%s", text, new, at + strlen(old));
    file = fopen(path, "w");
    fputs(changed, file);
    fclose(file);
}

static void a_damaged_file_is_refused_and_the_member_is_named(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *says;
    } cases[] = {
        {"\"dmbench world\"", "\"dmbench history\"", "must be a world"},
        {"\"index\": \"sherman\"", "\"index\": \"none\"", "must be a world"},
        {"\"index\": \"sherman\"", "\"index\": \"null\"", "must be a world"},
        {"\"transport\": \"sim\"", "\"transport\": \"local\"", "must be a world"},
        {"\"why\"", "\"reason\"", "why"},
        {"\"clients\": ", "\"clients\": 1", "numbers.clients"},
        {"\"mns\": ", "\"mns\": 9", "numbers.mns"},
        {"\"mns\": ", "\"other\": ", "numbers.mns"},
        {"\"node_bytes\"", "\"node_byte\"", "node_byte"},
        {"\"keys\": [\n  [", "\"keys\": [\n  [\"x\",", "key 0"},
        {"\"steps\": [", "\"steps\": [[0,\"rmw\",0,0,0],", "step 0"},
        {"\"steps\": [", "\"steps\": [[99,\"get\",0,0,0],", "step 0"},
        {"\"faults\": [", "\"faults\": [[\"bad\",0,0,0,0,0]", "fault"},
        {"\"settings\": {", "\"settings\": {\"x\": 1, ", "setting 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dm_err err = {0};
        draw("sherman", 1);
        world.topology.clients = world.topology.clients < 10 ? 10 : world.topology.clients;
        world.fault_count = 0;
        assert_int_equal(ck_world_store(&world, "a test", path, NULL), 0);
        damage(cases[i].old, cases[i].new);
        assert_true(ck_world_load(path, &read_back, &err) < 0);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s -> %s: %s", cases[i].old, cases[i].new, err.text);
        }
        ck_world_fini(&world);
        ck_world_fini(&read_back);
    }
}

/* An aimed fault is at a verb of a step. */
static void an_aimed_fault_without_steps_is_refused(void **state) {
    (void)state;
    struct dm_err err = {0};
    draw("sherman", 1);
    world.step_count = 0;
    world.fault_count = 1;
    world.faults[0] = (struct ck_world_fault){.kind = CK_CLIENT_STOPS, .after = 1, .is_aimed = true, .step = 1000};
    assert_int_equal(ck_world_store(&world, "a test", path, NULL), 0);
    assert_true(ck_world_load(path, &read_back, &err) < 0);
    assert_non_null(strstr(err.text, "fault 0"));
    ck_world_fini(&world);
    ck_world_fini(&read_back);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_world_that_was_read_is_the_world_that_was_written),
        cmocka_unit_test(a_run_of_a_world_that_was_read_has_the_same_history),
        cmocka_unit_test(a_damaged_file_is_refused_and_the_member_is_named),
        cmocka_unit_test(an_aimed_fault_without_steps_is_refused),
    };
    int file = mkstemp(path);
    if (file < 0) {
        return 1;
    }
    close(file);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
