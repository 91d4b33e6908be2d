/* SPDX-License-Identifier: Apache-2.0
 *
 * The hotspot buffer; see hotspot.h.
 */
#include "hotspot.h"

#include <stdatomic.h>

#include "common/compiler.h"
#include "common/large.h"
#include "common/prng.h"

enum { WAYS = 8 };

struct spot {
    _Atomic uint64_t leaf; /* 0: free */
    _Atomic uint64_t what; /* counter 32 | fingerprint 16 | position 16 */
};

struct chime_hotspot {
    uint64_t buckets;
    struct spot *spots; /* within the same block, from the beginning of a line on */
};

static uint64_t pack(uint32_t counter, unsigned print, unsigned position) {
    return (uint64_t)counter << 32 | (uint64_t)print << 16 | position;
}
static unsigned print_of(uint64_t key) {
    return (unsigned)dm_mix64(key) & 0xffff; /* the home comes from the upper bits */
}

int chime_hotspot_open(uint64_t bytes, struct chime_hotspot **out) {
    *out = NULL;
    uint64_t each = WAYS * sizeof(struct spot), fixed = sizeof(struct chime_hotspot) + DM_LINE;
    if (bytes < fixed + each) {
        return 0;
    }
    uint64_t buckets = (bytes - fixed) / each;
    struct chime_hotspot *hotspot = dm_large_alloc(fixed + buckets * each);
    if (!hotspot) {
        return DM_ERR_NO_MEMORY;
    }
    hotspot->buckets = buckets;
    uintptr_t after = (uintptr_t)(hotspot + 1);
    hotspot->spots = (struct spot *)((char *)(hotspot + 1) + (DM_LINE - after % DM_LINE) % DM_LINE);
    *out = hotspot;
    return 0;
}

void chime_hotspot_close(struct chime_hotspot *hotspot) {
    dm_large_free(hotspot, chime_hotspot_bytes(hotspot));
}

static struct spot *bucket_of(struct chime_hotspot *hotspot, dm_addr leaf, unsigned home) {
    uint64_t hash = dm_mix64(leaf.bits ^ (uint64_t)(home + 1) << 40);
    return hotspot->spots + (uint64_t)((unsigned __int128)hash * hotspot->buckets >> 64) * WAYS;
}

bool chime_hotspot_find(struct chime_hotspot *hotspot, dm_addr leaf, unsigned home, uint64_t key, unsigned *position) {
    if (!hotspot) {
        return false;
    }
    struct spot *bucket = bucket_of(hotspot, leaf, home);
    uint32_t hottest = 0;
    unsigned print = print_of(key);
    dm_prefetch_read(&bucket[WAYS / 2]); /* the two lines of a bucket come together */
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t what = atomic_load_explicit(&bucket[i].what, memory_order_relaxed);
        if (atomic_load_explicit(&bucket[i].leaf, memory_order_relaxed) == leaf.bits &&
            (what >> 16 & 0xffff) == print && what >> 32 > hottest) {
            hottest = (uint32_t)(what >> 32);
            *position = (unsigned)(what & 0xffff);
        }
    }
    return hottest > 0;
}

bool chime_hotspot_note(struct chime_hotspot *hotspot, dm_addr leaf, unsigned home, uint64_t key, unsigned position) {
    if (!hotspot) {
        return false;
    }
    struct spot *bucket = bucket_of(hotspot, leaf, home);
    struct spot *coldest = bucket;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t here = atomic_load_explicit(&bucket[i].leaf, memory_order_relaxed);
        uint64_t what = atomic_load_explicit(&bucket[i].what, memory_order_relaxed);
        if (here == leaf.bits && (what & 0xffff) == position) {
            bool same = (what >> 16 & 0xffff) == print_of(key);
            uint32_t counter = same ? (uint32_t)(what >> 32) : 0;
            counter += counter < UINT32_MAX;
            atomic_store_explicit(&bucket[i].what, pack(counter, print_of(key), position), memory_order_relaxed);
            return false;
        }
        uint64_t heat = here == 0 ? 0 : what >> 32;
        if (heat < least) {
            least = heat;
            coldest = &bucket[i];
        }
    }
    atomic_store_explicit(&coldest->leaf, leaf.bits, memory_order_relaxed);
    atomic_store_explicit(&coldest->what, pack(1, print_of(key), position), memory_order_relaxed);
    return least > 0;
}

uint64_t chime_hotspot_bytes(const struct chime_hotspot *hotspot) {
    return hotspot ? sizeof(*hotspot) + DM_LINE + hotspot->buckets * WAYS * sizeof(struct spot) : 0;
}
