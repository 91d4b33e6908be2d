/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts the figures and claims of the report by paper.
 */
#include "harness/study/report_groups.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/claims_points.h"

static const char *const other_figures = "Other figures";

bool hx_claim_reads(const struct hx_claim *claim, const struct hx_figure *figure) {
    for (size_t i = 0; i < claim->check_count; i++) {
        if (strcmp(claim->checks[i].figure, figure->id) == 0) {
            return true;
        }
    }
    return false;
}

const char *hx_page_figure_title(const struct hx_page *page, size_t at) {
    const char *title = page->figures[at]->title, *name = page->papers[page->figure_paper[at]].name;
    size_t length = strlen(name);
    if (strncmp(title, name, length) != 0 || (title[length] != ' ' && title[length] != ':')) {
        return title;
    }
    return title + length + (title[length] == ':' ? 2 : 1);
}

/* ---- papers ----------------------------------------------------------------------------------------------------- */

static int no_memory(struct dm_err *err) {
    return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the report");
}

/* An id of the page: letters and digits stay, all else is "-". */
static void make_id(const char *name, char *id, size_t capacity) {
    snprintf(id, capacity, "paper-%.60s", name);
    for (char *at = id; *at != '\0'; at++) {
        *at = isalnum((unsigned char)*at) ? *at : '-';
    }
}

/* The number of the paper of that name, which is added if it is not there; SIZE_MAX when out of memory. */
static size_t paper_find(struct hx_page *page, const char *key, const char *name, const json_t *about) {
    for (size_t i = 0; i < page->paper_count; i++) {
        if (strcmp(page->papers[i].name, name) == 0) {
            return i;
        }
    }
    struct hx_page_paper *papers = realloc(page->papers, (page->paper_count + 1) * sizeof(*papers));
    if (papers == NULL) {
        return SIZE_MAX;
    }
    page->papers = papers;
    papers[page->paper_count] = (struct hx_page_paper){.key = key, .name = name, .about = about};
    make_id(name, papers[page->paper_count].id, sizeof(papers->id));
    return page->paper_count++;
}

/* The paper that the figure's id begins with, as in "chime-12" or "overview"; NULL: none. */
static const char *paper_key(const struct hx_page *page, const struct hx_figure *figure, const json_t **about) {
    const char *key;
    json_t *object;
    json_object_foreach(page->names, key, object) {
        size_t length = strlen(key);
        if (strncmp(figure->id, key, length) == 0 && (figure->id[length] == '\0' || figure->id[length] == '-')) {
            *about = object;
            return key;
        }
    }
    return NULL;
}

static const char *about_name(const char *key, const json_t *about) {
    const char *name = json_string_value(json_object_get(about, "name"));
    return name != NULL ? name : key;
}

static size_t figure_paper(struct hx_page *page, const struct hx_figure *figure) {
    const json_t *about = NULL;
    const char *key = paper_key(page, figure, &about);
    if (key != NULL) {
        return paper_find(page, key, about_name(key, about), about);
    }
    for (size_t i = 0; i < page->claims->count; i++) {
        if (hx_claim_reads(&page->claims->items[i], figure)) {
            return paper_find(page, NULL, page->claims->items[i].paper, NULL);
        }
    }
    return paper_find(page, NULL, other_figures, NULL);
}

/* Papers of the file first, in its order, so that the page's order is theirs. */
static bool name_papers(struct hx_page *page) {
    const char *key;
    json_t *about;
    bool ok = true;
    json_object_foreach(page->names, key, about) {
        ok = ok && paper_find(page, key, about_name(key, about), about) != SIZE_MAX;
    }
    for (size_t i = 0; i < page->claims->count; i++) {
        ok = ok && paper_find(page, NULL, page->claims->items[i].paper, NULL) != SIZE_MAX;
    }
    return ok;
}

/* The figure beside which a claim is. */
static size_t claim_figure(const struct hx_page *page, const struct hx_claim *claim, size_t paper) {
    for (size_t k = 0; k < claim->check_count; k++) {
        for (size_t i = 0; i < page->figure_count; i++) {
            if (page->figure_paper[i] == paper && strcmp(claim->checks[k].figure, page->figures[i]->id) == 0) {
                return i;
            }
        }
    }
    return SIZE_MAX;
}

/* ---- systems ---------------------------------------------------------------------------------------------------- */

const char *hx_page_point_system(const struct hx_points *points, size_t point) {
    const char *index = json_string_value(json_object_get(points->items[point].config, "index"));
    return index != NULL ? index : "";
}

static void add_system(json_t *systems, const char *index) {
    if (index[0] != '\0') {
        json_object_set_new(systems, index, json_true());
    }
}

json_t *hx_page_figure_systems(const struct hx_page *page, const struct hx_figure *figure) {
    json_t *systems = json_object();
    for (size_t i = 0; i < hx_figure_slots(figure); i++) {
        add_system(systems, hx_page_point_system(page->points, hx_figure_point(figure, i, 0)));
    }
    for (size_t i = 0; i < figure->series_count; i++) {
        if (json_object_get(json_object_get(page->systems, figure->series[i].style), "name") != NULL) {
            add_system(systems, figure->series[i].style); /* of a training, which has no index */
        }
    }
    return systems;
}

/* What a claim reads, also under readings and for its reasons. */
static json_t *claim_systems(struct hx_page *page, const struct hx_claim *claim) {
    const char *const ids[] = {claim->id};
    struct dm_err unused = {.text = ""};
    json_t *systems = json_object();
    struct hx_points *points = hx_claims_points(page->claims, ids, 1, false, &unused);
    for (size_t i = 0; points != NULL && i < points->count; i++) {
        add_system(systems, hx_page_point_system(points, i));
    }
    hx_points_free(points);
    return systems;
}

void hx_page_put_systems(FILE *out, const json_t *systems) {
    const char *index, *separator = "";
    json_t *unused;
    fputs(" data-systems=\"", out);
    json_object_foreach((json_t *)systems, index, unused) {
        (void)unused;
        fprintf(out, "%s%s", separator, index);
        separator = " ";
    }
    fputc('"', out);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

int hx_page_groups(struct hx_page *page, struct dm_err *err) {
    page->figure_paper = calloc(page->figure_count + 1, sizeof(*page->figure_paper));
    page->claim_paper = calloc(page->claims->count + 1, sizeof(*page->claim_paper));
    page->claim_figure = calloc(page->claims->count + 1, sizeof(*page->claim_figure));
    page->claim_systems = calloc(page->claims->count + 1, sizeof(*page->claim_systems));
    if (page->figure_paper == NULL || page->claim_paper == NULL || page->claim_figure == NULL ||
        page->claim_systems == NULL || !name_papers(page)) {
        return no_memory(err);
    }
    for (size_t i = 0; i < page->figure_count; i++) {
        page->figure_paper[i] = figure_paper(page, page->figures[i]);
        if (page->figure_paper[i] == SIZE_MAX) {
            return no_memory(err);
        }
        page->papers[page->figure_paper[i]].figure_count++;
    }
    for (size_t i = 0; i < page->claims->count; i++) {
        const struct hx_claim *claim = &page->claims->items[i];
        size_t paper = paper_find(page, NULL, claim->paper, NULL);
        page->claim_paper[i] = paper;
        page->claim_figure[i] = claim_figure(page, claim, paper);
        page->claim_systems[i] = claim_systems(page, claim);
        page->papers[paper].counts[claim->verdict]++;
        page->papers[paper].claim_count++;
    }
    return 0;
}

void hx_page_groups_free(struct hx_page *page) {
    for (size_t i = 0; page->claim_systems != NULL && i < page->claims->count; i++) {
        json_decref(page->claim_systems[i]);
    }
    free(page->claim_systems);
    free(page->papers);
    free(page->figure_paper);
    free(page->claim_paper);
    free(page->claim_figure);
}
