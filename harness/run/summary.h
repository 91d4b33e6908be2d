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

/* A number of bytes in the decimal unit that suits it: "12.3 MB". Returns text. */
const char *hx_bytes_text(double bytes, char *text, size_t capacity);

#endif
