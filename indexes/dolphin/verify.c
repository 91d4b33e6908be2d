/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-check: reads every node and leaf, depth first, and compares each with what the node above holds. After an
 * interrupted operation the check accepts what that may leave behind: held locks, entries reserved or busy, a leaf that
 * is not linked yet, dead ones that are still linked, a leaf that has inherited the range of the dead one before it and
 * is not linked where that begins, or is linked twice, old reverse pointers. No height is reported, because paths
 * differ in length.
 */
#include "dolphin.h"
#include "indexes/shared/report.h"

struct verifier {
    struct dolphin_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    struct dolphin_node *nodes; /* device memory: one a level */
    char *leaf;
    uint64_t *word;
    uint64_t entries;
    struct dolphin_leaf_head before; /* of the leaf before, under the same special node; 0: none */
    bool interrupted, is_unlinked;
};

/* Reports a problem, unless an interrupted operation may have left it behind. */
#define EXPECT(verifier, condition, ...)                                                                               \
    do {                                                                                                               \
        if (!(condition) && !(verifier)->interrupted) {                                                                \
            ix_report_problem((verifier)->report, __VA_ARGS__);                                                        \
        }                                                                                                              \
    } while (0)

static void words_check(struct verifier *verifier, unsigned long long at) {
    const struct dolphin_layout *layout = &verifier->cn->layout;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(verifier->leaf);
    const uint64_t *words = dolphin_leaf_words_in(verifier->leaf);
    bool seen[DOLPHIN_CHILDREN_MAX] = {false};
    for (unsigned i = 0; i < layout->cap; i++) {
        enum dolphin_state state = dolphin_entry_state(words[i]);
        unsigned byte = dolphin_entry_byte(words[i]);
        if (dolphin_entry_version(words[i]) != head->version) {
            ix_report_problem(verifier->report, "leaf %llx: entry %u has version %u, the leaf %u", at, i,
                              dolphin_entry_version(words[i]), head->version);
        }
        EXPECT(verifier, state != DOLPHIN_RESERVED && state != DOLPHIN_BUSY, "leaf %llx: entry %u is half done", at, i);
        if (!dolphin_entry_is_live(words[i])) {
            continue;
        }
        if (head->dead) {
            ix_report_problem(verifier->report, "leaf %llx is dead but has keys", at);
        }
        if (seen[byte]) {
            ix_report_problem(verifier->report, "leaf %llx has key %llx twice", at,
                              (unsigned long long)(dolphin_low(head->min, DOLPHIN_SPECIAL) | byte));
        }
        seen[byte] = true;
        if (byte < (head->min & 0xff) || byte > (head->max & 0xff)) {
            ix_report_problem(verifier->report, "leaf %llx has a key outside its range", at);
        }
        unsigned char value[DM_LINE * 32];
        bool is_consistent = dolphin_cell_get(layout, verifier->leaf + dolphin_cell_offset(layout, i), head->version,
                                              verifier->cn->publish, value);
        EXPECT(verifier, is_consistent, "leaf %llx: the value of entry %u is torn", at, i);
        verifier->report->keys++;
        verifier->entries++;
    }
}

static int node_check(struct verifier *verifier, uint64_t word, uint64_t parent, uint64_t low);

/* Looks for a special node that is not linked yet: after an interrupted split, or the growth of a special node, the
 * leaf's reverse pointer may lead to one, where readers of the leaf continue. *word is 0 if there is none. [waits] */
static int unlinked_find(struct verifier *verifier, dm_addr leaf, uint64_t parent, uint64_t *word) {
    *word = 0;
    if (!verifier->interrupted || !dm_addr_valid(verifier->ctx, leaf, verifier->cn->layout.leaf_bytes)) {
        return 0;
    }
    DM_TRY(dm_read(verifier->ctx, leaf, verifier->leaf, sizeof(struct dolphin_leaf_head)));
    uint64_t above = dolphin_leaf_head_in(verifier->leaf)->parent;
    dm_addr addr = dolphin_word_addr(above);
    if (above == parent || !dolphin_word_is_inner(above) || dolphin_word_depth(above) != DOLPHIN_SPECIAL ||
        !dm_addr_valid(verifier->ctx, addr, dolphin_node_bytes(dolphin_word_type(above)))) {
        return 0;
    }
    struct dolphin_head *head = &verifier->nodes[DOLPHIN_KEY_BYTES].head;
    DM_TRY(dm_read(verifier->ctx, addr, head, sizeof(*head)));
    *word = dolphin_node_plausible(head, above) && !head->dead ? above : 0;
    return 0;
}

/* True if the leaf begins where its word leads to, or where the leaf before began, whose range it inherits: a merge
 * that was interrupted has widened it, and its word is not changed yet. */
static bool begin_is_right(const struct verifier *verifier, const struct dolphin_leaf_head *head, uint64_t word,
                           unsigned depth) {
    if (dolphin_low(head->min, depth) != dolphin_low(verifier->nodes[depth].head.prefix, depth)) {
        return false;
    }
    bool inherits =
        verifier->interrupted && depth == DOLPHIN_SPECIAL && verifier->before.dead && verifier->before.min == head->min;
    return inherits || dolphin_byte(head->min, depth) == dolphin_word_byte(word);
}

/* Checks a leaf. *next is the key where it should begin, and is moved behind its range. */
static int leaf_check(struct verifier *verifier, uint64_t word, uint64_t parent, uint64_t *next) {
    const struct dolphin_layout *layout = &verifier->cn->layout;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(verifier->leaf);
    dm_addr addr = dolphin_word_addr(word);
    unsigned long long at = addr.bits;
    if (!dm_addr_valid(verifier->ctx, addr, layout->leaf_bytes)) {
        ix_report_problem(verifier->report, "a word leads to %llx, which cannot be a leaf", at);
        return 0;
    }
    DM_TRY(dm_read(verifier->ctx, addr, verifier->leaf, layout->used_bytes));
    DM_TRY(dm_read(verifier->ctx, dolphin_leaf_lock(verifier->cn, addr), verifier->word, sizeof(uint64_t)));
    if (!dolphin_leaf_plausible(head)) {
        ix_report_problem(verifier->report, "%llx is not a leaf", at);
        return 0;
    }
    EXPECT(verifier, *verifier->word == 0, "the lock of leaf %llx is held", at);
    EXPECT(verifier, !head->dead, "leaf %llx is dead but linked", at);
    EXPECT(verifier, head->parent == parent, "leaf %llx has a wrong reverse pointer", at);
    unsigned depth = dolphin_word_depth(parent);
    if (!begin_is_right(verifier, head, word, depth)) {
        ix_report_problem(verifier->report, "leaf %llx begins at %llx, but its word leads elsewhere", at,
                          (unsigned long long)head->min);
    }
    if (depth == DOLPHIN_SPECIAL) {
        EXPECT(verifier, head->min == *next, "leaf %llx begins at %llx, the one before ended at %llx", at,
               (unsigned long long)head->min, (unsigned long long)*next);
    } else if ((head->min & 0xff) != 0 || (head->max & 0xff) != 0xff) {
        EXPECT(verifier, false, "leaf %llx is the only one of its prefix and does not cover it", at);
    }
    *next = head->max + 1;
    verifier->before = *head;
    verifier->report->leaves++;
    words_check(verifier, at);
    return 0;
}

/* Checks a special node that is not linked yet. */
static int unlinked_check(struct verifier *verifier, uint64_t word, uint64_t parent, uint64_t low) {
    verifier->is_unlinked = true;
    int rc = node_check(verifier, word, parent, low);
    verifier->is_unlinked = false;
    return rc;
}

/* Checks a leaf under an ordinary node, or the special node that was about to replace it. */
static int lone_leaf_check(struct verifier *verifier, uint64_t word, uint64_t parent, uint64_t low) {
    uint64_t instead;
    uint64_t next = 0;
    DM_TRY(unlinked_find(verifier, dolphin_word_addr(word), parent, &instead));
    return instead != 0 ? unlinked_check(verifier, instead, parent, low) : leaf_check(verifier, word, parent, &next);
}

/* Checks the children in order. */
static int children_check(struct verifier *verifier, uint64_t word) {
    unsigned depth = dolphin_word_depth(word);
    struct dolphin_node *node = &verifier->nodes[depth];
    unsigned capacity = dolphin_capacity(dolphin_word_type(word));
    uint64_t next = node->head.prefix;
    unsigned byte = 0;
    uint64_t child, previous = 0;
    verifier->before = (struct dolphin_leaf_head){.dead = 0};
    for (; byte < DOLPHIN_CHILDREN_MAX && (child = dolphin_words_next(node->words, capacity, byte)) != 0; byte++) {
        byte = dolphin_word_byte(child);
        bool is_repeated = previous != 0 && dolphin_word_with(child, 0) == dolphin_word_with(previous, 0);
        previous = child;
        if (is_repeated && depth == DOLPHIN_SPECIAL) {
            EXPECT(verifier, false, "special node %llx leads to a leaf twice",
                   (unsigned long long)dolphin_word_addr(word).bits);
        } else if (depth < DOLPHIN_SPECIAL) {
            uint64_t low = node->head.prefix | (uint64_t)byte << (8 * (DOLPHIN_SPECIAL - depth));
            bool is_inner = dolphin_word_is_inner(child);
            DM_TRY(is_inner ? node_check(verifier, child, dolphin_word_with(word, 0), low)
                            : lone_leaf_check(verifier, child, dolphin_word_with(word, 0), low));
        } else {
            DM_TRY(leaf_check(verifier, child, dolphin_word_with(word, 0), &next));
        }
    }
    if (depth == DOLPHIN_SPECIAL && previous != 0) {
        EXPECT(verifier, next == dolphin_high(node->head.prefix, depth) + 1,
               "the leaves under special node %llx end at %llx", (unsigned long long)dolphin_word_addr(word).bits,
               (unsigned long long)next);
    }
    return 0;
}

/* Finds the special node that was about to replace this one, through its leaves' reverse pointers; 0 if there is none.
 */
static int larger_find(struct verifier *verifier, uint64_t word, uint64_t *instead) {
    const struct dolphin_node *node = &verifier->nodes[DOLPHIN_SPECIAL];
    *instead = 0;
    for (unsigned i = 0; i < dolphin_capacity(dolphin_word_type(word)) && *instead == 0; i++) {
        if (node->words[i] != 0) {
            DM_TRY(unlinked_find(verifier, dolphin_word_addr(node->words[i]), dolphin_word_with(word, 0), instead));
        }
    }
    return 0;
}

/* Checks an inner node whose keys should begin at or above `low`. */
static int node_check(struct verifier *verifier, uint64_t word, uint64_t parent, uint64_t low) {
    unsigned depth = dolphin_word_depth(word);
    unsigned above = dolphin_word_depth(parent);
    dm_addr addr = dolphin_word_addr(word);
    unsigned long long at = addr.bits;
    uint32_t bytes = dolphin_node_bytes(dolphin_word_type(word));
    if (depth > DOLPHIN_SPECIAL || (parent != 0 && depth <= above) || !dm_addr_valid(verifier->ctx, addr, bytes)) {
        ix_report_problem(verifier->report, "a word leads to %llx, which cannot be an inner node of depth %u", at,
                          depth);
        return 0;
    }
    struct dolphin_node *node = &verifier->nodes[depth];
    DM_TRY(dm_read(verifier->ctx, addr, node, bytes));
    if (!dolphin_node_plausible(&node->head, word)) {
        ix_report_problem(verifier->report, "%llx is not an inner node", at);
        return 0;
    }
    EXPECT(verifier, node->head.lock == 0, "the lock of inner node %llx is held", at);
    EXPECT(verifier, !node->head.dead, "inner node %llx is dead but linked", at);
    EXPECT(verifier, node->head.parent == parent, "inner node %llx has a wrong reverse pointer", at);
    if (parent != 0 && dolphin_low(node->head.prefix, above + 1) != low) {
        ix_report_problem(verifier->report, "inner node %llx has a prefix that differs from its path", at);
    }
    /* Only once, as leaves of the larger node may still lead back. */
    if (verifier->interrupted && depth == DOLPHIN_SPECIAL && !verifier->is_unlinked) {
        uint64_t instead;
        DM_TRY(larger_find(verifier, word, &instead));
        if (instead != 0) {
            return unlinked_check(verifier, instead, parent, low);
        }
    }
    verifier->report->inner_nodes++;
    return children_check(verifier, word);
}

int dolphin_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct dolphin_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct verifier verifier = {.cn = cn, .ctx = ctx, .report = report};
    verifier.interrupted = report->interrupted || atomic_load_explicit(&cn->interrupted, memory_order_relaxed);
    verifier.nodes = dm_local_alloc(ctx, (DOLPHIN_KEY_BYTES + 1) * (uint32_t)sizeof(struct dolphin_node));
    verifier.leaf = dm_local_alloc(ctx, cn->layout.leaf_bytes);
    verifier.word = dm_local_alloc(ctx, DM_LINE);
    int rc = DM_ERR_NO_MEMORY;
    if (verifier.nodes && verifier.leaf && verifier.word) {
        rc = node_check(&verifier, cn->root, 0, 0);
    }
    if (rc < 0) {
        return rc;
    }
    double entries = (double)report->leaves * cn->layout.cap;
    report->leaf_fill = entries > 0 ? (double)verifier.entries / entries : 0;
    return 0;
}
