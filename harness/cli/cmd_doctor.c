/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench doctor`: what this host allows, and what to do about the rest.
 */
#include <stdio.h>
#include <string.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/lab/doctor.h"
#include "transport/fabric.h"

struct options {
    const char *transport, *device, *root;
    bool json, no_measure;
};

#define ROW(member, ...) DM_OPT_ROW(struct options, member, __VA_ARGS__)

static const struct dm_opt table[] = {
    ROW(transport, DM_OPT_STRING, .initial = "", .help = "exit with 3 if this one cannot work: sim, local or verbs"),
    ROW(device, DM_OPT_STRING, .initial = "",
        .help = "the RDMA device to use (default: the one that the transport would choose)"),
    ROW(no_measure, DM_OPT_BOOL, .initial = "0",
        .help = "do not run mpirun for its binding, nor perftest on this host for its latency"),
    ROW(root, DM_OPT_STRING, .initial = "",
        .help = "folder with a copy of another host's /sys, /proc, /dev, /etc and /usr/bin to look at"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    DM_OPT_END,
};

void hx_help_doctor(struct hx_help *help) {
    help->usage = "doctor [options]";
    help->about =
        "What this host allows: the program's own data and transports, processors, locked memory, huge pages, "
        "RDMA devices with their ports and addresses, and tools. Each is ok, a warning (numbers may suffer) or "
        "missing (something does not work without it), with what to do.";
    help->examples = "dmbench doctor\n"
                     "dmbench doctor --transport local --json";
    help->status = "0 done, 2 usage, 3 the transport that was asked for cannot work.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = table});
}

static int transport_check(const char *name, struct dm_err *err) {
    const char *names[16];
    size_t count = 0;
    for (const struct dm_transport_info *const *info = dm_transports(); *info && count < 16; info++) {
        names[count++] = (*info)->name;
    }
    for (const struct dm_transport_absence *absent = dm_transports_absent(); absent->name && count < 16; absent++) {
        names[count++] = absent->name;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return 0;
        }
    }
    return hx_fail_unknown(err, "transport", name, names, count);
}

static int examine(const struct options *options, int *status, struct dm_err *err) {
    if (options->transport[0]) {
        DM_TRY(transport_check(options->transport, err));
    }
    struct hx_doctor doctor;
    const struct hx_doctor_options asked = {.transport = options->transport,
                                            .device = options->device,
                                            .root = options->root,
                                            .measure = !options->no_measure};
    int rc = hx_doctor_look(&asked, &doctor, err);
    if (rc == 0 && options->json) {
        json_t *json = hx_doctor_to_json(&doctor);
        json_dumpf(json, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        putchar('\n');
        json_decref(json);
    } else if (rc == 0) {
        hx_doctor_print(&doctor, stdout);
    }
    *status = options->transport[0] && !hx_doctor_allows(&doctor, options->transport) ? HX_WRONG : HX_DONE;
    hx_doctor_free(&doctor);
    return rc;
}

int hx_cmd_doctor(int argc, char **argv) {
    struct options options;
    struct dm_err err = {0};
    int status = HX_DONE;
    dm_opt_defaults(table, &options);
    struct hx_args args = {.table = table, .values = &options};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        hx_help_show(hx_help_doctor);
    } else {
        rc = rc < 0 ? rc : examine(&options, &status, &err);
        status = rc < 0 ? hx_report("doctor", &err) : status;
    }
    dm_opt_free(table, &options);
    return status;
}
