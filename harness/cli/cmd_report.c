/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench report`: writes the page.
 */
#include "harness/study/figure_style.h"
#include "harness/study/report.h"

#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/study/claims_judge.h"
#include "harness/study/claims_open.h"
#include "harness/study/figure_points.h"

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
    ROW(repeat, DM_OPT_COUNT, .initial = "0", .max = HX_FIG_REPEAT_MAX,
        .help = "seeds a point, as of `dmbench figure`; claims are judged by as many, or the first"),
    ROW(plots, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "folder with claims/*.json, figures/*.json, metrics.json, sensitivity.json, papers.json, "
                "systems.json" HX_PLOTS_DEFAULT),
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
        "Writes OUT/report.html: all figures that were drawn beside the papers' claims with their verdicts, the "
        "simulated network against published measurements (OUT/validation.json), whole indexes against published "
        "results (OUT/end_to_end.json), and provenance. One file that needs no server and no network, and that is "
        "readable without script; it links to the tables and results beside it. What is missing is listed where it "
        "belongs.";
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
        page->figures[i]->repeat = options->repeat > 0 ? (unsigned)options->repeat : page->figures[i]->repeat;
        DM_TRY(hx_figure_points(page->figures[i], page->points, err));
    }
    unsigned repeat = options->repeat > 0 ? (unsigned)options->repeat : 1;
    DM_TRY(hx_claims_open(options->plots, options->out, options->scale, repeat, &page->claims, err));
    return hx_claims_judge(page->claims, err);
}

/* What the page needs to know about papers and systems; a folder of plots may be without. */
static json_t *load_names(const struct session *session, const char *name) {
    char path[4096];
    struct dm_err err = {.text = ""};
    snprintf(path, sizeof(path), "%s/%s", session->options.plots, name);
    return dm_json_load(path, &err);
}

/* The styles of systems and of others in one object. */
static int load_styles(struct session *session, struct dm_err *err) {
    json_t *styles = NULL;
    DM_TRY(hx_fig_styles_load(session->options.plots, &styles, err));
    session->page.systems = hx_fig_styles_flat(styles);
    json_decref(styles);
    return session->page.systems != NULL ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for styles");
}

static int write_page(struct session *session, struct dm_err *err) {
    struct hx_page *page = &session->page;
    page->folder = session->options.out;
    page->scale = session->options.scale;
    page->names = load_names(session, "papers.json");
    DM_TRY(load_styles(session, err));
    DM_TRY(hx_make_folder(page->folder, err));
    DM_TRY(hx_page_write(page, err));
    printf("%s/report.html\n", page->folder);
    if (page->incomplete > 0) {
        fprintf(stderr, "dmbench report: something of %zu figures is missing; the page shows what\n", page->incomplete);
    }
    return 0;
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
        rc = hx_figure_check_scale("--scale", session.options.scale, &err);
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
    json_decref(session.page.names);
    json_decref(session.page.systems);
    dm_opt_free(report_table, &session.options);
    return rc < 0 ? hx_report("report", &err) : HX_DONE;
}
