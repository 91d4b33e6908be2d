/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-check of every memory node: the levels of the tree from the root down; the chain of leaves with their fences,
 * keys and values; every sub-model and every entry of its table. If the incarnation of an entry agrees with its leaf,
 * the model must predict both ends of the leaf's range. Entries of leaves that were split are legal: they wait for
 * training, which may run during the check.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "client.h"
#include "common/array.h"
#include "indexes/shared/report.h"

/* A leaf, or a child of an inner node. Sorted by ref to be looked up. */
struct seen {
    uint32_t ref, incarnation;
    uint64_t low, high;
};

struct audit {
    struct xstore_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    unsigned node;
    char *wire;              /* device memory: a leaf, or an inner node */
    uint64_t *words, *block; /* block: device memory */
    struct seen *seen;
    uint64_t count, capacity;
    uint64_t unlinked; /* nodes without an entry in a parent */
};

static int read_at(struct audit *audit, uint32_t ref, uint32_t bytes) {
    dm_addr addr = xstore_addr(audit->node, ref);
    if (ref == 0 || !dm_addr_valid(audit->ctx, addr, bytes)) {
        ix_report_problem(audit->report, "node %u: invalid link %" PRIu32, audit->node, ref);
        return DM_NOT_FOUND;
    }
    return dm_read(audit->ctx, addr, audit->wire, bytes);
}

/* ---- blocks of indirect values ----------------------------------------------------------------------------------- */

static int block_check(struct audit *audit, uint64_t key, uint64_t ref) {
    const struct xstore_layout *layout = &audit->cn->layout;
    dm_addr addr = xstore_addr(audit->node, ref);
    bool is_valid = ref != 0 && ref <= UINT32_MAX && dm_addr_valid(audit->ctx, addr, layout->block_bytes);
    if (is_valid) {
        DM_TRY(dm_read(audit->ctx, addr, audit->block, layout->block_bytes));
    }
    if (!is_valid || !xstore_block_consistent(layout, key, audit->block)) {
        ix_report_problem(audit->report, "node %u: the block of key %" PRIu64 " does not hold its value", audit->node,
                          key);
    }
    return 0;
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

static int leaf_check(struct audit *audit, const struct seen *leaf, const uint64_t *words) {
    const struct xstore_layout *layout = &audit->cn->layout;
    const uint64_t *keys = words + XSTORE_HEAD_WORDS;
    unsigned count = xstore_head_of(words[1]).count;
    for (unsigned i = 0; i < count; i++) {
        if (keys[i] < leaf->low || keys[i] >= leaf->high) {
            ix_report_problem(audit->report, "node %u: leaf %" PRIu32 " has key %" PRIu64 " outside of its fences",
                              audit->node, leaf->ref, keys[i]);
        }
        for (unsigned k = 0; k < i; k++) {
            if (keys[k] == keys[i]) {
                ix_report_problem(audit->report, "node %u: leaf %" PRIu32 " has key %" PRIu64 " twice", audit->node,
                                  leaf->ref, keys[i]);
            }
        }
        const uint64_t *value = words + xstore_slot_offset(layout, i) / 8;
        if (value[0] != xstore_value_check(keys[i], value + 1, layout->value_words)) {
            ix_report_problem(audit->report, "node %u: the value of key %" PRIu64 " is not the value of this key",
                              audit->node, keys[i]);
        } else if (layout->block_bytes > 0) {
            DM_TRY(block_check(audit, keys[i], value[1]));
        }
    }
    for (unsigned i = count; i < layout->slots; i++) {
        if (words[xstore_slot_offset(layout, i) / 8] != 0) {
            ix_report_problem(audit->report, "node %u: leaf %" PRIu32 ", slot %u is empty but has a value", audit->node,
                              leaf->ref, i);
        }
    }
    audit->report->keys += count;
    audit->report->leaf_fill += count;
    return 0;
}

static int seen_add(struct audit *audit, const struct seen *leaf) {
    struct seen *grown = dm_array_grow(audit->seen, audit->count, &audit->capacity, sizeof(*grown));
    if (!grown) {
        return DM_ERR_NO_MEMORY;
    }
    audit->seen = grown;
    grown[audit->count++] = *leaf;
    return 0;
}

static int leaves_walk(struct audit *audit, uint32_t ref) {
    const struct xstore_layout *layout = &audit->cn->layout;
    uint64_t low = 0;
    while (ref != 0) {
        int rc = read_at(audit, ref, layout->leaf_bytes);
        if (rc != 0) {
            return rc;
        }
        const uint64_t *words = (const uint64_t *)(const void *)audit->wire, *fences = words + layout->fence_offset / 8;
        struct xstore_head head = xstore_head_of(words[1]);
        struct seen leaf = {ref, head.incarnation, fences[0], fences[1]};
        if (!xstore_leaf_consistent(layout, ref, words)) {
            ix_report_problem(audit->report, "node %u: leaf %" PRIu32 " does not agree with its check", audit->node,
                              ref);
            return DM_NOT_FOUND;
        }
        if (leaf.low != low || leaf.high <= leaf.low || (head.next == 0) != (leaf.high == UINT64_MAX)) {
            ix_report_problem(audit->report,
                              "node %u: leaf %" PRIu32 " covers %" PRIu64 " to %" PRIu64 ", expected from %" PRIu64,
                              audit->node, ref, leaf.low, leaf.high, low);
        }
        DM_TRY(leaf_check(audit, &leaf, words));
        DM_TRY(seen_add(audit, &leaf));
        low = leaf.high;
        ref = head.next;
    }
    return 0;
}

/* ---- the levels above -------------------------------------------------------------------------------------------- */

static int by_ref(const void *a, const void *b) {
    const struct seen *left = a, *right = b;
    return (left->ref > right->ref) - (left->ref < right->ref);
}

/* The node with this ref, of an array sorted by ref; NULL if there is none. */
static const struct seen *seen_find(const struct seen *seen, uint64_t count, uint32_t ref) {
    struct seen wanted = {.ref = ref};
    return count > 0 ? bsearch(&wanted, seen, count, sizeof(*seen), by_ref) : NULL;
}

/* Walks the chain of an inner level and lists the children of its nodes. *first becomes the first child. */
static int inner_level_walk(struct audit *audit, uint32_t *first, unsigned level, struct seen **children,
                            uint64_t *child_count) {
    uint64_t capacity = 0, low = 0;
    uint32_t ref = *first, lowest = 0;
    *child_count = 0;
    while (ref != 0) {
        int rc = read_at(audit, ref, XSTORE_INNER_BYTES);
        if (rc != 0) {
            return rc;
        }
        const uint64_t *words = (const uint64_t *)(const void *)audit->wire, *keys = words + 3;
        unsigned count = (unsigned)(words[1] >> 48), its_level = (unsigned)(words[1] >> 32 & 0xffff);
        if (words[0] != ix_check_word(~dm_mix64(ref), words + 1, XSTORE_INNER_WORDS - 1) || count == 0 ||
            count > XSTORE_FANOUT || its_level != level || words[2] <= low) {
            ix_report_problem(audit->report, "node %u: inner node %" PRIu32 " of level %u is not consistent",
                              audit->node, ref, level);
            return DM_NOT_FOUND;
        }
        for (unsigned i = 0; i < count; i++, (*child_count)++) {
            struct seen *grown = dm_array_grow(*children, *child_count, &capacity, sizeof(*grown));
            if (!grown) {
                return DM_ERR_NO_MEMORY;
            }
            *children = grown;
            grown[*child_count] = (struct seen){.ref = (uint32_t)words[3 + XSTORE_FANOUT + i], .low = keys[i]};
        }
        lowest = lowest ? lowest : (uint32_t)words[3 + XSTORE_FANOUT];
        audit->report->inner_nodes++;
        low = words[2];
        ref = (uint32_t)words[1];
    }
    *first = lowest;
    return 0;
}

/* Every child of the lowest inner level must be a leaf that begins at the key in its parent. */
static void children_compare(struct audit *audit, const struct seen *children, uint64_t child_count) {
    for (uint64_t i = 0; i < child_count; i++) {
        const struct seen *leaf = seen_find(audit->seen, audit->count, children[i].ref);
        if (!leaf || leaf->low != children[i].low) {
            ix_report_problem(audit->report,
                              "node %u: a parent names %" PRIu32 " from key %" PRIu64
                              " on, which is not a leaf from there",
                              audit->node, children[i].ref, children[i].low);
        }
    }
    audit->unlinked += audit->count > child_count ? audit->count - child_count : 0;
}

static int tree_walk(struct audit *audit) {
    uint64_t head[2];
    DM_TRY(dm_read(audit->ctx, dm_addr_make(audit->node, DM_DRAM, XSTORE_ROOT_OFFSET), audit->words, sizeof(head)));
    memcpy(head, audit->words, sizeof(head));
    unsigned level = (unsigned)(head[0] >> 32);
    uint32_t ref = (uint32_t)head[0];
    struct seen *children = NULL;
    uint64_t child_count = 0, inner_unlinked = 0;
    int rc = 0;
    audit->report->height = level + 1 > audit->report->height ? level + 1 : audit->report->height;
    unsigned at = level;
    for (; at > 0 && rc == 0; at--) {
        uint64_t above = child_count, nodes = audit->report->inner_nodes;
        rc = inner_level_walk(audit, &ref, at, &children, &child_count);
        nodes = audit->report->inner_nodes - nodes;
        inner_unlinked += at < level && nodes > above ? nodes - above : 0;
    }
    audit->count = 0;
    audit->unlinked = inner_unlinked;
    rc = rc == 0 ? leaves_walk(audit, ref) : rc;
    audit->report->leaves += audit->count;
    if (audit->seen) {
        qsort(audit->seen, audit->count, sizeof(*audit->seen), by_ref);
    }
    if (rc == 0 && level > 0) {
        children_compare(audit, children, child_count);
    }
    if (rc == 0 && level > 0 && audit->unlinked > head[1]) {
        ix_report_problem(audit->report, "node %u: %" PRIu64 " nodes have no parent, memory ran out for %" PRIu64,
                          audit->node, audit->unlinked, head[1]);
    }
    free(children);
    return rc;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

struct model_audit {
    struct audit *audit;
    struct xstore_set set;
    uint32_t number;
    struct xstore_record record;
    uint64_t low, high; /* the sub-model's keys */
};

static bool predicts(const struct model_audit *model, uint64_t key, uint32_t leaf) {
    uint32_t first, last;
    double coord = ix_rmi_coord(&model->set.top, key);
    uint32_t slots = model->audit->cn->layout.slots;
    bool is_bounded = xstore_record_range(&model->record, slots, model->number, coord, &first, &last);
    return !is_bounded || (first <= leaf && leaf <= last);
}

static void entry_check(const struct model_audit *model, uint32_t number, struct xstore_entry entry) {
    struct audit *audit = model->audit;
    const struct seen *leaf = seen_find(audit->seen, audit->count, entry.leaf);
    if (!leaf || !entry.valid) {
        ix_report_problem(audit->report, "node %u: sub-model %" PRIu32 " names leaf %" PRIu32 ", which does not exist",
                          audit->node, model->number, entry.leaf);
        return;
    }
    uint64_t low = leaf->low > model->low ? leaf->low : model->low;
    uint64_t high = leaf->high < model->high ? leaf->high : model->high;
    if (leaf->incarnation == entry.incarnation && low < high && audit->cn->params->augment &&
        (!predicts(model, low, number) || !predicts(model, high - 1, number))) {
        ix_report_problem(audit->report,
                          "node %u: sub-model %" PRIu32 " does not predict leaf %" PRIu32 " for its keys", audit->node,
                          model->number, number);
    }
}

/* 0, or XSTORE_STALE: the sub-model was trained again since its record was read. */
static int table_check(const struct model_audit *model, uint64_t seed) {
    struct audit *audit = model->audit;
    for (uint32_t line = 0; line < xstore_lines_for(model->record.leaves); line++) {
        dm_addr addr = dm_addr_add(xstore_addr(audit->node, model->record.table), (uint64_t)line * DM_LINE);
        if (!dm_addr_valid(audit->ctx, addr, DM_LINE)) {
            return XSTORE_STALE;
        }
        DM_TRY(dm_read(audit->ctx, addr, audit->words, DM_LINE));
        if (!xstore_line_consistent(audit->words, xstore_line_seed(seed, model->record.version, line))) {
            return XSTORE_STALE;
        }
        for (uint32_t k = 0; k < XSTORE_LINE_ENTRIES; k++) {
            uint32_t leaf = line * XSTORE_LINE_ENTRIES + k;
            if (leaf < model->record.leaves) {
                entry_check(model, leaf, xstore_entry_of(audit->words[k]));
            }
        }
    }
    return 0;
}

static int model_check(struct model_audit *model) {
    struct audit *audit = model->audit;
    uint64_t seed = xstore_record_seed(audit->node, model->set.generation, model->number);
    dm_addr addr =
        dm_addr_add(xstore_addr(audit->node, model->set.records), (uint64_t)model->number * XSTORE_MODEL_BYTES);
    const struct ix_rmi_top *top = &model->set.top;
    model->low = model->number > 0 ? ix_rmi_first_key(top, model->number) : 0;
    model->high = model->number + 1 < top->models ? ix_rmi_first_key(top, model->number + 1) : UINT64_MAX;
    for (uint32_t attempts = 0;;) {
        DM_TRY(dm_read(audit->ctx, addr, audit->words, XSTORE_MODEL_BYTES));
        bool is_consistent = xstore_record_decode(audit->words, seed, &model->record);
        int rc = is_consistent ? table_check(model, seed) : XSTORE_STALE;
        if (rc != XSTORE_STALE) {
            return rc;
        }
        rc = dm_retry(audit->ctx, DM_RETRY_STALE, &attempts);
        if (rc == DM_ERR_RETRY_LIMIT || attempts > 100) {
            ix_report_problem(audit->report, "node %u: sub-model %" PRIu32 " or its table is not consistent",
                              audit->node, model->number);
            return 0;
        }
        DM_TRY(rc);
    }
}

static int models_walk(struct audit *audit) {
    struct model_audit model = {.audit = audit};
    dm_addr addr = dm_addr_make(audit->node, DM_DRAM, XSTORE_SET_OFFSET);
    DM_TRY(dm_read(audit->ctx, addr, audit->words, XSTORE_SET_WORDS * 8));
    if (!xstore_set_decode(audit->words, audit->node, &model.set)) {
        ix_report_problem(audit->report, "node %u: no set of models", audit->node);
        return 0;
    }
    for (; model.number < model.set.top.models; model.number++) {
        DM_TRY(model_check(&model));
    }
    return 0;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int xstore_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct xstore_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct audit audit = {.cn = cn, .ctx = ctx, .report = report};
    uint32_t bytes = cn->layout.leaf_bytes > XSTORE_INNER_BYTES ? cn->layout.leaf_bytes : XSTORE_INNER_BYTES;
    audit.wire = dm_local_alloc(ctx, bytes);
    audit.block = dm_local_alloc(ctx, 8 + XSTORE_VALUE_MAX);
    audit.words = dm_local_alloc(ctx, DM_LINE);
    int rc = audit.wire && audit.words && audit.block ? 0 : DM_ERR_NO_MEMORY;
    for (; rc >= 0 && audit.node < cn->shape->topology->mns; audit.node++) {
        rc = tree_walk(&audit);
        rc = rc == 0 ? models_walk(&audit) : rc;
    }
    free(audit.seen);
    report->leaf_fill = report->leaves > 0 ? report->leaf_fill / (double)(report->leaves * cn->layout.slots) : 0;
    return rc < 0 ? rc : 0;
}
