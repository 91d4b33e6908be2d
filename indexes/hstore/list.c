/* SPDX-License-Identifier: Apache-2.0
 *
 * A skip list in a server's DRAM. A node: key, item, height, then the offset of the next node of each of its levels.
 */
#include "list.h"

enum {
    NODE_KEY = 0,
    NODE_ITEM = 8,
    NODE_HEIGHT = 16,
    NODE_NEXT = 24,
    ARENA_LEAST = 4096, /* what is allocated at a time: a quarter of what is there, within these bounds */
    ARENA_MOST = 65536,
    BRANCH = 4, /* one node in so many is a level higher */
};

static uint64_t node_bytes(unsigned height) {
    return NODE_NEXT + 8 * (uint64_t)height;
}

static uint64_t word_get(struct dm_ctx *ctx, const struct hs_list *list, uint64_t offset) {
    uint64_t word;
    dm_cpu_read(ctx, dm_addr_make(list->node, DM_DRAM, offset), &word, sizeof(word));
    return word;
}

static void word_set(struct dm_ctx *ctx, const struct hs_list *list, uint64_t offset, uint64_t word) {
    dm_cpu_write(ctx, dm_addr_make(list->node, DM_DRAM, offset), &word, sizeof(word));
}

static uint64_t next_at(uint64_t node, unsigned level) {
    return node + NODE_NEXT + 8 * (uint64_t)level;
}

int hs_list_reserve(struct dm_ctx *ctx, struct hs_list *list, uint32_t count) {
    uint64_t wanted = count * node_bytes(HS_LEVELS);
    if (list->arena_end - list->arena >= wanted) {
        return 0;
    }
    uint64_t bytes = list->count * node_bytes(1) / 4;
    bytes = bytes < ARENA_LEAST ? ARENA_LEAST : bytes > ARENA_MOST ? ARENA_MOST : bytes;
    bytes = bytes < wanted ? wanted : bytes;
    dm_addr addr;
    DM_TRY(dm_alloc(ctx, list->node, (uint32_t)bytes, DM_LINE, DM_MEM_INNER, &addr));
    list->arena = dm_addr_offset(addr);
    list->arena_end = list->arena + bytes;
    return 0;
}

int hs_list_make(struct dm_ctx *ctx, struct hs_list *list) {
    unsigned node = list->node;
    *list = (struct hs_list){.node = node, .top = 1};
    DM_TRY(hs_list_reserve(ctx, list, 1));
    list->head = list->arena;
    list->arena += node_bytes(HS_LEVELS);
    word_set(ctx, list, list->head + NODE_HEIGHT, HS_LEVELS);
    for (unsigned level = 0; level < HS_LEVELS; level++) {
        word_set(ctx, list, next_at(list->head, level), 0);
        list->fingers[level] = list->head;
    }
    return 0;
}

/* The last node before the key on every level in use. Returns the node behind it, 0 at the end. */
static uint64_t search(struct dm_ctx *ctx, const struct hs_list *list, uint64_t key, uint64_t path[HS_LEVELS],
                       uint64_t *steps) {
    uint64_t at = list->head, next = 0;
    for (unsigned level = list->top; level-- > 0;) {
        uint64_t looked_at = next; /* the node that ended the level above: its key is known to be too high */
        while ((next = word_get(ctx, list, next_at(at, level))) && next != looked_at) {
            ++*steps;
            if (word_get(ctx, list, next + NODE_KEY) >= key) {
                break;
            }
            at = next;
        }
        path[level] = at;
    }
    return next;
}

static bool has_key(struct dm_ctx *ctx, const struct hs_list *list, uint64_t node, uint64_t key) {
    return node && word_get(ctx, list, node + NODE_KEY) == key;
}

uint64_t hs_list_find(struct dm_ctx *ctx, const struct hs_list *list, uint64_t key, uint64_t *steps) {
    uint64_t path[HS_LEVELS];
    uint64_t node = search(ctx, list, key, path, steps);
    return has_key(ctx, list, node, key) ? word_get(ctx, list, node + NODE_ITEM) : 0;
}

static uint64_t node_new(struct dm_ctx *ctx, struct hs_list *list, uint64_t key, uint64_t item, unsigned *height) {
    unsigned levels = 1;
    while (levels < HS_LEVELS && dm_prng_below(dm_random(ctx), BRANCH) == 0) {
        levels++;
    }
    uint64_t node = list->freed[levels - 1];
    if (node) {
        list->freed[levels - 1] = word_get(ctx, list, node);
    } else {
        node = list->arena;
        list->arena += node_bytes(levels);
    }
    word_set(ctx, list, node + NODE_KEY, key);
    word_set(ctx, list, node + NODE_ITEM, item);
    word_set(ctx, list, node + NODE_HEIGHT, levels);
    *height = levels;
    list->count++;
    return node;
}

static void link_behind(struct dm_ctx *ctx, struct hs_list *list, uint64_t node, unsigned height,
                        const uint64_t path[HS_LEVELS]) {
    for (unsigned level = 0; level < height; level++) {
        uint64_t before = level < list->top ? path[level] : list->head;
        word_set(ctx, list, next_at(node, level), word_get(ctx, list, next_at(before, level)));
        word_set(ctx, list, next_at(before, level), node);
    }
    list->top = height > list->top ? height : list->top;
}

static void unlink_node(struct dm_ctx *ctx, struct hs_list *list, uint64_t node, const uint64_t path[HS_LEVELS]) {
    unsigned height = (unsigned)word_get(ctx, list, node + NODE_HEIGHT);
    for (unsigned level = 0; level < height && level < list->top; level++) {
        word_set(ctx, list, next_at(path[level], level), word_get(ctx, list, next_at(node, level)));
    }
    word_set(ctx, list, node, list->freed[height - 1]);
    list->freed[height - 1] = node;
    list->count--;
}

void hs_list_set(struct dm_ctx *ctx, struct hs_list *list, uint64_t key, uint64_t item, uint64_t *steps) {
    uint64_t path[HS_LEVELS];
    uint64_t node = search(ctx, list, key, path, steps);
    bool is_there = has_key(ctx, list, node, key);
    if (is_there && item) {
        word_set(ctx, list, node + NODE_ITEM, item);
    } else if (is_there) {
        unlink_node(ctx, list, node, path);
    } else if (item) {
        unsigned height;
        uint64_t made = node_new(ctx, list, key, item, &height);
        link_behind(ctx, list, made, height, path);
    }
}

void hs_list_append(struct dm_ctx *ctx, struct hs_list *list, uint64_t key, uint64_t item) {
    unsigned height;
    uint64_t node = node_new(ctx, list, key, item, &height);
    link_behind(ctx, list, node, height, list->fingers);
    for (unsigned level = 0; level < height; level++) {
        list->fingers[level] = node;
    }
}

uint32_t hs_list_copy(struct dm_ctx *ctx, const struct hs_list *list, uint64_t first, struct hs_pair *pairs,
                      uint32_t capacity, uint64_t *steps) {
    uint64_t path[HS_LEVELS];
    uint64_t node = search(ctx, list, first, path, steps);
    uint32_t count = 0;
    while (node && count < capacity) {
        ++*steps;
        pairs[count++] = (struct hs_pair){word_get(ctx, list, node + NODE_KEY), word_get(ctx, list, node + NODE_ITEM)};
        node = word_get(ctx, list, next_at(node, 0));
    }
    return count;
}
