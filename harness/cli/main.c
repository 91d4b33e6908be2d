/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: finds the command and calls it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "common/err.h"
#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/run/version.h"
#include "revision.h" /* the build writes it: cmake/revision.cmake */

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
#define HX_COMMAND(name, summary) {#name, summary, hx_cmd_##name},
#include "harness/cli/commands.def"
#undef HX_COMMAND
};

static void help_print(FILE *out) {
    fprintf(out,
            "Usage: dmbench COMMAND [arguments]\n\nCompares range indexes for disaggregated memory.\n\nCommands:\n");
    for (size_t i = 0; i < DM_ARRAY_LEN(commands); i++) {
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "\n  dmbench COMMAND --help   options and examples of a command\n"
                 "  dmbench --version        version, source revision and compiler\n\n"
                 "Example:\n"
                 "  dmbench run --index sherman --workload c --keys 1M --clients 64\n\n"
                 "Exit status: 0 done, 1 failed, 2 usage, 3 a check found something wrong, 130 interrupted.\n");
}

static int command_run(const char *name, int argc, char **argv) {
    const char *names[DM_ARRAY_LEN(commands)];
    for (size_t i = 0; i < DM_ARRAY_LEN(commands); i++) {
        names[i] = commands[i].name;
        if (strcmp(commands[i].name, name) == 0) {
            return commands[i].run(argc, argv);
        }
    }
    struct dm_err err;
    hx_fail_unknown(&err, name[0] == '-' ? "option" : "command", name, names, DM_ARRAY_LEN(names));
    fprintf(stderr, "dmbench: %s\n", err.text);
    return HX_USAGE;
}

int main(int argc, char **argv) {
    hx_revision_set(DM_REVISION);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes then fails, and the failure is reported */
    if (argc < 2) {
        help_print(stderr);
        return HX_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        if (argc > 2) {
            char help[] = "--help";
            char *asked[] = {argv[2], help, NULL};
            return command_run(argv[2], 2, asked);
        }
        help_print(stdout);
        return HX_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        hx_version_print(stdout);
        return HX_DONE;
    }
    return command_run(name, argc - 1, argv + 1);
}
