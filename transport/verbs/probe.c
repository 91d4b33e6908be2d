/* SPDX-License-Identifier: Apache-2.0
 *
 * Indexes rely on three things that no specification of a device promises: that a READ finds an aligned line of 64
 * bytes as one WRITE left it, that WRITEs of one queue pair land in the order in which they were posted, and that an
 * atomic of the device is one step for the node's own processor. So a device with memory is tried when it is opened:
 * one connection of it to itself writes, a second one reads, and this thread looks on. What is not found in that time
 * may happen later; what is found is certain.
 */
#include <string.h>

#include "transport/realtime/atomic_copy.h"
#include "transport/verbs/looped.h"

enum {
    ROUND = 8,          /* of each verb */
    WRITES = 4 * ROUND, /* work requests of the writing connection in a round */
    DEPTH = 2 * WRITES,
    WORDS = DM_LINE / RT_WORD,
    LINE_AT = 0,      /* in the memory that is read and written */
    FIRST_AT = 1024,  /* written before .. */
    SECOND_AT = 2048, /* .. this */
    SUM_AT = 3072,    /* added to */
    TARGET_BYTES = 4096,
    LINES_AT = TARGET_BYTES, /* what is written, and what was read */
    NUMBERS_AT = LINES_AT + ROUND * DM_LINE,
    READ_AT = NUMBERS_AT + ROUND * RT_WORD,
    OLD_AT = READ_AT + ROUND * DM_LINE,
    BYTES = 2 * TARGET_BYTES,
};

#define ROUND_LIMIT_NS (UINT64_C(1000) * 1000000)
#define BOTH_HALVES    ((UINT64_C(1) << 32) + 1)

struct probe {
    struct verbs_looped looped; /* the first connection writes, the second one reads */
    uint64_t rounds;
    bool is_torn, is_out_of_order, is_half_added;
};

/* ---- a round ---------------------------------------------------------------------------------------------------- */

static struct ibv_send_wr *work(const struct probe *probe, struct ibv_send_wr *wr, struct ibv_sge *sge, size_t own_at,
                                uint32_t bytes, size_t at) {
    *sge = (struct ibv_sge){(uintptr_t)probe->looped.memory + own_at, bytes, probe->looped.mr->lkey};
    *wr = (struct ibv_send_wr){.next = wr + 1, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr->wr.rdma.remote_addr = (uintptr_t)probe->looped.memory + at;
    wr->wr.rdma.rkey = probe->looped.mr->rkey;
    return wr;
}

static bool post(struct verbs_conn *end, struct ibv_send_wr *wrs, size_t count) {
    struct ibv_send_wr *bad = NULL;
    wrs[count - 1].next = NULL;
    wrs[count - 1].send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(end->qp, wrs, &bad) == 0;
}

static bool post_writes(struct probe *probe) {
    struct ibv_send_wr wrs[WRITES];
    struct ibv_sge sges[WRITES];
    for (unsigned i = 0, at = 0; i < ROUND; i++) {
        uint64_t number = probe->rounds * ROUND + i + 1;
        size_t line = LINES_AT + (size_t)i * DM_LINE, word = NUMBERS_AT + (size_t)i * RT_WORD;
        for (unsigned w = 0; w < WORDS; w++) {
            memcpy(probe->looped.memory + line + (size_t)w * RT_WORD, &number, sizeof(number));
        }
        memcpy(probe->looped.memory + word, &number, sizeof(number));
        work(probe, &wrs[at], &sges[at], line, DM_LINE, LINE_AT);
        at++;
        work(probe, &wrs[at], &sges[at], word, RT_WORD, FIRST_AT);
        at++;
        work(probe, &wrs[at], &sges[at], word, RT_WORD, SECOND_AT);
        at++;
        struct ibv_send_wr *add = work(probe, &wrs[at], &sges[at], OLD_AT, RT_WORD, SUM_AT);
        add->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        add->wr.atomic.remote_addr = (uintptr_t)probe->looped.memory + SUM_AT;
        add->wr.atomic.compare_add = BOTH_HALVES;
        add->wr.atomic.rkey = probe->looped.mr->rkey;
        at++;
    }
    return post(&probe->looped.ends[0], wrs, WRITES);
}

static bool post_reads(struct probe *probe) {
    struct ibv_send_wr wrs[ROUND];
    struct ibv_sge sges[ROUND];
    for (unsigned i = 0; i < ROUND; i++) {
        work(probe, &wrs[i], &sges[i], READ_AT + (size_t)i * DM_LINE, DM_LINE, LINE_AT)->opcode = IBV_WR_RDMA_READ;
    }
    return post(&probe->looped.ends[2], wrs, ROUND);
}

/* As the node's own processor sees it while verbs are outstanding. */
static void look(struct probe *probe) {
    uint64_t second = rt_word_load(probe->looped.memory + SECOND_AT),
             first = rt_word_load(probe->looped.memory + FIRST_AT);
    uint64_t sum = rt_word_load(probe->looped.memory + SUM_AT);
    probe->is_out_of_order = probe->is_out_of_order || first < second;
    probe->is_half_added = probe->is_half_added || sum >> 32 != (sum & UINT32_MAX);
}

static void look_at_reads(struct probe *probe) {
    for (unsigned i = 0; i < ROUND; i++) {
        uint64_t words[WORDS];
        memcpy(words, probe->looped.memory + READ_AT + (size_t)i * DM_LINE, sizeof(words));
        for (unsigned w = 1; w < WORDS; w++) {
            probe->is_torn = probe->is_torn || words[w] != words[0];
        }
    }
}

static bool round_run(struct probe *probe) {
    struct ibv_cq *cq = atomic_load(&probe->looped.thread.cq);
    uint64_t end_ns = rt_clock_ns() + ROUND_LIMIT_NS;
    if (!post_writes(probe) || !post_reads(probe)) {
        return false;
    }
    for (int left = 2; left > 0;) {
        struct ibv_wc wc;
        int count = ibv_poll_cq(cq, 1, &wc);
        if (count < 0 || (count > 0 && wc.status != IBV_WC_SUCCESS) || rt_clock_ns() > end_ns) {
            return false;
        }
        left -= count;
        look(probe);
    }
    look_at_reads(probe);
    probe->rounds++;
    return true;
}

static uint8_t found(const struct probe *probe, bool fails) {
    return fails ? VERBS_FAILS : probe->rounds > 0 ? VERBS_HOLDS : VERBS_ASSUMED;
}

void verbs_probe(struct verbs *verbs, struct verbs_port *port) {
    struct probe probe = {.looped = {.verbs = verbs, .port = port}};
    if (verbs->options->probe_ns > 0 && verbs_looped_open(&probe.looped, 2, DEPTH, BYTES, false)) {
        uint64_t end_ns = rt_clock_ns() + verbs->options->probe_ns; /* opening it takes a slow host as long */
        while (round_run(&probe) && rt_clock_ns() < end_ns) {
        }
    }
    verbs_looped_close(&probe.looped);
    /* Software RoCE copies with the processor; two of them may work on one line at once, however rarely. */
    bool is_known_torn = port->is_software && verbs->rt.cpu_count > 1;
    port->whole_lines = found(&probe, probe.is_torn || is_known_torn);
    port->write_order = found(&probe, probe.is_out_of_order);
    port->cpu_atomics = found(&probe, probe.is_half_added);
}
