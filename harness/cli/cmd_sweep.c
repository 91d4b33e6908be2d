/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench sweep`: a grid of points over one base spec, run in parallel, resumed after an interrupt, and one table of
 * the results.
 */
#include <stdio.h>
#include <string.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/points/points_plan.h"
#include "harness/points/sweep.h"

struct sweep_options {
    struct hx_sweep sweep;
    struct hx_points_options run;
    bool dry_run, json;
};

#define ROW(member, ...)          DM_OPT_ROW(struct sweep_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct sweep_options, member, __VA_ARGS__)

static const struct dm_opt sweep_table[] = {
    ROW_AS("out", sweep.out, DM_OPT_STRING, .values = "folder", .initial = "results/sweep",
           .help = "folder for points/ and table.tsv"),
    HX_POINTS_ROWS(struct sweep_options, run),
    ROW_AS("repeat", sweep.repeat, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 10000,
           .help = "runs of each point, with seeds that follow the base's"),
    ROW_AS("force", run.force, DM_OPT_BOOL, .initial = "0", .help = "run again what is there already"),
    ROW(dry_run, DM_OPT_BOOL, .initial = "0", .help = "check everything and print the plan, run nothing"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the table as JSON too"),
    DM_OPT_END,
};

static const struct hx_help_option extra[] = {
    {"--grid NAME=V,V,...",
     "values of an option (clients), an index parameter (set.node_bytes) or a transport option (transport_set.NAME); "
     "grids are crossed. Values that contain commas are separated by semicolons: --grid "
     "'mix=read=1;read=0.5,update=0.5'",
     "option"},
    {"--list NAME=V,V,...", "as --grid, but all lists go together: first values, second values, ...", "option"},
    {"--column PATH", "one more column of the table, a path in results (throughput_ops_per_s is there)", "path"},
    {NULL, NULL, NULL},
};

void hx_help_sweep(struct hx_help *help) {
    help->words = "file";
    help->usage = "sweep [BASE.json] [--grid NAME=V,V,...]... [options]";
    help->about = "Runs every combination of the values over the base spec (without one: the defaults of `dmbench "
                  "run`). A point whose result is in the folder already is not run again.";
    help->examples = "dmbench sweep base.json --grid clients=16,64,256 --grid set.node_bytes=512,1024 --out nodes\n"
                     "dmbench sweep --grid workload=a,c --list keys=1M,10M --list cache=10MB,100MB --repeat 5\n"
                     "dmbench sweep base.json --grid clients=16,64 --sshloginfile machines --jobs 8\n"
                     "dmbench sweep base.json --grid clients=16,64 --slurm job.sh && sbatch job.sh";
    help->status = "0 all points have results, 1 some failed, 2 usage, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .options = extra, .table = sweep_table});
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct hx_sweep *sweep = arg;
    if (name == NULL) {
        if (sweep->base_path != NULL) {
            return dm_fail(err, DM_ERR_INVALID, "'%.40s': one base spec is enough", value);
        }
        sweep->base_path = value;
        return 0;
    }
    if (strcmp(name, "column") == 0) {
        return hx_sweep_add_column(sweep, value, err);
    }
    int rc = hx_grid_add(&sweep->grid, value, strcmp(name, "list") == 0, err);
    return rc < 0 ? dm_fail_in(err, rc, "--%s", name) : 0;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static void print_plan(const struct sweep_options *options) {
    struct hx_points *points = options->sweep.points;
    hx_points_plan_print(points, &options->run, stdout);
    for (size_t i = 0; i < points->count; i++) {
        const struct hx_point *point = &points->items[i];
        printf("  %s  %-5s  %s\n", point->hash, hx_point_state_word(point, options->run.force), point->label);
    }
}

static int sweep_run(struct sweep_options *options, struct dm_err *err) {
    struct hx_sweep *sweep = &options->sweep;
    if (hx_sweep_build(sweep, err) < 0) {
        return hx_report("sweep", err);
    }
    sweep->points->stale = options->run.stale;
    if (options->run.stale == HX_STALE_LIST) {
        hx_points_list_stale(sweep->points, stdout);
        return HX_DONE;
    }
    if (options->dry_run) {
        print_plan(options);
        return HX_DONE;
    }
    int status = hx_points_run(sweep->points, &options->run);
    if (options->run.slurm[0] != '\0') {
        return status;
    }
    if (status != HX_INTERRUPTED && hx_sweep_tabulate(sweep, options->json ? stdout : NULL, err) < 0) {
        return hx_report("sweep", err);
    }
    return status;
}

int hx_cmd_sweep(int argc, char **argv) {
    static const char *const repeated[] = {"grid", "list", "column", NULL};
    struct sweep_options options = {.json = false};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = sweep_table, .values = &options, .repeated = repeated, .take = take, .arg = &options.sweep};
    int status = HX_DONE;
    dm_opt_defaults(sweep_table, &options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc < 0) {
        status = hx_report("sweep", &err);
    } else if (rc > 0) {
        hx_help_show(hx_help_sweep);
    } else {
        status = sweep_run(&options, &err);
    }
    hx_sweep_fini(&options.sweep);
    dm_opt_free(sweep_table, &options);
    return status;
}
