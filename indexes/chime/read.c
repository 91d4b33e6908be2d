/* SPDX-License-Identifier: Apache-2.0
 *
 * Get, and what makes its answer right.
 *
 * A key that is found is the answer: a key is in one leaf only, and while a split or merge moves it no client can
 * change either copy. That it is not there counts only if
 *   - everything read is of one write of the whole leaf, and no entry is half-written (versions, two levels);
 *   - the keys found match the hop bitmap of the home entry (third level): within one insert a key never follows one of
 *     the same home into an entry, so whatever part of a hop was seen, a key that was missed is in the bitmap. The
 *     bound: two inserts into one neighbourhood, each with its lock and its read, within the sampling of one read;
 *   - the leaf still covers the key (sibling-based validation). The parent names the next leaf. The lower bound of a
 *     valid leaf never changes and leaves are not reused, so if the sibling is that next leaf, the leaf's keys are
 * those between its own bound and the next one's, as the parent has them, however old that parent is. If it is not, a
 *     cached parent is dropped and read anew; if it was read just now, there is a half-split and the chain is followed
 *     to the next leaf. The ranges of the chain adjoin, so one of the leaves read covered the key when it was read.
 */
#include "chime.h"

enum { CHAIN_MAX = 4 }; /* leaves of a half-split before the parents are read again; more with every retry */

enum chime_verdict chime_judge(struct chime_client *client, const struct chime_meta *meta, uint64_t key, dm_addr next) {
    if (!meta->valid) {
        client->counts[CHIME_DEAD_LEAF]++;
        return CHIME_DEAD;
    }
    switch (client->cn->params->validation) {
    case CHIME_VALIDATE_FENCES:
        return key < meta->low ? CHIME_DEAD : key < meta->high ? CHIME_COVERS : CHIME_RIGHT;
    case CHIME_VALIDATE_SIBLINGS:
        return dm_addr_equal(meta->sibling, next) ? CHIME_COVERS : CHIME_RIGHT;
    default:
        return CHIME_COVERS;
    }
}

int chime_speculate(struct chime_client *client, dm_addr leaf, uint64_t key, unsigned *position) {
    struct chime_cn *cn = client->cn;
    if (!cn->hotspot) {
        return DM_NOT_FOUND;
    }
    unsigned home = chime_home(&cn->layout, key);
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge_access(client->ctx, 1, chime_hotspot_bytes(cn->hotspot));
    if (!chime_hotspot_find(cn->hotspot, leaf, home, key, position) || *position >= cn->layout.span) {
        client->counts[CHIME_HOTSPOT_MISS]++;
        return DM_NOT_FOUND;
    }
    DM_TRY(chime_read_entry(client, leaf, *position));
    bool found = chime_entry_consistent(client, &client->leaf, *position) &&
                 chime_key(&cn->layout, client->leaf.image, *position) == key;
    client->counts[found ? CHIME_HOTSPOT_HIT : CHIME_HOTSPOT_WRONG]++;
    client->leaf.start = *position;
    client->leaf.count = 1;
    return found ? 0 : DM_NOT_FOUND;
}

void chime_remember(struct chime_client *client, dm_addr leaf, uint64_t key, unsigned at) {
    struct chime_cn *cn = client->cn;
    if (cn->hotspot) {
        dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
        chime_hotspot_note(cn->hotspot, leaf, chime_home(&cn->layout, key), key, at);
    }
}

static void value_take(struct chime_client *client, dm_addr leaf, uint64_t key, unsigned at, void *value) {
    struct chime_cn *cn = client->cn;
    memcpy(value, chime_value(&cn->layout, client->leaf.image, at), cn->layout.value_bytes);
    chime_remember(client, leaf, key, at);
}

/* Reads the neighbourhood of key once: 0 with *at where it is, DM_NOT_FOUND if it is not there for certain,
 * IX_TREE_AGAIN.
 */
static int neighbourhood_read(struct chime_client *client, dm_addr leaf, uint64_t key, int *at) {
    const struct chime_layout *layout = &client->cn->layout;
    unsigned home = chime_home(layout, key);
    DM_TRY(chime_read_part(client, &client->leaf, leaf, home, layout->hood));
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->hood);
    *at = chime_leaf_find(layout, client->leaf.image, key);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, *at != CHIME_NONE ? chime_padding_compares(layout) : 0);
    if (*at != CHIME_NONE && chime_entry_consistent(client, &client->leaf, (unsigned)*at)) {
        return 0;
    }
    bool certain = chime_copy_consistent(client, &client->leaf) && chime_hops_agree(client, &client->leaf, home);
    return *at == CHIME_NONE && certain ? DM_NOT_FOUND : IX_TREE_AGAIN;
}

/* Reads leaves from the descent's on until one answers. */
static int leaf_get(struct chime_client *client, uint64_t key, uint32_t *attempts, void *value) {
    struct ix_tree *tree = &client->tree;
    dm_addr next = tree->child.next;
    dm_addr leaf = tree->child.addr;
    uint32_t most = CHAIN_MAX + *attempts;
    for (uint32_t steps = 0; steps < most;) {
        if (!dm_addr_valid(client->ctx, leaf, client->cn->layout.alloc_bytes)) {
            return ix_tree_misled(tree, 0, false, attempts);
        }
        unsigned spot = 0;
        int rc = chime_speculate(client, leaf, key, &spot);
        int at = (int)spot;
        rc = rc == DM_NOT_FOUND ? neighbourhood_read(client, leaf, key, &at) : rc;
        if (rc == 0) {
            value_take(client, leaf, key, (unsigned)at, value);
        }
        if (rc == IX_TREE_AGAIN) {
            DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, attempts));
            continue;
        }
        if (rc != DM_NOT_FOUND) {
            return rc;
        }
        struct chime_meta meta = chime_copy_meta(client, &client->leaf);
        enum chime_verdict verdict = chime_judge(client, &meta, key, next);
        if (verdict == CHIME_COVERS) {
            return DM_NOT_FOUND;
        }
        client->counts[CHIME_HALF_SPLIT] += verdict == CHIME_RIGHT;
        rc = ix_tree_misled(tree, 0, verdict == CHIME_RIGHT, attempts);
        if (rc != 0) {
            return rc;
        }
        leaf = meta.sibling;
        steps++;
    }
    /* The next leaf of this parent may have been merged away meanwhile: then the chain never reaches it. */
    DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, attempts));
    return IX_TREE_AGAIN;
}

int chime_get(void *handle, uint64_t key, void *value) {
    struct chime_client *client = handle;
    uint32_t attempts = 0;
    uint64_t word = 0;
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    int rc;
    do {
        DM_TRY(ix_tree_descend(&client->tree, key, 0, &attempts));
        rc = leaf_get(client, key, &attempts, client->indirect ? &word : value);
        rc = rc == 0 ? ix_indirect_fetch(client->indirect, key, word, &attempts, value) : rc;
    } while (rc == IX_TREE_AGAIN || rc == IX_INDIRECT_REUSED);
    return rc;
}
