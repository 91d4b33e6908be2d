/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that a paper published, beside a figure's own: drawn as points, and rows of the tables.
 *
 *     "published": [{"label": "paper: XStore", "plot": "throughput", "panel": "uniform", "series": "XStore",
 *                    "source": "figure 10", "x": ["A", "B"], "y": [41, 80]}]
 *
 * `series` is the figure's series of the same system, beside which the points are; `style` that of a system which the
 * figure does not have. x are names of cases, or numbers of the x axis in the paper's sizes. y belong to the column
 * `column`, the plot's first one by default.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_PUBLISHED_H
#define DM_HARNESS_STUDY_FIGURE_PUBLISHED_H

#include "harness/study/figure.h"

/* Pointers into the spec. */
struct hx_fig_published {
    const char *label, *source, *style;
    size_t plot, panel, metric;
    size_t series; /* SIZE_MAX: none of the figure's */
    const json_t *x, *y;
};

/* Reads the spec's `published`; *items is NULL without them, and the caller frees it. Refuses what does not fit the
 * figure. A series that is not built here is none. */
int hx_fig_published_read(const struct hx_figure *figure, const char *where, struct hx_fig_published **items,
                          size_t *count, struct dm_err *err);

/* The number of points, and one of them: its x in the table, or its case's number, and its y. `divisor` is that of the
 * x option. NaN for a case that is not built here. */
size_t hx_fig_published_count(const struct hx_fig_published *item);
double hx_fig_published_x(const struct hx_figure *figure, const struct hx_fig_published *item, size_t at,
                          double divisor);
double hx_fig_published_y(const struct hx_fig_published *item, size_t at);

#endif
