/* SPDX-License-Identifier: Apache-2.0
 *
 * Beside fake_verbs.h a device that works: what is posted is executed at once on the memory of this process, which both
 * ends of a connection belong to, and completes.
 */
#ifndef DM_TESTS_FAKE_WORK_H
#define DM_TESTS_FAKE_WORK_H

#include "unit/transport/fake_verbs.h"

static void fake_arrive(struct ibv_cq *cq, uint64_t number, enum ibv_wc_status status, uint32_t bytes) {
    struct fake_cq *made = (struct fake_cq *)cq;
    if (made->count < FAKE_COMPLETIONS) {
        made->done[made->count++] = (struct ibv_wc){.wr_id = number, .status = status, .byte_len = bytes};
        fake_raise(cq);
    }
}

static void fake_complete(struct ibv_qp *qp, uint64_t number, enum ibv_wc_status status) {
    fake_arrive(qp->send_cq, number, status, 0);
}

/* For tests with calls: `fake.post_recv`. Keeps the buffer for a message to this queue pair. */
__attribute__((unused)) static int fake_keep_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    struct fake_qp *made = (struct fake_qp *)qp;
    *bad = wr;
    if (made->receive_count == FAKE_RECEIVES) {
        return ENOMEM;
    }
    made->receives[made->receive_count].number = wr->wr_id;
    made->receives[made->receive_count++].addr = wr->sg_list->addr;
    *bad = NULL;
    return 0;
}

/* Copies a message into the oldest buffer of the other end, where it completes. */
static void fake_message(const struct ibv_qp *qp, const struct ibv_send_wr *wr) {
    struct fake_qp *there = fake.qps[((const struct fake_qp *)qp)->receive.dest_qp_num - FAKE_QP_FIRST];
    if (there->receive_count == 0) {
        return; /* a real device would try again */
    }
    memcpy((void *)(uintptr_t)there->receives[0].addr, (const void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
    fake_arrive(there->asked.recv_cq, there->receives[0].number, IBV_WC_SUCCESS, wr->sg_list->length);
    memmove(there->receives, there->receives + 1, --there->receive_count * sizeof(there->receives[0]));
}

static void fake_execute(const struct ibv_qp *qp, const struct ibv_send_wr *wr) {
    unsigned char *own = (unsigned char *)(uintptr_t)wr->sg_list->addr;
    unsigned char *there = (unsigned char *)(uintptr_t)wr->wr.rdma.remote_addr;
    uint64_t word;
    switch (wr->opcode) {
    case IBV_WR_SEND:
        fake_message(qp, wr);
        break;
    case IBV_WR_RDMA_READ:
        memcpy(own, there, wr->sg_list->length);
        break;
    case IBV_WR_RDMA_WRITE:
        memcpy(there, own, wr->sg_list->length);
        break;
    default:
        memcpy(&word, there, sizeof(word));
        memcpy(own, &word, sizeof(word));
        if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            word += wr->wr.atomic.compare_add;
        } else if (word == wr->wr.atomic.compare_add) {
            word = wr->wr.atomic.swap;
        }
        memcpy(there, &word, sizeof(word));
    }
}

/* The number of work requests in the list. */
static unsigned fake_work(struct ibv_qp *qp, const struct ibv_send_wr *wr) {
    unsigned count = 0;
    for (; wr; wr = wr->next, count++) {
        fake_execute(qp, wr);
        if (wr->send_flags & IBV_SEND_SIGNALED) {
            fake_complete(qp, wr->wr_id, IBV_WC_SUCCESS);
        }
    }
    return count;
}

#endif
