/* SPDX-License-Identifier: Apache-2.0
 *
 * verify: indexes/shared/tree_walk.c walks the inner levels; here the chain of leaves is compared with what they say,
 * and each leaf is checked: versions, all copies of the metadata, keys in range and in their neighbourhood, hop
 * bitmaps, the lock word with its vacancies.
 *
 * A leaf that no parent knows, and a lock that is held, are legal only if an operation was interrupted in the middle,
 * as this compute node knows of its own and the caller says of others. An insert that moves keys changes several
 * entries with several writes, and the client may have stopped between two of them. Then hop bitmaps can disagree with
 * the keys, and a moved key can be in two entries, but only in the leaf whose lock that client still holds: the lock
 * word is written last.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "chime.h"
#include "indexes/shared/report.h"

struct audit {
    struct chime_cn *cn;
    struct ix_walk walk;
    char *wire, *image;
    uint64_t *word;
    uint16_t *order;
    uint64_t entries;
    bool interrupted;
    struct ix_indirect *indirect; /* NULL: values are inline */
};

static void meta_check(struct audit *audit, dm_addr addr, uint64_t low, uint64_t high) {
    const struct chime_layout *layout = &audit->cn->layout;
    struct chime_meta meta = chime_meta_get(layout, audit->image, 0);
    for (unsigned g = 0; g < layout->groups; g++) {
        struct chime_meta copy = chime_meta_get(layout, audit->image, g);
        if (!copy.valid || !dm_addr_equal(copy.sibling, meta.sibling) || copy.low != meta.low ||
            copy.high != meta.high) {
            ix_report_problem(audit->walk.report,
                              "leaf %016" PRIx64 ": metadata %u is not valid or differs from the first", addr.bits, g);
        }
    }
    if (layout->fences && !audit->interrupted && (meta.low != low || meta.high != high)) {
        ix_report_problem(audit->walk.report, "leaf %016" PRIx64 ": its fences are not what its parent says",
                          addr.bits);
    }
}

static void keys_check(struct audit *audit, dm_addr addr, uint64_t low, uint64_t high) {
    const struct chime_layout *layout = &audit->cn->layout;
    struct ix_walk *walk = &audit->walk;
    bool half_written = audit->interrupted && chime_word_locked(*audit->word);
    unsigned count = chime_leaf_sort(layout, audit->image, 0, audit->order);
    walk->report->keys += count;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = audit->order[i];
        uint64_t key = chime_key(layout, audit->image, at);
        if (key < low || key >= high) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": key %" PRIu64 " is outside its range", addr.bits,
                              key);
        }
        if (chime_distance(layout, chime_home(layout, key), at) >= layout->hood) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": key %" PRIu64 " is outside its neighbourhood",
                              addr.bits, key);
        }
        if (i > 0 && key == chime_key(layout, audit->image, audit->order[i - 1]) && !half_written) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": key %" PRIu64 " is there twice", addr.bits, key);
        }
    }
    for (unsigned i = 0; i < layout->span && !half_written; i++) {
        if (chime_hop(layout, audit->image, i) != chime_hops_of(layout, audit->image, i)) {
            ix_report_problem(walk->report, "leaf %016" PRIx64 ": the hop bitmap of entry %u is wrong", addr.bits, i);
        }
    }
}

static void leaf_check(struct audit *audit, dm_addr addr, uint64_t low, uint64_t high) {
    const struct chime_layout *layout = &audit->cn->layout;
    struct ix_walk *walk = &audit->walk;
    bool whole = ix_lines_consistent(audit->wire, layout->wire_bytes, IX_VERSIONS_LINES);
    for (unsigned i = 0; i < layout->span; i++) {
        whole &= ix_lines_object_consistent(audit->wire, chime_entry_offset(layout, i), layout->entry_bytes,
                                            IX_VERSIONS_LINES);
    }
    if (!whole) {
        ix_report_problem(walk->report, "leaf %016" PRIx64 ": torn", addr.bits);
    }
    walk->report->leaves++;
    audit->entries += layout->span;
    meta_check(audit, addr, low, high);
    keys_check(audit, addr, low, high);
    uint64_t word =
        chime_word_set_largest(layout, chime_word_of(layout, audit->image), chime_word_largest(layout, *audit->word));
    if (*audit->word != word && !audit->interrupted) {
        ix_report_problem(walk->report,
                          "leaf %016" PRIx64 ": the lock word is %016" PRIx64 ", its content wants %016" PRIx64,
                          addr.bits, *audit->word, word);
    }
}

/* Every word names a block of its key. */
static int blocks_check(struct audit *audit, dm_addr addr) {
    const struct chime_layout *layout = &audit->cn->layout;
    for (unsigned i = 0; audit->indirect && i < layout->span; i++) {
        uint64_t key = chime_key(layout, audit->image, i);
        uint64_t word = ix_indirect_word(audit->indirect, chime_value(layout, audit->image, i));
        int rc = key == CHIME_NO_KEY ? 0 : ix_indirect_check(audit->indirect, key, word);
        DM_TRY(rc);
        if (rc == IX_INDIRECT_REUSED) {
            ix_report_problem(audit->walk.report, "leaf %016" PRIx64 ": the block of key %" PRIu64 " is another's",
                              addr.bits, key);
        }
    }
    return 0;
}

static int leaf_read(struct audit *audit, dm_addr addr) {
    const struct chime_layout *layout = &audit->cn->layout;
    dm_post_read(audit->walk.ctx, addr, audit->wire, layout->used_bytes);
    dm_post_read(audit->walk.ctx, chime_leaf_word(audit->cn, addr), audit->word, sizeof(*audit->word));
    DM_TRY(dm_commit(audit->walk.ctx));
    ix_lines_decode(audit->wire, layout->wire_bytes, audit->image);
    return 0;
}

/* Walks the chain of leaves. Between two that a parent knows there may be others only after an interruption. */
static int leaves_walk(struct audit *audit) {
    struct ix_walk *walk = &audit->walk;
    const struct ix_tree_level *leaves = &walk->expected;
    dm_addr addr = leaves->items[0].addr;
    uint64_t number = 0;
    while (!dm_addr_is_null(addr)) {
        bool known = number < leaves->count && dm_addr_equal(addr, leaves->items[number].addr);
        if (!dm_addr_valid(walk->ctx, addr, audit->cn->layout.alloc_bytes) || (!known && !audit->interrupted)) {
            ix_report_problem(walk->report,
                              "leaf %016" PRIx64 " is not known to its parent, or there is no such memory", addr.bits);
            return 0;
        }
        DM_TRY(leaf_read(audit, addr));
        number += known;
        uint64_t low = number > 0 ? leaves->items[number - 1].low : 0;
        uint64_t high = number < leaves->count ? leaves->items[number].low : UINT64_MAX;
        leaf_check(audit, addr, low, high);
        DM_TRY(blocks_check(audit, addr));
        addr = chime_meta_get(&audit->cn->layout, audit->image, 0).sibling;
    }
    if (number != leaves->count) {
        ix_report_problem(walk->report, "a leaf is known to the parents but not in the chain");
    }
    return 0;
}

int chime_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct chime_cn *cn = handle;
    const struct chime_layout *layout = &cn->layout;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    bool own = atomic_load_explicit(&cn->tree.interrupted, memory_order_relaxed);
    struct audit audit = {.cn = cn, .interrupted = own || report->interrupted};
    audit.walk = (struct ix_walk){.cn = &cn->tree, .ctx = ctx, .report = report};
    audit.wire = dm_local_alloc(ctx, layout->wire_bytes);
    audit.word = dm_local_alloc(ctx, sizeof(uint64_t));
    audit.image = calloc(1, layout->wire_bytes);
    audit.order = calloc(layout->span, sizeof(*audit.order));
    struct ix_indirect_config values = {
        .values = cn->params->values, .value_bytes = cn->shape->value_bytes, .padding = ix_key_padding(cn->shape)};
    int rc = ix_walk_open(&audit.walk);
    rc = rc < 0 ? rc : ix_indirect_open(ctx, &values, &audit.indirect);
    rc = audit.wire && audit.word && audit.image && audit.order ? rc : DM_ERR_NO_MEMORY;
    rc = rc < 0 ? rc : ix_walk_levels(&audit.walk, 1);
    rc = rc == 0 ? leaves_walk(&audit) : rc;
    report->leaf_fill = audit.entries > 0 ? (double)report->keys / (double)audit.entries : 0;
    ix_walk_close(&audit.walk);
    ix_indirect_close(audit.indirect);
    free(audit.image);
    free(audit.order);
    return rc < 0 ? rc : 0;
}
