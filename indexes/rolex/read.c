/* SPDX-License-Identifier: Apache-2.0
 *
 * Point reads: one doorbell reads all leaves of the window, their synonyms and the used-slot counter.
 *
 * The answer comes from a leaf that is consistent and covers the key. Its contents were current at some moment of the
 * read, however old the tables were (README.md, "Why reads are correct"). If there is no such leaf, the tables were too
 * old and are read again.
 */
#include "locate.h"

/* The published rule: any leaf that has the key; if none has it, the used-slot counter shows whether the tables are
 * old.
 */
static int leaf_by_counter(struct rolex_client *client, uint64_t key, const struct rolex_item **found, bool *torn,
                           bool *stale) {
    uint32_t at;
    *torn = *stale = false;
    *found = NULL;
    for (uint32_t i = 0; i < client->item_count; i++) {
        dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
        if (!rolex_item_decode(client, &client->items[i], client->image)) {
            *torn = true;
        } else if (rolex_find(&client->env.layout, client->image, key, &at)) {
            *found = &client->items[i];
            *torn = false;
            return 0;
        }
    }
    *stale = client->env.params->detect == ROLEX_DETECT_SLOTS && client->env.words[ROLEX_W_OWN] != client->view.used;
    return *torn || *stale ? 0 : DM_NOT_FOUND;
}

int rolex_read_leaf(struct rolex_client *client, uint64_t key, uint32_t *attempts, const struct rolex_item **item) {
    for (;;) {
        bool torn = false;
        bool stale = false;
        int rc = rolex_fetch(client, key, 0, true, attempts);
        DM_TRY(rc);
        if (rc == DM_NOT_FOUND) {
            stale = true;
        } else if (client->env.params->detect == ROLEX_DETECT_BOUNDS) {
            *item = rolex_cover(client, key, &torn);
            stale = !*item && !torn;
        } else {
            rc = leaf_by_counter(client, key, item, &torn, &stale);
            if (rc != 0) {
                return rc;
            }
        }
        if (!torn && !stale) {
            return 0;
        }
        client->counts[torn ? ROLEX_TORN : ROLEX_STALE_TABLE]++;
        if (stale && rc == 0 && client->env.words[ROLEX_W_OWN] & ROLEX_RETIRED) {
            DM_TRY(rolex_model_follow(client, 0, attempts));
            continue;
        }
        if (stale) {
            rolex_tables_refresh(client);
        }
        DM_TRY(dm_retry(client->env.ctx, torn ? DM_RETRY_TORN : DM_RETRY_STALE, attempts));
    }
}

/* The value of the key in the leaf that was read: 0, DM_NOT_FOUND, IX_INDIRECT_REUSED or a failure. [waits] if it is
 * indirect */
static int value_get(struct rolex_client *client, uint64_t key, uint32_t *attempts, void *value) {
    const struct rolex_layout *layout = &client->env.layout;
    uint32_t at;
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    if (!rolex_find(layout, client->image, key, &at)) {
        return DM_NOT_FOUND;
    }
    dm_charge(client->env.ctx, DM_WORK_KEY_COMPARE, rolex_padding_compares(layout));
    const char *stored = rolex_value(layout, client->image, at);
    if (!client->indirect) {
        memcpy(value, stored, layout->value_bytes);
    }
    uint64_t word = ix_indirect_word(client->indirect, stored);
    return ix_indirect_fetch(client->indirect, key, word, attempts, value);
}

int rolex_get(void *handle, uint64_t key, void *value) {
    struct rolex_client *client = handle;
    const struct rolex_item *item = NULL;
    uint32_t attempts = 0;
    int rc;
    do {
        rc = rolex_read_leaf(client, key, &attempts, &item);
        if (rc != 0) {
            return rc;
        }
        rc = value_get(client, key, &attempts, value);
        DM_TRY(rc);
    } while (rc == IX_INDIRECT_REUSED);
    /* The answer is valid, but the model was replaced: "the next reading" (section 3.1) uses the new one. */
    if (client->view.is_cached && client->env.words[ROLEX_W_OWN] & ROLEX_RETIRED) {
        DM_TRY(rolex_model_follow(client, 0, &attempts));
    }
    return rc;
}
