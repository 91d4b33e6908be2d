/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures verbs through the contract of the transport: the latency of one client's reads, compare-and-swaps and masked
 * compare-and-swaps, and the rate of reads of a thread of many clients, on any transport of real time.
 * tests/rxe/perftest_test.sh compares them with perftest on the same devices. Prints one line per measurement: name,
 * bytes, clients, value, unit; lines that begin with # describe the method. The equivalent conditions of perftest are
 * `ib_read_lat`, and `ib_read_bw -t 16 -Q 1`: sixteen outstanding reads, each with its own completion, because each
 * client waits for its own read. (Without -Q 1 only every sixteenth read has a completion, and all sixteen must
 * complete before the next ones are posted.) perftest posts lists of verbs only with -l, which has no counterpart here:
 * clients that are ready at the same time share a doorbell (option `gather`).
 *
 *     build/release/bench/verbs_bench [TRANSPORT [NAME=VALUE...]]      default: verbs; the options are the transport's,
 *                                                                      and reads=N for a measured rate
 *
 * Between two hosts, each of the six measurements at a port of its own, from that of the address on:
 *
 *     build/release/bench/verbs_bench serve HOST:PORT [NAME=VALUE...]  on the host with the memory
 *     build/release/bench/verbs_bench at HOST:PORT [NAME=VALUE...]     on the other one
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "transport/fabric.h"

enum { SETTINGS_MAX = 16, WARMUP_READS = 200, LATENCY_READS = 2000, RATE_READS = 20000, RATE_CLIENTS = 16 };

enum kind { READ, CAS, MASKED_CAS };

struct point {
    enum kind kind;
    uint32_t bytes;
    unsigned clients;
    uint64_t reads; /* of all clients together */
};

struct reader {
    const struct point *point;
    struct dm_hist *hist; /* of latencies in ns */
    uint64_t begin_ns, end_ns, done;
    int rc;
};

/* A swap always succeeds and changes nothing. */
static int point_verb(struct dm_ctx *ctx, const struct point *point, dm_addr addr, void *buffer) {
    uint64_t old;
    switch (point->kind) {
    case READ:
        return dm_read(ctx, addr, buffer, point->bytes);
    case CAS:
        return dm_cas(ctx, addr, 0, 0, &old);
    case MASKED_CAS:
        return dm_masked_cas(ctx, addr, (struct dm_mask){.compare_mask = 1, .swap_mask = 1}, &old);
    }
    return DM_ERR_INVALID;
}

/* Always reads the same address, to measure the devices and not the memory. */
static void reader_entry(struct dm_ctx *ctx, void *arg) {
    struct reader *reader = arg;
    const struct point *point = reader->point;
    dm_addr addr = dm_addr_make(0, DM_DRAM, DM_RESERVED_BYTES);
    void *buffer = dm_local_alloc(ctx, point->bytes);
    if (!buffer) {
        reader->rc = DM_ERR_NO_MEMORY;
        return;
    }
    for (unsigned i = 0; i < WARMUP_READS && reader->rc == 0; i++) {
        reader->rc = point_verb(ctx, point, addr, buffer);
    }
    reader->begin_ns = dm_now(ctx);
    uint64_t before_ns = reader->begin_ns;
    for (uint64_t i = 0; i < point->reads / point->clients && reader->rc == 0; i++) {
        reader->rc = point_verb(ctx, point, addr, buffer);
        if (point->clients == 1) { /* reading the clock would reduce the rate where only the rate is measured */
            uint64_t now_ns = dm_now(ctx);
            dm_hist_record(reader->hist, now_ns - before_ns);
            before_ns = now_ns;
        }
        reader->done++;
    }
    reader->end_ns = dm_now(ctx);
}

/* The two processes of a measurement between hosts. Its token separates it from other runs, and is no secret. */
struct pair {
    bool is_used, is_server;
    char host[100];
    unsigned port;
    char address[128];
    const char *addresses[1];
    bool hosted[2];
    struct dm_processes processes;
};

static bool pair_parse(struct pair *pair, bool is_server, const char *address) {
    const char *colon = strrchr(address, ':');
    if (!colon || (size_t)(colon - address) >= sizeof(pair->host)) {
        return false;
    }
    *pair = (struct pair){.is_used = true, .is_server = is_server, .port = (unsigned)strtoul(colon + 1, NULL, 10)};
    memcpy(pair->host, address, (size_t)(colon - address));
    return pair->port > 0 && pair->port < 65530;
}

static int pair_begin(struct pair *pair, unsigned number, struct dm_err *err) {
    char own[128];
    snprintf(pair->address, sizeof(pair->address), "%s:%u", pair->host, pair->port + number);
    pair->addresses[0] = pair->address;
    pair->hosted[0] = pair->is_server;
    pair->hosted[1] = !pair->is_server;
    pair->processes = (struct dm_processes){.process = pair->is_server ? 1 : 0,
                                            .count = 2,
                                            .hosted = pair->hosted,
                                            .addresses = pair->addresses,
                                            .token = "verbs_bench",
                                            .fingerprint = number,
                                            .listener = -1};
    return pair->is_server ? dm_listen(pair->address, &pair->processes.listener, own, sizeof(own), err) : 0;
}

static int serve_entry(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    return dm_serve_peers(ctx, 0);
}

static int fabric_open(const struct dm_fabric_config *config, const struct point *point, struct dm_fabric **fabric,
                       struct dm_err *err) {
    struct dm_fabric_config own = *config;
    own.topology = (struct dm_topology){.mns = 1,
                                        .cns = 1,
                                        .mn_cores = 1,
                                        .clients = point->clients,
                                        .clients_per_thread = point->clients,
                                        .mn_bytes = 16 << 20};
    return dm_fabric_open(&own, fabric, err);
}

static int point_serve(const struct dm_fabric_config *config, const struct point *point, struct dm_err *err) {
    struct dm_fabric *fabric = NULL;
    int rc = fabric_open(config, point, &fabric, err), served = 0;
    if (rc < 0) {
        return rc;
    }
    rc = dm_fabric_do(fabric, 0, serve_entry, fabric, &served, err);
    dm_fabric_close(fabric);
    return rc < 0 ? rc : served;
}

/* Runs all clients on one thread. */
static int point_run(const struct dm_fabric_config *config, const struct point *point, struct dm_err *err) {
    struct dm_fabric *fabric = NULL;
    static struct dm_hist hist;
    struct reader readers[RATE_CLIENTS];
    dm_hist_clear(&hist);
    int rc = fabric_open(config, point, &fabric, err);
    if (rc < 0) {
        return rc;
    }
    rc = dm_fabric_connect(fabric, err);
    dm_fabric_measure(fabric);
    for (unsigned i = 0; i < point->clients; i++) {
        readers[i] = (struct reader){.point = point, .hist = &hist};
        rc = rc < 0 ? rc : dm_spawn(fabric, 1, 0, reader_entry, &readers[i]);
    }
    rc = rc < 0 ? rc : dm_fabric_run(fabric, err);
    uint64_t begin_ns = UINT64_MAX, end_ns = 0, done = 0;
    for (unsigned i = 0; i < point->clients && rc == 0; i++) {
        rc = readers[i].rc;
        done += readers[i].done;
        begin_ns = readers[i].begin_ns < begin_ns ? readers[i].begin_ns : begin_ns;
        end_ns = readers[i].end_ns > end_ns ? readers[i].end_ns : end_ns;
    }
    dm_fabric_close(fabric);
    if (rc < 0) {
        return rc;
    }
    if (point->clients == 1) {
        static const char *const names[] = {[READ] = "latency_p50", [CAS] = "cas_p50", [MASKED_CAS] = "masked_cas_p50"};
        printf("%s %u 1 %.2f us\n", names[point->kind], point->bytes, (double)dm_hist_quantile(&hist, 0.5) / 1e3);
    }
    if (point->kind != READ) {
        return 0;
    }
    printf("rate %u %u %.0f reads/s\n", point->bytes, point->clients, (double)done * 1e9 / (double)(end_ns - begin_ns));
    return 0;
}

static int point_do(struct pair *pair, struct dm_fabric_config *config, const struct point *point, unsigned number,
                    struct dm_err *err) {
    if (pair->is_used) {
        int rc = pair_begin(pair, number, err);
        if (rc < 0) {
            return rc;
        }
        config->processes = &pair->processes;
    }
    return pair->is_server ? point_serve(config, point, err) : point_run(config, point, err);
}

int main(int argc, char **argv) {
    struct point points[] = {{READ, 64, 1, LATENCY_READS},         {READ, 1024, 1, LATENCY_READS},
                             {READ, 64, RATE_CLIENTS, RATE_READS}, {READ, 1024, RATE_CLIENTS, RATE_READS},
                             {CAS, 8, 1, LATENCY_READS},           {MASKED_CAS, 8, 1, LATENCY_READS}};
    struct dm_setting settings[SETTINGS_MAX];
    struct dm_fabric_config config = {
        .transport = argc > 1 ? argv[1] : "verbs", .seed = 1, .chunk_bytes = 1 << 20, .settings = settings};
    struct pair pair = {.is_used = false};
    int first = 2;
    if (argc > 1 && (strcmp(argv[1], "serve") == 0 || strcmp(argv[1], "at") == 0)) {
        if (argc < 3 || !pair_parse(&pair, argv[1][0] == 's', argv[2])) {
            fprintf(stderr, "verbs_bench: %s HOST:PORT\n", argv[1]);
            return 2;
        }
        config.transport = "verbs";
        first = 3;
    }
    for (int i = first; i < argc && config.setting_count < SETTINGS_MAX; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) {
            fprintf(stderr, "verbs_bench: '%s' is not NAME=VALUE\n", argv[i]);
            return 2;
        }
        *value = 0;
        if (strcmp(argv[i], "reads") == 0) {
            points[2].reads = points[3].reads = strtoull(value + 1, NULL, 10);
            continue;
        }
        settings[config.setting_count++] = (struct dm_setting){argv[i], value + 1};
    }
    printf("# latency: one client, one read outstanding; rate: one thread, one read outstanding for each client, "
           "which waits for it\n");
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        struct dm_err err = {0};
        int rc = point_do(&pair, &config, &points[i], (unsigned)i, &err);
        if (rc < 0) {
            fprintf(stderr, "verbs_bench: %s\n", err.text[0] ? err.text : dm_code_text(rc));
            return 1;
        }
    }
    return 0;
}
