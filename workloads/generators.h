/* SPDX-License-Identifier: Apache-2.0
 *
 * YCSB's number generators, with the arithmetic and the order of random draws of YCSB itself: fed with YCSB's random
 * numbers they generate exactly YCSB's sequences. Constructors here draw nothing (YCSB's Zipfian constructor discards
 * one draw, its latest constructor two). Each draw uses the caller's random stream; generators share no state.
 */
#ifndef DM_WORKLOADS_GENERATORS_H
#define DM_WORKLOADS_GENERATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/prng.h"
#include "workloads/fixmath.h"

/* |x| of a signed 64-bit number. Branch-free, because the sign of a random number cannot be predicted. */
static inline uint64_t wl_abs64(uint64_t x) {
    uint64_t sign = UINT64_C(0) - (x >> 63);
    return (x ^ sign) - sign;
}

#define WL_FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define WL_FNV_PRIME  UINT64_C(0x100000001b3)

/* FNV-1a over the 8 octets, lowest first, then the absolute value of the result as a signed number. */
static inline uint64_t wl_fnvhash64(uint64_t x) {
    enum { SHORT_OCTETS = 5, OCTETS = 8 };
    uint64_t hash = WL_FNV_OFFSET;
    for (int octet = 0; octet < SHORT_OCTETS; octet++) {
        hash = (hash ^ (x & 0xff)) * WL_FNV_PRIME;
        x >>= 8;
    }
    if (dm_likely(x == 0)) {
        /* the last three octets are zero, so their rounds only multiply */
        const uint64_t prime3 = WL_FNV_PRIME * WL_FNV_PRIME * WL_FNV_PRIME;
        return wl_abs64(hash * prime3);
    }
    for (int octet = SHORT_OCTETS; octet < OCTETS; octet++) {
        hash = (hash ^ (x & 0xff)) * WL_FNV_PRIME;
        x >>= 8;
    }
    return wl_abs64(hash);
}

/* x % divisor without a division instruction. The estimated quotient is at most one too small. */
struct wl_modulus {
    uint64_t divisor, reciprocal;
};
static inline struct wl_modulus wl_modulus_make(uint64_t divisor) {
    return (struct wl_modulus){divisor, UINT64_MAX / divisor};
}
static inline uint64_t wl_mod(const struct wl_modulus *modulus, uint64_t x) {
    uint64_t quotient = (uint64_t)(((unsigned __int128)x * modulus->reciprocal) >> 64);
    uint64_t rest = x - quotient * modulus->divisor;
    /* branch-free, because the comparison is as random as x */
    return rest - (modulus->divisor & (UINT64_C(0) - (uint64_t)(rest >= modulus->divisor)));
}

/* Uniform over [low, low + range), as |next long| % range. */
struct wl_uniform {
    uint64_t low;
    struct wl_modulus range;
};
struct wl_uniform wl_uniform_make(uint64_t low, uint64_t high_inclusive);
static inline uint64_t wl_uniform_next(const struct wl_uniform *uniform, struct dm_prng *prng) {
    return uniform->low + wl_mod(&uniform->range, wl_abs64(dm_prng_u64(prng)));
}

/* Gray et al.'s approximate Zipfian over `items` ranks from `min`. Ranks 0 and 1 have their exact probability; the
 * others are computed by a continuous inverse, as in YCSB. */
struct wl_zipf {
    const struct wl_math *math;
    uint64_t min, items;
    double theta, zetan, alpha, eta;
    double second; /* u * zetan below this (and from 1 up) is rank 1 */
};

/* The sum of i^-theta for i = 1..items. Up to WL_ZETA_EXACT_MAX items it is summed term by term; above, it is computed
 * by the Euler-Maclaurin formula, whose relative error is that of rounding, below 1e-14 + 1e-15 / (1 - theta).
 * 0 < theta < 1. */
#define WL_ZETA_EXACT_MAX UINT64_C(10000000)
double wl_zeta(uint64_t items, double theta);

/* The same sum for a growing number of items. A call computes one power and depends on its arguments only. */
struct wl_zeta_tail {
    const struct wl_math *math;
    double theta, constant;
};
struct wl_zeta_tail wl_zeta_tail_make(double theta);
enum { WL_ZETA_TAIL_MIN = 256 }; /* the smallest number of items that it handles */
double wl_zeta_tail(const struct wl_zeta_tail *tail, uint64_t items);

/* A `zetan` of 0 is computed here. items >= 1. */
struct wl_zipf wl_zipf_make(uint64_t min, uint64_t items, double theta, double zetan);

/* The value for one u in [0, 1), as a pure function. `items` scales the range; it differs from zipf->items only for
 * `latest`. */
static inline uint64_t wl_zipf_value_of(const struct wl_zipf *zipf, uint64_t items, double u) {
    double uz = u * zipf->zetan;
    if (uz < 1.0) {
        return zipf->min;
    }
    if (uz < zipf->second) {
        return zipf->min + 1;
    }
    double share = wl_pow(zipf->math, zipf->eta * u - zipf->eta + 1.0, zipf->alpha);
    /* signed conversions are one instruction each */
    uint64_t rank = (uint64_t)(int64_t)((double)(int64_t)items * share);
    /* rank can reach `items` only by rounding */
    return zipf->min + (rank < items ? rank : items - 1);
}
static inline uint64_t wl_zipf_value(const struct wl_zipf *zipf, double u) {
    return wl_zipf_value_of(zipf, zipf->items, u);
}
static inline uint64_t wl_zipf_next(const struct wl_zipf *zipf, struct dm_prng *prng) {
    return wl_zipf_value(zipf, dm_prng_double(prng));
}

/* What YCSB calls "zipfian": the rank is drawn among 10^10 items whatever the range, hashed, and reduced modulo the
 * range. */
#define WL_SCRAMBLED_ITEMS  UINT64_C(10000000001)
#define WL_SCRAMBLED_ZETAN  26.46902820178302 /* YCSB's own constant, for theta = 0.99 */
#define WL_ZIPFIAN_CONSTANT 0.99
struct wl_scrambled {
    struct wl_zipf zipf;
    uint64_t min;
    struct wl_modulus range;
};
struct wl_scrambled wl_scrambled_make(uint64_t min, uint64_t max_inclusive, double theta);
static inline uint64_t wl_scrambled_value(const struct wl_scrambled *scrambled, double u) {
    return scrambled->min + wl_mod(&scrambled->range, wl_fnvhash64(wl_zipf_value(&scrambled->zipf, u)));
}
static inline uint64_t wl_scrambled_next(const struct wl_scrambled *scrambled, struct dm_prng *prng) {
    return wl_scrambled_value(scrambled, dm_prng_double(prng));
}

/* YCSB's skewed latest: the newest key number minus a Zipfian rank. zetan follows the newest key number, while the
 * other constants keep their values of the start; YCSB does the same, and it shapes the distribution. Each stream has
 * its own copy. */
struct wl_latest {
    struct wl_zipf zipf;
    struct wl_zeta_tail tail;
    double start_zetan, start_tail; /* at the start's number of items */
    double eta_numerator, zeta2;
    uint64_t start_items, items; /* `items` is the number of items that zetan was computed for */
};
struct wl_latest wl_latest_make(uint64_t newest, double theta);
void wl_latest_grow(struct wl_latest *latest, uint64_t items);
/* Returns a number in [0, newest]. */
static inline uint64_t wl_latest_next(struct wl_latest *latest, uint64_t newest, struct dm_prng *prng) {
    if (newest > latest->items) {
        wl_latest_grow(latest, newest);
    }
    uint64_t distance;
    do {
        distance = wl_zipf_value_of(&latest->zipf, newest > 0 ? newest : 1, dm_prng_double(prng));
    } while (distance > newest);
    return newest - distance;
}

/* A share of the operations chooses among the first (hot) share of the keys, the rest among the others; both choose
 * uniformly. */
struct wl_hotspot {
    double hot_operations;
    struct wl_uniform hot, cold;
};
/* Both sets must hold at least one key: see wl_hotspot_hot_count. */
struct wl_hotspot wl_hotspot_make(uint64_t low, uint64_t high_inclusive, double hot_data, double hot_operations);
uint64_t wl_hotspot_hot_count(uint64_t count, double hot_data);
static inline uint64_t wl_hotspot_next(const struct wl_hotspot *hotspot, struct dm_prng *prng) {
    bool hot = dm_prng_double(prng) < hotspot->hot_operations;
    return wl_uniform_next(hot ? &hotspot->hot : &hotspot->cold, prng);
}

/* Exponential with `percentile` percent of its mass below `range`; unbounded. */
struct wl_exponential {
    const struct wl_math *math;
    double gamma;
};
struct wl_exponential wl_exponential_make(double percentile, double range);
static inline double wl_exponential_next(const struct wl_exponential *exponential, struct dm_prng *prng) {
    double u = dm_prng_double(prng);
    /* u = 0 would give infinity; ln u = -1000 is finite and beyond every range */
    return (u > 0.0 ? -wl_log(exponential->math, u) : 1000.0) / exponential->gamma;
}

/* Chooses one of up to WL_DISCRETE_MAX values by weight. YCSB subtracts the weights from one u one by one; here the u
 * at which the choice changes are computed in advance, so that a draw is branch-free and agrees with YCSB for every u.
 */
enum { WL_DISCRETE_MAX = 8 };
struct wl_discrete {
    unsigned count;
    unsigned value[WL_DISCRETE_MAX];
    uint64_t limit[WL_DISCRETE_MAX]; /* the u, in units of 2^-53, from which on value[i] is not chosen; the last is
                                        never reached */
};
/* Weights <= 0 are ignored; at least one must be positive; they need not sum to 1. */
struct wl_discrete wl_discrete_make(const double *weights, unsigned count);
/* `bits` is u in units of 2^-53. */
static inline unsigned wl_discrete_value(const struct wl_discrete *discrete, uint64_t bits) {
    unsigned chosen = 0;
    for (unsigned i = 0; i + 1 < discrete->count; i++) {
        chosen += bits >= discrete->limit[i] ? 1U : 0U;
    }
    return discrete->value[chosen];
}
static inline unsigned wl_discrete_next(const struct wl_discrete *discrete, struct dm_prng *prng) {
    return wl_discrete_value(discrete, dm_prng_u64(prng) >> 11);
}

#endif
