/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans: one doorbell reads the window, as many leaves after it as the missing pairs fill, and their synonyms.
 *
 * A cursor moves from leaf to leaf by their bounds: the scan takes the keys from the cursor on of the leaf that covers
 * it, and the leaf's upper bound is the next cursor. Each leaf was current for its range at some moment of the scan,
 * and the ranges are adjacent, so no key that was present throughout is missed. If no leaf that was read covers the
 * cursor, the next batch begins there.
 */
#include "locate.h"

struct output {
    uint64_t *keys;
    char *values;
    uint32_t count, found;
};

/* Takes the pairs of the leaf in client->image from the cursor on. */
static void leaf_take(struct rolex_client *client, struct output *output, uint64_t cursor) {
    const struct rolex_layout *layout = &client->env.layout;
    uint32_t count = rolex_count(layout, client->image);
    uint32_t missing = output->count - output->found;
    uint32_t at = 0;
    if (rolex_low(client->image) < cursor) {
        (void)rolex_find(layout, client->image, cursor, &at);
        dm_charge(client->env.ctx, DM_WORK_NODE_PROBE, 1);
    }
    uint32_t taken = count - at < missing ? count - at : missing;
    size_t value_bytes = layout->value_bytes;
    memcpy(output->keys + output->found, client->image + ROLEX_KEYS_AT + 8 * at, 8 * (size_t)taken);
    memcpy(output->values + output->found * value_bytes, rolex_value(layout, client->image, at), taken * value_bytes);
    dm_charge(client->env.ctx, DM_WORK_LINE_COPY, (uint32_t)(taken * (8 + value_bytes) / DM_LINE) + 2);
    output->found += taken;
}

/* Leaves to read after the window for the missing pairs, within the space that all synonyms leave. */
static uint32_t more_wanted(const struct rolex_client *client, const struct output *output) {
    const struct rolex_env *env = &client->env;
    uint32_t space = client->item_max - rolex_window_max(env->params, env->per_leaf) - (uint32_t)env->params->synonyms;
    uint32_t wanted = (output->count - output->found) / env->per_leaf + 1;
    return wanted < space ? wanted : space;
}

/* Reads a batch from the cursor on, takes the pairs that it covers and advances *cursor. DM_NOT_FOUND: it covers none.
 */
static int batch_take(struct rolex_client *client, struct output *output, uint64_t *cursor, bool *torn,
                      uint32_t *attempts) {
    int rc = rolex_fetch(client, *cursor, more_wanted(client, output), true, attempts);
    if (rc != 0) {
        return rc;
    }
    bool advanced = false;
    while (output->found < output->count && *cursor < UINT64_MAX && rolex_cover(client, *cursor, torn)) {
        leaf_take(client, output, *cursor);
        *cursor = rolex_high(client->image);
        advanced = true;
    }
    return advanced ? 0 : DM_NOT_FOUND;
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
            DM_TRY(rolex_model_follow(client, 0, &attempts));
        } else if (!torn) {
            rolex_tables_refresh(client);
        }
        DM_TRY(dm_retry(client->env.ctx, torn ? DM_RETRY_TORN : DM_RETRY_STALE, &attempts));
    }
    *found = output.found;
    return 0;
}
