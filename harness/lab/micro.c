/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one micro-benchmark: a fabric of one memory node, clients in a closed loop, and the clock of the fabric.
 */
#include "harness/lab/micro.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "harness/run/interrupt.h"
#include "workloads/generators.h"

enum { METHOD = DM_METHOD_FIRST, FIRST_BYTE = 4096, VERBS_PER_CLIENT = 400, VERBS_LEAST = 4000, UPDATE_BYTES = 64 };

/* The clients of a thread, which begin each step together. */
struct round {
    struct dm_mutex mutex;
    struct dm_cond all_here;
    unsigned here;
    uint64_t number;
    bool is_last; /* no verbs remain for another one */
};

struct bench {
    struct hx_micro micro;
    struct wl_zipf zipf;
    struct round *rounds; /* of closed ones: one for each thread */
    uint32_t *latency_ns; /* of each step, in the order in which they ended */
    uint64_t steps_at_most;
    _Atomic uint64_t left, clients;
    _Atomic uint64_t done, waits, wait_ns, begin_ns, end_ns;
    _Atomic int failure;
};

static unsigned at_least_1(unsigned count) {
    return count > 0 ? count : 1;
}

static uint64_t clients_of(const struct hx_micro *micro) {
    return (uint64_t)micro->machines * micro->threads * micro->coroutines;
}

struct client {
    struct hx_micro micro;
    const struct wl_zipf *zipf;
    uint64_t number;
    unsigned char *buffer;
};

static dm_addr next_address(struct dm_ctx *ctx, const struct client *client) {
    const struct hx_micro *micro = &client->micro;
    uint64_t first = micro->space == DM_DRAM ? FIRST_BYTE : 0;
    uint64_t number = client->number;
    if (micro->skew > 0) {
        number = dm_mix64(wl_zipf_next(client->zipf, dm_random(ctx))); /* hot words are anywhere */
    } else if (!micro->own_address) {
        number = dm_prng_below(dm_random(ctx), micro->addresses);
    }
    return dm_addr_make(0, micro->space, first + number % micro->addresses * micro->stride);
}

static void post(struct dm_ctx *ctx, const struct client *client, uint32_t bytes) {
    const struct hx_micro *micro = &client->micro;
    unsigned char *buffer = client->buffer;
    dm_addr addr = next_address(ctx, client);
    bool is_other = micro->other_percent > 0 && dm_prng_below(dm_random(ctx), 100) < micro->other_percent;
    enum dm_verb_kind verb = is_other ? micro->other : micro->verb;
    if (verb == DM_VERB_READ) {
        dm_post_read(ctx, addr, buffer, bytes);
    } else if (verb == DM_VERB_WRITE) {
        dm_post_write(ctx, addr, buffer, bytes);
    } else if (verb == DM_VERB_CAS) {
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

static int swap_once(struct dm_ctx *ctx, const struct client *client) {
    const struct hx_micro *micro = &client->micro;
    dm_addr addr = next_address(ctx, client);
    uint64_t *word = (uint64_t *)(void *)client->buffer, expect;
    do {
        if (micro->work_units > 0) {
            dm_charge(ctx, micro->work, micro->work_units);
        }
        DM_TRY(dm_read(ctx, addr, word, sizeof(*word)));
        expect = *word;
        for (unsigned i = 0; i < micro->reads; i++) {
            DM_TRY(dm_read(ctx, next_address(ctx, client), word, micro->bytes));
        }
        DM_TRY(dm_cas(ctx, addr, expect, expect + 1, word));
    } while (*word != expect);
    return 0;
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
    case HX_MICRO_SWAP:
        return swap_once(ctx, client);
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

/* Draws the verbs of `clients` steps from those that remain; false when too few remain. */
static bool take_steps(struct bench *bench, unsigned clients) {
    uint64_t wanted = (uint64_t)bench->micro.batch * clients, left = atomic_load(&bench->left);
    while (left >= wanted) {
        if (atomic_compare_exchange_weak(&bench->left, &left, left - wanted)) {
            return true;
        }
    }
    return false;
}

/* Waits until all clients of the thread have ended their step; the last one draws the verbs of the next. A client that
 * failed comes no more, and the others do not wait for it. Returns 1 when no verbs remain. */
static int round_end(struct dm_ctx *ctx, struct bench *bench) {
    struct round *round =
        &bench->rounds[(dm_node(ctx) - dm_first_cn(dm_topology(ctx))) * bench->micro.threads + dm_thread(ctx)];
    DM_TRY(dm_mutex_lock(ctx, &round->mutex));
    int rc = 0;
    uint64_t number = round->number;
    if (++round->here == bench->micro.coroutines || atomic_load(&bench->failure) < 0) {
        round->here = 0;
        round->number++;
        round->is_last = !take_steps(bench, bench->micro.coroutines);
        dm_cond_wake_all(ctx, &round->all_here);
    }
    while (rc == 0 && round->number == number) {
        rc = dm_cond_wait(ctx, &round->all_here, &round->mutex);
    }
    if (rc == 0) {
        rc = round->is_last;
        dm_mutex_unlock(ctx, &round->mutex);
    }
    return rc;
}

/* Returns 1 when no verbs remain for another step. */
static int step(struct dm_ctx *ctx, struct bench *bench, const struct client *client) {
    int rc = once(ctx, client);
    if (rc < 0) {
        atomic_store(&bench->failure, rc);
    }
    if (!bench->rounds) {
        return rc < 0 ? rc : !take_steps(bench, 1);
    }
    int waited = round_end(ctx, bench);
    return rc < 0 ? rc : waited;
}

static void client_main(struct dm_ctx *ctx, void *arg) {
    struct bench *bench = arg;
    struct client client = {.micro = bench->micro,
                            .zipf = &bench->zipf,
                            .number = atomic_fetch_add(&bench->clients, 1),
                            .buffer = dm_local_alloc(ctx, 65536 + DM_CALL_MAX)};
    int rc = client.buffer ? 0 : DM_ERR_NO_MEMORY;
    uint64_t begin = dm_now(ctx), last = begin, steps = 0;
    bool is_over = !take_steps(bench, 1); /* of a first round: each of its clients draws its own verbs */
    if (rc < 0) {
        atomic_store(&bench->failure, rc);
        (void)(bench->rounds ? round_end(ctx, bench) : 0);
    }
    while (rc == 0 && !is_over) {
        uint64_t before = last;
        rc = step(ctx, bench, &client);
        is_over = rc == 1;
        rc = is_over ? 0 : rc;
        last = dm_now(ctx);
        steps++;
        uint64_t number = atomic_fetch_add(&bench->waits, 1);
        if (number < bench->steps_at_most) {
            bench->latency_ns[number] = (uint32_t)(last - before);
        }
    }
    if (rc < 0) {
        atomic_store(&bench->failure, rc);
    }
    atomic_fetch_add(&bench->done, steps * bench->micro.batch);
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
        uint64_t clients = clients_of(micro);
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

static int bench_init(struct bench *bench, const struct hx_micro_fabric *where, struct dm_err *err) {
    struct hx_micro *micro = &bench->micro;
    fill_defaults(micro, where);
    atomic_store(&bench->left, micro->count);
    if (micro->skew > 0) {
        bench->zipf = wl_zipf_make(0, micro->ranks > 0 ? micro->ranks : micro->addresses, micro->skew, 0);
    }
    bench->steps_at_most = micro->count / micro->batch + 1;
    bench->latency_ns = calloc(bench->steps_at_most, sizeof(*bench->latency_ns));
    bench->rounds = micro->closed ? calloc((size_t)micro->machines * micro->threads, sizeof(*bench->rounds)) : NULL;
    if (!bench->latency_ns || (micro->closed && !bench->rounds)) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    return 0;
}

static int run(struct bench *bench, const struct hx_micro_fabric *where, struct dm_err *err) {
    const struct hx_micro *micro = &bench->micro;
    uint64_t needed = micro->addresses * micro->stride;
    size_t settings = 0;
    struct dm_setting given[HX_MICRO_SETTINGS + 1];
    while (settings < HX_MICRO_SETTINGS && micro->settings[settings].name) {
        given[settings] = micro->settings[settings];
        settings++;
    }
    /* Programs that measure verbs keep several in flight without coroutines; those that run updates have them. */
    if (where->is_virtual && micro->kind != HX_MICRO_UPDATE && micro->kind != HX_MICRO_SWAP) {
        given[settings++] = (struct dm_setting){"coroutines", "off"};
    }
    struct dm_fabric_config config = {.transport = where->transport,
                                      .profile = where->profile,
                                      .seed = where->seed,
                                      .settings = given,
                                      .setting_count = settings,
                                      .topology = {.mns = 1,
                                                   .cns = micro->machines,
                                                   .mn_cores = micro->mn_cores,
                                                   .clients = (unsigned)clients_of(micro),
                                                   .clients_per_thread = micro->coroutines,
                                                   .mn_bytes = FIRST_BYTE + needed + (1 << 20),
                                                   .chip_bytes = 1 << 20}};
    struct dm_fabric *fabric = NULL;
    DM_TRY(dm_fabric_open(&config, &fabric, err));
    uint64_t chip = dm_fabric_topology(fabric)->chip_bytes;
    int rc = micro->space == DM_CHIP && needed > chip
                 ? dm_fail(err, DM_ERR_UNSUPPORTED, "%llu bytes of on-chip memory are wanted, the device has %llu",
                           (unsigned long long)needed, (unsigned long long)chip)
                 : dm_register(fabric, 0, METHOD, handler, bench);
    dm_fabric_measure(fabric);
    rc = rc < 0 ? rc : clients_start(fabric, bench);
    hx_interrupt_watch(fabric);
    rc = rc < 0 ? rc : dm_fabric_run(fabric, err);
    hx_interrupt_watch(NULL);
    dm_fabric_close(fabric);
    if (rc == 0 && atomic_load(&bench->failure) < 0) {
        rc = dm_fail(err, atomic_load(&bench->failure), "a micro-benchmark's verb failed: %s",
                     dm_code_text(atomic_load(&bench->failure)));
    }
    return rc;
}

static int compare_latencies(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* The step that a share of them took no longer than. `count` sorted latencies. */
static double quantile_us(const uint32_t *latency_ns, uint64_t count, double share) {
    return count > 0 ? latency_ns[(uint64_t)(share * (double)(count - 1))] / 1e3 : 0;
}

static void summarize(struct bench *bench, struct hx_micro_result *result) {
    double ns = (double)(atomic_load(&bench->end_ns) - atomic_load(&bench->begin_ns));
    uint64_t waits = atomic_load(&bench->waits);
    uint64_t count = waits < bench->steps_at_most ? waits : bench->steps_at_most;
    qsort(bench->latency_ns, count, sizeof(*bench->latency_ns), compare_latencies);
    *result = (struct hx_micro_result){
        .mops = ns > 0 ? (double)atomic_load(&bench->done) * 1e3 / ns : 0,
        .latency_us = waits > 0 ? (double)atomic_load(&bench->wait_ns) / 1e3 / (double)waits : 0,
        .p50_us = quantile_us(bench->latency_ns, count, 0.50),
        .p99_us = quantile_us(bench->latency_ns, count, 0.99),
    };
}

int hx_micro_run(const struct hx_micro_fabric *where, const struct hx_micro *micro, struct hx_micro_result *result,
                 struct dm_err *err) {
    struct bench bench = {.micro = *micro, .begin_ns = UINT64_MAX};
    int rc = bench_init(&bench, where, err);
    rc = rc < 0 ? rc : run(&bench, where, err);
    *result = (struct hx_micro_result){0};
    if (rc == 0) {
        summarize(&bench, result);
    }
    free(bench.latency_ns);
    free(bench.rounds);
    return rc;
}
