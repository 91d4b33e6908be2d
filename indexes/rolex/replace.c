/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacing a model (sections 3.5 and 4.6, shadow redirection): leaves keep their addresses and get new leaf tables.
 *
 *  1. Lock: every entry of the leaf table gets its lock bit and a mark that the lock is permanent. The context that
 * marks the first entry replaces the model. From then on no leaf of the model changes; readers are not affected.
 *  2. Read the synonym leaf table and the bounds of all leaves. These are authoritative, whatever training read.
 *  3. Without training, fit lines over the bounds. After training, every leaf that training did not read becomes a
 *     synonym, in the new table, of the trained leaf before it ("non-retrained leaf"). If anything else has changed (a
 *     leaf that training read is not in use any more) or the new synonyms do not fit, proceed as without training.
 *  4. Write the new models, then the pointers to them: the parent's word, `forward` in the old head, the mark in the
 * old used-slot counter. Clients that wait for a lock of the old model read them.
 *
 * A failure before step 4 removes the marks. Until step 4 nothing points to the new models, so they are freed as well.
 * A verb of step 4 that fails may have taken effect, so it is tried again, and the marks stay.
 */
#include <stdlib.h>

#include "indexes/shared/retry.h"
#include "replace.h"

enum { CAS_BATCH = 128, READ_BATCH = 256 };

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

void rolex_work_close(struct rolex_work *work) {
    if (work) {
        ix_plr_close(work->plr);
        free(work->words);
        free(work->found);
        free(work->members);
        free(work->trained);
        free(work->pieces);
        free(work->addrs);
        free(work->lines);
        free(work->object);
        free(work);
    }
}

struct rolex_work *rolex_work_open(const struct rolex_params *params) {
    struct rolex_work *work = calloc(1, sizeof(*work));
    if (!work) {
        return NULL;
    }
    uint32_t most = (uint32_t)(params->model_leaves + params->synonyms);
    uint32_t words = rolex_model_bytes((uint32_t)params->model_leaves, (uint32_t)params->synonyms) / 8;
    uint32_t fork = 2 + 2 * most;
    work->member_max = most;
    work->words = calloc(words, sizeof(*work->words));
    work->found = calloc(words, sizeof(*work->found));
    work->members = calloc(most, sizeof(*work->members));
    work->trained = calloc(most, sizeof(*work->trained));
    work->pieces = calloc(most, sizeof(*work->pieces));
    work->addrs = calloc(most, sizeof(*work->addrs));
    work->lines = calloc(most, DM_LINE);
    work->object = calloc(words > fork ? words : fork, sizeof(*work->object));
    int rc = ix_plr_open((uint32_t)params->epsilon, &work->plr);
    if (rc < 0 || !work->words || !work->found || !work->members || !work->trained || !work->pieces || !work->addrs ||
        !work->lines || !work->object) {
        rolex_work_close(work);
        return NULL;
    }
    return work;
}

/* ---- 1: locking -------------------------------------------------------------------------------------------------- */

static uint64_t *tables_slots(struct rolex_work *work) {
    return work->words;
}

static uint64_t *tables_table(struct rolex_work *work, const struct rolex_head *head) {
    return work->words + 1 + head->synonyms;
}

static dm_addr entry_at(dm_addr model, const struct rolex_head *head, uint32_t leaf) {
    return dm_addr_add(rolex_table(model, head), 8 * (uint64_t)leaf);
}

/* Tries to mark the entries first .. last - 1 that are not marked yet. *left is the number of those that were locked or
 * had changed. Marked ones have ROLEX_DEAD in work's table. */
static int entries_mark(struct rolex_env *env, struct rolex_work *work, dm_addr model, const struct rolex_head *head,
                        uint32_t first, uint32_t last, uint32_t *left) {
    uint64_t *table = tables_table(work, head);
    *left = 0;
    for (uint32_t at = first; at < last;) {
        uint32_t from = at;
        for (uint32_t posted = 0; at < last && posted < CAS_BATCH; at++) {
            if (!(table[at] & ROLEX_DEAD)) {
                table[at] &= ~ROLEX_LOCK;
                dm_post_cas(env->ctx, entry_at(model, head, at), table[at], table[at] | ROLEX_LOCK | ROLEX_DEAD,
                            &work->found[at]);
                posted++;
            }
        }
        DM_TRY(dm_commit(env->ctx));
        for (uint32_t i = from; i < at; i++) {
            if (table[i] & ROLEX_DEAD) {
                continue;
            }
            if (work->found[i] == table[i]) {
                table[i] |= ROLEX_DEAD;
            } else {
                table[i] = work->found[i] & ~(ROLEX_LOCK | ROLEX_DEAD);
                *left += 1;
            }
        }
    }
    return 0;
}

/* Removes the marks that this context has set. */
static void entries_restore(struct rolex_env *env, struct rolex_work *work, dm_addr model,
                            const struct rolex_head *head) {
    uint64_t *table = tables_table(work, head);
    for (uint32_t at = 0; at < head->leaves;) {
        for (uint32_t posted = 0; at < head->leaves && posted < CAS_BATCH; at++) {
            if (table[at] & ROLEX_DEAD) {
                table[at] &= ~ROLEX_DEAD;
                dm_post_write(env->ctx, entry_at(model, head, at), &table[at], sizeof(table[at]));
                posted++;
            }
        }
        if (dm_commit(env->ctx) < 0) {
            return;
        }
    }
}

/* After a failed attempt to mark entries removes also the marks that may have been set by it. Only who has marked the
 * first entry marks others. Of the first it is unknown whether the mark is this context's or another's: it stays. */
static void marks_remove(struct rolex_env *env, struct rolex_work *work, dm_addr model, const struct rolex_head *head,
                         bool is_mine, int rc) {
    const uint64_t *table = tables_table(work, head);
    if (!is_mine || dm_is_final(rc)) {
        return;
    }
    for (uint32_t at = 1; at < head->leaves;) {
        for (uint32_t posted = 0; at < head->leaves && posted < CAS_BATCH; at++) {
            if (!(table[at] & ROLEX_DEAD)) {
                dm_post_cas(env->ctx, entry_at(model, head, at), table[at] | ROLEX_LOCK | ROLEX_DEAD, table[at], NULL);
                posted++;
            }
        }
        if (dm_commit(env->ctx) < 0) {
            return;
        }
    }
    entries_restore(env, work, model, head);
}

static int model_lock(struct rolex_env *env, struct rolex_work *work, dm_addr model, const struct rolex_head *head) {
    uint64_t *table = tables_table(work, head);
    uint32_t attempts = 0;
    DM_TRY(dm_read(env->ctx, rolex_table(model, head), table, 8 * head->leaves));
    bool is_mine = false;
    for (uint32_t i = 0; i < head->leaves; i++) {
        if (table[i] & ROLEX_DEAD) {
            return DM_EXISTS;
        }
    }
    for (uint32_t tries = 1;; tries++) {
        uint32_t left;
        int rc = entries_mark(env, work, model, head, is_mine ? 1 : 0, is_mine ? head->leaves : 1, &left);
        if (rc < 0) {
            marks_remove(env, work, model, head, is_mine, rc);
            return rc;
        }
        if (!is_mine && left > 0 && work->found[0] & ROLEX_DEAD) {
            return DM_EXISTS;
        }
        if (left == 0 && is_mine) {
            return 0;
        }
        if (left == 0) {
            is_mine = true;
            tries = 0;
            continue;
        }
        rc = ix_retry(env->ctx, DM_RETRY_LOCK, &attempts, tries);
        if (rc < 0) {
            entries_restore(env, work, model, head);
            return rc;
        }
    }
}

/* ---- 2: the leaves ----------------------------------------------------------------------------------------------- */

static int by_low(const void *a, const void *b) {
    const struct rolex_member *x = a;
    const struct rolex_member *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

void rolex_members_sort(struct rolex_member *members, uint32_t count) {
    qsort(members, count, sizeof(*members), by_low);
}

/* Lists all leaves that the tables in work->words name. */
static int members_list(struct rolex_work *work, const struct rolex_head *head) {
    const uint64_t *slots = tables_slots(work);
    const uint64_t *table = tables_table(work, head);
    work->member_count = 0;
    for (uint32_t leaf = 0; leaf < head->leaves; leaf++) {
        uint64_t entry = table[leaf];
        for (;;) {
            if (work->member_count == work->member_max) {
                return DM_ERR_IO;
            }
            work->members[work->member_count++] = (struct rolex_member){.entry = rolex_entry_link(entry, 0)};
            unsigned slot = rolex_entry_synonym(entry);
            if (slot == 0) {
                break;
            }
            if (slot > head->synonyms) {
                return DM_ERR_IO;
            }
            entry = slots[slot];
        }
    }
    return 0;
}

static int members_read(struct rolex_env *env, struct rolex_work *work) {
    for (uint32_t at = 0; at < work->member_count;) {
        uint32_t end = work->member_count - at < READ_BATCH ? work->member_count : at + READ_BATCH;
        dm_addr addrs[READ_BATCH];
        for (uint32_t i = at; i < end; i++) {
            int rc = rolex_leaf_addr(env, work->members[i].entry, &addrs[i - at]);
            if (rc != 0) {
                return rc < 0 ? rc : DM_ERR_IO;
            }
        }
        for (uint32_t i = at; i < end; i++) {
            dm_post_read(env->ctx, addrs[i - at], work->lines + (size_t)i * DM_LINE, DM_LINE);
        }
        DM_TRY(dm_commit(env->ctx));
        at = end;
    }
    for (uint32_t i = 0; i < work->member_count; i++) {
        const char *image = work->lines + (size_t)i * DM_LINE + ix_lines_wire_offset(0);
        struct rolex_member *member = &work->members[i];
        member->low = rolex_low(image);
        member->high = rolex_high(image);
        member->count = rolex_count(&env->layout, image);
    }
    return 0;
}

static int members_take(struct rolex_env *env, struct rolex_work *work, dm_addr model, const struct rolex_head *head) {
    DM_TRY(dm_read(env->ctx, rolex_slots(model), tables_slots(work), 8 * (1 + (uint32_t)head->synonyms)));
    DM_TRY(members_list(work, head));
    DM_TRY(members_read(env, work));
    rolex_members_sort(work->members, work->member_count);
    uint64_t low = head->low;
    for (uint32_t i = 0; i < work->member_count; i++) {
        if (work->members[i].low != low || work->members[i].high <= low) {
            return DM_ERR_IO; /* the structure is broken; verify reports the same */
        }
        low = work->members[i].high;
    }
    return low == head->high ? 0 : DM_ERR_IO;
}

/* ---- 3: lines ---------------------------------------------------------------------------------------------------- */

int rolex_piece_add(struct rolex_work *work, const struct ix_plr_segment *segment, uint32_t first, uint32_t count) {
    if (work->piece_count == work->member_max || count == 0) {
        return DM_ERR_NO_MEMORY;
    }
    work->pieces[work->piece_count++] = (struct rolex_piece){segment->model, first, count};
    return 0;
}

/* Fits lines over the bounds alone: leaf i begins at label i * per_leaf. */
static int bounds_fit(struct rolex_env *env, struct rolex_work *work) {
    struct ix_plr_segment segment;
    uint32_t first = 0;
    work->piece_count = 0;
    (void)ix_plr_finish(work->plr, &segment);
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct rolex_member *member = &work->members[i];
        member->index = i;
        member->is_carried = false;
        if (i - first == env->params->model_leaves && ix_plr_finish(work->plr, &segment) == 1) {
            DM_TRY(rolex_piece_add(work, &segment, first, i - first));
            first = i;
        }
        int rc = ix_plr_add(work->plr, member->low, (uint64_t)i * env->per_leaf, &segment);
        DM_TRY(rc);
        if (rc == 1) {
            DM_TRY(rolex_piece_add(work, &segment, first, i - first));
            first = i;
        }
    }
    dm_charge(env->ctx, DM_WORK_TRAIN_KEY, work->member_count);
    return ix_plr_finish(work->plr, &segment) == 1 ? rolex_piece_add(work, &segment, first, work->member_count - first)
                                                   : DM_ERR_IO;
}

/* Finds the leaves that training read among the current ones; the others are carried. False if a leaf that training
 * read is missing, or there are too many carried ones. */
static bool trained_match(struct rolex_work *work, const struct rolex_head *head) {
    uint32_t seen = 0;
    uint32_t carried = 0; /* in this piece */
    uint32_t piece = 0;
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct rolex_member *member = &work->members[i];
        const struct rolex_member *next = &work->trained[seen];
        member->is_carried = seen == work->trained_count || next->low != member->low || next->entry != member->entry;
        if (!member->is_carried) {
            seen++;
            if (piece + 1 < work->piece_count && seen > work->pieces[piece + 1].first) {
                piece++;
                carried = 0;
            }
        } else if (seen == 0 || ++carried > head->synonyms) {
            return false;
        }
        member->index = seen - 1;
    }
    return seen == work->trained_count;
}

/* ---- 4: new models ----------------------------------------------------------------------------------------------- */

static uint32_t fork_bytes(const struct rolex_work *work) {
    return (uint32_t)(2 * sizeof(uint64_t) + work->piece_count * sizeof(struct rolex_branch));
}

static void models_free(struct rolex_env *env, struct rolex_work *work, const struct rolex_head *head, uint32_t made,
                        dm_addr fork) {
    for (uint32_t p = 0; p < made; p++) {
        dm_free(env->ctx, (dm_addr){work->addrs[p]}, rolex_model_bytes(work->pieces[p].count, head->synonyms),
                DM_MEM_MODEL);
    }
    if (!dm_addr_is_null(fork)) {
        dm_free(env->ctx, fork, fork_bytes(work), DM_MEM_MODEL);
    }
}

static int models_alloc(struct rolex_env *env, struct rolex_work *work, const struct rolex_head *head, unsigned node,
                        dm_addr *fork) {
    *fork = DM_NULL;
    if (work->piece_count > 1) {
        DM_TRY(dm_alloc(env->ctx, node, fork_bytes(work), DM_LINE, DM_MEM_MODEL, fork));
    }
    for (uint32_t p = 0; p < work->piece_count; p++) {
        dm_addr addr;
        uint32_t bytes = rolex_model_bytes(work->pieces[p].count, head->synonyms);
        int rc = dm_alloc(env->ctx, node, bytes, DM_LINE, DM_MEM_MODEL, &addr);
        if (rc < 0) {
            models_free(env, work, head, p, *fork);
            return rc;
        }
        work->addrs[p] = addr.bits;
    }
    return 0;
}

/* Writes the model of piece p. *at is the number of its first member, and afterwards that of the next piece's. */
static int model_write(struct rolex_env *env, struct rolex_work *work, const struct rolex_head *old, uint32_t p,
                       uint64_t parent, uint16_t flags, uint32_t *at) {
    const struct rolex_piece *piece = &work->pieces[p];
    uint32_t bytes = rolex_model_bytes(piece->count, old->synonyms);
    memset(work->object, 0, bytes);
    struct rolex_head head = {
        .low = work->members[*at].low,
        .line = piece->line,
        .leaves = piece->count,
        .synonyms = old->synonyms,
        .flags = flags,
        .parent = parent,
    };
    uint64_t *slots = work->object + DM_LINE / 8;
    uint64_t *table = slots + 1 + old->synonyms;
    for (; *at < work->member_count && work->members[*at].index < piece->first + piece->count; ++*at) {
        const struct rolex_member *member = &work->members[*at];
        uint64_t *entry = &table[member->index - piece->first];
        head.high = member->high;
        if (!member->is_carried) {
            *entry = member->entry;
        } else if (env->params->carry) {
            uint32_t slot = (uint32_t)++slots[0];
            slots[slot] = rolex_entry_link(member->entry, rolex_entry_synonym(*entry));
            *entry = rolex_entry_link(*entry, slot);
            head.flags |= ROLEX_WITH_CARRIED;
        }
    }
    memcpy(work->object, &head, sizeof(head));
    return dm_write(env->ctx, (dm_addr){work->addrs[p]}, work->object, bytes);
}

static int fork_write(struct rolex_env *env, struct rolex_work *work, dm_addr fork) {
    memset(work->object, 0, fork_bytes(work));
    work->object[0] = work->piece_count;
    uint32_t at = 0;
    for (uint32_t p = 0; p < work->piece_count; p++) {
        while (work->members[at].index < work->pieces[p].first) {
            at++;
        }
        struct rolex_branch branch = {work->members[at].low, work->addrs[p]};
        memcpy(work->object + 2 + 2 * (size_t)p, &branch, sizeof(branch));
    }
    return dm_write(env->ctx, fork, work->object, fork_bytes(work));
}

/* Lets the parent's word point to the new models. A second attempt must not write: if the first one took effect, the
 * new model may have been replaced already, by another context that has written the same word. */
static int parent_write(struct rolex_env *env, dm_addr model, uint64_t parent, const uint64_t *word, bool again) {
    dm_addr addr = {parent};
    return again ? dm_cas(env->ctx, addr, model.bits, *word, NULL) : dm_write(env->ctx, addr, word, sizeof(*word));
}

/* Lets the old model point to the new ones, and marks it as replaced. No other context writes these words. */
static int old_write(struct rolex_env *env, dm_addr model, const uint64_t *words) {
    dm_post_write(env->ctx, dm_addr_add(model, offsetof(struct rolex_head, forward)), &words[0], sizeof(words[0]));
    dm_post_write(env->ctx, rolex_slots(model), &words[1], sizeof(words[1]));
    return dm_commit(env->ctx);
}

/* The parent first: a client on that path finds the new model a little earlier than one that waits. */
static int pointers_write(struct rolex_env *env, dm_addr model, uint64_t parent, const uint64_t *words) {
    enum { FAILURES = 3 };
    int rc = parent_write(env, model, parent, &words[0], false);
    for (unsigned failures = 0; rc == DM_ERR_IO && failures < FAILURES; failures++) {
        rc = parent_write(env, model, parent, &words[0], true);
    }
    DM_TRY(rc);
    rc = old_write(env, model, words);
    for (unsigned failures = 0; rc == DM_ERR_IO && failures < FAILURES; failures++) {
        rc = old_write(env, model, words);
    }
    return rc;
}

/* *begun: a pointer may have been written. */
static int models_publish(struct rolex_env *env, struct rolex_work *work, dm_addr model, const struct rolex_head *head,
                          uint16_t flags, bool *begun) {
    dm_addr fork;
    DM_TRY(models_alloc(env, work, head, dm_addr_node(model), &fork));
    uint32_t at = 0;
    int rc = 0;
    for (uint32_t p = 0; p < work->piece_count && rc >= 0; p++) {
        uint64_t branch = fork.bits + 16 + p * sizeof(struct rolex_branch) + sizeof(uint64_t);
        rc = model_write(env, work, head, p, work->piece_count > 1 ? branch : head->parent, flags, &at);
    }
    rc = rc >= 0 && work->piece_count > 1 ? fork_write(env, work, fork) : rc;
    if (rc < 0) {
        models_free(env, work, head, work->piece_count, fork);
        return rc;
    }
    uint64_t *words = env->words + ROLEX_W_OWN + 6;
    words[0] = work->piece_count > 1 ? fork.bits | ROLEX_FORK : work->addrs[0];
    words[1] = tables_slots(work)[0] | ROLEX_RETIRED;
    *begun = true;
    return pointers_write(env, model, head->parent, words);
}

int rolex_replace(struct rolex_env *env, struct rolex_work *work, dm_addr model, bool trained) {
    struct rolex_head head;
    int rc = rolex_head_read(env, model, &head);
    if (rc != 0 || head.forward != 0) {
        return rc < 0 ? rc : rc > 0 ? DM_ERR_IO : DM_EXISTS;
    }
    rc = model_lock(env, work, model, &head);
    if (rc != 0) {
        return rc;
    }
    rc = members_take(env, work, model, &head);
    if (rc >= 0 && !(trained && trained_match(work, &head))) {
        rc = bounds_fit(env, work);
    }
    bool begun = false;
    rc = rc < 0 ? rc : models_publish(env, work, model, &head, trained ? ROLEX_BY_TRAINING : 0, &begun);
    if (rc < 0 && !begun && !dm_is_final(rc)) {
        entries_restore(env, work, model, &head);
    }
    return rc;
}
