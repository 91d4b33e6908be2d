/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing array of verbs behind a spin lock: whoever traces in real time has already given up on speed.
 */
#include "check/verbs.h"

#include <sched.h>
#include <stdlib.h>

static bool room_make(struct ck_verbs *verbs) {
    if (verbs->count < verbs->room) {
        return true;
    }
    size_t room = verbs->room > 0 ? 2 * verbs->room : 1024;
    struct ck_verb *items = realloc(verbs->items, room * sizeof(*items));
    if (items) {
        verbs->items = items;
        verbs->room = room;
    }
    return items != NULL;
}

void ck_verbs_add(struct ck_verbs *verbs, const struct dm_trace_event *event, unsigned client) {
    while (atomic_flag_test_and_set_explicit(&verbs->guard, memory_order_acquire)) {
        sched_yield();
    }
    if (room_make(verbs)) {
        verbs->items[verbs->count++] = (struct ck_verb){*event, client};
    } else {
        verbs->lost++;
    }
    atomic_flag_clear_explicit(&verbs->guard, memory_order_release);
}

void ck_verbs_fini(struct ck_verbs *verbs) {
    free(verbs->items);
    *verbs = (struct ck_verbs){.items = NULL};
}
