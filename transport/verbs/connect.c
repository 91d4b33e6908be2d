/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion queues of threads, and queue pairs between threads. Those of compute nodes are made before the measured
 * phase, others when first needed; after that only their own thread uses them.
 *
 * An end may be made for another thread to serve, so making one takes `connect_lock`. No thread waits for another
 * process while it holds that lock: the other process may be connecting to this one at the same time, and the thread
 * that answers it needs the lock. `handshake_lock` puts this process's own requests in order, since they share the
 * control connections and the connection manager's channel; the answering thread never takes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum { HANDLER_COMPLETIONS = 64 };

/* ---- queues of a thread ----------------------------------------------------------------------------------------- */

/* Completions that can be in the queue at once: of its own verbs, and of the calls that it serves. */
static int cq_entries(const struct verbs_thread *thread) {
    const struct dm_fabric *fabric = thread->rt.base.fabric;
    const struct verbs *verbs = verbs_of(fabric);
    uint64_t slots = verbs->options->call_slots, nodes = dm_first_cn(&fabric->topology);
    uint64_t contexts = fabric->topology.clients_per_thread + HANDLER_COMPLETIONS;
    uint64_t serving = verbs_ends_max(fabric) / fabric->nodes[thread->rt.base.node].thread_count + 1;
    uint64_t serving_nodes = nodes * fabric->topology.mn_cores, handler_slots = verbs->options->handler_slots;
    uint64_t entries = nodes * (contexts + VERBS_ASYNC_TAGS + 3 * slots) + serving * (4 * slots + 1) +
                       (serving_nodes + nodes) * 4 * handler_slots;
    uint64_t limit = (uint64_t)thread->port->attr.max_cqe;
    return (int)(entries < limit ? entries : limit);
}

/* A thread domain promises the device's driver that one thread alone posts, so that it needs no lock and gives the
 * thread a doorbell register of its own where it has some. Completion queues stay in the port's domain: polling writes
 * no register. */
static void domain_open(const struct verbs *verbs, struct verbs_thread *thread) {
    struct ibv_td_init_attr none = {0};
    struct verbs_port *port = thread->port;
    thread->td = verbs->options->thread_domains ? ibv_alloc_td(port->device, &none) : NULL;
    if (!thread->td) {
        return;
    }
    struct ibv_parent_domain_init_attr attr = {.pd = port->pd, .td = thread->td};
    thread->domain = ibv_alloc_parent_domain(port->device, &attr);
    if (!thread->domain) {
        ibv_dealloc_td(thread->td);
        thread->td = NULL;
    }
}

static int thread_queues(struct verbs *verbs, struct verbs_thread *thread, struct dm_err *err) {
    if (atomic_load(&thread->cq)) {
        return 0;
    }
    struct verbs_port *port = verbs_port_of(verbs, thread->rt.base.node);
    size_t nodes = verbs->rt.fabric->node_count;
    thread->port = port;
    thread->conns = calloc(nodes, sizeof(struct verbs_conn *));
    thread->chains = calloc(nodes, sizeof(*thread->chains));
    thread->touched = calloc(nodes, sizeof(*thread->touched));
    thread->wrs = calloc(VERBS_WRS, sizeof(*thread->wrs));
    thread->sges = calloc(VERBS_WRS, sizeof(*thread->sges));
    bool has_masked = verbs->rt.fabric->has_masked;
    thread->masks = has_masked ? calloc(VERBS_WRS, sizeof(*thread->masks)) : NULL;
    thread->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!thread->conns || !thread->chains || !thread->touched || !thread->wrs || !thread->sges ||
        (has_masked && !thread->masks) || thread->event < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory or file descriptor for a thread's queues; see `ulimit -n`");
    }
    thread->channel = ibv_create_comp_channel(port->device);
    if (!thread->channel || fcntl(thread->channel->fd, F_SETFL, fcntl(thread->channel->fd, F_GETFL) | O_NONBLOCK) < 0) {
        return dm_fail(err, DM_ERR_IO, "device %s cannot create a completion channel: %s", port->name, strerror(errno));
    }
    int entries = cq_entries(thread), vectors = port->device->num_comp_vectors;
    int vector = vectors > 1 ? (int)(verbs->next_vector++ % (unsigned)vectors) : 0;
    struct ibv_cq *cq = ibv_create_cq(port->device, entries, thread, thread->channel, vector);
    if (!cq) {
        return dm_fail(err, DM_ERR_IO, "device %s cannot create a completion queue of %d entries: %s", port->name,
                       entries, strerror(errno));
    }
    domain_open(verbs, thread);
    atomic_store(&thread->cq, cq);
    return 0;
}

/* ---- one end ---------------------------------------------------------------------------------------------------- */

static void conn_free(struct verbs_conn *conn) {
    verbs_cm_leave(conn);
    if (conn->qp) {
        ibv_destroy_qp(conn->qp);
    }
    verbs_calls_close(conn);
    free(conn);
}

static uint32_t depth_of(const struct verbs *verbs, const struct verbs_port *port) {
    uint64_t most = (uint64_t)port->attr.max_qp_wr;
    return (uint32_t)(verbs->options->depth < most ? verbs->options->depth : most);
}

static int conn_new(struct verbs *verbs, struct verbs_thread *thread, unsigned node, uint32_t slots, bool is_incoming,
                    struct verbs_conn **made, struct dm_err *err) {
    DM_TRY(thread_queues(verbs, thread, err));
    struct verbs_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a connection");
    }
    conn->thread = thread;
    conn->port = thread->port;
    conn->node = node;
    conn->is_incoming = is_incoming;
    conn->posts_masked = !is_incoming && verbs->rt.fabric->has_masked;
    conn->slots = slots;
    conn->depth = is_incoming ? 2 * slots + 2 : depth_of(verbs, thread->port);
    for (unsigned i = 0; i < VERBS_ASYNC_TAGS; i++) {
        conn->async[i] = (struct verbs_tag){.kind = VERBS_ASYNC, .conn = conn};
    }
    int rc = verbs_qp_open(verbs, conn, err);
    if (rc == 0 && verbs_calls_open(verbs, conn) < 0) {
        rc = dm_fail(err, DM_ERR_NO_MEMORY, "no registered memory for the calls of a connection");
    }
    if (rc < 0) {
        conn_free(conn);
        return rc;
    }
    *made = conn;
    return 0;
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

static int conn_join(struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *ours,
                     const struct verbs_end *theirs, struct dm_err *err) {
    if (conn->port->is_roce && !theirs->is_global) {
        return dm_fail(err, DM_ERR_INVALID, "device %s and the other end's are of different kinds (RoCE, InfiniBand)",
                       conn->port->name);
    }
    int failed = verbs_qp_receive(verbs, conn, theirs);
    if (!failed && verbs_receives_post(verbs, conn) < 0) {
        failed = ENOMEM;
    }
    failed = failed ? failed : verbs_qp_send(verbs, conn, ours, theirs);
    if (failed) {
        return dm_fail(err, DM_ERR_IO, "device %s cannot connect its queue pair: %s", conn->port->name,
                       strerror(failed));
    }
    return 0;
}

/* The threads of a node serve connections in turn. With the lock held. */
static struct verbs_thread *serving_thread(struct verbs *verbs, unsigned node) {
    const struct dm_node_state *state = &verbs->rt.fabric->nodes[node];
    return (struct verbs_thread *)state->threads[verbs->serve_next[node]++ % state->thread_count];
}

static int incoming_new(struct verbs *verbs, unsigned node, unsigned caller, uint32_t slots, struct verbs_conn **conn,
                        struct dm_err *err) {
    struct verbs_thread *thread = serving_thread(verbs, node);
    if (rt_thread_ensure(&thread->rt) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a thread");
    }
    return conn_new(verbs, thread, caller, slots, true, conn, err);
}

/* Hands the end to its thread once it is joined; releases it if joining failed. */
static int incoming_add(struct verbs_conn *conn, int rc) {
    struct verbs_thread *thread = conn->thread;
    if (rc < 0) {
        conn_free(conn);
        return rc;
    }
    conn->thread_next = atomic_load(&thread->incoming);
    atomic_store(&thread->incoming, conn);
    rt_thread_notify(&thread->rt); /* if it sleeps it does so without looking at this queue */
    return 0;
}

int verbs_accept_cm(struct verbs *verbs, unsigned node, const struct verbs_cm_request *wanted, struct dm_err *err) {
    struct verbs_conn *conn = NULL;
    pthread_mutex_lock(&verbs->connect_lock);
    int rc = incoming_new(verbs, node, wanted->caller, wanted->slots, &conn, err);
    rc = rc < 0 ? rc : incoming_add(conn, verbs_cm_join(verbs, conn, wanted, err));
    pthread_mutex_unlock(&verbs->connect_lock);
    return rc;
}

int verbs_accept(struct verbs *verbs, unsigned node, unsigned caller, const struct verbs_end *theirs,
                 struct verbs_end *ours, struct dm_err *err) {
    struct verbs_conn *conn = NULL;
    pthread_mutex_lock(&verbs->connect_lock);
    int rc = incoming_new(verbs, node, caller, theirs->slots, &conn, err);
    if (rc == 0) {
        verbs_qp_describe(conn, ours);
        rc = incoming_add(conn, conn_join(verbs, conn, ours, theirs, err));
    }
    pthread_mutex_unlock(&verbs->connect_lock);
    return rc;
}

static int connect_hosted(struct verbs *verbs, struct verbs_conn *conn, struct verbs_end *ours, struct dm_err *err) {
    struct verbs_end theirs;
    DM_TRY(verbs_accept(verbs, conn->node, conn->thread->rt.base.node, ours, &theirs, err));
    return conn_join(verbs, conn, ours, &theirs, err);
}

static int shake_hands(struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *ours, struct dm_err *err) {
    struct verbs_end theirs;
    DM_TRY(verbs_session_ensure(verbs, conn->node, err));
    int rc = verbs_cm_connect(verbs, conn, err);
    verbs->connect_kind = rc == 0 ? "cm" : "tcp";
    if (rc <= 0) {
        return rc;
    }
    DM_TRY(verbs_session_connect(verbs, conn->node, conn->thread->rt.base.node, ours, &theirs, err));
    return conn_join(verbs, conn, ours, &theirs, err);
}

static int connect_remote(struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *ours,
                          struct dm_err *err) {
    pthread_mutex_lock(&verbs->handshake_lock);
    int rc = shake_hands(verbs, conn, ours, err);
    pthread_mutex_unlock(&verbs->handshake_lock);
    return rc;
}

/* Handlers may call other nodes and hold their slot meanwhile: a cycle of them must not run out of slots. */
static uint32_t slots_of(const struct verbs *verbs, const struct verbs_thread *thread) {
    uint64_t slots = verbs->options->call_slots, handler_slots = verbs->options->handler_slots;
    bool is_cn = thread->rt.base.node >= dm_first_cn(&verbs->rt.fabric->topology);
    return (uint32_t)(is_cn || slots > handler_slots ? slots : handler_slots);
}

static int connect_node(struct verbs *verbs, struct verbs_thread *thread, unsigned node, struct verbs_conn **made,
                        struct dm_err *err) {
    struct verbs_conn *conn = NULL;
    struct verbs_end ours;
    pthread_mutex_lock(&verbs->connect_lock);
    int failed = conn_new(verbs, thread, node, slots_of(verbs, thread), false, &conn, err);
    pthread_mutex_unlock(&verbs->connect_lock);
    DM_TRY(failed);
    verbs_qp_describe(conn, &ours);
    int rc = verbs->hosted[node] ? connect_hosted(verbs, conn, &ours, err) : connect_remote(verbs, conn, &ours, err);
    if (rc < 0) {
        conn_free(conn);
        return rc;
    }
    *made = conn;
    return 0;
}

int verbs_connect(struct verbs_thread *thread, unsigned node, struct verbs_conn **conn) {
    struct verbs *verbs = verbs_of_thread(thread);
    struct dm_err err = {0};
    char name[VERBS_TEXT];
    int rc = connect_node(verbs, thread, node, conn, &err);
    if (rc < 0) {
        verbs_failure_note(verbs, rc, "connecting to %s: %s", verbs_node_name(verbs, node, name, sizeof(name)),
                           err.text);
        return rc;
    }
    thread->conns[node] = *conn;
    return 0;
}

static int connect_thread(struct verbs_thread *thread) {
    struct verbs_conn *conn = NULL;
    for (unsigned node = 0; node < dm_first_cn(&thread->rt.base.fabric->topology); node++) {
        if (!thread->conns || !thread->conns[node]) {
            DM_TRY(verbs_connect(thread, node, &conn));
        }
    }
    return 0;
}

/* No context runs, so all threads are asleep, and this one may act for them. */
int verbs_connect_all(struct dm_fabric *fabric, struct dm_err *err) {
    struct verbs *verbs = verbs_of(fabric);
    for (unsigned node = dm_first_cn(&fabric->topology); node < fabric->node_count; node++) {
        const struct dm_node_state *state = &fabric->nodes[node];
        for (unsigned i = 0; verbs->hosted[node] && i < state->thread_count; i++) {
            int rc = connect_thread((struct verbs_thread *)state->threads[i]);
            if (rc < 0) {
                return dm_fail(err, rc, "verbs: %s", verbs->failure);
            }
        }
    }
    return 0;
}

void verbs_thread_close(struct verbs_thread *thread) {
    struct ibv_cq *cq = atomic_load(&thread->cq);
    for (unsigned node = 0; thread->conns && node < thread->rt.base.fabric->node_count; node++) {
        if (thread->conns[node]) {
            conn_free(thread->conns[node]);
        }
    }
    for (struct verbs_conn *conn = atomic_load(&thread->incoming), *next; conn; conn = next) {
        next = conn->thread_next;
        conn_free(conn);
    }
    if (cq) {
        ibv_destroy_cq(cq);
    }
    if (thread->domain) {
        ibv_dealloc_pd(thread->domain);
        ibv_dealloc_td(thread->td);
    }
    if (thread->channel) {
        ibv_destroy_comp_channel(thread->channel);
    }
    if (thread->conns && thread->event >= 0) {
        close(thread->event);
    }
    free(thread->conns);
    free(thread->chains);
    free(thread->touched);
    free(thread->wrs);
    free(thread->sges);
    free(thread->masks);
}
