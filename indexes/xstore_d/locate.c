/* SPDX-License-Identifier: Apache-2.0
 *
 * From a key to the leaves that can hold it (XStore, section 5.2): the top model, a sub-model, entries of its
 * translation table. Parts that are not cached are read one-sided: one read for a sub-model, one more for the entries
 * of a prediction. Everything read is checked, and read again if a newer training has replaced it.
 */
#include "locate.h"

unsigned xstore_node_of(const struct xstore_client *client, uint64_t key) {
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    return ix_ranges_node(&client->ranges, client->cn->shape->topology->mns, key);
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

/* Reads the set of models of a memory node and caches it. [waits] */
static int set_refresh(struct xstore_client *client, unsigned node, struct xstore_set *set) {
    uint64_t *words = client->words;
    for (uint32_t attempts = 0;;) {
        dm_addr addr = dm_addr_make(node, DM_DRAM, XSTORE_SET_OFFSET);
        DM_TRY(dm_read(client->ctx, addr, words, XSTORE_SET_WORDS * 8));
        if (xstore_set_decode(words, node, set)) {
            break;
        }
        DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, &attempts));
    }
    _Atomic uint64_t *kept = client->cn->sets[node];
    for (unsigned i = 0; i < XSTORE_SET_WORDS; i++) {
        atomic_store_explicit(&kept[i], words[i], memory_order_relaxed);
    }
    return 0;
}

/* The set as this compute node has cached it; read if it has not. [waits] */
static int set_get(struct xstore_client *client, unsigned node, struct xstore_set *set) {
    uint64_t words[XSTORE_SET_WORDS];
    const _Atomic uint64_t *kept = client->cn->sets[node];
    for (unsigned i = 0; i < XSTORE_SET_WORDS; i++) {
        words[i] = atomic_load_explicit(&kept[i], memory_order_relaxed);
    }
    dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_SET_WORDS - 1));
    return xstore_set_decode(words, node, set) ? 0 : set_refresh(client, node, set);
}

/* ---- sub-models -------------------------------------------------------------------------------------------------- */

static uint64_t seed_of(const struct xstore_where *where) {
    return xstore_record_seed(where->node, where->set.generation, where->number);
}

static uint64_t record_slot(const struct xstore_client *client, const struct xstore_where *where) {
    return (uint64_t)where->number * client->cn->shape->topology->mns + where->node;
}

static bool record_cached(struct xstore_client *client, struct xstore_where *where) {
    uint64_t words[XSTORE_RECORD_WORDS];
    if (!xstore_cache_exists(&client->cn->records)) {
        return false;
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_RECORD_WORDS - 1));
    dm_charge_access(client->ctx, 1, xstore_cache_used(&client->cn->records));
    xstore_cache_get(&client->cn->records, record_slot(client, where), words);
    return xstore_record_decode(words, seed_of(where), &where->record);
}

static void record_keep(struct xstore_client *client, const struct xstore_where *where, const uint64_t *words) {
    if (xstore_cache_exists(&client->cn->records)) {
        xstore_cache_put(&client->cn->records, record_slot(client, where), words);
    }
}

/* The check word 2: no valid check is even, and 0 would count the slot as unused. */
static void record_drop(struct xstore_client *client, const struct xstore_where *where) {
    static const uint64_t none[XSTORE_RECORD_WORDS] = {0, 0, 0, 2};
    record_keep(client, where, none);
}

static dm_addr record_addr(const struct xstore_where *where) {
    return dm_addr_add(xstore_addr(where->node, where->set.records), (uint64_t)where->number * XSTORE_MODEL_BYTES);
}

/* Reads the record; XSTORE_STALE if it is of another generation. */
static int record_read(struct xstore_client *client, struct xstore_where *where) {
    uint64_t *words = client->words;
    if (!dm_addr_valid(client->ctx, record_addr(where), XSTORE_MODEL_BYTES)) {
        return XSTORE_STALE;
    }
    DM_TRY(dm_read(client->ctx, record_addr(where), words, XSTORE_MODEL_BYTES));
    if (!xstore_record_decode(words, seed_of(where), &where->record)) {
        return XSTORE_STALE;
    }
    record_keep(client, where, words);
    return 0;
}

/* The sub-model for the key, cached or read. */
static int record_get(struct xstore_client *client, uint64_t key, uint32_t *attempts) {
    struct xstore_where *where = &client->where;
    int rc = set_get(client, where->node, &where->set);
    while (rc >= 0) {
        where->coord = ix_rmi_coord(&where->set.top, key);
        where->number = ix_rmi_pick(&where->set.top, where->coord);
        dm_charge(client->ctx, DM_WORK_MODEL_EVAL, 2);
        if (record_cached(client, where)) {
            xstore_count(client, XSTORE_MODEL_HIT_COUNT);
            return 0;
        }
        xstore_count(client, XSTORE_MODEL_MISS_COUNT);
        rc = record_read(client, where);
        if (rc != XSTORE_STALE) {
            return rc;
        }
        xstore_count(client, XSTORE_OLD_MODEL_COUNT);
        DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, attempts));
        rc = set_refresh(client, where->node, &where->set);
    }
    return rc;
}

int xstore_next_model(struct xstore_client *client) {
    struct xstore_where *where = &client->where;
    if (where->number + 1 >= where->set.top.models) {
        return DM_NOT_FOUND;
    }
    where->number++;
    if (record_cached(client, where)) {
        xstore_count(client, XSTORE_MODEL_HIT_COUNT);
        return 0;
    }
    xstore_count(client, XSTORE_MODEL_MISS_COUNT);
    return record_read(client, where);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static dm_addr line_addr(const struct xstore_where *where, uint32_t line) {
    return dm_addr_add(xstore_addr(where->node, where->record.table), (uint64_t)line * DM_LINE);
}

static uint64_t line_slot(const struct xstore_client *client, const struct xstore_where *where, uint32_t line) {
    uint64_t ref = (uint64_t)where->record.table + line;
    return ref * client->cn->shape->topology->mns + where->node;
}

static uint64_t line_seed(const struct xstore_where *where, uint32_t line) {
    return xstore_line_seed(seed_of(where), where->record.version, line);
}

static bool line_cached(struct xstore_client *client, uint32_t line, uint64_t *words) {
    const struct xstore_where *where = &client->where;
    if (!xstore_cache_exists(&client->cn->lines)) {
        return false;
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_LINE_ENTRIES));
    xstore_cache_get(&client->cn->lines, line_slot(client, where, line), words);
    bool is_there = xstore_line_consistent(words, line_seed(where, line));
    xstore_count(client, is_there ? XSTORE_TABLE_HIT_COUNT : XSTORE_TABLE_MISS_COUNT);
    return is_there;
}

static void line_keep(struct xstore_client *client, uint32_t line, const uint64_t *words) {
    if (xstore_cache_exists(&client->cn->lines)) {
        xstore_cache_put(&client->cn->lines, line_slot(client, &client->where, line), words);
    }
}

/* Copies the entries of leaves [first, first + count) that are in this line. */
static void entries_take(const uint64_t *words, uint32_t line, uint32_t first, uint32_t count,
                         struct xstore_entry *entries) {
    uint32_t base = line * XSTORE_LINE_ENTRIES, end = first + count;
    uint32_t last = end < base + XSTORE_LINE_ENTRIES ? end : base + XSTORE_LINE_ENTRIES;
    for (uint32_t leaf = first > base ? first : base; leaf < last; leaf++) {
        entries[leaf - first] = xstore_entry_of(words[leaf - base]);
    }
}

/* From the cache alone; false if a line is not cached. */
static bool table_cached(struct xstore_client *client, uint32_t first, uint32_t count, struct xstore_entry *entries) {
    uint64_t words[XSTORE_LINE_ENTRIES + 1];
    /* The lines of a range are adjacent, so that the first one is waited for. */
    dm_charge_access(client->ctx, 1, xstore_cache_used(&client->cn->lines));
    for (uint32_t line = first / XSTORE_LINE_ENTRIES; line * XSTORE_LINE_ENTRIES < first + count; line++) {
        if (!line_cached(client, line, words)) {
            return false;
        }
        entries_take(words, line, first, count, entries);
    }
    return true;
}

int xstore_table(struct xstore_client *client, uint32_t first, uint32_t count, struct xstore_entry *entries,
                 uint32_t *got) {
    const struct xstore_where *where = &client->where;
    uint32_t left = where->record.leaves - first;
    count = count < left ? count : left;
    *got = count;
    if (count == 0 || table_cached(client, first, count, entries)) {
        return 0;
    }
    uint32_t begin = first / XSTORE_LINE_ENTRIES, end = (first + count - 1) / XSTORE_LINE_ENTRIES + 1;
    uint32_t bytes = (end - begin) * DM_LINE;
    if (!dm_addr_valid(client->ctx, line_addr(where, begin), bytes)) {
        return XSTORE_STALE;
    }
    DM_TRY(dm_read(client->ctx, line_addr(where, begin), client->words, bytes));
    for (uint32_t line = begin; line < end; line++) {
        const uint64_t *words = client->words + (size_t)(line - begin) * (XSTORE_LINE_ENTRIES + 1);
        dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_LINE_ENTRIES));
        if (!xstore_line_consistent(words, line_seed(where, line))) {
            return XSTORE_STALE;
        }
        line_keep(client, line, words);
        entries_take(words, line, first, count, entries);
    }
    return 0;
}

void xstore_entry_invalidate(struct xstore_client *client, uint32_t leaf) {
    uint64_t words[XSTORE_LINE_ENTRIES + 1];
    uint32_t line = leaf / XSTORE_LINE_ENTRIES;
    xstore_count(client, XSTORE_INVALIDATION_COUNT);
    if (!xstore_cache_exists(&client->cn->lines)) {
        return;
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge(client->ctx, DM_WORK_HASH, 2 * ix_check_hashes(XSTORE_LINE_ENTRIES));
    xstore_cache_get(&client->cn->lines, line_slot(client, &client->where, line), words);
    uint64_t seed = line_seed(&client->where, line);
    if (!xstore_line_consistent(words, seed)) {
        return; /* another client has put a newer line there */
    }
    struct xstore_entry entry = xstore_entry_of(words[leaf % XSTORE_LINE_ENTRIES]);
    entry.valid = false;
    words[leaf % XSTORE_LINE_ENTRIES] = xstore_entry_word(entry);
    words[XSTORE_LINE_ENTRIES] = ix_check_word(seed, words, XSTORE_LINE_ENTRIES);
    line_keep(client, line, words);
}

enum { LOCATE_TRIES = 4 };

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* The leaves that the record predicts. False: there is no bound, or there are more leaves than a look-up reads. */
static bool range_of(struct xstore_client *client) {
    struct xstore_where *where = &client->where;
    uint32_t last;
    bool is_bounded = xstore_record_range(&where->record, client->cn->layout.slots, where->number, where->coord,
                                          &where->first, &last);
    where->count = last - where->first + 1;
    return is_bounded && where->count <= client->cn->params->span_max;
}

int xstore_locate(struct xstore_client *client, unsigned node, uint64_t key, uint32_t *attempts) {
    struct xstore_where *where = &client->where;
    where->node = node;
    for (unsigned tries = 0; tries < LOCATE_TRIES; tries++) {
        DM_TRY(record_get(client, key, attempts));
        if (!range_of(client)) {
            xstore_count(client, XSTORE_UNSAFE_COUNT);
            return XSTORE_BY_CALL;
        }
        uint32_t got;
        int rc = xstore_table(client, where->first, where->count, where->entries, &got);
        if (rc != XSTORE_STALE) {
            return rc;
        }
        /* The sub-model was trained again since the record was cached. */
        record_drop(client, where);
        xstore_count(client, XSTORE_OLD_MODEL_COUNT);
        DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, attempts));
    }
    return XSTORE_BY_CALL; /* the sub-model is trained more often than this client can read it */
}

bool xstore_locate_cached(struct xstore_client *client, unsigned node, uint64_t key) {
    struct xstore_where *where = &client->where;
    uint64_t words[XSTORE_SET_WORDS];
    where->node = node;
    for (unsigned i = 0; i < XSTORE_SET_WORDS; i++) {
        words[i] = atomic_load_explicit(&client->cn->sets[node][i], memory_order_relaxed);
    }
    if (!xstore_set_decode(words, node, &where->set)) {
        return false;
    }
    where->coord = ix_rmi_coord(&where->set.top, key);
    where->number = ix_rmi_pick(&where->set.top, where->coord);
    dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(XSTORE_SET_WORDS - 1));
    dm_charge(client->ctx, DM_WORK_MODEL_EVAL, 2);
    return record_cached(client, where) && range_of(client) &&
           table_cached(client, where->first, where->count, where->entries);
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

struct xstore_known xstore_known_of(const struct xstore_client *client, bool stale) {
    const struct xstore_where *where = &client->where;
    bool wants_table = xstore_cache_exists(&client->cn->lines);
    return (struct xstore_known){.generation = where->set.generation,
                                 .number = where->number,
                                 .version = where->record.version,
                                 .stale = stale ? 1 + wants_table : 0};
}

int xstore_reply_take(struct xstore_client *client, unsigned node, const struct xstore_known *known, uint32_t reply_len,
                      const char **after) {
    struct xstore_reply reply;
    struct xstore_where *where = &client->where;
    uint64_t words[XSTORE_LINE_ENTRIES + 1];
    memcpy(&reply, client->reply, sizeof(reply));
    const char *at = client->reply + sizeof(reply);
    *after = at;
    if (reply_len < sizeof(reply)) {
        return DM_ERR_CORRUPT;
    }
    if (reply.generation > known->generation) {
        struct xstore_set set;
        xstore_count(client, XSTORE_EXPANDED_COUNT);
        DM_TRY(set_refresh(client, node, &set));
    }
    if (reply.version == 0) {
        return 0;
    }
    memcpy(words, at, XSTORE_MODEL_BYTES);
    at += XSTORE_MODEL_BYTES;
    if (xstore_record_decode(words, seed_of(where), &where->record)) {
        xstore_count(client, XSTORE_RETRAINED_COUNT);
        record_keep(client, where, words);
    }
    for (uint32_t line = 0; line < reply.lines; line++, at += DM_LINE) {
        memcpy(words, at, DM_LINE);
        if (xstore_line_consistent(words, line_seed(where, line))) {
            line_keep(client, line, words);
        }
    }
    *after = at;
    return 0;
}

/* ---- filling the caches ------------------------------------------------------------------------------------------ */

enum { FILL_RECORDS = 32, FILL_LINES = 256 };

/* Reads the tables of up to FILL_RECORDS sub-models; one round trip reads as many as fit the reply's buffer. */
static int tables_fill(struct xstore_client *client, const uint64_t *records, uint32_t first, uint32_t count) {
    struct xstore_where *where = &client->where;
    for (uint32_t i = 0; i < count;) {
        uint32_t begin = i, lines = 0;
        for (; i < count; i++) {
            where->number = first + i;
            bool is_consistent =
                xstore_record_decode(records + i * XSTORE_RECORD_WORDS, seed_of(where), &where->record);
            uint32_t wanted = is_consistent ? xstore_lines_for(where->record.leaves) : 0;
            bool is_there = wanted > 0 && dm_addr_valid(client->ctx, line_addr(where, 0), wanted * DM_LINE);
            if (!is_there || wanted > FILL_LINES) {
                continue;
            }
            if (lines + wanted > FILL_LINES) {
                break;
            }
            dm_post_read(client->ctx, line_addr(where, 0), client->reply + (size_t)lines * DM_LINE, wanted * DM_LINE);
            lines += wanted;
        }
        DM_TRY(dm_commit(client->ctx));
        lines = 0;
        for (uint32_t k = begin; k < i; k++) {
            where->number = first + k;
            bool is_consistent =
                xstore_record_decode(records + k * XSTORE_RECORD_WORDS, seed_of(where), &where->record);
            uint32_t wanted = is_consistent ? xstore_lines_for(where->record.leaves) : 0;
            for (uint32_t line = 0; wanted <= FILL_LINES && line < wanted; line++, lines++) {
                uint64_t words[XSTORE_LINE_ENTRIES + 1];
                memcpy(words, client->reply + (size_t)lines * DM_LINE, sizeof(words));
                if (xstore_line_consistent(words, line_seed(where, line))) {
                    line_keep(client, line, words);
                }
            }
        }
    }
    return 0;
}

/* Reads `count` sub-models from number `first` on, and their tables. */
static int models_fill(struct xstore_client *client, uint32_t first, uint32_t count) {
    struct xstore_where *where = &client->where;
    uint64_t *records = (uint64_t *)(void *)client->request;
    where->number = first;
    if (!dm_addr_valid(client->ctx, record_addr(where), count * XSTORE_MODEL_BYTES)) {
        return 0;
    }
    DM_TRY(dm_read(client->ctx, record_addr(where), records, count * XSTORE_MODEL_BYTES));
    for (uint32_t i = 0; i < count; i++) {
        where->number = first + i;
        const uint64_t *words = records + i * XSTORE_RECORD_WORDS;
        if (xstore_record_decode(words, seed_of(where), &where->record)) {
            record_keep(client, where, words);
        }
    }
    return xstore_cache_exists(&client->cn->lines) ? tables_fill(client, records, first, count) : 0;
}

int xstore_prefill(struct xstore_client *client) {
    struct xstore_where *where = &client->where;
    struct xstore_cn *cn = client->cn;
    for (unsigned node = 0; node < cn->shape->topology->mns; node++) {
        where->node = node;
        DM_TRY(set_get(client, node, &where->set));
        uint32_t models = xstore_cache_exists(&cn->records) ? where->set.top.models : 0, first;
        while (atomic_load(&cn->filled[node]) < models &&
               (first = atomic_fetch_add(&cn->filled[node], FILL_RECORDS)) < models) {
            DM_TRY(models_fill(client, first, models - first < FILL_RECORDS ? models - first : FILL_RECORDS));
        }
    }
    return 0;
}
