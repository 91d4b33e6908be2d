/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as text and as JSON.
 */
#ifndef DM_HARNESS_STUDY_COMPARE_TEXT_H
#define DM_HARNESS_STUDY_COMPARE_TEXT_H

#include <stdio.h>

#include "harness/study/compare.h"

/* `names` are those of A and B. */
void hx_compare_print(const struct hx_compare *compare, const char *const names[2], double confidence, FILE *out);

/* The same as a new object. */
json_t *hx_compare_object(const struct hx_compare *compare, const char *const names[2], double confidence);

#endif
