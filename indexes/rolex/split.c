/* SPDX-License-Identifier: Apache-2.0
 *
 * A full leaf is split and its upper half becomes a synonym; an empty synonym is removed (sections 3.4, 4.3 and 4.5).
 *
 * A new leaf is written before the leaf that loses keys to it, and that before the entry with the link and the unlock.
 * So at every moment a reader finds a key in one of the two leaves, and in the new one alone only after it has left the
 * old one.
 */
#include "split.h"

#include "locate.h"

enum { W_SLOT = ROLEX_W_OWN + 2, W_SLOT_ENTRY, W_QUEUE, W_QUEUE_ENTRY };

/* ---- retraining -------------------------------------------------------------------------------------------------- */

/* Asks the memory node to train a model again. */
static int retrain_ask(struct rolex_client *client, dm_addr model, bool urgent) {
    uint64_t *words = client->env.words;
    unsigned node = dm_addr_node(model);
    uint32_t queue = urgent ? 0 : 1;
    client->counts[urgent ? ROLEX_QUEUED_FIRST : ROLEX_QUEUED]++;
    DM_TRY(dm_faa(client->env.ctx, rolex_reserved(node, ROLEX_AT_QUEUES + 8 * queue), 1, &words[W_QUEUE]));
    uint32_t slot = queue * ROLEX_QUEUE_SLOTS + (uint32_t)(words[W_QUEUE] % ROLEX_QUEUE_SLOTS);
    words[W_QUEUE_ENTRY] = model.bits;
    dm_post_write(client->env.ctx, rolex_reserved(node, ROLEX_AT_QUEUE_SLOTS + 8 * slot), &words[W_QUEUE_ENTRY],
                  sizeof(uint64_t));
    return dm_commit_async(client->env.ctx);
}

/* Asks for retraining when half of the synonyms are used, and urgently when seven eighths are. */
static int retrain_consider(struct rolex_client *client, uint32_t slot) {
    uint32_t synonyms = client->view.head.synonyms;
    uint32_t half = (synonyms + 1) / 2;
    uint32_t most = synonyms - synonyms / 8;
    if (!client->env.params->retrain || (slot != half && slot != most)) {
        return 0;
    }
    return retrain_ask(client, client->view.model, slot == most && most > half);
}

/* ---- a new synonym ----------------------------------------------------------------------------------------------- */

/* Takes a leaf and a slot for a synonym with one doorbell. */
static int synonym_take(struct rolex_client *client, struct rolex_leaf_ref *ref, uint64_t *used) {
    dm_addr slots = rolex_slots(client->view.model);
    unsigned node = dm_addr_node(slots);
    struct rolex_leaf_ref *spare = &client->spares[node];
    if (dm_addr_is_null(spare->addr)) {
        return rolex_leaf_take(&client->env, node, slots, used, ref);
    }
    uint64_t *old = &client->env.words[W_SLOT];
    DM_TRY(dm_faa(client->env.ctx, slots, 1, old));
    *used = *old;
    *ref = *spare;
    spare->addr = DM_NULL;
    return 0;
}

/* The model has no free synonym slot: the client that needs one replaces the model. */
static int model_split(struct rolex_client *client, const struct rolex_group *group, uint32_t *attempts) {
    struct rolex_cn *cn = client->cn;
    struct dm_ctx *ctx = client->env.ctx;
    DM_TRY(rolex_group_release(client, group, 0));
    DM_TRY(dm_mutex_lock(ctx, &cn->replacing));
    int rc = rolex_replace(&client->env, cn->work, client->view.model, false);
    dm_mutex_unlock(ctx, &cn->replacing);
    DM_TRY(rc);
    client->counts[ROLEX_MODEL_SPLIT] += rc == 0;
    DM_TRY(rolex_model_follow(client, client->tries++, attempts));
    return ROLEX_AGAIN;
}

int rolex_leaf_split(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item,
                     uint64_t key, const void *stored, uint32_t *attempts) {
    const struct rolex_layout *layout = &client->env.layout;
    const struct rolex_view *view = &client->view;
    struct rolex_leaf_ref fresh = {.addr = DM_NULL};
    uint64_t used;
    int rc = synonym_take(client, &fresh, &used);
    if (rc < 0) {
        ix_indirect_drop(client->indirect, ix_indirect_word(client->indirect, stored));
        return rolex_group_fail(client, group, rc);
    }
    if (used >= view->head.synonyms) {
        client->spares[dm_addr_node(fresh.addr)] = fresh;
        ix_indirect_drop(client->indirect, ix_indirect_word(client->indirect, stored));
        return model_split(client, group, attempts);
    }
    uint32_t slot = (uint32_t)used + 1;
    uint32_t at;
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, 2 * layout->wire_bytes / DM_LINE);
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    rolex_leaf_halve(layout, client->image, client->right, key);
    char *into = rolex_covers(client->right, key) ? client->right : client->image;
    (void)rolex_find(layout, into, key, &at);
    rolex_pair_insert(layout, into, at, key, stored);
    uint64_t *slot_entry = &client->env.words[W_SLOT_ENTRY];
    *slot_entry = rolex_entry_link(fresh.entry, rolex_entry_synonym(group->entry));
    ix_indirect_post(client->indirect);
    rolex_leaf_post(client, 0, fresh.addr, client->right, (fresh.version + 1) & 15);
    dm_post_write(client->env.ctx, dm_addr_add(rolex_slots(view->model), 8 * (uint64_t)slot), slot_entry, 8);
    rolex_leaf_post(client, 1, item->addr, client->image, rolex_next_version(item));
    uint64_t next = rolex_entry_link(group->entry, slot);
    DM_TRY(rolex_group_unlock(client, group, next));
    client->counts[ROLEX_SYNONYM]++;
    if (view->is_cached) {
        rolex_cache_note(client->cn->cache, view, group->leaf, next, slot, *slot_entry);
    }
    return retrain_consider(client, slot);
}

/* ---- removing a synonym ------------------------------------------------------------------------------------------ */

int rolex_synonym_unlink(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item) {
    const struct rolex_view *view = &client->view;
    const struct rolex_item *before = NULL;
    uint64_t low = rolex_low(client->image);
    for (uint32_t i = 0; i < client->item_count && !before; i++) {
        const struct rolex_item *other = &client->items[i];
        before = other != item && rolex_item_decode(client, other, client->other) && rolex_high(client->other) == low &&
                         rolex_low(client->other) < low
                     ? other
                     : NULL;
    }
    if (!before) {
        return DM_NOT_FOUND;
    }
    /* Read the chain: links in its middle change without the entry. */
    uint32_t bytes = 8 * (1 + (uint32_t)view->head.synonyms);
    int rc = dm_read(client->env.ctx, rolex_slots(view->model), client->fetched, bytes);
    if (rc < 0) {
        return rolex_group_fail(client, group, rc);
    }
    uint32_t previous = 0;
    uint32_t slot = rolex_entry_synonym(group->entry);
    for (uint32_t n = 0; slot != item->slot && slot != 0 && n < view->head.synonyms; n++) {
        previous = slot;
        slot = rolex_entry_synonym(client->fetched[slot]);
    }
    if (slot != item->slot) {
        return DM_NOT_FOUND;
    }
    uint32_t after = rolex_entry_synonym(client->fetched[slot]);
    struct rolex_leaf_ref emptied = {rolex_entry_link(item->entry, 0), item->addr, rolex_next_version(item)};
    rolex_bounds_set(client->other, rolex_low(client->other), rolex_high(client->image));
    rolex_leaf_init(&client->env.layout, client->image, 0, 0);
    rolex_leaf_post(client, 0, before->addr, client->other, rolex_next_version(before));
    rolex_leaf_post(client, 1, item->addr, client->image, emptied.version);
    uint64_t *link = &client->env.words[W_SLOT_ENTRY];
    if (previous > 0) {
        *link = rolex_entry_link(client->fetched[previous], after);
        dm_post_write(client->env.ctx, dm_addr_add(rolex_slots(view->model), 8 * (uint64_t)previous), link, 8);
    }
    rolex_leaf_post_free(&client->env, dm_addr_node(item->addr));
    DM_TRY(rolex_group_unlock(client, group, previous > 0 ? group->entry : rolex_entry_link(group->entry, after)));
    client->counts[ROLEX_UNLINKED]++;
    if (view->is_cached) {
        rolex_cache_drop(client->cn->cache, view);
    }
    return rolex_leaf_finish_free(&client->env, &emptied);
}
