/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a result comes from: program, source, compiler, host, and how long it took there. The only part of a
 * virtual-time result that differs from one run to the next.
 */
#ifndef DM_HARNESS_RUN_PROVENANCE_H
#define DM_HARNESS_RUN_PROVENANCE_H

#include <jansson.h>

#include "harness/run/config.h"
#include "harness/run/measured.h"

/* A new object for the result's `provenance`; argv is the command line as it was given; with an argc of
 * 0 one that gives the configuration is made. NULL when out of memory. */
json_t *hx_provenance_new(const struct hx_config *config, const struct hx_measured *measured, int argc, char **argv);

#endif
