/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of time: finding the slice of a moment, doubling their width, merging those of two threads or processes; and
 * the test of whether a run had settled.
 */
#include "harness/run/over_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/stats.h"

/* ---- the grid --------------------------------------------------------------------------------------------------- */

/* What a grid's slices are: their size, and how one is added to another. */
struct slice_kind {
    size_t bytes;
    void (*add)(void *into, const void *from);
};

static void *slice_at(void *slices, const struct slice_kind *kind, size_t i) {
    return (char *)slices + i * kind->bytes;
}

/* Joins each two neighbours. */
static void grid_double(struct hx_grid *grid, void *slices, const struct slice_kind *kind) {
    uint64_t base = grid->base / 2;
    size_t used = 0;
    for (size_t i = 0; i < grid->used; i++) {
        size_t to = (size_t)((grid->base + i) / 2 - base);
        if (to == used) {
            memmove(slice_at(slices, kind, to), slice_at(slices, kind, i), kind->bytes);
            used++;
        } else {
            kind->add(slice_at(slices, kind, to), slice_at(slices, kind, i));
        }
    }
    if (grid->used > used) {
        memset(slice_at(slices, kind, used), 0, (grid->used - used) * kind->bytes);
    }
    *grid = (struct hx_grid){grid->width_ns * 2, base, used};
}

/* Extends the grid by slices [low, high] beside those in use, all counted in the grid's own width when it is called. */
static void grid_include(struct hx_grid *grid, void *slices, const struct slice_kind *kind, uint64_t low,
                         uint64_t high) {
    if (grid->used == 0) {
        grid->base = low;
    }
    uint64_t first = low < grid->base ? low : grid->base, last = grid->base + (grid->used > 0 ? grid->used - 1 : 0);
    last = high > last ? high : last;
    while (last - first >= HX_SLICES) {
        grid_double(grid, slices, kind);
        first /= 2;
        last /= 2;
    }
    size_t shift = (size_t)(grid->base - first);
    if (shift > 0) {
        memmove(slice_at(slices, kind, shift), slices, grid->used * kind->bytes);
        memset(slices, 0, shift * kind->bytes);
    }
    grid->base = first;
    grid->used = (size_t)(last - first) + 1;
}

/* The slice of a moment. Moments seldom move to another slice, and never to one before the first. */
static size_t grid_at(struct hx_grid *grid, void *slices, const struct slice_kind *kind, uint64_t now_ns) {
    uint64_t at = now_ns / grid->width_ns;
    if (dm_unlikely(grid->used == 0 || at < grid->base || at >= grid->base + grid->used)) {
        grid_include(grid, slices, kind, at, at);
        at = now_ns / grid->width_ns;
    }
    return (size_t)(at - grid->base);
}

static void grid_merge(struct hx_grid *into, void *slices, const struct hx_grid *from, const void *others,
                       const struct slice_kind *kind) {
    if (from->used == 0) {
        return;
    }
    while (into->width_ns < from->width_ns) {
        grid_double(into, slices, kind);
    }
    uint64_t ratio = into->width_ns / from->width_ns;
    grid_include(into, slices, kind, from->base / ratio, (from->base + from->used - 1) / ratio);
    ratio = into->width_ns / from->width_ns;
    for (size_t i = 0; i < from->used; i++) {
        size_t to = (size_t)((from->base + i) / ratio - into->base);
        kind->add(slice_at(slices, kind, to), (const char *)others + i * kind->bytes);
    }
}

/* ---- the pace --------------------------------------------------------------------------------------------------- */

static void pace_add(void *into, const void *from) {
    struct hx_pace_slice *slice = into;
    const struct hx_pace_slice *other = from;
    slice->operations += other->operations;
    slice->latency_ns += other->latency_ns;
}

static const struct slice_kind pace_kind = {sizeof(struct hx_pace_slice), pace_add};

void hx_pace_clear(struct hx_pace *pace) {
    *pace = (struct hx_pace){.grid = {.width_ns = HX_PACE_WIDTH_NS}};
}

void hx_pace_note(struct hx_pace *pace, uint64_t now_ns, uint64_t latency_ns) {
    struct hx_pace_slice *slice = &pace->slices[grid_at(&pace->grid, pace->slices, &pace_kind, now_ns)];
    slice->operations++;
    slice->latency_ns += latency_ns;
}

void hx_pace_merge(struct hx_pace *into, const struct hx_pace *from) {
    grid_merge(&into->grid, into->slices, &from->grid, from->slices, &pace_kind);
}

/* ---- settled ---------------------------------------------------------------------------------------------------- */

/* The values of the batches, in order; false if they are too few or a batch is too short to have one. */
static bool batches_make(const struct hx_pace *pace, uint64_t start_ns, uint64_t end_ns, bool is_open_loop,
                         double values[HX_SETTLED_BATCHES]) {
    enum { OPERATIONS_MIN = 10 }; /* of a batch, so that it is not the time of single operations */
    const struct hx_grid *grid = &pace->grid;
    for (size_t batch = 0; batch < HX_SETTLED_BATCHES && grid->used >= HX_SETTLED_BATCHES; batch++) {
        size_t from = grid->used * batch / HX_SETTLED_BATCHES, to = grid->used * (batch + 1) / HX_SETTLED_BATCHES;
        uint64_t begin = (grid->base + from) * grid->width_ns, end = (grid->base + to) * grid->width_ns;
        uint64_t operations = 0, latency = 0;
        for (size_t i = from; i < to; i++) {
            operations += pace->slices[i].operations;
            latency += pace->slices[i].latency_ns;
        }
        begin = begin < start_ns ? start_ns : begin;
        end = end > end_ns ? end_ns : end;
        if (operations < OPERATIONS_MIN || end <= begin) {
            return false;
        }
        values[batch] =
            is_open_loop ? (double)latency / (double)operations : (double)operations / (double)(end - begin);
    }
    return grid->used >= HX_SETTLED_BATCHES;
}

struct hx_settled hx_settled_judge(const struct hx_pace *pace, uint64_t start_ns, uint64_t end_ns, bool is_open_loop) {
    /* A difference that matters, and that chance does not explain. */
    static const double change_min = 0.02, p_max = 0.001;
    enum { HALF = HX_SETTLED_BATCHES / 2 };
    double values[HX_SETTLED_BATCHES];
    struct hx_settled settled = {.is_known = batches_make(pace, start_ns, end_ns, is_open_loop, values)};
    if (!settled.is_known) {
        return settled;
    }
    settled.first = dm_median(values, HALF);
    settled.second = dm_median(values + HALF, HALF);
    settled.p = dm_mann_whitney(values, HALF, values + HALF, HALF).p;
    bool is_large = fabs(settled.second - settled.first) > change_min * settled.first;
    settled.is_settled = !(is_large && settled.p < p_max);
    return settled;
}

/* ---- latencies, retries and resources ---------------------------------------------------------------------------- */

/* Buckets as in common/hist.h, with fewer of them. */
static unsigned bucket_of(uint64_t value) {
    unsigned shift = 63U - HX_SLICE_SUB_BITS - dm_clz64(value | (UINT64_C(1) << HX_SLICE_SUB_BITS));
    uint64_t bucket = ((uint64_t)shift << HX_SLICE_SUB_BITS) + (value >> shift);
    return bucket < HX_SLICE_BUCKETS ? (unsigned)bucket : HX_SLICE_BUCKETS - 1;
}

static uint64_t bucket_high(unsigned bucket) {
    unsigned octave = bucket >> HX_SLICE_SUB_BITS, shift = octave > 0 ? octave - 1 : 0;
    return ((uint64_t)(bucket - (shift << HX_SLICE_SUB_BITS)) << shift) + (UINT64_C(1) << shift) - 1;
}

static void slice_add(void *into, const void *from) {
    struct hx_slice *slice = into;
    const struct hx_slice *other = from;
    slice->operations += other->operations;
    slice->succeeded += other->succeeded;
    slice->latency_sum_ns += other->latency_sum_ns;
    slice->latency_max_ns =
        other->latency_max_ns > slice->latency_max_ns ? other->latency_max_ns : slice->latency_max_ns;
    slice->retries += other->retries;
    slice->round_trips += other->round_trips;
    for (int i = 0; i < HX_BUSY_MAX; i++) {
        slice->worked_ns[i] += other->worked_ns[i];
    }
    for (int i = 0; i < HX_SLICE_BUCKETS; i++) {
        slice->latencies[i] += other->latencies[i];
    }
}

static const struct slice_kind slice_kind = {sizeof(struct hx_slice), slice_add};

struct hx_over_time *hx_over_time_new(uint64_t width_ns) {
    struct hx_over_time *over_time = calloc(1, sizeof(*over_time));
    if (over_time) {
        over_time->grid.width_ns = width_ns;
        over_time->sampled_ns = HX_NOT_SAMPLED;
    }
    return over_time;
}

static struct hx_slice *slice_of(struct hx_over_time *over_time, uint64_t now_ns) {
    return &over_time->slices[grid_at(&over_time->grid, over_time->slices, &slice_kind, now_ns)];
}

void hx_over_time_note(struct hx_over_time *over_time, uint64_t now_ns, uint64_t latency_ns, bool has_succeeded) {
    struct hx_slice *slice = slice_of(over_time, now_ns);
    slice->operations++;
    slice->succeeded += has_succeeded ? 1 : 0;
    slice->latency_sum_ns += latency_ns;
    slice->latency_max_ns = latency_ns > slice->latency_max_ns ? latency_ns : slice->latency_max_ns;
    slice->latencies[bucket_of(latency_ns)]++;
}

void hx_over_time_merge(struct hx_over_time *into, const struct hx_over_time *from) {
    grid_merge(&into->grid, into->slices, &from->grid, from->slices, &slice_kind);
}

uint64_t hx_slice_quantile(const struct hx_slice *slice, double share) {
    uint64_t seen = 0;
    for (unsigned i = 0; i < HX_SLICE_BUCKETS && slice->operations > 0; i++) {
        seen += slice->latencies[i];
        if ((double)seen >= share * (double)slice->operations && seen > 0) {
            uint64_t high = bucket_high(i);
            return high < slice->latency_max_ns && i + 1 < HX_SLICE_BUCKETS ? high : slice->latency_max_ns;
        }
    }
    return slice->latency_max_ns;
}

const char *hx_node_role(const struct dm_topology *topology, unsigned node) {
    if (node < topology->mns) {
        return "memory";
    }
    return node < dm_first_cn(topology) ? "server" : "compute";
}

static size_t column_of(const struct dm_topology *topology, const struct dm_resource *resource,
                        struct hx_busy_column *columns, size_t *count) {
    const char *role = hx_node_role(topology, resource->node);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(columns[i].role, role) == 0 && strcmp(columns[i].name, resource->name) == 0) {
            return i;
        }
    }
    if (*count < HX_BUSY_MAX) {
        columns[(*count)++] = (struct hx_busy_column){role, resource->name};
    }
    return *count - 1;
}

size_t hx_busy_columns(const struct dm_topology *topology, const struct dm_resource *resources, size_t count,
                       struct hx_busy_column columns[HX_BUSY_MAX]) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        column_of(topology, &resources[i], columns, &found);
    }
    return found;
}

bool hx_over_time_is_due(const struct hx_over_time *over_time, uint64_t now_ns) {
    uint64_t width = over_time->grid.width_ns;
    return over_time->sampled_ns == HX_NOT_SAMPLED || now_ns / width > over_time->sampled_ns / width;
}

/* The time that each column's busiest node worked between two samples, in ns. */
static void worked_find(const struct hx_sample *sample, const struct dm_topology *topology, double *worked_ns,
                        double most[HX_BUSY_MAX]) {
    struct hx_busy_column columns[HX_BUSY_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sample->resource_count; i++) {
        double in_all = sample->resources[i].busy * (double)(sample->now_ns - sample->since_ns);
        size_t column = column_of(topology, &sample->resources[i], columns, &count);
        most[column] = fmax(most[column], in_all - worked_ns[i]);
        worked_ns[i] = in_all;
    }
}

/* Spreads the work between two samples evenly over the slices between them; what was counted belongs to the slice in
 * which it was noticed first, the one of the sample before. */
void hx_over_time_sample(struct hx_over_time *over_time, const struct hx_sample *sample,
                         const struct dm_topology *topology, double *worked_ns) {
    double most[HX_BUSY_MAX] = {0};
    uint64_t before = over_time->sampled_ns;
    if (sample->resources) {
        worked_find(sample, topology, worked_ns, most);
    }
    if (before != HX_NOT_SAMPLED && sample->now_ns > before) {
        struct hx_slice *slice = slice_of(over_time, before);
        slice->retries += sample->retries - over_time->retries;
        slice->round_trips += sample->round_trips - over_time->round_trips;
        slice_of(over_time, sample->now_ns); /* the grid holds both now */
        uint64_t width = over_time->grid.width_ns;
        for (uint64_t at = before; at < sample->now_ns;) {
            uint64_t end = (at / width + 1) * width;
            end = end < sample->now_ns ? end : sample->now_ns;
            for (int i = 0; i < HX_BUSY_MAX; i++) {
                slice_of(over_time, at)->worked_ns[i] +=
                    most[i] * (double)(end - at) / (double)(sample->now_ns - before);
            }
            at = end;
        }
    }
    over_time->sampled_ns = sample->now_ns;
    over_time->retries = sample->retries;
    over_time->round_trips = sample->round_trips;
}
