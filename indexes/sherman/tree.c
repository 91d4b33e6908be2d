/* SPDX-License-Identifier: Apache-2.0
 *
 * The read path: descent through cached and remote inner nodes, reading a node until it is whole, and get.
 *
 * Why an old view never misleads for good: a node's lower fence never changes and a node is never freed once it is
 * linked; splits only lower the upper fence and add a node to the right. So from any node that a key once belonged to,
 * following siblings reaches the node it belongs to now, and fences tell when that has happened.
 */
#include "common/compiler.h"
#include "sherman.h"

static uint32_t node_lines(const struct sherman_client *client) {
    return client->cn->layout.node_bytes / DM_LINE;
}

int sherman_root_refresh(struct sherman_client *client) {
    struct sherman_cn *cn = client->cn;
    DM_TRY(dm_read(client->ctx, sherman_root_place(), client->root, sizeof(*client->root)));
    uint64_t seen = *client->root;
    uint64_t known = atomic_load_explicit(&cn->root, memory_order_relaxed);
    while (sherman_root_level(seen) > sherman_root_level(known)) {
        if (atomic_compare_exchange_weak_explicit(&cn->root, &known, seen, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            break;
        }
    }
    return sherman_root_level(seen) > client->top;
}

void sherman_cache_keep(struct sherman_client *client, dm_addr addr, const void *image) {
    struct sherman_cn *cn = client->cn;
    unsigned level = node_head_in(image)->level;
    unsigned top = sherman_root_level(atomic_load_explicit(&cn->root, memory_order_relaxed));
    if (top < level || top - level < cn->params->cache_levels) {
        bool evicted = ix_cache_insert(cn->cache, addr, level, image);
        client->counts[SHERMAN_CACHE_EVICTION] += evicted;
    }
}

int sherman_fetch(struct sherman_client *client, dm_addr addr, unsigned level, uint32_t *attempts) {
    const struct node_layout *layout = &client->cn->layout;
    if (!dm_addr_valid(client->ctx, addr, layout->node_bytes)) {
        return SHERMAN_AGAIN;
    }
    for (;;) {
        DM_TRY(dm_read(client->ctx, addr, client->wire, layout->node_bytes));
        dm_charge(client->ctx, DM_WORK_LINE_COPY, node_lines(client));
        if (ix_lines_whole(client->wire, layout->node_bytes, layout->versions)) {
            ix_lines_decode(client->wire, layout->node_bytes, client->image);
            return node_plausible(layout, client->image, level) ? 0 : SHERMAN_AGAIN;
        }
        client->counts[SHERMAN_TORN_NODE]++;
        DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, attempts));
    }
}

int sherman_misled(struct sherman_client *client, unsigned level, bool right, uint32_t *attempts) {
    bool again = !right;
    if (level >= client->top) {
        /* What was the root has a sibling, or is none at all: there may be a new root. */
        int grown = sherman_root_refresh(client);
        DM_TRY(grown);
        again |= grown > 0;
    } else if (client->path[level + 1].stamp != 0) {
        ix_cache_drop(client->cn->cache, client->path[level + 1].addr, client->path[level + 1].stamp);
        again = true;
    }
    client->counts[again ? SHERMAN_STALE_CACHE : SHERMAN_MOVED_RIGHT]++;
    DM_TRY(dm_retry(client->ctx, again ? DM_RETRY_STALE : DM_RETRY_MOVED, attempts));
    return again ? SHERMAN_AGAIN : 0;
}

/* The search would miss line after line; asked for together they come together. */
static void prefetch_node(const void *copy, uint32_t bytes) {
    for (uint32_t at = DM_LINE; at < bytes; at += DM_LINE) {
        dm_prefetch_read((const char *)copy + at);
    }
}

/* Goes down as far as copies reach. Stops at `target`, at a node that is not cached, or at one that does not cover key:
 * then *right is set and *addr is its sibling. Returns the level of *addr. */
static unsigned descend_cached(struct sherman_client *client, uint64_t key, unsigned level, unsigned target,
                               dm_addr *addr, bool *right) {
    struct sherman_cn *cn = client->cn;
    ix_cache_enter(cn->cache, client->thread);
    while (level > target) {
        uint32_t stamp;
        const void *copy = ix_cache_find(cn->cache, *addr, &stamp);
        if (!copy) {
            break;
        }
        client->cache_steps++;
        client->path[level] = (struct sherman_step){*addr, stamp};
        prefetch_node(copy, cn->layout.image_bytes);
        if (key >= node_head_in(copy)->high) {
            *addr = node_head_in(copy)->sibling;
            *right = true;
            break;
        }
        *addr = inner_children_in(&cn->layout, copy)[inner_find(copy, key)];
        level--;
    }
    ix_cache_leave(cn->cache, client->thread);
    return level;
}

/* One level down (or to the right, then *right is set) through remote memory. */
static int descend_remote(struct sherman_client *client, uint64_t key, unsigned level, uint32_t *attempts,
                          dm_addr *addr, bool *right) {
    struct sherman_cn *cn = client->cn;
    client->counts[SHERMAN_CACHE_MISS]++;
    int rc = sherman_fetch(client, *addr, level, attempts);
    const struct node_head *head = node_head_in(client->image);
    if (rc == SHERMAN_AGAIN || (rc == 0 && key < head->low)) {
        return sherman_misled(client, level, false, attempts);
    }
    DM_TRY(rc);
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    sherman_cache_keep(client, *addr, client->image);
    client->path[level] = (struct sherman_step){*addr, 0};
    *right = key >= head->high;
    *addr = *right ? head->sibling : inner_children(&cn->layout, client->image)[inner_find(client->image, key)];
    return 0;
}

static void charge_cached(struct sherman_client *client) {
    if (client->cache_steps > 0) {
        dm_charge(client->ctx, DM_WORK_CACHE_PROBE, client->cache_steps);
        dm_charge(client->ctx, DM_WORK_NODE_PROBE, client->cache_steps);
        client->counts[SHERMAN_CACHE_HIT] += client->cache_steps;
        client->cache_steps = 0;
    }
}

/* From the root to `target` once; SHERMAN_AGAIN when something on the way was out of date. */
static int descend_once(struct sherman_client *client, uint64_t key, unsigned target, uint32_t *attempts,
                        dm_addr *addr) {
    uint64_t root = atomic_load_explicit(&client->cn->root, memory_order_relaxed);
    unsigned level = sherman_root_level(root);
    *addr = sherman_root_addr(root);
    client->top = level;
    if (level < target) {
        return SHERMAN_ABOVE_ROOT;
    }
    while (level > target) {
        bool right = false;
        level = descend_cached(client, key, level, target, addr, &right);
        if (level > target && !right) {
            charge_cached(client);
            int rc = descend_remote(client, key, level, attempts, addr, &right);
            if (rc != 0) {
                return rc;
            }
            level -= !right;
        }
        if (right) {
            int rc = sherman_misled(client, level, true, attempts);
            if (rc != 0) {
                return rc;
            }
        }
    }
    charge_cached(client);
    return 0;
}

int sherman_descend(struct sherman_client *client, uint64_t key, unsigned level, uint32_t *attempts, dm_addr *addr) {
    int rc;
    do {
        rc = descend_once(client, key, level, attempts, addr);
    } while (rc == SHERMAN_AGAIN);
    return rc;
}

bool sherman_entry_whole(struct sherman_client *client, const void *wire, unsigned i) {
    const struct node_layout *layout = &client->cn->layout;
    if (ix_lines_object_whole(wire, leaf_entry_offset(layout, i), layout->entry_bytes, layout->versions)) {
        return true;
    }
    client->counts[SHERMAN_TORN_ENTRY]++;
    return false;
}

bool sherman_entries_whole(struct sherman_client *client, const void *wire) {
    const struct node_layout *layout = &client->cn->layout;
    if (client->cn->params->torn == SHERMAN_TORN_ABSENT) {
        return true;
    }
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        if (!sherman_entry_whole(client, wire, i)) {
            return false;
        }
    }
    return true;
}

/* Looks for key in the leaf just read: 0, DM_NOT_FOUND, or SHERMAN_AGAIN when an entry that matters is half-written. A
 * key that is itself half-written cannot be recognised, so absence counts only if every entry is whole. */
static int leaf_answer(struct sherman_client *client, uint64_t key, void *value) {
    const struct node_layout *layout = &client->cn->layout;
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    int at = leaf_find(layout, client->image, key);
    if (at == ENTRY_NONE) {
        return sherman_entries_whole(client, client->wire) ? DM_NOT_FOUND : SHERMAN_AGAIN;
    }
    if (!sherman_entry_whole(client, client->wire, (unsigned)at)) {
        return client->cn->params->torn == SHERMAN_TORN_ABSENT ? DM_NOT_FOUND : SHERMAN_AGAIN;
    }
    memcpy(value, leaf_value(layout, client->image, (unsigned)at), layout->value_bytes);
    return 0;
}

/* Reads leaves from addr on until one answers. */
static int leaf_get(struct sherman_client *client, uint64_t key, dm_addr addr, uint32_t *attempts, void *value) {
    for (;;) {
        int rc = sherman_fetch(client, addr, 0, attempts);
        const struct node_head *head = node_head_in(client->image);
        if (rc == SHERMAN_AGAIN || (rc == 0 && key < head->low)) {
            return sherman_misled(client, 0, false, attempts);
        }
        DM_TRY(rc);
        if (key >= head->high) {
            addr = head->sibling;
            rc = sherman_misled(client, 0, true, attempts);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        rc = leaf_answer(client, key, value);
        if (rc != SHERMAN_AGAIN) {
            return rc;
        }
        DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, attempts));
    }
}

int sherman_get(void *handle, uint64_t key, void *value) {
    struct sherman_client *client = handle;
    uint32_t attempts = 0;
    for (;;) {
        dm_addr addr;
        DM_TRY(sherman_descend(client, key, 0, &attempts, &addr));
        int rc = leaf_get(client, key, addr, &attempts, value);
        if (rc != SHERMAN_AGAIN) {
            return rc;
        }
    }
}
