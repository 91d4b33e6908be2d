/* SPDX-License-Identifier: Apache-2.0
 *
 * From key numbers, which generators choose, to keys, which indexes hold. Key numbers below `loaded_end` are loaded
 * before the run, those from `fresh_start` on are inserted by it.
 *
 *   hashed    key = fnvhash64(number): YCSB's default, keys spread over [0, 2^63)
 *   ordered   key = number
 *   a set     number i is the i-th key of the set, in a seeded shuffled order (insert order hashed) or ascending
 *             (ordered). An inserted number takes a free key between two neighbours of the set: the j-th inserted
 *             goes into the gap behind the j-th key in the same order, in its middle, the second of the same gap next
 *             to it, and so on; where the gap is full it takes the next key of a reserve, which is what lies above the
 *             greatest key, or the widest gap when there are not 2^40 keys above. So no key is ever given twice.
 *   dense     the set 0 .. count-1; inserted keys follow it
 *   grown     loaded and inserted keys together are the set 0 .. count-1, in a seeded shuffled order: the run inserts
 *             everywhere between the loaded ones. What is inserted beyond the expected count follows it
 */
#ifndef DM_WORKLOADS_KEYSET_H
#define DM_WORKLOADS_KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "workloads/generators.h"

/* The greatest key that an index takes. */
#define WL_KEY_MAX (UINT64_MAX - 1)

/* A seeded one-to-one map of [0, count): steps that are one-to-one on the next power of two, walked until the result
 * is below count. */
struct wl_permutation {
    uint64_t count, mask;
    unsigned shift;
    uint64_t add[3], multiply[3];
};
struct wl_permutation wl_permutation_make(uint64_t count, uint64_t seed);
static inline uint64_t wl_permute(const struct wl_permutation *permutation, uint64_t i) {
    do {
        for (int round = 0; round < 3; round++) {
            i = (i * permutation->multiply[round] + permutation->add[round]) & permutation->mask;
            i ^= i >> permutation->shift;
        }
    } while (i >= permutation->count);
    return i;
}

enum wl_keymap_kind { WL_KEYMAP_HASHED, WL_KEYMAP_ORDERED, WL_KEYMAP_DENSE, WL_KEYMAP_GROWN, WL_KEYMAP_SET };

struct wl_keymap {
    enum wl_keymap_kind kind;
    bool shuffled;
    uint64_t first, loaded; /* key numbers first .. first + loaded - 1 are loaded */
    uint64_t fresh_start;   /* the first key number that the run inserts */
    struct wl_permutation permutation;
    const uint64_t *sorted; /* WL_KEYMAP_SET: `loaded` keys */
    uint64_t *owned;        /* what `sorted` points to, unless it is mapped */
    void *mapped;           /* a file, or NULL */
    size_t mapped_bytes;
    uint64_t reserve, reserve_after; /* the first key of the reserve and the position of the key below it */
    uint64_t reserve_room;           /* keys of the reserve */
    uint64_t *load;                  /* the array of wl_keymap_load, or NULL */
};

/* `key_set` as in struct wl_config; `keys` 0 only with a file: all its keys; `inserts` are expected of the run. On
 * failure nothing is left to free. */
int wl_keymap_open(struct wl_keymap *map, const char *key_set, uint64_t keys, uint64_t inserts, bool ordered,
                   uint64_t seed, struct dm_err *err);
void wl_keymap_close(struct wl_keymap *map);

/* The loaded keys, ascending and distinct, made at the first call; NULL when out of memory (or none). */
const uint64_t *wl_keymap_load(struct wl_keymap *map, uint64_t *count);
void wl_keymap_load_release(struct wl_keymap *map);

/* Inserts for which there are surely free keys. */
uint64_t wl_keymap_room(const struct wl_keymap *map);

/* The key of a set for a key number; numbers of inserts stay below fresh_start + wl_keymap_room. */
uint64_t wl_keymap_set_key(const struct wl_keymap *map, uint64_t number);

static inline uint64_t wl_keymap_key(const struct wl_keymap *map, uint64_t number) {
    if (map->kind == WL_KEYMAP_HASHED) {
        return wl_fnvhash64(number);
    }
    return map->kind == WL_KEYMAP_ORDERED ? number : wl_keymap_set_key(map, number);
}

/* Is the key set read from a file (sosd:FILE or raw:FILE)? */
bool wl_keyset_is_file(const char *key_set);

/* Maps and checks a sorted key file; keeps `keys` of its distinct keys (0: all), evenly spaced by rank. Fills in
 * sorted, owned, mapped, loaded. */
int wl_keyset_file_open(struct wl_keymap *map, const char *key_set, uint64_t keys, struct dm_err *err);

/* Makes `count` distinct keys of a synthetic set, ascending. The caller frees. */
int wl_keyset_make(const char *key_set, uint64_t count, uint64_t seed, uint64_t **keys, struct dm_err *err);

#endif
