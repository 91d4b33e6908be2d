/* SPDX-License-Identifier: Apache-2.0
 *
 * The levels above the leaves, in the memory node's DRAM, which only its CPU reads: a B-link tree instead of the
 * paper's tree with hardware transactions. A writer holds the mutex of one node at a time and inserts a new node into
 * its parent afterwards. Readers hold no mutex; they check what they read and follow right links. A node that has no
 * entry in its parent yet, or never gets one because memory is full, costs readers one more link.
 */
#include "btree.h"

#include <stdlib.h>

#include "indexes/shared/fill.h"

struct inner {
    uint64_t words[XSTORE_INNER_WORDS];
};

enum { CHECK, HEAD, HIGH, KEYS, CHILDREN = KEYS + XSTORE_FANOUT };

static unsigned count_of(const struct inner *node) {
    return (unsigned)(node->words[HEAD] >> 48);
}
static unsigned level_of(const struct inner *node) {
    return (unsigned)(node->words[HEAD] >> 32 & 0xffff);
}
static uint32_t next_of(const struct inner *node) {
    return (uint32_t)node->words[HEAD];
}
static uint64_t head_word(unsigned count, unsigned level, uint32_t next) {
    return (uint64_t)count << 48 | (uint64_t)level << 32 | next;
}
static uint64_t inner_check(uint32_t ref, const struct inner *node) {
    return ix_check_word(~dm_mix64(ref), node->words + HEAD, XSTORE_INNER_WORDS - HEAD);
}

static void inner_store(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, struct inner *node) {
    node->words[CHECK] = inner_check(ref, node);
    dm_cpu_write(ctx, xstore_addr(server->node, ref), node->words, sizeof(node->words));
    dm_charge(ctx, DM_WORK_LINE_COPY, XSTORE_INNER_BYTES / DM_LINE);
    dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_INNER_WORDS - HEAD));
}

/* Reads until the node is consistent: a writer on another core may be storing it. */
static int inner_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, struct inner *node) {
    dm_addr addr = xstore_addr(server->node, ref);
    uint32_t attempts = 0;
    if (ref == 0 || !dm_addr_valid(ctx, addr, XSTORE_INNER_BYTES)) {
        return DM_ERR_CORRUPT;
    }
    for (;;) {
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        dm_charge(ctx, DM_WORK_LINE_COPY, XSTORE_INNER_BYTES / DM_LINE);
        dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_INNER_WORDS - HEAD));
        dm_cpu_read(ctx, addr, node->words, sizeof(node->words));
        if (node->words[CHECK] == inner_check(ref, node) && count_of(node) <= XSTORE_FANOUT) {
            return 0;
        }
        DM_TRY(dm_retry(ctx, DM_RETRY_TORN, &attempts));
        DM_TRY(dm_sleep(ctx, 0));
    }
}

/* ---- the root ---------------------------------------------------------------------------------------------------- */

static dm_addr root_addr(const struct xstore_server *server) {
    return dm_addr_make(server->node, DM_DRAM, XSTORE_ROOT_OFFSET);
}

static uint64_t root_word(uint32_t ref, unsigned level) {
    return (uint64_t)level << 32 | ref;
}

static uint64_t root_load(struct xstore_server *server, struct dm_ctx *ctx) {
    uint64_t word;
    dm_cpu_read(ctx, root_addr(server), &word, sizeof(word));
    return word;
}

static void root_store(struct xstore_server *server, struct dm_ctx *ctx, uint64_t word) {
    dm_cpu_write(ctx, root_addr(server), &word, sizeof(word));
}

/* ---- descent ----------------------------------------------------------------------------------------------------- */

static uint32_t child_for(const struct inner *node, uint64_t key) {
    unsigned low = 0, high = count_of(node);
    while (high - low > 1) { /* the first child covers all keys below the second */
        unsigned middle = (low + high) / 2;
        if (node->words[KEYS + middle] <= key) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint32_t)node->words[CHILDREN + low];
}

static bool covers(const struct inner *node, uint64_t key) {
    return key < node->words[HIGH] || node->words[HIGH] == UINT64_MAX;
}

/* The outcome when the tree is not as high as `level`. */
enum { ABOVE_ROOT = 2000 };

static int descend(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level, uint32_t *ref) {
    uint64_t root = root_load(server, ctx);
    unsigned at = (unsigned)(root >> 32);
    *ref = (uint32_t)root;
    if (at < level) {
        return ABOVE_ROOT;
    }
    while (at > level) {
        struct inner node;
        DM_TRY(inner_load(server, ctx, *ref, &node));
        if (!covers(&node, key)) {
            *ref = next_of(&node);
            continue;
        }
        if (level_of(&node) != at || count_of(&node) == 0) {
            return DM_ERR_CORRUPT;
        }
        dm_charge(ctx, DM_WORK_KEY_COMPARE, XSTORE_FANOUT / 2);
        *ref = child_for(&node, key);
        at--;
    }
    return 0;
}

int xstore_descend(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level, uint32_t *ref) {
    int rc = descend(server, ctx, key, level, ref);
    return rc == ABOVE_ROOT ? DM_ERR_CORRUPT : rc;
}

/* ---- insertion --------------------------------------------------------------------------------------------------- */

static int inner_alloc(struct xstore_server *server, struct dm_ctx *ctx, uint32_t *ref) {
    dm_addr addr;
    DM_TRY(dm_alloc(ctx, server->node, XSTORE_INNER_BYTES, DM_LINE, DM_MEM_INNER, &addr));
    *ref = xstore_ref_of(addr);
    return 0;
}

static void entry_insert(struct inner *node, uint64_t key, uint32_t child) {
    unsigned count = count_of(node), at = count;
    while (at > 1 && node->words[KEYS + at - 1] > key) {
        at--;
    }
    memmove(node->words + KEYS + at + 1, node->words + KEYS + at, (count - at) * 8);
    memmove(node->words + CHILDREN + at + 1, node->words + CHILDREN + at, (count - at) * 8);
    node->words[KEYS + at] = key;
    node->words[CHILDREN + at] = child;
    node->words[HEAD] = head_word(count + 1, level_of(node), next_of(node));
}

/* Moves the upper half of the locked node to `right` and inserts the entry into its half. The right node is stored
 * first: no reader can reach it until the left one is stored. Returns the lowest key of the right node. */
static uint64_t inner_split(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, struct inner *node,
                            uint32_t right, uint64_t key, uint32_t child) {
    unsigned count = count_of(node), kept = count / 2, moved = count - kept, level = level_of(node);
    struct inner upper = {{0}};
    uint64_t low = node->words[KEYS + kept];
    memcpy(upper.words + KEYS, node->words + KEYS + kept, moved * 8);
    memcpy(upper.words + CHILDREN, node->words + CHILDREN + kept, moved * 8);
    upper.words[HEAD] = head_word(moved, level, next_of(node));
    upper.words[HIGH] = node->words[HIGH];
    node->words[HEAD] = head_word(kept, level, right);
    node->words[HIGH] = low;
    entry_insert(key < low ? node : &upper, key, child);
    inner_store(server, ctx, right, &upper);
    inner_store(server, ctx, ref, node);
    return low;
}

/* Makes a new root with the old root and `child` as its children. ABOVE_ROOT: another context was first. */
static int root_grow(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level,
                     uint32_t fresh) {
    /* This mutex also protects the root word. */
    struct dm_mutex *lock = &server->stripes[0];
    DM_TRY(dm_mutex_lock(ctx, lock));
    uint64_t root = root_load(server, ctx);
    bool first = root >> 32 == level;
    if (first) {
        struct inner node = {{0}};
        node.words[HEAD] = head_word(2, level + 1, 0);
        node.words[HIGH] = UINT64_MAX;
        node.words[KEYS + 1] = key;
        node.words[CHILDREN] = (uint32_t)root;
        node.words[CHILDREN + 1] = child;
        inner_store(server, ctx, fresh, &node);
        root_store(server, ctx, root_word(fresh, level + 1));
    }
    dm_mutex_unlock(ctx, lock);
    return first ? 0 : ABOVE_ROOT;
}

/* Locks the node of `level` that covers key. */
static int inner_lock(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level, uint32_t *ref,
                      struct inner *node) {
    int rc = descend(server, ctx, key, level, ref);
    if (rc != 0) {
        return rc;
    }
    for (;;) {
        DM_TRY(dm_mutex_lock(ctx, xstore_stripe(server, *ref)));
        rc = inner_load(server, ctx, *ref, node);
        if (rc == 0 && covers(node, key)) {
            return 0;
        }
        dm_mutex_unlock(ctx, xstore_stripe(server, *ref));
        DM_TRY(rc);
        *ref = next_of(node);
    }
}

/* Inserts the entry into one level. *key and *child become the entry for the level above; *child is 0 if none is
 * needed. `fresh` is memory for a split or a new root, or 0; *used reports whether it was used. */
static int link_level(struct xstore_server *server, struct dm_ctx *ctx, uint64_t *key, uint32_t *child, unsigned level,
                      uint32_t fresh, bool *used) {
    struct inner node;
    uint32_t ref;
    *used = false;
    int rc = inner_lock(server, ctx, *key, level + 1, &ref, &node);
    if (rc == ABOVE_ROOT) {
        if (fresh == 0) {
            return DM_ERR_NO_MEMORY;
        }
        rc = root_grow(server, ctx, *key, *child, level, fresh);
        *used = rc == 0;
        *child = *used ? 0 : *child;
        return rc;
    }
    DM_TRY(rc);
    if (count_of(&node) < server->params->fanout) {
        entry_insert(&node, *key, *child);
        inner_store(server, ctx, ref, &node);
        *child = 0;
    } else if (fresh != 0) {
        *key = inner_split(server, ctx, ref, &node, fresh, *key, *child);
        *child = fresh;
        *used = true;
    } else {
        rc = DM_ERR_NO_MEMORY;
    }
    dm_mutex_unlock(ctx, xstore_stripe(server, ref));
    return rc;
}

int xstore_link(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level) {
    while (child != 0) {
        uint32_t fresh = 0;
        bool used;
        int rc = inner_alloc(server, ctx, &fresh);
        if (rc < 0 && rc != DM_ERR_NO_MEMORY) {
            return rc;
        }
        rc = link_level(server, ctx, &key, &child, level, fresh, &used);
        if (fresh != 0 && !used) {
            dm_free(ctx, xstore_addr(server->node, fresh), XSTORE_INNER_BYTES, DM_MEM_INNER);
        }
        if (rc == DM_ERR_NO_MEMORY) {
            ix_word_increment(ctx, dm_addr_make(server->node, DM_DRAM, XSTORE_UNLINKED_OFFSET));
            return 0;
        }
        DM_TRY(rc);
        level += rc == 0; /* else the tree has grown: retry at the same level */
    }
    return 0;
}

/* ---- bulk load --------------------------------------------------------------------------------------------------- */

/* Builds the node with `count` entries at `ref`, and `next` to its right. */
static void inner_build(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, uint32_t next, uint64_t high,
                        unsigned level, const struct xstore_built *entries, unsigned count) {
    struct inner node = {{0}};
    for (unsigned i = 0; i < count; i++) {
        node.words[KEYS + i] = entries[i].low;
        node.words[CHILDREN + i] = entries[i].ref;
    }
    node.words[HEAD] = head_word(count, level, next);
    node.words[HIGH] = high;
    inner_store(server, ctx, ref, &node);
}

static int level_build(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_built *built, uint64_t *count,
                       unsigned level) {
    uint64_t nodes = ix_nodes_for(*count, server->params->fill, (uint32_t)server->params->fanout, 2);
    uint32_t ref, next = 0;
    DM_TRY(inner_alloc(server, ctx, &ref));
    for (uint64_t i = 0; i < nodes; i++, ref = next) {
        uint64_t begin = *count * i / nodes, end = *count * (i + 1) / nodes;
        uint64_t high = end < *count ? built[end].low : UINT64_MAX;
        next = 0;
        if (i + 1 < nodes) {
            DM_TRY(inner_alloc(server, ctx, &next));
        }
        inner_build(server, ctx, ref, next, high, level, built + begin, (unsigned)(end - begin));
        built[i] = (struct xstore_built){built[begin].low, ref};
    }
    *count = nodes;
    return 0;
}

int xstore_build(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_built *level, uint64_t count) {
    unsigned height = 0;
    while (count > 1) {
        DM_TRY(level_build(server, ctx, level, &count, ++height));
    }
    root_store(server, ctx, root_word(level[0].ref, height));
    return 0;
}
