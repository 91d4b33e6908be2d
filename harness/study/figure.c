/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a figure's spec strictly: an unknown member or value is an error that names the file and the member.
 */
#include "harness/study/figure.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"
#include "harness/study/figure_published.h"
#include "harness/study/figure_style.h"
#include "indexes/index.h"

enum { WHERE_BYTES = 512 };

/* Formats a path in the spec, with which errors begin; a very long one is cut. */
__attribute__((format(printf, 2, 3))) static void member_path(char member[WHERE_BYTES], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(member, WHERE_BYTES, format, arguments);
    va_end(arguments);
}

/* Sets *text to the member's text, or to `otherwise` if it is absent and not required. */
static int read_text(const json_t *object, const char *name, bool required, const char *otherwise, const char *where,
                     const char **text, struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, name, JSON_STRING, required, where, &value, err));
    *text = value != NULL ? json_string_value(value) : otherwise;
    return 0;
}

static int read_flag(const json_t *object, const char *name, const char *where, bool *flag, struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, name, JSON_TRUE, false, where, &value, err));
    *flag = json_is_true(value);
    return 0;
}

static int read_factor(const json_t *object, const char *where, double *factor, struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, "factor", JSON_REAL, false, where, &value, err));
    *factor = value != NULL ? json_number_value(value) : 1;
    return 0;
}

/* The members of an array as `size` bytes each, zeroed. */
static int make_array(const json_t *array, const char *where, size_t size, void **items, size_t *count,
                      struct dm_err *err) {
    *count = json_array_size(array);
    if (*count == 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: must not be empty", where);
    }
    *items = calloc(*count, size);
    return *items != NULL ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
}

/* ---- panels, series, cases -------------------------------------------------------------------------------------- */

static int read_item(const json_t *object, bool styled, const char *where, struct hx_fig_item *item,
                     struct dm_err *err) {
    static const char *const plain[] = {"label", "config", NULL};
    static const char *const with_style[] = {"label", "config", "style", NULL};
    DM_TRY(hx_json_check(object, styled ? with_style : plain, where, err));
    DM_TRY(read_text(object, "label", true, NULL, where, &item->label, err));
    DM_TRY(read_text(object, "style", false, NULL, where, &item->style, err));
    return hx_json_get(object, "config", JSON_OBJECT, false, where, &item->config, err);
}

static int read_items(const json_t *array, bool styled, const char *where, struct hx_fig_item **items, size_t *count,
                      struct dm_err *err) {
    void *memory = NULL;
    DM_TRY(make_array(array, where, sizeof(**items), &memory, count, err));
    *items = memory;
    for (size_t i = 0; i < *count; i++) {
        char member[WHERE_BYTES];
        member_path(member, "%s[%zu]", where, i);
        DM_TRY(read_item(json_array_get(array, i), styled, member, &(*items)[i], err));
    }
    return 0;
}

/* A spec without panels has one panel, without a name and settings. */
static int read_panels(struct hx_figure *figure, const char *where, struct dm_err *err) {
    const json_t *array;
    DM_TRY(hx_json_get(figure->spec, "panels", JSON_ARRAY, false, where, &array, err));
    if (array == NULL) {
        figure->panels = calloc(1, sizeof(*figure->panels));
        if (figure->panels == NULL) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
        }
        figure->panels[0].label = "";
        figure->panel_count = 1;
        return 0;
    }
    char member[WHERE_BYTES];
    member_path(member, "%s: panels", where);
    return read_items(array, false, member, &figure->panels, &figure->panel_count, err);
}

/* Checks that an index that is not built is one that a paper compares with (plots/systems.json). */
static int check_system(const struct hx_figure *figure, const char *index, const char *where, struct dm_err *err) {
    json_t *systems = json_object_get(figure->styles, "systems");
    const char *names[64] = {NULL};
    size_t count = 0;
    const char *name;
    json_t *unused;
    if (json_object_get(systems, index) != NULL) {
        return 0;
    }
    for (const struct ix_ops *const *ops = ix_all(); *ops != NULL && count < DM_ARRAY_LEN(names); ops++) {
        names[count++] = (*ops)->name;
    }
    json_object_foreach(systems, name, unused) {
        if (count < DM_ARRAY_LEN(names) && ix_find(name) == NULL) {
            names[count++] = name;
        }
    }
    return dm_fail_in(err, hx_fail_unknown(err, "index", index, names, count), "%s.config", where);
}

/* Removes the items whose index is not built from a list. */
static int drop_absent(struct hx_figure *figure, const char *where, struct hx_fig_item *items, size_t *count,
                       struct dm_err *err) {
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        char member[WHERE_BYTES];
        const json_t *own = json_object_get(items[i].config, "index");
        const char *index = json_string_value(own != NULL ? own : json_object_get(figure->config, "index"));
        if (index == NULL || ix_find(index) != NULL) {
            items[kept++] = items[i];
            continue;
        }
        member_path(member, "%s[%zu]", where, i);
        DM_TRY(check_system(figure, index, member, err));
        struct hx_fig_absent *absent = realloc(figure->absent, (figure->absent_count + 1) * sizeof(*absent));
        if (absent == NULL) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
        }
        figure->absent = absent;
        absent[figure->absent_count++] = (struct hx_fig_absent){.label = items[i].label, .index = index};
    }
    *count = kept;
    return 0;
}

static bool is_style_taken(const struct hx_figure *figure, size_t series, const char *style) {
    for (size_t i = 0; i < series; i++) {
        if (strcmp(figure->series[i].style, style) == 0) {
            return true;
        }
    }
    return false;
}

/* A system has the same style in all figures. If several series are of one system, the first one has that style; they
 * and series that are no system have those of the others, in order. */
static const char *style_default(const struct hx_figure *figure, size_t series) {
    const json_t *index = json_object_get(figure->series[series].config, "index");
    const char *style = json_string_value(index != NULL ? index : json_object_get(figure->config, "index"));
    if (style != NULL && hx_fig_style_find(figure->styles, style) != NULL && !is_style_taken(figure, series, style)) {
        return style;
    }
    for (size_t n = 0; n < HX_OTHERS_MAX; n++) {
        style = hx_fig_style_other(figure->styles, n);
        if (!is_style_taken(figure, series, style)) {
            break;
        }
    }
    return style;
}

static int read_series(struct hx_figure *figure, const char *where, struct dm_err *err) {
    const json_t *array;
    char member[WHERE_BYTES];
    DM_TRY(hx_json_get(figure->spec, "series", JSON_ARRAY, true, where, &array, err));
    member_path(member, "%s: series", where);
    DM_TRY(read_items(array, true, member, &figure->series, &figure->series_count, err));
    for (size_t i = 0; i < figure->series_count; i++) {
        struct hx_fig_item *item = &figure->series[i];
        item->style = item->style != NULL ? item->style : style_default(figure, i);
        if (hx_fig_style_find(figure->styles, item->style) == NULL) {
            return dm_fail(err, DM_ERR_INVALID, "%s[%zu].style: systems.json has no style '%s'", member, i,
                           item->style);
        }
    }
    return drop_absent(figure, member, figure->series, &figure->series_count, err);
}

/* The values that an option takes along x: one case each, with a config of that option alone. */
static int read_values(struct hx_figure *figure, const json_t *values, const char *where, struct dm_err *err) {
    void *memory = NULL;
    DM_TRY(make_array(values, where, sizeof(*figure->cases), &memory, &figure->case_count, err));
    figure->cases = memory;
    figure->cases_config = json_array();
    for (size_t i = 0; i < figure->case_count; i++) {
        json_t *value = json_array_get(values, i);
        json_t *config = json_object();
        if (json_is_object(value) || json_is_array(value) || json_is_null(value)) {
            json_decref(config);
            return dm_fail(err, DM_ERR_INVALID, "%s[%zu]: must be a value of option '%s'", where, i, figure->x_option);
        }
        if (hx_json_put(config, figure->x_option, value) < 0 ||
            json_array_append_new(figure->cases_config, config) != 0) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
        }
        figure->cases[i].config = config;
        figure->cases[i].label = json_is_string(value) ? json_string_value(value) : "";
    }
    return 0;
}

/* Named cases may have an index of their own, which may not be built. */
static int drop_absent_cases(struct hx_figure *figure, const char *where, struct dm_err *err) {
    for (size_t i = 0; i < figure->case_count; i++) {
        if (json_object_get(figure->cases[i].config, "index") != NULL) {
            return drop_absent(figure, where, figure->cases, &figure->case_count, err);
        }
    }
    return 0;
}

static int read_x(struct hx_figure *figure, const json_t *scale, const char *where, struct dm_err *err) {
    static const char *const known[] = {"option", "label", "factor", "log", "cases", NULL};
    const json_t *x, *cases, *values;
    char member[WHERE_BYTES];
    DM_TRY(hx_json_get(figure->spec, "x", JSON_OBJECT, true, where, &x, err));
    member_path(member, "%s: x", where);
    DM_TRY(hx_json_check(x, known, member, err));
    DM_TRY(read_text(x, "option", false, NULL, member, &figure->x_option, err));
    DM_TRY(read_text(x, "label", true, NULL, member, &figure->x_label, err));
    DM_TRY(read_factor(x, member, &figure->x_factor, err));
    DM_TRY(read_flag(x, "log", member, &figure->x_log, err));
    DM_TRY(hx_json_get(x, "cases", JSON_ARRAY, false, member, &cases, err));
    if ((cases == NULL) == (figure->x_option == NULL)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: needs either 'option' or 'cases'", member);
    }
    if (cases != NULL) {
        member_path(member, "%s: x.cases", where);
        DM_TRY(read_items(cases, false, member, &figure->cases, &figure->case_count, err));
        return drop_absent_cases(figure, member, err);
    }
    const char *name = json_object_get(scale, "x") != NULL || figure->divisor == 0 ? figure->scale : "paper";
    const json_t *scales = json_object_get(figure->spec, "scales");
    figure->cases_as_is = strcmp(name, "paper") != 0;
    member_path(member, "%s: scales.%s", where, name);
    DM_TRY(hx_json_get(json_object_get(scales, name), "x", JSON_ARRAY, true, member, &values, err));
    member_path(member, "%s: scales.%s.x", where, name);
    return read_values(figure, values, member, err);
}

/* ---- plots ------------------------------------------------------------------------------------------------------ */

/* A column's name goes into the table's header and, quoted, into the gnuplot program. */
static bool is_column_name(const char *name) {
    return name[0] != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* An optional list of paths. */
static int read_paths(const json_t *object, const char *name, const char *where, const json_t **paths,
                      struct dm_err *err) {
    DM_TRY(hx_json_get(object, name, JSON_ARRAY, false, where, paths, err));
    for (size_t i = 0; i < json_array_size(*paths); i++) {
        if (!json_is_string(json_array_get(*paths, i))) {
            return dm_fail(err, DM_ERR_INVALID, "%s.%s[%zu]: must be a string", where, name, i);
        }
    }
    return 0;
}

/* How a number is found. */
static int read_formula(const json_t *object, const char *where, struct hx_fig_metric *metric, struct dm_err *err) {
    DM_TRY(read_text(object, "path", true, NULL, where, &metric->path, err));
    DM_TRY(read_paths(object, "over", where, &metric->over, err));
    DM_TRY(read_paths(object, "plus", where, &metric->plus, err));
    metric->otherwise = json_object_get(object, "else");
    if (metric->otherwise != NULL && !json_is_string(metric->otherwise) && !json_is_number(metric->otherwise)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.else: must be a path or a number", where);
    }
    DM_TRY(read_flag(object, "host_time", where, &metric->host_time, err));
    return read_factor(object, where, &metric->factor, err);
}

int hx_fig_metric_read(const json_t *object, const char *where, struct hx_fig_metric *metric, struct dm_err *err) {
    static const char *const known[] = {"path", "over", "plus", "else", "factor", "host_time", NULL};
    DM_TRY(hx_json_check(object, known, where, err));
    return read_formula(object, where, metric, err);
}

static int read_metric(const json_t *object, const char *where, struct hx_fig_metric *metric, struct dm_err *err) {
    static const char *const known[] = {"path", "over", "plus", "else", "column", "label", "factor", "host_time", NULL};
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_text(object, "column", true, "", where, &metric->column, err));
    DM_TRY(read_text(object, "label", false, "", where, &metric->label, err));
    if (!is_column_name(metric->column)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.column: '%s' is not made of small letters, digits and _", where,
                       metric->column);
    }
    return read_formula(object, where, metric, err);
}

/* A plot over time draws columns of `over_time`; runs have them only if they are asked for an interval. */
static int read_time(const struct hx_figure *figure, const char *where, struct hx_fig_plot *plot, struct dm_err *err) {
    static const struct hx_fig_metric time = {
        .path = "over_time.time_s", .column = "time_ms", .label = "time (ms)", .factor = 1000};
    if (plot->by_metric) {
        return dm_fail(err, DM_ERR_INVALID, "%s.x: a plot of kind time has time as x", where);
    }
    if (json_object_get(figure->config, "interval") == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "%s.kind: time needs an 'interval' in the figure's config", where);
    }
    plot->over_time = plot->by_metric = true;
    plot->x = time;
    return 0;
}

static int read_kind(const struct hx_figure *figure, const json_t *object, const char *where, struct hx_fig_plot *plot,
                     struct dm_err *err) {
    static const char *const kinds[] = {"line", "bar", "time", "stack", "table"};
    const char *kind, *reference;
    DM_TRY(read_text(object, "kind", true, NULL, where, &kind, err));
    plot->stacked = strcmp(kind, "stack") == 0;
    plot->bars = plot->stacked || strcmp(kind, "bar") == 0;
    plot->table = strcmp(kind, "table") == 0;
    if (strcmp(kind, "time") == 0) {
        DM_TRY(read_time(figure, where, plot, err));
    } else if (!plot->bars && !plot->table && strcmp(kind, "line") != 0) {
        return dm_fail_in(err, hx_fail_unknown(err, "kind", kind, kinds, DM_ARRAY_LEN(kinds)), "%s.kind", where);
    }
    if (plot->stacked && figure->series_count > 1) {
        return dm_fail(err, DM_ERR_INVALID, "%s.kind: stack shows the parts of one series, not of several", where);
    }
    if (plot->table && figure->panel_count > 1) {
        return dm_fail(err, DM_ERR_INVALID, "%s.kind: a table has no panels", where);
    }
    if (!plot->bars && !plot->table && figure->x_option == NULL && !plot->by_metric) {
        return dm_fail(err, DM_ERR_INVALID, "%s.kind: named cases are drawn as bars: use \"bar\"", where);
    }
    DM_TRY(read_text(object, "relative_to", false, NULL, where, &reference, err));
    plot->reference = SIZE_MAX;
    for (size_t i = 0; reference != NULL && i < figure->case_count; i++) {
        if (strcmp(figure->cases[i].label, reference) == 0) {
            plot->reference = i;
        }
    }
    if (reference != NULL && (plot->reference == SIZE_MAX || !plot->bars)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.relative_to: '%s' is not a case of a bar plot", where, reference);
    }
    return 0;
}

/* Without `y_log` the values decide. */
static int read_scale_of_y(const json_t *object, const char *where, struct hx_fig_plot *plot, struct dm_err *err) {
    bool log;
    const json_t *limit;
    DM_TRY(read_flag(object, "y_log", where, &log, err));
    DM_TRY(hx_json_get(object, "y_max", JSON_REAL, false, where, &limit, err));
    plot->y_scale = json_object_get(object, "y_log") == NULL ? HX_Y_BY_DATA : log ? HX_Y_LOG : HX_Y_LINEAR;
    plot->y_limit = json_number_value(limit);
    return limit == NULL || plot->y_limit > 0 ? 0 : dm_fail(err, DM_ERR_INVALID, "%s.y_max: must be positive", where);
}

static int read_plot(const struct hx_figure *figure, const json_t *object, const char *where, struct hx_fig_plot *plot,
                     struct dm_err *err) {
    static const char *const known[] = {"id",      "title", "kind",  "x",           "x_log", "y",
                                        "y_label", "y_log", "y_max", "relative_to", NULL};
    const json_t *x, *y;
    char member[WHERE_BYTES];
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_text(object, "id", true, "", where, &plot->id, err));
    DM_TRY(read_text(object, "title", false, figure->title, where, &plot->title, err));
    DM_TRY(read_text(object, "y_label", true, NULL, where, &plot->y_label, err));
    DM_TRY(read_flag(object, "x_log", where, &plot->x_log, err));
    DM_TRY(read_scale_of_y(object, where, plot, err));
    DM_TRY(hx_json_get(object, "x", JSON_OBJECT, false, where, &x, err));
    if (!is_column_name(plot->id)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.id: '%s' is not made of small letters, digits and _", where, plot->id);
    }
    if (x != NULL) {
        plot->by_metric = true;
        member_path(member, "%s.x", where);
        DM_TRY(read_metric(x, member, &plot->x, err));
    } else {
        plot->x_log = figure->x_log;
    }
    DM_TRY(read_kind(figure, object, where, plot, err));
    DM_TRY(hx_json_get(object, "y", JSON_ARRAY, true, where, &y, err));
    plot->y_count = json_array_size(y);
    int most = (plot->bars && !plot->stacked) || plot->over_time ? 1 : HX_METRICS_MAX;
    if (plot->y_count == 0 || plot->y_count > (size_t)most) {
        return dm_fail(err, DM_ERR_INVALID, "%s.y: needs 1 to %d metrics", where, most);
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        member_path(member, "%s.y[%zu]", where, i);
        DM_TRY(read_metric(json_array_get(y, i), member, &plot->y[i], err));
    }
    if (plot->over_time && strncmp(plot->y[0].path, "over_time.", strlen("over_time.")) != 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s.y[0].path: '%s' is not a column of over_time", where, plot->y[0].path);
    }
    return 0;
}

static int read_plots(struct hx_figure *figure, const char *where, struct dm_err *err) {
    const json_t *array;
    void *memory = NULL;
    char member[WHERE_BYTES];
    DM_TRY(hx_json_get(figure->spec, "plots", JSON_ARRAY, true, where, &array, err));
    member_path(member, "%s: plots", where);
    DM_TRY(make_array(array, member, sizeof(*figure->plots), &memory, &figure->plot_count, err));
    figure->plots = memory;
    for (size_t i = 0; i < figure->plot_count; i++) {
        member_path(member, "%s: plots[%zu]", where, i);
        DM_TRY(read_plot(figure, json_array_get(array, i), member, &figure->plots[i], err));
    }
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int check_scaled(struct hx_figure *figure, const char *where, struct dm_err *err) {
    DM_TRY(hx_json_get(figure->spec, "scaled", JSON_ARRAY, false, where, &figure->scaled, err));
    for (size_t i = 0; i < json_array_size(figure->scaled); i++) {
        if (!json_is_string(json_array_get(figure->scaled, i))) {
            return dm_fail(err, DM_ERR_INVALID, "%s: scaled[%zu]: must be a string", where, i);
        }
    }
    return 0;
}

static bool is_named_scale(const char *scale) {
    return strcmp(scale, "quick") == 0 || strcmp(scale, "paper") == 0;
}

int hx_figure_check_scale(const char *option, const char *scale, struct dm_err *err) {
    double factor = 1;
    int rc = is_named_scale(scale) ? 0 : dm_parse_real(scale, &factor, NULL);
    if (rc == 0 && factor >= 1 && factor <= 1e6 && strlen(scale) <= 20) {
        return 0;
    }
    return dm_fail(err, DM_ERR_INVALID,
                   "%s: '%.40s' is neither quick nor paper nor a number from 1 to 1000000 that the paper's sizes are "
                   "divided by",
                   option, scale);
}

/* Options that are divided by a number of their own. */
static int read_divisors(struct hx_figure *figure, const json_t *scale, const char *where, struct dm_err *err) {
    const char *option;
    json_t *divisor;
    DM_TRY(hx_json_get(scale, "factors", JSON_OBJECT, false, where, &figure->divisors, err));
    json_object_foreach((json_t *)figure->divisors, option, divisor) {
        if (!json_is_number(divisor) || json_number_value(divisor) < 1) {
            return dm_fail(err, DM_ERR_INVALID, "%s.factors.%s: must be a number of at least 1", where, option);
        }
    }
    return 0;
}

/* What is run where the paper's sizes take too much memory: a power of ten by which they are divided. */
static int read_share(struct hx_figure *figure, const json_t *scale, const char *where, struct dm_err *err) {
    const json_t *share;
    DM_TRY(hx_json_get(scale, "share", JSON_INTEGER, false, where, &share, err));
    json_int_t divisor = json_integer_value(share);
    if (share == NULL) {
        return 0;
    }
    if (divisor != 10 && divisor != 100 && divisor != 1000) {
        return dm_fail(err, DM_ERR_INVALID, "%s.share: must be 10, 100 or 1000, by which sizes are divided", where);
    }
    figure->divisor = (double)divisor;
    snprintf(figure->scale, sizeof(figure->scale), "1/%lld of paper", (long long)divisor);
    return 0;
}

/* How many runs each point has, unless a user asks for another number. */
static int read_seeds(struct hx_figure *figure, const json_t *scale, const char *where, struct dm_err *err) {
    const json_t *seeds;
    DM_TRY(hx_json_get(scale, "seeds", JSON_INTEGER, false, where, &seeds, err));
    json_int_t count = seeds != NULL ? json_integer_value(seeds) : 1;
    if (count < 1 || count > HX_FIG_REPEAT_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%s.seeds: must be from 1 to %d", where, HX_FIG_REPEAT_MAX);
    }
    figure->repeat = (unsigned)count;
    return 0;
}

/* A member of `scales`: either a complete configuration, or a factor and what differs. */
static int read_named_scale(struct hx_figure *figure, const json_t *scales, const char *where, const json_t **scale,
                            struct dm_err *err) {
    static const char *const known[] = {"factor", "factors", "config", "x", "seeds", NULL};
    static const char *const paper_known[] = {"config", "x", "share", "seeds", NULL};
    char member[WHERE_BYTES];
    member_path(member, "%s: scales", where);
    DM_TRY(hx_json_get(scales, figure->scale, JSON_OBJECT, true, member, scale, err));
    member_path(member, "%s: scales.%s", where, figure->scale);
    bool is_paper = strcmp(figure->scale, "paper") == 0;
    DM_TRY(hx_json_check(*scale, is_paper ? paper_known : known, member, err));
    DM_TRY(read_seeds(figure, *scale, member, err));
    if (is_paper) {
        DM_TRY(read_share(figure, *scale, member, err));
    }
    if (figure->divisor > 0) {
        *scale = NULL;
        return 0;
    }
    const json_t *factor, *config;
    DM_TRY(hx_json_get(*scale, "factor", JSON_REAL, false, member, &factor, err));
    DM_TRY(hx_json_get(*scale, "config", JSON_OBJECT, factor == NULL, member, &config, err));
    figure->scale_config = config;
    if (factor == NULL) {
        return 0;
    }
    figure->divisor = json_number_value(factor);
    figure->over_config = config;
    DM_TRY(read_divisors(figure, *scale, member, err));
    return figure->divisor >= 1 ? 0 : dm_fail(err, DM_ERR_INVALID, "%s.factor: must be at least 1", member);
}

static int read_scale(struct hx_figure *figure, const char *asked, const char *where, const json_t **scale,
                      struct dm_err *err) {
    static const char *const names[] = {"quick", "paper", NULL};
    const json_t *scales, *paper;
    char member[WHERE_BYTES];
    DM_TRY(check_scaled(figure, where, err));
    DM_TRY(hx_json_get(figure->spec, "scales", JSON_OBJECT, true, where, &scales, err));
    member_path(member, "%s: scales", where);
    DM_TRY(hx_json_check(scales, names, member, err));
    if (is_named_scale(asked)) {
        snprintf(figure->scale, sizeof(figure->scale), "%s", asked);
        DM_TRY(read_named_scale(figure, scales, where, scale, err));
    } else {
        DM_TRY(hx_figure_check_scale("--scale", asked, err));
        DM_TRY(dm_parse_real(asked, &figure->divisor, err));
        snprintf(figure->scale, sizeof(figure->scale), "1/%.20s", asked);
        *scale = NULL;
    }
    if (figure->divisor == 0) {
        return 0;
    }
    DM_TRY(hx_json_get(scales, "paper", JSON_OBJECT, true, member, &paper, err));
    member_path(member, "%s: scales.paper", where);
    return hx_json_get(paper, "config", JSON_OBJECT, true, member, &figure->scale_config, err);
}

static int read_all(struct hx_figure *figure, const char *plots, const char *id, const char *asked, const char *where,
                    struct dm_err *err) {
    static const char *const known[] = {"id",       "title",       "shows",     "keeps", "config", "scales",
                                        "scaled",   "panels",      "series",    "x",     "plots",  "from",
                                        "readings", "experiments", "published", "own",   NULL};
    const json_t *scale;
    DM_TRY(hx_json_check(figure->spec, known, where, err));
    DM_TRY(read_text(figure->spec, "id", true, NULL, where, &figure->id, err));
    DM_TRY(read_text(figure->spec, "title", true, NULL, where, &figure->title, err));
    DM_TRY(read_text(figure->spec, "shows", true, NULL, where, &figure->shows, err));
    DM_TRY(read_text(figure->spec, "keeps", true, NULL, where, &figure->keeps, err));
    DM_TRY(read_flag(figure->spec, "own", where, &figure->is_own, err));
    DM_TRY(hx_json_get(figure->spec, "config", JSON_OBJECT, true, where, &figure->config, err));
    if (strcmp(figure->id, id) != 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: id: '%s' must be the file's name, '%s'", where, figure->id, id);
    }
    DM_TRY(read_scale(figure, asked, where, &scale, err));
    DM_TRY(read_panels(figure, where, err));
    DM_TRY(hx_fig_styles_load(plots, &figure->styles, err));
    DM_TRY(read_series(figure, where, err));
    DM_TRY(read_x(figure, scale, where, err));
    DM_TRY(hx_fig_provenance_check(figure->spec, where, err));
    DM_TRY(hx_fig_overlays_read(figure->spec, strcmp(asked, "paper") == 0, where, &figure->overlays, err));
    DM_TRY(read_plots(figure, where, err));
    return hx_fig_published_read(figure, where, &figure->published, &figure->published_count, err);
}

int hx_figure_load(const char *plots, const char *id, const char *scale, struct hx_figure **figure,
                   struct dm_err *err) {
    char path[WHERE_BYTES];
    *figure = calloc(1, sizeof(**figure));
    if (*figure == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for figure '%s'", id);
    }
    member_path(path, "%s/figures/%s.json", plots, id);
    (*figure)->repeat = 1;
    (*figure)->spec = dm_json_load(path, err);
    int rc = (*figure)->spec != NULL ? read_all(*figure, plots, id, scale, path, err)
             : err != NULL           ? err->code
                                     : DM_ERR_INVALID;
    if (rc < 0) {
        hx_figure_free(*figure);
        *figure = NULL;
    }
    return rc;
}

void hx_figure_free(struct hx_figure *figure) {
    if (figure == NULL) {
        return;
    }
    free(figure->panels);
    free(figure->series);
    free(figure->cases);
    free(figure->plots);
    free(figure->points);
    free(figure->published);
    free(figure->absent);
    hx_fig_overlays_free(&figure->overlays);
    json_decref(figure->styles);
    json_decref(figure->cases_config);
    json_decref(figure->spec);
    free(figure);
}

static int is_spec(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

int hx_figure_ids(const char *plots, char ***ids, struct dm_err *err) {
    return hx_spec_ids(plots, "figures", ids, err);
}

int hx_spec_ids(const char *plots, const char *folder, char ***ids, struct dm_err *err) {
    char path[WHERE_BYTES];
    struct dirent **entries = NULL;
    member_path(path, "%s/%s", plots, folder);
    int count = scandir(path, &entries, is_spec, alphasort);
    if (count < 0) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot read the folder: %s", path, strerror(errno));
    }
    *ids = calloc((size_t)count + 1, sizeof(**ids));
    int rc = *ids == NULL ? DM_ERR_NO_MEMORY : 0;
    for (int i = 0; i < count; i++) {
        if (rc == 0) {
            (*ids)[i] = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 5);
            rc = (*ids)[i] == NULL ? DM_ERR_NO_MEMORY : 0;
        }
        free(entries[i]);
    }
    free(entries);
    if (rc < 0) {
        hx_figure_ids_free(*ids);
        *ids = NULL;
        return dm_fail(err, rc, "no memory for the list of %s", folder);
    }
    return 0;
}

/* Whether the id ends in the number of the paper's figure that `name` ends in: "chime-12" for "fig12". */
static bool has_number_of(const char *id, const char *name) {
    const char *number = name + strcspn(name, "0123456789");
    const char *dash = strchr(id, '-');
    return number[0] != '\0' && dash != NULL && strcasecmp(dash + 1, number) == 0;
}

int hx_figure_fail_unknown(struct dm_err *err, const char *name, const char *const *ids, size_t count) {
    char near[160] = "";
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof(near); i++) {
        if (has_number_of(ids[i], name)) {
            length += (size_t)snprintf(near + length, sizeof(near) - length, "%s%s", length > 0 ? " or " : "", ids[i]);
        }
    }
    return dm_suggest(name, ids, count) != NULL || near[0] == '\0'
               ? hx_fail_unknown(err, "figure", name, ids, count)
               : dm_fail(err, DM_ERR_INVALID, "unknown figure '%.40s' (did you mean %s? --list shows all)", name, near);
}

void hx_figure_ids_free(char **ids) {
    for (size_t i = 0; ids != NULL && ids[i] != NULL; i++) {
        free(ids[i]);
    }
    free(ids);
}

/* ---- questions about a figure ----------------------------------------------------------------------------------- */

/* The options that are divided, unless the spec lists its own. */
static const char *const usually_scaled[] = {"keys", "ops", "warmup", "cache"};

size_t hx_figure_scaled(const struct hx_figure *figure) {
    return figure->scaled != NULL ? json_array_size(figure->scaled) : DM_ARRAY_LEN(usually_scaled);
}

const char *hx_figure_scaled_option(const struct hx_figure *figure, size_t i) {
    return figure->scaled != NULL ? json_string_value(json_array_get(figure->scaled, i)) : usually_scaled[i];
}

double hx_figure_divisor(const struct hx_figure *figure, const char *option) {
    bool scaled = false;
    for (size_t i = 0; i < hx_figure_scaled(figure); i++) {
        scaled = scaled || strcmp(hx_figure_scaled_option(figure, i), option) == 0;
    }
    const json_t *own = json_object_get(figure->divisors, option);
    return !scaled || figure->divisor == 0 ? 1 : own != NULL ? json_number_value(own) : figure->divisor;
}

void hx_fig_absent_text(const struct hx_figure *figure, char *text, size_t capacity) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < figure->absent_count && length < capacity; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++) {
            again = again || strcmp(figure->absent[i].label, figure->absent[k].label) == 0;
        }
        if (!again) {
            length += (size_t)snprintf(text + length, capacity - length, "%s%s",
                                       length > 0 ? ", " : "not built here: ", figure->absent[i].label);
        }
    }
}
