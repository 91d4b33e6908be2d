/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps key numbers, which generators choose, to keys, which indexes store. The first key numbers are loaded before the
 * run; those from `fresh_start` on are inserted by it.
 *
 *   hashed    key = fnvhash64(number), YCSB's default: keys are spread over [0, 2^63)
 *   ordered   key = number
 *   a set     number i is the i-th key of the set, in a seeded shuffled order (insert order hashed) or ascending
 *             (ordered). An inserted number gets a free key between two neighbours of the set. The j-th inserted
 *             number gets the middle key of the gap after the j-th key in the same order, the second one in the same
 *             gap the key next to it, and so on. Once the gap is full, numbers get the keys of a reserve: the keys
 *             above the greatest key of the set or, if there are fewer than 2^40 of those, the widest gap. So no key
 *             is given twice.
 *   dense     the set 0 .. count-1; inserted keys follow it
 *   grown     loaded and inserted keys together are the set 0 .. count-1, in a seeded shuffled order, so that the run
 *             inserts everywhere between the loaded keys. It has as many as the run is likely to insert at most; more
 *             would follow the set
 *   folded    key = fnvhash64(number) modulo count, as Sherman's and CHIME's generators have it: several numbers may
 *             share a key, so that of count keys a share of about 1 / e has no number
 *
 * All numbers below `count` are loaded unless wl_keymap_load_first says otherwise.
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

/* A seeded permutation of [0, count). Its steps permute [0, next power of two) and are repeated until the result is
 * below count. */
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

enum wl_keymap_kind {
    WL_KEYMAP_HASHED,
    WL_KEYMAP_ORDERED,
    WL_KEYMAP_DENSE,
    WL_KEYMAP_GROWN,
    WL_KEYMAP_FOLDED,
    WL_KEYMAP_SET,
};

struct wl_keymap {
    enum wl_keymap_kind kind;
    bool shuffled;
    uint64_t first, count; /* key numbers first .. first + count - 1 can be chosen from the start */
    uint64_t load_numbers; /* the first so many of them are loaded */
    uint64_t load_bytes;   /* that `load` takes */
    uint64_t fresh_start;  /* the first key number that the run inserts */
    struct wl_modulus fold;
    struct wl_permutation permutation;
    const uint64_t *sorted; /* WL_KEYMAP_SET: `count` keys */
    uint64_t *owned;        /* the memory that `sorted` points to, unless that is the mapped file */
    void *mapped;           /* the mapped file, or NULL */
    size_t mapped_bytes;
    uint64_t reserve, reserve_after; /* the first key of the reserve and the position of the key below it */
    uint64_t reserve_keys;           /* number of keys in the reserve */
    uint64_t *load;                  /* the array of wl_keymap_load, or NULL */
    uint64_t load_keys;              /* in that array */
    uint64_t *come;                  /* the array of wl_keymap_to_come, or NULL */
};

/* `key_set` as in struct wl_config. `keys` may be 0 with a file only and then stands for all its keys. `inserts` is the
 * number that the run is expected to insert. After a failure there is nothing to free. */
int wl_keymap_open(struct wl_keymap *map, const char *key_set, uint64_t keys, uint64_t inserts, bool ordered,
                   uint64_t seed, struct dm_err *err);
void wl_keymap_close(struct wl_keymap *map);

/* Loads only the first `numbers` key numbers, 1 to map->count. Must be called before wl_keymap_load. */
void wl_keymap_load_first(struct wl_keymap *map, uint64_t numbers);

/* The loaded keys, ascending and distinct. The first call makes the array. NULL without keys, and NULL with a count
 * above 0 when there is no memory for them. */
const uint64_t *wl_keymap_load(struct wl_keymap *map, uint64_t *count);
void wl_keymap_load_release(struct wl_keymap *map);

/* The keys of the numbers that can be chosen but are not loaded, unless `chosen` is false, and of the first `inserts`
 * fresh ones; ascending, distinct, and without the loaded keys. Valid until wl_keymap_load_release. NULL if there are
 * none. DM_ERR_NO_MEMORY. */
int wl_keymap_to_come(struct wl_keymap *map, bool chosen, uint64_t inserts, const uint64_t **keys, uint64_t *count);

/* The number of inserts for which a free key is guaranteed. */
uint64_t wl_keymap_free_keys(const struct wl_keymap *map);

/* The key of a key set for a key number. The number must be below fresh_start + wl_keymap_free_keys. */
uint64_t wl_keymap_set_key(const struct wl_keymap *map, uint64_t number);

static inline uint64_t wl_keymap_key(const struct wl_keymap *map, uint64_t number) {
    if (map->kind == WL_KEYMAP_HASHED) {
        return wl_fnvhash64(number);
    }
    return map->kind == WL_KEYMAP_ORDERED ? number : wl_keymap_set_key(map, number);
}

/* Whether the key set is read from a file (sosd:FILE or raw:FILE). */
bool wl_keyset_is_file(const char *key_set);

/* Maps and checks a sorted key file, and selects `keys` of its distinct keys (0: all), evenly spaced by rank. Sets
 * sorted, owned, mapped and count. */
int wl_keyset_file_open(struct wl_keymap *map, const char *key_set, uint64_t keys, struct dm_err *err);

/* Generates `count` distinct keys of a synthetic set, ascending. The caller frees them. */
int wl_keyset_generate(const char *key_set, uint64_t count, uint64_t seed, uint64_t **keys, struct dm_err *err);

#endif
