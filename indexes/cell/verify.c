/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-check of every memory node's tree, level by level from the root down: each node agrees with its check, covers
 * what its left neighbour does not, and has sorted keys within its fences; the nodes of a level are those that the
 * level above names, except as many as could not be linked for lack of memory; a block has the value of its key.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "client.h"
#include "common/array.h"
#include "indexes/shared/report.h"

struct child {
    uint64_t low;
    uint32_t ref;
};

struct children {
    struct child *items;
    uint64_t count, capacity;
};

struct audit {
    const struct cell_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    unsigned node;
    uint64_t *words, *block;      /* device memory */
    struct children named, below; /* the nodes of this level by their parents; those of the next level */
    uint64_t unlinked;
};

static int child_add(struct children *children, uint64_t low, uint32_t ref) {
    struct child *grown = dm_array_grow(children->items, children->count, &children->capacity, sizeof(*grown));
    if (!grown) {
        return DM_ERR_NO_MEMORY;
    }
    children->items = grown;
    grown[children->count++] = (struct child){low, ref};
    return 0;
}

static int block_check(struct audit *audit, uint64_t key, uint64_t ref) {
    const struct cell_layout *layout = &audit->cn->layout;
    dm_addr addr = cell_addr(audit->node, (uint32_t)ref);
    bool is_right = ref != 0 && ref <= UINT32_MAX && dm_addr_valid(audit->ctx, addr, layout->block_bytes);
    if (is_right) {
        DM_TRY(dm_read(audit->ctx, addr, audit->block, layout->block_bytes));
        is_right = audit->block[0] == cell_block_check(key, audit->block + 1, layout->stored_words);
    }
    if (!is_right) {
        ix_report_problem(audit->report, "node %u: the block of key %" PRIu64 " does not hold its value", audit->node,
                          key);
    }
    return 0;
}

/* The keys and entries of the node in audit->words. */
static int entries_check(struct audit *audit, uint32_t ref, unsigned level) {
    const struct cell_form *form = cell_form_of(&audit->cn->layout, level);
    const uint64_t *words = audit->words, *keys = words + CELL_KEYS;
    unsigned count = cell_count(words);
    for (unsigned i = 0; i < count; i++) {
        bool is_last = words[CELL_HIGH] == UINT64_MAX;
        if (keys[i] < words[CELL_LOW] || (!is_last && keys[i] >= words[CELL_HIGH]) ||
            (i > 0 && keys[i] <= keys[i - 1])) {
            ix_report_problem(audit->report, "node %u: key %" PRIu64 " is out of order in tree node %" PRIu32,
                              audit->node, keys[i], ref);
        }
        if (level > 0) {
            DM_TRY(child_add(&audit->below, keys[i], cell_child(form, words, i)));
        } else if (audit->cn->layout.block_bytes > 0) {
            DM_TRY(block_check(audit, keys[i], *cell_entry(form, words, i)));
        }
    }
    if (level > 0) {
        audit->report->inner_nodes++;
        return 0;
    }
    audit->report->leaves++;
    audit->report->keys += count;
    audit->report->leaf_fill += count;
    return 0;
}

/* Walks the nodes of a level by their links. DM_NOT_FOUND: a problem that ends the walk of this memory node. */
static int level_walk(struct audit *audit, uint32_t ref, unsigned level) {
    const struct cell_form *form = cell_form_of(&audit->cn->layout, level);
    uint64_t low = 0, named = 0;
    audit->below.count = 0;
    while (ref != 0) {
        dm_addr addr = cell_addr(audit->node, ref);
        const uint64_t *words = audit->words;
        if (!dm_addr_valid(audit->ctx, addr, form->words * 8)) {
            ix_report_problem(audit->report, "node %u: invalid link %" PRIu32, audit->node, ref);
            return DM_NOT_FOUND;
        }
        DM_TRY(dm_read(audit->ctx, addr, audit->words, form->words * 8));
        if (!cell_node_consistent(form, ref, words) || cell_level(words) != level) {
            ix_report_problem(audit->report, "node %u: tree node %" PRIu32 " of level %u does not agree with its check",
                              audit->node, ref, level);
            return DM_NOT_FOUND;
        }
        if (words[CELL_LOW] != low || words[CELL_HIGH] <= low ||
            (cell_right(words) == 0) != (words[CELL_HIGH] == UINT64_MAX) ||
            (level > 0 && (cell_count(words) == 0 || words[CELL_KEYS] != low))) {
            ix_report_problem(audit->report,
                              "node %u: tree node %" PRIu32 " of level %u has wrong fences from %" PRIu64, audit->node,
                              ref, level, low);
            return DM_NOT_FOUND;
        }
        bool is_named =
            named < audit->named.count && audit->named.items[named].ref == ref && audit->named.items[named].low == low;
        named += is_named;
        audit->unlinked += !is_named;
        DM_TRY(entries_check(audit, ref, level));
        low = words[CELL_HIGH];
        ref = cell_right(words);
    }
    if (named < audit->named.count) {
        ix_report_problem(audit->report, "node %u: a parent names tree node %" PRIu32 ", which is not in level %u",
                          audit->node, audit->named.items[named].ref, level);
    }
    return 0;
}

static int tree_walk(struct audit *audit) {
    uint64_t head[2];
    DM_TRY(dm_read(audit->ctx, dm_addr_make(audit->node, DM_DRAM, CELL_ROOT_OFFSET), audit->words, sizeof(head)));
    memcpy(head, audit->words, sizeof(head));
    unsigned level = (unsigned)(head[0] >> 32);
    audit->report->height = level + 1 > audit->report->height ? level + 1 : audit->report->height;
    audit->named.count = 0;
    audit->unlinked = 0;
    int rc = child_add(&audit->named, 0, (uint32_t)head[0]);
    for (unsigned at = level; rc == 0; at--) {
        rc = level_walk(audit, audit->named.items[0].ref, at);
        struct children swap = audit->named;
        audit->named = audit->below;
        audit->below = swap;
        if (at == 0) {
            break;
        }
    }
    if (rc == 0 && audit->unlinked > head[1] && !audit->report->interrupted) {
        ix_report_problem(audit->report, "node %u: %" PRIu64 " tree nodes have no parent, memory ran out for %" PRIu64,
                          audit->node, audit->unlinked, head[1]);
    }
    return rc;
}

int cell_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    const struct cell_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct audit audit = {.cn = cn, .ctx = ctx, .report = report};
    audit.words = dm_local_alloc(ctx, CELL_NODE_WORDS_MAX * 8);
    audit.block = dm_local_alloc(ctx, 8 + CELL_STORED_MAX);
    int rc = audit.words && audit.block ? 0 : DM_ERR_NO_MEMORY;
    for (; rc >= 0 && audit.node < cn->shape->topology->mns; audit.node++) {
        rc = tree_walk(&audit);
    }
    free(audit.named.items);
    free(audit.below.items);
    uint64_t slots = report->leaves * cn->layout.leaf.entries;
    report->leaf_fill = slots > 0 ? report->leaf_fill / (double)slots : 0;
    return rc < 0 ? rc : 0;
}
