/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves: regions, from which they are taken by fetch-and-add (sections 3.3 and 3.4), and the reclaiming queue of
 * leaves that deletes have emptied.
 *
 * Each memory node has one reclaiming queue: a ring with a counter of words put in and one of words taken out. A word
 * holds the leaf and the version of its last write, from which its next owner continues, and the round of the ring, so
 * that a word that is still being written, or was overwritten because the ring was full, is recognised.
 */
#include "space.h"

enum { CLAIM_TRIES = 256 /* finds of the same claim, after which the client that made it is taken for stopped */ };

/* Allocates the region that this client has claimed and stores its address in its word. */
static int region_alloc(struct rolex_env *env, unsigned node, unsigned region, dm_addr word, uint64_t claim) {
    dm_addr addr;
    uint32_t bytes = rolex_region_bytes(env, region);
    DM_TRY(dm_alloc(env->ctx, node, bytes, DM_LINE, DM_MEM_LEAF, &addr));
    uint64_t *words = env->words + ROLEX_W_SPACE;
    words[0] = 0;
    words[1] = rolex_region_leaves(env, region);
    int rc = dm_write(env->ctx, addr, words, sizeof(struct rolex_region));
    rc = rc < 0 ? rc : dm_cas(env->ctx, word, claim, addr.bits, &words[2]);
    if (rc < 0 || words[2] != claim) {
        dm_free(env->ctx, addr, bytes, DM_MEM_LEAF);
        return rc;
    }
    env->counts[ROLEX_REGION]++;
    return 0;
}

/* Whether another client's claim of the region has been found so often that this one adopts it. */
static bool claim_is_old(struct rolex_env *env, unsigned region, uint64_t claim) {
    bool is_same = env->awaited == region && env->claim == claim;
    env->awaited = region;
    env->claim = claim;
    env->waits = is_same ? env->waits + 1 : 1;
    return env->waits > CLAIM_TRIES;
}

/* Makes a region on node, unless another client is doing so. A region is claimed before it is allocated: regions are
 * large, and if every client that needs one allocated one, the memory of all but the first would be wasted. For the
 * same reason only one of the clients that wait adopts the claim of one that has stopped. */
static int region_make(struct rolex_env *env, unsigned node) {
    unsigned region = 0;
    while (region < ROLEX_REGIONS_MAX && env->regions[region] != 0) {
        region++;
    }
    if (region == ROLEX_REGIONS_MAX) {
        return DM_ERR_NO_MEMORY;
    }
    dm_addr word = rolex_reserved(0, ROLEX_AT_REGIONS + 8 * region);
    uint64_t *found = env->words + ROLEX_W_SPACE + 2, claim = ROLEX_CLAIM_FIRST;
    DM_TRY(dm_cas(env->ctx, word, 0, claim, found));
    if (*found != 0) {
        uint64_t other = *found;
        if (!rolex_is_claim(other) || !claim_is_old(env, region, other)) {
            return 0;
        }
        claim = other + ROLEX_CLAIM_STEP;
        DM_TRY(dm_cas(env->ctx, word, other, claim, found));
        if (*found != other) {
            return 0;
        }
    }
    int rc = region_alloc(env, node, region, word, claim);
    if (rc < 0 && !dm_is_final(rc)) {
        DM_TRY(dm_cas(env->ctx, word, claim, 0, found));
    }
    return rc;
}

/* ---- the reclaiming queue ---------------------------------------------------------------------------------------- */

enum { LEAF_BITS = 40, REGION_BITS = 7, VERSION_BITS = 4, ROUND_BITS = 12 };

static uint64_t free_round(uint64_t position) {
    return position / ROLEX_FREE_SLOTS & ((1 << ROUND_BITS) - 1);
}

static uint64_t free_word(const struct rolex_leaf_ref *leaf, uint64_t position) {
    uint64_t word = UINT64_C(1) << ROUND_BITS | free_round(position);
    word = word << VERSION_BITS | (leaf->version & 15);
    word = word << REGION_BITS | rolex_entry_region(leaf->entry);
    return word << LEAF_BITS | rolex_entry_leaf(leaf->entry);
}

static dm_addr free_slot(unsigned node, uint64_t position) {
    return rolex_reserved(node, ROLEX_AT_FREE_SLOTS + 8 * (uint32_t)(position % ROLEX_FREE_SLOTS));
}

void rolex_leaf_post_free(struct rolex_env *env, unsigned node) {
    dm_post_faa(env->ctx, rolex_reserved(node, ROLEX_AT_FREE + 8), 1, &env->words[ROLEX_W_SPACE + 4]);
}

int rolex_leaf_finish_free(struct rolex_env *env, const struct rolex_leaf_ref *leaf) {
    uint64_t *words = env->words + ROLEX_W_SPACE;
    unsigned node = dm_addr_node(leaf->addr);
    env->free_hint |= UINT64_C(1) << node;
    words[5] = free_word(leaf, words[4]);
    dm_post_write(env->ctx, free_slot(node, words[4]), &words[5], sizeof(words[5]));
    return dm_commit_async(env->ctx);
}

/* Takes a leaf from the queue: 0; DM_NOT_FOUND if there is none. */
static int leaf_reuse(struct rolex_env *env, unsigned node, struct rolex_leaf_ref *leaf) {
    uint64_t *words = env->words + ROLEX_W_SPACE;
    dm_addr counters = rolex_reserved(node, ROLEX_AT_FREE);
    DM_TRY(dm_read(env->ctx, counters, words, 16));
    uint64_t position = words[0];
    if (position >= words[1]) {
        env->free_hint &= ~(UINT64_C(1) << node);
        return DM_NOT_FOUND;
    }
    DM_TRY(dm_read(env->ctx, free_slot(node, position), &words[2], sizeof(words[2])));
    uint64_t word = words[2];
    bool lost = words[1] - position > ROLEX_FREE_SLOTS;
    uint64_t round = word >> (LEAF_BITS + REGION_BITS + VERSION_BITS);
    bool is_current = round == (UINT64_C(1) << ROUND_BITS | free_round(position));
    if (!is_current && !lost) {
        return DM_NOT_FOUND; /* still being written */
    }
    DM_TRY(dm_cas(env->ctx, counters, position, position + 1, &words[3]));
    if (words[3] != position || !is_current) {
        return DM_NOT_FOUND;
    }
    leaf->entry = rolex_entry((unsigned)(word >> LEAF_BITS) & 0x7f, 0, word & ((UINT64_C(1) << LEAF_BITS) - 1));
    leaf->version = (uint8_t)(word >> (LEAF_BITS + REGION_BITS)) & 15;
    int rc = rolex_leaf_addr(env, leaf->entry, &leaf->addr);
    env->counts[ROLEX_REUSED] += rc == 0;
    return rc;
}

/* ---- taking leaves ----------------------------------------------------------------------------------------------- */

/* With one doorbell: takes leaves of the node's current region, if one is known, and raises the used-slot counter
 * unless `slots` is null. 1; 0: no leaf was taken. */
static int leaf_try(struct rolex_env *env, unsigned node, dm_addr slots, uint64_t *slot, struct rolex_leaf_ref *leaf,
                    uint32_t leaves) {
    uint64_t *words = env->words + ROLEX_W_SPACE;
    unsigned region = env->current[node];
    bool take = region > 0 && leaves > 0;
    if (take) {
        dm_post_faa(env->ctx, (dm_addr){env->regions[region - 1]}, leaves, &words[0]);
    }
    if (!dm_addr_is_null(slots)) {
        dm_post_faa(env->ctx, slots, 1, &words[1]);
    }
    if (env->params->reuse && leaves > 0) {
        dm_post_read(env->ctx, rolex_reserved(node, ROLEX_AT_FREE), &words[2], 16);
    }
    DM_TRY(dm_commit(env->ctx));
    if (!dm_addr_is_null(slots)) {
        *slot = words[1];
    }
    if (env->params->reuse && leaves > 0 && words[2] < words[3]) {
        env->free_hint |= UINT64_C(1) << node;
    }
    if (!take || words[0] >= rolex_region_leaves(env, region - 1)) {
        return 0;
    }
    *leaf = (struct rolex_leaf_ref){.entry = rolex_entry(region - 1, 0, words[0]),
                                    .addr = rolex_region_leaf(env, region - 1, words[0])};
    return 1;
}

/* The node's region is used up: finds or makes the next one. */
static int region_next(struct rolex_env *env, unsigned node) {
    unsigned before = env->current[node];
    DM_TRY(rolex_regions_read(env));
    if (env->current[node] == before) {
        DM_TRY(region_make(env, node));
        DM_TRY(rolex_regions_read(env));
    }
    return 0;
}

int rolex_leaf_take(struct rolex_env *env, unsigned node, dm_addr slots, uint64_t *slot, struct rolex_leaf_ref *leaf) {
    bool reuse = env->params->reuse && env->free_hint >> node & 1;
    if (reuse) {
        int rc = leaf_reuse(env, node, leaf);
        if (rc != DM_NOT_FOUND) {
            DM_TRY(rc);
            return dm_addr_is_null(slots) ? 0 : leaf_try(env, node, slots, slot, leaf, 0);
        }
    }
    int rc = leaf_try(env, node, slots, slot, leaf, 1);
    for (uint32_t attempts = 0; rc == 0;) {
        DM_TRY(region_next(env, node));
        DM_TRY(rc = leaf_try(env, node, DM_NULL, slot, leaf, 1));
        DM_TRY(dm_retry(env->ctx, DM_RETRY_CAS, &attempts));
    }
    return rc < 0 ? rc : 0;
}

int rolex_leaves_take(struct rolex_env *env, unsigned node, uint32_t wanted, struct rolex_leaf_ref *leaf,
                      uint32_t *got) {
    uint64_t slot;
    int rc = leaf_try(env, node, DM_NULL, &slot, leaf, wanted);
    for (uint32_t attempts = 0; rc == 0;) {
        DM_TRY(region_next(env, node));
        DM_TRY(rc = leaf_try(env, node, DM_NULL, &slot, leaf, wanted));
        DM_TRY(dm_retry(env->ctx, DM_RETRY_CAS, &attempts));
    }
    DM_TRY(rc);
    uint64_t left = rolex_region_leaves(env, rolex_entry_region(leaf->entry)) - rolex_entry_leaf(leaf->entry);
    *got = left < wanted ? (uint32_t)left : wanted;
    return 0;
}
