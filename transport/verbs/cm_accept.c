/* SPDX-License-Identifier: Apache-2.0
 *
 * Connection requests that come in through the RDMA connection manager. A request carries the run's token and what it
 * asks for in its private data; a request without the token is rejected before anything is made for it.
 */
#include <string.h>

#include <rdma/rdma_cma.h>

#include "transport/verbs/verbs.h"

/* What came with an event that has been given back. */
struct request {
    struct rdma_cm_id *id;
    struct wire_message knock;
    uint8_t resources, depth; /* reads at once: that come, that go */
    bool is_known;
};

static bool is_welcome(struct verbs *verbs, const struct request *request) {
    struct verbs_peer *peer = verbs->peer;
    const struct dm_fabric *fabric = verbs->rt.fabric;
    unsigned nodes = dm_first_cn(&fabric->topology);
    return request->is_known && request->knock.kind == WIRE_KNOCK &&
           wire_token_equal(request->knock.knock.token, peer->token) && request->knock.knock.fabric == peer->fabric &&
           request->knock.knock.node < nodes && verbs->hosted[request->knock.knock.node] &&
           request->knock.knock.caller < fabric->node_count && peer->cm.ends++ < nodes * verbs_ends_max(fabric);
}

static void request_answer(struct verbs *verbs, const struct request *request) {
    struct dm_err err = {0};
    bool is_accepted = false;
    if (is_welcome(verbs, request)) {
        const struct verbs_cm_request wanted = {.id = request->id,
                                                .caller = request->knock.knock.caller,
                                                .slots = request->knock.knock.slots,
                                                .resources = request->resources,
                                                .depth = request->depth};
        int rc = verbs_accept_cm(verbs, request->knock.knock.node, &wanted, &err);
        is_accepted = rc == 0;
        if (rc < 0) {
            verbs_failure_note(verbs, rc, "taking in a connection from node %u: %s", wanted.caller, err.text);
        }
    }
    if (!is_accepted) {
        rdma_reject(request->id, NULL, 0);
        rdma_destroy_id(request->id);
    }
}

void verbs_cm_take(struct verbs *verbs) {
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(verbs->peer->cm.incoming, &event) == 0) {
        const struct rdma_conn_param *param = &event->param.conn;
        struct request request = {
            .id = event->id, .resources = param->responder_resources, .depth = param->initiator_depth};
        enum rdma_cm_event_type kind = event->event;
        if (kind == RDMA_CM_EVENT_CONNECT_REQUEST && param->private_data_len >= WIRE_KNOCK_BYTES) {
            request.is_known = wire_decode(param->private_data, WIRE_KNOCK_BYTES, &request.knock) == 0;
        }
        rdma_ack_cm_event(event); /* what it names cannot be closed before */
        if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) {
            request_answer(verbs, &request);
        } else if (kind == RDMA_CM_EVENT_DISCONNECTED) {
            rdma_disconnect(request.id);
        }
    }
}
