/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the papers and their figures into the report.
 */
#include "harness/study/report_figures.h"

#include <stdint.h>
#include <string.h>

#include "harness/study/html.h"
#include "harness/study/report_claims.h"
#include "harness/study/report_data.h"
#include "harness/study/report_groups.h"
#include "harness/study/report_head.h"
#include "harness/study/report_sources.h"
#include "harness/study/report_tables.h"

enum { TEXT_BYTES = 1024, PATH_BYTES = 4096 };

/* ---- pictures --------------------------------------------------------------------------------------------------- */

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

/* The picture, and links to what else was drawn. */
static bool put_picture(struct hx_page *page, const struct hx_figure *figure, const struct hx_fig_plot *plot) {
    char path[PATH_BYTES];
    struct dm_err err = {.text = ""};
    snprintf(path, sizeof(path), "%s/figures/%s/%s.svg", page->folder, figure->id, plot->id);
    if (!drawn_at_scale(page, figure, plot->id)) {
        fprintf(page->out,
                "<p class=\"missing\">%s: no picture at scale %s here; <code>dmbench figure %s --scale %s</code> draws "
                "it.</p>\n",
                plot->id, figure->scale, figure->id, page->scale);
        return false;
    }
    fputs("<div class=\"picture wide\">", page->out);
    if (hx_html_svg(page->out, path, page->pictures++, plot->title, &err) < 0) {
        fputs("</div><p class=\"missing\">", page->out);
        hx_html_text(page->out, err.text);
        fputs("</p>\n", page->out);
        return false;
    }
    fputs("</div>\n<p class=\"soft files\">", page->out);
    static const char *const kinds[][2] = {{"tsv", "table"}, {"pdf", "PDF"}, {"png", "PNG"}, {"gp", "gnuplot"}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        fprintf(page->out, "%s<a href=\"figures/%s/%s.%s\">%s</a>", i > 0 ? ", " : "", figure->id, plot->id,
                kinds[i][0], kinds[i][1]);
    }
    fputs("</p>\n", page->out);
    return true;
}

static bool put_plot(struct hx_page *page, const struct hx_figure *figure, size_t at, const struct hx_fig_data *data) {
    const struct hx_fig_plot *plot = &figure->plots[at];
    fprintf(page->out, "<figure class=\"plot\" id=\"plot-%s-%s\" data-plot=\"%zu\">", figure->id, plot->id, at);
    fputs("<figcaption>", page->out);
    hx_html_text(page->out, plot->title);
    fputs("</figcaption>\n", page->out);
    bool whole = put_picture(page, figure, plot);
    hx_page_values(page, figure, plot, data);
    fputs("</figure>\n", page->out);
    return whole;
}

/* ---- figures ---------------------------------------------------------------------------------------------------- */

/* The claims that are beside the figure, and links to those that read it and are beside another one. */
static void put_claims(const struct hx_page *page, size_t at) {
    const char *separator = "<p class=\"soft\">Read by ";
    for (size_t i = 0; i < page->claims->count; i++) {
        if (page->claim_figure[i] == at) {
            hx_page_claim(page, i);
        }
    }
    for (size_t i = 0; i < page->claims->count; i++) {
        const struct hx_claim *claim = &page->claims->items[i];
        if (page->claim_figure[i] != at && hx_claim_reads(claim, page->figures[at])) {
            fprintf(page->out, "%s<span class=\"entry\" data-verdict=\"%s\"", separator,
                    hx_page_verdict_class(claim->verdict));
            hx_page_put_systems(page->out, page->claim_systems[i]);
            fprintf(page->out, "><a href=\"#claim-%s\">%s</a> ", claim->id, claim->id);
            hx_page_badge(page->out, claim->verdict);
            fputs("</span>", page->out);
            separator = ", ";
        }
    }
    fputs(separator[0] == ',' ? "</p>\n" : "", page->out);
}

static bool has_claims(const struct hx_page *page, size_t at) {
    for (size_t i = 0; i < page->claims->count; i++) {
        if (hx_claim_reads(&page->claims->items[i], page->figures[at])) {
            return true;
        }
    }
    return false;
}

static void put_text(const struct hx_page *page, const struct hx_figure *figure) {
    char absent[TEXT_BYTES];
    fputs("<p>Shows ", page->out);
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
}

/* The plots of a figure that has points. */
static int put_plots(struct hx_page *page, struct hx_figure *figure, struct dm_err *err) {
    struct hx_fig_data data;
    DM_TRY(hx_fig_data_load(figure, page->points, &data, err));
    for (size_t i = 0; i < hx_figure_slots(figure) * figure->repeat; i++) {
        if (data.results[i] != NULL) {
            hx_page_sources_add(page, page->points->items[figure->points[i]].hash, data.results[i]);
        }
    }
    bool whole = data.missing == 0;
    if (!whole) {
        fprintf(page->out,
                "<p class=\"missing\">%zu of its %zu points are missing; panels that need them are not "
                "drawn.</p>\n",
                data.missing, hx_figure_slots(figure));
    }
    for (size_t i = 0; i < figure->plot_count; i++) {
        whole = put_plot(page, figure, i, &data) && whole;
    }
    page->incomplete += !whole;
    int rc = hx_page_data_figure(page, figure, &data, err);
    hx_fig_data_fini(figure, &data);
    return rc;
}

static int put_figure(struct hx_page *page, size_t at, struct dm_err *err) {
    struct hx_figure *figure = page->figures[at];
    bool claims = has_claims(page, at);
    json_t *systems = hx_page_figure_systems(page, figure);
    fprintf(page->out, "<article class=\"figure\" id=\"figure-%s\" data-figure=\"%s\"", figure->id, figure->id);
    hx_page_put_systems(page->out, systems);
    json_decref(systems);
    fputs("><h3>", page->out);
    hx_html_text(page->out, hx_page_figure_title(page, at));
    fprintf(page->out, " <a class=\"soft\" href=\"#figure-%s\">%s</a></h3>\n", figure->id, figure->id);
    put_text(page, figure);
    fprintf(page->out, "<div class=\"%s\"><div class=\"plots\">\n", claims ? "beside" : "alone");
    int rc = 0;
    if (hx_figure_slots(figure) == 0) {
        fputs("<p class=\"missing\">None of its systems is built here.</p>\n", page->out);
    } else {
        rc = put_plots(page, figure, err);
        fprintf(page->out, "<p class=\"soft\">Run it again: <code>dmbench figure %s --scale %s</code></p>\n",
                figure->id, page->scale);
    }
    hx_page_settings(page, figure);
    fputs("</div>\n", page->out);
    if (claims) {
        fputs("<div class=\"sayings\">\n", page->out);
        put_claims(page, at);
        fputs("</div>\n", page->out);
    }
    fputs("</div></article>\n", page->out);
    return rc;
}

/* ---- papers ----------------------------------------------------------------------------------------------------- */

/* Claims beside none of the figures. */
static void put_others(const struct hx_page *page, size_t paper) {
    const char *begin = "<article class=\"figure\"><h3>Claims that no figure here shows</h3><div class=\"sayings\">\n";
    bool open = false;
    for (size_t i = 0; i < page->claims->count; i++) {
        if (page->claim_paper[i] == paper && page->claim_figure[i] == SIZE_MAX) {
            fputs(open ? "" : begin, page->out);
            open = true;
            hx_page_claim(page, i);
        }
    }
    fputs(open ? "</div></article>\n" : "", page->out);
}

int hx_page_papers(struct hx_page *page, struct dm_err *err) {
    for (size_t paper = 0; paper < page->paper_count; paper++) {
        if (page->papers[paper].figure_count + page->papers[paper].claim_count == 0) {
            continue;
        }
        hx_page_paper_begin(page, paper);
        for (size_t i = 0; i < page->figure_count; i++) {
            if (page->figure_paper[i] == paper) {
                DM_TRY(put_figure(page, i, err));
            }
        }
        put_others(page, paper);
        fputs("</section>\n", page->out);
    }
    return 0;
}
