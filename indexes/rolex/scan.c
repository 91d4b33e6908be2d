/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans: the window and as many leaves behind it as the keys still wanted fill, with their synonyms, with one doorbell.
 *
 * A cursor goes from leaf to leaf by their bounds: the leaf that covers it gives its keys from the cursor on, then the
 * cursor is the leaf's upper bound. Each leaf was the truth for its range at some moment of the scan, and the ranges
 * follow each other without a gap, so no key that was there throughout is passed over. Where no leaf that was read
 * covers the cursor, the next batch begins there.
 */
#include "locate.h"

struct output {
    uint64_t *keys;
    char *values;
    uint32_t count, found;
};

/* Takes what the leaf in client->image has from the cursor on. */
static void leaf_take(struct rolex_client *client, struct output *output, uint64_t cursor) {
    const struct rolex_layout *layout = &client->env.layout;
    uint32_t count = rolex_count(layout, client->image);
    uint32_t at;
    (void)rolex_find(layout, client->image, cursor, &at);
    for (; at < count && output->found < output->count; at++) {
        output->keys[output->found] = rolex_key(client->image, at);
        memcpy(output->values + (size_t)output->found * layout->value_bytes, rolex_value(layout, client->image, at),
               layout->value_bytes);
        output->found++;
    }
}

/* Leaves to read behind the window for the keys still wanted, as far as there is room with all synonyms. */
static uint32_t more_wanted(const struct rolex_client *client, const struct output *output) {
    const struct rolex_env *env = &client->env;
    uint32_t room = client->item_max - rolex_window_max(env->params, env->per_leaf) - (uint32_t)env->params->synonyms;
    uint32_t wanted = (output->count - output->found) / env->per_leaf + 1;
    return wanted < room ? wanted : room;
}

/* Reads a batch from the cursor on and takes what it covers. *cursor moves on, or DM_NOT_FOUND. */
static int batch_take(struct rolex_client *client, struct output *output, uint64_t *cursor, bool *torn,
                      uint32_t *attempts) {
    const struct rolex_view *view = &client->view;
    DM_TRY(rolex_locate(client, *cursor, more_wanted(client, output), attempts));
    int rc = rolex_list(client, view->window.lo, view->window.hi, true);
    if (rc != 0) {
        return rc;
    }
    rolex_post_items(client);
    rolex_post_counter(client);
    DM_TRY(dm_commit(client->env.ctx));
    bool moved = false;
    while (output->found < output->count && *cursor < UINT64_MAX && rolex_cover(client, *cursor, torn)) {
        dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
        leaf_take(client, output, *cursor);
        *cursor = rolex_high(client->image);
        moved = true;
    }
    return moved ? 0 : DM_NOT_FOUND;
}

int rolex_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct rolex_client *client = handle;
    struct output output = {.keys = keys, .values = values, .count = count};
    uint32_t attempts = 0;
    *found = 0;
    for (uint64_t cursor = first; output.found < count && cursor < UINT64_MAX;) {
        bool torn = false;
        int rc = batch_take(client, &output, &cursor, &torn, &attempts);
        DM_TRY(rc);
        if (rc == 0) {
            continue;
        }
        client->counts[torn ? ROLEX_TORN : ROLEX_STALE_TABLE]++;
        if (!torn && client->view.is_cached && client->env.words[ROLEX_W_OWN] & ROLEX_RETIRED) {
            DM_TRY(rolex_moved(client, 0, &attempts));
        } else if (!torn) {
            rolex_stale(client);
        }
        DM_TRY(dm_retry(client->env.ctx, torn ? DM_RETRY_TORN : DM_RETRY_STALE, &attempts));
    }
    *found = output.found;
    return 0;
}
