/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches the points of two sets of results, and compares their numbers.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "common/text.h"
#include "harness/base/json.h"
#include "harness/study/compare.h"
#include "workloads/workload.h"

enum { LABEL_BYTES = 512, PATH_BYTES = 128 };

/* Options that do not distinguish points: repetitions differ in the seed, and the others depend on other options or
 * name files. */
static const char *const ignored[] = {"seed", "record", "mn_memory", NULL};

static int no_memory(struct dm_err *err) {
    return dm_fail(err, DM_ERR_NO_MEMORY, "no memory to compare");
}

static const json_t *config_of(const json_t *result) {
    return json_object_get(result, "config");
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

/* Adds the dotted paths of an object's members, two levels deep, as members of `paths`. */
static void collect_paths(const json_t *object, const char *prefix, json_t *paths) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s%s", prefix, name);
        if (json_is_object(value) && prefix[0] == '\0') {
            char deeper[PATH_BYTES];
            snprintf(deeper, sizeof(deeper), "%.100s.", path);
            collect_paths(value, deeper, paths);
        } else if (!dm_text_is_among(path, ignored)) {
            json_object_set_new(paths, path, json_null());
        }
    }
}

struct side_view {
    bool everywhere; /* every result of the side has the option */
    bool varies;
    const json_t *value; /* of the first result; NULL: it has none */
};

static struct side_view look(const struct hx_result_set *set, const char *path) {
    struct side_view view = {.everywhere = true, .value = hx_json_find(config_of(set->items[0]), path)};
    for (size_t i = 0; i < set->count; i++) {
        const json_t *value = hx_json_find(config_of(set->items[i]), path);
        view.everywhere = view.everywhere && value != NULL;
        view.varies =
            view.varies || (value == NULL) != (view.value == NULL) || (value != NULL && !json_equal(value, view.value));
    }
    return view;
}

static int add_axis(struct hx_compare *compare, const char *path, struct dm_err *err) {
    char **axes = realloc(compare->axes, (compare->axis_count + 1) * sizeof(*axes));
    if (axes == NULL) {
        return no_memory(err);
    }
    compare->axes = axes;
    axes[compare->axis_count] = strdup(path);
    return axes[compare->axis_count++] != NULL ? 0 : no_memory(err);
}

static int find_axes(struct hx_compare *compare, struct dm_err *err) {
    json_t *paths = json_object();
    const char *path;
    json_t *unused;
    int rc = 0;
    for (size_t i = 0; i < compare->a->count; i++) {
        collect_paths(config_of(compare->a->items[i]), "", paths);
    }
    for (size_t i = 0; i < compare->b->count; i++) {
        collect_paths(config_of(compare->b->items[i]), "", paths);
    }
    compare->differences = json_object();
    json_object_foreach(paths, path, unused) {
        struct side_view a = look(compare->a, path), b = look(compare->b, path);
        if ((a.varies || b.varies) && a.everywhere && b.everywhere) {
            rc = rc < 0 ? rc : add_axis(compare, path, err);
        } else if (!a.varies && !b.varies && !json_equal((json_t *)a.value, (json_t *)b.value)) {
            json_object_set_new(compare->differences, path,
                                json_pack("[o, o]", a.value ? json_deep_copy(a.value) : json_null(),
                                          b.value ? json_deep_copy(b.value) : json_null()));
        }
    }
    json_decref(paths);
    return rc;
}

/* ---- like with like --------------------------------------------------------------------------------------------- */

static int check_member(const struct hx_compare *compare, const char *name, struct dm_err *err) {
    const json_t *first = json_object_get(compare->a->items[0], name);
    for (size_t i = 0; i < compare->a->count + compare->b->count; i++) {
        const struct hx_result_set *set = i < compare->a->count ? compare->a : compare->b;
        size_t at = i < compare->a->count ? i : i - compare->a->count;
        if (!json_equal((json_t *)first, json_object_get(set->items[at], name))) {
            return dm_fail(err, DM_ERR_INVALID,
                           "%s and %s differ in %s: not comparable (--force compares all the same)",
                           compare->a->names[0], set->names[at], name);
        }
    }
    return 0;
}

static int check_alike(const struct hx_compare *compare, struct dm_err *err) {
    DM_TRY(check_member(compare, "schema_version", err));
    DM_TRY(check_member(compare, "time_base", err));
    const char *path;
    json_t *values;
    json_object_foreach(compare->differences, path, values) {
        if (dm_opt_find(wl_options, path) != NULL || strcmp(path, "value_size") == 0) {
            char *a = json_dumps(json_array_get(values, 0), JSON_ENCODE_ANY);
            char *b = json_dumps(json_array_get(values, 1), JSON_ENCODE_ANY);
            dm_fail(err, DM_ERR_INVALID,
                    "the workloads differ: %s is %.60s in A and %.60s in B (--force compares all "
                    "the same)",
                    path, a != NULL ? a : "?", b != NULL ? b : "?");
            free(a);
            free(b);
            return DM_ERR_INVALID;
        }
    }
    return 0;
}

/* ---- points ----------------------------------------------------------------------------------------------------- */

static void label_make(const struct hx_compare *compare, const json_t *result, char label[LABEL_BYTES]) {
    size_t length = 0;
    label[0] = '\0';
    for (size_t i = 0; i < compare->axis_count && length < LABEL_BYTES; i++) {
        const json_t *value = hx_json_find(config_of(result), compare->axes[i]);
        char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        length += (size_t)snprintf(label + length, LABEL_BYTES - length, "%s%s=%s", i > 0 ? " " : "", compare->axes[i],
                                   text != NULL ? text : "?");
        free(text);
    }
}

/* All options but the ignored ones are the same. */
static bool same_point(const json_t *a, const json_t *b) {
    json_t *left = json_deep_copy(config_of(a)), *right = json_deep_copy(config_of(b));
    for (size_t i = 0; ignored[i] != NULL; i++) {
        json_object_del(left, ignored[i]);
        json_object_del(right, ignored[i]);
    }
    bool same = json_equal(left, right);
    json_decref(left);
    json_decref(right);
    return same;
}

/* The indexes of a side's results that have a label; they must be repetitions of one point. */
static int find_label(const struct hx_compare *compare, const struct hx_result_set *set, const char *label,
                      size_t **indexes, size_t *count, struct dm_err *err) {
    *count = 0;
    *indexes = calloc(set->count, sizeof(**indexes));
    if (*indexes == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < set->count; i++) {
        char other[LABEL_BYTES];
        label_make(compare, set->items[i], other);
        if (strcmp(label, other) == 0) {
            (*indexes)[(*count)++] = i;
        }
    }
    for (size_t i = 1; i < *count; i++) {
        if (!same_point(set->items[(*indexes)[0]], set->items[(*indexes)[i]])) {
            return dm_fail(err, DM_ERR_INVALID,
                           "%s and %s are two points, but no option of the other side distinguishes them: compare "
                           "one of them at a time",
                           set->names[(*indexes)[0]], set->names[(*indexes)[i]]);
        }
    }
    return 0;
}

static int add_point(struct hx_compare *compare, const char *label, struct dm_err *err) {
    struct hx_compare_point *points = realloc(compare->points, (compare->point_count + 1) * sizeof(*points));
    if (points == NULL) {
        return no_memory(err);
    }
    compare->points = points;
    struct hx_compare_point *point = &points[compare->point_count++];
    *point = (struct hx_compare_point){.label = strdup(label)};
    if (point->label == NULL) {
        return no_memory(err);
    }
    DM_TRY(find_label(compare, compare->a, label, &point->a, &point->a_count, err));
    DM_TRY(find_label(compare, compare->b, label, &point->b, &point->b_count, err));
    compare->only_a -= point->a_count;
    compare->only_b -= point->b_count;
    if (point->b_count == 0) {
        compare->only_a += point->a_count;
        compare->point_count--;
        free(point->label);
        free(point->a);
        free(point->b);
    }
    return 0;
}

static int find_points(struct hx_compare *compare, struct dm_err *err) {
    char label[LABEL_BYTES], before[LABEL_BYTES];
    compare->only_a = compare->a->count;
    compare->only_b = compare->b->count;
    for (size_t i = 0; i < compare->a->count; i++) {
        bool seen = false;
        label_make(compare, compare->a->items[i], label);
        for (size_t k = 0; k < i && !seen; k++) {
            label_make(compare, compare->a->items[k], before);
            seen = strcmp(label, before) == 0;
        }
        if (!seen) {
            DM_TRY(add_point(compare, label, err));
        }
    }
    return compare->point_count > 0 ? 0 : dm_fail(err, DM_ERR_INVALID, "A and B have no point in common");
}

/* ---- metrics ---------------------------------------------------------------------------------------------------- */

struct request {
    struct hx_compare *compare;
    const struct hx_compare_options *options;
    struct hx_compare_point *point;
    double *a, *b; /* values of the current metric */
};

/* The values of a path over repetitions; false if one of them has none. */
static bool take_values(const struct hx_result_set *set, const size_t *indexes, size_t count, const char *path,
                        const char *second, double *values) {
    for (size_t i = 0; i < count; i++) {
        values[i] = hx_result_number(set->items[indexes[i]], path);
        values[i] += second != NULL ? hx_result_number(set->items[indexes[i]], second) : 0;
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

/* Whether two latencies are too close to distinguish: buckets are 1/128 of a power of two wide, and 1 ns below 128 ns.
 */
static bool is_in_bucket(const char *path, double a, double b) {
    double larger = fmax(a, b), width = larger < 128 ? 1 : exp2(floor(log2(larger)) - DM_HIST_SUB_BITS);
    return strstr(path, "latency_ns.p") != NULL && a != b && fabs(a - b) <= width;
}

/* A metric that a side lacks is left out. `second` is added to the first. */
static int add_metric(struct request *request, const char *name, const char *path, const char *second,
                      struct dm_err *err) {
    struct hx_compare_point *point = request->point;
    const struct hx_compare_options *options = request->options;
    if (!take_values(request->compare->a, point->a, point->a_count, path, second, request->a) ||
        !take_values(request->compare->b, point->b, point->b_count, path, second, request->b)) {
        return 0;
    }
    struct hx_compare_metric *metrics = realloc(point->metrics, (point->metric_count + 1) * sizeof(*metrics));
    if (metrics == NULL) {
        return no_memory(err);
    }
    point->metrics = metrics;
    struct hx_compare_metric *metric = &metrics[point->metric_count++];
    *metric = (struct hx_compare_metric){.a = dm_median(request->a, point->a_count),
                                         .b = dm_median(request->b, point->b_count)};
    snprintf(metric->name, sizeof(metric->name), "%s", name);
    metric->ratio = metric->a != 0 ? metric->b / metric->a : metric->b == 0 ? 1 : INFINITY; /* none is below 0 */
    metric->interval = dm_bootstrap_ratio(request->a, point->a_count, request->b, point->b_count, options->confidence,
                                          options->rounds, options->seed);
    metric->test = dm_mann_whitney(request->a, point->a_count, request->b, point->b_count);
    metric->p_holm = metric->test.p;
    metric->in_bucket = is_in_bucket(path, metric->a, metric->b);
    metric->delta = dm_cliffs_delta(request->a, point->a_count, request->b, point->b_count);
    return 0;
}

static int add_op_metrics(struct request *request, const char *op, struct dm_err *err) {
    static const struct {
        const char *name, *path, *second;
    } kinds[] = {{"p50", "latency_ns.p50", NULL},
                 {"p99", "latency_ns.p99", NULL},
                 {"round_trips", "round_trips_mean", NULL},
                 {"bytes", "bytes_read_mean", "bytes_written_mean"}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char name[HX_COMPARE_NAME_MAX], path[PATH_BYTES], second[PATH_BYTES];
        snprintf(name, sizeof(name), "%.20s.%s", op, kinds[i].name);
        snprintf(path, sizeof(path), "ops.%.20s.%s", op, kinds[i].path);
        snprintf(second, sizeof(second), "ops.%.20s.%s", op, kinds[i].second != NULL ? kinds[i].second : "");
        DM_TRY(add_metric(request, name, path, kinds[i].second != NULL ? second : NULL, err));
    }
    return 0;
}

static int measure_point(struct hx_compare *compare, struct hx_compare_point *point,
                         const struct hx_compare_options *options, struct dm_err *err) {
    struct request request = {.compare = compare,
                              .options = options,
                              .point = point,
                              .a = calloc(point->a_count, sizeof(double)),
                              .b = calloc(point->b_count, sizeof(double))};
    int rc = request.a == NULL || request.b == NULL
                 ? no_memory(err)
                 : add_metric(&request, "throughput", "throughput_ops_per_s", NULL, err);
    const char *op;
    json_t *unused;
    json_object_foreach(json_object_get(compare->a->items[point->a[0]], "ops"), op, unused) {
        rc = rc < 0 ? rc : add_op_metrics(&request, op, err);
    }
    rc = rc < 0 ? rc : add_metric(&request, "cache_bytes", "cache_bytes_per_cn", NULL, err);
    free(request.a);
    free(request.b);
    return rc;
}

/* Corrects the p of all tests, of points with repetitions, for their number. */
static int correct(struct hx_compare *compare, struct dm_err *err) {
    double *p = NULL;
    for (int pass = 0; pass < 3; pass++) {
        size_t at = 0;
        for (size_t i = 0; i < compare->point_count; i++) {
            const struct hx_compare_point *point = &compare->points[i];
            bool is_tested = point->a_count > 1 || point->b_count > 1;
            for (size_t k = 0; is_tested && k < point->metric_count; k++, at++) {
                if (pass == 1) {
                    p[at] = point->metrics[k].test.p;
                } else if (pass == 2) {
                    point->metrics[k].p_holm = p[at];
                }
            }
        }
        compare->test_count = at;
        p = pass == 0 ? calloc(at + 1, sizeof(*p)) : p;
        if (p == NULL || (pass == 1 && dm_holm(p, at) < 0)) {
            free(p);
            return no_memory(err);
        }
    }
    free(p);
    return 0;
}

static int compare_numbers(const void *left, const void *right) {
    json_int_t a = *(const json_int_t *)left, b = *(const json_int_t *)right;
    return (a > b) - (a < b);
}

/* The seeds of a set, ascending, each once. NULL when out of memory. */
static json_t *seeds_of(const struct hx_result_set *set) {
    json_t *seeds = json_array();
    json_int_t *all = calloc(set->count + 1, sizeof(*all));
    for (size_t i = 0; all != NULL && i < set->count; i++) {
        all[i] = json_integer_value(json_object_get(config_of(set->items[i]), "seed"));
    }
    if (all != NULL) {
        qsort(all, set->count, sizeof(*all), compare_numbers);
    }
    for (size_t i = 0; all != NULL && i < set->count; i++) {
        if (i == 0 || all[i] != all[i - 1]) {
            json_array_append_new(seeds, json_integer(all[i]));
        }
    }
    free(all);
    return seeds;
}

int hx_compare_make(const struct hx_result_set *a, const struct hx_result_set *b,
                    const struct hx_compare_options *options, struct hx_compare **compare, struct dm_err *err) {
    *compare = calloc(1, sizeof(**compare));
    if (*compare == NULL) {
        return no_memory(err);
    }
    (*compare)->a = a;
    (*compare)->b = b;
    int rc = find_axes(*compare, err);
    rc = rc < 0 || options->force ? rc : check_alike(*compare, err);
    rc = rc < 0 ? rc : find_points(*compare, err);
    for (size_t i = 0; rc == 0 && i < (*compare)->point_count; i++) {
        rc = measure_point(*compare, &(*compare)->points[i], options, err);
    }
    rc = rc < 0 ? rc : correct(*compare, err);
    (*compare)->seeds[0] = seeds_of(a);
    (*compare)->seeds[1] = seeds_of(b);
    if (rc < 0) {
        hx_compare_free(*compare);
        *compare = NULL;
    }
    return rc;
}

void hx_compare_free(struct hx_compare *compare) {
    if (compare == NULL) {
        return;
    }
    for (size_t i = 0; i < compare->point_count; i++) {
        free(compare->points[i].label);
        free(compare->points[i].a);
        free(compare->points[i].b);
        free(compare->points[i].metrics);
    }
    for (size_t i = 0; i < compare->axis_count; i++) {
        free(compare->axes[i]);
    }
    free(compare->points);
    free(compare->axes);
    json_decref(compare->differences);
    json_decref(compare->seeds[0]);
    json_decref(compare->seeds[1]);
    free(compare);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

int hx_compare_limit_parse(const char *text, struct hx_compare_limit *limit, struct dm_err *err) {
    static const char *const names[] = {"throughput", "p50", "p99", "round_trips", "bytes", "cache_bytes"};
    *limit = (struct hx_compare_limit){.above = false};
    size_t length = strcspn(text, " <>");
    const char *at = text + length + strspn(text + length, " ");
    snprintf(limit->name, sizeof(limit->name), "%.*s", (int)length, text);
    limit->above = *at == '>';
    limit->or_equal = *at != '\0' && at[1] == '=';
    char *end = NULL;
    const char *number = *at == '<' || *at == '>' ? at + 1 + limit->or_equal : "";
    errno = 0;
    limit->bound = strtod(number, &end);
    if (length == 0 || length >= sizeof(limit->name) || end == number || end[strspn(end, " ")] != '\0' || errno != 0 ||
        !isfinite(limit->bound)) {
        return dm_fail(err, DM_ERR_INVALID, "'%.60s' is not METRIC > NUMBER or METRIC < NUMBER, of the ratio B/A",
                       text);
    }
    const char *dot = strrchr(limit->name, '.');
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(dot != NULL ? dot + 1 : limit->name, names[i]) == 0) {
            return 0;
        }
    }
    return dm_fail(err, DM_ERR_INVALID,
                   "'%.40s' is no metric; there are throughput, cache_bytes, and p50, p99, round_trips, bytes, also as "
                   "get.p99",
                   limit->name);
}

bool hx_compare_limit_names(const struct hx_compare_limit *limit, const char *name) {
    const char *dot = strrchr(name, '.');
    return strcmp(limit->name, name) == 0 || (dot != NULL && strcmp(limit->name, dot + 1) == 0);
}

bool hx_compare_limit_holds(const struct hx_compare_limit *limit, const struct hx_compare_metric *metric,
                            bool certain) {
    double end = limit->above ? metric->interval.low : metric->interval.high;
    double near = certain && !isnan(end) ? end : metric->ratio; /* no interval: values of A are 0 */
    if (!hx_compare_limit_names(limit, metric->name)) {
        return false;
    }
    if (limit->or_equal && near == limit->bound) {
        return true;
    }
    return limit->above ? near > limit->bound : near < limit->bound;
}
