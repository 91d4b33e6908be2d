/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing, at most 70 % full.
 */
#include "workloads/key_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/prng.h"

enum { CAPACITY_MIN = 1 << 10 };

void wl_key_table_fini(struct wl_key_table *table) {
    free(table->keys);
    free(table->states);
    *table = (struct wl_key_table){0};
}

/* The slot that holds the key, or the empty slot in which to insert it. */
static uint64_t slot_find(const struct wl_key_table *table, uint64_t key) {
    uint64_t slot = dm_mix64(key) & (table->capacity - 1);
    while (table->states[slot] != 0 && table->keys[slot] != key) {
        slot = (slot + 1) & (table->capacity - 1);
    }
    return slot;
}

static bool table_grow(struct wl_key_table *table) {
    struct wl_key_table old = *table;
    uint64_t capacity = old.capacity > 0 ? 2 * old.capacity : CAPACITY_MIN;
    uint64_t *keys = malloc(capacity * sizeof keys[0]);
    uint8_t *states = calloc(capacity, sizeof states[0]);
    if (keys == NULL || states == NULL) {
        free(keys);
        free(states);
        return false;
    }
    *table = (struct wl_key_table){keys, states, capacity, old.count};
    for (uint64_t i = 0; i < old.capacity; i++) {
        if (old.states[i] != 0) {
            uint64_t slot = slot_find(table, old.keys[i]);
            keys[slot] = old.keys[i];
            states[slot] = old.states[i];
        }
    }
    free(old.keys);
    free(old.states);
    return true;
}

uint8_t *wl_key_table_put(struct wl_key_table *table, uint64_t key, uint8_t fresh) {
    if (table->count * 10 >= table->capacity * 7 && !table_grow(table)) {
        return NULL;
    }
    uint64_t slot = slot_find(table, key);
    if (table->states[slot] == 0) {
        table->keys[slot] = key;
        table->states[slot] = fresh;
        table->count++;
    }
    return &table->states[slot];
}

uint8_t *wl_key_table_get(const struct wl_key_table *table, uint64_t key) {
    if (table->capacity == 0) {
        return NULL;
    }
    uint64_t slot = slot_find(table, key);
    return table->states[slot] != 0 ? &table->states[slot] : NULL;
}
