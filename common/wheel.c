/* SPDX-License-Identifier: Apache-2.0
 *
 * The slower half of the timing wheel: overflow, the current slot, and the step to the next one.
 */
#include "common/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "common/aligned.h"
#include "common/err.h"

int dm_wheel_init(struct dm_wheel *wheel) {
    memset(wheel, 0, sizeof(*wheel));
    wheel->chunk_capacity = 2 * DM_WHEEL_SLOTS;
    wheel->chunks = dm_aligned_new(wheel->chunk_capacity, sizeof(*wheel->chunks));
    wheel->current_capacity = 64;
    wheel->current = malloc(wheel->current_capacity * sizeof(*wheel->current));
    if (!wheel->chunks || !wheel->current) {
        dm_wheel_fini(wheel);
        return DM_ERR_NO_MEMORY;
    }
    wheel->chunk_count = DM_WHEEL_SLOTS;
    return 0;
}

void dm_wheel_fini(struct dm_wheel *wheel) {
    free(wheel->chunks);
    free(wheel->current);
    dm_heap_fini(&wheel->later);
    memset(wheel, 0, sizeof(*wheel));
}

/* A chunk for overflow: its number, or 0 when out of memory. */
static uint32_t chunk_new(struct dm_wheel *wheel) {
    uint32_t number = wheel->free_chunk;
    if (number) {
        wheel->free_chunk = wheel->chunks[number].next;
    } else {
        if (wheel->chunk_count == wheel->chunk_capacity) {
            uint32_t capacity = wheel->chunk_capacity * 2;
            struct dm_wheel_chunk *chunks = dm_aligned_new(capacity, sizeof(*chunks));
            if (!chunks) {
                return 0;
            }
            memcpy(chunks, wheel->chunks, wheel->chunk_count * sizeof(*chunks));
            free(wheel->chunks);
            wheel->chunks = chunks;
            wheel->chunk_capacity = capacity;
        }
        number = wheel->chunk_count++;
    }
    wheel->chunks[number].count = 0;
    wheel->chunks[number].next = 0;
    return number;
}

static bool current_reserve(struct dm_wheel *wheel, uint32_t capacity) {
    if (capacity <= wheel->current_capacity) {
        return true;
    }
    capacity = capacity < wheel->current_capacity * 2 ? wheel->current_capacity * 2 : capacity;
    uint64_t *current = realloc(wheel->current, capacity * sizeof(*current));
    if (!current) {
        return false;
    }
    wheel->current = current;
    wheel->current_capacity = capacity;
    return true;
}

/* No event of the same time has a greater entry. */
static uint64_t last_of_time(uint64_t entry) {
    return entry | ((UINT64_C(1) << DM_HEAP_TAG_BITS) - 1);
}

/* Into the sorted events of the current slot, behind those of the same time. */
static bool add_to_current(struct dm_wheel *wheel, uint64_t entry) {
    if (wheel->at > 0 && wheel->at == wheel->current_count) {
        wheel->at = wheel->current_count = 0;
    }
    if (!current_reserve(wheel, wheel->current_count + 1)) {
        return false;
    }
    uint32_t at = wheel->current_count++;
    uint64_t last = last_of_time(entry);
    while (at > wheel->at && wheel->current[at - 1] > last) {
        wheel->current[at] = wheel->current[at - 1];
        at--;
    }
    wheel->current[at] = entry;
    return true;
}

static bool add_to_slot(struct dm_wheel *wheel, uint32_t slot, uint64_t entry) {
    struct dm_wheel_chunk *chunk = &wheel->chunks[slot];
    if (chunk->count == DM_WHEEL_CHUNK) {
        uint32_t last = chunk->next ? wheel->tails[slot] : slot;
        if (wheel->chunks[last].count == DM_WHEEL_CHUNK) {
            uint32_t added = chunk_new(wheel); /* may move the chunks */
            if (!added) {
                return false;
            }
            wheel->chunks[last].next = added;
            wheel->tails[slot] = last = added;
        }
        chunk = &wheel->chunks[last];
    }
    chunk->events[chunk->count++] = entry;
    wheel->used[slot / 64] |= UINT64_C(1) << slot % 64;
    return true;
}

/* Moves the few events into the wheel. */
static bool begin_to_turn(struct dm_wheel *wheel) {
    wheel->is_turning = true;
    wheel->count = 0;
    for (uint32_t i = wheel->few_at; i < wheel->few_end; i++) {
        if (!dm_wheel_add(wheel, wheel->few[i].time, wheel->few[i].tag)) {
            return false;
        }
    }
    return true;
}

bool dm_wheel_add_elsewhere(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    if (!wheel->is_turning && !begin_to_turn(wheel)) {
        return false;
    }
    uint64_t number = time >> DM_WHEEL_SLOT_BITS;
    uint64_t entry = (time & ((UINT64_C(1) << DM_WHEEL_SLOT_BITS) - 1)) << DM_HEAP_TAG_BITS | tag;
    assert(number >= wheel->slot);
    bool added = number == wheel->slot ? add_to_current(wheel, entry)
                 : number - wheel->slot < DM_WHEEL_SLOTS
                     ? add_to_slot(wheel, (uint32_t)(number % DM_WHEEL_SLOTS), entry)
                     : dm_heap_push(&wheel->later, time, tag);
    wheel->count += added;
    return added;
}

/* The number of the first slot with events after the current one; it must be in the wheel. */
static uint64_t next_used(const struct dm_wheel *wheel) {
    uint32_t from = (uint32_t)((wheel->slot + 1) % DM_WHEEL_SLOTS);
    uint32_t word = from / 64;
    uint64_t bits = wheel->used[word] & UINT64_MAX << from % 64;
    while (bits == 0) {
        word = (word + 1) % DM_WHEEL_WORDS;
        bits = wheel->used[word];
    }
    uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
    return wheel->slot + 1 + (slot + DM_WHEEL_SLOTS - from) % DM_WHEEL_SLOTS;
}

/* Events of the heap whose slots are now in the wheel go there, before any other can be added to those slots. */
static bool fetch_later(struct dm_wheel *wheel) {
    while (!dm_heap_empty(&wheel->later) &&
           (dm_heap_next_time(&wheel->later) >> DM_WHEEL_SLOT_BITS) - wheel->slot < DM_WHEEL_SLOTS) {
        struct dm_heap_entry entry = dm_heap_pop(&wheel->later);
        wheel->count--;
        if (!dm_wheel_add_elsewhere(wheel, entry.time, dm_heap_tag(entry))) {
            return false;
        }
    }
    return true;
}

static int compare_entries(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts by time; equal times keep their order. */
static void sort_current(struct dm_wheel *wheel) {
    enum { FEW = 48 };
    uint64_t *events = wheel->current;
    uint32_t count = wheel->current_count;
    if (count > FEW) {
        /* The position replaces the tag while sorting, which makes equal times distinct. */
        uint32_t *tags = malloc(count * sizeof(*tags));
        if (tags) {
            for (uint32_t i = 0; i < count; i++) {
                tags[i] = dm_wheel_tag(events[i]);
                events[i] = events[i] >> DM_HEAP_TAG_BITS << DM_HEAP_TAG_BITS | i;
            }
            qsort(events, count, sizeof(*events), compare_entries);
            for (uint32_t i = 0; i < count; i++) {
                uint32_t was = dm_wheel_tag(events[i]);
                events[i] = events[i] >> DM_HEAP_TAG_BITS << DM_HEAP_TAG_BITS | tags[was];
            }
            free(tags);
            return;
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        uint64_t entry = events[i], last = last_of_time(entry);
        uint32_t at = i;
        for (; at > 0 && events[at - 1] > last; at--) {
            events[at] = events[at - 1];
        }
        events[at] = entry;
    }
}

static bool collect(struct dm_wheel *wheel, uint32_t slot) {
    for (uint32_t number = slot; wheel->chunks[number].count > 0;) {
        struct dm_wheel_chunk *chunk = &wheel->chunks[number];
        if (!current_reserve(wheel, wheel->current_count + chunk->count)) {
            return false;
        }
        memcpy(wheel->current + wheel->current_count, chunk->events, chunk->count * sizeof(*chunk->events));
        wheel->current_count += chunk->count;
        uint32_t next = chunk->next;
        chunk->count = chunk->next = 0;
        if (number != slot) {
            chunk->next = wheel->free_chunk;
            wheel->free_chunk = number;
        }
        if (!next) {
            break;
        }
        number = next;
    }
    wheel->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    return true;
}

bool dm_wheel_advance(struct dm_wheel *wheel) {
    wheel->at = wheel->current_count = 0;
    bool is_later = wheel->count == wheel->later.count;
    wheel->slot = is_later ? dm_heap_next_time(&wheel->later) >> DM_WHEEL_SLOT_BITS : next_used(wheel);
    /* The slot's own events were all added before its turn, and those of the heap before them. */
    if (!collect(wheel, (uint32_t)(wheel->slot % DM_WHEEL_SLOTS))) {
        return false;
    }
    sort_current(wheel);
    return fetch_later(wheel);
}

bool dm_wheel_look_on(const struct dm_wheel *wheel, struct dm_wheel_cursor *cursor, uint32_t slots) {
    if (cursor->slot <= wheel->slot) {
        cursor->slot = wheel->slot + 1;
        cursor->chunk = (uint32_t)(cursor->slot % DM_WHEEL_SLOTS);
        cursor->at = 0;
    }
    while (cursor->at == wheel->chunks[cursor->chunk].count) {
        uint32_t next = wheel->chunks[cursor->chunk].next;
        if (!next && cursor->slot - wheel->slot >= slots) {
            return false;
        }
        cursor->slot += !next;
        cursor->chunk = next ? next : (uint32_t)(cursor->slot % DM_WHEEL_SLOTS);
        cursor->at = 0;
    }
    return true;
}
