/* SPDX-License-Identifier: Apache-2.0
 *
 * A result as text. It is made from the JSON alone, so that any result can be shown.
 */
#ifndef DM_HARNESS_RUN_SUMMARY_H
#define DM_HARNESS_RUN_SUMMARY_H

#include <jansson.h>
#include <stdio.h>

/* Prints what ran, throughput, a table of the operations, the bottleneck and memory; `file` is where the result was
 * written, or NULL. */
void hx_summary_print(const json_t *result, const char *file, FILE *out);

/* The lines of it that say what ran. */
void hx_summary_what_print(const json_t *result, FILE *out);

/* A number in the decimal unit that suits it: "12.3 MB", "1.20 Mops/s", "4.50 us". Return text. */
const char *hx_bytes_text(double bytes, char *text, size_t capacity);
const char *hx_rate_text(double rate, char *text, size_t capacity);
const char *hx_time_text(double ns, char *text, size_t capacity);

#endif
