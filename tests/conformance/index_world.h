/* SPDX-License-Identifier: Apache-2.0
 *
 * A small world for index tests: a fabric, an index that is open on every compute node, and keys and values that can
 * be judged. Keys are numbers 0 .. n - 1 spread over all of the key space in order, both ends included, so a reference
 * map is an array. A value states the key and the write that made it, and its further words follow from these two, so
 * that a value that was never written is recognised.
 */
#ifndef DM_TESTS_INDEX_WORLD_H
#define DM_TESTS_INDEX_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/index.h"
#include "transport/fabric.h"

enum { WORLD_SETTINGS = 8, WORLD_CNS = 4, WORLD_SERVERS = 8, WORLD_VALUE_MAX = 1024 };

struct world_config {
    const char *profile; /* NULL: cx6-100g */
    const struct ix_ops *ops;
    const char *transport;
    unsigned mns, cns, clients, clients_per_thread;
    unsigned server_cores; /* 0: 2 */
    unsigned servers;      /* 0: as many as the index needs at least, at most 2 */
    uint32_t value_bytes;
    uint32_t key_bytes; /* at most the index's; 0: 8 */
    uint64_t cache_bytes;
    uint64_t mn_bytes; /* 0: plenty */
    uint32_t chunk_bytes;
    uint64_t seed;
    uint32_t retry_limit; /* 0: the fabric's default */
    uint64_t expected_keys;
    bool tiny;                                  /* small nodes, so that the structure grows high */
    struct dm_setting params[WORLD_SETTINGS];   /* index parameters beyond that */
    struct dm_setting settings[WORLD_SETTINGS]; /* of the transport */
};

/* One client on a compute node, one memory node, and values of a word; on sim. */
static inline struct world_config world_least(const struct ix_ops *ops) {
    return (struct world_config){
        .ops = ops,
        .transport = "sim",
        .mns = 1,
        .cns = 1,
        .clients = 1,
        .clients_per_thread = 1,
        .value_bytes = 8,
        .cache_bytes = 4 << 20,
        .seed = 5,
        .expected_keys = 10000,
    };
}

struct world {
    struct world_config config;
    struct dm_topology topology;
    struct ix_shape shape;
    void *params;
    struct dm_fabric *fabric;
    void *servers[WORLD_SERVERS];
    void *cns[WORLD_CNS];
    struct dm_err err;
};

static inline uint64_t world_key(uint64_t number, uint64_t count) {
    return number + 1 == count ? IX_KEY_MAX : number * (UINT64_MAX / count);
}

/* The number whose key this is, or UINT64_MAX if the world has no such key. */
static inline uint64_t world_number_of(uint64_t key, uint64_t count) {
    uint64_t number = key == IX_KEY_MAX ? count - 1 : key / (UINT64_MAX / count);
    return number < count && world_key(number, count) == key ? number : UINT64_MAX;
}

static inline void world_value(uint64_t number, uint64_t write, void *value, uint32_t bytes) {
    uint64_t words[WORLD_VALUE_MAX / 8];
    words[0] = number << 40 | write;
    for (uint32_t i = 1; i < (bytes + 7) / 8; i++) {
        words[i] = dm_mix64(words[0] ^ (uint64_t)i << 56);
    }
    memcpy(value, words, bytes);
}

/* The write that made this value of key `number`, or UINT64_MAX if none can have. */
static inline uint64_t world_write_of(uint64_t number, const void *value, uint32_t bytes) {
    uint64_t first;
    memcpy(&first, value, sizeof(first));
    unsigned char whole[WORLD_VALUE_MAX];
    uint64_t write = first & ((UINT64_C(1) << 40) - 1);
    world_value(number, write, whole, bytes);
    return memcmp(whole, value, bytes) == 0 ? write : UINT64_MAX;
}

#define WORLD_MUST(expression, err)                                                                                    \
    do {                                                                                                               \
        int world_rc = (expression);                                                                                   \
        if (world_rc < 0) {                                                                                            \
            fail_msg("%s: %s (%s)", #expression, (err)->text, dm_code_text(world_rc));                                 \
        }                                                                                                              \
    } while (0)

static inline void world_params(struct world *world) {
    const struct world_config *config = &world->config;
    world->params = calloc(1, config->ops->params_bytes + 1);
    dm_opt_defaults(config->ops->params, world->params);
    bool is_tiny = config->tiny && config->value_bytes <= 8;
    bool is_device = dm_transport_find(config->transport)->caps & DM_CAP_DEVICE;
    WORLD_MUST(ix_settings_set(config->ops, is_tiny ? config->ops->tiny : NULL, world->params, &world->err),
               &world->err);
    WORLD_MUST(ix_settings_set(config->ops, is_device ? config->ops->patient : NULL, world->params, &world->err),
               &world->err);
    for (size_t i = 0; i < WORLD_SETTINGS && config->params[i].name; i++) {
        WORLD_MUST(dm_opt_set(config->ops->params, world->params, config->params[i].name, config->params[i].value,
                              &world->err),
                   &world->err);
    }
}

/* What the index says to values of this size with one parameter set (NULL: none). */
static inline int world_check(const struct ix_ops *ops, const struct dm_topology *topology, uint32_t value_bytes,
                              struct dm_setting setting, struct dm_err *err) {
    struct ix_shape shape = {.value_bytes = value_bytes, .cache_bytes = 1000000, .topology = topology};
    void *params = calloc(1, ops->params_bytes);
    dm_opt_defaults(ops->params, params);
    int rc = setting.name ? dm_opt_set(ops->params, params, setting.name, setting.value, err) : 0;
    rc = rc < 0 ? rc : ix_check(ops, params, &shape, err);
    dm_opt_free(ops->params, params);
    free(params);
    return rc;
}

/* Checks inside contexts: they run on stacks and threads of their own, from which cmocka cannot jump out of a failed
 * assertion. The first failure is kept and raised by world_raise in the test's own thread. */
static struct {
    atomic_flag taken;
    char text[300];
} world_failure = {.taken = ATOMIC_FLAG_INIT};

#define WORLD_CHECK_EQ(actual, expected)                                                                               \
    do {                                                                                                               \
        unsigned long long world_actual = (unsigned long long)(actual);                                                \
        unsigned long long world_expected = (unsigned long long)(expected);                                            \
        if (world_actual != world_expected && !atomic_flag_test_and_set(&world_failure.taken)) {                       \
            snprintf(world_failure.text, sizeof(world_failure.text), "%s:%d: %s is %llu, %s is %llu", __FILE__,        \
                     __LINE__, #actual, world_actual, #expected, world_expected);                                      \
        }                                                                                                              \
    } while (0)
#define WORLD_CHECK(condition) WORLD_CHECK_EQ(!!(condition), true)

static inline void world_raise(void) {
    bool failed = atomic_flag_test_and_set(&world_failure.taken);
    atomic_flag_clear(&world_failure.taken);
    if (failed) {
        fail_msg("%s", world_failure.text);
    }
}

struct world_step {
    struct world *world;
    unsigned cn;
    const struct ix_pairs *pairs;
    struct ix_report report;
};

static inline int world_format_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    return ix_format(world->config.ops, ctx, world->params, &world->shape, &world->err);
}

static inline int world_open_entry(struct dm_ctx *ctx, void *arg) {
    struct world_step *step = arg;
    struct world *world = step->world;
    return ix_open(world->config.ops, ctx, world->params, &world->shape, &world->cns[step->cn], &world->err);
}

static inline int world_load_entry(struct dm_ctx *ctx, void *arg) {
    struct world_step *step = arg;
    struct world *world = step->world;
    return ix_load(world->config.ops, world->cns[step->cn], ctx, step->pairs, &world->err);
}

static inline int world_verify_entry(struct dm_ctx *ctx, void *arg) {
    struct world_step *step = arg;
    struct world *world = step->world;
    return ix_verify(world->config.ops, world->cns[step->cn], ctx, &step->report, &world->err);
}

static inline void world_do(struct world *world, unsigned cn, int (*entry)(struct dm_ctx *, void *), void *arg) {
    int rc = 0;
    WORLD_MUST(dm_fabric_do(world->fabric, dm_first_cn(&world->topology) + cn, entry, arg, &rc, &world->err),
               &world->err);
    WORLD_MUST(rc, &world->err);
    world_raise();
}

/* Runs what was spawned. */
static inline void world_run(struct world *world) {
    WORLD_MUST(dm_fabric_run(world->fabric, &world->err), &world->err);
    world_raise();
}

/* Opens everything; still in the set-up phase. */
static inline void world_open(struct world *world, const struct world_config *config) {
    *world = (struct world){.config = *config};
    world->topology = (struct dm_topology){
        .mns = config->mns,
        .servers = !(config->ops->caps & IX_CAP_SERVERS) ? 0
                   : config->servers                     ? config->servers
                                                         : 2,
        .cns = config->cns,
        .mn_cores = 2,
        .server_cores = config->server_cores ? config->server_cores : 2,
        .clients = config->clients,
        .clients_per_thread = config->clients_per_thread,
        .mn_bytes = config->mn_bytes ? config->mn_bytes : 64u << 20,
        .chip_bytes = 64 << 10,
    };
    world->shape = (struct ix_shape){
        .value_bytes = config->value_bytes,
        .key_bytes = config->key_bytes < config->ops->key_bytes_max ? config->key_bytes : config->ops->key_bytes_max,
        .cache_bytes = config->cache_bytes,
        .expected_keys = config->expected_keys,
        .topology = &world->topology,
    };
    world_params(world);
    WORLD_MUST(ix_check(config->ops, world->params, &world->shape, &world->err), &world->err);
    struct dm_fabric_config fabric = {
        .transport = config->transport,
        .profile = dm_transport_find(config->transport)->caps & DM_CAP_PROFILE
                       ? config->profile ? config->profile : "cx6-100g"
                       : NULL,
        .topology = world->topology,
        .seed = config->seed,
        .chunk_bytes = config->chunk_bytes ? config->chunk_bytes : 1 << 20,
        .retry_limit = config->retry_limit,
        .settings = world->config.settings,
    };
    while (fabric.setting_count < WORLD_SETTINGS && config->settings[fabric.setting_count].name) {
        fabric.setting_count++;
    }
    WORLD_MUST(dm_fabric_open(&fabric, &world->fabric, &world->err), &world->err);
    for (unsigned i = 0; i < config->mns + world->topology.servers; i++) {
        WORLD_MUST(
            ix_serve(config->ops, world->fabric, i, world->params, &world->shape, &world->servers[i], &world->err),
            &world->err);
    }
    world_do(world, 0, world_format_entry, world);
    for (unsigned cn = 0; cn < config->cns; cn++) {
        struct world_step step = {.world = world, .cn = cn};
        world_do(world, cn, world_open_entry, &step);
    }
}

static inline void world_load(struct world *world, const struct ix_pairs *pairs) {
    struct world_step step = {.world = world, .pairs = pairs};
    world_do(world, 0, world_load_entry, &step);
}

/* Opens the index with these pairs (NULL: empty); what follows is measured. */
static inline void world_begin(struct world *world, const struct world_config *config, const struct ix_pairs *pairs) {
    world_open(world, config);
    if (pairs) {
        world_load(world, pairs);
    }
    dm_fabric_measure(world->fabric);
}

/* A context on a thread of compute node `cn`; world_run runs it. */
static inline void world_spawn(struct world *world, unsigned cn, unsigned thread,
                               void (*entry)(struct dm_ctx *, void *), void *arg) {
    assert_int_equal(dm_spawn(world->fabric, dm_first_cn(&world->topology) + cn, thread, entry, arg), 0);
}

/* As rules of faults count them. */
static inline uint64_t world_verbs(const struct dm_account *account) {
    uint64_t sum = 0;
    for (unsigned kind = 0; kind < DM_VERB_KIND_COUNT; kind++) {
        sum += account->verbs[kind];
    }
    return sum;
}

/* For contexts that must meet at a moment of the run. */
static inline void world_sleep_until(struct dm_ctx *ctx, uint64_t ns) {
    uint64_t now = dm_now(ctx);
    WORLD_CHECK_EQ(now < ns ? dm_sleep(ctx, ns - now) : 0, 0);
}

static inline struct ix_report world_walk(struct world *world) {
    struct world_step step = {.world = world};
    world_do(world, 0, world_verify_entry, &step);
    return step.report;
}

/* Fails the test if the index is broken. */
static inline struct ix_report world_verify(struct world *world) {
    struct ix_report report = world_walk(world);
    if (report.broken != 0) {
        fail_msg("%llu problems, the first: %s", (unsigned long long)report.broken, report.first_problem);
    }
    return report;
}

static inline void world_close(struct world *world) {
    for (unsigned cn = 0; cn < world->config.cns; cn++) {
        ix_close(world->config.ops, world->cns[cn]);
    }
    for (unsigned i = 0; i < WORLD_SERVERS; i++) {
        ix_unserve(world->config.ops, world->servers[i]);
    }
    dm_fabric_close(world->fabric);
    dm_opt_free(world->config.ops->params, world->params);
    free(world->params);
}

/* Makes a client of compute node `cn` for this context, counting into `account`. If the context may stop for good,
 * *client must outlive it: even one that stops in the middle of this is to be detached. */
static inline void world_attach_into(struct world *world, unsigned cn, struct dm_ctx *ctx, struct dm_account *account,
                                     struct ix_client *client) {
    struct dm_err err = {0};
    WORLD_CHECK_EQ(ix_attach(world->config.ops, world->cns[cn], ctx, &world->shape, client, &err), 0);
    dm_account_use(ctx, account);
}

static inline struct ix_client world_attach(struct world *world, unsigned cn, struct dm_ctx *ctx,
                                            struct dm_account *account) {
    struct ix_client client;
    world_attach_into(world, cn, ctx, account, &client);
    return client;
}

/* ---- pairs for bulk load: keys `step` apart in the numbering, values of write 0 ------------------------------------
 */

struct world_pairs {
    struct ix_pairs pairs;
    uint64_t numbers, step;
    uint32_t value_bytes;
};

static inline uint64_t world_pairs_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    const struct world_pairs *own = pairs->arg;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = world_key((first + i) * own->step, own->numbers);
    }
    return n;
}

static inline void world_pairs_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    const struct world_pairs *own = pairs->arg;
    uint64_t number = key == IX_KEY_MAX ? own->numbers - 1 : key / (UINT64_MAX / own->numbers);
    world_value(number, 0, value, own->value_bytes);
}

/* Every step-th of `numbers` keys; `own` must stay where it is. */
static inline const struct ix_pairs *world_pairs(struct world_pairs *own, uint64_t numbers, uint64_t step,
                                                 uint32_t value_bytes) {
    *own = (struct world_pairs){.numbers = numbers, .step = step, .value_bytes = value_bytes};
    own->pairs = (struct ix_pairs){
        .count = (numbers + step - 1) / step, .keys = world_pairs_keys, .value = world_pairs_value, .arg = own};
    return &own->pairs;
}

static inline uint64_t world_dense_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    (void)pairs;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = first + i;
    }
    return n;
}

static inline void world_dense_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    const struct world_pairs *own = pairs->arg;
    world_value(key, 0, value, own->value_bytes);
}

/* The keys 0 .. numbers - 1 themselves, which are not spread. */
static inline const struct ix_pairs *world_dense(struct world_pairs *own, uint64_t numbers, uint32_t value_bytes) {
    *own = (struct world_pairs){.numbers = numbers, .value_bytes = value_bytes};
    own->pairs = (struct ix_pairs){.count = numbers, .keys = world_dense_keys, .value = world_dense_value, .arg = own};
    return &own->pairs;
}

#endif
