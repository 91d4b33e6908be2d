/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's models and leaf tables. Either all models are cached or none ("can be fully cached", section 5.6).
 * Leaf tables are cached within the budget, each with the part of the synonym leaf table that is in use. Each model of
 * the bulk load begins a group, which its replacements join, so the number of groups is constant. A group has a spin
 * lock, which is never held across a wait; an operation copies what it needs out of the group. Every byte is charged to
 * the budget.
 */
#include "cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "descend.h"

struct known {
    dm_addr addr; /* null: it was replaced, and its replacements did not fit here */
    struct rolex_head head;
    uint64_t *tables;  /* the leaf table, then the used-slot counter and the synonyms; NULL: not cached */
    uint32_t capacity; /* synonyms for which tables has space */
};

struct group {
    atomic_flag lock;
    uint32_t count;
    struct known *models; /* ascending */
};

struct rolex_cache {
    uint64_t budget, root;
    _Atomic uint64_t used;
    _Atomic uint64_t models_bytes; /* of these, all but tables */
    struct rolex_root shape;
    struct rolex_upper *uppers;
    uint64_t *lows; /* of groups */
    struct group *groups;
    _Atomic uint64_t hand;
    struct rolex_branch *branches; /* only while the cache is read */
    struct rolex_head *heads;
};

enum { EVICT_TRIES = 256, CAPACITY_STEP = 8, READ_HEADS = 256 /* with one doorbell */ };

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t tables_bytes(const struct known *known) {
    return known->tables ? 8 * (uint64_t)(known->head.leaves + 1 + known->capacity) : 0;
}

static void group_lock(struct group *group) {
    while (atomic_flag_test_and_set_explicit(&group->lock, memory_order_acquire)) {
    }
}

static void group_unlock(struct group *group) {
    atomic_flag_clear_explicit(&group->lock, memory_order_release);
}

static void tables_drop(struct rolex_cache *cache, struct known *known) {
    atomic_fetch_sub(&cache->used, tables_bytes(known));
    free(known->tables);
    known->tables = NULL;
}

/* Evicts a table of a group that is not locked. */
static void evict_one(struct rolex_cache *cache) {
    for (unsigned i = 0; i < EVICT_TRIES; i++) {
        struct group *group = &cache->groups[atomic_fetch_add(&cache->hand, 1) % cache->shape.branches];
        if (atomic_flag_test_and_set_explicit(&group->lock, memory_order_acquire)) {
            continue;
        }
        bool done = false;
        for (uint32_t m = 0; m < group->count && !done; m++) {
            done = group->models[m].tables;
            if (done) {
                tables_drop(cache, &group->models[m]);
            }
        }
        group_unlock(group);
        if (done) {
            return;
        }
    }
}

/* Reserves bytes of the budget and evicts tables if necessary. No group may be locked. */
static bool bytes_take(struct rolex_cache *cache, uint64_t bytes) {
    for (unsigned tries = 0; tries < 8; tries++) {
        uint64_t before = atomic_fetch_add(&cache->used, bytes);
        if (before + bytes <= cache->budget) {
            return true;
        }
        atomic_fetch_sub(&cache->used, bytes);
        evict_one(cache);
    }
    return false;
}

uint64_t rolex_cache_bytes(const struct rolex_cache *cache) {
    return cache ? atomic_load(&cache->used) : 0;
}

bool rolex_cache_is_of(const struct rolex_cache *cache, uint64_t root) {
    return cache && cache->root == root;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

void rolex_cache_close(struct rolex_cache *cache) {
    if (!cache) {
        return;
    }
    for (uint64_t g = 0; cache->groups && g < cache->shape.branches; g++) {
        for (uint32_t m = 0; m < cache->groups[g].count; m++) {
            free(cache->groups[g].models[m].tables);
        }
        free(cache->groups[g].models);
    }
    free(cache->branches);
    free(cache->heads);
    free(cache->groups);
    free(cache->lows);
    free(cache->uppers);
    free(cache);
}

/* Reads `bytes` in pieces of the size of a verb. */
static int bulk_read(struct rolex_env *env, dm_addr from, void *to, uint64_t bytes) {
    enum { PIECE = 1 << 20 };
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        uint32_t n = bytes - at < PIECE ? (uint32_t)(bytes - at) : PIECE;
        DM_TRY(dm_read(env->ctx, dm_addr_add(from, at), (char *)to + at, n));
    }
    return 0;
}

static int model_add(struct rolex_cache *cache, struct group *group, const struct known *known) {
    struct known *models = realloc(group->models, (group->count + 1) * sizeof(*models));
    if (!models) {
        return DM_ERR_NO_MEMORY;
    }
    models[group->count++] = *known;
    group->models = models;
    atomic_fetch_add(&cache->used, sizeof(*known));
    return 0;
}

/* Adds the current models of a branch whose original one has been replaced. */
static int group_resolve(struct rolex_cache *cache, struct rolex_env *env, struct group *group, uint64_t pointer,
                         uint64_t low, uint64_t end) {
    for (uint64_t key = low; key < end;) {
        struct known known = {.addr = DM_NULL};
        int rc = rolex_resolve(env, pointer, key, &known.addr, &known.head);
        if (rc != 0) {
            return rc < 0 ? rc : DM_ERR_IO;
        }
        DM_TRY(model_add(cache, group, &known));
        key = known.head.high;
    }
    return 0;
}

static int groups_fill(struct rolex_cache *cache, struct rolex_env *env) {
    uint64_t count = cache->shape.branches;
    const struct rolex_branch *branches = cache->branches;
    struct rolex_head *heads = cache->heads;
    for (uint64_t g = 0; g < count; g++) {
        if (g % READ_HEADS == 0) {
            uint64_t end = count - g < READ_HEADS ? count : g + READ_HEADS;
            for (uint64_t i = g; i < end; i++) {
                dm_addr model = {branches[i].pointer & ~ROLEX_FORK};
                if (!dm_addr_valid(env->ctx, model, sizeof(*heads))) {
                    return DM_ERR_IO;
                }
                dm_post_read(env->ctx, model, &heads[i - g], sizeof(*heads));
            }
            DM_TRY(dm_commit(env->ctx));
        }
        const struct rolex_head *head = &heads[g % READ_HEADS];
        uint64_t end = g + 1 < count ? branches[g + 1].low : UINT64_MAX;
        struct known known = {.addr = {branches[g].pointer}, .head = *head};
        bool is_current = !(branches[g].pointer & ROLEX_FORK) && head->forward == 0;
        cache->lows[g] = branches[g].low;
        atomic_flag_clear(&cache->groups[g].lock);
        DM_TRY(is_current ? model_add(cache, &cache->groups[g], &known)
                          : group_resolve(cache, env, &cache->groups[g], branches[g].pointer, branches[g].low, end));
    }
    return 0;
}

static int cache_read(struct rolex_cache *cache, struct rolex_env *env, dm_addr addr) {
    struct rolex_root *root = &cache->shape;
    dm_addr from = rolex_root_branches(root, addr);
    uint64_t uppers = (from.bits - addr.bits - sizeof(*root)) / sizeof(struct rolex_upper);
    uint64_t fixed = sizeof(*cache) + uppers * sizeof(struct rolex_upper) +
                     root->branches * (sizeof(struct group) + sizeof(uint64_t));
    if (fixed + root->branches * sizeof(struct known) > cache->budget) {
        return DM_NOT_FOUND;
    }
    cache->branches = calloc(root->branches, sizeof(*cache->branches));
    cache->uppers = malloc(uppers * sizeof(*cache->uppers) + 1);
    cache->lows = malloc(root->branches * sizeof(*cache->lows));
    cache->groups = calloc(root->branches, sizeof(*cache->groups));
    cache->heads = calloc(READ_HEADS, sizeof(*cache->heads));
    bool there = cache->branches && cache->heads && cache->uppers && cache->lows && cache->groups;
    int rc = there ? 0 : DM_ERR_NO_MEMORY;
    atomic_store(&cache->used, fixed);
    rc = rc < 0 ? rc : bulk_read(env, dm_addr_add(addr, sizeof(*root)), cache->uppers, uppers * sizeof(*cache->uppers));
    rc = rc < 0 ? rc : bulk_read(env, from, cache->branches, root->branches * sizeof(*cache->branches));
    rc = rc < 0 ? rc : groups_fill(cache, env);
    free(cache->branches);
    free(cache->heads);
    cache->branches = NULL;
    cache->heads = NULL;
    uint64_t used = atomic_load(&cache->used);
    atomic_store(&cache->models_bytes, used);
    return rc < 0 ? rc : used > cache->budget ? DM_NOT_FOUND : 0;
}

int rolex_cache_open(struct rolex_env *env, uint64_t budget_bytes, struct rolex_cache **out) {
    struct rolex_cache *cache = calloc(1, sizeof(*cache));
    *out = cache;
    if (!cache) {
        return DM_ERR_NO_MEMORY;
    }
    cache->budget = budget_bytes;
    dm_addr addr;
    int rc = rolex_root_read(env, &addr, &cache->shape);
    cache->root = addr.bits;
    rc = rc == 0 ? cache_read(cache, env, addr) : rc < 0 ? rc : DM_ERR_IO;
    if (rc != 0) {
        rolex_cache_close(cache);
        *out = NULL;
    }
    return rc < 0 ? rc : 0;
}

/* ---- look-up ----------------------------------------------------------------------------------------------------- */

/* The last of lo .. hi whose key is not above `key`. */
static uint32_t upper_find(const struct rolex_upper *uppers, struct rolex_run run, uint64_t key) {
    uint32_t at = run.lo;
    while (at < run.hi && uppers[at + 1].line.key <= key) {
        at++;
    }
    return at;
}

static uint32_t group_of(const struct rolex_cache *cache, const struct rolex_env *env, uint64_t key) {
    const struct rolex_root *root = &cache->shape;
    uint32_t compares = root->levels + 1;
    struct rolex_run run = {0, root->levels > 0 ? root->counts[0] - 1 : (uint32_t)root->branches - 1};
    const struct rolex_upper *level = cache->uppers;
    for (uint32_t l = 0; l < root->levels; l++) {
        uint32_t upper = upper_find(level, run, key);
        compares += upper - run.lo;
        run = rolex_upper_predict(&level[upper], key);
        level += root->counts[l];
    }
    uint32_t at = run.lo;
    while (at < run.hi && cache->lows[at + 1] <= key) {
        at++;
    }
    dm_charge(env->ctx, DM_WORK_MODEL_EVAL, root->levels + 1);
    dm_charge(env->ctx, DM_WORK_KEY_COMPARE, compares + at - run.lo);
    return at;
}

/* The group's model whose range has key. */
static struct known *known_find(struct group *group, uint64_t key) {
    uint32_t low = 0;
    uint32_t high = group->count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (group->models[middle].head.low <= key) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &group->models[low];
}

/* Charges a look-up: the search among a group's models, and the words copied. It reaches a line of each upper level and
 * of the branches, the group and its model, then the leaf table's window and the synonyms, on lines of their own. They
 * are at hand if this client's last look-up was of the same model. The group is not locked, as a charge may wait. */
static void find_charge(const struct rolex_cache *cache, struct dm_ctx *ctx, bool is_again, uint32_t models,
                        uint32_t words) {
    uint32_t steps = 1;
    for (; models > 1; models /= 2) {
        steps++;
    }
    dm_charge(ctx, DM_WORK_CACHE_PROBE, cache->shape.levels + 2);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, steps);
    dm_charge(ctx, DM_WORK_LINE_COPY, 2 + words / 8);
    if (!is_again) {
        dm_charge_access(ctx, cache->shape.levels + 1, cache->shape.branches * sizeof(uint64_t));
        dm_charge_access(ctx, 2, atomic_load(&cache->models_bytes));
        dm_charge_access(ctx, words > 0 ? 2 : 0, atomic_load(&cache->used));
    }
}

bool rolex_cache_find(struct rolex_cache *cache, const struct rolex_env *env, uint64_t key, uint32_t more,
                      struct rolex_view *view) {
    uint32_t words = 0;
    view->group = group_of(cache, env, key);
    struct group *group = &cache->groups[view->group];
    group_lock(group);
    const struct known *known = known_find(group, key);
    uint32_t models = group->count;
    bool there = !dm_addr_is_null(known->addr);
    bool is_again = there && dm_addr_equal(view->model, known->addr);
    if (there) {
        view->model = known->addr;
        view->head = known->head;
        view->window = rolex_predict(&view->head, key, (uint32_t)env->params->epsilon, env->per_leaf);
        view->window.hi +=
            more < view->head.leaves - 1 - view->window.hi ? more : view->head.leaves - 1 - view->window.hi;
        view->is_cached = true;
        view->has_tables = known->tables;
        if (known->tables) {
            uint32_t window = view->window.hi - view->window.lo + 1;
            const uint64_t *slots = known->tables + known->head.leaves;
            uint32_t used = rolex_used(slots[0], known->head.synonyms);
            memcpy(view->table, known->tables + view->window.lo, 8 * (size_t)window);
            memcpy(view->slots, slots, 8 * (size_t)(1 + used));
            view->used = slots[0];
            words = window + 1 + used;
        }
    }
    group_unlock(group);
    find_charge(cache, env->ctx, is_again, models, words);
    return there;
}

/* The model of the view, if it is still cached. */
static struct known *known_same(struct group *group, const struct rolex_view *view) {
    struct known *known = known_find(group, view->head.low);
    return dm_addr_equal(known->addr, view->model) ? known : NULL;
}

void rolex_cache_keep(struct rolex_cache *cache, const struct rolex_view *view, const uint64_t *table,
                      const uint64_t *slots) {
    const struct rolex_head *head = &view->head;
    uint32_t used = rolex_used(slots[0], head->synonyms);
    uint32_t capacity = used + CAPACITY_STEP < head->synonyms ? used + CAPACITY_STEP : head->synonyms;
    uint64_t bytes = 8 * (uint64_t)(head->leaves + 1 + capacity);
    if (!bytes_take(cache, bytes)) {
        return;
    }
    uint64_t *tables = malloc(bytes);
    if (!tables) {
        atomic_fetch_sub(&cache->used, bytes);
        return;
    }
    memcpy(tables, table, 8 * (size_t)head->leaves);
    memcpy(tables + head->leaves, slots, 8 * (size_t)(1 + used));
    struct group *group = &cache->groups[view->group];
    group_lock(group);
    struct known *known = known_same(group, view);
    if (known) {
        tables_drop(cache, known);
        known->tables = tables;
        known->capacity = capacity;
    }
    group_unlock(group);
    if (!known) {
        atomic_fetch_sub(&cache->used, bytes);
        free(tables);
    }
}

void rolex_cache_note(struct rolex_cache *cache, const struct rolex_view *view, uint32_t leaf, uint64_t entry,
                      unsigned slot, uint64_t slot_entry) {
    struct group *group = &cache->groups[view->group];
    group_lock(group);
    struct known *known = known_same(group, view);
    if (known && known->tables) {
        uint64_t *slots = known->tables + known->head.leaves;
        /* If other clients have added synonyms since, the tables must be read again. */
        if (slot > known->capacity || (slot > 0 && slots[0] + 1 != slot)) {
            tables_drop(cache, known);
        } else {
            known->tables[leaf] = entry;
            if (slot > 0) {
                slots[0] = slot;
                slots[slot] = slot_entry;
            }
        }
    }
    group_unlock(group);
}

void rolex_cache_drop(struct rolex_cache *cache, const struct rolex_view *view) {
    struct group *group = &cache->groups[view->group];
    group_lock(group);
    struct known *known = known_same(group, view);
    if (known) {
        tables_drop(cache, known);
    }
    group_unlock(group);
}

bool rolex_cache_replace(struct rolex_cache *cache, const struct rolex_view *view, const dm_addr *models,
                         const struct rolex_head *heads, uint32_t count) {
    struct group *group = &cache->groups[view->group];
    uint64_t bytes = count > 1 ? (count - 1) * sizeof(struct known) : 0;
    bool capacity = count > 0 && bytes_take(cache, bytes);
    group_lock(group);
    struct known *known = known_same(group, view);
    uint32_t at = known ? (uint32_t)(known - group->models) : 0;
    struct known *grown =
        known && capacity ? realloc(group->models, (group->count + count - 1) * sizeof(*grown)) : NULL;
    if (known) {
        known = grown ? &grown[at] : known;
        tables_drop(cache, known);
        known->addr = DM_NULL;
    }
    if (grown) {
        group->models = grown;
        memmove(&grown[at + count], &grown[at + 1], (group->count - at - 1) * sizeof(*grown));
        group->count += count - 1;
        for (uint32_t i = 0; i < count; i++) {
            grown[at + i] = (struct known){.addr = models[i], .head = heads[i]};
        }
        atomic_fetch_add(&cache->models_bytes, bytes);
    }
    group_unlock(group);
    if (capacity && !grown) {
        atomic_fetch_sub(&cache->used, bytes);
    }
    return known;
}
