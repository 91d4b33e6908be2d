/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of the program.
 */
#ifndef DM_HARNESS_RUN_VERSION_H
#define DM_HARNESS_RUN_VERSION_H

#include <stdio.h>

/* "dmbench 0.1.0 (revision, compiler, build type)" and a line end. */
void hx_version_print(FILE *out);

#endif
