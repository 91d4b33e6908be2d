/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the report: the program, profiles and machines of the results.
 */
#include "harness/study/report_sources.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/study/html.h"

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
    {"provenance.profile.hash", "hashes of profiles"},
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

enum { FACTS = sizeof(facts) / sizeof(facts[0]) };

void hx_page_sources_add(struct hx_page *page, const char *hash, const json_t *result) {
    if (json_object_get(page->seen, hash) != NULL) {
        return;
    }
    json_object_set_new(page->seen, hash, json_true());
    for (size_t k = 0; k < FACTS; k++) {
        json_t *list = json_object_get(page->facts, facts[k].path);
        if (list == NULL) {
            json_object_set_new(page->facts, facts[k].path, json_array());
            list = json_object_get(page->facts, facts[k].path);
        }
        add_text(list, hx_json_find(result, facts[k].path));
    }
}

void hx_page_sources(const struct hx_page *page) {
    fprintf(page->out,
            "<section id=\"sources\"><h2>Configuration and provenance</h2>\n<p>%zu results of %zu points, at scale %s. "
            "Every result holds its whole configuration and runs again as it is: <code>dmbench run "
            "points/HASH.json</code>. In virtual time it then gives the same bytes.</p>\n<dl>\n",
            json_object_size(page->seen), page->points->count, page->scale);
    for (size_t i = 0; i < FACTS; i++) {
        put_list(page->out, facts[i].name, json_object_get(page->facts, facts[i].path));
    }
    fputs("</dl></section>\n", page->out);
}
