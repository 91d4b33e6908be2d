/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `dmbench run` and `dmbench serve`, which take the same options.
 */
#include "harness/cli/point_args.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/run/config_fields.h"
#include "harness/run/verb_tracer.h"
#include "indexes/index.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

#define ROW(member, ...)          DM_OPT_ROW(struct hx_point_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct hx_point_options, member, __VA_ARGS__)

static const char *const format_names[] = {"text", "json", "csv", NULL}; /* as enum hx_format */

static const struct dm_opt point_table[] = {
    ROW(out, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "write the result to this file, atomically; -: to standard output, instead of the summary"),
    ROW(repeat, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 10000,
        .help = "runs with seeds that follow the given one; prints medians with intervals, and --out FILE.json writes "
                "FILE.seed1.json and so on"),
    ROW(percentiles, DM_OPT_STRING, .initial = "",
        .help = "more percentiles of latency, as in 50,99,99.99: in the summary, in CSV, and as percentiles_ns in the "
                "result"),
    ROW(format, DM_OPT_ENUM, .initial = "text", .choices = format_names,
        .help = "what is printed: a summary, the result itself, or CSV, a line an operation"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "the same as --format json"),
    ROW(csv, DM_OPT_BOOL, .initial = "0", .help = "the same as --format csv"),
    ROW(partial, DM_OPT_BOOL, .initial = "1",
        .help = "after an interrupt in the measurement keep what was measured: --out FILE.json writes "
                "FILE.partial.json"),
    ROW(quiet, DM_OPT_BOOL, .initial = "0",
        .help = "no lines of progress, and no warning of what disturbs a run in real time"),
    ROW(verb_trace, DM_OPT_STRING, .values = "file", .initial = "",
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
    ROW_AS("token_file", team.token_file, DM_OPT_STRING, .values = "file", .initial = "",
           .help = "file with the token that the processes of a run show each other; MPI needs none"),
    ROW_AS("node", team.node, DM_OPT_COUNT, .initial = "0", .max = 250,
           .help = "of serve: the memory node or index server that this process is"),
    DM_OPT_END,
};

static void names_add(struct hx_point_names *names, const struct dm_opt *table, size_t *count, size_t *flag_count) {
    for (const struct dm_opt *row = table; row->name && *count < HX_OPTIONS_MAX; row++) {
        names->all[(*count)++] = row->name;
        if (row->type == DM_OPT_BOOL) {
            names->flags[(*flag_count)++] = row->name;
        }
    }
}

size_t hx_point_names_collect(struct hx_point_names *names) {
    *names = (struct hx_point_names){0};
    size_t count = 0, flag_count = 0;
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        names_add(names, group->table, &count, &flag_count);
    }
    names_add(names, wl_options, &count, &flag_count);
    names->all[count++] = "set";
    names->all[count++] = "transport_set";
    return count;
}

/* Keeps an option or a spec file. The name of the argument is valid during the call only, so that of the list of names
 * is kept. */
static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct hx_point_request *request = arg;
    if (request->count == HX_WORDS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d options: put them into a spec file", HX_WORDS_MAX);
    }
    const char *const *lasting = request->names.all;
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
        return err->code == DM_ERR_NO_MEMORY ? err->code : hx_fail_file(err);
    }
    int rc = hx_config_apply_given(config, spec, path, err);
    json_decref(spec);
    return rc;
}

/* Parameters of one index mean nothing to another, nor do options of one transport: those that a file has go when the
 * command line names another one. */
static void forget_set(struct hx_config *config, const char *option, const char *before, const char *value) {
    bool transport = strcmp(option, "transport") == 0;
    size_t count = strcmp(before, value) != 0 ? hx_config_forget_set(config, transport) : 0;
    if (count > 0) {
        dm_log(DM_LOG_WARN, "--%s %s: the file's %zu %s of %s do not apply and are left out", option, value, count,
               transport ? "options" : "parameters", before);
    }
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

int hx_point_request_apply(const struct hx_point_request *request, struct hx_config *config, struct dm_err *err) {
    for (size_t i = 0; i < request->count; i++) {
        if (strcmp(request->words[i].name, "config") == 0) {
            DM_TRY(config_apply_file(config, request->words[i].value, err));
        }
    }
    for (size_t i = 0; i < request->count; i++) {
        const char *name = request->words[i].name;
        if (strcmp(name, "workload") == 0 || strcmp(name, "ycsb") == 0 || strcmp(name, "p") == 0) {
            DM_TRY(hx_config_forget_details(config, err));
        } else if (strcmp(name, "index") == 0) {
            forget_set(config, name, config->run.index, request->words[i].value);
        } else if (strcmp(name, "transport") == 0) {
            forget_set(config, name, config->run.transport, request->words[i].value);
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

static const struct hx_help_option command_options[] = {
    {"--config FILE", "a spec file, the same as SPEC.json", "file"},
    {"--set NAME=VALUE", "a parameter of the index (dmbench list indexes NAME); repeatable", "set"},
    {"--transport-set NAME=VALUE", "an option of the transport (dmbench list transports NAME); repeatable",
     "transport_set"},
    {NULL, NULL, NULL},
};

static const struct hx_help_option workload_options[] = {
    {"--ycsb FILE", "a YCSB property file, as --workload ./FILE", "file"},
    {"-p NAME=VALUE", "a YCSB property over the file's; repeatable, added to --properties", "property"},
    {NULL, NULL, NULL},
};

static void point_describe(struct hx_help *help) {
    hx_help_add(help,
                (struct hx_help_section){.title = "The command", .options = command_options, .table = point_table});
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        hx_help_add(help, (struct hx_help_section){.title = group->title, .table = group->table});
    }
    hx_help_add(help, (struct hx_help_section){.title = "The workload (empty or 0: as the named workload says)",
                                               .options = workload_options,
                                               .table = wl_options});
}

void hx_help_run(struct hx_help *help) {
    help->words = "file";
    help->usage = "run [SPEC.json] [options]";
    help->about = "Runs one point and prints a summary. A spec file holds the same options as JSON members, with "
                  "underscores; options of the command line go over it. The `config` of a result, and a whole result, "
                  "is such a file. Numbers take units: 10M, 100MB, 64KiB, 5s.";
    help->examples = "dmbench run --index sherman --workload c --keys 10M --clients 640 --cns 10 --out results/c.json\n"
                     "dmbench run --workload a --set combine=off --json\n"
                     "dmbench run results/c.json --seed 2\n"
                     "dmbench run --workload a --repeat 10 --percentiles 50,99,99.99 --csv >a.csv\n"
                     "dmbench run --mix read=0.9,insert=0.1 --distribution uniform --duration 10ms\n"
                     "dmbench run --ycsb my.properties -p recordcount=1000000 -p readproportion=1 "
                     "-p updateproportion=0\n"
                     "dmbench run --workload b --rate 5M --arrival poisson\n"
                     "dmbench run --index sherman --workload a --record a.ops\n"
                     "dmbench run --index null --replay a.ops\n"
                     "dmbench run --index sherman --workload a --verb-trace a.perfetto.json --trace-ops 200\n"
                     "dmbench run --index sherman --help     with the parameters of that index\n"
                     "dmbench run --mn 10.0.0.1:7000 --token-file t --transport verbs --workload a\n"
                     "mpirun -np 4 dmbench run --transport verbs --mns 2 --workload a";
    help->status = "0 done, 1 failed, 2 usage, 3 verify found the index broken, 130 interrupted.";
    point_describe(help);
}

void hx_help_serve(struct hx_help *help) {
    help->words = "file";
    help->usage = "serve [SPEC.json] --node N --listen HOST:PORT [options]";
    help->about = "Is a memory node or index server of a run of several processes, until the compute processes have "
                  "come and gone. Takes the options of `dmbench run`, with the same values in all processes.";
    help->examples = "dmbench serve --node 0 --listen 10.0.0.1:7000 --token-file t --transport verbs --workload a\n"
                     "dmbench run --mn 10.0.0.1:7000 --token-file t --transport verbs --workload a";
    help->status = "0 done, 1 failed, 2 usage, 130 interrupted.";
    point_describe(help);
}

/* The last value given for an option, or its default. */
static const char *asked_for(const struct hx_point_request *request, const char *option) {
    const char *value = hx_run_option(option)->initial;
    for (size_t i = 0; i < request->count; i++) {
        value = strcmp(request->words[i].name, option) == 0 ? request->words[i].value : value;
    }
    return value;
}

/* With the parameters of the index and the transport that the command line names. */
static void help_print(const struct hx_point_request *request, const char *command) {
    const struct ix_ops *index = ix_find(asked_for(request, "index"));
    const struct dm_transport_info *transport = dm_transport_find(asked_for(request, "transport"));
    char index_title[96], transport_title[96];
    struct hx_help help = {.section_count = 0};
    if (strcmp(command, "serve") == 0) {
        hx_help_serve(&help);
    } else {
        hx_help_run(&help);
    }
    if (index && index->params) {
        snprintf(index_title, sizeof(index_title), "Parameters of index %s", index->name);
        hx_help_add(&help, (struct hx_help_section){.title = index_title, .table = index->params, .as = "set"});
    }
    if (transport && transport->options) {
        snprintf(transport_title, sizeof(transport_title), "Options of transport %s", transport->name);
        hx_help_add(&help, (struct hx_help_section){
                               .title = transport_title, .table = transport->options, .as = "transport-set"});
    }
    hx_help_print(&help, stdout);
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

int hx_point_args_read(struct hx_point_request *request, int argc, char **argv, struct hx_config *config,
                       struct dm_err *err) {
    const struct hx_args args = {point_table,          &request->options, request->names.all,
                                 request->names.flags, take_word,         request};
    *request = (struct hx_point_request){.count = 0};
    size_t names = hx_point_names_collect(&request->names);
    request->names.all[names++] = "config";
    request->names.all[names++] = "ycsb";
    request->names.all[names] = "p";
    dm_opt_defaults(point_table, &request->options);
    int rc = hx_args_parse(&args, argc, argv, err);
    if (rc == 1) {
        help_print(request, argv[0]);
    }
    return rc != 0 ? rc : hx_point_request_apply(request, config, err);
}

void hx_point_args_free(struct hx_point_request *request) {
    dm_opt_free(point_table, &request->options);
}
