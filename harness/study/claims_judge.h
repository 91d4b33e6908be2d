/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging claims.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_JUDGE_H
#define DM_HARNESS_STUDY_CLAIMS_JUDGE_H

#include "harness/study/claims.h"

/* Judges all claims by the existing results. */
int hx_claims_judge(struct hx_claims *claims, struct dm_err *err);

#endif
