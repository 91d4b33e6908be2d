/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench validate`: the fabric model against published micro-benchmarks; whole indexes against published results;
 * the same micro-benchmarks on any transport; a profile fitted to a transport, or to this host's CPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/cli/end_to_end.h"
#include "harness/lab/client_work.h"
#include "harness/lab/conserving.h"
#include "harness/lab/validate_output.h"
#include "harness/run/interrupt.h"

enum { CLIENT_WORK_OPS = 200000 };

struct options {
    bool json, cpu, end_to_end, dry_run;
    const char *out, *transport, *profile, *fit, *base, *only, *index, *scale, *plots;
    struct hx_points_options run;
    uint64_t seed, keys, rounds;
};

#define ROW(member, ...)          DM_OPT_ROW(struct options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct options, member, __VA_ARGS__)

static const struct dm_opt table[] = {
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    ROW(only, DM_OPT_STRING, .initial = "",
        .help = "one validation point, V1 to V24; with --end-to-end one experiment, by its file's name"),
    ROW(out, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "write data and gnuplot programs of the curves into this folder; with --end-to-end: results, and the "
                "comparison as end_to_end.json and end_to_end.md (default there: results)"),
    ROW(end_to_end, DM_OPT_BOOL, .initial = "0",
        .help = "run whole indexes under the conditions of published experiments, and compare"),
    ROW(scale, DM_OPT_STRING, .initial = "quick",
        .help = "of --end-to-end: paper is the published number of keys, quick what takes minutes"),
    HX_POINTS_ROWS(struct options, run),
    ROW_AS("no_run", run.no_run, DM_OPT_BOOL, .initial = "0",
           .help = "with --end-to-end: take the results that are there, run nothing"),
    ROW_AS("force", run.force, DM_OPT_BOOL, .initial = "0", .help = "with --end-to-end: run again what is there"),
    ROW(dry_run, DM_OPT_BOOL, .initial = "0", .help = "with --end-to-end: check everything and run nothing"),
    ROW(plots, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "folder with end_to_end/*.json" HX_PLOTS_DEFAULT),
    ROW(transport, DM_OPT_STRING, .initial = "sim",
        .help = "with another than sim, or with a profile: the micro-benchmarks alone, nothing to compare with"),
    ROW(profile, DM_OPT_STRING, .values = "profiles", .initial = "",
        .help = "the micro-benchmarks of this profile, a name or a path ending in .json"),
    ROW(fit, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "write a profile with what was measured on the transport to this file"),
    ROW(cpu, DM_OPT_BOOL, .initial = "0",
        .help = "measure the CPU work units on this host, and by them what each index charges beside what its code "
                "takes; with --fit FILE write them as a profile"),
    ROW(index, DM_OPT_STRING, .values = "indexes", .initial = "", .help = "with --cpu: this index alone"),
    ROW(keys, DM_OPT_COUNT, .initial = "1M", .max = 1e10, .help = "with --cpu: keys of an index; 0: no index"),
    ROW(rounds, DM_OPT_COUNT, .initial = "3", .min = 1, .max = 31,
        .help = "with --cpu: how often everything is measured; the median ratio counts"),
    ROW(base, DM_OPT_STRING, .values = "profiles", .initial = "cx6-100g",
        .help = "the profile that a fitted one inherits from"),
    ROW(seed, DM_OPT_COUNT, .initial = "1", .max = 9007199254740991.0,
        .help = "of the random streams; published points have 1"),
    DM_OPT_END,
};

static void json_print(json_t *json) {
    json_dumpf(json, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
    putchar('\n');
}

/* ---- published points ------------------------------------------------------------------------------------------- */

/* Measures all points, or those of one id. */
static int points_measure(const struct options *options, double *models, json_t *rows, unsigned counts[3],
                          struct dm_err *err) {
    for (size_t i = 0; i < hx_published_count; i++) {
        const struct hx_published *point = &hx_published_points[i];
        if (options->only[0] && strcmp(options->only, point->id) != 0) {
            continue;
        }
        int rc = hx_published_measure(point, &models[i], err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "%s, %s", point->id, point->what);
        }
        counts[hx_published_judge(point, models[i])]++;
        if (options->json) {
            json_array_append_new(rows, hx_published_object(point, models[i]));
        } else {
            hx_published_print(point, models[i]);
        }
    }
    return 0;
}

/* The resources of a random mix, each with the time for which it was idle while something waited for it. */
static int conserving_measure(const struct options *options, json_t *rows, uint64_t *idle_waited_ns,
                              struct dm_err *err) {
    const struct hx_conserving mix = {
        .profile = "cx6-100g", .seed = options->seed, .mns = 2, .cns = 2, .coroutines = 2};
    struct hx_conserved resources[HX_CONSERVED_MAX];
    size_t count;
    DM_TRY(hx_conserving_run(&mix, resources, &count, err));
    *idle_waited_ns = 0;
    if (!options->json) {
        printf("\nwork conservation, a random mix on %s\n%-12s %10s %8s  %s\n", mix.profile, "resource", "served",
               "busy", "idle while something waited");
    }
    for (size_t i = 0; i < count; i++) {
        const struct hx_conserved *resource = &resources[i];
        *idle_waited_ns += resource->idle_waited_ns;
        json_array_append_new(rows, json_pack("{s:s, s:I, s:f, s:I}", "resource", resource->name, "served",
                                              (json_int_t)resource->served, "busy", resource->busy, "idle_waited_ns",
                                              (json_int_t)resource->idle_waited_ns));
        if (!options->json) {
            printf("%-12s %10llu %7.1f%%  %llu ns\n", resource->name, (unsigned long long)resource->served,
                   resource->busy * 100, (unsigned long long)resource->idle_waited_ns);
        }
    }
    return 0;
}

static int check_only(const char *only, struct dm_err *err) {
    for (size_t i = 0; i < hx_published_count; i++) {
        if (only[0] == '\0' || strcmp(only, hx_published_points[i].id) == 0) {
            return 0;
        }
    }
    return dm_fail(err, DM_ERR_INVALID, "--only: there is no point '%.40s' (V1 to V24)", only);
}

static int validate_points(const struct options *options, struct dm_err *err) {
    DM_TRY(check_only(options->only, err));
    if (options->out[0] && options->only[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--out: needs all points, leave out --only");
    }
    if (options->out[0]) {
        DM_TRY(hx_make_folder(options->out, err)); /* rather than fail when all is measured */
    }
    double *models = calloc(hx_published_count, sizeof(*models));
    json_t *rows = json_array(), *resources = json_array();
    uint64_t idle_waited_ns = 0;
    unsigned counts[3] = {0};
    int rc = models && rows && resources ? 0 : DM_ERR_NO_MEMORY;
    if (rc < 0) {
        dm_fail(err, rc, "out of memory");
    }
    if (rc == 0 && !options->json) {
        printf("%-4s %-44s %-13s  %10s %10s %-6s %6s %-6s %-11s %-4s %s\n", "id", "what", "profile", "published",
               "model", "unit", "ratio", "within", "kind", "is", "source");
    }
    rc = rc < 0 ? rc : points_measure(options, models, rows, counts, err);
    if (rc == 0 && options->out[0]) {
        rc = hx_published_curves_write(options->out, models, err);
    }
    if (rc == 0 && !options->only[0]) {
        rc = conserving_measure(options, resources, &idle_waited_ns, err);
    }
    if (rc == 0 && options->json) {
        json_t *top = json_pack("{s:O, s:O, s:i, s:i, s:i}", "points", rows, "resources", resources, "within",
                                (int)counts[HX_WITHIN], "explained", (int)counts[HX_EXPLAINED], "out_of_tolerance",
                                (int)counts[HX_OUT]);
        json_print(top);
        json_decref(top);
    } else if (rc == 0) {
        printf("%u points within tolerance, %u out of it for a cause that is known (WHY), %u for none (OUT)\n",
               counts[HX_WITHIN], counts[HX_EXPLAINED], counts[HX_OUT]);
    }
    json_decref(rows);
    json_decref(resources);
    free(models);
    return rc < 0 ? rc : counts[HX_OUT] > 0 || idle_waited_ns > 0 ? HX_WRONG : HX_DONE;
}

/* ---- one fabric ------------------------------------------------------------------------------------------------- */

static int fabric_of(const struct options *options, struct hx_micro_fabric *fabric, struct dm_err *err) {
    const struct dm_transport_info *info = dm_transport_find(options->transport);
    if (!info) {
        const char *names[16];
        size_t count = 0;
        for (const struct dm_transport_info *const *one = dm_transports(); *one && count < DM_ARRAY_LEN(names); one++) {
            names[count++] = (*one)->name;
        }
        return hx_fail_unknown(err, "transport", options->transport, names, count);
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *fabric = (struct hx_micro_fabric){
        .transport = info->name,
        .profile = !(info->caps & DM_CAP_PROFILE) ? NULL
                   : options->profile[0]          ? options->profile
                                                  : "cx6-100g",
        .seed = options->seed,
        .is_virtual = info->caps & DM_CAP_VIRTUAL_TIME,
        .threads_max = cpus > 2 ? (unsigned)cpus - 1 : 1,
    };
    return 0;
}

static int table_print(const struct options *options, struct dm_err *err) {
    struct hx_micro_fabric fabric = {0};
    json_t *rows = NULL;
    DM_TRY(fabric_of(options, &fabric, err));
    DM_TRY(hx_micro_table(&fabric, &rows, err));
    if (options->json) {
        json_print(rows);
    } else {
        printf("%s%s%s, %s time\n", fabric.transport, fabric.profile ? ", " : "", fabric.profile ? fabric.profile : "",
               fabric.is_virtual ? "virtual" : "real");
        hx_micro_print(rows);
    }
    json_decref(rows);
    return 0;
}

static void cpu_print(json_t *costs, json_t *rows) {
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach(costs, name, value) {
        printf("%-22s %10.2f ns\n", name, json_real_value(value));
    }
    if (json_array_size(rows) > 0) {
        printf("\n%-10s %-8s %12s %12s %8s %8s %8s\n", "index", "op", "charged ns", "real ns", "ratio", "least",
               "most");
    }
    json_array_foreach(rows, i, value) {
        printf("%-10s %-8s %12.0f %12.0f %8.2f %8.2f %8.2f%s\n", json_string_value(json_object_get(value, "index")),
               json_string_value(json_object_get(value, "op")), json_real_value(json_object_get(value, "charged_ns")),
               json_real_value(json_object_get(value, "real_ns")), json_real_value(json_object_get(value, "ratio")),
               json_real_value(json_object_get(value, "ratio_least")),
               json_real_value(json_object_get(value, "ratio_most")),
               json_is_true(json_object_get(value, "within")) ? "" : "  OUT");
    }
}

static size_t outside_count(json_t *rows) {
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        count += !json_is_true(json_object_get(row, "within"));
    }
    return count;
}

/* The work units of this host, and then the indexes by a profile that is made of them. HX_WRONG if what an index
 * charges is too far from what its code takes. */
static int cpu_measure(const struct options *options, struct dm_err *err) {
    json_t *costs = NULL, *rows = NULL;
    DM_TRY(hx_cpu_costs(&costs, err));
    int rc = 0;
    if (options->fit[0]) {
        rc = hx_profile_write(options->fit, options->base, "CPU work units of this host",
                              "measured by dmbench validate --cpu", costs, err);
    }
    if (rc == 0 && options->keys > 0) {
        const struct hx_client_work wanted = {.index = options->index,
                                              .base = options->base,
                                              .costs = costs,
                                              .keys = options->keys,
                                              .ops = CLIENT_WORK_OPS,
                                              .rounds = (unsigned)options->rounds};
        rc = hx_client_work_measure(&wanted, &rows, err);
    }
    if (rc == 0 && options->json) {
        json_t *top = json_pack("{s:O, s:o}", "costs", costs, "indexes", rows ? json_incref(rows) : json_array());
        json_print(top);
        json_decref(top);
    } else if (rc == 0) {
        cpu_print(costs, rows);
    }
    rc = rc == 0 && outside_count(rows) > 0 ? HX_WRONG : rc;
    json_decref(costs);
    json_decref(rows);
    return rc;
}

static int fit(const struct options *options, struct dm_err *err) {
    struct hx_micro_fabric fabric;
    DM_TRY(fabric_of(options, &fabric, err));
    return hx_fit(&fabric, options->base, options->fit, err);
}

static int whole_indexes(const struct options *options, struct dm_err *err) {
    const struct hx_end_to_end_options end_to_end = {.plots = options->plots,
                                                     .out = options->out[0] ? options->out : "results",
                                                     .scale = options->scale,
                                                     .only = options->only,
                                                     .json = options->json,
                                                     .dry_run = options->dry_run,
                                                     .run = options->run};
    if (options->cpu || options->fit[0] || options->profile[0] || strcmp(options->transport, "sim") != 0) {
        return dm_fail(err, DM_ERR_INVALID,
                       "--end-to-end: the experiments have their transport and profile; leave out --transport, "
                       "--profile, --fit and --cpu");
    }
    return hx_end_to_end(&end_to_end, err);
}

/* The exit status, or a failure. */
static int validate(const struct options *options, struct dm_err *err) {
    if (options->end_to_end) {
        return whole_indexes(options, err);
    }
    const struct hx_points_options *run = &options->run;
    if (run->sshloginfile[0] || run->slurm[0] || run->force || run->no_run || run->jobs > 0 ||
        run->stale != HX_STALE_RUN || options->dry_run) {
        return dm_fail(
            err, DM_ERR_INVALID,
            "--jobs, --sshloginfile, --slurm, --stale, --force, --no-run and --dry-run go with --end-to-end");
    }
    bool has_fabric = options->profile[0] || strcmp(options->transport, "sim") != 0;
    if ((options->only[0] || options->out[0]) && (has_fabric || options->cpu || options->fit[0])) {
        return dm_fail(err, DM_ERR_INVALID,
                       "--only and --out belong to the published points: leave out --transport, --profile, --fit and "
                       "--cpu");
    }
    if (options->cpu) {
        return has_fabric
                   ? dm_fail(err, DM_ERR_INVALID, "--cpu measures this host: leave out --transport and --profile")
                   : cpu_measure(options, err);
    }
    if (options->fit[0]) {
        return fit(options, err);
    }
    return has_fabric ? table_print(options, err) : validate_points(options, err);
}

void hx_help_validate(struct hx_help *help) {
    help->usage = "validate [options]";
    help->about = "Measures the simulated fabric with micro-benchmarks and compares it with published ones. With "
                  "--transport or --profile the micro-benchmarks alone. With --end-to-end whole indexes under the "
                  "conditions of published experiments (plots/end_to_end), beside the published results.";
    help->examples = "dmbench validate\n"
                     "dmbench validate --only V6\n"
                     "dmbench validate --out results/validate       data and gnuplot programs of the curves\n"
                     "dmbench validate --end-to-end\n"
                     "dmbench validate --profile my-nic.json\n"
                     "dmbench validate --transport local --fit host.json\n"
                     "dmbench validate --cpu --fit my-cpu.json";
    help->status = "0 all within tolerance, 3 a measurement is out of its tolerance and the table names no cause, or a "
                   "resource was idle while something waited for it, or, with --cpu, an index charges less than 0.7 or "
                   "more than 1.4 times what its code takes; 1 failed, 2 usage, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = table});
}

int hx_cmd_validate(int argc, char **argv) {
    struct options options = {.out = NULL};
    struct dm_err err = {0};
    dm_opt_defaults(table, &options);
    hx_plots_set(table, &options);
    struct hx_args args = {.table = table, .values = &options};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        hx_help_show(hx_help_validate);
        dm_opt_free(table, &options);
        return HX_DONE;
    }
    if (rc == 0) {
        if (!options.end_to_end) { /* points that run have a handling of interrupts of their own */
            hx_interrupt_install("validate");
        }
        rc = validate(&options, &err);
    }
    dm_opt_free(table, &options);
    return rc < 0 ? hx_report("validate", &err) : rc;
}
