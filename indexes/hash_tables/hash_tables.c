/* SPDX-License-Identifier: Apache-2.0
 *
 * Not an index but a measurement in the form of one, so that runs, sweeps and figures can use it. Bulk load fills hash
 * tables one by one with the keys, each until a key does not fit. verify reports the mean load at that moment
 * (`leaf_fill`) and the number of tables. A client's inserts fill tables likewise, and counters sum their loads. Other
 * operations do nothing.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "indexes/index.h"
#include "table.h"

enum { KEYS_BLOCK = 1024 };

struct params {
    unsigned scheme;
    uint64_t entries, reach;
};

static const char *const schemes[] = {"hopscotch", "associative", "race", "farm", NULL}; /* as enum hash_table_scheme */

#define ROW(member, ...) DM_OPT_ROW(struct params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(scheme, DM_OPT_ENUM, .initial = "hopscotch", .choices = schemes,
        .help = "How the table finds an entry for a key."),
    ROW(entries, DM_OPT_COUNT, .initial = "128", .min = 1, .max = HASH_TABLE_ENTRIES_MAX,
        .help = "Entries of a table."),
    ROW(reach, DM_OPT_COUNT, .initial = "8", .min = 1, .max = HASH_TABLE_ENTRIES_MAX, .unit = "entries",
        .help = "Entries that a lookup reads: a neighbourhood, one bucket, two (farm) or four (race)."),
    DM_OPT_END,
};

struct cn {
    const struct params *params;
    uint32_t value_bytes;
    uint64_t tables, keys; /* filled tables, and the keys in them */
};

/* The counters have the names that they have in an index whose tables split, so that both can be drawn together. */
#define HASH_TABLES_COUNTERS(X)                                                                                        \
    X(TABLE_FULL, "split", 0)            /* tables that a key did not fit in */                                        \
    X(TABLE_ENTRIES, "split_entries", 0) /* their entries in use, summed */                                            \
    X(TABLE_SLOTS, "split_slots", 0)     /* all their entries, summed */

enum counter {
#define X(name, text, rare) name,
    HASH_TABLES_COUNTERS(X)
#undef X
        COUNTER_COUNT,
};

static const struct ix_counter counters[] = {HASH_TABLES_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

struct client {
    const struct params *params;
    uint32_t value_bytes;
    struct hash_table table;
    uint64_t counts[COUNTER_COUNT];
};

static struct hash_table_shape shape_of(const struct params *params) {
    return (struct hash_table_shape){
        .scheme = params->scheme, .entries = (uint32_t)params->entries, .reach = (uint32_t)params->reach};
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct params *params = values;
    struct hash_table_shape table = shape_of(params);
    (void)shape;
    if (hash_table_bucket(&table) == 0) {
        return dm_fail(err, DM_ERR_INVALID,
                       "%s cannot read %u of %u entries: reach must be a multiple of %d, and the buckets must fit",
                       schemes[params->scheme], table.reach, table.entries,
                       table.scheme == HASH_TABLE_RACE   ? 4
                       : table.scheme == HASH_TABLE_FARM ? 2
                                                         : 1);
    }
    return 0;
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    (void)values;
    (void)shape;
    (void)keys;
    return DM_RESERVED_BYTES;
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = values;
    cn->value_bytes = shape->value_bytes;
    return 0;
}

/* A table counts once a key did not fit; the last one, in which the keys end, does not count. */
static int load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct cn *cn = handle;
    struct hash_table_shape shape = shape_of(cn->params);
    struct hash_table *table = malloc(sizeof(*table));
    uint64_t *keys = calloc(KEYS_BLOCK, sizeof(*keys));
    (void)ctx;
    (void)err;
    if (!table || !keys) {
        free(table);
        free(keys);
        return DM_ERR_NO_MEMORY;
    }
    hash_table_init(table, &shape);
    for (uint64_t done = 0; done < pairs->count;) {
        uint64_t n = pairs->keys(pairs, done, KEYS_BLOCK, keys);
        for (uint64_t i = 0; i < n; i++) {
            if (!hash_table_put(table, keys[i])) {
                cn->tables++;
                cn->keys += table->used;
                hash_table_init(table, &shape);
                hash_table_put(table, keys[i]);
            }
        }
        done = n > 0 ? done + n : pairs->count;
    }
    free(table);
    free(keys);
    return 0;
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct client *client = handle;
    const struct cn *cn = cn_handle;
    (void)ctx;
    (void)err;
    client->params = cn->params;
    client->value_bytes = cn->value_bytes;
    struct hash_table_shape shape = shape_of(client->params);
    hash_table_init(&client->table, &shape);
    return 0;
}

static int get(void *handle, uint64_t key, void *value) {
    const struct client *client = handle;
    (void)key;
    memset(value, 0, client->value_bytes);
    return 0;
}

static int insert(void *handle, uint64_t key, const void *value) {
    struct client *client = handle;
    (void)value;
    if (!hash_table_put(&client->table, key)) {
        struct hash_table_shape shape = shape_of(client->params);
        client->counts[TABLE_FULL]++;
        client->counts[TABLE_ENTRIES] += client->table.used;
        client->counts[TABLE_SLOTS] += hash_table_size(&shape);
        hash_table_init(&client->table, &shape);
        hash_table_put(&client->table, key);
    }
    return 0;
}

static int update(void *handle, uint64_t key, const void *value) {
    (void)handle;
    (void)key;
    (void)value;
    return 0;
}

static int remove_key(void *handle, uint64_t key) {
    (void)handle;
    (void)key;
    return 0;
}

static int scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    (void)handle;
    (void)first;
    (void)count;
    (void)keys;
    (void)values;
    *found = 0;
    return 0;
}

static uint64_t cache_bytes(const void *cn) {
    (void)cn;
    return 0;
}

static int verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    const struct cn *cn = handle;
    struct hash_table_shape shape = shape_of(cn->params);
    uint64_t entries = cn->tables * hash_table_size(&shape);
    (void)ctx;
    (void)err;
    *report = (struct ix_report){
        .interrupted = report->interrupted,
        .keys = cn->keys,
        .leaves = cn->tables,
        .leaf_fill = entries > 0 ? (double)cn->keys / (double)entries : 0,
    };
    return 0;
}

const struct ix_ops ix_ops_hash_tables = {
    .name = "hash_tables",
    .summary = "no index: fills hash tables of one scheme until a key does not fit, and reports their load",
    .paper = "the hash schemes of figure 3d of the CHIME paper (SOSP 2024): hopscotch, associative, RACE, FaRM",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_NO_DATA,
    .params = params_table,
    .params_bytes = sizeof(struct params),
    .counters = counters,
    .counts_offset = offsetof(struct client, counts),
    .cn_bytes = sizeof(struct cn),
    .client_bytes = sizeof(struct client),
    .check = check,
    .memory_needed = memory_needed,
    .open = open_cn,
    .load = load,
    .attach = attach,
    .get = get,
    .insert = insert,
    .update = update,
    .remove = remove_key,
    .scan = scan,
    .cache_bytes = cache_bytes,
    .verify = verify,
};
