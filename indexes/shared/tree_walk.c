/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk that verify makes; see tree.h. Checked of every level: versions, heads, fences without gap or overlap, order
 * of inner keys, every node in its parent, the child beyond an inner node, locks free.
 *
 * A node that its parent does not have, and a held lock, are legal only if an operation was interrupted in the middle:
 * the compute node's part notes its own interruptions, the caller reports others. Then they are not problems.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "indexes/shared/report.h"
#include "indexes/shared/tree.h"

bool ix_walk_is_interrupted(const struct ix_walk *walk) {
    return walk->report->interrupted || atomic_load_explicit(&walk->cn->interrupted, memory_order_relaxed);
}

int ix_walk_open(struct ix_walk *walk) {
    const struct ix_inner_layout *inner = &walk->cn->inner;
    walk->wires = dm_local_alloc(walk->ctx, (IX_WALK_BATCH + 1) * inner->node_bytes);
    walk->words = dm_local_alloc(walk->ctx, (IX_WALK_BATCH + 1) * (uint32_t)sizeof(uint64_t));
    walk->image = calloc(1, (inner->image_bytes + 7) / 8 * 8);
    return walk->wires && walk->words && walk->image ? 0 : DM_ERR_NO_MEMORY;
}

void ix_walk_close(struct ix_walk *walk) {
    free(walk->image);
    free(walk->expected.items);
    free(walk->below.items);
}

static void node_post(struct ix_walk *walk, unsigned slot, dm_addr addr) {
    uint32_t node_bytes = walk->cn->inner.node_bytes;
    dm_post_read(walk->ctx, addr, walk->wires + (size_t)slot * node_bytes, node_bytes);
    dm_post_read(walk->ctx, walk->cn->policy->lock_word(walk->cn, addr), &walk->words[slot], sizeof(uint64_t));
}

/* Reads the node at addr, the `number`th of those expected if it is that one; *slot is where it was read to.
 * DM_NOT_FOUND if there is no such memory. */
static int node_load(struct ix_walk *walk, dm_addr addr, uint64_t number, unsigned *slot) {
    const struct ix_tree_level *expected = &walk->expected;
    uint32_t bytes = walk->cn->alloc_bytes;
    if (!dm_addr_valid(walk->ctx, addr, bytes)) {
        return DM_NOT_FOUND;
    }
    if (number >= expected->count || !dm_addr_equal(expected->items[number].addr, addr)) {
        *slot = IX_WALK_BATCH;
        node_post(walk, IX_WALK_BATCH, addr);
        return dm_commit(walk->ctx);
    }
    if (number < walk->first || number >= walk->first + walk->loaded) {
        walk->first = number;
        walk->loaded = 0;
        while (walk->loaded < IX_WALK_BATCH && number + walk->loaded < expected->count &&
               dm_addr_valid(walk->ctx, expected->items[number + walk->loaded].addr, bytes)) {
            node_post(walk, (unsigned)walk->loaded, expected->items[number + walk->loaded].addr);
            walk->loaded++;
        }
        DM_TRY(dm_commit(walk->ctx));
    }
    *slot = (unsigned)(number - walk->first);
    return 0;
}

/* `*beyond` is this node's first child as its left neighbour has it; then the next one's as this node has it. */
static int inner_check(struct ix_walk *walk, dm_addr addr, dm_addr *beyond) {
    const struct ix_inner_layout *inner = &walk->cn->inner;
    const struct ix_node_head *head = ix_node_head_in(walk->image);
    const uint64_t *keys = ix_inner_keys_in(walk->image);
    const dm_addr *children = ix_inner_children_in(inner, walk->image);
    walk->report->inner_nodes++;
    if (inner->beyond && !dm_addr_is_null(*beyond) && !dm_addr_equal(*beyond, children[0])) {
        ix_report_problem(walk->report,
                          "inner node %016" PRIx64 ", level %u: its left neighbour is wrong about its first child",
                          addr.bits, head->level);
    }
    if (inner->beyond) {
        *beyond = children[head->count];
    }
    for (unsigned i = 0; i < head->count; i++) {
        if (keys[i] < head->low || keys[i] >= head->high || (i > 0 && keys[i] <= keys[i - 1])) {
            ix_report_problem(walk->report,
                              "inner node %016" PRIx64 ", level %u: key %u is out of order or outside the fences",
                              addr.bits, head->level, i);
        }
        DM_TRY(ix_tree_level_add(&walk->below, keys[i], children[i]));
    }
    return 0;
}

/* Compares the node with its parent; returns the number of the next expected child. */
static uint64_t parent_check(struct ix_walk *walk, unsigned level, dm_addr addr, uint64_t low, uint64_t number) {
    const struct ix_tree_level *expected = &walk->expected;
    if (number < expected->count && dm_addr_equal(expected->items[number].addr, addr)) {
        if (expected->items[number].low != low) {
            ix_report_problem(walk->report,
                              "node %016" PRIx64 ", level %u, begins at %" PRIu64 ", its parent says %" PRIu64,
                              addr.bits, level, low, expected->items[number].low);
        }
        return number + 1;
    }
    if (!ix_walk_is_interrupted(walk)) {
        ix_report_problem(walk->report, "node %016" PRIx64 ", level %u, is not known to its parent", addr.bits, level);
    }
    return number;
}

/* Held locks are looked for in the lock words; here the lines must be equal. */
static bool is_consistent(const struct ix_walk *walk, const char *wire, unsigned level) {
    return ix_tree_format_of(walk->cn, level)->check(wire, walk->cn->inner.node_bytes, IX_VERSIONS_LINES) !=
           IX_NODE_TORN;
}

/* Walks one level along its chain. DM_NOT_FOUND: it breaks off (and is reported). */
static int level_walk(struct ix_walk *walk, unsigned level) {
    const struct ix_inner_layout *inner = &walk->cn->inner;
    dm_addr addr = walk->expected.items[0].addr;
    dm_addr beyond = DM_NULL;
    uint64_t low = 0;
    uint64_t number = 0;
    walk->first = walk->loaded = 0;
    while (!dm_addr_is_null(addr)) {
        unsigned slot;
        int rc = node_load(walk, addr, number, &slot);
        DM_TRY(rc);
        const char *wire = rc == 0 ? walk->wires + (size_t)slot * inner->node_bytes : NULL;
        if (!wire || !is_consistent(walk, wire, level)) {
            ix_report_problem(walk->report, "node %016" PRIx64 ", level %u: %s", addr.bits, level,
                              wire ? "torn" : "no such memory");
            return DM_NOT_FOUND;
        }
        ix_tree_format_of(walk->cn, level)->decode(wire, inner->node_bytes, walk->image);
        const struct ix_node_head *head = ix_node_head_in(walk->image);
        if (!ix_node_plausible(inner, walk->image, level) || head->low != low) {
            ix_report_problem(walk->report, "node %016" PRIx64 ", level %u: bad head, or it does not begin at %" PRIu64,
                              addr.bits, level, low);
            return DM_NOT_FOUND;
        }
        number = parent_check(walk, level, addr, low, number);
        if (walk->cn->policy->is_locked(walk->words[slot]) && !ix_walk_is_interrupted(walk)) {
            ix_report_problem(walk->report, "node %016" PRIx64 ", level %u: locked, the word is %016" PRIx64, addr.bits,
                              level, walk->words[slot]);
        }
        if (level == 0) {
            DM_TRY(walk->leaf(walk, addr, wire));
        } else {
            DM_TRY(inner_check(walk, addr, &beyond));
        }
        low = head->high;
        addr = head->sibling;
    }
    if (number != walk->expected.count) {
        ix_report_problem(walk->report, "level %u: a child is known to the parents but not in the chain", level);
    }
    return 0;
}

int ix_walk_levels(struct ix_walk *walk, unsigned lowest) {
    uint64_t *word = walk->words;
    DM_TRY(dm_read(walk->ctx, ix_tree_root_word_addr(), word, sizeof(*word)));
    unsigned level = ix_tree_root_level(*word);
    walk->report->height = level + 1;
    DM_TRY(ix_tree_level_add(&walk->expected, 0, ix_tree_root_addr(*word)));
    while (level >= lowest) {
        int rc = level_walk(walk, level);
        if (rc != 0 || level == 0) {
            return rc;
        }
        struct ix_tree_level done = walk->expected;
        walk->expected = walk->below;
        walk->below = done;
        walk->below.count = 0;
        level--;
    }
    return 0;
}
