/* SPDX-License-Identifier: Apache-2.0
 *
 * All points of a scale.
 */
#include "harness/study/scale_points.h"

#include <stdio.h>
#include <unistd.h>

#include "harness/study/claims_open.h"
#include "harness/study/claims_points.h"
#include "harness/study/experiment.h"
#include "harness/study/figure_points.h"

enum { PATH_BYTES = 4096 };

static int add_figure(const char *plots, const char *id, const char *scale, unsigned repeat, struct hx_points *points,
                      struct dm_err *err) {
    struct hx_figure *figure;
    DM_TRY(hx_figure_load(plots, id, scale, &figure, err));
    figure->repeat = repeat > 0 ? repeat : figure->repeat;
    int rc = hx_figure_points(figure, points, err);
    hx_figure_free(figure);
    return rc;
}

static int add_figures(const char *plots, const char *scale, unsigned repeat, struct hx_points *points,
                       struct dm_err *err) {
    char **ids;
    DM_TRY(hx_figure_ids(plots, &ids, err));
    int rc = 0;
    for (size_t i = 0; ids[i] != NULL && rc == 0; i++) {
        rc = add_figure(plots, ids[i], scale, repeat, points, err);
    }
    hx_figure_ids_free(ids);
    return rc;
}

static bool has_folder(const char *plots, const char *name) {
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof(path), "%s/%s", plots, name);
    return length < PATH_BYTES && access(path, F_OK) == 0;
}

static int add_claims(const char *plots, const char *scale, unsigned repeat, struct hx_points *points,
                      struct dm_err *err) {
    struct hx_claims *claims = NULL;
    size_t unused;
    if (!has_folder(plots, "claims")) {
        return 0;
    }
    DM_TRY(hx_claims_open(plots, points->out, scale, repeat > 0 ? repeat : 1, &claims, err));
    struct hx_points *read = hx_claims_points(claims, NULL, 0, true, err);
    int rc = read != NULL ? 0 : err->code < 0 ? err->code : DM_ERR_NO_MEMORY;
    for (size_t i = 0; rc == 0 && i < read->count; i++) {
        const struct hx_point *point = &read->items[i];
        rc = hx_points_add(points, point->config, point->label, point->label, &unused, err);
    }
    hx_points_free(read);
    hx_claims_close(claims);
    return rc;
}

/* Published experiments are run at their smaller size unless asked otherwise, at every scale. */
static int add_experiments(const char *plots, struct hx_points *points, struct dm_err *err) {
    char **ids;
    if (!has_folder(plots, "end_to_end")) {
        return 0;
    }
    DM_TRY(hx_spec_ids(plots, "end_to_end", &ids, err));
    int rc = 0;
    for (size_t i = 0; ids[i] != NULL && rc == 0; i++) {
        for (int paper = 0; paper < 2 && rc == 0; paper++) {
            struct hx_experiment *experiment = NULL;
            rc = hx_experiment_load(plots, ids[i], &experiment, err);
            rc = rc < 0 ? rc : hx_experiment_runs(experiment, paper != 0, points, err);
            hx_experiment_free(experiment);
        }
    }
    hx_figure_ids_free(ids);
    return rc;
}

struct hx_points *hx_scale_points(const char *plots, const char *out, const char *scale, unsigned repeat,
                                  struct dm_err *err) {
    struct hx_points *points = hx_points_new(out);
    int rc = points == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points") : 0;
    rc = rc < 0 ? rc : add_figures(plots, scale, repeat, points, err);
    rc = rc < 0 ? rc : add_claims(plots, scale, repeat, points, err);
    rc = rc < 0 ? rc : add_experiments(plots, points, err);
    if (rc < 0) {
        hx_points_free(points);
        points = NULL;
    }
    return points;
}
