/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps key numbers to keys, and makes the array of the keys to load.
 */
#include "workloads/keyset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/large.h"
#include "workloads/sort.h"

static const uint64_t RESERVE_MIN = UINT64_C(1) << 40;

struct wl_permutation wl_permutation_make(uint64_t count, uint64_t seed) {
    struct dm_prng prng = dm_prng_stream(seed, "permutation", 0);
    unsigned bits = 1;
    while (bits < 63 && UINT64_C(1) << bits < count) {
        bits++;
    }
    struct wl_permutation permutation = {
        .count = count, .mask = (UINT64_C(1) << bits) - 1, .shift = bits / 2 + (bits == 1 ? 1 : 0)};
    for (int round = 0; round < 3; round++) {
        permutation.add[round] = dm_prng_u64(&prng);
        permutation.multiply[round] = dm_prng_u64(&prng) | 1;
    }
    return permutation;
}

/* Free keys between the key at `position` and the next one; 0 after the last. */
static uint64_t gap_keys(const struct wl_keymap *map, uint64_t position) {
    return position + 1 < map->count ? map->sorted[position + 1] - map->sorted[position] - 1 : 0;
}

static void reserve_find(struct wl_keymap *map) {
    if (map->count == 0) {
        map->reserve_keys = WL_KEY_MAX;
        return;
    }
    uint64_t last = map->sorted[map->count - 1];
    map->reserve = last + 1;
    map->reserve_after = map->count - 1;
    uint64_t free_keys = WL_KEY_MAX - last;
    for (uint64_t i = 0; free_keys < RESERVE_MIN && i + 1 < map->count; i++) {
        if (gap_keys(map, i) > free_keys) {
            free_keys = gap_keys(map, i);
            map->reserve = map->sorted[i] + 1;
            map->reserve_after = i;
        }
    }
    map->reserve_keys = free_keys;
}

uint64_t wl_keymap_free_keys(const struct wl_keymap *map) {
    return map->kind == WL_KEYMAP_SET ? map->reserve_keys : WL_KEY_MAX - map->fresh_start;
}

static uint64_t fresh_key(const struct wl_keymap *map, uint64_t j) {
    uint64_t round = j / map->count;
    uint64_t position = j % map->count;
    position = map->shuffled ? wl_permute(&map->permutation, position) : position;
    uint64_t gap = position == map->reserve_after ? 0 : gap_keys(map, position);
    if (round >= gap) {
        return map->reserve + j;
    }
    return map->sorted[position] + 1 + (gap / 2 + round) % gap;
}

uint64_t wl_keymap_set_key(const struct wl_keymap *map, uint64_t number) {
    if (map->kind == WL_KEYMAP_FOLDED) {
        return wl_mod(&map->fold, wl_fnvhash64(number));
    }
    if (map->kind == WL_KEYMAP_GROWN) {
        return number < map->permutation.count ? wl_permute(&map->permutation, number) : number;
    }
    if (number >= map->fresh_start) {
        return map->kind == WL_KEYMAP_DENSE ? number : fresh_key(map, number - map->fresh_start);
    }
    uint64_t position = map->shuffled ? wl_permute(&map->permutation, number) : number;
    return map->kind == WL_KEYMAP_DENSE ? position : map->sorted[position];
}

static enum wl_keymap_kind kind_of(const char *key_set) {
    return strcmp(key_set, "dense") == 0    ? WL_KEYMAP_DENSE
           : strcmp(key_set, "grown") == 0  ? WL_KEYMAP_GROWN
           : strcmp(key_set, "folded") == 0 ? WL_KEYMAP_FOLDED
                                            : WL_KEYMAP_SET;
}

int wl_keymap_open(struct wl_keymap *map, const char *key_set, uint64_t keys, uint64_t inserts, bool ordered,
                   uint64_t seed, struct dm_err *err) {
    *map =
        (struct wl_keymap){.kind = ordered ? WL_KEYMAP_ORDERED : WL_KEYMAP_HASHED, .count = keys, .shuffled = !ordered};
    if (key_set[0] == '\0') {
        map->fresh_start = map->load_numbers = keys;
        return 0;
    }
    map->kind = kind_of(key_set);
    if (wl_keyset_is_file(key_set)) {
        DM_TRY(wl_keyset_file_open(map, key_set, keys, err));
    } else if (map->kind == WL_KEYMAP_SET) {
        DM_TRY(wl_keyset_generate(key_set, keys, seed, &map->owned, err));
        map->sorted = map->owned;
    }
    map->fresh_start = map->load_numbers = map->count;
    map->fold = wl_modulus_make(map->count > 0 ? map->count : 1); /* the caller refuses a set without keys */
    map->permutation = wl_permutation_make(map->count + (map->kind == WL_KEYMAP_GROWN ? inserts : 0), seed);
    if (map->kind == WL_KEYMAP_SET) {
        reserve_find(map);
    }
    return 0;
}

void wl_keymap_load_first(struct wl_keymap *map, uint64_t numbers) {
    map->load_numbers = numbers;
}

void wl_keymap_close(struct wl_keymap *map) {
    wl_keymap_load_release(map);
    free(map->owned);
    if (map->mapped != NULL) {
        munmap(map->mapped, map->mapped_bytes);
    }
    *map = (struct wl_keymap){0};
}

/* Whether the loaded keys are those of the set, so that they need no array of their own. */
static bool loads_whole_set(const struct wl_keymap *map) {
    return map->kind == WL_KEYMAP_SET && map->load_numbers == map->count;
}

/* Whether ascending key numbers have ascending keys. */
static bool is_ascending(const struct wl_keymap *map) {
    return map->kind == WL_KEYMAP_ORDERED ||
           (!map->shuffled && (map->kind == WL_KEYMAP_DENSE || map->kind == WL_KEYMAP_SET));
}

static void load_make(struct wl_keymap *map) {
    bool is_whole_range = map->kind == WL_KEYMAP_DENSE && map->load_numbers == map->count;
    map->load_keys = map->load_numbers;
    for (uint64_t i = 0; i < map->load_numbers; i++) {
        map->load[i] = is_whole_range ? i : wl_keymap_key(map, map->first + i);
    }
    if (is_whole_range || is_ascending(map)) {
        return;
    }
    /* Two key numbers may have the same hash; YCSB's second insert then finds the key present. */
    wl_sort_u64(map->load, map->load_numbers);
    map->load_keys = wl_unique_u64(map->load, map->load_numbers);
}

const uint64_t *wl_keymap_load(struct wl_keymap *map, uint64_t *count) {
    *count = map->load_numbers;
    if (loads_whole_set(map)) {
        return map->sorted;
    }
    if (map->load == NULL && map->load_numbers > 0) {
        bool is_possible = map->load_numbers <= SIZE_MAX / sizeof map->load[0];
        map->load_bytes = is_possible ? map->load_numbers * sizeof map->load[0] : 0;
        map->load = is_possible ? dm_large_alloc(map->load_bytes) : NULL;
        if (map->load == NULL) {
            return NULL;
        }
        load_make(map);
    }
    *count = map->load_keys;
    return map->load;
}

/* Removes from `keys`, ascending, those that are in `others`, ascending; returns how many are left. */
static uint64_t remove_all_of(uint64_t *keys, uint64_t count, const uint64_t *others, uint64_t other_count) {
    uint64_t kept = 0, at = 0;
    for (uint64_t i = 0; i < count; i++) {
        while (at < other_count && others[at] < keys[i]) {
            at++;
        }
        if (at == other_count || others[at] != keys[i]) {
            keys[kept++] = keys[i];
        }
    }
    return kept;
}

int wl_keymap_to_come(struct wl_keymap *map, bool chosen, uint64_t inserts, const uint64_t **keys, uint64_t *count) {
    uint64_t loaded_count, free_keys = wl_keymap_free_keys(map);
    const uint64_t *loaded = wl_keymap_load(map, &loaded_count);
    uint64_t first = chosen ? map->load_numbers : map->count;
    uint64_t fresh = inserts < free_keys ? inserts : free_keys;
    uint64_t most = map->count - first + fresh;
    *keys = NULL;
    *count = 0;
    free(map->come);
    map->come = most <= SIZE_MAX / sizeof map->come[0] ? malloc((most + 1) * sizeof map->come[0]) : NULL;
    if (map->come == NULL || (loaded == NULL && loaded_count > 0)) {
        return DM_ERR_NO_MEMORY;
    }
    uint64_t n = 0;
    for (uint64_t number = first; number < map->count; number++) {
        map->come[n++] = wl_keymap_key(map, map->first + number);
    }
    for (uint64_t i = 0; i < fresh; i++) {
        map->come[n++] = wl_keymap_key(map, map->fresh_start + i);
    }
    wl_sort_u64(map->come, n);
    n = remove_all_of(map->come, wl_unique_u64(map->come, n), loaded, loaded_count);
    *keys = n > 0 ? map->come : NULL;
    *count = n;
    return 0;
}

void wl_keymap_load_release(struct wl_keymap *map) {
    dm_large_free(map->load, map->load_bytes);
    free(map->come);
    map->load = NULL;
    map->come = NULL;
}
