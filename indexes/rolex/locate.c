/* SPDX-License-Identifier: Apache-2.0
 *
 * From a key to the leaves that must be read: the model, its window, the table entries, from the compute node's cache
 * or from remote memory.
 */
#include "locate.h"

#include "descend.h"
#include "indexes/shared/retry.h"

/* While a model is being replaced, its tables are read again at every n-th try. */
enum { TABLES_REREAD_EVERY = 64 };

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Synonyms beyond the expected ones that are read at once. */
enum { SLOTS_AHEAD = 7 };

/* Reads entries first .. first + count - 1 of the leaf table into `table`, and the synonyms in use into `slots`, with
 * one doorbell, and a second one if there are more synonyms than expected. */
static int entries_read(struct rolex_client *client, uint32_t first, uint32_t count, uint64_t *table, uint64_t *slots) {
    struct rolex_view *view = &client->view;
    const struct rolex_head *head = &view->head;
    dm_addr from = rolex_slots(view->model);
    uint32_t ahead = view->expected + SLOTS_AHEAD < head->synonyms ? view->expected + SLOTS_AHEAD : head->synonyms;
    client->counts[ROLEX_TABLE_READ]++;
    dm_post_read(client->env.ctx, from, slots, 8 * (1 + ahead));
    dm_post_read(client->env.ctx, dm_addr_add(rolex_table(view->model, head), 8 * (uint64_t)first), table, 8 * count);
    DM_TRY(dm_commit(client->env.ctx));
    view->used = slots[0];
    uint32_t used = rolex_used(view->used, head->synonyms);
    if (used > ahead) {
        uint32_t at = 1 + ahead;
        DM_TRY(dm_read(client->env.ctx, dm_addr_add(from, 8 * (uint64_t)at), slots + at, 8 * (used - ahead)));
    }
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, (1 + used + count) / 8 + 1);
    view->has_tables = true;
    return 0;
}

/* Reads all of the model's tables and caches them if they fit. */
static int tables_read(struct rolex_client *client) {
    struct rolex_view *view = &client->view;
    uint64_t *slots = client->fetched;
    uint64_t *table = slots + 1 + view->head.synonyms;
    DM_TRY(entries_read(client, 0, view->head.leaves, table, slots));
    uint32_t used = rolex_used(view->used, view->head.synonyms);
    memcpy(view->slots, slots, 8 * (size_t)(1 + used));
    memcpy(view->table, table + view->window.lo, 8 * (size_t)(view->window.hi - view->window.lo + 1));
    if (!(view->used & ROLEX_RETIRED)) {
        dm_charge(client->env.ctx, DM_WORK_LINE_COPY, (1 + used + view->head.leaves) / 8 + 1);
        rolex_cache_keep(client->cn->cache, view, table, slots);
    }
    return 0;
}

/* Reads the window's part of the leaf table, and the synonyms in use. */
static int window_read(struct rolex_client *client) {
    struct rolex_view *view = &client->view;
    DM_TRY(entries_read(client, view->window.lo, view->window.hi - view->window.lo + 1, view->table, view->slots));
    if (view->is_cached && !(view->used & ROLEX_RETIRED)) {
        rolex_cache_refresh(client->cn->cache, view);
    }
    return 0;
}

static void origin_count(struct rolex_client *client, const struct rolex_head *head) {
    client->counts[ROLEX_RETRAINED] += head->flags & ROLEX_BY_TRAINING ? 1 : 0;
    client->counts[ROLEX_CARRIED] += head->flags & ROLEX_WITH_CARRIED ? 1 : 0;
}

static int locate_remote(struct rolex_client *client, uint64_t key, uint32_t more) {
    struct rolex_view *view = &client->view;
    int rc = rolex_descend(&client->env, key, &view->model, &view->head);
    if (rc != 0) {
        return rc;
    }
    origin_count(client, &view->head);
    uint32_t last = view->head.leaves - 1;
    view->window = rolex_predict(&view->head, key, (uint32_t)client->env.params->epsilon, client->env.per_leaf);
    view->window.hi += more < last - view->window.hi ? more : last - view->window.hi;
    view->is_cached = false;
    view->expected = 0;
    return window_read(client);
}

int rolex_locate(struct rolex_client *client, uint64_t key, uint32_t more, uint32_t *attempts) {
    struct rolex_view *view = &client->view;
    bool is_stale = client->is_stale;
    client->is_stale = false;
    for (;;) {
        struct rolex_cache *cache = client->cn->cache;
        if (!cache || !rolex_cache_find(cache, &client->env, key, more, view)) {
            int rc = locate_remote(client, key, more);
            if (rc <= 0) {
                return rc;
            }
            DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
            continue;
        }
        if (view->has_tables && !is_stale) {
            return 0;
        }
        bool all = !view->has_tables && rolex_cache_wants(cache, view);
        DM_TRY(all ? tables_read(client) : window_read(client));
        if (!(view->used & ROLEX_RETIRED)) {
            return 0;
        }
        DM_TRY(rolex_model_follow(client, 0, attempts));
    }
}

void rolex_tables_refresh(struct rolex_client *client) {
    client->is_stale = true;
}

/* ---- replaced models --------------------------------------------------------------------------------------------- */

static void moved_count(struct rolex_client *client, uint32_t count) {
    client->counts[ROLEX_MODEL_SEEN]++;
    for (uint32_t i = 0; i < count; i++) {
        origin_count(client, &client->heads[i]);
    }
}

/* The replacement is not complete. If it fails, its marks are removed, and a compute node that cached the tables with
 * the marks would wait for ever. So the tables are read again from time to time. */
static int not_moved_yet(struct rolex_client *client, uint32_t tries) {
    if (tries % TABLES_REREAD_EVERY == 0) {
        rolex_tables_refresh(client);
    }
    return ix_back_off(client->env.ctx, tries);
}

int rolex_model_follow(struct rolex_client *client, uint32_t tries, uint32_t *attempts) {
    struct rolex_view *view = &client->view;
    DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
    if (!view->is_cached) {
        return ix_back_off(client->env.ctx, tries);
    }
    uint32_t count = 0;
    for (uint64_t key = view->head.low; key < view->head.high; count++) {
        dm_addr model;
        struct rolex_head head;
        int rc = rolex_resolve(&client->env, view->model.bits, key, &model, &head);
        DM_TRY(rc);
        if (rc > 0 || dm_addr_equal(model, view->model)) {
            return not_moved_yet(client, tries);
        }
        if (count < ROLEX_HEADS) {
            client->models[count] = model;
            client->heads[count] = head;
        }
        key = head.high;
    }
    bool fits = count <= ROLEX_HEADS;
    if (rolex_cache_replace(client->cn->cache, view, client->models, client->heads, fits ? count : 0)) {
        moved_count(client, fits ? count : ROLEX_HEADS);
    }
    return 0;
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Adds a leaf to the list. Trained leaves have the first buffers in the order of the leaf table, so that those which
 * are next to each other in remote memory are next to each other here too; `wire` is the buffer's number. */
static int item_add(struct rolex_client *client, uint32_t leaf, uint32_t slot, uint64_t entry, uint32_t wire) {
    if (client->item_count == client->item_max || wire >= client->item_max) {
        return DM_NOT_FOUND;
    }
    struct rolex_item *item = &client->items[client->item_count];
    item->leaf = leaf;
    item->slot = slot;
    item->entry = entry;
    item->wire = client->wires + (size_t)wire * client->env.layout.wire_bytes;
    client->item_count++;
    return rolex_leaf_addr(&client->env, entry, &item->addr);
}

int rolex_leaves_list(struct rolex_client *client, uint32_t first, uint32_t last, bool synonyms) {
    const struct rolex_view *view = &client->view;
    uint32_t used = rolex_used(view->used, view->head.synonyms);
    uint32_t next = last - first + 1; /* the buffer of the next synonym */
    client->item_count = 0;
    for (uint32_t leaf = first; leaf <= last; leaf++) {
        uint64_t entry = view->table[leaf - view->window.lo];
        int rc = item_add(client, leaf, 0, entry, leaf - first);
        for (unsigned slot = rolex_entry_synonym(entry); rc == 0 && synonyms && slot != 0;) {
            /* A link is written after the entry to which it points, but the two may have been read in the other order.
             */
            if (slot > used || view->slots[slot] == 0) {
                return DM_NOT_FOUND;
            }
            rc = item_add(client, leaf, slot, view->slots[slot], next++);
            slot = rolex_entry_synonym(view->slots[slot]);
        }
        if (rc != 0) {
            return rc;
        }
    }
    client->cover_from = 0;
    dm_charge(client->env.ctx, DM_WORK_KEY_COMPARE, client->item_count);
    return 0;
}

/* Leaves that bulk load made for a model follow one another in remote memory, and one READ fetches them; retraining
 * leaves them where they are, so the leaves of a retrained model do not. */
void rolex_post_items(struct rolex_client *client) {
    const struct rolex_item *items = client->items;
    uint32_t bytes = client->env.layout.wire_bytes;
    uint32_t run = 0; /* bytes of the READ that is being composed */
    const struct rolex_item *first = NULL;
    for (uint32_t i = 0; i < client->item_count; i++) {
        const struct rolex_item *item = &items[i];
        if (item->slot > 0) {
            dm_post_read(client->env.ctx, item->addr, item->wire, bytes);
            continue;
        }
        if (run > 0 && client->env.params->adjacent && item->wire == first->wire + run &&
            dm_addr_equal(item->addr, dm_addr_add(first->addr, run))) {
            run += bytes;
            continue;
        }
        if (run > 0) {
            dm_post_read(client->env.ctx, first->addr, first->wire, run);
        }
        first = item;
        run = bytes;
    }
    if (run > 0) {
        dm_post_read(client->env.ctx, first->addr, first->wire, run);
    }
}

int rolex_fetch(struct rolex_client *client, uint64_t key, uint32_t more, bool synonyms, uint32_t *attempts) {
    const struct rolex_view *view = &client->view;
    struct dm_ctx *ctx = client->env.ctx;
    DM_TRY(rolex_locate(client, key, more, attempts));
    int rc = rolex_leaves_list(client, view->window.lo, view->window.hi, synonyms);
    if (rc != 0) {
        return rc;
    }
    rolex_post_items(client);
    dm_post_read(ctx, rolex_slots(view->model), &client->env.words[ROLEX_W_OWN], sizeof(uint64_t));
    return dm_commit(ctx);
}

bool rolex_item_decode(struct rolex_client *client, const struct rolex_item *item, char *image) {
    uint32_t bytes = client->env.layout.wire_bytes;
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, bytes / DM_LINE);
    if (!ix_lines_consistent(item->wire, bytes, IX_VERSIONS_LINES)) {
        return false;
    }
    ix_lines_decode(item->wire, bytes, image);
    return true;
}

const struct rolex_item *rolex_cover(struct rolex_client *client, uint64_t key, bool *torn) {
    uint32_t count = client->item_count, from = client->cover_from < count ? client->cover_from : 0;
    const struct rolex_item *found = NULL;
    uint32_t n = 0;
    *torn = false;
    for (; n < count && !found; n++) {
        uint32_t i = from + n < count ? from + n : from + n - count;
        const struct rolex_item *item = &client->items[i];
        const char *first = item->wire + ix_lines_wire_offset(0);
        /* The bounds are in the first line, and a single line is never torn. */
        if (!rolex_covers(first, key)) {
            continue;
        }
        if (rolex_item_decode(client, item, client->image)) {
            found = item;
            client->cover_from = i + 1;
        } else {
            *torn = true;
        }
    }
    dm_charge(client->env.ctx, DM_WORK_KEY_COMPARE, n);
    *torn = *torn && !found;
    return found;
}
