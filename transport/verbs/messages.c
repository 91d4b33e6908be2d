/* SPDX-License-Identifier: Apache-2.0
 *
 * The buffers of a connection's calls, and posting them: messages to be received, messages to be sent.
 */
#include <stdlib.h>

#include "transport/verbs/verbs.h"

int verbs_receive_post(const struct verbs *verbs, struct verbs_conn *conn, const struct verbs_tag *tag) {
    struct ibv_sge sge = {.addr = (uintptr_t)conn->in + (size_t)tag->slot * VERBS_MESSAGE, .length = VERBS_MESSAGE};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)tag | VERBS_RECEIVED, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    verbs_arena_key(verbs, conn->port, conn->in, VERBS_MESSAGE, &sge.lkey);
    return ibv_post_recv(conn->qp, &wr, &bad) == 0 ? 0 : DM_ERR_IO;
}

/* Sends message number `number` of the connection's own. */
int verbs_message_send(struct verbs_conn *conn, uint32_t number, uint32_t bytes, struct verbs_tag *tag) {
    const struct verbs *verbs = verbs_of_thread(conn->thread);
    struct ibv_sge sge = {.addr = (uintptr_t)conn->out + (size_t)number * VERBS_MESSAGE, .length = bytes};
    struct ibv_send_wr wr = {.wr_id = (uintptr_t)tag | VERBS_SENT,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad = NULL;
    verbs_arena_key(verbs, conn->port, conn->out, VERBS_MESSAGE, &sge.lkey);
    if (bytes <= conn->inline_bytes) {
        wr.send_flags |= IBV_SEND_INLINE;
    }
    if (conn->loose_upto > conn->done) {
        wr.send_flags |= IBV_SEND_FENCE;
        conn->loose_upto = 0;
        conn->thread->fences++;
    }
    verbs_ring_doorbell(conn); /* in the order in which they are counted */
    tag->verb = VERBS_SENT;
    verbs_tag_push(conn, tag, 1);
    conn->alone_upto = conn->posted;
    conn->thread->doorbells++;
    return ibv_post_send(conn->qp, &wr, &bad) == 0 ? 0 : DM_ERR_IO;
}

int verbs_calls_open(struct verbs *verbs, struct verbs_conn *conn) {
    if (!conn->is_incoming) {
        return 0;
    }
    conn->jobs = calloc(conn->slots, sizeof(*conn->jobs));
    conn->replies = calloc((size_t)2 * conn->slots, sizeof(*conn->replies));
    conn->in = verbs_arena_alloc(verbs, (size_t)conn->slots * VERBS_MESSAGE);
    if (!conn->jobs || !conn->replies || !conn->in) {
        return DM_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < conn->slots; i++) {
        conn->jobs[i].conn = conn;
        conn->jobs[i].received = (struct verbs_tag){.kind = VERBS_RECEIVE, .conn = conn, .slot = i};
    }
    for (uint32_t i = 0; i < 2 * conn->slots; i++) {
        conn->replies[i].sent = (struct verbs_tag){.kind = VERBS_SEND, .conn = conn, .slot = i};
    }
    return 0;
}

int verbs_receives_post(struct verbs *verbs, struct verbs_conn *conn) {
    for (uint32_t i = 0; conn->is_incoming && i < conn->slots; i++) {
        DM_TRY(verbs_receive_post(verbs, conn, &conn->jobs[i].received));
    }
    return 0;
}

int verbs_replies_open(struct verbs_conn *conn) {
    if (conn->out) {
        return 0;
    }
    conn->out = verbs_arena_alloc(verbs_of_thread(conn->thread), (size_t)2 * conn->slots * VERBS_MESSAGE);
    return conn->out ? 0 : DM_ERR_NO_MEMORY;
}

int verbs_caller_open(struct verbs_conn *conn) {
    struct verbs *verbs = verbs_of_thread(conn->thread);
    conn->calls = calloc(conn->slots, sizeof(*conn->calls));
    conn->receives = calloc(conn->slots, sizeof(*conn->receives));
    conn->out = verbs_arena_alloc(verbs, (size_t)conn->slots * VERBS_MESSAGE);
    conn->in = verbs_arena_alloc(verbs, (size_t)conn->slots * VERBS_MESSAGE);
    if (!conn->calls || !conn->receives || !conn->out || !conn->in) {
        return DM_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < conn->slots; i++) {
        conn->calls[i].sent = (struct verbs_tag){.kind = VERBS_SEND, .conn = conn, .slot = i};
        conn->receives[i] = (struct verbs_tag){.kind = VERBS_RECEIVE, .conn = conn, .slot = i};
        DM_TRY(verbs_receive_post(verbs, conn, &conn->receives[i]));
    }
    return 0;
}

void verbs_calls_close(struct verbs_conn *conn) {
    free(conn->calls);
    free(conn->receives);
    free(conn->jobs);
    free(conn->replies);
}
