/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of the program, and the revision of its sources.
 */
#ifndef DM_HARNESS_RUN_VERSION_H
#define DM_HARNESS_RUN_VERSION_H

#include <stdio.h>

/* The revision that results name as their source, kept as a pointer: a commit, with "-dirty" behind it if the sources
 * were not exactly those. "unknown" until it is set. */
void hx_revision_set(const char *text);

/* "dmbench 0.1.0 (revision, compiler, build type)" and a line end. */
void hx_version_print(FILE *out);

#endif
