/* SPDX-License-Identifier: Apache-2.0
 *
 * Gets: the version that the cached pointer names and the shortcut, in one round trip; then along the chain.
 */
#include <string.h>

#include "clover.h"

int clover_get(void *handle, uint64_t key, void *value) {
    struct clover_client *client = handle;
    struct clover_spot spot;
    uint32_t attempts = 0;
    clover_spot_open(client, key, &spot);
    int rc = clover_tail_find(client, &spot, true, &attempts);
    if (rc != 0) {
        return rc;
    }
    clover_spot_keep(client, &spot);
    if (clover_is_tombstone(spot.pointer)) {
        return DM_NOT_FOUND;
    }
    memcpy(value, client->space + CLOVER_HEAD_BYTES, client->cn->geometry.value_bytes);
    return 0;
}
