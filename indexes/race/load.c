/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: the subtables are filled and split in local memory, as inserts would do it, and then written. Blocks are
 * written meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "race.h"

enum { KEYS_BLOCK = 1024, WRITE_BATCH = 256 };

/* A subtable in local memory. */
struct image {
    uint64_t *lines;  /* as in remote memory, without the line of the lock */
    uint64_t *hashes; /* of the key in each word of `lines` */
    uint64_t suffix;
    unsigned depth;
};

struct loader {
    struct race_cn *cn;
    struct dm_ctx *ctx;
    struct ix_indirect *indirect;
    struct image *images;
    uint32_t count, capacity;
    uint32_t *directory; /* indices of images */
    unsigned depth;
    uint32_t buckets;
    char *stage;
    uint64_t reused;
};

static size_t image_words(const struct loader *loader) {
    return (size_t)loader->buckets * RACE_BUCKET_WORDS;
}

static int image_add(struct loader *loader, uint64_t suffix, unsigned depth) {
    if (loader->count == loader->capacity) {
        uint32_t capacity = loader->capacity > 0 ? 2 * loader->capacity : 16;
        struct image *images = realloc(loader->images, capacity * sizeof(*images));
        if (!images) {
            return DM_ERR_NO_MEMORY;
        }
        loader->images = images;
        loader->capacity = capacity;
    }
    struct image image = {.suffix = suffix, .depth = depth};
    image.lines = calloc(image_words(loader), sizeof(uint64_t));
    image.hashes = calloc(image_words(loader), sizeof(uint64_t));
    loader->images[loader->count++] = image;
    return image.lines && image.hashes ? 0 : DM_ERR_NO_MEMORY;
}

static int directory_double(struct loader *loader) {
    size_t half = (size_t)1 << loader->depth;
    if (loader->depth == RACE_DEPTH_MAX) {
        return DM_ERR_NO_MEMORY;
    }
    uint32_t *directory = realloc(loader->directory, 2 * half * sizeof(*directory));
    if (!directory) {
        return DM_ERR_NO_MEMORY;
    }
    memcpy(directory + half, directory, half * sizeof(*directory));
    loader->directory = directory;
    loader->depth++;
    return 0;
}

static int image_split(struct loader *loader, uint32_t at) {
    if (loader->images[at].depth == loader->depth) {
        DM_TRY(directory_double(loader));
    }
    unsigned bit = loader->images[at].depth++;
    uint64_t suffix = loader->images[at].suffix | UINT64_C(1) << bit;
    DM_TRY(image_add(loader, suffix, bit + 1));
    struct image *from = &loader->images[at];
    struct image *to = &loader->images[loader->count - 1];
    for (uint64_t i = suffix; i <= race_bits(loader->depth); i += UINT64_C(2) << bit) {
        loader->directory[i] = loader->count - 1;
    }
    for (size_t i = 0; i < image_words(loader); i++) {
        if (from->lines[i] != 0 && (from->hashes[i] >> bit & 1)) {
            to->lines[i] = from->lines[i];
            to->hashes[i] = from->hashes[i];
            from->lines[i] = 0;
        }
    }
    return 0;
}

static int key_add(struct loader *loader, uint64_t key, const void *value) {
    uint64_t hash = race_hash(key);
    uint32_t buckets[RACE_BUCKETS];
    const void *stored;
    race_buckets(hash, race_groups(loader->cn->params), buckets);
    unsigned node = race_block_node(hash, dm_topology(loader->ctx)->mns);
    DM_TRY(ix_indirect_load(loader->indirect, node, key, value, &stored));
    uint64_t word = ix_indirect_word(loader->indirect, stored);
    for (;;) {
        uint32_t at = loader->directory[hash & race_bits(loader->depth)];
        struct image *image = &loader->images[at];
        struct race_lines lines;
        unsigned bucket;
        unsigned slot;
        for (unsigned k = 0; k < RACE_BUCKETS; k++) {
            lines.at[k] = image->lines + (size_t)buckets[k] * RACE_BUCKET_WORDS;
        }
        if (race_choose(&lines, NULL, (unsigned)loader->cn->params->slots, &bucket, &slot)) {
            size_t to = (size_t)buckets[bucket] * RACE_BUCKET_WORDS + slot + 1;
            image->lines[to] = race_slot(hash, loader->cn->block_bytes, word);
            image->hashes[to] = hash;
            return 0;
        }
        DM_TRY(image_split(loader, at));
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Writes an image to `table`, with its headers. [waits] */
static int image_write(struct loader *loader, struct image *image, dm_addr table) {
    for (uint32_t bucket = 0; bucket < loader->buckets; bucket++) {
        image->lines[(size_t)bucket * RACE_BUCKET_WORDS] = race_header(image->depth, image->suffix);
    }
    uint32_t bytes = loader->buckets * DM_LINE;
    uint32_t n;
    for (uint32_t done = 0; done < bytes; done += n) {
        n = bytes - done < RACE_STAGE_BYTES ? bytes - done : RACE_STAGE_BYTES;
        memcpy(loader->stage, (char *)image->lines + done, n);
        DM_TRY(dm_write(loader->ctx, dm_addr_add(table, RACE_HEAD_BYTES + (uint64_t)done), loader->stage, n));
    }
    return 0;
}

/* The subtables that format has made are used for the first images; the others are new. [waits] */
static int images_write(struct loader *loader, uint64_t *entries) {
    dm_addr remote = {loader->cn->directory.remote};
    uint64_t *stage = (uint64_t *)(void *)loader->stage;
    unsigned initial = (unsigned)loader->cn->params->initial_depth;
    for (uint32_t i = 0; i < loader->count; i++) {
        struct image *image = &loader->images[i];
        dm_addr table;
        if (image->suffix <= race_bits(initial)) {
            DM_TRY(dm_read(loader->ctx, dm_addr_add(remote, 8 * image->suffix), stage, sizeof(uint64_t)));
            table = race_entry_table(stage[0]);
        } else {
            DM_TRY(dm_alloc(loader->ctx, DM_ANY_NODE, loader->cn->table_bytes, DM_LINE, DM_MEM_LEAF, &table));
        }
        DM_TRY(image_write(loader, image, table));
        entries[i] = race_entry(table, image->depth);
    }
    uint64_t count = UINT64_C(1) << loader->depth;
    uint64_t n;
    if (loader->depth > initial) {
        DM_TRY(dm_alloc(loader->ctx, 0, (uint32_t)(8 * count), DM_LINE, DM_MEM_INNER, &remote));
    }
    for (uint64_t first = 0; first < count; first += n) {
        n = count - first < RACE_STAGE_BYTES / 8 ? count - first : RACE_STAGE_BYTES / 8;
        for (uint64_t i = 0; i < n; i++) {
            stage[i] = entries[loader->directory[first + i]];
        }
        DM_TRY(dm_write(loader->ctx, dm_addr_add(remote, 8 * first), stage, (uint32_t)n * 8));
    }
    stage[0] = loader->depth;
    stage[1] = remote.bits;
    return dm_write(loader->ctx, dm_addr_make(0, DM_DRAM, RACE_DEPTH_OFFSET), stage, RACE_ROOT_BYTES);
}

/* ---- reading the pairs ------------------------------------------------------------------------------------------- */

/* The images to begin with: as many as the keys need at least. */
static int loader_begin(struct loader *loader, uint64_t keys) {
    uint64_t slots = (uint64_t)loader->buckets * loader->cn->params->slots;
    loader->depth = (unsigned)loader->cn->params->initial_depth;
    while (loader->depth < RACE_DEPTH_MAX && keys >> loader->depth > slots) {
        loader->depth++;
    }
    loader->directory = calloc((size_t)1 << loader->depth, sizeof(*loader->directory));
    if (!loader->directory) {
        return DM_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i <= race_bits(loader->depth); i++) {
        DM_TRY(image_add(loader, i, loader->depth));
        loader->directory[i] = i;
    }
    return 0;
}

static int pairs_add(struct loader *loader, const struct ix_pairs *pairs, uint64_t *keys, char *value) {
    uint64_t n;
    for (uint64_t done = 0; done < pairs->count; done += n) {
        n = pairs->keys(pairs, done, pairs->count - done < KEYS_BLOCK ? pairs->count - done : KEYS_BLOCK, keys);
        for (uint64_t i = 0; i < n; i++) {
            pairs->value(pairs, keys[i], value);
            DM_TRY(key_add(loader, keys[i], value));
        }
        if (n == 0) {
            break;
        }
    }
    return ix_indirect_flush(loader->indirect);
}

static int load_all(struct loader *loader, const struct ix_pairs *pairs) {
    DM_TRY(loader_begin(loader, pairs->count));
    uint64_t *keys = calloc(KEYS_BLOCK, sizeof(*keys));
    char *value = calloc(1, loader->cn->shape->value_bytes);
    int rc = keys && value ? pairs_add(loader, pairs, keys, value) : DM_ERR_NO_MEMORY;
    free(keys);
    free(value);
    DM_TRY(rc);
    uint64_t *entries = calloc(loader->count, sizeof(*entries));
    rc = entries ? images_write(loader, entries) : DM_ERR_NO_MEMORY;
    free(entries);
    DM_TRY(rc);
    return race_directory_open(loader->cn, loader->ctx, (uint64_t *)(void *)loader->stage);
}

int race_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct race_cn *cn = handle;
    struct loader loader = {.cn = cn, .ctx = ctx, .buckets = (uint32_t)race_groups(cn->params) * RACE_GROUP_BUCKETS};
    struct ix_indirect_config config = {.values = IX_VALUES_SLOT,
                                        .value_bytes = cn->shape->value_bytes,
                                        .padding = ix_key_padding(cn->shape),
                                        .checksum = cn->params->checksum != RACE_CHECKSUM_NONE,
                                        .reused = &loader.reused};
    (void)err;
    DM_TRY(ix_indirect_open(ctx, &config, &loader.indirect));
    loader.stage = dm_local_alloc(ctx, RACE_STAGE_BYTES);
    int rc = loader.stage ? load_all(&loader, pairs) : DM_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < loader.count; i++) {
        free(loader.images[i].lines);
        free(loader.images[i].hashes);
    }
    free(loader.images);
    free(loader.directory);
    ix_indirect_close(loader.indirect);
    return rc;
}
