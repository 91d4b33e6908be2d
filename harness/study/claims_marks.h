/* SPDX-License-Identifier: Apache-2.0
 *
 * What claims say, beside what was measured, for the pictures of figures.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_MARKS_H
#define DM_HARNESS_STUDY_CLAIMS_MARKS_H

#include "harness/study/claims.h"
#include "harness/study/figure_plot.h"

/* A mark for each judged number or ratio that reads the figure: beside the first curve of its value, at the height at
 * which the check would have the paper's value while all other curves stay as they were measured. One whose value does
 * not follow that curve has none. The caller frees marks->items. */
int hx_claims_marks(struct hx_claims *claims, const struct hx_figure *figure, struct hx_fig_marks *marks,
                    struct dm_err *err);

#endif
