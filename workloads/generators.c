/* SPDX-License-Identifier: Apache-2.0
 *
 * Constructors of the generators: zeta sums, Zipfian constants, weights. The draws are inline in the header.
 */
#include "workloads/generators.h"

#include <assert.h>

struct wl_uniform wl_uniform_make(uint64_t low, uint64_t high_inclusive) {
    return (struct wl_uniform){low, wl_modulus_make(high_inclusive - low + 1)};
}

static double zeta_summed(const struct wl_math *math, uint64_t items, double theta) {
    double sum = 0.0;
    for (uint64_t i = 1; i <= items; i++) {
        sum += wl_pow(math, (double)i, -theta);
    }
    return sum;
}

/* The part of the Euler-Maclaurin formula that depends on n. With n >= 256 the first omitted term is below 1e-20. */
static double zeta_formula(const struct wl_math *math, double n, double theta) {
    double power = wl_pow(math, n, -theta);
    double n2 = n * n;
    double correction = theta / 12.0 - theta * (theta + 1.0) * (theta + 2.0) / (720.0 * n2) +
                        theta * (theta + 1.0) * (theta + 2.0) * (theta + 3.0) * (theta + 4.0) / (30240.0 * n2 * n2);
    return power * (n / (1.0 - theta) + 0.5 - correction / n);
}

struct wl_zeta_tail wl_zeta_tail_make(double theta) {
    const struct wl_math *math = wl_math_get();
    double constant = zeta_summed(math, WL_ZETA_TAIL_MIN, theta) - zeta_formula(math, WL_ZETA_TAIL_MIN, theta);
    return (struct wl_zeta_tail){math, theta, constant};
}

double wl_zeta_tail(const struct wl_zeta_tail *tail, uint64_t items) {
    return tail->constant + zeta_formula(tail->math, (double)items, tail->theta);
}

double wl_zeta(uint64_t items, double theta) {
    if (items <= WL_ZETA_EXACT_MAX) {
        return zeta_summed(wl_math_get(), items, theta);
    }
    struct wl_zeta_tail tail = wl_zeta_tail_make(theta);
    return wl_zeta_tail(&tail, items);
}

struct wl_zipf wl_zipf_make(uint64_t min, uint64_t items, double theta, double zetan) {
    assert(items >= 1 && theta > 0.0 && theta < 1.0);
    const struct wl_math *math = wl_math_get();
    struct wl_zipf zipf = {.math = math, .min = min, .items = items, .theta = theta};
    zipf.zetan = zetan > 0.0 ? zetan : wl_zeta(items, theta);
    zipf.alpha = 1.0 / (1.0 - theta);
    zipf.second = 1.0 + wl_pow(math, 0.5, theta);
    /* with one or two items there are no further ranks, and eta would divide by zero */
    if (items > 2) {
        double numerator = 1.0 - wl_pow(math, 2.0 / (double)items, 1.0 - theta);
        zipf.eta = numerator / (1.0 - zipf.second / zipf.zetan);
    }
    return zipf;
}

struct wl_scrambled wl_scrambled_make(uint64_t min, uint64_t max_inclusive, double theta) {
    double zetan = theta == WL_ZIPFIAN_CONSTANT ? WL_SCRAMBLED_ZETAN : wl_zeta(WL_SCRAMBLED_ITEMS, theta);
    return (struct wl_scrambled){
        .zipf = wl_zipf_make(0, WL_SCRAMBLED_ITEMS, theta, zetan),
        .min = min,
        .range = wl_modulus_make(max_inclusive - min + 1),
    };
}

struct wl_latest wl_latest_make(uint64_t newest, double theta) {
    /* YCSB divides by zero below 3 items. With 3, a draw beyond the newest is drawn again. */
    uint64_t items = newest >= 3 ? newest : 3;
    struct wl_latest latest = {.zipf = wl_zipf_make(0, items, theta, 0.0), .tail = wl_zeta_tail_make(theta)};
    latest.start_items = items;
    latest.items = items;
    latest.start_zetan = latest.zipf.zetan;
    latest.zeta2 = latest.zipf.second;
    latest.eta_numerator = 1.0 - wl_pow(latest.zipf.math, 2.0 / (double)items, 1.0 - theta);
    latest.start_tail = items >= WL_ZETA_TAIL_MIN ? wl_zeta_tail(&latest.tail, items) : 0.0;
    return latest;
}

void wl_latest_grow(struct wl_latest *latest, uint64_t items) {
    double zetan = 0.0;
    if (items < WL_ZETA_TAIL_MIN) {
        zetan = zeta_summed(latest->zipf.math, items, latest->zipf.theta);
    } else if (latest->start_items < WL_ZETA_TAIL_MIN) {
        zetan = wl_zeta_tail(&latest->tail, items);
    } else {
        zetan = latest->start_zetan + (wl_zeta_tail(&latest->tail, items) - latest->start_tail);
    }
    latest->items = items;
    latest->zipf.zetan = zetan;
    latest->zipf.eta = latest->eta_numerator / (1.0 - latest->zeta2 / zetan);
}

uint64_t wl_hotspot_hot_count(uint64_t count, double hot_data) {
    return (uint64_t)((double)count * hot_data);
}

struct wl_hotspot wl_hotspot_make(uint64_t low, uint64_t high_inclusive, double hot_data, double hot_operations) {
    uint64_t hot = wl_hotspot_hot_count(high_inclusive - low + 1, hot_data);
    return (struct wl_hotspot){
        .hot_operations = hot_operations,
        .hot = wl_uniform_make(low, low + hot - 1),
        .cold = wl_uniform_make(low + hot, high_inclusive),
    };
}

struct wl_exponential wl_exponential_make(double percentile, double range) {
    const struct wl_math *math = wl_math_get();
    return (struct wl_exponential){math, -wl_log(math, 1.0 - percentile / 100.0) / range};
}

/* YCSB's loop: the index that it chooses for u. */
static unsigned discrete_subtract(const double *shares, unsigned count, double u) {
    unsigned i = 0;
    while (i + 1 < count && u >= shares[i]) {
        u -= shares[i];
        i++;
    }
    return i;
}

struct wl_discrete wl_discrete_make(const double *weights, unsigned count) {
    assert(count <= WL_DISCRETE_MAX);
    struct wl_discrete discrete = {0};
    double shares[WL_DISCRETE_MAX];
    double sum = 0.0;
    for (unsigned i = 0; i < count; i++) {
        if (weights[i] > 0.0) {
            sum += weights[i];
            shares[discrete.count] = weights[i];
            discrete.value[discrete.count++] = i;
        }
    }
    assert(discrete.count > 0);
    for (unsigned i = 0; i < discrete.count; i++) {
        shares[i] /= sum;
    }
    for (unsigned i = 0; i < discrete.count; i++) {
        uint64_t low = 0, high = UINT64_C(1) << 53; /* the first u for which a value after i is chosen */
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (discrete_subtract(shares, discrete.count, (double)middle * 0x1.0p-53) > i) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        discrete.limit[i] = low;
    }
    return discrete;
}
