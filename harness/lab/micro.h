/* SPDX-License-Identifier: Apache-2.0
 *
 * Micro-benchmarks of a fabric, written against the transport contract alone, so that the same ones run on every
 * transport: latency and rate of one kind of verb, by size, clients, addresses, memory and batch length.
 */
#ifndef DM_HARNESS_LAB_MICRO_H
#define DM_HARNESS_LAB_MICRO_H

#include "transport/fabric.h"

/* What clients do in a loop. */
enum hx_micro_kind {
    HX_MICRO_VERBS,   /* a batch of `batch` verbs of one kind, waited for */
    HX_MICRO_CALL,    /* a call whose handler charges `work_units` of `work` */
    HX_MICRO_UPDATE,  /* work at the client, `reads` reads of `bytes` one by one, then a batch of verbs */
    HX_MICRO_ONE_WAY, /* a write, until the memory node's CPU sees it */
    HX_MICRO_CHARGE,  /* work at the memory node alone */
    HX_MICRO_SWAP, /* work at the client; then read a word, `reads` reads of `bytes`, compare-and-swap the word, until
                      that succeeds: an update without a lock */
};

enum { HX_MICRO_SETTINGS = 2 };

struct hx_micro {
    enum hx_micro_kind kind;
    enum dm_verb_kind verb;
    enum dm_space space;
    uint32_t bytes;
    unsigned machines, threads, coroutines; /* compute nodes; threads on each; clients on each thread. 0: 1 */
    unsigned mn_cores;                      /* 0: 1 */
    uint32_t batch;                         /* 0: 1 */
    uint64_t stride, addresses;             /* distance and number of the addresses; 0: 64 bytes, 4096 */
    bool own_address;                       /* client i uses only address i % addresses; else each verb a random one */
    double skew;                            /* Zipf constant of the random ones; 0: uniform */
    uint64_t ranks;                         /* of the Zipf distribution, hashed to addresses; 0: `addresses` */
    enum dm_verb_kind other;                /* `other_percent` of the verbs are of this kind */
    unsigned other_percent;
    bool closed; /* the clients of a thread begin each step together: one verb and one doorbell each, all waited for */
    unsigned reads;
    enum dm_work work;
    uint32_t work_units;
    uint64_t count;                                /* verbs in all; 0: enough for the number of clients */
    struct dm_setting settings[HX_MICRO_SETTINGS]; /* options of the transport; a name of NULL ends them */
};

struct hx_micro_result {
    double mops;           /* verbs, calls or updates a second, in millions */
    double latency_us;     /* mean of a batch, call or update */
    double p50_us, p99_us; /* of them; 0 for HX_MICRO_ONE_WAY */
};

/* The fabric that a micro-benchmark runs on. */
struct hx_micro_fabric {
    const char *transport, *profile;
    uint64_t seed;
    bool is_virtual;
    unsigned threads_max; /* of a real-time transport: the threads of the host */
};

int hx_micro_run(const struct hx_micro_fabric *fabric, const struct hx_micro *micro, struct hx_micro_result *result,
                 struct dm_err *err);

#endif
