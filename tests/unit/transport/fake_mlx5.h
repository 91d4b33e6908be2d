/* SPDX-License-Identifier: Apache-2.0
 *
 * Beside a device that works (fake_work.h) a replacement of libmlx5.
 */
#ifndef DM_TESTS_FAKE_MLX5_H
#define DM_TESTS_FAKE_MLX5_H

#include "unit/transport/fake_work.h"
#include "unit/transport/masked_nic.h"

#include <infiniband/mlx5dv.h>

enum { FAKE_RAWS = 64, FAKE_LOG = 256 };

static struct {
    /* Properties, set by the test before a fabric is opened. */
    struct masked_nic nic;
    bool is_mute; /* it does not report capabilities */
    unsigned operations, sizes, byte_order;
    bool refuses_qps, refuses_posts, polls_fail;
    enum ibv_wc_status status; /* with which masked atomics complete */

    /* The record. */
    unsigned qps_asked;
    struct ibv_qp_init_attr_ex asked;
    struct mlx5dv_qp_init_attr asked_own;
    unsigned char raws[FAKE_RAWS][80];
    uint64_t numbers[FAKE_RAWS];
    unsigned raw_count, begun;
    char log[FAKE_LOG]; /* what was posted with one doorbell each: p and the count of plain ones, m of masked ones */

    struct mlx5dv_qp_ex dv[FAKE_RECORDS]; /* of each queue pair */
    bool is_raw[FAKE_RECORDS];
} fake_mlx5;

static void fake_log(char kind, unsigned count) {
    size_t at = strlen(fake_mlx5.log);
    if (at < FAKE_LOG - 8) {
        snprintf(fake_mlx5.log + at, FAKE_LOG - at, "%c%u ", kind, count);
    }
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    *bad = NULL;
    fake_log('p', fake_work(qp, wr));
    return 0;
}

static int fake_poll_failing(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    return fake_mlx5.polls_fail ? -1 : fake_poll_cq(cq, count, wc);
}

/* ---- libmlx5 ---------------------------------------------------------------------------------------------------- */

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t in_bytes, void *out, size_t out_bytes) {
    unsigned char *caps = (unsigned char *)out + 16;
    (void)in;
    (void)context;
    if (fake_mlx5.is_mute || in_bytes != 16 || out_bytes != 16 + 4096) {
        return EOPNOTSUPP;
    }
    caps[8] = (unsigned char)(fake_mlx5.byte_order << 6);
    caps[19] = (unsigned char)fake_mlx5.operations;
    caps[23] = (unsigned char)fake_mlx5.sizes;
    return 0;
}

static unsigned fake_number(const struct ibv_qp_ex *extended) {
    return extended->qp_base.qp_num - 100;
}

static void fake_raw(struct mlx5dv_qp_ex *dv, const void *wqe) {
    struct ibv_qp_ex *extended = &fake.qps[dv - fake_mlx5.dv]->extended;
    struct masked_request request = masked_decode(wqe);
    uint64_t *word = (uint64_t *)(uintptr_t)request.remote, old = 0;
    if (fake_mlx5.refuses_posts) {
        return;
    }
    bool is_done = masked_execute(&fake_mlx5.nic, wqe, word, &old);
    memcpy((void *)(uintptr_t)request.local, &old, sizeof(old));
    if (fake_mlx5.raw_count < FAKE_RAWS) {
        memcpy(fake_mlx5.raws[fake_mlx5.raw_count], wqe, (size_t)request.segments * 16);
        fake_mlx5.numbers[fake_mlx5.raw_count++] = extended->wr_id;
    }
    if (request.flags & MLX5_WQE_CTRL_CQ_UPDATE) {
        fake_complete(&extended->qp_base, extended->wr_id, is_done ? fake_mlx5.status : IBV_WC_REM_INV_REQ_ERR);
    }
    fake_mlx5.begun++;
}

static void fake_start(struct ibv_qp_ex *extended) {
    (void)extended;
    fake_mlx5.begun = 0;
}

static int fake_end(struct ibv_qp_ex *extended) {
    (void)extended;
    fake_log('m', fake_mlx5.begun);
    return fake_mlx5.refuses_posts ? ENOMEM : 0;
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *own) {
    (void)context;
    fake_mlx5.qps_asked++;
    fake_mlx5.asked = *attr;
    fake_mlx5.asked_own = *own;
    if (fake_mlx5.refuses_qps) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct ibv_qp_init_attr plain = {
        .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .cap = attr->cap, .qp_type = attr->qp_type};
    struct fake_qp *made = (struct fake_qp *)ibv_create_qp(attr->pd, &plain);
    if (!made) {
        return NULL;
    }
    attr->cap = plain.cap;
    made->extended.wr_start = fake_start;
    made->extended.wr_complete = fake_end;
    fake_mlx5.is_raw[fake_number(&made->extended)] = true;
    fake_mlx5.dv[fake_number(&made->extended)].wr_raw_wqe = fake_raw;
    return &made->qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
    return &((struct fake_qp *)qp)->extended;
}

struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *extended) {
    return &fake_mlx5.dv[fake_number(extended)];
}

/* ---- for tests -------------------------------------------------------------------------------------------------- */

/* An mlx5 device that has masked atomics; tests change what they are about. */
static void fake_mlx5_reset(void) {
    fake_reset();
    memset(&fake_mlx5, 0, sizeof(fake_mlx5));
    fake.is_mlx5 = true;
    fake.post_send = fake_post_send;
    fake.poll_cq = fake_poll_failing;
    fake_mlx5.operations = 0xf;
    fake_mlx5.sizes = 0x8;
    fake_mlx5.byte_order = 1;
}

#endif
