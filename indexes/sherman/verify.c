/* SPDX-License-Identifier: Apache-2.0
 *
 * verify: walks every level along its chain of siblings, from the root's down to the leaves, and compares the chain
 * with what the level above says. Checked: versions, heads, fences without gap or overlap, order of inner keys, every
 * node known to its parent, keys within fences and distinct, locks free.
 *
 * A node that its parent does not know, and a lock that is held, are legal only if an operation of this compute node
 * was interrupted in the middle; then they are not counted as broken.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sherman.h"

enum { WALK_BATCH = 16 };

/* A child as its parent has it. */
struct child {
    uint64_t low;
    dm_addr addr;
};

struct children {
    struct child *items;
    uint64_t count, room;
};

struct walk {
    struct sherman_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    uint64_t entries; /* that leaves have room for */
    char *wires;      /* WALK_BATCH nodes, and one more for nodes that no parent knows */
    uint64_t *words;  /* their lock words */
    uint64_t first, loaded;
    char *image;
    uint16_t *order;
    struct children expected, below;
};

static void problem(struct walk *walk, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void problem(struct walk *walk, const char *format, ...) {
    if (walk->report->broken++ == 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(walk->report->first_problem, sizeof(walk->report->first_problem), format, args);
        va_end(args);
    }
}

static int children_add(struct children *children, uint64_t low, dm_addr addr) {
    if (children->count == children->room) {
        uint64_t room = children->room == 0 ? 1024 : 2 * children->room;
        struct child *items = realloc(children->items, room * sizeof(*items));
        if (!items) {
            return DM_ERR_NO_MEMORY;
        }
        children->items = items;
        children->room = room;
    }
    children->items[children->count++] = (struct child){low, addr};
    return 0;
}

static void node_post(struct walk *walk, unsigned slot, dm_addr addr) {
    uint32_t node_bytes = walk->cn->layout.node_bytes;
    dm_post_read(walk->ctx, addr, walk->wires + (size_t)slot * node_bytes, node_bytes);
    dm_post_read(walk->ctx, ix_locks_word(walk->cn->locks, addr), &walk->words[slot], sizeof(uint64_t));
}

/* Reads the node at addr, the `number`th of those expected if it is that one; *slot says where it lies. DM_NOT_FOUND if
 * there is no such memory. */
static int node_load(struct walk *walk, dm_addr addr, uint64_t number, unsigned *slot) {
    const struct children *expected = &walk->expected;
    if (!dm_addr_valid(walk->ctx, addr, walk->cn->layout.node_bytes)) {
        return DM_NOT_FOUND;
    }
    if (number >= expected->count || !dm_addr_equal(expected->items[number].addr, addr)) {
        *slot = WALK_BATCH;
        node_post(walk, WALK_BATCH, addr);
        return dm_commit(walk->ctx);
    }
    if (number < walk->first || number >= walk->first + walk->loaded) {
        walk->first = number;
        walk->loaded = 0;
        while (walk->loaded < WALK_BATCH && number + walk->loaded < expected->count &&
               dm_addr_valid(walk->ctx, expected->items[number + walk->loaded].addr, walk->cn->layout.node_bytes)) {
            node_post(walk, (unsigned)walk->loaded, expected->items[number + walk->loaded].addr);
            walk->loaded++;
        }
        DM_TRY(dm_commit(walk->ctx));
    }
    *slot = (unsigned)(number - walk->first);
    return 0;
}

static int inner_check(struct walk *walk, dm_addr addr) {
    const struct node_head *head = node_head_in(walk->image);
    const uint64_t *keys = inner_keys_in(walk->image);
    const dm_addr *children = inner_children_in(&walk->cn->layout, walk->image);
    walk->report->inner_nodes++;
    for (unsigned i = 0; i < head->count; i++) {
        if (keys[i] < head->low || keys[i] >= head->high || (i > 0 && keys[i] <= keys[i - 1])) {
            problem(walk, "inner node %016" PRIx64 ", level %u: key %u is out of order or outside the fences",
                    addr.bits, head->level, i);
        }
        DM_TRY(children_add(&walk->below, keys[i], children[i]));
    }
    return 0;
}

static void leaf_check(struct walk *walk, dm_addr addr, const char *wire) {
    const struct node_layout *layout = &walk->cn->layout;
    const struct node_head *head = node_head_in(walk->image);
    walk->report->leaves++;
    walk->entries += layout->leaf_cap;
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        if (!ix_lines_object_whole(wire, leaf_entry_offset(layout, i), layout->entry_bytes, IX_VERSIONS_LINES)) {
            problem(walk, "leaf %016" PRIx64 ": entry %u is half-written", addr.bits, i);
        }
    }
    unsigned count = leaf_sort(layout, walk->image, 0, walk->order);
    walk->report->keys += count;
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = leaf_key(layout, walk->image, walk->order[i]);
        if (key < head->low || key >= head->high) {
            problem(walk, "leaf %016" PRIx64 ": key %" PRIu64 " is outside the fences", addr.bits, key);
        }
        if (i > 0 && key == leaf_key(layout, walk->image, walk->order[i - 1])) {
            problem(walk, "leaf %016" PRIx64 ": key %" PRIu64 " is there twice", addr.bits, key);
        }
    }
}

/* Compares the node with what its parent says; returns the number of the next expected child. */
static uint64_t parent_check(struct walk *walk, unsigned level, dm_addr addr, uint64_t low, uint64_t number) {
    const struct children *expected = &walk->expected;
    if (number < expected->count && dm_addr_equal(expected->items[number].addr, addr)) {
        if (expected->items[number].low != low) {
            problem(walk, "node %016" PRIx64 ", level %u, begins at %" PRIu64 ", its parent says %" PRIu64, addr.bits,
                    level, low, expected->items[number].low);
        }
        return number + 1;
    }
    if (!atomic_load_explicit(&walk->cn->interrupted, memory_order_relaxed)) {
        problem(walk, "node %016" PRIx64 ", level %u, is not known to its parent", addr.bits, level);
    }
    return number;
}

/* Walks one level along its chain. DM_NOT_FOUND: it breaks off (and is reported). */
static int level_walk(struct walk *walk, unsigned level) {
    const struct node_layout *layout = &walk->cn->layout;
    if (walk->expected.count == 0) {
        return DM_NOT_FOUND; /* the level above named no node at all, which has been reported */
    }
    dm_addr addr = walk->expected.items[0].addr;
    uint64_t low = 0;
    uint64_t number = 0;
    walk->first = walk->loaded = 0;
    while (!dm_addr_is_null(addr)) {
        unsigned slot;
        int rc = node_load(walk, addr, number, &slot);
        DM_TRY(rc);
        const char *wire = rc == 0 ? walk->wires + (size_t)slot * layout->node_bytes : NULL;
        if (!wire || !ix_lines_whole(wire, layout->node_bytes, IX_VERSIONS_LINES)) {
            problem(walk, "node %016" PRIx64 ", level %u: %s", addr.bits, level, wire ? "torn" : "no such memory");
            return DM_NOT_FOUND;
        }
        ix_lines_decode(wire, layout->node_bytes, walk->image);
        const struct node_head *head = node_head_in(walk->image);
        if (!node_plausible(layout, walk->image, level) || head->low != low) {
            problem(walk, "node %016" PRIx64 ", level %u: bad head, or it does not begin at %" PRIu64, addr.bits, level,
                    low);
            return DM_NOT_FOUND;
        }
        number = parent_check(walk, level, addr, low, number);
        if (walk->words[slot] != 0 && !atomic_load_explicit(&walk->cn->interrupted, memory_order_relaxed)) {
            problem(walk, "node %016" PRIx64 ", level %u: locked by node %u, context %u", addr.bits, level,
                    (unsigned)(walk->words[slot] >> 32), (unsigned)walk->words[slot]);
        }
        if (level == 0) {
            leaf_check(walk, addr, wire);
        } else {
            DM_TRY(inner_check(walk, addr));
        }
        low = head->high;
        addr = head->sibling;
    }
    if (number != walk->expected.count) {
        problem(walk, "level %u: a child is known to the parents but not in the chain", level);
    }
    return 0;
}

static int tree_walk(struct walk *walk) {
    uint64_t *word = walk->words;
    DM_TRY(dm_read(walk->ctx, sherman_root_place(), word, sizeof(*word)));
    unsigned level = sherman_root_level(*word);
    walk->report->height = level + 1;
    DM_TRY(children_add(&walk->expected, 0, sherman_root_addr(*word)));
    for (;; level--) {
        int rc = level_walk(walk, level);
        if (rc != 0 || level == 0) {
            return rc < 0 ? rc : 0;
        }
        struct children done = walk->expected;
        walk->expected = walk->below;
        walk->below = done;
        walk->below.count = 0;
    }
}

int sherman_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct sherman_cn *cn = handle;
    const struct node_layout *layout = &cn->layout;
    *report = (struct ix_report){0};
    struct walk walk = {.cn = cn, .ctx = ctx, .report = report};
    walk.wires = dm_local_alloc(ctx, (WALK_BATCH + 1) * layout->node_bytes);
    walk.words = dm_local_alloc(ctx, (WALK_BATCH + 1) * (uint32_t)sizeof(uint64_t));
    walk.image = calloc(1, (layout->image_bytes + 7) / 8 * 8);
    walk.order = calloc(layout->leaf_cap, sizeof(*walk.order));
    int rc = DM_ERR_NO_MEMORY;
    if (walk.wires && walk.words && walk.image && walk.order) {
        rc = tree_walk(&walk);
    }
    report->leaf_fill = walk.entries > 0 ? (double)report->keys / (double)walk.entries : 0;
    free(walk.image);
    free(walk.order);
    free(walk.expected.items);
    free(walk.below.items);
    return rc < 0 ? dm_fail(err, rc, "sherman: walking the tree: %s", dm_code_text(rc)) : 0;
}
