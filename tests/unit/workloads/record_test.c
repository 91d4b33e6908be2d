/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording a run and running it again: every client gets the same operations over the same keys, and any other file is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/log.h"
#include "unit/workloads/files.h"
#include "workloads/workload.h"

enum { CLIENTS = 3, OPERATIONS = 5000 };

static struct wl *open_well(const struct wl_config *config, unsigned clients, uint64_t seed) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    if (wl_open(config, OPERATIONS, clients, seed, &wl, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return wl;
}

/* Draws OPERATIONS operations; the clients take turns. */
static void draw(struct wl *wl, struct wl_op *ops) {
    struct wl_stream *streams[CLIENTS];
    for (unsigned client = 0; client < CLIENTS; client++) {
        streams[client] = wl_stream_open(wl, client);
    }
    for (int i = 0; i < OPERATIONS; i++) {
        assert_int_equal(wl_next(streams[i % CLIENTS], &ops[i]), 0);
        wl_done(streams[i % CLIENTS], &ops[i], 0);
    }
    for (unsigned client = 0; client < CLIENTS; client++) {
        wl_stream_close(streams[client]);
    }
}

static void ops_equal(const struct wl_op *a, const struct wl_op *b) {
    for (int i = 0; i < OPERATIONS; i++) {
        assert_true(a[i].kind == b[i].kind && a[i].key == b[i].key && a[i].scan_length == b[i].scan_length);
    }
}

/* Records a run of `config` into `path`. */
static void record(const struct wl_config *config, const char *path, struct wl_op *ops) {
    struct wl *wl = open_well(config, CLIENTS, 99);
    struct dm_err err = {0};
    assert_int_equal(wl_record(wl, path, &err), 0);
    assert_int_equal(wl_record(wl, path, &err), DM_ERR_INVALID);
    draw(wl, ops);
    if (wl_record_finish(wl, &err) != 0) {
        fail_msg("%s", err.text);
    }
    wl_close(wl);
}

static void a_replay_gives_every_client_the_recorded_operations(void **state) {
    (void)state;
    static const struct wl_config configs[] = {
        {.workload = "e", .keys = 2000},
        {.workload = "d", .keys = 2000, .key_set = "uniform"},
        {.mix = "read=0.2,update=0.2,insert=0.2,scan=0.1,rmw=0.2,delete=0.1", .scan_max = 60, .keys = 100},
    };
    static struct wl_op recorded[OPERATIONS], replayed[OPERATIONS];
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        const char *path = file_path("run");
        record(&configs[i], path, recorded);
        assert_int_equal(files_count(), 1);
        struct wl *original = open_well(&configs[i], CLIENTS, 99);
        /* the seed is another one; that of the file is used */
        struct wl *wl = open_well(&(struct wl_config){.replay = path}, CLIENTS, 1);
        uint64_t count = 0, original_count = 0;
        const uint64_t *keys = wl_keys(wl, &count), *original_keys = wl_keys(original, &original_count);
        assert_int_equal(count, original_count);
        assert_memory_equal(keys, original_keys, count * sizeof keys[0]);
        draw(wl, replayed);
        ops_equal(recorded, replayed);
        double share[WL_OP_KIND_COUNT], sum = 0.0;
        wl_mix(wl, share);
        for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
            sum += share[kind];
        }
        assert_true(sum > 0.999999 && sum < 1.000001);
        assert_int_equal(wl_scan_max(wl), i == 0 ? 100 : i == 1 ? 0 : 60);
        wl_close(wl);
        wl_close(original);
    }
}

static void a_replay_ends_where_the_recording_ended(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    record(&(struct wl_config){.workload = "a", .keys = 100}, file_path("run"), ops);
    struct wl *wl = open_well(&(struct wl_config){.replay = file_path("run")}, CLIENTS, 1);
    struct wl_stream *stream = wl_stream_open(wl, 2);
    struct wl_op op;
    for (int i = 2; i < OPERATIONS; i += CLIENTS) {
        assert_int_equal(wl_next(stream, &op), 0);
    }
    assert_int_equal(wl_next(stream, &op), DM_NOT_FOUND);
    wl_stream_close(stream);
    wl_close(wl);
}

static void fewer_clients_replay_all_operations(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    record(&(struct wl_config){.workload = "a", .keys = 100}, file_path("run"), ops);
    for (unsigned clients = 1; clients <= 5; clients++) {
        struct wl *wl = open_well(&(struct wl_config){.replay = file_path("run")}, clients, 1);
        uint64_t sum = 0, expected = 0, count = 0;
        for (unsigned client = 0; client < clients; client++) {
            struct wl_stream *stream = wl_stream_open(wl, client);
            struct wl_op op;
            while (wl_next(stream, &op) == 0) {
                sum += op.key;
                count++;
            }
            wl_stream_close(stream);
        }
        for (int i = 0; i < OPERATIONS; i++) {
            expected += ops[i].key;
        }
        assert_int_equal(count, OPERATIONS);
        assert_int_equal(sum, expected);
        wl_close(wl);
    }
}

static void the_effective_settings_of_a_replay_replay_again(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS], again[OPERATIONS];
    record(&(struct wl_config){.workload = "b", .keys = 100, .theta = 0.6}, file_path("run"), ops);
    struct wl *wl = open_well(&(struct wl_config){.replay = file_path("run")}, CLIENTS, 1);
    struct wl_config copy;
    dm_opt_copy(wl_options, &copy, wl_effective(wl));
    wl_close(wl);
    assert_true(copy.theta == 0.6 && copy.keys == 100);
    assert_string_equal(copy.workload, "b");
    wl = open_well(&copy, CLIENTS, 2);
    draw(wl, again);
    ops_equal(ops, again);
    wl_close(wl);
    dm_opt_free(wl_options, &copy);
}

static void a_recorded_trace_replays(void **state) {
    (void)state;
    const struct wl_config config = {.trace = DM_TEST_DATA "/cache-trace.csv"};
    struct wl *wl = open_well(&config, 1, 1);
    struct wl_op recorded[16], op;
    assert_int_equal(wl_record(wl, file_path("run"), NULL), 0);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(wl_next(stream, &recorded[i]), 0);
    }
    wl_stream_close(stream);
    assert_int_equal(wl_record_finish(wl, NULL), 0);
    wl_close(wl);
    wl = open_well(&(struct wl_config){.replay = file_path("run")}, 1, 1);
    uint64_t count = 0;
    assert_non_null(wl_keys(wl, &count));
    assert_int_equal(count, 5);
    stream = wl_stream_open(wl, 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(wl_next(stream, &op), 0);
        assert_true(op.kind == recorded[i].kind && op.key == recorded[i].key);
    }
    wl_stream_close(stream);
    wl_close(wl);
}

static void refused(const char *path, const char *part) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    assert_true(wl_open(&(struct wl_config){.replay = path}, 0, CLIENTS, 1, &wl, &err) < 0);
    assert_null(wl);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s' should contain '%s'", err.text, part);
    }
}

/* Writes the recording with one byte changed. */
static const char *damage(const unsigned char *bytes, size_t count, size_t at, unsigned char with) {
    unsigned char *copy = malloc(count);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    copy[at] = with;
    const char *path = file_write("damaged", copy, count);
    free(copy);
    return path;
}

static void an_incomplete_or_damaged_recording_is_refused(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    enum { SIZE_MAX_HERE = 1 << 18, HEADER = 104 };
    record(&(struct wl_config){.workload = "a", .keys = 100}, file_path("run"), ops);
    unsigned char *bytes = malloc(SIZE_MAX_HERE);
    FILE *file = fopen(file_path("run"), "rb");
    assert_true(bytes != NULL && file != NULL);
    size_t size = fread(bytes, 1, SIZE_MAX_HERE, file);
    fclose(file);
    assert_true(size > 1000 && size < SIZE_MAX_HERE);
    refused("/nowhere/run", "/nowhere/run cannot be opened");
    refused(file_write_text("text", "hello"), "not a file of recorded operations");
    refused(file_write("cut", bytes, size - 7), "damaged or truncated at byte");
    refused(file_write("cut", bytes, HEADER - 1), "too short");
    refused(file_write("cut", bytes, HEADER + 3), "damaged header");
    refused(damage(bytes, size, 0, 'x'), "another byte order");
    refused(damage(bytes, size, 92, 0), "was not completed");
    refused(damage(bytes, size, 24, 77), "its header states");
    refused(damage(bytes, size, HEADER, '?'), "damaged configuration");
    refused(damage(bytes, size, size - 1, 9), "is damaged");
    refused(damage(bytes, size, 7, 1), "is of version 1");
    for (size_t at = 8; at < 16; at++) { /* the seed may have any value */
        refused(damage(bytes, size, at, 0xa5), "was changed after it was recorded");
    }
    refused(damage(bytes, size, HEADER - 1, bytes[HEADER - 1] ^ 1), "was changed after it was recorded");
    /* whichever byte is changed, the file is refused */
    for (size_t at = 0; at < size; at += at < 400 ? 1 : 397) {
        refused(damage(bytes, size, at, bytes[at] ^ 0xff), "replay: ");
    }
    free(bytes);
}

static void a_recording_that_is_not_finished_is_removed(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    const char *path = file_path("unfinished");
    unsigned before = files_count();
    struct wl *wl = open_well(&(struct wl_config){.workload = "a", .keys = 100}, CLIENTS, 1);
    assert_int_equal(wl_record(wl, path, NULL), 0);
    draw(wl, ops);
    assert_int_equal(files_count(), before + 1);
    wl_close(wl);
    assert_int_equal(files_count(), before);
}

static void a_workload_reports_its_length(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    record(&(struct wl_config){.workload = "a", .keys = 100}, file_path("run"), ops);
    static const char trace[] = DM_TEST_DATA "/cache-trace.csv";
    const struct wl_config configs[] = {{.workload = "a", .keys = 10}, {.trace = trace}, {.replay = file_path("run")}};
    static const uint64_t lengths[] = {0, 16, OPERATIONS};
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct wl *wl = open_well(&configs[i], CLIENTS, 1);
        assert_int_equal(wl_length(wl), lengths[i]);
        assert_int_equal(wl_record_finish(wl, NULL), 0); /* nothing to finish */
        wl_close(wl);
    }
}

static void a_recording_is_of_one_process(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    struct dm_err err = {0};
    record(&(struct wl_config){.workload = "a", .keys = 100}, file_path("run"), ops);
    struct wl *wl = open_well(&(struct wl_config){.replay = file_path("run")}, CLIENTS, 1);
    assert_int_equal(wl_partition(wl, 0, 1, &err), 0);
    assert_int_equal(wl_partition(wl, 1, 2, &err), DM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot be split"));
    wl_close(wl);
}

static void a_recording_that_cannot_be_written_is_refused_at_once(void **state) {
    (void)state;
    struct wl *wl = open_well(&(struct wl_config){.workload = "a", .keys = 10}, 1, 1);
    struct dm_err err = {0};
    assert_int_equal(wl_record(wl, "/nowhere/run", &err), DM_ERR_IO);
    assert_non_null(strstr(err.text, "/nowhere/run"));
    wl_close(wl);
}

static void another_key_set_than_the_recorded_one_is_refused(void **state) {
    (void)state;
    static struct wl_op ops[OPERATIONS];
    struct wl *wl = NULL;
    struct dm_err err = {0};
    record(&(struct wl_config){.workload = "a", .keys = 100}, file_path("run"), ops);
    assert_int_equal(
        wl_open(&(struct wl_config){.replay = file_path("run"), .key_set = "dense"}, 0, CLIENTS, 1, &wl, &err),
        DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "leave key_set out"));
}

int main(void) {
    dm_log_set_level(DM_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_gives_every_client_the_recorded_operations),
        cmocka_unit_test(a_replay_ends_where_the_recording_ended),
        cmocka_unit_test(fewer_clients_replay_all_operations),
        cmocka_unit_test(the_effective_settings_of_a_replay_replay_again),
        cmocka_unit_test(a_recorded_trace_replays),
        cmocka_unit_test(an_incomplete_or_damaged_recording_is_refused),
        cmocka_unit_test(a_recording_that_is_not_finished_is_removed),
        cmocka_unit_test(a_workload_reports_its_length),
        cmocka_unit_test(a_recording_is_of_one_process),
        cmocka_unit_test(a_recording_that_cannot_be_written_is_refused_at_once),
        cmocka_unit_test(another_key_set_than_the_recorded_one_is_refused),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
