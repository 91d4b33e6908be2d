/* SPDX-License-Identifier: Apache-2.0
 *
 * Get (paper, 4.3): one read of the leaf that a cached slot leads to.
 *
 * The line with head and key is read at one moment. At that moment the leaf was live and the key's, and the checksum in
 * it is that of the value that the key had then.
 */
#include "smart.h"

int smart_get(void *handle, uint64_t key, void *value) {
    struct smart_client *client = handle;
    struct smart_at at = {0};
    DM_TRY(smart_start(client, key, SMART_DEEPEST, &at));
    for (;;) {
        enum smart_found found;
        DM_TRY(smart_descend(client, key, &at, &found));
        int rc;
        if (found == SMART_FOUND_LEAF && smart_leaf_key(client->leaf) == key) {
            const char *stored = client->leaf + SMART_LEAF_VALUE;
            if (!client->indirect) {
                memcpy(value, stored, client->cn->layout.stored_bytes);
                return 0;
            }
            rc = ix_indirect_fetch(client->indirect, key, ix_indirect_word(client->indirect, stored), &at.attempts,
                                   value);
            if (rc != IX_INDIRECT_REUSED) {
                return rc;
            }
        } else {
            /* A node that was read and has no slot for the key is proof enough. */
            rc = found == SMART_FOUND_NONE ? 0 : smart_confirm(client, key, &at);
            if (rc != SMART_AGAIN) {
                return rc < 0 ? rc : DM_NOT_FOUND;
            }
        }
    }
}
