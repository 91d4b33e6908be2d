/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the report: the validation of the fabric, and the program, profile and machine of the results.
 */
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/study/html.h"
#include "harness/study/report.h"

/* ---- the fabric ------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static void validation_row(FILE *out, const json_t *point) {
    fputs("<tr><td>", out);
    hx_html_text(out, text_of(point, "what"));
    fputs("</td><td>", out);
    hx_html_text(out, text_of(point, "profile"));
    fprintf(out, "</td><td class=\"n\">%.4g %s</td><td class=\"n\">%.4g</td><td class=\"n\">%.3f ± %.0f %%</td><td>",
            json_number_value(json_object_get(point, "published")), text_of(point, "unit"),
            json_number_value(json_object_get(point, "model")), json_number_value(json_object_get(point, "ratio")),
            json_number_value(json_object_get(point, "tolerance")) * 100);
    hx_html_text(out, text_of(point, "kind"));
    fputs("</td><td>", out);
    hx_html_text(out, text_of(point, "verdict"));
    fputs("</td><td>", out);
    hx_html_text(out, text_of(point, "source"));
    fputs("</td></tr>\n", out);
}

static void put_validation(struct hx_page *page) {
    char path[4096];
    struct dm_err err = {.text = ""};
    snprintf(path, sizeof(path), "%s/validation.json", page->folder);
    json_t *validation = dm_json_load(path, &err);
    const json_t *points = json_object_get(validation, "points");
    fputs("<h2 id=\"fabric\">The simulated network against published measurements</h2>\n", page->out);
    if (!json_is_array(points)) {
        fputs("<p class=\"missing\">Not here: `dmbench validate --json` into validation.json beside this page.</p>\n",
              page->out);
        json_decref(validation);
        return;
    }
    fprintf(
        page->out,
        "<p>%lld of %zu within their tolerance. The model's parameters are set from the rows marked calibration; the "
        "others test it. Claims of papers are no part of it.</p>\n<div class=\"wide\"><table><thead><tr><th>what</th>"
        "<th>profile</th><th>published</th><th>model</th><th>ratio</th><th>use</th><th>is</th><th>source</th></tr>"
        "</thead><tbody>\n",
        (long long)json_integer_value(json_object_get(validation, "within")), json_array_size(points));
    size_t at;
    json_t *point;
    json_array_foreach(points, at, point) {
        validation_row(page->out, point);
    }
    fputs("</tbody></table></div>\n", page->out);
    json_decref(validation);
}

/* ---- provenance ------------------------------------------------------------------------------------------------- */

/* The provenance of the results: each different value once. */
static const struct {
    const char *path, *name;
} facts[] = {
    {"schema_version", "schema version of results"},
    {"time_base", "time"},
    {"config.transport", "transport"},
    {"provenance.version", "program"},
    {"provenance.revision", "source revision"},
    {"provenance.compiler", "compiler"},
    {"provenance.build_type", "build"},
    {"provenance.sanitizer", "sanitizer"},
    {"config.profile", "profiles"},
    {"provenance.profile_hash", "hashes of profiles"},
    {"provenance.host.cpu", "processor"},
    {"provenance.host.kernel", "kernel"},
    {"config.seed", "seeds"},
};

/* Adds a value's text to a list of different texts. */
static void add_text(json_t *list, const json_t *value) {
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
    bool there = text == NULL || text[0] == '\0';
    size_t at;
    json_t *other;
    json_array_foreach(list, at, other) {
        there = there || strcmp(json_string_value(other), text) == 0;
    }
    if (!there) {
        json_array_append_new(list, json_string(text));
    }
    free(text);
}

static void put_list(FILE *out, const char *name, const json_t *list) {
    size_t at;
    json_t *text;
    if (json_array_size(list) == 0) {
        return;
    }
    fprintf(out, "<dt>%s</dt><dd>", name);
    json_array_foreach(list, at, text) {
        fputs(at > 0 ? ", " : "", out);
        hx_html_text(out, json_string_value(text));
    }
    fputs("</dd>\n", out);
}

static void put_provenance(struct hx_page *page) {
    enum { FACTS = sizeof(facts) / sizeof(facts[0]) };
    json_t *lists[FACTS];
    size_t there = 0;
    for (size_t i = 0; i < FACTS; i++) {
        lists[i] = json_array();
    }
    for (size_t i = 0; i < page->points->count; i++) {
        json_t *result = hx_points_load(page->points, i, NULL);
        there += result != NULL;
        for (size_t k = 0; k < FACTS && result != NULL; k++) {
            add_text(lists[k], hx_json_find(result, facts[k].path));
        }
        json_decref(result);
    }
    fprintf(
        page->out,
        "<h2 id=\"sources\">Configuration and provenance</h2>\n<p>%zu results of %zu points, at scale %s. Every "
        "result holds its whole configuration and runs again as it is: <code>dmbench run points/HASH.json</code>. In "
        "virtual time it then gives the same bytes.</p>\n<dl>\n",
        there, page->points->count, page->scale);
    for (size_t i = 0; i < FACTS; i++) {
        put_list(page->out, facts[i].name, lists[i]);
        json_decref(lists[i]);
    }
    fputs("</dl>\n", page->out);
}

void hx_page_sources(struct hx_page *page) {
    put_validation(page);
    put_provenance(page);
}
