/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans: one doorbell reads the window, as many leaves after it as the missing pairs fill, and their synonyms.
 *
 * A cursor moves from leaf to leaf by their bounds: the scan takes the keys from the cursor on of the leaf that covers
 * it, and the leaf's upper bound is the next cursor. Each leaf was current for its range at some moment of the scan,
 * and the ranges are adjacent, so no key that was present throughout is missed. If no leaf that was read covers the
 * cursor, the next batch begins there. Indirect values are read once all pairs are found, or their words fill the space
 * for them.
 */
#include "locate.h"

/* Takes the pairs of the leaf in client->image from the cursor on, as many as are missing; returns the next cursor. */
static uint64_t leaf_take(struct rolex_client *client, struct ix_found *found, uint64_t cursor) {
    const struct rolex_layout *layout = &client->env.layout;
    uint32_t count = rolex_count(layout, client->image);
    uint32_t missing = found->wanted - found->count;
    uint32_t at = 0;
    if (rolex_low(client->image) < cursor) {
        (void)rolex_find(layout, client->image, cursor, &at);
        dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    }
    uint32_t taken = count - at < missing ? count - at : missing;
    for (uint32_t i = at; i < at + taken; i++) {
        ix_found_add(found, rolex_key(client->image, i), rolex_value(layout, client->image, i));
    }
    ix_found_leaf_end(found);
    dm_charge(client->env.ctx, DM_WORK_KEY_COMPARE, IX_PAIR_COMPARES * taken);
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, taken * (8 + layout->value_bytes) / DM_LINE + 2);
    /* If some of those taken are deleted before their values are read, the rest of this leaf is next. */
    return at + taken < count ? rolex_key(client->image, at + taken) : rolex_high(client->image);
}

/* Leaves to read after the window for the missing pairs, within the space that all synonyms leave. */
static uint32_t more_wanted(const struct rolex_client *client, const struct ix_found *found) {
    const struct rolex_env *env = &client->env;
    uint32_t space = client->item_max - rolex_window_max(env->params, env->per_leaf) - (uint32_t)env->params->synonyms;
    uint32_t wanted = (found->wanted - found->count) / env->per_leaf + 1;
    return wanted < space ? wanted : space;
}

/* Done, or there is no space for the words of another leaf. */
static bool scan_pauses(const struct rolex_client *client, const struct ix_found *found, uint64_t cursor) {
    return ix_found_all(found) || cursor == UINT64_MAX || ix_found_full(found, client->env.layout.delta);
}

/* Reads a batch from the cursor on, takes the pairs that it covers and advances *cursor. DM_NOT_FOUND: it covers none.
 */
static int batch_take(struct rolex_client *client, struct ix_found *found, uint64_t *cursor, bool *torn,
                      uint32_t *attempts) {
    int rc = rolex_fetch(client, *cursor, more_wanted(client, found), true, attempts);
    if (rc != 0) {
        return rc;
    }
    bool advanced = false;
    while (!scan_pauses(client, found, *cursor) && rolex_cover(client, *cursor, torn)) {
        *cursor = leaf_take(client, found, *cursor);
        advanced = true;
    }
    return advanced ? 0 : DM_NOT_FOUND;
}

int rolex_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct rolex_client *client = handle;
    struct ix_found pairs = ix_found_begin(client->indirect, client->cn->shape->value_bytes, count, keys, values);
    uint32_t attempts = 0;
    *found = 0;
    for (uint64_t cursor = first; !ix_found_all(&pairs) && cursor < UINT64_MAX;) {
        bool torn = false;
        int rc = batch_take(client, &pairs, &cursor, &torn, &attempts);
        DM_TRY(rc);
        if (scan_pauses(client, &pairs, cursor)) {
            DM_TRY(ix_found_complete(&pairs, rolex_get, client));
        }
        if (rc == 0) {
            continue;
        }
        client->counts[torn ? ROLEX_TORN : ROLEX_STALE_TABLE]++;
        if (!torn && client->view.is_cached && client->env.words[ROLEX_W_OWN] & ROLEX_RETIRED) {
            DM_TRY(rolex_model_follow(client, 0, &attempts));
        } else if (!torn) {
            rolex_tables_refresh(client);
        }
        DM_TRY(dm_retry(client->env.ctx, torn ? DM_RETRY_TORN : DM_RETRY_STALE, &attempts));
    }
    *found = pairs.count;
    return 0;
}
