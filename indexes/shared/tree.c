/* SPDX-License-Identifier: Apache-2.0
 *
 * Descent through cached and remote inner nodes; see tree.h.
 */
#include "indexes/shared/tree.h"

#include "common/compiler.h"
#include "indexes/shared/retry.h"

static uint32_t node_lines(const struct ix_tree *tree) {
    return tree->cn->inner.node_bytes / DM_LINE;
}

int ix_tree_root_refresh(struct ix_tree *tree) {
    struct ix_tree_cn *cn = tree->cn;
    DM_TRY(dm_read(tree->ctx, ix_tree_root_word_addr(), tree->root, sizeof(*tree->root)));
    uint64_t seen = *tree->root;
    uint64_t known = atomic_load_explicit(&cn->root, memory_order_relaxed);
    while (ix_tree_root_level(seen) > ix_tree_root_level(known)) {
        if (atomic_compare_exchange_weak_explicit(&cn->root, &known, seen, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            break;
        }
    }
    return ix_tree_root_level(seen) > tree->top;
}

void ix_tree_cache_keep(struct ix_tree *tree, dm_addr addr, const void *image) {
    struct ix_tree_cn *cn = tree->cn;
    unsigned level = ix_node_head_in(image)->level;
    unsigned top = ix_tree_root_level(atomic_load_explicit(&cn->root, memory_order_relaxed));
    if (top < level || top - level < cn->cache_levels) {
        dm_charge(tree->ctx, DM_WORK_LINE_COPY, node_lines(tree));
        ix_cache_charge(cn->cache, tree->ctx, level);
        bool evicted = ix_cache_insert(cn->cache, addr, level, image);
        tree->cache_counts[IX_TREE_CACHE_EVICTION] += evicted;
    }
}

int ix_tree_judge(struct ix_tree *tree, const char *wire, unsigned level, uint32_t *attempts) {
    const struct ix_inner_layout *inner = &tree->cn->inner;
    switch (ix_tree_format_of(tree->cn, level)->check(wire, inner->node_bytes, inner->versions)) {
    case IX_NODE_CONSISTENT:
        return 0;
    case IX_NODE_TORN:
        tree->counts[IX_TREE_TORN_NODE]++;
        DM_TRY(dm_retry(tree->ctx, DM_RETRY_TORN, attempts));
        return 1;
    default:
        DM_TRY(ix_retry(tree->ctx, DM_RETRY_LOCK, attempts, 0));
        return 1;
    }
}

int ix_tree_fetch(struct ix_tree *tree, dm_addr addr, unsigned level, uint32_t *attempts) {
    const struct ix_inner_layout *inner = &tree->cn->inner;
    if (!dm_addr_valid(tree->ctx, addr, inner->node_bytes)) {
        return IX_TREE_AGAIN;
    }
    for (;;) {
        DM_TRY(dm_read(tree->ctx, addr, tree->wire, inner->node_bytes));
        dm_charge(tree->ctx, DM_WORK_LINE_COPY, node_lines(tree));
        int again = ix_tree_judge(tree, tree->wire, level, attempts);
        DM_TRY(again);
        if (!again) {
            ix_tree_format_of(tree->cn, level)->decode(tree->wire, inner->node_bytes, tree->image);
            return ix_node_plausible(inner, tree->image, level) ? 0 : IX_TREE_AGAIN;
        }
    }
}

bool ix_tree_distrust(struct ix_tree *tree, unsigned level) {
    if (level >= tree->top || tree->path[level + 1].stamp == 0) {
        return false;
    }
    ix_cache_drop(tree->cn->cache, tree->path[level + 1].addr, tree->path[level + 1].stamp);
    tree->path[level + 1].stamp = 0;
    return true;
}

const void *ix_tree_parent_hold(struct ix_tree *tree, uint64_t key) {
    struct ix_tree_cn *cn = tree->cn;
    uint32_t stamp;
    const void *image = NULL;
    ix_cache_enter(cn->cache, tree->thread);
    if (tree->top >= 1) {
        /* With stamp 0 it was the last node read. */
        image = tree->path[1].stamp == 0 ? tree->image : ix_cache_find(cn->cache, tree->path[1].addr, &stamp);
    }
    const struct ix_node_head *head = image ? ix_node_head_in(image) : NULL;
    return head && key >= head->low && key < head->high ? image : NULL;
}

void ix_tree_parent_release(struct ix_tree *tree) {
    ix_cache_leave(tree->cn->cache, tree->thread);
}

int ix_tree_misled(struct ix_tree *tree, unsigned level, bool right, uint32_t *attempts) {
    bool again = !right;
    if (level >= tree->top) {
        /* What was the root has a sibling, or is none at all: there may be a new root. */
        int grown = ix_tree_root_refresh(tree);
        DM_TRY(grown);
        again |= grown > 0;
    } else {
        again |= ix_tree_distrust(tree, level);
    }
    tree->cache_counts[IX_TREE_STALE_CACHE] += again;
    tree->counts[IX_TREE_MOVED_RIGHT] += !again;
    DM_TRY(dm_retry(tree->ctx, again ? DM_RETRY_STALE : DM_RETRY_MOVED, attempts));
    return again ? IX_TREE_AGAIN : 0;
}

/* Goes from an inner node that covers key to its child. */
static void child_take(struct ix_tree *tree, const void *image, uint64_t key) {
    const struct ix_inner_layout *inner = &tree->cn->inner;
    const struct ix_node_head *head = ix_node_head_in(image);
    const uint64_t *keys = ix_inner_keys_in(image);
    unsigned at = ix_inner_find(image, key);
    bool last = at + 1u == head->count;
    tree->child = (struct ix_tree_child){
        .addr = ix_inner_children_in(inner, image)[at],
        .low = keys[at],
        .high = last ? head->high : keys[at + 1],
        .next = ix_inner_next(inner, image, at),
        .last = last,
    };
}

/* Cached nodes of the levels from `high` down to `low` were searched. */
static void charge_cached(struct ix_tree *tree, unsigned high, unsigned low) {
    if (high < low) {
        return;
    }
    if (tree->cn->cache_list && low == 1) {
        ix_cache_charge_list(tree->cn->cache, tree->ctx, low, tree->cn->list_nodes);
        dm_charge(tree->ctx, DM_WORK_NODE_PROBE, 1);
    } else {
        for (unsigned level = low; level <= high; level++) {
            ix_cache_charge(tree->cn->cache, tree->ctx, level);
        }
        dm_charge(tree->ctx, DM_WORK_NODE_PROBE, high - low + 1);
    }
    tree->cache_counts[IX_TREE_CACHE_HIT] += high - low + 1;
}

/* Descends as far as copies reach. Stops at `target`, at a node that is not cached, or at one that does not cover key:
 * then *right is set and ->child is its sibling. Returns the level of ->child. */
static unsigned descend_cached(struct ix_tree *tree, uint64_t key, unsigned level, unsigned target, bool *right) {
    struct ix_tree_cn *cn = tree->cn;
    unsigned begin = level;
    ix_cache_enter(cn->cache, tree->thread);
    while (level > target) {
        uint32_t stamp;
        const void *copy = ix_cache_find(cn->cache, tree->child.addr, &stamp);
        if (!copy) {
            break;
        }
        tree->path[level] = (struct ix_tree_step){tree->child.addr, stamp};
        dm_prefetch_lines(copy, cn->inner.image_bytes);
        if (key >= ix_node_head_in(copy)->high) {
            tree->child.addr = ix_node_head_in(copy)->sibling;
            *right = true;
            break;
        }
        child_take(tree, copy, key);
        level--;
    }
    ix_cache_leave(cn->cache, tree->thread);
    charge_cached(tree, begin, *right ? level : level + 1);
    return level;
}

/* One level down (or to the right, then *right is set) through remote memory. */
static int descend_remote(struct ix_tree *tree, uint64_t key, unsigned level, uint32_t *attempts, bool *right) {
    tree->cache_counts[IX_TREE_CACHE_MISS]++;
    dm_addr addr = tree->child.addr;
    int rc = ix_tree_fetch(tree, addr, level, attempts);
    const struct ix_node_head *head = ix_node_head_in(tree->image);
    if (rc == IX_TREE_AGAIN || (rc == 0 && key < head->low)) {
        return ix_tree_misled(tree, level, false, attempts);
    }
    DM_TRY(rc);
    dm_charge(tree->ctx, DM_WORK_NODE_PROBE, 1);
    ix_tree_cache_keep(tree, addr, tree->image);
    tree->path[level] = (struct ix_tree_step){addr, 0};
    *right = key >= head->high;
    if (*right) {
        tree->child.addr = head->sibling;
    } else {
        child_take(tree, tree->image, key);
    }
    return 0;
}

/* From the root to `target` once; IX_TREE_AGAIN when something on the path was out of date. */
static int descend_once(struct ix_tree *tree, uint64_t key, unsigned target, uint32_t *attempts) {
    uint64_t root = atomic_load_explicit(&tree->cn->root, memory_order_relaxed);
    unsigned level = ix_tree_root_level(root);
    tree->child = (struct ix_tree_child){
        .addr = ix_tree_root_addr(root), .high = IX_NODE_INFINITY, .next = DM_NULL, .last = true};
    tree->top = level;
    if (level < target) {
        return IX_TREE_ABOVE_ROOT;
    }
    while (level > target) {
        bool right = false;
        level = descend_cached(tree, key, level, target, &right);
        if (level > target && !right) {
            int rc = descend_remote(tree, key, level, attempts, &right);
            if (rc != 0) {
                return rc;
            }
            level -= !right;
        }
        if (right) {
            int rc = ix_tree_misled(tree, level, true, attempts);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

int ix_tree_descend(struct ix_tree *tree, uint64_t key, unsigned level, uint32_t *attempts) {
    int rc;
    do {
        rc = descend_once(tree, key, level, attempts);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}
