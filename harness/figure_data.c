/* SPDX-License-Identifier: Apache-2.0
 *
 * A figure's points, what they measured, and the tables that plots are drawn from.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/opt_json.h"
#include "harness/figure.h"
#include "harness/result_set.h"
#include "harness/tree.h"

enum { LABEL_BYTES = 256 };

/* ---- points ----------------------------------------------------------------------------------------------------- */

/* The configuration of one place: figure, scale, panel, series, case. */
static json_t *place_config(const struct hx_figure *figure, size_t panel, size_t series, size_t at) {
    const json_t *parts[] = {figure->scale_config, figure->panels[panel].config, figure->series[series].config,
                             figure->cases[at].config};
    json_t *config = hx_tree_merge(figure->config, NULL);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && config != NULL; i++) {
        json_t *merged = hx_tree_merge(config, parts[i]);
        json_decref(config);
        config = merged;
    }
    return config;
}

/* What sets a place apart: "sherman-clients: YCSB A, Sherman, clients 64". */
static void place_label(const struct hx_figure *figure, size_t panel, size_t series, size_t at, const json_t *config,
                        char label[LABEL_BYTES]) {
    char value[64] = "";
    if (figure->x_option != NULL) {
        const json_t *number = hx_tree_find(config, figure->x_option);
        char *text = json_dumps(number, JSON_ENCODE_ANY);
        snprintf(value, sizeof(value), "%s %s", figure->x_option, text != NULL ? text : "?");
        free(text);
    }
    snprintf(label, LABEL_BYTES, "%s: %s%s%s, %s", figure->id, figure->panels[panel].label,
             figure->panels[panel].label[0] != '\0' ? ", " : "", figure->series[series].label,
             figure->x_option != NULL ? value : figure->cases[at].label);
    for (char *newline = strchr(label, '\n'); newline != NULL; newline = strchr(newline, '\n')) {
        *newline = ' ';
    }
}

int hx_figure_points(struct hx_figure *figure, struct hx_points *points, struct dm_err *err) {
    size_t count = figure->panel_count * figure->series_count * figure->case_count;
    figure->points = calloc(count, sizeof(*figure->points));
    if (figure->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for %zu points", figure->id, count);
    }
    for (size_t place = 0; place < count; place++) {
        size_t at = place % figure->case_count;
        size_t series = place / figure->case_count % figure->series_count;
        size_t panel = place / figure->case_count / figure->series_count;
        char label[LABEL_BYTES];
        json_t *config = place_config(figure, panel, series, at);
        if (config == NULL) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for its points", figure->id);
        }
        place_label(figure, panel, series, at, config, label);
        int rc = hx_points_add(points, config, label, label, &figure->points[place], err);
        json_decref(config);
        DM_TRY(rc);
    }
    return 0;
}

int hx_fig_data_load(const struct hx_figure *figure, const struct hx_points *points, struct hx_fig_data *data,
                     struct dm_err *err) {
    size_t count = figure->panel_count * figure->series_count * figure->case_count;
    *data = (struct hx_fig_data){.results = calloc(count, sizeof(*data->results))};
    if (data->results == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for its results", figure->id);
    }
    for (size_t place = 0; place < count; place++) {
        data->results[place] = hx_points_load(points, figure->points[place], NULL);
        data->missing += data->results[place] == NULL;
    }
    return 0;
}

void hx_fig_data_fini(const struct hx_figure *figure, struct hx_fig_data *data) {
    size_t count = figure->panel_count * figure->series_count * figure->case_count;
    for (size_t place = 0; place < count && data->results != NULL; place++) {
        json_decref(data->results[place]);
    }
    free(data->results);
    *data = (struct hx_fig_data){.results = NULL};
}

size_t hx_fig_data_missing(const struct hx_figure *figure, const struct hx_fig_data *data, size_t panel) {
    size_t missing = 0;
    for (size_t series = 0; series < figure->series_count; series++) {
        for (size_t at = 0; at < figure->case_count; at++) {
            missing += data->results[hx_figure_at(figure, panel, series, at)] == NULL;
        }
    }
    return missing;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

double hx_fig_metric_value(const struct hx_fig_metric *metric, const json_t *result) {
    double value = hx_result_number(result, metric->path) * metric->factor;
    double sum = 0;
    for (size_t i = 0; i < json_array_size(metric->over); i++) {
        sum += hx_result_number(result, json_string_value(json_array_get(metric->over, i)));
    }
    if (metric->over == NULL) {
        return value;
    }
    return sum > 0 ? value / sum : NAN;
}

double hx_figure_x(const struct hx_figure *figure, const struct hx_points *points, size_t place, size_t at) {
    if (figure->x_option == NULL) {
        return (double)at;
    }
    const json_t *value = hx_tree_find(points->items[figure->points[place]].config, figure->x_option);
    return json_is_number(value) ? json_number_value(value) * figure->x_factor : NAN;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int temporary_path(const char *path, char temporary[4096]) {
    return snprintf(temporary, 4096, "%s.tmp.%d", path, (int)getpid()) < 4096 ? 0 : DM_ERR_IO;
}

FILE *hx_fig_file_open(const char *path, struct dm_err *err) {
    char temporary[4096];
    FILE *file = temporary_path(path, temporary) == 0 ? fopen(temporary, "w") : NULL;
    if (file == NULL) {
        dm_fail(err, DM_ERR_IO, "%s: cannot write it: %s", path, strerror(errno));
    }
    return file;
}

int hx_fig_file_close(FILE *file, const char *path, struct dm_err *err) {
    char temporary[4096];
    bool bad = ferror(file) != 0;
    bad = fclose(file) != 0 || bad;
    if (temporary_path(path, temporary) < 0 || bad || rename(temporary, path) != 0) {
        int reason = errno;
        unlink(temporary);
        return dm_fail(err, DM_ERR_IO, "%s: cannot write it: %s", path, strerror(reason));
    }
    return 0;
}

static void print_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        fputc(*text == '\n' || *text == '\t' ? ' ' : *text, file);
    }
}

static void print_number(FILE *file, double value) {
    if (isfinite(value)) {
        fprintf(file, "\t%.10g", value);
    } else {
        fprintf(file, "\tNaN");
    }
}

static void table_header(const struct hx_figure *figure, const struct hx_fig_plot *plot, FILE *file) {
    fprintf(file, "panel\tseries\tposition\tcase");
    if (figure->x_option != NULL) {
        fprintf(file, "\tx");
    }
    if (plot->by_metric) {
        fprintf(file, "\t%s", plot->x.column);
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        fprintf(file, "\t%s", plot->y[i].column);
    }
    fprintf(file, "%s\tpoint\n", plot->reference != SIZE_MAX ? "\tgain" : "");
}

static void table_row(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                      const struct hx_fig_data *data, size_t panel, size_t series, size_t at, FILE *file) {
    size_t place = hx_figure_at(figure, panel, series, at);
    const json_t *result = data->results[place];
    double x = hx_figure_x(figure, points, place, at);
    print_text(file, figure->panels[panel].label);
    fputc('\t', file);
    print_text(file, figure->series[series].label);
    fprintf(file, "\t%zu\t", at);
    if (figure->x_option != NULL) {
        fprintf(file, "%.10g", x);
        print_number(file, x);
    } else {
        print_text(file, figure->cases[at].label);
    }
    if (plot->by_metric) {
        print_number(file, hx_fig_metric_value(&plot->x, result));
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        print_number(file, hx_fig_metric_value(&plot->y[i], result));
    }
    if (plot->reference != SIZE_MAX) {
        const json_t *reference = data->results[hx_figure_at(figure, panel, series, plot->reference)];
        print_number(file, hx_fig_metric_value(&plot->y[0], result) / hx_fig_metric_value(&plot->y[0], reference));
    }
    fprintf(file, "\t%s\n", points->items[figure->points[place]].hash);
}

int hx_fig_table(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                 const struct hx_fig_data *data, const char *path, struct dm_err *err) {
    FILE *file = hx_fig_file_open(path, err);
    if (file == NULL) {
        return DM_ERR_IO;
    }
    table_header(figure, plot, file);
    for (size_t panel = 0; panel < figure->panel_count; panel++) {
        for (size_t series = 0; series < figure->series_count; series++) {
            for (size_t at = 0; at < figure->case_count; at++) {
                table_row(figure, plot, points, data, panel, series, at, file);
            }
        }
    }
    return hx_fig_file_close(file, path, err);
}

/* ---- the footer ------------------------------------------------------------------------------------------------- */

/* The value that an option has in all points of the figure, or NULL if they differ. */
static const json_t *common_option(const struct hx_figure *figure, const struct hx_points *points, const char *name) {
    size_t count = figure->panel_count * figure->series_count * figure->case_count;
    const json_t *common = json_object_get(points->items[figure->points[0]].config, name);
    for (size_t place = 1; place < count && common != NULL; place++) {
        if (!json_equal(common, json_object_get(points->items[figure->points[place]].config, name))) {
            common = NULL;
        }
    }
    return common;
}

/* 60000000 as "60 M". */
static void count_format(double number, char *text, size_t capacity) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " K"}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (number >= units[i].unit) {
            snprintf(text, capacity, "%.4g%s", number / units[i].unit, units[i].name);
            return;
        }
    }
    snprintf(text, capacity, "%.4g", number);
}

static const char *time_base_text(const struct hx_figure *figure, const struct hx_fig_data *data) {
    size_t count = figure->panel_count * figure->series_count * figure->case_count;
    size_t virtual_count = 0, real_count = 0;
    for (size_t place = 0; place < count; place++) {
        const char *base = json_string_value(json_object_get(data->results[place], "time_base"));
        virtual_count += base != NULL && strcmp(base, "virtual") == 0;
        real_count += base != NULL && strcmp(base, "real") == 0;
    }
    if (virtual_count > 0 && real_count > 0) {
        return "virtual and real time mixed";
    }
    return real_count > 0 ? "measured (real time)" : "simulated (virtual time)";
}

void hx_fig_footer(const struct hx_figure *figure, const struct hx_points *points, const struct hx_fig_data *data,
                   char *text, size_t capacity) {
    static const struct {
        const char *option, *one, *many;
    } parts[] = {{"cns", "CN", "CNs"}, {"mns", "MN", "MNs"}, {"clients", "client", "clients"}, {"keys", "key", "keys"}};
    char cluster[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const json_t *value = common_option(figure, points, parts[i].option);
        if (json_is_number(value) && length < sizeof(cluster)) {
            char number[32];
            count_format(json_number_value(value), number, sizeof(number));
            length += (size_t)snprintf(cluster + length, sizeof(cluster) - length, ", %s %s", number,
                                       json_number_value(value) > 1 ? parts[i].many : parts[i].one);
        }
    }
    const char *profile = json_string_value(common_option(figure, points, "profile"));
    snprintf(text, capacity, "%s, profile %s%s, scale %s", time_base_text(figure, data),
             profile != NULL ? profile : "differs", cluster, figure->scale);
}
