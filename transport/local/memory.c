/* SPDX-License-Identifier: Apache-2.0
 *
 * What verbs and CPU accesses do to bytes. A line of 64 bytes is the unit of atomicity, no less and no more: each line
 * has a sequence number (shared with some other lines) that a writer makes odd while it changes the line, and that a
 * reader compares before and after its copy, so that readers of a hot line do not delay each other. CPU
 * accesses ignore it: they are atomic for each word only, as in the contract.
 */
#include "transport/local/local.h"
#include "transport/realtime/atomic_copy.h"

enum {
    SPINS = 100, /* reads of a changing line before the processor is yielded: its writer may wait for it */
    /* A NIC reads all lines of a node within a fraction of a round trip. A thread may lose its processor between two
     * lines, for as long as others write the node sixteen times, after which versions of four bits are the same again
     * (indexes/shared/lines.h). A read is repeated if one of its first READ_LINES lines was written so often. */
    READ_LINES = 1024,
    WRITES_MOST = 8,
};

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
            atomic_compare_exchange_weak_explicit(stripe, &seen, seen + 1, RT_ACQUIRE, memory_order_relaxed)) {
            return seen;
        }
    }
}

static void line_unlock(_Atomic uint32_t *stripe, uint32_t seen) {
    atomic_store_explicit(stripe, seen + 2, RT_RELEASE);
}

/* Returns the line's sequence number. */
static uint32_t line_read(_Atomic uint32_t *stripe, const unsigned char *at, unsigned char *out, uint32_t len) {
    for (unsigned spins = 0;; spin(&spins)) {
        uint32_t seen = atomic_load_explicit(stripe, RT_ACQUIRE);
        if (seen % 2 != 0) {
            continue;
        }
        if (len == DM_LINE) {
            rt_load_words(at, out, DM_LINE / RT_WORD);
        } else {
            rt_load_any(at, out, len);
        }
        /* The data's loads are acquires, so this one is not made before them. */
        if (atomic_load_explicit(stripe, memory_order_relaxed) == seen) {
            return seen;
        }
    }
}

static void line_write(_Atomic uint32_t *stripe, unsigned char *at, const unsigned char *data, uint32_t len) {
    uint32_t seen = line_lock(stripe);
    /* The data's stores are releases, so none is seen before the odd number. */
    if (len == DM_LINE) {
        rt_store_words(at, data, DM_LINE / RT_WORD);
    } else {
        rt_store_any(at, data, len);
    }
    line_unlock(stripe, seen);
}

static inline uint32_t piece_bytes(uint64_t offset, uint64_t end) {
    uint64_t stop = (offset & ~(uint64_t)(DM_LINE - 1)) + DM_LINE;
    return (uint32_t)((stop < end ? stop : end) - offset);
}

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

/* Reads line by line, and keeps the sequence numbers of the first READ_LINES. Returns how many these are. */
static uint32_t lines_read(const struct local *local, const struct dm_verb *verb, uint32_t *seen) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    unsigned char *out = verb->dst;
    uint64_t offset = dm_addr_offset(verb->addr), end = offset + verb->len;
    uint32_t lines = 0;
    for (uint32_t len; offset < end; offset += len, out += len) {
        len = piece_bytes(offset, end);
        uint32_t number = line_read(stripe_of(local, memory, offset), memory->bytes.base + offset, out, len);
        if (lines < READ_LINES) {
            seen[lines++] = number;
        }
    }
    return lines;
}

/* Whether no line that was read had WRITES_MOST writes since, each of which adds 2 to its number. */
static bool was_quick(const struct local *local, const struct dm_verb *verb, const uint32_t *seen, uint32_t lines) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    uint64_t offset = dm_addr_offset(verb->addr);
    for (uint32_t i = 0; i < lines; i++) {
        _Atomic uint32_t *stripe = stripe_of(local, memory, offset + (uint64_t)i * DM_LINE);
        if (atomic_load_explicit(stripe, memory_order_relaxed) - seen[i] >= 2 * WRITES_MOST) {
            return false;
        }
    }
    return true;
}

static void execute_read(const struct local *local, const struct dm_verb *verb) {
    uint32_t seen[READ_LINES], lines;
    do {
        lines = lines_read(local, verb, seen);
    } while (lines > 1 && !was_quick(local, verb, seen, lines));
}

static void execute_write(const struct local *local, const struct dm_verb *verb) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    const unsigned char *data = verb->src;
    uint64_t offset = dm_addr_offset(verb->addr), end = offset + verb->len;
    for (uint32_t len; offset < end; offset += len, data += len) {
        len = piece_bytes(offset, end);
        line_write(stripe_of(local, memory, offset), memory->bytes.base + offset, data, len);
    }
}

/* True if the new value was stored. */
static bool execute_atomic(const struct local *local, const struct dm_verb *verb) {
    const struct local_memory *memory = local_memory_at(local, verb->addr);
    uint64_t offset = dm_addr_offset(verb->addr);
    _Atomic uint32_t *stripe = stripe_of(local, memory, offset);
    unsigned char *at = memory->bytes.base + offset;
    uint32_t seen = line_lock(stripe);
    bool swapped;
    uint64_t found = rt_word_load(at), stored = dm_atomic_apply(verb, found, &swapped);
    if (swapped) {
        rt_word_store(at, stored);
    }
    line_unlock(stripe, seen);
    if (verb->dst) {
        memcpy(verb->dst, &found, sizeof(found));
    }
    return swapped;
}

/* All earlier writes are visible to all threads before any later read. */
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

static unsigned char *cpu_at(const struct dm_ctx *ctx, dm_addr addr) {
    return local_memory_at(local_of(ctx->fabric), addr)->bytes.base + dm_addr_offset(addr);
}

void local_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    rt_bytes_load(cpu_at(ctx, src), dst, len);
}

void local_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    rt_bytes_store(cpu_at(ctx, dst), src, len);
}

uint64_t local_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired) {
    return rt_word_cas(cpu_at(ctx, addr), expect, desired);
}
