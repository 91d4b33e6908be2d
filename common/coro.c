/* SPDX-License-Identifier: Apache-2.0
 *
 * fcontext has C linkage but no C header; the prototypes are ours. The two symbols are stable across Boost releases
 * since 1.61.
 */
#include "common/coro.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/err.h"

struct transfer {
    void *context;
    void *data;
};

extern struct transfer jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *stack_top, size_t size, void (*entry)(struct transfer));

#if DM_ASAN
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
void __asan_unpoison_memory_region(void const volatile *address, size_t size);
#endif
#if DM_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

/* Runs first on the new side of every switch: remembers where the previous coroutine is to be resumed. */
static void arrive(struct dm_coro *self, struct transfer from) {
    struct dm_coro *previous = from.data;
    previous->context = from.context;
#if DM_ASAN
    const void *bottom = NULL;
    size_t span = 0;
    __sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &span);
    previous->stack_bottom = bottom;
    previous->stack_span = span;
#else
    (void)self;
#endif
}

/* The coroutine being entered for the first time; set just before the jump. */
static _Thread_local struct dm_coro *entering;

static void trampoline(struct transfer from) {
    struct dm_coro *self = entering;
    arrive(self, from);
    self->entry(self->arg);
    abort(); /* entry must switch away for good */
}

void dm_coro_init_thread(struct dm_coro *coro) {
    *coro = (struct dm_coro){0};
#if DM_TSAN
    coro->fiber = __tsan_get_current_fiber();
#endif
}

/* ---- stacks ----------------------------------------------------------------------------------------------------- */

/* Stacks of coroutines that have ended, all of one size, for the next ones. A check runs thousands of short worlds, and
 * mapping and unmapping their stacks took a third of its time; so do points of a thousand clients that share a load. */
enum { STACKS_KEPT = 2048 };
static struct {
    pthread_mutex_t mutex;
    size_t count, usable;
    char *stacks[STACKS_KEPT];
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *stack_map(size_t usable) {
    size_t page = page_bytes();
    char *map = mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(map, page, PROT_NONE) != 0) {
        munmap(map, usable + page);
        return NULL;
    }
    return map + page;
}

static char *stack_take(size_t usable) {
    pthread_mutex_lock(&kept.mutex);
    char *stack = kept.count > 0 && kept.usable == usable ? kept.stacks[--kept.count] : NULL;
    pthread_mutex_unlock(&kept.mutex);
    return stack ? stack : stack_map(usable);
}

static void stack_give(char *stack, size_t usable) {
    pthread_mutex_lock(&kept.mutex);
    bool is_kept = kept.count == 0 || (kept.count < STACKS_KEPT && kept.usable == usable);
    if (is_kept) {
        kept.usable = usable;
        kept.stacks[kept.count++] = stack;
    }
    pthread_mutex_unlock(&kept.mutex);
    if (!is_kept) {
        munmap(stack - page_bytes(), usable + page_bytes());
    }
}

/* ---- coroutines ------------------------------------------------------------------------------------------------- */

int dm_coro_init(struct dm_coro *coro, size_t stack_bytes, void (*entry)(void *), void *arg) {
    *coro = (struct dm_coro){.entry = entry, .arg = arg};
    size_t usable = (stack_bytes + page_bytes() - 1) & ~(page_bytes() - 1);
    coro->stack = stack_take(usable);
    if (!coro->stack) {
        return DM_ERR_NO_MEMORY;
    }
    coro->stack_size = usable;
    coro->context = make_fcontext(coro->stack + usable, usable, trampoline);
#if DM_ASAN
    coro->stack_bottom = coro->stack;
    coro->stack_span = usable;
#endif
#if DM_TSAN
    coro->fiber = __tsan_create_fiber(0);
#endif
    return 0;
}

void dm_coro_switch(struct dm_coro *from, struct dm_coro *to) {
    assert(from != to);
    entering = to;
#if DM_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack_bottom, to->stack_span);
#endif
#if DM_TSAN
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
    struct transfer back = jump_fcontext(to->context, from);
    arrive(from, back);
}

void dm_coro_fini(struct dm_coro *coro) {
    if (!coro->stack) {
        return;
    }
#if DM_ASAN
    /* Dropped frames are still poisoned, and the next stack may have the same address. */
    __asan_unpoison_memory_region(coro->stack, coro->stack_size);
#endif
#if DM_TSAN
    __tsan_destroy_fiber(coro->fiber);
#endif
    stack_give(coro->stack, coro->stack_size);
    *coro = (struct dm_coro){0};
}
