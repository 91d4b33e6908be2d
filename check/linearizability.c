/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges one key. The search processes invocations and responses in their order, and keeps every configuration that the
 * key may be in: its state, and which of the open accesses have already taken effect. At a response it drops all
 * configurations in which that access cannot have taken effect by now; if none remains, the accesses are not
 * linearizable. An access takes effect as late as possible: at its own response, or at that of an access that needs it.
 * This is the exhaustive search, with memoisation on (state, accesses done). When no access is open, a configuration
 * is only a state.
 *
 * The search is nearly linear, and still exact, because values are unique and the future is known. A state is absent;
 * present and *pinned*, when an access that is not invoked yet will read the value, so nothing may overwrite it yet; or
 * present and *free*, when the value will not be read again, so that it does not matter which value it is.
 * The following accesses take effect at once, because an order in which they take effect later stays valid if they
 * are moved to the current moment:
 *   - reads that agree with the state (they change nothing);
 *   - in a free state, a put over the value whose own reads have all been invoked, together with those reads. It leads
 *     from a free state to a free state. Removing such a block from a later position keeps the key present there.
 * Of removals, and of puts into absence whose reads have all been invoked, only the one with the earliest deadline is
 * tried. All of them lead to the same state, so an order that has two of them reversed can exchange them.
 */
#include "check/linearizability.h"

#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/prng.h"

enum { STATE_ABSENT, STATE_FREE, STATE_PINNED }; /* STATE_PINNED + i is the value of values[i] */
enum { NONE = UINT32_MAX, SCANNED_MAX = 12, CONFIGS_FIRST = 64 };

/* A value of the key. */
struct value_info {
    uint64_t value;
    uint32_t unseen;   /* number of its reads that have not been invoked yet */
    uint64_t deadline; /* the first response among the put and its reads */
    bool is_written;
};

struct event {
    uint64_t tick;
    uint32_t access;
    uint32_t is_response; /* invocations precede responses of the same tick, because these accesses overlap */
};

/* A set of configurations. Each has `stride` words: the state, then one bit for each slot of an open access. */
struct set {
    uint64_t *words;
    uint32_t count, capacity;
    uint32_t *table; /* indexes of configurations + 1, by hash; used above SCANNED_MAX configurations */
    uint32_t table_size;
};

struct open_access {
    uint32_t access, slot;
};

struct ck_linear {
    const struct ck_access *accesses;
    struct value_info *values;
    uint32_t *value_of; /* of each access, its index in values; NONE if it has no value */
    uint32_t value_count;
    uint32_t *value_table;
    uint32_t value_table_size;
    struct event *events;
    uint32_t *slot_of;
    uint32_t *free_slots;
    struct open_access *open;
    size_t capacity; /* number of accesses that fit the arrays above */
    uint32_t open_count, free_count, stride;
    struct set now, next, seen;
    uint64_t *scratch; /* one configuration */
    uint32_t scratch_words;
};

struct ck_linear *ck_linear_new(void) {
    return calloc(1, sizeof(struct ck_linear));
}

static void set_fini(struct set *set) {
    free(set->words);
    free(set->table);
}

void ck_linear_free(struct ck_linear *linear) {
    if (linear) {
        free(linear->values);
        free(linear->value_of);
        free(linear->value_table);
        free(linear->events);
        free(linear->slot_of);
        free(linear->free_slots);
        free(linear->open);
        free(linear->scratch);
        set_fini(&linear->now);
        set_fini(&linear->next);
        set_fini(&linear->seen);
        free(linear);
    }
}

/* ---- sets of configurations ------------------------------------------------------------------------------------- */

static uint64_t config_hash(const uint64_t *config, uint32_t stride) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < stride; i++) {
        hash = dm_mix64(hash ^ (config[i] + i));
    }
    return hash;
}

static void table_put(struct set *set, uint32_t at, uint32_t stride) {
    uint32_t mask = set->table_size - 1;
    uint32_t slot = (uint32_t)config_hash(set->words + (size_t)at * stride, stride) & mask;
    while (set->table[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    set->table[slot] = at + 1;
}

/* Rebuilds the table with capacity for twice as many configurations. */
static int table_rebuild(struct set *set, uint32_t stride) {
    uint32_t size = 64;
    while (size < set->count * 4) {
        size *= 2;
    }
    if (size > set->table_size) {
        uint32_t *table = realloc(set->table, size * sizeof(*table));
        if (!table) {
            return DM_ERR_NO_MEMORY;
        }
        set->table = table;
        set->table_size = size;
    }
    memset(set->table, 0, set->table_size * sizeof(*set->table));
    for (uint32_t i = 0; i < set->count; i++) {
        table_put(set, i, stride);
    }
    return 0;
}

static bool set_has(const struct set *set, const uint64_t *config, uint32_t stride) {
    size_t bytes = stride * sizeof(*config);
    if (set->count <= SCANNED_MAX) {
        for (uint32_t i = 0; i < set->count; i++) {
            if (memcmp(set->words + (size_t)i * stride, config, bytes) == 0) {
                return true;
            }
        }
        return false;
    }
    uint32_t mask = set->table_size - 1;
    for (uint32_t at = (uint32_t)config_hash(config, stride) & mask; set->table[at] != 0; at = (at + 1) & mask) {
        if (memcmp(set->words + (size_t)(set->table[at] - 1) * stride, config, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds a configuration unless the set has it. Returns 0, 2 when there are too many, or DM_ERR_NO_MEMORY. `config` must
 * not point into the set. */
static int set_add(struct set *set, const uint64_t *config, uint32_t stride) {
    if (set_has(set, config, stride)) {
        return 0;
    }
    if (set->count == CK_LINEAR_CONFIGS_MAX) {
        return 2;
    }
    if ((size_t)(set->count + 1) * stride > set->capacity) {
        uint32_t capacity = (set->count + 1) * 2 * stride;
        capacity = capacity < CONFIGS_FIRST ? CONFIGS_FIRST : capacity;
        uint64_t *words = realloc(set->words, capacity * sizeof(*words));
        if (!words) {
            return DM_ERR_NO_MEMORY;
        }
        set->words = words;
        set->capacity = capacity;
    }
    memcpy(set->words + (size_t)set->count * stride, config, stride * sizeof(*config));
    set->count++;
    if (set->count == SCANNED_MAX + 1 || (set->count > SCANNED_MAX && set->count * 2 > set->table_size)) {
        return table_rebuild(set, stride);
    }
    if (set->count > SCANNED_MAX) {
        table_put(set, set->count - 1, stride);
    }
    return 0;
}

static bool bit_get(const uint64_t *config, uint32_t slot) {
    return config[1 + slot / 64] >> (slot % 64) & 1;
}
static void bit_set(uint64_t *config, uint32_t slot) {
    config[1 + slot / 64] |= UINT64_C(1) << (slot % 64);
}
static void bit_clear(uint64_t *config, uint32_t slot) {
    config[1 + slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

/* ---- preparation ------------------------------------------------------------------------------------------------ */

static int grow(void *pointer, size_t count, size_t size) {
    void *old;
    memcpy(&old, pointer, sizeof(old));
    void *made = realloc(old, count * size);
    if (made) {
        memcpy(pointer, &made, sizeof(made));
    }
    return made ? 0 : DM_ERR_NO_MEMORY;
}

static int reserve(struct ck_linear *linear, size_t count) {
    if (linear->capacity > 0 && count <= linear->capacity) {
        return 0;
    }
    count += count / 2 + 16;
    DM_TRY(grow(&linear->values, count + 1, sizeof(*linear->values)));
    DM_TRY(grow(&linear->value_of, count, sizeof(*linear->value_of)));
    DM_TRY(grow(&linear->events, 2 * count, sizeof(*linear->events)));
    DM_TRY(grow(&linear->slot_of, count, sizeof(*linear->slot_of)));
    DM_TRY(grow(&linear->free_slots, count, sizeof(*linear->free_slots)));
    DM_TRY(grow(&linear->open, count, sizeof(*linear->open)));
    uint32_t size = 64;
    while (size < 2 * (count + 1)) {
        size *= 2;
    }
    DM_TRY(grow(&linear->value_table, size, sizeof(*linear->value_table)));
    linear->value_table_size = size;
    linear->capacity = count;
    return 0;
}

/* The index of a value in `values`; a new value is added. */
static uint32_t value_index(struct ck_linear *linear, uint64_t value) {
    uint32_t mask = linear->value_table_size - 1;
    uint32_t at = (uint32_t)dm_mix64(value) & mask;
    while (linear->value_table[at] != 0) {
        if (linear->values[linear->value_table[at] - 1].value == value) {
            return linear->value_table[at] - 1;
        }
        at = (at + 1) & mask;
    }
    linear->values[linear->value_count] = (struct value_info){.value = value, .deadline = CK_NEVER};
    linear->value_table[at] = ++linear->value_count;
    return linear->value_count - 1;
}

static void values_collect(struct ck_linear *linear, size_t count, uint64_t initial) {
    /* The table is as large as the largest key needed. Only the part that this key can fill is cleared. */
    uint32_t size = 64;
    while (size < 2 * (count + 1)) {
        size *= 2;
    }
    linear->value_table_size = size;
    memset(linear->value_table, 0, size * sizeof(*linear->value_table));
    linear->value_count = 0;
    if (initial != 0) {
        linear->values[value_index(linear, initial)].is_written = true;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ck_access *access = &linear->accesses[i];
        bool is_put = access->kind == CK_PUT_NEW || access->kind == CK_PUT_OVER;
        if (!is_put && access->kind != CK_READ_VALUE) {
            linear->value_of[i] = NONE;
            continue;
        }
        linear->value_of[i] = value_index(linear, access->value);
        struct value_info *info = &linear->values[linear->value_of[i]];
        info->is_written = info->is_written || is_put;
        info->unseen += !is_put;
        info->deadline = access->response < info->deadline ? access->response : info->deadline;
    }
}

static int event_compare(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->tick != y->tick) {
        return x->tick < y->tick ? -1 : 1;
    }
    if (x->is_response != y->is_response) {
        return x->is_response < y->is_response ? -1 : 1;
    }
    return x->access < y->access ? -1 : x->access > y->access;
}

/* Whether an access can be ignored: it need not have taken effect, and its value was never read. Only a put over a
 * value can be; a removal or a first put may explain the outcome of another access. */
static bool is_ignored(const struct ck_linear *linear, size_t i) {
    const struct ck_access *access = &linear->accesses[i];
    return access->optional && access->kind == CK_PUT_OVER && linear->values[linear->value_of[i]].unseen == 0;
}

/* Fills `events` and returns their number. Sets *open_max to the greatest number of accesses open at once. */
static size_t events_collect(struct ck_linear *linear, size_t count, uint32_t *open_max) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_ignored(linear, i)) {
            continue;
        }
        const struct ck_access *access = &linear->accesses[i];
        linear->events[n++] = (struct event){access->invoke, (uint32_t)i, 0};
        if (access->response != CK_NEVER) {
            linear->events[n++] = (struct event){access->response, (uint32_t)i, 1};
        }
    }
    qsort(linear->events, n, sizeof(*linear->events), event_compare);
    uint32_t open = 0;
    *open_max = 0;
    for (size_t i = 0; i < n; i++) {
        open = linear->events[i].is_response ? open - 1 : open + 1;
        *open_max = open > *open_max ? open : *open_max;
    }
    return n;
}

/* ---- steps of a configuration ----------------------------------------------------------------------------------- */

static bool agrees(const struct ck_linear *linear, uint64_t state, uint32_t access) {
    switch (linear->accesses[access].kind) {
    case CK_READ_VALUE:
        return state == STATE_PINNED + linear->value_of[access];
    case CK_READ_ABSENT:
        return state == STATE_ABSENT;
    case CK_READ_PRESENT:
        return state != STATE_ABSENT;
    case CK_PUT_OVER:
        return state == STATE_FREE && linear->values[linear->value_of[access]].unseen == 0;
    case CK_PUT_NEW:
    case CK_REMOVE:
        break;
    }
    return false;
}

static void reads_done(const struct ck_linear *linear, uint64_t *config, uint32_t value) {
    for (uint32_t i = 0; i < linear->open_count; i++) {
        uint32_t access = linear->open[i].access;
        if (linear->accesses[access].kind == CK_READ_VALUE && linear->value_of[access] == value) {
            bit_set(config, linear->open[i].slot);
        }
    }
}

/* Lets every open access take effect that may do so at once without losing exactness. */
static void settle(const struct ck_linear *linear, uint64_t *config) {
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < linear->open_count; i++) {
            const struct open_access *open = &linear->open[i];
            if (!bit_get(config, open->slot) && agrees(linear, config[0], open->access)) {
                bit_set(config, open->slot);
                if (linear->accesses[open->access].kind == CK_PUT_OVER) {
                    reads_done(linear, config, linear->value_of[open->access]);
                }
            }
        }
        if (config[0] < STATE_PINNED || linear->values[config[0] - STATE_PINNED].unseen > 0) {
            return;
        }
        config[0] = STATE_FREE;
    }
}

/* Makes, in linear->scratch, the configuration after a write that the state of `config` allows. */
static uint64_t *after_write(struct ck_linear *linear, const uint64_t *config, const struct open_access *open) {
    uint64_t *made = linear->scratch;
    memcpy(made, config, linear->stride * sizeof(*made));
    bit_set(made, open->slot);
    bool is_remove = linear->accesses[open->access].kind == CK_REMOVE;
    made[0] = is_remove ? STATE_ABSENT : STATE_PINNED + linear->value_of[open->access];
    settle(linear, made);
    return made;
}

/* Adds the configuration after one write to `next` if the access in `slot` has then taken effect, otherwise to `seen`.
 */
static int follow(struct ck_linear *linear, const uint64_t *config, const struct open_access *open, uint32_t slot) {
    uint64_t *made = after_write(linear, config, open);
    if (bit_get(made, slot)) {
        bit_clear(made, slot);
        return set_add(&linear->next, made, linear->stride);
    }
    return set_add(&linear->seen, made, linear->stride);
}

/* Tries the writes that the state of the configuration seen[at] allows and that must be tried. */
static int expand(struct ck_linear *linear, uint32_t at, uint32_t slot) {
    enum ck_access_kind wanted =
        linear->seen.words[(size_t)at * linear->stride] == STATE_FREE ? CK_PUT_OVER : CK_PUT_NEW;
    const struct open_access *first = NULL; /* of the equivalent writes, the one with the earliest deadline */
    uint64_t first_deadline = 0;
    for (uint32_t i = 0; i < linear->open_count; i++) {
        const uint64_t *config =
            linear->seen.words + (size_t)at * linear->stride; /* the memory moves when the set grows */
        if (config[0] >= STATE_PINNED) {
            return 0;
        }
        const struct open_access *open = &linear->open[i];
        const struct ck_access *access = &linear->accesses[open->access];
        bool is_remove = access->kind == CK_REMOVE && config[0] == STATE_FREE;
        if (bit_get(config, open->slot) || (access->kind != wanted && !is_remove)) {
            continue;
        }
        const struct value_info *info = is_remove ? NULL : &linear->values[linear->value_of[open->access]];
        if (info && info->unseen > 0) {
            int rc = follow(linear, config, open, slot);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        uint64_t deadline = info ? info->deadline : access->response;
        if (!first || deadline < first_deadline) {
            first = open;
            first_deadline = deadline;
        }
    }
    return first ? follow(linear, linear->seen.words + (size_t)at * linear->stride, first, slot) : 0;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static void on_invoke(struct ck_linear *linear, uint32_t access) {
    uint32_t slot = linear->free_slots[--linear->free_count];
    linear->slot_of[access] = slot;
    linear->open[linear->open_count++] = (struct open_access){access, slot};
    if (linear->accesses[access].kind == CK_READ_VALUE) {
        linear->values[linear->value_of[access]].unseen--;
    }
    for (uint32_t i = 0; i < linear->now.count; i++) {
        settle(linear, linear->now.words + (size_t)i * linear->stride);
    }
}

static int on_response(struct ck_linear *linear, uint32_t access) {
    uint32_t slot = linear->slot_of[access];
    linear->next.count = 0;
    linear->seen.count = 0;
    for (uint32_t i = 0; i < linear->now.count; i++) {
        uint64_t *config = linear->now.words + (size_t)i * linear->stride;
        bool is_done = bit_get(config, slot);
        bit_clear(config, slot);
        int rc = set_add(is_done ? &linear->next : &linear->seen, config, linear->stride);
        if (rc != 0) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < linear->seen.count; i++) {
        int rc = expand(linear, i, slot);
        if (rc != 0) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < linear->open_count; i++) {
        if (linear->open[i].access == access) {
            linear->open[i] = linear->open[--linear->open_count];
            break;
        }
    }
    linear->free_slots[linear->free_count++] = slot;
    struct set swapped = linear->now;
    linear->now = linear->next;
    linear->next = swapped;
    return linear->now.count > 0 ? 0 : 1;
}

static int begin(struct ck_linear *linear, uint64_t initial, uint32_t open_max) {
    linear->stride = 1 + (open_max + 63) / 64;
    if (linear->stride > linear->scratch_words) {
        DM_TRY(grow(&linear->scratch, linear->stride, sizeof(*linear->scratch)));
        linear->scratch_words = linear->stride;
    }
    linear->open_count = 0;
    linear->free_count = open_max;
    for (uint32_t i = 0; i < open_max; i++) {
        linear->free_slots[i] = open_max - 1 - i;
    }
    memset(linear->scratch, 0, linear->stride * sizeof(*linear->scratch));
    if (initial != 0) {
        uint32_t value = value_index(linear, initial);
        linear->scratch[0] = linear->values[value].unseen > 0 ? STATE_PINNED + value : STATE_FREE;
    }
    linear->now.count = 0;
    return set_add(&linear->now, linear->scratch, linear->stride);
}

int ck_linear_judge(struct ck_linear *linear, const struct ck_access *accesses, size_t count, uint64_t initial,
                    size_t *culprit) {
    *culprit = 0;
    DM_TRY(reserve(linear, count));
    linear->accesses = accesses;
    values_collect(linear, count, initial);
    for (size_t i = 0; i < count; i++) {
        if (accesses[i].kind == CK_READ_VALUE && !linear->values[linear->value_of[i]].is_written) {
            *culprit = i;
            return 1;
        }
    }
    uint32_t open_max;
    size_t n = events_collect(linear, count, &open_max);
    DM_TRY(begin(linear, initial, open_max));
    for (size_t i = 0; i < n; i++) {
        const struct event *event = &linear->events[i];
        if (!event->is_response) {
            on_invoke(linear, event->access);
            continue;
        }
        int rc = on_response(linear, event->access);
        if (rc != 0) {
            *culprit = event->access;
            return rc;
        }
    }
    return 0;
}
