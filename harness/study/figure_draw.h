/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing figures from the results of their points.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_DRAW_H
#define DM_HARNESS_STUDY_FIGURE_DRAW_H

#include "harness/study/claims.h"
#include "harness/study/figure.h"
#include "harness/study/figure_plot.h"

struct hx_drawing {
    const char *plots; /* the folder that has style.gp */
    const char *out;   /* pictures go to <out>/figures/<id> */
    bool no_plot;      /* write tables and programs, draw nothing */
    struct hx_fig_look look;
    struct hx_figure *const *figures;
    size_t figure_count;
    const struct hx_points *points;
    struct hx_claims *claims; /* judged; NULL: no marks */
};

/* What could not be drawn. */
struct hx_undone {
    size_t points; /* missing */
    size_t plots;  /* that gnuplot failed to draw */
};

/* Draws all figures; each picture's path is printed. 0; DM_ERR_STOPPED after a signal; DM_ERR_UNSUPPORTED without
 * gnuplot; DM_ERR_IO, DM_ERR_NO_MEMORY. */
int hx_figures_draw(const struct hx_drawing *drawing, struct hx_undone *undone, struct dm_err *err);

#endif
