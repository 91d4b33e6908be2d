/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the generation of requests: ns per request for each distribution on one core, the time to open a workload
 * over 10^9 keys, and the time to make the sorted array of keys to load. Prints the best of several rounds, as other
 * programs only add time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/compiler.h"
#include "workloads/workload.h"

enum { ROUNDS = 7, REQUESTS = 3000000 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct wl *workload_open(const struct wl_config *config, uint64_t operations) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    if (wl_open(config, operations, 1, 1, &wl, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return wl;
}

/* Draws and acknowledges requests; returns ns per request. `sum` prevents the compiler from removing the work. */
static double draw(struct wl_stream *stream, uint64_t *sum) {
    double start = now_ns();
    for (int i = 0; i < REQUESTS; i++) {
        struct wl_op op;
        if (wl_next(stream, &op) != 0) {
            fprintf(stderr, "no operation\n");
            exit(1);
        }
        wl_done(stream, &op, 0);
        *sum += op.key + op.scan_length;
    }
    return (now_ns() - start) / REQUESTS;
}

static void request_bench(const char *name, const struct wl_config *config) {
    struct wl *wl = workload_open(config, (uint64_t)ROUNDS * REQUESTS);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    double best = 1e9;
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double ns = draw(stream, &sum);
        best = ns < best ? ns : best;
    }
    printf("%-40s %8.1f ns per request (sum %016" PRIx64 ")\n", name, best, sum);
    wl_stream_close(stream);
    wl_close(wl);
}

static void open_bench(const char *name, const struct wl_config *config) {
    double start = now_ns();
    struct wl *wl = workload_open(config, 1000000000);
    printf("%-40s %8.3f s to open\n", name, (now_ns() - start) * 1e-9);
    wl_close(wl);
}

static void keys_bench(const char *name, const struct wl_config *config) {
    double start = now_ns();
    struct wl *wl = workload_open(config, 0);
    uint64_t count = 0;
    const uint64_t *keys = wl_keys(wl, &count);
    printf("%-40s %8.3f s for %" PRIu64 " sorted keys (last %016" PRIx64 ")\n", name, (now_ns() - start) * 1e-9, count,
           keys[count - 1]);
    wl_close(wl);
}

int main(void) {
    static const struct {
        const char *name;
        struct wl_config config;
    } requests[] = {
        {"read only, uniform", {.workload = "c", .distribution = "uniform", .keys = 1000000}},
        {"read only, scrambled zipfian 0.99", {.workload = "c", .keys = 1000000}},
        {"read only, scrambled zipfian 0.7", {.workload = "c", .theta = 0.7, .keys = 1000000}},
        {"read only, zipfian_clustered", {.workload = "c", .distribution = "zipfian_clustered", .keys = 1000000}},
        {"read only, hotspot", {.workload = "c", .distribution = "hotspot", .keys = 1000000}},
        {"read only, exponential", {.workload = "c", .distribution = "exponential", .keys = 1000000}},
        {"a", {.workload = "a", .keys = 1000000}},
        {"a, uniform", {.workload = "a", .distribution = "uniform", .keys = 1000000}},
        {"d (latest)", {.workload = "d", .keys = 1000000}},
        {"e", {.workload = "e", .keys = 1000000}},
        {"load", {.workload = "load", .keys = 1000000}},
        {"c, key set uniform", {.workload = "c", .key_set = "uniform", .keys = 1000000}},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(requests); i++) {
        request_bench(requests[i].name, &requests[i].config);
    }
    open_bench("zipfian 0.99, 10^9 keys", &(struct wl_config){.workload = "a", .keys = 1000000000});
    open_bench("zipfian 0.8, 10^9 keys", &(struct wl_config){.workload = "a", .theta = 0.8, .keys = 1000000000});
    open_bench("latest, 10^9 keys", &(struct wl_config){.workload = "d", .keys = 1000000000});
    open_bench("latest, 10^7 keys", &(struct wl_config){.workload = "d", .keys = 10000000});
    keys_bench("hashed", &(struct wl_config){.workload = "a", .keys = 10000000});
    keys_bench("ordered", &(struct wl_config){.workload = "a", .insert_order = "ordered", .keys = 10000000});
    keys_bench("lognormal", &(struct wl_config){.workload = "a", .key_set = "lognormal", .keys = 10000000});
    return 0;
}
