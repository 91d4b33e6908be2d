/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's walk of a memory node's tree by READs, with cached copies of the nodes far above the leaves. The fences of
 * every node, cached or read, show whether the walk is still right: a key at or beyond the max fence means that the
 * node was split after its parent's copy was made, and the walk continues by the right link. The parent's copy is
 * dropped, so that the next walk reads it; at the root, the root word is read again.
 */
#include "client.h"
#include "indexes/shared/retry.h"

int cell_root_refresh(struct cell_client *client, unsigned node) {
    DM_TRY(dm_read(client->ctx, dm_addr_make(node, DM_DRAM, CELL_ROOT_OFFSET), client->root, 8));
    atomic_store_explicit(&client->cn->roots[node], client->root[0], memory_order_relaxed);
    return 0;
}

bool cell_is_consistent(struct cell_client *client, unsigned level, uint32_t ref, const uint64_t *words) {
    const struct cell_form *form = cell_form_of(&client->cn->layout, level);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, form->words * 8 / DM_LINE + 1);
    if (cell_count(words) > form->entries) {
        return false;
    }
    if (!client->cn->params->node_check) {
        return true;
    }
    dm_charge(client->ctx, DM_WORK_HASH, cell_node_hashes(form, words));
    return cell_node_consistent(form, ref, words);
}

int cell_node_read(struct cell_client *client, unsigned node, uint32_t ref, unsigned level, uint64_t *into,
                   uint32_t *attempts) {
    uint32_t bytes = cell_form_of(&client->cn->layout, level)->words * 8;
    dm_addr addr = cell_addr(node, ref);
    if (ref == 0 || !dm_addr_valid(client->ctx, addr, bytes)) {
        return CELL_NO_NODE;
    }
    for (;;) {
        DM_TRY(dm_read(client->ctx, addr, into, bytes));
        if (cell_is_consistent(client, level, ref, into)) {
            return 0;
        }
        cell_count_event(client, CELL_TORN_NODE_COUNT);
        DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, attempts));
    }
}

/* What a walk takes from a node. */
struct view {
    bool is_legal; /* of the level, with the key not below its low fence */
    bool covers;
    uint32_t right, child, stamp;
};

static struct view view_of(const struct cell_client *client, const uint64_t *words, unsigned level, uint64_t key) {
    bool is_legal = cell_level(words) == level && key >= words[CELL_LOW] && (level == 0 || cell_count(words) > 0);
    struct view view = {.is_legal = is_legal, .covers = cell_is_left_of_high(words, key), .right = cell_right(words)};
    if (is_legal && level > 0) {
        view.child = cell_child(&client->cn->layout.inner, words, cell_child_for(words, key));
    }
    return view;
}

/* Looks at the cached copy of a node; copies it to client->node if it is what the walk looks for. */
static bool cached_look(struct cell_client *client, dm_addr addr, unsigned level, bool is_target, uint64_t key,
                        struct view *view) {
    struct ix_cache *cache = client->cn->cache;
    uint32_t stamp = 0;
    ix_cache_enter(cache, client->thread);
    const uint64_t *copy = ix_cache_find(cache, addr, &stamp);
    if (copy) {
        *view = view_of(client, copy, level, key);
        view->stamp = stamp;
        if (is_target) {
            memcpy(client->node, copy, client->cn->layout.inner.words * 8);
        }
    }
    ix_cache_leave(cache, client->thread);
    ix_cache_charge(cache, client->ctx, level);
    cell_count_event(client, copy ? CELL_CACHE_HIT_COUNT : CELL_CACHE_MISS_COUNT);
    return copy != NULL;
}

/* The node at addr, from the cache or by a READ. */
static int node_look(struct cell_client *client, unsigned node, uint32_t ref, unsigned level, bool is_target,
                     uint64_t key, struct view *view, uint32_t *attempts) {
    const struct cell_params *params = client->cn->params;
    dm_addr addr = cell_addr(node, ref);
    bool may_cache = level > 0 && level >= params->cache_above && client->cn->cache;
    if (!may_cache || !cached_look(client, addr, level, is_target, key, view)) {
        int rc = cell_node_read(client, node, ref, level, client->node, attempts);
        if (rc != 0) {
            *view = (struct view){.is_legal = false};
            return rc == CELL_NO_NODE ? 0 : rc;
        }
        *view = view_of(client, client->node, level, key);
        if (may_cache && view->is_legal && ix_cache_insert(client->cn->cache, addr, level, client->node)) {
            cell_count_event(client, CELL_CACHE_EVICTED_COUNT);
        }
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 2 + cell_compares(cell_form_of(&client->cn->layout, level)));
    return 0;
}

/* A walk in progress: the node to look at, and the cached parent that named it. */
struct walk {
    unsigned node, level;
    uint32_t ref;
    dm_addr parent;
    uint32_t parent_stamp; /* 0: the parent was read, or there is none */
    bool is_root;
};

static void walk_begin(struct cell_client *client, unsigned node, struct walk *walk) {
    uint64_t root = atomic_load_explicit(&client->cn->roots[node], memory_order_relaxed);
    *walk = (struct walk){.node = node, .level = (unsigned)(root >> 32), .ref = (uint32_t)root, .is_root = true};
}

/* The walk came to a node that does not cover the key any more. */
static int walk_stale(struct cell_client *client, struct walk *walk, const struct view *view, bool by_call,
                      uint32_t *attempts) {
    uint64_t root = cell_root_word(walk->ref, walk->level);
    cell_count_event(client, CELL_STALE_WALK_COUNT);
    if (walk->parent_stamp != 0) {
        ix_cache_drop(client->cn->cache, walk->parent, walk->parent_stamp);
    }
    if (walk->is_root) {
        DM_TRY(cell_root_refresh(client, walk->node));
        if (client->root[0] != root) {
            cell_count_event(client, CELL_ROOT_MOVED_COUNT);
            walk_begin(client, walk->node, walk);
            return dm_retry(client->ctx, DM_RETRY_STALE, attempts);
        }
    }
    if (by_call) {
        return CELL_BY_CALL;
    }
    walk->ref = view->right;
    walk->parent_stamp = 0;
    walk->is_root = false;
    return dm_retry(client->ctx, DM_RETRY_MOVED, attempts);
}

/* Nodes keep their level and low fence, so what was fetched is no state of the index: from the root again. */
static int walk_again(struct cell_client *client, struct walk *walk, uint32_t *attempts) {
    if (walk->parent_stamp != 0) {
        ix_cache_drop(client->cn->cache, walk->parent, walk->parent_stamp);
    }
    DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
    DM_TRY(cell_root_refresh(client, walk->node));
    walk_begin(client, walk->node, walk);
    return 0;
}

int cell_walk(struct cell_client *client, unsigned node, uint64_t key, unsigned level, bool by_call,
              struct cell_walked *walked, uint32_t *attempts) {
    bool ignores_fences = level == 0 && !client->cn->params->fences;
    struct walk walk;
    struct view view;
    walk_begin(client, node, &walk);
    for (;;) {
        level = walk.is_root && walk.level < level ? walk.level : level;
        DM_TRY(node_look(client, node, walk.ref, walk.level, walk.level == level, key, &view, attempts));
        if (!view.is_legal) {
            DM_TRY(walk_again(client, &walk, attempts));
        } else if (!view.covers && !ignores_fences) {
            int rc = walk_stale(client, &walk, &view, by_call, attempts);
            if (rc != 0) {
                return rc;
            }
        } else if (walk.level == level) {
            *walked = (struct cell_walked){level, cell_addr(node, walk.ref), view.stamp};
            return 0;
        } else {
            walk.parent = cell_addr(node, walk.ref);
            walk.parent_stamp = view.stamp;
            walk.ref = view.child;
            walk.level--;
            walk.is_root = false;
        }
    }
}
