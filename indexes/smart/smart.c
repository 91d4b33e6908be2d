/* SPDX-License-Identifier: Apache-2.0
 *
 * SMART's table: parameters and their checks; format; open and close; attach and detach.
 */
#include "smart.h"

#include <stdlib.h>

enum {
    VALUE_MAX = 4096,
    POOL_FIRST = 16, /* leaves that fit before the pool grows */
    FOUND_MAX = 256, /* pairs of a scan whose indirect values may be missing */
};

static const char *const node_types[] = {"art", "powers", NULL};
static const char *const update_modes[] = {"in_place", "rcu", "rcu_late", NULL};
static const char *const lease_choices[] = {"leaf", "lock", NULL};
static const char *const accountings[] = {"published", "all", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct smart_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(nodes, DM_OPT_ENUM, .initial = "powers", .choices = node_types,
        .help = "Slots of the node types: 4, 16, 48 and 256, or all powers of two from 4 to 256."),
    ROW(update, DM_OPT_ENUM, .initial = "in_place", .choices = update_modes,
        .help = "An update writes the leaf under its lock, or replaces it by another leaf (SMART-RCU); rcu_late "
                "(wrong): the old leaf is marked after the slot has changed, as published."),
    ROW(align, DM_OPT_BYTES, .initial = "256", .min = 64, .max = 4096,
        .help = "Leaves and inner nodes take a multiple of this, a power of two."),
    ROW(accounting, DM_OPT_ENUM, .initial = "published", .choices = accountings,
        .help = "What counts against the budget of the cache: as in the authors' code, or every byte."),
    ROW(scan_probes, DM_OPT_COUNT, .initial = "0", .max = 100000, .unit = "probes", .added = true,
        .help = "CPU work that a scan is charged for each pair beside its own, in probes of a local structure: the "
                "authors' code looks up every key of the range in the cache, from the root on."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = ix_values_choices, .help = IX_VALUES_HELP),
    ROW(lease_us, DM_OPT_COUNT, .initial = "0", .max = 1000000, .unit = "us",
        .help = "How long clients wait for the one that has locked or claimed a leaf; 0: for ever, as published. "
                "Not for nodes that shrink=on takes out."),
    ROW(lease_takes, DM_OPT_ENUM, .initial = "leaf", .choices = lease_choices,
        .help = "When a lease is over the locked leaf is replaced, or (wrong) its lock is taken."),
    ROW(shrink, DM_OPT_BOOL, .initial = "off",
        .help = "After a delete, nodes with one leaf or nothing left are taken out; their memory is not reused."),
    ROW(confirm, DM_OPT_BOOL, .initial = "on",
        .help = "That a key is absent follows only from a slot that the operation has read; off (wrong): a cached one "
                "will do if the reverse pointer agrees, as published."),
    ROW(recheck_lock, DM_OPT_BOOL, .initial = "on",
        .help = "Taking a leaf's lock fails if the leaf has been deleted or replaced meanwhile; off (wrong)."),
    ROW(unlock_apart, DM_OPT_BOOL, .initial = "on",
        .help = "A leaf of several lines is unlocked by a write of its own; off (wrong): by that of the leaf, as "
                "published."),
    ROW(keep_slots, DM_OPT_BOOL, .initial = "on",
        .help = "The slot of a deleted leaf keeps its byte; off (wrong): any insert may take it."),
    ROW(check_sum, DM_OPT_BOOL, .initial = "on", .help = "Readers compare the leaf's checksum; off (wrong)."),
    ROW(wait_type, DM_OPT_BOOL, .initial = "on",
        .help = "An insert into a full node waits until the node's type covers the key; off (wrong)."),
    ROW(check_scan, DM_OPT_BOOL, .initial = "on",
        .help = "A scan reads the nodes on its path; off (wrong): it takes the slots in order from the cache, as "
                "published."),
    DM_OPT_END,
};

static const struct ix_wrong wrong_values[] = {
    {"update", "rcu_late", 40, "a cached leaf that was replaced is read after the update has returned"},
    {"confirm", "off", 40, "a key is absent for a client whose cached slot is older than the key"},
    {"recheck_lock", "off", 20, "an update writes to a leaf that has been deleted, or is another key's"},
    {"unlock_apart", "off", 0, "the lock is free before all lines of the leaf are written"},
    {"keep_slots", "off", 40, "two slots of a node for one byte"},
    {"check_sum", "off", 400, "a reader mixes two values of several lines"},
    {"wait_type", "off", 300, "a key that was inserted does not count yet"},
    {"check_scan", "off", 40, "a scan misses what its cache does not know"},
    {"lease_takes", "lock", 1000, "a client whose lock was taken writes its value over a newer one"},
    {"values", "unchecked", 200, "a block that has been used again is taken for what it was"},
    {.param = NULL},
};

static const struct ix_counter counters[] = {SMART_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static struct smart_layout layout_of(const struct smart_params *params, const struct ix_shape *shape) {
    return smart_layout_make(ix_key_bytes(shape), ix_values_stored(params->values, shape->value_bytes),
                             (uint32_t)params->align, params->nodes == SMART_NODES_POWERS);
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct smart_params *params = values;
    if ((params->align & (params->align - 1)) != 0) {
        return dm_fail(err, DM_ERR_INVALID, "align %llu is not a power of two", (unsigned long long)params->align);
    }
    if (shape->topology->mn_bytes > (UINT64_C(1) << 32) * SMART_UNIT) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes of %llu bytes: a slot addresses 256 GiB",
                       (unsigned long long)shape->topology->mn_bytes);
    }
    return params->values == IX_VALUES_INLINE ? 0 : ix_values_check(params->values, shape->value_bytes, err);
}

/* The number of nodes depends on the keys: one for 256 dense keys; of random keys at most 0.3 a key, where two in a
 * node are as likely as one; one a key in the worst case, for which there is memory up to 64 K keys. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct smart_params *params = values;
    struct smart_layout layout = layout_of(params, shape);
    const struct dm_topology *topology = shape->topology;
    double nodes = 0.31 * (double)keys + (keys < 65536 ? (double)keys : 65536) + 2.0 * topology->clients;
    double leaves = (double)keys + 4.0 * topology->clients;
    double all = nodes * layout.node_alloc + leaves * layout.leaf_alloc +
                 ix_indirect_memory(params->values, shape->value_bytes + ix_key_padding(shape), keys, shape);
    return DM_RESERVED_BYTES + (uint64_t)(all / topology->mns * 1.05) + 16 * (uint64_t)layout.node_alloc;
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct smart_cn *cn = handle;
    smart_cache_close(cn->cache);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct smart_cn *cn = handle;
    const struct smart_params *params = values;
    (void)ctx;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    cn->layout = layout_of(params, shape);
    cn->update = params->update;
    uint32_t fit = SMART_SCAN_BYTES / cn->layout.leaf_bytes;
    cn->scan_batch = fit < SMART_SCAN_BATCH_MAX ? fit : SMART_SCAN_BATCH_MAX;
    struct smart_cache_config cache = {
        .bytes = shape->cache_bytes,
        .expected_keys = shape->expected_keys,
        .accounting = params->accounting,
        .layout = &cn->layout,
    };
    return smart_cache_open(&cache, &cn->cache);
}

static uint64_t cache_bytes(const void *handle) {
    const struct smart_cn *cn = handle;
    return smart_cache_used(cn->cache);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct smart_client *client = handle;
    for (unsigned i = 0; i < client->spare_count; i++) {
        dm_free(client->ctx, client->spares[i], client->cn->layout.node_alloc, DM_MEM_INNER);
    }
    /* The leaves in the pool are lost: another client would begin with a stamp that they have had. */
    free(client->pool.words);
    ix_indirect_close(client->indirect);
    smart_scan_close(client);
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct smart_client *client = handle;
    struct smart_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    uint32_t leaf = (cn->layout.leaf_bytes + 7) / 8 * 8;
    char *device = dm_local_alloc(ctx, (1 + SMART_CHAIN_MAX) * SMART_NODE_BYTES + 2 * leaf +
                                           (SMART_SLOTS + 1) * (uint32_t)sizeof(uint64_t));
    client->pool.words = calloc(POOL_FIRST, sizeof(*client->pool.words));
    client->pool.capacity = POOL_FIRST;
    if (!device || !client->pool.words) {
        return DM_ERR_NO_MEMORY;
    }
    client->node = (struct smart_node *)(void *)device;
    client->made = client->node + 1;
    client->olds = (uint64_t *)(void *)(device + (1 + SMART_CHAIN_MAX) * SMART_NODE_BYTES);
    client->outs = client->olds + SMART_SLOTS;
    client->leaf = (char *)(client->outs + 1);
    client->fresh = client->leaf + leaf;
    DM_TRY(smart_scan_open(client));
    struct ix_indirect_config indirect = {
        .values = cn->params->values,
        .value_bytes = cn->shape->value_bytes,
        .padding = ix_key_padding(cn->shape),
        .found_max = FOUND_MAX,
        .reused = &client->counts[SMART_VALUE_REUSED],
    };
    return ix_indirect_open(ctx, &indirect, &client->indirect);
}

static bool survives_stops(const void *values) {
    const struct smart_params *params = values;
    return params->lease_us > 0 && !params->shrink;
}

const struct ix_ops ix_ops_smart = {
    .name = "smart",
    .summary = "adaptive radix tree with nodes of one size, leaves that are updated in place; one-sided verbs only",
    .paper = "X. Luo, P. Zuo, J. Shen, J. Gu, X. Wang, M. Lyu, Y. Zhou: SMART: A High-Performance Adaptive Radix Tree "
             "for Disaggregated Memory, OSDI 2023",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_RESIZE,
    .params = params_table,
    .params_bytes = sizeof(struct smart_params),
    .counters = counters,
    .counts_offset = offsetof(struct smart_client, counts),
    .wrong = wrong_values,
    .survives_stops = survives_stops,
    .value_bytes_max = VALUE_MAX,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct smart_cn),
    .client_bytes = sizeof(struct smart_client),
    .check = check,
    .memory_needed = memory_needed,
    /* No `format`: the slot of the root is zero from the start, which is an empty tree. */
    .open = open_cn,
    .close = close_cn,
    .load = smart_load,
    .attach = attach,
    .detach = detach,
    .get = smart_get,
    .insert = smart_insert,
    .update = smart_update,
    .remove = smart_remove,
    .scan = smart_scan,
    .cache_bytes = cache_bytes,
    .verify = smart_verify,
};
