/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking up curves in the results of a figure, by the names of series, panels and cases, under a profile.
 */
#include "harness/study/claims_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/opt.h"
#include "harness/base/json.h"
#include "harness/study/claim_expr.h"
#include "harness/study/figure_points.h"

/* What an expression reads from. */
struct view {
    struct hx_claims *claims;
    const struct hx_claim_scope *scope;
    struct hx_claim_figure *figure; /* with the overlay of the moment */
    struct hx_claim_figure *base;   /* what it is after with() */
    struct hx_claim_probe *probe;   /* NULL: none */
};

static int no_memory(struct dm_err *err) {
    return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for claims");
}

/* ---- figures ---------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Which figure an expression reads, and how it is changed. */
struct wanted {
    const char *id, *profile, *overlay;
    const struct hx_claim_figure *base; /* without the overlay; NULL where there is none */
};

static int fail_overlay(const struct hx_figure *figure, const char *id, struct dm_err *err) {
    char list[200] = "";
    size_t length = 0;
    for (size_t i = 0; i < figure->overlays.count && length < sizeof(list); i++) {
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i > 0 ? "; " : "",
                                   figure->overlays.items[i].id);
    }
    return dm_fail(err, DM_ERR_INVALID, "figure %s has no reading or experiment '%s' (it has: %s)", figure->id, id,
                   list);
}

/* Sets what of the figure is changed, and makes its points. */
static int figure_prepare(struct hx_claims *claims, const struct wanted *wanted, struct hx_claim_figure *view,
                          struct dm_err *err) {
    struct hx_figure *figure = view->figure;
    view->base = wanted->base;
    view->profile = wanted->profile != NULL ? strdup(wanted->profile) : NULL;
    view->used = calloc(hx_figure_slots(figure) + 1, sizeof(*view->used));
    if (view->used == NULL || (wanted->profile != NULL && view->profile == NULL)) {
        return no_memory(err);
    }
    figure->repeat = claims->repeat;
    figure->profile = view->profile;
    figure->overlay = wanted->overlay != NULL ? hx_fig_overlay_find(&figure->overlays, wanted->overlay) : NULL;
    if (wanted->overlay != NULL && figure->overlay == NULL) {
        return fail_overlay(figure, wanted->overlay, err);
    }
    return hx_figure_points(figure, claims->points, err);
}

static int figure_new(struct hx_claims *claims, const struct wanted *wanted, struct hx_claim_figure **view,
                      struct dm_err *err) {
    *view = calloc(1, sizeof(**view));
    struct hx_claim_figure **figures = realloc(claims->figures, (claims->figure_count + 1) * sizeof(*claims->figures));
    claims->figures = figures != NULL ? figures : claims->figures;
    int rc = *view == NULL || figures == NULL
                 ? no_memory(err)
                 : hx_figure_load(claims->plots, wanted->id, claims->scale, &(*view)->figure, err);
    rc = rc < 0 ? rc : figure_prepare(claims, wanted, *view, err);
    if (rc < 0) {
        if (*view != NULL) {
            hx_claim_figure_free(*view);
        }
        *view = NULL;
        return rc;
    }
    claims->figures[claims->figure_count++] = *view;
    return 0;
}

bool hx_claims_has(const struct hx_claims *claims, const char *figure) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/figures/%s.json", claims->plots, figure);
    return access(path, F_OK) == 0;
}

/* 0, or DM_NOT_FOUND if there is no such figure. */
static int figure_find(struct hx_claims *claims, const struct wanted *wanted, struct hx_claim_figure **view,
                       struct dm_err *err) {
    for (size_t i = 0; i < claims->figure_count; i++) {
        *view = claims->figures[i];
        const struct hx_fig_overlay *overlay = (*view)->figure->overlay;
        if (strcmp((*view)->figure->id, wanted->id) == 0 && same_text((*view)->profile, wanted->profile) &&
            same_text(overlay != NULL ? overlay->id : NULL, wanted->overlay)) {
            return 0;
        }
    }
    if (!hx_claims_has(claims, wanted->id)) {
        dm_fail(err, DM_ERR_INVALID, "there is no figure %s here yet", wanted->id);
        return DM_NOT_FOUND;
    }
    return figure_new(claims, wanted, view, err);
}

/* The view's figure under an overlay; NULL: without one. */
static int view_enter(void *arg, const char *overlay, struct dm_err *err) {
    struct view *view = arg;
    const struct wanted wanted = {.id = view->scope->figure,
                                  .profile = view->scope->profile,
                                  .overlay = overlay,
                                  .base = overlay != NULL ? view->base : NULL};
    return figure_find(view->claims, &wanted, &view->figure, err);
}

static int figure_load(struct hx_claims *claims, struct hx_claim_figure *view, struct dm_err *err) {
    if (view->loaded) {
        return 0;
    }
    DM_TRY(hx_fig_data_load(view->figure, claims->points, &view->data, err));
    view->loaded = true;
    return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* The item of that name; SIZE_MAX if there is none or more than one. */
static size_t find_item(const struct hx_fig_item *items, size_t count, const char *name) {
    size_t found = SIZE_MAX, hits = 0;
    for (size_t i = 0; i < count; i++) {
        int how = hx_fig_label_fits(items[i].label, name);
        if (how == 2) {
            return i;
        }
        found = how == 1 ? i : found;
        hits += how == 1;
    }
    return hits == 1 ? found : SIZE_MAX;
}

static bool is_absent(const struct hx_figure *figure, const char *name, struct dm_err *err) {
    for (size_t i = 0; i < figure->absent_count; i++) {
        if (hx_fig_label_fits(figure->absent[i].label, name) > 0) {
            dm_fail(err, DM_ERR_INVALID, "%s is not built here", figure->absent[i].label);
            return true;
        }
    }
    return false;
}

static int fail_name(const struct hx_figure *figure, const char *what, const struct hx_fig_item *items, size_t count,
                     const char *name, struct dm_err *err) {
    char list[200] = "";
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof(list); i++) {
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i > 0 ? "; " : "", items[i].label);
    }
    return dm_fail(err, DM_ERR_INVALID, "figure %s has no %s '%s', or several (it has: %s)", figure->id, what, name,
                   list);
}

struct target {
    size_t panel, series, at; /* at: SIZE_MAX for all cases */
};

/* Numeric x are given in the paper's sizes, which a smaller scale divides. */
static double paper_factor(const struct hx_figure *figure) {
    return figure->cases_as_is || figure->x_option == NULL ? 1 : hx_figure_divisor(figure, figure->x_option);
}

static double x_of(const struct view *view, size_t panel, size_t series, size_t at) {
    const struct hx_figure *figure = view->figure->figure;
    size_t slot = hx_figure_at(figure, panel, series, at);
    return hx_figure_x(figure, view->claims->points, slot, at) * paper_factor(figure);
}

static int find_case(const struct view *view, const char *name, struct target *target, struct dm_err *err) {
    const struct hx_figure *figure = view->figure->figure;
    if (figure->x_option == NULL) {
        target->at = find_item(figure->cases, figure->case_count, name);
        if (target->at == SIZE_MAX) {
            return is_absent(figure, name, err)
                       ? DM_NOT_FOUND
                       : fail_name(figure, "case", figure->cases, figure->case_count, name, err);
        }
        return 0;
    }
    double wanted = strtod(name, NULL);
    for (size_t at = 0; at < figure->case_count; at++) {
        /* values were rounded after division */
        if (fabs(x_of(view, target->panel, target->series, at) - wanted) <= fabs(wanted) * 1e-3) {
            target->at = at;
            return 0;
        }
    }
    return dm_fail(err, DM_ERR_INVALID, "figure %s has no x of %s", figure->id, name);
}

/* The names are the series, then the panel unless the only panel has no name, then optionally a case. */
static int find_target(const struct view *view, const struct hx_select *select, struct target *target,
                       struct dm_err *err) {
    const struct hx_figure *figure = view->figure->figure;
    bool panels = figure->panel_count > 1 || figure->panels[0].label[0] != '\0';
    size_t parts = panels ? 2 : 1;
    *target = (struct target){.at = SIZE_MAX};
    target->series = find_item(figure->series, figure->series_count, select->parts[0]);
    if (target->series == SIZE_MAX) {
        return is_absent(figure, select->parts[0], err)
                   ? DM_NOT_FOUND
                   : fail_name(figure, "series", figure->series, figure->series_count, select->parts[0], err);
    }
    if (select->part_count < parts || select->part_count > parts + 1) {
        return dm_fail(err, DM_ERR_INVALID, "figure %s %s: %s{%s...} has %zu names", figure->id,
                       panels ? "needs series and panel" : "has no panels", select->metric, select->parts[0],
                       select->part_count);
    }
    if (panels) {
        target->panel = find_item(figure->panels, figure->panel_count, select->parts[1]);
        if (target->panel == SIZE_MAX) {
            return fail_name(figure, "panel", figure->panels, figure->panel_count, select->parts[1], err);
        }
    }
    return select->part_count > parts ? find_case(view, select->parts[parts], target, err) : 0;
}

/* A name that all claims share, or those of a file, or a column of one of the figure's plots. */
static int find_metric(const struct view *view, const char *name, struct hx_fig_metric *metric, struct dm_err *err) {
    const struct hx_figure *figure = view->figure->figure;
    const json_t *own = json_object_get(view->scope->metrics, name);
    const json_t *shared = own != NULL ? own : json_object_get(view->claims->metrics, name);
    *metric = (struct hx_fig_metric){.column = ""};
    if (shared != NULL) {
        return hx_fig_metric_read(shared, name, metric, err);
    }
    for (size_t i = 0; i < figure->plot_count; i++) {
        for (size_t k = 0; k < figure->plots[i].y_count; k++) {
            if (strcmp(figure->plots[i].y[k].column, name) == 0) {
                *metric = figure->plots[i].y[k];
                return 0;
            }
        }
    }
    return dm_fail(err, DM_ERR_INVALID, "figure %s has no metric or column '%s'", figure->id, name);
}

/* ---- curves ----------------------------------------------------------------------------------------------------- */

/* The median over the seeds, or what the seed gave that is judged. */
static double value_at(const struct view *view, const struct hx_fig_metric *metric, size_t at) {
    const struct hx_figure *figure = view->figure->figure;
    const struct hx_fig_data *data = &view->figure->data;
    unsigned seed = view->claims->seed;
    const json_t *result = seed > 0 ? data->results[at * figure->repeat + seed - 1] : NULL;
    return seed == 0        ? hx_fig_value(figure, data, metric, at).middle
           : result != NULL ? hx_fig_metric_value(metric, result)
                            : NAN;
}

static int take_curve(const struct view *view, const struct target *target, const struct hx_fig_metric *metric,
                      struct hx_curve *curve, struct dm_err *err) {
    const struct hx_figure *figure = view->figure->figure;
    size_t first = target->at == SIZE_MAX ? 0 : target->at;
    size_t count = target->at == SIZE_MAX ? figure->case_count : 1, missing = 0;
    if (count > HX_CURVE_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "figure %s has more than %d cases", figure->id, HX_CURVE_MAX);
    }
    *curve = (struct hx_curve){.single = target->at != SIZE_MAX, .count = count};
    for (size_t i = 0; i < count; i++) {
        size_t at = hx_figure_at(figure, target->panel, target->series, first + i);
        view->figure->used[at] = true;
        const struct hx_claim_figure *base = view->figure->base;
        view->claims->differs |=
            base != NULL && base->figure->points[at * figure->repeat] != figure->points[at * figure->repeat];
        curve->x[i] = x_of(view, target->panel, target->series, first + i);
        curve->y[i] = 1;
        if (!view->claims->collecting) {
            DM_TRY(figure_load(view->claims, view->figure, err));
            bool there = true;
            for (unsigned seed = 0; seed < figure->repeat; seed++) {
                there = there && view->figure->data.results[at * figure->repeat + seed] != NULL;
            }
            missing += !there;
            curve->y[i] = value_at(view, metric, at);
        }
    }
    if (missing > 0) {
        dm_fail(err, DM_ERR_INVALID, "%zu of %zu points of figure %s are missing", missing, count, figure->id);
        return DM_NOT_FOUND;
    }
    return 0;
}

static bool same_select(const struct hx_select *a, const struct hx_select *b) {
    bool same = a->part_count == b->part_count && strcmp(a->metric, b->metric) == 0;
    for (size_t i = 0; i < a->part_count && same; i++) {
        same = strcmp(a->parts[i], b->parts[i]) == 0;
    }
    return same;
}

static void probe_curve(struct hx_claim_probe *probe, const struct hx_select *select, const struct target *target,
                        const struct hx_fig_metric *metric, struct hx_curve *curve) {
    if (!probe->found) {
        probe->found = true;
        probe->select = *select;
        probe->metric = *metric;
        probe->panel = target->panel;
        probe->series = target->series;
        probe->at = target->at;
    }
    for (size_t i = 0; i < curve->count && same_select(&probe->select, select); i++) {
        curve->y[i] *= probe->only == SIZE_MAX || probe->only == i || curve->single ? probe->factor : 1;
    }
}

static int find_curve(void *arg, const struct hx_select *select, struct hx_curve *curve, struct dm_err *err) {
    const struct view *view = arg;
    struct target target;
    struct hx_fig_metric metric;
    DM_TRY(find_metric(view, select->metric, &metric, err));
    int rc = find_target(view, select, &target, err);
    view->claims->host_time = view->claims->host_time || metric.host_time;
    rc = rc != 0 ? rc : take_curve(view, &target, &metric, curve, err);
    if (rc == 0 && view->probe != NULL) {
        probe_curve(view->probe, select, &target, &metric, curve);
    }
    return rc;
}

/* What the paper's sizes were divided by: the divisor, or for a scale without one the ratio of the numbers of keys. */
static double scale_of(const struct hx_figure *figure) {
    const json_t *paper = hx_json_find(figure->spec, "scales.paper.config.keys");
    const json_t *own = json_object_get(figure->scale_config, "keys");
    uint64_t paper_keys = 0, own_keys = 0;
    if (figure->divisor > 0) {
        return hx_figure_divisor(figure, "keys");
    }
    if (!json_is_string(paper) || !json_is_string(own) ||
        dm_parse_count(json_string_value(paper), &paper_keys, NULL) < 0 ||
        dm_parse_count(json_string_value(own), &own_keys, NULL) < 0 || own_keys == 0) {
        return 1;
    }
    return (double)paper_keys / (double)own_keys;
}

int hx_claims_number(struct hx_claims *claims, const struct hx_claim_scope *scope, const char *expression,
                     double *value, struct dm_err *err) {
    return hx_claims_probe(claims, scope, expression, NULL, value, err);
}

int hx_claims_probe(struct hx_claims *claims, const struct hx_claim_scope *scope, const char *expression,
                    struct hx_claim_probe *probe, double *value, struct dm_err *err) {
    struct view view = {.claims = claims, .scope = scope, .probe = probe};
    struct hx_curve curve;
    int rc = view_enter(&view, NULL, err);
    view.base = view.figure;
    if (rc == 0 && scope->overlay != NULL) {
        rc = view_enter(&view, scope->overlay, err);
    }
    if (rc != 0) {
        return rc;
    }
    struct hx_curve_source source = {.find = find_curve,
                                     .enter = scope->reason ? view_enter : NULL,
                                     .arg = &view,
                                     .scale = scale_of(view.figure->figure),
                                     .x_scale = paper_factor(view.figure->figure)};
    rc = hx_claim_eval(expression, &source, &curve, err);
    if (rc == 0 && !curve.single) {
        return dm_fail(err, DM_ERR_INVALID, "'%.120s' is a curve; say which of its values is meant", expression);
    }
    *value = rc == 0 ? curve.y[0] : NAN;
    return rc;
}

size_t hx_claims_variants(struct hx_claims *claims, const char *figure, struct hx_claim_variant *variants) {
    struct hx_claim_figure *view;
    const struct wanted wanted = {.id = figure};
    if (figure_find(claims, &wanted, &view, NULL) != 0) {
        return 0;
    }
    const char *profile = json_string_value(json_object_get(view->figure->config, "profile"));
    const json_t *list = profile != NULL ? json_object_get(claims->sensitivity, profile) : NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *variant = json_array_get(list, i);
        variants[i] = (struct hx_claim_variant){
            .profile = json_string_value(json_object_get(variant, "profile")),
            .parameter = json_string_value(json_object_get(variant, "parameter")),
            .verdict = HX_NOT_RUN,
        };
    }
    return json_array_size(list);
}

const struct hx_fig_overlays *hx_claims_overlays(struct hx_claims *claims, const char *figure) {
    struct hx_claim_figure *view;
    const struct wanted wanted = {.id = figure};
    return figure_find(claims, &wanted, &view, NULL) == 0 ? &view->figure->overlays : NULL;
}
