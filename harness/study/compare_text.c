/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as text and as JSON.
 */
#include "harness/study/compare_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 32, RUNS_ENOUGH = 6, RUNS_MAX = 1000 };

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

/* A difference that the histogram cannot show is no effect, however regularly it occurs. */
static const char *effect_text(const struct hx_compare_metric *metric) {
    return metric->in_bucket ? "within one bucket" : dm_delta_text(metric->delta);
}

/* Never as 0: a small one has an exponent. */
static const char *p_text(double p, char *text, size_t capacity) {
    if (p < 1e-99) {
        snprintf(text, capacity, "<1e-99");
    } else {
        snprintf(text, capacity, p >= 0.001 ? "%.4f" : "%.0e", p);
    }
    return text;
}

static void metric_print(FILE *out, const struct hx_compare_point *point, const struct hx_compare_metric *metric) {
    fprintf(out, "  %-18s", metric->name);
    number_print(out, metric->name, metric->a);
    number_print(out, metric->name, metric->b);
    fprintf(out, " %8.4f", metric->ratio);
    if (point->a_count > 1 || point->b_count > 1) {
        char p[TEXT_BYTES], corrected[TEXT_BYTES];
        fprintf(out, "  %8.4f %8.4f  %6s %6s  %+5.2f %s\n", metric->interval.low, metric->interval.high,
                p_text(metric->test.p, p, sizeof(p)), p_text(metric->p_holm, corrected, sizeof(corrected)),
                metric->delta, effect_text(metric));
    } else {
        fprintf(out, "\n");
    }
}

static void seeds_print(FILE *out, const json_t *const seeds[2]) {
    if (json_equal(seeds[0], seeds[1])) {
        return;
    }
    for (int side = 0; side < 2; side++) {
        size_t count = json_array_size(seeds[side]);
        fprintf(out, "%s", side == 0 ? "seeds: A " : ", B ");
        for (size_t i = 0; i < count && (count <= 4 || i < 3); i++) {
            fprintf(out, "%s%" JSON_INTEGER_FORMAT, i > 0 ? " " : "",
                    json_integer_value(json_array_get(seeds[side], i)));
        }
        if (count > 4) {
            fprintf(out, " ... %" JSON_INTEGER_FORMAT, json_integer_value(json_array_get(seeds[side], count - 1)));
        }
    }
    fprintf(out, "\n");
}

/* What so few repetitions cannot show, and how many could. */
static void few_print(FILE *out, const struct hx_compare *compare, const struct hx_compare_point *point,
                      double confidence) {
    double alpha = 1 - confidence, tests = (double)compare->test_count;
    double least = dm_mann_whitney_least(point->a_count, point->b_count);
    size_t runs = point->a_count < point->b_count ? point->a_count : point->b_count;
    size_t needed = runs;
    if (runs < RUNS_ENOUGH) {
        fprintf(out,
                "  few runs: the intervals are too narrow (they hold less than %.0f %%, and never leave the range)\n",
                confidence * 100);
    }
    while (needed < RUNS_MAX && fmin(1, dm_mann_whitney_least(needed, needed) * tests) > alpha) {
        needed++;
    }
    if (fmin(1, least * tests) > alpha) {
        char p[TEXT_BYTES];
        fprintf(out,
                "  few runs: p cannot be below %s, so that none of %zu tests can show a difference; %zu a side can\n",
                p_text(least, p, sizeof(p)), compare->test_count, needed);
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

void hx_compare_print(const struct hx_compare *compare, const char *const names[2], double confidence, FILE *out) {
    const char *base = json_string_value(json_object_get(compare->a->items[0], "time_base"));
    fprintf(out, "A: %s (%zu results)\nB: %s (%zu results)\n%s\n", names[0], compare->a->count, names[1],
            compare->b->count,
            base != NULL && strcmp(base, "virtual") == 0 ? "simulated: virtual time" : "measured: real time");
    differences_print(out, compare->differences);
    seeds_print(out, (const json_t *const *)compare->seeds);
    for (size_t i = 0; i < compare->point_count; i++) {
        const struct hx_compare_point *point = &compare->points[i];
        bool repeated = point->a_count > 1 || point->b_count > 1;
        fprintf(out, "\n%s%s%zu and %zu runs%s\n", point->label, point->label[0] != '\0' ? ": " : "", point->a_count,
                point->b_count, repeated ? "" : "; no interval without repetitions (--repeat)");
        fprintf(out, "  %-18s %18s %18s %8s", "median", "A", "B", "B/A");
        fprintf(out, repeated ? "  %8s %8s  %6s %6s  %s\n" : "\n", "from", "to", "p", "Holm", "Cliff's delta");
        for (size_t k = 0; k < point->metric_count; k++) {
            metric_print(out, point, &point->metrics[k]);
        }
        if (repeated) {
            few_print(out, compare, point, confidence);
        }
    }
    if (compare->test_count > 1) {
        fprintf(out, "\nHolm: p corrected for the %zu tests above, of which some would be small by chance\n",
                compare->test_count);
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
    return json_pack("{s:o, s:o, s:o, s:[o, o], s:o, s:o, s:o, s:b, s:o, s:b, s:s}", "a", real(metric->a), "b",
                     real(metric->b), "ratio", real(metric->ratio), "interval", real(metric->interval.low),
                     real(metric->interval.high), "u", real(metric->test.u), "p", real(metric->test.p), "p_holm",
                     real(metric->p_holm), "p_exact", metric->test.exact, "cliffs_delta", real(metric->delta),
                     "within_bucket", metric->in_bucket, "effect", effect_text(metric));
}

json_t *hx_compare_object(const struct hx_compare *compare, const char *const names[2], double confidence) {
    json_t *points = json_array();
    for (size_t i = 0; i < compare->point_count; i++) {
        const struct hx_compare_point *point = &compare->points[i];
        json_t *metrics = json_object();
        for (size_t k = 0; k < point->metric_count; k++) {
            json_object_set_new(metrics, point->metrics[k].name, metric_object(&point->metrics[k]));
        }
        json_array_append_new(points,
                              json_pack("{s:s, s:I, s:I, s:f, s:o}", "point", point->label, "runs_a",
                                        (json_int_t)point->a_count, "runs_b", (json_int_t)point->b_count, "p_least",
                                        dm_mann_whitney_least(point->a_count, point->b_count), "metrics", metrics));
    }
    return json_pack("{s:s, s:s, s:O, s:O, s:o, s:I, s:I, s:f, s:{s:O, s:O}, s:I}", "a", names[0], "b", names[1],
                     "time_base", json_object_get(compare->a->items[0], "time_base"), "differences",
                     compare->differences, "points", points, "only_a", (json_int_t)compare->only_a, "only_b",
                     (json_int_t)compare->only_b, "confidence", confidence, "seeds", "a", compare->seeds[0], "b",
                     compare->seeds[1], "tests", (json_int_t)compare->test_count);
}
