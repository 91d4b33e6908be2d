/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes claims into the report.
 */
#include "harness/study/report_claims.h"

#include <string.h>

#include "harness/study/claims_readings.h"
#include "harness/study/claims_text.h"
#include "harness/study/html.h"
#include "harness/study/report_groups.h"

enum { TEXT_BYTES = 1024 };

const char *hx_page_verdict_class(enum hx_verdict verdict) {
    static const char *const classes[HX_VERDICTS] = {
        [HX_REPRODUCED] = "reproduced",         [HX_READING] = "reading",       [HX_DIRECTION_ONLY] = "direction-only",
        [HX_NOT_REPRODUCED] = "not-reproduced", [HX_UNRESOLVED] = "unresolved", [HX_NOT_RUN] = "not-run",
    };
    return classes[verdict];
}

void hx_page_badge(FILE *out, enum hx_verdict verdict) {
    fprintf(out, "<span class=\"v %s\">%s</span>", hx_page_verdict_class(verdict), hx_verdict_names[verdict]);
}

/* ---- one claim -------------------------------------------------------------------------------------------------- */

static void soft_line(FILE *out, const char *text) {
    if (text[0] != '\0') {
        fputs("<p class=\"soft\">", out);
        hx_html_text(out, text);
        fputs("</p>\n", out);
    }
}

/* A number of the paper, and ours. */
static void check_row(FILE *out, const struct hx_claim *claim, const struct hx_check *check) {
    char text[TEXT_BYTES];
    fprintf(out, "<tr><td><span class=\"dot %s\" title=\"%s\"></span>", hx_page_verdict_class(check->base.verdict),
            hx_verdict_names[check->base.verdict]);
    hx_html_text(out, check->what);
    fputs("</td><td class=\"n\">", out);
    hx_check_expected(claim, check, text, sizeof(text));
    hx_html_text(out, text);
    if (check->base.verdict == HX_NOT_RUN) {
        fputs("</td><td class=\"n\"><i>not run</i></td></tr>\n", out);
        return;
    }
    fputs("</td><td class=\"n\">", out);
    hx_check_measured(claim, check, text, sizeof(text));
    hx_html_text(out, text);
    fputs("</td></tr>\n", out);
}

static void checks_table(FILE *out, const struct hx_claim *claim) {
    char text[TEXT_BYTES];
    fputs("<div class=\"wide\"><table class=\"numbers\"><thead><tr><th></th><th class=\"n\">paper</th>"
          "<th class=\"n\">here</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < claim->check_count; i++) {
        check_row(out, claim, &claim->checks[i]);
    }
    fputs("</tbody></table></div>\n", out);
    hx_claim_why(claim, text, sizeof(text));
    if (text[0] != '\0') {
        fputs("<p class=\"soft\">Not run: ", out);
        hx_html_text(out, text);
        fputs("</p>\n", out);
    }
}

/* The verdict and the numbers of a claim under a reading. */
static void reading_item(FILE *out, const struct hx_claim *claim, const struct hx_claim_reading *reading) {
    const char *separator = " ";
    fputs("<li data-reading=\"", out);
    hx_html_text(out, reading->id);
    fputs("\"><span class=\"dot ", out);
    fputs(hx_page_verdict_class(reading->verdict), out);
    fputs("\"></span><b>", out);
    hx_html_text(out, reading->id);
    fprintf(out, "</b>: %s", hx_verdict_names[reading->verdict]);
    for (size_t i = 0; i < claim->check_count && claim->kind != HX_CLAIM_TREND; i++) {
        if (reading->checks[i].verdict != HX_NOT_RUN) {
            fprintf(out, "%s%.4g", separator[0] == ' ' ? " (" : separator, reading->checks[i].value);
            separator = "; ";
        }
    }
    fprintf(out, "%s</li>", separator[0] == ';' ? ")" : "");
}

static void readings_list(FILE *out, const struct hx_claim *claim) {
    if (claim->reading_count == 0) {
        return;
    }
    fputs("<p class=\"soft\">Under readings:</p><ul class=\"readings\">", out);
    for (size_t i = 0; i < claim->reading_count; i++) {
        reading_item(out, claim, &claim->readings[i]);
    }
    fputs("</ul>\n", out);
}

static void reasons_list(FILE *out, const struct hx_claim *claim) {
    char text[TEXT_BYTES];
    if (!hx_claim_has_reasons(claim)) {
        return;
    }
    fprintf(out, "<details class=\"why\"%s><summary>why</summary><ul class=\"checks\">",
            claim->refuted_count > 0 ? " open" : "");
    for (size_t i = 0; i < claim->reason_count; i++) {
        hx_reason_text(&claim->reasons[i], text, sizeof(text));
        fputs(claim->reasons[i].verdict == HX_REASON_REFUTED ? "<li class=\"missing\">" : "<li>", out);
        hx_html_text(out, text);
        fputs("</li>", out);
    }
    fputs("</ul></details>\n", out);
}

/* Whether the claim was judged under another profile: without --sensitivity none of them was run. */
static bool has_variants(const struct hx_claim *claim) {
    bool any = false;
    for (size_t i = 0; i < claim->variant_count; i++) {
        any = any || claim->variants[i].verdict != HX_NOT_RUN;
    }
    return any;
}

void hx_page_claim(const struct hx_page *page, size_t at) {
    const struct hx_claim *claim = &page->claims->items[at];
    FILE *out = page->out;
    char text[TEXT_BYTES];
    fprintf(out, "<div class=\"claim\" id=\"claim-%s\" data-verdict=\"%s\"", claim->id,
            hx_page_verdict_class(claim->verdict));
    hx_page_put_systems(out, page->claim_systems[at]);
    fputs("><p class=\"name\">", out);
    hx_page_badge(out, claim->verdict);
    if (claim->run_count > 0 && claim->run_count < claim->check_count) {
        fprintf(out, " <span class=\"soft\">%zu of %zu parts</span>", claim->run_count, claim->check_count);
    }
    fprintf(out, " <a href=\"#claim-%s\">%s</a> <span class=\"soft\">figure ", claim->id, claim->id);
    hx_html_text(out, claim->figure);
    fputs("</span></p>\n<p class=\"says\">", out);
    hx_html_text(out, claim->text);
    fputs("</p>\n", out);
    checks_table(out, claim);
    if (claim->verdict == HX_READING) {
        hx_claim_under(claim, text, sizeof(text));
        soft_line(out, text);
    }
    readings_list(out, claim);
    if (has_variants(claim)) {
        hx_claim_sensitivity(claim, text, sizeof(text));
        soft_line(out, text);
    }
    reasons_list(out, claim);
    fputs("</div>\n", out);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void claim_row(const struct hx_page *page, size_t at) {
    const struct hx_claim *claim = &page->claims->items[at];
    FILE *out = page->out;
    fprintf(out, "<tr class=\"entry\" data-verdict=\"%s\"", hx_page_verdict_class(claim->verdict));
    hx_page_put_systems(out, page->claim_systems[at]);
    fprintf(out, "><td><a href=\"#claim-%s\">%s</a></td><td>", claim->id, claim->id);
    hx_html_text(out, claim->paper);
    fputs("</td><td>", out);
    hx_html_text(out, claim->figure);
    fputs("</td><td>", out);
    hx_html_text(out, claim->text);
    fputs("</td><td>", out);
    hx_page_badge(out, claim->verdict);
    fputs("</td></tr>\n", out);
}

void hx_page_claims(const struct hx_page *page) {
    fputs("<section id=\"claims\"><h2>All claims</h2>\n<table class=\"claims\"><thead><tr><th>claim</th><th>paper</th>"
          "<th>figure</th><th>the paper states</th><th>verdict</th></tr></thead><tbody>\n",
          page->out);
    for (size_t i = 0; i < page->claims->count; i++) {
        claim_row(page, i);
    }
    fputs("</tbody></table></section>\n", page->out);
}
