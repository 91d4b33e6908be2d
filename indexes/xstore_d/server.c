/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of a memory node: reads that clients could not complete one-sided, inserts with splits, updates,
 * deletes, and lists of leaves for scans (XStore, section 5.3). Every handler charges the memory node's cores.
 */
#include "server.h"

#include "btree.h"
#include "leaf.h"
#include "load.h"
#include "log.h"
#include "train.h"

enum { BLOCKS_AT_ONCE = 64 };

/* ---- models that a client does not have -------------------------------------------------------------------------- */

static void models_add(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_known *known,
                       struct xstore_reply *reply, char *out) {
    struct xstore_set set = {.generation = 0};
    if (dm_mutex_lock(ctx, &server->models_lock) == 0) {
        set = server->set;
        dm_mutex_unlock(ctx, &server->models_lock);
    }
    reply->generation = set.generation;
    if (known->generation != set.generation || known->number >= set.top.models) {
        return; /* the client will read the new set */
    }
    uint64_t words[XSTORE_RECORD_WORDS];
    struct xstore_record record;
    dm_addr records = xstore_addr(server->node, set.records);
    dm_cpu_read(ctx, dm_addr_add(records, (uint64_t)known->number * XSTORE_MODEL_BYTES), words, sizeof(words));
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    uint64_t seed = xstore_record_seed(server->node, set.generation, known->number);
    if (!xstore_record_decode(words, seed, &record) || record.version == known->version) {
        if (known->stale) {
            xstore_train_stale(server, ctx, known);
        }
        return;
    }
    reply->version = record.version;
    memcpy(out, words, sizeof(words));
    uint32_t lines = known->stale > 1 ? xstore_lines_for(record.leaves) : 0;
    dm_addr table = xstore_addr(server->node, record.table);
    if (lines > 0 && lines <= XSTORE_REPLY_LINES && dm_addr_valid(ctx, table, lines * DM_LINE)) {
        reply->lines = lines;
        dm_cpu_read(ctx, table, out + sizeof(words), lines * DM_LINE);
        dm_charge(ctx, DM_WORK_LINE_COPY, lines);
    }
}

static uint32_t models_bytes(const struct xstore_reply *reply) {
    return (reply->version > 0 ? XSTORE_MODEL_BYTES : 0) + reply->lines * DM_LINE;
}

/* ---- reads ------------------------------------------------------------------------------------------------------- */

static void charge_search(struct xstore_server *server, struct dm_ctx *ctx) {
    dm_charge(ctx, DM_WORK_KEY_COMPARE, server->layout.slots);
}

static int on_get(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    const struct xstore_get_request *request = req;
    struct xstore_reply reply = {.generation = 0};
    char *out = resp;
    uint32_t most = (uint32_t)sizeof(reply) + XSTORE_MODEL_BYTES + XSTORE_REPLY_LINES * DM_LINE;
    if (req_len != sizeof(*request) || *resp_len < most + XSTORE_VALUE_MAX) {
        return DM_ERR_INVALID;
    }
    models_add(server, ctx, &request->known, &reply, out + sizeof(reply));
    struct xstore_leaf leaf;
    uint32_t at = (uint32_t)sizeof(reply) + models_bytes(&reply);
    DM_TRY(xstore_leaf_lock(server, ctx, request->key, &leaf));
    int slot = xstore_leaf_find(&leaf, request->key);
    if (slot >= 0) {
        xstore_value_fetch(server, ctx, leaf.ref, (unsigned)slot, out + at);
        reply.items = 1;
        at += server->layout.user_words * 8;
    }
    xstore_leaf_unlock(server, ctx, leaf.ref);
    charge_search(server, ctx);
    memcpy(out, &reply, sizeof(reply));
    *resp_len = at;
    return slot >= 0 ? 0 : DM_NOT_FOUND;
}

/* The first leaf of a walk. */
static int walk_begin(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_walk_request *request,
                      uint32_t *ref) {
    struct xstore_leaf leaf;
    *ref = request->from;
    if (request->from == 0) {
        DM_TRY(xstore_leaf_lock(server, ctx, request->key, &leaf));
        xstore_leaf_unlock(server, ctx, leaf.ref);
        *ref = leaf.ref;
    }
    return 0;
}

static int on_walk(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    const struct xstore_walk_request *request = req;
    struct xstore_reply reply = {.generation = 0};
    char *out = resp;
    uint32_t most = (uint32_t)sizeof(reply) + XSTORE_MODEL_BYTES + XSTORE_REPLY_LINES * DM_LINE;
    if (req_len != sizeof(*request) || *resp_len < most + XSTORE_WALK_MAX * sizeof(uint32_t)) {
        return DM_ERR_INVALID;
    }
    models_add(server, ctx, &request->known, &reply, out + sizeof(reply));
    uint32_t at = (uint32_t)sizeof(reply) + models_bytes(&reply), ref;
    uint32_t wanted = request->wanted < XSTORE_WALK_MAX ? request->wanted : XSTORE_WALK_MAX;
    DM_TRY(walk_begin(server, ctx, request, &ref));
    while (ref != 0 && reply.items < wanted) {
        struct xstore_leaf leaf;
        memcpy(out + at, &ref, sizeof(ref));
        at += (uint32_t)sizeof(ref);
        reply.items++;
        DM_TRY(dm_mutex_lock(ctx, xstore_stripe(server, ref)));
        bool is_leaf = xstore_leaf_load(server, ctx, ref, &leaf);
        xstore_leaf_unlock(server, ctx, ref);
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        ref = is_leaf ? xstore_leaf_head(&leaf).next : 0;
    }
    memcpy(out, &reply, sizeof(reply));
    *resp_len = at;
    return 0;
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

/* Adds the pair in an empty slot. The value is stored last; a reader that sees the key before retries until then. */
static void leaf_append(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf, uint64_t key,
                        const void *value) {
    struct xstore_head head = xstore_leaf_head(leaf);
    xstore_leaf_keys(leaf)[head.count++] = key;
    xstore_leaf_store(server, ctx, leaf, head);
    xstore_value_store(server, ctx, leaf->ref, head.count - 1, key, value);
    dm_charge(ctx, DM_WORK_LINE_COPY, 2);
}

enum { LEAF_NEEDED = 1000 };

/* A pair to insert, and with indirect values a free block for it. */
struct pair {
    uint64_t key;
    const void *value;
    uint64_t block, check;
};

static const void *pair_stored(struct xstore_server *server, struct dm_ctx *ctx, struct pair *pair) {
    return xstore_block_fill(server, ctx, &pair->block, pair->key, pair->value, &pair->check);
}

/* Puts the key into the locked leaf, which it releases; *fresh is a leaf's memory, or 0. 0; DM_EXISTS; LEAF_NEEDED if
 * the leaf is full and *fresh 0. */
static int leaf_insert(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf, struct pair *pair,
                       uint32_t *fresh) {
    int rc = 0;
    if (xstore_leaf_find(leaf, pair->key) >= 0) {
        rc = DM_EXISTS;
    } else if (xstore_leaf_head(leaf).count < server->layout.slots) {
        leaf_append(server, ctx, leaf, pair->key, pair_stored(server, ctx, pair));
    } else if (*fresh == 0) {
        rc = LEAF_NEEDED;
    } else {
        xstore_leaf_split(server, ctx, leaf, *fresh, pair->key, pair_stored(server, ctx, pair));
        *fresh = 0;
    }
    if (rc == 0) {
        xstore_block_reveal(server, ctx, pair->block, pair->check);
    }
    xstore_leaf_unlock(server, ctx, leaf->ref);
    return rc;
}

static int insert(struct xstore_server *server, struct dm_ctx *ctx, struct pair *pair, bool *splits) {
    struct xstore_leaf leaf;
    uint32_t fresh = 0, right = 0;
    uint64_t high = 0;
    int rc = LEAF_NEEDED;
    while (rc == LEAF_NEEDED) {
        DM_TRY(xstore_leaf_lock(server, ctx, pair->key, &leaf));
        charge_search(server, ctx);
        high = leaf.high;
        rc = leaf_insert(server, ctx, &leaf, pair, &fresh);
        if (rc == LEAF_NEEDED) {
            dm_addr addr;
            DM_TRY(dm_alloc(ctx, server->node, server->layout.leaf_bytes, DM_LINE, DM_MEM_LEAF, &addr));
            right = fresh = xstore_ref_of(addr);
        }
    }
    *splits = right != 0 && fresh == 0;
    if (fresh != 0) {
        dm_free(ctx, xstore_addr(server->node, fresh), server->layout.leaf_bytes, DM_MEM_LEAF);
    }
    if (*splits) {
        xstore_train_later(server, ctx, leaf.low, high);
        rc = xstore_link(server, ctx, leaf.high, right, 0);
    }
    return rc;
}

/* The outcome of an insert for which there is no block: a key that is there needs none. */
static int without_block(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key) {
    struct xstore_leaf leaf;
    DM_TRY(xstore_leaf_lock(server, ctx, key, &leaf));
    bool is_there = xstore_leaf_find(&leaf, key) >= 0;
    xstore_leaf_unlock(server, ctx, leaf.ref);
    charge_search(server, ctx);
    return is_there ? DM_EXISTS : DM_ERR_NO_MEMORY;
}

static int on_insert(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    const struct xstore_write_request *request = req;
    struct xstore_write_reply reply = {0};
    bool splits = false;
    uint64_t block;
    if (req_len < sizeof(*request) + server->layout.user_bytes || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    int rc = xstore_block_take(server, ctx, &block);
    if (rc == DM_ERR_NO_MEMORY) {
        return without_block(server, ctx, request->key);
    }
    DM_TRY(rc);
    rc = insert(server, ctx, &(struct pair){.key = request->key, .value = request + 1, .block = block}, &splits);
    if (rc == DM_EXISTS || rc == DM_ERR_NO_MEMORY) {
        xstore_block_free(server, ctx, block);
    }
    if (rc == 0) {
        atomic_fetch_add_explicit(&server->keys, 1, memory_order_relaxed);
        rc = xstore_log_append(server, ctx, request->key, XSTORE_INSERT, request + 1);
    }
    reply.split = splits;
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return rc;
}

/* ---- update and delete ------------------------------------------------------------------------------------------- */

/* Locks the leaf that a position hint names, if it still holds the key. */
static int hint_lock(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_write_request *request,
                     struct xstore_leaf *leaf) {
    for (uint32_t i = 0; i < request->hint_count && i < XSTORE_HINTS; i++) {
        struct xstore_entry entry = xstore_entry_of(request->hints[i]);
        DM_TRY(dm_mutex_lock(ctx, xstore_stripe(server, entry.leaf)));
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        bool is_leaf = xstore_leaf_load(server, ctx, entry.leaf, leaf);
        if (is_leaf && xstore_leaf_head(leaf).incarnation == entry.incarnation &&
            xstore_leaf_find(leaf, request->key) >= 0) {
            return 0;
        }
        xstore_leaf_unlock(server, ctx, entry.leaf);
        charge_search(server, ctx);
    }
    return DM_NOT_FOUND;
}

static int on_update(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    const struct xstore_write_request *request = req;
    struct xstore_write_reply reply = {0};
    struct xstore_leaf leaf;
    if (req_len < sizeof(*request) + server->layout.user_bytes || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    int rc = hint_lock(server, ctx, request, &leaf);
    reply.hinted = rc == 0;
    rc = rc == DM_NOT_FOUND ? xstore_leaf_lock(server, ctx, request->key, &leaf) : rc;
    DM_TRY(rc);
    int slot = xstore_leaf_find(&leaf, request->key);
    if (slot >= 0) {
        xstore_value_update(server, ctx, leaf.ref, (unsigned)slot, request->key, request + 1);
    }
    xstore_leaf_unlock(server, ctx, leaf.ref);
    charge_search(server, ctx);
    dm_charge(ctx, DM_WORK_LINE_COPY, 1);
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return slot < 0 ? DM_NOT_FOUND : xstore_log_append(server, ctx, request->key, XSTORE_UPDATE, request + 1);
}

/* Removes a pair; the last pair of the leaf moves into its slot. */
static void leaf_remove(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf, unsigned slot) {
    char value[XSTORE_VALUE_MAX];
    struct xstore_head head = xstore_leaf_head(leaf);
    unsigned last = --head.count;
    uint64_t moved = xstore_leaf_keys(leaf)[last];
    xstore_leaf_keys(leaf)[slot] = moved;
    xstore_leaf_store(server, ctx, leaf, head);
    if (slot != last) {
        xstore_value_load(server, ctx, leaf->ref, last, value);
        xstore_value_store(server, ctx, leaf->ref, slot, moved, value);
    }
    xstore_value_clear(server, ctx, leaf->ref, last);
    dm_charge(ctx, DM_WORK_LINE_COPY, 2);
}

static int on_remove(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    const struct xstore_write_request *request = req;
    struct xstore_leaf leaf;
    (void)resp;
    if (req_len < sizeof(*request)) {
        return DM_ERR_INVALID;
    }
    DM_TRY(xstore_leaf_lock(server, ctx, request->key, &leaf));
    int slot = xstore_leaf_find(&leaf, request->key);
    uint64_t block = 0;
    if (slot >= 0) {
        if (server->layout.block_bytes > 0) {
            xstore_value_load(server, ctx, leaf.ref, (unsigned)slot, &block);
        }
        leaf_remove(server, ctx, &leaf, (unsigned)slot);
    }
    xstore_leaf_unlock(server, ctx, leaf.ref);
    xstore_block_free(server, ctx, block);
    charge_search(server, ctx);
    *resp_len = 0;
    if (slot < 0) {
        return DM_NOT_FOUND;
    }
    atomic_fetch_sub_explicit(&server->keys, 1, memory_order_relaxed);
    return xstore_log_append(server, ctx, request->key, XSTORE_REMOVE, NULL);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

void xstore_unserve(void *handle) {
    struct xstore_server *server = handle;
    xstore_queue_free(&server->queue);
    for (unsigned i = 0; i < XSTORE_TRAINERS_MAX; i++) {
        xstore_trainer_fini(&server->trainers[i]);
    }
    xstore_trainer_fini(&server->load_trainer);
    xstore_loader_free(server->loader);
    ix_blocks_fini(&server->blocks);
}

static int handlers_register(struct xstore_server *server) {
    static const struct ix_method methods[] = {
        {XSTORE_GET, on_get},          {XSTORE_INSERT, on_insert},      {XSTORE_UPDATE, on_update},
        {XSTORE_REMOVE, on_remove},    {XSTORE_WALK, on_walk},          {XSTORE_FORMAT, xstore_on_format},
        {XSTORE_LOAD, xstore_on_load}, {XSTORE_BUILD, xstore_on_build},
    };
    size_t count = sizeof(methods) / sizeof(methods[0]);
    DM_TRY(ix_methods_register(server->fabric, server->node, methods, count, server));
    for (uint64_t i = 0; i < server->params->trainers; i++) {
        xstore_trainer_init(&server->trainers[i], server);
        DM_TRY(dm_spawn_background(server->fabric, server->node, xstore_trainer_main, &server->trainers[i]));
    }
    return server->params->logging ? dm_spawn_background(server->fabric, server->node, xstore_logger_main, server) : 0;
}

int xstore_serve(void *handle, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err) {
    struct xstore_server *server = handle;
    (void)err;
    if (node >= shape->topology->mns) {
        return 0; /* index servers have no part in this index */
    }
    server->params = params;
    server->shape = shape;
    server->layout = xstore_layout_make((uint32_t)server->params->slots, shape->value_bytes,
                                        server->params->values == XSTORE_VALUES_INDIRECT);
    server->fabric = fabric;
    server->node = node;
    ix_blocks_init(&server->blocks, node, server->layout.block_bytes, BLOCKS_AT_ONCE);
    xstore_trainer_init(&server->load_trainer, server);
    return handlers_register(server);
}
