/* SPDX-License-Identifier: Apache-2.0
 *
 * Many result files at once.
 */
#include "harness/study/result_set.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/compiler.h"
#include "common/hist.h"
#include "common/log.h"
#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"
#include "harness/run/result_check.h"

static int set_grow(struct hx_result_set *set) {
    if (set->count < set->capacity) {
        return 0;
    }
    size_t capacity = set->capacity == 0 ? 64 : 2 * set->capacity;
    json_t **items = realloc(set->items, capacity * sizeof(*items));
    if (items == NULL) {
        return DM_ERR_NO_MEMORY;
    }
    set->items = items;
    char **names = realloc(set->names, capacity * sizeof(*names));
    if (names == NULL) {
        return DM_ERR_NO_MEMORY;
    }
    set->names = names;
    set->capacity = capacity;
    return 0;
}

static bool is_result(const json_t *object) {
    return json_is_object(json_object_get(object, "config")) && json_is_object(json_object_get(object, "ops")) &&
           json_is_integer(json_object_get(object, "schema_version"));
}

/* `optional`: a JSON file that is no result is skipped. */
static int add_file(struct hx_result_set *set, const char *path, bool optional, struct dm_err *err) {
    json_t *object = dm_json_load(path, err);
    if (object == NULL) {
        return DM_ERR_INVALID;
    }
    if (!is_result(object)) {
        json_decref(object);
        return optional ? 0 : dm_fail(err, DM_ERR_INVALID, "%s: is not a result of `dmbench run`", path);
    }
    if (optional && json_is_true(json_object_get(object, "is_partial"))) {
        json_decref(object);
        dm_log(DM_LOG_WARN, "%s: is partial, its run was interrupted: left out", path);
        return 0;
    }
    int rc = hx_result_check(object, path, err);
    if (rc < 0) {
        json_decref(object);
        return rc == DM_ERR_CORRUPT ? hx_fail_file(err) : rc;
    }
    char *name = strdup(path);
    if (name == NULL || set_grow(set) < 0) {
        free(name);
        json_decref(object);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for results");
    }
    set->items[set->count] = object;
    set->names[set->count++] = name;
    return 0;
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int add_pattern(struct hx_result_set *set, const char *pattern, const char *what, struct dm_err *err) {
    glob_t found = {0};
    int rc = glob(pattern, 0, NULL, &found);
    size_t before = set->count;
    if (rc == GLOB_NOSPACE) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for results");
    }
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++) {
        rc = add_file(set, found.gl_pathv[i], true, err);
    }
    globfree(&found);
    if (rc < 0) {
        return rc;
    }
    return set->count > before ? 0 : dm_fail(err, DM_ERR_INVALID, "%s: no results there", what);
}

int hx_result_set_add(struct hx_result_set *set, const char *what, struct dm_err *err) {
    char pattern[4096], points[4096];
    struct stat status;
    if (stat(what, &status) == 0 && !S_ISDIR(status.st_mode)) {
        return add_file(set, what, false, err);
    }
    int length = snprintf(points, sizeof(points), "%s/points", what);
    if (length < 0 || (size_t)length >= sizeof(points) - sizeof("/*.json")) {
        return dm_fail(err, DM_ERR_INVALID, "'%.40s...': is too long for a path", what);
    }
    if (!is_folder(what)) {
        return add_pattern(set, what, what, err);
    }
    snprintf(pattern, sizeof(pattern), "%.4080s/*.json", is_folder(points) ? points : what);
    return add_pattern(set, pattern, what, err);
}

void hx_result_set_cut(struct hx_result_set *set, size_t count) {
    while (set->count > count) {
        json_decref(set->items[--set->count]);
        free(set->names[set->count]);
    }
}

void hx_result_set_fini(struct hx_result_set *set) {
    hx_result_set_cut(set, 0);
    free(set->items);
    free(set->names);
    *set = (struct hx_result_set){.items = NULL};
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static bool counts_twice(const char *op) {
    return strcmp(op, "rmw") == 0;
}

static double hist_number(const struct dm_hist *hist, const char *what) {
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}};
    if (hist->count == 0) {
        return NAN;
    }
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        if (strcmp(what, quantiles[i].name) == 0) {
            return (double)dm_hist_quantile(hist, quantiles[i].share);
        }
    }
    return strcmp(what, "mean") == 0 ? dm_hist_mean(hist) : NAN;
}

static double merged_latency(const json_t *ops, const char *what) {
    struct dm_hist *all = malloc(sizeof(*all));
    struct dm_hist *one = malloc(sizeof(*one));
    double value = NAN;
    const char *name;
    json_t *op;
    if (all == NULL || one == NULL) {
        goto out;
    }
    dm_hist_clear(all);
    json_object_foreach((json_t *)ops, name, op) {
        const char *text = json_string_value(json_object_get(op, "histogram"));
        if (counts_twice(name)) {
            continue;
        }
        if (text == NULL || dm_hist_decode(one, text) < 0) {
            goto out;
        }
        dm_hist_merge(all, one);
    }
    value = hist_number(all, what);
out:
    free(all);
    free(one);
    return value;
}

/* "count": all index operations. */
static double merged_count(const json_t *ops) {
    double count = 0;
    const char *name;
    json_t *op;
    json_object_foreach((json_t *)ops, name, op) {
        count += counts_twice(name) ? 0 : json_number_value(json_object_get(op, "count"));
    }
    return count;
}

/* "NAME_mean", or "NAME_mean.MEMBER": an operation without that member but with others took none of it. */
static double merged_mean(const json_t *ops, const char *what) {
    static const char suffix[] = "_mean";
    char outer[64];
    double sum = 0, count = 0;
    bool found = false;
    const char *name;
    json_t *op;
    snprintf(outer, sizeof(outer), "%.*s", (int)strcspn(what, "."), what);
    size_t length = strlen(outer);
    if (length < sizeof(suffix) || strcmp(outer + length - (sizeof(suffix) - 1), suffix) != 0) {
        return NAN;
    }
    json_object_foreach((json_t *)ops, name, op) {
        const json_t *value = hx_json_find(op, what);
        double weight = json_number_value(json_object_get(op, "count"));
        if (!counts_twice(name) && (json_is_number(value) || json_is_object(json_object_get(op, outer)))) {
            found = found || json_is_number(value);
            sum += json_number_value(value) * weight;
            count += weight;
        }
    }
    return found && count > 0 ? sum / count : NAN;
}

/* "PATH.min", "PATH.max" and "PATH.last" of a column of numbers; NaN if the path is none. */
static double column_value(const json_t *result, const char *path) {
    char column[256];
    const char *what = strrchr(path, '.');
    double found = NAN;
    if (what == NULL || (size_t)(what - path) >= sizeof(column)) {
        return NAN;
    }
    snprintf(column, sizeof(column), "%.*s", (int)(what - path), path);
    const json_t *array = hx_json_find(result, column);
    for (size_t i = 0; i < json_array_size(array); i++) {
        double value = json_number_value(json_array_get(array, i));
        if (strcmp(what, ".min") == 0) {
            found = fmin(found, value);
        } else if (strcmp(what, ".max") == 0) {
            found = fmax(found, value);
        } else if (strcmp(what, ".last") == 0) {
            found = value;
        }
    }
    return found;
}

double hx_result_number(const json_t *result, const char *path) {
    static const char all[] = "ops.all.", latency[] = "latency_ns.", over_time[] = "over_time.";
    const json_t *value = hx_json_find(result, path);
    if (value == NULL && strncmp(path, over_time, sizeof(over_time) - 1) == 0) {
        return column_value(result, path);
    }
    if (value != NULL || result == NULL || strncmp(path, all, sizeof(all) - 1) != 0) {
        return json_is_number(value) ? json_number_value(value) : NAN;
    }
    const json_t *ops = json_object_get(result, "ops");
    const char *what = path + sizeof(all) - 1;
    if (strcmp(what, "count") == 0) {
        return merged_count(ops);
    }
    return strncmp(what, latency, sizeof(latency) - 1) == 0 ? merged_latency(ops, what + sizeof(latency) - 1)
                                                            : merged_mean(ops, what);
}

json_t *hx_result_usable(json_t *result, const char *label, const char *hash) {
    static const char *const failures[] = {"no_memory", "retry_limit"};
    const char *name;
    json_t *operation;
    json_object_foreach(json_object_get(result, "ops"), name, operation) {
        for (size_t i = 0; i < DM_ARRAY_LEN(failures); i++) {
            json_int_t count = json_integer_value(json_object_get(json_object_get(operation, "outcomes"), failures[i]));
            if (count > 0) {
                fprintf(stderr, "dmbench: point %s (%s) is not used: %lld operations (%s) ended in %s\n", label, hash,
                        (long long)count, name, failures[i]);
                json_decref(result);
                return NULL;
            }
        }
    }
    return result;
}
