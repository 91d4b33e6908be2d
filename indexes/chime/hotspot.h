/* SPDX-License-Identifier: Apache-2.0
 *
 * The hotspot buffer (CHIME, section 4.3): a compute node remembers where in their leaves much-read keys lie, so that
 * one entry can be read in place of a neighbourhood. A hint only: the reader compares the key.
 *
 * 16 bytes an entry as in the paper: leaf address 8, position 2, fingerprint 2, counter 4, in buckets of eight; the
 * least counter is replaced. Threads share it without a lock: an entry mixed from two writes is only a wrong hint.
 */
#ifndef DM_INDEXES_CHIME_HOTSPOT_H
#define DM_INDEXES_CHIME_HOTSPOT_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

struct chime_hotspot;

/* Takes up to `bytes`, all counted; too few for one bucket make no buffer, which is NULL and legal everywhere here. 0
 * or DM_ERR_NO_MEMORY. */
int chime_hotspot_open(uint64_t bytes, struct chime_hotspot **hotspot);
void chime_hotspot_close(struct chime_hotspot *hotspot);

/* The hottest position that is remembered for a key with this home in this leaf. */
bool chime_hotspot_find(struct chime_hotspot *hotspot, dm_addr leaf, unsigned home, uint64_t key, unsigned *position);

/* The key was found at this position. Returns true if another entry had to go. */
bool chime_hotspot_note(struct chime_hotspot *hotspot, dm_addr leaf, unsigned home, uint64_t key, unsigned position);

uint64_t chime_hotspot_bytes(const struct chime_hotspot *hotspot);

#endif
