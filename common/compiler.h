/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place for what only gcc and clang know. Every other file is plain C17.
 */
#ifndef DM_COMMON_COMPILER_H
#define DM_COMMON_COMPILER_H

#include <stddef.h>

#define dm_likely(condition)   __builtin_expect(!!(condition), 1)
#define dm_unlikely(condition) __builtin_expect(!!(condition), 0)

/* Ask for the cache line of an address, which need not be valid. gcc takes a function that does nothing else for one
 * without effect and removes calls of it; the empty statement, which it must keep, is an effect. */
#define DM_PREFETCH(pointer, is_write, locality)                                                                       \
    do {                                                                                                               \
        __builtin_prefetch((pointer), (is_write), (locality));                                                         \
        __asm__ volatile("");                                                                                          \
    } while (0)
#define dm_prefetch_read(pointer)  DM_PREFETCH(pointer, 0, 1)
#define dm_prefetch_write(pointer) DM_PREFETCH(pointer, 1, 1)
#define dm_prefetch_near(pointer)  DM_PREFETCH(pointer, 0, 3) /* as close to the processor as it goes */

/* Asks for all lines of a range at once, so that what follows does not wait for each of them. */
static inline void dm_prefetch_lines(const void *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 64) {
        dm_prefetch_read((const char *)from + at);
    }
}

/* Zero bits above the highest set bit; the value must not be 0. */
#define dm_clz64(value) ((unsigned)__builtin_clzll(value))

#define DM_ALWAYS_INLINE inline __attribute__((always_inline))
#define DM_NO_INLINE     __attribute__((noinline))
#define DM_NO_RETURN     __attribute__((noreturn))

/* Products of 64-bit numbers, exactly. */
typedef __int128 dm_int128;

#define DM_ARRAY_LEN(array)                    (sizeof(array) / sizeof((array)[0]))
#define DM_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#if defined(__SANITIZE_ADDRESS__)
#define DM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define DM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DM_TSAN 1
#endif
#endif
#ifndef DM_ASAN
#define DM_ASAN 0
#endif
#ifndef DM_TSAN
#define DM_TSAN 0
#endif

#endif
