/* SPDX-License-Identifier: Apache-2.0
 *
 * What verbs do to bytes. Memory holds the state after all writes that have begun. A write swaps its payload with
 * memory when it begins, so while it is in progress its payload holds, line by line, what was there before; line i
 * of a write lands at a moment of its own, and so is each line of a read sampled. A read that overlaps a write in time
 * compares those moments and takes the older bytes where it must. That is exact for any number of overlapping accesses,
 * and costs one check of a short list when nothing overlaps.
 *
 * Order of writes to one line: by (moment, tag). A write that lands before one that has already begun goes under it: it
 * is swapped with the other's older bytes instead of with memory.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/sim/sim.h"

struct span {
    uint64_t from, to; /* offsets, to exclusive */
};

static struct span op_span(const struct sim_op *op) {
    uint64_t offset = dm_addr_offset(op->addr);
    return (struct span){offset, offset + op->len};
}

static uint64_t line_count(struct span span) {
    return (span.to - 1) / DM_LINE - span.from / DM_LINE + 1;
}

/* When the line at offset `line` (aligned) of an access in progress is sampled or lands. */
uint64_t sim_line_moment(const struct sim *sim, const struct sim_op *op, uint64_t line) {
    struct span span = op_span(op);
    uint64_t lines = line_count(span), index = (line - (span.from & ~(uint64_t)(DM_LINE - 1))) / DM_LINE;
    uint64_t window = op->end - op->begin;
    if (lines == 1 || window == 0) {
        return op->begin;
    }
    unsigned order = op->kind == DM_VERB_READ ? sim->options->read_line_order : sim->options->write_line_order;
    switch (order) {
    case SIM_ASCENDING:
        return op->begin + window * index / (lines - 1);
    case SIM_DESCENDING:
        return op->begin + window * (lines - 1 - index) / (lines - 1);
    default:
        return op->begin + (uint64_t)(((unsigned __int128)dm_mix64(op->line_seed + index) * (window + 1)) >> 64);
    }
}

static bool overlaps(const struct sim_op *op, uint64_t from, uint64_t to) {
    struct span span = op_span(op);
    return span.from < to && from < span.to;
}

static bool after(uint64_t moment_a, uint32_t tag_a, uint64_t moment_b, uint32_t tag_b) {
    return moment_a != moment_b ? moment_a > moment_b : tag_a > tag_b;
}

static void list_remove(struct sim_op **list, uint32_t *count, struct sim_op *op) {
    struct sim_op *last = list[--*count];
    list[op->list_index] = last;
    last->list_index = op->list_index;
    op->listed = false;
}

void sim_memory_forget(struct sim_memory *memory, struct sim_op *op) {
    if (op->kind == DM_VERB_READ) {
        list_remove(memory->reads, &memory->read_count, op);
    } else if (op->kind != DM_VERB_WRITE) {
        list_remove(memory->atomics, &memory->atomic_count, op);
    } else {
        list_remove(memory->writes, &memory->write_count, op);
    }
}

static void list_clear(struct sim_op **list, uint32_t *count) {
    while (*count > 0) {
        list[--*count]->listed = false;
    }
}

void sim_memory_clear(struct sim_memory *memory) {
    sim_bytes_clear(&memory->bytes);
    list_clear(memory->reads, &memory->read_count);
    list_clear(memory->writes, &memory->write_count);
    list_clear(memory->atomics, &memory->atomic_count);
}

static void list_add(struct sim *sim, struct sim_op ***list, uint32_t *count, uint32_t *capacity, struct sim_op *op) {
    if (*count == *capacity) {
        uint32_t wanted = *capacity ? *capacity * 2 : 64;
        struct sim_op **grown = realloc(*list, wanted * sizeof(*grown));
        if (!grown) {
            sim->out_of_memory = true;
            return;
        }
        *list = grown;
        *capacity = wanted;
    }
    op->list_index = *count;
    op->listed = true;
    (*list)[(*count)++] = op;
}

/* Removes finished accesses from a list; true if one in progress touches [from, to). */
static bool any_overlap(uint64_t now, struct sim_op **list, uint32_t *count, uint64_t from, uint64_t to) {
    bool found = false;
    for (uint32_t i = *count; i-- > 0;) {
        struct sim_op *op = list[i];
        if (op->end < now) {
            list_remove(list, count, op);
        } else {
            found = found || overlaps(op, from, to);
        }
    }
    return found;
}

/* The next write in progress below (moment, tag), going back in time, that lands on [from, to) of the line after `at`.
 */
static struct sim_op *latest_before(const struct sim *sim, const struct sim_memory *memory, uint64_t from, uint64_t to,
                                    uint64_t at, const struct sim_op *below, uint64_t *below_moment) {
    uint64_t line = from & ~(uint64_t)(DM_LINE - 1);
    struct sim_op *best = NULL;
    uint64_t best_moment = 0;
    for (uint32_t i = 0; i < memory->write_count; i++) {
        struct sim_op *op = memory->writes[i];
        if (!overlaps(op, from, to)) {
            continue;
        }
        uint64_t moment = sim_line_moment(sim, op, line);
        if (moment <= at || (below && !after(*below_moment, below->tag, moment, op->tag))) {
            continue;
        }
        if (!best || after(moment, op->tag, best_moment, best->tag)) {
            best = op;
            best_moment = moment;
        }
    }
    *below_moment = best_moment;
    return best;
}

/* What [from, to), within one line, held at the moment `at`. */
static void view(const struct sim *sim, const struct sim_memory *memory, uint64_t from, uint64_t to, uint64_t at,
                 unsigned char *out) {
    sim_bytes_read(&memory->bytes, from, out, to - from);
    uint64_t moment = UINT64_MAX;
    struct sim_op *op = NULL;
    while ((op = latest_before(sim, memory, from, to, at, op, &moment))) {
        struct span span = op_span(op);
        uint64_t lo = span.from > from ? span.from : from, hi = span.to < to ? span.to : to;
        memcpy(out + (lo - from), op->payload + (lo - span.from), hi - lo);
    }
}

/* Brings the lines of a read that are still to be sampled, and lie in [from, to), up to date. Those sampled before now
 * are settled: what landed after them may no longer be listed as in progress. */
static void view_lines(const struct sim *sim, const struct sim_memory *memory, const struct sim_op *read, uint64_t from,
                       uint64_t to) {
    struct span span = op_span(read);
    from = from > span.from ? from : span.from;
    to = to < span.to ? to : span.to;
    for (uint64_t at = from; at < to;) {
        uint64_t line = at & ~(uint64_t)(DM_LINE - 1);
        uint64_t stop = line + DM_LINE < to ? line + DM_LINE : to;
        uint64_t moment = sim_line_moment(sim, read, line);
        if (moment >= sim->now) {
            view(sim, memory, at, stop, moment, (unsigned char *)read->dst + (at - span.from));
        }
        at = stop;
    }
}

/* The write in progress that covers byte `offset` and lands soonest after (moment, tag). */
static struct sim_op *soonest_after(const struct sim *sim, const struct sim_memory *memory, uint64_t offset,
                                    uint64_t moment, uint32_t tag) {
    uint64_t line = offset & ~(uint64_t)(DM_LINE - 1);
    struct sim_op *best = NULL;
    uint64_t best_moment = 0;
    for (uint32_t i = 0; i < memory->write_count; i++) {
        struct sim_op *op = memory->writes[i];
        if (!overlaps(op, offset, offset + 1)) {
            continue;
        }
        uint64_t its = sim_line_moment(sim, op, line);
        if (after(its, op->tag, moment, tag) && (!best || after(best_moment, best->tag, its, op->tag))) {
            best = op;
            best_moment = its;
        }
    }
    return best;
}

/* Puts data of [from, to), within one line, at its position in the order of writes, under those that land later. */
static void insert_under(const struct sim *sim, struct sim_memory *memory, uint64_t from, uint64_t to, uint64_t moment,
                         uint32_t tag, unsigned char *data) {
    for (uint64_t at = from; at < to; at++) {
        struct sim_op *later = soonest_after(sim, memory, at, moment, tag);
        unsigned char *own = data + (at - from);
        if (later) {
            unsigned char *older = later->payload + (at - op_span(later).from), held = *own;
            *own = *older;
            *older = held;
        } else {
            sim_bytes_swap(&memory->bytes, at, own, 1);
        }
    }
}

static void patch_reads(const struct sim *sim, struct sim_memory *memory, uint64_t from, uint64_t to) {
    for (uint32_t i = 0; i < memory->read_count; i++) {
        if (overlaps(memory->reads[i], from, to)) {
            view_lines(sim, memory, memory->reads[i], from, to);
        }
    }
}

void sim_memory_read(struct sim *sim, struct sim_memory *memory, struct sim_op *op) {
    struct span span = op_span(op);
    if (dm_unlikely(memory->write_count > 0) &&
        any_overlap(sim->now, memory->writes, &memory->write_count, span.from, span.to)) {
        view_lines(sim, memory, op, span.from, span.to);
    } else {
        sim_bytes_read(&memory->bytes, span.from, op->dst, op->len);
    }
    if (op->end > op->begin && line_count(span) > 1) {
        list_add(sim, &memory->reads, &memory->read_count, &memory->read_capacity, op);
    }
}

void sim_memory_write(struct sim *sim, struct sim_memory *memory, struct sim_op *op) {
    struct span span = op_span(op);
    bool under =
        memory->write_count > 0 && any_overlap(sim->now, memory->writes, &memory->write_count, span.from, span.to);
    if (dm_unlikely(under)) {
        for (uint64_t at = span.from; at < span.to;) {
            uint64_t line = at & ~(uint64_t)(DM_LINE - 1);
            uint64_t stop = line + DM_LINE < span.to ? line + DM_LINE : span.to;
            insert_under(sim, memory, at, stop, sim_line_moment(sim, op, line), op->tag,
                         op->payload + (at - span.from));
            at = stop;
        }
    } else {
        sim_bytes_swap(&memory->bytes, span.from, op->payload, op->len);
    }
    if (op->end > op->begin && line_count(span) > 1) {
        list_add(sim, &memory->writes, &memory->write_count, &memory->write_capacity, op);
    }
    if (memory->read_count > 0 && any_overlap(sim->now, memory->reads, &memory->read_count, span.from, span.to)) {
        patch_reads(sim, memory, span.from, span.to);
    }
}

/* A store of at most one line that lands at this moment. */
static void store_now(struct sim *sim, struct sim_memory *memory, uint64_t from, uint64_t to, const void *data) {
    unsigned char bytes[DM_LINE];
    memcpy(bytes, data, to - from);
    if (memory->write_count > 0 && any_overlap(sim->now, memory->writes, &memory->write_count, from, to)) {
        /* Tag 0: before a write whose line lands at the same moment. */
        insert_under(sim, memory, from, to, sim->now, 0, bytes);
    } else {
        sim_bytes_write(&memory->bytes, from, bytes, to - from);
    }
    if (memory->read_count > 0 && any_overlap(sim->now, memory->reads, &memory->read_count, from, to)) {
        patch_reads(sim, memory, from, to);
    }
}

static void load_now(struct sim *sim, struct sim_memory *memory, uint64_t from, uint64_t to, void *out) {
    if (memory->write_count > 0 && any_overlap(sim->now, memory->writes, &memory->write_count, from, to)) {
        view(sim, memory, from, to, sim->now, out);
    } else {
        sim_bytes_read(&memory->bytes, from, out, to - from);
    }
}

void sim_memory_hold(struct sim *sim, struct sim_memory *memory, struct sim_op *op) {
    list_add(sim, &memory->atomics, &memory->atomic_count, &memory->atomic_capacity, op);
}

/* A CPU is about to store into [from, to): atomics that have read their word and not yet written it do not see it. */
static void sample_atomics(struct sim *sim, struct sim_memory *memory, uint64_t from, uint64_t to) {
    for (uint32_t i = 0; i < memory->atomic_count; i++) {
        struct sim_op *op = memory->atomics[i];
        uint64_t hold = op->end - op->begin;
        if (overlaps(op, from, to) && !op->sampled && op->begin <= sim->now + hold) {
            op->sampled = true;
            load_now(sim, memory, dm_addr_offset(op->addr), dm_addr_offset(op->addr) + 8, &op->line_seed);
        }
    }
}

void sim_memory_atomic(struct sim *sim, struct sim_memory *memory, struct sim_op *op) {
    struct dm_verb verb = {.kind = op->kind, .op = op->op};
    uint64_t from = dm_addr_offset(op->addr), found;
    load_now(sim, memory, from, from + 8, &found);
    if (dm_unlikely(op->sampled)) {
        found = op->line_seed;
    }
    bool swapped;
    uint64_t stored = dm_atomic_apply(&verb, found, &swapped);
    if (swapped) {
        store_now(sim, memory, from, from + 8, &stored);
    }
    if (op->dst) {
        memcpy(op->dst, &found, sizeof(found));
    }
    if (dm_unlikely(dm_is_traced(sim->fabric))) {
        sim_trace_found(sim, op, &verb, found);
    }
}

void sim_memory_cpu_read(struct sim *sim, struct sim_memory *memory, uint64_t offset, void *dst, uint32_t len) {
    for (uint64_t at = offset, end = offset + len; at < end;) {
        uint64_t line = (at & ~(uint64_t)(DM_LINE - 1)) + DM_LINE, stop = line < end ? line : end;
        load_now(sim, memory, at, stop, (unsigned char *)dst + (at - offset));
        at = stop;
    }
}

void sim_memory_cpu_write(struct sim *sim, struct sim_memory *memory, uint64_t offset, const void *src, uint32_t len) {
    for (uint64_t at = offset, end = offset + len; at < end;) {
        uint64_t line = (at & ~(uint64_t)(DM_LINE - 1)) + DM_LINE, stop = line < end ? line : end;
        if (dm_unlikely(memory->atomic_count > 0)) {
            sample_atomics(sim, memory, at, stop);
        }
        store_now(sim, memory, at, stop, (const unsigned char *)src + (at - offset));
        at = stop;
    }
}
