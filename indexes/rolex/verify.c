/* SPDX-License-Identifier: Apache-2.0
 *
 * verify descends from model to model by their bounds, as a reader without a cache does, and checks the tables and all
 * leaves of each: the leaves' bounds must partition the model's range, trained leaves must be in order, each leaf must
 * be predicted for its complete range, keys must be within the bounds and in order, and no entry may be locked.
 * Retraining is paused meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "client.h"
#include "descend.h"
#include "indexes/shared/report.h"
#include "retrain.h"

struct audit {
    struct rolex_env env;
    struct ix_report *report;
    uint64_t *tables;
    struct rolex_member *seen;
    uint32_t seen_count, seen_max;
    char *wire, *image;
    struct ix_indirect *indirect; /* NULL: values are inline */
    uint64_t entries;
    uint64_t counts[ROLEX_COUNTER_COUNT];
};

static void problem(struct audit *audit, const char *what, uint64_t where) {
    ix_report_problem(audit->report, "%s (%016" PRIx64 ")", what, where);
}

/* A problem only if no operation was interrupted. */
static void blemish(struct audit *audit, const char *what, uint64_t where) {
    if (!audit->report->interrupted) {
        problem(audit, what, where);
    }
}

static int block_check(struct audit *audit, uint32_t at, uint64_t key) {
    const char *stored = rolex_value(&audit->env.layout, audit->image, at);
    int rc = ix_indirect_check(audit->indirect, key, ix_indirect_word(audit->indirect, stored));
    if (rc == IX_INDIRECT_REUSED) {
        problem(audit, "the block of a key is not its own", key);
    }
    return rc < 0 ? rc : 0;
}

static int keys_check(struct audit *audit, const struct rolex_head *head, const struct rolex_member *seen) {
    const struct rolex_layout *layout = &audit->env.layout;
    uint32_t count = rolex_count(layout, audit->image);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = rolex_key(audit->image, i);
        if (key < seen->low || key >= seen->high) {
            problem(audit, "a key is outside the bounds of its leaf", key);
        }
        if (i > 0 && key <= rolex_key(audit->image, i - 1)) {
            problem(audit, "keys of a leaf are out of order", key);
        }
        struct rolex_window window =
            rolex_predict(head, key, (uint32_t)audit->env.params->epsilon, audit->env.per_leaf);
        if (seen->index < window.lo || seen->index > window.hi) {
            problem(audit, "a key is not in the leaves that its model predicts", key);
        }
        DM_TRY(block_check(audit, i, key));
    }
    audit->report->keys += count;
    audit->entries += layout->delta;
    return 0;
}

static int leaf_check(struct audit *audit, const struct rolex_head *head, uint64_t entry, uint32_t leaf) {
    const struct rolex_layout *layout = &audit->env.layout;
    dm_addr addr;
    int rc = rolex_leaf_addr(&audit->env, entry, &addr);
    DM_TRY(rc);
    if (rc > 0 || audit->seen_count == audit->seen_max) {
        problem(audit, "a table entry names no leaf, or a chain has no end", entry);
        return 0;
    }
    DM_TRY(dm_read(audit->env.ctx, addr, audit->wire, layout->wire_bytes));
    if (!ix_lines_consistent(audit->wire, layout->wire_bytes, IX_VERSIONS_LINES)) {
        problem(audit, "a leaf is torn", addr.bits);
    }
    ix_lines_decode(audit->wire, layout->wire_bytes, audit->image);
    struct rolex_member seen = {.low = rolex_low(audit->image), .high = rolex_high(audit->image), .index = leaf};
    if (seen.low >= seen.high) {
        blemish(audit, "a leaf in use has no range", addr.bits);
        return 0;
    }
    audit->seen[audit->seen_count++] = seen;
    audit->report->leaves++;
    return keys_check(audit, head, &seen);
}

/* The leaves must partition the model's range, those of one group must be adjacent, and every bound must be predicted.
 */
static void ranges_check(struct audit *audit, const struct rolex_head *head, dm_addr model) {
    rolex_members_sort(audit->seen, audit->seen_count);
    uint64_t low = head->low;
    for (uint32_t i = 0; i < audit->seen_count; i++) {
        const struct rolex_member *seen = &audit->seen[i];
        if (seen->low != low) {
            blemish(audit, "the leaves of a model leave a gap or overlap", seen->low);
        }
        if (i > 0 && seen->index < audit->seen[i - 1].index) {
            problem(audit, "a synonym leaf is not after its trained leaf", seen->low);
        }
        uint64_t ends[] = {seen->low, seen->high - 1};
        for (unsigned e = 0; e < 2; e++) {
            struct rolex_window window =
                rolex_predict(head, ends[e], (uint32_t)audit->env.params->epsilon, audit->env.per_leaf);
            if (seen->index < window.lo || seen->index > window.hi) {
                problem(audit, "an end of a leaf's range is not in the leaves that its model predicts", ends[e]);
            }
        }
        low = seen->high;
    }
    if (low != head->high) {
        blemish(audit, "the leaves of a model do not reach its end", model.bits);
    }
}

static int model_check(struct audit *audit, dm_addr model, const struct rolex_head *head) {
    uint64_t *slots = audit->tables;
    uint64_t *table = slots + 1 + head->synonyms;
    DM_TRY(dm_read(audit->env.ctx, rolex_slots(model), slots, 8 * (1 + (uint32_t)head->synonyms + head->leaves)));
    if (slots[0] & ROLEX_RETIRED) {
        blemish(audit, "a model is marked as replaced and leads nowhere", model.bits);
    }
    audit->seen_count = 0;
    for (uint32_t leaf = 0; leaf < head->leaves; leaf++) {
        uint64_t entry = table[leaf];
        if (entry & (ROLEX_LOCK | ROLEX_DEAD)) {
            blemish(audit, "a table entry is locked", model.bits);
        }
        DM_TRY(leaf_check(audit, head, entry, leaf));
        unsigned slot = rolex_entry_synonym(entry);
        for (unsigned n = 0; slot != 0 && n < head->synonyms; n++) {
            if (slot > rolex_used(slots[0], head->synonyms)) {
                problem(audit, "a link names a synonym that is not in use", model.bits);
                break;
            }
            DM_TRY(leaf_check(audit, head, slots[slot], leaf));
            slot = rolex_entry_synonym(slots[slot]);
        }
    }
    ranges_check(audit, head, model);
    return 0;
}

static int walk(struct audit *audit) {
    for (uint64_t key = 0; key < UINT64_MAX;) {
        struct rolex_head head;
        dm_addr model;
        int rc = rolex_descend(&audit->env, key, &model, &head);
        DM_TRY(rc);
        if (rc > 0 || head.low != key) {
            problem(audit, "no model begins where the last one ends", key);
            return 0;
        }
        audit->report->inner_nodes++;
        DM_TRY(model_check(audit, model, &head));
        key = head.high;
    }
    return 0;
}

static int pause_all(struct audit *audit, bool pause) {
    if (!audit->env.params->retrain) {
        return 0;
    }
    for (unsigned node = 0; node < audit->env.shape->topology->mns; node++) {
        int rc = rolex_pause(&audit->env, node, pause);
        DM_TRY(rc);
        if (rc > 0) {
            blemish(audit, "a retraining does not end", node);
        }
    }
    return 0;
}

int rolex_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct rolex_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    struct audit audit = {.report = report};
    int rc = rolex_env_init(&audit.env, ctx, cn->params, cn->shape, audit.counts);
    uint32_t wire = audit.env.layout.wire_bytes;
    audit.seen_max = (uint32_t)(cn->params->model_leaves + cn->params->synonyms);
    audit.tables = calloc(1 + audit.seen_max, sizeof(*audit.tables));
    audit.seen = calloc(audit.seen_max, sizeof(*audit.seen));
    audit.wire = calloc(1, wire);
    audit.image = calloc(1, wire);
    struct ix_indirect_config values = {.values = (enum ix_values)cn->params->values,
                                        .value_bytes = cn->shape->value_bytes,
                                        .padding = ix_key_padding(cn->shape)};
    rc = rc < 0 ? rc : ix_indirect_open(ctx, &values, &audit.indirect);
    rc = rc >= 0 && audit.tables && audit.seen && audit.wire && audit.image ? rc : DM_ERR_NO_MEMORY;
    rc = rc < 0 ? rc : pause_all(&audit, true);
    rc = rc < 0 ? rc : walk(&audit);
    rc = rc < 0 ? rc : pause_all(&audit, false);
    report->leaf_fill = audit.entries > 0 ? (double)report->keys / (double)audit.entries : 0;
    free(audit.tables);
    free(audit.seen);
    free(audit.wire);
    free(audit.image);
    ix_indirect_close(audit.indirect);
    return rc < 0 ? rc : 0;
}
