/* SPDX-License-Identifier: Apache-2.0
 *
 * The slower half of the timing wheel: overflow, later groups, the current slot, the step to the next one, and the
 * width of slots.
 */
#include "common/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "common/aligned.h"
#include "common/array.h"
#include "common/err.h"

/* Makes the slot the current one, without events; by slot there are events up to the end of the next group. */
static void set_slot(struct dm_wheel *wheel, uint64_t slot) {
    wheel->slot = slot;
    wheel->reach = (((slot >> wheel->group_bits) + 2) << wheel->group_bits) - 1 - slot;
    wheel->base = slot << wheel->width >> DM_WHEEL_WIDTH_MOST << DM_WHEEL_WIDTH_MOST;
    wheel->at = wheel->current_count = wheel->current_added = 0;
}

static void set_slots(struct dm_wheel *wheel, uint32_t slots) {
    wheel->mask = slots - 1;
    wheel->group_bits = 62 - dm_clz64(slots);
}

int dm_wheel_init(struct dm_wheel *wheel) {
    memset(wheel, 0, sizeof(*wheel));
    wheel->width = DM_WHEEL_WIDTH_BEGIN;
    set_slots(wheel, DM_WHEEL_SLOTS_LEAST);
    wheel->chunk_capacity = 2 * DM_WHEEL_SLOTS;
    wheel->chunks = dm_aligned_new(wheel->chunk_capacity, sizeof(*wheel->chunks));
    wheel->current_capacity = 64;
    wheel->current = malloc(wheel->current_capacity * sizeof(*wheel->current));
    if (!wheel->chunks || !wheel->current) {
        dm_wheel_fini(wheel);
        return DM_ERR_NO_MEMORY;
    }
    wheel->chunk_count = DM_WHEEL_SLOTS;
    set_slot(wheel, 0);
    return 0;
}

void dm_wheel_fini(struct dm_wheel *wheel) {
    free(wheel->chunks);
    free(wheel->current);
    for (unsigned i = 0; i < DM_WHEEL_GROUPS; i++) {
        free(wheel->later[i].events);
    }
    memset(wheel, 0, sizeof(*wheel));
}

/* ---- adding ----------------------------------------------------------------------------------------------------- */

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
    wheel->chunks[number].next = 0;
    return number;
}

static bool current_reserve(struct dm_wheel *wheel, uint32_t capacity) {
    if (dm_likely(capacity <= wheel->current_capacity)) {
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

/* Into the sorted events of the current slot, behind those of the same time. */
static bool add_to_current(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    if (wheel->at > 0 && dm_wheel_is_spent(wheel)) {
        wheel->at = wheel->current_count = 0;
    }
    if (!current_reserve(wheel, wheel->current_count + 1)) {
        return false;
    }
    assert(wheel->current_added >> DM_WHEEL_TAG_BITS == 0);
    uint64_t entry = dm_wheel_entry(time, wheel->current_added++, tag);
    uint32_t at = wheel->current_count++;
    for (; at > wheel->at && wheel->current[at - 1] > entry; at--) {
        wheel->current[at] = wheel->current[at - 1];
    }
    wheel->current[at] = entry;
    return true;
}

static bool add_to_slot(struct dm_wheel *wheel, uint32_t slot, uint64_t time, uint32_t tag) {
    uint32_t order = wheel->chunks[slot].count, last = slot;
    assert(order >> DM_WHEEL_TAG_BITS == 0);
    if (order >= DM_WHEEL_CHUNK) {
        last = wheel->chunks[slot].next ? wheel->tails[slot] : slot;
        if (order % DM_WHEEL_CHUNK == 0) {
            uint32_t added = chunk_new(wheel); /* may move the chunks */
            if (!added) {
                return false;
            }
            wheel->chunks[last].next = added;
            wheel->tails[slot] = last = added;
        }
    }
    wheel->chunks[last].events[order % DM_WHEEL_CHUNK] = dm_wheel_entry(time, order, tag);
    wheel->chunks[slot].count = order + 1;
    wheel->used[slot] = 1;
    wheel->count++;
    return true;
}

static uint64_t group_of(const struct dm_wheel *wheel, uint64_t time) {
    return time >> wheel->width >> wheel->group_bits;
}

static bool add_to_group(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    struct dm_wheel_group *group = &wheel->later[group_of(wheel, time) % DM_WHEEL_GROUPS];
    struct dm_event *events = dm_array_grow(group->events, group->count, &group->capacity, sizeof(*events));
    if (!events) {
        return false;
    }
    group->events = events;
    events[group->count++] = (struct dm_event){time, tag};
    wheel->later_count++;
    wheel->count++;
    return true;
}

static bool add_by_time(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    uint64_t number = time >> wheel->width;
    assert(number >= wheel->slot);
    if (number == wheel->slot) {
        return add_to_current(wheel, time, tag);
    }
    if (number - wheel->slot <= wheel->reach) {
        return add_to_slot(wheel, (uint32_t)number & wheel->mask, time, tag);
    }
    return add_to_group(wheel, time, tag);
}

static void add_all(struct dm_wheel *wheel, const struct dm_event *events, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        dm_wheel_add(wheel, events[i].time, events[i].tag);
    }
}

void dm_wheel_add_elsewhere(struct dm_wheel *wheel, uint64_t time, uint32_t tag) {
    if (dm_unlikely(!add_by_time(wheel, time, tag))) {
        wheel->has_failed = true;
    }
}

/* ---- the next slot ---------------------------------------------------------------------------------------------- */

/* The number of the first slot after the current one that has events; one within reach must have. */
static uint64_t next_used(const struct dm_wheel *wheel) {
    uint64_t slot = wheel->slot + 1;
    while (!wheel->used[slot & wheel->mask]) {
        slot++;
    }
    return slot;
}

/* The slot of the earliest event of all later groups. */
static uint64_t next_later(const struct dm_wheel *wheel) {
    uint64_t earliest = UINT64_MAX;
    for (unsigned i = 0; i < DM_WHEEL_GROUPS; i++) {
        for (uint64_t at = 0; at < wheel->later[i].count; at++) {
            uint64_t time = wheel->later[i].events[at].time;
            earliest = time < earliest ? time : earliest;
        }
    }
    return earliest >> wheel->width;
}

/* Puts the events of the group into their slots, before any other can be added to these. */
static void spread_group(struct dm_wheel *wheel, uint64_t number) {
    struct dm_wheel_group *group = &wheel->later[number % DM_WHEEL_GROUPS];
    uint64_t kept = 0;
    for (uint64_t i = 0; i < group->count; i++) {
        struct dm_event event = group->events[i];
        if (group_of(wheel, event.time) == number) {
            wheel->count--;
            wheel->later_count--;
            dm_wheel_add(wheel, event.time, event.tag);
        } else {
            group->events[kept++] = event;
        }
    }
    group->count = kept;
}

static int compare_entries(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Takes all events of the slot, as they were added, to `events`. */
static void collect(struct dm_wheel *wheel, uint32_t slot, uint64_t *events) {
    uint32_t number = slot;
    for (uint32_t left = wheel->chunks[slot].count; left > 0;) {
        struct dm_wheel_chunk *chunk = &wheel->chunks[number];
        uint32_t count = left < DM_WHEEL_CHUNK ? left : DM_WHEEL_CHUNK, next = chunk->next;
        memcpy(events, chunk->events, count * sizeof(*events));
        events += count;
        left -= count;
        if (number != slot) {
            chunk->next = wheel->free_chunk;
            wheel->free_chunk = number;
        }
        number = next;
    }
    wheel->chunks[slot].count = wheel->chunks[slot].next = 0;
    wheel->used[slot] = 0;
}

/* A slot with overflow. */
static DM_NO_INLINE bool sort_overflow(struct dm_wheel *wheel, uint32_t slot) {
    uint32_t count = wheel->chunks[slot].count;
    if (!current_reserve(wheel, count)) {
        return false;
    }
    collect(wheel, slot, wheel->current);
    qsort(wheel->current, count, sizeof(*wheel->current), compare_entries);
    return true;
}

/* Without a branch, because none could be predicted. */
static inline void order_two(uint64_t *a, uint64_t *b) {
    uint64_t less = *a < *b ? *a : *b, more = *a < *b ? *b : *a;
    *a = less;
    *b = more;
}

/* A slot with one chunk. */
static void sort_chunk(struct dm_wheel *wheel, uint32_t slot) {
    struct dm_wheel_chunk *chunk = &wheel->chunks[slot];
    uint32_t count = chunk->count;
    uint64_t *to = wheel->current;
    chunk->count = 0;
    wheel->used[slot] = 0;
    uint64_t a = chunk->events[0], b = count > 1 ? chunk->events[1] : UINT64_MAX;
    uint64_t c = count > 2 ? chunk->events[2] : UINT64_MAX, d = count > 3 ? chunk->events[3] : UINT64_MAX;
    order_two(&a, &b);
    order_two(&c, &d);
    order_two(&a, &c);
    order_two(&b, &d);
    order_two(&b, &c);
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    for (uint32_t i = 4; i < count; i++) {
        uint64_t entry = chunk->events[i];
        uint32_t at = i;
        for (; at > 0 && to[at - 1] > entry; at--) {
            to[at] = to[at - 1];
        }
        to[at] = entry;
    }
}

/* Sorts the events of the slot, which becomes the current one. */
static bool make_current(struct dm_wheel *wheel, uint32_t slot) {
    uint32_t count = wheel->chunks[slot].count;
    if (dm_likely(count <= DM_WHEEL_CHUNK)) {
        sort_chunk(wheel, slot);
    } else if (!sort_overflow(wheel, slot)) {
        return false;
    }
    wheel->current_count = wheel->current_added = count;
    wheel->count -= count;
    return true;
}

/* ---- the width and number of slots ---------------------------------------------------------------------------- */

/* Both are judged after so many events. A slot should have two to six of them: with fewer, time goes into steps
 * from slot to slot, with more into sorting. */
enum { JUDGED_EVENTS = 16384, TOO_FEW = 2, TOO_MANY = 6 };

/* Takes all events of the spent wheel, those of one instant in their order. False when out of memory. */
static bool take_all(struct dm_wheel *wheel, struct dm_event *events) {
    while (wheel->count > wheel->later_count) {
        set_slot(wheel, next_used(wheel));
        if (!make_current(wheel, (uint32_t)wheel->slot & wheel->mask)) {
            return false;
        }
        while (!dm_wheel_is_spent(wheel)) {
            *events++ = dm_wheel_take(wheel);
        }
    }
    for (unsigned i = 0; i < DM_WHEEL_GROUPS; i++) {
        struct dm_wheel_group *group = &wheel->later[i];
        for (uint64_t at = 0; at < group->count; at++) {
            *events++ = group->events[at];
        }
        group->count = 0;
    }
    wheel->count = wheel->later_count = 0;
    return true;
}

static bool rebuild(struct dm_wheel *wheel, uint32_t width, uint32_t slots) {
    uint64_t count = wheel->count, now = wheel->slot << wheel->width;
    struct dm_event *events = malloc((count + 1) * sizeof(*events));
    bool is_taken = events && take_all(wheel, events);
    if (is_taken) {
        wheel->width = width;
        set_slots(wheel, slots);
        set_slot(wheel, now >> width);
        add_all(wheel, events, count);
    }
    free(events);
    return is_taken;
}

static uint32_t better_width(const struct dm_wheel *wheel) {
    if (wheel->turned > TOO_MANY * wheel->turns && wheel->width > DM_WHEEL_WIDTH_LEAST) {
        return wheel->width - 1;
    }
    return wheel->turned < TOO_FEW * wheel->turns && wheel->width < DM_WHEEL_WIDTH_MOST ? wheel->width + 1
                                                                                        : wheel->width;
}

/* Four slots for each pending event: the latest ones are much later than most. Not fewer before half as many would do.
 */
static uint32_t better_slots(const struct dm_wheel *wheel) {
    uint32_t slots = DM_WHEEL_SLOTS_LEAST, now = wheel->mask + 1;
    while (slots < DM_WHEEL_SLOTS && slots < 4 * wheel->count) {
        slots *= 2;
    }
    return slots > now || 2 * slots < now ? slots : now;
}

static DM_NO_INLINE bool judge(struct dm_wheel *wheel) {
    uint32_t width = better_width(wheel), slots = better_slots(wheel);
    wheel->turns = wheel->turned = 0;
    return (width == wheel->width && slots == wheel->mask + 1) || rebuild(wheel, width, slots);
}

/* Enters another group, whose events are in slots if it follows the current one. */
static DM_NO_INLINE void set_slot_of_group(struct dm_wheel *wheel, uint64_t slot) {
    uint64_t group = slot >> wheel->group_bits, spread = (wheel->slot >> wheel->group_bits) + 2;
    set_slot(wheel, slot);
    for (spread = group > spread ? group : spread; spread <= group + 1; spread++) {
        spread_group(wheel, spread);
    }
}

static bool next_slot(struct dm_wheel *wheel) {
    bool is_later = dm_unlikely(wheel->count == wheel->later_count);
    uint64_t number = is_later ? next_later(wheel) : next_used(wheel);
    wheel->turns++;
    wheel->turned += wheel->current_added;
    if (dm_likely((number ^ wheel->slot) >> wheel->group_bits == 0)) {
        set_slot(wheel, number);
    } else {
        set_slot_of_group(wheel, number); /* adds events to the slot if it was a later one */
    }
    return is_later || make_current(wheel, (uint32_t)number & wheel->mask);
}

bool dm_wheel_next_slot(struct dm_wheel *wheel) {
    bool is_judged = dm_likely(wheel->turned < JUDGED_EVENTS) || judge(wheel);
    /* In a wider slot there may be events beside those that have left. */
    bool is_there = is_judged && (!dm_wheel_is_spent(wheel) || next_slot(wheel));
    return is_there && dm_likely(!wheel->has_failed);
}
