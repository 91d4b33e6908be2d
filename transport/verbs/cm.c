/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting queue pairs of two processes through the RDMA connection manager (librdmacm): it finds the route between
 * two IP addresses and carries the queue pairs' numbers. The queue pairs are created by this transport. A process that
 * has memory listens on its device's address, which callers learn at the control port. A request names its control
 * connection, proves that it has the run's token and states what it asks for in its private data; without the proof it
 * is rejected, and nothing is made for it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "transport/verbs/verbs.h"

enum { BACKLOG = 128, NS_PER_MS = 1000000 };

/* ---- addresses -------------------------------------------------------------------------------------------------- */

/* A GID of RoCE version 2 is an IP address; a link-local one has no route. */
static bool address_of(const uint8_t gid[16], uint16_t port, struct sockaddr_storage *address) {
    static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
    memset(address, 0, sizeof(*address));
    if (memcmp(gid, v4_prefix, sizeof(v4_prefix)) == 0) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)address;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, gid + sizeof(v4_prefix), sizeof(v4->sin_addr));
        return true;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    memcpy(&v6->sin6_addr, gid, sizeof(v6->sin6_addr));
    return gid[0] != 0xfe && gid[0] != 0;
}

static bool has_address(const struct verbs_port *port) {
    struct sockaddr_storage ignored;
    return port->is_roce && address_of(port->gid.raw, 0, &ignored);
}

static bool is_on(const struct rdma_cm_id *id, const struct verbs_port *port) {
    return id->verbs && strcmp(ibv_get_device_name(id->verbs->device), port->name) == 0;
}

static struct rdma_event_channel *channel_open(void) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (channel && fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) < 0) {
        rdma_destroy_event_channel(channel);
        channel = NULL;
    }
    return channel;
}

/* ---- queue pairs ------------------------------------------------------------------------------------------------ */

/* The manager knows the route and both queue pair numbers; the timeouts come from the options. 0 or an errno. */
static int qp_move(const struct verbs *verbs, struct verbs_conn *conn, enum ibv_qp_state state, uint8_t their_mtu) {
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask = 0;
    if (rdma_init_qp_attr(conn->cm_id, &attr, &mask) != 0) {
        return errno;
    }
    if (state == IBV_QPS_RTR) {
        attr.path_mtu = verbs_mtu_of(conn->port, their_mtu, attr.path_mtu);
        attr.min_rnr_timer = VERBS_RNR_TIMER;
        attr.ah_attr.sl = verbs->options->sl > 0 ? (uint8_t)verbs->options->sl : attr.ah_attr.sl;
    } else {
        attr.timeout = verbs_ack_timeout(verbs, conn->port);
        attr.retry_cnt = (uint8_t)verbs->options->retries;
        attr.rnr_retry = VERBS_RNR_RETRIES;
    }
    return state == IBV_QPS_RTR ? verbs_qp_ready(conn->qp, &attr, mask) : ibv_modify_qp(conn->qp, &attr, mask);
}

/* The manager takes the path's MTU from the caller's interface alone. */
static int conn_move(struct verbs *verbs, struct verbs_conn *conn, uint8_t their_mtu) {
    int failed = verbs_receives_post(verbs, conn) < 0 ? ENOMEM : 0;
    failed = failed ? failed : qp_move(verbs, conn, IBV_QPS_RTR, their_mtu);
    return failed ? failed : qp_move(verbs, conn, IBV_QPS_RTS, their_mtu);
}

/* ---- the called side -------------------------------------------------------------------------------------------- */

int verbs_cm_listen(struct verbs *verbs, struct dm_err *err) {
    struct verbs_cm *cm = &verbs->control->cm;
    const struct verbs_port *port = verbs_port_of(verbs, 0);
    struct sockaddr_storage address;
    if (verbs->options->connect == VERBS_BY_TCP || verbs->control->processes->listener < 0) {
        return 0;
    }
    bool is_open = has_address(port) && address_of(port->gid.raw, 0, &address) && (cm->incoming = channel_open()) &&
                   rdma_create_id(cm->incoming, &cm->listener, NULL, RDMA_PS_TCP) == 0 &&
                   rdma_bind_addr(cm->listener, (struct sockaddr *)&address) == 0 && is_on(cm->listener, port) &&
                   rdma_listen(cm->listener, BACKLOG) == 0;
    if (is_open) {
        cm->port = ntohs(rdma_get_src_port(cm->listener));
        return 0;
    }
    return verbs->options->connect == VERBS_BY_CM
               ? dm_fail(
                     err, DM_ERR_UNSUPPORTED,
                     "verbs: device %s: the connection manager does not listen on its address (%s); try connect=tcp",
                     port->name, has_address(port) ? strerror(errno) : "it has no IP address")
               : 0;
}

void verbs_cm_offer(struct verbs *verbs, struct verbs_cm_address *to_address) {
    to_address->port = verbs->control->cm.port;
    memcpy(to_address->gid, verbs_port_of(verbs, 0)->gid.raw, sizeof(to_address->gid));
}

int verbs_cm_join(struct verbs *verbs, struct verbs_conn *conn, const struct verbs_cm_request *wanted,
                  struct dm_err *err) {
    uint8_t reads = verbs_reads_at_once(conn->port);
    struct rdma_conn_param param = {
        .responder_resources = wanted->resources < reads ? wanted->resources : reads,
        .initiator_depth = wanted->depth < reads ? wanted->depth : reads,
        .rnr_retry_count = VERBS_RNR_RETRIES,
        .qp_num = conn->qp->qp_num,
    };
    int failed = is_on(wanted->id, conn->port) ? 0 : ENODEV;
    conn->cm_id = wanted->id;
    failed = failed ? failed : conn_move(verbs, conn, wanted->mtu);
    failed = failed ? failed : rdma_accept(wanted->id, &param) == 0 ? 0 : errno;
    if (failed) {
        conn->cm_id = NULL;
        return dm_fail(err, DM_ERR_IO, "device %s cannot accept: %s", conn->port->name, strerror(failed));
    }
    return 0;
}

int verbs_cm_fd(const struct verbs *verbs) {
    return verbs->control->cm.port > 0 ? verbs->control->cm.incoming->fd : -1;
}

/* ---- the caller's side ------------------------------------------------------------------------------------------ */

/* Waits for the manager's next event of this connection; events of other connections are dropped. The limit is that of
 * a silent host, not of a verb: Linux sends a lost request or response again after some 6 s only, and the second one
 * may be lost, too. */
static int event_wait(struct verbs *verbs, struct rdma_cm_id *id, enum rdma_cm_event_type wanted, struct dm_err *err) {
    uint64_t end_ns = rt_clock_ns() + verbs_silence_ns(verbs);
    for (uint64_t now_ns = rt_clock_ns(); now_ns < end_ns; now_ns = rt_clock_ns()) {
        struct pollfd fd = {.fd = id->channel->fd, .events = POLLIN};
        struct rdma_cm_event *event;
        if (rdma_get_cm_event(id->channel, &event) != 0) {
            poll(&fd, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1);
            continue;
        }
        bool is_ours = event->id == id;
        enum rdma_cm_event_type kind = event->event;
        int status = event->status;
        rdma_ack_cm_event(event);
        if (is_ours && kind != wanted) {
            return dm_fail(err, DM_ERR_PEER, "the connection manager reports %s (%d)", rdma_event_str(kind), status);
        }
        if (is_ours) {
            return 0;
        }
    }
    return dm_fail(err, DM_ERR_PEER, "the connection manager got no answer");
}

/* Finds the route from this process's address to the other's. */
static int route_find(struct verbs *verbs, const struct verbs_conn *conn, const struct verbs_cm_address *to_address,
                      struct dm_err *err) {
    struct sockaddr_storage from, to;
    struct rdma_cm_id *id = conn->cm_id;
    int limit_ms = (int)(verbs->options->timeout_ns / NS_PER_MS);
    uint8_t traffic_class = (uint8_t)verbs->options->traffic_class;
    if (!address_of(conn->port->gid.raw, 0, &from) || !address_of(to_address->gid, to_address->port, &to) ||
        (traffic_class > 0 && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, 1) != 0) ||
        rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, limit_ms) != 0) {
        return dm_fail(err, DM_ERR_PEER, "the connection manager does not take the address: %s", strerror(errno));
    }
    DM_TRY(event_wait(verbs, id, RDMA_CM_EVENT_ADDR_RESOLVED, err));
    if (!is_on(id, conn->port)) {
        return dm_fail(err, DM_ERR_PEER, "the route to it does not begin at device %s", conn->port->name);
    }
    if (rdma_resolve_route(id, limit_ms) != 0) {
        return dm_fail(err, DM_ERR_PEER, "the connection manager looks for no route: %s", strerror(errno));
    }
    return event_wait(verbs, id, RDMA_CM_EVENT_ROUTE_RESOLVED, err);
}

static int request_send(struct verbs *verbs, struct verbs_conn *conn, struct dm_err *err) {
    const struct verbs_control *control = verbs->control;
    const struct verbs_peer *peer = &control->peers[conn->node];
    struct wire_message message = {.kind = WIRE_CM_REQUEST};
    unsigned char bytes[WIRE_MAX];
    message.cm_request.session = peer->session;
    message.cm_request.node = conn->node;
    message.cm_request.caller = conn->thread->rt.base.node;
    message.cm_request.slots = conn->slots;
    message.cm_request.mtu = (uint8_t)conn->port->mtu;
    if (verbs_proof_request(control->token, &peer->nonces, &message, message.cm_request.proof) < 0) {
        return dm_fail(err, DM_ERR_IO, "libcrypto computes no hash");
    }
    verbs_wire_encode(&message, bytes);
    struct rdma_conn_param param = {
        .private_data = bytes + 4, /* without the length word: the length is a member here */
        .private_data_len = WIRE_CM_REQUEST_BYTES,
        .responder_resources = verbs_reads_at_once(conn->port),
        .initiator_depth = verbs_reads_at_once(conn->port),
        .retry_count = (uint8_t)verbs->options->retries,
        .rnr_retry_count = VERBS_RNR_RETRIES,
        .qp_num = conn->qp->qp_num,
    };
    if (rdma_connect(conn->cm_id, &param) != 0) {
        return dm_fail(err, DM_ERR_PEER, "the connection manager does not connect: %s", strerror(errno));
    }
    DM_TRY(event_wait(verbs, conn->cm_id, RDMA_CM_EVENT_CONNECT_RESPONSE, err));
    int failed = conn_move(verbs, conn, verbs->facts[conn->node].mtu);
    failed = failed ? failed : rdma_establish(conn->cm_id) == 0 ? 0 : errno;
    return failed ? dm_fail(err, DM_ERR_IO, "device %s cannot connect its queue pair: %s", conn->port->name,
                            strerror(failed))
                  : 0;
}

/* 0, or 1 if the connection manager cannot be used here. */
static int id_open(struct verbs *verbs, struct verbs_conn *conn, const struct verbs_cm_address *to_address) {
    struct verbs_cm *cm = &verbs->control->cm;
    if (verbs->options->connect == VERBS_BY_TCP || to_address->port == 0 || !has_address(conn->port)) {
        return 1;
    }
    cm->outgoing = cm->outgoing ? cm->outgoing : channel_open();
    return cm->outgoing && rdma_create_id(cm->outgoing, &conn->cm_id, NULL, RDMA_PS_TCP) == 0 ? 0 : 1;
}

int verbs_cm_connect(struct verbs *verbs, struct verbs_conn *conn, struct dm_err *err) {
    const struct verbs_cm_address *to_address = &verbs->control->peers[conn->node].cm_address;
    bool has_fallback = verbs->options->connect != VERBS_BY_CM;
    int rc = id_open(verbs, conn, to_address);
    if (rc > 0) {
        return has_fallback ? 1
                            : dm_fail(err, DM_ERR_UNSUPPORTED,
                                      "the connection manager needs an IP address at both devices; try connect=tcp");
    }
    rc = route_find(verbs, conn, to_address, err);
    if (rc == 0) {
        rc = request_send(verbs, conn, err);
        has_fallback = false;
    }
    if (rc < 0) {
        verbs_cm_leave(conn);
    }
    return rc < 0 && has_fallback ? 1 : rc;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

void verbs_cm_leave(struct verbs_conn *conn) {
    if (conn->cm_id) {
        rdma_destroy_id(conn->cm_id);
        conn->cm_id = NULL;
    }
}

void verbs_cm_close(struct verbs *verbs) {
    struct verbs_cm *cm = &verbs->control->cm;
    if (cm->listener) {
        rdma_destroy_id(cm->listener);
    }
    if (cm->incoming) {
        rdma_destroy_event_channel(cm->incoming);
    }
    if (cm->outgoing) {
        rdma_destroy_event_channel(cm->outgoing);
    }
}
