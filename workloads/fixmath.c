/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of wl_log2 and wl_exp2, computed from series and square roots at the first use.
 */
#include "workloads/fixmath.h"

#include <math.h>
#include <pthread.h>

static struct wl_math tables;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* ln(x) for x in [0.68, 1.38] by 2 artanh((x - 1) / (x + 1)), smallest terms first. */
static double log_series(double x) {
    double s = (x - 1.0) / (x + 1.0);
    double s2 = s * s;
    double sum = 0.0;
    /* s2 < 0.04, so the first omitted term is below 1e-30 of the sum */
    for (int n = 43; n >= 3; n -= 2) {
        sum = (sum + 1.0 / n) * s2;
    }
    return 2.0 * (s + s * sum);
}

static void log_table_make(void) {
    for (uint64_t i = 0; i < WL_LOG_SLOTS; i++) {
        uint64_t low = WL_LOG_FROM + (i << (52 - WL_LOG_BITS));
        double centre = wl_double_of(low + (UINT64_C(1) << (51 - WL_LOG_BITS)));
        double next = wl_double_of(low + (UINT64_C(1) << (52 - WL_LOG_BITS)));
        if (wl_double_of(low) == 1.0 || next == 1.0) {
            centre = 1.0;
        }
        tables.log[i].centre = centre;
        tables.log[i].inverse = 1.0 / centre;
        tables.log[i].log2 = log_series(centre) / WL_LN2;
    }
}

static void exp_table_make(void) {
    double root[WL_EXP_BITS]; /* 2^(1/2), 2^(1/4), ... */
    double value = 2.0;
    for (int bit = 0; bit < WL_EXP_BITS; bit++) {
        value = sqrt(value);
        root[bit] = value;
    }
    for (unsigned i = 0; i < WL_EXP_SLOTS; i++) {
        double product = 1.0;
        for (unsigned bit = 0; bit < WL_EXP_BITS; bit++) {
            if (i >> (WL_EXP_BITS - 1 - bit) & 1) {
                product *= root[bit];
            }
        }
        tables.exp2[i] = wl_double_bits(product);
    }
}

static void tables_make(void) {
    log_table_make();
    exp_table_make();
}

const struct wl_math *wl_math_get(void) {
    pthread_once(&tables_once, tables_make);
    return &tables;
}
