/* SPDX-License-Identifier: Apache-2.0
 *
 * verify: tree_walk.c walks the levels; here is what a leaf must be: entries not half-written, keys within the fences
 * and distinct, words that name blocks of their keys.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "indexes/shared/btree.h"
#include "indexes/shared/report.h"

struct audit {
    struct ix_btree_cn *cn;
    uint64_t entries; /* that the leaves can hold */
    uint16_t *order;
    struct ix_indirect *indirect; /* NULL: values are inline */
};

/* The word names a block of its key. */
static int block_check(struct ix_walk *walk, dm_addr addr, unsigned at) {
    struct audit *audit = walk->owner;
    const struct ix_leaf_layout *layout = &audit->cn->leaf;
    uint64_t key = ix_leaf_key(layout, walk->image, at);
    uint64_t word = ix_indirect_word(audit->indirect, ix_leaf_value(layout, walk->image, at));
    int rc = ix_indirect_check(audit->indirect, key, word);
    DM_TRY(rc);
    if (rc == IX_INDIRECT_REUSED) {
        ix_report_problem(walk->report, "leaf %016" PRIx64 ": the block of key %" PRIu64 " is another's", addr.bits,
                          key);
    }
    return 0;
}

static int leaf_check(struct ix_walk *walk, dm_addr addr, const char *wire) {
    struct audit *audit = walk->owner;
    const struct ix_leaf_layout *layout = &audit->cn->leaf;
    const struct ix_node_head *head = ix_node_head_in(walk->image);
    walk->report->leaves++;
    audit->entries += layout->cap;
    for (unsigned i = 0; layout->versions && i < layout->cap; i++) {
        if (!ix_lines_object_consistent(wire, ix_leaf_offset(layout, i), layout->entry_bytes, IX_VERSIONS_LINES)) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": entry %u is half-written", addr.bits, i);
        }
    }
    if (audit->cn->config.unfinished && audit->cn->config.unfinished(layout, wire) > 0 &&
        !ix_walk_is_interrupted(walk)) {
        ix_report_problem(walk->report, "leaf %016" PRIx64 ": an entry is claimed by a write that has ended",
                          addr.bits);
    }
    unsigned count = ix_leaf_sort(layout, walk->image, 0, audit->order);
    walk->report->keys += count;
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = ix_leaf_key(layout, walk->image, audit->order[i]);
        uint64_t before = i > 0 ? ix_leaf_key(layout, walk->image, audit->order[i - 1]) : 0;
        if (key < head->low || key >= head->high) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": key %" PRIu64 " is outside the fences", addr.bits,
                              key);
        }
        if (i > 0 && key == before) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": key %" PRIu64 " is there twice", addr.bits, key);
        }
        if (i > 0 && key < before) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": key %" PRIu64 " is out of order", addr.bits, key);
        }
        DM_TRY(block_check(walk, addr, audit->order[i]));
    }
    return 0;
}

int ix_btree_verify(struct ix_btree_cn *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct audit audit = {.cn = cn, .order = calloc(cn->leaf.cap, sizeof(*audit.order))};
    struct ix_walk walk = {.cn = &cn->tree, .ctx = ctx, .report = report, .owner = &audit, .leaf = leaf_check};
    struct ix_indirect_config values = {.values = (enum ix_values)cn->config.values,
                                        .value_bytes = cn->shape->value_bytes,
                                        .padding = ix_key_padding(cn->shape)};
    int rc = ix_walk_open(&walk);
    rc = rc < 0 ? rc : ix_indirect_open(ctx, &values, &audit.indirect);
    rc = audit.order ? rc : DM_ERR_NO_MEMORY;
    rc = rc < 0 ? rc : ix_walk_levels(&walk, 0);
    report->leaf_fill = audit.entries > 0 ? (double)report->keys / (double)audit.entries : 0;
    ix_walk_close(&walk);
    ix_indirect_close(audit.indirect);
    free(audit.order);
    return rc < 0 ? dm_fail(err, rc, "walking the tree: %s", dm_code_text(rc)) : 0;
}
