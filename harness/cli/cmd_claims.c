/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench claims`: what the papers claim against what was measured.
 */
#include "harness/study/claims.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/points/points_plan.h"
#include "harness/study/claims_judge.h"
#include "harness/study/claims_open.h"
#include "harness/study/claims_points.h"
#include "harness/study/claims_text.h"

enum { IDS_MAX = 256 };

struct claims_options {
    const char *scale, *beside, *out, *plots;
    struct hx_points_options points;
    uint64_t repeat;
    bool run, sensitivity, dry_run, json, markdown;
};

#define ROW(member, ...) DM_OPT_ROW(struct claims_options, member, __VA_ARGS__)

static const struct dm_opt claims_table[] = {
    ROW(scale, DM_OPT_STRING, .initial = "quick",
        .help = "whose results are judged: quick, paper, or a number, as of `dmbench figure`"),
    ROW(beside, DM_OPT_STRING, .initial = "",
        .help = "another scale, whose verdicts are printed beside these, for the claims that have results there"),
    ROW(out, DM_OPT_STRING, .values = "folder", .initial = "results", .help = "folder with points/"),
    ROW(run, DM_OPT_BOOL, .initial = "0", .help = "first run the points that the claims read and that are not there"),
    ROW(sensitivity, DM_OPT_BOOL, .initial = "0",
        .help = "with --run: also those with the fabric at the other ends of what published sources say"),
    ROW(repeat, DM_OPT_COUNT, .initial = "1", .min = 1, .max = HX_FIG_REPEAT_MAX,
        .help = "seeds a point; medians are judged, and which seeds alone give another verdict"),
    HX_POINTS_ROWS(struct claims_options, points),
    ROW(dry_run, DM_OPT_BOOL, .initial = "0", .help = "with --run: print the plan alone"),
    ROW(markdown, DM_OPT_BOOL, .initial = "0", .help = "print Markdown tables"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    ROW(plots, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "folder with claims/*.json, metrics.json, sensitivity.json and figures/*.json" HX_PLOTS_DEFAULT),
    DM_OPT_END,
};

struct session {
    struct claims_options options;
    const char *ids[IDS_MAX];
    size_t id_count;
    struct hx_claims *claims, *beside; /* beside: NULL without --beside */
};

void hx_help_claims(struct hx_help *help) {
    help->words = "claim";
    help->usage = "claims [ID...] [options]    (ID: a claim, or the beginning of some: chime, rolex-14)";
    help->about =
        "Judges what the papers claim by the results of the figures: reproduced (within the tolerance), direction only "
        "(the right system wins, the size is off), not reproduced, unresolved (another verdict at the other end of "
        "what sources say about the fabric), or not run, and why. Numbers come from result files alone.";
    help->examples =
        "dmbench claims                                   what the figures that were run say\n"
        "dmbench claims chime-12 --run --sensitivity      run what is missing, with both ends of the fabric\n"
        "dmbench claims --scale paper --markdown >claims.md\n"
        "dmbench claims --beside paper                    the verdicts of both scales side by side";
    help->status = "0 judged, whatever the verdicts; 1 a point failed, 2 usage, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = claims_table});
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct session *session = arg;
    (void)name;
    if (session->id_count == IDS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d ids", IDS_MAX);
    }
    session->ids[session->id_count++] = value;
    return 0;
}

static int check_ids(const struct session *session, struct dm_err *err) {
    const char *names[IDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < session->claims->count && count < IDS_MAX; i++) {
        names[count++] = session->claims->items[i].id;
    }
    for (size_t i = 0; i < session->id_count; i++) {
        bool known = false;
        for (size_t k = 0; k < session->claims->count; k++) {
            known = known || hx_claim_is_among(&session->claims->items[k], &session->ids[i], 1);
        }
        if (!known) {
            return hx_fail_unknown(err, "claim", session->ids[i], names, count);
        }
    }
    return 0;
}

/* Runs the points that the claims need; *status is the exit status so far. */
static int run_points(struct session *session, int *status, struct dm_err *err) {
    const struct claims_options *options = &session->options;
    struct hx_points *points =
        hx_claims_points(session->claims, session->ids, session->id_count, options->sensitivity, err);
    if (points == NULL) {
        return err->code < 0 ? err->code : DM_ERR_NO_MEMORY;
    }
    points->stale = options->points.stale;
    if (options->points.stale == HX_STALE_LIST) {
        hx_points_list_stale(points, stdout);
    } else if (options->dry_run) {
        hx_points_plan_print(points, &options->points, stdout);
    } else {
        *status = hx_points_run(points, &options->points);
        /* A stale result that was to be run again, and has not been, counts as missing. */
        session->claims->points->stale = options->points.stale;
    }
    hx_points_free(points);
    return 0;
}

/* Results are judged whichever sources made them; how many are not today's is said unless the user keeps such. */
static void warn_stale(struct session *session) {
    struct hx_points *points = session->claims->points;
    if (!session->options.run && session->options.points.stale == HX_STALE_RUN) {
        hx_points_scan(points);
        if (points->stale_count > 0) {
            fprintf(stderr,
                    "dmbench claims: %zu of %zu results are stale, other sources made them; --run runs them again, "
                    "--stale keep accepts them\n",
                    points->stale_count, points->count);
        }
    }
}

static void print_all(const struct session *session) {
    if (session->options.json) {
        json_t *object = hx_claims_object(session->claims, session->ids, session->id_count);
        if (session->beside != NULL) {
            json_object_set_new(object, "beside", hx_claims_object(session->beside, session->ids, session->id_count));
        }
        json_dumpf(object, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
        printf("\n");
        json_decref(object);
    } else if (session->beside != NULL) {
        hx_claims_print_beside(session->claims, session->beside, session->ids, session->id_count,
                               session->options.markdown, stdout);
    } else if (session->options.markdown) {
        hx_claims_print_markdown(session->claims, session->ids, session->id_count, stdout);
    } else {
        hx_claims_print_text(session->claims, session->ids, session->id_count, stdout);
    }
}

static int session_run(struct session *session, int *status, struct dm_err *err) {
    const struct claims_options *options = &session->options;
    DM_TRY(hx_figure_check_scale("--scale", options->scale, err));
    if (options->beside[0] != '\0') {
        DM_TRY(hx_figure_check_scale("--beside", options->beside, err));
    }
    bool is_remote = options->points.sshloginfile[0] != '\0' || options->points.slurm[0] != '\0';
    bool changes = options->points.stale == HX_STALE_ADOPT || options->points.stale == HX_STALE_LIST;
    if ((options->sensitivity || options->dry_run || is_remote || changes) && !options->run) {
        return dm_fail(
            err, DM_ERR_INVALID,
            "--sensitivity, --dry-run, --sshloginfile, --slurm, --stale adopt and --stale list go with --run");
    }
    DM_TRY(
        hx_claims_open(options->plots, options->out, options->scale, (unsigned)options->repeat, &session->claims, err));
    DM_TRY(check_ids(session, err));
    if (options->run) {
        DM_TRY(run_points(session, status, err));
    }
    if (*status == HX_INTERRUPTED || options->dry_run || options->points.stale == HX_STALE_LIST ||
        options->points.slurm[0] != '\0') {
        return 0;
    }
    DM_TRY(hx_claims_judge(session->claims, err));
    if (options->beside[0] != '\0') {
        DM_TRY(hx_claims_open(options->plots, options->out, options->beside, (unsigned)options->repeat,
                              &session->beside, err));
        DM_TRY(hx_claims_judge(session->beside, err));
    }
    print_all(session);
    warn_stale(session);
    return 0;
}

int hx_cmd_claims(int argc, char **argv) {
    static const char *const repeated[] = {NULL};
    struct session session = {.id_count = 0};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = claims_table, .values = &session.options, .repeated = repeated, .take = take, .arg = &session};
    int status = HX_DONE;
    dm_opt_defaults(claims_table, &session.options);
    hx_plots_set(claims_table, &session.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc > 0) {
        hx_help_show(hx_help_claims);
    } else if (rc == 0) {
        rc = session_run(&session, &status, &err);
    }
    hx_claims_close(session.claims);
    hx_claims_close(session.beside);
    dm_opt_free(claims_table, &session.options);
    return rc < 0 ? hx_report("claims", &err) : status;
}
