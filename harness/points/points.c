/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of points: adding, finding, loading. Running them is in points_run.c.
 */
#include "harness/points/points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/array.h"
#include "common/compiler.h"
#include "common/log.h"
#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/points/points_cost.h"
#include "harness/points/training.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/fabric_settings.h"
#include "harness/run/result_check.h"
#include "harness/run/sources.h"
#include "transport/fabric.h"

#define MEMORY_MARGIN 1.25 /* for points that take more than estimated */

enum { CHANGED_BYTES = 200 };

const char *const hx_stale_names[] = {"keep", "run", "adopt", "list", NULL};

char *hx_path_join(const char *folder, const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

int hx_make_folder(const char *path, struct dm_err *err) {
    char *copy = strdup(path);
    if (copy == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", path);
    }
    int rc = 0;
    for (char *cut = copy + 1; rc == 0 && cut != NULL;) {
        cut = strchr(cut, '/');
        if (cut != NULL) {
            *cut = '\0';
        }
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) {
            rc = dm_fail(err, DM_ERR_IO, "%s: cannot make the folder: %s", copy, strerror(errno));
        }
        if (cut != NULL) {
            *cut++ = '/';
        }
    }
    struct stat status;
    if (rc == 0 && (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))) {
        rc = dm_fail(err, DM_ERR_IO, "%s: is not a folder", path);
    }
    free(copy);
    return rc;
}

struct hx_points *hx_points_new(const char *out) {
    struct hx_points *points = calloc(1, sizeof(*points));
    if (points != NULL) {
        points->out = strdup(out);
        if (points->out == NULL) {
            free(points);
            points = NULL;
        }
    }
    return points;
}

void hx_points_free(struct hx_points *points) {
    if (points == NULL) {
        return;
    }
    for (size_t i = 0; i < points->count; i++) {
        json_decref(points->items[i].config);
        free(points->items[i].label);
    }
    free(points->items);
    free(points->out);
    free(points);
}

static void estimate(struct hx_point *point) {
    struct hx_cost cost;
    hx_cost_of(point->config, point->hash, &cost);
    point->memory_bytes = (uint64_t)(cost.bytes * MEMORY_MARGIN);
    point->cost = cost.load_s + cost.run_s;
}

/* The configuration of a run, resolved, and its hash. */
static int resolve_run(const json_t *spec, const char *where, struct hx_point *point, struct dm_err *err) {
    struct hx_config *config = hx_config_new();
    int rc = config == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points") : 0;
    if (rc == 0) {
        rc = hx_config_apply_json(config, spec, where, err);
    }
    if (rc == 0) {
        rc = hx_config_resolve(config, err);
        rc = rc < 0 ? dm_fail_in(err, rc, "%s", where) : 0;
    }
    if (rc == 0) {
        hx_config_hash(config, point->hash);
        point->is_memory_implied = config->is_memory_implied;
        point->config = hx_config_to_json(config);
        rc = point->config == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points") : 0;
    }
    hx_config_close(config);
    return rc;
}

static bool is_training(const json_t *config) {
    const char *source = json_string_value(json_object_get(config, "source"));
    return source != NULL && strcmp(source, "train") == 0;
}

/* Takes ownership of point->config, or frees it if the set has the same point. */
static int add_resolved(struct hx_points *points, struct hx_point *point, const char *label, size_t *index,
                        struct dm_err *err) {
    for (*index = 0; *index < points->count; (*index)++) {
        if (strcmp(points->items[*index].hash, point->hash) == 0) {
            json_decref(point->config);
            return 0;
        }
    }
    struct hx_point *items = dm_array_grow(points->items, points->count, &points->capacity, sizeof(*items));
    points->items = items != NULL ? items : points->items;
    point->label = strdup(label);
    if (point->label == NULL || items == NULL) {
        json_decref(point->config);
        free(point->label);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points");
    }
    estimate(point);
    items[points->count++] = *point;
    return 0;
}

int hx_points_add(struct hx_points *points, const json_t *spec, const char *where, const char *label, size_t *index,
                  struct dm_err *err) {
    struct hx_point point = {0};
    if (is_training(spec)) {
        DM_TRY(hx_training_resolve(spec, where, &point.config, point.hash, err));
    } else {
        DM_TRY(resolve_run(spec, where, &point, err));
    }
    return add_resolved(points, &point, label, index, err);
}

bool hx_point_trains(const struct hx_point *point) {
    return is_training(point->config);
}

bool hx_point_is_real_time(const struct hx_point *point) {
    const char *name = json_string_value(json_object_get(point->config, "transport"));
    const struct dm_transport_info *transport = name != NULL ? dm_transport_find(name) : NULL;
    return transport != NULL && !(transport->caps & DM_CAP_VIRTUAL_TIME);
}

static unsigned number_of(const json_t *config, const char *name) {
    return (unsigned)json_integer_value(json_object_get(config, name));
}

unsigned hx_point_threads(const struct hx_point *point) {
    const struct dm_topology topology = {.cns = number_of(point->config, "cns"),
                                         .clients = number_of(point->config, "clients"),
                                         .clients_per_thread = number_of(point->config, "coroutines")};
    return topology.cns > 0 ? hx_cn_threads(&topology, 0) : 0;
}

unsigned hx_points_real_threads(const struct hx_points *points, const size_t *order, size_t count) {
    unsigned most = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hx_point *point = &points->items[order[i]];
        unsigned threads = hx_point_is_real_time(point) ? number_of(point->config, "cns") * hx_point_threads(point) : 0;
        most = threads > most ? threads : most;
    }
    return most;
}

const char *hx_point_folder(const struct hx_point *point) {
    return hx_point_trains(point) ? "training" : "points";
}

char *hx_points_file(const struct hx_points *points, size_t index) {
    const struct hx_point *point = &points->items[index];
    char *path = NULL;
    return asprintf(&path, "%s/%s/%s.json", points->out, hx_point_folder(point), point->hash) < 0 ? NULL : path;
}

/* The name of a point's file is its hash, so that a file may be that of another point. */
static int point_check(const struct hx_point *point, const json_t *result, const char *path, struct dm_err *err) {
    const char *hash = json_string_value(json_object_get(result, "config_hash"));
    if (hx_point_trains(point)) {
        return 0;
    }
    if (json_object_get(result, "throughput_ops_per_s") == NULL || hash == NULL) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: is not a result of `dmbench run`", path);
    }
    return strcmp(hash, point->hash) == 0
               ? 0
               : dm_fail(err, DM_ERR_CORRUPT, "%s: is the result of point %.20s", path, hash);
}

/* A result that is complete and the point's, whichever sources made it. */
static json_t *load_any(const struct hx_points *points, size_t index, struct dm_err *err) {
    const struct hx_point *point = &points->items[index];
    char *path = hx_points_file(points, index);
    if (path == NULL) {
        dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path");
        return NULL;
    }
    json_t *result = dm_json_load(path, err);
    const json_t *version = json_object_get(result, "schema_version");
    if (result != NULL && (!json_is_integer(version) || json_integer_value(version) != HX_SCHEMA_VERSION)) {
        dm_fail(err, DM_ERR_INVALID, "%s: schema_version is not %d: run the point again with --force", path,
                HX_SCHEMA_VERSION);
        json_decref(result);
        result = NULL;
    }
    if (result != NULL && json_integer_value(hx_json_find(result, "verify.broken")) > 0) {
        dm_fail(err, DM_ERR_CORRUPT, "%s: the index was found broken after the run", path);
        json_decref(result);
        result = NULL;
    }
    if (result != NULL && (hx_result_check(result, path, err) < 0 || point_check(point, result, path, err) < 0)) {
        json_decref(result);
        result = NULL;
    }
    free(path);
    return result;
}

json_t *hx_points_load(const struct hx_points *points, size_t index, struct dm_err *err) {
    char changed[CHANGED_BYTES];
    json_t *result = load_any(points, index, err);
    if (result != NULL && points->stale == HX_STALE_RUN && !hx_sources_fresh(result, changed, sizeof(changed))) {
        dm_fail(err, DM_ERR_INVALID, "%s: is stale, other sources made it: %s", points->items[index].hash, changed);
        json_decref(result);
        result = NULL;
    }
    return result;
}

/* Marks a result as fresh, in its file. One that cannot be written stays stale. */
static void adopt_one(const struct hx_points *points, size_t index, json_t *result) {
    struct dm_err err = {.text = ""};
    char *path = hx_points_file(points, index);
    if (path == NULL || hx_sources_adopt(result) < 0) {
        dm_log(DM_LOG_WARN, "%s: cannot be adopted: it does not say where it comes from", points->items[index].hash);
    } else if (dm_json_store(result, path, &err) < 0) {
        dm_log(DM_LOG_WARN, "%s", err.text);
    }
    free(path);
}

/* The time of a run, with its load even if it shared that: processor time if the result states it, as other programs of
 * the host change that little. */
static double host_seconds(const json_t *result) {
    static const char *const cpu[] = {"load_cpu_s", "run_cpu_s", NULL};
    static const char *const wall[] = {"keys_s", "setup_s", "load_s", "run_s", NULL};
    const json_t *host = hx_json_find(result, "provenance.host");
    double seconds = 0;
    for (const char *const *part = json_object_get(host, cpu[0]) ? cpu : wall; *part; part++) {
        seconds += json_number_value(json_object_get(host, *part));
    }
    return seconds;
}

static enum hx_point_state scan_one(struct hx_points *points, size_t index) {
    struct dm_err err = {.code = 0};
    char changed[CHANGED_BYTES];
    json_t *result = load_any(points, index, &err);
    if (result == NULL) {
        if (err.code == DM_ERR_CORRUPT) {
            dm_log(DM_LOG_WARN, "%s: counts as absent", err.text);
        }
        return HX_POINT_ABSENT;
    }
    points->items[index].past_s = host_seconds(result);
    bool is_stale = !hx_sources_fresh(result, changed, sizeof(changed));
    points->stale_count += is_stale;
    json_decref(result);
    return is_stale && points->stale == HX_STALE_RUN ? HX_POINT_STALE : HX_POINT_THERE;
}

size_t hx_points_scan(struct hx_points *points) {
    size_t to_run = 0;
    points->stale_count = 0;
    for (size_t i = 0; i < points->count; i++) {
        points->items[i].state = scan_one(points, i);
        to_run += points->items[i].state != HX_POINT_THERE;
    }
    return to_run;
}

void hx_points_adopt(const struct hx_points *points) {
    char changed[CHANGED_BYTES];
    for (size_t i = 0; i < points->count; i++) {
        json_t *result = load_any(points, i, NULL);
        if (result != NULL && !hx_sources_fresh(result, changed, sizeof(changed))) {
            adopt_one(points, i, result);
        }
        json_decref(result);
    }
}

void hx_points_list_stale(const struct hx_points *points, FILE *out) {
    char changed[CHANGED_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        json_t *result = load_any(points, i, NULL);
        if (result != NULL && !hx_sources_fresh(result, changed, sizeof(changed))) {
            fprintf(out, "  %s  %-24s  %s\n", points->items[i].hash, changed, points->items[i].label);
            count++;
        }
        json_decref(result);
    }
    fprintf(out, "%zu points in %s, %zu stale\n", points->count, points->out, count);
}

const char *hx_point_state_word(const struct hx_point *point, bool force) {
    return point->state == HX_POINT_STALE ? "stale" : point->state != HX_POINT_THERE || force ? "run" : "there";
}
