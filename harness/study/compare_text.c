/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as text and as JSON.
 */
#include "harness/study/compare_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void number_print(FILE *out, const char *metric, double value) {
    const char *dot = strrchr(metric, '.');
    if (strcmp(metric, "throughput") == 0) {
        fprintf(out, " %11.4f Mops/s", value * 1e-6);
    } else if (strcmp(metric, "cache_bytes") == 0) {
        fprintf(out, " %11.4f MB    ", value * 1e-6);
    } else if (dot != NULL && (strcmp(dot, ".p50") == 0 || strcmp(dot, ".p99") == 0)) {
        fprintf(out, " %11.3f us    ", value * 1e-3);
    } else {
        fprintf(out, " %11.3f       ", value);
    }
}

static void metric_print(FILE *out, const struct hx_compare_point *point, const struct hx_compare_metric *metric) {
    fprintf(out, "  %-18s", metric->name);
    number_print(out, metric->name, metric->a);
    number_print(out, metric->name, metric->b);
    fprintf(out, " %8.4f", metric->ratio);
    if (point->a_count > 1 || point->b_count > 1) {
        fprintf(out, "  %8.4f %8.4f  %6.4f  %+5.2f %s\n", metric->interval.low, metric->interval.high, metric->test.p,
                metric->delta, dm_delta_text(metric->delta));
    } else {
        fprintf(out, "\n");
    }
}

static void differences_print(FILE *out, const json_t *differences) {
    const char *path;
    json_t *values;
    const char *separator = "A and B differ in:";
    json_object_foreach((json_t *)differences, path, values) {
        char *a = json_dumps(json_array_get(values, 0), JSON_ENCODE_ANY);
        char *b = json_dumps(json_array_get(values, 1), JSON_ENCODE_ANY);
        fprintf(out, "%s %s %s -> %s", separator, path, a != NULL ? a : "?", b != NULL ? b : "?");
        separator = ",";
        free(a);
        free(b);
    }
    fprintf(out, "%s\n", separator[0] == ',' ? "" : "A and B have the same configuration");
}

void hx_compare_print(const struct hx_compare *compare, const char *const names[2], FILE *out) {
    const char *base = json_string_value(json_object_get(compare->a->items[0], "time_base"));
    fprintf(out, "A: %s (%zu results)\nB: %s (%zu results)\n%s\n", names[0], compare->a->count, names[1],
            compare->b->count,
            base != NULL && strcmp(base, "virtual") == 0 ? "simulated: virtual time" : "measured: real time");
    differences_print(out, compare->differences);
    for (size_t i = 0; i < compare->point_count; i++) {
        const struct hx_compare_point *point = &compare->points[i];
        bool repeated = point->a_count > 1 || point->b_count > 1;
        fprintf(out, "\n%s%s%zu and %zu runs%s\n", point->label, point->label[0] != '\0' ? ": " : "", point->a_count,
                point->b_count, repeated ? "" : "; no interval without repetitions (--repeat)");
        fprintf(out, "  %-18s %18s %18s %8s", "median", "A", "B", "B/A");
        fprintf(out, repeated ? "  %8s %8s  %6s  %s\n" : "\n", "from", "to", "p", "Cliff's delta");
        for (size_t k = 0; k < point->metric_count; k++) {
            metric_print(out, point, &point->metrics[k]);
        }
    }
    if (compare->only_a > 0 || compare->only_b > 0) {
        fprintf(out, "\nwithout a partner: %zu results of A, %zu of B\n", compare->only_a, compare->only_b);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *metric_object(const struct hx_compare_metric *metric) {
    return json_pack("{s:o, s:o, s:o, s:[o, o], s:o, s:o, s:b, s:o, s:s}", "a", real(metric->a), "b", real(metric->b),
                     "ratio", real(metric->ratio), "interval", real(metric->interval.low), real(metric->interval.high),
                     "u", real(metric->test.u), "p", real(metric->test.p), "p_exact", metric->test.exact,
                     "cliffs_delta", real(metric->delta), "effect", dm_delta_text(metric->delta));
}

json_t *hx_compare_object(const struct hx_compare *compare, const char *const names[2], double confidence) {
    json_t *points = json_array();
    for (size_t i = 0; i < compare->point_count; i++) {
        const struct hx_compare_point *point = &compare->points[i];
        json_t *metrics = json_object();
        for (size_t k = 0; k < point->metric_count; k++) {
            json_object_set_new(metrics, point->metrics[k].name, metric_object(&point->metrics[k]));
        }
        json_array_append_new(points, json_pack("{s:s, s:I, s:I, s:o}", "point", point->label, "runs_a",
                                                (json_int_t)point->a_count, "runs_b", (json_int_t)point->b_count,
                                                "metrics", metrics));
    }
    return json_pack("{s:s, s:s, s:O, s:O, s:o, s:I, s:I, s:f}", "a", names[0], "b", names[1], "time_base",
                     json_object_get(compare->a->items[0], "time_base"), "differences", compare->differences, "points",
                     points, "only_a", (json_int_t)compare->only_a, "only_b", (json_int_t)compare->only_b, "confidence",
                     confidence);
}
