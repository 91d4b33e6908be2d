/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one micro-benchmark: a fabric of one memory node, clients in a closed loop, and the clock of the fabric.
 */
#include "harness/lab/micro.h"

#include <stdatomic.h>
#include <string.h>

#include "common/compiler.h"
#include "harness/run/interrupt.h"

enum { METHOD = DM_METHOD_FIRST, FIRST_BYTE = 4096, VERBS_PER_CLIENT = 400, VERBS_LEAST = 4000, UPDATE_BYTES = 64 };

struct bench {
    struct hx_micro micro;
    _Atomic uint64_t left, clients;
    _Atomic uint64_t done, waits, wait_ns, begin_ns, end_ns;
    _Atomic int failure;
};

static unsigned at_least_1(unsigned count) {
    return count > 0 ? count : 1;
}

struct client {
    struct hx_micro micro;
    uint64_t number;
    unsigned char *buffer;
};

static dm_addr next_address(struct dm_ctx *ctx, const struct client *client) {
    const struct hx_micro *micro = &client->micro;
    uint64_t first = micro->space == DM_DRAM ? FIRST_BYTE : 0;
    uint64_t number =
        micro->own_address ? client->number % micro->addresses : dm_prng_below(dm_random(ctx), micro->addresses);
    return dm_addr_make(0, micro->space, first + number * micro->stride);
}

static void post(struct dm_ctx *ctx, const struct client *client, uint32_t bytes) {
    const struct hx_micro *micro = &client->micro;
    unsigned char *buffer = client->buffer;
    dm_addr addr = next_address(ctx, client);
    if (micro->verb == DM_VERB_READ) {
        dm_post_read(ctx, addr, buffer, bytes);
    } else if (micro->verb == DM_VERB_WRITE) {
        dm_post_write(ctx, addr, buffer, bytes);
    } else if (micro->verb == DM_VERB_CAS) {
        dm_post_cas(ctx, addr, 0, 0, (uint64_t *)(void *)buffer);
    } else {
        dm_post_faa(ctx, addr, 1, (uint64_t *)(void *)buffer);
    }
}

static int verbs_once(struct dm_ctx *ctx, const struct client *client, uint32_t bytes) {
    if (client->micro.work_units > 0) {
        dm_charge(ctx, client->micro.work, client->micro.work_units);
    }
    for (uint32_t i = 0; i < client->micro.batch; i++) {
        post(ctx, client, bytes);
    }
    return dm_commit(ctx);
}

static int update_once(struct dm_ctx *ctx, const struct client *client) {
    for (unsigned i = 0; i < client->micro.reads; i++) {
        DM_TRY(dm_read(ctx, next_address(ctx, client), client->buffer, client->micro.bytes));
    }
    return verbs_once(ctx, client, UPDATE_BYTES);
}

static int once(struct dm_ctx *ctx, const struct client *client) {
    const struct hx_micro *micro = &client->micro;
    switch (micro->kind) {
    case HX_MICRO_CALL: {
        uint32_t capacity = 64;
        return dm_call(ctx, 0, METHOD, client->buffer, micro->bytes, client->buffer + DM_CALL_MAX, &capacity);
    }
    case HX_MICRO_UPDATE:
        return update_once(ctx, client);
    case HX_MICRO_CHARGE:
        dm_charge(ctx, micro->work, micro->work_units);
        return 0;
    default:
        return verbs_once(ctx, client, micro->bytes);
    }
}

static int handler(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    const struct bench *bench = arg;
    (void)req;
    (void)req_len;
    dm_charge(ctx, bench->micro.work, bench->micro.work_units);
    memset(resp, 0, 8);
    *resp_len = 8;
    return 0;
}

static void keep_extremes(struct bench *bench, uint64_t begin, uint64_t end) {
    uint64_t seen = atomic_load(&bench->begin_ns);
    while (begin < seen && !atomic_compare_exchange_weak(&bench->begin_ns, &seen, begin)) {
    }
    seen = atomic_load(&bench->end_ns);
    while (end > seen && !atomic_compare_exchange_weak(&bench->end_ns, &seen, end)) {
    }
}

/* Draws the verbs of one step from those that remain; false when none remain. */
static bool take_step(struct bench *bench) {
    uint64_t step = bench->micro.batch, left = atomic_load(&bench->left);
    while (left >= step) {
        if (atomic_compare_exchange_weak(&bench->left, &left, left - step)) {
            return true;
        }
    }
    return false;
}

static void client_main(struct dm_ctx *ctx, void *arg) {
    struct bench *bench = arg;
    struct client client = {.micro = bench->micro,
                            .number = atomic_fetch_add(&bench->clients, 1),
                            .buffer = dm_local_alloc(ctx, 65536 + DM_CALL_MAX)};
    int rc = client.buffer ? 0 : DM_ERR_NO_MEMORY;
    uint64_t begin = dm_now(ctx), last = begin, steps = 0;
    while (rc == 0 && take_step(bench)) {
        rc = once(ctx, &client);
        last = dm_now(ctx);
        steps++;
    }
    if (rc < 0) {
        atomic_store(&bench->failure, rc);
    }
    atomic_fetch_add(&bench->done, steps * bench->micro.batch);
    atomic_fetch_add(&bench->waits, steps);
    atomic_fetch_add(&bench->wait_ns, last - begin);
    keep_extremes(bench, begin, last);
}

/* ---- one way ---------------------------------------------------------------------------------------------------- */

struct one_way {
    struct bench *bench;
    _Atomic uint64_t seen_ns, round;
};

static struct one_way one_way;

enum { ROUNDS = 200, POLL_NS = 5 };

/* On the memory node: polls the word until it has the round's number. */
static void watcher_main(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t word = 0;
        while (word != round) {
            if (dm_sleep(ctx, POLL_NS) < 0 || atomic_load(&one_way.bench->failure) < 0) {
                return;
            }
            dm_cpu_read(ctx, dm_addr_make(0, DM_DRAM, FIRST_BYTE), &word, sizeof(word));
        }
        atomic_store(&one_way.seen_ns, dm_now(ctx));
        atomic_store(&one_way.round, round);
    }
}

static void writer_main(struct dm_ctx *ctx, void *arg) {
    struct bench *bench = arg;
    uint64_t *word = dm_local_alloc(ctx, bench->micro.bytes < 8 ? 8 : bench->micro.bytes);
    int rc = word ? 0 : DM_ERR_NO_MEMORY;
    uint64_t total = 0;
    for (uint64_t round = 1; rc == 0 && round <= ROUNDS; round++) {
        *word = round;
        uint64_t begin = dm_now(ctx);
        rc = dm_write(ctx, dm_addr_make(0, DM_DRAM, FIRST_BYTE), word, bench->micro.bytes);
        while (rc == 0 && atomic_load(&one_way.round) != round) {
            rc = dm_sleep(ctx, 100);
        }
        total += atomic_load(&one_way.seen_ns) - begin;
    }
    if (rc < 0) {
        atomic_store(&bench->failure, rc);
    }
    atomic_store(&bench->waits, ROUNDS);
    atomic_store(&bench->wait_ns, total);
    atomic_store(&bench->begin_ns, 0);
    atomic_store(&bench->end_ns, total);
    atomic_store(&bench->done, ROUNDS);
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static void fill_defaults(struct hx_micro *micro, const struct hx_micro_fabric *fabric) {
    micro->machines = at_least_1(micro->machines);
    micro->threads = at_least_1(micro->threads);
    micro->coroutines = at_least_1(micro->coroutines);
    micro->mn_cores = at_least_1(micro->mn_cores);
    micro->batch = at_least_1(micro->batch);
    if (!fabric->is_virtual && micro->machines * micro->threads > fabric->threads_max) {
        /* Limits threads to those of the host; the number of clients stays the same. */
        unsigned clients = micro->machines * micro->threads * micro->coroutines;
        micro->machines = 1;
        micro->threads = at_least_1(fabric->threads_max);
        micro->coroutines = (clients + micro->threads - 1) / micro->threads;
    }
    if (micro->addresses == 0) {
        micro->addresses = micro->bytes > 4096 ? 64 : 4096;
        micro->stride = micro->bytes > 64 ? (micro->bytes + 63) / 64 * 64 : 64;
    }
    if (micro->count == 0) {
        uint64_t clients = (uint64_t)micro->machines * micro->threads * micro->coroutines;
        uint64_t wanted = clients * VERBS_PER_CLIENT;
        micro->count = wanted > VERBS_LEAST ? wanted : VERBS_LEAST;
        micro->count = micro->count > 200000 ? 200000 : micro->count;
        micro->count = micro->count < clients * micro->batch * 20 ? clients * micro->batch * 20 : micro->count;
    }
}

static int clients_start(struct dm_fabric *fabric, struct bench *bench) {
    const struct hx_micro *micro = &bench->micro;
    unsigned first = dm_first_cn(dm_fabric_topology(fabric));
    if (micro->kind == HX_MICRO_CHARGE) {
        return dm_spawn(fabric, 0, 0, client_main, bench);
    }
    if (micro->kind == HX_MICRO_ONE_WAY) {
        one_way.bench = bench;
        atomic_store(&one_way.round, 0);
        DM_TRY(dm_spawn(fabric, 0, 0, watcher_main, NULL));
        return dm_spawn(fabric, first, 0, writer_main, bench);
    }
    for (unsigned machine = 0; machine < micro->machines; machine++) {
        for (unsigned i = 0; i < micro->threads * micro->coroutines; i++) {
            DM_TRY(dm_spawn(fabric, first + machine, i / micro->coroutines, client_main, bench));
        }
    }
    return 0;
}

int hx_micro_run(const struct hx_micro_fabric *where, const struct hx_micro *micro, struct hx_micro_result *result,
                 struct dm_err *err) {
    struct bench bench = {.micro = *micro, .begin_ns = UINT64_MAX};
    fill_defaults(&bench.micro, where);
    atomic_store(&bench.left, bench.micro.count);
    struct dm_fabric_config config = {
        .transport = where->transport,
        .profile = where->profile,
        .seed = where->seed,
        .topology = {.mns = 1,
                     .cns = bench.micro.machines,
                     .mn_cores = bench.micro.mn_cores,
                     .clients = bench.micro.machines * bench.micro.threads * bench.micro.coroutines,
                     .clients_per_thread = bench.micro.coroutines,
                     .mn_bytes = FIRST_BYTE + bench.micro.addresses * bench.micro.stride + (1 << 20),
                     .chip_bytes = 1 << 20}};
    struct dm_fabric *fabric = NULL;
    DM_TRY(dm_fabric_open(&config, &fabric, err));
    uint64_t chip = dm_fabric_topology(fabric)->chip_bytes, needed = bench.micro.addresses * bench.micro.stride;
    int rc = bench.micro.space == DM_CHIP && needed > chip
                 ? dm_fail(err, DM_ERR_UNSUPPORTED, "%llu bytes of on-chip memory are wanted, the device has %llu",
                           (unsigned long long)needed, (unsigned long long)chip)
                 : dm_register(fabric, 0, METHOD, handler, &bench);
    dm_fabric_measure(fabric);
    rc = rc < 0 ? rc : clients_start(fabric, &bench);
    hx_interrupt_watch(fabric);
    rc = rc < 0 ? rc : dm_fabric_run(fabric, err);
    hx_interrupt_watch(NULL);
    dm_fabric_close(fabric);
    if (rc == 0 && atomic_load(&bench.failure) < 0) {
        rc = dm_fail(err, atomic_load(&bench.failure), "a micro-benchmark's verb failed: %s",
                     dm_code_text(atomic_load(&bench.failure)));
    }
    double ns = (double)(atomic_load(&bench.end_ns) - atomic_load(&bench.begin_ns));
    double waits = (double)atomic_load(&bench.waits);
    *result = (struct hx_micro_result){
        .mops = ns > 0 ? (double)atomic_load(&bench.done) * 1e3 / ns : 0,
        .latency_us = waits > 0 ? (double)atomic_load(&bench.wait_ns) / 1e3 / waits : 0,
    };
    return rc;
}
