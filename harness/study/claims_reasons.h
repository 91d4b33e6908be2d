/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the reasons of claims.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_REASONS_H
#define DM_HARNESS_STUDY_CLAIMS_REASONS_H

#include "harness/study/claims.h"

/* Reads the array `because` into the claim, but for reasons of another scale than `scale`. `figure` is what reasons
 * read unless they say otherwise. Refused: a text with a number, which only the results may have; a reason without an
 * expression, or with one that has no expected value. */
int hx_reasons_read(const json_t *array, const char *figure, const char *scale, const char *where,
                    struct hx_claim *claim, struct dm_err *err);

#endif
