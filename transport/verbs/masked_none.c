/* SPDX-License-Identifier: Apache-2.0
 *
 * For a build without a vendor's library: no device has masked atomics.
 */
#include <errno.h>

#include "transport/verbs/masked.h"

const char *verbs_masked_refusal(struct ibv_context *device) {
    (void)device;
    return "this program was built without libmlx5";
}

struct ibv_qp *verbs_masked_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    (void)pd;
    (void)attr;
    errno = EOPNOTSUPP;
    return NULL;
}

void verbs_masked_begin(struct ibv_qp *qp) {
    (void)qp;
}

void verbs_masked_add(struct ibv_qp *qp, uint64_t number, const struct verbs_masked_work *work) {
    (void)qp;
    (void)number;
    (void)work;
}

int verbs_masked_end(struct ibv_qp *qp) {
    (void)qp;
    return EOPNOTSUPP;
}
