/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures reads through the contract of the transport: the latency of one client's reads, and the rate of a thread of
 * many clients, on any transport of real time. tests/rxe/perftest_test.sh compares them with perftest on the same
 * devices. Prints one line per measurement: name, bytes, clients, value, unit; lines that begin with # describe the
 * method. The equivalent conditions of perftest are `ib_read_lat`, and `ib_read_bw -t 16 -Q 1`: sixteen outstanding
 * reads, each with its own completion, because each client waits for its own read. (Without -Q 1 only every sixteenth
 * read has a completion, and all sixteen must complete before the next ones are posted.) perftest posts lists of verbs
 * only with -l, which has no counterpart here: clients that are ready at the same time share a doorbell (option
 * `gather`).
 *
 *     build/release/bench/verbs_bench [TRANSPORT [NAME=VALUE...]]      default: verbs; the options are those of the
 * transport
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "transport/fabric.h"

enum { SETTINGS_MAX = 16, WARMUP_READS = 200, LATENCY_READS = 2000, RATE_READS = 20000, RATE_CLIENTS = 16 };

struct point {
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
        reader->rc = dm_read(ctx, addr, buffer, point->bytes);
    }
    reader->begin_ns = dm_now(ctx);
    uint64_t before_ns = reader->begin_ns;
    for (uint64_t i = 0; i < point->reads / point->clients && reader->rc == 0; i++) {
        reader->rc = dm_read(ctx, addr, buffer, point->bytes);
        if (point->clients == 1) { /* reading the clock would reduce the rate where only the rate is measured */
            uint64_t now_ns = dm_now(ctx);
            dm_hist_record(reader->hist, now_ns - before_ns);
            before_ns = now_ns;
        }
        reader->done++;
    }
    reader->end_ns = dm_now(ctx);
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
        printf("latency_p50 %u 1 %.2f us\n", point->bytes, (double)dm_hist_quantile(&hist, 0.5) / 1e3);
    }
    printf("rate %u %u %.0f reads/s\n", point->bytes, point->clients, (double)done * 1e9 / (double)(end_ns - begin_ns));
    return 0;
}

int main(int argc, char **argv) {
    static const struct point points[] = {{64, 1, LATENCY_READS},
                                          {1024, 1, LATENCY_READS},
                                          {64, RATE_CLIENTS, RATE_READS},
                                          {1024, RATE_CLIENTS, RATE_READS}};
    struct dm_setting settings[SETTINGS_MAX];
    struct dm_fabric_config config = {
        .transport = argc > 1 ? argv[1] : "verbs", .seed = 1, .chunk_bytes = 1 << 20, .settings = settings};
    for (int i = 2; i < argc && config.setting_count < SETTINGS_MAX; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) {
            fprintf(stderr, "verbs_bench: '%s' is not NAME=VALUE\n", argv[i]);
            return 2;
        }
        *value = 0;
        settings[config.setting_count++] = (struct dm_setting){argv[i], value + 1};
    }
    printf("# latency: one client, one read outstanding; rate: one thread, one read outstanding for each client, "
           "which waits for it\n");
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        struct dm_err err = {0};
        int rc = point_run(&config, &points[i], &err);
        if (rc < 0) {
            fprintf(stderr, "verbs_bench: %s\n", err.text[0] ? err.text : dm_code_text(rc));
            return 1;
        }
    }
    return 0;
}
