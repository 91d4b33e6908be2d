/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines below a picture: what was run, what the error bars are, which curves lie on each other, what the paper's
 * numbers say.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/figure_layout.h"
#include "harness/study/figure_text.h"

/* A text that grows; what does not fit is left out. */
struct note {
    char *text;
    size_t capacity, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct note *note, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (note->length < note->capacity) {
        int length = vsnprintf(note->text + note->length, note->capacity - note->length, format, arguments);
        note->length += length > 0 ? (size_t)length : 0;
    }
    va_end(arguments);
}

/* ---- what was run ----------------------------------------------------------------------------------------------- */

/* The value that an option has in all points of the figure, or NULL if they differ. */
static const json_t *common_option(const struct hx_picture *picture, const char *name) {
    const struct hx_figure *figure = picture->figure;
    const struct hx_points *points = picture->points;
    size_t count = hx_figure_slots(figure);
    const json_t *common = json_object_get(points->items[hx_figure_point(figure, 0, 0)].config, name);
    for (size_t slot = 1; slot < count && common != NULL; slot++) {
        if (!json_equal(common, json_object_get(points->items[hx_figure_point(figure, slot, 0)].config, name))) {
            common = NULL;
        }
    }
    return common;
}

static const char *time_base_text(const struct hx_picture *picture) {
    size_t count = hx_figure_slots(picture->figure) * picture->figure->repeat;
    size_t virtual_count = 0, real_count = 0, trained_count = 0;
    for (size_t slot = 0; slot < count; slot++) {
        const char *base = json_string_value(json_object_get(picture->data->results[slot], "time_base"));
        virtual_count += base != NULL && strcmp(base, "virtual") == 0;
        real_count += base != NULL && strcmp(base, "real") == 0;
        trained_count += base != NULL && strcmp(base, "none") == 0;
    }
    if (trained_count > 0) {
        return "models trained on this host, no network";
    }
    if (virtual_count > 0 && real_count > 0) {
        return "virtual and real time mixed";
    }
    return real_count > 0 ? "measured (real time)" : "simulated (virtual time)";
}

/* Time base, profile, cluster and scale; an option is given if all points share it. */
static void add_run(const struct hx_picture *picture, struct note *note) {
    static const struct {
        const char *option, *one, *many;
    } parts[] = {{"cns", "CN", "CNs"}, {"mns", "MN", "MNs"}, {"clients", "client", "clients"}, {"keys", "key", "keys"}};
    const struct hx_figure *figure = picture->figure;
    const char *profile = json_string_value(common_option(picture, "profile"));
    double divisor = hx_figure_divisor(figure, "keys");
    add(note, "%s", time_base_text(picture));
    if (!hx_point_trains(&picture->points->items[hx_figure_point(figure, 0, 0)])) {
        add(note, ", profile %s", profile != NULL ? profile : "differs");
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const json_t *value = common_option(picture, parts[i].option);
        if (json_is_number(value)) {
            char number[32];
            hx_text_number(json_number_value(value), number, sizeof(number));
            add(note, ", %s %s", number, json_number_value(value) > 1 ? parts[i].many : parts[i].one);
        }
    }
    add(note, ", scale %s", figure->scale);
    if (figure->divisor > 0 && divisor > 1 && figure->scale[0] != '1') {
        add(note, " (1/%.4g of the paper's keys)", divisor);
    }
    if (figure->repeat > 1) {
        add(note, ", %u seeds", figure->repeat);
    }
}

/* The bootstrap interval of the median of fewer values goes from the smallest to the greatest, and that covers the true
 * median less often than in 95 of 100 cases. */
enum { FEW_SEEDS = 6 };

static void add_seeds(const struct hx_picture *picture, struct note *note) {
    if (picture->figure->repeat > 1 && picture->plot->over_time) {
        add(note, "\nThe first seed is drawn.");
    } else if (picture->figure->repeat > 1) {
        bool bars = !picture->plot->table && !picture->plot->stacked;
        add(note, "\n%s: medians of %u seeds%s.", picture->plot->table ? "Numbers" : "Values", picture->figure->repeat,
            !bars                                 ? ""
            : picture->figure->repeat < FEW_SEEDS ? ", with error bars from the smallest to the greatest"
                                                  : ", with error bars of 95 % (bootstrap)");
    }
}

/* ---- curves on each other --------------------------------------------------------------------------------------- */

/* Two values that are as near as this share of the axis are drawn at the same position. */
#define SAME 0.012

static bool same_position(const struct hx_axis *axis, double a, double b) {
    return fabs(hx_axis_at(axis, a) - hx_axis_at(axis, b)) < SAME;
}

/* Whether two curves of a panel lie on each other in all of at least two cases. */
static bool coincide(const struct hx_picture *picture, size_t panel, const size_t series[2], const size_t metrics[2]) {
    const struct hx_figure *figure = picture->figure;
    struct hx_axis x_axis;
    size_t both = 0;
    if (picture->plot->by_metric) {
        hx_picture_x_axis(picture, panel, &x_axis);
    }
    for (size_t at = 0; at < figure->case_count; at++) {
        double y[2], x[2] = {0, 0};
        for (size_t i = 0; i < 2; i++) {
            size_t slot = hx_figure_at(figure, panel, series[i], at);
            y[i] = hx_fig_value(figure, picture->data, &picture->plot->y[metrics[i]], slot).middle;
            x[i] = picture->plot->by_metric ? hx_fig_value(figure, picture->data, &picture->plot->x, slot).middle : 0;
        }
        bool drawn[2] = {isfinite(y[0]) && isfinite(x[0]), isfinite(y[1]) && isfinite(x[1])};
        if (drawn[0] != drawn[1]) {
            return false;
        }
        if (drawn[0]) {
            bool same = same_position(&picture->y_axes[panel], y[0], y[1]) &&
                        (!picture->plot->by_metric || same_position(&x_axis, x[0], x[1]));
            if (!same) {
                return false;
            }
            both++;
        }
    }
    return both > 1;
}

/* The first curve drawn after this one that lies on it; false: none. */
static bool covered_by(const struct hx_picture *picture, size_t panel, size_t series, size_t metric, size_t *by_series,
                       size_t *by_metric) {
    size_t metrics = picture->plot->y_count;
    if (picture->plot->bars || picture->plot->over_time || picture->plot->table ||
        hx_fig_data_missing(picture->figure, picture->data, panel) > 0) {
        return false;
    }
    for (size_t i = series * metrics + metric + 1; i < picture->figure->series_count * metrics; i++) {
        const size_t both_series[2] = {series, i / metrics}, both_metrics[2] = {metric, i % metrics};
        if (coincide(picture, panel, both_series, both_metrics)) {
            *by_series = i / metrics;
            *by_metric = i % metrics;
            return true;
        }
    }
    return false;
}

bool hx_picture_is_covered(const struct hx_picture *picture, size_t panel, size_t series, size_t metric) {
    size_t by_series, by_metric;
    return covered_by(picture, panel, series, metric, &by_series, &by_metric);
}

static void add_curve_name(const struct hx_picture *picture, size_t series, size_t metric, struct note *note) {
    const char *what = picture->plot->y[metric].label;
    add(note, "%s%s%s", picture->figure->series[series].label, what[0] != '\0' ? " " : "", what);
}

static void add_covered(const struct hx_picture *picture, struct note *note) {
    const char *separator = "\nOn each other: ";
    for (size_t panel = 0; panel < picture->figure->panel_count; panel++) {
        for (size_t i = 0; i < picture->figure->series_count * picture->plot->y_count; i++) {
            size_t series = i / picture->plot->y_count, metric = i % picture->plot->y_count, by_series, by_metric;
            if (!covered_by(picture, panel, series, metric, &by_series, &by_metric)) {
                continue;
            }
            const char *label = picture->figure->panels[panel].label;
            add(note, "%s%s%s", separator, label, label[0] != '\0' ? ": " : "");
            add_curve_name(picture, series, metric, note);
            add(note, " (wide) and ");
            add_curve_name(picture, by_series, by_metric, note);
            separator = "; ";
        }
    }
}

/* ---- what papers claim ------------------------------------------------------------------------------------------ */

static void add_marks(const struct hx_picture *picture, struct note *note) {
    const char *separator = "\nPaper: ";
    for (size_t i = 0; i < picture->marks->count; i++) {
        const struct hx_fig_mark *mark = &picture->marks->items[i];
        size_t number = hx_picture_mark_number(picture, i);
        double low, high;
        double y = hx_picture_mark_y(picture, i, &low, &high);
        if (number > 0) {
            const struct hx_axis *axis = &picture->y_axes[mark->panel];
            add(note, "%s(%zu) %s%s", separator, number, mark->label,
                picture->plot->table ? ""
                : y > axis->high     ? ", above the axis"
                : y < axis->low      ? ", below the axis"
                                     : "");
            separator = "; ";
        }
    }
}

void hx_picture_notes(const struct hx_picture *picture, char *text, size_t capacity) {
    struct note note = {.text = text, .capacity = capacity};
    char absent[512];
    text[0] = '\0';
    add_run(picture, &note);
    add_seeds(picture, &note);
    hx_fig_absent_text(picture->figure, absent, sizeof(absent));
    if (absent[0] != '\0') {
        add(&note, "\n%s", absent);
    }
    if (!picture->plot->table) {
        add_covered(picture, &note);
        add_marks(picture, &note);
    }
}
