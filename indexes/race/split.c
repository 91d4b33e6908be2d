/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizing: the subtable of a suffix of d bits is split into itself, for the hashes whose next bit is 0, and a new one.
 *
 *  1. Lock the subtable against other splits, and write the new one, which is locked, too, and whose headers say
 *     `filling`.
 *  2. Enter it in the directory. Who comes to it reads the old subtable first, and inserts only into slots that are
 *     empty in both.
 *  3. Give the old subtable's headers d + 1 bits. From now on no insert of a moving key commits there, because it reads
 *     the headers after it has taken its slot.
 *  4. Move the slots, each to the same location: compare-and-swap of the new slot to a tentative copy; of the old slot
 *     to a mark that nothing else writes, race_slot_leaving; then the copy counts and the old slot is emptied. If one
 * of the swaps fails, the slot has been updated or deleted: the copy is taken back, and what is there now is looked at
 *     again.
 *  5. Take `filling` from the new headers, and unlock both.
 *
 * Reads, updates and deletes continue all the time; an insert waits only if it finds no slot that is empty in both.
 *
 * From step 2 on the split must be finished before any other one: a second split of the same subtable would move slots
 * to a third one and leave out those of the first. So verbs that complete in error are repeated, and a client that
 * cannot finish keeps the locks. To be repeatable, a swap is followed by a state that shows whether it took effect, and
 * a write that is repeated becomes a swap, as others may have changed the slot since.
 */
#include <string.h>

#include "race.h"

enum {
    BATCH = 256,
    CHUNK_GROUPS = 4, /* moved together */
    CHUNK_BUCKETS = CHUNK_GROUPS * RACE_GROUP_BUCKETS,
    CHUNK_SLOTS = CHUNK_BUCKETS * RACE_SLOTS_MAX,
};

_Static_assert((CHUNK_BUCKETS + CHUNK_SLOTS) * DM_LINE <= RACE_STAGE_BYTES, "a chunk and its blocks must fit");

struct split {
    struct race_client *client;
    dm_addr table, fresh;
    uint64_t suffix;
    unsigned depth; /* of both, afterwards */
    uint32_t buckets;
    uint64_t entries; /* slots of the old subtable that were in use */
    bool entered;     /* in the directory: the split must be finished */
};

static uint64_t upper_suffix(const struct split *split) {
    return split->suffix | UINT64_C(1) << (split->depth - 1);
}

/* ---- steps, which may be repeated -------------------------------------------------------------------------------- */

/* Writes the new subtable: the lock, which is taken, headers and empty slots. [waits] */
static int fresh_write(const struct split *split) {
    struct race_client *client = split->client;
    uint64_t *stage = (uint64_t *)(void *)client->stage;
    const uint32_t lines = RACE_STAGE_BYTES / DM_LINE;
    memset(stage, 0, RACE_STAGE_BYTES);
    stage[0] = client->token;
    DM_TRY(dm_write(client->ctx, split->fresh, stage, RACE_HEAD_BYTES));
    for (uint32_t line = 0; line < lines; line++) {
        stage[line * RACE_BUCKET_WORDS] = race_header(split->depth, upper_suffix(split)) | RACE_HEADER_FILLING;
    }
    uint32_t n;
    for (uint32_t bucket = 0; bucket < split->buckets; bucket += n) {
        n = split->buckets - bucket < lines ? split->buckets - bucket : lines;
        dm_post_write(client->ctx, race_bucket_addr(split->fresh, bucket), stage, n * DM_LINE);
    }
    return dm_commit(client->ctx);
}

/* Writes a header to all buckets. [waits] */
static int headers_write(const struct split *split, dm_addr table, uint64_t header) {
    struct race_client *client = split->client;
    client->words[0] = header;
    for (uint32_t bucket = 0; bucket < split->buckets; bucket++) {
        dm_post_write(client->ctx, race_bucket_addr(table, bucket), client->words, sizeof(uint64_t));
        if (bucket % BATCH == BATCH - 1) {
            DM_TRY(dm_commit(client->ctx));
        }
    }
    return dm_commit(client->ctx);
}

static int old_close(const struct split *split) {
    return headers_write(split, split->table, race_header(split->depth, split->suffix));
}

static int fresh_open(const struct split *split) {
    return headers_write(split, split->fresh, race_header(split->depth, upper_suffix(split)));
}

/* [waits] */
static int step_finish(const struct split *split, int (*step)(const struct split *)) {
    uint32_t failures = 0;
    int rc;
    do {
        rc = race_repeat(split->client, step(split), &failures);
    } while (rc == RACE_AGAIN);
    return rc;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* A slot of a chunk that moves. */
struct mover {
    uint32_t bucket;
    unsigned slot;
    uint64_t word;
    bool overtaken; /* by an update or a delete */
};

/* Reads the chunk, and the keys of its *used slots; those whose keys move are the movers. *again: something must be
 * waited for. [waits] */
static int chunk_read(const struct split *split, uint32_t first, uint32_t buckets, struct mover *movers,
                      unsigned *used_count, unsigned *count, bool *again) {
    struct race_client *client = split->client;
    uint64_t *image = (uint64_t *)(void *)client->stage;
    char *heads = client->stage + CHUNK_BUCKETS * DM_LINE;
    unsigned used = 0;
    *used_count = 0;
    *count = 0;
    DM_TRY(dm_read(client->ctx, race_bucket_addr(split->table, first), image, buckets * DM_LINE));
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        for (unsigned i = 0; i < client->cn->params->slots; i++) {
            uint64_t slot = image[bucket * RACE_BUCKET_WORDS + i + 1];
            if (slot == 0) {
                continue;
            }
            movers[used] = (struct mover){first + bucket, i, slot, false};
            if (ix_indirect_post_read(client->indirect, race_slot_word(slot), false, heads + used * DM_LINE)) {
                used++;
            } else {
                *again = true;
            }
        }
    }
    DM_TRY(dm_commit(client->ctx));
    dm_charge(client->ctx, DM_WORK_LINE_COPY, buckets);
    dm_charge(client->ctx, DM_WORK_HASH, used);
    *used_count = used;
    for (unsigned i = 0; i < used; i++) {
        uint64_t key;
        if (!ix_indirect_has_key(client->indirect, race_slot_word(movers[i].word), heads + i * DM_LINE, &key)) {
            *again = true;
        } else if (race_hash(key) >> (split->depth - 1) & 1) {
            if (race_slot_tentative(movers[i].word)) {
                *again = true;
            } else {
                movers[(*count)++] = movers[i];
            }
        }
    }
    return 0;
}

/* The slot of a mover in the new subtable, or in the old one. */
static dm_addr mover_addr(dm_addr table, const struct mover *mover) {
    return race_slot_addr(table, mover->bucket, mover->slot);
}

/* Sends what was posted for the movers. RACE_AGAIN if it is to be posted again. [waits] */
static int movers_commit(const struct split *split, uint32_t *failures) {
    return race_repeat(split->client, dm_commit(split->client->ctx), failures);
}

/* Puts tentative copies into the new subtable, and keeps the movers for which this succeeded: an insert may be there
 * because the old slot has been emptied since it was read. [waits] */
static int copies_put(const struct split *split, struct mover *movers, unsigned *count) {
    struct race_client *client = split->client;
    uint32_t failures = 0;
    unsigned kept = 0;
    int rc;
    do {
        for (unsigned i = 0; i < *count; i++) {
            dm_post_cas(client->ctx, mover_addr(split->fresh, &movers[i]), 0, movers[i].word | RACE_SLOT_TENTATIVE,
                        &client->olds[i]);
        }
        rc = movers_commit(split, &failures);
    } while (rc == RACE_AGAIN);
    DM_TRY(rc);
    for (unsigned i = 0; i < *count; i++) {
        if (client->olds[i] == 0 || client->olds[i] == (movers[i].word | RACE_SLOT_TENTATIVE)) {
            movers[kept++] = movers[i];
        }
    }
    *count = kept;
    return 0;
}

/* Marks the old slots of the movers. A mover whose slot has changed has ->overtaken afterwards. [waits] */
static int olds_mark(const struct split *split, struct mover *movers, unsigned count) {
    struct race_client *client = split->client;
    uint32_t failures = 0;
    int rc;
    do {
        for (unsigned i = 0; i < count; i++) {
            dm_post_cas(client->ctx, mover_addr(split->table, &movers[i]), movers[i].word,
                        race_slot_leaving(movers[i].word), &client->olds[i]);
        }
        rc = movers_commit(split, &failures);
    } while (rc == RACE_AGAIN);
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        movers[i].overtaken = client->olds[i] != movers[i].word && client->olds[i] != race_slot_leaving(movers[i].word);
    }
    return rc;
}

/* The copies count, and the old slots become empty; a copy that was overtaken becomes empty. [waits] */
static int movers_settle(const struct split *split, const struct mover *movers, unsigned count) {
    struct race_client *client = split->client;
    uint64_t *empty = &client->words[CHUNK_SLOTS];
    uint32_t failures = 0;
    *empty = 0;
    for (unsigned i = 0; i < count; i++) {
        client->words[i] = movers[i].overtaken ? 0 : movers[i].word;
        dm_post_write(client->ctx, mover_addr(split->fresh, &movers[i]), &client->words[i], sizeof(uint64_t));
        if (!movers[i].overtaken) {
            dm_post_write(client->ctx, mover_addr(split->table, &movers[i]), empty, sizeof(uint64_t));
        }
    }
    int rc = movers_commit(split, &failures);
    while (rc == RACE_AGAIN) {
        for (unsigned i = 0; i < count; i++) {
            uint64_t word = movers[i].word;
            dm_post_cas(client->ctx, mover_addr(split->fresh, &movers[i]), word | RACE_SLOT_TENTATIVE,
                        movers[i].overtaken ? 0 : word, &client->olds[i]);
            if (!movers[i].overtaken) {
                dm_post_cas(client->ctx, mover_addr(split->table, &movers[i]), race_slot_leaving(word), 0,
                            &client->olds[i]);
            }
        }
        rc = movers_commit(split, &failures);
    }
    return rc;
}

/* Moves slots. *again: one has changed meanwhile. [waits] */
static int chunk_move(const struct split *split, struct mover *movers, unsigned count, bool *again) {
    struct race_client *client = split->client;
    unsigned put = count;
    unsigned moved = 0;
    DM_TRY(copies_put(split, movers, &put));
    DM_TRY(olds_mark(split, movers, put));
    DM_TRY(movers_settle(split, movers, put));
    for (unsigned i = 0; i < put; i++) {
        moved += !movers[i].overtaken;
    }
    client->counts[RACE_SPLIT_MOVED] += moved;
    client->counts[RACE_SPLIT_OVERTAKEN] += count - moved;
    *again = *again || moved < count;
    return 0;
}

static int slots_move(struct split *split) {
    struct mover movers[CHUNK_SLOTS];
    uint32_t n;
    for (uint32_t first = 0; first < split->buckets; first += n) {
        uint32_t attempts = 0;
        uint32_t failures = 0;
        bool again = true;
        n = split->buckets - first < CHUNK_BUCKETS ? split->buckets - first : CHUNK_BUCKETS;
        while (again) {
            unsigned used;
            unsigned count;
            again = false;
            int rc = race_repeat(split->client, chunk_read(split, first, n, movers, &used, &count, &again), &failures);
            if (rc == RACE_AGAIN) {
                again = true;
                continue;
            }
            DM_TRY(rc);
            split->entries += attempts == 0 ? used : 0;
            DM_TRY(chunk_move(split, movers, count, &again));
            DM_TRY(again ? ix_retry(split->client->ctx, DM_RETRY_LOCK, &attempts, 0) : 0);
        }
    }
    return 0;
}

/* With the subtable's lock held. [waits] */
static int split_locked(struct race_client *client, struct split *split, uint64_t hash) {
    dm_addr table = split->table;
    DM_TRY(dm_read(client->ctx, race_bucket_addr(table, client->buckets[0]), client->words, sizeof(uint64_t)));
    uint64_t header = client->words[0];
    if (!race_header_covers(header, hash) || race_header_filling(header) ||
        race_header_depth(header) != race_header_depth(client->now.lines.at[0][0])) {
        return 0; /* another client has split it */
    }
    split->suffix = race_header_suffix(header);
    split->depth = race_header_depth(header) + 1;
    DM_TRY(dm_alloc(client->ctx, DM_ANY_NODE, client->cn->table_bytes, DM_LINE, DM_MEM_LEAF, &split->fresh));
    int rc = step_finish(split, fresh_write);
    rc = rc != 0 ? rc : race_directory_split(client, split->suffix, split->depth, table, split->fresh, &split->entered);
    if (rc != 0 && !split->entered && !dm_is_final(rc)) {
        dm_free(client->ctx, split->fresh, client->cn->table_bytes, DM_MEM_LEAF);
    }
    DM_TRY(rc);
    DM_TRY(step_finish(split, old_close));
    DM_TRY(slots_move(split));
    client->counts[RACE_SPLIT]++;
    client->counts[RACE_SPLIT_ENTRIES] += split->entries;
    client->counts[RACE_SPLIT_SLOTS] += split->buckets * client->cn->params->slots;
    return step_finish(split, fresh_open);
}

int race_split(struct race_client *client, uint64_t hash, uint32_t *attempts) {
    struct split split = {
        .client = client,
        .table = client->now.table,
        .buckets = (uint32_t)race_groups(client->cn->params) * RACE_GROUP_BUCKETS,
    };
    bool taken;
    client->token += UINT64_C(1) << 32;
    DM_TRY(race_lock_take(client, split.table, &taken));
    if (!taken) {
        client->counts[RACE_SPLIT_BUSY]++;
        return ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0);
    }
    int rc = split_locked(client, &split, hash);
    if (dm_is_final(rc) || (rc != 0 && split.entered)) {
        return rc;
    }
    int given = race_locks_give(client, (dm_addr[]){split.table, split.fresh}, split.entered ? 2 : 1);
    DM_TRY(rc != 0 ? rc : given);
    return dm_retry(client->ctx, DM_RETRY_MOVED, attempts);
}
