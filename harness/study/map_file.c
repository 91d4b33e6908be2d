/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps as data: plots/maps/ID.json.
 */
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/study/map.h"

enum { PATH_BYTES = 4096 };

static int axis_load(const json_t *file, const char *name, const char *where, size_t positions,
                     struct hx_map_axis *axis, struct dm_err *err) {
    static const char *const known[] = {"values", "label", NULL};
    const json_t *object = NULL, *values = NULL, *label = NULL;
    DM_TRY(hx_json_get(file, name, JSON_OBJECT, true, where, &object, err));
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(hx_json_get(object, "values", JSON_STRING, true, where, &values, err));
    DM_TRY(hx_json_get(object, "label", JSON_STRING, true, where, &label, err));
    int rc = hx_map_axis_parse(json_string_value(values), positions, axis, err);
    if (rc < 0) {
        return dm_fail_in(err, rc, "%s: %s", where, name);
    }
    snprintf(axis->label, sizeof(axis->label), "%s", json_string_value(label));
    return 0;
}

static int systems_load(const json_t *file, const char *where, struct hx_map *map, struct dm_err *err) {
    static const char *const known[] = {"label", "config", NULL};
    const json_t *systems = NULL;
    DM_TRY(hx_json_get(file, "systems", JSON_ARRAY, true, where, &systems, err));
    for (size_t i = 0; i < json_array_size(systems); i++) {
        const json_t *system = json_array_get(systems, i), *label = NULL, *config = NULL;
        DM_TRY(hx_json_check(system, known, where, err));
        DM_TRY(hx_json_get(system, "label", JSON_STRING, true, where, &label, err));
        DM_TRY(hx_json_get(system, "config", JSON_OBJECT, true, where, &config, err));
        DM_TRY(hx_map_add_system(map, json_string_value(label), config, err));
    }
    return map->system_count >= 2 ? 0 : dm_fail(err, DM_ERR_INVALID, "%s: systems: at least two are compared", where);
}

static int base_load(const json_t *file, const char *where, const char *scale, struct hx_map *map, struct dm_err *err) {
    const json_t *config = NULL, *scales = NULL, *own = NULL, *over = NULL;
    DM_TRY(hx_json_get(file, "config", JSON_OBJECT, true, where, &config, err));
    DM_TRY(hx_json_get(file, "scales", JSON_OBJECT, true, where, &scales, err));
    if (hx_json_get(scales, scale, JSON_OBJECT, true, where, &own, err) < 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: has no scale '%.20s'", where, scale);
    }
    DM_TRY(hx_json_get(own, "config", JSON_OBJECT, true, where, &over, err));
    map->base = hx_json_merge(config, over);
    return map->base ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
}

static int file_read(const json_t *file, const char *where, const char *scale, size_t positions, struct hx_map *map,
                     struct dm_err *err) {
    static const char *const known[] = {"id", "title",   "shows",  "config",    "scales", "x",
                                        "y",  "systems", "metric", "is_lowest", "margin", NULL};
    const json_t *title = NULL, *metric = NULL, *lowest = NULL, *margin = NULL;
    DM_TRY(hx_json_check(file, known, where, err));
    DM_TRY(hx_json_get(file, "title", JSON_STRING, true, where, &title, err));
    DM_TRY(hx_json_get(file, "metric", JSON_STRING, false, where, &metric, err));
    DM_TRY(hx_json_get(file, "is_lowest", JSON_TRUE, false, where, &lowest, err));
    DM_TRY(hx_json_get(file, "margin", JSON_REAL, false, where, &margin, err));
    snprintf(map->title, sizeof(map->title), "%s", json_string_value(title));
    if (metric) {
        snprintf(map->metric, sizeof(map->metric), "%s", json_string_value(metric));
    }
    map->is_lowest = lowest ? json_is_true(lowest) : map->is_lowest;
    map->margin = margin ? json_number_value(margin) : map->margin;
    DM_TRY(axis_load(file, "x", where, positions, &map->axes[0], err));
    DM_TRY(axis_load(file, "y", where, positions, &map->axes[1], err));
    DM_TRY(systems_load(file, where, map, err));
    return base_load(file, where, scale, map, err);
}

int hx_map_load(const char *plots, const char *id, const char *scale, size_t positions, struct hx_map *map,
                struct dm_err *err) {
    char path[PATH_BYTES];
    if (snprintf(path, sizeof(path), "%s/maps/%s.json", plots, id) >= PATH_BYTES) {
        return dm_fail(err, DM_ERR_INVALID, "map '%.60s': the name is too long", id);
    }
    json_t *file = dm_json_load(path, err);
    if (!file) {
        return err->code;
    }
    snprintf(map->id, sizeof(map->id), "%s", id);
    snprintf(map->scale, sizeof(map->scale), "%s", scale);
    int rc = file_read(file, path, scale, positions, map, err);
    json_decref(file);
    return rc;
}
