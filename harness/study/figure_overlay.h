/* SPDX-License-Identifier: Apache-2.0
 *
 * What a figure's spec says about its settings: where each comes from (`from`), and named changes of the whole figure.
 * A reading is one with evidence, for what a paper leaves open; claims are judged under it, too. An experiment is a
 * change that reasons use. A reading with `option` and `values` is one change for each value. What differs at the
 * papers' scale is in a member `paper`.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_OVERLAY_H
#define DM_HARNESS_STUDY_FIGURE_OVERLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum { HX_OVERLAY_ID_MAX = 96, HX_OVERLAYS_MAX = 64 };

/* One change. Pointers into the spec, except `id` and `config`. */
struct hx_fig_overlay {
    char id[HX_OVERLAY_ID_MAX];            /* of one value of a range: ID=VALUE */
    const char *name, *says;               /* name: the id in the spec */
    const char *from;                      /* the evidence of a reading; NULL: an experiment */
    const char *option;                    /* the option of a range; NULL: none */
    json_t *config;                        /* owned: merged over every point; NULL: nothing */
    const json_t *panels, *series, *cases; /* label to config; NULL: nothing */
};

struct hx_fig_overlays {
    struct hx_fig_overlay *items;
    size_t count;
};

/* Reads `readings` and `experiments` of a spec, at the papers' scale or another one, and checks them. The caller frees
 * what it got, also after a failure. */
int hx_fig_overlays_read(const json_t *spec, bool is_paper, const char *where, struct hx_fig_overlays *overlays,
                         struct dm_err *err);
void hx_fig_overlays_free(struct hx_fig_overlays *overlays);

/* The change of that id; NULL if there is none. */
const struct hx_fig_overlay *hx_fig_overlay_find(const struct hx_fig_overlays *overlays, const char *id);

/* What one of an overlay's `panels`, `series` or `cases` merges over the item of that label; NULL: nothing. */
const json_t *hx_fig_overlay_part(const json_t *parts, const char *label);

/* How well a name fits a label: 2 if it is the label (a new line counts as a blank); 1 if the label begins with the
 * name, followed by a character that is no letter or digit, as "YCSB C (read only)" for "YCSB C"; otherwise 0. */
int hx_fig_label_fits(const char *label, const char *name);

/* Checks `from`: each option that the spec sets has an entry, and no other has; each entry states
 * how it is known. */
int hx_fig_provenance_check(const json_t *spec, const char *where, struct dm_err *err);

/* Calls `each` for every option that the spec sets: the label of the panel, series or case ("" for the whole figure),
 * the option's name, its value, and the entry of `from` (NULL: none). Stops at a result other than 0, and returns it.
 */
typedef int (*hx_fig_setting_fn)(void *arg, const char *label, const char *option, const json_t *value,
                                 const char *from);
int hx_fig_settings_each(const json_t *spec, hx_fig_setting_fn each, void *arg);

#endif
