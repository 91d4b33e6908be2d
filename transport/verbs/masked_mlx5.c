/* SPDX-License-Identifier: Apache-2.0
 *
 * Masked atomics of NVIDIA's mlx5 devices by rdma-core's direct interface to them (libmlx5, version 36 and later). It
 * has no call for them, but it posts work requests whose bytes the caller writes ("raw WQE").
 *
 * The responder executes masked atomics if its queue pair's atomic mode is for extended ones. Linux chooses the mode
 * from the device's capabilities when it moves a queue pair with remote atomics to INIT or RTR (drivers/infiniband/hw/
 * mlx5/qp.c, get_atomic_mode), so there is no attribute to set; older kernels chose the mode of the plain ones.
 */
#include <infiniband/mlx5dv.h>

#include "transport/verbs/masked.h"

const char *verbs_masked_refusal(struct ibv_context *device) {
    unsigned char ask[VERBS_CAPS_ASK_BYTES], answer[VERBS_CAPS_ANSWER_BYTES] = {0};
    if (!mlx5dv_is_supported(device->device)) {
        return "the device is not an mlx5 device";
    }
    verbs_masked_ask(ask);
    bool is_answered = mlx5dv_devx_general_cmd(device, ask, sizeof(ask), answer, sizeof(answer)) == 0;
    return is_answered ? verbs_masked_caps_refusal(answer) : NULL;
}

struct ibv_qp *verbs_masked_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    struct ibv_qp_init_attr_ex all = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    /* libmlx5 may have the device write short results into the completion and copies them from there, but not those of
     * masked atomics. */
    struct mlx5dv_qp_init_attr own = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
        .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE,
    };
    struct ibv_qp *qp = mlx5dv_create_qp(pd->context, &all, &own);
    attr->cap = all.cap;
    return qp;
}

void verbs_masked_begin(struct ibv_qp *qp) {
    ibv_wr_start(ibv_qp_to_qp_ex(qp));
}

void verbs_masked_add(struct ibv_qp *qp, uint64_t number, const struct verbs_masked_work *work) {
    unsigned char bytes[VERBS_MASKED_CAS_BYTES];
    struct ibv_qp_ex *extended = ibv_qp_to_qp_ex(qp);
    verbs_masked_encode(work, bytes);
    extended->wr_id = number;
    mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(extended), bytes);
}

int verbs_masked_end(struct ibv_qp *qp) {
    return ibv_wr_complete(ibv_qp_to_qp_ex(qp));
}
