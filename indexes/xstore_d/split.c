/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting a full leaf into itself and a new right neighbour (XStore, section 5.3).
 */
#include "leaf.h"

/* The keys below `border` stay in the left leaf, and `key` is added where it belongs. */
struct split {
    uint64_t border;
    uint32_t right;
    uint64_t key;
    const void *value;
};

/* The key that separates the halves of the leaf's keys and the new one. */
static uint64_t border_of(struct xstore_leaf *leaf, uint64_t key) {
    unsigned count = xstore_leaf_head(leaf).count;
    uint64_t sorted[XSTORE_SLOTS_MAX + 1];
    memcpy(sorted, xstore_leaf_keys(leaf), count * sizeof(*sorted));
    sorted[count] = key;
    for (unsigned i = 1; i <= count; i++) {
        uint64_t moved = sorted[i];
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > moved; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = moved;
    }
    return xstore_border(sorted[(count + 1) / 2 - 1], sorted[(count + 1) / 2]);
}

/* Writes the right leaf, which no reader can reach yet. */
static void right_build(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *left,
                        const struct split *split) {
    char value[XSTORE_VALUE_MAX];
    struct xstore_leaf right = {.ref = split->right, .low = split->border, .high = left->high};
    struct xstore_head head = {.next = xstore_leaf_head(left).next};
    unsigned count = xstore_leaf_head(left).count;
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = xstore_leaf_keys(left)[i];
        if (key >= split->border) {
            xstore_value_load(server, ctx, left->ref, i, value);
            xstore_value_store(server, ctx, right.ref, head.count, key, value);
            xstore_leaf_keys(&right)[head.count++] = key;
        }
    }
    if (split->key >= split->border) {
        xstore_value_store(server, ctx, right.ref, head.count, split->key, split->value);
        xstore_leaf_keys(&right)[head.count++] = split->key;
    }
    for (unsigned i = head.count; i < server->layout.slots; i++) {
        xstore_value_clear(server, ctx, right.ref, i);
    }
    xstore_fences_store(server, ctx, &right);
    xstore_leaf_store(server, ctx, &right, head);
}

/* Keeps the lower half in the left leaf. The split takes effect with the store of the header. After it, values move to
 * the slots that their keys fill now, and the values of the other slots are invalidated. */
static void left_shrink(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *left,
                        const struct split *split) {
    unsigned from[XSTORE_SLOTS_MAX], kept = 0, count = xstore_leaf_head(left).count;
    uint64_t *keys = xstore_leaf_keys(left);
    for (unsigned i = 0; i < count; i++) {
        kept += keys[i] < split->border;
    }
    for (unsigned i = 0, at = kept; i < kept; i++) {
        from[i] = i;
        if (keys[i] >= split->border) {
            while (keys[at] >= split->border) {
                at++;
            }
            keys[i] = keys[at];
            from[i] = at++;
        }
    }
    bool is_left = split->key < split->border;
    struct xstore_head head = xstore_leaf_head(left);
    head = (struct xstore_head){head.incarnation + 1, kept + is_left, split->right};
    keys[kept] = is_left ? split->key : keys[kept];
    left->high = split->border;
    xstore_fences_store(server, ctx, left);
    xstore_leaf_store(server, ctx, left, head);
    char value[XSTORE_VALUE_MAX];
    for (unsigned i = 0; i < kept; i++) {
        if (from[i] != i) {
            xstore_value_load(server, ctx, left->ref, from[i], value);
            xstore_value_store(server, ctx, left->ref, i, keys[i], value);
        }
    }
    for (unsigned i = kept; i < count; i++) {
        xstore_value_clear(server, ctx, left->ref, i);
    }
    if (is_left) {
        xstore_value_store(server, ctx, left->ref, kept, split->key, split->value);
    }
    dm_charge(ctx, DM_WORK_LINE_COPY, 2 * server->layout.leaf_bytes / DM_LINE);
}

void xstore_leaf_split(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf, uint32_t right,
                       uint64_t key, const void *value) {
    struct split split = {border_of(leaf, key), right, key, value};
    right_build(server, ctx, leaf, &split);
    left_shrink(server, ctx, leaf, &split);
}
