/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place that switches stacks: stackful coroutines on Boost.Context's fcontext, with the annotations that the
 * address and thread sanitizers need.
 */
#ifndef DM_COMMON_CORO_H
#define DM_COMMON_CORO_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compiler.h"

struct dm_coro {
    void *context;      /* where to resume; fcontext's handle */
    void *caller;       /* where to go back to */
    void *stack;        /* lowest usable byte; a guard page lies below */
    size_t stack_bytes; /* usable */
    void (*entry)(void *arg);
    void *arg;
    bool done;
#if DM_ASAN
    void *asan_fake;
    void *asan_caller_fake;
    const void *asan_caller_bottom;
    size_t asan_caller_size;
#endif
#if DM_TSAN
    void *tsan_fiber;
    void *tsan_caller;
#endif
};

/* Maps a stack (usable bytes rounded up to pages, guard page below, touched lazily) and prepares entry(arg) to run at
 * the first resume. Returns 0 or DM_ERR_NO_MEMORY. */
int dm_coro_init(struct dm_coro *coro, size_t stack_bytes, void (*entry)(void *), void *arg);

/* Runs the coroutine until it yields or its entry returns (then `done` is set). Never call it for one that is done. */
void dm_coro_resume(struct dm_coro *coro);

/* From inside the coroutine: goes back to whoever resumed it. */
void dm_coro_yield(struct dm_coro *coro);

/* Unmaps the stack; the coroutine may be suspended at any point (its frames are dropped). Accepts one that failed to
 * init. */
void dm_coro_fini(struct dm_coro *coro);

#endif
