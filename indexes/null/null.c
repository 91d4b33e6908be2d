/* SPDX-License-Identifier: Apache-2.0
 *
 * The null index: answers at once, sends no verb and stores no data. It measures the cost of the harness alone, and it
 * is the skeleton of an index: copy the folder, rename it, add one line to indexes/indexes.def and fill in the hooks
 * from top to bottom. docs/adding-an-index.md goes through a small tree that works; indexes/index.h is the contract.
 *
 * Each hook says whether it is required, what it may return and when. The objects that hooks fill (server, compute
 * node, client) are allocated zeroed and freed by the registry, from the sizes in the table. A hook that fails returns
 * a code below 0, and may word the reason by dm_fail; the registry puts "index null: " before it, and words a failure
 * without a message itself. A failure DM_ERR_STOPPED, DM_ERR_IO or DM_ERR_PEER of a verb is returned as it is, at once.
 */
#include <string.h>

#include "indexes/index.h"
#include "indexes/shared/retry.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

struct null_params {
    uint64_t work; /* shows what CPU work in each operation costs */
};

#define ROW(member, ...) DM_OPT_ROW(struct null_params, member, __VA_ARGS__)

/* Required, perhaps empty. One row a parameter; the command line, JSON specs, sweeps, results and --help follow. */
static const struct dm_opt params_table[] = {
    ROW(work, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1000000, .unit = "node probes",
        .help = "CPU work charged to every operation."),
    DM_OPT_END,
};

/* Optional. Parameter values with which a few thousand keys make a structure of many levels: small nodes. Conformance
 * tests use them where values have 8 bytes. `patient`, of the same type, is for an index whose addresses expire after a
 * time: values with which it also works on slow devices. */
static const struct ix_setting tiny[] = {{"work", "1"}, {.param = NULL}};

/* Optional. Parameter values that leave out a technique on purpose, each with the number of seeds within which
 * `dmbench check` must find what goes wrong; they prove that the check can fail. The null index stores nothing that can
 * be wrong; a tree has rows such as
 *     {"versions", "none", 20, "a read mixes two writes of one node"},
 */
static const struct ix_wrong wrong[] = {{.param = NULL}};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* Optional. X(constant, name in results, whether the event is rare: `dmbench check` must see it happen before its
 * silence means anything). What the transport counts (round trips, verbs, bytes, retries) is not counted again. */
#define NULL_COUNTERS(X) X(OPERATIONS, "operations", 0)
enum {
#define X(constant, text, rare) NULL_##constant,
    NULL_COUNTERS(X)
#undef X
        NULL_COUNTER_COUNT,
};

static const struct ix_counter counters[] = {NULL_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Shared by the clients of a compute node, which run on several threads: index cache, local lock queues. */
struct null_cn {
    const struct null_params *params;
    const struct ix_shape *shape;
};

/* Used by one context: buffers of verbs (dm_local_alloc), the path of a descent, counters. */
struct null_client {
    const struct null_cn *cn;
    struct dm_ctx *ctx;
    uint64_t counts[NULL_COUNTER_COUNT];
};

/* ---- before and after the measurement ---------------------------------------------------------------------------- */

/* Required. 0, or DM_ERR_INVALID for parameters or a shape that cannot work, with the limit in the message. The number
 * of memory nodes and value_bytes_max have been checked. */
static int check(const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    if (shape->expected_keys > IX_KEY_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%llu keys: must be 2^64 - 2 at most",
                       (unsigned long long)shape->expected_keys);
    }
    return 0;
}

/* Required. DRAM bytes that each memory node needs for this many keys, including the reserved page, half-full nodes and
 * what clients allocate in advance. */
static uint64_t memory_needed(const void *params, const struct ix_shape *shape, uint64_t keys) {
    (void)params;
    (void)shape;
    (void)keys;
    return DM_RESERVED_BYTES;
}

/* `serve` and `unserve` would be here. Optional; `serve` is required with IX_CAP_SERVERS. Called on every memory node
 * and index server before `format`, to register handlers (dm_register) and start background contexts. 0, also where
 * there is nothing to do, or DM_ERR_NO_MEMORY. */

/* `format` would be here. Optional. Writes an empty index into remote memory, once, before any compute node opens it: a
 * root word in [64, DM_RESERVED_BYTES) of memory node 0, lock tables, a first leaf. 0, or DM_ERR_NO_MEMORY if a memory
 * node is full, or the failure of a verb. */

/* Required. Fills the part of the compute node that ctx is on; params and shape outlive it. 0, or DM_ERR_NO_MEMORY, or
 * the failure of a verb. */
static int open_cn(void *handle, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct null_cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    return 0;
}

/* Optional. Frees what the part points to, also after an `open` that failed half-way. */
static void close_cn(void *handle) {
    (void)handle;
}

/* Required. Bulk load into the empty index: pairs are sorted and distinct and come in blocks. 0, or DM_ERR_NO_MEMORY if
 * the memory nodes are full, or the failure of a verb. */
static int load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)pairs;
    (void)err;
    return 0;
}

/* Required. Fills the handle of one context. All that an operation needs is allocated here. 0, or DM_ERR_NO_MEMORY, or
 * the failure of a verb. */
static int attach(void *handle, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    struct null_client *client = handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    return 0;
}

/* Optional. Frees what the handle points to, also after an `attach` that failed half-way or never returned. */
static void detach(void *handle) {
    (void)handle;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Reads what an operation needs from remote memory: sends a batch of verbs, waits for them, charges the CPU work
 * (dm_charge) and checks what was read. 0, or DM_NOT_FOUND if it was torn or out of date and must be read again, or the
 * failure of a verb. Here there is nothing to read. */
static int state_read(struct null_client *client) {
    if (client->cn->params->work > 0) {
        dm_charge(client->ctx, DM_WORK_NODE_PROBE, (uint32_t)client->cn->params->work);
    }
    return 0;
}

/* Every loop on remote state ends by dm_retry, which counts the retry by its cause and returns DM_ERR_RETRY_LIMIT when
 * one operation has retried too often. Where the client waits for another one (a lock, a half-written leaf) the loop
 * ends by ix_retry, which also backs off. */
static int operation(struct null_client *client) {
    client->counts[NULL_OPERATIONS]++;
    for (uint32_t attempts = 0;;) {
        int rc = state_read(client);
        if (rc <= 0) {
            return rc;
        }
        DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, &attempts, 0));
    }
}

/* Required. 0 with the value, or DM_NOT_FOUND. This and the other operations may also return DM_ERR_RETRY_LIMIT, the
 * failure of a verb, or DM_ERR_NO_MEMORY, which means that nothing was changed. After any other failure a write may or
 * may not have happened; locks were released, except after DM_ERR_STOPPED and DM_ERR_PEER, when no verb can be sent. */
static int get(void *handle, uint64_t key, void *value) {
    struct null_client *client = handle;
    (void)key;
    memset(value, 0, client->cn->shape->value_bytes);
    return operation(client);
}

/* Required with IX_CAP_INSERT. 0, or DM_EXISTS and the old value is kept. */
static int insert(void *handle, uint64_t key, const void *value) {
    (void)key;
    (void)value;
    return operation(handle);
}

/* Required with IX_CAP_INSERT. 0, or DM_NOT_FOUND and nothing is inserted. */
static int update(void *handle, uint64_t key, const void *value) {
    (void)key;
    (void)value;
    return operation(handle);
}

/* Required with IX_CAP_DELETE. 0, or DM_NOT_FOUND. */
static int remove_key(void *handle, uint64_t key) {
    (void)key;
    return operation(handle);
}

/* Required with IX_CAP_SCAN. 0 with the first `count` pairs from `first` on, ascending, and their number in *found,
 * which is smaller only at the end of the index. */
static int scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    (void)first;
    (void)count;
    (void)keys;
    (void)values;
    *found = 0;
    return operation(handle);
}

/* ---- inspection -------------------------------------------------------------------------------------------------- */

/* Required. Bytes of index cache in use on this compute node, headers included; at most shape->cache_bytes. */
static uint64_t cache_bytes(const void *cn) {
    (void)cn;
    return 0;
}

/* Required. Walks the whole index while nothing else runs. What is broken is counted in the report, with the first
 * problem in words, and is no failure of the walk. 0, or DM_ERR_NO_MEMORY, or the failure of a verb. */
static int verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    return 0;
}

/* The table is the only symbol that is seen outside: ix_ops_<name>. It is checked when the program starts. */
const struct ix_ops ix_ops_null = {
    .name = "null",
    .summary = "answers at once without a verb: the floor of the harness, and the skeleton of an index",
    .paper = "none",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_NO_DATA,
    .params = params_table,
    .params_bytes = sizeof(struct null_params),
    .tiny = tiny,
    .wrong = wrong,
    .counters = counters,
    .counts_offset = offsetof(struct null_client, counts),
    .cn_bytes = sizeof(struct null_cn),
    .client_bytes = sizeof(struct null_client),
    .check = check,
    .memory_needed = memory_needed,
    .open = open_cn,
    .close = close_cn,
    .load = load,
    .attach = attach,
    .detach = detach,
    .get = get,
    .insert = insert,
    .update = update,
    .remove = remove_key,
    .scan = scan,
    .cache_bytes = cache_bytes,
    .verify = verify,
};
