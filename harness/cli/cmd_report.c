/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench report`: writes the page.
 */
#include "harness/study/report.h"

#include <stdlib.h>
#include <string.h>

#include "common/output_file.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/study/claims_judge.h"
#include "harness/study/claims_open.h"
#include "harness/study/figure_points.h"
#include "harness/study/html.h"

struct report_options {
    const char *scale, *out, *plots;
    uint64_t repeat;
};

#define ROW(member, ...) DM_OPT_ROW(struct report_options, member, __VA_ARGS__)

static const struct dm_opt report_table[] = {
    ROW(scale, DM_OPT_STRING, .initial = "quick",
        .help = "whose figures and claims: quick, paper, or a number, as of `dmbench figure`"),
    ROW(out, DM_OPT_STRING, .values = "folder", .initial = "results",
        .help = "folder with points/ and figures/; the page is report.html in it"),
    ROW(repeat, DM_OPT_COUNT, .initial = "1", .min = 1, .max = HX_FIG_REPEAT_MAX,
        .help = "seeds a point, as of `dmbench figure`"),
    ROW(plots, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "folder with claims/*.json, metrics.json, sensitivity.json and figures/*.json" HX_PLOTS_DEFAULT),
    DM_OPT_END,
};

struct session {
    struct report_options options;
    struct hx_page page;
    char **ids;
};

void hx_help_report(struct hx_help *help) {
    help->usage = "report [options]";
    help->about =
        "Writes OUT/report.html: all figures that were drawn, the papers' claims with their verdicts, the simulated "
        "network against published measurements (OUT/validation.json), and provenance. One file without script or "
        "network; it links to the tables and results beside it. What is missing is listed where it belongs.";
    help->examples = "dmbench figure all && dmbench validate --json >results/validation.json && dmbench report";
    help->status = "0 written, 1 it cannot be written, 2 usage.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = report_table});
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    (void)arg;
    (void)name;
    return dm_fail(err, DM_ERR_INVALID, "'%.40s': takes no names; the report has all figures", value);
}

static int load_figures(struct session *session, struct dm_err *err) {
    struct hx_page *page = &session->page;
    const struct report_options *options = &session->options;
    size_t count = 0;
    DM_TRY(hx_figure_ids(options->plots, &session->ids, err));
    while (session->ids[count] != NULL) {
        count++;
    }
    page->figures = calloc(count + 1, sizeof(*page->figures));
    page->points = hx_points_new(options->out);
    if (page->figures == NULL || page->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for figures");
    }
    for (size_t i = 0; i < count; i++) {
        DM_TRY(hx_figure_load(options->plots, session->ids[i], options->scale, &page->figures[i], err));
        page->figure_count = i + 1;
        page->figures[i]->repeat = (unsigned)options->repeat;
        DM_TRY(hx_figure_points(page->figures[i], page->points, err));
    }
    DM_TRY(hx_claims_open(options->plots, options->out, options->scale, (unsigned)options->repeat, &page->claims, err));
    return hx_claims_judge(page->claims, err);
}

static void put_head(const struct hx_page *page) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
          "<title>dmbench: range indexes on disaggregated memory</title>\n<style>\n",
          page->out);
    hx_html_style(page->out);
    fprintf(page->out,
            "</style></head><body>\n<header><h1>Range indexes on disaggregated memory</h1>\n"
            "<p>What five papers show, measured again with one program on one and the same simulated network. All "
            "times are "
            "<b>virtual</b> unless a figure says otherwise: they say what the modelled network would do. Scale: "
            "<b>%s</b>.</p>"
            "</header>\n<nav><ul><li><a href=\"#summary\">What the papers claim</a></li>"
            "<li><a href=\"#claims\">The claims, one by one</a></li>"
            "<li><a href=\"#fabric\">The network</a></li><li><a href=\"#sources\">Provenance</a></li>",
            page->scale);
    for (size_t i = 0; i < page->figure_count; i++) {
        fprintf(page->out, "<li><a href=\"#figure-%s\">%s</a></li>", page->figures[i]->id, page->figures[i]->id);
    }
    fputs("</ul></nav>\n<main>\n", page->out);
}

static int write_page(struct session *session, struct dm_err *err) {
    struct hx_page *page = &session->page;
    char path[4096];
    page->folder = session->options.out;
    page->scale = session->options.scale;
    DM_TRY(hx_make_folder(page->folder, err));
    if ((size_t)snprintf(path, sizeof(path), "%s/report.html", page->folder) >= sizeof(path)) {
        return dm_fail(err, DM_ERR_INVALID, "--out: is too long for a path");
    }
    page->out = dm_output_open(path, err);
    if (page->out == NULL) {
        return DM_ERR_IO;
    }
    put_head(page);
    hx_page_summary(page);
    int rc = hx_page_figures(page, err);
    hx_page_claims(page);
    hx_page_sources(page);
    fputs("</main></body></html>\n", page->out);
    int closed = dm_output_close(page->out, path, err);
    if (rc == 0 && closed == 0) {
        printf("%s\n", path);
        if (page->incomplete > 0) {
            fprintf(stderr, "dmbench report: something of %zu figures is missing; the page says what\n",
                    page->incomplete);
        }
    }
    return rc < 0 ? rc : closed;
}

int hx_cmd_report(int argc, char **argv) {
    static const char *const repeated[] = {NULL};
    struct session session = {.ids = NULL};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = report_table, .values = &session.options, .repeated = repeated, .take = take, .arg = &session};
    dm_opt_defaults(report_table, &session.options);
    hx_plots_set(report_table, &session.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc > 0) {
        hx_help_show(hx_help_report);
    } else if (rc == 0) {
        rc = hx_figure_check_scale(session.options.scale, &err);
        rc = rc < 0 ? rc : load_figures(&session, &err);
        rc = rc < 0 ? rc : write_page(&session, &err);
    }
    for (size_t i = 0; i < session.page.figure_count; i++) {
        hx_figure_free(session.page.figures[i]);
    }
    free(session.page.figures);
    hx_points_free(session.page.points);
    hx_claims_close(session.page.claims);
    hx_figure_ids_free(session.ids);
    dm_opt_free(report_table, &session.options);
    return rc < 0 ? hx_report("report", &err) : HX_DONE;
}
