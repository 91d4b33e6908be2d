/* SPDX-License-Identifier: Apache-2.0
 *
 * YCSB's core workload: chooses the operation, then the key, then the scan length, in the order in which YCSB draws
 * them. All streams share the insert counter and, for the distribution `sequential`, its counter.
 */
#ifndef DM_WORKLOADS_CORE_WORKLOAD_H
#define DM_WORKLOADS_CORE_WORKLOAD_H

#include <stdatomic.h>

#include "workloads/acknowledged_counter.h"
#include "workloads/generators.h"
#include "workloads/keyset.h"
#include "workloads/spec.h"

enum { WL_PIECES_MAX = 8 };
/* A distribution in pieces: each piece is a range of key numbers, has a weight in units of 1 / total, and is uniform
 * inside. */
struct wl_pieces {
    unsigned count;
    uint64_t total;
    uint64_t limit[WL_PIECES_MAX]; /* cumulative weights */
    struct wl_uniform inside[WL_PIECES_MAX];
};

struct wl_core {
    const struct wl_keymap *map;
    struct wl_discrete kinds;
    enum wl_dist dist;
    struct wl_uniform uniform;
    struct wl_scrambled scrambled;
    struct wl_zipf clustered;
    struct wl_latest latest; /* its state at the start; each stream works on a copy */
    struct wl_hotspot hotspot;
    struct wl_exponential exponential;
    struct wl_pieces pieces;
    bool scan_zipfian;
    struct wl_uniform scan_uniform;
    struct wl_zipf scan_zipf;
    _Alignas(64) _Atomic uint64_t sequence;
    struct wl_ack ack;
    uint64_t part, parts; /* see wl_partition; 0 of 1 */
    uint64_t clients;
    uint64_t range;            /* key numbers in a client's range of inserts; 0: clients share one sequence */
    uint64_t trace_ops;        /* as in struct wl_spec */
    bool upserts;              /* as in struct wl_spec */
    _Atomic uint64_t *present; /* upserts: a bit for each of the first key numbers, 1 once its key is present */
    uint64_t present_count;
};

/* `operations` is the number that all streams of all clients together will draw. YCSB widens the Zipfian's range by the
 * inserts expected among them, and they determine the ranges of clients. 0, or DM_ERR_NO_MEMORY. */
int wl_core_open(struct wl_core *core, const struct wl_spec *spec, const struct wl_keymap *map, uint64_t operations,
                 unsigned clients);

/* Releases what the core workload has allocated; also after a failure, and of a zeroed one. */
void wl_core_close(struct wl_core *core);

/* Allocates and fills `present`. Only with upserts. 0, or DM_ERR_NO_MEMORY. */
int wl_core_present_make(struct wl_core *core, const struct wl_keymap *map);

struct wl_core_stream {
    struct wl_core *core;
    struct dm_prng prng;
    struct wl_latest latest;
    struct dm_prng trace_start; /* the random stream at the beginning of the trace */
    uint64_t client;
    uint64_t drawn;          /* operations of this turn of the trace */
    uint64_t inserted;       /* into ranges of its own, in all turns */
    uint64_t inserted_trace; /* the same of this turn */
    bool is_waiting;         /* its insert has no number yet: too many later ones are not acknowledged */
};
struct wl_core_stream wl_core_stream_make(struct wl_core *core, struct dm_prng prng, unsigned client);

/* The next operation: 0, or DM_ERR_RETRY_LIMIT (see wl_ack_next): the next call returns the same insert. */
int wl_core_next(struct wl_core_stream *stream, struct wl_op *op);

/* Where the ticket of an upsert of a chosen key begins: below are those of inserts. */
#define WL_CHOSEN (UINT64_C(1) << 63)

void wl_core_upserted(struct wl_core *core, uint64_t number);

/* Acknowledges an insert, whether it succeeded or not, as YCSB does, and notes the key of an upsert. Does nothing for
 * other operations. */
static inline void wl_core_done(struct wl_core *core, const struct wl_op *op, int outcome) {
    if (op->upsert && (op->ticket & WL_CHOSEN) != 0) {
        if (outcome == 0) {
            wl_core_upserted(core, op->ticket - WL_CHOSEN);
        }
    } else if (op->kind == WL_INSERT && core->range == 0) {
        wl_ack_done(&core->ack, op->ticket);
    }
}

#endif
