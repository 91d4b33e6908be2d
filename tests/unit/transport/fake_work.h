/* SPDX-License-Identifier: Apache-2.0
 *
 * Beside fake_verbs.h a device that works: what is posted is executed at once on the memory of this process, which both
 * ends of a connection belong to, and completes.
 */
#ifndef DM_TESTS_FAKE_WORK_H
#define DM_TESTS_FAKE_WORK_H

#include "unit/transport/fake_verbs.h"

static void fake_complete(struct ibv_qp *qp, uint64_t number, enum ibv_wc_status status) {
    struct fake_cq *cq = (struct fake_cq *)qp->send_cq;
    if (cq->count < FAKE_COMPLETIONS) {
        cq->done[cq->count++] = (struct ibv_wc){.wr_id = number, .status = status};
    }
}

static void fake_execute(const struct ibv_send_wr *wr) {
    unsigned char *own = (unsigned char *)(uintptr_t)wr->sg_list->addr;
    unsigned char *there = (unsigned char *)(uintptr_t)wr->wr.rdma.remote_addr;
    uint64_t word;
    switch (wr->opcode) {
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
        fake_execute(wr);
        if (wr->send_flags & IBV_SEND_SIGNALED) {
            fake_complete(qp, wr->wr_id, IBV_WC_SUCCESS);
        }
    }
    return count;
}

#endif
