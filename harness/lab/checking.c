/* SPDX-License-Identifier: Apache-2.0
 *
 * Running checks: seeds of small worlds, their verdicts, and the smallest part of the first world that fails.
 */
#include "harness/lab/checking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/shrink.h"
#include "check/timeline.h"
#include "harness/base/progress.h"
#include "harness/run/team.h"
#include "harness/run/verb_trace_file.h"

#define SERVE_PATIENCE_NS UINT64_C(180000000000) /* longer than a world takes that makes no progress */

enum { SEEDS_DEFAULT = 200, COVERAGE_SEEDS = 100, WORLD_TEXT_BYTES = 1500 };

const char *const hx_checking_rdwc_names[] = {"drawn", "off", "on", "published", "stale", NULL}; /* as enum ck_rdwc */

/* ---- findings --------------------------------------------------------------------------------------------------- */

static void command_text(const struct hx_checking *check, const struct ix_ops *index, uint64_t seed, char *text,
                         size_t capacity) {
    int at = snprintf(text, capacity, "dmbench check --index %s", index->name);
    if (strcmp(check->options.transport, "sim") != 0) {
        at += snprintf(text + at, capacity - (size_t)at, " --transport %s", check->options.transport);
    }
    if (check->options.rdwc != CK_RDWC_DRAWN) {
        at += snprintf(text + at, capacity - (size_t)at, " --rdwc %s", hx_checking_rdwc_names[check->options.rdwc]);
    }
    const struct hx_pairs *both[] = {&check->params, &check->settings};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < both[k]->count && at < (int)capacity; i++) {
            at += snprintf(text + at, capacity - (size_t)at, " --%s %s=%s", k == 0 ? "set" : "transport-set",
                           both[k]->settings[i].name, both[k]->settings[i].value);
        }
    }
    if (at < (int)capacity && check->options.world[0]) {
        snprintf(text + at, capacity - (size_t)at, " --world %s", check->options.world);
    } else if (at < (int)capacity) {
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

/* The faults that the minimum keeps, by their numbers in --part. */
static void faults_print(const struct finding *finding) {
    bool has_fault = false;
    for (size_t i = 0; i < finding->world->fault_count; i++) {
        if (finding->part->faults[i]) {
            char text[120];
            printf("           with fault %zu: %s\n", i, ck_fault_text(&finding->world->faults[i], text, sizeof(text)));
            has_fault = true;
        }
    }
    if (!has_fault) {
        puts("           without a fault");
    }
}

static void finding_print(const struct hx_checking *check, const struct finding *finding) {
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
        faults_print(finding);
    } else if (!finding->result->is_virtual) {
        printf("  (real time: a replay need not fail again; --out FILE keeps this history)\n");
    }
    putchar('\n');
    ck_timeline_print(&finding->result->history, verdict, &finding->result->verbs, stdout);
}

static json_t *finding_json(const struct hx_checking *check, const struct finding *finding) {
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
static int finding_report(struct hx_checking *check, const struct ix_ops *index, struct ck_world *world,
                          struct ck_part *part, struct ck_result *result, json_t *into, struct dm_err *err) {
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

static struct ck_request request_of(struct hx_checking *check, const struct ix_ops *index) {
    return (struct ck_request){.index = index,
                               .transport = check->options.transport,
                               .params = check->params.settings,
                               .param_count = check->params.count,
                               .settings = check->settings.settings,
                               .setting_count = check->settings.count,
                               .rdwc = check->options.rdwc};
}

/* Reports a seed that took too long. It is not run again, so there is no history. */
static int endless_report(struct hx_checking *check, const struct ix_ops *index, const struct ck_summary *summary,
                          struct ck_world *world, json_t *into, struct dm_err *err) {
    char command[1024], text[WORLD_TEXT_BYTES];
    const struct ck_request request = request_of(check, index);
    DM_TRY(ck_world_draw(&request, summary->failed_seed, world, err));
    command_text(check, index, summary->failed_seed, command, sizeof(command));
    check->is_wrong = true;
    const char *fault = ck_fault_names[summary->verdict.fault];
    if (into) {
        json_object_set_new(into, "finding",
                            json_pack("{s:I, s:s, s:s, s:s}", "seed", (json_int_t)summary->failed_seed, "fault", fault,
                                      "text", summary->verdict.text, "replay", command));
    } else {
        printf("%s: seed %llu: %s: %s\n  world:   %s\n  replay:  %s\n           (a replay has no limit of time)\n",
               index->name, (unsigned long long)summary->failed_seed, fault, summary->verdict.text,
               ck_world_text(world, text, sizeof(text)), command);
    }
    return 0;
}

/* ---- a campaign ------------------------------------------------------------------------------------------------- */

static bool wants_coverage(const struct hx_checking *check, const struct ck_summary *summary) {
    if (check->options.coverage != HX_COVERAGE_AUTO) {
        return check->options.coverage == HX_COVERAGE_ON;
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
static void counters_report(struct hx_checking *check, const struct ix_ops *index, const struct ck_summary *summary,
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

static json_t *summary_report(struct hx_checking *check, const struct ix_ops *index, const struct ck_campaign *campaign,
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
    hx_progress_init(&watch.progress, false);
    hx_progress_phase(&watch.progress, "checking", watch.by_time ? campaign->time_ns : campaign->seeds);
    campaign->on_seed = on_seed;
    campaign->arg = &watch;
    int rc = ck_campaign_run(campaign, summary, kept, err);
    hx_progress_end(&watch.progress);
    return rc;
}

static struct ck_campaign campaign_of(struct hx_checking *check, const struct ix_ops *index) {
    const struct hx_checking_options *options = &check->options;
    return (struct ck_campaign){
        .request = request_of(check, index),
        .first_seed = options->first_seed,
        .seeds = options->seeds > 0 || options->time_ns > 0 ? options->seeds : SEEDS_DEFAULT,
        .time_ns = options->time_ns,
        .seed_time_ns = options->seed_time_ns,
        .jobs = (unsigned)options->jobs,
        .teams = check->teams,
    };
}

static int campaign_do(struct hx_checking *check, const struct ix_ops *index, struct ck_world *world,
                       struct dm_err *err) {
    struct ck_campaign campaign = campaign_of(check, index);
    struct ck_summary summary;
    struct ck_result result;
    int rc = campaign_run(&campaign, &summary, &result, err);
    json_t *into = rc < 0 ? NULL : summary_report(check, index, &campaign, &summary);
    if (rc == 0 && summary.is_endless) {
        rc = endless_report(check, index, &summary, world, into, err);
        ck_world_fini(world);
    } else if (rc == 0 && summary.has_failed) {
        struct ck_part part;
        bool is_kept = result.verdict.fault != CK_RIGHT;
        rc = ck_world_draw(&campaign.request, summary.failed_seed, world, err);
        if (rc == 0) {
            ck_part_all(world, &part);
            rc = is_kept ? 0 : ck_run(world, &part, &result, err);
        }
        rc = rc < 0 ? rc : finding_report(check, index, world, &part, &result, into, err);
        ck_world_fini(world);
        if (rc == 0 && check->options.trace[0]) {
            rc = hx_trace_store_run(&result, check->options.trace, err);
        }
    }
    ck_result_fini(&result);
    return rc < 0 ? dm_fail_in(err, rc, "%s", index->name) : 0;
}

/* Serves the worlds of a campaign that another process runs. */
static int campaign_serve(struct hx_checking *check, const struct ix_ops *index, struct dm_err *err) {
    const struct ck_campaign campaign = campaign_of(check, index);
    int rc = ck_campaign_serve(&campaign, SERVE_PATIENCE_NS, err);
    if (rc < 0) {
        return dm_fail_in(err, rc, "%s", index->name);
    }
    fprintf(stderr, "dmbench check: served %llu worlds of %s\n", (unsigned long long)campaign.seeds, index->name);
    return 0;
}

static int campaigns_do(struct hx_checking *check, struct ck_world *world, struct dm_err *err) {
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        bool is_meant = strcmp(check->options.index, "all") == 0 ? !((*ops)->caps & IX_CAP_NO_DATA)
                                                                 : strcmp(check->options.index, (*ops)->name) == 0;
        if (is_meant) {
            DM_TRY(check->options.listen[0] ? campaign_serve(check, *ops, err) : campaign_do(check, *ops, world, err));
            if (check->teams && check->is_wrong) {
                return 0; /* the other processes serve the rest of this index's worlds, and end when this one does */
            }
        }
    }
    return 0;
}

/* ---- one seed, one file ----------------------------------------------------------------------------------------- */

/* The world to replay: from the file, or drawn from the seed, and kept if asked. */
static int world_get(struct hx_checking *check, struct ck_world *world, struct dm_err *err) {
    char why[1100];
    uint64_t seed;
    if (check->options.world[0]) {
        return ck_world_load(check->options.world, world, err);
    }
    if (dm_parse_count(check->options.replay, &seed, err) < 0) {
        return dm_fail_in(err, DM_ERR_INVALID, "--replay");
    }
    const struct ix_ops *index = ix_find(check->options.index);
    const struct ck_request request = request_of(check, index);
    DM_TRY(ck_world_draw(&request, seed, world, err));
    command_text(check, index, seed, why, sizeof(why));
    return check->options.keep[0] ? ck_world_store(world, why, check->options.keep, err) : 0;
}

static int replay_do(struct hx_checking *check, struct ck_world *world, struct dm_err *err) {
    struct ck_result result = {.is_virtual = false};
    struct ck_part part;
    int rc = world_get(check, world, err);
    const struct ix_ops *index = world->index;
    if (rc < 0 || !index) {
        ck_world_fini(world);
        return rc;
    }
    if (check->options.part[0]) {
        rc = ck_part_parse(check->options.part, &part, err);
    } else {
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
                   (unsigned long long)world->seed, result.history.op_count, ck_world_text(world, text, sizeof(text)));
        }
        rc = check->options.out[0] ? ck_history_store(&result.history, check->options.out, err) : 0;
    }
    ck_result_fini(&result);
    ck_world_fini(world);
    return rc;
}

static int history_do(struct hx_checking *check, struct dm_err *err) {
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

static int teams_join(struct hx_checking *check, struct dm_err *err) {
    const struct hx_checking_options *options = &check->options;
    const char *option = options->listen[0] ? "listen" : "mn",
               *address = options->listen[0] ? options->listen : options->mn;
    char token[HX_TOKEN_BYTES + 1];
    if (!address[0]) {
        return 0;
    }
    DM_TRY(hx_token_read(options->token_file, token, err));
    check->teams = calloc(options->jobs, sizeof(*check->teams));
    if (!check->teams) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = ck_teams_init(check->teams, (unsigned)options->jobs, options->listen[0], address, token, err);
    return rc < 0 ? dm_fail_in(err, rc, "--%s", option) : 0;
}

int hx_checking_run(struct hx_checking *check, struct dm_err *err) {
    if (check->options.history[0]) {
        return history_do(check, err);
    }
    struct ck_world *world = calloc(1, sizeof(*world));
    int rc = world ? teams_join(check, err) : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    if (rc == 0) {
        rc = check->options.replay[0] || check->options.world[0] ? replay_do(check, world, err)
                                                                 : campaigns_do(check, world, err);
    }
    free(check->teams);
    free(world);
    return rc;
}
