/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing array of verbs under a spin lock. Its cost does not matter: a traced run in real time is slow anyway.
 */
#include "check/verb_log.h"

#include <sched.h>
#include <stdlib.h>

#include "common/array.h"

void ck_verb_log_add(struct ck_verb_log *verbs, const struct dm_trace_event *event, unsigned client) {
    while (atomic_flag_test_and_set_explicit(&verbs->lock, memory_order_acquire)) {
        sched_yield();
    }
    struct ck_verb *items = dm_array_grow(verbs->items, verbs->count, &verbs->capacity, sizeof(*items));
    if (items) {
        verbs->items = items;
        items[verbs->count++] = (struct ck_verb){*event, client};
    } else {
        verbs->lost++;
    }
    atomic_flag_clear_explicit(&verbs->lock, memory_order_release);
}

void ck_verb_log_fini(struct ck_verb_log *verbs) {
    free(verbs->items);
    *verbs = (struct ck_verb_log){.items = NULL};
}
