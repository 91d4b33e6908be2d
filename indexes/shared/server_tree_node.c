/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the server-side tree: their images, and their copies, locks and versions in the memory node's DRAM.
 */
#include "indexes/shared/server_tree_node.h"

const char *const ix_server_orders[] = {"sorted", "permuted", NULL};

static uint32_t lines_of(uint32_t words) {
    return (words * 8 + DM_LINE - 1) / DM_LINE;
}

struct ix_server_layout ix_server_layout_make(const struct ix_server_params *params, const struct ix_shape *shape) {
    uint32_t stored_bytes = shape->value_bytes + ix_key_padding(shape);
    struct ix_server_layout layout = {
        .slots = (uint32_t)params->slots,
        .fanout = (uint32_t)params->fanout,
        .value_bytes = shape->value_bytes,
        .padding = ix_key_padding(shape),
        .stored_words = stored_bytes > 0 ? (stored_bytes + 7) / 8 : 1,
        .rows = stored_bytes > params->inline_bytes,
        .permuted = params->order == IX_SERVER_PERMUTED,
    };
    layout.slot_words = layout.rows ? 1 : layout.stored_words;
    layout.row_bytes = 8 + layout.stored_words * 8;
    layout.leaf_bytes = lines_of(IX_SERVER_KEYS + layout.slots * (1 + layout.slot_words)) * DM_LINE;
    layout.inner_bytes = lines_of(IX_SERVER_KEYS + layout.fanout * 2) * DM_LINE;
    return layout;
}

/* ---- images of leaves -------------------------------------------------------------------------------------------- */

/* The order of the slots has a slot in every 4 bits, those of used slots first. */
static const uint64_t in_order = UINT64_C(0xfedcba9876543210);

void ix_server_node_init(struct ix_server_node *node, uint32_t ref, unsigned level) {
    memset(node, 0, sizeof(*node));
    node->ref = ref;
    node->words[IX_SERVER_HEAD] = ix_server_head(0, level, 0);
    node->words[IX_SERVER_HIGH] = UINT64_MAX;
    node->words[IX_SERVER_ORDER] = in_order;
}

static void count_set(struct ix_server_node *node, unsigned count) {
    node->words[IX_SERVER_HEAD] = ix_server_head(count, ix_server_level(node), ix_server_next(node));
}

unsigned ix_server_slot_at(const struct ix_server_layout *layout, const struct ix_server_node *leaf, unsigned rank) {
    return layout->permuted ? (unsigned)(leaf->words[IX_SERVER_ORDER] >> (4 * rank) & 15) : rank;
}

/* Moves the element at `from` of the order to `to`, and those between by one. */
static uint64_t order_move(uint64_t order, unsigned from, unsigned to) {
    unsigned char slots[16];
    for (unsigned i = 0; i < 16; i++) {
        slots[i] = (unsigned char)(order >> (4 * i) & 15);
    }
    unsigned char moved = slots[from];
    if (from < to) {
        memmove(slots + from, slots + from + 1, to - from);
    } else {
        memmove(slots + to + 1, slots + to, from - to);
    }
    slots[to] = moved;
    order = 0;
    for (unsigned i = 0; i < 16; i++) {
        order |= (uint64_t)slots[i] << (4 * i);
    }
    return order;
}

unsigned ix_server_leaf_find(const struct ix_server_layout *layout, struct ix_server_node *leaf, uint64_t key,
                             unsigned *slot) {
    unsigned count = ix_server_count(leaf), rank = 0;
    *slot = IX_SERVER_NONE;
    for (; rank < count; rank++) {
        unsigned at = ix_server_slot_at(layout, leaf, rank);
        uint64_t found = ix_server_keys(leaf)[at];
        if (found >= key) {
            *slot = found == key ? at : IX_SERVER_NONE;
            break;
        }
    }
    return rank;
}

void ix_server_leaf_enter(const struct ix_server_layout *layout, struct ix_server_node *leaf, unsigned rank,
                          uint64_t key, const uint64_t *stored) {
    unsigned count = ix_server_count(leaf), slot = rank;
    if (layout->permuted) {
        slot = ix_server_slot_at(layout, leaf, count);
        leaf->words[IX_SERVER_ORDER] = order_move(leaf->words[IX_SERVER_ORDER], count, rank);
    } else {
        uint64_t *key_at = ix_server_keys(leaf) + rank, *slot_at = ix_server_slot(layout, leaf, rank);
        memmove(key_at + 1, key_at, (count - rank) * sizeof(*key_at));
        memmove(slot_at + layout->slot_words, slot_at, (size_t)(count - rank) * layout->slot_words * sizeof(*slot_at));
    }
    ix_server_keys(leaf)[slot] = key;
    memcpy(ix_server_slot(layout, leaf, slot), stored, layout->slot_words * sizeof(*stored));
    count_set(leaf, count + 1);
}

void ix_server_leaf_drop(const struct ix_server_layout *layout, struct ix_server_node *leaf, unsigned rank) {
    unsigned left = ix_server_count(leaf) - 1;
    if (layout->permuted) {
        leaf->words[IX_SERVER_ORDER] = order_move(leaf->words[IX_SERVER_ORDER], rank, left);
    } else {
        uint64_t *key_at = ix_server_keys(leaf) + rank, *slot_at = ix_server_slot(layout, leaf, rank);
        memmove(key_at, key_at + 1, (left - rank) * sizeof(*key_at));
        memmove(slot_at, slot_at + layout->slot_words, (size_t)(left - rank) * layout->slot_words * sizeof(*slot_at));
    }
    count_set(leaf, left);
}

void ix_server_leaf_divide(const struct ix_server_layout *layout, struct ix_server_node *leaf,
                           struct ix_server_node *right, unsigned kept, uint64_t low) {
    unsigned count = ix_server_count(leaf);
    for (unsigned rank = kept; rank < count; rank++) {
        unsigned slot = ix_server_slot_at(layout, leaf, rank);
        ix_server_leaf_enter(layout, right, rank - kept, ix_server_keys(leaf)[slot],
                             ix_server_slot(layout, leaf, slot));
    }
    right->words[IX_SERVER_HEAD] = ix_server_head(count - kept, 0, ix_server_next(leaf));
    right->words[IX_SERVER_HIGH] = leaf->words[IX_SERVER_HIGH];
    leaf->words[IX_SERVER_HEAD] = ix_server_head(kept, 0, right->ref);
    leaf->words[IX_SERVER_HIGH] = low;
}

/* ---- images of inner nodes --------------------------------------------------------------------------------------- */

uint32_t ix_server_child(const struct ix_server_layout *layout, struct ix_server_node *node, uint64_t key) {
    unsigned count = ix_server_count(node), at = 1;
    while (at < count && ix_server_keys(node)[at] <= key) { /* the first child covers all keys below the second */
        at++;
    }
    return (uint32_t)ix_server_children(layout, node)[at - 1];
}

void ix_server_inner_enter(const struct ix_server_layout *layout, struct ix_server_node *node, uint64_t key,
                           uint32_t child) {
    uint64_t *keys = ix_server_keys(node), *children = ix_server_children(layout, node);
    unsigned count = ix_server_count(node), at = count;
    while (at > 1 && keys[at - 1] > key) {
        at--;
    }
    memmove(keys + at + 1, keys + at, (count - at) * sizeof(*keys));
    memmove(children + at + 1, children + at, (count - at) * sizeof(*children));
    keys[at] = key;
    children[at] = child;
    count_set(node, count + 1);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

int ix_server_node_alloc(struct ix_server_op *op, unsigned level, uint32_t *ref) {
    dm_addr addr;
    *ref = 0;
    DM_TRY(dm_alloc(op->ctx, op->server->node, ix_server_node_bytes(&op->server->layout, level), DM_LINE,
                    level > 0 ? DM_MEM_INNER : DM_MEM_LEAF, &addr));
    *ref = (uint32_t)(dm_addr_offset(addr) / DM_LINE);
    return 0;
}

void ix_server_node_free(struct ix_server_op *op, unsigned level, uint32_t ref) {
    if (ref != 0) {
        dm_free(op->ctx, ix_server_addr(op->server->node, ref), ix_server_node_bytes(&op->server->layout, level),
                level > 0 ? DM_MEM_INNER : DM_MEM_LEAF);
    }
}

static struct dm_mutex *stripe_of(struct ix_server *server, uint32_t ref) {
    return &server->stripes[dm_mix64(ref) % IX_SERVER_STRIPES];
}

static dm_addr addr_of(const struct ix_server_op *op, const struct ix_server_node *node, uint32_t word) {
    return dm_addr_add(ix_server_addr(op->server->node, node->ref), word * 8);
}

static uint64_t version_read(struct ix_server_op *op, const struct ix_server_node *node) {
    uint64_t version;
    dm_cpu_read(op->ctx, addr_of(op, node, IX_SERVER_VERSION), &version, sizeof(version));
    return version;
}

static void version_write(struct ix_server_op *op, const struct ix_server_node *node) {
    dm_cpu_write(op->ctx, addr_of(op, node, IX_SERVER_VERSION), node->words, sizeof(node->words[0]));
}

/* One dependent access, in which the processor fetches the node's lines together, and on average half of its keys
 * compared. */
static void charge_access(struct ix_server_op *op, unsigned level) {
    const struct ix_server_layout *layout = &op->server->layout;
    dm_charge(op->ctx, DM_WORK_DRAM_ACCESS, 1);
    dm_charge(op->ctx, DM_WORK_KEY_COMPARE, (level > 0 ? layout->fanout : layout->slots) / 2);
}

static bool exists(struct ix_server_op *op, const struct ix_server_node *node, unsigned level) {
    return node->ref != 0 &&
           dm_addr_valid(op->ctx, addr_of(op, node, 0), ix_server_node_bytes(&op->server->layout, level));
}

static bool plausible(const struct ix_server_op *op, const struct ix_server_node *node, unsigned level) {
    const struct ix_server_layout *layout = &op->server->layout;
    return ix_server_level(node) == level && ix_server_count(node) <= (level > 0 ? layout->fanout : layout->slots) &&
           (level == 0 || ix_server_count(node) > 0);
}

/* Waits until the worker that changes the node has finished. */
static int change_await(struct ix_server_op *op, const struct ix_server_node *node) {
    ix_server_event(op, IX_SERVER_NODE_LOCKED);
    DM_TRY(dm_retry(op->ctx, DM_RETRY_LOCK, &op->attempts));
    DM_TRY(dm_mutex_lock(op->ctx, stripe_of(op->server, node->ref)));
    dm_mutex_unlock(op->ctx, stripe_of(op->server, node->ref));
    return 0;
}

int ix_server_node_read(struct ix_server_op *op, struct ix_server_node *node, unsigned level) {
    if (!exists(op, node, level)) {
        return DM_ERR_CORRUPT;
    }
    charge_access(op, level);
    for (;;) {
        uint64_t version = version_read(op, node);
        if (version & 1 && op->server->params->validate) {
            DM_TRY(change_await(op, node));
            continue;
        }
        if (level == 0) {
            DM_TRY(dm_sleep(op->ctx, 0));
        }
        dm_cpu_read(op->ctx, addr_of(op, node, 0), node->words, ix_server_node_bytes(&op->server->layout, level));
        node->words[IX_SERVER_VERSION] = version;
        if (ix_server_node_same(op, node)) {
            return plausible(op, node, level) ? 0 : DM_ERR_CORRUPT;
        }
        DM_TRY(dm_retry(op->ctx, DM_RETRY_TORN, &op->attempts));
    }
}

bool ix_server_node_same(struct ix_server_op *op, const struct ix_server_node *node) {
    if (!op->server->params->validate || version_read(op, node) == node->words[IX_SERVER_VERSION]) {
        return true;
    }
    ix_server_event(op, IX_SERVER_TORN_NODE);
    return false;
}

/* Other workers run before it, as what they do during the descent comes first. */
int ix_server_node_take(struct ix_server_op *op, struct ix_server_node *node, unsigned level) {
    if (!exists(op, node, level)) {
        return DM_ERR_CORRUPT;
    }
    charge_access(op, level);
    DM_TRY(dm_sleep(op->ctx, 0));
    DM_TRY(dm_mutex_lock(op->ctx, stripe_of(op->server, node->ref)));
    dm_charge(op->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_cpu_read(op->ctx, addr_of(op, node, 0), node->words, ix_server_node_bytes(&op->server->layout, level));
    if (!plausible(op, node, level)) {
        ix_server_node_unlock(op, node);
        return DM_ERR_CORRUPT;
    }
    return 0;
}

void ix_server_node_unlock(struct ix_server_op *op, const struct ix_server_node *node) {
    dm_mutex_unlock(op->ctx, stripe_of(op->server, node->ref));
}

void ix_server_node_begin(struct ix_server_op *op, struct ix_server_node *node) {
    node->words[IX_SERVER_VERSION] |= 1;
    version_write(op, node);
}

static void words_store(struct ix_server_op *op, const struct ix_server_node *node, uint32_t from, uint32_t to) {
    dm_cpu_write(op->ctx, addr_of(op, node, from), node->words + from, (to - from) * 8);
}

/* Where the keys of a node end. */
static uint32_t keys_end(const struct ix_server_layout *layout, unsigned level) {
    return IX_SERVER_KEYS + (level > 0 ? layout->fanout : layout->slots);
}

/* The change takes the time of its stores, during which others can see a part of them; it is not left half done, also
 * when the run ends. */
void ix_server_node_end(struct ix_server_op *op, struct ix_server_node *node) {
    const struct ix_server_layout *layout = &op->server->layout;
    unsigned level = ix_server_level(node);
    uint32_t words = ix_server_node_bytes(layout, level) / 8;
    words_store(op, node, IX_SERVER_HEAD, keys_end(layout, level));
    dm_charge(op->ctx, DM_WORK_LINE_COPY, words * 8 / DM_LINE);
    (void)dm_sleep(op->ctx, 0);
    words_store(op, node, keys_end(layout, level), words);
    node->words[IX_SERVER_VERSION]++;
    version_write(op, node);
}

void ix_server_node_store(struct ix_server_op *op, const struct ix_server_node *node) {
    uint32_t words = ix_server_node_bytes(&op->server->layout, ix_server_level(node)) / 8;
    words_store(op, node, IX_SERVER_VERSION, words);
    dm_charge(op->ctx, DM_WORK_LINE_COPY, words * 8 / DM_LINE);
}

/* ---- the root ---------------------------------------------------------------------------------------------------- */

static dm_addr root_addr(const struct ix_server_op *op) {
    return dm_addr_make(op->server->node, DM_DRAM, IX_SERVER_ROOT_OFFSET);
}

uint64_t ix_server_root(struct ix_server_op *op) {
    uint64_t word;
    dm_cpu_read(op->ctx, root_addr(op), &word, sizeof(word));
    return word;
}

void ix_server_root_set(struct ix_server_op *op, uint32_t ref, unsigned level) {
    uint64_t word = (uint64_t)level << 32 | ref;
    dm_cpu_write(op->ctx, root_addr(op), &word, sizeof(word));
}
