/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation points and micro-benchmarks as tables and JSON, and the curves of points.
 */
#include "harness/lab/validate_output.h"

#include <stdio.h>
#include <string.h>

#include "common/data_folder.h"
#include "harness/lab/curve_file.h"

static const char *verdict_text(const struct hx_published *point, double model) {
    static const char *const texts[] = {"ok", "explained", "out of tolerance"};
    return texts[hx_published_judge(point, model)];
}

json_t *hx_published_object(const struct hx_published *point, double model) {
    return json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:s, s:s?}", "id", point->id, "what",
                     point->what, "profile", point->profile, "unit", hx_published_unit(point->value), "published",
                     point->published, "model", model, "ratio", model / point->published, "tolerance", point->tolerance,
                     "bound", point->bound == HX_NEAR ? "near" : "at_least", "kind",
                     point->is_calibration ? "calibration" : "validation", "source", point->source, "verdict",
                     verdict_text(point, model), "cause", point->cause);
}

void hx_published_print(const struct hx_published *point, double model) {
    static const char *const short_texts[] = {"ok", "WHY", "OUT"};
    enum hx_published_verdict verdict = hx_published_judge(point, model);
    printf("%-4s %-44s %-13s %c%10.3f %10.3f %-6s %6.3f %s%3.0f %% %-11s %-4s %s\n", point->id, point->what,
           point->profile, point->bound == HX_AT_LEAST ? '>' : ' ', point->published, model,
           hx_published_unit(point->value), model / point->published, point->bound == HX_AT_LEAST ? " -" : "+-",
           point->tolerance * 100, point->is_calibration ? "calibration" : "validation", short_texts[verdict],
           point->source);
    if (verdict == HX_EXPLAINED) {
        printf("     %s\n", point->cause);
    }
}

/* One curve's data, a line a point, and the gnuplot program that draws it beside the published values. */
static int curve_write(const struct hx_published_curve *curve, const char *folder, const double *models,
                       struct dm_err *err) {
    struct hx_curve_file out;
    DM_TRY(hx_curve_open(&out, folder, curve->name, "tsv", err));
    const char *series = "";
    unsigned blocks = 0;
    for (size_t i = 0; i < hx_published_count; i++) {
        const struct hx_published *point = &hx_published_points[i];
        if (!point->curve || strcmp(point->curve, curve->name) != 0) {
            continue;
        }
        if (strcmp(series, point->series) != 0) {
            series = point->series;
            fprintf(out.file, "%s\"%s\"\tpublished\tmodel\n", blocks++ ? "\n\n" : "", series);
        }
        fprintf(out.file, "%.10g\t%.10g\t%.10g\n", point->x, point->published, models[i]);
    }
    DM_TRY(hx_curve_close(&out, err));
    DM_TRY(hx_curve_open(&out, folder, curve->name, "gp", err));
    fprintf(out.file,
            "# Usage: gnuplot %s.gp, in this folder\nname = '%s'; width = 480; height = 320\nload '%s/plots/style.gp'\n"
            "set datafile separator tab\nset xlabel '%s'\nset ylabel '%s'\nset yrange [0:*]\n%s"
            "do for [kind in kinds] {\n    eval(open(kind))\n"
            "    plot for [b=0:%u] name.'.tsv' index b using 1:3 with linespoints linetype b + 1 title columnheader(1)."
            "' (model)', \\\n"
            "         for [b=0:%u] '' index b using 1:2 with points linetype b + 1 pointtype 6 title columnheader(1).' "
            "(published)'\n    unset output\n}\n",
            curve->name, curve->name, dm_data_folder(), curve->x_label, curve->y_label,
            curve->is_log_x ? "set logscale x 2\n" : "", blocks - 1, blocks - 1);
    return hx_curve_close(&out, err);
}

int hx_published_curves_write(const char *folder, const double *models, struct dm_err *err) {
    DM_TRY(hx_curve_folder(folder, err));
    for (size_t i = 0; i < hx_published_curve_count; i++) {
        DM_TRY(curve_write(&hx_published_curves[i], folder, models, err));
    }
    fprintf(stderr, "curves: cd %s && for f in *.gp; do gnuplot $f; done\n", folder);
    return 0;
}

void hx_micro_print(json_t *rows) {
    printf("%-34s %8s %8s %12s %12s\n", "what", "bytes", "clients", "M/s", "us");
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        printf("%-34s %8lld %8lld %12.3f %12.3f\n", json_string_value(json_object_get(row, "what")),
               (long long)json_integer_value(json_object_get(row, "bytes")),
               (long long)json_integer_value(json_object_get(row, "clients")),
               json_real_value(json_object_get(row, "mops")), json_real_value(json_object_get(row, "latency_us")));
    }
}
