/* SPDX-License-Identifier: Apache-2.0
 *
 * Get: reading a leaf until it answers. The way down is indexes/shared/tree.c.
 */
#include "sherman.h"

bool sherman_entry_whole(struct sherman_client *client, const void *wire, unsigned i) {
    const struct node_layout *layout = &client->cn->layout;
    if (ix_lines_object_whole(wire, leaf_entry_offset(layout, i), layout->entry_bytes, layout->versions)) {
        return true;
    }
    client->counts[SHERMAN_TORN_ENTRY]++;
    return false;
}

bool sherman_entries_whole(struct sherman_client *client, const void *wire) {
    const struct node_layout *layout = &client->cn->layout;
    if (client->cn->params->torn == SHERMAN_TORN_ABSENT) {
        return true;
    }
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        if (!sherman_entry_whole(client, wire, i)) {
            return false;
        }
    }
    return true;
}

/* Looks for key in the leaf just read: 0, DM_NOT_FOUND, or IX_TREE_AGAIN when an entry that matters is half-written. A
 * key that is itself half-written cannot be recognised, so absence counts only if every entry is whole. */
static int leaf_answer(struct sherman_client *client, uint64_t key, void *value) {
    const struct node_layout *layout = &client->cn->layout;
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    int at = leaf_find(layout, client->tree.image, key);
    if (at == ENTRY_NONE) {
        return sherman_entries_whole(client, client->tree.wire) ? DM_NOT_FOUND : IX_TREE_AGAIN;
    }
    if (!sherman_entry_whole(client, client->tree.wire, (unsigned)at)) {
        return client->cn->params->torn == SHERMAN_TORN_ABSENT ? DM_NOT_FOUND : IX_TREE_AGAIN;
    }
    memcpy(value, leaf_value(layout, client->tree.image, (unsigned)at), layout->value_bytes);
    return 0;
}

/* Reads leaves from addr on until one answers. */
static int leaf_get(struct sherman_client *client, uint64_t key, dm_addr addr, uint32_t *attempts, void *value) {
    for (;;) {
        int rc = ix_tree_fetch(&client->tree, addr, 0, attempts);
        const struct ix_node_head *head = ix_node_head_in(client->tree.image);
        if (rc == IX_TREE_AGAIN || (rc == 0 && key < head->low)) {
            return ix_tree_misled(&client->tree, 0, false, attempts);
        }
        DM_TRY(rc);
        if (key >= head->high) {
            addr = head->sibling;
            rc = ix_tree_misled(&client->tree, 0, true, attempts);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        rc = leaf_answer(client, key, value);
        if (rc != IX_TREE_AGAIN) {
            return rc;
        }
        DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, attempts));
    }
}

int sherman_get(void *handle, uint64_t key, void *value) {
    struct sherman_client *client = handle;
    uint32_t attempts = 0;
    uint64_t word = 0;
    int rc;
    do {
        DM_TRY(ix_tree_descend(&client->tree, key, 0, &attempts));
        rc = leaf_get(client, key, client->tree.child.addr, &attempts, client->indirect ? &word : value);
        rc = rc == 0 ? ix_indirect_fetch(client->indirect, key, word, &attempts, value) : rc;
    } while (rc == IX_TREE_AGAIN || rc == IX_INDIRECT_GONE);
    return rc;
}
