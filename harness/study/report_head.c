/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the beginning of the report, its navigation, and the summary of each paper.
 */
#include "harness/study/report_head.h"

#include <string.h>

#include "common/data_folder.h"
#include "harness/study/claims_readings.h"
#include "harness/study/html.h"
#include "harness/study/report_claims.h"
#include "harness/study/report_groups.h"

enum { TEXT_BYTES = 1024, PATH_BYTES = 4096 };

/* ---- navigation ------------------------------------------------------------------------------------------------- */

/* A dot for each claim that reads the figure, in the colour of its verdict. */
static void put_dots(const struct hx_page *page, size_t at) {
    for (size_t i = 0; i < page->claims->count; i++) {
        const struct hx_claim *claim = &page->claims->items[i];
        if (hx_claim_reads(claim, page->figures[at])) {
            fprintf(page->out, "<span class=\"dot %s\" title=\"%s: %s\"></span>", hx_page_verdict_class(claim->verdict),
                    claim->id, hx_verdict_names[claim->verdict]);
        }
    }
}

static void put_paper_links(const struct hx_page *page, size_t paper) {
    const struct hx_page_paper *item = &page->papers[paper];
    fprintf(page->out, "<li><details data-paper=\"%s\"><summary><a href=\"#%s\">", item->id, item->id);
    hx_html_text(page->out, item->name);
    fprintf(page->out, "</a> <span class=\"soft\">%zu figure%s, %zu claim%s</span></summary><ul>\n", item->figure_count,
            item->figure_count == 1 ? "" : "s", item->claim_count, item->claim_count == 1 ? "" : "s");
    for (size_t i = 0; i < page->figure_count; i++) {
        if (page->figure_paper[i] == paper) {
            const char *id = page->figures[i]->id;
            fprintf(page->out, "<li><a href=\"#figure-%s\" data-for=\"figure-%s\">", id, id);
            hx_html_text(page->out, hx_page_figure_title(page, i));
            fputs("</a> ", page->out);
            put_dots(page, i);
            fputs("</li>\n", page->out);
        }
    }
    fputs("</ul></details></li>\n", page->out);
}

static void put_navigation(const struct hx_page *page) {
    fputs("<nav id=\"contents\" aria-label=\"Contents\"><ul><li><a href=\"#overview\">What the papers claim</a></li>\n"
          "<li><a href=\"#maps\">Which index, when</a></li>\n",
          page->out);
    for (size_t i = 0; i < page->paper_count; i++) {
        if (page->papers[i].figure_count + page->papers[i].claim_count > 0) {
            put_paper_links(page, i);
        }
    }
    fputs("<li><a href=\"#claims\">All claims</a></li><li><a href=\"#network\">The simulated network</a></li>"
          "<li><a href=\"#end-to-end\">Beside real NICs</a></li>"
          "<li><a href=\"#sources\">Provenance</a></li></ul></nav>\n",
          page->out);
}

int hx_page_head(const struct hx_page *page, struct dm_err *err) {
    char path[PATH_BYTES];
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
          "<meta name=\"color-scheme\" content=\"light dark\">"
          "<title>dmbench: range indexes on disaggregated memory</title>\n",
          page->out);
    dm_data_path("plots/report/report.css", path, sizeof(path));
    DM_TRY(hx_html_file(page->out, "style", path, err));
    fprintf(page->out,
            "</head><body>\n<header id=\"top\"><div><h1>Range indexes on disaggregated memory</h1>\n"
            "<p>What papers show, measured again with one program on one and the same simulated network. All times are "
            "<b>virtual</b> unless a figure states otherwise: those of the modelled network. Scale: <b>%s</b>.</p>"
            "</div></header>\n<div id=\"page\">\n",
            page->scale);
    put_navigation(page);
    return 0;
}

/* ---- the overview ----------------------------------------------------------------------------------------------- */

static void counts_table(const struct hx_page *page) {
    fputs("<div class=\"wide\"><table><thead><tr><th>paper</th>", page->out);
    for (int i = 0; i < HX_VERDICTS; i++) {
        fputs("<th class=\"n\">", page->out);
        hx_page_badge(page->out, (enum hx_verdict)i);
        fputs("</th>", page->out);
    }
    fputs("</tr></thead><tbody>\n", page->out);
    for (size_t i = 0; i < page->paper_count; i++) {
        const struct hx_page_paper *paper = &page->papers[i];
        if (paper->claim_count == 0) {
            continue;
        }
        fprintf(page->out, "<tr><td><a href=\"#%s\">", paper->id);
        hx_html_text(page->out, paper->name);
        fputs("</a></td>", page->out);
        for (int k = 0; k < HX_VERDICTS; k++) {
            fprintf(page->out, "<td class=\"n\">%zu</td>", paper->counts[k]);
        }
        fputs("</tr>\n", page->out);
    }
    fputs("</tbody></table></div>\n", page->out);
}

void hx_page_overview(const struct hx_page *page) {
    fputs("<section id=\"overview\"><h2>What the papers claim</h2>\n<p>Each claim is judged by result files alone: "
          "reproduced (within the tolerance), reproduced under a reading (what the paper leaves open is set otherwise, "
          "with evidence), direction only (the right system wins, the size is off), not reproduced, unresolved (the "
          "verdict changes within the range that sources give for the network), or not run.</p>\n",
          page->out);
    counts_table(page);
    fputs("</section>\n", page->out);
}

/* ---- a paper ---------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static void put_about(const struct hx_page *page, const json_t *about) {
    FILE *out = page->out;
    const char *authors = text_of(about, "authors"), *venue = text_of(about, "venue");
    if (about == NULL) {
        return;
    }
    fputs("<p class=\"soft\">", out);
    hx_html_text(out, authors);
    fputs(authors[0] != '\0' ? ": " : "", out);
    fputs("<cite>", out);
    hx_html_text(out, text_of(about, "title"));
    fputs("</cite>", out);
    fputs(venue[0] != '\0' ? ", " : "", out);
    hx_html_text(out, venue);
    fputs("</p>\n<p>", out);
    hx_html_text(out, text_of(about, "shows"));
    fputs("</p>\n", out);
}

/* "31 claims: 10 reproduced, ..." */
static void put_counts(const struct hx_page *page, const struct hx_page_paper *paper) {
    const char *separator = "";
    if (paper->claim_count == 0) {
        return;
    }
    fprintf(page->out, "<p class=\"counts\"><b>%zu claim%s</b>: ", paper->claim_count,
            paper->claim_count == 1 ? "" : "s");
    for (int k = 0; k < HX_VERDICTS; k++) {
        if (paper->counts[k] > 0) {
            fprintf(page->out, "%s%zu ", separator, paper->counts[k]);
            hx_page_badge(page->out, (enum hx_verdict)k);
            separator = ", ";
        }
    }
    fputs("</p>\n", page->out);
}

/* The first reason of a claim that holds: what decides. */
static void put_reason(const struct hx_page *page, const struct hx_claim *claim) {
    char text[TEXT_BYTES];
    for (size_t i = 0; i < claim->reason_count; i++) {
        if (claim->reasons[i].verdict == HX_REASON_HOLDS) {
            hx_reason_text(&claim->reasons[i], text, sizeof(text));
            fputs(" <span class=\"soft\">", page->out);
            hx_html_text(page->out, text);
            fputs("</span>", page->out);
            return;
        }
    }
}

/* What is not as the paper has it, each with what decides. */
static void put_differences(const struct hx_page *page, size_t paper) {
    const struct hx_page_paper *item = &page->papers[paper];
    if (item->counts[HX_DIRECTION_ONLY] + item->counts[HX_NOT_REPRODUCED] + item->counts[HX_UNRESOLVED] == 0) {
        return;
    }
    fputs("<details><summary>what differs, and what decides</summary><ul class=\"checks\">\n", page->out);
    for (size_t i = 0; i < page->claims->count; i++) {
        const struct hx_claim *claim = &page->claims->items[i];
        bool differs = claim->verdict == HX_DIRECTION_ONLY || claim->verdict == HX_NOT_REPRODUCED ||
                       claim->verdict == HX_UNRESOLVED;
        if (page->claim_paper[i] == paper && differs) {
            fprintf(page->out, "<li><span class=\"dot %s\"></span><a href=\"#claim-%s\">%s</a> ",
                    hx_page_verdict_class(claim->verdict), claim->id, claim->id);
            hx_html_text(page->out, claim->text);
            put_reason(page, claim);
            fputs("</li>\n", page->out);
        }
    }
    fputs("</ul></details>\n", page->out);
}

void hx_page_paper_begin(const struct hx_page *page, size_t paper) {
    const struct hx_page_paper *item = &page->papers[paper];
    fprintf(page->out, "<section class=\"paper\" id=\"%s\"><h2>", item->id);
    hx_html_text(page->out, item->name);
    fputs("</h2>\n<div class=\"summary\">", page->out);
    put_about(page, item->about);
    put_counts(page, item);
    put_differences(page, paper);
    fputs("</div>\n", page->out);
}
