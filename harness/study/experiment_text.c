/* SPDX-License-Identifier: Apache-2.0
 *
 * Published experiments beside ours as text, as tables for documents, and as JSON.
 */
#include <math.h>
#include <string.h>

#include "harness/study/experiment.h"

/* Of verdicts and of orders, in the order of their enumerations. */
static const char *const verdict_names[] = {"in", "out", "not run", "failed"};
static const char *const order_names[] = {"holds", "broken", "tie", "not judged"};

static const char *unit_of(enum hx_exp_metric metric) {
    return metric == HX_EXP_MOPS ? "Mops/s" : "us";
}

/* What a metric is, where a table does not show it already. */
static const char *what_of(enum hx_exp_metric metric) {
    static const char *const names[] = {"", ", mean", ", P50", ", P90", ", P99", ", a round trip"};
    return names[metric];
}

static bool is_judged(const struct hx_exp_point *point) {
    return point->verdict == HX_EXP_IN || point->verdict == HX_EXP_OUT;
}

/* The number of decimals that shows three digits. */
static int decimals(double value) {
    return value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
}

/* A typical factor after `before`, or `none` where it is of no point. */
static void print_factor(FILE *out, const char *before, double factor, const char *none) {
    fprintf(out, "%s", before);
    if (isfinite(factor)) {
        fprintf(out, "%.2f", factor);
    } else {
        fprintf(out, "%s", none);
    }
}

static void sum_print(const struct hx_exp_sum *sum, FILE *out) {
    size_t in = sum->in[HX_EXP_BANDWIDTH] + sum->in[HX_EXP_OTHER];
    size_t judged = in + sum->out[HX_EXP_BANDWIDTH] + sum->out[HX_EXP_OTHER];
    fprintf(out, "%zu of %zu published points are within tolerance", in, judged);
    for (int i = 0; i < HX_EXP_BOUNDS; i++) {
        fprintf(out, "%s%zu of %zu %s", i == 0 ? " (" : ", ", sum->in[i], sum->in[i] + sum->out[i],
                i == HX_EXP_BANDWIDTH ? "that a link or PCIe limits" : "others");
    }
    print_factor(out, "); typical factor ", sum->typical[HX_EXP_BOUNDS], "-");
    print_factor(out, " (", sum->typical[HX_EXP_BANDWIDTH], "-");
    print_factor(out, " and ", sum->typical[HX_EXP_OTHER], "-");
    fprintf(out, "); %zu of %zu published orders hold; %zu points not run", sum->holds, sum->holds + sum->broken,
            sum->not_run);
    if (sum->failed > 0) {
        fprintf(out, ", %zu FAILED", sum->failed);
    }
    fprintf(out, "\n");
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void point_print(const struct hx_exp_point *point, FILE *out) {
    fprintf(out, "  %-44.44s %-14s %9.*f ", point->label, hx_exp_metric_names[point->metric],
            decimals(point->published), point->published);
    if (is_judged(point)) {
        fprintf(out, "%9.*f %6.2f  %4.2f  %s", decimals(point->ours), point->ours, point->ours / point->published,
                hx_exp_tolerance(point->bound), point->verdict == HX_EXP_IN ? "in" : "OUT");
    } else {
        fprintf(out, "%9s %6s  %4.2f  %s", "-", "-", hx_exp_tolerance(point->bound), verdict_names[point->verdict]);
    }
    const char *why = point->verdict == HX_EXP_OUT       ? point->cause
                      : point->verdict == HX_EXP_NOT_RUN ? point->not_run
                                                         : "";
    fprintf(out, "%s%s\n", why[0] != '\0' ? ": " : "", why);
}

static void orders_print(const struct hx_experiment *experiment, FILE *out) {
    for (size_t i = 0; i < experiment->pair_count; i++) {
        const struct hx_exp_pair *pair = &experiment->pairs[i];
        if (pair->order == HX_EXP_BROKEN) {
            fprintf(out, "  order BROKEN: %s > %s\n", experiment->points[pair->more].label,
                    experiment->points[pair->less].label);
        }
    }
}

void hx_experiments_print(struct hx_experiment *const *experiments, size_t count, FILE *out) {
    struct hx_exp_sum sum = hx_experiments_sum(experiments, count);
    for (size_t i = 0; i < count; i++) {
        const struct hx_experiment *experiment = experiments[i];
        fprintf(out, "%s: %s\n  %-44s %-14s %9s %9s %6s  %4s  is\n", experiment->id, experiment->title, "point",
                "metric", "published", "ours", "ratio", "to");
        for (size_t k = 0; k < experiment->point_count; k++) {
            point_print(&experiment->points[k], out);
        }
        orders_print(experiment, out);
    }
    sum_print(&sum, out);
}

/* ---- Markdown --------------------------------------------------------------------------------------------------- */

/* A table's cell: no bars. */
static void print_cell(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '|') {
            fputc('\\', out);
        }
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void overview_markdown(struct hx_experiment *const *experiments, size_t count, FILE *out) {
    fprintf(out, "\n| experiment | points run | within tolerance | typical factor | orders that hold | not run |\n"
                 "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        struct hx_exp_sum sum = hx_experiments_sum(&experiments[i], 1);
        size_t in = sum.in[HX_EXP_BANDWIDTH] + sum.in[HX_EXP_OTHER];
        size_t judged = in + sum.out[HX_EXP_BANDWIDTH] + sum.out[HX_EXP_OTHER];
        fprintf(out, "| ");
        print_cell(out, experiments[i]->title);
        fprintf(out, " | %zu | %zu |", judged, in);
        print_factor(out, isfinite(sum.typical[HX_EXP_BOUNDS]) ? " " : "", sum.typical[HX_EXP_BOUNDS], "");
        fprintf(out, " |");
        if (sum.holds + sum.broken > 0) {
            fprintf(out, " %zu of %zu |", sum.holds, sum.holds + sum.broken);
        } else {
            fprintf(out, " |");
        }
        fprintf(out, " %zu |\n", sum.not_run);
    }
}

/* The last cell: how the point differs, and why it is out or not run. */
static void print_remarks(FILE *out, const struct hx_exp_point *point) {
    const char *const parts[] = {point->differs, point->verdict == HX_EXP_OUT ? point->cause : "",
                                 point->not_run != NULL ? point->not_run : ""};
    const char *between = "";
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i][0] != '\0') {
            fputs(between, out);
            print_cell(out, parts[i]);
            between = "; ";
        }
    }
}

static void point_markdown(const struct hx_exp_point *point, FILE *out) {
    fprintf(out, "| ");
    print_cell(out, point->label);
    fprintf(out, "%s | %s | %.*f %s |", what_of(point->metric), hx_exp_bound_names[point->bound],
            decimals(point->published), point->published, unit_of(point->metric));
    if (is_judged(point)) {
        fprintf(out, " %.*f | %.2f | %s | ", decimals(point->ours), point->ours, point->ours / point->published,
                point->verdict == HX_EXP_IN ? "in" : "**out**");
    } else {
        fprintf(out, " | | %s | ", verdict_names[point->verdict]);
    }
    print_remarks(out, point);
    fprintf(out, " |\n");
}

static void orders_markdown(const struct hx_experiment *experiment, FILE *out) {
    for (size_t i = 0; i < experiment->pair_count; i++) {
        const struct hx_exp_pair *pair = &experiment->pairs[i];
        fprintf(out, "%s", i == 0 ? "\n| published order | here |\n|---|---|\n" : "");
        fprintf(out, "| ");
        print_cell(out, experiment->points[pair->more].label);
        fprintf(out, " > ");
        print_cell(out, experiment->points[pair->less].label);
        fprintf(out, " | %s |\n", order_names[pair->order]);
    }
}

static void experiment_markdown(const struct hx_experiment *experiment, FILE *out) {
    const char *const parts[][2] = {
        {"source", experiment->source}, {"settings", experiment->settings}, {"differs", experiment->differs}};
    fprintf(out, "\n## %s\n\n| | |\n|---|---|\n", experiment->title);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        fprintf(out, "| %s | ", parts[i][0]);
        print_cell(out, parts[i][1]);
        fprintf(out, " |\n");
    }
    fprintf(out, "\n| point | limited by | published | here | ratio | is | remarks |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < experiment->point_count; i++) {
        point_markdown(&experiment->points[i], out);
    }
    orders_markdown(experiment, out);
}

void hx_experiments_markdown(struct hx_experiment *const *experiments, size_t count, FILE *out) {
    struct hx_exp_sum sum = hx_experiments_sum(experiments, count);
    sum_print(&sum, out);
    overview_markdown(experiments, count, out);
    for (size_t i = 0; i < count; i++) {
        experiment_markdown(experiments[i], out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *point_object(const struct hx_exp_point *point) {
    return json_pack("{s:s, s:s, s:s, s:f, s:o, s:o, s:f, s:s, s:s, s:s, s:s}", "label", point->label, "metric",
                     hx_exp_metric_names[point->metric], "bound", hx_exp_bound_names[point->bound], "published",
                     point->published, "ours", real(point->ours), "ratio", real(point->ours / point->published),
                     "tolerance", hx_exp_tolerance(point->bound), "verdict", verdict_names[point->verdict], "differs",
                     point->differs, "cause", point->cause, "not_run", point->not_run != NULL ? point->not_run : "");
}

static json_t *experiment_object(const struct hx_experiment *experiment) {
    json_t *points = json_array(), *orders = json_array();
    for (size_t i = 0; i < experiment->point_count; i++) {
        json_array_append_new(points, point_object(&experiment->points[i]));
    }
    for (size_t i = 0; i < experiment->pair_count; i++) {
        const struct hx_exp_pair *pair = &experiment->pairs[i];
        json_array_append_new(orders, json_pack("{s:s, s:s, s:s}", "more", experiment->points[pair->more].label, "less",
                                                experiment->points[pair->less].label, "is", order_names[pair->order]));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", experiment->id, "title", experiment->title, "source",
                     experiment->source, "settings", experiment->settings, "differs", experiment->differs, "points",
                     points, "orders", orders);
}

json_t *hx_experiments_object(struct hx_experiment *const *experiments, size_t count, const char *scale) {
    struct hx_exp_sum sum = hx_experiments_sum(experiments, count);
    json_t *list = json_array(), *typical = json_object();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, experiment_object(experiments[i]));
    }
    for (int i = 0; i < HX_EXP_BOUNDS; i++) {
        json_object_set_new(typical, hx_exp_bound_names[i], real(sum.typical[i]));
    }
    json_object_set_new(typical, "all", real(sum.typical[HX_EXP_BOUNDS]));
    return json_pack("{s:i, s:s, s:o, s:{s:I, s:I}, s:{s:I, s:I}, s:I, s:I, s:{s:I, s:I, s:I, s:I}, s:o}",
                     "schema_version", 1, "scale", scale, "experiments", list, "in", hx_exp_bound_names[0],
                     (json_int_t)sum.in[0], hx_exp_bound_names[1], (json_int_t)sum.in[1], "out", hx_exp_bound_names[0],
                     (json_int_t)sum.out[0], hx_exp_bound_names[1], (json_int_t)sum.out[1], "not_run",
                     (json_int_t)sum.not_run, "failed", (json_int_t)sum.failed, "orders", order_names[0],
                     (json_int_t)sum.holds, order_names[1], (json_int_t)sum.broken, order_names[2],
                     (json_int_t)sum.ties, order_names[3], (json_int_t)sum.unjudged, "typical_factor", typical);
}
