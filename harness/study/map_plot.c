/* SPDX-License-Identifier: Apache-2.0
 *
 * The picture of a map: a rectangle a position in the colour of the best system, the fainter the smaller its lead,
 * lines where the best one changes, and dots where points were run.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/output_file.h"
#include "harness/study/figure_style.h"
#include "harness/study/map.h"

enum { PATH_BYTES = 4096, LEAD_CLASSES = 4 };

/* The least lead of each class, and how much of the colour its rectangles have. */
static const double class_leads[LEAD_CLASSES] = {0, 0.05, 0.25, 1};
static const double class_fills[LEAD_CLASSES] = {0.3, 0.5, 0.75, 1};

static unsigned class_of(double lead) {
    unsigned class = LEAD_CLASSES - 1;
    while (class > 0 && lead < class_leads[class]) {
        class --;
    }
    return class;
}

/* Where the rectangle of a position begins: half a step before it. The edges of the plane are the axis' ends. */
static double edge(const struct hx_map_axis *axis, size_t at) {
    if (at == 0 || at == axis->count) {
        return axis->values[at == 0 ? 0 : at - 1];
    }
    double low = axis->values[at - 1], high = axis->values[at];
    return axis->is_log ? sqrt(low * high) : (low + high) / 2;
}

/* Blocks of rectangles, one a system and class of lead; those of no system at all; then lines; then dots. */
static void rectangles_write(const struct hx_map *map, FILE *out) {
    const struct hx_map_axis *axis = map->axes;
    for (size_t i = 0; i <= map->system_count; i++) {
        for (unsigned class = 0; class < LEAD_CLASSES; class ++) {
            int wanted = i == map->system_count ? HX_MAP_NO_WINNER : (int)i;
            fprintf(out, "# %s, lead class %u\nNaN\tNaN\tNaN\tNaN\tNaN\tNaN\n",
                    wanted < 0 ? "none" : map->systems[i].label, class);
            for (size_t x = 0; x < axis[0].count; x++) {
                for (size_t y = 0; y < axis[1].count; y++) {
                    struct hx_map_best best = hx_map_best_at(map, x, y);
                    if (best.system == wanted && class_of(best.lead) == class) {
                        fprintf(out, "%.10g\t%.10g\t%.10g\t%.10g\t%.10g\t%.10g\n", axis[0].values[x], axis[1].values[y],
                                edge(&axis[0], x), edge(&axis[0], x + 1), edge(&axis[1], y), edge(&axis[1], y + 1));
                    }
                }
            }
            fprintf(out, "\n\n");
        }
    }
}

static void lines_write(const struct hx_map *map, FILE *out) {
    const struct hx_map_axis *axis = map->axes;
    fprintf(out, "# lines between systems\nNaN\tNaN\tNaN\tNaN\n");
    for (size_t x = 0; x < axis[0].count; x++) {
        for (size_t y = 0; y < axis[1].count; y++) {
            int system = hx_map_best_at(map, x, y).system;
            if (x + 1 < axis[0].count && hx_map_best_at(map, x + 1, y).system != system) {
                double at = edge(&axis[0], x + 1), low = edge(&axis[1], y);
                fprintf(out, "%.10g\t%.10g\t0\t%.10g\n", at, low, edge(&axis[1], y + 1) - low);
            }
            if (y + 1 < axis[1].count && hx_map_best_at(map, x, y + 1).system != system) {
                double at = edge(&axis[1], y + 1), low = edge(&axis[0], x);
                fprintf(out, "%.10g\t%.10g\t%.10g\t0\n", low, at, edge(&axis[0], x + 1) - low);
            }
        }
    }
    fprintf(out, "\n\n# positions that were run\nNaN\tNaN\n");
    for (size_t x = 0; x < axis[0].count; x++) {
        for (size_t y = 0; y < axis[1].count; y++) {
            if (map->is_run[hx_map_position(map, x, y)]) {
                fprintf(out, "%.10g\t%.10g\n", axis[0].values[x], axis[1].values[y]);
            }
        }
    }
}

/* Text in single quotes of gnuplot. */
static void quoted(const char *text, FILE *out) {
    putc('\'', out);
    for (; *text; text++) {
        fprintf(out, *text == '\'' ? "''" : "%c", *text);
    }
    putc('\'', out);
}

/* The texts of values that are no numbers as marks. */
static void axis_names(const struct hx_map_axis *axis, const char *letter, FILE *out) {
    for (size_t i = 0; i < axis->count; i++) {
        fprintf(out, i == 0 ? "set %stics (" : ", ", letter);
        quoted(axis->texts[i], out);
        fprintf(out, " %.10g", axis->values[i]);
    }
    fprintf(out, ")\n");
}

static void axis_program(const struct hx_map_axis *axis, const char *letter, FILE *out) {
    fprintf(out, "set %slabel ", letter);
    quoted(axis->label, out);
    fprintf(out, "\nset %srange [%.10g:%.10g]\n", letter, axis->values[0], axis->values[axis->count - 1]);
    double most = axis->values[axis->count - 1];
    if (axis->is_log && axis->values[0] > 0) {
        fprintf(out, "set logscale %s\n", letter);
    }
    if (axis->has_names) {
        axis_names(axis, letter, out);
    }
    if (most >= 1e4) {
        fprintf(out, "set format %s '%s'\n", letter, axis->is_bytes ? "%.0s %cB" : "%.0s%c");
    }
}

static bool wins_anywhere(const struct hx_map *map, int system) {
    for (size_t x = 0; x < map->axes[0].count; x++) {
        for (size_t y = 0; y < map->axes[1].count; y++) {
            if (hx_map_best_at(map, x, y).system == system) {
                return true;
            }
        }
    }
    return false;
}

/* The colour is looked up by gnuplot. */
static void system_program(const struct hx_map *map, int system, FILE *out) {
    bool is_none = system == HX_MAP_NO_WINNER;
    size_t block = (is_none ? map->system_count : (size_t)system) * LEAD_CLASSES;
    const char *index = is_none ? NULL : json_string_value(json_object_get(map->systems[system].config, "index"));
    for (unsigned class = 0; class < LEAD_CLASSES; class ++) {
        fprintf(out,
                "        name.'.tsv' index %zu using 1:2:3:4:5:6 with boxxyerror fillstyle solid %g noborder "
                "linecolor rgb color_of('%s') notitle, \\\n",
                block + class, class_fills[class], index ? index : "none");
    }
    fprintf(out, "        keyentry with boxes fillstyle solid 1 noborder linecolor rgb color_of('%s') title ",
            index ? index : "none");
    quoted(is_none ? "no result" : map->systems[system].label, out);
    fprintf(out, ", \\\n");
}

static void program_write(const struct hx_map *map, const char *plots, const json_t *styles, FILE *out) {
    fprintf(out, "# Usage: gnuplot %s.gp, in this folder\nname = '%s'; width = 560; height = 420\n", map->id, map->id);
    hx_fig_styles_write(styles, out);
    fprintf(out, "load ");
    quoted(plots, out);
    fprintf(out, ".'/style.gp'\nset datafile separator tab\nset title ");
    quoted(map->title, out);
    fprintf(out, "\n");
    axis_program(&map->axes[0], "x", out);
    axis_program(&map->axes[1], "y", out);
    fprintf(
        out,
        "set key outside right top vertical\nset tics out nomirror\nset border 3\nunset grid\nset offsets 0, 0, 0, 0\n"
        "set label 1 'full colour: leads by 2x or more; fainter: by 25 %%, by 5 %%, by less; dots: run' at graph 0, "
        "graph -0.2 font font_tic textcolor rgb color_note\nset bmargin 5.5\n"
        "color_of(s) = position_of(s) > 0 ? word(colors, position_of(s)) : '#BBBBBB'\n"
        "do for [kind in kinds] {\n    eval(open(kind))\n    plot \\\n");
    for (int i = HX_MAP_NO_WINNER; i < (int)map->system_count; i++) {
        if (wins_anywhere(map, i)) {
            system_program(map, i, out);
        }
    }
    size_t lines = (map->system_count + 1) * LEAD_CLASSES;
    fprintf(out,
            "        name.'.tsv' index %zu using 1:2:3:4 with vectors nohead linewidth 1.5 linecolor rgb 'black' "
            "notitle, \\\n"
            "        '' index %zu using 1:2 with points pointtype 7 pointsize 0.25 linecolor rgb 'black' notitle\n"
            "    unset output\n}\n",
            lines, lines + 1);
}

static int data_write(const struct hx_map *map, const char *folder, struct dm_err *err) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s.tsv", folder, map->id);
    FILE *out = dm_output_open(path, err);
    if (!out) {
        return DM_ERR_IO;
    }
    rectangles_write(map, out);
    lines_write(map, out);
    return dm_output_close(out, path, err);
}

int hx_map_plot(const struct hx_map *map, const char *folder, const char *plots, struct dm_err *err) {
    char path[PATH_BYTES];
    char *whole = realpath(plots, NULL); /* the program may run in another folder */
    if (!whole) {
        return dm_fail(err, DM_ERR_IO, "%s: %s", plots, strerror(errno));
    }
    json_t *styles = NULL;
    int rc = hx_fig_styles_load(plots, &styles, err);
    rc = rc < 0 ? rc : data_write(map, folder, err);
    snprintf(path, sizeof(path), "%s/%s.gp", folder, map->id);
    FILE *out = rc == 0 ? dm_output_open(path, err) : NULL;
    if (out) {
        program_write(map, whole, styles, out);
        rc = dm_output_close(out, path, err);
    }
    json_decref(styles);
    free(whole);
    return out ? rc : rc < 0 ? rc : DM_ERR_IO;
}
