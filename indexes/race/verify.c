/* SPDX-License-Identifier: Apache-2.0
 *
 * The self-check: the directory, every header, and that every slot names a block of a key that belongs there, once.
 */
#include <stdlib.h>
#include <string.h>

#include "indexes/shared/report.h"
#include "race.h"

struct verifier {
    struct race_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    struct ix_indirect *indirect;
    uint64_t *image; /* a subtable, with the line of its lock */
    uint64_t *keys;  /* of the words of the image */
    char *stage;
    uint32_t buckets;
    uint64_t slots; /* in all */
};

#define EXPECT(verifier, ...) IX_REPORT_EXPECT((verifier)->report, __VA_ARGS__)

static uint64_t *word_at(const struct verifier *verifier, uint64_t *of, uint32_t bucket, unsigned word) {
    (void)verifier;
    return &of[(size_t)(bucket + 1) * RACE_BUCKET_WORDS + word];
}

static int table_read(struct verifier *verifier, dm_addr table) {
    uint32_t n;
    for (uint32_t done = 0; done < verifier->cn->table_bytes; done += n) {
        n = verifier->cn->table_bytes - done < RACE_STAGE_BYTES ? verifier->cn->table_bytes - done : RACE_STAGE_BYTES;
        DM_TRY(dm_read(verifier->ctx, dm_addr_add(table, done), verifier->stage, n));
        memcpy((char *)verifier->image + done, verifier->stage, n);
    }
    return 0;
}

/* The blocks of a bucket: that each slot's key belongs to the bucket. [waits] */
static int bucket_check(struct verifier *verifier, uint32_t bucket, uint64_t header) {
    char *stage = verifier->stage;
    bool valid[RACE_SLOTS_MAX] = {false};
    EXPECT(verifier, *word_at(verifier, verifier->image, bucket, 0) == header, "bucket %u has header %llx, not %llx",
           bucket, (unsigned long long)*word_at(verifier, verifier->image, bucket, 0), (unsigned long long)header);
    for (unsigned i = 0; i < RACE_SLOTS_MAX; i++) {
        uint64_t slot = *word_at(verifier, verifier->image, bucket, i + 1);
        if (slot == 0) {
            continue;
        }
        EXPECT(verifier, i < verifier->cn->params->slots, "slot %u is in use", i);
        EXPECT(verifier, !race_slot_tentative(slot), "a slot is tentative");
        valid[i] = ix_indirect_post_read(verifier->indirect, race_slot_word(slot), false, stage + (size_t)i * DM_LINE);
        EXPECT(verifier, valid[i], "slot %llx names no block", (unsigned long long)slot);
    }
    DM_TRY(dm_commit(verifier->ctx));
    for (unsigned i = 0; i < RACE_SLOTS_MAX; i++) {
        uint64_t *slot = word_at(verifier, verifier->image, bucket, i + 1);
        uint64_t *key = word_at(verifier, verifier->keys, bucket, i + 1);
        if (!valid[i] || race_slot_tentative(*slot)) {
            *slot = 0;
            continue;
        }
        const char *block = stage + (size_t)i * DM_LINE;
        bool is_whole = verifier->cn->block_bytes == DM_LINE;
        if (!ix_indirect_has_key(verifier->indirect, race_slot_word(*slot), block, key)) {
            EXPECT(verifier, false, "slot %llx names a block that has been used again", (unsigned long long)*slot);
            *slot = 0;
            continue;
        }
        EXPECT(verifier, !is_whole || ix_indirect_intact(verifier->indirect, block),
               "slot %llx names a block with a wrong checksum", (unsigned long long)*slot);
        uint64_t hash = race_hash(*key);
        uint32_t buckets[RACE_BUCKETS];
        race_buckets(hash, race_groups(verifier->cn->params), buckets);
        bool belongs = bucket == buckets[0] || bucket == buckets[1] || bucket == buckets[2] || bucket == buckets[3];
        EXPECT(verifier,
               belongs && race_header_covers(header, hash) && race_slot_fingerprint(*slot) == race_fingerprint(hash),
               "key %llx does not belong to bucket %u", (unsigned long long)*key, bucket);
        verifier->report->keys++;
    }
    return 0;
}

static void duplicates_check(struct verifier *verifier, uint32_t bucket, unsigned word) {
    uint64_t key = *word_at(verifier, verifier->keys, bucket, word);
    uint32_t buckets[RACE_BUCKETS];
    race_buckets(race_hash(key), race_groups(verifier->cn->params), buckets);
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        for (unsigned i = 1; i < RACE_BUCKET_WORDS; i++) {
            if (*word_at(verifier, verifier->image, buckets[k], i) != 0 && (buckets[k] != bucket || i != word) &&
                *word_at(verifier, verifier->keys, buckets[k], i) == key) {
                ix_report_problem(verifier->report, "key %llx is there twice", (unsigned long long)key);
            }
        }
    }
}

/* [waits] */
static int table_check(struct verifier *verifier, uint64_t entry, uint64_t suffix) {
    dm_addr table = race_entry_table(entry);
    if (!dm_addr_valid(verifier->ctx, table, verifier->cn->table_bytes)) {
        ix_report_problem(verifier->report, "entry %llx has no subtable", (unsigned long long)suffix);
        return 0;
    }
    DM_TRY(table_read(verifier, table));
    EXPECT(verifier, verifier->image[0] == 0, "the lock of subtable %llx is held", (unsigned long long)suffix);
    verifier->report->leaves++;
    verifier->slots += verifier->buckets * verifier->cn->params->slots;
    for (uint32_t bucket = 0; bucket < verifier->buckets; bucket++) {
        DM_TRY(bucket_check(verifier, bucket, race_header(race_entry_depth(entry), suffix)));
    }
    for (uint32_t bucket = 0; bucket < verifier->buckets; bucket++) {
        for (unsigned i = 1; i < RACE_BUCKET_WORDS; i++) {
            if (*word_at(verifier, verifier->image, bucket, i) != 0) {
                duplicates_check(verifier, bucket, i);
            }
        }
    }
    return 0;
}

/* [waits] */
static int entries_check(struct verifier *verifier, uint64_t *entries, uint64_t depth, dm_addr remote) {
    uint64_t bytes = UINT64_C(8) << depth;
    for (uint64_t done = 0; done < bytes; done += RACE_STAGE_BYTES) {
        uint32_t n = bytes - done < RACE_STAGE_BYTES ? (uint32_t)(bytes - done) : RACE_STAGE_BYTES;
        DM_TRY(dm_read(verifier->ctx, dm_addr_add(remote, done), verifier->stage, n));
        memcpy((char *)entries + done, verifier->stage, n);
    }
    for (uint64_t i = 0; i < bytes / 8; i++) {
        unsigned local = race_entry_depth(entries[i]);
        EXPECT(verifier, local <= depth && entries[i] == entries[i & race_bits(local)],
               "directory entry %llx differs from that of its suffix", (unsigned long long)i);
        if (local <= depth && i <= race_bits(local)) {
            DM_TRY(table_check(verifier, entries[i], i));
        }
    }
    return 0;
}

/* [waits] */
static int directory_check(struct verifier *verifier) {
    uint64_t root[2];
    DM_TRY(dm_read(verifier->ctx, dm_addr_make(0, DM_DRAM, RACE_DEPTH_OFFSET), verifier->stage, RACE_ROOT_BYTES));
    memcpy(root, verifier->stage, sizeof(root));
    dm_addr remote = {root[1]};
    if (root[0] > RACE_DEPTH_MAX || !dm_addr_valid(verifier->ctx, remote, 8U << root[0])) {
        ix_report_problem(verifier->report, "the directory of %llu bits is not where it should be",
                          (unsigned long long)root[0]);
        return 0;
    }
    uint64_t *entries = calloc((size_t)1 << root[0], sizeof(*entries));
    int rc = entries ? entries_check(verifier, entries, root[0], remote) : DM_ERR_NO_MEMORY;
    free(entries);
    return rc;
}

int race_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct race_cn *cn = handle;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    uint64_t reused = 0;
    struct ix_indirect_config config = {.values = IX_VALUES_SLOT,
                                        .value_bytes = cn->shape->value_bytes,
                                        .padding = ix_key_padding(cn->shape),
                                        .checksum = cn->params->checksum != RACE_CHECKSUM_NONE,
                                        .reused = &reused};
    struct verifier verifier = {
        .cn = cn, .ctx = ctx, .report = report, .buckets = (uint32_t)race_groups(cn->params) * RACE_GROUP_BUCKETS};
    DM_TRY(ix_indirect_open(ctx, &config, &verifier.indirect));
    verifier.image = calloc(1, cn->table_bytes);
    verifier.keys = calloc(1, cn->table_bytes);
    verifier.stage = dm_local_alloc(ctx, RACE_STAGE_BYTES);
    bool has_all = verifier.image && verifier.keys && verifier.stage;
    int rc = has_all ? directory_check(&verifier) : DM_ERR_NO_MEMORY;
    free(verifier.image);
    free(verifier.keys);
    ix_indirect_close(verifier.indirect);
    report->leaf_fill = verifier.slots > 0 ? (double)report->keys / (double)verifier.slots : 0;
    return rc;
}
