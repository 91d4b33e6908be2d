/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's event queue: a timing wheel. Time is cut into slots, and slots into groups. The wheel holds the
 * events of the current group and the next one by slot, those of later groups by group. The events of a group are put
 * into their slots when the group before it begins, and those of a slot are sorted when it becomes the current one, so
 * that adding and removing an event take constant time however many are pending. Slots become wider or narrower until a
 * few events are in each, and there are more or fewer of them, so that few events stay in few cache lines. Events leave
 * in the order of their times, and those of one instant in the order in which they were added.
 */
#ifndef DM_COMMON_WHEEL_H
#define DM_COMMON_WHEEL_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"

enum {
    DM_WHEEL_SLOTS_LEAST = 128,
    DM_WHEEL_SLOTS = 1024, /* most */
    DM_WHEEL_GROUPS = 64,
    DM_WHEEL_CHUNK = 7,
    DM_WHEEL_WIDTH_LEAST = 8, /* slots have 2^8 to 2^16 ps */
    DM_WHEEL_WIDTH_BEGIN = 13,
    DM_WHEEL_WIDTH_MOST = 16,
    DM_WHEEL_TAG_BITS = 24,
    DM_WHEEL_TIME_AT = 2 * DM_WHEEL_TAG_BITS,
};

struct dm_event {
    uint64_t time;
    uint32_t tag; /* less than 2^DM_WHEEL_TAG_BITS */
};

static_assert(DM_WHEEL_TIME_AT + DM_WHEEL_WIDTH_MOST == 64, "a time within a slot, an order and a tag are 64 bits");

/* A cache line of events of one slot. An event is one number: the low 16 bits of its time, the number of events that
 * were added to the slot before it, and its tag. So the events of a slot are sorted as numbers. */
struct dm_wheel_chunk {
    uint32_t count; /* in a slot's own chunk: events of the slot, which may be more than the chunk holds */
    uint32_t next;  /* the slot's next chunk, or the next free one; 0: none */
    uint64_t events[DM_WHEEL_CHUNK];
};

/* Events of all later groups whose numbers are the same modulo DM_WHEEL_GROUPS, in the order in which they were added.
 */
struct dm_wheel_group {
    struct dm_event *events;
    uint64_t count, capacity;
};

/* All zero is not a wheel: dm_wheel_init. */
struct dm_wheel {
    struct dm_wheel_chunk *chunks; /* the first DM_WHEEL_SLOTS are the slots' own, the others overflow */
    uint64_t *current;             /* sorted events of the current slot, those before `at` have left */
    uint32_t at, current_count;
    uint32_t width;              /* slots have 2^width ps */
    uint32_t mask;               /* number of slots - 1 */
    uint32_t group_bits;         /* a group has 2^group_bits slots, half of them */
    bool has_failed;             /* an event was lost because memory was out */
    uint64_t slot;               /* number of the current slot since time 0 */
    uint64_t reach;              /* so many slots after it have events by slot */
    uint64_t base;               /* time of the current slot without its low 16 bits */
    uint64_t count, later_count; /* events in other slots and groups; in groups */
    uint32_t current_added;      /* events ever added to the current slot */
    uint32_t current_capacity;
    uint32_t turns, turned; /* slots since the width was last judged, and their events */
    uint32_t chunk_count, chunk_capacity, free_chunk;
    unsigned char used[DM_WHEEL_SLOTS]; /* 1: the slot has events */
    uint32_t tails[DM_WHEEL_SLOTS];     /* the last chunk of a slot that has more than its own */
    struct dm_wheel_group later[DM_WHEEL_GROUPS];
};

/* 0 or DM_ERR_NO_MEMORY. dm_wheel_fini accepts a wheel that is all zero. */
int dm_wheel_init(struct dm_wheel *wheel);
void dm_wheel_fini(struct dm_wheel *wheel);

/* For dm_wheel_add: an event of the current slot or of a later group, or one whose slot's chunk is full. */
void dm_wheel_add_elsewhere(struct dm_wheel *wheel, uint64_t time, uint32_t tag);

/* The bits of the time above the lowest 16 are those of the slot. */
static inline uint64_t dm_wheel_entry(uint64_t time, uint32_t order, uint32_t tag) {
    return time << DM_WHEEL_TIME_AT | (uint64_t)order << DM_WHEEL_TAG_BITS | tag;
}

static inline uint32_t dm_wheel_tag(uint64_t entry) {
    return (uint32_t)(entry & ((1u << DM_WHEEL_TAG_BITS) - 1));
}

/* Adds an event that is not before the last one that left. Out of memory shows at dm_wheel_next_slot. */
static inline void dm_wheel_add(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    uint64_t number = time >> wheel->width;
    uint32_t slot = (uint32_t)number & wheel->mask;
    struct dm_wheel_chunk *chunk = &wheel->chunks[slot];
    uint32_t order = chunk->count;
    if (dm_likely(number - wheel->slot - 1 < wheel->reach && order < DM_WHEEL_CHUNK)) {
        chunk->events[order] = dm_wheel_entry(time, order, tag);
        chunk->count = order + 1;
        wheel->used[slot] = 1;
        wheel->count++;
        return;
    }
    dm_wheel_add_elsewhere(wheel, time, tag);
}

/* The current slot has no event left. */
static inline bool dm_wheel_is_spent(const struct dm_wheel *wheel) {
    return wheel->at == wheel->current_count;
}

static inline bool dm_wheel_empty(const struct dm_wheel *wheel) {
    return dm_wheel_is_spent(wheel) && wheel->count == 0;
}

/* Makes the next slot that has events the current one, when that is spent. The wheel must not be empty. False: memory
 * was out, and events were lost. */
bool dm_wheel_next_slot(struct dm_wheel *wheel);

/* Removes the earliest event. The current slot must not be spent. */
static inline struct dm_event dm_wheel_take(struct dm_wheel *wheel) {
    uint64_t entry = wheel->current[wheel->at++];
    return (struct dm_event){wheel->base | entry >> DM_WHEEL_TIME_AT, dm_wheel_tag(entry)};
}

/* For prefetching: events of a slot after the current one, by less than DM_WHEEL_SLOTS_LEAST, as they were added;
 * their number is returned. Of a slot with more than DM_WHEEL_CHUNK events only the first ones are seen. dm_wheel_tag
 * returns an event's tag. */
static inline uint32_t dm_wheel_look(const struct dm_wheel *wheel, uint64_t slot, const uint64_t **events) {
    const struct dm_wheel_chunk *chunk = &wheel->chunks[slot & wheel->mask];
    *events = chunk->events;
    return chunk->count < DM_WHEEL_CHUNK ? chunk->count : DM_WHEEL_CHUNK;
}

#endif
