/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-check of the server-side tree: on every memory node each level is a chain of nodes that cover all keys in order,
 * its nodes are the children of the level above in the same order, save those that never got an entry, the keys of a
 * node are in order and inside its fences, and the row of a pair has its key.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/array.h"
#include "indexes/shared/report.h"
#include "indexes/shared/server_tree_node.h"

struct child {
    uint64_t low;
    uint32_t ref;
};

struct children {
    struct child *list;
    uint64_t count, capacity;
};

struct audit {
    const struct ix_server_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    unsigned node;
    uint64_t *wire; /* device memory: a node */
    uint64_t *row;  /* device memory: the key of a row */
    struct ix_server_node at;
    uint64_t unlinked;
};

static int child_add(struct children *children, uint64_t low, uint32_t ref) {
    struct child *grown = dm_array_grow(children->list, children->count, &children->capacity, sizeof(*grown));
    if (!grown) {
        return DM_ERR_NO_MEMORY;
    }
    children->list = grown;
    grown[children->count++] = (struct child){low, ref};
    return 0;
}

/* 0, DM_NOT_FOUND after a problem that ends the walk, or a failure. */
static int node_fetch(struct audit *audit, uint32_t ref, unsigned level) {
    const struct ix_server_layout *layout = &audit->cn->layout;
    uint32_t bytes = ix_server_node_bytes(layout, level);
    dm_addr addr = ix_server_addr(audit->node, ref);
    if (ref == 0 || !dm_addr_valid(audit->ctx, addr, bytes)) {
        ix_report_problem(audit->report, "node %u: invalid link %" PRIu32, audit->node, ref);
        return DM_NOT_FOUND;
    }
    DM_TRY(dm_read(audit->ctx, addr, audit->wire, bytes));
    audit->at.ref = ref;
    memcpy(audit->at.words, audit->wire, bytes);
    if (ix_server_level(&audit->at) != level || audit->at.words[IX_SERVER_VERSION] & 1 ||
        ix_server_count(&audit->at) > (level > 0 ? layout->fanout : layout->slots) ||
        (level > 0 && ix_server_count(&audit->at) == 0)) {
        ix_report_problem(audit->report, "node %u: object %" PRIu32 " is no finished node of level %u", audit->node,
                          ref, level);
        return DM_NOT_FOUND;
    }
    return 0;
}

static int row_check(struct audit *audit, uint64_t key, uint64_t offset) {
    dm_addr addr = dm_addr_make(audit->node, DM_DRAM, offset);
    bool is_valid = offset != 0 && dm_addr_valid(audit->ctx, addr, audit->cn->layout.row_bytes);
    if (is_valid) {
        DM_TRY(dm_read(audit->ctx, addr, audit->row, sizeof(*audit->row)));
    }
    if (!is_valid || *audit->row != key) {
        ix_report_problem(audit->report, "node %u: the row of key %" PRIu64 " is not its own", audit->node, key);
    }
    return 0;
}

static int leaf_check(struct audit *audit, uint64_t low) {
    const struct ix_server_layout *layout = &audit->cn->layout;
    unsigned count = ix_server_count(&audit->at);
    for (unsigned rank = 0; rank < count; rank++) {
        unsigned slot = ix_server_slot_at(layout, &audit->at, rank);
        uint64_t key = ix_server_keys(&audit->at)[slot];
        if (key < low || !ix_server_covers(&audit->at, key)) {
            ix_report_problem(audit->report, "node %u: key %" PRIu64 " is out of order or outside of its leaf",
                              audit->node, key);
        }
        low = key + 1;
        if (layout->rows) {
            DM_TRY(row_check(audit, key, *ix_server_slot(layout, &audit->at, slot)));
        }
    }
    audit->report->keys += count;
    audit->report->leaf_fill += count;
    audit->report->leaves++;
    return 0;
}

static int inner_check(struct audit *audit, uint64_t low, struct children *below) {
    unsigned count = ix_server_count(&audit->at);
    const uint64_t *keys = ix_server_keys(&audit->at);
    const uint64_t *children = ix_server_children(&audit->cn->layout, &audit->at);
    for (unsigned i = 0; i < count; i++) {
        if ((i == 0 && keys[0] != low) || (i > 0 && keys[i] <= keys[i - 1]) || !ix_server_covers(&audit->at, keys[i])) {
            ix_report_problem(audit->report, "node %u: the keys of inner node %" PRIu32 " are not in order",
                              audit->node, audit->at.ref);
        }
        DM_TRY(child_add(below, keys[i], (uint32_t)children[i]));
    }
    audit->report->inner_nodes++;
    return 0;
}

/* Walks the nodes of a level, of which `named` are the children of the level above. */
static int level_walk(struct audit *audit, unsigned level, const struct children *named, struct children *below) {
    uint64_t low = 0, next_named = 0;
    uint32_t ref = named->list[0].ref;
    while (ref != 0) {
        int rc = node_fetch(audit, ref, level);
        if (rc != 0) {
            return rc;
        }
        if (next_named < named->count && named->list[next_named].ref == ref) {
            if (named->list[next_named++].low != low) {
                ix_report_problem(audit->report, "node %u: the parent of %" PRIu32 " has another first key",
                                  audit->node, ref);
            }
        } else {
            audit->unlinked++;
        }
        DM_TRY(level > 0 ? inner_check(audit, low, below) : leaf_check(audit, low));
        uint64_t high = audit->at.words[IX_SERVER_HIGH];
        ref = ix_server_next(&audit->at);
        if (high <= low || (ref == 0) != (high == UINT64_MAX)) {
            ix_report_problem(audit->report, "node %u: fences from %" PRIu64 " to %" PRIu64, audit->node, low, high);
            return DM_NOT_FOUND;
        }
        low = high;
    }
    if (next_named < named->count) {
        ix_report_problem(audit->report, "node %u: level %u has %" PRIu64 " children that are not in their chain",
                          audit->node, level, named->count - next_named);
    }
    return 0;
}

static int tree_walk(struct audit *audit) {
    struct children named = {0}, below = {0};
    DM_TRY(dm_read(audit->ctx, dm_addr_make(audit->node, DM_DRAM, IX_SERVER_ROOT_OFFSET), audit->wire, 16));
    uint64_t root = audit->wire[0], allowed = audit->wire[1];
    unsigned top = (unsigned)(root >> 32);
    audit->unlinked = 0;
    audit->report->height = top + 1 > audit->report->height ? top + 1 : audit->report->height;
    int rc = child_add(&named, 0, (uint32_t)root);
    for (unsigned level = top + 1; level-- > 0 && rc == 0;) {
        rc = level_walk(audit, level, &named, &below);
        free(named.list);
        named = below;
        below = (struct children){0};
    }
    free(named.list);
    if (rc == 0 && audit->unlinked > allowed) {
        ix_report_problem(audit->report, "node %u: %" PRIu64 " nodes have no parent, memory ran out for %" PRIu64,
                          audit->node, audit->unlinked, allowed);
    }
    return rc < 0 ? rc : 0;
}

int ix_server_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    const struct ix_server_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct audit *audit = calloc(1, sizeof(*audit));
    if (!audit) {
        return DM_ERR_NO_MEMORY;
    }
    *audit = (struct audit){.cn = cn, .ctx = ctx, .report = report};
    uint32_t bytes = cn->layout.leaf_bytes > cn->layout.inner_bytes ? cn->layout.leaf_bytes : cn->layout.inner_bytes;
    audit->wire = dm_local_alloc(ctx, bytes);
    audit->row = dm_local_alloc(ctx, DM_LINE);
    int rc = audit->wire && audit->row ? 0 : DM_ERR_NO_MEMORY;
    for (; rc == 0 && audit->node < cn->shape->topology->mns; audit->node++) {
        rc = tree_walk(audit);
    }
    free(audit);
    report->leaf_fill = report->leaves > 0 ? report->leaf_fill / (double)(report->leaves * cn->layout.slots) : 0;
    return rc;
}
