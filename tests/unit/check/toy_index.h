/* SPDX-License-Identifier: Apache-2.0
 *
 * A small index over local arrays. It is correct, or has one deliberate fault, to prove that the checker finds each
 * fault. It sleeps where a real index waits for the network.
 */
#ifndef DM_TESTS_TOY_INDEX_H
#define DM_TESTS_TOY_INDEX_H

#include <string.h>

#include "indexes/index.h"

enum { TOY_KEYS_MAX = 64, TOY_VALUE_MAX = 64 };

/* X(constant, name) and the fault */
#define TOY_FAULTS(X)                                                                                                  \
    X(TOY_NONE, "none")                                                                                                \
    X(TOY_LOST_UPDATE, "lost_update")   /* a write writes back all entries as it read them earlier */                  \
    X(TOY_STALE_READ, "stale_read")     /* a get reads what its client saw earlier */                                  \
    X(TOY_TORN_VALUE, "torn_value")     /* a write changes the two halves of a value at different times */             \
    X(TOY_LYING_INSERT, "lying_insert") /* an insert of a present key returns ok */                                    \
    X(TOY_SCAN_GAP, "scan_gap")         /* a scan sometimes misses a key */                                            \
    X(TOY_SCAN_ORDER, "scan_order")     /* a scan returns two keys in the wrong order */                               \
    X(TOY_SCAN_MORE, "scan_more")       /* a scan returns more keys than were asked for */                             \
    X(TOY_GIVES_UP, "gives_up")         /* an update reaches the limit of retries */                                   \
    X(TOY_FAILS, "fails")               /* an update fails although no verb did */                                     \
    X(TOY_RUNS_OUT, "runs_out")         /* an update reports that memory is used up */                                 \
    X(TOY_HANGS, "hangs")               /* an update never returns */                                                  \
    X(TOY_SPINS, "spins")               /* an update computes for ever: virtual time does not pass */                  \
    X(TOY_MISCOUNTS, "miscounts")       /* verify counts a key too many */                                             \
    X(TOY_BROKEN, "broken")             /* verify reports a problem */
enum toy_fault {
#define X(constant, name) constant,
    TOY_FAULTS(X)
#undef X
        TOY_FAULT_COUNT,
};
static const char *const toy_fault_names[] = {
#define X(constant, name) name,
    TOY_FAULTS(X)
#undef X
        NULL,
};

struct toy_params {
    unsigned fault;
};
static const struct dm_opt toy_params[] = {
    {.name = "fault",
     .type = DM_OPT_ENUM,
     .offset = offsetof(struct toy_params, fault),
     .initial = "none",
     .choices = toy_fault_names,
     .help = "The deliberate fault."},
    DM_OPT_END,
};

struct toy_entry {
    bool used;
    uint64_t key;
    unsigned char value[TOY_VALUE_MAX];
};

/* The "remote memory". There is only one run at a time. */
static struct toy_entry toy_memory[TOY_KEYS_MAX];

enum { TOY_COUNT_UPDATES, TOY_COUNT_NEVER, TOY_COUNT_ALL };
static const struct ix_counter toy_counters[] = {{"updates", true}, {"never", true}, IX_COUNTERS_END};

struct toy_client {
    struct dm_ctx *ctx;
    const struct toy_params *params;
    uint32_t value_bytes;
    struct toy_entry seen[TOY_KEYS_MAX];
    uint64_t counts[TOY_COUNT_ALL];
};

struct toy_cn {
    const struct toy_params *params;
    const struct ix_shape *shape;
};

static int toy_check(const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    bool fits = shape->value_bytes <= TOY_VALUE_MAX && shape->expected_keys <= TOY_KEYS_MAX;
    return fits ? 0 : dm_fail(err, DM_ERR_INVALID, "values are too long, or keys too many");
}

static uint64_t toy_memory_needed(const void *params, const struct ix_shape *shape, uint64_t keys) {
    (void)params;
    (void)shape;
    (void)keys;
    return DM_RESERVED_BYTES;
}

static int toy_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)ctx;
    (void)params;
    (void)shape;
    (void)err;
    memset(toy_memory, 0, sizeof(toy_memory));
    return 0;
}

static int toy_open(void *handle, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape,
                    struct dm_err *err) {
    struct toy_cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    return 0;
}

/* The entry of the key; else a free entry if wanted; else NULL. */
static struct toy_entry *toy_find(struct toy_entry *entries, uint64_t key, bool wants_free) {
    struct toy_entry *unused = NULL;
    for (int i = 0; i < TOY_KEYS_MAX; i++) {
        if (entries[i].used && entries[i].key == key) {
            return &entries[i];
        }
        unused = entries[i].used || unused ? unused : &entries[i];
    }
    return wants_free ? unused : NULL;
}

static int toy_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    (void)handle;
    (void)ctx;
    (void)err;
    for (uint64_t i = 0; i < pairs->count; i++) {
        uint64_t key;
        pairs->keys(pairs, i, 1, &key);
        struct toy_entry *entry = toy_find(toy_memory, key, true);
        entry->used = true;
        entry->key = key;
        pairs->value(pairs, key, entry->value);
    }
    return 0;
}

static int toy_attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct toy_client *client = handle;
    const struct toy_cn *cn = cn_handle;
    (void)err;
    client->ctx = ctx;
    client->params = cn->params;
    client->value_bytes = cn->shape->value_bytes;
    memcpy(client->seen, toy_memory, sizeof(toy_memory));
    return 0;
}

static int toy_wait(struct toy_client *client) {
    return dm_sleep(client->ctx, 200 + dm_prng_below(dm_random(client->ctx), 2000));
}

static int toy_get(void *handle, uint64_t key, void *value) {
    struct toy_client *client = handle;
    DM_TRY(toy_wait(client));
    bool is_stale = client->params->fault == TOY_STALE_READ && dm_prng_below(dm_random(client->ctx), 4) == 0;
    const struct toy_entry *entry = toy_find(is_stale ? client->seen : toy_memory, key, false);
    int rc = entry ? 0 : DM_NOT_FOUND;
    if (entry) {
        memcpy(value, entry->value, client->value_bytes);
    }
    memcpy(client->seen, toy_memory, sizeof(toy_memory));
    return rc < 0 ? rc : toy_wait(client) < 0 ? DM_ERR_STOPPED : rc;
}

/* Writes a value. With the fault torn_value it waits between the two halves. */
static int toy_store(struct toy_client *client, struct toy_entry *entry, uint64_t key, const void *value) {
    uint32_t half = client->value_bytes / 2;
    memcpy(entry->value, value, half);
    if (client->params->fault == TOY_TORN_VALUE && entry->used) {
        DM_TRY(toy_wait(client));
        if (!entry->used || entry->key != key) {
            return 0; /* the key was deleted meanwhile: the delete takes effect after this write */
        }
    }
    memcpy(entry->value + half, (const char *)value + half, client->value_bytes - half);
    entry->used = true;
    entry->key = key;
    return 0;
}

/* The effect of an insert, update or delete at its linearization point. */
static int toy_change(struct toy_client *client, struct toy_entry *entries, uint64_t key, const void *value,
                      bool is_insert) {
    struct toy_entry *entry = toy_find(entries, key, is_insert);
    if (!entry || (!is_insert && !entry->used)) {
        return DM_NOT_FOUND;
    }
    if (is_insert && entry->used && client->params->fault != TOY_LYING_INSERT) {
        return DM_EXISTS;
    }
    if (!value) {
        entry->used = false;
        return 0;
    }
    return toy_store(client, entry, key, value);
}

static int toy_write(struct toy_client *client, uint64_t key, const void *value, bool is_insert) {
    int rc;
    DM_TRY(toy_wait(client));
    if (client->params->fault == TOY_LOST_UPDATE) {
        struct toy_entry all[TOY_KEYS_MAX];
        memcpy(all, toy_memory, sizeof(all));
        DM_TRY(toy_wait(client));
        rc = toy_change(client, all, key, value, is_insert);
        memcpy(toy_memory, all, sizeof(all));
    } else {
        rc = toy_change(client, toy_memory, key, value, is_insert);
    }
    DM_TRY(rc);
    return toy_wait(client) < 0 ? DM_ERR_STOPPED : rc;
}

static int toy_insert(void *handle, uint64_t key, const void *value) {
    return toy_write(handle, key, value, true);
}

static int toy_update(void *handle, uint64_t key, const void *value) {
    struct toy_client *client = handle;
    client->counts[TOY_COUNT_UPDATES]++;
    uint32_t attempts = 0;
    while (client->params->fault == TOY_GIVES_UP && key % 3 == 0) {
        DM_TRY(dm_retry(client->ctx, DM_RETRY_LOCK, &attempts));
    }
    if (client->params->fault == TOY_FAILS && key % 3 == 0) {
        return DM_ERR_IO;
    }
    if (client->params->fault == TOY_RUNS_OUT && key % 3 == 0) {
        return DM_ERR_NO_MEMORY;
    }
    for (volatile bool spins = client->params->fault == TOY_SPINS && key % 3 == 0; spins;) {
    }
    while (client->params->fault == TOY_HANGS && key % 3 == 0) {
        DM_TRY(dm_sleep(client->ctx, 1000000));
    }
    return toy_write(client, key, value, false);
}

static int toy_remove(void *handle, uint64_t key) {
    return toy_write(handle, key, NULL, false);
}

static int toy_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct toy_client *client = handle;
    uint64_t from = first;
    bool is_over = false;
    *found = 0;
    while (*found < count && !is_over) {
        const struct toy_entry *next = NULL;
        if (*found % 4 == 0) {
            DM_TRY(toy_wait(client));
        }
        for (int i = 0; i < TOY_KEYS_MAX; i++) {
            const struct toy_entry *entry = &toy_memory[i];
            next = entry->used && entry->key >= from && (!next || entry->key < next->key) ? entry : next;
        }
        is_over = !next || next->key == IX_KEY_MAX;
        bool is_skipped = client->params->fault == TOY_SCAN_GAP && dm_prng_below(dm_random(client->ctx), 50) == 0;
        if (next && !is_skipped) {
            keys[*found] = next->key;
            memcpy((char *)values + (size_t)*found * client->value_bytes, next->value, client->value_bytes);
            ++*found;
        }
        from = next ? next->key + 1 : from;
    }
    if (client->params->fault == TOY_SCAN_ORDER && *found > 1) {
        uint64_t key = keys[0];
        keys[0] = keys[1];
        keys[1] = key;
    }
    *found += client->params->fault == TOY_SCAN_MORE && *found == count ? 5 : 0;
    return 0;
}

static uint64_t toy_cache_bytes(const void *cn) {
    (void)cn;
    return 0;
}

static int toy_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    const struct toy_cn *cn = handle;
    (void)ctx;
    (void)err;
    *report = (struct ix_report){.broken = cn->params->fault == TOY_BROKEN, .first_problem = "the fault of the toy"};
    for (int i = 0; i < TOY_KEYS_MAX; i++) {
        report->keys += toy_memory[i].used;
    }
    report->keys += cn->params->fault == TOY_MISCOUNTS;
    return 0;
}

static const struct ix_ops toy_index = {
    .name = "toy",
    .summary = "local arrays",
    .paper = "none",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = toy_params,
    .params_bytes = sizeof(struct toy_params),
    .counters = toy_counters,
    .counts_offset = offsetof(struct toy_client, counts),
    .cn_bytes = sizeof(struct toy_cn),
    .client_bytes = sizeof(struct toy_client),
    .check = toy_check,
    .memory_needed = toy_memory_needed,
    .format = toy_format,
    .open = toy_open,
    .load = toy_load,
    .attach = toy_attach,
    .get = toy_get,
    .insert = toy_insert,
    .update = toy_update,
    .remove = toy_remove,
    .scan = toy_scan,
    .cache_bytes = toy_cache_bytes,
    .verify = toy_verify,
};

#endif
