/* SPDX-License-Identifier: Apache-2.0
 *
 * The levels of the server-side tree above the leaves: the descent, and entries for nodes that a split made.
 */
#include "indexes/shared/served.h"
#include "indexes/shared/server_tree_node.h"

int ix_server_descend(struct ix_server_op *op, uint64_t key, unsigned level, uint32_t *ref) {
    uint64_t root = ix_server_root(op);
    unsigned at = (unsigned)(root >> 32);
    struct ix_server_node node;
    *ref = (uint32_t)root;
    if (at < level) {
        return IX_SERVER_ABOVE_ROOT;
    }
    while (at > level) {
        node.ref = *ref;
        DM_TRY(ix_server_node_read(op, &node, at));
        if (!ix_server_covers(&node, key) && op->server->params->follow) {
            ix_server_event(op, IX_SERVER_MOVED_RIGHT);
            DM_TRY(dm_retry(op->ctx, DM_RETRY_MOVED, &op->attempts));
            *ref = ix_server_next(&node);
            continue;
        }
        *ref = ix_server_child(&op->server->layout, &node, key);
        at--;
    }
    return 0;
}

int ix_server_node_lock(struct ix_server_op *op, uint64_t key, unsigned level, struct ix_server_node *node) {
    int rc = ix_server_descend(op, key, level, &node->ref);
    if (rc != 0) {
        return rc;
    }
    for (;;) {
        DM_TRY(ix_server_node_take(op, node, level));
        if (ix_server_covers(node, key)) {
            return 0;
        }
        ix_server_node_unlock(op, node);
        ix_server_event(op, IX_SERVER_MOVED_RIGHT);
        DM_TRY(dm_retry(op->ctx, DM_RETRY_MOVED, &op->attempts));
        node->ref = ix_server_next(node);
    }
}

/* Moves the upper half of the locked node to `fresh` and enters the entry into its half. No reader can reach the new
 * node until the old one is stored. Returns the lowest key of the new node. */
static uint64_t inner_split(struct ix_server_op *op, struct ix_server_node *node, uint32_t fresh, uint64_t key,
                            uint32_t child) {
    const struct ix_server_layout *layout = &op->server->layout;
    unsigned count = ix_server_count(node), kept = count / 2, level = ix_server_level(node);
    struct ix_server_node right;
    ix_server_node_init(&right, fresh, level);
    uint64_t low = ix_server_keys(node)[kept];
    memcpy(ix_server_keys(&right), ix_server_keys(node) + kept, (count - kept) * 8);
    memcpy(ix_server_children(layout, &right), ix_server_children(layout, node) + kept, (count - kept) * 8);
    right.words[IX_SERVER_HEAD] = ix_server_head(count - kept, level, ix_server_next(node));
    right.words[IX_SERVER_HIGH] = node->words[IX_SERVER_HIGH];
    node->words[IX_SERVER_HEAD] = ix_server_head(kept, level, fresh);
    node->words[IX_SERVER_HIGH] = low;
    ix_server_inner_enter(layout, key < low ? node : &right, key, child);
    ix_server_node_store(op, &right);
    ix_server_node_begin(op, node);
    ix_server_node_end(op, node);
    ix_server_event(op, IX_SERVER_INNER_SPLIT);
    return low;
}

/* Makes a root at `fresh` with the old root and `child` as its children. IX_SERVER_ABOVE_ROOT: another one was first.
 */
static int root_grow(struct ix_server_op *op, uint64_t key, uint32_t child, unsigned level, uint32_t fresh) {
    struct ix_server *server = op->server;
    DM_TRY(dm_mutex_lock(op->ctx, &server->root_lock));
    uint64_t root = ix_server_root(op);
    bool first = root >> 32 == level;
    if (first) {
        struct ix_server_node node;
        ix_server_node_init(&node, fresh, level + 1);
        node.words[IX_SERVER_HEAD] = ix_server_head(1, level + 1, 0);
        ix_server_children(&server->layout, &node)[0] = (uint32_t)root;
        ix_server_inner_enter(&server->layout, &node, key, child);
        ix_server_node_store(op, &node);
        ix_server_root_set(op, fresh, level + 1);
    }
    dm_mutex_unlock(op->ctx, &server->root_lock);
    return first ? 0 : IX_SERVER_ABOVE_ROOT;
}

/* Enters into one level. *key and *child become the entry for the level above; *child is 0 if none is needed. `fresh`
 * is memory for a split or a new root, or 0; *used reports whether it was used. */
static int level_link(struct ix_server_op *op, uint64_t *key, uint32_t *child, unsigned level, uint32_t fresh,
                      bool *used) {
    struct ix_server_node node;
    *used = false;
    int rc = ix_server_node_lock(op, *key, level + 1, &node);
    if (rc == IX_SERVER_ABOVE_ROOT) {
        rc = fresh == 0 ? DM_ERR_NO_MEMORY : root_grow(op, *key, *child, level, fresh);
        *used = rc == 0;
        *child = *used ? 0 : *child;
        return rc;
    }
    DM_TRY(rc);
    if (ix_server_count(&node) < op->server->layout.fanout) {
        ix_server_node_begin(op, &node);
        ix_server_inner_enter(&op->server->layout, &node, *key, *child);
        ix_server_node_end(op, &node);
        *child = 0;
    } else if (fresh != 0) {
        *key = inner_split(op, &node, fresh, *key, *child);
        *child = fresh;
        *used = true;
    } else {
        rc = DM_ERR_NO_MEMORY;
    }
    ix_server_node_unlock(op, &node);
    return rc;
}

/* A node that gets no entry, as memory is full or the run ends, is reached by the right link of its left neighbour. */
int ix_server_link(struct ix_server_op *op, uint64_t key, uint32_t child, unsigned level) {
    int rc = 0;
    while (child != 0) {
        uint32_t fresh;
        bool used = false;
        rc = ix_server_node_alloc(op, level + 1, &fresh);
        if (rc == 0 || rc == DM_ERR_NO_MEMORY) {
            rc = level_link(op, &key, &child, level, fresh, &used);
        }
        if (!used) {
            ix_server_node_free(op, level + 1, fresh);
        }
        if (rc < 0) {
            ix_word_increment(op->ctx, dm_addr_make(op->server->node, DM_DRAM, IX_SERVER_UNLINKED_OFFSET));
            return rc == DM_ERR_NO_MEMORY ? 0 : rc;
        }
        level += rc == 0; /* else the tree has grown: once more at this level */
    }
    return rc;
}
