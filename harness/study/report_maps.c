/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes maps of who wins into the report.
 */
#include "harness/study/report_maps.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/study/html.h"

enum { PATH_BYTES = 4096, POSITIONS_MAX = 129 };

/* The positions of an axis that were run, in the axis' order. */
struct axis {
    const char *texts[POSITIONS_MAX];
    size_t count;
};

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static void axis_read(struct axis *axis, const json_t *map, const char *name) {
    size_t at, k;
    json_t *value, *position;
    axis->count = 0;
    json_array_foreach(json_object_get(json_object_get(map, name), "values"), at, value) {
        const char *text = json_string_value(value);
        bool is_run = false;
        json_array_foreach(json_object_get(map, "positions"), k, position) {
            is_run = is_run || (text != NULL && strcmp(text_of(position, name), text) == 0);
        }
        if (is_run && axis->count < POSITIONS_MAX) {
            axis->texts[axis->count++] = text;
        }
    }
}

/* A number in few digits; what has a unit, or is no number, as it is. */
static void axis_head(FILE *out, const char *text) {
    char *end;
    double number = strtod(text, &end);
    fputs("<th>", out);
    if (end != text && *end == '\0') {
        fprintf(out, "%.4g", number);
    } else {
        hx_html_text(out, text);
    }
    fputs("</th>", out);
}

static const json_t *position_find(const json_t *positions, const char *x, const char *y) {
    size_t at;
    json_t *position;
    json_array_foreach((json_t *)positions, at, position) {
        if (strcmp(text_of(position, "x"), x) == 0 && strcmp(text_of(position, "y"), y) == 0) {
            return position;
        }
    }
    return NULL;
}

/* The best system, its lead, its result, and under the pointer what all of them have. */
static void position_cell(FILE *out, const json_t *position) {
    const char *best = text_of(position, "best"), *name;
    const char *point = text_of(json_object_get(position, "points"), best);
    const json_t *lead = json_object_get(position, "lead");
    json_t *value;
    if (position == NULL || best[0] == '\0') {
        fputs("<td></td>", out);
        return;
    }
    fputs("<td title=\"", out);
    json_object_foreach(json_object_get(position, "values"), name, value) {
        hx_html_text(out, name);
        fprintf(out, ": %.4g&#10;", json_number_value(value));
    }
    fprintf(out, "\"><a href=\"points/%s.json\">", point);
    hx_html_text(out, best);
    fputs("</a>", out);
    if (json_is_number(lead)) {
        fprintf(out, " <span class=\"soft\">+%.0f %%</span>", json_number_value(lead) * 100);
    }
    fputs("</td>", out);
}

static void positions_table(FILE *out, const json_t *map) {
    const json_t *positions = json_object_get(map, "positions");
    struct axis x, y;
    axis_read(&x, map, "x");
    axis_read(&y, map, "y");
    fputs("<details class=\"values\"><summary>the best system and its lead, by ", out);
    hx_html_text(out, text_of(json_object_get(map, "x"), "label"));
    fputs(" (columns) and ", out);
    hx_html_text(out, text_of(json_object_get(map, "y"), "label"));
    fputs(" (rows)</summary><div class=\"wide\"><table><thead><tr><th></th>", out);
    for (size_t i = 0; i < x.count; i++) {
        axis_head(out, x.texts[i]);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t k = y.count; k-- > 0;) {
        fputs("<tr>", out);
        axis_head(out, y.texts[k]);
        for (size_t i = 0; i < x.count; i++) {
            position_cell(out, position_find(positions, x.texts[i], y.texts[k]));
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div></details>\n", out);
}

/* A map from its file, "FOLDER/maps/ID.json". */
static void put_map(struct hx_page *page, const char *file) {
    char picture[PATH_BYTES];
    struct dm_err err = {.text = ""};
    json_t *map = dm_json_load(file, &err);
    const char *id = text_of(map, "id"), *title = text_of(map, "title");
    FILE *out = page->out;
    if (!json_is_array(json_object_get(map, "positions")) || strchr(id, '/') != NULL) {
        json_decref(map);
        return;
    }
    fputs("<article class=\"figure map\"><h3>", out);
    hx_html_text(out, title[0] != '\0' ? title : id);
    if (text_of(map, "scale")[0] != '\0') {
        fputs(" <span class=\"soft\">scale ", out);
        hx_html_text(out, text_of(map, "scale"));
        fputs("</span>", out);
    }
    fputs("</h3>\n<div class=\"wide map-picture\">", out);
    snprintf(picture, sizeof(picture), "%s/maps/%s.svg", page->folder, id);
    if (hx_html_svg(out, picture, page->pictures, title, &err) == 0) {
        page->pictures++;
    } else {
        fputs("<p class=\"soft\">Its picture was not drawn.</p>", out);
    }
    fputs("</div>\n", out);
    positions_table(out, map);
    fputs("</article>\n", out);
    json_decref(map);
}

void hx_page_maps(struct hx_page *page) {
    char pattern[PATH_BYTES];
    glob_t found = {.gl_pathc = 0};
    snprintf(pattern, sizeof(pattern), "%s/maps/*.json", page->folder);
    fputs("<section id=\"maps\"><h2>Which index, when</h2>\n", page->out);
    if (glob(pattern, 0, NULL, &found) != 0) {
        fputs("<p class=\"soft\">No maps here: <code>dmbench map all</code> runs and draws them.</p>\n", page->out);
    } else {
        fputs("<p>The best system in the plane of two parameters, and its lead over the second. Positions are added "
              "where the best one changes; empty ones were not run.</p>\n",
              page->out);
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        put_map(page, found.gl_pathv[i]);
    }
    globfree(&found);
    fputs("</section>\n", page->out);
}
