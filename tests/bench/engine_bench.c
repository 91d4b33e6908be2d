/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the engine of the simulator: verbs per second of host time for several numbers of clients, sizes and working
 * sets. A probe, run in turn with it, measures the limit: it has the same heap, context switches, three events per verb
 * and copies from random addresses with prefetch, and nothing else. The ratio of both can be compared between machines.
 *
 *     build/release/bench/engine_bench [rounds [row]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/coro.h"
#include "common/heap.h"
#include "common/prng.h"
#include "common/stats.h"
#include "transport/fabric.h"

struct point {
    unsigned clients;
    uint32_t bytes;
    uint64_t memory;
    uint64_t verbs;
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the engine ------------------------------------------------------------------------------------------------- */

static uint64_t left;

static void engine_client(struct dm_ctx *ctx, void *arg) {
    const struct point *point = arg;
    unsigned char *buffer = dm_local_alloc(ctx, point->bytes);
    struct dm_prng *prng = dm_random(ctx);
    uint64_t blocks = (point->memory - DM_RESERVED_BYTES) / point->bytes;
    while (left > 0) {
        left--;
        uint64_t offset = DM_RESERVED_BYTES + dm_prng_below(prng, blocks) * point->bytes;
        if (dm_read(ctx, dm_addr_make(0, DM_DRAM, offset), buffer, point->bytes) < 0) {
            return;
        }
    }
}

/* Writes all of the working set, so that its pages exist and its cache misses are those of real data; with bytes that
 * do not compress, so that the transport keeps them as they are. */
static int touch(struct dm_ctx *ctx, void *arg) {
    const struct point *point = arg;
    static uint64_t bytes[8192];
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        bytes[i] = dm_prng_u64(dm_random(ctx));
    }
    for (uint64_t at = 0; at + sizeof(bytes) <= point->memory - DM_RESERVED_BYTES; at += sizeof(bytes)) {
        dm_addr addr;
        DM_TRY(dm_alloc(ctx, 0, sizeof(bytes), 64, DM_MEM_LEAF, &addr));
        DM_TRY(dm_write(ctx, addr, bytes, sizeof(bytes)));
    }
    return 0;
}

static double engine_rate(struct point point) {
    unsigned cns = point.clients < 10 ? 1 : 10;
    struct dm_fabric_config config = {.transport = "sim",
                                      .profile = "cx6-100g",
                                      .seed = 1,
                                      .topology = {.mns = 1,
                                                   .cns = cns,
                                                   .mn_cores = 1,
                                                   .clients = point.clients,
                                                   .clients_per_thread = 1,
                                                   .mn_bytes = point.memory + (64 << 20)}};
    struct dm_fabric *fabric;
    struct dm_err err;
    int rc = 0;
    if (dm_fabric_open(&config, &fabric, &err) < 0 || dm_fabric_do(fabric, 1, touch, &point, &rc, &err) < 0 || rc < 0) {
        fprintf(stderr, "engine_bench: %s\n", err.text);
        exit(1);
    }
    dm_fabric_measure(fabric);
    for (unsigned i = 0; i < point.clients; i++) {
        dm_spawn(fabric, 1 + i % cns, i / cns, engine_client, &point);
    }
    left = point.verbs;
    double start = seconds();
    dm_fabric_run(fabric, &err);
    double rate = (double)point.verbs / (seconds() - start);
    dm_fabric_close(fabric);
    return rate;
}

/* ---- the probe -------------------------------------------------------------------------------------------------- */

struct probe_client {
    struct dm_coro coro;
    struct dm_prng prng;
    const unsigned char *target;
    unsigned char *buffer;
    unsigned stage;
};

static struct probe {
    struct point point;
    struct dm_heap heap;
    struct dm_coro main;
    struct probe_client *clients;
    unsigned char *memory;
    uint64_t now, left;
} probe;

static void probe_entry(void *arg) {
    struct probe_client *client = arg;
    for (;;) {
        uint64_t blocks = probe.point.memory / probe.point.bytes;
        client->target = probe.memory + dm_prng_below(&client->prng, blocks) * probe.point.bytes;
        for (uint32_t line = 0; line < probe.point.bytes; line += 64) {
            dm_prefetch_read(client->target + line);
        }
        client->stage = 0;
        dm_heap_push(&probe.heap, probe.now + 700000 + dm_prng_below(&client->prng, 1 << 17),
                     (uint32_t)(client - probe.clients));
        dm_coro_switch(&client->coro, &probe.main);
    }
}

static void probe_loop(void) {
    while (probe.left > 0) {
        struct dm_heap_entry entry = dm_heap_pop(&probe.heap);
        struct probe_client *client = &probe.clients[dm_heap_tag(entry)];
        probe.now = entry.time;
        switch (client->stage++) {
        case 1:
            memcpy(client->buffer, client->target, probe.point.bytes);
            break;
        case 2:
            probe.left--;
            dm_coro_switch(&probe.main, &client->coro);
            continue;
        default:
            break;
        }
        dm_heap_push(&probe.heap, probe.now + 500000, dm_heap_tag(entry));
    }
}

static double probe_rate(struct point point) {
    probe = (struct probe){.point = point, .left = point.verbs};
    uint64_t mapped = point.memory + (2 << 20);
    probe.memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    probe.clients = calloc(point.clients, sizeof(*probe.clients));
    if (probe.memory == MAP_FAILED || !probe.clients) {
        fprintf(stderr, "engine_bench: no memory\n");
        exit(1);
    }
    (void)madvise(probe.memory, mapped, MADV_HUGEPAGE);
    memset(probe.memory, 1, point.memory);
    dm_coro_init_thread(&probe.main);
    for (unsigned i = 0; i < point.clients; i++) {
        struct probe_client *client = &probe.clients[i];
        client->prng = dm_prng_stream(1, "probe", i);
        client->buffer = aligned_alloc(64, (point.bytes + 63) / 64 * 64);
        if (!client->buffer || dm_coro_init(&client->coro, 56 * 1024, probe_entry, client) < 0) {
            exit(1);
        }
        dm_coro_switch(&probe.main, &client->coro);
    }
    double start = seconds();
    probe_loop();
    double rate = (double)point.verbs / (seconds() - start);
    for (unsigned i = 0; i < point.clients; i++) {
        dm_coro_fini(&probe.clients[i].coro);
        free(probe.clients[i].buffer);
    }
    free(probe.clients);
    munmap(probe.memory, mapped);
    dm_heap_fini(&probe.heap);
    return rate;
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
    rounds = rounds < 1 ? 1 : rounds > 20 ? 20 : rounds;
    size_t only = argc > 2 ? strtoul(argv[2], NULL, 10) : 0; /* the first row is 1; 0 means all rows */
    static const struct point points[] = {
        {16, 64, UINT64_C(64) << 20, 3000000},   {16, 1024, UINT64_C(64) << 20, 3000000},
        {640, 64, UINT64_C(64) << 20, 3000000},  {640, 1024, UINT64_C(64) << 20, 3000000},
        {640, 64, UINT64_C(4) << 30, 3000000},   {640, 1024, UINT64_C(4) << 30, 3000000},
        {10000, 64, UINT64_C(4) << 30, 2000000}, {10000, 1024, UINT64_C(4) << 30, 2000000},
    };
    printf("clients  bytes  memory MB  engine M/s  probe M/s  ratio (medians of %u rounds)\n", rounds);
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        if (only && i + 1 != only) {
            continue;
        }
        double engine[20], limit[20], ratio[20];
        for (unsigned round = 0; round < rounds; round++) {
            engine[round] = engine_rate(points[i]);
            limit[round] = probe_rate(points[i]);
            ratio[round] = engine[round] / limit[round];
        }
        dm_sort(engine, rounds);
        dm_sort(limit, rounds);
        dm_sort(ratio, rounds);
        printf("%7u  %5u  %9llu  %10.2f  %9.2f  %5.2f\n", points[i].clients, points[i].bytes,
               (unsigned long long)(points[i].memory >> 20), engine[rounds / 2] / 1e6, limit[rounds / 2] / 1e6,
               ratio[rounds / 2]);
    }
    return 0;
}
