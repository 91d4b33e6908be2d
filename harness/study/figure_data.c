/* SPDX-License-Identifier: Apache-2.0
 *
 * A figure's points, what they measured, and the tables that plots are drawn from.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "common/stats.h"
#include "harness/base/json.h"
#include "harness/study/figure.h"
#include "harness/study/result_set.h"

enum { LABEL_BYTES = 256 };

/* ---- points ----------------------------------------------------------------------------------------------------- */

static const char *const usually_scaled[] = {"keys", "ops", "warmup", "cache"};

double hx_figure_divisor(const struct hx_figure *figure, const char *option) {
    bool scaled = false;
    for (size_t i = 0; figure->scaled == NULL && i < DM_ARRAY_LEN(usually_scaled); i++) {
        scaled = scaled || strcmp(usually_scaled[i], option) == 0;
    }
    for (size_t i = 0; i < json_array_size(figure->scaled); i++) {
        scaled = scaled || strcmp(json_string_value(json_array_get(figure->scaled, i)), option) == 0;
    }
    const json_t *own = json_object_get(figure->divisors, option);
    return !scaled || figure->divisor == 0 ? 1 : own != NULL ? json_number_value(own) : figure->divisor;
}

/* Divides a number that may have a unit ("60M", "100MB") by what the figure says. */
static int divide(const struct hx_figure *figure, json_t *config, const char *path, struct dm_err *err) {
    const json_t *value = hx_tree_find(config, path);
    uint64_t number = 0;
    if (value == NULL) {
        return 0;
    }
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        if (dm_parse_count(text, &number, NULL) < 0 && dm_parse_bytes(text, &number, NULL) < 0) {
            return dm_fail(err, DM_ERR_INVALID, "figure %s: %s: '%.40s' is no number to scale", figure->id, path, text);
        }
    } else if (json_is_integer(value) && json_integer_value(value) >= 0) {
        number = (uint64_t)json_integer_value(value);
    } else {
        return dm_fail(err, DM_ERR_INVALID, "figure %s: %s: is no whole number to scale", figure->id, path);
    }
    double scaled = (double)number / hx_figure_divisor(figure, path);
    json_t *smaller = json_integer((json_int_t)(number > 0 && scaled < 1 ? 1 : scaled + 0.5));
    int rc = smaller == NULL ? DM_ERR_NO_MEMORY : hx_tree_put(config, path, smaller);
    json_decref(smaller);
    return rc < 0 ? dm_fail(err, rc, "figure %s: no memory", figure->id) : 0;
}

static int divide_all(const struct hx_figure *figure, json_t *config, struct dm_err *err) {
    for (size_t i = 0; figure->scaled == NULL && i < DM_ARRAY_LEN(usually_scaled); i++) {
        DM_TRY(divide(figure, config, usually_scaled[i], err));
    }
    for (size_t i = 0; i < json_array_size(figure->scaled); i++) {
        DM_TRY(divide(figure, config, json_string_value(json_array_get(figure->scaled, i)), err));
    }
    return 0;
}

/* Puts `over` over *config; NULL changes nothing. */
static int put_over(json_t **config, const json_t *over, struct dm_err *err) {
    json_t *merged = hx_tree_merge(*config, over);
    json_decref(*config);
    *config = merged;
    return merged != NULL ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points");
}

/* The configuration of one place and seed: figure, scale, panel, series, what a smaller scale says, case. */
static int place_config(const struct hx_figure *figure, size_t panel, size_t series, size_t at, json_t **config,
                        struct dm_err *err) {
    const json_t *parts[] = {figure->config, figure->scale_config, figure->panels[panel].config,
                             figure->series[series].config};
    json_t *case_config = hx_tree_merge(figure->cases[at].config, NULL);
    int rc = case_config == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points") : 0;
    *config = NULL;
    for (size_t i = 0; rc == 0 && i < DM_ARRAY_LEN(parts); i++) {
        rc = put_over(config, parts[i], err);
    }
    if (rc == 0 && figure->divisor > 0) {
        rc = divide_all(figure, *config, err);
        rc = rc < 0 || figure->cases_as_is ? rc : divide_all(figure, case_config, err);
    }
    rc = rc < 0 ? rc : put_over(config, figure->over_config, err);
    rc = rc < 0 ? rc : put_over(config, case_config, err);
    if (rc == 0 && figure->profile != NULL) {
        rc = json_object_set_new(*config, "profile", json_string(figure->profile)) == 0
                 ? 0
                 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points");
    }
    json_decref(case_config);
    return rc;
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

/* The points of a place, one a seed; the seeds follow the first one. */
static int add_seeds(struct hx_figure *figure, struct hx_points *points, size_t place, json_t *config,
                     const char *label, struct dm_err *err) {
    const json_t *seed = json_object_get(config, "seed");
    json_int_t first = json_is_integer(seed) ? json_integer_value(seed) : 1;
    for (unsigned i = 0; i < figure->repeat; i++) {
        if (i > 0 && json_object_set_new(config, "seed", json_integer(first + (json_int_t)i)) != 0) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for its points", figure->id);
        }
        DM_TRY(hx_points_add(points, config, label, label, &figure->points[place * figure->repeat + i], err));
    }
    return 0;
}

int hx_figure_points(struct hx_figure *figure, struct hx_points *points, struct dm_err *err) {
    size_t count = hx_figure_places(figure);
    figure->points = calloc(count * figure->repeat + 1, sizeof(*figure->points));
    if (figure->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for %zu points", figure->id, count);
    }
    for (size_t place = 0; place < count; place++) {
        size_t at = place % figure->case_count;
        size_t series = place / figure->case_count % figure->series_count;
        size_t panel = place / figure->case_count / figure->series_count;
        char label[LABEL_BYTES];
        json_t *config;
        int rc = place_config(figure, panel, series, at, &config, err);
        if (rc == 0) {
            place_label(figure, panel, series, at, config, label);
            rc = add_seeds(figure, points, place, config, label, err);
        }
        json_decref(config);
        DM_TRY(rc);
    }
    return 0;
}

static bool place_missing(const struct hx_figure *figure, const struct hx_fig_data *data, size_t place) {
    bool missing = false;
    for (unsigned i = 0; i < figure->repeat; i++) {
        missing = missing || data->results[place * figure->repeat + i] == NULL;
    }
    return missing;
}

/* Operations that found no memory, or gave up after the bound of retries, are fast or slow for nothing: what was
 * measured beside them is no point of a figure. */
static json_t *operations_done(json_t *result, const struct hx_point *point) {
    static const char *const failures[] = {"no_memory", "retry_limit"};
    const char *name;
    json_t *operation;
    json_object_foreach(json_object_get(result, "ops"), name, operation) {
        for (size_t i = 0; i < DM_ARRAY_LEN(failures); i++) {
            json_int_t count = json_integer_value(json_object_get(json_object_get(operation, "outcomes"), failures[i]));
            if (count > 0) {
                fprintf(stderr, "dmbench: point %s (%s) is not used: %lld operations (%s) ended in %s\n", point->label,
                        point->hash, (long long)count, name, failures[i]);
                json_decref(result);
                return NULL;
            }
        }
    }
    return result;
}

int hx_fig_data_load(const struct hx_figure *figure, const struct hx_points *points, struct hx_fig_data *data,
                     struct dm_err *err) {
    size_t count = hx_figure_places(figure);
    *data = (struct hx_fig_data){.results = calloc(count * figure->repeat + 1, sizeof(*data->results))};
    if (data->results == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for its results", figure->id);
    }
    for (size_t place = 0; place < count; place++) {
        for (unsigned i = 0; i < figure->repeat; i++) {
            size_t point = hx_figure_point(figure, place, i);
            json_t *result = hx_points_load(points, point, NULL);
            data->results[place * figure->repeat + i] = operations_done(result, &points->items[point]);
        }
        data->missing += place_missing(figure, data, place);
    }
    return 0;
}

void hx_fig_data_fini(const struct hx_figure *figure, struct hx_fig_data *data) {
    size_t count = hx_figure_places(figure) * figure->repeat;
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
            missing += place_missing(figure, data, hx_figure_at(figure, panel, series, at));
        }
    }
    return missing;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* Of what a list of paths leads to. */
static double numbers_sum(const json_t *result, const json_t *paths) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(paths); i++) {
        sum += hx_result_number(result, json_string_value(json_array_get(paths, i)));
    }
    return sum;
}

double hx_fig_metric_value(const struct hx_fig_metric *metric, const json_t *result) {
    double value = (hx_result_number(result, metric->path) + numbers_sum(result, metric->plus)) * metric->factor;
    double sum = numbers_sum(result, metric->over);
    double found = metric->over == NULL ? value : sum > 0 ? value / sum : NAN;
    return metric->otherwise != NULL && !isfinite(found) ? hx_result_number(result, metric->otherwise) * metric->factor
                                                         : found;
}

struct hx_fig_value hx_fig_value(const struct hx_figure *figure, const struct hx_fig_data *data,
                                 const struct hx_fig_metric *metric, size_t place) {
    enum { ROUNDS = 1000, SEED = 1 };
    static const struct hx_fig_value none = {NAN, NAN, NAN};
    double values[HX_FIG_REPEAT_MAX];
    for (unsigned i = 0; i < figure->repeat; i++) {
        values[i] = hx_fig_metric_value(metric, data->results[place * figure->repeat + i]);
        if (!isfinite(values[i])) {
            return none;
        }
    }
    struct dm_interval interval = dm_bootstrap_median(values, figure->repeat, 0.95, ROUNDS, SEED);
    return (struct hx_fig_value){dm_median(values, figure->repeat), interval.low, interval.high};
}

double hx_figure_x(const struct hx_figure *figure, const struct hx_points *points, size_t place, size_t at) {
    if (figure->x_option == NULL) {
        return (double)at;
    }
    const json_t *value = hx_tree_find(points->items[hx_figure_point(figure, place, 0)].config, figure->x_option);
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
        if (figure->repeat > 1) {
            fprintf(file, "\t%s_low\t%s_high", plot->y[i].column, plot->y[i].column);
        }
    }
    fprintf(file, "%s\tpoint\n", plot->reference != SIZE_MAX ? "\tgain" : "");
}

static void table_row(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                      const struct hx_fig_data *data, size_t panel, size_t series, size_t at, FILE *file) {
    size_t place = hx_figure_at(figure, panel, series, at);
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
        print_number(file, hx_fig_value(figure, data, &plot->x, place).middle);
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        struct hx_fig_value value = hx_fig_value(figure, data, &plot->y[i], place);
        print_number(file, value.middle);
        if (figure->repeat > 1) {
            print_number(file, value.low);
            print_number(file, value.high);
        }
    }
    if (plot->reference != SIZE_MAX) {
        size_t reference = hx_figure_at(figure, panel, series, plot->reference);
        print_number(file, hx_fig_value(figure, data, &plot->y[0], place).middle /
                               hx_fig_value(figure, data, &plot->y[0], reference).middle);
    }
    fprintf(file, "\t");
    for (unsigned i = 0; i < figure->repeat; i++) {
        fprintf(file, "%s%s", i > 0 ? "," : "", points->items[hx_figure_point(figure, place, i)].hash);
    }
    fprintf(file, "\n");
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

/* ---- the footer ------------------------------------------------------------------------------------------------- */

/* The value that an option has in all points of the figure, or NULL if they differ. */
static const json_t *common_option(const struct hx_figure *figure, const struct hx_points *points, const char *name) {
    size_t count = hx_figure_places(figure);
    const json_t *common = json_object_get(points->items[hx_figure_point(figure, 0, 0)].config, name);
    for (size_t place = 1; place < count && common != NULL; place++) {
        if (!json_equal(common, json_object_get(points->items[hx_figure_point(figure, place, 0)].config, name))) {
            common = NULL;
        }
    }
    return common;
}

void hx_fig_count_text(double number, char *text, size_t capacity) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " K"}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (number >= 1e4 && number >= units[i].unit) {
            snprintf(text, capacity, "%.4g%s", number / units[i].unit, units[i].name);
            return;
        }
    }
    snprintf(text, capacity, "%.4g", number);
}

static const char *time_base_text(const struct hx_figure *figure, const struct hx_fig_data *data) {
    size_t count = hx_figure_places(figure) * figure->repeat;
    size_t virtual_count = 0, real_count = 0, trained_count = 0;
    for (size_t place = 0; place < count; place++) {
        const char *base = json_string_value(json_object_get(data->results[place], "time_base"));
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
            hx_fig_count_text(json_number_value(value), number, sizeof(number));
            length += (size_t)snprintf(cluster + length, sizeof(cluster) - length, ", %s %s", number,
                                       json_number_value(value) > 1 ? parts[i].many : parts[i].one);
        }
    }
    const char *profile = json_string_value(common_option(figure, points, "profile"));
    char seeds[32] = "";
    if (figure->repeat > 1) {
        snprintf(seeds, sizeof(seeds), ", %u seeds", figure->repeat);
    }
    const char *time_base = time_base_text(figure, data);
    if (hx_point_trains(&points->items[hx_figure_point(figure, 0, 0)])) {
        snprintf(text, capacity, "%s%s, scale %s%s", time_base, cluster, figure->scale, seeds);
        return;
    }
    snprintf(text, capacity, "%s, profile %s%s, scale %s%s", time_base, profile != NULL ? profile : "differs", cluster,
             figure->scale, seeds);
}
