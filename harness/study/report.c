/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the report.
 */
#include "harness/study/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output_file.h"
#include "harness/study/report_claims.h"
#include "harness/study/report_data.h"
#include "harness/study/report_figures.h"
#include "harness/study/report_groups.h"
#include "harness/study/report_head.h"
#include "harness/study/report_maps.h"
#include "harness/study/report_network.h"
#include "harness/study/report_sources.h"

/* Numbers in ids by their values: chime-4 before chime-12. */
static int by_number(const void *a, const void *b) {
    return strverscmp((*(struct hx_figure *const *)a)->id, (*(struct hx_figure *const *)b)->id);
}

static int put_page(struct hx_page *page, struct dm_err *err) {
    DM_TRY(hx_page_head(page, err));
    fputs("<main id=\"main\">\n", page->out);
    hx_page_overview(page);
    hx_page_maps(page);
    DM_TRY(hx_page_papers(page, err));
    hx_page_claims(page);
    hx_page_network(page);
    hx_page_sources(page);
    fputs("</main></div>\n", page->out);
    DM_TRY(hx_page_data_put(page, err));
    fputs("</body></html>\n", page->out);
    return 0;
}

int hx_page_write(struct hx_page *page, struct dm_err *err) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof(path), "%s/report.html", page->folder) >= sizeof(path)) {
        return dm_fail(err, DM_ERR_INVALID, "--out: is too long for a path");
    }
    qsort(page->figures, page->figure_count, sizeof(struct hx_figure *), by_number);
    page->seen = json_object();
    page->facts = json_object();
    int rc = hx_page_groups(page, err);
    rc = rc < 0 ? rc : hx_page_data_begin(page, err);
    page->out = rc == 0 ? dm_output_open(path, err) : NULL;
    rc = rc < 0 ? rc : page->out == NULL ? DM_ERR_IO : put_page(page, err);
    if (page->out != NULL && rc < 0) {
        dm_output_abandon(page->out, path);
    } else if (page->out != NULL) {
        rc = dm_output_close(page->out, path, err);
    }
    json_decref(page->data);
    json_decref(page->rows);
    json_decref(page->seen);
    json_decref(page->facts);
    hx_page_groups_free(page);
    return rc;
}
