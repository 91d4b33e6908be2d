/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal summary of several runs of one point.
 */
#include "harness/run/summary_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/stats.h"
#include "harness/base/json.h"
#include "harness/run/summary.h"

/* With fewer runs than this not even the extremes hold the median with a probability of 95 %: it is 1 - 2^(1 - n). */
enum { RUNS_ENOUGH = 6, ROUNDS = 5000, TEXT_BYTES = 32, PATH_BYTES = 128 };

typedef const char *unit_text(double number, char *text, size_t capacity);

/* The values of a path; false if a run has none, because no such operation occurred in it. */
static bool values_take(const json_t *results, const char *path, double *values) {
    size_t at;
    json_t *result;
    json_array_foreach(results, at, result) {
        const json_t *value = hx_json_find(result, path);
        if (!json_is_number(value)) {
            return false;
        }
        values[at] = json_number_value(value);
    }
    return true;
}

static void line_print(const json_t *results, const char *name, const char *path, unit_text *text, FILE *out) {
    size_t count = json_array_size(results);
    double *values = calloc(count, sizeof(*values));
    if (values && values_take(results, path, values)) {
        char shown[5][TEXT_BYTES];
        double least = INFINITY, most = -INFINITY;
        for (size_t i = 0; i < count; i++) {
            least = fmin(least, values[i]);
            most = fmax(most, values[i]);
        }
        text(dm_median(values, count), shown[0], TEXT_BYTES);
        snprintf(shown[1], TEXT_BYTES, "-");
        snprintf(shown[2], TEXT_BYTES, "-");
        if (count >= RUNS_ENOUGH) {
            struct dm_interval interval = dm_bootstrap_median(values, count, 0.95, ROUNDS, 1);
            text(interval.low, shown[1], TEXT_BYTES);
            text(interval.high, shown[2], TEXT_BYTES);
        }
        fprintf(out, "  %-18s %14s %14s %14s %14s %14s\n", name, shown[0], shown[1], shown[2],
                text(least, shown[3], TEXT_BYTES), text(most, shown[4], TEXT_BYTES));
    }
    free(values);
}

/* The latencies of one operation: those of every result, and the percentiles that were asked for. */
static void op_print(const json_t *results, const char *op, FILE *out) {
    static const char *const usual[] = {"p50", "p99", NULL};
    const char *percent;
    json_t *unused;
    char name[PATH_BYTES], path[PATH_BYTES];
    const json_t *first = json_object_get(json_object_get(json_array_get(results, 0), "ops"), op);
    for (size_t i = 0; usual[i]; i++) {
        snprintf(name, sizeof(name), "%.40s %s", op, usual[i]);
        snprintf(path, sizeof(path), "ops.%.40s.latency_ns.%s", op, usual[i]);
        line_print(results, name, path, hx_time_text, out);
    }
    json_object_foreach(json_object_get(first, "percentiles_ns"), percent, unused) {
        json_t *flat = json_array(); /* names of percentiles have dots, so no path leads to them */
        size_t at;
        json_t *result;
        json_array_foreach((json_t *)(uintptr_t)results, at, result) {
            const json_t *found =
                json_object_get(json_object_get(json_object_get(result, "ops"), op), "percentiles_ns");
            json_array_append_new(flat, json_pack("{s:O}", "value", json_object_get(found, percent)));
        }
        snprintf(name, sizeof(name), "%.40s %.15s %%", op, percent);
        line_print(flat, name, "value", hx_time_text, out);
        json_decref(flat);
    }
}

void hx_summary_runs_print(const json_t *results, FILE *out) {
    size_t count = json_array_size(results);
    const json_t *first = json_array_get(results, 0), *last = json_array_get(results, count - 1);
    const char *op;
    json_t *unused;
    hx_summary_what_print(first, out);
    fprintf(out, "  runs        %zu, seeds %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT "\n\n", count,
            json_integer_value(hx_json_find(first, "config.seed")),
            json_integer_value(hx_json_find(last, "config.seed")));
    fprintf(out, "  %-18s %14s %29s %14s %14s\n", "", "median", "95 % interval of the median", "least", "most");
    line_print(results, "throughput", "throughput_ops_per_s", hx_rate_text, out);
    json_object_foreach(json_object_get(first, "ops"), op, unused) {
        op_print(results, op, out);
    }
    if (count < RUNS_ENOUGH) {
        fprintf(out,
                "\n  %zu runs are few: the range of them holds the true median with a probability of %.0f %%;\n"
                "  from %d on there is an interval of 95 %%\n",
                count, 100 * (1 - pow(2, 1 - (double)count)), RUNS_ENOUGH);
    }
}
