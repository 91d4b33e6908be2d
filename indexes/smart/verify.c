/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-check: reads every node and leaf, depth first. Reverse pointers are hints and are not compared. After an
 * interrupted operation it accepts held locks, claimed leaves and frozen slots.
 */
#include "indexes/shared/report.h"
#include "smart.h"

struct verifier {
    struct smart_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    struct smart_node *nodes; /* device memory: one a level */
    char *leaf;
    struct ix_indirect *indirect;
};

#define EXPECT(verifier, ...) IX_REPORT_EXPECT((verifier)->report, __VA_ARGS__)
/* With leases a client that stopped leaves these to others, and the run was not interrupted. */
#define EXPECT_FREE(verifier, condition, ...)                                                                          \
    EXPECT(verifier, (condition) || (verifier)->cn->params->lease_us > 0, __VA_ARGS__)

/* `low` has the bytes of the path, `depth` of them. */
static int leaf_check(struct verifier *verifier, uint64_t slot, uint64_t low, unsigned depth) {
    dm_addr addr = smart_slot_addr(slot);
    unsigned long long at = addr.bits;
    if (!dm_addr_valid(verifier->ctx, addr, verifier->cn->layout.leaf_bytes)) {
        ix_report_problem(verifier->report, "a slot leads to %llx, which cannot be a leaf", at);
        return 0;
    }
    DM_TRY(dm_read(verifier->ctx, addr, verifier->leaf, verifier->cn->layout.leaf_bytes));
    uint64_t word = smart_leaf_word_of(verifier->leaf);
    uint64_t key = smart_leaf_key(verifier->leaf);
    EXPECT(verifier, smart_word_stamp(word) == smart_slot_stamp(slot), "leaf %llx is another use than its slot's", at);
    EXPECT_FREE(verifier, smart_word_state(word) == SMART_LIVE, "leaf %llx is linked but not live", at);
    if (smart_word_stamp(word) != smart_slot_stamp(slot) || smart_word_state(word) == SMART_DELETED) {
        return 0;
    }
    EXPECT_FREE(verifier, !smart_word_locked(word), "the lock of leaf %llx is held", at);
    EXPECT(verifier, smart_leaf_consistent(&verifier->cn->layout, verifier->leaf), "leaf %llx is torn", at);
    if (smart_low(key, depth) != low) {
        ix_report_problem(verifier->report, "leaf %llx has key %llx, which its path does not lead to", at,
                          (unsigned long long)key);
    }
    if (verifier->indirect && !verifier->report->interrupted) {
        int rc = ix_indirect_check(verifier->indirect, key,
                                   ix_indirect_word(verifier->indirect, verifier->leaf + SMART_LEAF_VALUE));
        if (rc == IX_INDIRECT_REUSED) {
            ix_report_problem(verifier->report, "key %llx has a block that is not its own", (unsigned long long)key);
        }
        DM_TRY(rc < 0 ? rc : 0);
    }
    verifier->report->leaves++;
    verifier->report->keys++;
    return 0;
}

static int node_check(struct verifier *verifier, uint64_t slot, uint64_t low, unsigned depth, unsigned level);

static int slot_check(struct verifier *verifier, uint64_t slot, uint64_t low, unsigned depth, unsigned level) {
    EXPECT(verifier, !smart_slot_is_frozen(slot), "a slot below %llx is frozen", (unsigned long long)low);
    if (!smart_slot_has_child(slot)) {
        return 0;
    }
    return smart_slot_is_leaf(slot) ? leaf_check(verifier, slot, low, depth)
                                    : node_check(verifier, slot, low, depth, level);
}

static int slots_check(struct verifier *verifier, const struct smart_node *node, uint64_t path, unsigned level) {
    unsigned capacity = smart_capacity(&verifier->cn->layout, smart_header_type(node->header));
    unsigned branch = smart_header_branch(node->header);
    bool seen[SMART_SLOTS] = {false};
    for (unsigned i = 0; i < SMART_SLOTS; i++) {
        uint64_t slot = node->slots[i];
        unsigned byte = smart_slot_byte(slot);
        if (slot == 0 || smart_slot_kind_of(slot) == SMART_KIND_CLOSED) {
            continue;
        }
        EXPECT_FREE(verifier, i < capacity, "node %llx of type %u has something in slot %u", (unsigned long long)path,
                    smart_header_type(node->header), i);
        if (i >= capacity) {
            break;
        }
        if (seen[byte]) {
            ix_report_problem(verifier->report, "the node of %llx has two slots for byte %u", (unsigned long long)path,
                              byte);
        }
        seen[byte] = true;
        uint64_t low = smart_path_with(path, branch, byte);
        DM_TRY(slot_check(verifier, slot, low, branch + 1, level + 1));
    }
    return 0;
}

static int node_check(struct verifier *verifier, uint64_t slot, uint64_t low, unsigned depth, unsigned level) {
    dm_addr addr = smart_slot_addr(slot);
    unsigned long long at = addr.bits;
    if (level >= SMART_KEY_BYTES || !dm_addr_valid(verifier->ctx, addr, SMART_NODE_BYTES)) {
        ix_report_problem(verifier->report, "a slot leads to %llx, which cannot be a node", at);
        return 0;
    }
    struct smart_node *node = &verifier->nodes[level];
    DM_TRY(dm_read(verifier->ctx, addr, node, SMART_NODE_BYTES));
    if (!smart_header_plausible(node->header) || smart_header_depth(node->header) > depth) {
        ix_report_problem(verifier->report, "%llx is not a node", at);
        return 0;
    }
    EXPECT(verifier, smart_capacity(&verifier->cn->layout, smart_header_type(node->header)) > 0,
           "node %llx is being taken out", at);
    uint64_t path = smart_header_path(node->header, low);
    if (smart_low(path, depth) != low) {
        ix_report_problem(verifier->report, "node %llx has a prefix that differs from its path", at);
    }
    verifier->report->inner_nodes++;
    node->header = (node->header & ~SMART_TYPE_MASK) | (uint64_t)smart_header_base(node->header) << 8;
    return slots_check(verifier, node, path, level);
}

int smart_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct smart_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct verifier verifier = {.cn = cn, .ctx = ctx, .report = report};
    struct ix_indirect_config config = {
        .values = cn->params->values, .value_bytes = cn->shape->value_bytes, .padding = ix_key_padding(cn->shape)};
    DM_TRY(ix_indirect_open(ctx, &config, &verifier.indirect));
    verifier.nodes = dm_local_alloc(ctx, SMART_KEY_BYTES * (uint32_t)sizeof(struct smart_node));
    verifier.leaf = dm_local_alloc(ctx, cn->layout.leaf_bytes);
    uint64_t *root = dm_local_alloc(ctx, sizeof(*root));
    int rc = DM_ERR_NO_MEMORY;
    if (verifier.nodes && verifier.leaf && root) {
        rc = dm_read(ctx, dm_addr_make(0, DM_DRAM, SMART_ROOT_OFFSET), root, sizeof(*root));
        rc = rc == 0 ? slot_check(&verifier, *root, 0, 0, 0) : rc;
    }
    ix_indirect_close(verifier.indirect);
    report->leaf_fill = report->leaves > 0 ? 1 : 0;
    return rc;
}
