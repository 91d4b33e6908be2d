/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether masked atomics are the devices' own, and posting them. What a device reports of itself is not enough: the
 * atomic mode of the other end's queue pair, the byte order and the driver decide too. So some of each kind are
 * executed on memory of this process when a device is opened, over one connection of the device to itself, and compared
 * with what they should do. Where any of that fails they are emulated, and the result's `masked_atomics` has the
 * reason.
 */
#include <stdio.h>
#include <string.h>

#include "transport/realtime/atomic_copy.h"
#include "transport/verbs/looped.h"
#include "transport/verbs/masked.h"
#include "transport/verbs/verbs.h"

/* ---- the trial -------------------------------------------------------------------------------------------------- */

enum {
    DEPTH = 8,
    WORD_AT = 0, /* in the memory */
    OLD_AT = DM_LINE,
    BYTES = 2 * DM_LINE,
};

#define TRIAL_LIMIT_NS (UINT64_C(1000) * 1000000)
#define WORD_BEFORE    UINT64_C(0x1122334455667788)
#define OLD_BEFORE     UINT64_C(0xf0f1f2f3f4f5f6f7)

/* No two bytes of a value are alike, so that a wrong byte order or a wrong operand shows. */
static const struct dm_verb trials[] = {
    {.kind = DM_VERB_MASKED_CAS, /* it swaps, and other bits differ from `compare` and `swap` */
     .op = {.compare = 0xff22ff44ff66ff88,
            .compare_mask = 0x00ff00ff00ff00ff,
            .swap = 0xa1a2a3a4a5a6a7a8,
            .swap_mask = 0x0f00ffff00f000ff}},
    {.kind = DM_VERB_MASKED_CAS, /* it does not: one bit differs */
     .op = {.compare = 0xff22ff44ff66ff89,
            .compare_mask = 0x00ff00ff00ff00ff,
            .swap = 0xa1a2a3a4a5a6a7a8,
            .swap_mask = UINT64_MAX}},
    {.kind = DM_VERB_MASKED_CAS, .op = {.compare = 1, .swap = 0xa1a2a3a4a5a6a7a8, .swap_mask = UINT64_MAX}},
    {.kind = DM_VERB_MASKED_CAS, .op = {.compare = WORD_BEFORE, .compare_mask = UINT64_MAX, .swap = 3}},
    {.kind = DM_VERB_MASKED_FAA, .op = {.swap = 0x01020304ff060708}},
    {.kind = DM_VERB_MASKED_FAA, .op = {.swap = 0x01020304ff060708, .compare_mask = 0x0000000080000000}},
    {.kind = DM_VERB_MASKED_FAA, .op = {.swap = 0xf1f2f3f4f5f6f7f8, .compare_mask = 0x8080808080808080}},
};

static const char *trial_wait(struct verbs_looped *trial) {
    uint64_t end_ns = rt_clock_ns() + TRIAL_LIMIT_NS;
    struct ibv_wc wc;
    int count;
    do {
        count = ibv_poll_cq(atomic_load(&trial->thread.cq), 1, &wc);
    } while (count == 0 && rt_clock_ns() < end_ns);
    if (count <= 0) {
        return "one that was tried did not complete";
    }
    return wc.status == IBV_WC_SUCCESS ? NULL : ibv_wc_status_str(wc.status);
}

static const char *trial_run(struct verbs_looped *trial, const struct dm_verb *verb) {
    bool swapped;
    unsigned char *word = trial->memory + WORD_AT, *old = trial->memory + OLD_AT;
    const struct verbs_masked_work work = {.op = verb->op,
                                           .is_addition = verb->kind == DM_VERB_MASKED_FAA,
                                           .is_signalled = true,
                                           .queue_pair = trial->ends[0].qp->qp_num,
                                           .remote = (uintptr_t)word,
                                           .rkey = trial->mr->rkey,
                                           .local = (uintptr_t)old,
                                           .lkey = trial->mr->lkey};
    rt_word_store(word, WORD_BEFORE);
    rt_word_store(old, OLD_BEFORE);
    verbs_masked_begin(trial->ends[0].qp);
    verbs_masked_add(trial->ends[0].qp, 0, &work);
    if (verbs_masked_end(trial->ends[0].qp) != 0) {
        return "one that was tried could not be posted";
    }
    const char *failure = trial_wait(trial);
    if (failure) {
        return failure;
    }
    bool is_right =
        rt_word_load(old) == WORD_BEFORE && rt_word_load(word) == dm_atomic_apply(verb, WORD_BEFORE, &swapped);
    return is_right ? NULL : "one that was tried did something else";
}

/* Why they cannot be used; NULL: all did what they should. */
static const char *try_all(struct verbs *verbs, struct verbs_port *port) {
    struct verbs_looped trial = {.verbs = verbs, .port = port};
    const char *failure =
        verbs_looped_open(&trial, 1, DEPTH, BYTES, true) ? NULL : "the device gives no queue pair that takes them";
    for (size_t i = 0; !failure && i < DM_ARRAY_LEN(trials); i++) {
        failure = trial_run(&trial, &trials[i]);
    }
    verbs_looped_close(&trial);
    return failure;
}

void verbs_masked_try(struct verbs *verbs, struct verbs_port *port) {
    bool is_wanted = verbs->options->masked == VERBS_MASKED_AUTO;
    const char *refusal = is_wanted ? verbs_masked_refusal(port->device) : "the option masked";
    refusal = refusal ? refusal : try_all(verbs, port);
    port->masked = !refusal ? VERBS_HOLDS : is_wanted ? VERBS_FAILS : VERBS_ASSUMED;
    port->masked_refusal = refusal;
}

/* ---- the decision ----------------------------------------------------------------------------------------------- */

void verbs_masked_choose(struct verbs *verbs) {
    char *text = verbs->note_texts.masked;
    size_t capacity = sizeof(verbs->note_texts.masked);
    for (unsigned i = 0; i < verbs->port_count; i++) {
        if (verbs->ports[i].masked != VERBS_HOLDS) {
            snprintf(text, capacity, "emulated: %s", verbs->ports[i].masked_refusal);
            return;
        }
    }
    for (unsigned node = 0; node < dm_first_cn(&verbs->rt.fabric->topology); node++) {
        const struct verbs_facts *facts = &verbs->facts[node];
        if (facts->mtu == 0 || facts->masked != VERBS_HOLDS) {
            snprintf(text, capacity, "emulated: node %u %s", node,
                     facts->mtu == 0 ? "has not reported its device yet" : "does not have them");
            return;
        }
    }
    snprintf(text, capacity, "native");
    verbs->rt.fabric->has_masked = true;
}

/* ---- posting ---------------------------------------------------------------------------------------------------- */

static bool is_masked(const struct ibv_send_wr *wr) {
    return (wr->wr_id & VERBS_VERB_MASK) >= VERBS_MASKED_CAS;
}

static int post_masked(const struct verbs_conn *conn, const struct ibv_send_wr *first) {
    const struct verbs_thread *thread = conn->thread;
    verbs_masked_begin(conn->qp);
    for (const struct ibv_send_wr *wr = first; wr; wr = wr->next) {
        const struct verbs_masked_work work = {.op = thread->masks[wr - thread->wrs],
                                               .is_addition = (wr->wr_id & VERBS_VERB_MASK) == VERBS_MASKED_FAA,
                                               .is_fenced = wr->send_flags & IBV_SEND_FENCE,
                                               .is_signalled = wr->send_flags & IBV_SEND_SIGNALED,
                                               .queue_pair = conn->qp->qp_num,
                                               .remote = wr->wr.atomic.remote_addr,
                                               .rkey = wr->wr.atomic.rkey,
                                               .local = wr->sg_list->addr,
                                               .lkey = wr->sg_list->lkey};
        verbs_masked_add(conn->qp, wr->wr_id, &work);
    }
    return verbs_masked_end(conn->qp);
}

int verbs_masked_post(struct verbs_conn *conn, struct ibv_send_wr *first) {
    int failed = 0;
    for (struct ibv_send_wr *next; first && failed == 0; first = next) {
        struct ibv_send_wr *last = first, *bad;
        while (last->next && is_masked(last->next) == is_masked(first)) {
            last = last->next;
        }
        next = last->next;
        last->next = NULL;
        failed = is_masked(first) ? post_masked(conn, first) : ibv_post_send(conn->qp, first, &bad);
        conn->thread->doorbells += next != NULL;
    }
    return failed;
}
