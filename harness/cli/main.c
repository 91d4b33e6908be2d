/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: finds the command and calls it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/large.h"
#include "common/text.h"
#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/cli/man_page.h"
#include "harness/run/version.h"
#include "revision.h" /* the build writes it: cmake/revision.cmake */

enum { COMMANDS_MAX = 64 };

static const char *const help_names[] = {"--help", "-h", "help", NULL};

static void help_print(FILE *out) {
    fprintf(out,
            "Usage: dmbench COMMAND [arguments]\n\nCompares range indexes for disaggregated memory.\n\nCommands:\n");
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        fprintf(out, "  %-10s %s\n", command->name, command->summary);
    }
    fprintf(out, "\n  dmbench COMMAND --help      options and examples of a command\n"
                 "  dmbench help --man COMMAND  its manual page, for `man -l -`\n"
                 "  dmbench --version           version, source revision and compiler\n\n"
                 "Example:\n"
                 "  dmbench run --index sherman --workload c --keys 1M --clients 64\n\n"
                 "Exit status: 0 done, 1 failed, 2 usage, 3 a check found something wrong, 130 interrupted.\n");
}

static int command_unknown(const char *name) {
    const char *names[COMMANDS_MAX];
    size_t count = 0;
    for (const struct hx_command *command = hx_commands; command->name && count < COMMANDS_MAX; command++) {
        names[count++] = command->name;
    }
    struct dm_err err;
    hx_fail_unknown(&err, name[0] == '-' ? "option" : "command", name, names, count);
    fprintf(stderr, "dmbench: %s\n", err.text);
    return HX_USAGE;
}

static const struct hx_command *command_find(const char *name) {
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}

/* What a command printed may still be in the stream's buffer: a full disk is a failure of any command. */
static int output_end(int status) {
    bool is_written = fflush(stdout) == 0 && ferror(stdout) == 0;
    if (is_written || (status != HX_DONE && status != HX_WRONG)) {
        return status;
    }
    fprintf(stderr, "dmbench: cannot write to standard output: no space?\n");
    return HX_FAILED;
}

static int command_run(const char *name, int argc, char **argv) {
    const struct hx_command *command = command_find(name);
    return command ? output_end(command->run(argc, argv)) : command_unknown(name);
}

/* `dmbench help [COMMAND]` and `dmbench help --man [COMMAND]`; `dmbench help --help` is as without a command. */
static int help_run(int argc, char **argv) {
    bool is_manual = argc > 0 && strcmp(argv[0], "--man") == 0;
    const char *name = argc > is_manual && !dm_text_is_among(argv[is_manual], help_names) ? argv[is_manual] : NULL;
    const struct hx_command *command = name ? command_find(name) : NULL;
    if (name && !command) {
        return command_unknown(name);
    }
    if (is_manual) {
        hx_man_page_print(command, stdout);
    } else if (command) {
        char help[] = "--help";
        char *asked[] = {argv[0], help, NULL};
        return output_end(command->run(2, asked));
    } else {
        help_print(stdout);
    }
    return output_end(HX_DONE);
}

int main(int argc, char **argv) {
    static const char *const version_names[] = {"--version", "-V", "version", NULL};
    (void)dm_large_heap();
    hx_revision_set(DM_REVISION);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes then fails, and the failure is reported */
    if (argc < 2) {
        help_print(stderr);
        return HX_USAGE;
    }
    if (dm_text_is_among(argv[1], help_names)) {
        return help_run(argc - 2, argv + 2);
    }
    if (dm_text_is_among(argv[1], version_names)) {
        hx_version_print(stdout);
        return HX_DONE;
    }
    return command_run(argv[1], argc - 1, argv + 1);
}
