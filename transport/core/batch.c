/* SPDX-License-Identifier: Apache-2.0
 *
 * Posting, committing, counting. Everything that a context sends passes through here once, so only this file counts
 * round trips, verbs, bytes and doorbells. Masked atomics are emulated here for transports whose device has none.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "transport/core/core.h"
#include "transport/core/profile.h"

/* Sets of kinds of verbs. */
enum {
    MASKED = 1u << DM_VERB_MASKED_CAS | 1u << DM_VERB_MASKED_FAA,
    WITH_CAS = 1u << DM_VERB_CAS | 1u << DM_VERB_MASKED_CAS,
};

static struct dm_verb *batch_grow(struct dm_ctx *ctx) {
    uint32_t capacity = ctx->batch_capacity ? ctx->batch_capacity * 2 : 8;
    struct dm_verb *batch = capacity <= DM_BATCH_MAX ? realloc(ctx->batch, capacity * sizeof(*batch)) : NULL;
    if (!batch) {
        ctx->batch_error = capacity <= DM_BATCH_MAX ? DM_ERR_NO_MEMORY : DM_ERR_BATCH_FULL;
        return NULL;
    }
    ctx->batch = batch;
    ctx->batch_capacity = capacity;
    return &batch[ctx->batch_count++];
}

static inline struct dm_verb *batch_next(struct dm_ctx *ctx) {
    return dm_likely(ctx->batch_count < ctx->batch_capacity) ? &ctx->batch[ctx->batch_count++] : batch_grow(ctx);
}

/* Appends a verb with the members that all kinds have; NULL when the batch is full. It is filled in place: a struct
 * built on the stack and then copied makes the copy wait for the stores. */
static inline struct dm_verb *post(struct dm_ctx *ctx, enum dm_verb_kind kind, dm_addr addr, uint32_t len) {
    bool atomic = kind != DM_VERB_READ && kind != DM_VERB_WRITE;
    if (dm_unlikely(!dm_range_valid(ctx->fabric, addr, len) || (atomic && addr.bits % 8 != 0))) {
        ctx->batch_error = DM_ERR_ADDRESS;
    }
    struct dm_verb *verb = batch_next(ctx);
    if (dm_likely(verb != NULL)) {
        verb->kind = kind;
        verb->len = len;
        verb->addr = addr;
        ctx->batch_kinds |= 1u << kind;
    }
    return verb;
}

void dm_post_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    struct dm_verb *verb = post(ctx, DM_VERB_READ, src, len);
    if (dm_likely(verb != NULL)) {
        verb->dst = dst;
    }
}

void dm_post_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    struct dm_verb *verb = post(ctx, DM_VERB_WRITE, dst, len);
    if (dm_likely(verb != NULL)) {
        verb->src = src;
    }
}

static void post_atomic(struct dm_ctx *ctx, enum dm_verb_kind kind, dm_addr addr, struct dm_mask op, uint64_t *old) {
    struct dm_verb *verb = post(ctx, kind, addr, 8);
    if (dm_likely(verb != NULL)) {
        verb->dst = old;
        verb->op = op;
    }
}

void dm_post_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired, uint64_t *old) {
    post_atomic(ctx, DM_VERB_CAS, addr, (struct dm_mask){expect, UINT64_MAX, desired, UINT64_MAX}, old);
}

void dm_post_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t *old) {
    post_atomic(ctx, DM_VERB_FAA, addr, (struct dm_mask){.swap = add}, old);
}

void dm_post_masked_cas(struct dm_ctx *ctx, dm_addr addr, struct dm_mask mask, uint64_t *old) {
    post_atomic(ctx, DM_VERB_MASKED_CAS, addr, mask, old);
}

void dm_post_masked_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t boundary, uint64_t *old) {
    post_atomic(ctx, DM_VERB_MASKED_FAA, addr, (struct dm_mask){.swap = add, .compare_mask = boundary}, old);
}

static void batch_clear(struct dm_ctx *ctx) {
    ctx->batch_count = 0;
    ctx->batch_error = 0;
    ctx->batch_kinds = 0;
}

static bool has_kind(const struct dm_ctx *ctx, uint32_t kinds) {
    return (ctx->batch_kinds & kinds) != 0;
}

/* One doorbell for each destination queue pair; a thread has one queue pair to each node. */
static uint32_t count_doorbells(const struct dm_ctx *ctx) {
    if (ctx->batch_count == 1) {
        return 1;
    }
    uint64_t seen[4] = {0};
    uint32_t doorbells = 0;
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        unsigned node = dm_addr_node(ctx->batch[i].addr);
        uint64_t bit = UINT64_C(1) << (node % 64);
        doorbells += !(seen[node / 64] & bit);
        seen[node / 64] |= bit;
    }
    return doorbells;
}

static void count_sent(struct dm_ctx *ctx, bool wait) {
    struct dm_account *account = ctx->account;
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        account->verbs[verb->kind]++;
        if (verb->kind == DM_VERB_READ) {
            account->bytes_read += verb->len;
        } else if (verb->kind == DM_VERB_WRITE) {
            account->bytes_written += verb->len;
        } else {
            account->bytes_read += 8;
            account->bytes_written += 8;
        }
    }
    ctx->thread->verbs += ctx->batch_count;
    account->doorbells += count_doorbells(ctx);
    account->round_trips += wait;
}

/* A plain or masked CAS that found something else. It needs the old value, so those without one are not counted.
 */
static void count_cas_failures(struct dm_ctx *ctx) {
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        bool cas = verb->kind == DM_VERB_CAS || verb->kind == DM_VERB_MASKED_CAS;
        if (cas && verb->dst) {
            uint64_t old;
            memcpy(&old, verb->dst, sizeof(old));
            ctx->account->cas_failures += (old & verb->op.compare_mask) != (verb->op.compare & verb->op.compare_mask);
        }
    }
}

/* A profile may disable what the transport can do. */
bool dm_sends_masked(const struct dm_fabric *fabric) {
    const struct dm_profile *profile = fabric->profile;
    bool can = fabric->has_masked || (fabric->ops->info.caps & DM_CAP_MASKED_ATOMICS);
    return can && (!profile || profile->masked_atomics > 0);
}

/* Sends a batch that has no masked atomic, or whose masked atomics the device has. */
static inline int send_batch(struct dm_ctx *ctx, bool wait) {
    int error = ctx->batch_error ? ctx->batch_error : ctx->pending_error;
    if (dm_unlikely(error || dm_is_over(ctx))) {
        ctx->pending_error = ctx->batch_error ? ctx->pending_error : 0;
        batch_clear(ctx);
        return error ? error : DM_ERR_STOPPED;
    }
    if (ctx->batch_count == 0) {
        return 0;
    }
    count_sent(ctx, wait);
    bool is_traced = dm_is_traced(ctx->fabric);
    if (dm_unlikely(is_traced)) {
        dm_trace_begin(ctx);
    }
    dm_code_leave(ctx);
    int rc = ctx->ops->commit(ctx, wait);
    dm_code_return(ctx);
    if (dm_unlikely(is_traced) && !ctx->ops->traces_verbs) {
        dm_trace_batch(ctx, wait, rc);
    }
    if (rc == 0 && wait && has_kind(ctx, WITH_CAS)) {
        count_cas_failures(ctx);
    }
    batch_clear(ctx);
    return rc;
}

/* For the parts of a batch that is cut: few, so that only `commit` has the code of send_batch. */
static DM_NO_INLINE int send_part(struct dm_ctx *ctx) {
    return send_batch(ctx, true);
}

/* One masked atomic by a loop of plain CAS on the word: each failed attempt is a round trip. */
static int emulate_masked(struct dm_ctx *ctx, struct dm_verb verb) {
    uint64_t found = 0;
    ctx->account->masked_emulated++;
    dm_post_read(ctx, verb.addr, &found, 8);
    DM_TRY(send_part(ctx));
    for (uint32_t attempts = 0;;) {
        bool swapped;
        uint64_t desired = dm_atomic_apply(&verb, found, &swapped);
        if (!swapped) {
            ctx->account->cas_failures++;
            break;
        }
        uint64_t old = 0;
        dm_post_cas(ctx, verb.addr, found, desired, &old);
        DM_TRY(send_part(ctx));
        if (old == found) {
            break;
        }
        found = old;
        DM_TRY(dm_retry(ctx, DM_RETRY_CAS, &attempts));
    }
    if (verb.dst) {
        memcpy(verb.dst, &found, sizeof(found));
    }
    return 0;
}

/* A copy of the batch. The context owns it, as a run may end while the context waits for a part and never returns. */
static const struct dm_verb *copy_batch(struct dm_ctx *ctx) {
    if (ctx->cut_capacity < ctx->batch_count) {
        struct dm_verb *cut = realloc(ctx->cut, ctx->batch_capacity * sizeof(*cut));
        if (!cut) {
            return NULL;
        }
        ctx->cut = cut;
        ctx->cut_capacity = ctx->batch_capacity;
    }
    memcpy(ctx->cut, ctx->batch, ctx->batch_count * sizeof(*ctx->batch));
    return ctx->cut;
}

/* The batch cut at its masked atomics, each part waited for: order is kept, and the additional round trips are
 * counted.
 */
static int commit_emulated(struct dm_ctx *ctx) {
    uint32_t count = ctx->batch_count;
    const struct dm_verb *verbs = copy_batch(ctx);
    if (!verbs) {
        batch_clear(ctx);
        return DM_ERR_NO_MEMORY;
    }
    batch_clear(ctx);
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (verbs[i].kind == DM_VERB_MASKED_CAS || verbs[i].kind == DM_VERB_MASKED_FAA) {
            rc = send_part(ctx);
            rc = rc == 0 ? emulate_masked(ctx, verbs[i]) : rc;
        } else {
            struct dm_verb *again = batch_next(ctx);
            if (again) {
                *again = verbs[i];
                ctx->batch_kinds |= 1u << verbs[i].kind;
            }
        }
    }
    rc = rc == 0 ? send_part(ctx) : rc;
    batch_clear(ctx);
    return rc;
}

static int commit(struct dm_ctx *ctx, bool wait) {
    bool is_cut = has_kind(ctx, MASKED) && !ctx->batch_error && !dm_sends_masked(ctx->fabric);
    return is_cut ? commit_emulated(ctx) : send_batch(ctx, wait);
}

int dm_commit(struct dm_ctx *ctx) {
    return commit(ctx, true);
}

int dm_commit_async(struct dm_ctx *ctx) {
    return commit(ctx, false);
}

int dm_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    dm_post_read(ctx, src, dst, len);
    return commit(ctx, true);
}

int dm_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    dm_post_write(ctx, dst, src, len);
    return commit(ctx, true);
}

int dm_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired, uint64_t *old) {
    uint64_t found = 0;
    dm_post_cas(ctx, addr, expect, desired, old ? old : &found);
    return commit(ctx, true);
}

int dm_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t *old) {
    dm_post_faa(ctx, addr, add, old);
    return commit(ctx, true);
}

int dm_masked_cas(struct dm_ctx *ctx, dm_addr addr, struct dm_mask mask, uint64_t *old) {
    uint64_t found = 0;
    dm_post_masked_cas(ctx, addr, mask, old ? old : &found);
    return commit(ctx, true);
}

int dm_masked_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t boundary, uint64_t *old) {
    dm_post_masked_faa(ctx, addr, add, boundary, old);
    return commit(ctx, true);
}

int dm_retry(struct dm_ctx *ctx, enum dm_retry cause, uint32_t *attempts) {
    ctx->account->retries[cause]++;
    if (dm_is_over(ctx)) {
        return DM_ERR_STOPPED;
    }
    return ++*attempts >= ctx->fabric->config.retry_limit ? DM_ERR_RETRY_LIMIT : 0;
}

enum dm_phase dm_phase(struct dm_ctx *ctx, enum dm_phase phase) {
    enum dm_phase before = ctx->phase;
    if (before != phase && !ctx->is_metered) { /* reading the clock is no work of an index */
        uint64_t now = ctx->ops->now(ctx);
        if (before != DM_PHASE_OTHER) {
            ctx->account->phase_ns[before] += now - ctx->phase_since_ns;
        }
        ctx->phase = phase;
        ctx->phase_since_ns = now;
    }
    return before;
}

void dm_phase_move(struct dm_ctx *ctx, enum dm_phase from, enum dm_phase to, uint64_t ns) {
    /* Modulo 2^64: what counts to `from` may be added only when its phase ends. */
    ctx->account->phase_ns[from] -= from != DM_PHASE_OTHER ? ns : 0;
    ctx->account->phase_ns[to] += to != DM_PHASE_OTHER ? ns : 0;
}

void dm_account_use(struct dm_ctx *ctx, struct dm_account *account) {
    ctx->account = account ? account : &ctx->nowhere;
}

void dm_account_add(struct dm_account *into, const struct dm_account *from) {
    /* The struct is made of uint64_t alone (asserted), so that a new counter cannot be forgotten here. */
    static_assert(sizeof(struct dm_account) % sizeof(uint64_t) == 0, "counters only");
    uint64_t sums[sizeof(struct dm_account) / sizeof(uint64_t)], adds[sizeof(struct dm_account) / sizeof(uint64_t)];
    memcpy(sums, into, sizeof(sums));
    memcpy(adds, from, sizeof(adds));
    for (size_t i = 0; i < DM_ARRAY_LEN(sums); i++) {
        sums[i] += adds[i];
    }
    memcpy(into, sums, sizeof(sums));
}
