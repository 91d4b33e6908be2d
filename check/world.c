/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws worlds. Each number of a world is drawn from a random stream of its own name, so that a new one, or another
 * range of one, does not change the others for a seed. The parameters of an index are drawn from its table of
 * parameters alone.
 */
#include "check/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

enum {
    MN_BYTES = 32 << 20,
    PARAMS_MAX = 64, /* of an index */
    RETRY_LIMIT = 20000,
    COUNT_SMALL = 16,  /* counts are drawn up to this many times their minimum */
    MANY_KEYS = 256,   /* at least, in worlds with many keys */
    COUNT_TINY = 4,    /* in tiny worlds up to so many above it, less one */
    TINY_PERCENT = 20, /* of worlds */
    MANY_KEYS_PERCENT = 3,
    EMULATES_PERCENT = 15,
    BYTES_STEPS = 64,  /* sizes are tried from the minimum up in steps of this many bytes */
    BYTES_TRIES = 512, /* at most this many sizes are tried */
};

static struct dm_prng stream(const struct ck_world *world, const char *name) {
    return dm_prng_stream(world->seed, name, 0);
}

static bool chance(struct dm_prng *prng, unsigned percent) {
    return dm_prng_below(prng, 100) < percent;
}

/* A number of this name, from 0 up to below `n`. */
static unsigned below(const struct ck_world *world, const char *name, uint64_t n) {
    struct dm_prng prng = stream(world, name);
    return (unsigned)dm_prng_below(&prng, n);
}

static bool happens(const struct ck_world *world, const char *name, unsigned percent) {
    return below(world, name, 100) < percent;
}

/* One of the values. */
#define ONE_OF(world, name, ...)                                                                                       \
    ((const uint64_t[]){__VA_ARGS__})[below(world, name, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))]

/* ---- topology and shape ----------------------------------------------------------------------------------------- */

static void topology_draw(struct ck_world *world) {
    unsigned clients = 2 + below(world, "clients", CK_CLIENTS_MAX - 1), cns = 1 + below(world, "cns", CK_CNS_MAX);
    world->topology = (struct dm_topology){
        .mns = (unsigned)ONE_OF(world, "mns", 1, 1, 2, 3),
        .servers = world->index->caps & IX_CAP_SERVERS ? 2U << below(world, "servers", 2) : 0,
        .cns = cns < clients ? cns : clients,
        .mn_cores = 1 + below(world, "mn cores", 2),
        .server_cores = 1 + below(world, "server cores", 4),
        .clients = clients,
        .clients_per_thread = 1 + below(world, "clients per thread", 4),
        .mn_bytes = MN_BYTES,
        .chip_bytes = (uint32_t)ONE_OF(world, "chip bytes", 0, 64, 1024, 65536),
    };
    world->shape = (struct ix_shape){
        .value_bytes = (uint32_t)ONE_OF(world, "value bytes", 8, 8, 8, 16, 32, 64),
        .cache_bytes = ONE_OF(world, "cache bytes", 0, 512, 1024, 2048, 4096, 65536),
        .topology = &world->topology,
    };
    if (world->index->key_bytes_max > IX_KEY_BYTES_MIN && happens(world, "has long keys", 15)) {
        uint32_t most = world->index->key_bytes_max;
        uint32_t drawn = (uint32_t)ONE_OF(world, "key bytes", 9, 16, 24, 40);
        world->shape.key_bytes = drawn < most ? drawn : most;
    }
}

/* ---- keys ---------------------------------------------------------------------------------------------------------
 */

static void keys_draw(struct ck_world *world, bool may_be_many) {
    unsigned count = (unsigned)ONE_OF(world, "keys", 4, 8, 16, 32, 64, 64, 64, 64);
    if (may_be_many && happens(world, "has many keys", MANY_KEYS_PERCENT)) {
        count = MANY_KEYS + below(world, "many keys", CK_KEYS_MAX - MANY_KEYS);
    }
    unsigned style = below(world, "key style", 3);
    unsigned load_percent = (unsigned)ONE_OF(world, "load percent", 0, 0, 20, 60, 100);
    uint64_t gap = style == 0 ? 1 : style == 1 ? UINT64_MAX / count : 1000003;
    struct dm_prng begin = stream(world, "first key"), loaded = stream(world, "loaded keys");
    uint64_t first = style == 2 ? dm_prng_below(&begin, UINT64_C(1) << 62) : 0;
    for (unsigned i = 0; i < count; i++) {
        world->keys[i] = first + i * gap;
        world->loaded[i] = chance(&loaded, load_percent);
    }
    if (style == 1) {
        world->keys[count - 1] = IX_KEY_MAX;
    }
    world->key_count = count;
    world->shape.expected_keys = count;
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
    unsigned above = (unsigned)dm_prng_below(prng, 4);
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

/* In some worlds all counts are tiny. With nodes of so few entries splits, merges and reuse are common; but keys hop
 * little, and values of several lines are few, so other worlds are as large as they were. */
static bool is_tiny(const struct ck_world *world) {
    return happens(world, "is tiny", TINY_PERCENT);
}

static void count_draw(struct ck_world *world, const struct dm_opt *row, struct dm_prng *prng) {
    uint64_t min = (uint64_t)row->min;
    uint64_t span = COUNT_SMALL * (min > 0 ? min : 1);
    uint64_t max = row->max > 0 && row->max < (double)(min + span) ? (uint64_t)row->max : min + span;
    bool is_small = chance(prng, 60);
    uint64_t number = min + dm_prng_below(prng, max - min + 1);
    if (is_tiny(world)) {
        number = min + dm_prng_below(prng, COUNT_TINY);
        param_number(world, row, number < max ? number : max);
    } else if (is_small) {
        param_number(world, row, number);
    }
}

static void enum_draw(struct ck_world *world, const struct dm_opt *row, struct dm_prng *prng) {
    size_t count = 0;
    do {
        count++;
    } while (row->choices[count]); /* there is one at least */
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

/* Draws one parameter, and restores it if the index cannot work with the drawn value, which returns false. */
static bool param_try(struct ck_world *world, const struct dm_opt *row) {
    struct dm_prng prng = dm_prng_stream(world->seed, row->name, 1);
    char before[256];
    dm_opt_format(row, world->params, before, sizeof(before));
    param_draw(world, row, &prng);
    if (params_work(world)) {
        return true;
    }
    param_set(world, row->name, before);
    return false;
}

/* A value may be refused because of one that is drawn after it: a tiny span with the initial neighbourhood. So what a
 * tiny world refused is tried again at the end. */
static void params_try(const struct ck_request *request, struct ck_world *world) {
    const struct dm_opt *table = world->index->params;
    bool is_refused[PARAMS_MAX] = {false};
    for (size_t i = 0; table[i].name; i++) {
        bool is_drawn = is_fixed(request, table[i].name) || param_try(world, &table[i]);
        if (i < PARAMS_MAX) {
            is_refused[i] = !is_drawn;
        }
    }
    for (size_t i = 0; is_tiny(world) && table[i].name && i < PARAMS_MAX; i++) {
        if (is_refused[i]) {
            (void)param_try(world, &table[i]);
        }
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
        keys_draw(world, false);
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
    params_try(request, world);
    return 0;
}

/* ---- the fabric ------------------------------------------------------------------------------------------------- */

static void setting_add(struct ck_world *world, const char *name, const char *value) {
    const struct dm_opt *table = dm_transport_find(world->transport)->options;
    if (table && dm_opt_find(table, name) && world->setting_count < CK_SETTINGS_MAX) {
        world->settings[world->setting_count++] = (struct dm_setting){name, value};
    }
}

/* Half of the worlds have the profile of the default; others change what is slow and what is fast. */
static void profile_draw(struct ck_world *world) {
    /* Of those with on-chip memory. */
    static const char *const names[] = {
        "cx6-100g", "cx6-100g", "cx6-100g", "cx6-100g", "cx5-100g", "cx6-200g", "cx6-100g-slow-client", "cx5-100g-low"};
    snprintf(world->profile, sizeof(world->profile), "%s", names[below(world, "profile", DM_ARRAY_LEN(names))]);
    world->emulates_masked = happens(world, "emulates masked atomics", EMULATES_PERCENT);
}

static int fabric_draw(const struct ck_request *request, struct ck_world *world, struct dm_err *err) {
    static const char *const orders[] = {"ascending", "random", "random", "descending"};
    static const char *const windows[] = {"read_window", "write_window"};
    setting_add(world, "read_line_order", orders[below(world, "read line order", 4)]);
    setting_add(world, "write_line_order", orders[below(world, "write line order", 4)]);
    setting_add(world, "read_order", below(world, "read order", 2) ? "any" : "posted");
    if (world->index->caps & IX_CAP_SERVER_FAULT) {
        static const char *const timeouts[] = {"10us", "50us", "200us"};
        setting_add(world, "peer_timeout", timeouts[below(world, "peer timeout", 3)]);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(world->window_text[i], sizeof(world->window_text[i]), "%lluns",
                 (unsigned long long)ONE_OF(world, windows[i], 0, 200, 1000, 2000, 2000));
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
    enum ix_rdwc_mode drawn = happens(world, "rdwc", 30) ? IX_RDWC_ON : IX_RDWC_OFF;
    world->rdwc_slots = (uint32_t)ONE_OF(world, "rdwc slots", 2, 4, 16, 256);
    world->rdwc = request->rdwc == CK_RDWC_DRAWN ? drawn : fixed[request->rdwc];
}

/* ---- scripts ---------------------------------------------------------------------------------------------------- */

/* Draws the shares of the kinds of operations. At least one kind writes if the index supports writes. In some worlds
 * most writes are deletes, so that nodes become empty. */
static void mix_draw(const struct ck_world *world, unsigned weights[WL_OP_KIND_COUNT]) {
    memset(weights, 0, sizeof(unsigned) * WL_OP_KIND_COUNT);
    weights[WL_GET] = 1 + below(world, "gets", 10);
    unsigned insert = below(world, "inserts", 16), update = below(world, "updates", 10);
    unsigned remove = below(world, "deletes", happens(world, "has many deletes", 15) ? 24 : 8);
    if (world->index->caps & IX_CAP_INSERT) {
        weights[WL_INSERT] = insert;
        weights[WL_UPDATE] = update + (insert == 0);
    }
    weights[WL_DELETE] = world->index->caps & IX_CAP_DELETE ? remove : 0;
    weights[WL_SCAN] = world->index->caps & IX_CAP_SCAN ? below(world, "scans", 4) : 0;
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

/* How the steps of all clients are drawn. */
struct script {
    unsigned weights[WL_OP_KIND_COUNT], skew, turn, pause_percent;
    uint64_t pause_max;
};

static void client_steps_draw(struct ck_world *world, const struct script *script, unsigned client, size_t count) {
    struct dm_prng prng = dm_prng_stream(world->seed, "steps", client);
    for (size_t i = 0; i < count; i++) {
        struct ck_step *step = &world->steps[world->step_count++];
        step->client = client;
        step->kind = kind_draw(&prng, script->weights);
        step->key = (key_draw(&prng, world->key_count, script->skew) + script->turn) % world->key_count;
        step->wanted = step->kind == WL_SCAN ? (uint32_t)(1 + dm_prng_below(&prng, CK_SCAN_MAX)) : 0;
        bool pauses = chance(&prng, script->pause_percent);
        uint64_t pause = 1 + dm_prng_below(&prng, script->pause_max);
        step->pause_ns = pauses ? (uint32_t)pause : 0;
    }
}

static void steps_draw(struct ck_world *world) {
    struct script script = {
        .skew = (unsigned)ONE_OF(world, "skew", 0, 0, 1, 2, 3),
        .turn = below(world, "hot key", world->key_count), /* which key is hot: the first, the last or any other */
        .pause_percent = (unsigned)ONE_OF(world, "pause percent", 0, 10, 50, 90),
        .pause_max = ONE_OF(world, "pause", 1000, 3000, 10000),
    };
    mix_draw(world, script.weights);
    size_t each = (size_t)(100 + below(world, "steps", CK_STEPS_MAX - 100)) / world->topology.clients;
    for (unsigned client = 0; client < world->topology.clients; client++) {
        client_steps_draw(world, &script, client, each);
    }
}

/* ---- the world -------------------------------------------------------------------------------------------------- */

int ck_world_draw(const struct ck_request *request, uint64_t seed, struct ck_world *world, struct dm_err *err) {
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    world->index = request->index;
    world->transport = request->transport;
    world->team = request->team;
    world->retry_limit = RETRY_LIMIT;
    topology_draw(world);
    keys_draw(world, true);
    DM_TRY(params_draw(request, world, err));
    profile_draw(world);
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
    if (at < (int)capacity && (strcmp(world->profile, "cx6-100g") != 0 || world->emulates_masked)) {
        at += snprintf(text + at, capacity - (size_t)at, " profile %s%s;", world->profile,
                       world->emulates_masked ? " without masked atomics" : "");
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
        char fault[120];
        at +=
            snprintf(text + at, capacity - (size_t)at, "; %s", ck_fault_text(&world->faults[i], fault, sizeof(fault)));
    }
    return text;
}
