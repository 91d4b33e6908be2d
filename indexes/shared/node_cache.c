/* SPDX-License-Identifier: Apache-2.0
 *
 * The node cache; see node_cache.h. Slots are in one slab: a head, then the copy. A slot is free, in the table (a
 * bucket, and the list of its level, in order of age), or in limbo: not in the table any more but perhaps still read.
 *
 * A bucket is a line of links. A link names a slot and has some bits of the hash of its address, by which a search
 * passes over most other copies of the bucket without reading them. The last link begins a chain of those copies for
 * which there was no other link.
 *
 * The hash table grows with the copies by linear hashing: of the links that the budget holds, only twice as many are in
 * use as there are copies, side by side, so that the table of a cache that is far from full takes little of the
 * processor's cache. A reader that comes while a bucket is split may not find a copy that is there, as if it came
 * before the copy.
 *
 * Reclamation is by epochs. A reader announces the epoch in its thread's cell; retiring a slot stamps it with the epoch
 * and then raises it. A slot leaves limbo when no cell holds an epoch up to its stamp. This needs one order of four
 * steps seen by all: reader announces, reader loads a link; writer unlinks, writer looks at the cells. They are
 * sequentially consistent operations: a reader whose announcement the writer did not see must see the unlinking.
 */
#include "indexes/shared/node_cache.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/aligned.h"
#include "common/compiler.h"
#include "common/large.h"
#include "indexes/shared/skip_list.h"

enum {
    NO_SLOT = 0, /* slots are numbered from 1 */
    PREFETCH_BYTES = 640,
    BUCKET_LINKS = 16,   /* a line of them, if the budget has as many */
    LINKS_A_COPY = 2,    /* as long as the budget has them */
    SECOND_CHANCES = 16, /* recently used copies that are passed over before one is evicted in any case */
};

struct slot {
    uint64_t addr;
    _Atomic uint32_t next; /* link in a bucket's chain */
    uint32_t newer;        /* in the level's list; also links free slots and limbo */
    union {
        uint32_t older;   /* in the level's list */
        uint64_t retired; /* epoch of retirement, in limbo */
    };
    uint32_t stamp;         /* raised at every use of the slot */
    _Atomic uint8_t recent; /* found since it was last passed over */
    uint8_t level;
    uint8_t unused[2];
};
static_assert(sizeof(struct slot) == 32, "the head of a copy keeps it 8-byte aligned");

struct list {
    uint32_t oldest, newest;
};

/* One cache line a thread, so that readers do not disturb each other. */
struct cell {
    _Alignas(DM_LINE) _Atomic uint64_t epoch; /* 0: not reading */
};

struct ix_cache {
    uint32_t copy_bytes, slot_bytes;
    uint32_t capacity;         /* slots in the slab */
    _Atomic uint32_t in_table; /* copies that can be found */
    unsigned threads;
    uint8_t number_bits; /* of a link: the slot's number; the rest are bits of the hash */
    uint8_t bucket_links;
    bool lru, one_thread;
    uint32_t fresh; /* slots from here on were never used */
    uint32_t free;  /* a list of used ones */
    struct list limbo;
    struct list levels[IX_CACHE_LEVELS];            /* with lru, all copies are in the first */
    _Atomic uint32_t level_counts[IX_CACHE_LEVELS]; /* copies of each level that can be found */
    uint64_t fixed_bytes;
    _Atomic uint64_t epoch;
    atomic_flag guard;
    _Atomic uint32_t bucket_count; /* those in use, from the first on */
    struct cell *cells;
    char *slab;
    _Atomic uint32_t *links; /* `capacity` of them, behind the slab to have its large pages */
};

static uint32_t slot_size(uint32_t copy_bytes) {
    return (uint32_t)sizeof(struct slot) + (copy_bytes + 7) / 8 * 8;
}

static struct slot *slot_at(const struct ix_cache *cache, uint32_t number) {
    return (struct slot *)(void *)(cache->slab + (size_t)(number - 1) * cache->slot_bytes);
}

/* The upper half of the hash has the bits of a link, the lower half chooses the bucket. */
static uint64_t hash_of(uint64_t addr) {
    return dm_mix64(addr);
}

static uint32_t number_of(const struct ix_cache *cache, uint32_t link) {
    return link & (uint32_t)((UINT64_C(1) << cache->number_bits) - 1);
}

static uint32_t link_to(const struct ix_cache *cache, uint32_t number, uint64_t hash) {
    return number | (uint32_t)((hash >> 32) << cache->number_bits);
}

/* The largest power of two that is at most `count`. */
static uint32_t power_within(uint32_t count) {
    return UINT32_C(1) << (31 - (unsigned)__builtin_clz(count));
}

/* With n buckets in use, those below n - 2^k have been split, where 2^k is power_within(n): one bit more of
 * the hash says which half. */
static uint32_t bucket_among(uint32_t count, uint64_t hash) {
    uint32_t power = power_within(count);
    uint32_t bucket = (uint32_t)hash & (power - 1);
    return bucket < count - power ? (uint32_t)hash & (2 * power - 1) : bucket;
}

static _Atomic uint32_t *bucket_at(const struct ix_cache *cache, uint32_t bucket) {
    return &cache->links[(size_t)bucket * cache->bucket_links];
}

static _Atomic uint32_t *bucket_of(const struct ix_cache *cache, uint64_t hash) {
    uint32_t count = atomic_load_explicit(&cache->bucket_count, memory_order_acquire);
    return bucket_at(cache, bucket_among(count, hash));
}

/* A sequentially consistent store waits for all before it; with one thread no order is needed. */
static void link_set(const struct ix_cache *cache, _Atomic uint32_t *where, uint32_t link) {
    if (cache->one_thread) {
        atomic_store_explicit(where, link, memory_order_relaxed);
    } else {
        atomic_store(where, link);
    }
}

/* Where in the slab's block the links begin: at a line. */
static uint64_t links_offset(const struct ix_cache *cache) {
    return ((uint64_t)cache->capacity * cache->slot_bytes + DM_LINE - 1) / DM_LINE * DM_LINE;
}

static uint64_t block_bytes(const struct ix_cache *cache) {
    return links_offset(cache) + (uint64_t)cache->capacity * sizeof(*cache->links);
}

int ix_cache_open(const struct ix_cache_config *config, struct ix_cache **out) {
    *out = NULL;
    uint64_t fixed = sizeof(struct ix_cache) + (uint64_t)config->threads * sizeof(struct cell);
    uint64_t each = slot_size(config->copy_bytes) + sizeof(uint32_t);
    if (config->bytes < fixed + each) {
        return 0;
    }
    uint64_t capacity = (config->bytes - fixed) / each;
    capacity = capacity > UINT32_MAX - 1 ? UINT32_MAX - 1 : capacity;
    struct ix_cache *cache = calloc(1, sizeof(*cache));
    if (!cache) {
        return DM_ERR_NO_MEMORY;
    }
    cache->copy_bytes = config->copy_bytes;
    cache->slot_bytes = slot_size(config->copy_bytes);
    cache->capacity = (uint32_t)capacity;
    cache->threads = config->threads;
    cache->number_bits = (uint8_t)(32 - (unsigned)__builtin_clz(cache->capacity));
    cache->bucket_links = (uint8_t)(cache->capacity < BUCKET_LINKS ? power_within(cache->capacity) : BUCKET_LINKS);
    cache->lru = config->lru;
    cache->one_thread = config->one_thread;
    cache->fresh = 1;
    atomic_init(&cache->bucket_count, 1);
    cache->fixed_bytes = fixed + capacity * sizeof(uint32_t);
    atomic_init(&cache->epoch, 1);
    atomic_flag_clear(&cache->guard);
    cache->cells = dm_aligned_new(config->threads, sizeof(struct cell));
    cache->slab = dm_large_alloc(block_bytes(cache));
    cache->links = cache->slab ? (void *)(cache->slab + links_offset(cache)) : NULL;
    if (!cache->cells || !cache->slab) {
        ix_cache_close(cache);
        return DM_ERR_NO_MEMORY;
    }
    *out = cache;
    return 0;
}

void ix_cache_close(struct ix_cache *cache) {
    if (cache) {
        dm_large_free(cache->slab, block_bytes(cache));
        free(cache->cells);
        free(cache);
    }
}

/* ---- readers -------------------------------------------------------------------------------------------------- */

void ix_cache_enter(struct ix_cache *cache, unsigned thread) {
    if (cache) {
        uint64_t now = atomic_load_explicit(&cache->epoch, memory_order_acquire);
        if (cache->one_thread) { /* as in link_set */
            atomic_store_explicit(&cache->cells[thread].epoch, now, memory_order_relaxed);
        } else {
            atomic_store(&cache->cells[thread].epoch, now);
        }
    }
}

void ix_cache_leave(struct ix_cache *cache, unsigned thread) {
    if (cache) {
        atomic_store_explicit(&cache->cells[thread].epoch, 0, memory_order_release);
    }
}

/* The slot that the link names if its copy is of addr, or NO_SLOT. */
static uint32_t number_if(const struct ix_cache *cache, uint32_t link, uint64_t addr, uint64_t hash) {
    uint32_t number = number_of(cache, link);
    if (number == NO_SLOT || link != link_to(cache, number, hash)) {
        return NO_SLOT;
    }
    const struct slot *slot = slot_at(cache, number);
    /* A copy is searched from its front on and is rarely in the processor's cache. */
    dm_prefetch_lines(slot, cache->slot_bytes < PREFETCH_BYTES ? cache->slot_bytes : PREFETCH_BYTES);
    return slot->addr == addr ? number : NO_SLOT;
}

/* The slot of the copy of addr, or NO_SLOT. */
static uint32_t number_find(const struct ix_cache *cache, uint64_t addr) {
    uint64_t hash = hash_of(addr);
    const _Atomic uint32_t *bucket = bucket_of(cache, hash), *last = bucket + cache->bucket_links - 1;
    for (; bucket < last; bucket++) {
        uint32_t number = number_if(cache, atomic_load(bucket), addr, hash);
        if (number != NO_SLOT) {
            return number;
        }
    }
    uint32_t link = atomic_load(last);
    while (number_of(cache, link) != NO_SLOT) {
        uint32_t number = number_if(cache, link, addr, hash);
        if (number != NO_SLOT) {
            return number;
        }
        link = atomic_load(&slot_at(cache, number_of(cache, link))->next);
    }
    return NO_SLOT;
}

const void *ix_cache_find(struct ix_cache *cache, dm_addr addr, uint32_t *stamp) {
    uint32_t number = cache ? number_find(cache, addr.bits) : NO_SLOT;
    if (number == NO_SLOT) {
        return NULL;
    }
    struct slot *slot = slot_at(cache, number);
    if (!atomic_load_explicit(&slot->recent, memory_order_relaxed)) {
        atomic_store_explicit(&slot->recent, 1, memory_order_relaxed);
    }
    *stamp = slot->stamp;
    return slot + 1;
}

/* Levels of a cache are charged by what is accessed between two accesses to the same line, if all copies of a level are
 * used alike: what the copies and buckets themselves take is too little, since a line stays in the processor's cache
 * only as long as what was accessed since fits beside it. */
static void charge_copy(const struct ix_cache *cache, struct dm_ctx *ctx, uint64_t bytes) {
    dm_charge_access(ctx, (cache->slot_bytes + PREFETCH_BYTES - 1) / PREFETCH_BYTES, bytes);
}

static unsigned level_known(unsigned level) {
    return level < IX_CACHE_LEVELS ? level : IX_CACHE_LEVELS - 1;
}

/* A copy of a level is found once in as many descents as the level has copies, and each of them passes a bucket and a
 * copy of every level below. */
static uint64_t reuse_bytes(const struct ix_cache *cache, unsigned level) {
    uint64_t copies = atomic_load_explicit(&cache->level_counts[level], memory_order_relaxed), accessed = copies;
    for (unsigned below = 0; below < level; below++) {
        uint64_t there = atomic_load_explicit(&cache->level_counts[below], memory_order_relaxed);
        accessed += there < copies ? there : copies;
    }
    uint64_t links = (uint64_t)cache->capacity * sizeof(*cache->links), lines = accessed * DM_LINE;
    return (links < lines ? links : lines) + accessed * cache->slot_bytes;
}

void ix_cache_charge(const struct ix_cache *cache, struct dm_ctx *ctx, unsigned level) {
    if (!cache) {
        return;
    }
    uint64_t bytes = reuse_bytes(cache, level_known(level));
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge_access(ctx, 1, bytes);
    charge_copy(cache, ctx, bytes);
}

void ix_cache_charge_list(const struct ix_cache *cache, struct dm_ctx *ctx, unsigned level, uint64_t nodes) {
    if (!cache) {
        return;
    }
    if (nodes == 0) {
        nodes = atomic_load_explicit(&cache->level_counts[level_known(level)], memory_order_relaxed);
    }
    uint32_t quarters = 0;
    unsigned list_level = 0;
    for (uint64_t higher = nodes; higher > 0; higher /= IX_LIST_BRANCHING) {
        quarters += IX_LIST_QUARTERS;
        dm_charge_access(ctx, quarters / IX_LIST_BRANCHING,
                         ix_list_reuse_bytes(higher, list_level++, cache->slot_bytes));
        dm_charge(ctx, DM_WORK_KEY_COMPARE, quarters / IX_LIST_BRANCHING);
        quarters %= IX_LIST_BRANCHING;
    }
    charge_copy(cache, ctx, ix_list_reuse_bytes(nodes, 0, cache->slot_bytes));
}

/* ---- writers, all with the guard held ------------------------------------------------------------------------- */

static void guard_lock(struct ix_cache *cache) {
    while (atomic_flag_test_and_set_explicit(&cache->guard, memory_order_acquire)) {
    }
}

static void guard_unlock(struct ix_cache *cache) {
    atomic_flag_clear_explicit(&cache->guard, memory_order_release);
}

static void list_append(struct ix_cache *cache, struct list *list, uint32_t number) {
    struct slot *slot = slot_at(cache, number);
    slot->older = list->newest;
    slot->newer = NO_SLOT;
    if (list->newest != NO_SLOT) {
        slot_at(cache, list->newest)->newer = number;
    } else {
        list->oldest = number;
    }
    list->newest = number;
}

static void list_remove(struct ix_cache *cache, struct list *list, uint32_t number) {
    struct slot *slot = slot_at(cache, number);
    if (slot->older != NO_SLOT) {
        slot_at(cache, slot->older)->newer = slot->newer;
    } else {
        list->oldest = slot->newer;
    }
    if (slot->newer != NO_SLOT) {
        slot_at(cache, slot->newer)->older = slot->older;
    } else {
        list->newest = slot->older;
    }
}

static void limbo_append(struct ix_cache *cache, uint32_t number) {
    struct list *limbo = &cache->limbo;
    slot_at(cache, number)->newer = NO_SLOT;
    if (limbo->newest != NO_SLOT) {
        slot_at(cache, limbo->newest)->newer = number;
    } else {
        limbo->oldest = number;
    }
    limbo->newest = number;
}

static struct list *list_of(struct ix_cache *cache, unsigned level) {
    return &cache->levels[cache->lru ? 0 : level];
}

/* Puts the link into the bucket: where none is, or else in front of the chain. */
static void link_add(struct ix_cache *cache, _Atomic uint32_t *bucket, uint32_t link) {
    _Atomic uint32_t *last = bucket + cache->bucket_links - 1;
    while (bucket < last && number_of(cache, atomic_load_explicit(bucket, memory_order_relaxed)) != NO_SLOT) {
        bucket++;
    }
    if (bucket == last) {
        atomic_store_explicit(&slot_at(cache, number_of(cache, link))->next,
                              atomic_load_explicit(last, memory_order_relaxed), memory_order_relaxed);
    }
    link_set(cache, bucket, link);
}

/* Takes out the link, which is there. A slot's own `next` stays, for readers that are at it. */
static void link_remove(struct ix_cache *cache, _Atomic uint32_t *bucket, uint32_t link) {
    _Atomic uint32_t *last = bucket + cache->bucket_links - 1;
    while (bucket < last && atomic_load_explicit(bucket, memory_order_relaxed) != link) {
        bucket++;
    }
    if (bucket < last) {
        link_set(cache, bucket, NO_SLOT);
        return;
    }
    while (atomic_load_explicit(last, memory_order_relaxed) != link) {
        last = &slot_at(cache, number_of(cache, atomic_load_explicit(last, memory_order_relaxed)))->next;
    }
    const struct slot *slot = slot_at(cache, number_of(cache, link));
    link_set(cache, last, atomic_load_explicit(&slot->next, memory_order_relaxed));
}

/* Takes a slot out of the table into limbo. */
static void slot_retire(struct ix_cache *cache, uint32_t number) {
    struct slot *slot = slot_at(cache, number);
    uint64_t hash = hash_of(slot->addr);
    link_remove(cache, bucket_of(cache, hash), link_to(cache, number, hash));
    list_remove(cache, list_of(cache, slot->level), number);
    slot->retired = atomic_fetch_add(&cache->epoch, 1);
    limbo_append(cache, number);
    atomic_fetch_sub_explicit(&cache->in_table, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->level_counts[slot->level], 1, memory_order_relaxed);
}

/* Moves slots that no client can be reading any more from limbo to the free slots. */
static void limbo_reclaim(struct ix_cache *cache) {
    if (cache->limbo.oldest == NO_SLOT) {
        return;
    }
    uint64_t reading = UINT64_MAX;
    for (unsigned i = 0; i < cache->threads; i++) {
        uint64_t epoch = atomic_load(&cache->cells[i].epoch);
        if (epoch != 0 && epoch < reading) {
            reading = epoch;
        }
    }
    while (cache->limbo.oldest != NO_SLOT && slot_at(cache, cache->limbo.oldest)->retired < reading) {
        uint32_t number = cache->limbo.oldest;
        cache->limbo.oldest = slot_at(cache, number)->newer;
        if (cache->limbo.oldest == NO_SLOT) {
            cache->limbo.newest = NO_SLOT;
        }
        slot_at(cache, number)->newer = cache->free;
        cache->free = number;
    }
}

/* The copy to be evicted for a new one of `level`: of the lowest list there is, but of none above the new one's. */
static uint32_t victim_find(struct ix_cache *cache, unsigned level) {
    for (unsigned l = 0; l <= level; l++) {
        struct list *list = &cache->levels[l];
        for (unsigned passed = 0; list->oldest != NO_SLOT; passed++) {
            uint32_t number = list->oldest;
            struct slot *slot = slot_at(cache, number);
            if (passed == SECOND_CHANCES || !atomic_load_explicit(&slot->recent, memory_order_relaxed)) {
                return number;
            }
            atomic_store_explicit(&slot->recent, 0, memory_order_relaxed);
            list_remove(cache, list, number);
            list_append(cache, list, number);
        }
    }
    return NO_SLOT;
}

static uint32_t slot_take(struct ix_cache *cache, unsigned level, bool *evicted) {
    limbo_reclaim(cache);
    if (cache->free == NO_SLOT && cache->fresh > cache->capacity) {
        uint32_t victim = victim_find(cache, level);
        if (victim != NO_SLOT) {
            slot_retire(cache, victim);
            *evicted = true;
            limbo_reclaim(cache);
        }
    }
    if (cache->free != NO_SLOT) {
        uint32_t number = cache->free;
        cache->free = slot_at(cache, number)->newer;
        return number;
    }
    if (cache->fresh > cache->capacity) {
        return NO_SLOT;
    }
    memset(slot_at(cache, cache->fresh), 0, sizeof(struct slot));
    return cache->fresh++;
}

/* True if with `count` buckets the link belongs to the last of them. */
static bool is_of_last(const struct ix_cache *cache, uint32_t link, uint32_t count) {
    return bucket_among(count, hash_of(slot_at(cache, number_of(cache, link))->addr)) == count - 1;
}

/* Uses one bucket more: the links of the next bucket to be split are divided between the two. */
static void bucket_split(struct ix_cache *cache) {
    uint32_t count = atomic_load_explicit(&cache->bucket_count, memory_order_relaxed);
    _Atomic uint32_t *old = bucket_at(cache, count - power_within(count)), *added = bucket_at(cache, count);
    _Atomic uint32_t *last = old + cache->bucket_links - 1;
    for (_Atomic uint32_t *from = old; from < last; from++) {
        uint32_t link = atomic_load_explicit(from, memory_order_relaxed);
        if (number_of(cache, link) != NO_SLOT && is_of_last(cache, link, count + 1)) {
            link_add(cache, added, link);
            link_set(cache, from, NO_SLOT);
        }
    }
    uint32_t link = atomic_load_explicit(last, memory_order_relaxed);
    link_set(cache, last, NO_SLOT);
    while (number_of(cache, link) != NO_SLOT) {
        uint32_t next = atomic_load_explicit(&slot_at(cache, number_of(cache, link))->next, memory_order_relaxed);
        link_add(cache, is_of_last(cache, link, count + 1) ? added : old, link);
        link = next;
    }
    atomic_store_explicit(&cache->bucket_count, count + 1, memory_order_release);
}

static void buckets_grow(struct ix_cache *cache) {
    uint64_t links = ((uint64_t)atomic_load_explicit(&cache->in_table, memory_order_relaxed) + 1) * LINKS_A_COPY;
    uint64_t wanted = (links < cache->capacity ? links : cache->capacity) / cache->bucket_links;
    while (atomic_load_explicit(&cache->bucket_count, memory_order_relaxed) < wanted) {
        bucket_split(cache);
    }
}

bool ix_cache_insert(struct ix_cache *cache, dm_addr addr, unsigned level, const void *node) {
    if (!cache) {
        return false;
    }
    level = level_known(level);
    bool evicted = false;
    guard_lock(cache);
    uint32_t old = number_find(cache, addr.bits);
    if (old != NO_SLOT) {
        slot_retire(cache, old);
    }
    uint32_t number = slot_take(cache, level, &evicted);
    if (number != NO_SLOT) {
        buckets_grow(cache);
        struct slot *slot = slot_at(cache, number);
        uint64_t hash = hash_of(addr.bits);
        slot->addr = addr.bits;
        slot->level = (uint8_t)level;
        slot->stamp = slot->stamp == UINT32_MAX ? 1 : slot->stamp + 1;
        atomic_store_explicit(&slot->recent, 0, memory_order_relaxed);
        memcpy(slot + 1, node, cache->copy_bytes);
        link_add(cache, bucket_of(cache, hash), link_to(cache, number, hash));
        list_append(cache, list_of(cache, level), number);
        atomic_fetch_add_explicit(&cache->in_table, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&cache->level_counts[level], 1, memory_order_relaxed);
    }
    guard_unlock(cache);
    return evicted;
}

void ix_cache_drop(struct ix_cache *cache, dm_addr addr, uint32_t stamp) {
    if (!cache) {
        return;
    }
    guard_lock(cache);
    uint32_t number = number_find(cache, addr.bits);
    if (number != NO_SLOT && slot_at(cache, number)->stamp == stamp) {
        slot_retire(cache, number);
    }
    guard_unlock(cache);
}

uint64_t ix_cache_used(const struct ix_cache *cache) {
    if (!cache) {
        return 0;
    }
    uint64_t copies = atomic_load_explicit(&cache->in_table, memory_order_relaxed);
    return cache->fixed_bytes + copies * cache->slot_bytes;
}

void ix_cache_each(const struct ix_cache *cache, void (*visit)(void *arg, const void *node), void *arg) {
    for (unsigned level = 0; cache && level < IX_CACHE_LEVELS; level++) {
        for (uint32_t number = cache->levels[level].oldest; number != NO_SLOT;) {
            const struct slot *slot = slot_at(cache, number);
            visit(arg, slot + 1);
            number = slot->newer;
        }
    }
}

uint32_t ix_cache_capacity(const struct ix_cache *cache) {
    return cache ? cache->capacity : 0;
}
