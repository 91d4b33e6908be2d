/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench check`: runs and judges small worlds drawn from seeds, and shrinks the first one that fails.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/campaign.h"
#include "check/shrink.h"
#include "check/timeline.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/option_names.h"
#include "harness/base/progress.h"
#include "harness/cli/commands.h"
#include "harness/run/interrupt.h"
#include "harness/run/options.h"
#include "harness/run/verb_trace_file.h"

enum { PAIRS_MAX = 12, PAIR_BYTES = 128, SEEDS_DEFAULT = 200, COVERAGE_SEEDS = 100, WORLD_TEXT_BYTES = 1500 };

enum { COVERAGE_AUTO, COVERAGE_ON, COVERAGE_OFF };
static const char *const coverage_names[] = {"auto", "on", "off", NULL};
static const char *const rdwc_names[] = {"drawn", "off", "on", "stale", NULL}; /* as enum ck_rdwc */

struct check_options {
    const char *index, *transport, *replay, *part, *history, *out, *trace;
    uint64_t seeds, first_seed, time_ns, jobs, shrink_runs;
    unsigned coverage, rdwc;
    bool json;
};

#define ROW(member, ...)          DM_OPT_ROW(struct check_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct check_options, member, __VA_ARGS__)

static const struct dm_opt check_options[] = {
    ROW(index, DM_OPT_STRING, .initial = "all", .help = "the index to check, or all that keep data"),
    ROW(seeds, DM_OPT_COUNT, .initial = "0", .help = "how many seeds; 0: as many as --time allows, or 200"),
    ROW(first_seed, DM_OPT_COUNT, .initial = "1", .help = "the first seed"),
    ROW_AS("time", time_ns, DM_OPT_DURATION, .initial = "0",
           .help = "stop after this time of the host; 0: when the seeds are done"),
    ROW(jobs, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 256, .help = "processes that share the seeds"),
    ROW(transport, DM_OPT_STRING, .initial = "sim", .help = "the fabric; only sim can replay and shrink"),
    ROW(replay, DM_OPT_STRING, .initial = "", .help = "run this seed alone and show what happened"),
    ROW(part, DM_OPT_STRING, .initial = "", .help = "with --replay: only this part of its world, as a report named it"),
    ROW(history, DM_OPT_STRING, .initial = "", .help = "judge the history in this file instead of running anything"),
    ROW(out, DM_OPT_STRING, .initial = "", .help = "write the history of the failing, or replayed, run to this file"),
    ROW(trace, DM_OPT_STRING, .initial = "",
        .help = "with --replay: write its operations and verbs to this file, for Perfetto"),
    ROW(coverage, DM_OPT_ENUM, .initial = "auto", .choices = coverage_names,
        .help = "fail if a rare event of the index never happened; auto: from 100 seeds on, with no --set"),
    ROW(rdwc, DM_OPT_ENUM, .initial = "drawn", .choices = rdwc_names,
        .help =
            "read delegation and write combining around the index: in some worlds, in none, in all, or in all with a "
            "variant that is known to be wrong"),
    ROW(shrink_runs, DM_OPT_COUNT, .initial = "20000", .max = 1e9, .help = "runs that shrinking may take"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the findings as JSON"),
    DM_OPT_END,
};
#undef ROW

/* Options of the form NAME=VALUE, split. */
struct pairs {
    struct dm_setting settings[PAIRS_MAX];
    char text[PAIRS_MAX][PAIR_BYTES];
    size_t count;
};

struct check {
    struct check_options options;
    struct pairs params, settings;
    json_t *findings; /* one object an index; NULL without --json */
    bool is_wrong;
};

/* ---- command line ----------------------------------------------------------------------------------------------- */

static int pair_take(struct pairs *pairs, const char *option, const char *value, struct dm_err *err) {
    const char *equals = value ? strchr(value, '=') : NULL;
    if (!equals || equals == value || strlen(value) >= PAIR_BYTES) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: '%.60s' is not NAME=VALUE", option, value);
    }
    if (pairs->count == PAIRS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: more than %d of them", option, PAIRS_MAX);
    }
    char *text = pairs->text[pairs->count];
    snprintf(text, PAIR_BYTES, "%s", value);
    text[equals - value] = '\0';
    pairs->settings[pairs->count++] = (struct dm_setting){text, text + (equals - value) + 1};
    return 0;
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct check *check = arg;
    if (!name) {
        return dm_fail(err, DM_ERR_INVALID, "'%.60s': a word where none is expected", value);
    }
    return strcmp(name, "set") == 0 ? pair_take(&check->params, "set", value, err)
                                    : pair_take(&check->settings, "transport-set", value, err);
}

static int index_check(const struct check *check, struct dm_err *err) {
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

static int options_check(const struct check *check, struct dm_err *err) {
    const struct check_options *options = &check->options;
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
    if (options->part[0] && !options->replay[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--part: needs --replay SEED");
    }
    if (options->trace[0] && !options->replay[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--trace: needs --replay SEED");
    }
    if (options->jobs > 1 && !(transport->caps & DM_CAP_VIRTUAL_TIME)) {
        return dm_fail(err, DM_ERR_INVALID, "--jobs: transport %s runs in real time, seeds one by one",
                       transport->name);
    }
    return 0;
}

static void help_print(const struct check *check) {
    printf(
        "Usage: dmbench check [options]\n\n"
        "Runs small worlds drawn from seeds (few keys, tiny nodes and caches, lines that land in any order), judges\n"
        "what every client received (linearizability of every key, scans, the index's own verify, progress), and\n"
        "shrinks the first world that fails to the smallest part that still fails.\n\n"
        "Examples:\n"
        "  dmbench check --index sherman --seeds 10K --jobs 2\n"
        "  dmbench check --time 1h --first-seed 1000000\n"
        "  dmbench check --index sherman --set versions=none        a variant that is known to be wrong\n"
        "  dmbench check --index sherman --replay 17 --out run.json\n"
        "  dmbench check --index sherman --replay 17 --trace run.perfetto.json   to look at in ui.perfetto.dev\n"
        "  dmbench check --history run.json\n\nOptions:\n");
    hx_args_help(check_options);
    printf("  --set NAME=VALUE   a parameter of the index, the same in all worlds; repeatable\n"
           "  --transport-set NAME=VALUE   an option of the transport, likewise\n");
    const struct ix_ops *index = ix_find(check->options.index);
    if (index && index->params) {
        printf("\nParameters of index %s:\n", index->name);
        hx_parameters_help("set", index->params);
    }
    printf("\nExit status: 0 nothing found, 1 failed, 2 usage, 3 something is wrong, 130 interrupted.\n");
}

/* ---- findings --------------------------------------------------------------------------------------------------- */

static void command_text(const struct check *check, const struct ix_ops *index, uint64_t seed, char *text,
                         size_t capacity) {
    int at = snprintf(text, capacity, "dmbench check --index %s", index->name);
    if (strcmp(check->options.transport, "sim") != 0) {
        at += snprintf(text + at, capacity - (size_t)at, " --transport %s", check->options.transport);
    }
    if (check->options.rdwc != CK_RDWC_DRAWN) {
        at += snprintf(text + at, capacity - (size_t)at, " --rdwc %s", rdwc_names[check->options.rdwc]);
    }
    const struct pairs *both[] = {&check->params, &check->settings};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < both[k]->count && at < (int)capacity; i++) {
            at += snprintf(text + at, capacity - (size_t)at, " --%s %s=%s", k == 0 ? "set" : "transport-set",
                           both[k]->settings[i].name, both[k]->settings[i].value);
        }
    }
    if (at < (int)capacity) {
        snprintf(text + at, capacity - (size_t)at, " --replay %llu", (unsigned long long)seed);
    }
}

/* A failing seed and its run. */
struct finding {
    const struct ix_ops *index;
    const struct ck_world *world; /* NULL for a history from a file */
    const struct ck_part *part;
    const struct ck_result *result;
    uint64_t seed;
    int runs; /* runs that shrinking took; 0: not shrunk */
};

static size_t steps_of(const struct ck_part *part) {
    size_t count = 0;
    for (size_t i = 0; i < CK_STEPS_MAX; i++) {
        count += part->steps[i];
    }
    return count;
}

static void finding_print(const struct check *check, const struct finding *finding) {
    char command[1024], text[WORLD_TEXT_BYTES], part[CK_PART_TEXT_BYTES];
    const struct ck_verdict *verdict = &finding->result->verdict;
    command_text(check, finding->index, finding->seed, command, sizeof(command));
    printf("%s: seed %llu: %s: %s\n", finding->index->name, (unsigned long long)finding->seed,
           ck_fault_names[verdict->fault], verdict->text);
    printf("  world:   %s\n", ck_world_text(finding->world, text, sizeof(text)));
    printf("  replay:  %s\n", command);
    if (finding->runs > 0) {
        printf("  minimum: %s --part %s\n", command, ck_part_text(finding->part, part, sizeof(part)));
        printf("           %zu of %zu operations, found in %d runs\n", steps_of(finding->part),
               finding->world->step_count, finding->runs);
    } else if (!finding->result->is_virtual) {
        printf("  (real time: a replay need not fail again; --out FILE keeps this history)\n");
    }
    putchar('\n');
    ck_timeline_print(&finding->result->history, verdict, &finding->result->verbs, stdout);
}

static json_t *finding_json(const struct check *check, const struct finding *finding) {
    char command[1024], part[CK_PART_TEXT_BYTES];
    const struct ck_verdict *verdict = &finding->result->verdict;
    command_text(check, finding->index, finding->seed, command, sizeof(command));
    json_t *object = json_pack("{s:I, s:s, s:s, s:s}", "seed", (json_int_t)finding->seed, "fault",
                               ck_fault_names[verdict->fault], "text", verdict->text, "replay", command);
    if (finding->runs > 0) {
        json_object_set_new(object, "part", json_string(ck_part_text(finding->part, part, sizeof(part))));
        json_object_set_new(object, "operations", json_integer((json_int_t)steps_of(finding->part)));
    }
    return object;
}

/* Repeats the run and keeps its verbs: in virtual time it is the same run. */
static int verbs_fetch(struct ck_world *world, const struct ck_part *part, struct ck_result *result,
                       struct dm_err *err) {
    if (!result->is_virtual || result->verbs.count > 0) {
        return 0;
    }
    struct ck_result again;
    world->logs_verbs = true;
    int rc = ck_run(world, part, &again, err);
    world->logs_verbs = false;
    if (rc < 0) {
        ck_result_fini(&again);
        return rc;
    }
    ck_result_fini(result);
    *result = again;
    return 0;
}

/* Shrinks a failing run in virtual time, stores its history if asked, and reports it. */
static int finding_report(struct check *check, const struct ix_ops *index, struct ck_world *world, struct ck_part *part,
                          struct ck_result *result, json_t *into, struct dm_err *err) {
    struct finding finding = {index, world, part, result, world->seed, 0};
    if (result->is_virtual && !check->options.part[0] && check->options.shrink_runs > 0) {
        finding.runs = ck_shrink(world, part, result, (unsigned)check->options.shrink_runs, err);
        DM_TRY(finding.runs);
    }
    DM_TRY(verbs_fetch(world, part, result, err));
    if (check->options.out[0]) {
        DM_TRY(ck_history_store(&result->history, check->options.out, err));
    }
    check->is_wrong = true;
    if (into) {
        json_object_set_new(into, "finding", finding_json(check, &finding));
    } else {
        finding_print(check, &finding);
    }
    return 0;
}

/* ---- a campaign ------------------------------------------------------------------------------------------------- */

static bool wants_coverage(const struct check *check, const struct ck_summary *summary) {
    if (check->options.coverage != COVERAGE_AUTO) {
        return check->options.coverage == COVERAGE_ON;
    }
    return summary->seeds >= COVERAGE_SEEDS && check->params.count == 0 && check->settings.count == 0 &&
           strcmp(check->options.transport, "sim") == 0;
}

struct counter_report {
    json_t *into, *counters, *missing;
};

static void counter_report(const struct counter_report *report, const char *name, uint64_t count, bool is_rare) {
    json_object_set_new(report->counters, name, json_integer((json_int_t)count));
    if (is_rare && count == 0) {
        json_array_append_new(report->missing, json_string(name));
    }
    if (!report->into && is_rare) {
        printf("  %-20s %llu%s\n", name, (unsigned long long)count, count > 0 ? "" : "   <== never happened");
    }
}

/* Reports the counters, and the rare events that never happened. */
static void counters_report(struct check *check, const struct ix_ops *index, const struct ck_summary *summary,
                            json_t *into) {
    json_t *counters = json_object(), *missing = json_array();
    const struct counter_report report = {into, counters, missing};
    bool is_checked = wants_coverage(check, summary) && !summary->has_failed;
    for (size_t i = 0; i < ix_counter_count(index) && i < CK_COUNTERS_MAX; i++) {
        counter_report(&report, index->counters[i].name, summary->counters[i], index->counters[i].rare);
    }
    if (check->options.rdwc != CK_RDWC_OFF) {
        counter_report(&report, "shared_get", summary->shared.shared_gets, true);
        counter_report(&report, "shared_update", summary->shared.shared_updates, index->caps & IX_CAP_INSERT);
        counter_report(&report, "rdwc_bypass", summary->shared.bypassed, true);
    }
    if (is_checked && json_array_size(missing) > 0) {
        check->is_wrong = true;
        if (!into) {
            printf("  %zu rare events never happened: this check says nothing about them\n", json_array_size(missing));
        }
    }
    if (into) {
        json_object_set(into, "counters", counters);
        json_object_set(into, "never_happened", missing);
    }
    json_decref(counters);
    json_decref(missing);
}

static json_t *summary_report(struct check *check, const struct ix_ops *index, const struct ck_campaign *campaign,
                              const struct ck_summary *summary) {
    json_t *into = NULL;
    if (check->findings) {
        into = json_pack("{s:s, s:I, s:I, s:I, s:f}", "index", index->name, "first_seed",
                         (json_int_t)campaign->first_seed, "seeds", (json_int_t)summary->seeds, "operations",
                         (json_int_t)summary->operations, "host_s", summary->host_s);
        json_array_append_new(check->findings, into);
    } else {
        printf("%s: %llu seeds from %llu on, %llu operations, %.1f s (%.0f seeds a minute): %s\n", index->name,
               (unsigned long long)summary->seeds, (unsigned long long)campaign->first_seed,
               (unsigned long long)summary->operations, summary->host_s,
               summary->host_s > 0 ? 60 * (double)summary->seeds / summary->host_s : 0.0,
               summary->has_failed ? "WRONG" : "nothing found");
    }
    counters_report(check, index, summary, into);
    return into;
}

static struct ck_request request_of(const struct check *check, const struct ix_ops *index) {
    return (struct ck_request){.index = index,
                               .transport = check->options.transport,
                               .params = check->params.settings,
                               .param_count = check->params.count,
                               .settings = check->settings.settings,
                               .setting_count = check->settings.count,
                               .rdwc = check->options.rdwc};
}

/* The progress of a campaign: in seeds, or in time if only time is bounded. */
struct watch {
    struct hx_progress progress;
    bool by_time;
};

static void on_seed(void *arg, uint64_t seeds) {
    struct watch *watch = arg;
    hx_progress_at(&watch->progress, watch->by_time ? hx_host_ns() - watch->progress.begun_ns : seeds);
}

static int campaign_run(struct ck_campaign *campaign, struct ck_summary *summary, struct ck_result *kept,
                        struct dm_err *err) {
    struct watch watch = {.by_time = campaign->seeds == 0};
    hx_progress_init(&watch.progress);
    hx_progress_phase(&watch.progress, "checking", watch.by_time ? campaign->time_ns : campaign->seeds);
    campaign->on_seed = on_seed;
    campaign->arg = &watch;
    int rc = ck_campaign_run(campaign, summary, kept, err);
    hx_progress_end(&watch.progress);
    return rc;
}

static int campaign_do(struct check *check, const struct ix_ops *index, struct ck_world *world, struct dm_err *err) {
    const struct check_options *options = &check->options;
    struct ck_campaign campaign = {
        .request = request_of(check, index),
        .first_seed = options->first_seed,
        .seeds = options->seeds > 0 || options->time_ns > 0 ? options->seeds : SEEDS_DEFAULT,
        .time_ns = options->time_ns,
        .jobs = (unsigned)options->jobs,
    };
    struct ck_summary summary;
    struct ck_result result;
    int rc = campaign_run(&campaign, &summary, &result, err);
    json_t *into = rc < 0 ? NULL : summary_report(check, index, &campaign, &summary);
    if (rc == 0 && summary.has_failed) {
        struct ck_part part;
        bool is_kept = result.verdict.fault != CK_RIGHT;
        rc = ck_world_draw(&campaign.request, summary.failed_seed, world, err);
        if (rc == 0) {
            ck_part_all(world, &part);
            rc = is_kept ? 0 : ck_run(world, &part, &result, err);
        }
        rc = rc < 0 ? rc : finding_report(check, index, world, &part, &result, into, err);
        ck_world_fini(world);
    }
    ck_result_fini(&result);
    return rc < 0 ? dm_fail_in(err, rc, "%s", index->name) : 0;
}

static int campaigns_do(struct check *check, struct ck_world *world, struct dm_err *err) {
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        bool is_meant = strcmp(check->options.index, "all") == 0 ? !((*ops)->caps & IX_CAP_NO_DATA)
                                                                 : strcmp(check->options.index, (*ops)->name) == 0;
        if (is_meant) {
            DM_TRY(campaign_do(check, *ops, world, err));
        }
    }
    return 0;
}

/* ---- one seed, one file ----------------------------------------------------------------------------------------- */

static int replay_do(struct check *check, struct ck_world *world, struct dm_err *err) {
    const struct ix_ops *index = ix_find(check->options.index);
    struct ck_request request = request_of(check, index);
    struct ck_result result = {.is_virtual = false};
    struct ck_part part;
    uint64_t seed;
    if (dm_parse_count(check->options.replay, &seed, err) < 0) {
        return dm_fail_in(err, DM_ERR_INVALID, "--replay");
    }
    int rc = ck_world_draw(&request, seed, world, err);
    if (rc == 0 && check->options.part[0]) {
        rc = ck_part_parse(check->options.part, &part, err);
    } else if (rc == 0) {
        ck_part_all(world, &part);
    }
    world->logs_verbs = check->options.trace[0];
    rc = rc < 0 ? rc : ck_run(world, &part, &result, err);
    world->logs_verbs = false;
    if (rc == 0 && check->options.trace[0]) {
        rc = hx_trace_store_run(&result, check->options.trace, err);
    }
    json_t *into = check->findings ? json_object() : NULL;
    if (into) {
        json_array_append_new(check->findings, into);
        json_object_set_new(into, "index", json_string(index->name));
    }
    if (rc == 0 && result.verdict.fault != CK_RIGHT) {
        rc = finding_report(check, index, world, &part, &result, into, err);
    } else if (rc == 0) {
        char text[WORLD_TEXT_BYTES];
        if (!into) {
            printf("%s: seed %llu: nothing found in %zu operations\n  world:   %s\n", index->name,
                   (unsigned long long)seed, result.history.op_count, ck_world_text(world, text, sizeof(text)));
        }
        rc = check->options.out[0] ? ck_history_store(&result.history, check->options.out, err) : 0;
    }
    ck_result_fini(&result);
    ck_world_fini(world);
    return rc;
}

static int history_do(struct check *check, struct dm_err *err) {
    struct ck_history history;
    struct ck_verdict verdict;
    int rc = ck_history_load(check->options.history, &history, err);
    if (rc == 0) {
        rc = ck_judge(&history, &verdict);
        rc = rc < 0 ? dm_fail(err, rc, "out of memory") : 0;
    }
    if (rc == 0) {
        check->is_wrong = verdict.fault != CK_RIGHT;
        const char *text = check->is_wrong ? verdict.text : "nothing found";
        if (check->findings) {
            json_array_append_new(check->findings, json_pack("{s:s, s:s, s:s}", "history", check->options.history,
                                                             "fault", ck_fault_names[verdict.fault], "text", text));
        } else {
            printf("%s: %zu operations: %s: %s\n", check->options.history, history.op_count,
                   ck_fault_names[verdict.fault], text);
            ck_timeline_print(&history, &verdict, NULL, stdout);
        }
    }
    ck_history_fini(&history);
    return rc;
}

static int check_do(struct check *check, struct dm_err *err) {
    if (check->options.history[0]) {
        return history_do(check, err);
    }
    struct ck_world *world = calloc(1, sizeof(*world));
    if (!world) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = check->options.replay[0] ? replay_do(check, world, err) : campaigns_do(check, world, err);
    free(world);
    return rc;
}

int hx_cmd_check(int argc, char **argv) {
    static const char *const repeated[] = {"set", "transport_set", NULL};
    struct check check = {.findings = NULL};
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
        rc = check_do(&check, &err);
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
