/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert, update and delete (section 3.4): one doorbell reads, one locks and reads again, one writes and unlocks. With
 * indirect values the block is taken on the leaf's memory node and written before the leaf in the last of them; the
 * block that an update or delete removes from the leaf is kept once the leaf has been written.
 */
#include "locate.h"
#include "split.h"

/* ---- the group of a key ------------------------------------------------------------------------------------------ */

/* The trained leaf whose group covers key, among the listed ones: the last that begins at or below it. Their lower
 * bounds never change. NULL: none does. */
static const struct rolex_item *group_first(struct rolex_client *client, uint64_t key) {
    const struct rolex_item *last = NULL;
    uint32_t compared = 0;
    for (uint32_t i = 0; i < client->item_count; i++) {
        const struct rolex_item *item = &client->items[i];
        if (item->slot > 0) {
            continue;
        }
        if (rolex_item_low(item) > key) {
            break;
        }
        last = item;
        compared++;
    }
    dm_charge(client->env.ctx, DM_WORK_KEY_COMPARE, compared);
    return last;
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

/* Reads the window's trained leaves and finds the one whose group covers key. ROLEX_AGAIN; DM_EXISTS if this leaf
 * already has the key. */
static int group_find(struct rolex_client *client, uint64_t key, uint32_t *attempts, uint32_t *leaf) {
    const struct rolex_view *view = &client->view;
    int rc = rolex_fetch(client, key, 0, false, attempts);
    DM_TRY(rc);
    const struct rolex_item *last = NULL;
    if (rc == 0) {
        if (view->is_cached && client->env.words[ROLEX_W_OWN] & ROLEX_RETIRED) {
            client->counts[ROLEX_MODEL_MOVED]++;
            DM_TRY(rolex_model_follow(client, client->tries++, attempts));
            return ROLEX_AGAIN;
        }
        last = group_first(client, key);
    }
    if (!last) {
        return rolex_group_again(client, attempts);
    }
    uint32_t at;
    *leaf = last->leaf;
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    bool is_seen = rolex_item_decode(client, last, client->image) && rolex_covers(client->image, key) &&
                   rolex_find(&client->env.layout, client->image, key, &at);
    return is_seen ? DM_EXISTS : 0;
}

static int insert_once(struct rolex_client *client, uint64_t key, const void *value, uint32_t *attempts) {
    const struct rolex_layout *layout = &client->env.layout;
    struct rolex_group group;
    uint32_t leaf = 0;
    int rc = group_find(client, key, attempts, &leaf);
    if (rc != 0) {
        return rc;
    }
    rc = rolex_group_lock(client, key, leaf, true, attempts, &group);
    if (rc != 0) {
        return rc;
    }
    bool torn;
    const struct rolex_item *item = rolex_cover(client, key, &torn);
    if (!item) {
        return rolex_group_stale(client, &group, attempts);
    }
    uint32_t at;
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    if (rolex_find(layout, client->image, key, &at)) {
        return rolex_group_release(client, &group, DM_EXISTS);
    }
    const void *stored;
    rc = ix_indirect_make(client->indirect, dm_addr_node(item->addr), key, value, &stored);
    if (rc < 0) {
        return rolex_group_fail(client, &group, rc);
    }
    if (rolex_count(layout, client->image) == layout->delta) {
        return rolex_leaf_split(client, &group, item, key, stored, attempts);
    }
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, layout->wire_bytes / DM_LINE / 2);
    rolex_pair_insert(layout, client->image, at, key, stored);
    ix_indirect_post(client->indirect);
    return rolex_leaf_write(client, &group, item);
}

int rolex_insert(void *handle, uint64_t key, const void *value) {
    struct rolex_client *client = handle;
    uint32_t attempts = 0;
    client->tries = 1;
    int rc;
    do {
        rc = insert_once(client, key, value, &attempts);
    } while (rc == ROLEX_AGAIN);
    return rc;
}

/* ---- update and delete ------------------------------------------------------------------------------------------- */

static int pair_remove(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item,
                       uint32_t at) {
    const struct rolex_layout *layout = &client->env.layout;
    rolex_pair_remove(layout, client->image, at);
    if (rolex_count(layout, client->image) == 0 && item->slot > 0 && client->item_count > 1) {
        int rc = rolex_synonym_unlink(client, group, item);
        if (rc != DM_NOT_FOUND) {
            return rc;
        }
    }
    return rolex_leaf_write(client, group, item);
}

static int pair_update(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item,
                       uint32_t at, const void *value) {
    const struct rolex_layout *layout = &client->env.layout;
    const void *stored;
    uint64_t key = rolex_key(client->image, at);
    int rc = ix_indirect_make(client->indirect, dm_addr_node(item->addr), key, value, &stored);
    if (rc < 0) {
        return rolex_group_fail(client, group, rc);
    }
    dm_charge(client->env.ctx, DM_WORK_KEY_COMPARE, rolex_padding_compares(layout));
    rolex_value_set(layout, client->image, at, stored);
    ix_indirect_post(client->indirect);
    return rolex_leaf_write(client, group, item);
}

/* Locks the group of the leaf that was read and reads the leaf again, or all of the group if a delete may empty it. Old
 * tables may list a synonym in a group that it has left: it was emptied there, and now has keys of another group of the
 * window. The group to lock is the key's. ROLEX_AGAIN. */
static int leaf_lock(struct rolex_client *client, uint64_t key, const struct rolex_item *item, bool all,
                     uint32_t *attempts, struct rolex_group *group) {
    const struct rolex_item *first = item->slot > 0 ? group_first(client, key) : item;
    if (!first) {
        return rolex_group_again(client, attempts);
    }
    struct rolex_item own = *item;
    own.leaf = first->leaf;
    own.wire = client->wires;
    client->items[0] = own;
    client->item_count = 1;
    return rolex_group_lock(client, key, own.leaf, all, attempts, group);
}

/* Stores a new value for the key, or deletes it if value is NULL. */
static int change_once(struct rolex_client *client, uint64_t key, const void *value, uint32_t *attempts) {
    const struct rolex_layout *layout = &client->env.layout;
    const struct rolex_item *item = NULL;
    struct rolex_group group;
    uint32_t at;
    int rc = rolex_read_leaf(client, key, attempts, &item);
    if (rc != 0) {
        return rc;
    }
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    if (!rolex_find(layout, client->image, key, &at)) {
        return DM_NOT_FOUND;
    }
    bool empties = !value && item->slot > 0 && rolex_count(layout, client->image) <= 1;
    rc = leaf_lock(client, key, item, empties, attempts, &group);
    if (rc != 0) {
        return rc;
    }
    bool torn;
    item = rolex_cover(client, key, &torn);
    if (!item) {
        return rolex_group_stale(client, &group, attempts);
    }
    dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    if (!rolex_find(layout, client->image, key, &at)) {
        return rolex_group_release(client, &group, DM_NOT_FOUND);
    }
    uint64_t before = ix_indirect_word(client->indirect, rolex_value(layout, client->image, at));
    rc = value ? pair_update(client, &group, item, at, value) : pair_remove(client, &group, item, at);
    if (rc == 0) {
        ix_indirect_drop(client->indirect, before);
    }
    return rc;
}

static int change(struct rolex_client *client, uint64_t key, const void *value) {
    uint32_t attempts = 0;
    client->tries = 1;
    int rc;
    do {
        rc = change_once(client, key, value, &attempts);
    } while (rc == ROLEX_AGAIN);
    return rc;
}

int rolex_update(void *client, uint64_t key, const void *value) {
    return change(client, key, value);
}

int rolex_remove(void *client, uint64_t key) {
    return change(client, key, NULL);
}
