/* SPDX-License-Identifier: Apache-2.0
 *
 * Judged claims as lines across plots.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_LINES_H
#define DM_HARNESS_STUDY_CLAIMS_LINES_H

#include "harness/study/claims.h"
#include "harness/study/figure_plot.h"

/* The lines that judged claims draw into a figure; the caller frees lines->items. */
int hx_claims_lines(const struct hx_claims *claims, const struct hx_figure *figure, struct hx_fig_lines *lines,
                    struct dm_err *err);

#endif
