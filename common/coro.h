/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place that switches stacks: stackful coroutines on Boost.Context's fcontext, with the annotations that the
 * address and thread sanitizers need. Switching is symmetric: the running
 * coroutine names the one that runs next.
 */
#ifndef DM_COMMON_CORO_H
#define DM_COMMON_CORO_H

#include <stddef.h>

#include "common/compiler.h"

struct dm_coro {
    void *context;     /* where it resumes; fcontext's handle */
    char *stack;       /* lowest usable byte, below it is a guard page; NULL for a thread's own stack */
    size_t stack_size; /* usable bytes */
    void (*entry)(void *arg);
    void *arg;
#if DM_ASAN
    void *fake_stack;
    const void *stack_bottom;
    size_t stack_span;
#endif
#if DM_TSAN
    void *fiber;
#endif
};

/* Represents the calling thread's own stack, so that coroutines can switch back to it. */
void dm_coro_init_thread(struct dm_coro *coro);

/* Takes a stack (bytes rounded up to pages, guard page below, memory touched only as it is used; a new one, or that of
 * a coroutine that has ended) and prepares entry(arg) to run at the first switch. entry must not return: its last act
 * is a switch to another coroutine. Returns 0 or DM_ERR_NO_MEMORY. */
int dm_coro_init(struct dm_coro *coro, size_t stack_bytes, void (*entry)(void *), void *arg);

/* Suspends `from` (the caller) and resumes `to`. Returns when another coroutine switches back to `from`. */
void dm_coro_switch(struct dm_coro *from, struct dm_coro *to);

/* Releases the stack; the coroutine may be suspended at any point (its frames are dropped). Harmless on a zeroed one.
 */
void dm_coro_fini(struct dm_coro *coro);

#endif
