/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the last version of a key's chain.
 *
 * A pointer names a version by its space and the number of the space's use, so whatever pointer a client follows, it
 * notices when the space holds another version. A version that was replaced keeps its next pointer until its space is
 * written again. So a client may begin at any version of the key, however old.
 */
#include <string.h>

#include "clover.h"

void clover_spot_open(struct clover_client *client, uint64_t key, struct clover_spot *spot) {
    struct clover_cached cached;
    *spot = (struct clover_spot){.key = key, .hash = clover_hash(key)};
    clover_events_take(client);
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    clover_cache_charge(&client->cn->cache, client->ctx);
    if (clover_cache_find(&client->cn->cache, spot->hash, key, &cached)) {
        client->counts[CLOVER_CACHE_HIT]++;
        spot->pointer = cached.pointer;
        spot->shortcut = cached.shortcut;
        spot->is_cached = true;
    } else {
        client->counts[CLOVER_CACHE_MISS]++;
    }
}

void clover_spot_keep(struct clover_client *client, struct clover_spot *spot) {
    if (spot->is_cached || spot->pointer == 0) {
        return;
    }
    const struct clover_cached cached = {.key = spot->key, .pointer = spot->pointer, .shortcut = spot->shortcut};
    clover_cache_charge(&client->cn->cache, client->ctx);
    client->counts[CLOVER_CACHE_REPLACED] += clover_cache_put(&client->cn->cache, spot->hash, &cached);
    spot->is_cached = true;
}

int clover_spot_ask(struct clover_client *client, struct clover_spot *spot) {
    struct clover_reply reply;
    unsigned server = clover_server_of(&client->cn->geometry, spot->hash);
    DM_TRY(clover_call(client->cn, client->ctx, server, CLOVER_METHOD_QUERY, &spot->key, sizeof(spot->key), &reply,
                       NULL, 0));
    if (reply.pointer == 0) {
        return DM_NOT_FOUND;
    }
    /* Once a client has asked again it does not follow the shortcut, which may lead back to where it came from. */
    spot->has_shortcut = spot->was_asked;
    spot->was_asked = true;
    spot->pointer = reply.pointer;
    spot->shortcut = reply.shortcut;
    spot->is_cached = false;
    return 0;
}

/* Reads the version at the spot and, once, the shortcut, together. *is_intact: it is still the version that the pointer
 * names. *shortcut: the pointer found there; 0: none. */
static int step_read(struct clover_client *client, struct clover_spot *spot, bool is_whole, bool *is_intact,
                     uint64_t *shortcut) {
    const struct clover_geometry *geometry = &client->cn->geometry;
    struct dm_ctx *ctx = client->ctx;
    dm_addr addr = clover_addr_of(spot->pointer), word = {spot->shortcut};
    bool may_read = dm_addr_node(addr) < client->cn->shape->topology->mns;
    may_read = may_read && dm_addr_valid(ctx, addr, geometry->space_bytes);
    bool is_tombstone = clover_is_tombstone(spot->pointer);
    bool reads_shortcut = !spot->has_shortcut && dm_addr_valid(ctx, word, sizeof(uint64_t));
    *shortcut = 0;
    *is_intact = false;
    if (may_read) {
        dm_post_read(ctx, addr, client->space, is_whole && !is_tombstone ? geometry->space_bytes : DM_LINE);
    }
    if (reads_shortcut) {
        dm_post_read(ctx, word, client->words, sizeof(uint64_t));
    }
    enum dm_phase before = dm_phase(ctx, DM_PHASE_VALUE);
    int rc = dm_commit(ctx);
    dm_phase(ctx, before);
    DM_TRY(rc);
    *shortcut = reads_shortcut ? client->words[0] : 0;
    spot->has_shortcut = true;
    const struct clover_version *version = (const struct clover_version *)(const void *)client->space;
    if (may_read && !client->cn->params->identity) {
        *is_intact = true; /* known to be wrong */
    } else if (may_read && is_whole) {
        clover_version_charge(ctx, is_tombstone ? 0 : geometry->value_bytes);
        *is_intact = clover_version_intact(client->space, spot->pointer, spot->key, geometry->value_bytes);
    } else if (may_read) {
        dm_charge(ctx, DM_WORK_KEY_COMPARE, 2);
        *is_intact = clover_header_use(version->header) == clover_use_of(spot->pointer) && version->key == spot->key;
    }
    return 0;
}

/* Moves the spot on: to the shortcut if it leads elsewhere, else to the next version, or back to the server. */
static void step_on(struct clover_client *client, struct clover_spot *spot, bool is_intact, uint64_t shortcut) {
    const struct clover_version *version = (const struct clover_version *)(const void *)client->space;
    uint64_t before = spot->pointer;
    spot->is_cached = false;
    client->counts[CLOVER_STALE_POINTER] += !is_intact;
    if (shortcut && shortcut != before) {
        client->counts[CLOVER_SHORTCUT_TAKEN]++;
        spot->pointer = shortcut;
    } else if (is_intact) {
        client->counts[CLOVER_HOP]++;
        spot->hops++;
        client->counts[CLOVER_LONG_CHASE] += spot->hops == 2;
        spot->pointer = clover_next_of(version->header);
    } else {
        spot->pointer = 0;
    }
}

int clover_tail_find(struct clover_client *client, struct clover_spot *spot, bool is_whole, uint32_t *attempts) {
    uint64_t ask_hops = client->cn->params->ask_hops;
    spot->hops = 0;
    bool may_ask = true; /* because of hops; the server's pointer may be as old as the one that the chase began with */
    for (;;) {
        if (may_ask && spot->hops > ask_hops) {
            spot->pointer = 0;
            may_ask = false;
        }
        if (spot->pointer == 0) {
            client->counts[CLOVER_ASKED_AGAIN] += spot->was_asked || spot->has_shortcut;
            int rc = clover_spot_ask(client, spot);
            if (rc != 0) {
                return rc;
            }
        }
        bool is_intact;
        uint64_t shortcut;
        DM_TRY(step_read(client, spot, is_whole, &is_intact, &shortcut));
        const struct clover_version *version = (const struct clover_version *)(const void *)client->space;
        if (is_intact && (clover_next_of(version->header) == 0 || !client->cn->params->chase)) {
            return 0;
        }
        step_on(client, spot, is_intact, shortcut);
        DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, attempts));
    }
}
