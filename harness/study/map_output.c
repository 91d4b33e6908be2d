/* SPDX-License-Identifier: Apache-2.0
 *
 * A map as tables: JSON with everything, CSV with a row a position, Markdown with the winners.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/run/summary.h"
#include "harness/study/map.h"

enum { PATH_BYTES = 4096, CELL_BYTES = 128, COLUMNS_MAX = 12 };

static const struct hx_map_sample *sample_of(const struct hx_map *map, size_t x, size_t y, size_t system) {
    return &map->samples[hx_map_position(map, x, y) * map->system_count + system];
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *axis_to_json(const struct hx_map_axis *axis) {
    json_t *values = json_array();
    for (size_t i = 0; i < axis->count; i++) {
        json_array_append_new(values, json_string(axis->texts[i]));
    }
    return json_pack("{s:s, s:s, s:b, s:o}", "option", axis->option, "label", axis->label, "log", axis->is_log,
                     "values", values);
}

static json_t *position_to_json(const struct hx_map *map, size_t x, size_t y) {
    struct hx_map_best best = hx_map_best_at(map, x, y);
    json_t *values = json_object(), *points = json_object();
    for (size_t i = 0; i < map->system_count; i++) {
        const struct hx_map_sample *sample = sample_of(map, x, y, i);
        if (!isnan(sample->value)) {
            json_object_set_new(values, map->systems[i].label, json_real(sample->value));
            json_object_set_new(points, map->systems[i].label, json_string(sample->point));
        }
    }
    json_t *object = json_pack("{s:s, s:s, s:o, s:o}", "x", map->axes[0].texts[x], "y", map->axes[1].texts[y], "values",
                               values, "points", points);
    if (best.system >= 0) {
        json_object_set_new(object, "best", json_string(map->systems[best.system].label));
    }
    if (best.second >= 0) {
        json_object_set_new(object, "second", json_string(map->systems[best.second].label));
        json_object_set_new(object, "lead", json_real(best.lead));
    }
    return object;
}

static int json_write(const struct hx_map *map, const char *path, struct dm_err *err) {
    json_t *systems = json_array(), *positions = json_array();
    for (size_t i = 0; i < map->system_count; i++) {
        const struct hx_map_system *system = &map->systems[i];
        json_t *object = json_pack("{s:s, s:I, s:I}", "label", system->label, "refused", (json_int_t)system->refused,
                                   "failed", (json_int_t)system->failed);
        if (system->reason[0]) {
            json_object_set_new(object, "reason", json_string(system->reason));
        }
        json_array_append_new(systems, object);
    }
    for (size_t x = 0; x < map->axes[0].count; x++) {
        for (size_t y = 0; y < map->axes[1].count; y++) {
            if (map->is_run[hx_map_position(map, x, y)]) {
                json_array_append_new(positions, position_to_json(map, x, y));
            }
        }
    }
    json_t *top = json_pack("{s:i, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:O}", "schema_version", 1, "id",
                            map->id, "title", map->title, "scale", map->scale, "metric", map->metric, "is_lowest",
                            map->is_lowest, "x", axis_to_json(&map->axes[0]), "y", axis_to_json(&map->axes[1]),
                            "systems", systems, "positions", positions, "config", map->base);
    int rc = top ? dm_json_store(top, path, err) : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
    json_decref(top);
    return rc;
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* A label with a comma or a quote is quoted. */
static void csv_text(const char *text, FILE *out) {
    if (!strpbrk(text, ",\"\n")) {
        fprintf(out, "%s", text);
        return;
    }
    putc('"', out);
    for (; *text; text++) {
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    }
    putc('"', out);
}

static void csv_row(const struct hx_map *map, size_t x, size_t y, FILE *out) {
    struct hx_map_best best = hx_map_best_at(map, x, y);
    fprintf(out, "%s,%s,", map->axes[0].texts[x], map->axes[1].texts[y]);
    csv_text(best.system >= 0 ? map->systems[best.system].label : "", out);
    putc(',', out);
    csv_text(best.second >= 0 ? map->systems[best.second].label : "", out);
    putc(',', out);
    if (best.second >= 0) {
        fprintf(out, "%.6g", best.lead);
    }
    for (size_t i = 0; i < map->system_count; i++) {
        double value = sample_of(map, x, y, i)->value;
        putc(',', out);
        if (!isnan(value)) {
            fprintf(out, "%.10g", value);
        }
    }
    putc('\n', out);
}

static int csv_write(const struct hx_map *map, const char *path, struct dm_err *err) {
    FILE *out = dm_output_open(path, err);
    if (!out) {
        return DM_ERR_IO;
    }
    fprintf(out, "%s,%s,best,second,lead", map->axes[0].option, map->axes[1].option);
    for (size_t i = 0; i < map->system_count; i++) {
        putc(',', out);
        csv_text(map->systems[i].label, out);
    }
    putc('\n', out);
    for (size_t x = 0; x < map->axes[0].count; x++) {
        for (size_t y = 0; y < map->axes[1].count; y++) {
            if (map->is_run[hx_map_position(map, x, y)]) {
                csv_row(map, x, y, out);
            }
        }
    }
    return dm_output_close(out, path, err);
}

/* ---- Markdown --------------------------------------------------------------------------------------------------- */

static const char *lead_text(const struct hx_map *map, size_t x, size_t y, char text[CELL_BYTES]) {
    struct hx_map_best best = hx_map_best_at(map, x, y);
    bool is_run = map->is_run[hx_map_position(map, x, y)];
    if (best.system < 0) {
        snprintf(text, CELL_BYTES, "none");
    } else if (!is_run) {
        snprintf(text, CELL_BYTES, "(%s)", map->systems[best.system].label);
    } else if (best.second < 0) {
        snprintf(text, CELL_BYTES, "%s alone", map->systems[best.system].label);
    } else if (best.lead >= 1) {
        snprintf(text, CELL_BYTES, "%s %.1fx", map->systems[best.system].label, 1 + best.lead);
    } else {
        snprintf(text, CELL_BYTES, "%s +%.0f %%", map->systems[best.system].label, 100 * best.lead);
    }
    return text;
}

/* A table for people has at most COLUMNS_MAX columns and rows: the ends and what is evenly between them. */
static size_t shown(const struct hx_map_axis *axis, size_t at) {
    size_t count = axis->count < COLUMNS_MAX ? axis->count : (size_t)COLUMNS_MAX;
    return count > 1 ? at * (axis->count - 1) / (count - 1) : 0;
}

static size_t shown_count(const struct hx_map_axis *axis) {
    return axis->count < COLUMNS_MAX ? axis->count : (size_t)COLUMNS_MAX;
}

/* As an option takes it, but sizes with their unit. */
static const char *value_text(const struct hx_map_axis *axis, size_t at, char text[CELL_BYTES]) {
    if (axis->is_bytes) {
        return hx_bytes_text(axis->values[at], text, CELL_BYTES);
    }
    return axis->texts[at];
}

static void shares_print(const struct hx_map *map, FILE *out) {
    size_t positions = map->axes[0].count * map->axes[1].count, wins[HX_MAP_SYSTEMS_MAX + 1] = {0};
    for (size_t x = 0; x < map->axes[0].count; x++) {
        for (size_t y = 0; y < map->axes[1].count; y++) {
            int system = hx_map_best_at(map, x, y).system;
            wins[system < 0 ? HX_MAP_SYSTEMS_MAX : system]++;
        }
    }
    const char *separator = "";
    fprintf(out, "Best in so much of the plane: ");
    for (size_t i = 0; i < map->system_count; i++) {
        if (wins[i] > 0) {
            fprintf(out, "%s%s %.0f %%", separator, map->systems[i].label, 100 * (double)wins[i] / (double)positions);
            separator = ", ";
        }
    }
    fprintf(out, "%s.\n%zu of %zu positions were run; names in brackets are those of the nearest ones.\n",
            separator[0] ? "" : "none", hx_map_run_count(map), positions);
    for (size_t i = 0; i < map->system_count; i++) {
        const struct hx_map_system *system = &map->systems[i];
        if (system->refused + system->failed > 0) {
            fprintf(out, "%s has no result at %zu of them: %s.\n", system->label, system->refused + system->failed,
                    system->reason);
        }
    }
}

void hx_map_print(const struct hx_map *map, FILE *out) {
    const struct hx_map_axis *axis = map->axes;
    fprintf(out, "# %s\n\nThe best by %s (%s), and its lead over the second. Columns: %s; rows: %s.\n\n| |", map->title,
            map->metric, map->is_lowest ? "lowest" : "highest", axis[0].label, axis[1].label);
    for (size_t i = 0; i < shown_count(&axis[0]); i++) {
        char text[CELL_BYTES];
        fprintf(out, " %s |", value_text(&axis[0], shown(&axis[0], i), text));
    }
    fprintf(out, "\n|---|");
    for (size_t i = 0; i < shown_count(&axis[0]); i++) {
        fprintf(out, "---|");
    }
    fprintf(out, "\n");
    for (size_t j = shown_count(&axis[1]); j-- > 0;) {
        size_t y = shown(&axis[1], j);
        char value[CELL_BYTES];
        fprintf(out, "| %s |", value_text(&axis[1], y, value));
        for (size_t i = 0; i < shown_count(&axis[0]); i++) {
            char text[CELL_BYTES];
            fprintf(out, " %s |", lead_text(map, shown(&axis[0], i), y, text));
        }
        fprintf(out, "\n");
    }
    fprintf(out, "\n");
    shares_print(map, out);
}

int hx_map_write(const struct hx_map *map, const char *folder, const char *plots, struct dm_err *err) {
    char path[PATH_BYTES];
    if (snprintf(path, sizeof(path), "%s/%s.json", folder, map->id) >= PATH_BYTES - 8) {
        return dm_fail(err, DM_ERR_INVALID, "the name of the folder is too long");
    }
    DM_TRY(json_write(map, path, err));
    snprintf(path, sizeof(path), "%s/%s.csv", folder, map->id);
    DM_TRY(csv_write(map, path, err));
    snprintf(path, sizeof(path), "%s/%s.md", folder, map->id);
    FILE *out = dm_output_open(path, err);
    if (!out) {
        return DM_ERR_IO;
    }
    hx_map_print(map, out);
    DM_TRY(dm_output_close(out, path, err));
    return hx_map_plot(map, folder, plots, err);
}
