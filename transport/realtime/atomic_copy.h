/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies by atomic words. The sequence numbers of lines in `local` depend on their order (acquire, release); index code
 * must not. Under ThreadSanitizer on x86 the accesses are relaxed: the instructions are the same, but the sanitizer
 * then reports an index that relies on remote memory to order ordinary memory.
 */
#ifndef DM_TRANSPORT_REALTIME_ATOMIC_COPY_H
#define DM_TRANSPORT_REALTIME_ATOMIC_COPY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "common/compiler.h"

#if DM_TSAN && defined(__x86_64__)
#define RT_ACQUIRE memory_order_relaxed
#define RT_RELEASE memory_order_relaxed
#else
#define RT_ACQUIRE memory_order_acquire
#define RT_RELEASE memory_order_release
#endif

enum { RT_WORD = 8 };

static inline uint64_t rt_word_load(const unsigned char *at) {
    return atomic_load_explicit((const _Atomic uint64_t *)at, RT_ACQUIRE);
}

static inline void rt_word_store(unsigned char *at, uint64_t word) {
    atomic_store_explicit((_Atomic uint64_t *)at, word, RT_RELEASE);
}

static inline void rt_load_bytes(const unsigned char *at, unsigned char *out, uint32_t len) {
    for (uint32_t i = 0; i < len; i++) {
        out[i] = atomic_load_explicit((const _Atomic unsigned char *)(at + i), RT_ACQUIRE);
    }
}

static inline void rt_store_bytes(unsigned char *at, const unsigned char *data, uint32_t len) {
    for (uint32_t i = 0; i < len; i++) {
        atomic_store_explicit((_Atomic unsigned char *)(at + i), data[i], RT_RELEASE);
    }
}

static inline void rt_load_words(const unsigned char *at, unsigned char *out, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = rt_word_load(at + (size_t)i * RT_WORD);
        memcpy(out + (size_t)i * RT_WORD, &word, RT_WORD);
    }
}

static inline void rt_store_words(unsigned char *at, const unsigned char *data, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, data + (size_t)i * RT_WORD, RT_WORD);
        rt_word_store(at + (size_t)i * RT_WORD, word);
    }
}

/* Bytes up to the next word, at most len. */
static inline uint32_t rt_head_bytes(const unsigned char *at, uint32_t len) {
    uint32_t head = (uint32_t)(-(uintptr_t)at & (RT_WORD - 1));
    return head < len ? head : len;
}

static inline void rt_load_any(const unsigned char *at, unsigned char *out, uint32_t len) {
    uint32_t head = rt_head_bytes(at, len), words = (len - head) / RT_WORD, done = head + words * RT_WORD;
    rt_load_bytes(at, out, head);
    rt_load_words(at + head, out + head, words);
    rt_load_bytes(at + done, out + done, len - done);
}

static inline void rt_store_any(unsigned char *at, const unsigned char *data, uint32_t len) {
    uint32_t head = rt_head_bytes(at, len), words = (len - head) / RT_WORD, done = head + words * RT_WORD;
    rt_store_bytes(at, data, head);
    rt_store_words(at + head, data + head, words);
    rt_store_bytes(at + done, data + done, len - done);
}

#endif
