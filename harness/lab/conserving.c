/* SPDX-License-Identifier: Apache-2.0
 *
 * The random mix by which the simulated network shows that it conserves work.
 */
#include "harness/lab/conserving.h"

#include <stdlib.h>
#include <string.h>

#include "common/prng.h"
#include "transport/dm.h"

enum {
    FIRST = 4096, /* the first byte of DRAM that verbs use */
    METHOD = DM_METHOD_FIRST,
    BYTES_MAX = 8192,
    REQUEST_MAX = 512,
    WORDS = 3,
    BATCH_MAX = 4,
    OPERATIONS = 300,
    CLIENTS_OF_NODE = 24,
    RESOURCES_MAX = 512,
};

struct mix {
    unsigned nodes;
    int rc; /* the first failure */
};

static uint32_t below(struct dm_ctx *ctx, uint32_t bound) {
    return (uint32_t)dm_prng_below(dm_random(ctx), bound);
}

/* Few words, some of which share an atomic slot with a word 4 KB further on. */
static dm_addr some_word(struct dm_ctx *ctx, const struct mix *mix) {
    enum dm_space space = below(ctx, 2) ? DM_CHIP : DM_DRAM;
    uint64_t offset = 64 * below(ctx, WORDS) + 4096 * below(ctx, 3);
    return dm_addr_make(below(ctx, mix->nodes), space, offset + (space == DM_DRAM ? FIRST : 0));
}

static void post_some_verb(struct dm_ctx *ctx, const struct mix *mix, unsigned char *buffer, uint64_t *old) {
    uint32_t bytes = 1 + below(ctx, below(ctx, 3) ? 300 : BYTES_MAX);
    dm_addr addr = dm_addr_make(below(ctx, mix->nodes), DM_DRAM, (FIRST << 4) + 64 * below(ctx, 1000));
    switch (below(ctx, 4)) {
    case 0:
        dm_post_write(ctx, addr, buffer, bytes);
        break;
    case 1:
        dm_post_faa(ctx, some_word(ctx, mix), 1, old);
        break;
    default:
        dm_post_read(ctx, addr, buffer, bytes);
        break;
    }
}

static int handle(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    (void)req;
    (void)resp;
    const struct mix *mix = arg;
    unsigned char bytes[256];
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, below(ctx, 10));
    *resp_len = req_len;
    if (below(ctx, 3) > 0) {
        return 0;
    }
    return dm_read(ctx, dm_addr_make(below(ctx, mix->nodes), DM_DRAM, FIRST), bytes, sizeof(bytes));
}

static int operate(struct dm_ctx *ctx, const struct mix *mix, unsigned char *buffer) {
    unsigned char request[REQUEST_MAX] = {0}, response[REQUEST_MAX];
    uint64_t old[BATCH_MAX] = {0};
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, below(ctx, 12));
    if (below(ctx, 5) == 0) {
        uint32_t bytes = sizeof(response);
        return dm_call(ctx, below(ctx, mix->nodes), METHOD, request, 1 + below(ctx, REQUEST_MAX), response, &bytes);
    }
    for (uint32_t verbs = 1 + below(ctx, BATCH_MAX); verbs > 0; verbs--) {
        post_some_verb(ctx, mix, buffer, &old[verbs - 1]);
    }
    return dm_commit(ctx);
}

static void client(struct dm_ctx *ctx, void *arg) {
    struct mix *mix = arg;
    unsigned char *buffer = dm_local_alloc(ctx, BYTES_MAX);
    int rc = buffer ? 0 : DM_ERR_NO_MEMORY;
    for (unsigned i = 0; i < OPERATIONS && rc == 0; i++) {
        rc = operate(ctx, mix, buffer);
    }
    mix->rc = mix->rc < 0 ? mix->rc : rc;
}

static int run(struct dm_fabric *fabric, const struct hx_conserving *wanted, struct mix *mix, struct dm_err *err) {
    for (unsigned node = 0; node < wanted->mns; node++) {
        int rc = dm_register(fabric, node, METHOD, handle, mix);
        if (rc < 0) {
            return dm_fail(err, rc, "cannot register a handler");
        }
    }
    dm_fabric_measure(fabric);
    for (unsigned i = 0; i < CLIENTS_OF_NODE * wanted->cns; i++) {
        unsigned thread = i / wanted->cns / wanted->coroutines;
        int rc = dm_spawn(fabric, wanted->mns + i % wanted->cns, thread, client, mix);
        if (rc < 0) {
            return dm_fail(err, rc, "cannot start a client");
        }
    }
    DM_TRY(dm_fabric_run(fabric, err));
    return mix->rc < 0 ? dm_fail(err, mix->rc, "a verb or call of the mix failed") : 0;
}

static void add(const struct dm_resource *resource, struct hx_conserved rows[HX_CONSERVED_MAX], size_t *count) {
    size_t row = 0;
    while (row < *count && strcmp(rows[row].name, resource->name) != 0) {
        row++;
    }
    if (row == HX_CONSERVED_MAX) {
        return;
    }
    if (row == *count) {
        rows[(*count)++] = (struct hx_conserved){.name = resource->name};
    }
    rows[row].served += resource->served;
    rows[row].idle_waited_ns += resource->idle_waited_ns;
    rows[row].busy = resource->busy > rows[row].busy ? resource->busy : rows[row].busy;
}

int hx_conserving_run(const struct hx_conserving *wanted, struct hx_conserved rows[HX_CONSERVED_MAX], size_t *count,
                      struct dm_err *err) {
    static struct dm_resource resources[RESOURCES_MAX];
    struct mix mix = {.nodes = wanted->mns};
    struct dm_fabric_config config = {.transport = "sim",
                                      .profile = wanted->profile,
                                      .seed = wanted->seed,
                                      .topology = {.mns = wanted->mns,
                                                   .cns = wanted->cns,
                                                   .mn_cores = 2,
                                                   .clients = CLIENTS_OF_NODE * wanted->cns,
                                                   .clients_per_thread = wanted->coroutines,
                                                   .mn_bytes = 1 << 22,
                                                   .chip_bytes = 1 << 16},
                                      .settings = wanted->settings,
                                      .setting_count = wanted->setting_count};
    struct dm_fabric *fabric;
    DM_TRY(dm_fabric_open(&config, &fabric, err));
    int rc = run(fabric, wanted, &mix, err);
    *count = 0;
    size_t total = rc == 0 ? dm_resources(fabric, resources, RESOURCES_MAX) : 0;
    for (size_t i = 0; i < total && i < RESOURCES_MAX; i++) {
        add(&resources[i], rows, count);
    }
    dm_fabric_close(fabric);
    return rc;
}
