/* SPDX-License-Identifier: Apache-2.0
 *
 * fcontext has C linkage but no C header; the prototypes are ours. The two symbols are stable across Boost releases
 * since 1.61.
 */
#include "common/coro.h"

#include <assert.h>
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

int dm_coro_init(struct dm_coro *coro, size_t stack_bytes, void (*entry)(void *), void *arg) {
    *coro = (struct dm_coro){.entry = entry, .arg = arg};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (stack_bytes + page - 1) & ~(page - 1);
    char *map = mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return DM_ERR_NO_MEMORY;
    }
    if (mprotect(map, page, PROT_NONE) != 0) {
        munmap(map, usable + page);
        return DM_ERR_NO_MEMORY;
    }
    coro->stack = map + page;
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
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
#if DM_ASAN
    /* Dropped frames are still poisoned, and the next mapping may have the same address. */
    __asan_unpoison_memory_region(coro->stack, coro->stack_size);
#endif
    munmap(coro->stack - page, coro->stack_size + page);
#if DM_TSAN
    __tsan_destroy_fiber(coro->fiber);
#endif
    *coro = (struct dm_coro){0};
}
