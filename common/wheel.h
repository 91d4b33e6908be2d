/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's event queue: a timing wheel. Time is cut into slots of 2^DM_WHEEL_SLOT_BITS ps; the wheel holds the
 * events of the next DM_WHEEL_SLOTS slots, and a heap those after them. The events of a slot are sorted when the slot
 * becomes the current one, so that adding and removing an event take constant time however many are pending. As long as
 * only a few are, all of them are in one sorted array, which is faster then. Events leave in the order of their times,
 * and those of one instant in the order in which they were added.
 */
#ifndef DM_COMMON_WHEEL_H
#define DM_COMMON_WHEEL_H

#include "common/heap.h"

enum {
    DM_WHEEL_SLOT_BITS = 13, /* 8.2 ns */
    DM_WHEEL_SLOTS = 1024,   /* 8.4 us */
    DM_WHEEL_CHUNK = 7,
    DM_WHEEL_FEW = 64,
    DM_WHEEL_WORDS = DM_WHEEL_SLOTS / 64,
};

struct dm_event {
    uint64_t time;
    uint32_t tag;
};

/* A cache line of events of one slot: each is its time within the slot << DM_HEAP_TAG_BITS | tag. */
struct dm_wheel_chunk {
    uint32_t count;
    uint32_t next; /* the slot's next chunk, or the next free one; 0: none */
    uint64_t events[DM_WHEEL_CHUNK];
};

/* All zero is not a wheel: dm_wheel_init. */
struct dm_wheel {
    struct dm_wheel_chunk *chunks; /* the first DM_WHEEL_SLOTS are the slots' own, the others overflow */
    uint32_t chunk_count, chunk_capacity, free_chunk;
    uint64_t *current; /* sorted events of the current slot, those before `at` have left */
    uint32_t at, current_count, current_capacity;
    uint64_t slot;                  /* number of the current slot since time 0 */
    uint64_t count;                 /* events in all */
    uint64_t used[DM_WHEEL_WORDS];  /* a bit for each slot with events */
    uint32_t tails[DM_WHEEL_SLOTS]; /* the last chunk of each slot */
    struct dm_heap later;
    bool is_turning; /* false: all events are in `few` */
    uint32_t few_at, few_end;
    struct dm_event few[2 * DM_WHEEL_FEW]; /* sorted: those from few_at to few_end have not left */
};

/* 0 or DM_ERR_NO_MEMORY. dm_wheel_fini accepts a wheel that is all zero. */
int dm_wheel_init(struct dm_wheel *wheel);
void dm_wheel_fini(struct dm_wheel *wheel);

/* For dm_wheel_add: an event of the current slot or of the heap, one whose slot's chunk is full, or one too many for
 * `few`. */
bool dm_wheel_add_elsewhere(struct dm_wheel *wheel, uint64_t time, uint32_t tag);

/* Makes the next slot that has events the current one. The wheel must not be empty. False when out of memory. */
bool dm_wheel_advance(struct dm_wheel *wheel);

/* Makes space behind the last of the few. */
static inline void dm_wheel_few_move(struct dm_wheel *wheel) {
    wheel->few_end -= wheel->few_at;
    for (uint32_t i = 0; i < wheel->few_end; i++) {
        wheel->few[i] = wheel->few[wheel->few_at + i];
    }
    wheel->few_at = 0;
}

/* Adds an event that is not before the last one that left; false when out of memory. */
static inline bool dm_wheel_add(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    if (!wheel->is_turning && wheel->count < DM_WHEEL_FEW) {
        if (dm_unlikely(wheel->few_end == 2 * DM_WHEEL_FEW)) {
            dm_wheel_few_move(wheel);
        }
        uint32_t at = wheel->few_end++;
        for (; at > wheel->few_at && wheel->few[at - 1].time > time; at--) {
            wheel->few[at] = wheel->few[at - 1];
        }
        wheel->few[at] = (struct dm_event){time, tag};
        wheel->count++;
        return true;
    }
    uint64_t ahead = (time >> DM_WHEEL_SLOT_BITS) - wheel->slot;
    if (dm_likely(wheel->is_turning && ahead - 1 < DM_WHEEL_SLOTS - 1)) {
        uint32_t slot = (uint32_t)(wheel->slot + ahead) % DM_WHEEL_SLOTS;
        struct dm_wheel_chunk *chunk = &wheel->chunks[slot];
        if (dm_likely(chunk->count < DM_WHEEL_CHUNK)) {
            uint64_t within = time & ((UINT64_C(1) << DM_WHEEL_SLOT_BITS) - 1);
            chunk->events[chunk->count++] = within << DM_HEAP_TAG_BITS | tag;
            wheel->used[slot / 64] |= UINT64_C(1) << slot % 64;
            wheel->count++;
            return true;
        }
    }
    return dm_wheel_add_elsewhere(wheel, time, tag);
}

static inline bool dm_wheel_empty(const struct dm_wheel *wheel) {
    return wheel->count == 0;
}

/* How far ahead of the current slot events have been looked at. All zero is a valid beginning. */
struct dm_wheel_cursor {
    uint64_t slot;
    uint32_t chunk, at; /* the slot's next event to look at */
};

/* For dm_wheel_look: moves the cursor to the next event to look at; false if there is none at present. */
bool dm_wheel_look_on(const struct dm_wheel *wheel, struct dm_wheel_cursor *cursor, uint32_t slots);

/* The tag of an event in a chunk or in the current slot. */
static inline uint32_t dm_wheel_tag(uint64_t entry) {
    return (uint32_t)(entry & ((1u << DM_HEAP_TAG_BITS) - 1));
}

/* The tag of the next event to look at, slot after slot, among those of the `slots` slots after the current one; 0:
 * none at present. In a slot events come as they were added, and those added behind the cursor are never seen. For
 * prefetching; only while the wheel turns. */
static inline uint32_t dm_wheel_look(const struct dm_wheel *wheel, struct dm_wheel_cursor *cursor, uint32_t slots) {
    bool is_there = cursor->slot > wheel->slot && cursor->at < wheel->chunks[cursor->chunk].count;
    if (dm_unlikely(!is_there) && !dm_wheel_look_on(wheel, cursor, slots)) {
        return 0;
    }
    return dm_wheel_tag(wheel->chunks[cursor->chunk].events[cursor->at++]);
}

/* Removes the earliest event into *event; false when out of memory. The wheel must not be empty. */
static inline bool dm_wheel_take(struct dm_wheel *wheel, struct dm_event *event) {
    if (!wheel->is_turning) {
        *event = wheel->few[wheel->few_at++];
        wheel->slot = event->time >> DM_WHEEL_SLOT_BITS;
        wheel->count--;
        return true;
    }
    if (wheel->at == wheel->current_count && dm_unlikely(!dm_wheel_advance(wheel))) {
        return false;
    }
    uint64_t entry = wheel->current[wheel->at++];
    event->time = wheel->slot << DM_WHEEL_SLOT_BITS | entry >> DM_HEAP_TAG_BITS;
    event->tag = dm_wheel_tag(entry);
    wheel->count--;
    return true;
}

#endif
