/* SPDX-License-Identifier: Apache-2.0
 *
 * Values over time as columns, so that a plot or an expression takes a column as it is.
 */
#include "harness/run/result_time.h"

#include <stdio.h>

#include "harness/run/config_fields.h"

#define NS_TO_S 1e-9

static double ratio(double sum, double count) {
    return count > 0 ? sum / count : 0;
}

/* The part of slice i that was measured. */
static double covered_ns(const struct hx_measured *measured, size_t i) {
    const struct hx_grid *grid = &measured->over_time->grid;
    uint64_t begin = (grid->base + i) * grid->width_ns, end = begin + grid->width_ns;
    begin = begin < measured->totals.start_ns ? measured->totals.start_ns : begin;
    end = end > measured->totals.end_ns ? measured->totals.end_ns : end;
    return end > begin ? (double)(end - begin) : 0;
}

/* One column of a slice. `which` is a percentile in thousandths or a column of resources. */
typedef double (*value_fn)(const struct hx_measured *measured, size_t i, size_t which);

static double time_of(const struct hx_measured *measured, size_t i, size_t which) {
    const struct hx_grid *grid = &measured->over_time->grid;
    uint64_t begin = (grid->base + i) * grid->width_ns, start = measured->totals.start_ns;
    (void)which;
    return begin > start ? (double)(begin - start) * NS_TO_S : 0;
}

static double throughput_of(const struct hx_measured *measured, size_t i, size_t which) {
    (void)which;
    return ratio((double)measured->over_time->slices[i].succeeded * 1e9, covered_ns(measured, i));
}

static double latency_mean_of(const struct hx_measured *measured, size_t i, size_t which) {
    const struct hx_slice *slice = &measured->over_time->slices[i];
    (void)which;
    return ratio((double)slice->latency_sum_ns, (double)slice->operations);
}

static double quantile_of(const struct hx_measured *measured, size_t i, size_t which) {
    return (double)hx_slice_quantile(&measured->over_time->slices[i], (double)which / 1000);
}

static double retries_of(const struct hx_measured *measured, size_t i, size_t which) {
    const struct hx_slice *slice = &measured->over_time->slices[i];
    (void)which;
    return ratio((double)slice->retries, (double)slice->operations);
}

static double round_trips_of(const struct hx_measured *measured, size_t i, size_t which) {
    const struct hx_slice *slice = &measured->over_time->slices[i];
    (void)which;
    return ratio((double)slice->round_trips, (double)slice->operations);
}

static double busy_of(const struct hx_measured *measured, size_t i, size_t which) {
    double busy = ratio(measured->over_time->slices[i].worked_ns[which], covered_ns(measured, i));
    return busy < 1 ? busy : 1;
}

static json_t *column(const struct hx_measured *measured, value_fn value, size_t which) {
    json_t *array = json_array();
    for (size_t i = 0; i < measured->over_time->grid.used; i++) {
        json_array_append_new(array, json_real(value(measured, i, which)));
    }
    return array;
}

static json_t *busy_object(const struct hx_config *config, const struct hx_measured *measured) {
    struct hx_busy_column columns[HX_BUSY_MAX];
    size_t count = hx_busy_columns(&config->topology, measured->resources, measured->resource_count, columns);
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s_%s", columns[i].role, columns[i].name);
        json_object_set_new(object, name, column(measured, busy_of, i));
    }
    return object;
}

json_t *hx_over_time_json(const struct hx_config *config, const struct hx_measured *measured) {
    return json_pack("{s:f, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o}", "interval_s",
                     (double)measured->over_time->grid.width_ns / 1e9, "time_s", column(measured, time_of, 0),
                     "throughput_ops_per_s", column(measured, throughput_of, 0), "latency_ns", "mean",
                     column(measured, latency_mean_of, 0), "p50", column(measured, quantile_of, 500), "p99",
                     column(measured, quantile_of, 990), "p99_9", column(measured, quantile_of, 999), "retries_mean",
                     column(measured, retries_of, 0), "round_trips_mean", column(measured, round_trips_of, 0), "busy",
                     busy_object(config, measured));
}

json_t *hx_settled_json(const struct hx_config *config, const struct hx_measured *measured) {
    bool is_open_loop = config->run.rate > 0;
    struct hx_settled settled =
        hx_settled_judge(&measured->totals.pace, measured->totals.start_ns, measured->totals.end_ns, is_open_loop);
    double unit = is_open_loop ? 1 : 1e9;
    if (!settled.is_known) {
        return json_null();
    }
    return json_pack("{s:b, s:s, s:f, s:f, s:f}", "is_settled", settled.is_settled, "of",
                     is_open_loop ? "latency_ns" : "throughput_ops_per_s", "first_half", settled.first * unit,
                     "second_half", settled.second * unit, "p", settled.p);
}
