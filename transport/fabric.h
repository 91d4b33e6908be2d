/* SPDX-License-Identifier: Apache-2.0
 *
 * The other side of the transport contract, for harness, checker and tests: opening a fabric, starting contexts,
 * running them, and reading what was counted. Indexes never include this.
 *
 * Life of a fabric: open; set-up phase (register handlers, format, bulk load: verbs run, cost nothing in virtual time
 * and are not counted); dm_fabric_measure; more runs; close.
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
    DM_CAP_MASKED_ATOMICS = 1 << 1, /* native; else emulated by plain CAS and counted as such */
    DM_CAP_CHIP_MEMORY = 1 << 2,
    DM_CAP_PROFILE = 1 << 3, /* takes a NIC and CPU profile */
    DM_CAP_FAULTS = 1 << 4,
    DM_CAP_DEVICE = 1 << 5, /* needs a device that may not be there: opening tells */
};

struct dm_transport_info {
    const char *name, *summary;
    unsigned caps;
    const struct dm_opt *options; /* the transport's own, set by name through dm_fabric_config.options */
};

/* All transports compiled in, in transports.def's order; NULL-terminated. */
const struct dm_transport_info *const *dm_transports(void);
const struct dm_transport_info *dm_transport_find(const char *name);

/* Transports that this program was built without, and why; NULL-terminated names. */
struct dm_transport_absence {
    const char *name, *reason;
};
const struct dm_transport_absence *dm_transports_absent(void);

struct dm_setting {
    const char *name, *value;
};

/* A fabric whose nodes are spread over several processes: all open it with the same topology and seed. Kept by the
 * caller as long as the fabric. */
struct dm_processes {
    unsigned process, count;      /* which one this is; their contexts' numbers do not meet */
    const bool *hosted;           /* one a node: it is this process's */
    const char *const *addresses; /* one a memory node and index server: "host:port" of its process's control port */
    const char *token;            /* who does not know it gets nothing; at most 32 bytes */
    uint64_t fingerprint;         /* of what the processes have to agree on beside the topology */
    int listener;                 /* listening socket of the control port; the fabric's from then on. -1: none */
};

/* "host:port" to a listening socket; port 0: any. The address that it got in text, for others to connect to.
 * DM_ERR_UNSUPPORTED where no transport of this program can do several processes. */
int dm_listen(const char *address, int *listener, char *text, size_t capacity, struct dm_err *err);

struct dm_fabric_config {
    const char *transport;
    const char
        *profile; /* a name, looked up in the profile folder, or a path ending in .json; NULL where none is used */
    struct dm_topology topology;
    uint64_t seed;
    uint32_t chunk_bytes;                 /* what an allocation call hands out */
    uint32_t retry_limit;                 /* of one operation, see dm_retry; 0: the default */
    const struct dm_processes *processes; /* NULL: all nodes are in this process. Only where DM_CAP_DEVICE */
    const struct dm_setting *settings;    /* the transport's options */
    size_t setting_count;
};

int dm_fabric_open(const struct dm_fabric_config *config, struct dm_fabric **fabric, struct dm_err *err);
void dm_fabric_close(struct dm_fabric *fabric); /* accepts NULL */

/* Compute processes that are connected to the nodes of this one, and whether there have been any. */
unsigned dm_fabric_peers(struct dm_fabric *fabric, bool *have_been);

const struct dm_transport_info *dm_fabric_transport(struct dm_fabric *fabric);
const struct dm_topology *dm_fabric_topology(struct dm_fabric *fabric);

/* Names of the profiles in the profile folder (sorted, NULL-terminated, owned by the callee) and a profile's hash as 16
 * hex digits. */
const char *const *dm_profile_names(void);
int dm_profile_check(const char *name, char hash[17], struct dm_err *err);

/* ---- contexts --------------------------------------------------------------------------------------------------- */

/* Starts a foreground context. Thread numbers are 0 .. dm_thread_count - 1 of the node. It runs when dm_fabric_run is
 * called. */
int dm_spawn(struct dm_fabric *fabric, unsigned node, unsigned thread, void (*entry)(struct dm_ctx *ctx, void *arg),
             void *arg);

/* Runs until every foreground context has returned. 0; DM_ERR_STOPPED after dm_fabric_stop; DM_ERR_IO with a reason if
 * contexts wait for one another for ever (sim finds this out). May be called again after more spawns. */
int dm_fabric_run(struct dm_fabric *fabric, struct dm_err *err);

/* One context on one node: spawn and run together. Returns entry's own value through *rc. For set-up and tests. */
int dm_fabric_do(struct dm_fabric *fabric, unsigned node, int (*entry)(struct dm_ctx *ctx, void *arg), void *arg,
                 int *rc, struct dm_err *err);

/* Makes all waits return DM_ERR_STOPPED soon. Safe in a signal handler. */
void dm_fabric_stop(struct dm_fabric *fabric);
bool dm_fabric_stopping(const struct dm_fabric *fabric);

/* Leaves the set-up phase: costs count from here. The first time, dm_now starts at 0. */
void dm_fabric_measure(struct dm_fabric *fabric);

/* Goes back to the set-up phase, for verify and final reads after a run. No context may be running. */
void dm_fabric_setup(struct dm_fabric *fabric);

/* Asked of a client between operations: does the context want to stop now? */
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

/* Sums of what contexts did while the account was theirs. Plain numbers: merge by adding. */
struct dm_account {
    uint64_t round_trips; /* waits for the network, however many verbs were posted before the wait */
    uint64_t verbs[DM_VERB_KIND_COUNT];
    uint64_t bytes_read, bytes_written; /* payload, without headers; calls: responses and requests */
    uint64_t doorbells;
    uint64_t cas_failures;
    uint64_t masked_emulated; /* masked atomics done by plain CAS */
    uint64_t retries[DM_RETRY_COUNT];
    uint64_t phase_ns[DM_PHASE_COUNT]; /* by dm_phase; nothing for `other`, which is the rest of the operation */
};

/* Counts of this context go to `account` from now on; NULL: nowhere. The caller keeps the account alive, and has called
 * dm_phase(ctx, DM_PHASE_OTHER) before. */
void dm_account_use(struct dm_ctx *ctx, struct dm_account *account);
void dm_account_add(struct dm_account *into, const struct dm_account *from);

/* Bytes allocated now on all memory nodes by kind, and bytes given back and not used again. */
struct dm_memory_use {
    uint64_t bytes[DM_MEM_KIND_COUNT];
    uint64_t freed;
    uint64_t chunk_bytes; /* handed out to threads in chunks, used or not */
    uint64_t chip_bytes;  /* of on-chip memory in use; in no chunk and in no kind */
};
void dm_memory_use(struct dm_fabric *fabric, struct dm_memory_use *use);

/* One queueing resource of one node: "nic_rx", "link_out", "cores"... `busy` is the share of the measured time in which
 * it worked. */
struct dm_resource {
    unsigned node;
    const char *name;
    double busy;       /* 0 .. 1 */
    double queue_mean; /* waiting and in service, time average */
    uint64_t served;
};

/* Starts a new observation interval for utilisation (end of warm-up). */
void dm_resources_reset(struct dm_fabric *fabric);

/* Copies up to capacity resources; returns how many there are. 0 for real-time transports. */
size_t dm_resources(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity);

/* What a result has to say of the fabric beside its settings: which device, what stands in for what. Both strings
 * belong to the fabric. Copies up to capacity notes; returns how many there are, DM_NOTES_MAX at most. */
enum { DM_NOTES_MAX = 8 };
struct dm_note {
    const char *name, *value;
};
size_t dm_fabric_notes(struct dm_fabric *fabric, struct dm_note *notes, size_t capacity);

/* Verbs sent since open. Exact between runs. */
uint64_t dm_verb_total(const struct dm_fabric *fabric);

/* ---- tracing ---------------------------------------------------------------------------------------------------- */

/* What a context may be seen to do beside verbs and calls. */
enum dm_trace_kind {
    DM_TRACE_WAIT = DM_VERB_KIND_COUNT, /* for a mutex or condition of its node */
    DM_TRACE_STOP,                      /* a fault stops it; outcome DM_ERR_STOPPED: for good */
    DM_TRACE_KIND_COUNT,
};
extern const char *const dm_trace_names[DM_TRACE_KIND_COUNT]; /* of verbs too */

/* One verb, call or wait, told when it is over. Times are those of dm_now. */
struct dm_trace_event {
    unsigned ctx, node, thread; /* who, and where it runs */
    unsigned kind;              /* enum dm_verb_kind or dm_trace_kind */
    unsigned target;            /* the node that a verb or call goes to; else the own one */
    dm_addr addr;
    uint32_t method;             /* of a call */
    uint32_t len;                /* bytes; of a call: its request */
    uint64_t batch;              /* verbs committed together have the same number; 0: none */
    bool is_waited;              /* false: unsignalled */
    uint64_t posted_ns, done_ns; /* its batch was committed; its completion came (unsignalled in real time: was sent) */

    /* What the responder did, in virtual time; 0 elsewhere and where it never came to it. A verb takes effect from
     * effect_ns (the first line) to landed_ns (the last); a call is answered at both. */
    uint64_t arrived_ns, effect_ns, landed_ns;

    int outcome;     /* 0 or a failure; of a call: its value */
    bool has_found;  /* of an atomic: the next three hold */
    bool is_swapped; /* it changed the word */
    uint64_t found;
    struct dm_mask op; /* of a CAS: compare and swap; of an addition: swap is what was added */
};

/* Called for each event, on the thread of its context in real time: several at once. It may not wait, and may not use
 * the fabric. */
typedef void (*dm_trace_sink)(void *arg, const struct dm_trace_event *event);

/* Events after the set-up phase go to `sink` from now on; NULL: nowhere, which costs nothing. Changes nothing that
 * happens in virtual time. Only while no context runs. */
void dm_fabric_trace(struct dm_fabric *fabric, dm_trace_sink sink, void *arg);

#endif
