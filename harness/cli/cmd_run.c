/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench run`: one point from the command line to its result; and `dmbench serve`, which is the same up to the point
 * where it has nothing to measure.
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"
#include "harness/run/interrupt.h"
#include "harness/run/provenance.h"
#include "harness/run/result.h"
#include "harness/run/summary.h"
#include "harness/run/team.h"

enum { WORDS_MAX = 256 };

/* Options of the command itself; they are no part of the point. */
struct run_options {
    const char *out, *verb_trace;
    uint64_t trace_ops;
    bool json;
    struct hx_team_options team;
};

#define ROW(member, ...)          DM_OPT_ROW(struct run_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct run_options, member, __VA_ARGS__)

static const struct dm_opt run_options[] = {
    ROW(out, DM_OPT_STRING, .initial = "", .help = "write the result to this file, whole or not at all"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the result itself instead of the summary"),
    ROW(verb_trace, DM_OPT_STRING, .initial = "",
        .help = "write the first measured operations and their verbs to this file, for ui.perfetto.dev"),
    ROW(trace_ops, DM_OPT_COUNT, .initial = "1000", .min = 1, .max = HX_TRACER_OPS_MAX,
        .help = "how many operations --verb-trace takes"),
    ROW_AS(
        "mn", team.mn, DM_OPT_STRING, .initial = "",
        .help =
            "control ports of the processes of memory nodes and index servers (dmbench serve), HOST:PORT,HOST:PORT in "
            "the order of the nodes; empty: all nodes are in this process, or MPI says where they are"),
    ROW_AS("listen", team.listen, DM_OPT_STRING, .initial = "127.0.0.1:0",
           .help =
               "where the control port of a memory node listens; with MPI also host: the address of each host's name"),
    ROW_AS("token_file", team.token_file, DM_OPT_STRING, .initial = "",
           .help = "file with the token that the processes of a run show each other; MPI needs none"),
    ROW_AS("node", team.node, DM_OPT_COUNT, .initial = "0", .max = 250,
           .help = "of serve: the memory node or index server that this process is"),
    DM_OPT_END,
};

/* Names that the parser may meet beside the command's own options, and which of them are switches. */
struct known_names {
    const char *all[HX_OPTIONS_MAX + 6];
    const char *flags[HX_OPTIONS_MAX];
};

/* What the command line asks of the configuration, kept until all of it is read: files come before options. */
struct request {
    const struct known_names *names;
    struct {
        const char *name, *value;
    } words[WORDS_MAX];
    size_t count;
};

static void names_add(struct known_names *names, const struct dm_opt *table, size_t *count, size_t *flag_count) {
    for (const struct dm_opt *row = table; row->name && *count < HX_OPTIONS_MAX; row++) {
        names->all[(*count)++] = row->name;
        if (row->type == DM_OPT_BOOL) {
            names->flags[(*flag_count)++] = row->name;
        }
    }
}

static void names_collect(struct known_names *names) {
    *names = (struct known_names){0};
    size_t count = 0, flag_count = 0;
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        names_add(names, group->table, &count, &flag_count);
    }
    names_add(names, wl_options, &count, &flag_count);
    names->all[count++] = "set";
    names->all[count++] = "transport_set";
    names->all[count++] = "config";
    names->all[count++] = "ycsb";
    names->all[count++] = "p";
}

/* Keeps an option or a spec file. The parser's name is its own; the one in the list of names lasts. */
static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct request *request = arg;
    if (request->count == WORDS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d options: put them into a spec file", WORDS_MAX);
    }
    const char *const *lasting = request->names->all;
    while (*lasting && strcmp(*lasting, name ? name : "config") != 0) {
        lasting++;
    }
    request->words[request->count].name = *lasting;
    request->words[request->count].value = value;
    request->count++;
    return 0;
}

static int config_apply_file(struct hx_config *config, const char *path, struct dm_err *err) {
    json_t *spec = dm_json_load(path, err);
    if (!spec) {
        return err->code;
    }
    int rc = hx_config_apply_json(config, spec, path, err);
    json_decref(spec);
    return rc;
}

/* "NAME=VALUE" of --set and --transport-set. */
static int config_apply_pair(struct hx_config *config, const char *option, const char *pair, struct dm_err *err) {
    const char *equals = strchr(pair, '=');
    char name[96], typed[32];
    if (!equals || equals == pair) {
        return dm_fail(err, DM_ERR_INVALID, "%s: '%.60s' is not NAME=VALUE",
                       hx_option_typed(option, typed, sizeof(typed)), pair);
    }
    snprintf(name, sizeof(name), "%s.%.*s", option, (int)(equals - pair), pair);
    return hx_config_set(config, name, equals + 1, err);
}

static int request_apply(const struct request *request, struct hx_config *config, struct dm_err *err) {
    for (size_t i = 0; i < request->count; i++) {
        if (strcmp(request->words[i].name, "config") == 0) {
            DM_TRY(config_apply_file(config, request->words[i].value, err));
        }
    }
    for (size_t i = 0; i < request->count; i++) {
        const char *name = request->words[i].name;
        if (strcmp(name, "workload") == 0 || strcmp(name, "ycsb") == 0 || strcmp(name, "p") == 0) {
            DM_TRY(hx_config_forget_details(config, err));
        }
    }
    for (size_t i = 0; i < request->count; i++) {
        const char *name = request->words[i].name;
        const char *value = request->words[i].value;
        if (strcmp(name, "set") == 0 || strcmp(name, "transport_set") == 0) {
            DM_TRY(config_apply_pair(config, name, value, err));
        } else if (strcmp(name, "config") != 0) {
            DM_TRY(hx_config_set(config, name, value, err));
        }
    }
    return 0;
}

/* ---- help ------------------------------------------------------------------------------------------------------- */

/* A default that follows from others is shown as its rule. */
static void group_help(const struct hx_group *group) {
    struct dm_opt rows[HX_OPTIONS_MAX] = {{.name = NULL}};
    for (size_t i = 0; group->table[i].name && i + 1 < HX_OPTIONS_MAX; i++) {
        rows[i] = group->table[i];
        if (strcmp(rows[i].name, "warmup") == 0) {
            rows[i].initial = "ops / 10";
        }
    }
    printf("\n%s:\n", group->title);
    hx_args_help(rows);
}

/* The last value given for an option, or its default. */
static const char *asked_for(const struct request *request, const char *option) {
    const char *value = hx_run_option(option)->initial;
    for (size_t i = 0; i < request->count; i++) {
        value = strcmp(request->words[i].name, option) == 0 ? request->words[i].value : value;
    }
    return value;
}

static void help_print(const struct request *request) {
    const struct ix_ops *index = ix_find(asked_for(request, "index"));
    const struct dm_transport_info *transport = dm_transport_find(asked_for(request, "transport"));
    printf(
        "Usage: dmbench run [SPEC.json] [options]\n\n"
        "Runs one point and prints a summary. A spec file holds the same options as JSON members, with underscores;\n"
        "options of the command line go over it. The `config` of a result, and a whole result, is such a file.\n"
        "Numbers take units: 10M, 100MB, 64KiB, 5s.\n\n"
        "Examples:\n"
        "  dmbench run --index sherman --workload c --keys 10M --clients 640 --cns 10 --out results/c.json\n"
        "  dmbench run --workload a --set combine=off --json\n"
        "  dmbench run results/c.json --seed 2\n"
        "  dmbench run --mix read=0.9,insert=0.1 --distribution uniform --duration 10ms\n"
        "  dmbench run --ycsb my.properties -p recordcount=1000000 -p readproportion=1 -p updateproportion=0\n"
        "  dmbench run --workload b --rate 5M --arrival poisson\n"
        "  dmbench run --index sherman --workload a --record a.ops\n"
        "  dmbench run --index null --replay a.ops\n"
        "  dmbench run --index sherman --workload a --verb-trace a.perfetto.json --trace-ops 200\n"
        "  dmbench run --index sherman --help     with the parameters of that index\n"
        "  dmbench serve --node 0 --listen 10.0.0.1:7000 --token-file t --transport verbs --workload a\n"
        "  dmbench run --mn 10.0.0.1:7000 --token-file t --transport verbs --workload a\n"
        "  mpirun -np 4 dmbench run --transport verbs --mns 2 --workload a\n"
        "\nThe command:\n");
    hx_args_help(run_options);
    printf("  --config FILE               a spec file, the same as SPEC.json\n"
           "  --set NAME=VALUE            a parameter of the index, below; repeatable\n"
           "  --transport-set NAME=VALUE  an option of the transport, below; repeatable\n");
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        group_help(group);
    }
    printf("\nThe workload (empty or 0: as the named workload says):\n"
           "  --ycsb FILE                 a YCSB property file, as --workload ./FILE\n"
           "  -p NAME=VALUE               a YCSB property over the file's; repeatable, added to --properties\n");
    hx_args_help(wl_options);
    if (index && index->params) {
        printf("\nParameters of index %s:\n", index->name);
        hx_parameters_help("set", index->params);
    }
    if (transport && transport->options) {
        printf("\nOptions of transport %s:\n", transport->name);
        hx_parameters_help("transport-set", transport->options);
    }
    printf("\nExit status: 0 done, 1 failed, 2 usage, 3 verify found the index broken, 130 interrupted.\n");
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

/* A file that could not be written would be found out too late, after the run. */
static int out_check(const char *option, const char *path, struct dm_err *err) {
    char *copy = strdup(path);
    if (!copy) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    const char *folder = dirname(copy);
    int rc = 0;
    size_t length = strlen(path);
    if (length > 0 && path[length - 1] == '/') {
        rc = dm_fail(err, DM_ERR_INVALID, "%s: '%.200s' is a folder; name a file in it", option, path);
    } else if (access(folder, W_OK | X_OK) != 0) {
        rc = dm_fail(err, DM_ERR_IO, "%s: cannot write in folder '%.200s': %s", option, folder, strerror(errno));
    }
    free(copy);
    return rc;
}

/* Both are written whole or not at all, so one would take the other's place. */
static int outputs_check(const struct run_options *options, const struct hx_config *config, struct dm_err *err) {
    const char *record = config->run.record ? config->run.record : "";
    const char *out = options->out, *trace = options->verb_trace;
    if (out[0]) {
        DM_TRY(out_check("--out", out, err));
    }
    if (record[0]) {
        DM_TRY(out_check("--record", record, err));
    }
    if (record[0] && strcmp(record, out) == 0) {
        return dm_fail(err, DM_ERR_INVALID, "--record: '%.200s' is where --out writes the result", record);
    }
    if (trace[0]) {
        DM_TRY(out_check("--verb-trace", trace, err));
    }
    if (trace[0] && (strcmp(trace, out) == 0 || strcmp(trace, record) == 0)) {
        return dm_fail(err, DM_ERR_INVALID, "--verb-trace: '%.200s' is where --out or --record writes", trace);
    }
    return 0;
}

static int result_give(const json_t *result, const struct run_options *options, struct dm_err *err) {
    const char *file = options->out[0] ? options->out : NULL;
    if (file) {
        hx_interrupt_hold(true);
        int rc = dm_json_store(result, file, err);
        hx_interrupt_hold(false);
        DM_TRY(rc);
    }
    int printed = 0;
    if (options->json) {
        printed = json_dumpf(result, stdout, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
        putchar('\n');
    } else {
        hx_summary_print(result, file, stdout);
    }
    if (printed < 0 || fflush(stdout) != 0 || ferror(stdout)) {
        return dm_fail(err, DM_ERR_IO, "cannot write to standard output: %s", strerror(errno));
    }
    return 0;
}

static int trace_give(struct hx_tracer *tracer, const struct hx_config *config, const char *path, struct dm_err *err) {
    hx_interrupt_hold(true);
    int rc = hx_tracer_store(tracer, &config->topology, path, err);
    hx_interrupt_hold(false);
    return rc;
}

static int point_measure(struct hx_config *config, const struct run_options *options, struct hx_measured **measured,
                         struct dm_err *err) {
    if (!options->verb_trace[0]) {
        return hx_measure(config, NULL, measured, err);
    }
    struct hx_tracer *tracer = hx_tracer_new(options->trace_ops, config->topology.clients);
    if (!tracer) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = hx_measure(config, tracer, measured, err);
    if (rc == 0) {
        rc = trace_give(tracer, config, options->verb_trace, err);
    }
    if (rc < 0) {
        hx_measured_free(*measured);
        *measured = NULL;
    }
    hx_tracer_free(tracer);
    return rc;
}

static int point_run(struct hx_config *config, const struct run_options *options, int argc, char **argv,
                     bool *is_broken, struct dm_err *err) {
    struct hx_measured *measured = NULL;
    DM_TRY(point_measure(config, options, &measured, err));
    json_t *result = hx_result_new(config, measured);
    int rc = result && json_object_set_new(result, "provenance", hx_provenance_new(config, measured, argc, argv)) == 0
                 ? result_give(result, options, err)
                 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    *is_broken = measured && measured->verified && measured->report.broken > 0;
    json_decref(result);
    hx_measured_free(measured);
    return rc;
}

/* With more than one compute process there is no common order of operations to write down. */
static int team_check(const struct hx_team *team, const struct run_options *options, const struct hx_config *config,
                      struct dm_err *err) {
    if (hx_team_parts(team) > 1 && (options->verb_trace[0] || config->run.record[0] || config->workload.replay[0])) {
        return dm_fail(err, DM_ERR_INVALID, "--verb-trace, --record and --replay need one compute process");
    }
    return 0;
}

/* Takes part in the point as what this process is. */
static int point_join(struct hx_config *config, struct hx_team *team, const struct run_options *options, int argc,
                      char **argv, bool *is_broken, struct dm_err *err) {
    DM_TRY(hx_team_assign(team, config, &options->team, err));
    config->team = team;
    if (!hx_team_is_compute(team)) {
        return hx_serve(config, err);
    }
    DM_TRY(team_check(team, options, config, err));
    if (hx_team_is_first(team)) {
        DM_TRY(outputs_check(options, config, err));
        return point_run(config, options, argc, argv, is_broken, err);
    }
    struct hx_measured *measured = NULL;
    int rc = hx_measure(config, NULL, &measured, err);
    hx_measured_free(measured);
    return rc;
}

static int command(const char *name, int argc, char **argv) {
    struct run_options options;
    struct known_names names;
    struct request request = {.names = &names};
    struct dm_err err = {0};
    struct hx_team *team = NULL;
    bool is_broken = false;
    names_collect(&names);
    dm_opt_defaults(run_options, &options);
    struct hx_config *config = hx_config_new();
    struct hx_args args = {run_options, &options, names.all, names.flags, take_word, &request};
    int rc = DM_ERR_NO_MEMORY;
    if (!config) {
        dm_fail(&err, rc, "out of memory");
        goto out;
    }
    rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        help_print(&request);
        rc = 0;
        goto out;
    }
    rc = rc < 0 ? rc : request_apply(&request, config, &err);
    rc = rc < 0 ? rc : hx_team_join(config, strcmp(name, "serve") == 0, &options.team, &team, &err);
    rc = rc < 0 ? rc : hx_config_resolve(config, &err);
    if (rc == 0) {
        hx_interrupt_install(name);
        rc = point_join(config, team, &options, argc, argv, &is_broken, &err);
    }
out:
    hx_config_close(config);
    dm_opt_free(run_options, &options);
    int status = rc < 0 ? hx_report(name, &err) : is_broken ? HX_WRONG : HX_DONE;
    hx_team_leave(team, rc < 0);
    return status;
}

int hx_cmd_run(int argc, char **argv) {
    return command("run", argc, argv);
}

int hx_cmd_serve(int argc, char **argv) {
    return command("serve", argc, argv);
}
