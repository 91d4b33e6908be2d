/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load (sections 3.2, 3.3 and 4.1): one pass over the sorted pairs trains models and fills leaves. Keys that will
 * be inserted later may be trained with them: each has a label, and its slot stays free. Each model begins with a leaf
 * of its own. Model i, its tables and its leaves are on memory node i modulo the number of memory
 * nodes. Then the upper models are trained over the models' lowest keys, and the index becomes visible with the root
 * word.
 */
#include "load.h"

#include <stdlib.h>

#include "common/array.h"
#include "space.h"

enum { LOAD_BATCH = 32 /* leaves that one doorbell writes */, LOAD_KEYS = 1024, LOAD_LEAVES = 64, PIECE = 1 << 20 };

struct loaded_model {
    dm_addr addr;
    struct rolex_head head;
};

/* Consecutive leaves that were taken and are not used yet. */
struct stock {
    struct rolex_leaf_ref next;
    uint32_t left;
};

struct loader {
    struct rolex_env env;
    const struct ix_pairs *pairs;
    struct rolex_pretraining to_come;
    uint64_t came; /* keys of to_come that are trained */
    struct ix_plr *plr;
    struct ix_indirect *indirect; /* NULL: values are inline */
    char *wires, *image, *value;
    dm_addr addrs[LOAD_BATCH];
    unsigned waiting;
    uint64_t *keys, *entries;       /* of the current batch of pairs; of the current model */
    uint64_t read, key_at, key_end; /* pairs read; the next one of `keys`, and how many there are */
    uint64_t low, in_leaf;          /* lower bound of the current leaf, and its labels that keys have */
    uint32_t leaves;                /* complete leaves of the current model */
    struct stock stocks[64];
    struct loaded_model *models;
    uint64_t model_count, model_capacity;
    uint64_t counts[ROLEX_COUNTER_COUNT];
};

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

static unsigned model_node(const struct loader *loader) {
    return (unsigned)(loader->model_count % loader->env.shape->topology->mns);
}

static int leaves_flush(struct loader *loader) {
    const struct rolex_layout *layout = &loader->env.layout;
    for (unsigned i = 0; i < loader->waiting; i++) {
        dm_post_write(loader->env.ctx, loader->addrs[i], loader->wires + (size_t)i * layout->wire_bytes,
                      layout->wire_bytes);
    }
    loader->waiting = 0;
    return dm_commit(loader->env.ctx);
}

/* Completes the current leaf; `high` is its upper bound. */
static int leaf_close(struct loader *loader, uint64_t high) {
    const struct rolex_layout *layout = &loader->env.layout;
    unsigned node = model_node(loader);
    struct stock *stock = &loader->stocks[node];
    if (stock->left == 0) {
        DM_TRY(leaves_flush(loader));
        DM_TRY(rolex_leaves_take(&loader->env, node, LOAD_LEAVES, &stock->next, &stock->left));
    }
    rolex_bounds_set(loader->image, loader->low, high);
    ix_lines_encode(loader->image, layout->wire_bytes, 1, loader->wires + (size_t)loader->waiting * layout->wire_bytes);
    loader->addrs[loader->waiting] = stock->next.addr;
    loader->entries[loader->leaves++] = stock->next.entry;
    stock->next.addr = dm_addr_add(stock->next.addr, layout->wire_bytes);
    stock->next.entry++;
    stock->left--;
    loader->in_leaf = 0;
    loader->low = high;
    rolex_leaf_init(layout, loader->image, high, high);
    return ++loader->waiting == LOAD_BATCH ? leaves_flush(loader) : 0;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Completes the current model. Its head is written later, when the address of the root is known. */
static int model_close(struct loader *loader, const struct ix_plr_model *line, uint64_t low, uint64_t high) {
    struct rolex_env *env = &loader->env;
    uint16_t synonyms = (uint16_t)env->params->synonyms;
    struct loaded_model *models =
        dm_array_grow(loader->models, loader->model_count, &loader->model_capacity, sizeof(*models));
    if (!models) {
        return DM_ERR_NO_MEMORY;
    }
    loader->models = models;
    DM_TRY(leaves_flush(loader));
    struct loaded_model *model = &models[loader->model_count];
    model->head =
        (struct rolex_head){.low = low, .high = high, .line = *line, .leaves = loader->leaves, .synonyms = synonyms};
    uint32_t bytes = rolex_model_bytes(loader->leaves, synonyms);
    DM_TRY(dm_alloc(env->ctx, model_node(loader), bytes, DM_LINE, DM_MEM_MODEL, &model->addr));
    dm_addr table = rolex_table(model->addr, &model->head);
    DM_TRY(dm_write(env->ctx, table, loader->entries, 8 * loader->leaves));
    loader->leaves = 0;
    loader->model_count++;
    return 0;
}

/* Gives the key the next label, and stores the pair if there is one. */
static int key_add(struct loader *loader, uint64_t key, bool is_pair) {
    const struct rolex_layout *layout = &loader->env.layout;
    if (loader->in_leaf == loader->env.per_leaf) {
        DM_TRY(leaf_close(loader, key));
    }
    loader->in_leaf++;
    if (is_pair) {
        const void *stored;
        loader->pairs->value(loader->pairs, key, loader->value);
        DM_TRY(ix_indirect_load(loader->indirect, model_node(loader), key, loader->value, &stored));
        rolex_pair_insert(layout, loader->image, rolex_count(layout, loader->image), key, stored);
    }
    return 0;
}

/* The next key to train, of the pairs or to come; DM_NOT_FOUND at the end of both. */
static int key_next(struct loader *loader, uint64_t *key, bool *is_pair) {
    const struct ix_pairs *pairs = loader->pairs;
    if (loader->key_at == loader->key_end && loader->read < pairs->count) {
        uint64_t left = pairs->count - loader->read;
        loader->key_at = 0;
        loader->key_end = pairs->keys(pairs, loader->read, left < LOAD_KEYS ? left : LOAD_KEYS, loader->keys);
        loader->read += loader->key_end;
        if (loader->key_end == 0) {
            return DM_ERR_INVALID; /* the pairs ended before their count */
        }
    }
    bool has_pair = loader->key_at < loader->key_end;
    bool has_other = loader->came < loader->to_come.count;
    if (!has_pair && !has_other) {
        return DM_NOT_FOUND;
    }
    *is_pair = has_pair && !(has_other && loader->to_come.keys[loader->came] < loader->keys[loader->key_at]);
    *key = *is_pair ? loader->keys[loader->key_at++] : loader->to_come.keys[loader->came++];
    return 0;
}

/* One pass over all pairs and the keys to come. */
static int pairs_load(struct loader *loader) {
    struct ix_plr_segment segment;
    uint64_t most = loader->env.params->model_leaves * loader->env.per_leaf; /* labels of a model */
    uint64_t model_low = 0;
    uint64_t model_first = 0;
    uint64_t key;
    bool is_pair;
    int more = key_next(loader, &key, &is_pair);
    for (uint64_t done = 0; more == 0; done++) {
        bool full = done - model_first == most && ix_plr_finish(loader->plr, &segment) == 1;
        int rc = ix_plr_add(loader->plr, key, done, &segment);
        DM_TRY(rc);
        if (rc == 1 || full) {
            DM_TRY(leaf_close(loader, key));
            DM_TRY(model_close(loader, &segment.model, model_low, key));
            model_low = key;
            model_first = done;
        }
        DM_TRY(key_add(loader, key, is_pair));
        more = key_next(loader, &key, &is_pair);
    }
    DM_TRY(more);
    (void)ix_plr_finish(loader->plr, &segment);
    DM_TRY(leaf_close(loader, UINT64_MAX));
    DM_TRY(ix_indirect_flush(loader->indirect));
    return model_close(loader, &segment.model, model_low, UINT64_MAX);
}

/* ---- the root ---------------------------------------------------------------------------------------------------- */

/* The root before it is written. */
struct built {
    struct rolex_root root;
    struct rolex_upper *levels[ROLEX_UPPER_LEVELS]; /* the lowest first */
    uint32_t counts[ROLEX_UPPER_LEVELS];
};

static uint64_t low_of(const struct loader *loader, const struct built *built, uint32_t level, uint64_t i) {
    return level == 0 ? loader->models[i].head.low : built->levels[level - 1][i].line.key;
}

/* Trains the level above `count` entries. */
static int level_build(struct loader *loader, struct built *built, uint32_t level, uint64_t count) {
    struct ix_plr *plr;
    struct ix_plr_segment segment;
    struct rolex_upper *uppers = malloc(count * sizeof(*uppers));
    if (!uppers) {
        return DM_ERR_NO_MEMORY;
    }
    built->levels[level] = uppers;
    DM_TRY(ix_plr_open(ROLEX_UPPER_EPSILON, &plr));
    uint32_t n = 0;
    uint32_t first = 0;
    int rc = 0;
    for (uint64_t i = 0; i <= count && rc >= 0; i++) {
        rc = i < count ? ix_plr_add(plr, low_of(loader, built, level, i), i, &segment) : ix_plr_finish(plr, &segment);
        if (rc == 1) {
            uppers[n++] = (struct rolex_upper){segment.model, first, (uint32_t)i - first};
            first = (uint32_t)i;
        }
    }
    ix_plr_close(plr);
    built->counts[level] = n;
    return rc < 0 ? rc : 0;
}

static int bulk_write(struct loader *loader, dm_addr to, const void *from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        uint32_t n = bytes - at < PIECE ? (uint32_t)(bytes - at) : PIECE;
        DM_TRY(dm_write(loader->env.ctx, dm_addr_add(to, at), (const char *)from + at, n));
    }
    return 0;
}

/* Writes the branches, and the heads of the models with the addresses of their branches. */
static int models_write(struct loader *loader, dm_addr branches) {
    struct dm_ctx *ctx = loader->env.ctx;
    for (uint64_t i = 0; i < loader->model_count;) {
        uint64_t end = loader->model_count - i < LOAD_BATCH ? loader->model_count : i + LOAD_BATCH;
        struct rolex_branch batch[LOAD_BATCH];
        for (uint64_t m = i; m < end; m++) {
            struct loaded_model *model = &loader->models[m];
            dm_addr branch = dm_addr_add(branches, m * sizeof(*batch));
            batch[m - i] = (struct rolex_branch){model->head.low, model->addr.bits};
            model->head.parent = dm_addr_add(branch, sizeof(uint64_t)).bits;
            dm_post_write(ctx, model->addr, &model->head, sizeof(model->head));
        }
        dm_post_write(ctx, dm_addr_add(branches, i * sizeof(*batch)), batch, (uint32_t)((end - i) * sizeof(*batch)));
        DM_TRY(dm_commit(ctx));
        i = end;
    }
    return 0;
}

static int root_write(struct loader *loader, struct built *built) {
    struct rolex_root *root = &built->root;
    uint64_t uppers = 0;
    for (uint32_t l = 0; l < root->levels; l++) {
        root->counts[l] = built->counts[root->levels - 1 - l];
        uppers += root->counts[l];
    }
    uint64_t bytes = sizeof(*root) + uppers * sizeof(struct rolex_upper) + root->branches * sizeof(struct rolex_branch);
    dm_addr addr;
    if (bytes > UINT32_MAX) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_alloc(loader->env.ctx, 0, (uint32_t)bytes, DM_LINE, DM_MEM_MODEL, &addr));
    DM_TRY(dm_write(loader->env.ctx, addr, root, sizeof(*root)));
    dm_addr to = dm_addr_add(addr, sizeof(*root));
    for (uint32_t l = root->levels; l-- > 0;) {
        uint64_t n = built->counts[l] * sizeof(struct rolex_upper);
        DM_TRY(bulk_write(loader, to, built->levels[l], n));
        to = dm_addr_add(to, n);
    }
    DM_TRY(models_write(loader, to));
    return dm_write(loader->env.ctx, rolex_reserved(0, ROLEX_AT_ROOT), &addr.bits, sizeof(addr.bits));
}

static int root_build(struct loader *loader) {
    struct built built = {.root = {.branches = loader->model_count}};
    uint64_t count = loader->model_count;
    int rc = 0;
    while (count > ROLEX_UPPER_TOP && built.root.levels < ROLEX_UPPER_LEVELS && rc >= 0) {
        rc = level_build(loader, &built, built.root.levels, count);
        count = built.counts[built.root.levels++];
    }
    rc = rc < 0 ? rc : root_write(loader, &built);
    for (uint32_t l = 0; l < ROLEX_UPPER_LEVELS; l++) {
        free(built.levels[l]);
    }
    return rc;
}

/* ---- bulk load --------------------------------------------------------------------------------------------------- */

static void loader_close(struct loader *loader) {
    ix_plr_close(loader->plr);
    ix_indirect_close(loader->indirect);
    free(loader->image);
    free(loader->value);
    free(loader->keys);
    free(loader->entries);
    free(loader->models);
    free(loader);
}

static struct loader *loader_open(struct dm_ctx *ctx, const struct rolex_params *params, const struct ix_shape *shape) {
    struct loader *loader = calloc(1, sizeof(*loader));
    if (!loader) {
        return NULL;
    }
    int rc = rolex_env_init(&loader->env, ctx, params, shape, loader->counts);
    struct ix_indirect_config values = {
        .values = (enum ix_values)params->values, .value_bytes = shape->value_bytes, .padding = ix_key_padding(shape)};
    rc = rc < 0 ? rc : ix_plr_open((uint32_t)params->epsilon, &loader->plr);
    rc = rc < 0 ? rc : ix_indirect_open(ctx, &values, &loader->indirect);
    loader->value = calloc(1, shape->value_bytes);
    loader->wires = dm_local_alloc(ctx, LOAD_BATCH * loader->env.layout.wire_bytes);
    loader->image = calloc(1, loader->env.layout.wire_bytes);
    loader->keys = calloc(LOAD_KEYS, sizeof(uint64_t));
    loader->entries = calloc(params->model_leaves, sizeof(uint64_t));
    if (rc < 0 || !loader->wires || !loader->image || !loader->value || !loader->keys || !loader->entries) {
        loader_close(loader);
        return NULL;
    }
    rolex_leaf_init(&loader->env.layout, loader->image, 0, 0);
    return loader;
}

int rolex_load_pairs(struct dm_ctx *ctx, const struct rolex_params *params, const struct ix_shape *shape,
                     const struct ix_pairs *pairs, const struct rolex_pretraining *to_come) {
    struct loader *loader = loader_open(ctx, params, shape);
    if (!loader) {
        return DM_ERR_NO_MEMORY;
    }
    int rc = 0;
    loader->pairs = pairs;
    if (pairs) {
        loader->to_come = *to_come;
        rc = pairs_load(loader);
    } else {
        struct ix_plr_model nothing = {0};
        rc = leaf_close(loader, UINT64_MAX);
        rc = rc < 0 ? rc : model_close(loader, &nothing, 0, UINT64_MAX);
    }
    rc = rc < 0 ? rc : root_build(loader);
    loader_close(loader);
    return rc;
}
