/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of a memory node: all writes, and the gets that clients do not walk themselves. Every handler charges
 * the memory node's cores.
 */

#include "mn.h"

enum { BLOCKS_AT_ONCE = 16 };

/* The value of a leaf's entry, from there or from its block. */
static void value_load(struct cell_server *server, struct dm_ctx *ctx, const struct cell_node *leaf, unsigned position,
                       void *value) {
    const uint64_t *entry = cell_entry(&server->layout.leaf, leaf->words, position);
    if (server->layout.block_bytes > 0) {
        cell_block_read(server, ctx, (uint32_t)*entry, value);
    } else {
        memcpy(value, entry, server->layout.value_bytes);
    }
}

static int on_get(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    const struct cell_request *request = req;
    struct cell_node leaf;
    if (req_len < cell_request_bytes(&server->layout) || *resp_len < server->layout.value_bytes) {
        return DM_ERR_INVALID;
    }
    DM_TRY(cell_node_lock(server, ctx, request->key, 0, &leaf));
    int position = cell_find(leaf.words, request->key);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, position >= 0 ? cell_padding_compares(&server->layout) : 0);
    if (position >= 0) {
        value_load(server, ctx, &leaf, (unsigned)position, resp);
    }
    cell_node_unlock(server, ctx, &leaf);
    *resp_len = position >= 0 ? server->layout.value_bytes : 0;
    return position >= 0 ? 0 : DM_NOT_FOUND;
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

/* A pair to insert, and the free block for a long value. */
struct pair {
    uint64_t key;
    const void *value;
    uint32_t block;
    uint64_t check; /* of the block */
};

/* A block is written when its key's leaf is locked and lacks the key, and has its check only when the leaf has the key:
 * readers of a key that was deleted may still read the block that it had, and must not find there the value of an
 * insert that fails, or of one before those do that read the leaf. */
static void entry_make(struct cell_server *server, struct dm_ctx *ctx, struct pair *pair,
                       uint64_t entry[CELL_INLINE_MAX / 8]) {
    memset(entry, 0, CELL_INLINE_MAX);
    if (pair->block != 0) {
        cell_block_write(server, ctx, pair->block, pair->key, pair->value, &pair->check);
        entry[0] = pair->block;
    } else {
        memcpy(entry, pair->value, server->layout.value_bytes);
    }
}

enum { LEAF_NEEDED = 1000 };

/* Puts the key into the locked leaf, which it unlocks; *fresh is a leaf's memory, or 0. 0; DM_EXISTS; LEAF_NEEDED if
 * the leaf is full and *fresh 0. After a split *border is the low fence of the right leaf and *fresh is 0. */
static int leaf_insert(struct cell_server *server, struct dm_ctx *ctx, struct cell_node *leaf, struct pair *pair,
                       uint32_t *fresh, uint64_t *border) {
    const struct cell_form *form = &server->layout.leaf;
    uint64_t entry[CELL_INLINE_MAX / 8];
    int rc = 0;
    if (cell_find(leaf->words, pair->key) >= 0) {
        rc = DM_EXISTS;
    } else if (cell_count(leaf->words) < form->entries) {
        entry_make(server, ctx, pair, entry);
        cell_entry_insert(form, leaf->words, pair->key, entry);
        cell_node_store(server, ctx, leaf);
    } else if (*fresh == 0) {
        rc = LEAF_NEEDED;
    } else {
        entry_make(server, ctx, pair, entry);
        *border = cell_node_split(server, ctx, leaf, *fresh, pair->key, entry);
        *fresh = 0;
    }
    if (rc == 0 && pair->block != 0) {
        cell_block_reveal(server, ctx, pair->block, pair->check);
    }
    cell_node_unlock(server, ctx, leaf);
    return rc;
}

static int pair_insert(struct cell_server *server, struct dm_ctx *ctx, struct pair *pair, bool *splits) {
    struct cell_node leaf;
    uint32_t fresh = 0, right = 0;
    uint64_t border = 0;
    int rc = LEAF_NEEDED;
    while (rc == LEAF_NEEDED) {
        rc = cell_node_lock(server, ctx, pair->key, 0, &leaf);
        rc = rc == 0 ? leaf_insert(server, ctx, &leaf, pair, &fresh, &border) : rc;
        if (rc == LEAF_NEEDED) {
            DM_TRY(cell_node_alloc(server, ctx, 0, &fresh));
            right = fresh;
        }
    }
    *splits = right != 0 && fresh == 0;
    if (fresh != 0) {
        cell_node_free(server, ctx, 0, fresh);
    }
    return *splits ? cell_link(server, ctx, border, right, 0) : rc;
}

/* The outcome of an insert for which there is no block: a key that is there needs none. */
static int without_block(struct cell_server *server, struct dm_ctx *ctx, uint64_t key) {
    struct cell_node leaf;
    DM_TRY(cell_node_lock(server, ctx, key, 0, &leaf));
    bool is_there = cell_find(leaf.words, key) >= 0;
    cell_node_unlock(server, ctx, &leaf);
    return is_there ? DM_EXISTS : DM_ERR_NO_MEMORY;
}

static int on_insert(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    const struct cell_request *request = req;
    struct cell_write_reply reply = {0};
    struct pair pair = {.value = (const char *)req + cell_request_bytes(&server->layout)};
    bool splits = false;
    if (req_len < cell_request_bytes(&server->layout) + server->layout.value_bytes || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    pair.key = request->key;
    int rc = server->layout.block_bytes > 0 ? ix_blocks_take(&server->blocks, ctx, &pair.block) : 0;
    if (rc == 0) {
        rc = pair_insert(server, ctx, &pair, &splits);
    } else if (rc == DM_ERR_NO_MEMORY) {
        rc = without_block(server, ctx, pair.key);
    }
    if ((rc == DM_EXISTS || rc == DM_ERR_NO_MEMORY) && pair.block != 0) {
        ix_blocks_free(&server->blocks, ctx, pair.block);
    }
    reply.split = splits;
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return rc;
}

/* ---- update and delete ------------------------------------------------------------------------------------------- */

static int on_update(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    const struct cell_request *request = req;
    const struct cell_form *form = &server->layout.leaf;
    const void *value = (const char *)req + cell_request_bytes(&server->layout);
    struct cell_node leaf;
    (void)resp;
    if (req_len < cell_request_bytes(&server->layout) + server->layout.value_bytes) {
        return DM_ERR_INVALID;
    }
    *resp_len = 0;
    DM_TRY(cell_node_lock(server, ctx, request->key, 0, &leaf));
    int position = cell_find(leaf.words, request->key);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, position >= 0 ? cell_padding_compares(&server->layout) : 0);
    if (position >= 0 && server->layout.block_bytes > 0) {
        uint32_t block = (uint32_t)*cell_entry(form, leaf.words, (unsigned)position);
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        cell_block_write(server, ctx, block, request->key, value, NULL);
    } else if (position >= 0) {
        memcpy(leaf.words + form->first + (size_t)position * form->entry_words, value, server->layout.value_bytes);
        cell_node_store(server, ctx, &leaf);
    }
    cell_node_unlock(server, ctx, &leaf);
    return position >= 0 ? 0 : DM_NOT_FOUND;
}

static int on_remove(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    const struct cell_request *request = req;
    const struct cell_form *form = &server->layout.leaf;
    struct cell_node leaf;
    uint32_t block = 0;
    (void)resp;
    if (req_len < cell_request_bytes(&server->layout)) {
        return DM_ERR_INVALID;
    }
    *resp_len = 0;
    DM_TRY(cell_node_lock(server, ctx, request->key, 0, &leaf));
    int position = cell_find(leaf.words, request->key);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, position >= 0 ? cell_padding_compares(&server->layout) : 0);
    if (position >= 0) {
        block = server->layout.block_bytes > 0 ? cell_child(form, leaf.words, (unsigned)position) : 0;
        cell_entry_remove(form, leaf.words, (unsigned)position);
        cell_node_store(server, ctx, &leaf);
    }
    cell_node_unlock(server, ctx, &leaf);
    if (block != 0) {
        ix_blocks_free(&server->blocks, ctx, block);
    }
    return position >= 0 ? 0 : DM_NOT_FOUND;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

void cell_unserve(void *handle) {
    struct cell_server *server = handle;
    cell_loader_free(server->loader);
    ix_blocks_fini(&server->blocks);
}

int cell_serve(void *handle, struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
               struct dm_err *err) {
    static const struct ix_method methods[] = {
        {CELL_GET, on_get},          {CELL_INSERT, on_insert},      {CELL_UPDATE, on_update},
        {CELL_REMOVE, on_remove},    {CELL_FORMAT, cell_on_format}, {CELL_LOAD, cell_on_load},
        {CELL_BUILD, cell_on_build},
    };
    struct cell_server *server = handle;
    (void)err;
    if (node >= shape->topology->mns) {
        return 0; /* index servers have no part in this index */
    }
    server->params = params;
    server->layout = cell_layout_make((uint32_t)server->params->slots, (uint32_t)server->params->fanout, shape,
                                      server->params->inline_bytes);
    server->fabric = fabric;
    server->node = node;
    ix_blocks_init(&server->blocks, node, server->layout.block_bytes, BLOCKS_AT_ONCE);
    return ix_methods_register(fabric, node, methods, sizeof(methods) / sizeof(methods[0]), server);
}
