/* SPDX-License-Identifier: Apache-2.0
 *
 * The node cache; see cache.h. Copies of each type are in an array of their own, of which pages are used as copies are
 * first made. A number names a copy: the type in its upper bits, the index in the array, from 1, in the others.
 */
#include "cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/compiler.h"
#include "common/large.h"
#include "common/prng.h"

enum {
    NONE = 0,
    TYPE_SHIFT = 28,
    NODE_BYTES = 9,    /* as the authors count: address and depth of a copy, */
    RECORD_BYTES = 17, /* and its record in the radix tree */
    HOPS_MAX = 32,     /* in a bucket's chain, in case it changes meanwhile */
    GUIDED_SLOTS = 64, /* copies with so many have a guide */
    GUIDE_BYTES = 256,
    SPARE_COPIES = 4096,
};

struct copy {
    _Atomic uint32_t version; /* odd while it is changed */
    _Atomic uint32_t next;    /* in the bucket's chain */
    _Atomic uint64_t path;
    _Atomic uint64_t addr;
    _Atomic uint32_t length; /* of the path */
    uint32_t older, newer;   /* in order of age; newer also links free copies */
    uint32_t unused;
    _Atomic uint64_t slots[]; /* behind them in large copies: the guide, for each key byte the slot that had it last */
};

struct array {
    char *copies;
    uint32_t capacity, fresh, free;
};

struct smart_cache {
    const struct smart_layout *layout;
    enum smart_accounting accounting;
    uint64_t bytes;
    struct array arrays[SMART_TYPES_MAX];
    _Atomic uint32_t *buckets;
    uint32_t bucket_count;
    uint32_t oldest, newest;
    atomic_flag guard;
    _Atomic uint64_t used, copies;
    _Atomic uint64_t counts[SMART_KEY_BYTES], level_bytes[SMART_KEY_BYTES]; /* by length of the path */
};

static uint32_t copy_bytes(const struct smart_cache *cache, unsigned type) {
    return (uint32_t)sizeof(struct copy) + cache->layout->capacity[type] * (uint32_t)sizeof(uint64_t);
}

/* From one copy to the next. The guide belongs to the simulation, not to the cache, and is not counted. */
static uint32_t stride_bytes(const struct smart_cache *cache, unsigned type) {
    return copy_bytes(cache, type) + (cache->layout->capacity[type] >= GUIDED_SLOTS ? GUIDE_BYTES : 0);
}

static uint64_t array_bytes(const struct smart_cache *cache, unsigned type) {
    return (uint64_t)(cache->arrays[type].capacity + 1) * stride_bytes(cache, type);
}

static uint32_t counted_bytes(const struct smart_cache *cache, unsigned type) {
    uint32_t slots = cache->layout->capacity[type] * (uint32_t)sizeof(uint64_t);
    return cache->accounting == SMART_COUNT_PUBLISHED ? NODE_BYTES + RECORD_BYTES + slots
                                                      : copy_bytes(cache, type) + (uint32_t)sizeof(uint32_t);
}

static unsigned type_of(uint32_t number) {
    return number >> TYPE_SHIFT;
}

static struct copy *copy_at(const struct smart_cache *cache, uint32_t number) {
    uint32_t index = (number & ((UINT32_C(1) << TYPE_SHIFT) - 1)) - 1;
    return (struct copy *)(void *)(cache->arrays[type_of(number)].copies +
                                   (size_t)index * stride_bytes(cache, type_of(number)));
}

static _Atomic uint32_t *bucket_of(const struct smart_cache *cache, uint64_t path, unsigned length) {
    uint64_t hash = dm_mix64(path + length) >> 32;
    return &cache->buckets[hash * cache->bucket_count >> 32];
}

static void guard_lock(struct smart_cache *cache) {
    while (atomic_flag_test_and_set_explicit(&cache->guard, memory_order_acquire)) {
    }
}

static void guard_unlock(struct smart_cache *cache) {
    atomic_flag_clear_explicit(&cache->guard, memory_order_release);
}

int smart_cache_open(const struct smart_cache_config *config, struct smart_cache **out) {
    *out = NULL;
    struct smart_cache *cache = calloc(1, sizeof(*cache));
    if (!cache) {
        return DM_ERR_NO_MEMORY;
    }
    cache->layout = config->layout;
    cache->accounting = config->accounting;
    cache->bytes = config->bytes;
    if (config->bytes < counted_bytes(cache, 1)) {
        free(cache);
        return 0;
    }
    uint64_t all = 0;
    bool has_all = true;
    for (unsigned type = 1; type <= config->layout->types; type++) {
        uint64_t fit = config->bytes / counted_bytes(cache, type);
        uint64_t useful = 4 * config->expected_keys / config->layout->capacity[type] + SPARE_COPIES;
        uint64_t most = (UINT64_C(1) << TYPE_SHIFT) - 2;
        uint64_t count = fit < useful ? fit : useful;
        cache->arrays[type].capacity = (uint32_t)(count < most ? count : most);
        cache->arrays[type].copies = dm_large_alloc(array_bytes(cache, type));
        has_all = has_all && cache->arrays[type].copies;
        all = all > cache->arrays[type].capacity ? all : cache->arrays[type].capacity;
    }
    cache->bucket_count = (uint32_t)all + 1;
    cache->buckets = dm_large_alloc(cache->bucket_count * sizeof(*cache->buckets));
    if (!has_all || !cache->buckets) {
        smart_cache_close(cache);
        return DM_ERR_NO_MEMORY;
    }
    *out = cache;
    return 0;
}

void smart_cache_close(struct smart_cache *cache) {
    if (cache) {
        for (unsigned type = 1; type < SMART_TYPES_MAX; type++) {
            dm_large_free(cache->arrays[type].copies, array_bytes(cache, type));
        }
        dm_large_free((void *)cache->buckets, cache->bucket_count * sizeof(*cache->buckets));
        free(cache);
    }
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* The copy with this path, and its version; NULL if there is none. */
static const struct copy *copy_find(const struct smart_cache *cache, uint64_t path, unsigned length, uint32_t *number,
                                    uint32_t *version) {
    *number = atomic_load_explicit(bucket_of(cache, path, length), memory_order_acquire);
    for (unsigned hops = 0; *number != NONE && hops < HOPS_MAX; hops++) {
        const struct copy *copy = copy_at(cache, *number);
        *version = atomic_load_explicit(&copy->version, memory_order_acquire);
        if (atomic_load_explicit(&copy->path, memory_order_acquire) == path &&
            atomic_load_explicit(&copy->length, memory_order_acquire) == length) {
            return *version % 2 == 0 ? copy : NULL;
        }
        *number = atomic_load_explicit(&copy->next, memory_order_acquire);
    }
    return NULL;
}

static bool is_still(const struct copy *copy, uint32_t version) {
    return atomic_load_explicit(&copy->version, memory_order_acquire) == version;
}

/* One probe: the bucket; and if there is a copy, its head and its slots, of copies with that length. Any path leads to
 * any bucket, so that most copies are accessed between two accesses to the same line of the buckets. */
static void probe_charge(const struct smart_cache *cache, struct dm_ctx *ctx, unsigned length, unsigned slots) {
    uint64_t level = atomic_load_explicit(&cache->level_bytes[length], memory_order_relaxed);
    uint64_t lines = atomic_load_explicit(&cache->copies, memory_order_relaxed) * DM_LINE;
    uint64_t buckets = cache->bucket_count * sizeof(*cache->buckets);
    uint64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, slots / 4 + 1);
    dm_charge_access(ctx, 1, used + (lines < buckets ? lines : buckets));
    if (slots > 0) {
        dm_charge_access(ctx, 2, level);
    }
}

/* Any length may have the copy; their buckets, and then their first copies, come together. */
static void search_prefetch(const struct smart_cache *cache, uint64_t key, unsigned longest) {
    const _Atomic uint32_t *buckets[SMART_KEY_BYTES];
    unsigned count = 0;
    for (unsigned length = longest + 1; length-- > 0;) {
        if (atomic_load_explicit(&cache->counts[length], memory_order_relaxed) > 0) {
            buckets[count] = bucket_of(cache, smart_low(key, length), length);
            dm_prefetch_read((const void *)buckets[count++]);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        uint32_t number = atomic_load_explicit(buckets[i], memory_order_relaxed);
        if (number != NONE) {
            dm_prefetch_lines(copy_at(cache, number), sizeof(struct copy) + DM_LINE);
        }
    }
}

/* The slot that has the byte, and its number; `capacity` if none has. A copy has at most one. */
static unsigned slot_find(const struct copy *copy, unsigned capacity, unsigned byte, uint64_t *word) {
    _Atomic unsigned char *guide = capacity < GUIDED_SLOTS ? NULL : (_Atomic unsigned char *)&copy->slots[capacity];
    unsigned i = guide ? atomic_load_explicit(&guide[byte], memory_order_relaxed) : 0;
    *word = capacity > 0 ? atomic_load_explicit(&copy->slots[i], memory_order_acquire) : 0;
    if (guide && smart_slot_has_byte(*word, byte)) {
        return i;
    }
    for (i = 0; i < capacity; i++) {
        *word = atomic_load_explicit(&copy->slots[i], memory_order_acquire);
        if (smart_slot_byte(*word) == byte && smart_slot_has_byte(*word, byte)) {
            break;
        }
    }
    if (guide && i < capacity) {
        atomic_store_explicit(&guide[byte], (unsigned char)i, memory_order_relaxed);
    }
    return i;
}

bool smart_cache_search(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned longest,
                        struct smart_cache_hit *hit) {
    if (!cache) {
        return false;
    }
    search_prefetch(cache, key, longest);
    for (unsigned length = longest + 1; length-- > 0;) {
        if (atomic_load_explicit(&cache->counts[length], memory_order_relaxed) == 0) {
            continue;
        }
        uint32_t number;
        uint32_t version;
        uint64_t word;
        const struct copy *copy = copy_find(cache, smart_low(key, length), length, &number, &version);
        unsigned capacity = copy ? cache->layout->capacity[type_of(number)] : 0;
        unsigned i = slot_find(copy, capacity, smart_byte(key, length), &word);
        probe_charge(cache, ctx, length, copy ? i + 1 : 0);
        if (i < capacity && !smart_slot_is_frozen(word)) {
            *hit = (struct smart_cache_hit){word, {atomic_load_explicit(&copy->addr, memory_order_acquire)}, length, i};
            if (is_still(copy, version)) {
                return true;
            }
        }
    }
    return false;
}

bool smart_cache_path(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned longest,
                      struct smart_cache_hit *hit) {
    for (unsigned length = longest + 1; cache && length-- > 0;) {
        if (atomic_load_explicit(&cache->counts[length], memory_order_relaxed) == 0) {
            continue;
        }
        uint32_t number;
        uint32_t version;
        const struct copy *copy = copy_find(cache, smart_low(key, length), length, &number, &version);
        probe_charge(cache, ctx, length, copy ? 1 : 0);
        if (copy) {
            dm_addr addr = {atomic_load_explicit(&copy->addr, memory_order_acquire)};
            *hit = (struct smart_cache_hit){smart_slot_node(0, type_of(number), addr), addr, length, 0};
            if (is_still(copy, version)) {
                return true;
            }
        }
    }
    return false;
}

bool smart_cache_copy(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned length,
                      struct smart_node *node, dm_addr *addr) {
    if (!cache) {
        return false;
    }
    uint32_t number;
    uint32_t version;
    const struct copy *copy = copy_find(cache, smart_low(key, length), length, &number, &version);
    unsigned capacity = copy ? cache->layout->capacity[type_of(number)] : 0;
    probe_charge(cache, ctx, length, copy ? 1 : 0);
    dm_charge(ctx, DM_WORK_LINE_COPY, (capacity + 7) / 8);
    if (!copy) {
        return false;
    }
    node->header = (uint64_t)type_of(number) << 8;
    for (unsigned i = 0; i < capacity; i++) {
        node->slots[i] = atomic_load_explicit(&copy->slots[i], memory_order_acquire);
    }
    addr->bits = atomic_load_explicit(&copy->addr, memory_order_acquire);
    return is_still(copy, version);
}

unsigned smart_cache_children(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned length) {
    if (!cache) {
        return 0;
    }
    uint32_t number;
    uint32_t version;
    const struct copy *copy = copy_find(cache, smart_low(key, length), length, &number, &version);
    unsigned capacity = copy ? cache->layout->capacity[type_of(number)] : 0;
    unsigned children = 0;
    for (unsigned i = 0; i < capacity; i++) {
        children += smart_slot_has_child(atomic_load_explicit(&copy->slots[i], memory_order_acquire));
    }
    probe_charge(cache, ctx, length, capacity);
    return children;
}

/* ---- writers ----------------------------------------------------------------------------------------------------- */

static void copy_unlink(struct smart_cache *cache, uint32_t number) {
    struct copy *copy = copy_at(cache, number);
    uint64_t path = atomic_load_explicit(&copy->path, memory_order_relaxed);
    unsigned length = atomic_load_explicit(&copy->length, memory_order_relaxed);
    _Atomic uint32_t *link = bucket_of(cache, path, length);
    while (atomic_load_explicit(link, memory_order_relaxed) != number) {
        link = &copy_at(cache, atomic_load_explicit(link, memory_order_relaxed))->next;
    }
    atomic_store_explicit(link, atomic_load_explicit(&copy->next, memory_order_relaxed), memory_order_release);
    *(copy->older != NONE ? &copy_at(cache, copy->older)->newer : &cache->oldest) = copy->newer;
    *(copy->newer != NONE ? &copy_at(cache, copy->newer)->older : &cache->newest) = copy->older;
    uint32_t version = atomic_load_explicit(&copy->version, memory_order_relaxed);
    atomic_store_explicit(&copy->version, version + 1, memory_order_release);
    copy->newer = cache->arrays[type_of(number)].free;
    cache->arrays[type_of(number)].free = number;
    atomic_fetch_sub_explicit(&cache->used, counted_bytes(cache, type_of(number)), memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->copies, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->counts[length], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->level_bytes[length], copy_bytes(cache, type_of(number)), memory_order_relaxed);
}

/* The number of the copy with this path; NONE if there is none. Under the guard. */
static uint32_t number_find(const struct smart_cache *cache, uint64_t path, unsigned length) {
    uint32_t number = atomic_load_explicit(bucket_of(cache, path, length), memory_order_relaxed);
    while (number != NONE) {
        const struct copy *copy = copy_at(cache, number);
        if (atomic_load_explicit(&copy->path, memory_order_relaxed) == path &&
            atomic_load_explicit(&copy->length, memory_order_relaxed) == length) {
            break;
        }
        number = atomic_load_explicit(&copy->next, memory_order_relaxed);
    }
    return number;
}

/* A free copy of the type, for which older copies leave. NONE: it does not fit the budget. */
static uint32_t copy_take(struct smart_cache *cache, unsigned type, unsigned *evicted) {
    struct array *array = &cache->arrays[type];
    uint64_t used = counted_bytes(cache, type);
    if (used > cache->bytes) {
        return NONE;
    }
    while (cache->oldest != NONE && (atomic_load_explicit(&cache->used, memory_order_relaxed) + used > cache->bytes ||
                                     (array->free == NONE && array->fresh == array->capacity))) {
        copy_unlink(cache, cache->oldest);
        ++*evicted;
    }
    if (array->free != NONE) {
        uint32_t number = array->free;
        array->free = copy_at(cache, number)->newer;
        return number;
    }
    if (array->fresh == array->capacity) {
        return NONE;
    }
    uint32_t number = (uint32_t)type << TYPE_SHIFT | ++array->fresh;
    atomic_store_explicit(&copy_at(cache, number)->version, 1, memory_order_relaxed);
    return number;
}

unsigned smart_cache_put(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t path, unsigned length, dm_addr addr,
                         unsigned type, const uint64_t *slots) {
    if (!cache || smart_capacity(cache->layout, type) == 0) {
        return 0;
    }
    unsigned evicted = 0;
    unsigned capacity = cache->layout->capacity[type];
    guard_lock(cache);
    uint32_t old = number_find(cache, path, length);
    if (old != NONE) {
        copy_unlink(cache, old);
    }
    uint32_t number = copy_take(cache, type, &evicted);
    if (number != NONE) {
        struct copy *copy = copy_at(cache, number);
        _Atomic uint32_t *bucket = bucket_of(cache, path, length);
        atomic_store_explicit(&copy->path, path, memory_order_release);
        atomic_store_explicit(&copy->length, length, memory_order_release);
        atomic_store_explicit(&copy->addr, addr.bits, memory_order_release);
        for (unsigned i = 0; i < capacity; i++) {
            atomic_store_explicit(&copy->slots[i], slots[i], memory_order_release);
        }
        atomic_store_explicit(&copy->next, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_release);
        uint32_t version = atomic_load_explicit(&copy->version, memory_order_relaxed);
        atomic_store_explicit(&copy->version, version + 1, memory_order_release);
        copy->older = cache->newest;
        copy->newer = NONE;
        *(cache->newest != NONE ? &copy_at(cache, cache->newest)->newer : &cache->oldest) = number;
        cache->newest = number;
        atomic_store_explicit(bucket, number, memory_order_release);
        atomic_fetch_add_explicit(&cache->used, counted_bytes(cache, type), memory_order_relaxed);
        atomic_fetch_add_explicit(&cache->copies, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&cache->counts[length], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&cache->level_bytes[length], copy_bytes(cache, type), memory_order_relaxed);
    }
    guard_unlock(cache);
    probe_charge(cache, ctx, length, 1);
    dm_charge(ctx, DM_WORK_LINE_COPY, (capacity + 7) / 8);
    return evicted;
}

void smart_cache_drop(struct smart_cache *cache, uint64_t key, unsigned length, dm_addr addr) {
    if (!cache) {
        return;
    }
    guard_lock(cache);
    uint32_t number = number_find(cache, smart_low(key, length), length);
    if (number != NONE && atomic_load_explicit(&copy_at(cache, number)->addr, memory_order_relaxed) == addr.bits) {
        copy_unlink(cache, number);
    }
    guard_unlock(cache);
}

void smart_cache_patch(struct smart_cache *cache, uint64_t key, unsigned length, dm_addr addr, unsigned index,
                       uint64_t old, uint64_t now) {
    if (!cache) {
        return;
    }
    guard_lock(cache);
    uint32_t number = number_find(cache, smart_low(key, length), length);
    if (number != NONE && index < cache->layout->capacity[type_of(number)]) {
        struct copy *copy = copy_at(cache, number);
        if (atomic_load_explicit(&copy->addr, memory_order_relaxed) == addr.bits &&
            atomic_load_explicit(&copy->slots[index], memory_order_relaxed) == old) {
            atomic_store_explicit(&copy->slots[index], now, memory_order_release);
        }
    }
    guard_unlock(cache);
}

uint64_t smart_cache_used(const struct smart_cache *cache) {
    return cache ? atomic_load_explicit(&cache->used, memory_order_relaxed) : 0;
}
