/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue pairs: what is asked of the device for them, and what it gives. Those that the connection manager joins move
 * between states in cm.c.
 */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs.h"

enum {
    ACK_TIMEOUT = 14,          /* 67 ms */
    ACK_TIMEOUT_SOFTWARE = 16, /* 268 ms: a processor that has other work answers late */
    HOP_LIMIT = 64,
    NEIGHBOUR_TRIES = 5, /* a second each */
};

static struct ibv_qp *qp_try(const struct verbs_conn *conn, uint32_t depth, uint32_t inline_bytes, uint32_t *given) {
    struct ibv_cq *cq = atomic_load(&conn->thread->cq);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = depth,
                .max_recv_wr = conn->slots,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_pd *pd = conn->thread->domain ? conn->thread->domain : conn->port->pd;
    struct ibv_qp *qp = conn->posts_masked ? verbs_masked_create_qp(pd, &attr) : ibv_create_qp(pd, &attr);
    *given = attr.cap.max_inline_data < inline_bytes ? attr.cap.max_inline_data : inline_bytes;
    return qp;
}

/* A device that cannot give all of it may give fewer inline bytes, or else a shorter queue. */
static int qp_create(struct verbs *verbs, struct verbs_conn *conn, struct dm_err *err) {
    uint32_t wanted = (uint32_t)verbs->options->inline_bytes, inline_bytes = wanted;
    uint32_t depth = conn->depth, least = conn->is_incoming ? conn->depth : VERBS_DEPTH_MIN;
    while (!(conn->qp = qp_try(conn, depth, inline_bytes, &conn->inline_bytes))) {
        if (inline_bytes > 0) {
            inline_bytes /= 2;
        } else if (depth > least) {
            depth = depth / 2 > least ? depth / 2 : least;
            inline_bytes = wanted;
        } else {
            return dm_fail(err, DM_ERR_IO, "device %s cannot create a queue pair of %u work requests: %s",
                           conn->port->name, depth, strerror(errno));
        }
    }
    conn->depth = depth;
    if (!conn->is_incoming) {
        bool is_first = verbs->least_depth == 0;
        verbs->least_depth = is_first || depth < verbs->least_depth ? depth : verbs->least_depth;
        verbs->least_inline =
            is_first || conn->inline_bytes < verbs->least_inline ? conn->inline_bytes : verbs->least_inline;
    }
    return 0;
}

int verbs_qp_open(struct verbs *verbs, struct verbs_conn *conn, struct dm_err *err) {
    DM_TRY(qp_create(verbs, conn, err));
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t)verbs->options->pkey,
        .port_num = conn->port->number,
        .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
    };
    int failed = ibv_modify_qp(conn->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return failed ? dm_fail(err, DM_ERR_IO, "device %s, queue pair: %s", conn->port->name, strerror(failed)) : 0;
}

void verbs_qp_describe(const struct verbs_conn *conn, struct verbs_end *end) {
    const struct verbs_port *port = conn->port;
    *end = (struct verbs_end){
        .qpn = conn->qp->qp_num,
        .psn = (uint32_t)(dm_mix64(conn->qp->qp_num) & 0xffffff),
        .lid = port->lid,
        .is_global = port->is_global,
        .mtu = (uint8_t)port->mtu,
        .reads = verbs_reads_at_once(port),
        .slots = conn->slots,
    };
    memcpy(end->gid, port->gid.raw, sizeof(end->gid));
}

int verbs_qp_ready(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
    int failed = ETIMEDOUT;
    for (unsigned tried = 0; tried < NEIGHBOUR_TRIES && failed == ETIMEDOUT; tried++) {
        failed = ibv_modify_qp(qp, attr, mask);
    }
    return failed;
}

int verbs_qp_receive(const struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *theirs) {
    const struct verbs_port *port = conn->port;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = verbs_mtu_of(port, theirs->mtu, port->mtu),
        .dest_qp_num = theirs->qpn,
        .rq_psn = theirs->psn,
        .max_dest_rd_atomic = verbs_reads_at_once(port),
        .min_rnr_timer = VERBS_RNR_TIMER,
        .ah_attr = {.dlid = theirs->lid, .port_num = port->number, .sl = (uint8_t)verbs->options->sl},
    };
    if (port->is_global || theirs->is_global) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.sgid_index = port->gid_index;
        attr.ah_attr.grh.hop_limit = HOP_LIMIT;
        attr.ah_attr.grh.traffic_class = (uint8_t)verbs->options->traffic_class;
        memcpy(attr.ah_attr.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
    }
    return verbs_qp_ready(conn->qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

uint8_t verbs_ack_timeout(const struct verbs *verbs, const struct verbs_port *port) {
    uint64_t wanted = verbs->options->ack_timeout;
    return (uint8_t)(wanted > 0 ? wanted : port->is_software ? ACK_TIMEOUT_SOFTWARE : ACK_TIMEOUT);
}

int verbs_qp_send(const struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *ours,
                  const struct verbs_end *theirs) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = verbs_ack_timeout(verbs, conn->port),
        .retry_cnt = (uint8_t)verbs->options->retries,
        .rnr_retry = VERBS_RNR_RETRIES,
        .sq_psn = ours->psn,
        .max_rd_atomic = theirs->reads < ours->reads ? theirs->reads : ours->reads,
    };
    return ibv_modify_qp(conn->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

bool verbs_qp_loop(const struct verbs *verbs, struct verbs_conn *one, struct verbs_conn *other) {
    struct verbs_end first, second;
    verbs_qp_describe(one, &first);
    verbs_qp_describe(other, &second);
    return verbs_qp_receive(verbs, one, &second) == 0 && verbs_qp_receive(verbs, other, &first) == 0 &&
           verbs_qp_send(verbs, one, &first, &second) == 0 && verbs_qp_send(verbs, other, &second, &first) == 0;
}
