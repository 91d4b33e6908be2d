/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding a key: its two combined buckets, then the blocks of the slots with its fingerprint.
 *
 * While a subtable is being split, keys of its upper half are in the old subtable or in the new one, each in one of
 * them. A slot moves from old to new, never back, so reading first the old one and then the new one cannot miss it.
 */
#include <string.h>

#include "race.h"

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static void view_post(struct race_client *client, struct race_view *view, dm_addr table) {
    view->table = table;
    for (unsigned k = 0; k < RACE_BUCKETS; k += 2) {
        uint32_t main = client->buckets[k];
        uint32_t first = main < client->buckets[k + 1] ? main : client->buckets[k + 1];
        uint64_t *wire = view->wire + k * RACE_BUCKET_WORDS;
        view->lines.at[k] = wire + (main - first) * RACE_BUCKET_WORDS;
        view->lines.at[k + 1] = wire + (client->buckets[k + 1] - first) * RACE_BUCKET_WORDS;
        dm_post_read(client->ctx, race_bucket_addr(table, first), wire, RACE_COMBINED_BYTES);
    }
    if (client->buckets[1] == client->buckets[3]) {
        view->lines.at[3] = view->lines.at[1]; /* one overflow bucket, of which only one copy is looked at */
    }
}

/* The slots' fingerprints; and the headers, which are compared with the hash and for a split. */
static void view_charge(struct race_client *client) {
    dm_charge(client->ctx, DM_WORK_LINE_COPY, RACE_BUCKETS);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, RACE_BUCKETS * ((unsigned)client->cn->params->slots + 2));
}

static bool view_covers(const struct race_view *view, uint64_t hash) {
    bool covers = true;
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        covers = covers && race_header_covers(view->lines.at[k][0], hash);
    }
    return covers;
}

/* The local depth in a header of a subtable whose split is not finished; 0 if there is none. */
static unsigned view_filling(const struct race_view *view) {
    unsigned depth = 0;
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        uint64_t header = view->lines.at[k][0];
        depth = race_header_filling(header) ? race_header_depth(header) : depth;
    }
    return depth;
}

/* Whether all headers of ->old are of the lower half of a split, before or after its headers were written; `sibling`
 * has `depth` bits. */
static bool is_lower_half(const struct race_client *client, unsigned depth, uint64_t sibling) {
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        uint64_t header = client->old.lines.at[k][0];
        if (!race_header_plausible(header) || race_header_depth(header) < depth ||
            (race_header_suffix(header) & race_bits(depth + 1)) != sibling) {
            return false;
        }
    }
    return true;
}

/* Reads the buckets of both subtables of a split, the old one first. `old` may be stale: where the cache has fewer
 * entries than the directory, both halves share one. [waits] */
static int both_read(struct race_client *client, uint64_t hash, dm_addr old, dm_addr now, uint32_t *attempts) {
    unsigned depth = client->filling_depth - 1;
    uint64_t sibling = hash & race_bits(depth);
    for (;;) {
        if (dm_addr_valid(client->ctx, old, client->cn->table_bytes)) {
            view_post(client, &client->old, old);
            DM_TRY(dm_commit(client->ctx));
            view_charge(client);
            if (is_lower_half(client, depth, sibling)) {
                break;
            }
        }
        uint64_t entry;
        client->counts[RACE_DIRECTORY_STALE]++;
        DM_TRY(race_directory_refresh(client, sibling, &entry));
        DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
        old = race_entry_table(entry);
    }
    view_post(client, &client->now, now);
    DM_TRY(dm_commit(client->ctx));
    view_charge(client);
    client->filling = true;
    return 0;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static unsigned view_matches(const struct race_client *client, const struct race_view *view, uint64_t hash,
                             struct race_match *matches) {
    unsigned count = 0;
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        if (k == 3 && client->buckets[1] == client->buckets[3]) {
            break;
        }
        for (unsigned i = 0; i < client->cn->params->slots; i++) {
            uint64_t slot = view->lines.at[k][i + 1];
            dm_addr addr = race_slot_addr(view->table, client->buckets[k], i);
            if (slot != 0 && race_slot_fingerprint(slot) == race_fingerprint(hash) &&
                !dm_addr_equal(addr, client->own)) {
                matches[count++] = (struct race_match){view, addr, slot};
            }
        }
    }
    return count;
}

/* Keeps the matches whose blocks have the key. RACE_AGAIN if a block was used again, or its checksum is wrong. [waits]
 */
static int same_keep(struct race_client *client, uint64_t key, unsigned count, uint32_t *attempts) {
    struct race_match *matches = client->same;
    unsigned n;
    for (unsigned first = 0; first < count; first += n) {
        bool reused = false;
        n = count - first < RACE_FETCH_MAX ? count - first : RACE_FETCH_MAX;
        for (unsigned i = 0; i < n; i++) {
            reused = !ix_indirect_post_read(client->indirect, race_slot_word(matches[first + i].slot), true,
                                            client->blocks + i * client->cn->block_bytes) ||
                     reused;
        }
        enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
        int rc = dm_commit(client->ctx);
        dm_phase(client->ctx, before);
        DM_TRY(rc);
        for (unsigned i = 0; i < n && !reused; i++) {
            uint64_t found;
            struct race_match match = matches[first + i];
            const char *block = client->blocks + i * client->cn->block_bytes;
            reused = !ix_indirect_has_key(client->indirect, race_slot_word(match.slot), block, &found) ||
                     !ix_indirect_intact(client->indirect, block);
            if (found == key) {
                matches[client->same_count++] = match;
                if (!race_slot_tentative(match.slot)) {
                    memcpy(client->chosen, block, client->cn->block_bytes);
                }
            } else {
                client->counts[RACE_FALSE_MATCH] += !reused;
            }
        }
        if (reused) {
            client->counts[RACE_BLOCK_REUSED]++;
            DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, attempts, 0));
            return RACE_AGAIN;
        }
    }
    return 0;
}

static int same_find(struct race_client *client, uint64_t key, uint64_t hash, uint32_t *attempts) {
    unsigned count = client->filling ? view_matches(client, &client->old, hash, client->same) : 0;
    count += view_matches(client, &client->now, hash, client->same + count);
    client->same_count = 0;
    return count > 0 ? same_keep(client, key, count, attempts) : 0;
}

/* The last committed slot of ->same; NULL if there is none. */
static const struct race_match *committed(const struct race_client *client) {
    for (unsigned i = client->same_count; i-- > 0;) {
        if (!race_slot_tentative(client->same[i].slot)) {
            return &client->same[i];
        }
    }
    return NULL;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* The buckets that `entry` leads to, and those of the old subtable if that one is being split. *covers is false if the
 * key's subtable has split since the entry was read. [waits] */
static int buckets_read(struct race_client *client, uint64_t hash, dm_addr table, bool *covers, uint32_t *attempts) {
    bool check = client->cn->params->check_headers;
    view_post(client, &client->now, table);
    if (client->unwritten) {
        ix_indirect_post(client->indirect);
        client->unwritten = false;
    }
    DM_TRY(dm_commit(client->ctx));
    view_charge(client);
    *covers = view_covers(&client->now, hash) || !check;
    client->filling_depth = view_filling(&client->now);
    if (!*covers || client->filling_depth == 0) {
        return 0;
    }
    uint64_t entry;
    client->counts[RACE_FILLING]++;
    DM_TRY(race_directory_find(client, hash & race_bits(client->filling_depth - 1), &entry));
    int rc = both_read(client, hash, race_entry_table(entry), table, attempts);
    *covers = view_covers(&client->now, hash) || !check;
    return rc;
}

/* Reads the key's buckets, and writes the block made last if that was not done, and finds the slots that hold the key:
 * ->same. 0, RACE_AGAIN, or a failure. [waits] */
static int buckets_find(struct race_client *client, uint64_t key, uint32_t *attempts) {
    uint64_t hash = race_hash(key);
    uint64_t entry;
    dm_charge(client->ctx, DM_WORK_HASH, 2);
    race_buckets(hash, race_groups(client->cn->params), client->buckets);
    client->filling = false;
    client->own = DM_NULL;
    DM_TRY(race_directory_find(client, hash, &entry));
    dm_addr table = race_entry_table(entry);
    if (!dm_addr_valid(client->ctx, table, client->cn->table_bytes)) {
        DM_TRY(race_directory_refresh(client, hash, &entry));
        DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
        return RACE_AGAIN;
    }
    bool covers;
    int rc = buckets_read(client, hash, table, &covers, attempts);
    if (rc != 0) {
        return rc;
    }
    if (!covers) {
        client->counts[RACE_DIRECTORY_STALE]++;
        DM_TRY(race_directory_refresh(client, hash, &entry));
        DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
        return RACE_AGAIN;
    }
    return same_find(client, key, hash, attempts);
}

int race_find_again(struct race_client *client, uint64_t key, dm_addr own, bool *moved, uint32_t *attempts) {
    uint64_t hash = race_hash(key);
    *moved = false;
    client->own = own;
    if (client->filling) {
        int rc = both_read(client, hash, client->old.table, client->now.table, attempts);
        if (rc != 0) {
            return rc;
        }
    } else {
        view_post(client, &client->now, client->now.table);
        DM_TRY(dm_commit(client->ctx));
        view_charge(client);
    }
    *moved = !view_covers(&client->now, hash);
    return *moved ? 0 : same_find(client, key, hash, attempts);
}

int race_search(struct race_client *client, uint64_t key, void *value, const struct race_match **match,
                uint32_t *attempts) {
    int rc;
    do {
        rc = buckets_find(client, key, attempts);
        DM_TRY(rc);
        *match = rc == 0 ? committed(client) : NULL;
        if (rc == 0 && *match && value) {
            rc = ix_indirect_value(client->indirect, race_slot_word((*match)->slot), key, client->chosen, value);
            if (rc == IX_INDIRECT_REUSED) {
                client->counts[RACE_BLOCK_REUSED]++;
                DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, attempts, 0));
                rc = RACE_AGAIN;
            }
        } else if (rc == 0 && !*match && client->same_count > 0) {
            client->counts[RACE_TENTATIVE_MET]++;
            DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0));
            rc = RACE_AGAIN;
        }
    } while (rc == RACE_AGAIN);
    return rc;
}

int race_block_make(struct race_client *client, uint64_t key, const void *value, uint64_t *word,
                    const struct race_match **match) {
    const void *stored;
    uint32_t attempts = 0;
    *match = NULL;
    unsigned node = race_block_node(race_hash(key), dm_topology(client->ctx)->mns);
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1); /* a block of the client's own, or new memory */
    int rc = ix_indirect_make(client->indirect, node, key, value, &stored);
    if (rc == DM_ERR_NO_MEMORY) {
        DM_TRY(race_search(client, key, NULL, match, &attempts));
    }
    DM_TRY(rc);
    *word = ix_indirect_word(client->indirect, stored);
    client->unwritten = true;
    return 0;
}
