/* SPDX-License-Identifier: Apache-2.0
 *
 * Logarithm, exponential and power, made of + - * / and square roots only, so that the generated requests do not depend
 * on the C library or the compiler. Relative errors: wl_log2 and wl_log 5e-15 (5e-16 below 1), wl_exp2
 * 5e-16 + 2e-16 |y|, wl_pow the same with y = exponent * log2(base). Special values are not handled: arguments must be
 * in the stated domain.
 */
#ifndef DM_WORKLOADS_FIXMATH_H
#define DM_WORKLOADS_FIXMATH_H

#include <stdint.h>
#include <string.h>

#include "common/compiler.h"

/* The tables are large so that the polynomials can be short: the latency of a draw matters. */
enum {
    WL_LOG_BITS = 9,
    WL_LOG_SLOTS = 1 << WL_LOG_BITS,
    WL_EXP_BITS = 8,
    WL_EXP_SLOTS = 1 << WL_EXP_BITS,
};

#define WL_LN2      0x1.62e42fefa39efp-1
#define WL_LOG2_E   0x1.71547652b82fep+0
#define WL_LOG_FROM UINT64_C(0x3fe6000000000000) /* 0.6875: mantissas are taken from [0.6875, 1.375) */

struct wl_math {
    struct {
        double centre, inverse, log2;
    } log[WL_LOG_SLOTS];
    uint64_t exp2[WL_EXP_SLOTS]; /* the bits of 2^(i/256) */
};

/* The tables, which the first call computes. Thread-safe. */
const struct wl_math *wl_math_get(void);

static inline uint64_t wl_double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double wl_double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* log2(x) for a normal x > 0. x = 2^k z with z near a slot's centre c, so log2 x = k + log2 c + log2(1 + r) with
 * r = (z - c) / c, where z - c is exact. The slots next to 1 have c = 1, so that no cancellation occurs there. */
static inline double wl_log2(const struct wl_math *math, double x) {
    uint64_t shifted = wl_double_bits(x) - WL_LOG_FROM;
    unsigned slot = (unsigned)(shifted >> (52 - WL_LOG_BITS)) % WL_LOG_SLOTS;
    double k = (double)((int64_t)shifted >> 52);
    double z = wl_double_of(wl_double_bits(x) - (shifted & UINT64_C(0xfff0000000000000)));
    double r = (z - math->log[slot].centre) * math->log[slot].inverse;
    double r2 = r * r;
    /* |r| < 2^-9, so the first terms of the series suffice; each is multiplied by log2 e */
    double high = WL_LOG2_E * (-1.0 / 4) + r * (WL_LOG2_E * (1.0 / 5));
    double low = WL_LOG2_E * (-1.0 / 2) + r * (WL_LOG2_E * (1.0 / 3));
    return (k + math->log[slot].log2) + (r * WL_LOG2_E + r2 * (low + r2 * high));
}

/* 2^y for y <= 1000; 0 below -1000. */
static inline double wl_exp2(const struct wl_math *math, double y) {
    if (dm_unlikely(y < -1000.0)) {
        return 0.0;
    }
    /* Adding 1.5 * 2^44 makes the last bit of the sum worth 1/256. So the sum rounds y to steps of 1/256, and its low
     * bits are the number of steps. */
    double sum = y + 0x1.8p44;
    uint64_t steps = wl_double_bits(sum);
    double r = y - (sum - 0x1.8p44);
    double r2 = r * r;
    double scale = wl_double_of(math->exp2[steps % WL_EXP_SLOTS] + (steps >> WL_EXP_BITS << 52));
    /* ln(2)^n / n! */
    double high = 0x1.c6b08d704a0bfp-5 + r * 0x1.3b2ab6fba4e77p-7;
    double low = WL_LN2 + r * 0x1.ebfbdff82c58ep-3;
    return scale + scale * (r * low + r * r2 * high);
}

/* base^exponent for base > 0. */
static inline double wl_pow(const struct wl_math *math, double base, double exponent) {
    return wl_exp2(math, exponent * wl_log2(math, base));
}

static inline double wl_log(const struct wl_math *math, double x) {
    return wl_log2(math, x) * WL_LN2;
}

static inline double wl_exp(const struct wl_math *math, double y) {
    return wl_exp2(math, y * WL_LOG2_E);
}

#endif
