/* SPDX-License-Identifier: Apache-2.0
 *
 * Training on the memory node (XStore, sections 5.1 and 5.3.2): one sub-model after a split, or all sub-models of a new
 * generation at load and at an expansion.
 *
 * A stale sub-model is never wrong. Its table lists the leaves from the one that covers the first key of its share of
 * the key space to the one that covers the last, each with the incarnation that it had when training read it. A leaf
 * covers [low, high); low never changes, and high changes only by a split, which raises the incarnation. So as long as
 * the incarnations agree, the leaf covers the same keys. The bounds hold at both ends of every leaf, so for every key
 * for which the sub-model is picked, present or absent, its leaf is among those predicted. A later split of a leaf
 * makes an entry stale, which its incarnation shows. The paper augments the trained keys at the borders of sub-models
 * only; that misses keys that are inserted later between two leaves.
 *
 * A client may hold the old record while the table is rewritten: lines are checked with the version in the record. This
 * is also why the memory of a table or a record may be reused for another one.
 */
#include "train.h"

#include <stdlib.h>

#include "leaf.h"

struct training {
    struct xstore_server *server;
    struct dm_ctx *ctx;
    struct xstore_space *space;
    struct xstore_set set; /* to which the sub-model belongs */
    uint32_t number;
    uint64_t low, high; /* the keys for which it is picked: [low, high) */
};

/* ---- collecting the leaves --------------------------------------------------------------------------------------- */

static struct xstore_leaf *space_leaf(const struct xstore_space *space, uint32_t i) {
    return (struct xstore_leaf *)(void *)(space->leaves + i * space->leaf_bytes);
}

static struct xstore_leaf *space_add(struct xstore_space *space) {
    if (space->count == space->capacity) {
        uint32_t capacity = space->capacity ? space->capacity * 2 : 64;
        char *grown = realloc(space->leaves, capacity * space->leaf_bytes);
        if (!grown) {
            return NULL;
        }
        space->leaves = grown;
        space->capacity = capacity;
    }
    return space_leaf(space, space->count++);
}

static void leaf_sort(struct xstore_leaf *leaf) {
    uint64_t *keys = xstore_leaf_keys(leaf);
    unsigned count = xstore_leaf_head(leaf).count;
    for (unsigned i = 1; i < count; i++) {
        uint64_t key = keys[i];
        unsigned at = i;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
        }
        keys[at] = key;
    }
}

/* Copies the leaf to the right of `before` (NULL: the one that covers `key`), holding its mutex meanwhile. */
static int leaf_copy(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_leaf *before, uint64_t key,
                     struct xstore_leaf *leaf) {
    if (!before) {
        DM_TRY(xstore_leaf_lock(server, ctx, key, leaf));
    } else {
        uint32_t ref = xstore_leaf_head(before).next;
        DM_TRY(dm_mutex_lock(ctx, xstore_stripe(server, ref)));
        if (!xstore_leaf_load(server, ctx, ref, leaf)) {
            xstore_leaf_unlock(server, ctx, ref);
            return DM_ERR_CORRUPT;
        }
    }
    xstore_leaf_unlock(server, ctx, leaf->ref);
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    dm_charge(ctx, DM_WORK_LINE_COPY, server->layout.keys_bytes / DM_LINE + 1);
    return 0;
}

static int leaves_collect(struct training *training) {
    struct xstore_space *space = training->space;
    uint64_t key = training->low < IX_KEY_MAX ? training->low : IX_KEY_MAX;
    space->count = 0;
    for (uint64_t high = 0; space->count == 0 || high < training->high;) {
        struct xstore_leaf *leaf = space_add(space);
        if (!leaf) {
            return DM_ERR_NO_MEMORY;
        }
        struct xstore_leaf *before = space->count > 1 ? space_leaf(space, space->count - 2) : NULL;
        DM_TRY(leaf_copy(training->server, training->ctx, before, key, leaf));
        leaf_sort(leaf);
        high = leaf->high;
    }
    return 0;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static double coord_of(const struct training *training, uint64_t key) {
    return ix_rmi_coord(&training->set.top, key);
}

static struct ix_rmi_model model_fit(const struct training *training) {
    struct ix_rmi_fit fit = {0};
    uint32_t slots = training->server->layout.slots;
    const struct xstore_space *space = training->space;
    for (uint32_t i = 0; i < space->count; i++) {
        struct xstore_leaf *leaf = space_leaf(space, i);
        unsigned count = xstore_leaf_head(leaf).count;
        for (unsigned k = 0; k < count; k++) {
            double x = coord_of(training, xstore_leaf_keys(leaf)[k]) - training->number;
            ix_rmi_fit_add(&fit, x, (i + (k + 0.5) / count) * slots - 0.5);
        }
    }
    for (uint32_t i = 0; fit.count == 0 && i < space->count; i++) {
        ix_rmi_fit_add(&fit, coord_of(training, space_leaf(space, i)->low) - training->number, (double)(i * slots));
    }
    return ix_rmi_fit_model(&fit);
}

/* Widens the bounds for leaf `i` of the table, for those of its keys for which the sub-model is picked. */
static void leaf_bound(const struct training *training, struct ix_rmi_model *model, uint32_t i) {
    struct xstore_leaf *leaf = space_leaf(training->space, i);
    int64_t slots = training->server->layout.slots, first = i * slots, last = first + slots - 1;
    int64_t end = training->space->count * slots - 1;
    uint64_t low = leaf->low > training->low ? leaf->low : training->low;
    uint64_t high = leaf->high < training->high ? leaf->high : training->high;
    if (training->server->params->augment && low < high) {
        ix_rmi_widen(model, training->number, coord_of(training, low), end, first, INT64_MAX / 2);
        ix_rmi_widen(model, training->number, coord_of(training, high - 1), end, INT64_MIN / 2, last);
    }
    for (unsigned k = 0; !training->server->params->augment && k < xstore_leaf_head(leaf).count; k++) {
        uint64_t key = xstore_leaf_keys(leaf)[k];
        if (key >= low && key < high) {
            ix_rmi_widen(model, training->number, coord_of(training, key), end, first, last);
        }
    }
}

static struct ix_rmi_model model_train(const struct training *training) {
    struct ix_rmi_model model = model_fit(training);
    uint32_t keys = 0;
    for (uint32_t i = 0; i < training->space->count; i++) {
        leaf_bound(training, &model, i);
        keys += xstore_leaf_head(space_leaf(training->space, i)).count;
    }
    /* Fitting and bounding evaluate each key once each; sorting a leaf compares each key about four times. */
    dm_charge(training->ctx, DM_WORK_MODEL_EVAL, 2 * keys);
    dm_charge(training->ctx, DM_WORK_KEY_COMPARE, 4 * keys);
    return model;
}

/* ---- record and table -------------------------------------------------------------------------------------------- */

static dm_addr record_addr(const struct training *training) {
    dm_addr records = xstore_addr(training->server->node, training->set.records);
    return dm_addr_add(records, (uint64_t)training->number * XSTORE_MODEL_BYTES);
}

static uint64_t record_seed(const struct training *training) {
    return xstore_record_seed(training->server->node, training->set.generation, training->number);
}

static bool record_load(const struct training *training, struct xstore_record *record) {
    uint64_t words[XSTORE_RECORD_WORDS];
    dm_cpu_read(training->ctx, record_addr(training), words, sizeof(words));
    return xstore_record_decode(words, record_seed(training), record);
}

static uint32_t table_bytes(uint32_t leaves) {
    return xstore_table_lines(leaves) * DM_LINE;
}

static void table_store(const struct training *training, const struct xstore_record *record) {
    dm_addr table = xstore_addr(training->server->node, record->table);
    for (uint32_t line = 0; line < xstore_lines_for(record->leaves); line++) {
        uint64_t words[XSTORE_LINE_ENTRIES + 1] = {0};
        for (uint32_t k = 0; k < XSTORE_LINE_ENTRIES && line * XSTORE_LINE_ENTRIES + k < record->leaves; k++) {
            const struct xstore_leaf *leaf = space_leaf(training->space, line * XSTORE_LINE_ENTRIES + k);
            struct xstore_head head = xstore_leaf_head(leaf);
            words[k] = xstore_entry_word((struct xstore_entry){true, leaf->ref, head.incarnation, head.count});
        }
        uint64_t seed = xstore_line_seed(record_seed(training), record->version, line);
        words[XSTORE_LINE_ENTRIES] = ix_check_word(seed, words, XSTORE_LINE_ENTRIES);
        dm_cpu_write(training->ctx, dm_addr_add(table, (uint64_t)line * DM_LINE), words, sizeof(words));
    }
}

/* Trains one sub-model of its set. No other context trains the same one at the same time. */
static int train_one(struct training *training) {
    const struct ix_rmi_top *top = &training->set.top;
    struct xstore_record old = {.leaves = 0}, fresh;
    bool is_new = !record_load(training, &old);
    training->low = training->number > 0 ? ix_rmi_first_key(top, training->number) : 0;
    training->high = training->number + 1 < top->models ? ix_rmi_first_key(top, training->number + 1) : UINT64_MAX;
    DM_TRY(leaves_collect(training));
    fresh = (struct xstore_record){.model = model_train(training),
                                   .leaves = training->space->count,
                                   .version = is_new ? 1 : old.version + 1,
                                   .table = old.table};
    bool moves = is_new || table_bytes(old.leaves) != table_bytes(fresh.leaves);
    if (moves) {
        dm_addr table;
        unsigned node = training->server->node;
        DM_TRY(dm_alloc(training->ctx, node, table_bytes(fresh.leaves), DM_LINE, DM_MEM_META, &table));
        fresh.table = xstore_ref_of(table);
    }
    uint64_t words[XSTORE_RECORD_WORDS];
    /* Charged before the stores: a charge may yield the core, and between the stores of table and record readers retry.
     */
    dm_charge(training->ctx, DM_WORK_LINE_COPY, xstore_lines_for(fresh.leaves) + 1);
    table_store(training, &fresh);
    xstore_record_encode(&fresh, record_seed(training), words);
    dm_cpu_write(training->ctx, record_addr(training), words, sizeof(words));
    if (moves && !is_new) {
        dm_addr table = xstore_addr(training->server->node, old.table);
        dm_free(training->ctx, table, table_bytes(old.leaves), DM_MEM_META);
    }
    return 0;
}

/* ---- the queue; its functions are called with the mutex of the models held --------------------------------------- */

static int queue_make(uint32_t models, struct xstore_queue *queue) {
    *queue = (struct xstore_queue){
        .ring = calloc(models, sizeof(*queue->ring)), .states = calloc(models, 1), .capacity = models};
    if (!queue->ring || !queue->states) {
        xstore_queue_free(queue);
        return DM_ERR_NO_MEMORY;
    }
    return 0;
}

void xstore_queue_free(struct xstore_queue *queue) {
    free(queue->ring);
    free(queue->states);
    *queue = (struct xstore_queue){.capacity = 0};
}

static void queue_add(struct xstore_queue *queue, uint32_t number) {
    if (queue->states[number] & XSTORE_BUSY) {
        queue->states[number] |= XSTORE_AGAIN;
    } else if (!(queue->states[number] & XSTORE_QUEUED)) {
        queue->states[number] |= XSTORE_QUEUED;
        queue->ring[(queue->first + queue->count++) % queue->capacity] = number;
    }
}

static uint32_t queue_take(struct xstore_queue *queue) {
    uint32_t number = queue->ring[queue->first];
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
    queue->states[number] = XSTORE_BUSY;
    return number;
}

static void queue_done(struct xstore_queue *queue, uint32_t number) {
    bool again = queue->states[number] & XSTORE_AGAIN;
    queue->states[number] = 0;
    if (again) {
        queue_add(queue, number);
    }
}

void xstore_train_later(struct xstore_server *server, struct dm_ctx *ctx, uint64_t low, uint64_t high) {
    if (dm_mutex_lock(ctx, &server->models_lock) < 0) {
        return;
    }
    const struct ix_rmi_top *top = &server->set.top;
    uint32_t last = ix_rmi_pick(top, ix_rmi_coord(top, high - 1));
    for (uint32_t number = ix_rmi_pick(top, ix_rmi_coord(top, low)); number <= last; number++) {
        queue_add(&server->queue, number);
    }
    uint64_t each = atomic_load_explicit(&server->keys, memory_order_relaxed) / top->models;
    server->wants_expansion =
        server->params->expand && !server->is_expanding && !server->is_full && each > server->params->expand_at;
    dm_cond_wake_all(ctx, &server->work);
    dm_mutex_unlock(ctx, &server->models_lock);
}

void xstore_train_stale(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_known *known) {
    if (dm_mutex_lock(ctx, &server->models_lock) < 0) {
        return;
    }
    if (known->generation == server->set.generation && known->number < server->set.top.models) {
        queue_add(&server->queue, known->number);
        dm_cond_wake_all(ctx, &server->work);
    }
    dm_mutex_unlock(ctx, &server->models_lock);
}

/* Trains the next sub-model of the queue. Called with the mutex held, which it releases during the training. */
static int train_next(struct xstore_trainer *trainer, struct dm_ctx *ctx) {
    struct xstore_server *server = trainer->server;
    struct training training = {.server = server, .ctx = ctx, .space = &trainer->queued, .set = server->set};
    training.number = queue_take(&server->queue);
    server->busy++;
    dm_mutex_unlock(ctx, &server->models_lock);
    uint64_t begin = dm_now(ctx);
    int rc = train_one(&training);
    double share = server->params->trainer_share;
    if (rc >= 0 && share < 1) {
        rc = dm_sleep(ctx, (uint64_t)((double)(dm_now(ctx) - begin) * (1 / share - 1)));
    }
    DM_TRY(dm_mutex_lock(ctx, &server->models_lock));
    server->busy--;
    /* An expansion waits for busy trainers before it replaces the queue. */
    queue_done(&server->queue, training.number);
    dm_cond_wake_all(ctx, &server->work);
    return rc == DM_ERR_STOPPED ? rc : 0; /* without memory for a table the old one stays, and gets become calls */
}

/* ---- a generation ------------------------------------------------------------------------------------------------ */

/* The top model, from the first key of every leaf. */
static int top_train(struct xstore_server *server, struct dm_ctx *ctx, uint32_t models, struct ix_rmi_top *top) {
    struct ix_rmi_fit fit = {0};
    struct xstore_leaf leaves[2];
    uint64_t rank = 0, base = 0;
    for (unsigned i = 0;; i++) {
        struct xstore_leaf *leaf = &leaves[i % 2];
        DM_TRY(leaf_copy(server, ctx, i > 0 ? &leaves[(i + 1) % 2] : NULL, 0, leaf));
        leaf_sort(leaf);
        uint32_t count = xstore_leaf_head(leaf).count;
        if (count > 0) {
            base = rank == 0 ? xstore_leaf_keys(leaf)[0] : base;
            ix_rmi_fit_add(&fit, (double)(xstore_leaf_keys(leaf)[0] - base), (double)rank);
            rank += count;
        }
        dm_charge(ctx, DM_WORK_MODEL_EVAL, 1);
        if (xstore_leaf_head(leaf).next == 0) {
            break;
        }
    }
    if (fit.count < 2) { /* too few keys to train: equal shares of the key space */
        *top = (struct ix_rmi_top){.slope = (double)models * 0x1p-64, .models = models};
        return 0;
    }
    *top = ix_rmi_fit_top(&fit, base, models);
    top->slope /= (double)rank;
    top->intercept /= (double)rank;
    return 0;
}

/* Trains every sub-model of a set that is not published yet; between two of them, one queued of the current set. */
static int set_train(struct xstore_trainer *trainer, struct dm_ctx *ctx, const struct xstore_set *set) {
    struct xstore_server *server = trainer->server;
    struct training training = {.server = server, .ctx = ctx, .space = &trainer->fresh, .set = *set};
    for (training.number = 0; training.number < set->top.models; training.number++) {
        DM_TRY(train_one(&training));
        if (server->is_expanding) {
            DM_TRY(dm_mutex_lock(ctx, &server->models_lock));
            int rc = server->queue.count > 0 ? train_next(trainer, ctx) : 0;
            if (rc == DM_ERR_STOPPED) {
                return rc;
            }
            dm_mutex_unlock(ctx, &server->models_lock);
        }
    }
    return 0;
}

/* Frees the memory of a set. No context trains it any more, and clients check what they read. */
static void set_free(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_set *set) {
    struct training training = {.server = server, .ctx = ctx, .set = *set};
    struct xstore_record record;
    for (training.number = 0; training.number < set->top.models; training.number++) {
        if (record_load(&training, &record)) {
            dm_free(ctx, xstore_addr(server->node, record.table), table_bytes(record.leaves), DM_MEM_META);
        }
    }
    dm_free(ctx, xstore_addr(server->node, set->records), set->top.models * XSTORE_MODEL_BYTES, DM_MEM_MODEL);
}

/* Makes the set current and returns the previous one in `old`. First waits until no context trains that: meanwhile none
 * begins, or two trainers with a queue that is never empty would take turns for ever. */
static int set_commit(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_set *set,
                      struct xstore_queue *queue, struct xstore_set *old) {
    uint64_t words[XSTORE_SET_WORDS];
    DM_TRY(dm_mutex_lock(ctx, &server->models_lock));
    server->is_committing = true;
    while (server->busy > 0) {
        DM_TRY(dm_cond_wait(ctx, &server->work, &server->models_lock));
    }
    server->is_committing = false;
    *old = server->set;
    server->set = *set;
    struct xstore_queue unused = server->queue;
    server->queue = *queue;
    *queue = unused;
    xstore_set_encode(set, server->node, words);
    dm_cpu_write(ctx, dm_addr_make(server->node, DM_DRAM, XSTORE_SET_OFFSET), words, sizeof(words));
    dm_cond_wake_all(ctx, &server->work);
    dm_mutex_unlock(ctx, &server->models_lock);
    return 0;
}

int xstore_train_all(struct xstore_trainer *trainer, struct dm_ctx *ctx, uint32_t models) {
    struct xstore_server *server = trainer->server;
    struct xstore_set set = {.generation = server->set.generation + 1}, old = {.generation = 0};
    dm_addr records;
    DM_TRY(queue_make(models, &trainer->queue));
    int rc = dm_alloc(ctx, server->node, models * XSTORE_MODEL_BYTES, DM_LINE, DM_MEM_MODEL, &records);
    if (rc < 0) {
        xstore_queue_free(&trainer->queue);
        return rc;
    }
    set.records = xstore_ref_of(records);
    rc = top_train(server, ctx, models, &set.top);
    set.top.models = models;
    rc = rc < 0 ? rc : set_train(trainer, ctx, &set);
    rc = rc < 0 ? rc : set_commit(server, ctx, &set, &trainer->queue, &old);
    if (rc == 0 && old.generation > 0) {
        set_free(server, ctx, &old);
    } else if (rc < 0 && rc != DM_ERR_STOPPED) {
        set_free(server, ctx, &set);
    }
    xstore_queue_free(&trainer->queue);
    return rc;
}

/* ---- the background context -------------------------------------------------------------------------------------- */

void xstore_trainer_init(struct xstore_trainer *trainer, struct xstore_server *server) {
    size_t leaf_bytes = offsetof(struct xstore_leaf, words) + server->layout.keys_bytes;
    trainer->server = server;
    trainer->queued.leaf_bytes = trainer->fresh.leaf_bytes = leaf_bytes;
}

void xstore_trainer_fini(struct xstore_trainer *trainer) {
    free(trainer->queued.leaves);
    free(trainer->fresh.leaves);
    xstore_queue_free(&trainer->queue);
}

/* Doubles the models. Called with the mutex held; returns with it held, or a failure without it. */
static int expand(struct xstore_trainer *trainer, struct dm_ctx *ctx) {
    struct xstore_server *server = trainer->server;
    uint32_t models = server->set.top.models;
    server->wants_expansion = false;
    server->is_expanding = true;
    dm_mutex_unlock(ctx, &server->models_lock);
    bool fits = models <= UINT32_MAX / 2 / XSTORE_MODEL_BYTES;
    int rc = fits ? xstore_train_all(trainer, ctx, 2 * models) : DM_ERR_NO_MEMORY;
    if (rc == DM_ERR_STOPPED) {
        return rc;
    }
    DM_TRY(dm_mutex_lock(ctx, &server->models_lock));
    server->is_expanding = false;
    server->is_full = rc < 0; /* without memory for more models the current ones stay in use */
    return 0;
}

static int work_do(struct xstore_trainer *trainer, struct dm_ctx *ctx) {
    struct xstore_server *server = trainer->server;
    if (server->wants_expansion && !server->is_expanding) {
        return expand(trainer, ctx);
    }
    if (server->queue.count > 0 && !server->is_committing) {
        return train_next(trainer, ctx);
    }
    return dm_cond_wait(ctx, &server->work, &server->models_lock);
}

void xstore_trainer_main(struct dm_ctx *ctx, void *arg) {
    struct xstore_trainer *trainer = arg;
    int rc = dm_mutex_lock(ctx, &trainer->server->models_lock);
    while (rc >= 0) {
        rc = work_do(trainer, ctx);
    }
}
