/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a model predicts a key, in its leaf table and in the levels above; where the root's branches are.
 */
#include "layout.h"

struct rolex_window rolex_predict(const struct rolex_head *head, uint64_t key, uint32_t epsilon, uint32_t per_leaf) {
    uint64_t label = ix_plr_predict(&head->line, key);
    uint64_t lo = label > epsilon + 1 ? (label - epsilon - 1) / per_leaf : 0;
    uint64_t hi = (label + epsilon) / per_leaf;
    uint64_t last = head->leaves - 1;
    return (struct rolex_window){(uint32_t)(lo < last ? lo : last), (uint32_t)(hi < last ? hi : last)};
}

/* An upper model predicts, within ROLEX_UPPER_EPSILON, the index of the last entry whose key is not above `key`. That
 * holds for keys between two entries too: the prediction is between those of the two, so the entry is at most epsilon
 * above it and epsilon + 1 below. */
struct rolex_run rolex_upper_predict(const struct rolex_upper *upper, uint64_t key) {
    uint64_t at = ix_plr_predict(&upper->line, key);
    uint64_t last = upper->count > 0 ? upper->count - 1 : 0;
    at = at < last ? at : last;
    uint64_t lo = at > ROLEX_UPPER_EPSILON + 1 ? at - ROLEX_UPPER_EPSILON - 1 : 0;
    uint64_t hi = at + ROLEX_UPPER_EPSILON < last ? at + ROLEX_UPPER_EPSILON : last;
    return (struct rolex_run){(uint32_t)lo + upper->first, (uint32_t)hi + upper->first};
}

dm_addr rolex_root_branches(const struct rolex_root *root, dm_addr addr) {
    uint64_t uppers = 0;
    for (uint32_t l = 0; l < root->levels; l++) {
        uppers += root->counts[l];
    }
    return dm_addr_add(addr, sizeof(*root) + uppers * sizeof(struct rolex_upper));
}
