/* SPDX-License-Identifier: Apache-2.0
 *
 * Completions and failures, and how a thread waits for them: it polls its completion queue for a while and then lets
 * the device wake it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum {
    POLL_AT_ONCE = 32,
    SPINS_A_CLOCK = 256, /* empty polls between two reads of the clock */
    CHECK_NS = 50000000, /* between two checks for work that takes too long */
    NAP_NS = 100000000,  /* a thread with outstanding work sleeps no longer, so that it can check */
    NS_PER_MS = 1000000,
};

#define NS_PER_S UINT64_C(1000000000)

static const char *const verb_names[] = {"READ", "WRITE", "CAS", "FAA", "SEND", "RECEIVE", "masked CAS", "masked FAA"};

/* ---- failures --------------------------------------------------------------------------------------------------- */

/* Distinguishes a failed peer from an error in what was asked. */
static int status_code(enum ibv_wc_status status) {
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_WR_FLUSH_ERR:
        return DM_ERR_PEER;
    default:
        return DM_ERR_IO;
    }
}

static void completion_failed(struct verbs_conn *conn, const struct ibv_wc *wc) {
    int code = status_code(wc->status);
    if (!conn->is_incoming) {
        char name[VERBS_TEXT];
        struct verbs *verbs = verbs_of_thread(conn->thread);
        verbs_failure_note(verbs, code, "%s to %s: %s (vendor status %#x)", verb_names[wc->wr_id & VERBS_VERB_MASK],
                           verbs_node_name(verbs, conn->node, name, sizeof(name)), ibv_wc_status_str(wc->status),
                           wc->vendor_err);
    }
    verbs_conn_break(conn, code);
}

/* ---- completions ------------------------------------------------------------------------------------------------ */

/* The send queue is free up to this tag. */
static void tag_pop(struct verbs_conn *conn, const struct verbs_tag *tag) {
    while (conn->head) {
        const struct verbs_tag *first = conn->head;
        conn->head = first->next;
        conn->thread->outstanding--;
        conn->done = first->upto;
        conn->ring_done = first->ring_upto;
        if (first == tag) {
            break;
        }
    }
    if (dm_unlikely(conn->space.head != NULL)) {
        verbs_wake_waiters(conn, &conn->space, true);
    }
}

static void completion_take(const struct ibv_wc *wc) {
    struct verbs_tag *tag = (struct verbs_tag *)(uintptr_t)(wc->wr_id & ~(uint64_t)VERBS_VERB_MASK);
    struct verbs_conn *conn = tag->conn;
    if (dm_unlikely(conn->failure < 0)) {
        return; /* reported already; the rest is flushed */
    }
    if (dm_unlikely(wc->status != IBV_WC_SUCCESS)) {
        completion_failed(conn, wc);
        return;
    }
    if (tag->kind == VERBS_RECEIVE) {
        verbs_received(conn, tag, wc->byte_len);
        return;
    }
    tag_pop(conn, tag);
    if (tag->kind == VERBS_BATCH) {
        verbs_batch_done(conn, tag->ctx, 0);
    } else if (tag->kind == VERBS_SEND) {
        verbs_call_sent(conn, tag);
    }
}

/* Handles what has completed; true if anything had. */
static bool poll_thread(struct verbs_thread *thread) {
    struct ibv_cq *cq = atomic_load_explicit(&thread->cq, memory_order_acquire);
    struct ibv_wc wcs[POLL_AT_ONCE];
    bool found = false;
    int count = cq ? POLL_AT_ONCE : 0;
    while (count == POLL_AT_ONCE) {
        count = ibv_poll_cq(cq, POLL_AT_ONCE, wcs);
        for (int i = 0; i < count; i++) {
            completion_take(&wcs[i]);
        }
        found = found || count > 0;
        if (dm_unlikely(count < 0)) {
            verbs_failure_note(verbs_of_thread(thread), DM_ERR_IO, "the completion queue of a thread of node %u failed",
                               thread->rt.base.node);
        }
    }
    thread->was_busy = thread->was_busy || found;
    return found;
}

/* ---- work that takes too long ----------------------------------------------------------------------------------- */

static void conn_check(struct verbs_conn *conn, uint64_t now_ns) {
    struct verbs *verbs = verbs_of_thread(conn->thread);
    if (conn->failure < 0) {
        return;
    }
    if (verbs_has_ended(verbs, conn->node)) {
        verbs_conn_break(conn, DM_ERR_PEER); /* the control server has recorded it */
        return;
    }
    if (!atomic_load(&verbs->rt.open)) {
        /* Between runs no thread polls: that time does not count. */
        conn->seen_ns = now_ns;
        verbs_calls_postpone(conn, now_ns);
        return;
    }
    if (!conn->head || conn->seen != conn->head || conn->seen_upto != conn->head->upto) {
        conn->seen = conn->head;
        conn->seen_upto = conn->head ? conn->head->upto : 0;
        conn->seen_ns = now_ns;
    } else if (now_ns - conn->seen_ns > verbs->options->timeout_ns) {
        char name[VERBS_TEXT];
        verbs_failure_note(verbs, DM_ERR_PEER, "%s to %s: nothing completed within %.1f s",
                           conn->head ? verb_names[conn->head->verb] : "verbs",
                           verbs_node_name(verbs, conn->node, name, sizeof(name)),
                           (double)verbs->options->timeout_ns / (double)NS_PER_S);
        verbs_conn_break(conn, DM_ERR_PEER);
        return;
    }
    verbs_calls_check(conn, now_ns);
}

static void thread_check(struct verbs_thread *thread, uint64_t now_ns) {
    thread->checked_ns = now_ns;
    for (unsigned node = 0; thread->conns && node < thread->rt.base.fabric->node_count; node++) {
        if (thread->conns[node]) {
            conn_check(thread->conns[node], now_ns);
        }
    }
}

/* ---- how a thread waits ----------------------------------------------------------------------------------------- */

static void look(struct rt_thread *rt_thread) {
    struct verbs_thread *thread = (struct verbs_thread *)rt_thread;
    verbs_ring_doorbells(thread);
    poll_thread(thread);
    if (dm_unlikely(thread->backlog != NULL)) {
        verbs_backlog_serve(thread);
    }
}

/* Arms the completion channel: what completes from here on raises an event. */
static bool has_work(struct rt_thread *rt_thread) {
    struct verbs_thread *thread = (struct verbs_thread *)rt_thread;
    struct ibv_cq *cq = atomic_load(&thread->cq);
    if (!cq) {
        return false;
    }
    if (!thread->is_armed) {
        thread->is_armed = ibv_req_notify_cq(cq, 0) == 0;
    }
    return poll_thread(thread) || (thread->backlog && rt_can_serve(rt_thread));
}

static bool spins(struct rt_thread *rt_thread) {
    struct verbs_thread *thread = (struct verbs_thread *)rt_thread;
    struct verbs *verbs = verbs_of_thread(thread);
    if (!atomic_load_explicit(&thread->cq, memory_order_relaxed)) {
        return false;
    }
    bool is_crowded = atomic_load_explicit(&verbs->rt.active, memory_order_relaxed) > verbs->rt.cpu_count;
    if (is_crowded) {
        sched_yield();
    } else if (++thread->spins % SPINS_A_CLOCK != 0) {
        return true;
    }
    uint64_t now_ns = rt_clock_ns();
    if (thread->was_busy) {
        thread->was_busy = false;
        thread->idle_since_ns = now_ns;
    }
    if (now_ns - thread->checked_ns > CHECK_NS) {
        thread_check(thread, now_ns);
    }
    return now_ns - thread->idle_since_ns < verbs->options->spin_ns;
}

static int nap_ms(const struct verbs_thread *thread, uint64_t until_ns) {
    uint64_t now_ns = rt_clock_ns();
    uint64_t left = until_ns == UINT64_MAX ? UINT64_MAX : until_ns > now_ns ? until_ns - now_ns : 0;
    left = thread->outstanding > 0 && left > NAP_NS ? NAP_NS : left;
    return left == UINT64_MAX ? -1 : (int)(left / NS_PER_MS < 60000 ? left / NS_PER_MS + 1 : 60000);
}

static void sleep_on_cond(struct rt_thread *thread, uint64_t until_ns) {
    pthread_mutex_lock(&thread->lock);
    while (atomic_load(&thread->sleeping) && rt_cond_wait(&thread->cond, &thread->lock, until_ns)) {
    }
    pthread_mutex_unlock(&thread->lock);
}

static void sleep_on_events(struct rt_thread *rt_thread, uint64_t until_ns) {
    struct verbs_thread *thread = (struct verbs_thread *)rt_thread;
    if (!atomic_load(&thread->cq)) {
        sleep_on_cond(rt_thread, until_ns);
        return;
    }
    struct pollfd fds[2] = {{.fd = thread->event, .events = POLLIN}, {.fd = thread->channel->fd, .events = POLLIN}};
    if (atomic_load(&rt_thread->sleeping)) {
        poll(fds, 2, nap_ms(thread, until_ns));
    }
    uint64_t signalled;
    ssize_t ignored = read(thread->event, &signalled, sizeof(signalled));
    (void)ignored;
    struct ibv_cq *cq;
    void *cq_context;
    if (ibv_get_cq_event(thread->channel, &cq, &cq_context) == 0) {
        ibv_ack_cq_events(cq, 1);
        thread->is_armed = false;
    }
    uint64_t now_ns = rt_clock_ns();
    if (now_ns - thread->checked_ns > CHECK_NS) {
        thread_check(thread, now_ns);
    }
}

static void wake_sleeper(struct rt_thread *rt_thread) {
    struct verbs_thread *thread = (struct verbs_thread *)rt_thread;
    if (atomic_load(&thread->cq)) {
        uint64_t one = 1;
        ssize_t ignored = write(thread->event, &one, sizeof(one));
        (void)ignored;
    }
    /* It may have gone to sleep before it had a queue. */
    pthread_mutex_lock(&rt_thread->lock);
    pthread_cond_signal(&rt_thread->cond);
    pthread_mutex_unlock(&rt_thread->lock);
}

const struct rt_hooks verbs_hooks = {
    .look = look, .has_work = has_work, .spins = spins, .sleep = sleep_on_events, .wake = wake_sleeper};
