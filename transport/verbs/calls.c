/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: a request is one message and so is its response. A connection has a number of slots, and a caller takes one
 * before it sends, so that the called side always has a buffer ready to receive; further callers wait. The
 * thread that the connection's other end belongs to runs the handler. Incoming messages are checked before they are
 * used.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/verbs.h"

struct request_head {
    uint32_t method, len, capacity, slot;
};
struct response_head {
    uint32_t slot, len;
    int32_t rc;
    uint32_t zero;
};

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void broken_message(struct verbs_conn *conn, const char *what) {
    if (!conn->is_incoming) {
        char name[VERBS_TEXT];
        struct verbs *verbs = verbs_of_thread(conn->thread);
        verbs_failure_note(verbs, DM_ERR_CORRUPT, "SEND to %s: %s",
                           verbs_node_name(verbs, conn->node, name, sizeof(name)), what);
    }
    verbs_conn_break(conn, DM_ERR_IO);
}

/* ---- the called side -------------------------------------------------------------------------------------------- */

static void reply_send(struct rt_job *rt_job, struct dm_ctx *handler, int rc) {
    (void)handler;
    struct verbs_job *job = (struct verbs_job *)rt_job;
    struct verbs_conn *conn = job->conn;
    struct verbs_reply *reply = job->reply;
    struct response_head head = {.slot = job->caller_slot, .len = rc < 0 ? 0 : job->resp_len, .rc = rc};
    if (conn->failure < 0) {
        reply->is_busy = false;
        return; /* the caller is gone */
    }
    uint32_t number = (uint32_t)(reply - conn->replies);
    memcpy(conn->out + (size_t)number * VERBS_MESSAGE, &head, sizeof(head));
    /* The receive buffer first, so that it is posted when the caller's slot is free again. */
    if (verbs_receive_post(verbs_of_thread(conn->thread), conn, &job->received) < 0 ||
        verbs_message_send(conn, number, VERBS_HEAD + head.len, &reply->sent) < 0) {
        broken_message(conn, "the response cannot be posted");
    }
}

static struct verbs_reply *reply_take(struct verbs_conn *conn) {
    for (uint32_t i = 0; i < 2 * conn->slots; i++) {
        if (!conn->replies[i].is_busy) {
            conn->replies[i].is_busy = true;
            return &conn->replies[i];
        }
    }
    return NULL;
}

/* Gives the request to a handler context; false if it has to wait for a response buffer. */
static bool job_serve(struct verbs_job *job) {
    struct verbs_conn *conn = job->conn;
    if (conn->failure < 0) {
        return true;
    }
    if (verbs_replies_open(conn) < 0) {
        verbs_conn_break(conn, DM_ERR_NO_MEMORY);
        return true;
    }
    job->reply = reply_take(conn);
    if (!job->reply) {
        return false;
    }
    job->job.resp = conn->out + (size_t)(job->reply - conn->replies) * VERBS_MESSAGE + VERBS_HEAD;
    if (job->job.method && job->job.method->handler) {
        rt_serve(&conn->thread->rt, &job->job);
    } else {
        job->resp_len = 0;
        reply_send(&job->job, NULL, DM_ERR_ADDRESS);
    }
    return true;
}

void verbs_backlog_serve(struct verbs_thread *thread) {
    while (thread->backlog && rt_can_serve(&thread->rt)) {
        struct verbs_job *job = thread->backlog;
        if (!job_serve(job)) {
            return; /* a response that completes frees a buffer */
        }
        thread->backlog = job->next;
    }
}

static void request_received(struct verbs_conn *conn, uint32_t number, uint32_t bytes) {
    struct verbs_thread *thread = conn->thread;
    struct dm_node_state *node = &thread->rt.base.fabric->nodes[thread->rt.base.node];
    struct verbs_job *job = &conn->jobs[number];
    struct request_head head;
    const unsigned char *message = conn->in + (size_t)number * VERBS_MESSAGE;
    memcpy(&head, message, sizeof(head));
    if (bytes < VERBS_HEAD || head.len != bytes - VERBS_HEAD || head.capacity > DM_CALL_MAX ||
        head.slot >= conn->slots) {
        broken_message(conn, "malformed request");
        return;
    }
    job->job = (struct rt_job){.method = head.method <= DM_METHOD_MAX ? &node->methods[head.method] : NULL,
                               .req = message + VERBS_HEAD,
                               .req_len = head.len,
                               .resp_len = &job->resp_len,
                               .answer = reply_send};
    job->caller_slot = head.slot;
    job->resp_len = head.capacity;
    job->next = NULL;
    *(thread->backlog ? &thread->backlog_tail->next : &thread->backlog) = job;
    thread->backlog_tail = job;
    verbs_backlog_serve(thread);
}

/* ---- the caller's side ------------------------------------------------------------------------------------------ */

/* With order=alone the context whose turn it is may wait behind others for a slot. One of those that was woken alone
 * would wait for its turn, and nothing would wake the first one. */
static void slot_free(struct verbs_conn *conn, struct verbs_call *call) {
    if (call->is_sent && !call->ctx) {
        call->is_taken = false;
        verbs_wake_waiters(conn, &conn->slot_waiters, verbs_of_thread(conn->thread)->posts_alone);
    }
}

static void response_received(struct verbs_conn *conn, const struct verbs_tag *tag, uint32_t bytes) {
    const unsigned char *message = conn->in + (size_t)tag->slot * VERBS_MESSAGE;
    struct response_head head;
    memcpy(&head, message, sizeof(head));
    struct verbs_call *call = bytes >= VERBS_HEAD && head.slot < conn->slots ? &conn->calls[head.slot] : NULL;
    if (!call || !call->ctx || call->is_answered || head.len != bytes - VERBS_HEAD || head.len > call->capacity) {
        broken_message(conn, "malformed response");
        return;
    }
    if (head.len > 0) {
        memcpy(call->resp, message + VERBS_HEAD, head.len);
    }
    call->len = head.len;
    if (verbs_receive_post(verbs_of_thread(conn->thread), conn, tag) < 0) {
        broken_message(conn, "no buffer for the next response");
        return;
    }
    verbs_call_answered(conn, call, head.rc);
}

/* Waits for a free slot and for space in the send queue. */
static int slot_take(struct verbs_ctx *ctx, struct verbs_conn *conn, struct verbs_call **call) {
    for (;;) {
        if (conn->failure < 0) {
            return conn->failure;
        }
        if (ctx->rt.base.fabric->stop) {
            verbs_line_leave(ctx, conn);
            verbs_wake_waiters(conn, &conn->space, true);        /* it may have been first */
            verbs_wake_waiters(conn, &conn->slot_waiters, true); /* it will not free the slot that it was woken for */
            return DM_ERR_STOPPED;
        }
        uint32_t i = 0;
        while (i < conn->slots && conn->calls[i].is_taken) {
            i++;
        }
        if (i < conn->slots && verbs_has_space(conn, 1) && !verbs_is_beside(ctx, conn, true)) {
            *call = &conn->calls[i];
            return 0;
        }
        verbs_wait_in(ctx, i < conn->slots ? &conn->space : &conn->slot_waiters);
    }
}

static int request_send(struct verbs_conn *conn, uint32_t slot, unsigned method, const void *req, uint32_t req_len) {
    struct request_head head = {.method = method, .len = req_len, .capacity = conn->calls[slot].capacity, .slot = slot};
    unsigned char *message = conn->out + (size_t)slot * VERBS_MESSAGE;
    memcpy(message, &head, sizeof(head));
    if (req_len > 0) {
        memcpy(message + VERBS_HEAD, req, req_len);
    }
    return verbs_message_send(conn, slot, VERBS_HEAD + req_len, &conn->calls[slot].sent);
}

int verbs_call(struct dm_ctx *base, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
               uint32_t *resp_len) {
    struct verbs_ctx *ctx = (struct verbs_ctx *)base;
    struct verbs_thread *thread = verbs_thread_of(ctx);
    struct verbs_conn *conn = thread->conns ? thread->conns[node] : NULL;
    struct verbs_call *call = NULL;
    if (!conn) {
        DM_TRY(verbs_connect(thread, node, &conn));
    }
    if (!conn->calls && verbs_caller_open(conn) < 0) {
        verbs_conn_break(conn, DM_ERR_NO_MEMORY);
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(slot_take(ctx, conn, &call));
    call->ctx = ctx;
    call->is_taken = true;
    call->is_sent = call->is_answered = false;
    call->resp = resp;
    call->capacity = *resp_len;
    call->begin_ns = rt_clock_ns();
    conn->calls_open++;
    thread->outstanding++;
    if (request_send(conn, (uint32_t)(call - conn->calls), method, req, req_len) < 0) {
        broken_message(conn, "the request cannot be posted");
    }
    while (!call->is_answered) {
        rt_suspend(&ctx->rt, RT_AWAY);
    }
    int rc = call->rc;
    *resp_len = call->len;
    call->ctx = NULL;
    slot_free(conn, call);
    return rc;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

void verbs_call_sent(struct verbs_conn *conn, struct verbs_tag *tag) {
    if (conn->is_incoming) {
        conn->replies[tag->slot].is_busy = false;
        return;
    }
    struct verbs_call *call = &conn->calls[tag->slot];
    call->is_sent = true;
    slot_free(conn, call);
}

void verbs_received(struct verbs_conn *conn, const struct verbs_tag *tag, uint32_t bytes) {
    if (conn->is_incoming) {
        request_received(conn, tag->slot, bytes);
    } else {
        response_received(conn, tag, bytes);
    }
}

void verbs_calls_postpone(struct verbs_conn *conn, uint64_t now_ns) {
    for (uint32_t i = 0; conn->calls_open > 0 && i < conn->slots; i++) {
        conn->calls[i].begin_ns = now_ns;
    }
}

void verbs_calls_check(struct verbs_conn *conn, uint64_t now_ns) {
    struct verbs *verbs = verbs_of_thread(conn->thread);
    for (uint32_t i = 0; conn->calls_open > 0 && i < conn->slots; i++) {
        const struct verbs_call *call = &conn->calls[i];
        if (call->ctx && !call->is_answered && now_ns - call->begin_ns > verbs->options->call_timeout_ns) {
            char name[VERBS_TEXT];
            verbs_failure_note(verbs, DM_ERR_PEER, "call to %s: no answer within %.1f s",
                               verbs_node_name(verbs, conn->node, name, sizeof(name)),
                               (double)verbs->options->call_timeout_ns * 1e-9);
            verbs_conn_break(conn, DM_ERR_PEER);
            return;
        }
    }
}
