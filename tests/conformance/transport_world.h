/* SPDX-License-Identifier: Apache-2.0
 *
 * What the transport conformance tests share: a fabric of one transport, contexts with their own number, checks that
 * work on a context's stack, and a runner that makes one cmocka test of every (test, transport).
 */
#ifndef DM_TESTS_TRANSPORT_WORLD_H
#define DM_TESTS_TRANSPORT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/transport_choice.h"
#include "transport/fabric.h"

enum {
    TW_MNS = 3,
    TW_SERVERS = 1,
    TW_CNS = 2,
    TW_MN_CORES = 2,
    TW_CLIENTS = 16, /* eight a compute node: four threads with two each */
    TW_A_THREAD = 2,
    TW_CHIP_BYTES = 4096,
    TW_MN_BYTES = 1 << 22,
    TW_CHUNK_BYTES = 1 << 16,
    TW_SEED = 42,
};

struct tw {
    const struct dm_transport_info *info;
    struct dm_fabric *fabric;
    struct dm_topology topology;
    struct dm_err err;
};

/* ---- checks inside contexts ------------------------------------------------------------------------------------- */

/* A failed assertion cannot jump from a context's stack to the test's: the first failure is kept and raised later. */
static struct {
    atomic_flag taken;
    char text[256];
} tw_failure = {.taken = ATOMIC_FLAG_INIT};

#define CHECK_EQ(actual, expected)                                                                                     \
    do {                                                                                                               \
        long long tw_actual = (long long)(actual), tw_expected = (long long)(expected);                                \
        if (tw_actual != tw_expected && !atomic_flag_test_and_set(&tw_failure.taken)) {                                \
            snprintf(tw_failure.text, sizeof(tw_failure.text), "%s:%d: %s is %lld, wanted: %lld", __FILE__, __LINE__,  \
                     #actual, tw_actual, tw_expected);                                                                 \
        }                                                                                                              \
    } while (0)
#define CHECK(condition) CHECK_EQ(!!(condition), 1)

static inline void tw_raise_with(const char *more) {
    bool failed = atomic_flag_test_and_set(&tw_failure.taken);
    atomic_flag_clear(&tw_failure.taken);
    if (failed) {
        fail_msg("%s%s%s", tw_failure.text, *more != '\0' ? "; the run: " : "", more);
    }
}

static inline void tw_raise(void) {
    tw_raise_with("");
}

/* ---- fabrics ---------------------------------------------------------------------------------------------------- */

static inline struct dm_topology tw_topology(void) {
    return (struct dm_topology){.mns = TW_MNS,
                                .servers = TW_SERVERS,
                                .cns = TW_CNS,
                                .mn_cores = TW_MN_CORES,
                                .server_cores = TW_MN_CORES,
                                .clients = TW_CLIENTS,
                                .clients_per_thread = TW_A_THREAD,
                                .mn_bytes = TW_MN_BYTES,
                                .chip_bytes = TW_CHIP_BYTES};
}

static inline void tw_open(struct tw *tw, const struct dm_transport_info *info, struct dm_topology topology,
                           uint64_t seed) {
    struct dm_setting settings[TEST_SETTINGS_MAX];
    size_t setting_count = test_settings(settings);
    struct dm_fabric_config config = {.transport = info->name,
                                      .profile = info->caps & DM_CAP_PROFILE ? "cx6-100g" : NULL,
                                      .topology = topology,
                                      .seed = seed,
                                      .chunk_bytes = TW_CHUNK_BYTES,
                                      .settings = settings,
                                      .setting_count = setting_count};
    *tw = (struct tw){.info = info, .topology = topology};
    if (dm_fabric_open(&config, &tw->fabric, &tw->err) < 0) {
        fail_msg("%s", tw->err.text);
    }
}

/* In the set-up phase. */
static inline void tw_open_setup(struct tw *tw, void **state) {
    tw_open(tw, *state, tw_topology(), TW_SEED);
}

/* In the measured phase. */
static inline void tw_open_measured(struct tw *tw, void **state) {
    tw_open_setup(tw, state);
    dm_fabric_measure(tw->fabric);
}

static inline void tw_close(struct tw *tw) {
    dm_fabric_close(tw->fabric);
    tw_raise();
}

static inline unsigned tw_first_cn(const struct tw *tw) {
    return dm_first_cn(&tw->topology);
}

/* Runs what was spawned. If a check inside has failed, the test fails with it and with what the run reports. */
static inline void tw_run_expecting(struct tw *tw, int expected) {
    int rc = dm_fabric_run(tw->fabric, &tw->err);
    tw_raise_with(rc < 0 ? tw->err.text : "");
    if (rc != expected) {
        fail_msg("the run gave %s (%s)", dm_code_text(rc), rc < 0 ? tw->err.text : "");
    }
}

static inline void tw_run(struct tw *tw) {
    tw_run_expecting(tw, 0);
}

static inline void tw_method(struct tw *tw, unsigned node, unsigned method, dm_handler handler, void *arg) {
    int rc = dm_register(tw->fabric, node, method, handler, arg);
    assert_int_equal(rc, 0);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

struct tw_client {
    unsigned number; /* 0 .. count - 1 */
    unsigned count;
    void *shared; /* the test's own */
    void (*body)(struct dm_ctx *ctx, struct tw_client *client);
};

static inline void tw_client_entry(struct dm_ctx *ctx, void *arg) {
    struct tw_client *client = arg;
    client->body(ctx, client);
}

static inline void tw_spawn(struct tw *tw, unsigned node, unsigned thread, struct tw_client *client) {
    int rc = dm_spawn(tw->fabric, node, thread, tw_client_entry, client);
    assert_int_equal(rc, 0);
}

/* `count` clients spread over the threads of all compute nodes, or of one where `one_cn`; runs them. */
static inline void tw_run_clients_expecting(struct tw *tw, unsigned count, bool one_cn,
                                            void (*body)(struct dm_ctx *ctx, struct tw_client *client), void *shared,
                                            int expected) {
    struct tw_client *clients = calloc(count, sizeof(*clients));
    assert_non_null(clients);
    unsigned cns = one_cn ? 1 : tw->topology.cns;
    for (unsigned i = 0; i < count; i++) {
        clients[i] = (struct tw_client){i, count, shared, body};
        unsigned node = tw_first_cn(tw) + i % cns;
        tw_spawn(tw, node, i / cns % dm_thread_count(tw->fabric, node), &clients[i]);
    }
    tw_run_expecting(tw, expected);
    free(clients);
}

static inline void tw_run_clients(struct tw *tw, unsigned count, bool one_cn,
                                  void (*body)(struct dm_ctx *ctx, struct tw_client *client), void *shared) {
    tw_run_clients_expecting(tw, count, one_cn, body, shared, 0);
}

static inline void tw_run_one(struct tw *tw, void (*body)(struct dm_ctx *ctx, struct tw_client *client), void *shared) {
    tw_run_clients(tw, 1, true, body, shared);
}

/* A piece of the reserved page of a memory node: zero at start and used by the tests only. */
static inline dm_addr tw_word(unsigned node, unsigned index) {
    return dm_addr_make(node, DM_DRAM, DM_LINE + 8 * (uint64_t)index);
}

static inline uint64_t tw_read_word(struct dm_ctx *ctx, dm_addr addr) {
    uint64_t word = 0;
    CHECK_EQ(dm_read(ctx, addr, &word, sizeof(word)), 0);
    return word;
}

/* A barrier of all `count` clients, so that what follows really overlaps. Each `word` serves once. */
static inline void tw_barrier(struct dm_ctx *ctx, dm_addr word, unsigned count) {
    CHECK_EQ(dm_faa(ctx, word, 1, NULL), 0);
    while (tw_read_word(ctx, word) < count && !dm_stopping(ctx)) {
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

struct tw_row {
    const char *name;
    CMUnitTestFunction test;
    unsigned caps; /* that a transport must have for this */
};

#define TW(test)                                                                                                       \
    { #test, (test), 0 }
#define TW_NEEDS(test, cap)                                                                                            \
    { #test, (test), (cap) }

/* Every row on every transport that can do it (see transport_choice.h). */
static inline int tw_run_table(const char *group, const struct tw_row *rows, size_t row_count) {
    size_t transports = 0, count = 0;
    while (dm_transports()[transports]) {
        transports++;
    }
    struct CMUnitTest *tests = calloc(transports * row_count + 1, sizeof(*tests));
    char(*names)[160] = calloc(transports * row_count + 1, sizeof(*names));
    if (!tests || !names) {
        free(tests);
        free(names);
        return 1;
    }
    for (size_t t = 0; t < transports; t++) {
        const struct dm_transport_info *info = dm_transports()[t];
        if (!test_runs_on(info)) {
            continue;
        }
        for (size_t r = 0; r < row_count; r++) {
            if ((info->caps & rows[r].caps) == rows[r].caps) {
                snprintf(names[count], sizeof(names[count]), "%s: %s", info->name, rows[r].name);
                tests[count] =
                    (struct CMUnitTest){.name = names[count], .test_func = rows[r].test, .initial_state = (void *)info};
                count++;
            }
        }
    }
    int failed = test_run(group, tests, count);
    free(tests);
    free(names);
    return failed;
}

#define TW_HOUR_NS (UINT64_C(3600) * 1000000000)

/* A method that has no end but its context's. */
static inline int tw_handle_never(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                                  uint32_t *resp_len) {
    (void)arg;
    (void)req;
    (void)req_len;
    (void)resp;
    (void)resp_len;
    return dm_sleep(ctx, TW_HOUR_NS);
}

#endif
