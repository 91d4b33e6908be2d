/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands.
 */
#include "harness/cli/commands.h"

const struct hx_command hx_commands[] = {
#define HX_COMMAND(name, summary) {#name, summary, hx_cmd_##name, hx_help_##name},
#include "harness/cli/commands.def"
#undef HX_COMMAND
    {NULL, NULL, NULL, NULL},
};
