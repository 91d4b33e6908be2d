/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing of connections of a device to itself.
 */
#include "transport/verbs/looped.h"

#include <sys/mman.h>

enum {
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

static bool memory_open(struct verbs_looped *looped, size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    looped->memory = map;
    looped->bytes = bytes;
    looped->mr = ibv_reg_mr(looped->port->pd, map, bytes, ACCESS);
    return looped->mr != NULL;
}

bool verbs_looped_open(struct verbs_looped *looped, unsigned connections, uint32_t depth, size_t bytes,
                       bool posts_masked) {
    struct ibv_cq *cq = ibv_create_cq(looped->port->device, (int)(2 * depth), NULL, NULL, 0);
    atomic_init(&looped->thread.cq, cq);
    bool is_open = cq && memory_open(looped, bytes);
    for (unsigned i = 0; is_open && i < 2 * connections; i++) {
        looped->ends[i] = (struct verbs_conn){.thread = &looped->thread,
                                              .port = looped->port,
                                              .is_incoming = true, /* it is none of a run's */
                                              .posts_masked = posts_masked && i == 0,
                                              .depth = depth,
                                              .slots = 1};
        is_open = verbs_qp_open(looped->verbs, &looped->ends[i], NULL) == 0;
    }
    for (unsigned i = 0; is_open && i < connections; i++) {
        is_open = verbs_qp_loop(looped->verbs, &looped->ends[2 * i], &looped->ends[2 * i + 1]);
    }
    return is_open;
}

void verbs_looped_close(struct verbs_looped *looped) {
    for (unsigned i = 0; i < VERBS_LOOPED_ENDS; i++) {
        if (looped->ends[i].qp) {
            ibv_destroy_qp(looped->ends[i].qp);
        }
    }
    if (looped->mr) {
        ibv_dereg_mr(looped->mr);
    }
    if (looped->memory) {
        munmap(looped->memory, looped->bytes);
    }
    if (atomic_load(&looped->thread.cq)) {
        ibv_destroy_cq(atomic_load(&looped->thread.cq));
    }
}
