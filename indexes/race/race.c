/* SPDX-License-Identifier: Apache-2.0
 *
 * RACE's table: parameters and their checks; format; open and close; attach and detach.
 */
#include "race.h"

enum {
    VALUE_MAX = 4096,
    SUBTABLE_MAX = 4 << 20,
    WORDS = 128,          /* of a client's small writes and results */
    STORED_FILL_ODDS = 4, /* of the slots of small subtables, one in so many is in use at least */
    DIRECTORY_BYTES = 128 /* a subtable: entries of which some are for the same one, and the directories before */
};

static const char *const insert_modes[] = {"tentative", "published", "blind", NULL};
static const char *const block_modes[] = {"checked", "unchecked", NULL};
static const char *const checksums[] = {"none", "bitwise", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct race_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(subtable, DM_OPT_BYTES, .initial = "96K", .min = RACE_GROUP_BYTES, .max = SUBTABLE_MAX,
        .help = "Size of a subtable: as many groups of 192 bytes, two main buckets and an overflow bucket, as fit."),
    ROW(slots, DM_OPT_COUNT, .initial = "7", .min = 1, .max = RACE_SLOTS_MAX,
        .help = "Slots of a bucket that are used; fewer than 7 make a small table for tests."),
    ROW(initial_depth, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 16, .unit = "bits",
        .help = "The table begins with two to the power of this subtables."),
    ROW(insert, DM_OPT_ENUM, .initial = "tentative", .choices = insert_modes,
        .help = "A slot counts after the buckets have been read again; published (wrong): at once, and of several the "
                "lowest one stays; blind (wrong): the buckets are not read again."),
    ROW(blocks, DM_OPT_ENUM, .initial = "checked", .choices = block_modes,
        .help = "Readers compare a block's stamps with the slot's; unchecked (wrong): any block with the key will do."),
    ROW(checksum, DM_OPT_ENUM, .initial = "none", .added = true, .choices = checksums,
        .help =
            "Blocks end with a CRC-32, which writers compute and readers compare, bit by bit as a published program "
            "does; stamps make it unnecessary."),
    ROW(check_headers, DM_OPT_BOOL, .initial = "on",
        .help = "Readers compare local depth and suffix in the headers with the key's hash; off (wrong)."),
    DM_OPT_END,
};

static const struct ix_wrong wrong_values[] = {
    {"insert", "blind", 200, "two inserts of a key in two slots, or one in a subtable that has split"},
    {"insert", "published", 200, "the value of an insert that is taken back is read, or two inserts succeed"},
    {"blocks", "unchecked", 100, "a block that has been used again is taken for what it was"},
    {"check_headers", "off", 40, "a key that a split has moved is looked for in the old subtable"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"subtable", "192"}, {"slots", "1"}, {.param = NULL}};

static const struct ix_counter counters[] = {RACE_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

/* Subtables that have just been split are less than half full, and small ones differ in their numbers of keys. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct race_params *params = values;
    const struct dm_topology *topology = shape->topology;
    double slots = (double)(race_groups(params) * RACE_GROUP_BUCKETS * params->slots);
    double tables = (double)keys / slots * STORED_FILL_ODDS + (double)(UINT64_C(1) << params->initial_depth) + 2;
    double all = tables * race_table_bytes(race_groups(params)) +
                 ix_indirect_memory(IX_VALUES_SLOT, shape->value_bytes + race_block_extra(params, shape), keys, shape);
    return DM_RESERVED_BYTES + (uint64_t)(DIRECTORY_BYTES * tables) + (uint64_t)(all / topology->mns * 1.1) +
           8 * (uint64_t)race_table_bytes(race_groups(params));
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct race_params *params = values;
    if (shape->topology->mn_bytes > IX_INDIRECT_SLOT_MEMORY) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes of %llu bytes: a slot addresses 128 GiB",
                       (unsigned long long)shape->topology->mn_bytes);
    }
    uint64_t tables = UINT64_C(1) << params->initial_depth;
    uint64_t least =
        DM_RESERVED_BYTES + 8 * tables + (tables / shape->topology->mns + 1) * race_table_bytes(race_groups(params));
    if (shape->topology->mn_bytes > 0 && shape->topology->mn_bytes < least) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes of %llu bytes: an empty table needs %llu",
                       (unsigned long long)shape->topology->mn_bytes, (unsigned long long)least);
    }
    return ix_values_check(IX_VALUES_SLOT, shape->value_bytes, err);
}

/* ---- format ------------------------------------------------------------------------------------------------------ */

/* An empty subtable. [waits] */
static int table_format(struct dm_ctx *ctx, const struct race_params *params, uint64_t suffix, uint64_t *line,
                        dm_addr *table) {
    DM_TRY(dm_alloc(ctx, DM_ANY_NODE, race_table_bytes(race_groups(params)), DM_LINE, DM_MEM_LEAF, table));
    line[0] = race_header((unsigned)params->initial_depth, suffix);
    uint32_t buckets = (uint32_t)race_groups(params) * RACE_GROUP_BUCKETS;
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        dm_post_write(ctx, race_bucket_addr(*table, bucket), line, DM_LINE);
        if (bucket % (DM_BATCH_MAX / 2) == DM_BATCH_MAX / 2 - 1) {
            DM_TRY(dm_commit(ctx));
        }
    }
    return dm_commit(ctx);
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct race_params *params = values;
    dm_addr directory;
    (void)shape;
    (void)err;
    uint64_t *line = dm_local_alloc(ctx, DM_LINE);
    uint64_t *word = dm_local_alloc(ctx, RACE_ROOT_BYTES);
    if (!line || !word) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_alloc(ctx, 0, 8U << params->initial_depth, DM_LINE, DM_MEM_INNER, &directory));
    for (uint64_t suffix = 0; suffix <= race_bits((unsigned)params->initial_depth); suffix++) {
        dm_addr table;
        DM_TRY(table_format(ctx, params, suffix, line, &table));
        word[0] = race_entry(table, (unsigned)params->initial_depth);
        DM_TRY(dm_write(ctx, dm_addr_add(directory, 8 * suffix), word, sizeof(uint64_t)));
    }
    word[0] = params->initial_depth;
    word[1] = directory.bits;
    return dm_write(ctx, dm_addr_make(0, DM_DRAM, RACE_DEPTH_OFFSET), word, RACE_ROOT_BYTES);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct race_cn *cn = handle;
    race_directory_close(&cn->directory);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct race_cn *cn = handle;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->table_bytes = race_table_bytes(race_groups(cn->params));
    cn->block_bytes = ix_indirect_block_bytes(shape->value_bytes + race_block_extra(cn->params, shape));
    uint64_t *buffer = dm_local_alloc(ctx, RACE_STAGE_BYTES);
    return buffer ? race_directory_open(cn, ctx, buffer) : DM_ERR_NO_MEMORY;
}

static uint64_t cache_bytes(const void *handle) {
    const struct race_cn *cn = handle;
    return race_directory_bytes(&cn->directory);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct race_client *client = handle;
    ix_indirect_close(client->indirect);
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct race_client *client = handle;
    struct race_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    client->token = dm_ctx_id(ctx);
    client->now.wire = dm_local_alloc(ctx, 2 * RACE_COMBINED_BYTES);
    client->old.wire = dm_local_alloc(ctx, 2 * RACE_COMBINED_BYTES);
    client->root = dm_local_alloc(ctx, RACE_ROOT_BYTES + sizeof(uint64_t));
    client->words = dm_local_alloc(ctx, WORDS * sizeof(uint64_t));
    client->olds = dm_local_alloc(ctx, WORDS * sizeof(uint64_t));
    client->blocks = dm_local_alloc(ctx, (RACE_FETCH_MAX + 1) * cn->block_bytes);
    client->stage = dm_local_alloc(ctx, RACE_STAGE_BYTES);
    if (!client->now.wire || !client->old.wire || !client->root || !client->words || !client->olds || !client->blocks ||
        !client->stage) {
        return DM_ERR_NO_MEMORY;
    }
    client->chosen = client->blocks + RACE_FETCH_MAX * cn->block_bytes;
    struct ix_indirect_config indirect = {
        .values = cn->params->blocks == RACE_BLOCKS_CHECKED ? IX_VALUES_SLOT : IX_VALUES_SLOT_UNCHECKED,
        .value_bytes = cn->shape->value_bytes,
        .padding = ix_key_padding(cn->shape),
        .checksum = cn->params->checksum != RACE_CHECKSUM_NONE,
        .reused = &client->counts[RACE_BLOCK_REUSED],
    };
    return ix_indirect_open(ctx, &indirect, &client->indirect);
}

const struct ix_ops ix_ops_race = {
    .name = "race",
    .summary = "extendible hash table with two choices and shared overflow buckets; one-sided verbs only; no scans",
    .paper = "P. Zuo, J. Sun, L. Yang, S. Zhang, Y. Hua: One-sided RDMA-Conscious Extendible Hashing for Disaggregated "
             "Memory, USENIX ATC 2021",
    .caps = IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_RESIZE,
    .params = params_table,
    .params_bytes = sizeof(struct race_params),
    .counters = counters,
    .counts_offset = offsetof(struct race_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .value_bytes_max = VALUE_MAX,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct race_cn),
    .client_bytes = sizeof(struct race_client),
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = race_load,
    .attach = attach,
    .detach = detach,
    .get = race_get,
    .insert = race_insert,
    .update = race_update,
    .remove = race_remove,
    .cache_bytes = cache_bytes,
    .verify = race_verify,
};
