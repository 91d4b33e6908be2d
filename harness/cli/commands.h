/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of dmbench, declared from commands.def: hx_cmd_NAME runs one, hx_help_NAME describes it.
 */
#ifndef DM_HARNESS_CLI_COMMANDS_H
#define DM_HARNESS_CLI_COMMANDS_H

#include "harness/base/help.h"

#define HX_COMMAND(name, summary)                                                                                      \
    int hx_cmd_##name(int argc, char **argv);                                                                          \
    void hx_help_##name(struct hx_help *help);
#include "harness/cli/commands.def"
#undef HX_COMMAND

struct hx_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
    void (*describe)(struct hx_help *help);
};

/* All commands, in the order of commands.def; ends with a NULL name. */
extern const struct hx_command hx_commands[];

#endif
