/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's figures and claims.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/study/claims_readings.h"
#include "harness/study/claims_text.h"
#include "harness/study/figure_published.h"
#include "harness/study/html.h"
#include "harness/study/report.h"

enum { TEXT_BYTES = 1024, PATH_BYTES = 4096 };

/* ---- claims ----------------------------------------------------------------------------------------------------- */

static void badge(FILE *out, enum hx_verdict verdict) {
    static const char *const classes[HX_VERDICTS] = {
        [HX_REPRODUCED] = "reproduced",         [HX_READING] = "reading",       [HX_DIRECTION_ONLY] = "direction-only",
        [HX_NOT_REPRODUCED] = "not-reproduced", [HX_UNRESOLVED] = "unresolved", [HX_NOT_RUN] = "not-run",
    };
    fprintf(out, "<span class=\"v %s\">%s</span>", classes[verdict], hx_verdict_names[verdict]);
}

static void check_item(FILE *out, const struct hx_claim *claim, const struct hx_check *check) {
    char text[TEXT_BYTES];
    fputs("<li>", out);
    hx_html_text(out, check->what);
    fputs(check->what[0] != '\0' ? ": " : "", out);
    hx_check_measured(claim, check, text, sizeof(text));
    hx_html_text(out, text);
    if (check->base.verdict != HX_NOT_RUN && claim->kind != HX_CLAIM_TREND) {
        hx_check_expected(claim, check, text, sizeof(text));
        fputs(" <span class=\"soft\">(expected ", out);
        hx_html_text(out, text);
        fputs(")</span>", out);
    }
    fputs("</li>", out);
}

static void soft_line(FILE *out, const char *text) {
    if (text[0] != '\0') {
        fputs("<br><span class=\"soft\">", out);
        hx_html_text(out, text);
        fputs("</span>", out);
    }
}

static void reasons_list(FILE *out, const struct hx_claim *claim) {
    char text[TEXT_BYTES];
    if (!hx_claim_has_reasons(claim)) {
        return;
    }
    fputs("<ul class=\"checks\">", out);
    for (size_t i = 0; i < claim->reason_count; i++) {
        hx_reason_text(&claim->reasons[i], text, sizeof(text));
        fputs(claim->reasons[i].verdict == HX_REASON_REFUTED ? "<li class=\"missing\">" : "<li>", out);
        hx_html_text(out, text);
        fputs("</li>", out);
    }
    fputs("</ul>", out);
}

static void claim_row(FILE *out, const struct hx_claim *claim) {
    char text[TEXT_BYTES];
    fprintf(out, "<tr id=\"claim-%s\"><td><b>%s</b><br><span class=\"soft\">figure ", claim->id, claim->id);
    hx_html_text(out, claim->figure);
    fputs("</span></td><td>", out);
    hx_html_text(out, claim->text);
    fputs("</td><td>", out);
    if (claim->run_count == 0) {
        hx_claim_why(claim, text, sizeof(text));
        hx_html_text(out, text);
    } else {
        fputs("<ul class=\"checks\">", out);
        for (size_t i = 0; i < claim->check_count; i++) {
            check_item(out, claim, &claim->checks[i]);
        }
        fputs("</ul>", out);
    }
    fputs("</td><td>", out);
    badge(out, claim->verdict);
    if (claim->run_count > 0 && claim->run_count < claim->check_count) {
        fprintf(out, " <span class=\"soft\">%zu of %zu parts</span>", claim->run_count, claim->check_count);
    }
    if (claim->verdict == HX_READING) {
        hx_claim_under(claim, text, sizeof(text));
        soft_line(out, text);
    }
    hx_claim_readings_text(claim, text, sizeof(text));
    soft_line(out, text);
    hx_claim_sensitivity(claim, text, sizeof(text));
    soft_line(out, text);
    fputs("</td><td>", out);
    reasons_list(out, claim);
    fputs("</td></tr>\n", out);
}

static void table_begin(FILE *out) {
    fputs("<table class=\"claims\"><thead><tr><th>claim</th><th>the paper says</th><th>measured</th><th>verdict</th>"
          "<th>why</th></tr></thead><tbody>\n",
          out);
}

static void counts_table(const struct hx_page *page) {
    fputs("<div class=\"wide\"><table><thead><tr><th>paper</th>", page->out);
    for (int i = 0; i < HX_VERDICTS; i++) {
        fprintf(page->out, "<th class=\"n\">%s</th>", hx_verdict_names[i]);
    }
    fputs("</tr></thead><tbody>\n", page->out);
    for (size_t i = 0; i < page->claims->count;) {
        const char *paper = page->claims->items[i].paper;
        size_t counts[HX_VERDICTS] = {0};
        for (; i < page->claims->count && strcmp(page->claims->items[i].paper, paper) == 0; i++) {
            counts[page->claims->items[i].verdict]++;
        }
        fprintf(page->out, "<tr><td><a href=\"#paper-%s\">%s</a></td>", paper, paper);
        for (int k = 0; k < HX_VERDICTS; k++) {
            fprintf(page->out, "<td class=\"n\">%zu</td>", counts[k]);
        }
        fputs("</tr>\n", page->out);
    }
    fputs("</tbody></table></div>\n", page->out);
}

void hx_page_summary(struct hx_page *page) {
    fputs("<h2 id=\"summary\">What the papers claim</h2>\n<p>Each claim is judged by result files alone: reproduced "
          "(within "
          "the tolerance), reproduced under a reading (what the paper leaves open is set otherwise, with evidence), "
          "direction only (the right system wins, the size is off), not reproduced, unresolved (the "
          "verdict changes within the range that sources give for the network), or not run.</p>\n",
          page->out);
    counts_table(page);
}

void hx_page_claims(struct hx_page *page) {
    const struct hx_claims *claims = page->claims;
    const char *paper = NULL;
    fputs("<h2 id=\"claims\">The claims, one by one</h2>\n", page->out);
    for (size_t i = 0; i < claims->count; i++) {
        const struct hx_claim *claim = &claims->items[i];
        if (paper == NULL || strcmp(paper, claim->paper) != 0) {
            fputs(paper != NULL ? "</tbody></table>\n" : "", page->out);
            paper = claim->paper;
            fprintf(page->out, "<h3 id=\"paper-%s\">%s</h3>\n", paper, paper);
            table_begin(page->out);
        }
        claim_row(page->out, claim);
    }
    fputs(paper != NULL ? "</tbody></table>\n" : "", page->out);
}

/* ---- figures ---------------------------------------------------------------------------------------------------- */

/* Whether the existing picture was drawn at the page's scale, which is in the first line of its program. */
static bool drawn_at_scale(const struct hx_page *page, const struct hx_figure *figure, const char *plot) {
    char path[PATH_BYTES], line[TEXT_BYTES] = "", wanted[64];
    snprintf(path, sizeof(path), "%s/figures/%s/%s.gp", page->folder, figure->id, plot);
    snprintf(wanted, sizeof(wanted), "--scale %s`", figure->scale);
    FILE *in = fopen(path, "r");
    bool got = in != NULL && fgets(line, sizeof(line), in) != NULL;
    if (in != NULL) {
        fclose(in);
    }
    return got && strstr(line, wanted) != NULL;
}

static bool put_plot(struct hx_page *page, const struct hx_figure *figure, const struct hx_fig_plot *plot) {
    char path[PATH_BYTES];
    struct dm_err err = {.text = ""};
    snprintf(path, sizeof(path), "%s/figures/%s/%s.svg", page->folder, figure->id, plot->id);
    if (!drawn_at_scale(page, figure, plot->id)) {
        fprintf(page->out,
                "<p class=\"missing\">%s: no picture at scale %s here; `dmbench figure %s --scale %s` draws it."
                "</p>\n",
                plot->id, figure->scale, figure->id, page->scale);
        return false;
    }
    fputs("<figure><div class=\"wide\">", page->out);
    if (hx_html_svg(page->out, path, page->pictures++, plot->title, &err) < 0) {
        fputs("</div><figcaption class=\"missing\">", page->out);
        hx_html_text(page->out, err.text);
        fputs("</figcaption></figure>\n", page->out);
        return false;
    }
    fprintf(page->out,
            "</div><figcaption>%s: <a href=\"figures/%s/%s.tsv\">table</a>, <a href=\"figures/%s/%s.pdf\">PDF</a>, "
            "<a href=\"figures/%s/%s.png\">PNG</a>, <a href=\"figures/%s/%s.gp\">gnuplot</a></figcaption></figure>\n",
            plot->id, figure->id, plot->id, figure->id, plot->id, figure->id, plot->id, figure->id, plot->id);
    return true;
}

static bool reads(const struct hx_claim *claim, const struct hx_figure *figure) {
    for (size_t i = 0; i < claim->check_count; i++) {
        if (strcmp(claim->checks[i].figure, figure->id) == 0) {
            return true;
        }
    }
    return false;
}

static void figure_claims(const struct hx_page *page, const struct hx_figure *figure) {
    const char *separator = "<p>Claims: ";
    for (size_t i = 0; i < page->claims->count; i++) {
        const struct hx_claim *claim = &page->claims->items[i];
        if (reads(claim, figure)) {
            fprintf(page->out, "%s<a href=\"#claim-%s\">%s</a> ", separator, claim->id, claim->id);
            badge(page->out, claim->verdict);
            separator = ", ";
        }
    }
    fputs(separator[0] == ',' ? "</p>\n" : "", page->out);
}

/* A number of the paper, and ours: as the figure is, and under readings. */
static void number_row(FILE *out, const struct hx_claim *claim, size_t at) {
    const struct hx_check *check = &claim->checks[at];
    char text[TEXT_BYTES];
    fprintf(out, "<tr><td><a href=\"#claim-%s\">%s</a></td><td>", claim->id, claim->id);
    hx_html_text(out, check->what);
    fputs("</td><td class=\"n\">", out);
    hx_check_expected(claim, check, text, sizeof(text));
    hx_html_text(out, text);
    fputs("</td><td class=\"n\">", out);
    hx_check_measured(claim, check, text, sizeof(text));
    hx_html_text(out, check->base.verdict == HX_NOT_RUN ? "not run" : text);
    fputs("</td><td>", out);
    for (size_t i = 0; i < claim->reading_count; i++) {
        const struct hx_claim_reading *reading = &claim->readings[i];
        if (reading->checks[at].verdict != HX_NOT_RUN) {
            fprintf(out, "%s: %.4g<br>", reading->id, reading->checks[at].value);
        }
    }
    fputs("</td></tr>\n", out);
}

/* The paper's numbers beside ours. */
static void figure_numbers(const struct hx_page *page, const struct hx_figure *figure) {
    size_t rows = 0;
    for (size_t i = 0; i < page->claims->count; i++) {
        const struct hx_claim *claim = &page->claims->items[i];
        for (size_t k = 0; k < claim->check_count && claim->kind != HX_CLAIM_TREND; k++) {
            if (strcmp(claim->checks[k].figure, figure->id) != 0) {
                continue;
            }
            if (rows++ == 0) {
                fputs("<div class=\"wide\"><table><thead><tr><th>claim</th><th>number</th><th class=\"n\">paper</th>"
                      "<th class=\"n\">here</th><th>under readings</th></tr></thead><tbody>\n",
                      page->out);
            }
            number_row(page->out, claim, k);
        }
    }
    fputs(rows > 0 ? "</tbody></table></div>\n" : "", page->out);
}

static int setting_row(void *arg, const char *label, const char *option, const json_t *value, const char *from) {
    FILE *out = arg;
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    fputs("<tr><td>", out);
    hx_html_text(out, label);
    fputs(label[0] != '\0' ? ": " : "", out);
    hx_html_text(out, option);
    fputs("</td><td>", out);
    hx_html_text(out, json_is_string(value) ? json_string_value(value) : text != NULL ? text : "");
    fputs("</td><td>", out);
    hx_html_text(out, from != NULL ? from : "");
    fputs("</td></tr>\n", out);
    free(text);
    return 0;
}

/* Where each setting comes from, and what was tried instead. */
static void figure_settings(const struct hx_page *page, const struct hx_figure *figure) {
    FILE *out = page->out;
    fputs("<details><summary class=\"soft\">settings, readings and experiments</summary><div class=\"wide\"><table>"
          "<thead><tr><th>setting</th><th>value in the paper's sizes</th><th>from</th></tr></thead><tbody>\n",
          out);
    hx_fig_settings_each(figure->spec, setting_row, out);
    fputs("</tbody></table></div>\n<ul class=\"checks\">", out);
    for (size_t i = 0; i < figure->overlays.count; i++) {
        const struct hx_fig_overlay *overlay = &figure->overlays.items[i];
        fprintf(out, "<li>%s <b>%s</b>: ", overlay->from != NULL ? "reading" : "experiment", overlay->id);
        hx_html_text(out, overlay->says);
        if (overlay->from != NULL) {
            fputs(" <span class=\"soft\">(", out);
            hx_html_text(out, overlay->from);
            fputs(")</span>", out);
        }
        fputs("</li>\n", out);
    }
    for (size_t i = 0; i < figure->published_count; i++) {
        fputs("<li>", out);
        hx_html_text(out, figure->published[i].label);
        fputs(" <span class=\"soft\">(", out);
        hx_html_text(out, figure->published[i].source);
        fputs(")</span></li>\n", out);
    }
    fputs("</ul></details>\n", out);
}

/* The results that the figure is made of. */
static void figure_points(const struct hx_page *page, const struct hx_figure *figure) {
    size_t count = hx_figure_slots(figure) * figure->repeat;
    fprintf(page->out, "<details><summary class=\"soft\">%zu results</summary><p class=\"soft\">", count);
    for (size_t i = 0; i < count; i++) {
        const struct hx_point *point = &page->points->items[figure->points[i]];
        if (point->state == HX_POINT_THERE) {
            fprintf(page->out, "<a href=\"%s/%s.json\">%s</a> ", hx_point_folder(point), point->hash, point->hash);
        }
    }
    fputs("</p></details>\n", page->out);
}

static int put_figure(struct hx_page *page, struct hx_figure *figure, struct dm_err *err) {
    char absent[TEXT_BYTES];
    struct hx_fig_data data;
    fprintf(page->out, "<section><h3 id=\"figure-%s\">", figure->id);
    hx_html_text(page->out, figure->title);
    fprintf(page->out, " <span class=\"soft\">%s</span></h3>\n<p>Shows ", figure->id);
    hx_html_text(page->out, figure->shows);
    fputs(".</p>\n<p class=\"soft\">Keeps: ", page->out);
    hx_html_text(page->out, figure->keeps);
    fputs(".</p>\n", page->out);
    hx_fig_absent_text(figure, absent, sizeof(absent));
    if (absent[0] != '\0') {
        fputs("<p class=\"soft\">Systems ", page->out);
        hx_html_text(page->out, absent);
        fputs(".</p>\n", page->out);
    }
    figure_claims(page, figure);
    figure_settings(page, figure);
    size_t slots = hx_figure_slots(figure);
    if (slots == 0) {
        fputs("<p class=\"missing\">None of its systems is built here.</p></section>\n", page->out);
        return 0;
    }
    DM_TRY(hx_fig_data_load(figure, page->points, &data, err));
    bool whole = data.missing == 0;
    if (!whole) {
        fprintf(page->out,
                "<p class=\"missing\">%zu of its %zu points are missing; panels that need them are not "
                "drawn.</p>\n",
                data.missing, slots);
    }
    for (size_t i = 0; i < figure->plot_count; i++) {
        whole = put_plot(page, figure, &figure->plots[i]) && whole;
    }
    page->incomplete += !whole;
    figure_numbers(page, figure);
    figure_points(page, figure);
    hx_fig_data_fini(figure, &data);
    fputs("</section>\n", page->out);
    return 0;
}

int hx_page_figures(struct hx_page *page, struct dm_err *err) {
    fprintf(page->out, "<h2 id=\"figures\">Figures</h2>\n");
    hx_points_scan(page->points);
    for (size_t i = 0; i < page->figure_count; i++) {
        DM_TRY(put_figure(page, page->figures[i], err));
    }
    return 0;
}
