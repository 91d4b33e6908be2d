/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal summary of several runs of one point.
 */
#ifndef DM_HARNESS_RUN_SUMMARY_RUNS_H
#define DM_HARNESS_RUN_SUMMARY_RUNS_H

#include <jansson.h>
#include <stdio.h>

/* Prints the median of throughput and latencies over an array of results that differ in the seed alone, with an
 * interval of 95 % and the extremes. */
void hx_summary_runs_print(const json_t *results, FILE *out);

#endif
