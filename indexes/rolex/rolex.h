/* SPDX-License-Identifier: Apache-2.0
 *
 * ROLEX inside: what its files share. README.md maps the paper's parts to the files, and has the protocol with the
 * argument why it is right.
 *
 * The life of an operation: locate (locate.c) finds the model that covers the key, in the compute node's cache or in
 * remote memory, predicts a window of its leaf table, and has the table entries. A get (read.c) reads the window's
 * leaves and their synonyms with one doorbell. A write (write.c) locks one leaf and its synonyms in the leaf table,
 * reads them again, and sends what changed with the unlock behind it; a full leaf gets a synonym (space.c). A model
 * whose synonyms run out is replaced (replace.c), by the memory node that trains a new one (retrain.c) or by the client
 * that needs room.
 */
#ifndef DM_INDEXES_ROLEX_ROLEX_H
#define DM_INDEXES_ROLEX_ROLEX_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/plr.h"
#include "leaf.h"

/* ---- parameters ------------------------------------------------------------------------------------------------ */

/* How a reader knows that its tables are not too old. */
enum {
    ROLEX_DETECT_BOUNDS, /* by the bounds of the leaves; the used-slot counter tells of replaced models */
    ROLEX_DETECT_SLOTS,  /* by the used-slot counter alone, as published: wrong */
    ROLEX_DETECT_NONE,   /* not at all: wrong */
};

struct rolex_params {
    uint64_t epsilon, delta, synonyms, model_leaves, region_bytes;
    double fill;
    bool retrain, reuse, carry, local_locks;
    unsigned detect;
};

/* ---- counters --------------------------------------------------------------------------------------------------- */

#define ROLEX_COUNTERS(X)                                                                                              \
    X(SYNONYM, "synonym_leaf", 1)                                                                                      \
    X(UNLINKED, "leaf_unlinked", 1) /* a delete emptied a synonym leaf */                                              \
    X(REUSED, "leaf_reused", 1)     /* one that was unlinked before */                                                 \
    X(TORN, "torn_leaf", 1)                                                                                            \
    X(STALE_TABLE, "stale_table", 1)  /* a reader met keys that have moved to a synonym it did not know */             \
    X(STALE_LOCK, "stale_lock", 1)    /* a table entry was not what a writer knew */                                   \
    X(MODEL_MOVED, "model_moved", 1)  /* a write met a model that was being replaced */                                \
    X(MODEL_SPLIT, "model_split", 1)  /* an insert had to replace a model whose synonyms were used up */               \
    X(MODEL_SEEN, "model_seen", 1)    /* a model of the compute node's cache gave way to its replacement */            \
    X(RETRAINED, "retrained_seen", 1) /* a model that a memory node had trained was met */                             \
    X(CARRIED, "carried_seen", 1)     /* one with leaves that are new since its training began */                      \
    X(QUEUED, "retrain_queued", 0)                                                                                     \
    X(QUEUED_FIRST, "retrain_priority", 0)                                                                             \
    X(REGION, "region_made", 0)                                                                                        \
    X(TABLE_READ, "table_read", 0) /* tables that were not in the cache */
enum rolex_counter {
#define X(name, text, rare) ROLEX_##name,
    ROLEX_COUNTERS(X)
#undef X
        ROLEX_COUNTER_COUNT,
};

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

/* A model: this head, the synonym leaf table (the used-slot counter and `synonyms` entries), the leaf table. All of it,
 * and the model's leaves, lie on one memory node. */
struct rolex_head {
    uint64_t low, high;       /* the keys that it covers, high excluded */
    struct ix_plr_model line; /* predicts labels: leaf i has those from i * per_leaf on */
    uint32_t leaves;
    uint16_t synonyms;
    uint16_t flags;
    uint64_t forward; /* a place, see below: its replacement; 0: none yet */
    uint64_t parent;  /* address of the word that leads here */
};
static_assert(sizeof(struct rolex_head) == DM_LINE, "a head is one line");

enum { ROLEX_BY_TRAINING = 1, ROLEX_WITH_CARRIED = 2 };

/* In the used-slot counter of a model that has been replaced. */
#define ROLEX_RETIRED (UINT64_C(1) << 63)

/* Slots in use by what the counter says: those who found none left have raised it too. */
static inline uint32_t rolex_used(uint64_t counter, uint32_t synonyms) {
    uint64_t used = counter & ~ROLEX_RETIRED;
    return used < synonyms ? (uint32_t)used : synonyms;
}

/* Places: the address of a model, or with this bit that of a fork, which has two words, the count of its branches and
 * one unused, and then the branches. */
#define ROLEX_FORK UINT64_C(1)
struct rolex_branch {
    uint64_t low, place;
};

/* The root: levels of linear models over the lowest keys of the models that bulk load made (section 3.3, upper models),
 * the highest level first, and then a branch a model. */
enum { ROLEX_UPPER_LEVELS = 6, ROLEX_UPPER_EPSILON = 4, ROLEX_UPPER_TOP = 8 };
struct rolex_root {
    uint32_t levels, unused;
    uint32_t counts[ROLEX_UPPER_LEVELS]; /* of each level, the highest first */
    uint64_t branches;
    uint64_t padding[3];
};
static_assert(sizeof(struct rolex_root) == DM_LINE, "a root's head is one line");
struct rolex_upper {
    struct ix_plr_model line;
    uint32_t first, count; /* what it covers of the level below */
};

/* The reserved page. On memory node 0 alone: */
enum {
    ROLEX_AT_ROOT = 64,
    ROLEX_AT_REGIONS = 128, /* a word a region: where it is */
    /* On every memory node: */
    ROLEX_AT_FREE = 1152,   /* the reclaiming queue: words taken from it; words put into it */
    ROLEX_AT_QUEUES = 1168, /* the circular queues of models to retrain: words put into each, the urgent one first */
    ROLEX_AT_PAUSE = 1184,  /* not 0: no retraining is to begin */
    ROLEX_AT_BUSY = 1192,   /* retrainings in progress, a byte a worker */
    ROLEX_AT_FREE_SLOTS = 1280,
    ROLEX_FREE_SLOTS = 256,
    ROLEX_AT_QUEUE_SLOTS = ROLEX_AT_FREE_SLOTS + 8 * ROLEX_FREE_SLOTS,
    ROLEX_QUEUE_SLOTS = 32, /* each */
};
static_assert(ROLEX_AT_QUEUE_SLOTS + 2 * 8 * ROLEX_QUEUE_SLOTS <= DM_RESERVED_BYTES, "all fits the reserved page");

/* A region: the leaves taken so far, how many there are; then from the next line on the leaves. */
struct rolex_region {
    uint64_t taken, total;
};

/* A leaf to write to, with the version its last write had. */
struct rolex_place {
    uint64_t entry; /* region and number */
    dm_addr addr;
    uint8_t version;
};

/* ---- what every context that works on the index has -------------------------------------------------------------- */

struct rolex_env {
    struct dm_ctx *ctx;
    const struct rolex_params *params;
    const struct ix_shape *shape;
    struct rolex_layout layout;
    uint32_t per_leaf;                   /* labels, and keys that bulk load gives a leaf */
    uint64_t regions[ROLEX_REGIONS_MAX]; /* as far as known */
    uint8_t current[64];                 /* a memory node: the region that leaves are taken from, plus 1; 0: none */
    uint64_t free_hint;                  /* a bit a memory node: its reclaiming queue was not empty */
    uint64_t *words;                     /* device memory: ROLEX_WORDS */
    uint64_t *counts;                    /* ROLEX_COUNTER_COUNT of them */
};

/* Who uses which of env->words. Those of one batch must differ. */
enum {
    ROLEX_W_SPACE = 0,   /* space.c: 8 */
    ROLEX_W_REGIONS = 8, /* space.c: ROLEX_REGIONS_MAX */
    ROLEX_W_HEAD = 136,  /* a model's head: 8 */
    ROLEX_W_FORK = 144,  /* directory.c: 64 */
    ROLEX_W_OWN = 208,   /* read.c, write.c, replace.c: 16 */
    ROLEX_WORDS = 224,
};

int rolex_env_init(struct rolex_env *env, struct dm_ctx *ctx, const struct rolex_params *params,
                   const struct ix_shape *shape, uint64_t *counts);

static inline dm_addr rolex_slots(dm_addr model) {
    return dm_addr_add(model, DM_LINE);
}
static inline dm_addr rolex_table(dm_addr model, const struct rolex_head *head) {
    return dm_addr_add(model, DM_LINE + 8 * (1 + (uint64_t)head->synonyms));
}
static inline uint32_t rolex_model_bytes(uint32_t leaves, uint32_t synonyms) {
    return DM_LINE + 8 * (1 + synonyms + leaves);
}
static inline dm_addr rolex_reserved(unsigned node, uint32_t at) {
    return dm_addr_make(node, DM_DRAM, at);
}

/* Leaves of the leaf table that may hold a key: README.md proves it. */
struct rolex_window {
    uint32_t lo, hi;
};
struct rolex_window rolex_predict(const struct rolex_head *head, uint64_t key, uint32_t epsilon, uint32_t per_leaf);

/* Widest window there is. */
uint32_t rolex_window_max(const struct rolex_params *params, uint32_t per_leaf);

/* ---- space.c ---------------------------------------------------------------------------------------------------- */

/* Gets to know the regions that there are. [waits] */
int rolex_regions_read(struct rolex_env *env);

/* Where the leaf of a table entry lies. DM_NOT_FOUND if there is no such leaf. [waits] once a region */
int rolex_leaf_addr(struct rolex_env *env, uint64_t entry, dm_addr *addr);

/* Takes a leaf of a memory node; unless `slots` is null, the used-slot counter of a model there is raised with the same
 * doorbell and *slot is what it was. DM_ERR_NO_MEMORY, perhaps with the counter raised. [waits] */
int rolex_leaf_take(struct rolex_env *env, unsigned node, dm_addr slots, uint64_t *slot, struct rolex_place *place);

/* Adds to the batch that a leaf goes to the reclaiming queue; finish behind its commit writes the entry. */
void rolex_leaf_post_free(struct rolex_env *env, unsigned node);
int rolex_leaf_finish_free(struct rolex_env *env, const struct rolex_place *place);

/* Leaves in a row for bulk load: up to `wanted` of node, *got of them from `place` on. [waits] */
int rolex_leaves_take(struct rolex_env *env, unsigned node, uint32_t wanted, struct rolex_place *place, uint32_t *got);

/* ---- upper.c ---------------------------------------------------------------------------------------------------- */

/* Entries lo .. hi of a level. */
struct rolex_run {
    uint32_t lo, hi;
};
struct rolex_run rolex_upper_predict(const struct rolex_upper *upper, uint64_t key);

/* DM_NOT_FOUND: there is no such thing. [waits] */
int rolex_root_read(struct rolex_env *env, dm_addr *addr, struct rolex_root *root);
dm_addr rolex_root_branches(const struct rolex_root *root, dm_addr addr);

/* Follows forks and replaced models from a place to the model that covers key now. DM_NOT_FOUND: what was read makes no
 * sense (an old pointer). [waits] */
int rolex_resolve(struct rolex_env *env, uint64_t place, uint64_t key, dm_addr *model, struct rolex_head *head);

/* From the root. [waits] */
int rolex_descend(struct rolex_env *env, uint64_t key, dm_addr *model, struct rolex_head *head);

/* ---- directory.c ------------------------------------------------------------------------------------------------ */

/* A compute node's models and leaf tables, all or some of them; NULL if the budget has no room for the models. */
struct rolex_directory;

/* Reads the root and all models. 0 and NULL if they do not fit. *directory is set before anything is waited for, so
 * that the caller can close what a context that never came back has begun. [waits] */
int rolex_directory_open(struct rolex_env *env, uint64_t budget_bytes, struct rolex_directory **directory);
void rolex_directory_close(struct rolex_directory *directory);
uint64_t rolex_directory_bytes(const struct rolex_directory *directory);
bool rolex_directory_is_of(const struct rolex_directory *directory, uint64_t root);

/* What a client knows of a model. The table's words are those of the window, the synonyms all that are in use. */
struct rolex_view {
    dm_addr model;
    struct rolex_head head;
    struct rolex_window window;
    uint64_t used; /* the counter's value that belongs to slots */
    uint64_t *table, *slots;
    uint32_t group; /* the branch of the root under which it is */
    bool has_tables, is_cached;
};

/* Fills the view from the cache. False if the key's model is not there. The window is that of `key` and `more` leaves
 * behind it. */
bool rolex_directory_find(struct rolex_directory *directory, const struct rolex_env *env, uint64_t key, uint32_t more,
                          struct rolex_view *view);

/* Keeps a model's tables: `leaves` words, then 1 + used. */
void rolex_directory_keep(struct rolex_directory *directory, const struct rolex_view *view, const uint64_t *table,
                          const uint64_t *slots);

/* This client has changed an entry of a leaf's group: the kept tables follow. slot 0: only the entry. */
void rolex_directory_note(struct rolex_directory *directory, const struct rolex_view *view, uint32_t leaf,
                          uint64_t entry, unsigned slot, uint64_t slot_entry);

/* The tables of this model are too old. */
void rolex_directory_drop(struct rolex_directory *directory, const struct rolex_view *view);

/* The model was replaced by `count` models; 0: by more than fit. True if it was still there. */
bool rolex_directory_replace(struct rolex_directory *directory, const struct rolex_view *view, const dm_addr *models,
                             const struct rolex_head *heads, uint32_t count);

/* ---- locate.c --------------------------------------------------------------------------------------------------- */

enum { ROLEX_GATES = 4096 /* groups share them by hash */ };

struct rolex_cn {
    const struct rolex_params *params;
    const struct ix_shape *shape;
    struct rolex_directory *directory;
    struct rolex_directory *coming; /* being read by the client that holds `opening` */
    struct dm_mutex *gates;         /* ROLEX_GATES of them: where clients queue for locks; NULL: they do not */
    struct dm_mutex opening;        /* of the directory */
    _Atomic unsigned clients;       /* attached */
    struct dm_mutex replacing;      /* one client of the node replaces a model at a time */
    struct rolex_work *work;
};

/* A leaf that a batch reads. */
struct rolex_item {
    dm_addr addr;
    uint32_t leaf; /* its group's place in the leaf table */
    uint32_t slot; /* of the synonym leaf table; 0: the trained leaf itself */
    uint64_t entry;
    char *wire;
};

enum { ROLEX_HEADS = 64 };
struct rolex_client {
    struct rolex_env env; /* first */
    struct rolex_cn *cn;
    bool is_attached;
    struct rolex_view view;
    struct rolex_item *items;
    uint32_t item_count, item_max;
    char *wires, *image, *right, *other; /* wires: item_max leaves, and two to be written */
    uint64_t *fetched;                   /* a whole model's tables */
    uint64_t counts[ROLEX_COUNTER_COUNT];
    uint32_t tries;           /* of this operation to find a model that is being replaced */
    struct rolex_place spare; /* a leaf that was taken and not used; address null: none */
    dm_addr models[ROLEX_HEADS];
    struct rolex_head heads[ROLEX_HEADS];
};

/* Finds the model of key and its table entries, of the window and `more` leaves behind it, into client->view. [waits]
 */
int rolex_locate(struct rolex_client *client, uint64_t key, uint32_t more, uint32_t *attempts);

/* The view's tables are too old: the next locate reads them again. */
void rolex_stale(struct rolex_client *client);

/* The view's model has been replaced: the cache gets what by. If it is still at it, waits a little. [waits] */
int rolex_moved(struct rolex_client *client, uint32_t tries, uint32_t *attempts);

/* Lists the leaves of the window, or of one group, with or without synonyms. DM_NOT_FOUND: the tables make no sense
 * together, read them again. [waits] once a region */
int rolex_list(struct rolex_client *client, uint32_t first, uint32_t last, bool synonyms);

/* Posts reads of the listed leaves; of the used-slot counter, into env.words[ROLEX_W_OWN]. */
void rolex_post_items(struct rolex_client *client);
void rolex_post_counter(struct rolex_client *client);

/* True if the item's bytes are of one write: then they are in `image`. */
bool rolex_item_whole(struct rolex_client *client, const struct rolex_item *item, char *image);

/* The lower bound in a leaf on the wire: in its first line, so never torn. */
static inline uint64_t rolex_item_low(const struct rolex_item *item) {
    return rolex_u64(item->wire, (uint32_t)ix_lines_place(ROLEX_LOW_AT));
}

/* The listed item whose leaf covers key, decoded into client->image; NULL: none. *torn: some were not whole. */
const struct rolex_item *rolex_cover(struct rolex_client *client, uint64_t key, bool *torn);

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* Locates key, reads its window with synonyms and finds the leaf that covers it, into client->image. With detect other
 * than bounds the leaf that has the key, and DM_NOT_FOUND if none. [waits] */
int rolex_read_leaf(struct rolex_client *client, uint64_t key, uint32_t *attempts, const struct rolex_item **item);

int rolex_get(void *client, uint64_t key, void *value);
int rolex_insert(void *client, uint64_t key, const void *value);
int rolex_update(void *client, uint64_t key, const void *value);
int rolex_remove(void *client, uint64_t key);
int rolex_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int rolex_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

/* ---- replace.c -------------------------------------------------------------------------------------------------- */

/* A leaf of a model that is being replaced. */
struct rolex_member {
    uint64_t low, high;
    uint64_t entry; /* region and number */
    uint32_t count; /* of keys */
    uint32_t place; /* in the new leaf tables, laid end to end; of a carried one that of the leaf it is a synonym of */
    bool is_carried;
};

/* A line over some places in a row. */
struct rolex_piece {
    struct ix_plr_model line;
    uint32_t first, count;
};

/* Where a model is taken apart: sized for the largest. */
struct rolex_work {
    uint64_t *words;              /* its tables: as in remote memory */
    uint64_t *found;              /* results of atomics */
    struct rolex_member *members; /* all leaves there are now, by their bounds */
    uint32_t member_count;
    struct rolex_member *trained; /* those that training saw */
    uint32_t trained_count;
    struct rolex_piece *pieces;
    uint32_t piece_count;
    uint64_t *addrs;  /* of what is made: a model a piece */
    char *lines;      /* the first line of each leaf */
    uint64_t *object; /* a model or a fork to be written */
    struct ix_plr *plr;
    uint32_t member_max;
};
struct rolex_work *rolex_work_open(const struct rolex_params *params);
void rolex_work_close(struct rolex_work *work);

/* Replaces a model: locks all of it, takes stock of its leaves, makes new models of them, leads there. With pieces in
 * work (from training) those are used as far as they still fit; else lines over the leaves' bounds alone are made here.
 * 0; DM_EXISTS: somebody else is at it, or has been; DM_ERR_NO_MEMORY and other failures leave the model as it was.
 * [waits] */
int rolex_replace(struct rolex_env *env, struct rolex_work *work, dm_addr model, bool trained);

/* Closes a piece: work->pieces gets the segment that begins at place `first`. */
int rolex_piece_add(struct rolex_work *work, const struct ix_plr_segment *segment, uint32_t first, uint32_t count);

/* ---- retrain.c -------------------------------------------------------------------------------------------------- */

int rolex_serve(struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
                void **server, struct dm_err *err);
void rolex_unserve(void *server);

/* Makes retraining on a node begin no more, and waits until none is in progress; or lets it begin again. DM_NOT_FOUND:
 * it does not end (a client stopped for good with a lock). [waits] */
int rolex_pause(struct rolex_env *env, unsigned node, bool pause);

#endif
