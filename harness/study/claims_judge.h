/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging claims.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_JUDGE_H
#define DM_HARNESS_STUDY_CLAIMS_JUDGE_H

#include "harness/study/claims.h"

/* The values that a check of a claim of this kind accepts: the expected ones within the tolerance. What a ratio is off
 * 1 by is also between half and twice what is expected, or a factor of 1.3 would be found in one of 1.01. An open end
 * is infinite. True if the gain decides at an end. */
bool hx_check_accepted(enum hx_claim_kind kind, const struct hx_check *check, double *low, double *high);

/* Judges all claims by the existing results. */
int hx_claims_judge(struct hx_claims *claims, struct dm_err *err);

#endif
