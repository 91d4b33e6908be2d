/* SPDX-License-Identifier: Apache-2.0
 *
 * The outputs of `dmbench run`.
 */
#include "harness/cli/run_output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/base/json.h"
#include "harness/run/config_fields.h"
#include "harness/run/interrupt.h"
#include "harness/run/result_csv.h"
#include "harness/run/summary.h"
#include "harness/run/summary_runs.h"

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static bool is_repeated(const struct hx_run_output *output) {
    return output->options->repeat > 1;
}

static int out_check(const char *option, const char *path, bool is_seekable, struct dm_err *err) {
    size_t length = strlen(path);
    if (length > 0 && path[length - 1] == '/') {
        return dm_fail(err, DM_ERR_INVALID, "%s: '%.200s' is a folder; name a file in it", option, path);
    }
    if (strcmp(path, "-") == 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: '-' is standard output, which is for the result; name a file, or ./-",
                       option);
    }
    int rc = dm_output_check(path, is_seekable, err);
    return rc < 0 ? dm_fail_in(err, rc, "%s", option) : 0;
}

/* Result, recording and trace are each renamed to their path, so two with the same path would overwrite each other. */
static int files_check(const struct hx_run_output *output, const struct hx_config *config, struct dm_err *err) {
    const char *record = config->run.record ? config->run.record : "";
    const char *out = output->file, *trace = output->options->verb_trace;
    if (out[0]) {
        DM_TRY(out_check("--out", out, false, err));
    }
    if (record[0]) {
        DM_TRY(out_check("--record", record, true, err));
    }
    if (record[0] && strcmp(record, out) == 0) {
        return dm_fail(err, DM_ERR_INVALID, "--record: '%.200s' is where --out writes the result", record);
    }
    if (trace[0]) {
        DM_TRY(out_check("--verb-trace", trace, false, err));
    }
    if (trace[0] && (strcmp(trace, out) == 0 || strcmp(trace, record) == 0)) {
        return dm_fail(err, DM_ERR_INVALID, "--verb-trace: '%.200s' is where --out or --record writes", trace);
    }
    if (is_repeated(output) && (record[0] || trace[0])) {
        return dm_fail(err, DM_ERR_INVALID, "--repeat: %s is of one run", record[0] ? "--record" : "--verb-trace");
    }
    return 0;
}

static int format_take(struct hx_run_output *output, struct dm_err *err) {
    const struct hx_point_options *options = output->options;
    output->format = (enum hx_format)options->format;
    if (options->json && options->csv) {
        return dm_fail(err, DM_ERR_INVALID, "--json and --csv: choose one");
    }
    if (options->json || options->csv) {
        output->format = options->csv ? HX_FORMAT_CSV : HX_FORMAT_JSON;
    }
    output->file = options->out;
    if (strcmp(options->out, "-") == 0) {
        if (output->format == HX_FORMAT_CSV) {
            return dm_fail(err, DM_ERR_INVALID, "--out -: standard output has the CSV already");
        }
        output->format = HX_FORMAT_JSON;
        output->file = "";
    }
    return 0;
}

int hx_run_output_open(struct hx_run_output *output, const struct hx_point_options *options,
                       const struct hx_config *config, struct dm_err *err) {
    output->options = options;
    output->results = json_array();
    DM_TRY(format_take(output, err));
    int rc = hx_percentiles_parse(options->percentiles, &output->percentiles, err);
    return rc < 0 ? dm_fail_in(err, rc, "--percentiles") : files_check(output, config, err);
}

void hx_run_output_close(struct hx_run_output *output) {
    json_decref(output->results);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* "c.json" becomes "c.seed2.json" for one of several runs, and "c.partial.json" for one that was interrupted. */
static int file_name(const struct hx_run_output *output, const json_t *result, char path[PATH_MAX],
                     struct dm_err *err) {
    const char *file = output->file, *suffix = strrchr(file, '.');
    char seed[40] = "";
    suffix = suffix && !strchr(suffix, '/') && suffix != file ? suffix : file + strlen(file);
    if (is_repeated(output)) {
        snprintf(seed, sizeof(seed), ".seed%" JSON_INTEGER_FORMAT,
                 json_integer_value(hx_json_find(result, "config.seed")));
    }
    int length = snprintf(path, PATH_MAX, "%.*s%s%s%s", (int)(suffix - file), file, seed,
                          json_is_true(json_object_get(result, "is_partial")) ? ".partial" : "", suffix);
    return length < PATH_MAX ? 0 : dm_fail(err, DM_ERR_INVALID, "--out: the name is too long");
}

static int file_store(const struct hx_run_output *output, const json_t *result, char path[PATH_MAX],
                      struct dm_err *err) {
    path[0] = '\0';
    if (!output->file[0]) {
        return 0;
    }
    DM_TRY(file_name(output, result, path, err));
    hx_interrupt_hold(true);
    int rc = dm_json_store(result, path, err);
    hx_interrupt_hold(false);
    return rc;
}

/* ---- standard output -------------------------------------------------------------------------------------------- */

static int output_flush(struct dm_err *err) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return dm_fail(err, DM_ERR_IO, "cannot write to standard output: %s", strerror(errno));
    }
    return 0;
}

static int json_print(const json_t *value, struct dm_err *err) {
    if (json_dumpf(value, stdout, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) < 0) {
        return dm_fail(err, DM_ERR_IO, "cannot write to standard output: %s", strerror(errno));
    }
    putchar('\n');
    return output_flush(err);
}

static void csv_print(struct hx_run_output *output, const json_t *result) {
    if (!output->has_header) {
        hx_csv_header(&output->percentiles, stdout);
        output->has_header = true;
    }
    hx_csv_print(result, &output->percentiles, stdout);
}

/* One of several runs. */
static void run_print(const json_t *result, const char *path) {
    char rate[32];
    printf("seed %" JSON_INTEGER_FORMAT ": %s%s%s%s\n", json_integer_value(hx_json_find(result, "config.seed")),
           hx_rate_text(json_number_value(json_object_get(result, "throughput_ops_per_s")), rate, sizeof(rate)),
           json_is_true(json_object_get(result, "is_partial")) ? ", PARTIAL" : "", path[0] ? "  " : "", path);
}

int hx_run_output_give(struct hx_run_output *output, json_t *result, struct dm_err *err) {
    char path[PATH_MAX];
    bool is_partial = json_is_true(json_object_get(result, "is_partial"));
    DM_TRY(hx_percentiles_add(result, &output->percentiles, err));
    DM_TRY(file_store(output, result, path, err));
    if (is_repeated(output) && !is_partial && json_array_append(output->results, result) != 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    if (output->format == HX_FORMAT_CSV) {
        csv_print(output, result);
    } else if (output->format == HX_FORMAT_JSON) {
        return is_repeated(output) && !is_partial ? 0 : json_print(result, err);
    } else if (is_repeated(output)) {
        run_print(result, path);
    } else {
        hx_summary_print(result, path[0] ? path : NULL, stdout);
    }
    return output_flush(err);
}

int hx_run_output_end(struct hx_run_output *output, struct dm_err *err) {
    if (!is_repeated(output) || json_array_size(output->results) == 0) {
        return 0;
    }
    if (output->format == HX_FORMAT_JSON) {
        return json_print(output->results, err);
    }
    if (output->format == HX_FORMAT_TEXT) {
        printf("\n");
        hx_summary_runs_print(output->results, stdout);
    }
    return output_flush(err);
}
