/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads colours and markers of systems.
 */
#include "harness/study/figure_style.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"

enum { WHERE_BYTES = 512 };

/* gnuplot's point types. A cross and a plus have no area, so they have no open form. */
static const struct {
    const char *name;
    int closed, open;
} markers[] = {{"circle", 7, 6},    {"square", 5, 4},     {"triangle", 9, 8}, {"down", 11, 10},
               {"diamond", 13, 12}, {"pentagon", 15, 14}, {"cross", 2, 2},    {"plus", 1, 1}};

static size_t marker_at(const char *name) {
    size_t i = 0;
    while (i < DM_ARRAY_LEN(markers) && (name == NULL || strcmp(markers[i].name, name) != 0)) {
        i++;
    }
    return i;
}

static int check_style(const json_t *style, bool named, const char *where, struct dm_err *err) {
    static const char *const known[] = {"name", "color", "marker", NULL};
    const json_t *name, *color, *marker;
    DM_TRY(hx_json_check(style, known, where, err));
    DM_TRY(hx_json_get(style, "name", JSON_STRING, named, where, &name, err));
    DM_TRY(hx_json_get(style, "color", JSON_STRING, true, where, &color, err));
    DM_TRY(hx_json_get(style, "marker", JSON_STRING, true, where, &marker, err));
    const char *text = json_string_value(color);
    if (strlen(text) != 7 || text[0] != '#' || text[1 + strspn(text + 1, "0123456789ABCDEF")] != '\0') {
        return dm_fail(err, DM_ERR_INVALID, "%s.color: '%.40s' is not of the form #RRGGBB", where, text);
    }
    if (marker_at(json_string_value(marker)) == DM_ARRAY_LEN(markers)) {
        const char *names[DM_ARRAY_LEN(markers)];
        for (size_t i = 0; i < DM_ARRAY_LEN(markers); i++) {
            names[i] = markers[i].name;
        }
        return dm_fail_in(err, hx_fail_unknown(err, "marker", json_string_value(marker), names, DM_ARRAY_LEN(names)),
                          "%s", where);
    }
    return 0;
}

static int check_styles(const json_t *styles, const char *where, struct dm_err *err) {
    static const char *const known[] = {"systems", "others", NULL};
    const json_t *systems, *others;
    const char *name;
    json_t *style;
    char member[WHERE_BYTES];
    DM_TRY(hx_json_check(styles, known, where, err));
    DM_TRY(hx_json_get(styles, "systems", JSON_OBJECT, true, where, &systems, err));
    DM_TRY(hx_json_get(styles, "others", JSON_ARRAY, true, where, &others, err));
    json_object_foreach((json_t *)systems, name, style) {
        snprintf(member, sizeof(member), "%.300s: systems.%.80s", where, name);
        DM_TRY(check_style(style, true, member, err));
    }
    for (size_t i = 0; i < json_array_size(others); i++) {
        snprintf(member, sizeof(member), "%.300s: others[%zu]", where, i);
        DM_TRY(check_style(json_array_get(others, i), false, member, err));
    }
    return json_array_size(others) > 0 && json_array_size(others) <= HX_OTHERS_MAX
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s: others: needs 1 to %d styles", where, HX_OTHERS_MAX);
}

int hx_fig_styles_load(const char *plots, json_t **styles, struct dm_err *err) {
    char path[WHERE_BYTES];
    snprintf(path, sizeof(path), "%.480s/systems.json", plots);
    *styles = dm_json_load(path, err);
    int rc = *styles != NULL ? check_styles(*styles, path, err) : err != NULL ? err->code : DM_ERR_INVALID;
    if (rc < 0) {
        json_decref(*styles);
        *styles = NULL;
    }
    return rc;
}

const char *hx_fig_style_other(const json_t *styles, size_t n) {
    static const char *const names[HX_OTHERS_MAX] = {"other-1", "other-2", "other-3", "other-4",
                                                     "other-5", "other-6", "other-7", "other-8"};
    size_t count = json_array_size(json_object_get(styles, "others"));
    return names[count > 0 ? n % count : 0];
}

const json_t *hx_fig_style_find(const json_t *styles, const char *name) {
    const json_t *others = json_object_get(styles, "others");
    for (size_t i = 0; i < json_array_size(others); i++) {
        if (strcmp(hx_fig_style_other(styles, i), name) == 0) {
            return json_array_get(others, i);
        }
    }
    return json_object_get(json_object_get(styles, "systems"), name);
}

json_t *hx_fig_styles_flat(const json_t *styles) {
    const json_t *others = json_object_get(styles, "others");
    json_t *flat = json_copy(json_object_get(styles, "systems"));
    for (size_t i = 0; i < json_array_size(others); i++) {
        json_object_set(flat, hx_fig_style_other(styles, i), json_array_get(others, i));
    }
    return flat;
}

static size_t marker_of(const json_t *style) {
    return marker_at(json_string_value(json_object_get(style, "marker")));
}

enum part { NAMES, COLORS, CLOSED_POINTS, OPEN_POINTS, PARTS };

static void write_word(const char *name, const json_t *style, enum part part, FILE *out) {
    switch (part) {
    case NAMES:
        fprintf(out, "%s ", name);
        break;
    case COLORS:
        fprintf(out, "%s ", json_string_value(json_object_get(style, "color")));
        break;
    case CLOSED_POINTS:
        fprintf(out, "%d ", markers[marker_of(style)].closed);
        break;
    default:
        fprintf(out, "%d ", markers[marker_of(style)].open);
    }
}

/* One word for each style, the systems first. */
static void write_words(const json_t *styles, enum part part, FILE *out) {
    static const char *const variables[PARTS] = {"systems", "colors", "closed_points", "open_points"};
    const char *name;
    json_t *style;
    size_t at;
    fprintf(out, "%s = \"", variables[part]);
    json_object_foreach(json_object_get(styles, "systems"), name, style) {
        write_word(name, style, part, out);
    }
    json_array_foreach(json_object_get(styles, "others"), at, style) {
        write_word(hx_fig_style_other(styles, at), style, part, out);
    }
    fputs("\"\n", out);
}

void hx_fig_styles_write(const json_t *styles, FILE *out) {
    fputs("# The systems' styles, from plots/systems.json.\n", out);
    for (enum part part = NAMES; part < PARTS; part++) {
        write_words(styles, part, out);
    }
    fputc('\n', out);
}
