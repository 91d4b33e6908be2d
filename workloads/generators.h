/* SPDX-License-Identifier: Apache-2.0
 *
 * YCSB's number generators, with the arithmetic and the order of random draws of YCSB itself, so that its sequences
 * come out exactly when fed with its random numbers. Constructors here draw nothing (YCSB's Zipfian constructor throws
 * away one draw, its latest two). Draws take the caller's stream; nothing here is shared but the counters.
 */
#ifndef DM_WORKLOADS_GENERATORS_H
#define DM_WORKLOADS_GENERATORS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/prng.h"
#include "workloads/fixmath.h"

/* |x| of a signed 64-bit number, without a branch: its sign is random. */
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
        /* the last three rounds have a zero octet and only multiply */
        const uint64_t prime3 = WL_FNV_PRIME * WL_FNV_PRIME * WL_FNV_PRIME;
        return wl_abs64(hash * prime3);
    }
    for (int octet = SHORT_OCTETS; octet < OCTETS; octet++) {
        hash = (hash ^ (x & 0xff)) * WL_FNV_PRIME;
        x >>= 8;
    }
    return wl_abs64(hash);
}

/* x % divisor without a division instruction. The estimated quotient is short by one at most. */
struct wl_modulus {
    uint64_t divisor, reciprocal;
};
static inline struct wl_modulus wl_modulus_make(uint64_t divisor) {
    return (struct wl_modulus){divisor, UINT64_MAX / divisor};
}
static inline uint64_t wl_mod(const struct wl_modulus *modulus, uint64_t x) {
    uint64_t quotient = (uint64_t)(((unsigned __int128)x * modulus->reciprocal) >> 64);
    uint64_t rest = x - quotient * modulus->divisor;
    /* without a branch: which way it goes is as random as x */
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

/* Gray et al.'s approximate Zipfian over `items` ranks from `min`: ranks 0 and 1 are exact, the others come from a
 * continuous inverse, as in YCSB. */
struct wl_zipf {
    const struct wl_math *math;
    uint64_t min, items;
    double theta, zetan, alpha, eta;
    double second; /* below it u * zetan means rank 1 */
};

/* sum of i^-theta for i = 1..items: added up term by term up to WL_ZETA_EXACT_MAX, beyond that by Euler and Maclaurin's
 * formula, whose relative error is that of the rounding, below 1e-14 + 1e-15 / (1 - theta). 0 < theta < 1. */
#define WL_ZETA_EXACT_MAX UINT64_C(10000000)
double wl_zeta(uint64_t items, double theta);

/* The same sum for a number of items that grows: one power a call, a pure function of its arguments. */
struct wl_zeta_tail {
    const struct wl_math *math;
    double theta, constant;
};
struct wl_zeta_tail wl_zeta_tail_make(double theta);
enum { WL_ZETA_TAIL_MIN = 256 }; /* the least number of items it can be asked for */
double wl_zeta_tail(const struct wl_zeta_tail *tail, uint64_t items);

/* `zetan` 0: computed. items >= 1. */
struct wl_zipf wl_zipf_make(uint64_t min, uint64_t items, double theta, double zetan);

/* The pure part: the value for one u in [0, 1), with `items` as the range's factor (it differs from zipf->items only
 * for `latest`). */
static inline uint64_t wl_zipf_value_of(const struct wl_zipf *zipf, uint64_t items, double u) {
    double uz = u * zipf->zetan;
    if (uz < 1.0) {
        return zipf->min;
    }
    if (uz < zipf->second) {
        return zipf->min + 1;
    }
    double share = wl_pow(zipf->math, zipf->eta * u - zipf->eta + 1.0, zipf->alpha);
    /* signed: one instruction each way */
    uint64_t rank = (uint64_t)(int64_t)((double)(int64_t)items * share);
    /* only rounding can reach `items` */
    return zipf->min + (rank < items ? rank : items - 1);
}
static inline uint64_t wl_zipf_value(const struct wl_zipf *zipf, double u) {
    return wl_zipf_value_of(zipf, zipf->items, u);
}
static inline uint64_t wl_zipf_next(const struct wl_zipf *zipf, struct dm_prng *prng) {
    return wl_zipf_value(zipf, dm_prng_double(prng));
}

/* What YCSB calls "zipfian": the rank is drawn among 10^10 items whatever the range, hashed, and folded on it. */
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

/* YCSB's skewed latest: newest - Zipf, whose zetan follows the newest key number while the other constants stay those
 * of the start (a quirk of YCSB that shapes the distribution, kept). Each stream has its own copy. */
struct wl_latest {
    struct wl_zipf zipf;
    struct wl_zeta_tail tail;
    double start_zetan, start_tail; /* at the start's number of items */
    double eta_numerator, zeta2;
    uint64_t start_items, items; /* items: the number that zetan holds for */
};
struct wl_latest wl_latest_make(uint64_t newest, double theta);
void wl_latest_grow(struct wl_latest *latest, uint64_t items);
/* In [0, newest]. */
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

/* A share of the operations goes to the first share of the keys, uniformly within both sets. */
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
    /* u = 0 would be infinite: an ln of -1000 is beyond every range and finite */
    return (u > 0.0 ? -wl_log(exponential->math, u) : 1000.0) / exponential->gamma;
}

/* Which of up to WL_DISCRETE_MAX things, by weight, as YCSB subtracts the weights from one u in turn. The points where
 * the answer changes are found in advance, so that a draw is branch-free and agrees for every u. */
enum { WL_DISCRETE_MAX = 8 };
struct wl_discrete {
    unsigned count;
    unsigned value[WL_DISCRETE_MAX];
    uint64_t limit[WL_DISCRETE_MAX]; /* in units of 2^-53: value[i] ends here; the last is never reached */
};
/* Weights <= 0 are left out; at least one must be positive; they need not sum to 1. */
struct wl_discrete wl_discrete_make(const double *weights, unsigned count);
/* `bits`: u in units of 2^-53. */
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

/* A counter handed out by several threads whose `newest` follows the longest run of acknowledged numbers. */
enum { WL_ACK_WINDOW = 1 << 20, WL_ACK_SLACK = 1 << 16 };
struct wl_ack {
    _Alignas(64) _Atomic uint64_t next;
    _Alignas(64) _Atomic uint64_t newest;
    _Alignas(64) atomic_flag sliding;
    _Alignas(
        64) _Atomic uint64_t window[WL_ACK_WINDOW / 64]; /* one bit a number that is acknowledged, not yet slid over */
};
/* The first number handed out is `start`, all below count as acknowledged; start > 0. */
void wl_ack_init(struct wl_ack *ack, uint64_t start);
/* Takes the next number: 0, or DM_ERR_RETRY_LIMIT when almost WL_ACK_WINDOW numbers wait for the oldest one's
 * acknowledgement. At most WL_ACK_SLACK threads may be inside. */
int wl_ack_next(struct wl_ack *ack, uint64_t *number);
/* Each number handed out is acknowledged once, in any order. */
void wl_ack_done(struct wl_ack *ack, uint64_t number);
static inline uint64_t wl_ack_newest(struct wl_ack *ack) {
    return atomic_load_explicit(&ack->newest, memory_order_acquire);
}

#endif
