/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic key sets, generated from a seed. A draw that repeats a key or is outside the range of keys is drawn again,
 * so that a set has exactly as many keys as asked for.
 *
 *   uniform               over [0, 2^63)
 *   normal[:SCALE]        mean 4, standard deviation 2, times SCALE (1e12); negative numbers are drawn again
 *   lognormal[:SCALE]     exp(normal(0, 2)) times SCALE (1e9; some papers use 1e12)
 *   linear_noise[:RANGE]  i * A plus uniform noise in [0, A), where A = RANGE / count; RANGE is 1e14 unless given
 */
#include "workloads/keyset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/log.h"
#include "common/opt.h"
#include "workloads/sort.h"
#include "workloads/spec.h"

struct sampler {
    const struct wl_math *math;
    struct dm_prng prng;
    double scale;
    uint64_t cell;     /* linear_noise: A */
    uint64_t drawn;    /* linear_noise: i */
    uint64_t rejected; /* outside of [0, 2^63) */
    double spare;      /* the second number of a polar pair */
    bool has_spare;
};

/* Marsaglia's polar method. It needs only a logarithm and a square root, which do not differ between C libraries. */
static double normal_draw(struct sampler *sampler) {
    if (sampler->has_spare) {
        sampler->has_spare = false;
        return sampler->spare;
    }
    double x, y, s;
    do {
        x = 2.0 * dm_prng_double(&sampler->prng) - 1.0;
        y = 2.0 * dm_prng_double(&sampler->prng) - 1.0;
        s = x * x + y * y;
    } while (s >= 1.0 || s == 0.0);
    double factor = sqrt(-2.0 * wl_log(sampler->math, s) / s);
    sampler->spare = y * factor;
    sampler->has_spare = true;
    return x * factor;
}

static uint64_t uniform_key(struct sampler *sampler) {
    return dm_prng_u64(&sampler->prng) >> 1;
}

static uint64_t scaled_key(struct sampler *sampler, double (*draw)(struct sampler *)) {
    for (;;) {
        double key = draw(sampler) * sampler->scale;
        if (key >= 0.0 && key < 0x1.0p63) {
            return (uint64_t)key;
        }
        sampler->rejected++;
    }
}

static double normal_4_2(struct sampler *sampler) {
    return 4.0 + 2.0 * normal_draw(sampler);
}

static double lognormal_0_2(struct sampler *sampler) {
    return wl_exp(sampler->math, 2.0 * normal_draw(sampler));
}

static uint64_t normal_key(struct sampler *sampler) {
    return scaled_key(sampler, normal_4_2);
}

static uint64_t lognormal_key(struct sampler *sampler) {
    return scaled_key(sampler, lognormal_0_2);
}

static uint64_t linear_noise_key(struct sampler *sampler) {
    return sampler->drawn++ * sampler->cell + dm_prng_below(&sampler->prng, sampler->cell);
}

struct synthetic {
    const char *name;
    uint64_t (*key)(struct sampler *);
    double scale; /* the default; 0: the set has no scale */
};
static const struct synthetic synthetics[] = {
    {"uniform", uniform_key, 0.0},
    {"normal", normal_key, 1e12},
    {"lognormal", lognormal_key, 1e9},
    {"linear_noise", linear_noise_key, 1e14},
};

static int synthetic_unknown(const char *key_set, struct dm_err *err) {
    static const char *const names[] = {"dense",     "grown",        "folded",    "uniform", "normal",
                                        "lognormal", "linear_noise", "sosd:FILE", "raw:FILE"};
    return wl_fail_name(err, "key_set", key_set, names, DM_ARRAY_LEN(names));
}

/* Splits "name:scale". */
static int synthetic_find(const char *key_set, const struct synthetic **found, double *scale, struct dm_err *err) {
    size_t length = strcspn(key_set, ":");
    *found = NULL;
    for (size_t i = 0; i < DM_ARRAY_LEN(synthetics); i++) {
        if (strlen(synthetics[i].name) == length && strncmp(key_set, synthetics[i].name, length) == 0) {
            *found = &synthetics[i];
        }
    }
    if (*found == NULL) {
        return synthetic_unknown(key_set, err);
    }
    *scale = (*found)->scale;
    if (key_set[length] == ':') {
        int rc = dm_parse_real(key_set + length + 1, scale, err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "key_set %s", key_set);
        }
        if ((*found)->scale == 0.0 || !(*scale >= 1.0 && *scale <= 0x1.0p62)) {
            return dm_fail(
                err, DM_ERR_INVALID,
                "key_set %s: only normal, lognormal and linear_noise have a scale, and it must be 1 to 4.6e18",
                key_set);
        }
    }
    return 0;
}

/* Merges the sorted keys[have..count) into the sorted keys[0..have). */
static int tail_merge(uint64_t *keys, uint64_t have, uint64_t count) {
    uint64_t tail_count = count - have;
    if (have == 0 || tail_count == 0) {
        return 0;
    }
    uint64_t *tail = malloc(tail_count * sizeof tail[0]);
    if (tail == NULL) {
        return DM_ERR_NO_MEMORY;
    }
    memcpy(tail, keys + have, tail_count * sizeof tail[0]);
    uint64_t to = count;
    while (tail_count > 0) {
        keys[--to] = have > 0 && keys[have - 1] > tail[tail_count - 1] ? keys[--have] : tail[--tail_count];
    }
    free(tail);
    return 0;
}

/* Draws keys until `count` are distinct. */
static int keys_draw(const struct synthetic *synthetic, struct sampler *sampler, uint64_t *keys, uint64_t count,
                     uint64_t *repeated) {
    const unsigned rounds_max = 200;
    uint64_t have = 0;
    *repeated = 0;
    for (unsigned round = 0; have < count; round++) {
        if (round == rounds_max) {
            return DM_ERR_INVALID;
        }
        for (uint64_t i = have; i < count; i++) {
            keys[i] = synthetic->key(sampler);
        }
        wl_sort_u64(keys + have, count - have);
        DM_TRY(tail_merge(keys, have, count));
        have = wl_unique_u64(keys, count);
        *repeated += count - have;
    }
    return 0;
}

int wl_keyset_generate(const char *key_set, uint64_t count, uint64_t seed, uint64_t **keys, struct dm_err *err) {
    const struct synthetic *synthetic = NULL;
    struct sampler sampler = {.math = wl_math_get(), .prng = dm_prng_stream(seed, "keys", 0)};
    DM_TRY(synthetic_find(key_set, &synthetic, &sampler.scale, err));
    sampler.cell = (uint64_t)(sampler.scale / (double)count);
    if (synthetic->key == linear_noise_key && sampler.cell == 0) {
        return dm_fail(err, DM_ERR_INVALID, "key_set %s: its range is too small for %" PRIu64 " keys", key_set, count);
    }
    *keys = malloc(count * sizeof **keys);
    if (*keys == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "key_set %s: no memory for %" PRIu64 " keys", key_set, count);
    }
    uint64_t repeated = 0;
    int rc = keys_draw(synthetic, &sampler, *keys, count, &repeated);
    if (rc < 0) {
        free(*keys);
        *keys = NULL;
        return dm_fail(err, rc,
                       "key_set %s: cannot generate %" PRIu64 " different keys at this scale; use a larger one",
                       key_set, count);
    }
    dm_log(DM_LOG_INFO,
           "key set %s: %" PRIu64 " keys; %" PRIu64 " repeated and %" PRIu64 " out-of-range keys were drawn again",
           key_set, count, repeated, sampler.rejected);
    return 0;
}
