/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table from 64-bit keys to a byte of state, for the keys of a trace. Grows by doubling while it is filled; keys
 * are never removed.
 */
#ifndef DM_WORKLOADS_KEY_TABLE_H
#define DM_WORKLOADS_KEY_TABLE_H

#include <stdint.h>

struct wl_key_table {
    uint64_t *keys;
    uint8_t *states; /* 0: the slot is empty */
    uint64_t capacity, count;
};

/* The table starts as {0}. */
void wl_key_table_fini(struct wl_key_table *table);

/* The state of `key`, put in with state `fresh` (not 0) when it is new; NULL when out of memory. Valid until the next
 * call. */
uint8_t *wl_key_table_put(struct wl_key_table *table, uint64_t key, uint8_t fresh);

/* The state of `key`, or NULL. */
uint8_t *wl_key_table_get(const struct wl_key_table *table, uint64_t key);

#endif
