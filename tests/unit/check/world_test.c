/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds: the same seed gives the same world, worlds stay within their bounds, and values that are known to be wrong
 * are drawn only if requested. Parts of worlds as text.
 */
#include "check/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct ck_world world, other;

static void draw(const struct ck_request *request, uint64_t seed, struct ck_world *into) {
    struct dm_err err = {0};
    if (ck_world_draw(request, seed, into, &err) < 0) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    }
}

static void a_seed_always_gives_the_same_world_and_another_seed_another_world(void **state) {
    (void)state;
    const struct ck_request request = {.index = ix_find("sherman"), .transport = "sim"};
    unsigned different = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        char text[2][2000];
        draw(&request, seed, &world);
        draw(&request, seed, &other);
        assert_string_equal(ck_world_text(&world, text[0], sizeof(text[0])),
                            ck_world_text(&other, text[1], sizeof(text[1])));
        assert_memory_equal(world.steps, other.steps, sizeof(world.steps));
        assert_memory_equal(world.keys, other.keys, sizeof(world.keys));
        ck_world_fini(&other);
        draw(&request, seed + 1, &other);
        different += memcmp(world.steps, other.steps, sizeof(world.steps)) != 0;
        ck_world_fini(&world);
        ck_world_fini(&other);
    }
    assert_int_equal(different, 50);
}

static bool has_value(const struct ck_world *in, const char *param, const char *value) {
    char text[64];
    const struct dm_opt *row = dm_opt_find(in->index->params, param);
    dm_opt_format(row, in->params, text, sizeof(text));
    if (row->type == DM_OPT_BOOL) { /* tables of wrong values have "on" and "off" */
        value = strcmp(value, "on") == 0 ? "true" : "false";
    }
    return strcmp(text, value) == 0;
}

static void value_is_drawn_only_if_requested(const struct ix_ops *index, const struct ix_wrong *wrong) {
    struct ck_request request = {.index = index, .transport = "sim"};
    const struct dm_setting asked = {wrong->param, wrong->value};
    assert_non_null(dm_opt_find(index->params, wrong->param));
    for (uint64_t seed = 1; seed <= 200; seed++) {
        draw(&request, seed, &world);
        assert_false(has_value(&world, wrong->param, wrong->value));
        ck_world_fini(&world);
    }
    request.params = &asked;
    request.param_count = 1;
    draw(&request, 1, &world);
    assert_true(has_value(&world, wrong->param, wrong->value));
    ck_world_fini(&world);
}

static void values_known_to_be_wrong_are_drawn_only_if_requested(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        for (const struct ix_wrong *wrong = (*ops)->wrong; wrong && wrong->param; wrong++) {
            value_is_drawn_only_if_requested(*ops, wrong);
        }
    }
}

static void worlds_stay_within_their_bounds(void **state) {
    (void)state;
    const struct ck_request request = {.index = ix_find("sherman"), .transport = "sim"};
    unsigned many_cns = 0, stops = 0, scans = 0, chipless = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        draw(&request, seed, &world);
        assert_in_range(world.topology.clients, 2, CK_CLIENTS_MAX);
        assert_in_range(world.topology.cns, 1, world.topology.clients);
        assert_in_range(world.key_count, 4, CK_KEYS_MAX);
        assert_in_range(world.step_count, 50, CK_STEPS_MAX);
        for (unsigned key = 1; key < world.key_count; key++) {
            assert_true(world.keys[key] > world.keys[key - 1]);
        }
        for (size_t i = 0; i < world.step_count; i++) {
            assert_true(world.steps[i].key < world.key_count && world.steps[i].client < world.topology.clients);
            assert_true(i == 0 || world.steps[i].client >= world.steps[i - 1].client);
            scans += world.steps[i].kind == WL_SCAN;
        }
        many_cns += world.topology.cns > 1;
        stops += world.fault_count > 0;
        chipless += world.topology.chip_bytes == 0;
        ck_world_fini(&world);
    }
    assert_true(many_cns > 100 && stops > 30 && scans > 1000 && chipless > 30);
}

static void some_worlds_have_many_keys_other_profiles_and_no_masked_atomics(void **state) {
    (void)state;
    const struct ck_request request = {.index = ix_find("sherman"), .transport = "sim"};
    unsigned many = 0, other_profiles = 0, emulated = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        draw(&request, seed, &world);
        many += world.key_count >= 1000;
        other_profiles += strcmp(world.profile, "cx6-100g") != 0;
        emulated += world.emulates_masked;
        ck_world_fini(&world);
    }
    assert_in_range(many, 10, 60);
    assert_in_range(other_profiles, 400, 600);
    assert_in_range(emulated, 100, 200);
}

static void impossible_parameters_are_refused(void **state) {
    (void)state;
    struct dm_err err;
    struct dm_setting setting = {"nonsense", "1"};
    const struct ck_request request = {
        .index = ix_find("sherman"), .transport = "sim", .params = &setting, .param_count = 1};
    assert_int_equal(ck_world_draw(&request, 1, &world, &err), DM_ERR_INVALID);
    ck_world_fini(&world);
    setting = (struct dm_setting){"node_bytes", "100"};
    assert_int_equal(ck_world_draw(&request, 1, &world, &err), DM_ERR_INVALID);
    ck_world_fini(&world);
}

static void parts_are_read_back_from_their_text_and_nonsense_is_refused(void **state) {
    (void)state;
    struct ck_part part = {.schedule = 3, .idle_ns = 2500}, again;
    part.steps[0] = part.steps[3] = part.steps[4] = part.steps[5] = part.steps[CK_STEPS_MAX - 1] = true;
    part.loaded[7] = part.loaded[9] = true;
    part.faults[1] = true;
    char text[CK_PART_TEXT_BYTES];
    assert_string_equal(ck_part_text(&part, text, sizeof(text)),
                        "steps:0+3-5+639,loaded:7+9,faults:1,schedule:3,idle:2500");
    assert_int_equal(ck_part_parse(text, &again, NULL), 0);
    assert_memory_equal(&part, &again, sizeof(part));
    static const char *const nonsense[] = {"",          "steps",     "steps:",     "steps:1+",   "steps:5-3",
                                           "steps:640", "steps:1;2", "schedule:x", "loaded:1,,", "pages:3"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        struct dm_err err;
        assert_int_equal(ck_part_parse(nonsense[i], &again, &err), DM_ERR_INVALID);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_always_gives_the_same_world_and_another_seed_another_world),
        cmocka_unit_test(values_known_to_be_wrong_are_drawn_only_if_requested),
        cmocka_unit_test(worlds_stay_within_their_bounds),
        cmocka_unit_test(some_worlds_have_many_keys_other_profiles_and_no_masked_atomics),
        cmocka_unit_test(impossible_parameters_are_refused),
        cmocka_unit_test(parts_are_read_back_from_their_text_and_nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
