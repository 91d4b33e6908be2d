/* SPDX-License-Identifier: Apache-2.0
 *
 * What the report's script reads: the numbers of the figures, as JSON.
 */
#ifndef DM_HARNESS_STUDY_REPORT_DATA_H
#define DM_HARNESS_STUDY_REPORT_DATA_H

#include "harness/study/figure_data.h"
#include "harness/study/report.h"

/* Begins page->data. 0 or DM_ERR_NO_MEMORY. */
int hx_page_data_begin(struct hx_page *page, struct dm_err *err);

/* Adds a figure with what its points measured, also under the readings that claims have evaluated. 0 or
 * DM_ERR_NO_MEMORY. */
int hx_page_data_figure(struct hx_page *page, const struct hx_figure *figure, const struct hx_fig_data *data,
                        struct dm_err *err);

/* Writes the data, the libraries and the script into the page. 0, DM_ERR_IO, DM_ERR_NO_MEMORY. */
int hx_page_data_put(const struct hx_page *page, struct dm_err *err);

#endif
