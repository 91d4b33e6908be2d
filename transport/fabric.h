/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport contract for harness, checker and tests: opening a fabric, starting contexts on it, running them, and
 * reading what was counted. Indexes never include this.
 *
 * A fabric is opened in its set-up phase, for registering handlers, formatting and bulk loading: verbs run, but cost no
 * virtual time and are not counted. dm_fabric_measure begins the measured phase. Each phase may have any number of
 * runs.
 */
#ifndef DM_TRANSPORT_FABRIC_H
#define DM_TRANSPORT_FABRIC_H

#include <stddef.h>
#include <stdio.h>

#include "common/opt.h"
#include "transport/dm.h"

/* ---- transports and profiles ------------------------------------------------------------------------------------ */

enum dm_cap {
    DM_CAP_VIRTUAL_TIME = 1 << 0,   /* deterministic; dm_now is simulated */
    DM_CAP_MASKED_ATOMICS = 1 << 1, /* native on every fabric; see dm_sends_masked */
    DM_CAP_CHIP_MEMORY = 1 << 2,
    DM_CAP_PROFILE = 1 << 3, /* takes a NIC and CPU profile */
    DM_CAP_FAULTS = 1 << 4,
    DM_CAP_DEVICE = 1 << 5, /* needs a device, whose absence is an error of dm_fabric_open */
};

struct dm_transport_info {
    const char *name, *summary;
    unsigned caps;
    const struct dm_opt *options; /* the transport's own, set by name through dm_fabric_config.options */
};

/* All transports of this program in the order of transports.def, ended by NULL. */
const struct dm_transport_info *const *dm_transports(void);

/* The transport of that name, or NULL. */
const struct dm_transport_info *dm_transport_find(const char *name);

/* Transports that this program was built without, and why; the last one has a NULL name. */
struct dm_transport_absence {
    const char *name, *reason;
};
const struct dm_transport_absence *dm_transports_absent(void);

struct dm_setting {
    const char *name, *value;
};

/* A fabric whose nodes are spread over several processes. All of them open it with the same topology and seed. The
 * caller keeps this and what it points to as long as the fabric. */
struct dm_processes {
    unsigned process, count; /* number of this process, from 0, and of all; contexts of all get different numbers */
    const bool *hosted;      /* for each node: true if it belongs to this process */
    const char *const *addresses; /* for each memory node and index server: "host:port" of its process's control port */
    const char *token;            /* shared secret, 1 to 32 bytes: connections without it are refused */
    uint64_t fingerprint;         /* hash of what the processes have to agree on beside the topology */
    int listener;                 /* listening socket of the control port, which the fabric will own; -1: none */
};

/* Opens a listening socket at "host:port"; port 0 takes any free one. `text` receives the address that others connect
 * to. Returns 0, DM_ERR_INVALID, DM_ERR_IO, or DM_ERR_UNSUPPORTED if no transport of this program runs in several
 * processes. */
int dm_listen(const char *address, int *listener, char *text, size_t capacity, struct dm_err *err);

struct dm_fabric_config {
    const char *transport;
    const char
        *profile; /* a name in the profile folder, or a path that ends in .json; NULL if the transport takes none */
    struct dm_topology topology;
    uint64_t seed;
    uint32_t chunk_bytes;                 /* size of the chunks that dm_alloc fetches; 0: 16 MiB */
    uint32_t retry_limit;                 /* retries of one operation, see dm_retry; 0: the default */
    bool emulates_masked;                 /* masked atomics by plain CAS, whatever the profile has */
    const struct dm_processes *processes; /* NULL: all nodes are in this process. Only with DM_CAP_DEVICE */
    const struct dm_setting *settings;    /* values of the transport's options */
    size_t setting_count;
};

/* Opens a fabric in its set-up phase. Returns 0 and the fabric, or a failure with its reason in *err. */
int dm_fabric_open(const struct dm_fabric_config *config, struct dm_fabric **fabric, struct dm_err *err);

/* Releases the fabric with its contexts and memory. NULL is allowed. No run may be active. */
void dm_fabric_close(struct dm_fabric *fabric);

/* For a context of a process without compute nodes: returns once compute processes have connected and all have left.
 * 0, DM_ERR_PEER if none has connected within `patience_ns` (0: no limit), or DM_ERR_STOPPED. */
int dm_serve_peers(struct dm_ctx *ctx, uint64_t patience_ns);

const struct dm_transport_info *dm_fabric_transport(struct dm_fabric *fabric);
const struct dm_topology *dm_fabric_topology(struct dm_fabric *fabric);

/* Names of the profiles in the profile folder: sorted, ended by NULL, never freed. */
const char *const *dm_profile_names(void);

/* Loads a profile and writes its hash, 16 hexadecimal digits. 0, or a failure with its reason. */
int dm_profile_check(const char *name, char hash[17], struct dm_err *err);

/* ---- contexts --------------------------------------------------------------------------------------------------- */

/* Starts a foreground context on a thread (0 .. dm_thread_count - 1) of a node; it runs in the next dm_fabric_run.
 * Returns 0, DM_ERR_INVALID or DM_ERR_NO_MEMORY. */
int dm_spawn(struct dm_fabric *fabric, unsigned node, unsigned thread, void (*entry)(struct dm_ctx *ctx, void *arg),
             void *arg);

/* Runs until every foreground context has returned, or was stopped by a fault, and (sim only) all that they have sent
 * has landed. May be called again after more spawns. Returns 0; DM_ERR_STOPPED after dm_fabric_stop; or a failure with
 * its reason, such as contexts that wait for each other forever (sim only). */
int dm_fabric_run(struct dm_fabric *fabric, struct dm_err *err);

/* Spawns one context on the node's first thread and runs it: for set-up and tests. *rc is the value of `entry`; the
 * function returns as dm_fabric_run does. */
int dm_fabric_do(struct dm_fabric *fabric, unsigned node, int (*entry)(struct dm_ctx *ctx, void *arg), void *arg,
                 int *rc, struct dm_err *err);

/* Makes all waits return DM_ERR_STOPPED soon. May be called in a signal handler. */
void dm_fabric_stop(struct dm_fabric *fabric);
bool dm_fabric_stopping(const struct dm_fabric *fabric);

/* Connects all threads of this process's compute nodes to all other nodes, where that takes time, so that it takes none
 * of the measured phase. Only while no context runs. 0, or a failure with its reason. */
int dm_fabric_connect(struct dm_fabric *fabric, struct dm_err *err);

/* Begins the measured phase: costs count from here. dm_now is 0 at the first time. */
void dm_fabric_measure(struct dm_fabric *fabric);

/* Of the measured phase of the simulator. While untimed, verbs act at once, and a context waits for several batches
 * together: as long as they would take it alone, or, behind a sample, as long as they took the clients of its node in
 * the sample; background contexts then wait for each batch, as long as theirs took. Neither other verbs nor the work of
 * clients take time; calls, sleeps and the work of servers do. So a long warm-up, which has to fill caches and to split
 * nodes, takes less of the host's time. A sample is timed; it must be so long that each context waits for some tens of
 * batches. With fault rules, and in real time, nothing changes. */
enum dm_timing { DM_TIMED, DM_SAMPLED, DM_UNTIMED };
void dm_fabric_timing(struct dm_fabric *fabric, enum dm_timing timing);

/* Returns to the set-up phase, for verification and final reads after a run. No context may be running. */
void dm_fabric_setup(struct dm_fabric *fabric);

/* True if the context should end now. A client asks between its operations. */
bool dm_stopping(struct dm_ctx *ctx);

/* ---- accounting ------------------------------------------------------------------------------------------------- */

#define DM_VERBS(X)                                                                                                    \
    X(DM_VERB_READ, "read")                                                                                            \
    X(DM_VERB_WRITE, "write")                                                                                          \
    X(DM_VERB_CAS, "cas")                                                                                              \
    X(DM_VERB_FAA, "faa")                                                                                              \
    X(DM_VERB_MASKED_CAS, "masked_cas")                                                                                \
    X(DM_VERB_MASKED_FAA, "masked_faa")                                                                                \
    X(DM_VERB_CALL, "call")
enum dm_verb_kind {
#define X(name, text) name,
    DM_VERBS(X)
#undef X
        DM_VERB_KIND_COUNT,
};

/* Sums of what contexts did while they counted to this account; accounts are merged by adding. */
struct dm_account {
    uint64_t round_trips; /* waits for the network, however many verbs were posted before the wait */
    uint64_t verbs[DM_VERB_KIND_COUNT];
    uint64_t bytes_read, bytes_written; /* payload, without headers; calls: responses and requests */
    uint64_t doorbells;
    uint64_t cas_failures;
    uint64_t masked_emulated; /* masked atomics done by plain CAS */
    uint64_t retries[DM_RETRY_COUNT];
    uint64_t phase_ns[DM_PHASE_COUNT]; /* by dm_phase; `other` stays 0, it is the rest of the operation */
    /* With a meter alone: time of index code, the parts that its waits cut it into, and what it charged. */
    uint64_t code_ns, code_parts, charges, charged_ps;
};

/* From now on this context counts to `account`, which the caller owns and keeps; NULL: its counts are dropped. The
 * context's phase must be DM_PHASE_OTHER. */
void dm_account_use(struct dm_ctx *ctx, struct dm_account *account);
void dm_account_add(struct dm_account *into, const struct dm_account *from);

/* A meter compares what index code takes on this host with what it charges by a profile: see code_ns above. It is
 * for real-time transports, and only clients that say when they are in index code are metered. */
struct dm_meter;
int dm_meter_open(const char *profile, struct dm_meter **meter, struct dm_err *err);
void dm_meter_close(struct dm_meter *meter); /* accepts NULL */

/* The fabric uses the meter until it is closed; NULL: none. Only while no context runs. */
void dm_fabric_meter(struct dm_fabric *fabric, const struct dm_meter *meter);

/* The context enters index code, and leaves it. Between them no phases are timed. Nothing without a meter. */
void dm_code_begin(struct dm_ctx *ctx);
void dm_code_end(struct dm_ctx *ctx);

/* Bytes in use on all memory nodes. */
struct dm_memory_use {
    uint64_t bytes[DM_MEM_KIND_COUNT]; /* allocated and not freed, by kind */
    uint64_t freed;                    /* freed and not reused */
    uint64_t chunk_bytes;              /* handed out to threads in chunks, used or not */
    uint64_t chip_bytes;               /* on-chip memory in use; part of no chunk and of no kind */
};
void dm_memory_use(struct dm_fabric *fabric, struct dm_memory_use *use);

/* From now on each memory node hands out at most so many bytes in chunks, for tests of what happens when memory ends.
 * Only while no context runs. */
void dm_memory_leave(struct dm_fabric *fabric, uint64_t bytes);

/* One queueing resource of one node over the observation interval. */
struct dm_resource {
    unsigned node;
    const char *name;  /* "nic_rx", "link_out", "cores" ... */
    double busy;       /* share of the time in which it worked, 0 to 1 */
    double queue_mean; /* requests waiting and in service, averaged over time */
    uint64_t served;
    uint64_t
        idle_waited_ns; /* time that it was idle while requests waited that it could have served; summed over them */
};

/* Gives a loaded fabric fewer clients, or more of them on a thread, and memory nodes of another size: from here it
 * works as one that was opened and loaded so. Only between set-up and dm_fabric_measure, and only of the simulator. 0;
 * DM_ERR_UNSUPPORTED; DM_ERR_INVALID if a compute node would need more threads than it was opened with, or would lose
 * one that has sent verbs; DM_ERR_NO_MEMORY if more is allocated than `mn_bytes`; each with its reason. */
int dm_fabric_resize(struct dm_fabric *fabric, unsigned clients, unsigned clients_per_thread, uint64_t mn_bytes,
                     struct dm_err *err);

/* This process is a copy, by fork, of the one that opened the fabric. To be called, if at all, before anything runs: a
 * transport may then copy memory in larger parts than the host does. */
void dm_fabric_copied(struct dm_fabric *fabric);

/* Begins a new observation interval, at the end of the warm-up. */
void dm_resources_reset(struct dm_fabric *fabric);

/* Copies up to `capacity` resources and returns how many there are: 0 for real-time transports. */
size_t dm_resources(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity);

/* What a result reports of the fabric beside its settings: the device, and what replaces a missing capability. */
enum { DM_NOTES_MAX = 16 };
struct dm_note {
    const char *name, *value; /* owned by the fabric */
};

/* Copies up to `capacity` notes and returns how many there are: at most DM_NOTES_MAX. */
size_t dm_fabric_notes(struct dm_fabric *fabric, struct dm_note *notes, size_t capacity);

/* True if masked atomics are verbs of their own on this fabric; otherwise they are made of a READ and plain CAS, and
 * counted as such. */
bool dm_sends_masked(const struct dm_fabric *fabric);

/* Verbs sent since the fabric was opened; exact between runs. */
uint64_t dm_verb_total(const struct dm_fabric *fabric);

/* ---- tracing ---------------------------------------------------------------------------------------------------- */

/* Events of a trace beside verbs and calls. */
enum dm_trace_kind {
    DM_TRACE_WAIT = DM_VERB_KIND_COUNT, /* a context waits for a mutex or condition of its node */
    DM_TRACE_STOP,                      /* a fault stops a context; outcome DM_ERR_STOPPED: for good */
    DM_TRACE_KIND_COUNT,
};
extern const char *const dm_trace_names[DM_TRACE_KIND_COUNT]; /* of all kinds, verbs included */

/* One verb, call or wait, reported when it has ended. Times are those of dm_now. */
struct dm_trace_event {
    unsigned ctx, node, thread; /* the context, and where it runs */
    unsigned kind;              /* enum dm_verb_kind or dm_trace_kind */
    unsigned target;            /* the node that a verb or call goes to; of a wait, the context's own */
    dm_addr addr;
    uint32_t method;             /* of a call */
    uint32_t len;                /* bytes; of a call: its request */
    uint64_t batch;              /* the same number for verbs committed together; 0: none */
    bool is_waited;              /* false: unsignalled */
    uint64_t posted_ns, done_ns; /* commit of its batch; completion (unsignalled verbs in real time: when sent) */

    /* At the responder, in virtual time only; 0 if it never arrived there. A verb takes effect from effect_ns (its
     * first line) to landed_ns (its last line); for a call both are the time of the answer. */
    uint64_t arrived_ns, effect_ns, landed_ns;

    int outcome;     /* 0 or a failure; of a call: its value */
    bool has_found;  /* of an atomic: the next three members are valid */
    bool is_swapped; /* it changed the word */
    uint64_t found;
    struct dm_mask op; /* of a CAS: compare and swap; of a fetch-and-add: swap is the addend */
};

/* Called for each event. In real time it is called on the thread of the event's context, so several calls may run at
 * once. It must not wait and must not use the fabric. */
typedef void (*dm_trace_sink)(void *arg, const struct dm_trace_event *event);

/* From now on events of the measured phase go to `sink`; NULL ends tracing. Tracing changes nothing in virtual time.
 * Only while no context runs. */
void dm_fabric_trace(struct dm_fabric *fabric, dm_trace_sink sink, void *arg);

#endif
