/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert, update and delete (section 3.4): fetch, lock and read again with one doorbell, write and unlock with another.
 *
 * The lock of a trained leaf's table entry is that of the leaf and its synonyms. It is taken by a compare-and-swap of
 * the whole entry, so who gets it knows the entry; a new synonym always becomes the first of its chain, so the entry
 * names it, and whoever has the entry right has no synonym missing. New leaves are written before the leaf that gives
 * keys to them, that before the entry with its link and the lock: a reader sees a key in one of two leaves at every
 * moment, and in the new one only after it is gone from the old.
 */
#include "indexes/shared/retry.h"
#include "locate.h"

enum { AGAIN = 1000 /* what was known of the tables is out of date: from the start */ };

enum { W_LOCK = ROLEX_W_OWN + 1, W_SLOT = ROLEX_W_OWN + 2, W_SLOT_ENTRY, W_QUEUE, W_QUEUE_ENTRY };

/* A locked group. */
struct held {
    dm_addr word;
    uint64_t entry; /* as it was */
    uint32_t leaf;
    struct ix_queue *queue; /* of this compute node, left with the lock; NULL: none */
};

/* ---- locks ------------------------------------------------------------------------------------------------------ */

/* Takes what the view knows of the group: its entry, and if `whole` its leaves into the list. */
static int group_know(struct rolex_client *client, bool whole, uint32_t *attempts, struct held *held) {
    const struct rolex_view *view = &client->view;
    held->entry = view->table[held->leaf - view->window.lo] & ~ROLEX_LOCK;
    int rc = whole ? rolex_list(client, held->leaf, held->leaf, true) : 0;
    if (rc > 0) {
        rolex_stale(client);
        DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
        return AGAIN;
    }
    return rc;
}

/* Others of this compute node may have changed the group while this client waited for them: what they know costs no
 * verb. */
static int group_know_local(struct rolex_client *client, uint64_t key, bool whole, uint32_t *attempts,
                            struct held *held) {
    struct rolex_view *view = &client->view;
    dm_addr model = view->model;
    if (view->is_cached) {
        bool there = rolex_cache_find(client->cn->cache, &client->env, key, 0, view);
        if (!there || !dm_addr_equal(model, view->model)) {
            DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
            return AGAIN;
        }
    }
    return group_know(client, whole, attempts, held);
}

/* A compare-and-swap found another entry than the tables say. */
static int group_know_remote(struct rolex_client *client, uint64_t key, bool whole, uint32_t *attempts,
                             struct held *held) {
    dm_addr model = client->view.model;
    client->counts[ROLEX_STALE_LOCK]++;
    rolex_stale(client);
    DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
    DM_TRY(rolex_locate(client, key, 0, attempts));
    return dm_addr_equal(model, client->view.model) ? group_know(client, whole, attempts, held) : AGAIN;
}

static int group_moved(struct rolex_client *client, uint32_t *attempts) {
    client->counts[ROLEX_MODEL_MOVED]++;
    DM_TRY(rolex_moved(client, client->tries++, attempts));
    return AGAIN;
}

/* Tries until the lock is taken. */
static int group_try(struct rolex_client *client, uint64_t key, bool whole, uint32_t *attempts, struct held *held) {
    uint64_t *found = &client->env.words[W_LOCK];
    int rc = group_know_local(client, key, whole, attempts, held);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t tries = 1;; tries++) {
        if (held->entry & ROLEX_DEAD) {
            return group_moved(client, attempts);
        }
        dm_post_cas(client->env.ctx, held->word, held->entry, held->entry | ROLEX_LOCK, found);
        rolex_post_items(client);
        DM_TRY(dm_commit(client->env.ctx));
        if (*found == held->entry) {
            return 0;
        }
        if (*found & ROLEX_DEAD) {
            return group_moved(client, attempts);
        }
        if ((*found & ~ROLEX_LOCK) != held->entry) {
            rc = group_know_remote(client, key, whole, attempts, held);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        DM_TRY(ix_retry(client->env.ctx, DM_RETRY_LOCK, attempts, tries));
    }
}

/* Locks the group of `leaf` and reads all its leaves, or those listed if not `whole`. 0; AGAIN; a failure: then nothing
 * is held. One of a compute node's clients at a time tries the remote lock; the others wait without a verb. */
static int group_lock(struct rolex_client *client, uint64_t key, uint32_t leaf, bool whole, uint32_t *attempts,
                      struct held *held) {
    dm_addr word = dm_addr_add(rolex_table(client->view.model, &client->view.head), 8 * (uint64_t)leaf);
    *held = (struct held){.word = word, .leaf = leaf};
    held->queue = ix_queues_find(client->cn->queues, word);
    enum dm_phase before = dm_phase(client->env.ctx, DM_PHASE_LOCK);
    int rc = ix_queue_enter(client->env.ctx, held->queue);
    if (rc == 0) {
        rc = group_try(client, key, whole, attempts, held);
        if (rc != 0) {
            ix_queue_leave(client->env.ctx, held->queue);
        }
    }
    dm_phase(client->env.ctx, before);
    return rc;
}

/* Adds the unlock to the batch, leaving `next` in the entry, and sends it all. After a failure the entry is freed by
 * itself, but not after DM_ERR_STOPPED or DM_ERR_PEER, when no verb can be sent. */
static int group_unlock(struct rolex_client *client, const struct held *held, uint64_t next) {
    struct dm_ctx *ctx = client->env.ctx;
    dm_post_cas(ctx, held->word, held->entry | ROLEX_LOCK, next, NULL);
    int rc = dm_commit(ctx);
    if (rc < 0 && rc != DM_ERR_STOPPED && rc != DM_ERR_PEER) {
        dm_cas(ctx, held->word, held->entry | ROLEX_LOCK, next, NULL);
    }
    ix_queue_leave(ctx, held->queue);
    return rc;
}

/* Unlocks without a change; `outcome` unless that fails. */
static int group_leave(struct rolex_client *client, const struct held *held, int outcome) {
    int rc = group_unlock(client, held, held->entry);
    return rc < 0 ? rc : outcome;
}

/* Something failed before anything was changed: unlocks if a verb can still be sent. */
static int group_fail(struct rolex_client *client, const struct held *held, int rc) {
    if (rc == DM_ERR_STOPPED || rc == DM_ERR_PEER) {
        ix_queue_leave(client->env.ctx, held->queue);
        return rc;
    }
    return group_leave(client, held, rc);
}

/* The group was locked, but no leaf that was read covers the key: the synonyms known are not those there are. */
static int group_misled(struct rolex_client *client, const struct held *held, uint32_t *attempts) {
    client->counts[ROLEX_STALE_LOCK]++;
    DM_TRY(group_leave(client, held, 0));
    rolex_stale(client);
    DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
    return AGAIN;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Posts the write of a leaf; `number` 0 to 2 says which of the client's buffers it is sent from. */
static void leaf_post(struct rolex_client *client, unsigned number, dm_addr addr, const char *image, uint8_t version) {
    const struct rolex_layout *layout = &client->env.layout;
    char *wire = client->wires + (size_t)(client->item_max + number) * layout->wire_bytes;
    ix_lines_encode(image, layout->wire_bytes, version, wire);
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, layout->wire_bytes / DM_LINE);
    dm_post_write(client->env.ctx, addr, wire, layout->wire_bytes);
}

static uint8_t next_version(const struct rolex_item *item) {
    return (uint8_t)(ix_lines_node_version(item->wire) + 1) & 15;
}

static int leaf_write(struct rolex_client *client, const struct held *held, const struct rolex_item *item) {
    leaf_post(client, 0, item->addr, client->image, next_version(item));
    return group_unlock(client, held, held->entry);
}

/* ---- synonyms --------------------------------------------------------------------------------------------------- */

/* Tells the memory node that a model should be trained again. */
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

/* Half of the synonyms are used up: in good time; seven eighths: it is urgent. */
static int retrain_consider(struct rolex_client *client, uint32_t slot) {
    uint32_t synonyms = client->view.head.synonyms;
    uint32_t half = (synonyms + 1) / 2;
    uint32_t most = synonyms - synonyms / 8;
    if (!client->env.params->retrain || (slot != half && slot != most)) {
        return 0;
    }
    return retrain_ask(client, client->view.model, slot == most && most > half);
}

/* A leaf and a slot for a synonym, with one doorbell. */
static int synonym_take(struct rolex_client *client, struct rolex_leaf_ref *ref, uint64_t *used) {
    dm_addr slots = rolex_slots(client->view.model);
    unsigned node = dm_addr_node(slots);
    if (dm_addr_is_null(client->spare.addr) || dm_addr_node(client->spare.addr) != node) {
        return rolex_leaf_take(&client->env, node, slots, used, ref);
    }
    uint64_t *old = &client->env.words[W_SLOT];
    DM_TRY(dm_faa(client->env.ctx, slots, 1, old));
    *used = *old;
    *ref = client->spare;
    client->spare.addr = DM_NULL;
    return 0;
}

/* The model has no synonym left: the client that needs one replaces the model. */
static int model_split(struct rolex_client *client, const struct held *held, uint32_t *attempts) {
    struct rolex_cn *cn = client->cn;
    struct dm_ctx *ctx = client->env.ctx;
    DM_TRY(group_leave(client, held, 0));
    DM_TRY(dm_mutex_lock(ctx, &cn->replacing));
    int rc = rolex_replace(&client->env, cn->work, client->view.model, false);
    dm_mutex_unlock(ctx, &cn->replacing);
    DM_TRY(rc);
    client->counts[ROLEX_MODEL_SPLIT] += rc == 0;
    DM_TRY(rolex_moved(client, client->tries++, attempts));
    return AGAIN;
}

/* The leaf in client->image is full: its upper half goes to a new synonym. */
static int leaf_split(struct rolex_client *client, const struct held *held, const struct rolex_item *item, uint64_t key,
                      const void *value, uint32_t *attempts) {
    const struct rolex_layout *layout = &client->env.layout;
    const struct rolex_view *view = &client->view;
    struct rolex_leaf_ref fresh = {.addr = DM_NULL};
    uint64_t used;
    int rc = synonym_take(client, &fresh, &used);
    if (rc < 0) {
        return group_fail(client, held, rc);
    }
    if (used >= view->head.synonyms) {
        client->spare = fresh;
        return model_split(client, held, attempts);
    }
    uint32_t slot = (uint32_t)used + 1;
    uint32_t at;
    rolex_split(layout, client->image, client->right, key);
    char *into = rolex_covers(client->right, key) ? client->right : client->image;
    (void)rolex_find(layout, into, key, &at);
    rolex_put(layout, into, at, key, value);
    uint64_t *slot_entry = &client->env.words[W_SLOT_ENTRY];
    *slot_entry = rolex_entry_link(fresh.entry, rolex_entry_synonym(held->entry));
    leaf_post(client, 0, fresh.addr, client->right, (fresh.version + 1) & 15);
    dm_post_write(client->env.ctx, dm_addr_add(rolex_slots(view->model), 8 * (uint64_t)slot), slot_entry, 8);
    leaf_post(client, 1, item->addr, client->image, next_version(item));
    uint64_t next = rolex_entry_link(held->entry, slot);
    DM_TRY(group_unlock(client, held, next));
    client->counts[ROLEX_SYNONYM]++;
    if (view->is_cached) {
        rolex_cache_note(client->cn->cache, view, held->leaf, next, slot, *slot_entry);
    }
    return retrain_consider(client, slot);
}

/* ---- insert ----------------------------------------------------------------------------------------------------- */

/* Fetches the window's trained leaves and finds the one whose group covers key: the last that begins at or below it.
 * AGAIN; DM_EXISTS if the key is seen already. */
static int group_find(struct rolex_client *client, uint64_t key, uint32_t *attempts, uint32_t *leaf) {
    const struct rolex_view *view = &client->view;
    int rc = rolex_fetch(client, key, 0, false, attempts);
    DM_TRY(rc);
    const struct rolex_item *last = NULL;
    if (rc == 0) {
        if (view->is_cached && client->env.words[ROLEX_W_OWN] & ROLEX_RETIRED) {
            client->counts[ROLEX_MODEL_MOVED]++;
            DM_TRY(rolex_moved(client, client->tries++, attempts));
            return AGAIN;
        }
        for (uint32_t i = 0; i < client->item_count && rolex_item_low(&client->items[i]) <= key; i++) {
            last = &client->items[i];
        }
    }
    if (!last) {
        rolex_stale(client);
        DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
        return AGAIN;
    }
    uint32_t at;
    *leaf = last->leaf;
    bool is_seen = rolex_item_decode(client, last, client->image) && rolex_covers(client->image, key) &&
                   rolex_find(&client->env.layout, client->image, key, &at);
    return is_seen ? DM_EXISTS : 0;
}

static int insert_once(struct rolex_client *client, uint64_t key, const void *value, uint32_t *attempts) {
    const struct rolex_layout *layout = &client->env.layout;
    struct held held;
    uint32_t leaf;
    int rc = group_find(client, key, attempts, &leaf);
    if (rc != 0) {
        return rc;
    }
    rc = group_lock(client, key, leaf, true, attempts, &held);
    if (rc != 0) {
        return rc;
    }
    bool torn;
    const struct rolex_item *item = rolex_cover(client, key, &torn);
    if (!item) {
        return group_misled(client, &held, attempts);
    }
    uint32_t at;
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    if (rolex_find(layout, client->image, key, &at)) {
        return group_leave(client, &held, DM_EXISTS);
    }
    if (rolex_count(layout, client->image) == layout->delta) {
        return leaf_split(client, &held, item, key, value, attempts);
    }
    rolex_put(layout, client->image, at, key, value);
    return leaf_write(client, &held, item);
}

int rolex_insert(void *handle, uint64_t key, const void *value) {
    struct rolex_client *client = handle;
    uint32_t attempts = 0;
    client->tries = 1;
    int rc;
    do {
        rc = insert_once(client, key, value, &attempts);
    } while (rc == AGAIN);
    return rc;
}

/* ---- update and delete ------------------------------------------------------------------------------------------ */

/* A delete has emptied a synonym: the leaf in front of it takes over its range, it leaves its chain and goes to the
 * reclaiming queue. DM_NOT_FOUND if that cannot be done: then it stays, empty; otherwise the group is unlocked. */
static int synonym_unlink(struct rolex_client *client, const struct held *held, const struct rolex_item *item) {
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
    /* The chain as it is: links in its middle change without the entry. */
    uint32_t bytes = 8 * (1 + (uint32_t)view->head.synonyms);
    int rc = dm_read(client->env.ctx, rolex_slots(view->model), client->fetched, bytes);
    if (rc < 0) {
        return group_fail(client, held, rc);
    }
    uint32_t previous = 0;
    uint32_t slot = rolex_entry_synonym(held->entry);
    for (uint32_t n = 0; slot != item->slot && slot != 0 && n < view->head.synonyms; n++) {
        previous = slot;
        slot = rolex_entry_synonym(client->fetched[slot]);
    }
    if (slot != item->slot) {
        return DM_NOT_FOUND;
    }
    uint32_t behind = rolex_entry_synonym(client->fetched[slot]);
    struct rolex_leaf_ref fresh = {rolex_entry_link(item->entry, 0), item->addr, next_version(item)};
    rolex_bounds_set(client->other, rolex_low(client->other), rolex_high(client->image));
    rolex_leaf_init(&client->env.layout, client->image, 0, 0);
    leaf_post(client, 0, before->addr, client->other, next_version(before));
    leaf_post(client, 1, item->addr, client->image, fresh.version);
    uint64_t *link = &client->env.words[W_SLOT_ENTRY];
    if (previous > 0) {
        *link = rolex_entry_link(client->fetched[previous], behind);
        dm_post_write(client->env.ctx, dm_addr_add(rolex_slots(view->model), 8 * (uint64_t)previous), link, 8);
    }
    rolex_leaf_post_free(&client->env, dm_addr_node(item->addr));
    DM_TRY(group_unlock(client, held, previous > 0 ? held->entry : rolex_entry_link(held->entry, behind)));
    client->counts[ROLEX_UNLINKED]++;
    rolex_stale(client);
    return rolex_leaf_finish_free(&client->env, &fresh);
}

static int pair_remove(struct rolex_client *client, const struct held *held, const struct rolex_item *item,
                       uint32_t at) {
    const struct rolex_layout *layout = &client->env.layout;
    rolex_take(layout, client->image, at);
    if (rolex_count(layout, client->image) == 0 && item->slot > 0 && client->item_count > 1) {
        int rc = synonym_unlink(client, held, item);
        if (rc != DM_NOT_FOUND) {
            return rc;
        }
    }
    return leaf_write(client, held, item);
}

/* Locks the group of the leaf that was read and reads the leaf again; all of the group if a delete may empty it. */
static int leaf_lock(struct rolex_client *client, uint64_t key, const struct rolex_item *item, bool whole,
                     uint32_t *attempts, struct held *held) {
    struct rolex_item own = *item;
    own.wire = client->wires;
    client->items[0] = own;
    client->item_count = 1;
    return group_lock(client, key, own.leaf, whole, attempts, held);
}

/* Gives the key a value, or takes it out if value is NULL. */
static int change_once(struct rolex_client *client, uint64_t key, const void *value, uint32_t *attempts) {
    const struct rolex_layout *layout = &client->env.layout;
    const struct rolex_item *item = NULL;
    struct held held;
    uint32_t at;
    int rc = rolex_read_leaf(client, key, attempts, &item);
    if (rc != 0) {
        return rc;
    }
    if (!rolex_find(layout, client->image, key, &at)) {
        return DM_NOT_FOUND;
    }
    bool empties = !value && item->slot > 0 && rolex_count(layout, client->image) <= 1;
    rc = leaf_lock(client, key, item, empties, attempts, &held);
    if (rc != 0) {
        return rc;
    }
    bool torn;
    item = rolex_cover(client, key, &torn);
    if (!item) {
        return group_misled(client, &held, attempts);
    }
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    if (!rolex_find(layout, client->image, key, &at)) {
        return group_leave(client, &held, DM_NOT_FOUND);
    }
    if (!value) {
        return pair_remove(client, &held, item, at);
    }
    rolex_value_set(layout, client->image, at, value);
    return leaf_write(client, &held, item);
}

static int change(struct rolex_client *client, uint64_t key, const void *value) {
    uint32_t attempts = 0;
    client->tries = 1;
    int rc;
    do {
        rc = change_once(client, key, value, &attempts);
    } while (rc == AGAIN);
    return rc;
}

int rolex_update(void *client, uint64_t key, const void *value) {
    return change(client, key, value);
}

int rolex_remove(void *client, uint64_t key) {
    return change(client, key, NULL);
}
