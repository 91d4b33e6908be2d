/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits above the leaves, up to a new root; see tree.h. One lock is held at a time: the split node is released before
 * its parent is locked, which is what the B-link order allows. All nodes that the path to the root can need are
 * allocated before the first write (ix_tree_reserve), so running out of memory leaves the tree untouched.
 */
#include "indexes/shared/tree.h"

int ix_tree_reserve(struct ix_tree *tree) {
    unsigned needed = ix_tree_root_level(atomic_load_explicit(&tree->cn->root, memory_order_relaxed)) + 1;
    needed = needed < IX_NODE_LEVELS ? needed : IX_NODE_LEVELS;
    while (tree->spares < needed) {
        dm_addr *spare = &tree->spare[tree->spares];
        DM_TRY(dm_alloc(tree->ctx, DM_ANY_NODE, tree->cn->alloc_bytes, DM_LINE, DM_MEM_INNER, spare));
        tree->spares++;
    }
    return 0;
}

static int spare_take(struct ix_tree *tree, dm_addr *addr) {
    if (tree->spares == 0) {
        /* Another client made the tree higher since the split began. */
        return dm_alloc(tree->ctx, DM_ANY_NODE, tree->cn->alloc_bytes, DM_LINE, DM_MEM_INNER, addr);
    }
    *addr = tree->spare[--tree->spares];
    return 0;
}

static void spare_return(struct ix_tree *tree, dm_addr addr) {
    if (tree->spares < IX_NODE_LEVELS) {
        tree->spare[tree->spares++] = addr;
    } else {
        dm_free(tree->ctx, addr, tree->cn->alloc_bytes, DM_MEM_INNER);
    }
}

/* Reads the node at *addr, locked first if the policy says so. 0: it covers key. Otherwise no lock is held: 1 continue
 * at *addr, IX_TREE_AGAIN, or a failure. */
static int reach_once(struct ix_tree *tree, uint64_t key, unsigned level, uint32_t *attempts, dm_addr *addr) {
    const struct ix_tree_policy *policy = tree->cn->policy;
    if (!dm_addr_valid(tree->ctx, *addr, tree->cn->alloc_bytes)) {
        return ix_tree_misled(tree, level, false, attempts);
    }
    if (policy->lock) {
        DM_TRY(policy->lock(tree, *addr, attempts));
    }
    int rc = ix_tree_fetch(tree, *addr, level, attempts);
    const struct ix_node_head *head = ix_node_head_in(tree->image);
    if (rc == 0 && key >= head->low && key < head->high) {
        return 0;
    }
    int released = policy->lock ? policy->unlock(tree) : 0;
    DM_TRY(rc);
    DM_TRY(released);
    bool right = rc == 0 && key >= head->high;
    if (right) {
        *addr = head->sibling;
    }
    rc = ix_tree_misled(tree, level, right, attempts);
    return rc == 0 ? 1 : rc;
}

int ix_tree_reach(struct ix_tree *tree, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts, dm_addr *addr) {
    *addr = from;
    int rc = dm_addr_is_null(from) ? IX_TREE_AGAIN : 1;
    while (rc != 0) {
        if (rc == IX_TREE_AGAIN) {
            rc = ix_tree_descend(tree, key, level, attempts);
            if (rc != 0) {
                return rc;
            }
            *addr = tree->child.addr;
        }
        rc = reach_once(tree, key, level, attempts, addr);
        DM_TRY(rc);
    }
    if (level > 0) {
        dm_charge(tree->ctx, DM_WORK_NODE_PROBE, 1);
    }
    return 0;
}

int ix_tree_hold(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    return tree->cn->policy->upgrade ? tree->cn->policy->upgrade(tree, addr, attempts) : 0;
}

int ix_tree_leave(struct ix_tree *tree, bool held, int outcome) {
    const struct ix_tree_policy *policy = tree->cn->policy;
    int rc = held || policy->lock ? policy->unlock(tree) : 0;
    return rc < 0 ? rc : outcome;
}

int ix_tree_lock_node(struct ix_tree *tree, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts,
                      dm_addr *addr) {
    int rc;
    *addr = from;
    do {
        rc = ix_tree_reach(tree, key, level, *addr, attempts, addr);
        if (rc != 0) {
            return rc;
        }
        rc = ix_tree_hold(tree, *addr, attempts);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}

/* Lays ->image out for a write of the whole node in ->wire. */
static void encode(struct ix_tree *tree) {
    const struct ix_inner_layout *inner = &tree->cn->inner;
    inner->format->encode(tree->image, inner->node_bytes, ix_node_next_version(tree->wire), tree->wire);
    dm_charge(tree->ctx, DM_WORK_LINE_COPY, inner->node_bytes / DM_LINE);
}

static void encode_right(struct ix_tree *tree) {
    const struct ix_inner_layout *inner = &tree->cn->inner;
    ix_node_encode_new(inner->format, tree->image_right, inner->node_bytes, tree->wire_right);
    dm_charge(tree->ctx, DM_WORK_LINE_COPY, inner->node_bytes / DM_LINE);
}

int ix_tree_halves_write(struct ix_tree *tree, dm_addr left, dm_addr right) {
    uint32_t node_bytes = tree->cn->inner.node_bytes;
    encode(tree);
    encode_right(tree);
    dm_post_write(tree->ctx, right, tree->wire_right, node_bytes);
    /* On one memory node posted order is enough; between two the right half must have landed first. */
    if (dm_addr_node(left) != dm_addr_node(right) || !tree->cn->combine) {
        int rc = dm_commit(tree->ctx);
        if (rc < 0) {
            tree->cn->policy->unlock(tree); /* the first failure is the one to report */
            return rc;
        }
    }
    dm_post_write(tree->ctx, left, tree->wire, node_bytes);
    return tree->cn->policy->commit_unlock(tree);
}

int ix_tree_write_back(struct ix_tree *tree, dm_addr addr) {
    encode(tree);
    dm_post_write(tree->ctx, addr, tree->wire, tree->cn->inner.node_bytes);
    return tree->cn->policy->commit_unlock(tree);
}

int ix_tree_rewrite(struct ix_tree *tree, dm_addr addr) {
    DM_TRY(ix_tree_write_back(tree, addr));
    ix_tree_cache_keep(tree, addr, tree->image);
    return 0;
}

/* Puts a new root over the old one, which is the leftmost node of its level. 0; IX_TREE_AGAIN if the tree has grown
 * otherwise; a failure. */
static int root_grow(struct ix_tree *tree, unsigned level, uint64_t key, dm_addr child, uint32_t *attempts) {
    struct ix_tree_cn *cn = tree->cn;
    uint64_t old_word = atomic_load_explicit(&cn->root, memory_order_relaxed);
    if (ix_tree_root_level(old_word) >= level) {
        return IX_TREE_AGAIN;
    }
    if (level >= IX_NODE_LEVELS) {
        return DM_ERR_NO_MEMORY;
    }
    dm_addr addr;
    DM_TRY(spare_take(tree, &addr));
    ix_node_init(tree->image, cn->inner.image_bytes, level, 0, IX_NODE_INFINITY, DM_NULL);
    ix_inner_add(&cn->inner, tree->image, 0, ix_tree_root_addr(old_word));
    ix_inner_add(&cn->inner, tree->image, key, child);
    ix_node_encode_new(cn->inner.format, tree->image, cn->inner.node_bytes, tree->wire);
    uint64_t word = ix_tree_root_word(addr, level);
    int rc = dm_write(tree->ctx, addr, tree->wire, cn->inner.node_bytes);
    rc = rc < 0 ? rc : dm_cas(tree->ctx, ix_tree_root_word_addr(), old_word, word, tree->old);
    if (rc < 0) {
        return rc;
    }
    if (*tree->old != old_word) {
        spare_return(tree, addr);
        tree->counts[IX_TREE_ROOT_RACE]++;
        DM_TRY(dm_retry(tree->ctx, DM_RETRY_CAS, attempts));
        DM_TRY(ix_tree_root_refresh(tree));
        return IX_TREE_AGAIN;
    }
    tree->counts[IX_TREE_ROOT_SPLIT]++;
    atomic_compare_exchange_strong_explicit(&cn->root, &old_word, word, memory_order_relaxed, memory_order_relaxed);
    ix_tree_cache_keep(tree, addr, tree->image);
    return 0;
}

/* Splits the locked full parent at addr around the new child; *key and *child become what its own parent has to add. */
static int parent_split(struct ix_tree *tree, dm_addr addr, uint64_t *key, dm_addr *child) {
    const struct ix_inner_layout *inner = &tree->cn->inner;
    dm_addr right;
    int rc = spare_take(tree, &right);
    if (rc < 0) {
        return ix_tree_leave(tree, true, rc);
    }
    uint64_t middle = ix_inner_split(inner, tree->image, tree->image_right, right);
    ix_inner_add(inner, *key < middle ? tree->image : tree->image_right, *key, *child);
    DM_TRY(ix_tree_halves_write(tree, addr, right));
    tree->counts[IX_TREE_INNER_SPLIT]++;
    ix_tree_cache_keep(tree, addr, tree->image);
    ix_tree_cache_keep(tree, right, tree->image_right);
    *key = middle;
    *child = right;
    return 0;
}

/* Adds child, a new node of level 0 that begins at key, to the level above, and so on up. Until then the tree is
 * correct, only one read longer. [waits] */
static int node_link(struct ix_tree *tree, uint64_t key, dm_addr child) {
    enum { FAILURES = 3 };
    tree->may_hold = false;
    for (unsigned level = 1, failures = 0;; level++) {
        uint32_t attempts = 0;
        dm_addr addr;
        int rc;
        do {
            /* The node that the descent came through is the parent, or left of it. */
            dm_addr from = level <= tree->top ? tree->path[level].addr : DM_NULL;
            rc = ix_tree_lock_node(tree, key, level, from, &attempts, &addr);
            if (rc == IX_TREE_ABOVE_ROOT) {
                rc = root_grow(tree, level, key, child, &attempts);
                if (rc <= 0) {
                    return rc;
                }
            }
            /* Nothing has been written yet, and no other client would finish the split: it is worth another
             * try, unless this client may then wait for itself. */
            rc = rc == DM_ERR_IO && !tree->may_hold && failures++ < FAILURES ? IX_TREE_AGAIN : rc;
            DM_TRY(rc);
        } while (rc != 0);
        if (ix_node_head_in(tree->image)->count < tree->cn->inner.cap) {
            ix_inner_add(&tree->cn->inner, tree->image, key, child);
            return ix_tree_rewrite(tree, addr);
        }
        DM_TRY(parent_split(tree, addr, &key, &child));
    }
}

int ix_tree_split_end(struct ix_tree *tree, int rc, uint64_t key, dm_addr child) {
    if (rc >= 0) {
        tree->counts[IX_TREE_LEAF_SPLIT]++;
        rc = node_link(tree, key, child);
    }
    if (rc < 0) {
        atomic_store_explicit(&tree->cn->interrupted, true, memory_order_relaxed);
    }
    return rc;
}
