/* SPDX-License-Identifier: Apache-2.0
 *
 * Points that share a load.
 */
#include "harness/points/points_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/points/points_host.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"
#include "harness/run/interrupt.h"
#include "harness/run/provenance.h"
#include "harness/run/result.h"

/* Options that have no effect before the index is loaded. */
static const char *const asked[] = {
    "ops",
    "warmup",
    "duration",
    "workload",
    "properties",
    "mix",
    "distribution",
    "theta",
    "scan_min",
    "scan_max",
    "scan_distribution",
    "rate",
    "arrival",
    "rdwc",
    "verify",
    "insert_ranges",
    "trace_ops_per_client",
    "interval",
    "timed_warmup",
    "load_reads",
    "warmup_samples",
    NULL,
};

/* Options that shape the fabric, which can be changed in a loaded one (dm_fabric_resize) if the index allows it and no
 * fault rule names a client. mn_memory follows from the number of clients. */
static const char *const resizable[] = {"clients", "coroutines", "mn_memory", NULL};

static bool can_resize(const json_t *config) {
    const struct ix_ops *index = ix_find(json_string_value(json_object_get(config, "index")));
    const char *faults = json_string_value(json_object_get(json_object_get(config, "transport_set"), "faults"));
    return index != NULL && index->caps & IX_CAP_RESIZE && (faults == NULL || faults[0] == '\0');
}

static void leave_out(json_t *config, const char *const *names) {
    for (; *names != NULL; names++) {
        json_object_del(config, *names);
    }
}

/* Properties of YCSB, and a file of them, may say which keys are loaded. */
static void keep_properties(json_t *rest, const json_t *config) {
    json_t *properties = json_object_get(config, "properties"), *workload = json_object_get(config, "workload");
    const char *text = json_string_value(properties), *name = json_string_value(workload);
    if (text != NULL && text[0] != '\0') {
        json_object_set(rest, "properties", properties);
    }
    if (name != NULL && strchr(name, '/') != NULL) {
        json_object_set(rest, "workload", workload);
    }
}

/* What points must have in common to share a load, as text that the caller frees; NULL: this point shares with none.
 * Points with inserts or upserts do not, because inserts change the size of the index; nor points with a trace or a
 * recording, which defines the loaded keys; nor points in real time, where a run must not start from copied memory. */
static char *load_key(const struct hx_point *point) {
    const char *transport = json_string_value(json_object_get(point->config, "transport"));
    const char *mix = json_string_value(json_object_get(point->config, "mix"));
    const char *upserts = json_string_value(json_object_get(point->config, "upserts"));
    static const char *const files[] = {"trace", "replay", "record"};
    bool alone = transport == NULL || strcmp(transport, "sim") != 0 || mix == NULL || strstr(mix, "insert") != NULL;
    alone = alone || (upserts != NULL && strcmp(upserts, "on") == 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const char *file = json_string_value(json_object_get(point->config, files[i]));
        alone = alone || (file != NULL && file[0] != '\0');
    }
    json_t *rest = alone ? NULL : json_copy(point->config);
    if (rest != NULL) {
        leave_out(rest, asked);
        keep_properties(rest, point->config);
    }
    if (rest != NULL && can_resize(point->config)) {
        leave_out(rest, resizable);
    }
    char *key = rest != NULL ? json_dumps(rest, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(rest);
    return key;
}

/* True if a fabric that was loaded for `loaded` has the threads and the memory that `wanted` needs. */
static bool is_within(const struct hx_point *wanted, const struct hx_point *loaded) {
    return hx_point_threads(wanted) <= hx_point_threads(loaded) &&
           json_integer_value(json_object_get(wanted->config, "mn_memory")) <=
               json_integer_value(json_object_get(loaded->config, "mn_memory"));
}

/* The points in an order, and of each what it must have in common with others to share a load. */
struct ordered {
    const struct hx_point *points;
    size_t *order;
    char **keys;
    size_t count;
    uint64_t memory; /* of this host */
};

static const struct hx_point *point_at(const struct ordered *all, size_t i) {
    return &all->points[all->order[i]];
}

static bool is_alike(const struct ordered *all, size_t i, size_t other) {
    return all->keys[i] != NULL && all->keys[other] != NULL && strcmp(all->keys[i], all->keys[other]) == 0;
}

/* Moves the entry at `from` forward to `to`. */
static void bring(const struct ordered *all, size_t from, size_t to) {
    size_t moved = all->order[from];
    char *key = all->keys[from];
    memmove(all->order + to + 1, all->order + to, (from - to) * sizeof(*all->order));
    memmove(all->keys + to + 1, all->keys + to, (from - to) * sizeof(*all->keys));
    all->order[to] = moved;
    all->keys[to] = key;
}

/* The loaded index, and half as much for pages that a point writes and so gets copies of. */
static uint64_t shared_memory(uint64_t bytes) {
    return bytes + bytes / 2;
}

uint64_t hx_group_memory(const struct hx_points *points, const size_t *members, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t one = points->items[members[i]].memory_bytes;
        bytes = one > bytes ? one : bytes;
    }
    return count > 1 ? shared_memory(bytes) : bytes;
}

/* Puts the largest of the points that can share the load of point `first` there, and those that share its load behind
 * it. Returns how many they are. */
static size_t fill_group(const struct ordered *all, size_t first, size_t most) {
    size_t largest = first, size = 1;
    for (size_t i = first + 1; i < all->count && most > 1; i++) {
        if (is_alike(all, i, first) && is_within(point_at(all, largest), point_at(all, i)) &&
            !is_within(point_at(all, i), point_at(all, largest))) {
            largest = i;
        }
    }
    bring(all, largest, first);
    if (shared_memory(point_at(all, first)->memory_bytes) > all->memory) {
        return 1;
    }
    for (size_t i = first + 1; i < all->count && size < most; i++) {
        if (is_alike(all, i, first) && is_within(point_at(all, i), point_at(all, first))) {
            bring(all, i, first + size++);
        }
    }
    return size;
}

/* The limit of a group's size: each of several jobs must get some, or sharing a load costs more time than it saves. */
static size_t group_max(size_t count, size_t jobs) {
    size_t most = jobs == 0 ? 1 : jobs == 1 ? count : count / (2 * jobs);
    return most > 1 ? most : 1;
}

void hx_points_group(const struct hx_points *points, size_t *order, size_t count, size_t jobs, size_t *group) {
    size_t most = group_max(count, jobs);
    struct ordered all = {points->items, order, calloc(count + 1, sizeof(*all.keys)), count, hx_points_memory()};
    for (size_t i = 0; all.keys != NULL && i < count && most > 1; i++) {
        all.keys[i] = load_key(point_at(&all, i));
    }
    memset(group, 0, count * sizeof(*group));
    for (size_t first = 0; first < count; first += group[first]) {
        group[first] = all.keys != NULL ? fill_group(&all, first, most) : 1;
    }
    for (size_t i = 0; all.keys != NULL && i < count; i++) {
        free(all.keys[i]);
    }
    free(all.keys);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

struct group {
    const struct hx_points *points;
    const size_t *members;
    struct hx_config **configs;
    atomic_bool *taken;
};

static int take_result(void *arg, size_t at, const struct hx_measured *measured, struct dm_err *err) {
    const struct group *group = arg;
    char *file = hx_points_file(group->points, group->members[at]);
    json_t *result = hx_result_new(group->configs[at], measured);
    int rc =
        file == NULL || result == NULL ||
                json_object_set_new(result, "provenance", hx_provenance_new(group->configs[at], measured, 0, NULL)) != 0
            ? dm_fail(err, DM_ERR_NO_MEMORY, "out of memory")
            : 0;
    if (rc == 0) {
        hx_interrupt_hold(true);
        rc = dm_json_store(result, file, err);
        hx_interrupt_hold(false);
    }
    if (rc == 0) {
        atomic_store(&group->taken[at], true);
    }
    json_decref(result);
    free(file);
    return rc;
}

static int config_open(const struct hx_point *point, struct hx_config **config, struct dm_err *err) {
    *config = hx_config_new();
    if (*config == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    (*config)->is_quiet = true; /* the progress is that of all points */
    DM_TRY(hx_config_apply_json(*config, point->config, point->label, err));
    return hx_config_resolve(*config, err);
}

int hx_run_group(const struct hx_points *points, const size_t *members, size_t count, atomic_bool *taken) {
    struct dm_err err = {.text = ""};
    struct group group = {
        .points = points, .members = members, .configs = calloc(count, sizeof(*group.configs)), .taken = taken};
    struct hx_taker taker = {.take = take_result, .arg = &group};
    int rc = group.configs == NULL ? dm_fail(&err, DM_ERR_NO_MEMORY, "out of memory") : 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = config_open(&points->items[members[i]], &group.configs[i], &err);
    }
    if (rc == 0) {
        hx_interrupt_install("run");
        rc = hx_measure_each(group.configs, count, &taker, &err);
    }
    for (size_t i = 0; i < count && group.configs != NULL; i++) {
        hx_config_close(group.configs[i]);
    }
    free(group.configs);
    return rc < 0 ? hx_report("run", &err) : rc;
}
