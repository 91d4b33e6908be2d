/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of dmbench, declared from commands.def.
 */
#ifndef DM_HARNESS_CLI_COMMANDS_H
#define DM_HARNESS_CLI_COMMANDS_H

#define HX_COMMAND(name, summary) int hx_cmd_##name(int argc, char **argv);
#include "harness/cli/commands.def"
#undef HX_COMMAND

#endif
