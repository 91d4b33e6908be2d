/* SPDX-License-Identifier: Apache-2.0
 *
 * Connection requests that come in through the RDMA connection manager. A request names its control connection,
 * proves that it has the run's token and states what it asks for in its private data; a request without the proof is
 * rejected before anything is made for it.
 */
#include <string.h>

#include <rdma/rdma_cma.h>

#include "transport/verbs/verbs.h"

/* The content of an event that has been acknowledged. */
struct request {
    struct rdma_cm_id *id;
    struct wire_message message;
    uint8_t resources, depth; /* reads at once: incoming, outgoing */
    bool is_known;
};

/* The control connection that the request names proves that it belongs to this run. */
static bool has_proof(const struct verbs_control *control, const struct wire_message *message) {
    const struct verbs_incoming *incoming = NULL;
    uint8_t proof[WIRE_PROOF];
    for (unsigned i = 0; i < control->arrivals.count; i++) {
        const struct verbs_incoming *at = &control->arrivals.items[i];
        incoming = at->is_known && at->session == message->cm_request.session ? at : incoming;
    }
    return incoming && incoming->node == message->cm_request.node &&
           verbs_proof_request(control->token, &incoming->nonces, message, proof) == 0 &&
           verbs_wire_proof_equal(proof, message->cm_request.proof);
}

static bool is_welcome(struct verbs *verbs, const struct request *request) {
    struct verbs_control *control = verbs->control;
    const struct dm_fabric *fabric = verbs->rt.fabric;
    unsigned nodes = dm_first_cn(&fabric->topology);
    return request->is_known && request->message.kind == WIRE_CM_REQUEST && request->message.cm_request.node < nodes &&
           has_proof(control, &request->message) && verbs->hosted[request->message.cm_request.node] &&
           request->message.cm_request.caller < fabric->node_count &&
           control->cm.ends++ < nodes * verbs_ends_max(fabric);
}

static void request_answer(struct verbs *verbs, const struct request *request) {
    struct dm_err err = {0};
    bool is_accepted = false;
    if (is_welcome(verbs, request)) {
        const struct verbs_cm_request wanted = {.id = request->id,
                                                .caller = request->message.cm_request.caller,
                                                .slots = request->message.cm_request.slots,
                                                .mtu = request->message.cm_request.mtu,
                                                .resources = request->resources,
                                                .depth = request->depth};
        int rc = verbs_accept_cm(verbs, request->message.cm_request.node, &wanted, &err);
        is_accepted = rc == 0;
        if (rc < 0) {
            verbs_failure_note(verbs, rc, "accepting a connection from node %u: %s", wanted.caller, err.text);
        }
    }
    if (!is_accepted) {
        rdma_reject(request->id, NULL, 0);
        rdma_destroy_id(request->id);
    }
}

void verbs_cm_take(struct verbs *verbs) {
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(verbs->control->cm.incoming, &event) == 0) {
        const struct rdma_conn_param *param = &event->param.conn;
        struct request request = {
            .id = event->id, .resources = param->responder_resources, .depth = param->initiator_depth};
        enum rdma_cm_event_type kind = event->event;
        if (kind == RDMA_CM_EVENT_CONNECT_REQUEST && param->private_data_len >= WIRE_CM_REQUEST_BYTES) {
            request.is_known = verbs_wire_decode(param->private_data, WIRE_CM_REQUEST_BYTES, &request.message) == 0;
        }
        rdma_ack_cm_event(event); /* before this, what it names cannot be closed */
        if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) {
            request_answer(verbs, &request);
        } else if (kind == RDMA_CM_EVENT_DISCONNECTED) {
            rdma_disconnect(request.id);
        }
    }
}
