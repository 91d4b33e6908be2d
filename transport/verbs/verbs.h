/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures of the transport `verbs`. Threads and their contexts are those of transport/realtime. A thread has one
 * completion queue, and a reliable connection to every node that it talks to, made at its first use; the other end
 * belongs to a thread of that node, which serves the calls that come over it. Only its thread touches a connection.
 *
 *   device.c    which device, port and address; protection domains
 *   probe.c     what the device does with lines, order and atomics, tried when it is opened
 *   masked.c    masked atomics of the device: whether they are used, and posting them; masked.h has the other files
 *   memory.c    registered memory: what nodes offer, and what verbs of this process read from and write to
 *   failure.c   the first failure of a run, in words
 *   conn.c      the state of one connection: its send queue, who waits for it, how it breaks
 *   messages.c  the buffers of calls
 *   wire.c      the messages of the control connection between processes
 *   proof.c     how two processes show each other the token
 *   control_client.c  the control connections that this process opens
 *   cm.c        joining queue pairs through the RDMA connection manager
 *   queue_pair.c  queue pairs: what is asked of the device for them
 *   connect.c   completion queues, ends of connections, and joining two of them
 *   post.c      from a batch to linked work requests
 *   calls.c     requests and responses
 *   complete.c  completions, and how a thread waits for them
 *   cm_accept.c requests that come in through the connection manager
 *   control_server.c  the control connections that come in, and watching all of them
 *   notes.c     what a result says of all this
 *   transport.c open, close, options, the table
 */
#ifndef DM_TRANSPORT_VERBS_VERBS_H
#define DM_TRANSPORT_VERBS_VERBS_H

#include <infiniband/verbs.h>

#include "transport/realtime/realtime.h"
#include "transport/verbs/incoming.h"
#include "transport/verbs/masked.h"
#include "transport/verbs/wire.h"

enum {
    VERBS_NODES = 256,            /* that an address can name */
    VERBS_PORTS = 2,              /* devices in use: of compute nodes, of memory nodes */
    VERBS_ASYNC_TAGS = 16,        /* signalled ends of unsignalled work of a connection: more than can be outstanding */
    VERBS_RING = 64 * 1024,       /* bytes of outstanding unsignalled writes of a connection */
    VERBS_SLAB = 2 << 20,         /* registered at once */
    VERBS_WRS = 2 * DM_BATCH_MAX, /* work requests built and not yet posted, of a thread */
    VERBS_TEXT = 300,
};

struct verbs_options {
    const char *device, *mn_device;
    uint64_t port, gid, mtu, traffic_class, pkey, sl;
    uint64_t depth, call_slots, handler_slots, inline_bytes;
    uint64_t ack_timeout, retries, gather;
    uint64_t timeout_ns, start_timeout_ns, call_timeout_ns, spin_ns;
    uint64_t chip_bytes, yield_every, probe_ns;
    unsigned connect; /* enum verbs_connect */
    unsigned order;   /* enum verbs_order */
    unsigned masked;  /* enum verbs_masked_option */
    bool huge_pages, pin, thread_domains;
};

/* How queue pairs of two processes are joined. */
enum verbs_connect { VERBS_BY_EITHER, VERBS_BY_CM, VERBS_BY_TCP };

/* Whether masked atomics may be the device's own. */
enum verbs_masked_option { VERBS_MASKED_AUTO, VERBS_MASKED_EMULATED };

/* How verbs of a batch keep their order where the device might not. */
enum verbs_order { VERBS_ORDER_EITHER, VERBS_ORDER_FENCE, VERBS_ORDER_WAIT, VERBS_ORDER_ALONE };

/* One port of one device, opened. */
struct verbs_port {
    struct ibv_context *device;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    uint64_t chip_bytes; /* on-chip memory that the device can give; 0: none */
    uint8_t number, gid_index;
    union ibv_gid gid;
    uint16_t lid;
    enum ibv_mtu mtu;
    bool is_global; /* addresses carry the GID: RoCE, and InfiniBand whose ports demand it */
    bool is_roce;
    bool is_software; /* software RoCE, which copies with the processor and whose fences may deadlock */
    char name[64];
    uint8_t whole_lines, write_order, cpu_atomics; /* enum verbs_finding */
    uint8_t masked;                                /* likewise: ASSUMED where they are not wanted */
    const char *masked_refusal;                    /* in words, unless it is HOLDS */
};

/* Memory of a node of this process. */
struct verbs_offer {
    struct dm_mapping dram, chip_dram; /* chip_dram: where the device has no memory of its own */
    struct ibv_mr *dram_mr, *chip_mr;
    struct ibv_dm *chip_dm;
};

struct verbs_conn;
struct verbs_ctx;

enum verbs_tag_kind { VERBS_BATCH, VERBS_ASYNC, VERBS_SEND, VERBS_RECEIVE };

/* What a completion is for. Those of the send queue are in the connection's list, in posted order. The low bits of a
 * work request's number are the verb (enum verbs_verb). */
struct verbs_tag {
    enum verbs_tag_kind kind;
    struct verbs_conn *conn;
    struct verbs_tag *next;
    uint64_t upto;      /* work requests posted with this one */
    uint64_t ring_upto; /* bytes of the ring taken */
    struct verbs_ctx *ctx;
    uint32_t slot;
    uint8_t verb; /* enum verbs_verb: the last one, for errors */
};

enum verbs_verb {
    VERBS_READ,
    VERBS_WRITE,
    VERBS_CAS,
    VERBS_FAA,
    VERBS_SENT,
    VERBS_RECEIVED,
    VERBS_MASKED_CAS, /* from here on: posted as masked.h has it */
    VERBS_MASKED_FAA,
    VERBS_VERB_MASK = 7,
};

/* A current call, on the caller's side. */
struct verbs_call {
    struct verbs_ctx *ctx;               /* NULL: the slot is free, or no context waits any more */
    bool is_taken, is_sent, is_answered; /* a slot is free again when its message has been sent and answered */
    void *resp;
    uint32_t capacity, len;
    int rc;
    uint64_t begin_ns;
    struct verbs_tag sent;
};

/* A current call, on the called side: a buffer that a request arrived in. */
struct verbs_job {
    struct rt_job job;
    struct verbs_conn *conn;
    struct verbs_tag received;
    struct verbs_job *next; /* waits for a handler context */
    struct verbs_reply *reply;
    uint32_t number, caller_slot, resp_len;
};

/* A buffer for a response. */
struct verbs_reply {
    struct verbs_tag sent;
    bool is_busy;
};

struct verbs_waiters {
    struct verbs_ctx *head, *tail;
};

/* Contexts in the order in which they asked for a connection that they may not share; linked by line_next. */
struct verbs_line {
    struct verbs_ctx *head, *tail;
};

struct verbs_conn {
    struct verbs_thread *thread;
    struct ibv_qp *qp;
    struct rdma_cm_id *cm_id; /* NULL: the queue pair was joined without the connection manager */
    struct verbs_port *port;
    unsigned node; /* the other end's */
    bool is_incoming, posts_masked;
    int failure; /* of the connection: a code; nothing more is sent */

    /* The send queue. */
    uint32_t depth, inline_bytes;
    uint64_t posted, done;
    uint32_t unsignalled;   /* since the last signalled one */
    uint64_t loose_upto;    /* an unsignalled atomic that later writes have to be fenced against */
    uint64_t alone_upto;    /* with order=alone: the last write, atomic or message */
    struct verbs_line line; /* with order=alone: whose turn it is */
    struct verbs_tag *head, *tail;
    struct ibv_send_wr *held, *held_last; /* counted as posted; the doorbell is to come */
    struct verbs_conn *held_next;
    bool is_held; /* in the thread's list */
    struct verbs_tag async[VERBS_ASYNC_TAGS];
    uint32_t async_next;
    struct verbs_waiters space;
    const struct verbs_tag *seen; /* the oldest one at the last check, and since when */
    uint64_t seen_upto, seen_ns;

    /* Bytes of unsignalled writes. */
    unsigned char *ring;
    uint64_t ring_taken, ring_signalled, ring_done;

    /* Calls. */
    uint32_t slots;
    unsigned char *out, *in; /* messages: to be sent, received */
    struct verbs_call *calls;
    struct verbs_waiters slot_waiters;
    uint32_t calls_open;
    struct verbs_tag *receives; /* of the caller's side, one a buffer */
    struct verbs_job *jobs;
    struct verbs_reply *replies;

    struct verbs_conn *thread_next;
};

struct verbs_ctx {
    struct rt_ctx rt;
    struct verbs_tag *tags; /* one a node */
    uint32_t first, end;    /* the piece of the batch that is posted */
    uint32_t waiting;       /* completions to come */
    int failure;
    unsigned char *bounce;
    uint64_t bounce_bytes;
    struct verbs_ctx *next;      /* among waiters */
    struct verbs_ctx *line_next; /* behind it in a line */
    bool is_in_line;
    uint64_t async_nodes[VERBS_NODES / 64];
};

/* The part of a batch that goes to one node. */
struct verbs_chain {
    struct verbs_conn *conn;
    struct verbs_tag *tag;
    struct ibv_send_wr *first, *last;
    uint32_t count, staged; /* verbs; bytes that have to be copied first */
    bool is_loose;          /* a read or atomic before, without a fence since */
    bool has_change;        /* a write or atomic */
};

struct verbs_thread {
    struct rt_thread rt;
    _Atomic(struct ibv_cq *) cq;
    struct ibv_td *td;          /* for a doorbell register of its own; NULL: the device shares them out */
    struct ibv_pd *domain;      /* the port's, with td */
    uint64_t fences, doorbells; /* that it asked for and rang, in the measured phase */
    struct ibv_comp_channel *channel;
    struct verbs_port *port;
    int event; /* file descriptor that wakes the thread; valid with cq */
    bool is_armed, was_busy;
    uint32_t outstanding; /* tags and calls whose completions are to come */
    uint64_t idle_since_ns, checked_ns;
    uint32_t spins;
    struct verbs_conn **conns;             /* one for each node; NULL: none yet */
    _Atomic(struct verbs_conn *) incoming; /* made by others for this thread to serve */
    struct verbs_job *backlog, *backlog_tail;
    struct verbs_chain *chains; /* one a node, empty between commits */
    unsigned *touched;          /* nodes of the current batch */
    unsigned touched_count;
    struct ibv_send_wr *wrs; /* VERBS_WRS each */
    struct ibv_sge *sges;
    struct dm_mask *masks; /* operands of masked atomics; NULL: they are emulated */
    uint32_t wrs_used, batches_held;
    struct verbs_conn *held; /* with work requests that wait for the doorbell */
};

struct verbs_control;

struct verbs {
    struct rt rt;
    const struct verbs_options *options;
    struct verbs_port ports[VERBS_PORTS];
    unsigned port_count;
    uint64_t gather;                   /* batches that may share a doorbell */
    bool waits_for_order;              /* batches are cut where they would take a fence */
    bool posts_alone;                  /* and no verb but reads is outstanding beside another of its connection */
    struct verbs_offer *offers;        /* one for each node; empty for those of other processes */
    struct verbs_region (*regions)[2]; /* of each node: DRAM, chip */
    struct verbs_facts *facts;         /* of each node with memory; mtu 0: nothing is known of it yet */
    bool *hosted;                      /* nodes of this process */
    pthread_mutex_t connect_lock;      /* of making queue pairs and threads' queues; never held while one waits */
    pthread_mutex_t handshake_lock;    /* of joining them to other processes, one at a time; see connect.c */
    uint32_t *serve_next;              /* of each node: its thread that serves the next connection */
    const char *connect_kind;
    uint32_t least_depth, least_inline; /* of all connections that it made; 0: none yet */
    unsigned next_vector;               /* of completion queues */
    struct verbs_note_texts {
        char depth[16], inline_max[16], fences[24], doorbells[24], threads[48], masked[96];
    } note_texts;

    /* Registered memory of this process: one span of addresses, registered slab by slab. */
    pthread_mutex_t arena_lock;
    unsigned char *arena, *arena_map;
    size_t arena_bytes, arena_used, arena_ready;
    struct ibv_mr *(*arena_mrs)[VERBS_PORTS]; /* of each slab */

    _Atomic bool has_failed;
    pthread_mutex_t failure_lock;
    int failure_code;
    char failure[VERBS_TEXT];

    struct verbs_control *control; /* other processes; NULL: there are none */
};

static inline struct verbs *verbs_of(const struct dm_fabric *fabric) {
    return fabric->impl;
}
static inline struct verbs_thread *verbs_thread_of(const struct verbs_ctx *ctx) {
    return (struct verbs_thread *)ctx->rt.base.thread;
}
static inline struct verbs *verbs_of_thread(const struct verbs_thread *thread) {
    return thread->rt.base.fabric->impl;
}

/* ---- device.c --------------------------------------------------------------------------------------------------- */

/* Opens the devices that the options name, or the first with an active port. */
int verbs_ports_open(struct verbs *verbs, struct dm_err *err);
void verbs_ports_close(struct verbs *verbs);
struct verbs_port *verbs_port_of(struct verbs *verbs, unsigned node);

/* Which entry of a port's table of addresses is best; -1: none is usable. */
int verbs_gid_choose(const struct ibv_gid_entry *entries, size_t count, bool is_ethernet);

/* The most outstanding reads and atomics of one connection of the port. */
uint8_t verbs_reads_at_once(const struct verbs_port *port);

/* The smallest MTU: of the connection's port, of the other end, of the path between them. */
enum ibv_mtu verbs_mtu_of(const struct verbs_port *port, uint8_t theirs, enum ibv_mtu path);

/* The most connections that there can be to one node: one for each thread of the fabric. */
unsigned verbs_ends_max(const struct dm_fabric *fabric);

/* ---- failure.c -------------------------------------------------------------------------------------------------- */

/* Records a failure for the run's error; only the first one is kept. */
void verbs_failure_note(struct verbs *verbs, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What errors call the node; written to `text`. */
const char *verbs_node_name(const struct verbs *verbs, unsigned node, char *text, size_t capacity);

/* True if the process that has the node has closed its control connection. */
bool verbs_has_ended(const struct verbs *verbs, unsigned node);

/* ---- probe.c ---------------------------------------------------------------------------------------------------- */

/* Tries the port's device on memory of this process, for options->probe_ns, and writes what it found. */
void verbs_probe(struct verbs *verbs, struct verbs_port *port);

/* ---- memory.c --------------------------------------------------------------------------------------------------- */

int verbs_arena_open(struct verbs *verbs, struct dm_err *err);
void verbs_arena_close(struct verbs *verbs);
/* Registered, zero, aligned to a line; lives as long as the fabric. NULL when out of memory. */
void *verbs_arena_alloc(struct verbs *verbs, size_t bytes);
/* True if [at, at + len) is registered: the key for `port`. */
bool verbs_arena_key(const struct verbs *verbs, const struct verbs_port *port, const void *at, uint32_t len,
                     uint32_t *key);

/* Memory of the nodes of this process, and its description in verbs->regions. */
int verbs_offers_open(struct verbs *verbs, struct dm_err *err);
void verbs_offers_close(struct verbs *verbs);

void verbs_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
void verbs_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);
uint64_t verbs_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired);

/* ---- conn.c ----------------------------------------------------------------------------------------------------- */

static inline bool verbs_has_space(const struct verbs_conn *conn, uint32_t count) {
    return conn->posted - conn->done + count <= conn->depth;
}

/* Suspends the context until verbs_wake_waiters makes it ready; waiters are served in order. */
int verbs_wait_in(struct verbs_ctx *ctx, struct verbs_waiters *waiters);
void verbs_wake_waiters(struct verbs_conn *conn, struct verbs_waiters *waiters, bool all);

/* One completion of the context's batch has come; code < 0: it failed. */
void verbs_batch_done(struct verbs_conn *conn, struct verbs_ctx *ctx, int code);

/* The call has its answer, or has failed with `rc`. */
void verbs_call_answered(struct verbs_conn *conn, struct verbs_call *call, int rc);

/* The connection is unusable from now on: every context that waits on it gets `code`. */
void verbs_conn_break(struct verbs_conn *conn, int code);

/* Appends a signalled work request's tag to the send queue and counts `count` work requests. */
void verbs_tag_push(struct verbs_conn *conn, struct verbs_tag *tag, uint32_t count);

/* Posts the work requests that the connection's contexts hold back; the second, those of all the thread's connections.
 */
void verbs_ring_doorbell(struct verbs_conn *conn);
void verbs_ring_doorbells(struct verbs_thread *thread);

/* With order=alone: true if a verb of `ctx` has to wait for what the connection has outstanding, or for a context that
 * asked earlier; the context is then in the connection's line until it asks again and it is its turn, or leaves. Only
 * reads are outstanding together; `is_change`: it is not a read. In conn.c. */
bool verbs_is_beside(struct verbs_ctx *ctx, struct verbs_conn *conn, bool is_change);

/* Leaves the line without a verb. */
void verbs_line_leave(struct verbs_ctx *ctx, struct verbs_conn *conn);

/* ---- messages.c ------------------------------------------------------------------------------------------------- */

enum {
    VERBS_HEAD = 16, /* bytes of a request's or response's head */
    VERBS_MESSAGE = (VERBS_HEAD + DM_CALL_MAX + DM_LINE - 1) / DM_LINE * DM_LINE,
};

/* Buffers of the called side. Its receives are posted by verbs_receives_post once the queue pair is ready to receive.
 */
int verbs_calls_open(struct verbs *verbs, struct verbs_conn *conn);
int verbs_receives_post(struct verbs *verbs, struct verbs_conn *conn);
void verbs_calls_close(struct verbs_conn *conn);

/* Buffers of the calling side, made by its first call; and those of the responses, made by the first request. */
int verbs_caller_open(struct verbs_conn *conn);
int verbs_replies_open(struct verbs_conn *conn);

/* Posts the buffer tag->slot for the next message to come in. 0 or DM_ERR_IO. */
int verbs_receive_post(const struct verbs *verbs, struct verbs_conn *conn, const struct verbs_tag *tag);

/* Posts message number `number` of the connection's outgoing buffer. 0 or DM_ERR_IO. */
int verbs_message_send(struct verbs_conn *conn, uint32_t number, uint32_t bytes, struct verbs_tag *tag);

/* ---- queue_pair.c ----------------------------------------------------------------------------------------------- */

enum {
    VERBS_DEPTH_MIN = 2 * DM_BATCH_MAX, /* of a send queue: a batch fits in twice */
    VERBS_RNR_RETRIES = 6,              /* 7 would be unbounded */
    VERBS_RNR_TIMER = 12,               /* 0.64 ms */
};

/* Makes the connection's queue pair, with as much of depth and inline_bytes as the device gives. */
int verbs_qp_open(struct verbs *verbs, struct verbs_conn *conn, struct dm_err *err);

/* What the other end has to know of it. */
void verbs_qp_describe(const struct verbs_conn *conn, struct verbs_end *end);

/* Moves it to the state in which it receives. On Ethernet the kernel asks the network for the link address of the other
 * end, waits a second, and gives up if the question or its answer is lost: then this tries again. 0 or an errno. */
int verbs_qp_ready(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/* Moves it to the states in which it receives and sends, joined to `theirs`. 0 or an errno. */
int verbs_qp_receive(const struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *theirs);
int verbs_qp_send(const struct verbs *verbs, struct verbs_conn *conn, const struct verbs_end *ours,
                  const struct verbs_end *theirs);

/* Joins two ends of this process and port; false if the device refuses. */
bool verbs_qp_loop(const struct verbs *verbs, struct verbs_conn *one, struct verbs_conn *other);

/* The exponents of how long and how often a packet is resent. */
uint8_t verbs_ack_timeout(const struct verbs *verbs, const struct verbs_port *port);

/* ---- connect.c -------------------------------------------------------------------------------------------------- */

/* The thread's connection to the node, made if there is none yet. A failure is recorded (see verbs_failure_note). */
int verbs_connect(struct verbs_thread *thread, unsigned node, struct verbs_conn **conn);

/* Makes all connections of this process's compute nodes that are missing. */
int verbs_connect_all(struct dm_fabric *fabric, struct dm_err *err);

/* The called side: makes an end for a thread of `node` to serve, joined to `theirs`, and describes it. */
int verbs_accept(struct verbs *verbs, unsigned node, unsigned caller, const struct verbs_end *theirs,
                 struct verbs_end *ours, struct dm_err *err);

/* A request that came through the connection manager; its identifier then belongs to the connection. */
struct verbs_cm_request {
    struct rdma_cm_id *id;
    unsigned caller;
    uint32_t slots;
    uint8_t mtu, resources, depth;
};
int verbs_accept_cm(struct verbs *verbs, unsigned node, const struct verbs_cm_request *wanted, struct dm_err *err);

void verbs_thread_close(struct verbs_thread *thread);

/* ---- cm.c ------------------------------------------------------------------------------------------------------- */

struct rdma_event_channel;

struct verbs_cm {
    struct rdma_event_channel *incoming, *outgoing;
    struct rdma_cm_id *listener;
    uint16_t port; /* 0: not listening */
    unsigned ends; /* connections made for requests with the token */
};

/* Listens on the address of the memory nodes' device, if options and address allow. */
int verbs_cm_listen(struct verbs *verbs, struct dm_err *err);
void verbs_cm_offer(struct verbs *verbs, struct verbs_cm_address *to_address);
int verbs_cm_fd(const struct verbs *verbs); /* readable when a request has come in; -1: none can */

/* Joins the connection to the node's process. 1: the connection manager cannot be used, and nothing has been done. */
int verbs_cm_connect(struct verbs *verbs, struct verbs_conn *conn, struct dm_err *err);
/* The called side. On failure the caller keeps the identifier. */
int verbs_cm_join(struct verbs *verbs, struct verbs_conn *conn, const struct verbs_cm_request *wanted,
                  struct dm_err *err);
void verbs_cm_leave(struct verbs_conn *conn);
void verbs_cm_close(struct verbs *verbs); /* when no connection is left */

/* ---- notes.c ---------------------------------------------------------------------------------------------------- */

size_t verbs_notes(struct dm_fabric *fabric, struct dm_note *notes, size_t capacity);

/* ---- post.c ----------------------------------------------------------------------------------------------------- */

int verbs_commit(struct dm_ctx *ctx, bool wait);

/* ---- complete.c ------------------------------------------------------------------------------------------------- */

extern const struct rt_hooks verbs_hooks;

/* ---- calls.c ---------------------------------------------------------------------------------------------------- */

void verbs_call_sent(struct verbs_conn *conn, struct verbs_tag *tag);
void verbs_received(struct verbs_conn *conn, const struct verbs_tag *tag, uint32_t bytes);
void verbs_backlog_serve(struct verbs_thread *thread);
/* Breaks the connection if a call has exceeded its timeout. */
void verbs_calls_check(struct verbs_conn *conn, uint64_t now_ns);
/* Restarts the timeouts of all calls at this moment. */
void verbs_calls_postpone(struct verbs_conn *conn, uint64_t now_ns);
int verbs_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
               uint32_t *resp_len);

/* ---- cm_accept.c ------------------------------------------------------------------------------------------------ */

/* Takes all connection requests that have come in. */
void verbs_cm_take(struct verbs *verbs);

/* ---- control_server.c ------------------------------------------------------------------------------------------- */

/* What the process of a node reported when it welcomed this one. */
struct verbs_peer {
    struct wire_message hello;
    struct verbs_nonces nonces;
    uint64_t session;
    struct verbs_cm_address cm_address;
};

struct verbs_control {
    const struct dm_processes *processes;
    uint8_t token[WIRE_TOKEN];
    uint64_t fabric; /* hash of the configuration that all processes share */
    unsigned own_node;

    /* Sockets that this process opened, one for each node; -1: none yet. Opened and used in the order of
     * handshake_lock; `lock` is of the array alone. */
    pthread_mutex_t lock;
    int *sessions;
    _Atomic bool *is_gone;    /* the node's process has closed its end, or its host is silent */
    struct verbs_peer *peers; /* of each node */
    struct verbs_cm cm;

    pthread_t watcher;
    bool is_watching;
    int event; /* wakes the watcher */
    _Atomic bool is_closing, is_serving;
    struct verbs_arrivals arrivals;
    _Atomic unsigned compute_peers;
    _Atomic bool had_compute_peers;
};

/* Determines which nodes belong to this process. */
int verbs_control_plan(struct verbs *verbs, struct dm_err *err);
int verbs_control_open(struct verbs *verbs, struct dm_err *err);
void verbs_control_close(struct verbs *verbs); /* no process connects after this */
void verbs_control_free(struct verbs *verbs);  /* once all threads have ended */
void verbs_control_serve(struct verbs *verbs); /* after this, other processes may connect */
unsigned verbs_peers(struct dm_fabric *fabric, bool *have_been);

/* ---- control_client.c -------------------------------------------------------------------------------------------- */

/* Connects to the processes of all other nodes and stores what memory they offer. */
int verbs_sessions_open(struct verbs *verbs, struct dm_err *err);
void verbs_sessions_close(struct verbs *verbs);

int verbs_listen(const char *address, int *listener, char *text, size_t capacity, struct dm_err *err);

/* How long the host at the other end of a control connection may be silent. */
uint64_t verbs_silence_ns(const struct verbs *verbs);

/* Opens a session with the process of `node`, if there is none yet. With handshake_lock, as the next one. */
int verbs_session_ensure(struct verbs *verbs, unsigned node, struct dm_err *err);

/* Asks the process of `node` for an end joined to `ours`. */
int verbs_session_connect(struct verbs *verbs, unsigned node, unsigned caller, const struct verbs_end *ours,
                          struct verbs_end *theirs, struct dm_err *err);

#endif
