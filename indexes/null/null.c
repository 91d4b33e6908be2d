/* SPDX-License-Identifier: Apache-2.0
 *
 * The null index: answers at once, sends no verb and keeps no data. It measures the harness's own floor, and it is the
 * skeleton of an index: copy the folder, rename it, add one line to indexes/indexes.def, and fill in the hooks from top
 * to bottom. Each says what it is for and whether it is required; indexes/index.h is the contract.
 */
#include <string.h>

#include "indexes/index.h"

/* ---- parameters: what a user can set; one row each, no other place ------------------------------------------------
 */

struct null_params {
    uint64_t work; /* an example, and of use: what does CPU work an operation cost? */
};

#define ROW(member, ...) DM_OPT_ROW(struct null_params, member, __VA_ARGS__)

/* Names, defaults, ranges and help come from here alone: the command line, JSON specs, sweeps and results follow. */
static const struct dm_opt params_table[] = {
    ROW(work, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1000000, .unit = "node probes",
        .help = "CPU work charged to every operation."),
    DM_OPT_END,
};

/* ---- counters: events of interest, one number a client -------------------------------------------------------------
 */

/* X(constant, name in results, whether `dmbench check` must see it happen) */
#define NULL_COUNTERS(X) X(OPERATIONS, "operations", 0)
enum {
#define X(constant, text, rare) COUNT_##constant,
    NULL_COUNTERS(X)
#undef X
        COUNT_ALL,
};

static const struct ix_counter counters[] = {NULL_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

/* ---- state: a compute node's part, and a client's --------------------------------------------------------------- */

/* Shared by all clients of a compute node: index cache, local locks. Several threads use it at once. */
struct null_cn {
    const struct null_params *params;
    const struct ix_shape *shape;
};

/* One context's own: buffers for verbs (dm_local_alloc), the way down a tree, counters. */
struct null_client {
    const struct null_cn *cn;
    struct dm_ctx *ctx;
    uint64_t counts[COUNT_ALL];
};

/* Refuses parameters and shapes that cannot work, with a message that names the limit. Required. */
static int check(const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    if (shape->value_bytes < 1) {
        return dm_fail(err, DM_ERR_INVALID, "values need at least 1 byte");
    }
    return 0;
}

/* DRAM bytes a memory node needs for this many keys, with what operations leave behind. Required. */
static uint64_t memory_needed(const void *params, const struct ix_shape *shape, uint64_t keys) {
    (void)params;
    (void)shape;
    (void)keys;
    return DM_RESERVED_BYTES;
}

/* `serve` and `unserve` would come here: code that runs on memory nodes or index servers, that is handlers registered
 * with dm_register and background contexts. Optional, both or none; without IX_CAP_SERVERS an index needs neither. */

/* Writes an empty index into remote memory, once, before any compute node opens it: a root in [64, DM_RESERVED_BYTES)
 * of memory node 0, lock tables, a first leaf. Required. */
static int format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)ctx;
    (void)params;
    (void)shape;
    (void)err;
    return 0;
}

/* Fills the part of the compute node that ctx is on, which is zeroed. params and shape outlive it, so pointers to them
 * may be kept. Required. */
static int open_cn(void *handle, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct null_cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    return 0;
}

/* `close` would come here: frees what the part points to, also after an open that failed half-way. Optional. */

/* Bulk load into the empty index: pairs are sorted and distinct and come in blocks. Not measured. Required. */
static int load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)pairs;
    (void)err;
    return 0;
}

/* Fills the handle of one context, which is zeroed. Everything that an operation needs is allocated here: operations
 * allocate no local memory. Required. */
static int attach(void *handle, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    struct null_client *client = handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    return 0;
}

/* `detach` would come here: frees what the handle points to, also after an attach that failed half-way. Optional. */

/* What every operation here does. A real one ends each loop on remote state by dm_retry, charges its CPU work with
 * dm_charge, and counts nothing that the transport counts (round trips, verbs, bytes). */
static void operation(struct null_client *client) {
    client->counts[COUNT_OPERATIONS]++;
    if (client->cn->params->work > 0) {
        dm_charge(client->ctx, DM_WORK_NODE_PROBE, (uint32_t)client->cn->params->work);
    }
}

/* 0 with the value, or DM_NOT_FOUND. Required. */
static int get(void *handle, uint64_t key, void *value) {
    struct null_client *client = handle;
    (void)key;
    operation(client);
    memset(value, 0, client->cn->shape->value_bytes);
    return 0;
}

/* 0, or DM_EXISTS with the old value left. With IX_CAP_INSERT. */
static int insert(void *handle, uint64_t key, const void *value) {
    (void)key;
    (void)value;
    operation(handle);
    return 0;
}

/* 0, or DM_NOT_FOUND. With IX_CAP_INSERT. */
static int update(void *handle, uint64_t key, const void *value) {
    (void)key;
    (void)value;
    operation(handle);
    return 0;
}

/* 0, or DM_NOT_FOUND. With IX_CAP_DELETE. */
static int remove_key(void *handle, uint64_t key) {
    (void)key;
    operation(handle);
    return 0;
}

/* The first `count` pairs from `first` on, ascending; *found of them. With IX_CAP_SCAN. */
static int scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    (void)first;
    (void)count;
    (void)keys;
    (void)values;
    operation(handle);
    *found = 0;
    return 0;
}

/* Bytes of index cache in use on this compute node, every byte of it counted. Required. */
static uint64_t cache_bytes(const void *cn) {
    (void)cn;
    return 0;
}

/* Walks the whole index when nothing else runs and says what is broken. Required. */
static int verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    return 0;
}

/* The table: the only symbol that others see, named ix_ops_<name>. Hooks in the order of an index's life. */
const struct ix_ops ix_ops_null = {
    .name = "null",
    .summary = "answers at once without a verb: the floor of the harness, and the skeleton of an index",
    .paper = "none",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_NO_DATA,
    .params = params_table,
    .params_bytes = sizeof(struct null_params),
    .counters = counters,
    .counts_offset = offsetof(struct null_client, counts),
    .cn_bytes = sizeof(struct null_cn),
    .client_bytes = sizeof(struct null_client),
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .load = load,
    .attach = attach,
    .get = get,
    .insert = insert,
    .update = update,
    .remove = remove_key,
    .scan = scan,
    .cache_bytes = cache_bytes,
    .verify = verify,
};
