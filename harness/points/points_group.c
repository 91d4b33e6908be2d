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
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"
#include "harness/run/interrupt.h"
#include "harness/run/provenance.h"
#include "harness/run/result.h"

/* Options that have no effect before the index is loaded. The number of clients is not among them: it shapes the
 * fabric. */
static const char *const asked[] = {
    "ops",          "warmup", "duration", "workload",      "properties",           "mix",
    "distribution", "theta",  "scan_min", "scan_max",      "scan_distribution",    "rate",
    "arrival",      "rdwc",   "verify",   "insert_ranges", "trace_ops_per_client", "interval",
    NULL,
};

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
    for (size_t i = 0; rest != NULL && asked[i] != NULL; i++) {
        json_object_del(rest, asked[i]);
    }
    char *key = rest != NULL ? json_dumps(rest, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(rest);
    return key;
}

static void fill_group(char **keys, size_t *order, size_t count, size_t first, size_t most, size_t *group) {
    size_t size = 1;
    for (size_t i = first + 1; i < count && size < most && keys[first] != NULL; i++) {
        if (keys[i] == NULL || strcmp(keys[i], keys[first]) != 0) {
            continue;
        }
        size_t moved = order[i];
        char *key = keys[i];
        memmove(order + first + size + 1, order + first + size, (i - first - size) * sizeof(*order));
        memmove(keys + first + size + 1, keys + first + size, (i - first - size) * sizeof(*keys));
        order[first + size] = moved;
        keys[first + size] = key;
        size++;
    }
    group[first] = size;
}

void hx_points_group(const struct hx_points *points, size_t *order, size_t count, size_t most, size_t *group) {
    char **keys = calloc(count + 1, sizeof(*keys));
    for (size_t i = 0; keys != NULL && i < count && most > 1; i++) {
        keys[i] = load_key(&points->items[order[i]]);
    }
    memset(group, 0, count * sizeof(*group));
    for (size_t first = 0; first < count; first += group[first]) {
        if (keys != NULL) {
            fill_group(keys, order, count, first, most, group);
        } else {
            group[first] = 1;
        }
    }
    for (size_t i = 0; keys != NULL && i < count; i++) {
        free(keys[i]);
    }
    free(keys);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

struct group {
    const struct hx_points *points;
    const size_t *members;
    struct hx_config **configs;
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

int hx_run_group(const struct hx_points *points, const size_t *members, size_t count) {
    struct dm_err err = {.text = ""};
    struct group group = {.points = points, .members = members, .configs = calloc(count, sizeof(*group.configs))};
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
