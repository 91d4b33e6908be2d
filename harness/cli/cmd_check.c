/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench check`: runs and judges small worlds drawn from seeds, and shrinks the first one that fails.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/lab/checking.h"
#include "harness/run/interrupt.h"
#include "indexes/index.h"

static const char *const coverage_names[] = {"auto", "on", "off", NULL}; /* as HX_COVERAGE_AUTO and so on */

#define ROW(member, ...)          DM_OPT_ROW(struct hx_checking_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct hx_checking_options, member, __VA_ARGS__)

static const struct dm_opt check_options[] = {
    ROW(index, DM_OPT_STRING, .values = "indexes", .initial = "all",
        .help = "the index to check, or all that keep data"),
    ROW(seeds, DM_OPT_COUNT, .initial = "0", .help = "how many seeds; 0: as many as --time allows, or 200"),
    ROW(first_seed, DM_OPT_COUNT, .initial = "1", .help = "the first seed"),
    ROW_AS("time", time_ns, DM_OPT_DURATION, .initial = "0",
           .help = "stop after this time of the host; 0: when the seeds are done"),
    ROW_AS("seed_time", seed_time_ns, DM_OPT_DURATION, .initial = "5m",
           .help = "processor time of one seed on sim; a seed that takes longer is a finding; 0: no limit"),
    ROW(jobs, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 256,
        .help = "seeds that run at a time, in processes on sim, in threads elsewhere"),
    ROW(transport, DM_OPT_STRING, .values = "transports", .initial = "sim",
        .help = "the fabric; only sim can replay and shrink"),
    ROW(replay, DM_OPT_STRING, .initial = "", .help = "run this seed alone and show what happened"),
    ROW(world, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "run the world in this file alone and show what happened"),
    ROW(keep, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "with --replay: write its world to this file, which stays the same whatever seeds draw later"),
    ROW(part, DM_OPT_STRING, .initial = "", .help = "with --replay: only this part of its world, as a report named it"),
    ROW(history, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "judge the history in this file instead of running anything"),
    ROW(out, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "write the history of the failing, or replayed, run to this file"),
    ROW(trace, DM_OPT_STRING, .values = "file", .initial = "",
        .help =
            "write operations and verbs of the failing run, on sim its minimum, or of the replayed one to this file, "
            "for Perfetto"),
    ROW(coverage, DM_OPT_ENUM, .initial = "auto", .choices = coverage_names,
        .help = "fail if a rare event of the index never happened; auto: from 100 seeds on, with no --set"),
    ROW(rdwc, DM_OPT_ENUM, .initial = "drawn", .choices = hx_checking_rdwc_names,
        .help = "read delegation and write combining around the index: in some worlds, in none, in all, or in all "
                "with a variant that is known to be wrong: the published one, or its late gets alone"),
    ROW(mn, DM_OPT_STRING, .initial = "",
        .help = "HOST:PORT of a `dmbench check --listen` with the same options, whose process has the memory nodes and "
                "index servers of all worlds; it takes that port and those that follow, two for each of --jobs"),
    ROW(listen, DM_OPT_STRING, .initial = "",
        .help = "HOST:PORT: serve the memory nodes and index servers of the worlds that another process checks"),
    ROW(token_file, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "with --mn and --listen: file with the token that both processes show each other"),
    ROW(shrink_runs, DM_OPT_COUNT, .initial = "20000", .max = 1e9, .help = "runs that shrinking may take"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the findings as JSON"),
    DM_OPT_END,
};
#undef ROW

/* ---- command line ----------------------------------------------------------------------------------------------- */

static int pair_take(struct hx_pairs *pairs, const char *option, const char *value, struct dm_err *err) {
    const char *equals = value ? strchr(value, '=') : NULL;
    if (!equals || equals == value || strlen(value) >= HX_PAIR_BYTES) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: '%.60s' is not NAME=VALUE", option, value);
    }
    if (pairs->count == HX_PAIRS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: more than %d of them", option, HX_PAIRS_MAX);
    }
    char *text = pairs->text[pairs->count];
    snprintf(text, HX_PAIR_BYTES, "%s", value);
    text[equals - value] = '\0';
    pairs->settings[pairs->count++] = (struct dm_setting){text, text + (equals - value) + 1};
    return 0;
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct hx_checking *check = arg;
    if (!name) {
        return dm_fail(err, DM_ERR_INVALID, "'%.60s': a word where none is expected", value);
    }
    return strcmp(name, "set") == 0 ? pair_take(&check->params, "set", value, err)
                                    : pair_take(&check->settings, "transport-set", value, err);
}

static int index_check(const struct hx_checking *check, struct dm_err *err) {
    const char *names[64] = {"all"};
    size_t count = 1;
    bool is_known = strcmp(check->options.index, "all") == 0;
    for (const struct ix_ops *const *ops = ix_all(); *ops && count < 64; ops++) {
        is_known = is_known || strcmp((*ops)->name, check->options.index) == 0;
        names[count++] = (*ops)->name;
    }
    if (!is_known) {
        return hx_fail_unknown(err, "index", check->options.index, names, count);
    }
    bool is_one = strcmp(check->options.index, "all") != 0;
    if (!is_one && (check->params.count > 0 || check->options.replay[0])) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: name one --index with it",
                       check->params.count > 0 ? "set" : "replay");
    }
    if (is_one && ix_find(check->options.index)->caps & IX_CAP_NO_DATA) {
        return dm_fail(err, DM_ERR_INVALID, "--index %s: it keeps no data, so there is nothing to check",
                       check->options.index);
    }
    return 0;
}

/* Both processes have to go through the same seeds. */
static int team_check(const struct hx_checking_options *options, const struct dm_transport_info *transport,
                      struct dm_err *err) {
    const char *name = options->listen[0] ? "listen" : "mn";
    if (options->mn[0] && options->listen[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--listen: this process serves, or --mn: it checks; not both");
    }
    if (!(transport->caps & DM_CAP_DEVICE)) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: two processes need --transport verbs", name);
    }
    if (options->time_ns > 0 || options->replay[0] || options->world[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: needs --seeds, without --%s", name,
                       options->time_ns > 0 ? "time"
                       : options->replay[0] ? "replay"
                                            : "world");
    }
    return 0;
}

static int options_check(const struct hx_checking *check, struct dm_err *err) {
    const struct hx_checking_options *options = &check->options;
    DM_TRY(index_check(check, err));
    const struct dm_transport_info *transport = dm_transport_find(options->transport);
    if (!transport) {
        const char *names[16];
        size_t count = 0;
        for (const struct dm_transport_info *const *info = dm_transports(); *info && count < 16; info++) {
            names[count++] = (*info)->name;
        }
        return hx_fail_unknown(err, "transport", options->transport, names, count);
    }
    bool is_one = options->replay[0] || options->world[0];
    if (options->replay[0] && options->world[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--world: the file has the seed; leave --replay out");
    }
    if (options->part[0] && !is_one) {
        return dm_fail(err, DM_ERR_INVALID, "--part: needs --replay SEED");
    }
    if (options->keep[0] && !options->replay[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--keep: needs --replay SEED");
    }
    if (options->mn[0] || options->listen[0]) {
        DM_TRY(team_check(options, transport, err));
    }
    return 0;
}

static const struct hx_help_option extra[] = {
    {"--set NAME=VALUE", "a parameter of the index, the same in all worlds; repeatable", "set"},
    {"--transport-set NAME=VALUE", "an option of the transport, likewise", "transport_set"},
    {NULL, NULL, NULL},
};

void hx_help_check(struct hx_help *help) {
    help->usage = "check [options]";
    help->about = "Runs small worlds drawn from seeds (few keys, tiny nodes and caches, lines that land in any order), "
                  "judges what every client received (linearizability of every key, scans, the index's own verify, "
                  "progress), and shrinks the first world that fails to the smallest part that still fails.";
    help->examples =
        "dmbench check --index sherman --seeds 10K --jobs 2\n"
        "dmbench check --time 1h --first-seed 1000000\n"
        "dmbench check --index sherman --set versions=none        a variant that is known to be wrong\n"
        "dmbench check --index sherman --replay 17 --out run.json\n"
        "dmbench check --index sherman --replay 17 --trace run.perfetto.json   for Perfetto\n"
        "dmbench check --history run.json\n"
        "dmbench check --transport verbs --index chime --listen 10.0.0.1:7000 --token-file t\n"
        "dmbench check --transport verbs --index chime --mn 10.0.0.1:7000 --token-file t   on another host";
    help->status = "0 nothing found, 1 failed, 2 usage, 3 something is wrong, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .options = extra, .table = check_options});
}

/* With the parameters of the index that the command line names. */
static void help_print(const struct hx_checking *check) {
    struct hx_help help = {.section_count = 0};
    const struct ix_ops *index = ix_find(check->options.index);
    hx_help_check(&help);
    if (index && index->params) {
        hx_help_add(&help,
                    (struct hx_help_section){.title = "Parameters of the index", .table = index->params, .as = "set"});
    }
    hx_help_print(&help, stdout);
}

int hx_cmd_check(int argc, char **argv) {
    static const char *const repeated[] = {"set", "transport_set", NULL};
    struct hx_checking check = {.findings = NULL};
    struct dm_err err = {0};
    dm_opt_defaults(check_options, &check.options);
    struct hx_args args = {
        .table = check_options, .values = &check.options, .repeated = repeated, .take = take, .arg = &check};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        help_print(&check);
        rc = 0;
        goto out;
    }
    rc = rc < 0 ? rc : options_check(&check, &err);
    if (rc == 0) {
        check.findings = check.options.json ? json_array() : NULL;
        hx_interrupt_install("check");
        rc = hx_checking_run(&check, &err);
    }
    if (rc == 0 && check.findings) {
        json_t *top = json_pack("{s:s, s:i, s:b, s:O}", "kind", "dmbench check", "schema_version", 1, "wrong",
                                check.is_wrong, "findings", check.findings);
        json_dumpf(top, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(top);
    }
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        rc = dm_fail(&err, DM_ERR_IO, "cannot write to standard output");
    }
out:
    json_decref(check.findings);
    dm_opt_free(check_options, &check.options);
    return rc < 0 ? hx_report("check", &err) : check.is_wrong ? HX_WRONG : HX_DONE;
}
