/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table from 64-bit keys to one byte of state, for the keys of a trace. It doubles as it fills; keys are never
 * removed.
 */
#ifndef DM_WORKLOADS_KEY_TABLE_H
#define DM_WORKLOADS_KEY_TABLE_H

#include <stdint.h>

struct wl_key_table {
    uint64_t *keys;
    uint8_t *states; /* 0 in an empty slot */
    uint64_t capacity, count;
};

/* Frees what the table holds. A new table is {0}. */
void wl_key_table_fini(struct wl_key_table *table);

/* Returns the state of `key`, which is inserted with state `fresh` (not 0) if it is new; NULL when out of memory. The
 * pointer is valid until the next call. */
uint8_t *wl_key_table_put(struct wl_key_table *table, uint64_t key, uint8_t fresh);

/* Returns the state of `key`, or NULL if it is not in the table. */
uint8_t *wl_key_table_get(const struct wl_key_table *table, uint64_t key);

#endif
