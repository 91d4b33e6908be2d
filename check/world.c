/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws worlds. Each aspect of a world is drawn from its own random stream, so that a change to one does not change the
 * others for a seed. The parameters of an index are drawn from its table of parameters alone.
 */
#include "check/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MN_BYTES = 32 << 20,
    RETRY_LIMIT = 20000,
    COUNT_SMALL = 16,  /* counts are drawn up to this many times their minimum */
    BYTES_STEPS = 64,  /* sizes are tried from the minimum up in steps of this many bytes */
    BYTES_TRIES = 512, /* at most this many sizes are tried */
};

static struct dm_prng stream(const struct ck_world *world, const char *name) {
    return dm_prng_stream(world->seed, name, 0);
}

static uint64_t one_of(struct dm_prng *prng, const uint64_t *values, size_t count) {
    return values[dm_prng_below(prng, count)];
}
#define ONE_OF(prng, ...)                                                                                              \
    one_of(prng, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static bool chance(struct dm_prng *prng, unsigned percent) {
    return dm_prng_below(prng, 100) < percent;
}

/* ---- topology and shape ----------------------------------------------------------------------------------------- */

static void topology_draw(struct ck_world *world) {
    struct dm_prng prng = stream(world, "check topology");
    unsigned clients = (unsigned)(2 + dm_prng_below(&prng, CK_CLIENTS_MAX - 1));
    unsigned cns = (unsigned)(1 + dm_prng_below(&prng, CK_CNS_MAX));
    world->topology = (struct dm_topology){
        .mns = (unsigned)ONE_OF(&prng, 1, 1, 2, 3),
        .servers = world->index->caps & IX_CAP_SERVERS ? (unsigned)(2 << dm_prng_below(&prng, 2)) : 0,
        .cns = cns < clients ? cns : clients,
        .mn_cores = (unsigned)(1 + dm_prng_below(&prng, 2)),
        .server_cores = (unsigned)(1 + dm_prng_below(&prng, 4)),
        .clients = clients,
        .clients_per_thread = (unsigned)(1 + dm_prng_below(&prng, 4)),
        .mn_bytes = MN_BYTES,
        .chip_bytes = (uint32_t)ONE_OF(&prng, 0, 64, 1024, 65536),
    };
    world->shape = (struct ix_shape){
        .value_bytes = (uint32_t)ONE_OF(&prng, 8, 8, 8, 16, 32, 64),
        .cache_bytes = ONE_OF(&prng, 0, 512, 1024, 2048, 4096, 65536),
        .topology = &world->topology,
    };
    struct dm_prng key_prng = stream(world, "check key bytes");
    if (world->index->key_bytes_max > IX_KEY_BYTES_MIN && chance(&key_prng, 15)) {
        uint32_t most = world->index->key_bytes_max, drawn = (uint32_t)ONE_OF(&key_prng, 9, 16, 24, 40);
        world->shape.key_bytes = drawn < most ? drawn : most;
    }
}

/* ---- parameters of the index ------------------------------------------------------------------------------------ */

static bool is_wrong(const struct ck_world *world, const char *param, const char *value) {
    for (const struct ix_wrong *wrong = world->index->wrong; wrong && wrong->param; wrong++) {
        if (strcmp(wrong->param, param) == 0 && strcmp(wrong->value, value) == 0) {
            return true;
        }
    }
    return false;
}

static bool params_work(const struct ck_world *world) {
    return ix_check(world->index, world->params, &world->shape, NULL) >= 0;
}

static void param_set(struct ck_world *world, const char *name, const char *value) {
    (void)dm_opt_set(world->index->params, world->params, name, value, NULL); /* a refused value changes nothing */
}

static void param_number(struct ck_world *world, const struct dm_opt *row, uint64_t number) {
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    param_set(world, row->name, text);
}

/* Draws the smallest size that works, or one a few steps above it. */
static void bytes_draw(struct ck_world *world, const struct dm_opt *row, struct dm_prng *prng) {
    unsigned above = (unsigned)ONE_OF(prng, 0, 1, 2, 3);
    uint64_t bytes = row->min > 0 ? (uint64_t)row->min : BYTES_STEPS;
    param_number(world, row, bytes);
    for (unsigned i = 0; i < BYTES_TRIES && !params_work(world); i++) {
        bytes += BYTES_STEPS;
        param_number(world, row, bytes);
    }
    if (params_work(world)) {
        param_number(world, row, bytes + above * BYTES_STEPS);
    }
}

static void count_draw(struct ck_world *world, const struct dm_opt *row, struct dm_prng *prng) {
    uint64_t min = (uint64_t)row->min;
    uint64_t span = COUNT_SMALL * (min > 0 ? min : 1);
    uint64_t max = row->max > 0 && row->max < (double)(min + span) ? (uint64_t)row->max : min + span;
    bool is_small = chance(prng, 60);
    uint64_t number = min + dm_prng_below(prng, max - min + 1);
    if (is_small) {
        param_number(world, row, number);
    }
}

static void enum_draw(struct ck_world *world, const struct dm_opt *row, struct dm_prng *prng) {
    size_t count = 0;
    while (row->choices[count]) {
        count++;
    }
    const char *choice = row->choices[dm_prng_below(prng, count)];
    if (!is_wrong(world, row->name, choice)) {
        param_set(world, row->name, choice);
    }
}

static void param_draw(struct ck_world *world, const struct dm_opt *row, struct dm_prng *prng) {
    char text[32];
    switch (row->type) {
    case DM_OPT_BOOL: {
        const char *value = chance(prng, 50) ? "on" : "off";
        if (!is_wrong(world, row->name, value)) {
            param_set(world, row->name, value);
        }
        break;
    }
    case DM_OPT_BYTES:
        bytes_draw(world, row, prng);
        break;
    case DM_OPT_COUNT:
        count_draw(world, row, prng);
        break;
    case DM_OPT_REAL:
        if (row->max > row->min) {
            snprintf(text, sizeof(text), "%.3f", row->min + dm_prng_double(prng) * (row->max - row->min));
            param_set(world, row->name, text);
        }
        break;
    case DM_OPT_ENUM:
        enum_draw(world, row, prng);
        break;
    case DM_OPT_DURATION:
    case DM_OPT_STRING:
        break;
    }
}

static bool is_fixed(const struct ck_request *request, const char *name) {
    for (size_t i = 0; i < request->param_count; i++) {
        if (strcmp(request->params[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Draws one parameter, and restores it if the index cannot work with the drawn value. */
static void param_try(struct ck_world *world, const struct dm_opt *row) {
    struct dm_prng prng = dm_prng_stream(world->seed, row->name, 1);
    char before[256];
    dm_opt_format(row, world->params, before, sizeof(before));
    param_draw(world, row, &prng);
    if (!params_work(world)) {
        param_set(world, row->name, before);
    }
}

static int params_draw(const struct ck_request *request, struct ck_world *world, struct dm_err *err) {
    const struct ix_ops *index = world->index;
    world->params = calloc(1, index->params_bytes + 1);
    if (!world->params) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    dm_opt_defaults(index->params, world->params);
    for (size_t i = 0; i < request->param_count; i++) {
        DM_TRY(dm_opt_set(index->params, world->params, request->params[i].name, request->params[i].value, err));
    }
    if (!params_work(world)) {
        world->shape.value_bytes = 8; /* fits the smallest nodes */
    }
    if (!params_work(world)) {
        world->shape.key_bytes = 0;
    }
    /* Lock tables and the like may need more on-chip memory than was drawn. */
    if (!params_work(world)) {
        world->topology.chip_bytes = 65536;
    }
    DM_TRY(ix_check(index, world->params, &world->shape, err));
    for (const struct dm_opt *row = index->params; row->name; row++) {
        if (!is_fixed(request, row->name)) {
            param_try(world, row);
        }
    }
    return 0;
}

/* ---- the fabric ------------------------------------------------------------------------------------------------- */

static void setting_add(struct ck_world *world, const char *name, const char *value) {
    const struct dm_opt *table = dm_transport_find(world->transport)->options;
    if (table && dm_opt_find(table, name) && world->setting_count < CK_SETTINGS_MAX) {
        world->settings[world->setting_count++] = (struct dm_setting){name, value};
    }
}

static int fabric_draw(const struct ck_request *request, struct ck_world *world, struct dm_err *err) {
    static const char *const orders[] = {"ascending", "random", "random", "descending"};
    static const char *const windows[] = {"read_window", "write_window"};
    struct dm_prng prng = stream(world, "check fabric");
    setting_add(world, "read_line_order", orders[dm_prng_below(&prng, 4)]);
    setting_add(world, "write_line_order", orders[dm_prng_below(&prng, 4)]);
    setting_add(world, "read_order", dm_prng_below(&prng, 2) ? "any" : "posted");
    if (world->index->caps & IX_CAP_SERVER_FAULT) {
        static const char *const timeouts[] = {"10us", "50us", "200us"};
        setting_add(world, "peer_timeout", timeouts[dm_prng_below(&prng, 3)]);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(world->window_text[i], sizeof(world->window_text[i]), "%lluns",
                 (unsigned long long)ONE_OF(&prng, 0, 200, 1000, 2000, 2000));
        setting_add(world, windows[i], world->window_text[i]);
    }
    for (size_t i = 0; i < request->setting_count; i++) { /* later settings override earlier ones */
        if (world->setting_count == CK_SETTINGS_MAX) {
            return dm_fail(err, DM_ERR_INVALID, "more than %d options of the transport", CK_SETTINGS_MAX - 4);
        }
        world->settings[world->setting_count++] = request->settings[i];
    }
    return 0;
}

/* Draws few slots, so that keys collide in them. */
static void rdwc_draw(const struct ck_request *request, struct ck_world *world) {
    static const enum ix_rdwc_mode fixed[] = {[CK_RDWC_OFF] = IX_RDWC_OFF,
                                              [CK_RDWC_ON] = IX_RDWC_ON,
                                              [CK_RDWC_PUBLISHED] = IX_RDWC_PUBLISHED,
                                              [CK_RDWC_STALE] = IX_RDWC_STALE};
    struct dm_prng prng = stream(world, "check rdwc");
    enum ix_rdwc_mode drawn = chance(&prng, 30) ? IX_RDWC_ON : IX_RDWC_OFF;
    world->rdwc_slots = (uint32_t)ONE_OF(&prng, 2, 4, 16, 256);
    world->rdwc = request->rdwc == CK_RDWC_DRAWN ? drawn : fixed[request->rdwc];
}

/* ---- keys and scripts ------------------------------------------------------------------------------------------- */

static void keys_draw(struct ck_world *world) {
    struct dm_prng prng = stream(world, "check keys");
    unsigned count = (unsigned)ONE_OF(&prng, 4, 8, 16, 32, 64, 64, 64, 64);
    unsigned style = (unsigned)dm_prng_below(&prng, 3);
    unsigned load_percent = (unsigned)ONE_OF(&prng, 0, 0, 20, 60, 100);
    uint64_t gap = style == 0 ? 1 : style == 1 ? UINT64_MAX / count : 1000003;
    uint64_t first = style == 2 ? dm_prng_below(&prng, UINT64_C(1) << 62) : 0;
    for (unsigned i = 0; i < count; i++) {
        world->keys[i] = first + i * gap;
        world->loaded[i] = chance(&prng, load_percent);
    }
    if (style == 1) {
        world->keys[count - 1] = IX_KEY_MAX;
    }
    world->key_count = count;
    world->shape.expected_keys = count;
}

/* Draws the shares of the kinds of operations. At least one kind writes if the index supports writes. */
static void mix_draw(const struct ck_world *world, struct dm_prng *prng, unsigned weights[WL_OP_KIND_COUNT]) {
    memset(weights, 0, sizeof(unsigned) * WL_OP_KIND_COUNT);
    weights[WL_GET] = (unsigned)(1 + dm_prng_below(prng, 10));
    unsigned insert = (unsigned)dm_prng_below(prng, 16), update = (unsigned)dm_prng_below(prng, 10);
    unsigned remove = (unsigned)dm_prng_below(prng, 8), scan = (unsigned)dm_prng_below(prng, 4);
    if (world->index->caps & IX_CAP_INSERT) {
        weights[WL_INSERT] = insert;
        weights[WL_UPDATE] = update + (insert == 0);
    }
    weights[WL_DELETE] = world->index->caps & IX_CAP_DELETE ? remove : 0;
    weights[WL_SCAN] = world->index->caps & IX_CAP_SCAN ? scan : 0;
}

static enum wl_op_kind kind_draw(struct dm_prng *prng, const unsigned weights[WL_OP_KIND_COUNT]) {
    unsigned sum = 0;
    for (int i = 0; i < WL_OP_KIND_COUNT; i++) {
        sum += weights[i];
    }
    unsigned at = (unsigned)dm_prng_below(prng, sum);
    int kind = 0;
    while (at >= weights[kind]) {
        at -= weights[kind++];
    }
    return (enum wl_op_kind)kind;
}

/* Draws a key by a power of a uniform number. The higher the power, the more draws are among the first keys. */
static unsigned key_draw(struct dm_prng *prng, unsigned key_count, unsigned skew) {
    double at = 1;
    for (unsigned i = 0; i <= skew; i++) {
        at *= dm_prng_double(prng);
    }
    return (unsigned)(at * key_count);
}

static void steps_draw(struct ck_world *world) {
    struct dm_prng prng = stream(world, "check steps");
    unsigned weights[WL_OP_KIND_COUNT];
    mix_draw(world, &prng, weights);
    size_t each = (size_t)(100 + dm_prng_below(&prng, CK_STEPS_MAX - 100)) / world->topology.clients;
    unsigned skew = (unsigned)ONE_OF(&prng, 0, 0, 1, 2, 3);
    unsigned pause_percent = (unsigned)ONE_OF(&prng, 0, 10, 50, 90);
    uint64_t pause_max = ONE_OF(&prng, 1000, 3000, 10000);
    /* The seed decides which key is hot: the first, the last or any other. */
    unsigned turn = (unsigned)dm_prng_below(&prng, world->key_count);
    for (unsigned client = 0; client < world->topology.clients; client++) {
        for (size_t i = 0; i < each; i++) {
            struct ck_step *step = &world->steps[world->step_count++];
            step->client = client;
            step->kind = kind_draw(&prng, weights);
            step->key = (key_draw(&prng, world->key_count, skew) + turn) % world->key_count;
            step->wanted = step->kind == WL_SCAN ? (uint32_t)(1 + dm_prng_below(&prng, CK_SCAN_MAX)) : 0;
            bool pauses = chance(&prng, pause_percent);
            uint64_t pause = 1 + dm_prng_below(&prng, pause_max);
            step->pause_ns = pauses ? (uint32_t)pause : 0;
        }
    }
}

/* ---- the world -------------------------------------------------------------------------------------------------- */

int ck_world_draw(const struct ck_request *request, uint64_t seed, struct ck_world *world, struct dm_err *err) {
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    world->index = request->index;
    world->transport = request->transport;
    world->retry_limit = RETRY_LIMIT;
    topology_draw(world);
    keys_draw(world);
    DM_TRY(params_draw(request, world, err));
    DM_TRY(fabric_draw(request, world, err));
    rdwc_draw(request, world);
    steps_draw(world);
    ck_faults_draw(world);
    return 0;
}

void ck_world_fini(struct ck_world *world) {
    if (world->params) {
        dm_opt_free(world->index->params, world->params);
        free(world->params);
        world->params = NULL;
    }
    ck_world_file_free(world->file);
    world->file = NULL;
}

const char *ck_world_text(const struct ck_world *world, char *text, size_t capacity) {
    const struct dm_topology *topology = &world->topology;
    int at = snprintf(
        text, capacity,
        "%u clients on %u CNs (%u per thread), %u MNs, %u keys of %u bytes, values of %u bytes, cache of %llu bytes, "
        "%u bytes of on-chip memory;",
        topology->clients, topology->cns, topology->clients_per_thread, topology->mns, world->key_count,
        ix_key_bytes(&world->shape), world->shape.value_bytes, (unsigned long long)world->shape.cache_bytes,
        topology->chip_bytes);
    static const char *const rdwc_names[] = {"off", "on", "published", "stale"};
    if (world->rdwc != IX_RDWC_OFF && at < (int)capacity) {
        at += snprintf(text + at, capacity - (size_t)at, " rdwc=%s with %u slots;", rdwc_names[world->rdwc],
                       world->rdwc_slots);
    }
    for (const struct dm_opt *row = world->index->params; row && row->name && at < (int)capacity; row++) {
        char value[64];
        dm_opt_format(row, world->params, value, sizeof(value));
        at += snprintf(text + at, capacity - (size_t)at, " %s=%s", row->name, value);
    }
    for (size_t i = 0; i < world->setting_count && at < (int)capacity; i++) {
        at += snprintf(text + at, capacity - (size_t)at, "%s %s=%s", i == 0 ? ";" : "", world->settings[i].name,
                       world->settings[i].value);
    }
    for (size_t i = 0; i < world->fault_count && at < (int)capacity; i++) {
        char fault[80];
        at +=
            snprintf(text + at, capacity - (size_t)at, "; %s", ck_fault_text(&world->faults[i], fault, sizeof(fault)));
    }
    return text;
}
