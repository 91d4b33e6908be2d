/* SPDX-License-Identifier: Apache-2.0
 *
 * What verbs and CPU accesses do to bytes. A line of 64 bytes is the unit of atomicity, no less and no more: each line
 * has a sequence number (shared with some other lines) that a writer makes odd while it changes the line, and that a
 * reader compares before and after its copy, so that readers of a hot line do not get in one another's way. CPU
 * accesses do not look at it: they are atomic per word alone, as the contract says.
 *
 * Data is copied by atomic words. Their order (acquire, release) is what makes the sequence numbers work; it is no
 * promise to index code. Under ThreadSanitizer on x86 the accesses are relaxed, which changes nothing in the machine
 * but tells the sanitizer that remote memory does not order ordinary memory: an index that relies on it is reported.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/local/local.h"

#if DM_TSAN && defined(__x86_64__)
#define LOCAL_ACQUIRE memory_order_relaxed
#define LOCAL_RELEASE memory_order_relaxed
#else
#define LOCAL_ACQUIRE memory_order_acquire
#define LOCAL_RELEASE memory_order_release
#endif

#define LOCAL_HUGE_PAGE (UINT64_C(1) << 21)

enum {
    WORD = 8,
    SPINS = 100, /* looks at a changing line before the processor is given away: its writer may have been preempted */
};

/* ---- maps ------------------------------------------------------------------------------------------------------- */

/* Address space, touched only where it is used; aligned so that bulk data can lie on huge pages. */
int local_memory_map(struct local_memory *memory, uint64_t bytes) {
    size_t mapped = (size_t)(bytes + LOCAL_HUGE_PAGE);
    void *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return DM_ERR_NO_MEMORY;
    }
    uintptr_t aligned = ((uintptr_t)map + LOCAL_HUGE_PAGE - 1) & ~(uintptr_t)(LOCAL_HUGE_PAGE - 1);
    memory->map = map;
    memory->map_bytes = mapped;
    memory->base = (unsigned char *)aligned;
    return 0;
}

void local_memory_unmap(struct local_memory *memory) {
    if (memory->map) {
        munmap(memory->map, memory->map_bytes);
    }
}

void local_expect_bulk(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes) {
    uint64_t from = (offset + LOCAL_HUGE_PAGE - 1) & ~(LOCAL_HUGE_PAGE - 1);
    uint64_t to = (offset + bytes) & ~(LOCAL_HUGE_PAGE - 1);
    if (from < to) {
        /* Only a hint: fewer address-translation misses on random reads. */
        (void)madvise(local_of(fabric)->nodes[node].dram.base + from, to - from, MADV_HUGEPAGE);
    }
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static inline uint64_t word_load(const unsigned char *at) {
    return atomic_load_explicit((const _Atomic uint64_t *)at, LOCAL_ACQUIRE);
}

static inline void word_store(unsigned char *at, uint64_t word) {
    atomic_store_explicit((_Atomic uint64_t *)at, word, LOCAL_RELEASE);
}

static inline void load_bytes(const unsigned char *at, unsigned char *out, uint32_t len) {
    for (uint32_t i = 0; i < len; i++) {
        out[i] = atomic_load_explicit((const _Atomic unsigned char *)(at + i), LOCAL_ACQUIRE);
    }
}

static inline void store_bytes(unsigned char *at, const unsigned char *data, uint32_t len) {
    for (uint32_t i = 0; i < len; i++) {
        atomic_store_explicit((_Atomic unsigned char *)(at + i), data[i], LOCAL_RELEASE);
    }
}

static inline void load_words(const unsigned char *at, unsigned char *out, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = word_load(at + (size_t)i * WORD);
        memcpy(out + (size_t)i * WORD, &word, WORD);
    }
}

static inline void store_words(unsigned char *at, const unsigned char *data, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, data + (size_t)i * WORD, WORD);
        word_store(at + (size_t)i * WORD, word);
    }
}

/* Bytes up to the next word, at most len. */
static inline uint32_t head_bytes(const unsigned char *at, uint32_t len) {
    uint32_t head = (uint32_t)(-(uintptr_t)at & (WORD - 1));
    return head < len ? head : len;
}

static void load_any(const unsigned char *at, unsigned char *out, uint32_t len) {
    uint32_t head = head_bytes(at, len), words = (len - head) / WORD, done = head + words * WORD;
    load_bytes(at, out, head);
    load_words(at + head, out + head, words);
    load_bytes(at + done, out + done, len - done);
}

static void store_any(unsigned char *at, const unsigned char *data, uint32_t len) {
    uint32_t head = head_bytes(at, len), words = (len - head) / WORD, done = head + words * WORD;
    store_bytes(at, data, head);
    store_words(at + head, data + head, words);
    store_bytes(at + done, data + done, len - done);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static inline _Atomic uint32_t *stripe_of(const struct local *local, const struct local_memory *memory,
                                          uint64_t offset) {
    return &local->stripes[(offset / DM_LINE + memory->salt) % LOCAL_STRIPES];
}

static void spin(unsigned *spins) {
    if (++*spins % SPINS == 0) {
        sched_yield();
    }
}

static uint32_t line_lock(_Atomic uint32_t *stripe) {
    for (unsigned spins = 0;; spin(&spins)) {
        uint32_t seen = atomic_load_explicit(stripe, memory_order_relaxed);
        if (seen % 2 == 0 &&
            atomic_compare_exchange_weak_explicit(stripe, &seen, seen + 1, LOCAL_ACQUIRE, memory_order_relaxed)) {
            return seen;
        }
    }
}

static void line_unlock(_Atomic uint32_t *stripe, uint32_t seen) {
    atomic_store_explicit(stripe, seen + 2, LOCAL_RELEASE);
}

static void line_read(_Atomic uint32_t *stripe, const unsigned char *at, unsigned char *out, uint32_t len) {
    for (unsigned spins = 0;; spin(&spins)) {
        uint32_t seen = atomic_load_explicit(stripe, LOCAL_ACQUIRE);
        if (seen % 2 != 0) {
            continue;
        }
        if (len == DM_LINE) {
            load_words(at, out, DM_LINE / WORD);
        } else {
            load_any(at, out, len);
        }
        /* The data's loads are acquires, so this one is not made before them. */
        if (atomic_load_explicit(stripe, memory_order_relaxed) == seen) {
            return;
        }
    }
}

static void line_write(_Atomic uint32_t *stripe, unsigned char *at, const unsigned char *data, uint32_t len) {
    uint32_t seen = line_lock(stripe);
    /* The data's stores are releases, so none is seen before the odd number. */
    if (len == DM_LINE) {
        store_words(at, data, DM_LINE / WORD);
    } else {
        store_any(at, data, len);
    }
    line_unlock(stripe, seen);
}

static inline uint32_t piece_bytes(uint64_t offset, uint64_t end) {
    uint64_t stop = (offset & ~(uint64_t)(DM_LINE - 1)) + DM_LINE;
    return (uint32_t)((stop < end ? stop : end) - offset);
}

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

static void execute_read(const struct local *local, const struct dm_verb *verb) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    unsigned char *out = verb->dst;
    uint64_t offset = dm_addr_offset(verb->addr), end = offset + verb->len;
    for (uint32_t len; offset < end; offset += len, out += len) {
        len = piece_bytes(offset, end);
        line_read(stripe_of(local, memory, offset), memory->base + offset, out, len);
    }
}

static void execute_write(const struct local *local, const struct dm_verb *verb) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    const unsigned char *data = verb->src;
    uint64_t offset = dm_addr_offset(verb->addr), end = offset + verb->len;
    for (uint32_t len; offset < end; offset += len, data += len) {
        len = piece_bytes(offset, end);
        line_write(stripe_of(local, memory, offset), memory->base + offset, data, len);
    }
}

/* True if the new value was stored. */
static bool execute_atomic(const struct local *local, const struct dm_verb *verb) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    uint64_t offset = dm_addr_offset(verb->addr);
    _Atomic uint32_t *stripe = stripe_of(local, memory, offset);
    unsigned char *at = memory->base + offset;
    uint32_t seen = line_lock(stripe);
    bool swapped;
    uint64_t found = word_load(at), stored = dm_atomic_apply(verb, found, &swapped);
    if (swapped) {
        word_store(at, stored);
    }
    line_unlock(stripe, seen);
    if (verb->dst) {
        memcpy(verb->dst, &found, sizeof(found));
    }
    return swapped;
}

/* What was written is seen by everybody before anything that follows is read. */
static inline void full_barrier(void) {
#if DM_TSAN
    /* The sanitizer knows no fences; a locked instruction is one. */
    _Atomic uint32_t here = 0;
    atomic_exchange(&here, 1);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

bool local_memory_execute(struct local *local, const struct dm_ctx *ctx) {
    bool changed = false, missed = false;
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        switch (verb->kind) {
        case DM_VERB_READ:
            if (changed) {
                full_barrier();
                changed = false;
            }
            execute_read(local, verb);
            break;
        case DM_VERB_WRITE:
            execute_write(local, verb);
            changed = true;
            break;
        default:
            missed |= !execute_atomic(local, verb);
            changed = true;
            break;
        }
    }
    if (changed) {
        full_barrier();
    }
    return missed;
}

/* ---- the node's own CPU ----------------------------------------------------------------------------------------- */

void local_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    load_any(local_memory_at(local_of(ctx->fabric), src)->base + dm_addr_offset(src), dst, len);
}

void local_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    store_any(local_memory_at(local_of(ctx->fabric), dst)->base + dm_addr_offset(dst), src, len);
}

uint64_t local_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired) {
    unsigned char *at = local_memory_at(local_of(ctx->fabric), addr)->base + dm_addr_offset(addr);
    atomic_compare_exchange_strong((_Atomic uint64_t *)at, &expect, desired);
    return expect;
}
