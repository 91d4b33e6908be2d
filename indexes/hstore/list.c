/* SPDX-License-Identifier: Apache-2.0
 *
 * A skip list in a server's DRAM. A node: key; height 8 bits, item 48 bits; the write that made the item; then the
 * offset of the next node on each of its levels.
 */
#include "list.h"

#include <assert.h>

#include "indexes/shared/skip_list.h"

enum {
    NODE_KEY = 0,
    NODE_ITEM = 8, /* with the height */
    NODE_WRITER = 16,
    NODE_NEXT = 24,
    ARENA_LEAST = 4096, /* bounds of one allocation, which is a quarter of the list's size */
    ARENA_MOST = 65536,
    ARENA_HEAD = 16,        /* of one in the chain */
    BRANCH_BITS = 2,        /* one node in 2^2 is one level higher */
    CACHE_BYTES = 14 << 20, /* last-level cache of a server: the paper's Xeon Gold 5215 */
    HEIGHT_SHIFT = 56,
};
static_assert(1 << BRANCH_BITS == IX_LIST_BRANCHING, "searches are charged as those of such a list");

static uint64_t node_bytes(unsigned height) {
    return NODE_NEXT + 8 * (uint64_t)height;
}

static uint64_t word_get(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t offset) {
    uint64_t word;
    dm_cpu_read(ctx, dm_addr_make(list->node, DM_DRAM, offset), &word, sizeof(word));
    return word;
}

static void word_set(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t offset, uint64_t word) {
    dm_cpu_write(ctx, dm_addr_make(list->node, DM_DRAM, offset), &word, sizeof(word));
}

static uint64_t next_at(uint64_t node, unsigned level) {
    return node + NODE_NEXT + 8 * (uint64_t)level;
}

int hstore_list_reserve(struct dm_ctx *ctx, struct hstore_list *list, uint32_t count) {
    uint64_t wanted = count * node_bytes(HSTORE_LEVELS);
    uint64_t rest = list->arena_end - list->arena, lost = node_bytes(HSTORE_LEVELS) + ARENA_HEAD;
    if (rest >= wanted || (rest > lost ? rest - lost : 0) + list->chained >= wanted) {
        return 0;
    }
    wanted = lost + wanted - list->chained;
    uint64_t bytes = list->count * node_bytes(1) / 4;
    bytes = bytes < ARENA_LEAST ? ARENA_LEAST : bytes > ARENA_MOST ? ARENA_MOST : bytes;
    bytes = bytes < wanted ? wanted : bytes;
    dm_addr addr;
    DM_TRY(dm_alloc(ctx, list->node, (uint32_t)bytes, DM_LINE, DM_MEM_INNER, &addr));
    uint64_t arena = dm_addr_offset(addr);
    word_set(ctx, list, arena, 0);
    word_set(ctx, list, arena + 8, arena + bytes);
    if (list->last_arena) {
        word_set(ctx, list, list->last_arena, arena);
    } else {
        list->next_arena = arena;
    }
    list->last_arena = arena;
    list->chained += bytes - lost;
    return 0;
}

/* What the old arena has left is too small for the node. */
static void arena_begin(struct dm_ctx *ctx, struct hstore_list *list) {
    uint64_t arena = list->next_arena;
    assert(arena); /* reserved */
    list->next_arena = word_get(ctx, list, arena);
    list->last_arena = list->next_arena ? list->last_arena : 0;
    list->arena = arena + ARENA_HEAD;
    list->arena_end = word_get(ctx, list, arena + 8);
    list->chained -= list->arena_end - arena - ARENA_HEAD - node_bytes(HSTORE_LEVELS);
}

static uint64_t arena_take(struct dm_ctx *ctx, struct hstore_list *list, unsigned levels) {
    if (list->arena_end - list->arena < node_bytes(levels)) {
        arena_begin(ctx, list);
    }
    uint64_t node = list->arena;
    list->arena += node_bytes(levels);
    return node;
}

int hstore_list_make(struct dm_ctx *ctx, struct hstore_list *list, unsigned partitions) {
    unsigned node = list->node;
    *list = (struct hstore_list){.node = node, .cached = CACHE_BYTES / DM_LINE / partitions, .top = 1};
    DM_TRY(hstore_list_reserve(ctx, list, 1));
    list->head = arena_take(ctx, list, HSTORE_LEVELS);
    for (unsigned level = 0; level < HSTORE_LEVELS; level++) {
        word_set(ctx, list, next_at(list->head, level), 0);
        list->fingers[level] = list->head;
    }
    return 0;
}

void hstore_steps_charge(struct dm_ctx *ctx, const struct hstore_list *list, struct hstore_steps steps) {
    uint64_t partitions = CACHE_BYTES / DM_LINE / list->cached;
    for (unsigned level = 0; level < list->top && steps.near > 0; level++) {
        uint32_t count = steps.near_at[level];
        if (count > 0) {
            uint64_t nodes = (list->count >> (BRANCH_BITS * level)) * partitions;
            dm_charge_access(ctx, count, ix_list_reuse_bytes(nodes, level, 0));
            dm_charge(ctx, DM_WORK_KEY_COMPARE, 2 * count);
        }
    }
    if (steps.far > 0) {
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, steps.far);
    }
}

/* The lowest level which, with all above it, has so few nodes that they stay in the cache, as every search visits them.
 */
static unsigned near_level(const struct hstore_list *list) {
    unsigned level = 0;
    while (level < HSTORE_LEVELS && list->count >> (BRANCH_BITS * level) > list->cached) {
        level++;
    }
    return level;
}

static void step_count(struct hstore_steps *steps, unsigned level, unsigned near) {
    steps->near += level >= near;
    steps->far += level < near;
    steps->near_at[level] = (uint16_t)(steps->near_at[level] + (level >= near));
}

/* Finds the last node before the key on every level in use. Returns the node after it, 0 at the end. */
static uint64_t search(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t key, uint64_t path[HSTORE_LEVELS],
                       struct hstore_steps *steps) {
    uint64_t at = list->head, next = 0;
    unsigned near = near_level(list);
    for (unsigned level = list->top; level-- > 0;) {
        uint64_t looked_at = next; /* the node that ended the level above, whose key is known to be too high */
        while ((next = word_get(ctx, list, next_at(at, level))) && next != looked_at) {
            step_count(steps, level, near);
            if (word_get(ctx, list, next + NODE_KEY) >= key) {
                break;
            }
            at = next;
        }
        path[level] = at;
    }
    return next;
}

static bool has_key(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t node, uint64_t key) {
    return node && word_get(ctx, list, node + NODE_KEY) == key;
}

static struct hstore_pair pair_get(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t node) {
    return (struct hstore_pair){.key = word_get(ctx, list, node + NODE_KEY),
                                .item = word_get(ctx, list, node + NODE_ITEM) & HSTORE_ADDR_MASK,
                                .writer = word_get(ctx, list, node + NODE_WRITER)};
}

static void pair_set(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t node, uint64_t height,
                     const struct hstore_pair *pair) {
    word_set(ctx, list, node + NODE_KEY, pair->key);
    word_set(ctx, list, node + NODE_ITEM, height << HEIGHT_SHIFT | pair->item);
    word_set(ctx, list, node + NODE_WRITER, pair->writer);
}

static uint64_t height_of(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t node) {
    return word_get(ctx, list, node + NODE_ITEM) >> HEIGHT_SHIFT;
}

struct hstore_pair hstore_list_find(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t key,
                                    struct hstore_steps *steps) {
    uint64_t path[HSTORE_LEVELS];
    uint64_t node = search(ctx, list, key, path, steps);
    return has_key(ctx, list, node, key) ? pair_get(ctx, list, node) : (struct hstore_pair){.key = key};
}

static uint64_t node_new(struct dm_ctx *ctx, struct hstore_list *list, const struct hstore_pair *pair,
                         unsigned *height) {
    unsigned levels = 1;
    while (levels < HSTORE_LEVELS && dm_prng_below(dm_random(ctx), 1 << BRANCH_BITS) == 0) {
        levels++;
    }
    uint64_t node = list->freed[levels - 1];
    if (node) {
        list->freed[levels - 1] = word_get(ctx, list, node);
    } else {
        node = arena_take(ctx, list, levels);
    }
    pair_set(ctx, list, node, levels, pair);
    *height = levels;
    list->count++;
    return node;
}

static void link_behind(struct dm_ctx *ctx, struct hstore_list *list, uint64_t node, unsigned height,
                        const uint64_t path[HSTORE_LEVELS]) {
    for (unsigned level = 0; level < height; level++) {
        uint64_t before = level < list->top ? path[level] : list->head;
        word_set(ctx, list, next_at(node, level), word_get(ctx, list, next_at(before, level)));
        word_set(ctx, list, next_at(before, level), node);
    }
    list->top = height > list->top ? height : list->top;
}

static void unlink_node(struct dm_ctx *ctx, struct hstore_list *list, uint64_t node,
                        const uint64_t path[HSTORE_LEVELS]) {
    unsigned height = (unsigned)height_of(ctx, list, node);
    for (unsigned level = 0; level < height && level < list->top; level++) {
        word_set(ctx, list, next_at(path[level], level), word_get(ctx, list, next_at(node, level)));
    }
    word_set(ctx, list, node, list->freed[height - 1]);
    list->freed[height - 1] = node;
    list->count--;
}

void hstore_list_set(struct dm_ctx *ctx, struct hstore_list *list, struct hstore_pair pair,
                     struct hstore_steps *steps) {
    uint64_t path[HSTORE_LEVELS];
    uint64_t node = search(ctx, list, pair.key, path, steps);
    bool is_there = has_key(ctx, list, node, pair.key);
    if (is_there && pair.item) {
        pair_set(ctx, list, node, height_of(ctx, list, node), &pair);
    } else if (is_there) {
        unlink_node(ctx, list, node, path);
    } else if (pair.item) {
        unsigned height;
        uint64_t made = node_new(ctx, list, &pair, &height);
        link_behind(ctx, list, made, height, path);
    }
}

void hstore_list_append(struct dm_ctx *ctx, struct hstore_list *list, struct hstore_pair pair) {
    unsigned height;
    uint64_t node = node_new(ctx, list, &pair, &height);
    link_behind(ctx, list, node, height, list->fingers);
    for (unsigned level = 0; level < height; level++) {
        list->fingers[level] = node;
    }
}

uint32_t hstore_list_copy(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t first, struct hstore_pair *pairs,
                          uint32_t capacity, struct hstore_steps *steps) {
    uint64_t path[HSTORE_LEVELS];
    uint64_t node = search(ctx, list, first, path, steps);
    uint32_t count = 0;
    unsigned near = near_level(list);
    while (node && count < capacity) {
        step_count(steps, 0, near);
        pairs[count++] = pair_get(ctx, list, node);
        node = word_get(ctx, list, next_at(node, 0));
    }
    return count;
}
