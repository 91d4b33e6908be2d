/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the server-side tree. Every one is the complete operation of a client.
 */
#include <stdlib.h>

#include "indexes/shared/served.h"
#include "indexes/shared/server_tree_node.h"

/* ---- reads ------------------------------------------------------------------------------------------------------- */

/* Copies the leaf that covers key. */
static int leaf_read(struct ix_server_op *op, uint64_t key, struct ix_server_node *leaf) {
    DM_TRY(ix_server_descend(op, key, 0, &leaf->ref));
    for (;;) {
        DM_TRY(ix_server_node_read(op, leaf, 0));
        if (ix_server_covers(leaf, key) || !op->server->params->follow) {
            return 0;
        }
        ix_server_event(op, IX_SERVER_MOVED_RIGHT);
        DM_TRY(dm_retry(op->ctx, DM_RETRY_MOVED, &op->attempts));
        leaf->ref = ix_server_next(leaf);
    }
}

static int get(struct ix_server_op *op, uint64_t key, char *out) {
    struct ix_server_node leaf;
    for (;;) {
        unsigned slot;
        DM_TRY(leaf_read(op, key, &leaf));
        ix_server_leaf_find(&op->server->layout, &leaf, key, &slot);
        if (slot == IX_SERVER_NONE) {
            return DM_NOT_FOUND;
        }
        ix_server_key_charge(op, true);
        ix_server_values_charge(op, 1);
        DM_TRY(ix_server_value_copy(op, ix_server_slot(&op->server->layout, &leaf, slot), out));
        if (!op->server->layout.rows || ix_server_node_same(op, &leaf)) {
            return 0;
        }
        DM_TRY(dm_retry(op->ctx, DM_RETRY_TORN, &op->attempts));
    }
}

/* The end of a handler: the reply's head, and the bytes that follow it. */
static int answer(const struct ix_server_op *op, int rc, void *resp, uint32_t *resp_len, uint32_t bytes) {
    memcpy(resp, &op->reply, sizeof(op->reply));
    *resp_len = (uint32_t)sizeof(op->reply) + bytes;
    return rc;
}

/* False: a request that no client sends. */
static bool op_open(struct ix_server_op *op, struct ix_server *server, struct dm_ctx *ctx, uint32_t req_len,
                    uint32_t wanted, uint32_t space, uint32_t least) {
    *op = (struct ix_server_op){.server = server, .ctx = ctx};
    return req_len == wanted && space >= sizeof(op->reply) + least;
}

static int on_get(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct ix_server *server = arg;
    struct ix_server_op op;
    uint64_t key;
    if (!op_open(&op, server, ctx, req_len, ix_server_key_bytes(&server->layout), *resp_len,
                 server->layout.value_bytes)) {
        return DM_ERR_INVALID;
    }
    memcpy(&key, req, sizeof(key));
    int rc = get(&op, key, (char *)resp + sizeof(op.reply));
    return answer(&op, rc, resp, resp_len, rc == 0 ? server->layout.value_bytes : 0);
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

struct scan {
    struct ix_server_op *op;
    uint64_t first;
    uint32_t wanted, space; /* pairs */
    char *out;              /* the next pair */
    uint32_t pair_bytes;
};

/* Appends the pairs of the leaf's image. 0, or IX_SERVER_AGAIN: the leaf changed, and nothing was appended. */
enum { IX_SERVER_AGAIN = 1000 };
static int leaf_append(struct scan *scan, struct ix_server_node *leaf) {
    struct ix_server_op *op = scan->op;
    const struct ix_server_layout *layout = &op->server->layout;
    unsigned slot, count = ix_server_count(leaf), rank = ix_server_leaf_find(layout, leaf, scan->first, &slot);
    uint32_t added = 0, found = op->reply.found;
    for (; rank < count && found + added < scan->wanted && found + added < scan->space; rank++, added++) {
        char *out = scan->out + (size_t)added * scan->pair_bytes;
        slot = ix_server_slot_at(layout, leaf, rank);
        memcpy(out, &ix_server_keys(leaf)[slot], sizeof(uint64_t));
        memset(out + sizeof(uint64_t), 0, layout->padding);
        DM_TRY(ix_server_value_copy(op, ix_server_slot(layout, leaf, slot), out + ix_server_key_bytes(layout)));
    }
    ix_server_values_charge(op, added);
    if (layout->rows && !ix_server_node_same(op, leaf)) {
        return IX_SERVER_AGAIN;
    }
    scan->out += (size_t)added * scan->pair_bytes;
    op->reply.found = (uint16_t)(found + added);
    op->reply.more = rank < count && op->reply.found < scan->wanted;
    return 0;
}

static int scan_run(struct scan *scan) {
    struct ix_server_op *op = scan->op;
    struct ix_server_node leaf;
    DM_TRY(leaf_read(op, scan->first, &leaf));
    for (;;) {
        int rc = leaf_append(scan, &leaf);
        DM_TRY(rc);
        if (rc == 0) {
            uint32_t next = ix_server_next(&leaf);
            bool is_full = op->reply.found == scan->space;
            if (next == 0 || op->reply.found == scan->wanted || is_full) {
                op->reply.more = op->reply.found < scan->wanted && (op->reply.more || (is_full && next != 0));
                return 0;
            }
            leaf.ref = next;
        } else {
            DM_TRY(dm_retry(op->ctx, DM_RETRY_TORN, &op->attempts));
        }
        DM_TRY(ix_server_node_read(op, &leaf, 0));
    }
}

static int on_scan(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct ix_server *server = arg;
    struct ix_server_scan_request request;
    struct ix_server_op op;
    uint32_t pair_bytes = ix_server_key_bytes(&server->layout) + server->layout.value_bytes;
    uint32_t wanted = (uint32_t)sizeof(request) + server->layout.padding;
    if (!op_open(&op, server, ctx, req_len, wanted, *resp_len, pair_bytes)) {
        return DM_ERR_INVALID;
    }
    memcpy(&request, req, sizeof(request));
    struct scan scan = {
        .op = &op,
        .first = request.first,
        .wanted = request.wanted,
        .space = (*resp_len - (uint32_t)sizeof(op.reply)) / pair_bytes,
        .out = (char *)resp + sizeof(op.reply),
        .pair_bytes = pair_bytes,
    };
    int rc = scan_run(&scan);
    return answer(&op, rc, resp, resp_len, rc == 0 ? op.reply.found * pair_bytes : 0);
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

struct pair {
    uint64_t key;
    uint64_t stored[IX_SERVER_INLINE_MAX / 8];
};

/* Divides the full leaf and enters the pair. Like Masstree, a leaf with the order of its slots stays full if the pair
 * comes behind all others, as keys probably come in their order. */
static uint64_t leaf_split(struct ix_server_op *op, struct ix_server_node *leaf, uint32_t fresh, unsigned rank,
                           const struct pair *pair) {
    const struct ix_server_layout *layout = &op->server->layout;
    unsigned count = ix_server_count(leaf);
    bool is_last = layout->permuted && ix_server_next(leaf) == 0 && rank == count;
    unsigned kept = is_last ? count : (count + 1) / 2;
    struct ix_server_node right;
    ix_server_node_init(&right, fresh, 0);
    uint64_t low = is_last ? pair->key : ix_server_keys(leaf)[ix_server_slot_at(layout, leaf, kept)];
    ix_server_leaf_divide(layout, leaf, &right, kept, low);
    if (pair->key < low) {
        ix_server_leaf_enter(layout, leaf, rank, pair->key, pair->stored);
    } else {
        ix_server_leaf_enter(layout, &right, rank - kept, pair->key, pair->stored);
    }
    ix_server_node_store(op, &right);
    ix_server_node_begin(op, leaf);
    ix_server_node_end(op, leaf);
    ix_server_event(op, IX_SERVER_LEAF_SPLIT);
    return low;
}

/* Enters the pair into its leaf. 0; DM_EXISTS; IX_SERVER_AGAIN: a new leaf is needed, and *fresh is 0. If *fresh was
 * used, *low becomes its lowest key. */
static int leaf_insert(struct ix_server_op *op, const struct pair *pair, uint32_t fresh, uint64_t *low, bool *used) {
    struct ix_server_node leaf;
    unsigned slot;
    int rc = 0;
    DM_TRY(ix_server_node_lock(op, pair->key, 0, &leaf));
    unsigned rank = ix_server_leaf_find(&op->server->layout, &leaf, pair->key, &slot);
    if (slot != IX_SERVER_NONE) {
        ix_server_key_charge(op, false);
        rc = DM_EXISTS;
    } else if (ix_server_count(&leaf) < op->server->layout.slots) {
        ix_server_node_begin(op, &leaf);
        ix_server_leaf_enter(&op->server->layout, &leaf, rank, pair->key, pair->stored);
        ix_server_node_end(op, &leaf);
    } else if (fresh == 0) {
        rc = IX_SERVER_AGAIN;
    } else {
        *low = leaf_split(op, &leaf, fresh, rank, pair);
        *used = true;
    }
    ix_server_node_unlock(op, &leaf);
    return rc;
}

/* The outcome of an insert for whose row there is no memory: a key that is there already would not have needed it. */
static int without_memory(struct ix_server_op *op, uint64_t key) {
    struct ix_server_node leaf;
    unsigned slot;
    DM_TRY(leaf_read(op, key, &leaf));
    ix_server_leaf_find(&op->server->layout, &leaf, key, &slot);
    return slot != IX_SERVER_NONE ? DM_EXISTS : DM_ERR_NO_MEMORY;
}

static int insert(struct ix_server_op *op, uint64_t key, const void *value) {
    struct pair pair = {.key = key};
    uint32_t fresh = 0;
    uint64_t low = 0;
    bool used = false;
    int rc = ix_server_row_make(op, key, value, pair.stored);
    if (rc != 0) {
        return rc == DM_ERR_NO_MEMORY ? without_memory(op, key) : rc;
    }
    rc = leaf_insert(op, &pair, 0, &low, &used);
    while (rc == IX_SERVER_AGAIN) { /* once, or more often if meanwhile there was space and then none again */
        rc = fresh == 0 ? ix_server_node_alloc(op, 0, &fresh) : 0;
        rc = rc < 0 ? rc : leaf_insert(op, &pair, fresh, &low, &used);
    }
    if (!used) {
        ix_server_node_free(op, 0, fresh);
    }
    if (rc != 0) {
        ix_server_row_free(op, pair.stored);
    }
    return used ? ix_server_link(op, low, fresh, 0) : rc;
}

/* A write's request: the key and, if `has_value`, the value. */
static bool write_open(struct ix_server_op *op, struct ix_server *server, struct dm_ctx *ctx, uint32_t req_len,
                       uint32_t space, bool has_value) {
    uint32_t wanted = ix_server_key_bytes(&server->layout) + (has_value ? server->layout.value_bytes : 0);
    return op_open(op, server, ctx, req_len, wanted, space, 0);
}

static int on_insert(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct ix_server_op op;
    uint64_t key;
    if (!write_open(&op, arg, ctx, req_len, *resp_len, true)) {
        return DM_ERR_INVALID;
    }
    memcpy(&key, req, sizeof(key));
    int rc = insert(&op, key, (const char *)req + ix_server_key_bytes(&op.server->layout));
    return answer(&op, rc, resp, resp_len, 0);
}

/* ---- update and delete ------------------------------------------------------------------------------------------- */

/* Also a value in a row is stored under the version of its leaf, as readers compare that. */
static int update(struct ix_server_op *op, uint64_t key, const void *value) {
    const struct ix_server_layout *layout = &op->server->layout;
    struct ix_server_node leaf;
    unsigned slot;
    DM_TRY(ix_server_node_lock(op, key, 0, &leaf));
    ix_server_leaf_find(layout, &leaf, key, &slot);
    if (slot != IX_SERVER_NONE) {
        ix_server_key_charge(op, true);
        ix_server_node_begin(op, &leaf);
        ix_server_value_update(op, key, value, ix_server_slot(layout, &leaf, slot));
        ix_server_node_end(op, &leaf);
    }
    ix_server_node_unlock(op, &leaf);
    return slot != IX_SERVER_NONE ? 0 : DM_NOT_FOUND;
}

static int on_update(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct ix_server_op op;
    uint64_t key;
    if (!write_open(&op, arg, ctx, req_len, *resp_len, true)) {
        return DM_ERR_INVALID;
    }
    memcpy(&key, req, sizeof(key));
    int rc = update(&op, key, (const char *)req + ix_server_key_bytes(&op.server->layout));
    return answer(&op, rc, resp, resp_len, 0);
}

static int remove_key(struct ix_server_op *op, uint64_t key) {
    const struct ix_server_layout *layout = &op->server->layout;
    struct ix_server_node leaf;
    uint64_t stored[IX_SERVER_INLINE_MAX / 8];
    unsigned slot;
    DM_TRY(ix_server_node_lock(op, key, 0, &leaf));
    unsigned rank = ix_server_leaf_find(layout, &leaf, key, &slot);
    if (slot != IX_SERVER_NONE) {
        ix_server_key_charge(op, false);
        memcpy(stored, ix_server_slot(layout, &leaf, slot), layout->slot_words * sizeof(*stored));
        ix_server_node_begin(op, &leaf);
        ix_server_leaf_drop(layout, &leaf, rank);
        ix_server_node_end(op, &leaf);
    }
    ix_server_node_unlock(op, &leaf);
    if (slot == IX_SERVER_NONE) {
        return DM_NOT_FOUND;
    }
    ix_server_row_free(op, stored);
    return 0;
}

static int on_remove(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct ix_server_op op;
    uint64_t key;
    if (!write_open(&op, arg, ctx, req_len, *resp_len, false)) {
        return DM_ERR_INVALID;
    }
    memcpy(&key, req, sizeof(key));
    int rc = remove_key(&op, key);
    return answer(&op, rc, resp, resp_len, 0);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

int ix_server_serve(void *handle, struct dm_fabric *fabric, unsigned node, const void *params,
                    const struct ix_shape *shape, struct dm_err *err) {
    static const struct ix_method methods[] = {
        {IX_SERVER_GET, on_get},
        {IX_SERVER_INSERT, on_insert},
        {IX_SERVER_UPDATE, on_update},
        {IX_SERVER_REMOVE, on_remove},
        {IX_SERVER_SCAN, on_scan},
        {IX_SERVER_FORMAT, ix_server_on_format},
        {IX_SERVER_LOAD, ix_server_on_load},
        {IX_SERVER_BUILD, ix_server_on_build},
    };
    struct ix_server *server = handle;
    (void)err;
    if (node >= shape->topology->mns) {
        return 0; /* index servers have no part in this index */
    }
    server->params = params;
    server->layout = ix_server_layout_make(params, shape);
    server->fabric = fabric;
    server->node = node;
    return ix_methods_register(fabric, node, methods, sizeof(methods) / sizeof(methods[0]), server);
}

void ix_server_unserve(void *handle) {
    struct ix_server *server = handle;
    free(server->loader);
}
