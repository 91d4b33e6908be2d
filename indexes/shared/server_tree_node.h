/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the server-side tree share: images of nodes, their locks and versions, the descent, messages.
 */
#ifndef DM_INDEXES_SHARED_SERVER_TREE_NODE_H
#define DM_INDEXES_SHARED_SERVER_TREE_NODE_H

#include <string.h>

#include "indexes/shared/server_tree.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

enum {
    IX_SERVER_GET = DM_METHOD_FIRST,
    IX_SERVER_INSERT,
    IX_SERVER_UPDATE,
    IX_SERVER_REMOVE,
    IX_SERVER_SCAN,
    IX_SERVER_FORMAT,
    IX_SERVER_LOAD,
    IX_SERVER_BUILD,
};

/* A request is a key with all its bytes; then the value of a write. */
struct ix_server_scan_request { /* and the padding of the first key */
    uint64_t first;
    uint32_t wanted, pad;
};

/* A reply begins with this; then the value of a get, or pairs {key, value}. */
struct ix_server_reply {
    uint16_t found;
    uint8_t events[IX_SERVER_EVENTS]; /* no more than 255 of each */
    uint8_t more;                     /* of a scan: the message was full before the range ended */
};

/* ---- a worker's operation ---------------------------------------------------------------------------------------- */

struct ix_server_op {
    struct ix_server *server;
    struct dm_ctx *ctx;
    uint32_t attempts;
    struct ix_server_reply reply;
};

static inline void ix_server_event(struct ix_server_op *op, enum ix_server_counter event) {
    uint8_t *count = &op->reply.events[event];
    *count = (uint8_t)(*count < UINT8_MAX ? *count + 1 : *count);
}

/* ---- images of nodes --------------------------------------------------------------------------------------------- */

struct ix_server_node {
    uint32_t ref;
    uint64_t words[IX_SERVER_NODE_WORDS];
};

static inline unsigned ix_server_count(const struct ix_server_node *node) {
    return (unsigned)(node->words[IX_SERVER_HEAD] >> 48);
}
static inline unsigned ix_server_level(const struct ix_server_node *node) {
    return (unsigned)(node->words[IX_SERVER_HEAD] >> 32 & 0xffff);
}
static inline uint32_t ix_server_next(const struct ix_server_node *node) {
    return (uint32_t)node->words[IX_SERVER_HEAD];
}
static inline uint64_t ix_server_head(unsigned count, unsigned level, uint32_t next) {
    return (uint64_t)count << 48 | (uint64_t)level << 32 | next;
}
/* The last node of a level covers all keys from its first on. */
static inline bool ix_server_covers(const struct ix_server_node *node, uint64_t key) {
    return key < node->words[IX_SERVER_HIGH] || node->words[IX_SERVER_HIGH] == UINT64_MAX;
}
static inline uint64_t *ix_server_keys(struct ix_server_node *node) {
    return node->words + IX_SERVER_KEYS;
}
static inline uint64_t *ix_server_children(const struct ix_server_layout *layout, struct ix_server_node *node) {
    return node->words + IX_SERVER_KEYS + layout->fanout;
}
static inline uint64_t *ix_server_slot(const struct ix_server_layout *layout, struct ix_server_node *node,
                                       unsigned slot) {
    return node->words + IX_SERVER_KEYS + layout->slots + (size_t)slot * layout->slot_words;
}
static inline uint32_t ix_server_node_bytes(const struct ix_server_layout *layout, unsigned level) {
    return level > 0 ? layout->inner_bytes : layout->leaf_bytes;
}
static inline dm_addr ix_server_addr(unsigned node, uint64_t ref) {
    return dm_addr_make(node, DM_DRAM, ref * DM_LINE);
}

/* An empty leaf or inner node at `ref` without a right neighbour. */
void ix_server_node_init(struct ix_server_node *node, uint32_t ref, unsigned level);

/* The slot of the pair that is the rank-th of the leaf's keys in their order. */
unsigned ix_server_slot_at(const struct ix_server_layout *layout, const struct ix_server_node *leaf, unsigned rank);

/* The number of the leaf's keys that are below key; *slot is the slot of the key, or IX_SERVER_NONE. */
enum { IX_SERVER_NONE = IX_SERVER_SLOTS_MAX };
unsigned ix_server_leaf_find(const struct ix_server_layout *layout, struct ix_server_node *leaf, uint64_t key,
                             unsigned *slot);

/* Enters a pair, of which `stored` is what a slot stores, at its rank; the leaf is not full. */
void ix_server_leaf_enter(const struct ix_server_layout *layout, struct ix_server_node *leaf, unsigned rank,
                          uint64_t key, const uint64_t *stored);
void ix_server_leaf_drop(const struct ix_server_layout *layout, struct ix_server_node *leaf, unsigned rank);

/* Moves the pairs from rank `kept` on to `right`, which becomes the right neighbour; key is the lowest key there. */
void ix_server_leaf_divide(const struct ix_server_layout *layout, struct ix_server_node *leaf,
                           struct ix_server_node *right, unsigned kept, uint64_t low);

/* Inner nodes: the child that covers key; entering an entry into one that is not full. */
uint32_t ix_server_child(const struct ix_server_layout *layout, struct ix_server_node *node, uint64_t key);
void ix_server_inner_enter(const struct ix_server_layout *layout, struct ix_server_node *node, uint64_t key,
                           uint32_t child);

/* ---- nodes in memory --------------------------------------------------------------------------------------------- */

/* Copies the node at node->ref in one state. Charges its access. For a leaf, other workers run before the copy, so that
 * they can change it meanwhile. [waits] */
int ix_server_node_read(struct ix_server_op *op, struct ix_server_node *node, unsigned level);

/* True if the node is still what node_read has copied, together with the rows that were read since. */
bool ix_server_node_same(struct ix_server_op *op, const struct ix_server_node *node);

/* Takes the mutex of the node at node->ref and copies the node. Charges its access. [waits] */
int ix_server_node_take(struct ix_server_op *op, struct ix_server_node *node, unsigned level);
void ix_server_node_unlock(struct ix_server_op *op, const struct ix_server_node *node);

/* Announces a change of the locked node to readers; ends it by storing the image. [waits] */
void ix_server_node_begin(struct ix_server_op *op, struct ix_server_node *node);
void ix_server_node_end(struct ix_server_op *op, struct ix_server_node *node);

/* Stores a node that no other worker can reach yet. */
void ix_server_node_store(struct ix_server_op *op, const struct ix_server_node *node);

/* Memory for a node of a level. [waits] */
int ix_server_node_alloc(struct ix_server_op *op, unsigned level, uint32_t *ref);
void ix_server_node_free(struct ix_server_op *op, unsigned level, uint32_t ref); /* ref may be 0 */

uint64_t ix_server_root(struct ix_server_op *op);
void ix_server_root_set(struct ix_server_op *op, uint32_t ref, unsigned level);

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* What a slot stores of a pair: the words of the value, or the offset of a row that is made for it. [waits] */
int ix_server_row_make(struct ix_server_op *op, uint64_t key, const void *value, uint64_t *stored);
void ix_server_row_free(struct ix_server_op *op, const uint64_t *stored); /* nothing if there are no rows */

/* Writes the value of a pair of a locked leaf's image whose change has begun. */
void ix_server_value_update(struct ix_server_op *op, uint64_t key, const void *value, uint64_t *stored);

/* Copies the value of a slot of a leaf's image. The caller compares the leaf's version afterwards. */
int ix_server_value_copy(struct ix_server_op *op, const uint64_t *stored, char *out);

/* Charges the comparison of a key with one whose first 8 bytes are the same. If it is in a row, this is an access
 * unless the operation reads the row as well. */
void ix_server_key_charge(struct ix_server_op *op, bool with_row);

/* Charges the copies of values of one leaf. Their rows are fetched together, as their addresses are known at once. */
void ix_server_values_charge(struct ix_server_op *op, uint32_t count);

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* Finds the node of `level` that covered key when its parent was read. 0, IX_SERVER_ABOVE_ROOT or a failure. [waits] */
enum { IX_SERVER_ABOVE_ROOT = 2000 };
int ix_server_descend(struct ix_server_op *op, uint64_t key, unsigned level, uint32_t *ref);

/* Takes the node of `level` that covers key; follows right links. 0, IX_SERVER_ABOVE_ROOT or a failure. [waits] */
int ix_server_node_lock(struct ix_server_op *op, uint64_t key, unsigned level, struct ix_server_node *node);

/* Enters `child`, a node of `level` that begins at key, into the level above. [waits] */
int ix_server_link(struct ix_server_op *op, uint64_t key, uint32_t child, unsigned level);

/* ---- handlers ---------------------------------------------------------------------------------------------------- */

int ix_server_on_format(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len);
int ix_server_on_load(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                      uint32_t *resp_len);
int ix_server_on_build(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                       uint32_t *resp_len);

#endif
