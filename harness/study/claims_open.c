/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the claims and refuses reasons that do not fit the figures.
 */
#include "harness/study/claims_open.h"

#include "harness/study/claims_points.h"

int hx_claims_open(const char *plots, const char *out, const char *scale, unsigned repeat, struct hx_claims **claims,
                   struct dm_err *err) {
    DM_TRY(hx_claims_read(plots, out, scale, repeat, claims, err));
    int rc = hx_claims_check_reasons(*claims, err);
    if (rc < 0) {
        hx_claims_close(*claims);
        *claims = NULL;
    }
    return rc;
}
