/* SPDX-License-Identifier: Apache-2.0
 *
 * Manual pages, made of the descriptions of the commands.
 */
#ifndef DM_HARNESS_CLI_MAN_PAGE_H
#define DM_HARNESS_CLI_MAN_PAGE_H

#include <stdio.h>

#include "harness/cli/commands.h"

/* Writes the page of a command, or with NULL that of the program, as the macros of man(7). */
void hx_man_page_print(const struct hx_command *command, FILE *out);

#endif
