/* SPDX-License-Identifier: Apache-2.0
 *
 * Get: the combined buckets, then the block.
 */
#include "race.h"

int race_get(void *handle, uint64_t key, void *value) {
    struct race_client *client = handle;
    const struct race_match *match;
    uint32_t attempts = 0;
    int rc = race_search(client, key, value, &match, &attempts);
    return race_end(client, rc != 0 || match ? rc : DM_NOT_FOUND);
}
