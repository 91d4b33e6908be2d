/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of one connection: its send queue, the contexts that wait for it, and how all of them learn that it failed.
 */
#include <string.h>

#include "transport/verbs/verbs.h"

/* ---- waiting contexts ------------------------------------------------------------------------------------------- */

int verbs_wait_in(struct verbs_ctx *ctx, struct verbs_waiters *waiters) {
    ctx->next = NULL;
    *(waiters->head ? &waiters->tail->next : &waiters->head) = ctx;
    waiters->tail = ctx;
    return rt_suspend(&ctx->rt, RT_AWAY);
}

void verbs_wake_waiters(struct verbs_conn *conn, struct verbs_waiters *waiters, bool all) {
    while (waiters->head) {
        struct verbs_ctx *ctx = waiters->head;
        waiters->head = ctx->next;
        rt_ready(&conn->thread->rt, &ctx->rt, 0);
        if (!all) {
            return;
        }
    }
}

static void line_join(struct verbs_line *line, struct verbs_ctx *ctx) {
    ctx->is_in_line = true;
    ctx->line_next = NULL;
    *(line->head ? &line->tail->line_next : &line->head) = ctx;
    line->tail = ctx;
}

void verbs_line_leave(struct verbs_ctx *ctx, struct verbs_conn *conn) {
    struct verbs_line *line = &conn->line;
    struct verbs_ctx *before = NULL;
    if (!ctx->is_in_line) {
        return;
    }
    for (struct verbs_ctx *at = line->head; at != ctx; at = at->line_next) {
        before = at;
    }
    *(before ? &before->line_next : &line->head) = ctx->line_next;
    line->tail = line->tail == ctx ? before : line->tail;
    ctx->is_in_line = false;
}

bool verbs_is_beside(struct verbs_ctx *ctx, struct verbs_conn *conn, bool is_change) {
    if (!verbs_of_thread(conn->thread)->posts_alone) {
        return false;
    }
    bool is_first = !conn->line.head || conn->line.head == ctx;
    if (is_first && (is_change ? conn->posted : conn->alone_upto) <= conn->done) {
        verbs_line_leave(ctx, conn);
        return false;
    }
    if (!ctx->is_in_line) {
        line_join(&conn->line, ctx);
    }
    return true;
}

void verbs_batch_done(struct verbs_conn *conn, struct verbs_ctx *ctx, int code) {
    ctx->failure = code < 0 ? code : ctx->failure;
    if (--ctx->waiting == 0 && ctx->rt.wait == RT_AWAY) {
        rt_ready(&conn->thread->rt, &ctx->rt, 0);
    }
}

void verbs_call_answered(struct verbs_conn *conn, struct verbs_call *call, int rc) {
    call->is_answered = true;
    call->rc = rc;
    conn->calls_open--;
    conn->thread->outstanding--;
    if (call->ctx->rt.wait == RT_AWAY) {
        rt_ready(&conn->thread->rt, &call->ctx->rt, 0);
    }
}

/* ---- failure ---------------------------------------------------------------------------------------------------- */

/* The next commit of contexts that sent unsignalled work on this connection returns the failure. */
static void fail_unsignalled(const struct verbs_conn *conn, int code) {
    for (struct rt_ctx *at = conn->thread->rt.contexts; at; at = at->thread_next) {
        struct verbs_ctx *ctx = (struct verbs_ctx *)at;
        if (ctx->async_nodes[conn->node / 64] >> conn->node % 64 & 1) {
            at->base.pending_error = code;
        }
    }
}

static void calls_break(struct verbs_conn *conn, int code) {
    for (uint32_t i = 0; conn->calls && i < conn->slots; i++) {
        struct verbs_call *call = &conn->calls[i];
        if (call->ctx && !call->is_answered) {
            call->len = 0;
            verbs_call_answered(conn, call, code);
        }
    }
    verbs_wake_waiters(conn, &conn->slot_waiters, true);
}

void verbs_conn_break(struct verbs_conn *conn, int code) {
    if (conn->failure < 0) {
        return;
    }
    conn->failure = code;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE); /* the device touches no buffer any more */
    for (struct verbs_tag *tag = conn->head, *next; tag; tag = next) {
        next = tag->next;
        conn->thread->outstanding--;
        if (tag->kind == VERBS_BATCH) {
            verbs_batch_done(conn, tag->ctx, code);
        }
    }
    conn->head = NULL;
    conn->held = NULL;
    if (!conn->is_incoming) {
        fail_unsignalled(conn, code);
    }
    calls_break(conn, code);
    while (conn->line.head) {
        verbs_line_leave(conn->line.head, conn);
    }
    verbs_wake_waiters(conn, &conn->space, true);
}

/* ---- the send queue --------------------------------------------------------------------------------------------- */

void verbs_tag_push(struct verbs_conn *conn, struct verbs_tag *tag, uint32_t count) {
    conn->posted += count;
    conn->unsignalled = 0;
    conn->ring_signalled = conn->ring_taken;
    tag->upto = conn->posted;
    tag->ring_upto = conn->ring_taken;
    tag->next = NULL;
    *(conn->head ? &conn->tail->next : &conn->head) = tag;
    conn->tail = tag;
    conn->thread->outstanding++;
}

void verbs_ring_doorbell(struct verbs_conn *conn) {
    struct ibv_send_wr *first = conn->held, *bad = NULL;
    if (!first) {
        return;
    }
    conn->held = NULL;
    conn->thread->doorbells++;
    int failed = conn->posts_masked ? verbs_masked_post(conn, first) : ibv_post_send(conn->qp, first, &bad);
    if (dm_unlikely(failed)) {
        char name[VERBS_TEXT];
        struct verbs *verbs = verbs_of_thread(conn->thread);
        verbs_failure_note(verbs, DM_ERR_IO, "posting to %s: %s",
                           verbs_node_name(verbs, conn->node, name, sizeof(name)), strerror(failed));
        verbs_conn_break(conn, DM_ERR_IO);
    }
}

void verbs_ring_doorbells(struct verbs_thread *thread) {
    for (struct verbs_conn *conn = thread->held, *next; conn; conn = next) {
        next = conn->held_next;
        conn->is_held = false;
        verbs_ring_doorbell(conn);
    }
    thread->held = NULL;
    thread->wrs_used = thread->batches_held = 0;
}
