/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of figures in the report, as tables.
 */
#ifndef DM_HARNESS_STUDY_REPORT_TABLES_H
#define DM_HARNESS_STUDY_REPORT_TABLES_H

#include "harness/study/figure_data.h"
#include "harness/study/report.h"

/* The numbers of a plot, each with a link to its result. */
void hx_page_values(const struct hx_page *page, const struct hx_figure *figure, const struct hx_fig_plot *plot,
                    const struct hx_fig_data *data);

/* Where each setting of a figure comes from, its readings and experiments, and sources of published numbers. */
void hx_page_settings(const struct hx_page *page, const struct hx_figure *figure);

#endif
