/* SPDX-License-Identifier: Apache-2.0
 *
 * Dolphin's table: parameters and their checks; format; open and close; attach and detach.
 */
#include "dolphin.h"

#include <stdlib.h>

#include "indexes/shared/lock_tables.h"

enum {
    SCAN_BATCH_BYTES = 65536, /* a client's buffer for the leaves of one doorbell */
    VALUE_MAX = 1024,
};

static const char *const lock_locations[] = {"leaf", "chip", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct dolphin_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(leaf_bytes, DM_OPT_BYTES, .initial = "1024", .min = 128, .max = 65536,
        .help = "Size of a leaf in remote memory, a multiple of 64."),
    ROW(fill, DM_OPT_REAL, .initial = "0.8", .min = 0.1, .max = 1,
        .help = "Share of a leaf's entries that bulk load fills, where a prefix needs several leaves."),
    ROW(locks, DM_OPT_ENUM, .initial = "leaf", .choices = lock_locations,
        .help = "Where the lock of a leaf is: in the leaf, or in on-chip memory."),
    ROW(lock_count, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1048576, .unit = "locks",
        .help = "Lock words in the on-chip memory of a memory node; 0: as many as fit."),
    ROW(merge, DM_OPT_BOOL, .initial = "on", .help = "Empty leaves are taken out of the tree."),
    ROW(strict, DM_OPT_BOOL, .initial = "on",
        .help = "The seven repairs below; off: none of them, the paper as written."),
    ROW(keep_slots, DM_OPT_BOOL, .initial = "on",
        .help = "A deleted entry is reused only when its complete leaf is rewritten."),
    ROW(publish, DM_OPT_BOOL, .initial = "on", .help = "An inserted key becomes visible after its value."),
    ROW(check_insert, DM_OPT_BOOL, .initial = "on",
        .help = "Inserts take entries in one order, and read the words again when an entry is taken first."),
    ROW(check_smo, DM_OPT_BOOL, .initial = "on",
        .help =
            "Readers compare versions, and a leaf that splits gets its smaller range before the other half is linked."),
    ROW(cas_delete, DM_OPT_BOOL, .initial = "on", .help = "A delete changes the key by compare-and-swap."),
    ROW(lock_long, DM_OPT_BOOL, .initial = "on", .help = "One client at a time writes a value of several lines."),
    ROW(check_scan, DM_OPT_BOOL, .initial = "on",
        .help = "A scan reads the inner nodes that show what is between its leaves."),
    ROW(backtrack, DM_OPT_BOOL, .initial = "on",
        .help = "A reader of a leaf that does not cover its key continues at the leaf's parent."),
    DM_OPT_END,
};

static const struct ix_wrong wrong_values[] = {
    {"strict", "off", 20, "everything that the seven repairs prevent"},
    {"keep_slots", "off", 20, "a late update writes its value to an entry that now belongs to another key"},
    {"publish", "off", 20, "a key is visible before its value"},
    {"check_insert", "off", 20, "two inserts of a key take two entries"},
    {"check_smo", "off", 4000, "a reader mixes two states of a leaf, or uses a stale copy of one that has been split"},
    {"cas_delete", "off", 20, "two deletes of a key both succeed, or one deletes another key"},
    {"lock_long", "off", 600, "two updates leave a mixture of two long values"},
    {"check_scan", "off", 60, "a scan trusts its cache that there is nothing between two leaves"},
    {"backtrack", "off", 60, "a reader whose cached leaf was split misses keys that moved"},
    {.param = NULL},
};

static const struct ix_counter counters[] = {DOLPHIN_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static struct dolphin_layout layout_of(const struct dolphin_params *params, const struct ix_shape *shape) {
    return dolphin_layout_make((uint32_t)params->leaf_bytes, shape->value_bytes, params->strict,
                               params->locks == DOLPHIN_LOCKS_LEAF);
}

static uint32_t lock_count(const struct dolphin_params *params, const struct dm_topology *topology) {
    return params->lock_count > 0 ? (uint32_t)params->lock_count : topology->chip_bytes / (uint32_t)sizeof(uint64_t);
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct dolphin_params *params = values;
    const struct dm_topology *topology = shape->topology;
    if (params->leaf_bytes % DM_LINE != 0) {
        return dm_fail(err, DM_ERR_INVALID, "leaf_bytes %llu is not a multiple of %d",
                       (unsigned long long)params->leaf_bytes, DM_LINE);
    }
    if (layout_of(params, shape).cap < DOLPHIN_CAP_MIN) {
        return dm_fail(err, DM_ERR_INVALID,
                       "a leaf must hold %d entries: leaf_bytes %llu is too small for values of %u bytes",
                       DOLPHIN_CAP_MIN, (unsigned long long)params->leaf_bytes, shape->value_bytes);
    }
    return params->locks == DOLPHIN_LOCKS_CHIP
               ? ix_lock_tables_check(IX_LOCK_CHIP, lock_count(params, topology), topology, "locks=leaf", err)
               : 0;
}

/* A leaf holds the keys of one prefix of seven bytes. The number of keys that share a prefix is unknown here, so this
 * assumes that none do: a leaf for each key, and inner nodes of a few children. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct dolphin_params *params = values;
    uint64_t each = params->leaf_bytes + 2 * dolphin_node_bytes(DOLPHIN_N4);
    uint64_t spares = 2 * (uint64_t)shape->topology->clients * params->leaf_bytes;
    uint64_t all = keys * each + spares + 64 * (uint64_t)dolphin_node_bytes(DOLPHIN_N256);
    return DM_RESERVED_BYTES + all / shape->topology->mns + all / 16 + dolphin_node_bytes(DOLPHIN_N256);
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct dolphin_params *params = values;
    struct dolphin_node *root = dm_local_alloc(ctx, sizeof(*root));
    uint64_t *word = dm_local_alloc(ctx, sizeof(*word));
    if (!root || !word) {
        return DM_ERR_NO_MEMORY;
    }
    if (params->locks == DOLPHIN_LOCKS_CHIP) {
        DM_TRY(
            ix_lock_tables_format(ctx, IX_LOCK_CHIP, lock_count(params, shape->topology), DOLPHIN_LOCKS_OFFSET, err));
    }
    dm_addr addr;
    int rc = dm_alloc(ctx, 0, dolphin_node_bytes(DOLPHIN_N256), DM_LINE, DM_MEM_INNER, &addr);
    if (rc < 0) {
        return dm_fail(err, rc, "no memory for the root on memory node 0");
    }
    dolphin_node_init(root, DOLPHIN_N256, 0, 0, 0);
    *word = dolphin_word(0, 0, DOLPHIN_N256, addr);
    dm_post_write(ctx, addr, root, dolphin_node_bytes(DOLPHIN_N256));
    dm_post_write(ctx, dm_addr_make(0, DM_DRAM, DOLPHIN_ROOT_OFFSET), word, sizeof(*word));
    return dm_commit(ctx);
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct dolphin_cn *cn = handle;
    ix_cache_close(cn->cache);
    ix_locks_close(cn->locks);
}

static int cn_open_parts(struct dm_ctx *ctx, struct dolphin_cn *cn) {
    const struct dolphin_params *params = cn->params;
    uint64_t *root = dm_local_alloc(ctx, sizeof(*root));
    if (!root) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_read(ctx, dm_addr_make(0, DM_DRAM, DOLPHIN_ROOT_OFFSET), root, sizeof(*root)));
    cn->root = *root;
    if (params->locks == DOLPHIN_LOCKS_CHIP) {
        struct ix_lock_config locks = {.count = lock_count(params, cn->shape->topology)};
        DM_TRY(ix_lock_tables_open(ctx, &locks, DOLPHIN_LOCKS_OFFSET, &cn->locks));
    }
    struct ix_cache_config cache = {
        .bytes = cn->shape->cache_bytes,
        .copy_bytes = sizeof(struct dolphin_piece),
        .threads = dm_thread_count(dm_fabric_of(ctx), dm_node(ctx)),
        .one_thread = dm_is_one_thread(dm_fabric_of(ctx)),
    };
    return ix_cache_open(&cache, &cn->cache);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct dolphin_cn *cn = handle;
    const struct dolphin_params *params = values;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    cn->layout = layout_of(params, shape);
    cn->keep_slots = params->strict && params->keep_slots;
    cn->publish = params->strict && params->publish;
    cn->check_insert = params->strict && params->check_insert;
    cn->check_smo = params->strict && params->check_smo;
    cn->cas_delete = params->strict && params->cas_delete;
    cn->lock_long = params->strict && params->lock_long;
    cn->check_scan = params->strict && params->check_scan;
    uint32_t batch = SCAN_BATCH_BYTES / cn->layout.leaf_bytes;
    cn->scan_batch = batch < 2 ? 2 : batch > DOLPHIN_SCAN_BATCH_MAX ? DOLPHIN_SCAN_BATCH_MAX : batch;
    return cn_open_parts(ctx, cn);
}

static uint64_t cache_bytes(const void *handle) {
    const struct dolphin_cn *cn = handle;
    return ix_cache_used(cn->cache);
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct dolphin_client *client = handle;
    if (!dm_addr_is_null(client->spare_leaf)) {
        dm_free(client->ctx, client->spare_leaf, client->cn->layout.leaf_bytes, DM_MEM_LEAF);
    }
    free(client->scratch);
    free(client->order);
    free(client->pieces);
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct dolphin_client *client = handle;
    struct dolphin_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    client->thread = dm_thread(ctx);
    uint32_t leaf_bytes = cn->layout.leaf_bytes;
    uint32_t words = (DOLPHIN_OLDS + DOLPHIN_OUTS) * (uint32_t)sizeof(uint64_t);
    char *device = dm_local_alloc(ctx, words + (3 + cn->scan_batch) * leaf_bytes);
    client->node = dm_local_alloc(ctx, 3 * (uint32_t)sizeof(struct dolphin_node));
    client->scratch = calloc(1, cn->layout.value_bytes);
    client->order = calloc(cn->layout.cap, sizeof(*client->order));
    client->pieces = calloc(DOLPHIN_PIECES_MAX, sizeof(*client->pieces));
    client->scan_nodes = dm_local_alloc(ctx, DOLPHIN_SCAN_NODE_BYTES);
    client->leaf_depth = DOLPHIN_SPECIAL;
    client->density[0] = (int64_t)(cn->params->fill * cn->layout.cap * DOLPHIN_DENSITY_ONE);
    client->density[1] = client->density[0];
    if (!device || !client->node || !client->scan_nodes || !client->scratch || !client->order || !client->pieces) {
        return DM_ERR_NO_MEMORY;
    }
    client->olds = (uint64_t *)(void *)device;
    client->outs = client->olds + DOLPHIN_OLDS;
    client->leaf = device + words;
    client->left = client->leaf + leaf_bytes;
    client->right = client->left + leaf_bytes;
    client->batch = client->right + leaf_bytes;
    client->upper = client->node + 1;
    client->fresh = client->node + 2;
    return 0;
}

static const struct ix_setting tiny[] = {{"leaf_bytes", "128"}, {.param = NULL}};

const struct ix_ops ix_ops_dolphin = {
    .name = "dolphin",
    .summary =
        "adaptive radix tree over B+ tree leaves, updates ordered by the memory node's NIC; one-sided verbs only",
    .paper = "H. An, F. Wang, D. Feng, Z. Liu: Dolphin: A Resource-efficient Hybrid Index on Disaggregated Memory",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct dolphin_params),
    .counters = counters,
    .counts_offset = offsetof(struct dolphin_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .value_bytes_max = VALUE_MAX,
    .cn_bytes = sizeof(struct dolphin_cn),
    .client_bytes = sizeof(struct dolphin_client),
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = dolphin_load,
    .attach = attach,
    .detach = detach,
    .get = dolphin_get,
    .insert = dolphin_insert,
    .update = dolphin_update,
    .remove = dolphin_remove,
    .scan = dolphin_scan,
    .cache_bytes = cache_bytes,
    .verify = dolphin_verify,
};
