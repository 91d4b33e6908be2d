/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets up the core workload and draws its operations. A key number above the newest acknowledged one is drawn again,
 * never clamped.
 */
#include "workloads/core_workload.h"

#include <stdlib.h>

#include "common/compiler.h"

/* KVell's production traces as published, over 5 * 10^8 keys: cumulative weights and the keys where each piece ends. */
struct prod_table {
    unsigned count;
    uint64_t total;
    uint64_t weight[WL_PIECES_MAX], end[WL_PIECES_MAX];
};
static const uint64_t PROD_KEYS = 500000000;
static const struct prod_table prod1 = {
    6, 10000, {13, 8130, 9444, 9742, 9920, 10000}, {144000000, 314400000, 450000000, 480000000, 490000000, 500000000}};
static const struct prod_table prod2 = {7,
                                        1000000,
                                        {103487, 570480, 849982, 930511, 973234, 986958, 1000000},
                                        {47016400, 259179450, 386162550, 422748200, 442158000, 448392900, 500000000}};
/* The published code draws a number below 10 000, which always falls into the first piece. */
static const struct prod_table prod2_as_run = {1, 10000, {10000}, {47016400}};

static struct wl_pieces pieces_make(const struct prod_table *table, uint64_t start, uint64_t count) {
    struct wl_pieces pieces = {.count = table->count, .total = table->total};
    uint64_t low = 0;
    for (unsigned i = 0; i < table->count; i++) {
        uint64_t end = (uint64_t)((unsigned __int128)table->end[i] * count / PROD_KEYS);
        /* with few keys a piece may be empty: it then has the nearest key */
        low = low < count ? low : count - 1;
        end = end > low ? end : low + 1;
        pieces.limit[i] = table->weight[i];
        pieces.inside[i] = wl_uniform_make(start + low, start + end - 1);
        low = end;
    }
    return pieces;
}

static uint64_t pieces_next(const struct wl_pieces *pieces, struct dm_prng *prng) {
    uint64_t weight = dm_prng_below(prng, pieces->total);
    unsigned i = 0;
    while (weight >= pieces->limit[i]) {
        i++;
    }
    return wl_uniform_next(&pieces->inside[i], prng);
}

/* YCSB's estimate of the keys that a run inserts: twice the expected number, in 32 bits. */
static uint64_t expected_new_keys(const struct wl_spec *spec, uint64_t operations) {
    double expected = (double)operations * spec->share[WL_INSERT] * 2.0;
    return expected < 2147483647.0 ? (uint64_t)expected : 2147483647;
}

static void chooser_init(struct wl_core *core, const struct wl_spec *spec, uint64_t operations) {
    uint64_t start = spec->insert_start;
    uint64_t count = spec->insert_count > 0 ? spec->insert_count : spec->record_count - start;
    uint64_t last = start + count - 1;
    switch (spec->dist) {
    case WL_DIST_ZIPFIAN:
        core->scrambled = wl_scrambled_make(start, start + count + expected_new_keys(spec, operations), spec->theta);
        break;
    case WL_DIST_LATEST:
        core->latest = wl_latest_make(spec->record_count - 1, spec->theta);
        break;
    case WL_DIST_HOTSPOT:
        core->hotspot = wl_hotspot_make(start, last, spec->hot_data, spec->hot_operations);
        break;
    case WL_DIST_EXPONENTIAL:
        core->exponential =
            wl_exponential_make(spec->exponential_percentile, (double)spec->record_count * spec->exponential_share);
        break;
    case WL_DIST_ZIPFIAN_CLUSTERED:
    case WL_DIST_ZIPFIAN_HASHED:
        core->clustered = wl_zipf_make(start, count, spec->theta, 0.0);
        break;
    case WL_DIST_PROD1:
        core->pieces = pieces_make(&prod1, start, count);
        break;
    case WL_DIST_PROD2:
        core->pieces = pieces_make(&prod2_as_run, start, count);
        break;
    case WL_DIST_PROD2_FIXED:
        core->pieces = pieces_make(&prod2, start, count);
        break;
    case WL_DIST_UNIFORM:
    case WL_DIST_SEQUENTIAL:
    case WL_DIST_COUNT:
        break;
    }
    core->uniform = wl_uniform_make(start, last);
}

/* The range of a client has the inserts that are expected of it. */
static uint64_t range_of(const struct wl_spec *spec, uint64_t operations, unsigned clients) {
    uint64_t expected = (uint64_t)((double)operations * spec->share[WL_INSERT]);
    uint64_t range = (expected + clients - 1) / clients;
    return !spec->client_ranges || spec->share[WL_INSERT] <= 0.0 ? 0 : range > 0 ? range : 1;
}

int wl_core_open(struct wl_core *core, const struct wl_spec *spec, const struct wl_keymap *map, uint64_t operations,
                 unsigned clients) {
    core->map = map;
    core->kinds = wl_discrete_make(spec->share, WL_OP_KIND_COUNT);
    core->dist = spec->dist;
    chooser_init(core, spec, operations);
    core->scan_zipfian = spec->scan_zipfian;
    core->scan_uniform = wl_uniform_make(spec->scan_min, spec->scan_max);
    if (spec->scan_zipfian) {
        core->scan_zipf = wl_zipf_make(spec->scan_min, spec->scan_max - spec->scan_min + 1, WL_ZIPFIAN_CONSTANT, 0.0);
    }
    atomic_init(&core->sequence, 0);
    core->part = 0;
    core->parts = 1;
    core->clients = clients;
    core->range = range_of(spec, operations, clients);
    core->trace_ops = spec->trace_ops;
    core->upserts = spec->upserts;
    core->present = NULL;
    core->present_count = 0;
    return wl_ack_open(&core->ack, spec->record_count, spec->share[WL_INSERT] > 0.0);
}

void wl_core_close(struct wl_core *core) {
    wl_ack_close(&core->ack);
    free(core->present);
    core->present = NULL;
}

/* The bit of a key number that can be chosen from the start: of its key where numbers share keys. */
static uint64_t present_at(const struct wl_core *core, uint64_t number) {
    return core->map->kind == WL_KEYMAP_FOLDED ? wl_keymap_key(core->map, number) : number;
}

static bool is_present(const struct wl_core *core, uint64_t number) {
    uint64_t at = present_at(core, number);
    return at >= core->present_count ||
           (atomic_load_explicit(&core->present[at / 64], memory_order_relaxed) >> (at % 64) & 1) != 0;
}

void wl_core_upserted(struct wl_core *core, uint64_t number) {
    uint64_t at = present_at(core, number), bit = UINT64_C(1) << (at % 64);
    if (at < core->present_count && (atomic_load_explicit(&core->present[at / 64], memory_order_relaxed) & bit) == 0) {
        atomic_fetch_or_explicit(&core->present[at / 64], bit, memory_order_relaxed);
    }
}

int wl_core_present_make(struct wl_core *core, const struct wl_keymap *map) {
    core->present = calloc(map->count / 64 + 1, sizeof core->present[0]);
    if (core->present == NULL) {
        return DM_ERR_NO_MEMORY;
    }
    core->present_count = map->count;
    for (uint64_t i = 0; i < map->load_numbers; i++) {
        wl_core_upserted(core, i);
    }
    return 0;
}

struct wl_core_stream wl_core_stream_make(struct wl_core *core, struct dm_prng prng, unsigned client) {
    return (struct wl_core_stream){
        .core = core, .prng = prng, .latest = core->latest, .trace_start = prng, .client = client};
}

/* The number of the i-th key that a client inserts into ranges of its own: its first range follows those of the clients
 * before it, its second one the first ranges of all clients, and so on. */
static uint64_t range_number(const struct wl_core_stream *stream, uint64_t i) {
    const struct wl_core *core = stream->core;
    return core->map->fresh_start + (i / core->range * core->clients + stream->client) * core->range + i % core->range;
}

/* The newest key number that a stream may choose. With ranges of clients, all keys of the ranges before the client's
 * own count as present, as in a published trace that was generated as a whole and then split. */
static uint64_t newest_of(const struct wl_core_stream *stream) {
    struct wl_core *core = stream->core;
    if (core->range == 0) {
        return wl_ack_newest(&core->ack);
    }
    return stream->inserted_trace > 0 ? range_number(stream, stream->inserted_trace - 1) : range_number(stream, 0) - 1;
}

/* Begins the trace again once it has ended. */
static void trace_turn(struct wl_core_stream *stream) {
    if (stream->drawn == stream->core->trace_ops) {
        stream->prng = stream->trace_start;
        stream->latest = stream->core->latest;
        stream->inserted_trace = 0;
        stream->drawn = 0;
    }
    stream->drawn++;
}

static uint64_t number_draw(struct wl_core_stream *stream, uint64_t newest) {
    struct wl_core *core = stream->core;
    switch (core->dist) {
    case WL_DIST_ZIPFIAN:
        return wl_scrambled_next(&core->scrambled, &stream->prng);
    case WL_DIST_LATEST:
        return wl_latest_next(&stream->latest, newest, &stream->prng);
    case WL_DIST_HOTSPOT:
        return wl_hotspot_next(&core->hotspot, &stream->prng);
    case WL_DIST_EXPONENTIAL: {
        double distance = wl_exponential_next(&core->exponential, &stream->prng);
        /* a number before the first key is returned as one above the newest, so that it is drawn again */
        return distance < (double)newest + 1.0 ? newest - (uint64_t)distance : UINT64_MAX;
    }
    case WL_DIST_SEQUENTIAL: {
        uint64_t turn = atomic_fetch_add_explicit(&core->sequence, 1, memory_order_relaxed);
        return core->uniform.low + wl_mod(&core->uniform.range, turn);
    }
    case WL_DIST_ZIPFIAN_CLUSTERED:
    case WL_DIST_ZIPFIAN_HASHED:
        return wl_zipf_next(&core->clustered, &stream->prng);
    case WL_DIST_PROD1:
    case WL_DIST_PROD2:
    case WL_DIST_PROD2_FIXED:
        return pieces_next(&core->pieces, &stream->prng);
    case WL_DIST_UNIFORM:
    case WL_DIST_COUNT:
        break;
    }
    return wl_uniform_next(&core->uniform, &stream->prng);
}

static uint64_t number_choose(struct wl_core_stream *stream) {
    uint64_t newest = newest_of(stream);
    uint64_t number;
    do {
        number = number_draw(stream, newest);
    } while (dm_unlikely(number > newest));
    return number;
}

static uint32_t scan_length(struct wl_core_stream *stream) {
    struct wl_core *core = stream->core;
    return (uint32_t)(core->scan_zipfian ? wl_zipf_next(&core->scan_zipf, &stream->prng)
                                         : wl_uniform_next(&core->scan_uniform, &stream->prng));
}

/* Each process counts alone. Of the numbers that all processes insert, every `parts`-th belongs to this one. */
static uint64_t global_number(const struct wl_core *core, uint64_t number) {
    uint64_t start = core->map->fresh_start;
    return number < start ? number : start + (number - start) * core->parts + core->part;
}

/* The key of an insert. */
static int insert_next(struct wl_core_stream *stream, struct wl_op *op) {
    struct wl_core *core = stream->core;
    uint64_t number;
    if (core->range > 0) {
        number = range_number(stream, stream->inserted++);
        stream->inserted_trace++;
    } else {
        DM_TRY(wl_ack_next(&core->ack, &op->ticket));
        number = global_number(core, op->ticket);
    }
    if (number - core->map->fresh_start >= wl_keymap_free_keys(core->map)) {
        /* The key set has no free key left. wl_open refuses the runs that are sure to get here. */
        return DM_ERR_NO_MEMORY;
    }
    op->key = wl_keymap_key(core->map, number);
    return 0;
}

int wl_core_next(struct wl_core_stream *stream, struct wl_op *op) {
    struct wl_core *core = stream->core;
    if (core->trace_ops > 0 && !stream->is_waiting) {
        trace_turn(stream);
    }
    /* An insert that had to wait for acknowledgements is drawn once. */
    op->kind = stream->is_waiting ? WL_INSERT : (enum wl_op_kind)wl_discrete_next(&core->kinds, &stream->prng);
    op->scan_length = 0;
    op->ticket = 0;
    op->upsert = core->upserts && (op->kind == WL_INSERT || op->kind == WL_UPDATE);
    if (op->kind == WL_INSERT) {
        int rc = insert_next(stream, op);
        stream->is_waiting = rc == DM_ERR_RETRY_LIMIT;
        return rc;
    }
    uint64_t number = number_choose(stream);
    number = core->range > 0 ? number : global_number(core, number);
    op->key = wl_keymap_key(core->map, number);
    op->ticket = number;
    if (op->upsert) {
        op->ticket = number | WL_CHOSEN;
        op->kind = is_present(core, number) ? WL_UPDATE : WL_INSERT;
    }
    if (op->kind == WL_SCAN) {
        op->scan_length = scan_length(stream);
    }
    return 0;
}
