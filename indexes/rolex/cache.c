/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's models and leaf tables. Either all models are cached or none ("can be fully cached", section 5.6).
 * Leaf tables are cached within the budget, each with the part of the synonym leaf table that is in use. Each model of
 * the bulk load begins a group, which its replacements join, so the number of groups is constant. Groups share spin
 * locks, which are never held across a wait; an operation copies what it needs out of the group. Every byte is charged
 * to the budget.
 */
#include "cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/large.h"
#include "descend.h"

/* A model in 32 bytes: the first key of its line, slope and intercept in single precision, its tables if they are
 * cached, and packed into `location` its address, the length of its leaf table and a number of synonyms. Its range ends
 * where the next model begins, and it begins at its key (the first model of all covers the keys below, too). A model
 * that was replaced has `many` instead. */
struct known {
    uint64_t key;
    float slope, intercept;
    union {
        uint64_t *tables;  /* the leaf table, then the used-slot counter and the synonyms; NULL: not cached */
        struct many *many; /* only of an entry of `groups` */
    };
    uint64_t location;
};
static_assert(sizeof(struct known) == 32, "what a cached model takes, which README.md states");

/* `location`, from the lowest bit on. A model on line 0, where none can be, is not cached: it was replaced and its
 * replacements did not fit here, or its address or its leaf table is beyond these bits. */
enum {
    SYNONYMS_BITS = 8, /* with tables: synonyms that they have space for; without: those in use when last read */
    MANY_BIT = 8,      /* only of an entry of `groups` */
    LEAVES_AT = 9,     /* entries of the leaf table less one */
    LEAVES_BITS = 14,
    LINE_AT = 24, /* of the memory node's DRAM */
    LINE_BITS = 34,
    NODE_AT = 58,
    NODE_BITS = 6,
};

/* The models that have replaced one of the bulk load, ascending. */
struct many {
    uint32_t count;
    struct known models[];
};

/* Spin locks that the groups share, by their numbers. No context holds two. */
enum { GROUP_LOCKS = 64 };

struct rolex_cache {
    uint64_t budget, root;
    _Atomic uint64_t used;
    _Atomic uint64_t models_bytes; /* of these, all but tables */
    struct rolex_root shape;
    uint32_t synonyms;
    uint16_t padding; /* of the key of a model, which is counted but not kept */
    bool one_thread;  /* all clients are coroutines of one thread of the host */
    struct rolex_upper *uppers;
    struct known *groups; /* the models of the bulk load, or what has replaced them */
    atomic_bool locks[GROUP_LOCKS];
    _Atomic uint64_t hand, asked;
    struct rolex_branch *branches; /* only while the cache is read */
    struct rolex_head *heads;
};

enum {
    EVICT_TRIES = 256,
    CAPACITY_STEP = 8,
    READ_HEADS = 256, /* with one doorbell */
    ADMIT_EVERY = 64, /* when the budget is used up, every n-th request to keep tables evicts others */
};

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static uint64_t field(uint64_t location, unsigned at, unsigned bits) {
    return location >> at & ((UINT64_C(1) << bits) - 1);
}

static dm_addr known_addr(const struct known *known) {
    uint64_t line = field(known->location, LINE_AT, LINE_BITS);
    uint64_t node = field(known->location, NODE_AT, NODE_BITS);
    return line > 0 ? dm_addr_make((unsigned)node, DM_DRAM, line * DM_LINE) : DM_NULL;
}

static uint32_t known_leaves(const struct known *known) {
    return (uint32_t)field(known->location, LEAVES_AT, LEAVES_BITS) + 1;
}

static uint32_t known_synonyms(const struct known *known) {
    return (uint32_t)field(known->location, 0, SYNONYMS_BITS);
}

static void synonyms_set(struct known *known, uint32_t synonyms) {
    known->location = known->location >> SYNONYMS_BITS << SYNONYMS_BITS | synonyms;
}

static bool known_is_many(const struct known *known) {
    return field(known->location, MANY_BIT, 1);
}

static struct known known_make(dm_addr addr, const struct rolex_head *head) {
    uint64_t line = dm_addr_offset(addr) / DM_LINE;
    uint64_t leaves = (uint64_t)head->leaves - 1; /* none: beyond the bits */
    bool fits = line >> LINE_BITS == 0 && leaves >> LEAVES_BITS == 0 && dm_addr_node(addr) >> NODE_BITS == 0;
    uint64_t location = leaves << LEAVES_AT | line << LINE_AT | (uint64_t)dm_addr_node(addr) << NODE_AT;
    return (struct known){.key = head->line.key,
                          .slope = (float)head->line.slope,
                          .intercept = (float)head->line.intercept,
                          .location = fits ? location : 0};
}

/* Synonyms in use when the tables were last read. */
static uint32_t known_used(const struct known *known, uint32_t most) {
    return known->tables ? rolex_used(known->tables[known_leaves(known)], most) : known_synonyms(known);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t tables_bytes(const struct known *known) {
    return known->tables ? 8 * (uint64_t)(known_leaves(known) + 1 + known_synonyms(known)) : 0;
}

static atomic_bool *lock_of(struct rolex_cache *cache, const struct known *group) {
    return &cache->locks[(size_t)(group - cache->groups) % GROUP_LOCKS];
}

static bool group_trylock(struct rolex_cache *cache, const struct known *group) {
    atomic_bool *lock = lock_of(cache, group);
    if (!cache->one_thread) {
        return !atomic_exchange_explicit(lock, true, memory_order_acquire);
    }
    bool is_free = !atomic_load_explicit(lock, memory_order_relaxed);
    atomic_store_explicit(lock, true, memory_order_relaxed);
    return is_free;
}

static void group_lock(struct rolex_cache *cache, const struct known *group) {
    while (!group_trylock(cache, group)) {
    }
}

static void group_unlock(struct rolex_cache *cache, const struct known *group) {
    atomic_store_explicit(lock_of(cache, group), false, memory_order_release);
}

static struct known *group_models(struct known *group, uint32_t *count) {
    *count = known_is_many(group) ? group->many->count : 1;
    return known_is_many(group) ? group->many->models : group;
}

static void tables_drop(struct rolex_cache *cache, struct known *known) {
    uint32_t used = known_used(known, cache->synonyms);
    atomic_fetch_sub(&cache->used, tables_bytes(known));
    free(known->tables);
    known->tables = NULL;
    synonyms_set(known, used);
}

/* Evicts a table of a group that is not locked. */
static void evict_one(struct rolex_cache *cache) {
    for (unsigned i = 0; i < EVICT_TRIES; i++) {
        struct known *group = &cache->groups[atomic_fetch_add(&cache->hand, 1) % cache->shape.branches];
        if (!group_trylock(cache, group)) {
            continue;
        }
        bool done = false;
        uint32_t count;
        struct known *models = group_models(group, &count);
        for (uint32_t m = 0; m < count && !done; m++) {
            done = models[m].tables;
            if (done) {
                tables_drop(cache, &models[m]);
            }
        }
        group_unlock(cache, group);
        if (done) {
            return;
        }
    }
}

/* Reserves bytes of the budget if there are so many left. */
static bool bytes_take_free(struct rolex_cache *cache, uint64_t bytes) {
    uint64_t before = atomic_fetch_add(&cache->used, bytes);
    if (before + bytes <= cache->budget) {
        return true;
    }
    atomic_fetch_sub(&cache->used, bytes);
    return false;
}

/* Reserves bytes of the budget and evicts tables if necessary. No group may be locked. */
static bool bytes_take(struct rolex_cache *cache, uint64_t bytes) {
    for (unsigned tries = 0; tries < 8; tries++) {
        if (bytes_take_free(cache, bytes)) {
            return true;
        }
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

/* Models of upper levels, which are between the root and its branches. */
static uint64_t upper_count(const struct rolex_cache *cache) {
    dm_addr branches = rolex_root_branches(&cache->shape, (dm_addr){cache->root});
    return (branches.bits - cache->root - sizeof(cache->shape)) / sizeof(struct rolex_upper);
}

void rolex_cache_close(struct rolex_cache *cache) {
    if (!cache) {
        return;
    }
    for (uint64_t g = 0; cache->groups && g < cache->shape.branches; g++) {
        uint32_t count;
        struct known *models = group_models(&cache->groups[g], &count);
        for (uint32_t m = 0; m < count; m++) {
            free(models[m].tables);
        }
        if (known_is_many(&cache->groups[g])) {
            free(cache->groups[g].many);
        }
    }
    free(cache->branches);
    free(cache->heads);
    dm_large_free(cache->groups, cache->shape.branches * sizeof(*cache->groups));
    dm_large_free(cache->uppers, upper_count(cache) * sizeof(*cache->uppers));
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

static int model_add(struct rolex_cache *cache, struct known *group, const struct known *known) {
    struct many *before = known_is_many(group) ? group->many : NULL;
    uint32_t count = before ? before->count : 0;
    struct many *many = realloc(before, sizeof(*many) + (count + 1) * sizeof(*known));
    if (!many) {
        return DM_ERR_NO_MEMORY;
    }
    many->models[count] = *known;
    many->count = count + 1;
    group->many = many;
    group->location |= UINT64_C(1) << MANY_BIT;
    atomic_fetch_add(&cache->used, sizeof(*known) + (before ? 0 : sizeof(*many)));
    return 0;
}

/* Adds the current models of a branch whose original one has been replaced. */
static int group_resolve(struct rolex_cache *cache, struct rolex_env *env, struct known *group, uint64_t pointer,
                         uint64_t low, uint64_t end) {
    for (uint64_t key = low; key < end;) {
        dm_addr addr = DM_NULL;
        struct rolex_head head;
        int rc = rolex_resolve(env, pointer, key, &addr, &head);
        if (rc != 0) {
            return rc < 0 ? rc : DM_ERR_IO;
        }
        struct known known = known_make(addr, &head);
        DM_TRY(model_add(cache, group, &known));
        key = head.high;
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
        struct known *group = &cache->groups[g];
        uint64_t end = g + 1 < count ? branches[g + 1].low : UINT64_MAX;
        *group = known_make((dm_addr){branches[g].pointer}, head);
        group->key = g > 0 ? branches[g].low : head->line.key;
        if (branches[g].pointer & ROLEX_FORK || head->forward != 0) {
            DM_TRY(group_resolve(cache, env, group, branches[g].pointer, branches[g].low, end));
        } else if (head->leaves > UINT16_MAX || group->key != head->line.key) {
            return DM_ERR_IO;
        }
    }
    return 0;
}

static int cache_read(struct rolex_cache *cache, struct rolex_env *env, dm_addr addr) {
    struct rolex_root *root = &cache->shape;
    dm_addr from = rolex_root_branches(root, addr);
    uint64_t uppers = upper_count(cache);
    uint64_t fixed = sizeof(*cache) + uppers * sizeof(struct rolex_upper) + root->branches * sizeof(struct known) +
                     (uppers + root->branches) * cache->padding;
    if (fixed > cache->budget) {
        return DM_NOT_FOUND;
    }
    cache->branches = calloc(root->branches, sizeof(*cache->branches));
    cache->uppers = dm_large_alloc(uppers * sizeof(*cache->uppers));
    cache->groups = dm_large_alloc(root->branches * sizeof(*cache->groups));
    cache->heads = calloc(READ_HEADS, sizeof(*cache->heads));
    bool there = cache->branches && cache->heads && cache->uppers && cache->groups;
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
    cache->one_thread = dm_is_one_thread(dm_fabric_of(env->ctx));
    cache->padding = (uint16_t)rolex_padding(&env->layout);
    cache->synonyms = (uint32_t)env->params->synonyms;
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
    while (at < run.hi && cache->groups[at + 1].key <= key) {
        at++;
    }
    dm_charge(env->ctx, DM_WORK_MODEL_EVAL, root->levels + 1);
    dm_charge(env->ctx, DM_WORK_KEY_COMPARE, compares + at - run.lo);
    return at;
}

/* The group's model whose range has key; *high is the end of its range. */
static struct known *known_find(struct rolex_cache *cache, uint32_t number, uint64_t key, uint64_t *high) {
    struct known *group = &cache->groups[number];
    uint32_t count;
    struct known *models = group_models(group, &count);
    uint32_t low = 0;
    uint32_t end = count;
    while (end - low > 1) {
        uint32_t middle = (low + end) / 2;
        if (models[middle].key <= key) {
            low = middle;
        } else {
            end = middle;
        }
    }
    bool is_last = number + 1 == cache->shape.branches;
    *high = low + 1 < count ? models[low + 1].key : is_last ? UINT64_MAX : group[1].key;
    return &models[low];
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

static void view_fill(struct rolex_view *view, const struct known *known, uint64_t low, uint64_t high,
                      uint32_t synonyms) {
    view->model = known_addr(known);
    view->head = (struct rolex_head){.low = low,
                                     .high = high,
                                     .line = {known->key, known->slope, known->intercept},
                                     .leaves = known_leaves(known),
                                     .synonyms = (uint16_t)synonyms};
    view->expected = known_used(known, synonyms);
}

bool rolex_cache_find(struct rolex_cache *cache, const struct rolex_env *env, uint64_t key, uint32_t more,
                      struct rolex_view *view) {
    uint32_t words = 0, models;
    uint64_t high;
    view->group = group_of(cache, env, key);
    struct known *group = &cache->groups[view->group];
    group_lock(cache, group);
    const struct known *known = known_find(cache, view->group, key, &high);
    /* The first model of all has the keys below the first one that it was trained with, too. */
    bool is_first = group_models(group, &models) == known && view->group == 0;
    bool there = !dm_addr_is_null(known_addr(known));
    bool is_again = there && dm_addr_equal(view->model, known_addr(known));
    if (there) {
        view_fill(view, known, is_first ? 0 : known->key, high, cache->synonyms);
        uint32_t epsilon = (uint32_t)env->params->epsilon + rolex_line_slack(view->head.leaves, env->per_leaf);
        view->window = rolex_predict(&view->head, key, epsilon, env->per_leaf);
        view->window.hi +=
            more < view->head.leaves - 1 - view->window.hi ? more : view->head.leaves - 1 - view->window.hi;
        view->is_cached = true;
        view->has_tables = known->tables;
        if (known->tables) {
            uint32_t window = view->window.hi - view->window.lo + 1;
            const uint64_t *slots = known->tables + view->head.leaves;
            uint32_t used = rolex_used(slots[0], cache->synonyms);
            memcpy(view->table, known->tables + view->window.lo, 8 * (size_t)window);
            memcpy(view->slots, slots, 8 * (size_t)(1 + used));
            view->used = slots[0];
            words = window + 1 + used;
        }
    }
    group_unlock(cache, group);
    find_charge(cache, env->ctx, is_again, models, words);
    return there;
}

/* The model of the view, if it is still cached. */
static struct known *known_same(struct rolex_cache *cache, const struct rolex_view *view) {
    uint64_t high;
    struct known *known = known_find(cache, view->group, view->head.low, &high);
    return dm_addr_equal(known_addr(known), view->model) ? known : NULL;
}

static uint64_t keep_bytes(const struct rolex_view *view, uint32_t used, uint32_t *capacity) {
    uint32_t most = view->head.synonyms;
    *capacity = used == 0 ? 0 : used + CAPACITY_STEP < most ? used + CAPACITY_STEP : most;
    return 8 * (uint64_t)(view->head.leaves + 1 + *capacity);
}

bool rolex_cache_wants(struct rolex_cache *cache, const struct rolex_view *view) {
    uint32_t capacity;
    uint64_t bytes = keep_bytes(view, view->expected, &capacity);
    return atomic_load(&cache->used) + bytes <= cache->budget || atomic_fetch_add(&cache->asked, 1) % ADMIT_EVERY == 0;
}

void rolex_cache_keep(struct rolex_cache *cache, const struct rolex_view *view, const uint64_t *table,
                      const uint64_t *slots) {
    uint32_t used = rolex_used(slots[0], view->head.synonyms), capacity;
    uint64_t bytes = keep_bytes(view, used, &capacity);
    if (!bytes_take(cache, bytes)) {
        return;
    }
    uint64_t *tables = malloc(bytes);
    if (!tables) {
        atomic_fetch_sub(&cache->used, bytes);
        return;
    }
    memcpy(tables, table, 8 * (size_t)view->head.leaves);
    memcpy(tables + view->head.leaves, slots, 8 * (size_t)(1 + used));
    struct known *group = &cache->groups[view->group];
    group_lock(cache, group);
    struct known *known = known_same(cache, view);
    if (known) {
        tables_drop(cache, known);
        known->tables = tables;
        synonyms_set(known, capacity);
    }
    group_unlock(cache, group);
    if (!known) {
        atomic_fetch_sub(&cache->used, bytes);
        free(tables);
    }
}

/* Makes space for synonym number `slot` in tables of a locked group; drops them if there is none. */
static bool slot_reserve(struct rolex_cache *cache, struct known *known, uint32_t slot) {
    uint32_t before = known_synonyms(known);
    if (slot <= before) {
        return true;
    }
    uint32_t capacity = slot + CAPACITY_STEP < cache->synonyms ? slot + CAPACITY_STEP : cache->synonyms;
    uint64_t more = 8 * (uint64_t)(capacity - before);
    if (bytes_take_free(cache, more)) {
        uint64_t *grown = realloc(known->tables, tables_bytes(known) + more);
        if (grown) {
            memset(grown + known_leaves(known) + 1 + before, 0, more);
            known->tables = grown;
            synonyms_set(known, capacity);
            return true;
        }
        atomic_fetch_sub(&cache->used, more);
    }
    tables_drop(cache, known);
    return false;
}

void rolex_cache_note(struct rolex_cache *cache, const struct rolex_view *view, uint32_t leaf, uint64_t entry,
                      unsigned slot, uint64_t slot_entry) {
    struct known *group = &cache->groups[view->group];
    group_lock(cache, group);
    struct known *known = known_same(cache, view);
    if (known && known->tables) {
        /* If other clients have added synonyms since, the tables must be read again. */
        if (slot > 0 && known->tables[known_leaves(known)] + 1 != slot) {
            tables_drop(cache, known);
        } else if (slot_reserve(cache, known, slot)) {
            uint64_t *slots = known->tables + known_leaves(known);
            known->tables[leaf] = entry;
            if (slot > 0) {
                slots[0] = slot;
                slots[slot] = slot_entry;
            }
        }
    }
    group_unlock(cache, group);
}

void rolex_cache_refresh(struct rolex_cache *cache, const struct rolex_view *view) {
    struct known *group = &cache->groups[view->group];
    uint32_t used = rolex_used(view->used, view->head.synonyms);
    group_lock(cache, group);
    struct known *known = known_same(cache, view);
    if (known && known->tables && slot_reserve(cache, known, used)) {
        memcpy(known->tables + view->window.lo, view->table, 8 * (size_t)(view->window.hi - view->window.lo + 1));
        memcpy(known->tables + view->head.leaves, view->slots, 8 * (size_t)(1 + used));
    } else if (known) {
        synonyms_set(known, used);
    }
    group_unlock(cache, group);
}

void rolex_cache_drop(struct rolex_cache *cache, const struct rolex_view *view) {
    struct known *group = &cache->groups[view->group];
    group_lock(cache, group);
    struct known *known = known_same(cache, view);
    if (known) {
        tables_drop(cache, known);
    }
    group_unlock(cache, group);
}

/* Exchanges model `at` of a group, which has `before` of them, for `count` models. NULL: no memory. */
static struct many *many_make(struct known *group, uint32_t at, uint32_t before, const dm_addr *models,
                              const struct rolex_head *heads, uint32_t count) {
    struct many *many = malloc(sizeof(*many) + (before + count - 1) * sizeof(struct known));
    uint32_t unused;
    const struct known *old = group_models(group, &unused);
    if (!many) {
        return NULL;
    }
    many->count = before + count - 1;
    memcpy(many->models, old, at * sizeof(*old));
    memcpy(many->models + at + count, old + at + 1, (before - at - 1) * sizeof(*old));
    for (uint32_t i = 0; i < count; i++) {
        many->models[at + i] = known_make(models[i], &heads[i]);
    }
    return many;
}

bool rolex_cache_replace(struct rolex_cache *cache, const struct rolex_view *view, const dm_addr *models,
                         const struct rolex_head *heads, uint32_t count) {
    struct known *group = &cache->groups[view->group];
    /* The group's entry stays, and the first replacement needs another one. */
    uint64_t bytes = count > 0 ? count * (sizeof(struct known) + cache->padding) + sizeof(struct many) : 0;
    bool fits = count > 0 && bytes_take(cache, bytes);
    group_lock(cache, group);
    struct known *known = known_same(cache, view);
    struct many *grown = NULL;
    uint64_t unused = fits ? bytes : 0;
    if (known) {
        uint32_t before;
        uint32_t at = (uint32_t)(known - group_models(group, &before));
        tables_drop(cache, known);
        known->location &= (UINT64_C(1) << MANY_BIT); /* on line 0: not cached */
        grown = fits ? many_make(group, at, before, models, heads, count) : NULL;
        if (grown && known_is_many(group)) {
            unused = sizeof(struct known) + cache->padding + sizeof(struct many);
            free(group->many);
        } else if (grown) {
            unused = 0;
        }
        if (grown) {
            group->many = grown;
            group->location |= UINT64_C(1) << MANY_BIT;
            atomic_fetch_add(&cache->models_bytes, bytes - unused);
        }
    }
    group_unlock(cache, group);
    atomic_fetch_sub(&cache->used, unused);
    return known;
}
