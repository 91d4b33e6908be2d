/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a published experiment strictly: every mistake is an error that names the file and the member.
 */
#include "harness/study/experiment.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"

enum { WHERE_BYTES = 512 };

/* No published value of these kinds is beyond it. */
#define PUBLISHED_MAX 1e6

const char *const hx_exp_metric_names[HX_EXP_METRICS + 1] = {"mops",   "mean_us",         "p50_us", "p90_us",
                                                             "p99_us", "us_a_round_trip", NULL};
const char *const hx_exp_bound_names[HX_EXP_BOUNDS + 1] = {"bandwidth", "other", NULL};

/* Formats the path of a member, with which errors begin; a very long one is cut. */
__attribute__((format(printf, 2, 3))) static void member_path(char member[WHERE_BYTES], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(member, WHERE_BYTES, format, arguments);
    va_end(arguments);
}

/* A text that is there, unless it has a default, and is not empty. */
static int read_text(const json_t *object, const char *name, const char *otherwise, const char *where,
                     const char **text, struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, name, JSON_STRING, otherwise == NULL, where, &value, err));
    *text = value != NULL ? json_string_value(value) : otherwise;
    return value == NULL || (*text)[0] != '\0' ? 0
                                               : dm_fail(err, DM_ERR_INVALID, "%s.%s: must not be empty", where, name);
}

static int read_choice(const json_t *object, const char *name, const char *const *names, const char *where,
                       unsigned *choice, struct dm_err *err) {
    const char *text;
    size_t count = 0;
    DM_TRY(read_text(object, name, NULL, where, &text, err));
    for (; names[count] != NULL; count++) {
        if (strcmp(text, names[count]) == 0) {
            *choice = (unsigned)count;
            return 0;
        }
    }
    return dm_fail_in(err, hx_fail_unknown(err, name, text, names, count), "%s.%s", where, name);
}

static int read_published(const json_t *object, const char *where, double *published, struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, "published", JSON_REAL, true, where, &value, err));
    *published = json_number_value(value);
    return *published > 0 && *published <= PUBLISHED_MAX
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s.published: %g is not above 0 and at most %g", where, *published,
                         PUBLISHED_MAX);
}

/* ---- points ----------------------------------------------------------------------------------------------------- */

/* A point that is run needs an index, from its own config or the experiment's, and a second run exactly if its metric
 * is made of two. */
static int check_runs(const struct hx_experiment *experiment, const struct hx_exp_point *point, const char *where,
                      struct dm_err *err) {
    bool has_index = json_object_get(experiment->config, "index") || json_object_get(point->config, "index");
    if (point->not_run == NULL && !has_index) {
        return dm_fail(err, DM_ERR_INVALID, "%s: needs an index in its config, or the member 'not_run' with the reason",
                       where);
    }
    if ((point->metric == HX_EXP_US_A_ROUND_TRIP) != (point->against != NULL) && point->not_run == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "%s.against: is for the metric of two runs, which needs it", where);
    }
    return point->not_run != NULL && point->cause[0] != '\0'
               ? dm_fail(err, DM_ERR_INVALID, "%s.cause: a point that is not run has none", where)
               : 0;
}

static int read_point(struct hx_experiment *experiment, size_t at, const json_t *object, struct dm_err *err) {
    static const char *const known[] = {"label",   "metric", "bound", "published", "differs", "cause",
                                        "not_run", "config", "quick", "against",   NULL};
    struct hx_exp_point *point = &experiment->points[at];
    char where[WHERE_BYTES];
    unsigned metric = 0, bound = 0;
    member_path(where, "%s: points[%zu]", experiment->file, at);
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_text(object, "label", NULL, where, &point->label, err));
    DM_TRY(read_choice(object, "metric", hx_exp_metric_names, where, &metric, err));
    DM_TRY(read_choice(object, "bound", hx_exp_bound_names, where, &bound, err));
    DM_TRY(read_published(object, where, &point->published, err));
    DM_TRY(read_text(object, "differs", "", where, &point->differs, err));
    DM_TRY(read_text(object, "cause", "", where, &point->cause, err));
    DM_TRY(hx_json_get(object, "config", JSON_OBJECT, false, where, &point->config, err));
    DM_TRY(hx_json_get(object, "quick", JSON_OBJECT, false, where, &point->quick, err));
    DM_TRY(hx_json_get(object, "against", JSON_OBJECT, false, where, &point->against, err));
    if (json_object_get(object, "not_run") != NULL) {
        DM_TRY(read_text(object, "not_run", NULL, where, &point->not_run, err));
    }
    point->metric = (enum hx_exp_metric)metric;
    point->bound = (enum hx_exp_bound)bound;
    point->ours = NAN;
    for (size_t i = 0; i < at; i++) {
        if (strcmp(experiment->points[i].label, point->label) == 0) {
            return dm_fail(err, DM_ERR_INVALID, "%s.label: '%.60s' is the label of points[%zu], too", where,
                           point->label, i);
        }
    }
    return check_runs(experiment, point, where, err);
}

static int read_points(struct hx_experiment *experiment, struct dm_err *err) {
    const json_t *array;
    DM_TRY(hx_json_get(experiment->spec, "points", JSON_ARRAY, true, experiment->file, &array, err));
    experiment->point_count = json_array_size(array);
    if (experiment->point_count == 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: points: must not be empty", experiment->file);
    }
    experiment->points = calloc(experiment->point_count, sizeof(*experiment->points));
    if (experiment->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", experiment->file);
    }
    for (size_t i = 0; i < experiment->point_count; i++) {
        DM_TRY(read_point(experiment, i, json_array_get(array, i), err));
    }
    return 0;
}

/* ---- orders ----------------------------------------------------------------------------------------------------- */

static int find_point(const struct hx_experiment *experiment, const json_t *label, const char *where, size_t *at,
                      struct dm_err *err) {
    const char *text = json_string_value(label);
    for (*at = 0; text != NULL && *at < experiment->point_count; (*at)++) {
        if (strcmp(experiment->points[*at].label, text) == 0) {
            return 0;
        }
    }
    return dm_fail(err, DM_ERR_INVALID, "%s: must be the label of a point%s%.60s%s", where,
                   text != NULL ? ", not '" : "", text != NULL ? text : "", text != NULL ? "'" : "");
}

/* Adds every pair of a list of labels, which begins with the greatest value. */
static int read_order(struct hx_experiment *experiment, const json_t *list, const char *where, struct dm_err *err) {
    char more_where[WHERE_BYTES], less_where[WHERE_BYTES];
    if (!json_is_array(list) || json_array_size(list) < 2) {
        return dm_fail(err, DM_ERR_INVALID, "%s: must be an array of two or more labels", where);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        for (size_t k = i + 1; k < json_array_size(list); k++) {
            struct hx_exp_pair pair = {.order = HX_EXP_UNJUDGED};
            member_path(more_where, "%s[%zu]", where, i);
            member_path(less_where, "%s[%zu]", where, k);
            DM_TRY(find_point(experiment, json_array_get(list, i), more_where, &pair.more, err));
            DM_TRY(find_point(experiment, json_array_get(list, k), less_where, &pair.less, err));
            const struct hx_exp_point *more = &experiment->points[pair.more], *less = &experiment->points[pair.less];
            if (more->metric != less->metric || more->published <= less->published) {
                return dm_fail(err, DM_ERR_INVALID,
                               "%s: its published value must be below that of '%.60s', of the same metric", less_where,
                               more->label);
            }
            struct hx_exp_pair *pairs =
                realloc(experiment->pairs, (experiment->pair_count + 1) * sizeof(*experiment->pairs));
            if (pairs == NULL) {
                return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
            }
            experiment->pairs = pairs;
            pairs[experiment->pair_count++] = pair;
        }
    }
    return 0;
}

static int read_orders(struct hx_experiment *experiment, struct dm_err *err) {
    const json_t *array;
    DM_TRY(hx_json_get(experiment->spec, "orders", JSON_ARRAY, false, experiment->file, &array, err));
    for (size_t i = 0; i < json_array_size(array); i++) {
        char where[WHERE_BYTES];
        member_path(where, "%s: orders[%zu]", experiment->file, i);
        DM_TRY(read_order(experiment, json_array_get(array, i), where, err));
    }
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int read_all(struct hx_experiment *experiment, const char *id, struct dm_err *err) {
    static const char *const known[] = {"id",     "title", "source", "settings", "differs",
                                        "config", "quick", "points", "orders",   NULL};
    const char *file = experiment->file;
    const json_t *spec = experiment->spec;
    DM_TRY(hx_json_check(spec, known, file, err));
    DM_TRY(read_text(spec, "id", NULL, file, &experiment->id, err));
    DM_TRY(read_text(spec, "title", NULL, file, &experiment->title, err));
    DM_TRY(read_text(spec, "source", NULL, file, &experiment->source, err));
    DM_TRY(read_text(spec, "settings", NULL, file, &experiment->settings, err));
    DM_TRY(read_text(spec, "differs", NULL, file, &experiment->differs, err));
    DM_TRY(hx_json_get(spec, "config", JSON_OBJECT, true, file, &experiment->config, err));
    DM_TRY(hx_json_get(spec, "quick", JSON_OBJECT, true, file, &experiment->quick, err));
    if (strcmp(experiment->id, id) != 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: id: '%.60s' must be the file's name, '%s'", file, experiment->id, id);
    }
    DM_TRY(read_points(experiment, err));
    return read_orders(experiment, err);
}

int hx_experiment_load(const char *plots, const char *id, struct hx_experiment **experiment, struct dm_err *err) {
    struct dm_err ignored = {.text = ""};
    err = err != NULL ? err : &ignored;
    *experiment = calloc(1, sizeof(**experiment));
    if (*experiment == NULL || asprintf(&(*experiment)->file, "%s/end_to_end/%s.json", plots, id) < 0) {
        free(*experiment);
        *experiment = NULL;
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for experiment '%s'", id);
    }
    (*experiment)->spec = dm_json_load((*experiment)->file, err);
    int rc = (*experiment)->spec != NULL ? read_all(*experiment, id, err) : err->code;
    if (rc < 0) {
        hx_experiment_free(*experiment);
        *experiment = NULL;
    }
    return rc;
}

void hx_experiment_free(struct hx_experiment *experiment) {
    if (experiment == NULL) {
        return;
    }
    free(experiment->points);
    free(experiment->pairs);
    free(experiment->file);
    json_decref(experiment->spec);
    free(experiment);
}
