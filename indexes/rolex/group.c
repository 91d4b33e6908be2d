/* SPDX-License-Identifier: Apache-2.0
 *
 * Locking a group and writing its leaves (section 3.4).
 *
 * The lock is taken by a compare-and-swap of the complete table entry, so the client that gets it has the current
 * entry. A new synonym always becomes the first of its chain, so the entry names it: a client with the current entry
 * has all synonyms.
 */
#include "group.h"

#include "indexes/shared/retry.h"
#include "locate.h"

enum { W_LOCK = ROLEX_W_OWN + 1 };

int rolex_group_again(struct rolex_client *client, uint32_t *attempts) {
    rolex_tables_refresh(client);
    DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
    return ROLEX_AGAIN;
}

/* Takes the group's entry from the view, and if `all` lists its leaves. */
static int group_list(struct rolex_client *client, bool all, uint32_t *attempts, struct rolex_group *group) {
    const struct rolex_view *view = &client->view;
    group->entry = view->table[group->leaf - view->window.lo] & ~ROLEX_LOCK;
    int rc = all ? rolex_leaves_list(client, group->leaf, group->leaf, true) : 0;
    if (rc > 0) {
        return rolex_group_again(client, attempts);
    }
    return rc;
}

/* Other clients of this compute node may have changed the group while this one waited in the local lock queue. The
 * cache has their changes, at no verb. */
static int group_refresh(struct rolex_client *client, uint64_t key, bool all, uint32_t *attempts,
                         struct rolex_group *group) {
    struct rolex_view *view = &client->view;
    dm_addr model = view->model;
    if (view->is_cached) {
        bool there = rolex_cache_find(client->cn->cache, &client->env, key, 0, view);
        if (!there || !dm_addr_equal(model, view->model)) {
            DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
            return ROLEX_AGAIN;
        }
    }
    return group_list(client, all, attempts, group);
}

/* A compare-and-swap found another entry than the tables have: reads the tables again. */
static int group_reread(struct rolex_client *client, uint64_t key, bool all, uint32_t *attempts,
                        struct rolex_group *group) {
    dm_addr model = client->view.model;
    client->counts[ROLEX_STALE_LOCK]++;
    rolex_tables_refresh(client);
    DM_TRY(dm_retry(client->env.ctx, DM_RETRY_STALE, attempts));
    DM_TRY(rolex_locate(client, key, 0, attempts));
    return dm_addr_equal(model, client->view.model) ? group_list(client, all, attempts, group) : ROLEX_AGAIN;
}

static int group_moved(struct rolex_client *client, uint32_t *attempts) {
    client->counts[ROLEX_MODEL_MOVED]++;
    DM_TRY(rolex_model_follow(client, client->tries++, attempts));
    return ROLEX_AGAIN;
}

/* Retries until the lock is taken. */
static int group_try(struct rolex_client *client, uint64_t key, bool all, uint32_t *attempts,
                     struct rolex_group *group) {
    uint64_t *found = &client->env.words[W_LOCK];
    int rc = group_refresh(client, key, all, attempts, group);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t tries = 1;; tries++) {
        if (group->entry & ROLEX_DEAD) {
            return group_moved(client, attempts);
        }
        dm_post_cas(client->env.ctx, group->word, group->entry, group->entry | ROLEX_LOCK, found);
        rolex_post_items(client);
        DM_TRY(dm_commit(client->env.ctx));
        if (*found == group->entry) {
            return 0;
        }
        if (*found & ROLEX_DEAD) {
            return group_moved(client, attempts);
        }
        if ((*found & ~ROLEX_LOCK) != group->entry) {
            rc = group_reread(client, key, all, attempts, group);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        DM_TRY(ix_retry(client->env.ctx, DM_RETRY_LOCK, attempts, tries));
    }
}

int rolex_group_lock(struct rolex_client *client, uint64_t key, uint32_t leaf, bool all, uint32_t *attempts,
                     struct rolex_group *group) {
    dm_addr word = dm_addr_add(rolex_table(client->view.model, &client->view.head), 8 * (uint64_t)leaf);
    *group = (struct rolex_group){.word = word, .leaf = leaf};
    group->queue = ix_queues_find(client->cn->queues, word);
    dm_charge(client->env.ctx, DM_WORK_HASH, group->queue ? 1 : 0);
    enum dm_phase before = dm_phase(client->env.ctx, DM_PHASE_LOCK);
    int rc = ix_queue_enter(client->env.ctx, group->queue);
    if (rc == 0) {
        rc = group_try(client, key, all, attempts, group);
        if (rc != 0) {
            ix_queue_leave(client->env.ctx, group->queue);
        }
    }
    dm_phase(client->env.ctx, before);
    return rc;
}

int rolex_group_unlock(struct rolex_client *client, const struct rolex_group *group, uint64_t next) {
    struct dm_ctx *ctx = client->env.ctx;
    dm_post_cas(ctx, group->word, group->entry | ROLEX_LOCK, next, NULL);
    /* After an error the client cannot know whether the lock was released, as its word does not name the holder, nor
     * which of the leaves in front of it were written. A second swap could release another client's lock, or link a
     * leaf that was not written. */
    int rc = dm_commit(ctx);
    ix_queue_leave(ctx, group->queue);
    return rc;
}

int rolex_group_release(struct rolex_client *client, const struct rolex_group *group, int outcome) {
    int rc = rolex_group_unlock(client, group, group->entry);
    return rc < 0 ? rc : outcome;
}

int rolex_group_fail(struct rolex_client *client, const struct rolex_group *group, int rc) {
    if (dm_is_final(rc)) {
        ix_queue_leave(client->env.ctx, group->queue);
        return rc;
    }
    return rolex_group_release(client, group, rc);
}

int rolex_group_stale(struct rolex_client *client, const struct rolex_group *group, uint32_t *attempts) {
    client->counts[ROLEX_STALE_LOCK]++;
    DM_TRY(rolex_group_release(client, group, 0));
    return rolex_group_again(client, attempts);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void rolex_leaf_post(struct rolex_client *client, unsigned number, dm_addr addr, const char *image, uint8_t version) {
    const struct rolex_layout *layout = &client->env.layout;
    char *wire = client->wires + (size_t)(client->item_max + number) * layout->wire_bytes;
    ix_lines_encode(image, layout->wire_bytes, version, wire);
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, layout->wire_bytes / DM_LINE);
    dm_post_write(client->env.ctx, addr, wire, layout->wire_bytes);
}

uint8_t rolex_next_version(const struct rolex_item *item) {
    return (uint8_t)(ix_lines_node_version(item->wire) + 1) & 15;
}

int rolex_leaf_write(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item) {
    rolex_leaf_post(client, 0, item->addr, client->image, rolex_next_version(item));
    return rolex_group_unlock(client, group, group->entry);
}
