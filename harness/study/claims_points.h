/* SPDX-License-Identifier: Apache-2.0
 *
 * The points that claims need.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_POINTS_H
#define DM_HARNESS_STUDY_CLAIMS_POINTS_H

#include "harness/study/claims.h"

/* Checks what hx_claims_open does not: that every expression can be read, and that existing figures have the names that
 * it uses. A claim that fails here is judged as "not run". */
int hx_claims_check(struct hx_claims *claims, struct dm_err *err);

/* Refuses a reason that names an unknown figure, series, panel, metric, reading or experiment, or divides by nothing. A
 * system that is not built is none of these. */
int hx_claims_check_reasons(struct hx_claims *claims, struct dm_err *err);

/* A new set of the points that the selected claims read, also under readings and for their reasons (an id selects all
 * claims that begin with it; without ids all are selected); with `variants` also those under the other profiles. NULL
 * with err. */
struct hx_points *hx_claims_points(struct hx_claims *claims, const char *const *ids, size_t id_count, bool variants,
                                   struct dm_err *err);

#endif
