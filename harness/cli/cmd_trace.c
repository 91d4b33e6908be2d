/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench trace`: a summary of a cache trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/run/summary.h"
#include "workloads/trace.h"

struct trace_options {
    bool lenient, json;
    uint64_t requests;
    const char *file; /* a word of the command line, or NULL */
};

#define ROW(member, ...) DM_OPT_ROW(struct trace_options, member, __VA_ARGS__)

static const struct dm_opt trace_options[] = {
    ROW(lenient, DM_OPT_BOOL, .initial = "0",
        .help = "skip malformed lines and count them instead of failing at the first"),
    ROW(requests, DM_OPT_COUNT, .initial = "0", .help = "look at so many requests only; 0: the whole trace"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    DM_OPT_END,
};

static double share(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* Counts by name; those that are 0 are left out. */
static json_t *counts_object(const char *const *names, const uint64_t *counts, size_t count) {
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        if (counts[i] > 0) {
            json_object_set_new(object, names[i], json_integer((json_int_t)counts[i]));
        }
    }
    return object;
}

static json_t *summary_object(const char *file, const struct wl_trace_summary *summary) {
    json_t *malformed = json_null();
    if (summary->malformed > 0) {
        malformed = json_pack("{s:I, s:I}", "lines", (json_int_t)summary->malformed, "first_line",
                              (json_int_t)summary->malformed_first_line);
    }
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:I, s:I}", "file", file, "requests",
                     (json_int_t)summary->requests, "malformed", malformed, "trace_operations",
                     counts_object(wl_trace_op_names, summary->by_trace_op, WL_TRACE_OP_COUNT), "operations",
                     counts_object(wl_op_names, summary->by_kind, WL_OP_KIND_COUNT), "keys", (json_int_t)summary->keys,
                     "keys_loaded", (json_int_t)summary->keys_loaded, "keys_once", (json_int_t)summary->keys_once,
                     "key_bytes_mean", share(summary->key_bytes, summary->requests), "value_bytes_mean",
                     share(summary->value_bytes, summary->values), "first_s", (json_int_t)summary->first_s, "last_s",
                     (json_int_t)summary->last_s);
}

static int json_print(const char *file, const struct wl_trace_summary *summary, struct dm_err *err) {
    json_t *object = summary_object(file, summary);
    if (!object) {
        return dm_fail(err, DM_ERR_INVALID, "the file's name is not UTF-8");
    }
    json_dumpf(object, stdout, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(object);
    return 0;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void counts_print(const char *title, const char *const *names, const uint64_t *counts, size_t count,
                         uint64_t requests) {
    const char *separator = "";
    printf("  %-10s ", title);
    for (size_t i = 0; i < count; i++) {
        if (counts[i] > 0) {
            printf("%s%s %" PRIu64 " (%.3g %%)", separator, names[i], counts[i], 100 * share(counts[i], requests));
            separator = ", ";
        }
    }
    printf("\n");
}

static void text_print(const char *file, const struct wl_trace_summary *summary) {
    char key[32], value[32];
    printf("%s: %" PRIu64 " requests in %" PRIu64 " s\n", file, summary->requests,
           summary->last_s > summary->first_s ? summary->last_s - summary->first_s : 0);
    counts_print("trace", wl_trace_op_names, summary->by_trace_op, WL_TRACE_OP_COUNT, summary->requests);
    counts_print("here", wl_op_names, summary->by_kind, WL_OP_KIND_COUNT, summary->requests);
    printf("  keys       %" PRIu64 " distinct: %" PRIu64 " there from the start, %" PRIu64 " asked for once\n",
           summary->keys, summary->keys_loaded, summary->keys_once);
    printf("  sizes      %s a key, %s a value, on average over requests; runs use --value-size\n",
           hx_bytes_text(share(summary->key_bytes, summary->requests), key, sizeof(key)),
           hx_bytes_text(share(summary->value_bytes, summary->values), value, sizeof(value)));
    if (summary->malformed > 0) {
        printf("  malformed  %" PRIu64 " lines skipped, the first is line %" PRIu64 "\n", summary->malformed,
               summary->malformed_first_line);
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct trace_options *options = arg;
    (void)name;
    if (options->file) {
        return hx_args_excess(value, err);
    }
    options->file = value;
    return 0;
}

void hx_help_trace(struct hx_help *help) {
    help->words = "file";
    help->usage = "trace FILE [options]";
    help->about = "Summarises a cache trace: lines of time,key,key size,value size,client,operation,TTL as Twitter "
                  "publishes them, plain or compressed with zstd. 'trace' counts the operations as the trace names "
                  "them, 'here' as a run asks an index for them.";
    help->examples = "dmbench trace cluster8.csv.zst\n"
                     "dmbench trace cluster8.csv --lenient --requests 10M --json\n"
                     "dmbench run --trace cluster8.csv.zst --ops 10M";
    help->status = "0 done, 1 failed, 2 usage, or a trace that is malformed or absent.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = trace_options});
}

static int trace(const struct trace_options *options, struct dm_err *err) {
    struct wl_trace_summary summary;
    if (!options->file) {
        return dm_fail(err, DM_ERR_INVALID, "which trace? name a file (see --help)");
    }
    int rc = wl_trace_summarize(options->file, options->lenient, options->requests, &summary, err);
    if (rc < 0) {
        return hx_file_error(rc, err);
    }
    if (options->json) {
        DM_TRY(json_print(options->file, &summary, err));
    } else {
        text_print(options->file, &summary);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return dm_fail(err, DM_ERR_IO, "cannot write to standard output: %s", strerror(errno));
    }
    return 0;
}

int hx_cmd_trace(int argc, char **argv) {
    struct trace_options options = {.file = NULL};
    struct dm_err err = {0};
    dm_opt_defaults(trace_options, &options);
    struct hx_args args = {.table = trace_options, .values = &options, .take = take_word, .arg = &options};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        hx_help_show(hx_help_trace);
        return HX_DONE;
    }
    rc = rc < 0 ? rc : trace(&options, &err);
    return rc < 0 ? hx_report("trace", &err) : HX_DONE;
}
