/* SPDX-License-Identifier: Apache-2.0
 *
 * All operations of a B-link tree whose leaves are arrays of entries (leaf.h), of the size and with the head of its
 * inner nodes. The index chooses format and locks (tree.h), whether entries are sorted or have versions, and what may
 * be cached; then its operations are calls of these. Sherman is written on it.
 *
 *     get                  descend; READ leaf; follow siblings while the key is above the upper fence
 *     update, delete,      descend; lock and READ the leaf, or READ it and upgrade; change an entry; {WRITE, unlock}
 *     insert               with one doorbell. A leaf that is full is split; a node without keys stays in the tree
 *     scan                 the parent gives the leaves that will be needed: READ up to 16 (16 KiB) with one doorbell
 *
 * Names: ix_btree_<hook of index.h>. Each takes the part of it that the index embeds in its own objects; none of them
 * names the index in an error, that is the registry's.
 */
#ifndef DM_INDEXES_SHARED_BTREE_H
#define DM_INDEXES_SHARED_BTREE_H

#include "indexes/index.h"
#include "indexes/shared/indirect.h"
#include "indexes/shared/leaf.h"
#include "indexes/shared/tree.h"

/* ---- what kind of tree ------------------------------------------------------------------------------------------- */

struct ix_btree_config {
    const struct ix_tree_policy *policy;
    const struct ix_node_format *format;
    const struct ix_node_format *leaf_format; /* of leaves of pointer entries, with `pointers`; NULL: as inner nodes */
    uint32_t pointers;                        /* such entries of a leaf; 0: the leaves are of another kind */
    uint64_t node_bytes;                      /* of leaves and inner nodes */
    uint32_t span;                            /* entries of a leaf at most; 0: as many as node_bytes holds */
    bool word_behind;                         /* each node is followed by a line for the policy's use, zero at first */
    bool sorted;                              /* entries of leaves */
    bool entry_versions; /* an entry is written back alone: ix_format_lines, unsorted, lock before read */
    unsigned versions;   /* enum ix_versions: what readers compare */
    bool torn_is_absent; /* known to be wrong, for the checker: a half-written entry is taken as not there */
    unsigned values;     /* enum ix_values */
    unsigned fetch;      /* enum ix_fetch */
    double fill;         /* share of a node's entries that bulk load fills */
    uint64_t cache_levels;
    bool cache_list;     /* cached inner nodes are found by a skip list, */
    uint64_t list_nodes; /* of so many nodes (tree.h) */
    bool combine;        /* write-back and unlock go with one doorbell */

    /* For verify: entries of a leaf that a write has begun to change, and not ended. NULL: none can be. */
    unsigned (*unfinished)(const struct ix_leaf_layout *layout, const void *wire);
};

enum { IX_BTREE_CAP_MIN = 4 /* entries that a leaf must hold to be split sensibly */ };

/* The least node_bytes whose leaves hold so many entries of `key_bytes` and `value_bytes` (stored), and inner nodes as
 * many children. */
uint64_t ix_btree_node_bytes(const struct ix_btree_config *config, uint64_t entries, uint32_t key_bytes,
                             uint32_t value_bytes);

/* What a node takes in remote memory. */
static inline uint32_t ix_btree_alloc_bytes(const struct ix_btree_config *config) {
    return (uint32_t)config->node_bytes + (config->word_behind ? DM_LINE : 0);
}

/* Refuses sizes that cannot work. */
int ix_btree_check(const struct ix_btree_config *config, const struct ix_shape *shape, struct dm_err *err);

/* DRAM bytes that a memory node needs for nodes and blocks of `keys` keys, reserved page included. */
uint64_t ix_btree_memory_needed(const struct ix_btree_config *config, const struct ix_shape *shape, uint64_t keys);

/* Writes an empty tree. [waits] */
int ix_btree_format(const struct ix_btree_config *config, struct dm_ctx *ctx, const struct ix_shape *shape,
                    struct dm_err *err);

/* ---- a compute node's part --------------------------------------------------------------------------------------- */

struct ix_btree_cn {
    struct ix_tree_cn tree;
    struct ix_btree_config config;
    struct ix_leaf_layout leaf;
    const struct ix_shape *shape;
};

/* `owner` is for the policy (tree.h). 0 or a failure; the caller closes in any case. [waits] */
int ix_btree_open(struct ix_btree_cn *cn, const struct ix_btree_config *config, struct dm_ctx *ctx, void *owner,
                  const struct ix_shape *shape);
void ix_btree_close(struct ix_btree_cn *cn); /* accepts a zeroed one */

uint64_t ix_btree_cache_bytes(const struct ix_btree_cn *cn);
int ix_btree_load(struct ix_btree_cn *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int ix_btree_verify(struct ix_btree_cn *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

/* ---- a client's part --------------------------------------------------------------------------------------------- */

/* Where a client's counters are; NULL for those that the index does not declare. */
struct ix_btree_counts {
    uint64_t *tree;   /* IX_TREE_COUNTERS */
    uint64_t *cache;  /* IX_TREE_CACHE_COUNTERS: with a cache */
    uint64_t *torn;   /* half-written entries: with entry_versions */
    uint64_t *reused; /* blocks reused before they were read, with values=indirect */
};

struct ix_btree {
    struct ix_tree tree;
    struct ix_btree_cn *cn;
    struct dm_ctx *ctx;
    char *scratch;                /* an image */
    struct ix_indirect *indirect; /* NULL: values are inline */
    uint64_t *torn;
    uint64_t no_counts[2]; /* where counters go that the index does not declare */
};

/* `client` is for the policy (tree.h). 0 or DM_ERR_NO_MEMORY; the caller detaches in any case. */
int ix_btree_attach(struct ix_btree *btree, struct ix_btree_cn *cn, struct dm_ctx *ctx, void *client,
                    const struct ix_btree_counts *counts);
void ix_btree_detach(struct ix_btree *btree); /* accepts a zeroed one */

/* ---- the operations, as in index.h. [waits] ---------------------------------------------------------------------- */

int ix_btree_get(struct ix_btree *btree, uint64_t key, void *value);
int ix_btree_insert(struct ix_btree *btree, uint64_t key, const void *value);
int ix_btree_update(struct ix_btree *btree, uint64_t key, const void *value);
int ix_btree_remove(struct ix_btree *btree, uint64_t key);
int ix_btree_scan(struct ix_btree *btree, uint64_t first, uint32_t count, uint64_t *keys, void *values,
                  uint32_t *found);

/* Defines, as static functions, the hooks of an index that are these calls and nothing else: load, cache_bytes, verify,
 * get, scan and detach. The two objects embed their parts as the member `btree`. */
#define IX_BTREE_READ_HOOKS(cn_type, client_type)                                                                      \
    static int load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {              \
        cn_type *cn = handle;                                                                                          \
        return ix_btree_load(&cn->btree, ctx, pairs, err);                                                             \
    }                                                                                                                  \
    static uint64_t cache_bytes(const void *handle) {                                                                  \
        const cn_type *cn = handle;                                                                                    \
        return ix_btree_cache_bytes(&cn->btree);                                                                       \
    }                                                                                                                  \
    static int verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {                \
        cn_type *cn = handle;                                                                                          \
        return ix_btree_verify(&cn->btree, ctx, report, err);                                                          \
    }                                                                                                                  \
    static int get(void *handle, uint64_t key, void *value) {                                                          \
        client_type *client = handle;                                                                                  \
        return ix_btree_get(&client->btree, key, value);                                                               \
    }                                                                                                                  \
    static int scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {     \
        client_type *client = handle;                                                                                  \
        return ix_btree_scan(&client->btree, first, count, keys, values, found);                                       \
    }                                                                                                                  \
    static void detach(void *handle) {                                                                                 \
        client_type *client = handle;                                                                                  \
        ix_btree_detach(&client->btree);                                                                               \
    }

/* And, of an index that does not write otherwise, insert, update and remove_key. */
#define IX_BTREE_WRITE_HOOKS(client_type)                                                                              \
    static int insert(void *handle, uint64_t key, const void *value) {                                                 \
        client_type *client = handle;                                                                                  \
        return ix_btree_insert(&client->btree, key, value);                                                            \
    }                                                                                                                  \
    static int update(void *handle, uint64_t key, const void *value) {                                                 \
        client_type *client = handle;                                                                                  \
        return ix_btree_update(&client->btree, key, value);                                                            \
    }                                                                                                                  \
    static int remove_key(void *handle, uint64_t key) {                                                                \
        client_type *client = handle;                                                                                  \
        return ix_btree_remove(&client->btree, key);                                                                   \
    }

/* ---- shared by their files --------------------------------------------------------------------------------------- */

/* True if entry i of the leaf in `wire`, or each of them, is not half-written; of all, always with torn_is_absent. */
bool ix_btree_entry_consistent(struct ix_btree *btree, const void *wire, unsigned i);
bool ix_btree_entries_consistent(struct ix_btree *btree, const void *wire);

#endif
