/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the claims.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_OPEN_H
#define DM_HARNESS_STUDY_CLAIMS_OPEN_H

#include "harness/study/claims.h"

/* Reads the claims (hx_claims_read) and checks their reasons against the figures. The caller closes them with
 * hx_claims_close. */
int hx_claims_open(const char *plots, const char *out, const char *scale, unsigned repeat, struct hx_claims **claims,
                   struct dm_err *err);

#endif
