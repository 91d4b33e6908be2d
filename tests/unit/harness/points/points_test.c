/* SPDX-License-Identifier: Apache-2.0
 *
 * Many points: each is run once, as a process; a failure is reported and does not stop the others; an interrupt keeps
 * finished results and leaves no partial file. Small scripts replace the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/points/points.h"

/* Scripts are called as: run SPEC --out FILE. Where they must know which point they run, they read it from the spec. */
#define WRITE_HASHED(hash)                                                                                             \
    "printf '{\"schema_version\": 2, \"throughput_ops_per_s\": 1, \"config_hash\": \"%s\"}' " hash " > \"$4\""
#define WRITE_RESULT WRITE_HASHED("\"$(basename \"$4\" .json)\"")
static const char write_result[] = "#!/bin/sh\necho x >> \"$(dirname \"$4\")/../calls\"\n" WRITE_RESULT "\n";
static const char fail_for_seed_2[] = "#!/bin/sh\nif grep -q '\"seed\": 2' \"$2\"; then\n"
                                      "echo 'dmbench run: the node is full' >&2; exit 1; fi\n" WRITE_RESULT "\n";
static const char write_nonsense[] = "#!/bin/sh\nprintf '{\"schema_version\": 2' > \"$4\"\n";
static const char write_other_schema[] = "#!/bin/sh\necho '{\"schema_version\": 999}' > \"$4\"\n";
static const char write_other_point[] = "#!/bin/sh\n" WRITE_HASHED("0123456789abcdef") "\n";
static const char write_text[] = "#!/bin/sh\necho '{\"schema_version\": 2, \"throughput_ops_per_s\": \"fast\", "
                                 "\"config_hash\": \"'\"$(basename \"$4\" .json)\"'\"}' > \"$4\"\n";
/* The first point ends; another one interrupts its parent and ignores signals. */
static const char interrupt_parent[] =
    "#!/bin/sh\nif grep -q '\"seed\": 1' \"$2\"; then\n" WRITE_RESULT "; exit 0; fi\n"
    "trap '' INT TERM\necho half > \"$4.tmp.$$\"\nkill -INT \"$PPID\"\n"
    "while :; do :; done\n";

/* Fails if a point in real time runs beside any other. */
static const char fail_beside[] = "#!/bin/sh\nrunning=$(dirname \"$4\")/../running\nmkdir -p \"$running\"\n"
                                  "echo >\"$running/$$\"\ni=0\n"
                                  "while [ $i -lt 2000 ]; do i=$((i + 1)); done\n"
                                  "if grep -q '\"local\"' \"$2\" && [ \"$(ls \"$running\" | wc -l)\" -ne 1 ]; then\n"
                                  "echo 'dmbench run: not alone' >&2; exit 1; fi\n"
                                  "rm \"$running/$$\"\n" WRITE_RESULT "\n";

struct world {
    char folder[64];
    char script[96];
    struct hx_points *points;
};

static void world_script(struct world *world, const char *script) {
    FILE *file = fopen(world->script, "w");
    assert_non_null(file);
    fputs(script, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(world->script, 0755), 0);
}

static void world_open(struct world *world, const char *script) {
    strcpy(world->folder, "/tmp/points_test.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->script, sizeof(world->script), "%s/script", world->folder);
    world_script(world, script);
    world->points = hx_points_new(world->folder);
    assert_non_null(world->points);
}

static size_t add(struct world *world, unsigned seed) {
    struct dm_err err = {.text = ""};
    size_t index = 0;
    json_t *spec = json_pack("{s:s, s:s, s:s, s:i}", "index", "null", "keys", "1K", "ops", "1K", "seed", (int)seed);
    if (hx_points_add(world->points, spec, "test", "a point", &index, &err) < 0) {
        fail_msg("%s", err.text);
    }
    json_decref(spec);
    return index;
}

static void add_with_transport(struct world *world, const char *transport, int seed) {
    struct dm_err err = {.text = ""};
    size_t index = 0;
    json_t *spec = json_pack("{s:s, s:s, s:s, s:s, s:i}", "index", "null", "keys", "1K", "ops", "1K", "transport",
                             transport, "seed", seed);
    assert_int_equal(hx_points_add(world->points, spec, transport, transport, &index, &err), 0);
    json_decref(spec);
}

static int run(struct world *world, unsigned jobs, bool force) {
    struct hx_points_options options = {.jobs = jobs, .force = force, .program = world->script};
    return hx_points_run(world->points, &options);
}

static size_t lines_of(const struct world *world, const char *name) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", world->folder, name);
    FILE *file = fopen(path, "r");
    size_t lines = 0;
    for (int c = file != NULL ? fgetc(file) : EOF; c != EOF; c = fgetc(file)) {
        lines += c == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

/* The number of files in points/, or of those whose name contains `part`. */
static size_t files(const struct world *world, const char *part) {
    char path[128];
    size_t count = 0;
    snprintf(path, sizeof(path), "%s/points", world->folder);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    }
    closedir(folder);
    return count;
}

static void world_close(struct world *world) {
    char command[160];
    hx_points_free(world->points);
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
}

static void the_same_configuration_is_one_point(void **state) {
    (void)state;
    struct world world;
    struct dm_err err = {.text = ""};
    world_open(&world, write_result);
    size_t first = add(&world, 1), second = add(&world, 2), index = 9;
    json_t *spec = json_pack("{s:i, s:i, s:s, s:i}", "ops", 1000, "keys", 1000, "index", "null", "seed", 1);
    assert_int_equal(hx_points_add(world.points, spec, "test", "again", &index, &err), 0);
    assert_int_equal(index, first);
    assert_int_not_equal(first, second);
    assert_int_equal(world.points->count, 2);
    json_decref(spec);
    world_close(&world);
}

/* A training with its defaults spelled out is the same training; its result is stored apart from those of runs. */
static void a_training_is_a_point_of_its_own(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("out");
    struct dm_err err = {.text = ""};
    size_t first, second, other;
    json_t *short_spec = json_pack("{s:s, s:s}", "source", "train", "keys", "5K");
    json_t *long_spec = json_pack("{s:s, s:i, s:i}", "source", "train", "keys", 5000, "epsilon", 16);
    json_t *bad_spec = json_pack("{s:s, s:s}", "source", "train", "kyes", "5K");
    assert_int_equal(hx_points_add(points, short_spec, "a", "a", &first, &err), 0);
    assert_int_equal(hx_points_add(points, long_spec, "b", "b", &second, &err), 0);
    assert_int_equal(first, second);
    assert_true(hx_point_trains(&points->items[first]));
    char *file = hx_points_file(points, first);
    assert_memory_equal(file, "out/training/", strlen("out/training/"));
    free(file);
    assert_int_equal(hx_points_add(points, bad_spec, "here", "c", &other, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "here"));
    json_decref(short_spec);
    json_decref(long_spec);
    json_decref(bad_spec);
    hx_points_free(points);
}

static void a_bad_spec_is_refused_with_its_path(void **state) {
    (void)state;
    struct world world;
    struct dm_err err = {.text = ""};
    size_t index;
    world_open(&world, write_result);
    json_t *spec = json_pack("{s:s, s:i}", "index", "null", "clents", 5);
    assert_true(hx_points_add(world.points, spec, "here.json", "label", &index, &err) < 0);
    assert_non_null(strstr(err.text, "here.json"));
    assert_non_null(strstr(err.text, "clents"));
    assert_int_equal(world.points->count, 0);
    json_decref(spec);
    world_close(&world);
}

static void a_point_with_a_result_is_not_run_again(void **state) {
    (void)state;
    struct world world;
    world_open(&world, write_result);
    add(&world, 1);
    add(&world, 2);
    assert_int_equal(run(&world, 2, false), 0);
    assert_int_equal(lines_of(&world, "calls"), 2);
    add(&world, 3);
    assert_int_equal(run(&world, 1, false), 0);
    assert_int_equal(lines_of(&world, "calls"), 3);
    assert_int_equal(run(&world, 1, true), 0);
    assert_int_equal(lines_of(&world, "calls"), 6);
    assert_int_equal(files(&world, ".json"), 3);
    world_close(&world);
}

static void a_failing_point_reports_why_and_the_others_run(void **state) {
    (void)state;
    struct world world;
    world_open(&world, fail_for_seed_2);
    add(&world, 1);
    size_t failing = add(&world, 2);
    add(&world, 3);
    assert_int_equal(run(&world, 1, false), 1);
    assert_int_equal(world.points->items[failing].state, HX_POINT_FAILED);
    assert_string_equal(world.points->items[failing].error, "the node is full");
    assert_int_equal(files(&world, ".json"), 2);
    assert_int_equal(hx_points_scan(world.points), 1);
    world_close(&world);
}

static void a_truncated_or_damaged_result_or_one_of_another_schema_or_point_counts_as_missing(void **state) {
    (void)state;
    const char *const scripts[] = {write_nonsense, write_other_schema, write_other_point, write_text};
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct world world;
        world_open(&world, scripts[i]);
        size_t index = add(&world, 1);
        assert_int_equal(run(&world, 1, false), 1);
        assert_int_equal(world.points->items[index].state, HX_POINT_FAILED);
        assert_true(strlen(world.points->items[index].error) > 0);
        assert_int_equal(hx_points_scan(world.points), 1);
        world_close(&world);
    }
}

static void a_program_that_cannot_be_started_is_a_failed_point(void **state) {
    (void)state;
    struct world world;
    world_open(&world, write_result);
    size_t index = add(&world, 1);
    snprintf(world.script, sizeof(world.script), "%s/nothing", world.folder);
    assert_int_equal(run(&world, 1, false), 1);
    assert_non_null(strstr(world.points->items[index].error, "cannot start"));
    world_close(&world);
}

static void an_interrupt_keeps_finished_points_and_leaves_no_partial_file(void **state) {
    (void)state;
    struct world world;
    world_open(&world, interrupt_parent);
    size_t first = add(&world, 1), second = add(&world, 2);
    add(&world, 3);
    assert_int_equal(run(&world, 1, false), 130);
    assert_int_equal(world.points->items[first].state, HX_POINT_THERE);
    assert_int_equal(world.points->items[second].state, HX_POINT_ABSENT);
    assert_int_equal(files(&world, ""), 1);
    assert_int_equal(hx_points_scan(world.points), 2);
    world_close(&world);
}

static void a_folder_that_cannot_be_made_is_reported_before_anything_runs(void **state) {
    (void)state;
    struct world world;
    struct dm_err err = {.text = ""};
    world_open(&world, write_result);
    char path[128];
    snprintf(path, sizeof(path), "%s/script/below", world.folder);
    assert_int_equal(hx_make_folder(path, &err), DM_ERR_IO);
    assert_non_null(strstr(err.text, "script"));
    snprintf(path, sizeof(path), "%s/new/and/deep", world.folder);
    assert_int_equal(hx_make_folder(path, &err), 0);
    assert_int_equal(hx_make_folder(path, &err), 0);
    world_close(&world);
}

/* The old result stays in its file, but no table or picture may show it. */
static void a_stale_point_that_fails_has_no_result(void **state) {
    (void)state;
    struct world world;
    struct dm_err err = {.text = ""};
    world_open(&world, write_result);
    add(&world, 1);
    size_t second = add(&world, 2);
    assert_int_equal(run(&world, 2, false), 0);
    world_script(&world, fail_for_seed_2);
    struct hx_points_options options = {.jobs = 1, .stale = HX_STALE_KEEP, .program = world.script};
    assert_int_equal(hx_points_run(world.points, &options), 0); /* nothing to run */
    assert_int_equal(world.points->stale_count, 2);
    options.stale = HX_STALE_RUN;
    assert_int_not_equal(hx_points_run(world.points, &options), 0);
    assert_int_equal(world.points->items[second].state, HX_POINT_FAILED);
    assert_null(hx_points_load(world.points, second, &err));
    assert_non_null(strstr(err.text, "is stale"));
    assert_int_equal(files(&world, ".json"), 2);
    /* What says nothing of where it comes from cannot be adopted. */
    options.stale = HX_STALE_ADOPT;
    assert_int_equal(hx_points_run(world.points, &options), 0);
    world.points->stale = HX_STALE_RUN;
    assert_int_equal(hx_points_scan(world.points), 2);
    world_close(&world);
}

static void nothing_runs_beside_a_point_in_real_time(void **state) {
    (void)state;
    struct world world;
    world_open(&world, fail_beside);
    for (int seed = 1; seed <= 4; seed++) {
        add_with_transport(&world, "local", seed);
        add_with_transport(&world, "sim", seed);
    }
    assert_int_equal(run(&world, 4, false), 0);
    assert_int_equal(files(&world, ".json"), 8);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_configuration_is_one_point),
        cmocka_unit_test(a_training_is_a_point_of_its_own),
        cmocka_unit_test(a_bad_spec_is_refused_with_its_path),
        cmocka_unit_test(a_point_with_a_result_is_not_run_again),
        cmocka_unit_test(a_stale_point_that_fails_has_no_result),
        cmocka_unit_test(a_failing_point_reports_why_and_the_others_run),
        cmocka_unit_test(a_truncated_or_damaged_result_or_one_of_another_schema_or_point_counts_as_missing),
        cmocka_unit_test(nothing_runs_beside_a_point_in_real_time),
        cmocka_unit_test(a_program_that_cannot_be_started_is_a_failed_point),
        cmocka_unit_test(an_interrupt_keeps_finished_points_and_leaves_no_partial_file),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_reported_before_anything_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
