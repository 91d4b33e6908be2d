/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a map: which positions are run, and which cells are divided.
 */
#include "harness/study/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/study/figure_points.h"
#include "harness/study/result_set.h"

/* ---- making one ------------------------------------------------------------------------------------------------- */

void hx_map_fini(struct hx_map *map) {
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < map->axes[k].count; i++) {
            free(map->axes[k].texts[i]);
        }
        free(map->axes[k].texts);
        free(map->axes[k].values);
    }
    for (size_t i = 0; i < map->system_count; i++) {
        json_decref(map->systems[i].config);
    }
    json_decref(map->base);
    free(map->is_run);
    free(map->samples);
    free(map->bests);
    free(map->cells);
    *map = (struct hx_map){.system_count = 0};
}

int hx_map_add_system(struct hx_map *map, const char *label, const json_t *config, struct dm_err *err) {
    if (map->system_count == HX_MAP_SYSTEMS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d systems", HX_MAP_SYSTEMS_MAX);
    }
    struct hx_map_system *system = &map->systems[map->system_count];
    *system = (struct hx_map_system){.config = json_deep_copy(config)};
    if (!system->config) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
    }
    snprintf(system->label, sizeof(system->label), "%s", label);
    map->system_count++;
    return 0;
}

size_t hx_map_position(const struct hx_map *map, size_t x, size_t y) {
    return x * map->axes[1].count + y;
}

static struct hx_map_sample *sample_of(const struct hx_map *map, size_t position, size_t system) {
    return &map->samples[position * map->system_count + system];
}

static int cell_add(struct hx_map *map, size_t x0, size_t x1, size_t y0, size_t y1, struct dm_err *err) {
    if (map->cell_count == map->cell_capacity) {
        size_t wanted = map->cell_capacity ? 2 * map->cell_capacity : 64;
        struct hx_map_cell *cells = realloc(map->cells, wanted * sizeof(*cells));
        if (!cells) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
        }
        map->cells = cells;
        map->cell_capacity = wanted;
    }
    map->cells[map->cell_count++] = (struct hx_map_cell){{x0, y0}, {x1, y1}};
    return 0;
}

/* Of `parts` equal parts of an axis, where part i begins. */
static size_t part_begin(const struct hx_map_axis *axis, size_t parts, size_t i) {
    return i * (axis->count - 1) / parts;
}

int hx_map_begin(struct hx_map *map, struct dm_err *err) {
    size_t positions = map->axes[0].count * map->axes[1].count, parts[2];
    map->is_run = calloc(positions, sizeof(*map->is_run));
    map->samples = calloc(positions * map->system_count, sizeof(*map->samples));
    map->bests = calloc(positions, sizeof(*map->bests));
    if (!map->is_run || !map->samples || !map->bests) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
    }
    for (size_t i = 0; i < positions * map->system_count; i++) {
        map->samples[i].value = NAN;
    }
    for (size_t k = 0; k < 2; k++) {
        size_t most = map->axes[k].count - 1;
        parts[k] = map->start - 1 < most ? map->start - 1 : most;
    }
    for (size_t i = 0; i < parts[0]; i++) {
        for (size_t j = 0; j < parts[1]; j++) {
            DM_TRY(cell_add(map, part_begin(&map->axes[0], parts[0], i), part_begin(&map->axes[0], parts[0], i + 1),
                            part_begin(&map->axes[1], parts[1], j), part_begin(&map->axes[1], parts[1], j + 1), err));
        }
    }
    return 0;
}

/* ---- who wins --------------------------------------------------------------------------------------------------- */

static struct hx_map_best best_of(const struct hx_map *map, size_t position) {
    struct hx_map_best best = {HX_MAP_NO_WINNER, HX_MAP_NO_WINNER, 0};
    for (size_t i = 0; i < map->system_count; i++) {
        double value = sample_of(map, position, i)->value;
        if (isnan(value)) {
            continue;
        }
        double first = best.system >= 0 ? sample_of(map, position, (size_t)best.system)->value : NAN;
        double next = best.second >= 0 ? sample_of(map, position, (size_t)best.second)->value : NAN;
        if (best.system < 0 || (map->is_lowest ? value < first : value > first)) {
            best.second = best.system;
            best.system = (int)i;
        } else if (best.second < 0 || (map->is_lowest ? value < next : value > next)) {
            best.second = (int)i;
        }
    }
    if (best.system >= 0) {
        double first = sample_of(map, position, (size_t)best.system)->value;
        double next = best.second >= 0 ? sample_of(map, position, (size_t)best.second)->value : 0;
        double low = map->is_lowest ? first : next, high = map->is_lowest ? next : first;
        best.lead = best.second < 0 || low <= 0 ? INFINITY : high / low - 1;
    }
    return best;
}

static size_t distance(size_t a, size_t b) {
    return a > b ? a - b : b - a;
}

/* The position of the cell that was run and is nearest. Where a neighbour was divided there may be some on the edges.
 */
static size_t nearest_run(const struct hx_map *map, const struct hx_map_cell *cell, size_t x, size_t y) {
    size_t nearest = hx_map_position(map, cell->low[0], cell->low[1]), least = SIZE_MAX;
    for (size_t px = cell->low[0]; px <= cell->high[0]; px++) {
        for (size_t py = cell->low[1]; py <= cell->high[1]; py++) {
            size_t far = distance(px, x) + distance(py, y);
            if (map->is_run[hx_map_position(map, px, py)] && far < least) {
                least = far;
                nearest = hx_map_position(map, px, py);
            }
        }
    }
    return nearest;
}

/* Once all is run: the best at every position. */
static void bests_fill(struct hx_map *map) {
    for (size_t i = 0; i < map->cell_count; i++) {
        const struct hx_map_cell *cell = &map->cells[i];
        for (size_t x = cell->low[0]; x <= cell->high[0]; x++) {
            for (size_t y = cell->low[1]; y <= cell->high[1]; y++) {
                size_t position = hx_map_position(map, x, y);
                size_t run = map->is_run[position] ? position : nearest_run(map, cell, x, y);
                map->bests[position] = best_of(map, run);
            }
        }
    }
}

struct hx_map_best hx_map_best_at(const struct hx_map *map, size_t x, size_t y) {
    return map->bests[hx_map_position(map, x, y)];
}

size_t hx_map_run_count(const struct hx_map *map) {
    size_t count = 0;
    for (size_t i = 0; i < map->axes[0].count * map->axes[1].count; i++) {
        count += map->is_run[i];
    }
    return count;
}

/* ---- dividing cells --------------------------------------------------------------------------------------------- */

/* True if the winners within the cell differ, or one of them leads by little. */
static bool is_border(const struct hx_map *map, const struct hx_map_cell *cell) {
    int winner = -2;
    for (size_t x = cell->low[0]; x <= cell->high[0]; x++) {
        for (size_t y = cell->low[1]; y <= cell->high[1]; y++) {
            size_t position = hx_map_position(map, x, y);
            if (!map->is_run[position]) {
                continue;
            }
            struct hx_map_best best = best_of(map, position);
            if ((winner != -2 && winner != best.system) || (best.second >= 0 && best.lead < map->margin)) {
                return true;
            }
            winner = best.system;
        }
    }
    return false;
}

/* Replaces cells along borders by halves in each direction that has positions between; false if there are none. */
static int divide_cells(struct hx_map *map, bool *is_divided, struct dm_err *err) {
    size_t count = map->cell_count;
    *is_divided = false;
    for (size_t i = 0; i < count; i++) {
        struct hx_map_cell cell = map->cells[i];
        size_t ends[2][3], parts[2];
        for (size_t k = 0; k < 2; k++) {
            parts[k] = cell.high[k] - cell.low[k] > 1 ? 2 : 1;
            ends[k][0] = cell.low[k];
            ends[k][1] = parts[k] == 2 ? (cell.low[k] + cell.high[k]) / 2 : cell.high[k];
            ends[k][2] = cell.high[k];
        }
        if (parts[0] * parts[1] == 1 || !is_border(map, &cell)) {
            continue;
        }
        *is_divided = true;
        for (size_t a = 0; a < parts[0]; a++) {
            for (size_t b = 0; b < parts[1]; b++) {
                if (a + b == 0) { /* the first part takes the cell's own entry */
                    map->cells[i] = (struct hx_map_cell){{ends[0][0], ends[1][0]}, {ends[0][1], ends[1][1]}};
                } else {
                    DM_TRY(cell_add(map, ends[0][a], ends[0][a + 1], ends[1][b], ends[1][b + 1], err));
                }
            }
        }
    }
    return 0;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static int point_spec(const struct hx_map *map, size_t x, size_t y, size_t system, json_t **spec, struct dm_err *err) {
    json_t *merged = hx_json_merge(map->base, map->systems[system].config);
    if (!merged) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a point");
    }
    int rc = hx_map_axis_put(&map->axes[0], x, merged, err);
    rc = rc < 0 ? rc : hx_map_axis_put(&map->axes[1], y, merged, err);
    rc = rc < 0 ? rc : hx_config_put_set_of(&merged, err);
    if (rc < 0) {
        json_decref(merged);
        return rc;
    }
    *spec = merged;
    return 0;
}

/* A point whose index and position of the map belong together. */
struct wanted {
    size_t position, system, point;
};
struct wanted_list {
    struct wanted *items;
    size_t count;
};

/* Adds the points of one position. A system that refuses the position has none there; it is counted. */
static int position_add(struct hx_map *map, size_t x, size_t y, struct hx_points *points, struct wanted_list *list,
                        struct dm_err *err) {
    struct wanted *grown = realloc(list->items, (list->count + map->system_count) * sizeof(*grown));
    if (!grown) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
    }
    list->items = grown;
    for (size_t i = 0; i < map->system_count; i++) {
        struct hx_map_system *system = &map->systems[i];
        char label[512];
        size_t point = 0;
        json_t *spec = NULL;
        snprintf(label, sizeof(label), "%s %s=%s %s=%s", system->label, map->axes[0].option, map->axes[0].texts[x],
                 map->axes[1].option, map->axes[1].texts[y]);
        DM_TRY(point_spec(map, x, y, i, &spec, err));
        int rc = hx_points_add(points, spec, system->label, label, &point, err);
        json_decref(spec);
        if (rc == DM_ERR_NO_MEMORY) {
            return rc;
        }
        if (rc < 0) {
            system->refused++;
            snprintf(system->reason, sizeof(system->reason), "%s", err->text);
        } else {
            list->items[list->count++] = (struct wanted){hx_map_position(map, x, y), i, point};
        }
    }
    return 0;
}

/* Adds the points of all corners that were not run. */
static int corners_add(struct hx_map *map, struct hx_points *points, struct wanted_list *list, struct dm_err *err) {
    for (size_t i = 0; i < map->cell_count; i++) {
        for (unsigned corner = 0; corner < 4; corner++) {
            const struct hx_map_cell *cell = &map->cells[i];
            size_t x = corner & 1 ? cell->high[0] : cell->low[0], y = corner & 2 ? cell->high[1] : cell->low[1];
            size_t position = hx_map_position(map, x, y);
            if (!map->is_run[position]) {
                map->is_run[position] = true;
                DM_TRY(position_add(map, x, y, points, list, err));
            }
        }
    }
    return 0;
}

/* At the first positions: no system at all can run, which is most likely a mistake in the options. */
static int check_systems(const struct hx_map *map, const struct wanted_list *list, struct dm_err *err) {
    if (list->count > 0) {
        return 0;
    }
    return dm_fail(err, DM_ERR_INVALID, "no system can run here: %s", map->systems[0].reason);
}

int hx_map_first_points(struct hx_map *map, struct hx_points *points, struct dm_err *err) {
    struct wanted_list list = {.count = 0};
    int rc = corners_add(map, points, &list, err);
    rc = rc < 0 ? rc : check_systems(map, &list, err);
    free(list.items);
    return rc;
}

static void results_take(struct hx_map *map, const struct hx_points *points, const struct wanted_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const struct wanted *wanted = &list->items[i];
        struct hx_map_sample *sample = sample_of(map, wanted->position, wanted->system);
        struct dm_err err = {0};
        const struct hx_point *point = &points->items[wanted->point];
        json_t *loaded = hx_points_load(points, wanted->point, &err);
        bool is_there = loaded != NULL;
        json_t *result = hx_result_usable(loaded, point->label, point->hash);
        const json_t *value = result ? hx_json_find(result, map->metric) : NULL;
        sample->value = json_is_number(value) ? json_number_value(value) : NAN;
        memcpy(sample->point, point->hash, sizeof(sample->point));
        if (isnan(sample->value)) {
            struct hx_map_system *system = &map->systems[wanted->system];
            system->failed++;
            snprintf(system->reason, sizeof(system->reason), "%s",
                     result     ? "its results have no such value"
                     : is_there ? "operations ran out of memory or of retries"
                                : point->error);
        }
        json_decref(result);
    }
}

/* Runs what the corners need. A status of hx_points_run, or a failure. */
static int round_run(struct hx_map *map, const char *out, const struct hx_points_options *options, bool is_first,
                     struct dm_err *err) {
    struct wanted_list list = {.count = 0};
    struct hx_points *points = hx_points_new(out);
    int rc = points ? corners_add(map, points, &list, err) : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points");
    rc = rc == 0 && is_first ? check_systems(map, &list, err) : rc;
    if (rc == 0 && list.count > 0) {
        points->stale = (enum hx_stale)options->stale;
        rc = hx_points_run(points, options);
        results_take(map, points, &list);
    }
    free(list.items);
    hx_points_free(points);
    return rc;
}

int hx_map_run(struct hx_map *map, const char *out, const struct hx_points_options *options, struct dm_err *err) {
    int worst = 0;
    bool is_divided = true;
    for (unsigned round = 0; is_divided; round++) {
        int status = round_run(map, out, options, round == 0, err);
        if (status < 0 || status > 1) {
            return status;
        }
        worst = status > worst ? status : worst;
        DM_TRY(divide_cells(map, &is_divided, err));
    }
    bests_fill(map);
    return worst;
}
