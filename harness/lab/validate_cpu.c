/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU work units of dm_charge cost on this host: each is timed on the code that indexes run, on data that the
 * processor has at hand (cpu_access.c measures accesses that miss), and the minimum of some rounds is taken, which is
 * the time of an undisturbed core. A simulated run never reads a clock; it reads the
 * profile that these numbers are written into. Training is measured as its arithmetic alone, on keys in the cache; the
 * shipped profiles have the cost per key that the papers report, with everything around it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/aligned.h"
#include "common/compiler.h"
#include "harness/base/progress.h"
#include "harness/lab/validate.h"
#include "indexes/shared/lines.h"
#include "indexes/shared/node_cache.h"
#include "indexes/shared/plr.h"
#include "indexes/shared/rmi.h"

enum {
    ROUNDS = 7,
    STEPS = 20000,
    NODE_BYTES = 1024,
    NODES = 64, /* that the processor has at hand: what a miss costs is measured apart */
    ENTRY_BYTES = 16,
    TRAIN_KEYS = 4096,
    TRAIN_MODELS = 32,
    TRAIN_EPSILON = 16
};

static volatile uint64_t sink; /* prevents that the compiler drops results */

struct bench {
    unsigned char *nodes; /* NODES of them, sorted 8-byte keys at every ENTRY_BYTES */
    unsigned char *image;
    struct ix_cache *cache;
    uint64_t train_keys[TRAIN_KEYS];
    struct ix_rmi rmi;
    struct ix_rmi_model models[TRAIN_MODELS];
    struct ix_plr *plr;
};

static uint64_t key_at(const unsigned char *node, uint32_t entry) {
    uint64_t key;
    memcpy(&key, node + entry * ENTRY_BYTES, sizeof(key));
    return key;
}

static void run_hash(struct bench *bench, uint64_t seed) {
    (void)bench;
    uint64_t x = seed;
    for (unsigned i = 0; i < STEPS; i++) {
        x = dm_mix64(x + i);
    }
    sink = x;
}

/* Binary search in a node of 1 KB. */
static void run_node_probe(struct bench *bench, uint64_t seed) {
    uint64_t x = seed, sum = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        x = dm_mix64(x);
        const unsigned char *node = bench->nodes + (x + sum % 2) % NODES * NODE_BYTES;
        uint64_t wanted = x >> 20;
        uint32_t low = 0, high = NODE_BYTES / ENTRY_BYTES;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (key_at(node, middle) <= wanted) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        sum += low;
    }
    sink = sum;
}

static void run_cache_probe(struct bench *bench, uint64_t seed) {
    uint64_t x = seed, sum = 0;
    ix_cache_enter(bench->cache, 0);
    for (unsigned i = 0; i < STEPS; i++) {
        x = dm_mix64(x + sum % 2);
        uint32_t stamp = 0;
        const uint64_t *copy =
            ix_cache_find(bench->cache, dm_addr_make(0, DM_DRAM, (1 + x % NODES) * NODE_BYTES), &stamp);
        sum += copy ? *copy + stamp : 1;
    }
    ix_cache_leave(bench->cache, 0);
    sink = sum;
}

static void run_key_compare(struct bench *bench, uint64_t seed) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        const unsigned char *node = bench->nodes + (i / 4 * 4 % 64) * ENTRY_BYTES;
        sum += key_at(node, i % 4) == (seed ^ sum);
    }
    sink = sum;
}

/* One level of a learned index: the sub-model of a key, or a position within one. */
static void run_model_eval(struct bench *bench, uint64_t seed) {
    uint64_t x = seed, sum = 0;
    for (unsigned i = 0; i < STEPS / 2; i++) {
        x = dm_mix64(x + sum % 2);
        uint64_t key = bench->train_keys[x % TRAIN_KEYS];
        double coord = ix_rmi_coord(&bench->rmi.top, key);
        uint32_t number = ix_rmi_pick(&bench->rmi.top, coord);
        sum += (uint64_t)ix_rmi_predict(&bench->rmi.models[number], number, coord, TRAIN_KEYS);
    }
    sink = sum;
}

/* A pass of piecewise linear regression over keys that are in the cache. */
static void run_train_key(struct bench *bench, uint64_t seed) {
    struct ix_plr_segment closed;
    uint64_t sum = seed;
    for (unsigned i = 0; i < STEPS; i++) {
        if (i % TRAIN_KEYS == 0) {
            (void)ix_plr_finish(bench->plr, &closed);
        }
        sum += (uint64_t)ix_plr_add(bench->plr, bench->train_keys[i % TRAIN_KEYS], i % TRAIN_KEYS, &closed);
    }
    (void)ix_plr_finish(bench->plr, &closed);
    sink = sum;
}

/* Checks and decodes a complete node; the cost is per line. */
static void run_line_copy(struct bench *bench, uint64_t seed) {
    uint64_t sum = seed;
    for (unsigned i = 0; i < STEPS / (NODE_BYTES / DM_LINE); i++) {
        const unsigned char *node = bench->nodes + (i % 8) * NODE_BYTES;
        sum += ix_lines_consistent(node, NODE_BYTES, IX_VERSIONS_LINES);
        ix_lines_decode(node, NODE_BYTES, bench->image);
        sum += bench->image[i % NODE_BYTES / 2];
    }
    sink = sum;
}

static int bench_open(struct bench *bench) {
    struct ix_cache_config config = {.bytes = (uint64_t)NODES * NODE_BYTES * 2, .copy_bytes = NODE_BYTES, .threads = 1};
    bench->nodes = dm_aligned_new(NODES, NODE_BYTES);
    bench->image = malloc(NODE_BYTES);
    if (!bench->nodes || !bench->image || ix_cache_open(&config, &bench->cache) < 0 ||
        ix_plr_open(TRAIN_EPSILON, &bench->plr) < 0) {
        return DM_ERR_NO_MEMORY;
    }
    struct dm_prng prng = dm_prng_stream(1, "train", 0);
    for (uint64_t i = 0, key = 0; i < TRAIN_KEYS; i++) {
        key += 1 + dm_prng_below(&prng, UINT64_MAX / TRAIN_KEYS / 2);
        bench->train_keys[i] = key;
    }
    bench->rmi = (struct ix_rmi){.top = {.models = TRAIN_MODELS}, .models = bench->models};
    ix_rmi_train(&bench->rmi, bench->train_keys, TRAIN_KEYS, 1, 1, 1);
    for (uint64_t node = 0; node < NODES; node++) {
        unsigned char *bytes = bench->nodes + node * NODE_BYTES;
        for (uint64_t entry = 0; entry < NODE_BYTES / ENTRY_BYTES; entry++) {
            uint64_t key = entry << 38;
            memcpy(bytes + entry * ENTRY_BYTES, &key, sizeof(key));
        }
        ix_cache_insert(bench->cache, dm_addr_make(0, DM_DRAM, (1 + node) * NODE_BYTES), 1, bytes);
    }
    return 0;
}

static void bench_close(struct bench *bench) {
    ix_cache_close(bench->cache);
    free(bench->nodes);
    free(bench->image);
    ix_plr_close(bench->plr);
}

static double least_ns(struct bench *bench, void (*run)(struct bench *bench, uint64_t seed)) {
    double least = 1e18;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t begin = hx_host_ns();
        run(bench, round + 1);
        double ns = (double)(hx_host_ns() - begin) / STEPS;
        least = ns < least ? ns : least;
    }
    return least;
}

int hx_cpu_costs(json_t **costs, struct dm_err *err) {
    static const struct {
        const char *name;
        void (*run)(struct bench *bench, uint64_t seed);
    } works[] = {
        {"work_node_probe_ns", run_node_probe},   {"work_cache_probe_ns", run_cache_probe},
        {"work_key_compare_ns", run_key_compare}, {"work_hash_ns", run_hash},
        {"work_model_eval_ns", run_model_eval},   {"work_line_copy_ns", run_line_copy},
        {"work_train_key_ns", run_train_key},
    };
    struct bench bench = {.cache = NULL};
    *costs = json_object();
    int rc = *costs ? bench_open(&bench) : DM_ERR_NO_MEMORY;
    for (size_t i = 0; rc == 0 && i < DM_ARRAY_LEN(works); i++) {
        double ns = least_ns(&bench, works[i].run);
        json_object_set_new(*costs, works[i].name, json_real((double)(uint64_t)(ns * 100 + 0.5) / 100));
    }
    bench_close(&bench);
    rc = rc < 0 ? dm_fail(err, rc, "no memory for the CPU measurements") : hx_access_costs(*costs, err);
    if (rc < 0) {
        json_decref(*costs);
        *costs = NULL;
    }
    return rc;
}
