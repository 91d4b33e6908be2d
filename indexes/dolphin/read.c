/* SPDX-License-Identifier: Apache-2.0
 *
 * Get (paper, III-B2): one read of the leaf that the cache leads to, words and values together.
 *
 * Why the result is right. The first line is read atomically, so the range is consistent. A word with the head's
 * version is a state of its entry: entries never move between two complete writes of the leaf, and a deleted entry is
 * not reused before the next complete write. The value is in a line with a tag of that version, so it was written to
 * this very entry. A value written after the word was read comes from a write that began while the key was there.
 */
#include "dolphin.h"

/* Copies the value of a byte out of a leaf in local memory. 0; DM_NOT_FOUND; DOLPHIN_AGAIN if the leaf was read in the
 * middle of a change. */
static int value_get(struct dolphin_client *client, const void *leaf, unsigned byte, void *value) {
    const struct dolphin_cn *cn = client->cn;
    const struct dolphin_layout *layout = &cn->layout;
    uint32_t version = dolphin_leaf_head_in(leaf)->version;
    int at = dolphin_leaf_find(layout, leaf, byte);
    if (at < 0) {
        return cn->check_smo && !dolphin_leaf_consistent(layout, leaf) ? DOLPHIN_AGAIN : DM_NOT_FOUND;
    }
    if (cn->check_smo && dolphin_entry_version(dolphin_leaf_words_in(leaf)[at]) != version) {
        return DOLPHIN_AGAIN;
    }
    const char *cell = (const char *)leaf + dolphin_cell_offset(layout, (unsigned)at);
    return dolphin_cell_get(layout, cell, version, cn->publish, value) ? 0 : DOLPHIN_AGAIN;
}

/* Reads the target's leaf until the copy is consistent. 0 or DM_NOT_FOUND; DOLPHIN_AGAIN: descend again; a failure.
 * [waits] */
static int leaf_look(struct dolphin_client *client, uint64_t key, struct dolphin_target *target,
                     struct dolphin_descent *descent, void *value) {
    dm_addr leaf = dolphin_word_addr(target->child);
    if (!dm_addr_valid(client->ctx, leaf, client->cn->layout.leaf_bytes)) {
        dolphin_descent_restart(descent);
        DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, &descent->attempts, 0));
        return DOLPHIN_AGAIN;
    }
    for (;;) {
        DM_TRY(dm_read(client->ctx, leaf, client->leaf, client->cn->layout.used_bytes));
        const struct dolphin_leaf_head *head = dolphin_leaf_head_in(client->leaf);
        enum dolphin_verdict verdict = dolphin_judge(client, head, key, target);
        if (verdict == DOLPHIN_ABSENT || (verdict == DOLPHIN_ELSEWHERE && !client->cn->params->backtrack)) {
            return DM_NOT_FOUND;
        }
        if (verdict == DOLPHIN_ELSEWHERE) {
            DM_TRY(dolphin_backtrack(client, head, target, descent));
            return DOLPHIN_AGAIN;
        }
        dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
        int rc = value_get(client, client->leaf, (unsigned)(key & 0xff), value);
        if (rc != DOLPHIN_AGAIN) {
            return rc;
        }
        client->counts[DOLPHIN_TORN_LEAF]++;
        DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, &descent->attempts, 0));
    }
}

int dolphin_get(void *handle, uint64_t key, void *value) {
    struct dolphin_client *client = handle;
    struct dolphin_descent descent = {0};
    int rc;
    do {
        struct dolphin_target target;
        DM_TRY(dolphin_descend(client, key, &descent, &target));
        rc = target.is_absent ? DM_NOT_FOUND : leaf_look(client, key, &target, &descent, value);
    } while (rc == DOLPHIN_AGAIN);
    return rc;
}
