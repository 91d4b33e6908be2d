/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench figure`: runs the points of figures, all of them as one set, and draws the plots.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/points/points.h"
#include "harness/points/points_plan.h"
#include "harness/study/claims_judge.h"
#include "harness/study/claims_open.h"
#include "harness/study/figure_draw.h"
#include "harness/study/figure_find.h"
#include "harness/study/figure_points.h"

enum { PATH_BYTES = 4096, FIGURES_MAX = 256 };

struct figure_options {
    const char *plots, *out, *scale;
    struct hx_points_options run;
    uint64_t repeat;
    double width;
    bool png, svg, pdf;
    bool list, dry_run, no_plot, json;
};

#define ROW(member, ...)          DM_OPT_ROW(struct figure_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct figure_options, member, __VA_ARGS__)

static const struct dm_opt figure_table[] = {
    ROW(scale, DM_OPT_STRING, .initial = "quick",
        .help = "size of the points: paper is what the papers used, quick keeps their proportions, a number is the "
                "divisor of the paper's keys, caches and operations"),
    ROW(out, DM_OPT_STRING, .values = "folder", .initial = "results", .help = "folder for points/ and figures/"),
    HX_POINTS_ROWS(struct figure_options, run),
    ROW(repeat, DM_OPT_COUNT, .initial = "0", .max = HX_FIG_REPEAT_MAX,
        .help = "runs of each point, with seeds that follow its own; two or more give error bars; 0: as many as the "
                "figure's file says for the scale (three at quick scale where that takes less than a minute)"),
    ROW(list, DM_OPT_BOOL, .initial = "0", .help = "list the figures and run nothing"),
    ROW(dry_run, DM_OPT_BOOL, .initial = "0", .help = "check everything and print the plan, run nothing"),
    ROW(no_plot, DM_OPT_BOOL, .initial = "0", .help = "write tables and gnuplot programs, draw nothing"),
    ROW_AS("no_run", run.no_run, DM_OPT_BOOL, .initial = "0", .help = "take the results that are there, run nothing"),
    ROW(png, DM_OPT_BOOL, .initial = "0",
        .help = "draw PNG, 300 pixels to the inch, and only the kinds that are named"),
    ROW(svg, DM_OPT_BOOL, .initial = "0", .help = "draw SVG, and only the kinds that are named"),
    ROW(pdf, DM_OPT_BOOL, .initial = "0", .help = "draw PDF, and only the kinds that are named"),
    ROW(width, DM_OPT_REAL, .initial = "8.5", .min = 6, .max = 60,
        .help = "width of the pictures in cm, as printed: 8.5 is a column, 17.8 two"),
    ROW_AS("force", run.force, DM_OPT_BOOL, .initial = "0", .help = "run again what is there already"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the list or the plan as JSON"),
    ROW(plots, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "folder with style.gp and figures/*.json" HX_PLOTS_DEFAULT),
    DM_OPT_END,
};

struct session {
    struct figure_options options;
    const char *names[FIGURES_MAX];
    size_t name_count;
    char **ids; /* all figures there are */
    struct hx_figure *figures[FIGURES_MAX];
    size_t figure_count;
    struct hx_points *points;
    struct hx_claims *claims; /* NULL: the folder of plots has none */
};

void hx_help_figure(struct hx_help *help) {
    help->words = "figures";
    help->usage = "figure NAME... [options]        (\"all\": every figure; \"published\": the papers')\n"
                  "figure --list";
    help->about = "Runs a figure's points, as far as their results are not there yet, and writes for each plot "
                  "OUT/figures/NAME/PLOT.png, .svg and .pdf, the table .tsv and the gnuplot program .gp that drew it.";
    help->examples = "dmbench figure sherman-clients\ndmbench figure 'chime figure 12' --dry-run\n"
                     "dmbench figure all --scale paper --jobs 8 --dry-run";
    help->status = "0 drawn, 1 points failed or a picture is missing, 2 usage, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = figure_table});
}

static int take_name(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct session *session = arg;
    (void)name;
    if (session->name_count == FIGURES_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d figures", FIGURES_MAX);
    }
    session->names[session->name_count++] = value;
    return 0;
}

/* ---- which figures ---------------------------------------------------------------------------------------------- */

/* With `published` a figure that no paper has is left out. */
static int load_one(struct session *session, const char *name, bool published, struct dm_err *err) {
    const char *id = NULL;
    size_t count = 0;
    while (session->ids[count] != NULL) {
        count++;
    }
    DM_TRY(hx_figure_find((const char *const *)session->ids, count, name, &id, err));
    for (size_t i = 0; i < session->figure_count; i++) {
        if (strcmp(session->figures[i]->id, id) == 0) {
            return 0;
        }
    }
    if (session->figure_count == FIGURES_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d figures", FIGURES_MAX);
    }
    struct hx_figure *figure;
    DM_TRY(hx_figure_load(session->options.plots, id, session->options.scale, &figure, err));
    if (published && figure->is_own) {
        hx_figure_free(figure);
        return 0;
    }
    figure->repeat = session->options.repeat > 0 ? (unsigned)session->options.repeat : figure->repeat;
    session->figures[session->figure_count++] = figure;
    if (strcmp(name, id) != 0) {
        fprintf(stderr, "'%s' is %s: %s\n", name, id, figure->title);
    }
    return 0;
}

static int load_named(struct session *session, struct dm_err *err) {
    for (size_t i = 0; i < session->name_count; i++) {
        bool published = strcmp(session->names[i], "published") == 0;
        if (!published && strcmp(session->names[i], "all") != 0) {
            DM_TRY(load_one(session, session->names[i], false, err));
            continue;
        }
        for (size_t k = 0; session->ids[k] != NULL; k++) {
            DM_TRY(load_one(session, session->ids[k], published, err));
        }
    }
    return 0;
}

static int load_points(struct session *session, struct dm_err *err) {
    session->points = hx_points_new(session->options.out);
    if (session->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points");
    }
    for (size_t i = 0; i < session->figure_count; i++) {
        DM_TRY(hx_figure_points(session->figures[i], session->points, err));
    }
    return 0;
}

/* ---- list and plan ---------------------------------------------------------------------------------------------- */

static json_t *figure_object(const struct hx_figure *figure) {
    json_t *plots = json_array();
    for (size_t i = 0; i < figure->plot_count; i++) {
        json_array_append_new(plots, json_string(figure->plots[i].id));
    }
    json_t *absent = json_array();
    for (size_t i = 0; i < figure->absent_count; i++) {
        json_array_append_new(absent, json_string(figure->absent[i].label));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o}", "id", figure->id, "title", figure->title, "shows",
                     figure->shows, "keeps", figure->keeps, "points", (json_int_t)hx_figure_slots(figure), "plots",
                     plots, "not_built", absent);
}

static int print_list(struct session *session, struct dm_err *err) {
    if (session->name_count == 0) {
        session->names[session->name_count++] = "all";
    }
    DM_TRY(load_named(session, err));
    json_t *list = json_array();
    for (size_t i = 0; i < session->figure_count; i++) {
        const struct hx_figure *figure = session->figures[i];
        if (session->options.json) {
            json_array_append_new(list, figure_object(figure));
            continue;
        }
        printf("%s: %s\n  shows: %s\n  --scale quick keeps: %s\n  plots:", figure->id, figure->title, figure->shows,
               figure->keeps);
        for (size_t k = 0; k < figure->plot_count; k++) {
            printf(" %s", figure->plots[k].id);
        }
        char absent[512];
        hx_fig_absent_text(figure, absent, sizeof(absent));
        printf("%s%s\n", absent[0] != '\0' ? "\n  " : "", absent);
    }
    if (session->options.json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(list);
    return 0;
}

static json_t *point_object(const struct hx_point *point, bool force) {
    return json_pack("{s:s, s:s, s:b, s:b, s:f, s:I, s:O}", "point", point->hash, "label", point->label, "run",
                     force || point->state != HX_POINT_THERE, "stale", point->state == HX_POINT_STALE,
                     "estimated_seconds", point->cost, "estimated_bytes", (json_int_t)point->memory_bytes, "config",
                     point->config);
}

/* What each figure would take alone. */
static void print_figures_plan(const struct session *session) {
    for (size_t i = 0; i < session->figure_count; i++) {
        const struct hx_figure *figure = session->figures[i];
        struct hx_points_plan plan;
        char text[128];
        size_t count = hx_figure_slots(figure) * figure->repeat;
        hx_points_plan(session->points, &session->options.run, figure->points, count, &plan);
        hx_points_plan_text(&plan, text, sizeof(text));
        printf("  %-20s %4zu points, %s\n", figure->id, count, text);
    }
}

static void print_plan(const struct session *session) {
    struct hx_points *points = session->points;
    bool force = session->options.run.force;
    json_t *list = json_array();
    hx_points_scan(points);
    for (size_t i = 0; i < points->count; i++) {
        const struct hx_point *point = &points->items[i];
        if (session->options.json) {
            json_array_append_new(list, point_object(point, force));
        } else {
            printf("  %s  %-5s  %s\n", point->hash, hx_point_state_word(point, force), point->label);
        }
    }
    if (session->options.json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        printf("\n");
    } else {
        struct hx_points_plan plan;
        char text[128];
        hx_points_plan(points, &session->options.run, NULL, 0, &plan);
        hx_points_plan_text(&plan, text, sizeof(text));
        printf("what each figure takes alone, estimated from past points:\n");
        print_figures_plan(session);
        printf("%zu figures, %zu points in %s/points, %s\n", session->figure_count, points->count, points->out, text);
    }
    json_decref(list);
}

/* Reads and judges the claims, which are drawn as lines across plots. A folder of plots may have none. */
static int open_claims(struct session *session, struct dm_err *err) {
    const struct figure_options *options = &session->options;
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof(path), "%s/claims", options->plots);
    if (length >= PATH_BYTES || access(path, F_OK) != 0) {
        return 0;
    }
    unsigned repeat = options->repeat > 0 ? (unsigned)options->repeat : 1;
    DM_TRY(hx_claims_open(options->plots, options->out, options->scale, repeat, &session->claims, err));
    return hx_claims_judge(session->claims, err);
}

static int run_figures(struct session *session, struct dm_err *err) {
    char folder[PATH_BYTES];
    struct hx_undone undone = {.points = 0};
    int status = hx_points_run(session->points, &session->options.run);
    if (status == HX_INTERRUPTED || session->options.run.slurm[0] != '\0') {
        return status;
    }
    int length = snprintf(folder, sizeof(folder), "%s/figures", session->options.out);
    int rc = length < PATH_BYTES ? hx_make_folder(folder, err) : dm_fail(err, DM_ERR_INVALID, "--out is too long");
    rc = rc < 0 ? rc : open_claims(session, err);
    const struct figure_options *options = &session->options;
    bool all = !options->png && !options->svg && !options->pdf;
    const struct hx_drawing drawing = {.look = {.width_cm = options->width,
                                                .png = all || options->png,
                                                .svg = all || options->svg,
                                                .pdf = all || options->pdf},
                                       .plots = session->options.plots,
                                       .out = session->options.out,
                                       .no_plot = session->options.no_plot,
                                       .figures = session->figures,
                                       .figure_count = session->figure_count,
                                       .points = session->points,
                                       .claims = session->claims};
    rc = rc < 0 ? rc : hx_figures_draw(&drawing, &undone, err);
    if (rc == DM_ERR_UNSUPPORTED) {
        fprintf(stderr, "dmbench figure: %s; tables and programs are in %s\n", err->text, folder);
        return HX_FAILED;
    }
    return rc < 0 ? hx_report("figure", err) : undone.points + undone.plots > 0 ? HX_FAILED : status;
}

static int session_run(struct session *session, struct dm_err *err) {
    int rc = hx_figure_check_scale("--scale", session->options.scale, err);
    rc = rc < 0 ? rc : hx_figure_ids(session->options.plots, &session->ids, err);
    if (rc == 0 && session->options.list) {
        rc = print_list(session, err);
        return rc < 0 ? hx_report("figure", err) : HX_DONE;
    }
    if (rc == 0 && session->name_count == 0) {
        rc = dm_fail(err, DM_ERR_INVALID, "name a figure, \"published\" or \"all\"; --list shows them");
    }
    rc = rc < 0 ? rc : load_named(session, err);
    rc = rc < 0 ? rc : load_points(session, err);
    if (rc < 0) {
        return hx_report("figure", err);
    }
    session->points->stale = session->options.run.stale;
    if (session->options.run.stale == HX_STALE_LIST) {
        hx_points_list_stale(session->points, stdout);
        return HX_DONE;
    }
    if (session->options.dry_run) {
        print_plan(session);
        return HX_DONE;
    }
    return run_figures(session, err);
}

int hx_cmd_figure(int argc, char **argv) {
    static const char *const repeated[] = {NULL};
    struct session session = {.name_count = 0};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = figure_table, .values = &session.options, .repeated = repeated, .take = take_name, .arg = &session};
    int status = HX_DONE;
    dm_opt_defaults(figure_table, &session.options);
    hx_plots_set(figure_table, &session.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc < 0) {
        status = hx_report("figure", &err);
    } else if (rc > 0) {
        hx_help_show(hx_help_figure);
    } else {
        status = session_run(&session, &err);
    }
    hx_claims_close(session.claims);
    hx_points_free(session.points);
    for (size_t i = 0; i < session.figure_count; i++) {
        hx_figure_free(session.figures[i]);
    }
    hx_figure_ids_free(session.ids);
    dm_opt_free(figure_table, &session.options);
    return status;
}
