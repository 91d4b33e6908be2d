/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache traces: a sample made for these tests, plain and compressed; its operations, keys and summary; and the errors
 * for malformed lines and files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zstd.h>

#include "common/log.h"
#include "unit/workloads/files.h"
#include "workloads/trace.h"

#define SAMPLE DM_TEST_DATA "/cache-trace.csv"
enum { SAMPLE_REQUESTS = 16, SAMPLE_KEYS = 7 };

static const enum wl_op_kind sample_kinds[SAMPLE_REQUESTS] = {
    WL_GET,    WL_INSERT, WL_GET,    WL_GET,    WL_INSERT, WL_UPDATE, WL_DELETE, WL_GET,
    WL_INSERT, WL_UPDATE, WL_UPDATE, WL_UPDATE, WL_UPDATE, WL_UPDATE, WL_GET,    WL_GET,
};
/* Requests for the same key share a number. */
static const int sample_keys[SAMPLE_REQUESTS] = {1, 2, 1, 4, 3, 2, 1, 1, 1, 5, 3, 6, 6, 5, 2, 9};
/* The keys loaded: those whose first request is neither set nor add. */
static const int sample_loaded[10] = {[1] = 1, [4] = 1, [5] = 1, [6] = 1, [9] = 1};

static struct wl *trace_open(const char *path, uint64_t operations, bool lenient) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    if (wl_open(&(struct wl_config){.trace = path, .lenient = lenient}, operations, 1, 1, &wl, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return wl;
}

static bool is_loaded(const uint64_t *keys, uint64_t count, uint64_t key) {
    for (uint64_t i = 0; i < count; i++) {
        if (keys[i] == key) {
            return true;
        }
    }
    return false;
}

/* Checks the requests that the file yields against those of the sample. */
static void sample_check(const char *path) {
    struct wl *wl = trace_open(path, 0, false);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    uint64_t count = 0, key_of[10] = {0};
    const uint64_t *keys = wl_keys(wl, &count);
    assert_int_equal(count, 5);
    assert_int_equal(wl_effective(wl)->keys, 5);
    for (uint64_t i = 1; i < count; i++) {
        assert_true(keys[i - 1] < keys[i]);
    }
    struct wl_op op;
    for (int i = 0; i < SAMPLE_REQUESTS; i++) {
        assert_int_equal(wl_next(stream, &op), 0);
        assert_int_equal(op.kind, sample_kinds[i]);
        uint64_t *key = &key_of[sample_keys[i]];
        assert_true(*key == 0 || *key == op.key);
        *key = op.key;
        assert_int_equal(is_loaded(keys, count, op.key), sample_loaded[sample_keys[i]]);
        wl_done(stream, &op, 0);
    }
    assert_int_equal(wl_next(stream, &op), DM_NOT_FOUND);
    assert_int_equal(wl_next(stream, &op), DM_NOT_FOUND);
    wl_stream_close(stream);
    wl_close(wl);
}

static void the_sample_gives_its_requests_in_order(void **state) {
    (void)state;
    sample_check(SAMPLE);
}

/* Reads a file into memory; the caller frees. */
static char *file_read(const char *path, size_t *bytes) {
    char *text = malloc(1 << 16);
    FILE *file = fopen(path, "rb");
    assert_true(text != NULL && file != NULL);
    *bytes = fread(text, 1, 1 << 16, file);
    fclose(file);
    return text;
}

static void a_compressed_trace_gives_the_same_whatever_its_name(void **state) {
    (void)state;
    size_t bytes = 0;
    char *text = file_read(SAMPLE, &bytes), packed[1 << 15];
    /* two frames, as parallel compressors write them */
    size_t first = ZSTD_compress(packed, sizeof packed, text, bytes / 2, 3);
    assert_false(ZSTD_isError(first));
    size_t second = ZSTD_compress(packed + first, sizeof packed - first, text + bytes / 2, bytes - bytes / 2, 3);
    assert_false(ZSTD_isError(second));
    sample_check(file_write("sample.zst", packed, first + second));
    sample_check(file_write("sample.csv", packed, first + second));
    free(text);
}

static void a_trace_may_end_without_a_newline_and_have_carriage_returns(void **state) {
    (void)state;
    struct wl *wl = trace_open(file_write_text("crlf", "1,a,1,1,1,get,0\r\n2,b,1,1,1,set,9"), 0, false);
    uint64_t count = 0;
    wl_keys(wl, &count);
    assert_int_equal(count, 1);
    wl_close(wl);
}

static void the_summary_counts_requests_keys_and_sizes(void **state) {
    (void)state;
    struct wl_trace_summary summary;
    assert_int_equal(wl_trace_summarize(SAMPLE, false, 0, &summary, NULL), 0);
    assert_int_equal(summary.requests, SAMPLE_REQUESTS);
    assert_int_equal(summary.keys, SAMPLE_KEYS);
    assert_int_equal(summary.keys_loaded, 5);
    assert_int_equal(summary.keys_once, 2);
    assert_int_equal(summary.by_trace_op[WL_TRACE_GET], 5);
    assert_int_equal(summary.by_trace_op[WL_TRACE_SET], 2);
    assert_int_equal(summary.by_kind[WL_UPDATE], 6);
    assert_int_equal(summary.by_kind[WL_INSERT], 3);
    assert_int_equal(summary.values, 12);
    assert_int_equal(summary.key_bytes, 14 * 10 + 19 + 7 * 2 + 3 * 2 + 11);
    assert_int_equal(summary.first_s, 0);
    assert_int_equal(summary.last_s, 9);
    assert_int_equal(summary.malformed, 0);
}

static void a_run_shorter_than_the_trace_reads_only_its_part(void **state) {
    (void)state;
    struct wl *wl = trace_open(SAMPLE, 3, false);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    uint64_t count = 0;
    double share[WL_OP_KIND_COUNT];
    struct wl_op op;
    wl_keys(wl, &count);
    wl_mix(wl, share);
    assert_int_equal(count, 1);
    assert_true(share[WL_GET] == 2.0 / 3 && share[WL_INSERT] == 1.0 / 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wl_next(stream, &op), 0);
    }
    assert_int_equal(wl_next(stream, &op), DM_NOT_FOUND);
    wl_stream_close(stream);
    wl_close(wl);
}

static void clients_share_the_requests_of_the_trace(void **state) {
    (void)state;
    struct wl *wl = trace_open(SAMPLE, 0, false);
    struct wl_stream *streams[2] = {wl_stream_open(wl, 0), wl_stream_open(wl, 1)};
    struct wl_op op;
    for (int i = 0; i < SAMPLE_REQUESTS; i++) {
        assert_int_equal(wl_next(streams[i % 3 == 0], &op), 0);
        assert_int_equal(op.kind, sample_kinds[i]);
    }
    assert_int_equal(wl_next(streams[0], &op), DM_NOT_FOUND);
    wl_stream_close(streams[0]);
    wl_stream_close(streams[1]);
    wl_close(wl);
}

static void refused(const char *path, int code, const char *part) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    assert_int_equal(wl_open(&(struct wl_config){.trace = path}, 0, 1, 1, &wl, &err), code);
    assert_null(wl);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s' should contain '%s'", err.text, part);
    }
}

static void a_malformed_line_is_named_by_its_number(void **state) {
    (void)state;
    static const struct {
        const char *line, *part;
    } lines[] = {
        {"", "no commas"},
        {"hello", "no commas"},
        {"1,a,1,1,1,get", "fewer than 7 fields"},
        {"x,a,1,1,1,get,0", "a timestamp that is not a number"},
        {"1,,1,1,1,get,0", "no key"},
        {"1,a,-1,1,1,get,0", "a size that is not a number"},
        {"1,a,1,1.5,1,get,0", "a size that is not a number"},
        {"1,a,1,1,me,get,0", "a client or a TTL"},
        {"1,a,1,1,1,get,", "a client or a TTL"},
        {"1,a,1,1,1,touch,0", "an unknown operation"},
        {"1,a,99999999999999999999,1,1,get,0", "a size that is not a number"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[200], part[200];
        snprintf(text, sizeof text, "1,a,1,1,1,get,0\n%s\n1,b,1,1,1,get,0\n", lines[i].line);
        snprintf(part, sizeof part, "bad.csv:2: the line has %s", lines[i].part);
        refused(file_write_text("bad.csv", text), DM_ERR_CORRUPT, part);
    }
    refused(file_write_text("bad.csv", "1,a,1,1,1,get,0\n1,\x01\x02,1,1,get,0\n"), DM_ERR_CORRUPT, "bad.csv:2: ");
}

static void lenient_skips_and_counts_malformed_lines(void **state) {
    (void)state;
    struct wl_trace_summary summary;
    const char *path = file_write_text("bad.csv", "junk\n1,a,1,1,1,get,0\n\n2,b,1,1,1,set,0\nmore junk\n");
    assert_int_equal(wl_trace_summarize(path, true, 0, &summary, NULL), 0);
    assert_int_equal(summary.requests, 2);
    assert_int_equal(summary.malformed, 3);
    assert_int_equal(summary.malformed_first_line, 1);
    struct wl *wl = trace_open(path, 0, true);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    struct wl_op op;
    assert_int_equal(wl_next(stream, &op), 0);
    assert_int_equal(wl_next(stream, &op), 0);
    assert_int_equal(op.kind, WL_INSERT);
    assert_int_equal(wl_next(stream, &op), DM_NOT_FOUND);
    wl_stream_close(stream);
    wl_close(wl);
}

static void files_that_are_no_traces_are_refused(void **state) {
    (void)state;
    refused("/nowhere/trace", DM_ERR_IO, "/nowhere/trace: cannot be opened");
    refused(file_write_text("empty", ""), DM_ERR_CORRUPT, "holds no requests");
    refused(files_directory, DM_ERR_IO, "cannot be read");
    char *long_line = malloc(100000);
    assert_non_null(long_line);
    memset(long_line, 'x', 100000);
    refused(file_write("long", long_line, 100000), DM_ERR_CORRUPT, "long:1: the line is longer");
    free(long_line);
}

static void damaged_compression_is_refused(void **state) {
    (void)state;
    size_t bytes = 0;
    char *text = file_read(SAMPLE, &bytes), packed[1 << 15];
    size_t size = ZSTD_compress(packed, sizeof packed, text, bytes, 3);
    assert_false(ZSTD_isError(size));
    refused(file_write("cut.zst", packed, size - 5), DM_ERR_CORRUPT, "ends early");
    packed[size / 2] = (char)(packed[size / 2] ^ 0x55);
    memset(packed + 6, 0xff, 8);
    refused(file_write("bad.zst", packed, size), DM_ERR_CORRUPT, "bad.zst");
    free(text);
}

static void a_trace_is_of_one_process(void **state) {
    (void)state;
    struct wl *wl = trace_open(SAMPLE, 0, false);
    struct dm_err err = {0};
    assert_int_equal(wl_partition(wl, 0, 1, &err), 0);
    assert_int_equal(wl_partition(wl, 1, 2, &err), DM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot be split"));
    wl_close(wl);
}

static void a_trace_longer_than_the_buffer_is_read_completely(void **state) {
    (void)state;
    enum { LINES = 100000 };
    const char *path = file_path("long.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < LINES; i++) {
        fprintf(file, "%d,key-%d,10,100,1,%s,0\n", i / 1000, i % 5000, i % 3 == 0 ? "set" : "get");
    }
    fclose(file);
    struct wl *wl = trace_open(path, 0, false);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    struct wl_op op;
    unsigned gets = 0;
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(wl_next(stream, &op), 0);
        gets += op.kind == WL_GET ? 1 : 0;
    }
    assert_int_equal(gets, LINES - (LINES + 2) / 3);
    assert_int_equal(wl_next(stream, &op), DM_NOT_FOUND);
    wl_stream_close(stream);
    wl_close(wl);
}

int main(void) {
    dm_log_set_level(DM_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_gives_its_requests_in_order),
        cmocka_unit_test(a_compressed_trace_gives_the_same_whatever_its_name),
        cmocka_unit_test(a_trace_may_end_without_a_newline_and_have_carriage_returns),
        cmocka_unit_test(the_summary_counts_requests_keys_and_sizes),
        cmocka_unit_test(a_run_shorter_than_the_trace_reads_only_its_part),
        cmocka_unit_test(clients_share_the_requests_of_the_trace),
        cmocka_unit_test(a_malformed_line_is_named_by_its_number),
        cmocka_unit_test(lenient_skips_and_counts_malformed_lines),
        cmocka_unit_test(files_that_are_no_traces_are_refused),
        cmocka_unit_test(damaged_compression_is_refused),
        cmocka_unit_test(a_trace_is_of_one_process),
        cmocka_unit_test(a_trace_longer_than_the_buffer_is_read_completely),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
