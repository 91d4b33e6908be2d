/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests distributions against their exact probabilities, with fixed seeds and a false-alarm rate of 1e-8 per test; and
 * the power of these tests: the same statistic must reject the draws of a wrong port.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/stats.h"
#include "unit/workloads/vectors.h"
#include "workloads/generators.h"
#include "workloads/workload.h"

enum { BINS_MAX = 1100, DRAWS = 2000000 };

/* Observed and expected counts by bin. */
struct bins {
    unsigned count;
    double expected[BINS_MAX];
    double observed[BINS_MAX];
};

static double chi_square(const struct bins *bins) {
    double sum = 0.0;
    for (unsigned i = 0; i < bins->count; i++) {
        double off = bins->observed[i] - bins->expected[i];
        assert_true(bins->expected[i] >= 25.0);
        sum += off * off / bins->expected[i];
    }
    return sum;
}

/* Wilson and Hilferty's approximation of the value that chi-square exceeds once in 10^8. */
static double chi_square_limit(unsigned df) {
    const double z = 5.612;
    double a = 2.0 / (9.0 * df);
    return df * pow(1.0 - a + z * sqrt(a), 3.0);
}

static bool bins_fit(const struct bins *bins) {
    unsigned df = bins->count - 1;
    double value = chi_square(bins);
    /* too good a fit betrays streams that repeat */
    bool too_good = df >= 50 && value < df - 5.0 * sqrt(2.0 * df);
    return value <= chi_square_limit(df) && !too_good;
}

/* Bins by rank: 20 single ranks, then powers of two, the last one up to `items`. Returns the first rank of a bin. */
static uint64_t rank_bin_start(unsigned bin) {
    return bin <= 20 ? bin : UINT64_C(32) << (bin - 21);
}

static unsigned rank_bin(uint64_t rank) {
    unsigned bin = 0;
    while (rank >= rank_bin_start(bin + 1)) {
        bin++;
    }
    return bin;
}

/* P(rank < k) of Gray's approximation. */
static double gray_cdf(double items, double theta, double zetan, double k) {
    double eta = (1.0 - pow(2.0 / items, 1.0 - theta)) / (1.0 - (1.0 + pow(2.0, -theta)) / zetan);
    if (k < 1.5) {
        return k < 0.5 ? 0.0 : 1.0 / zetan;
    }
    return k >= items ? 1.0 : 1.0 - 1.0 / eta + pow(k / items, 1.0 - theta) / eta;
}

/* P(rank < k) of the Zipf distribution itself. */
static double zipf_cdf(double items, double theta, double zetan, double k) {
    (void)items;
    double sum = 0.0;
    for (double i = 1.0; i <= k && i <= items; i++) {
        sum += pow(i, -theta);
    }
    return sum / zetan;
}

typedef double (*cdf_fn)(double items, double theta, double zetan, double k);

static void rank_bins_expect(struct bins *bins, uint64_t items, double theta, cdf_fn cdf, double draws) {
    double zetan = 0.0;
    for (uint64_t i = 1; i <= items; i++) {
        zetan += pow((double)i, -theta);
    }
    *bins = (struct bins){.count = rank_bin(items - 1) + 1};
    double below = 0.0;
    for (unsigned bin = 0; bin < bins->count; bin++) {
        uint64_t end = bin + 1 < bins->count ? rank_bin_start(bin + 1) : items;
        double upto = cdf((double)items, theta, zetan, (double)end);
        bins->expected[bin] = draws * (upto - below);
        below = upto;
    }
}

static void gray_fits_and_zipf_does_not(uint64_t items, double theta) {
    struct bins gray, zipf;
    struct wl_zipf generator = wl_zipf_make(0, items, theta, 0.0);
    struct dm_prng prng = dm_prng_stream(1, "statistics", items);
    rank_bins_expect(&gray, items, theta, gray_cdf, DRAWS);
    rank_bins_expect(&zipf, items, theta, zipf_cdf, DRAWS);
    for (int i = 0; i < DRAWS; i++) {
        gray.observed[rank_bin(wl_zipf_next(&generator, &prng))] += 1.0;
    }
    memcpy(zipf.observed, gray.observed, sizeof zipf.observed);
    assert_true(bins_fit(&gray));
    assert_false(bins_fit(&zipf));
}

static void zipfian_ranks_follow_gray_and_not_zipf_itself(void **state) {
    (void)state;
    gray_fits_and_zipf_does_not(1000, 0.99);
    gray_fits_and_zipf_does_not(100000, 0.99);
    gray_fits_and_zipf_does_not(1000, 0.7);
}

static void the_tail_uses_all_bits_of_the_random_number(void **state) {
    (void)state;
    struct wl_zipf zipf = wl_zipf_make(0, UINT64_C(10000000000), 0.99, 0.0);
    struct dm_prng prng = {.state = 2};
    unsigned differ = 0;
    for (int i = 0; i < 10000; i++) {
        double near_one = 1.0 - 0x1p-24 * dm_prng_double(&prng);
        double short_one = floor(near_one * 0x1p31) * 0x1p-31;
        differ += wl_zipf_value(&zipf, near_one) != wl_zipf_value(&zipf, short_one) ? 1 : 0;
    }
    /* a generator with only 31 random bits would never draw these ranks */
    assert_true(differ > 9000);
}

/* The table of exact probabilities of the scrambled Zipfian for a modulus. */
static const json_t *scrambled_table(const json_t *vectors, int modulus) {
    const json_t *tables = json_object_get(json_array_get(json_object_get(vectors, "exact_scrambled"), 0), "tables");
    for (size_t i = 0; i < json_array_size(tables); i++) {
        const json_t *table = json_array_get(tables, i);
        if ((int)vector_number(table, "modulus") == modulus) {
            return json_object_get(table, "pmf_by_key");
        }
    }
    fail();
    return NULL;
}

/* Counts the keys that workload C over 1000 ordered keys reads. */
static void count_workload_c(struct bins *bins, const char *distribution) {
    const struct wl_config config = {
        .workload = "c", .insert_order = "ordered", .distribution = distribution, .keys = 1000};
    struct wl *wl = NULL;
    struct dm_err err = {0};
    assert_int_equal(wl_open(&config, DRAWS, 1, 77, &wl, &err), 0);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    *bins = (struct bins){.count = 1000};
    for (int i = 0; i < DRAWS; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        assert_true(op.key < 1000);
        bins->observed[op.key] += 1.0;
    }
    wl_stream_close(stream);
    wl_close(wl);
}

static void workload_c_draws_each_key_with_its_exact_probability(void **state) {
    (void)state;
    json_t *vectors = vectors_load();
    const json_t *right = scrambled_table(vectors, 1001), *wrong = scrambled_table(vectors, 1000);
    struct bins bins;
    count_workload_c(&bins, "zipfian");
    double redrawn = json_number_value(json_array_get(right, 1000));
    for (unsigned key = 0; key < 1000; key++) {
        bins.expected[key] = DRAWS * json_number_value(json_array_get(right, key)) / (1.0 - redrawn);
    }
    assert_true(bins_fit(&bins));
    /* 6 standard deviations of the hottest key */
    double hottest = bins.expected[144];
    assert_true(fabs(bins.observed[144] - hottest) < 6.0 * sqrt(hottest));
    for (unsigned key = 0; key < 1000; key++) {
        bins.expected[key] = DRAWS * json_number_value(json_array_get(wrong, key));
    }
    assert_false(bins_fit(&bins));
    json_decref(vectors);
}

static void a_zipfian_over_the_keys_themselves_is_rejected(void **state) {
    (void)state;
    json_t *vectors = vectors_load();
    const json_t *table = scrambled_table(vectors, 1000);
    struct wl_zipf zipf = wl_zipf_make(0, 1000, 0.99, 0.0);
    struct dm_prng prng = {.state = 3};
    struct bins bins = {.count = 1000};
    for (unsigned key = 0; key < 1000; key++) {
        bins.expected[key] = DRAWS * json_number_value(json_array_get(table, key));
    }
    for (int i = 0; i < DRAWS; i++) {
        bins.observed[wl_fnvhash64(wl_zipf_next(&zipf, &prng)) % 1000] += 1.0;
    }
    assert_false(bins_fit(&bins));
    json_decref(vectors);
}

static void uniform_reads_every_key_equally_often(void **state) {
    (void)state;
    struct bins bins;
    count_workload_c(&bins, "uniform");
    for (unsigned key = 0; key < 1000; key++) {
        bins.expected[key] = DRAWS / 1000.0;
    }
    assert_true(bins_fit(&bins));
}

static void hotspot_sends_four_fifths_to_the_first_fifth(void **state) {
    (void)state;
    struct bins bins;
    count_workload_c(&bins, "hotspot");
    for (unsigned key = 0; key < 1000; key++) {
        bins.expected[key] = DRAWS * (key < 200 ? 0.8 / 200 : 0.2 / 800);
    }
    assert_true(bins_fit(&bins));
}

static void latest_favours_the_newest_by_gray(void **state) {
    (void)state;
    struct bins bins;
    struct wl_latest latest = wl_latest_make(999, 0.99);
    struct dm_prng prng = {.state = 21};
    rank_bins_expect(&bins, 999, 0.99, gray_cdf, DRAWS);
    bool first_drawn = false;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t key = wl_latest_next(&latest, 999, &prng);
        first_drawn |= key == 0;
        bins.observed[rank_bin(999 - key)] += 1.0;
    }
    assert_true(bins_fit(&bins));
    assert_false(first_drawn);
}

/* The largest distance of the empirical distribution from 1 - exp(-gamma x). */
static double exponential_distance(double *values, size_t count, double gamma) {
    double greatest = 0.0;
    dm_sort(values, count);
    for (size_t i = 0; i < count; i++) {
        double cdf = 1.0 - exp(-gamma * values[i]);
        greatest = fmax(greatest, fabs(cdf - (double)i / (double)count));
        greatest = fmax(greatest, fabs(cdf - (double)(i + 1) / (double)count));
    }
    return greatest;
}

static void exponential_passes_kolmogorov_and_smirnov(void **state) {
    (void)state;
    enum { COUNT = 300000 };
    const double limit = sqrt(log(2.0 / 1e-8) / (2.0 * COUNT)), gamma = -log(0.05) / 857.1428571;
    struct wl_exponential exponential = wl_exponential_make(95.0, 857.1428571);
    struct dm_prng prng = {.state = 31};
    double *values = malloc(COUNT * sizeof values[0]);
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) {
        values[i] = wl_exponential_next(&exponential, &prng);
    }
    assert_true(exponential_distance(values, COUNT, gamma) < limit);
    /* the constant 1/7 that a comment in YCSB states */
    assert_false(exponential_distance(values, COUNT, gamma * 6.0) < limit);
    free(values);
}

/* Counts kinds and scan lengths of a named workload. */
struct tally {
    double kinds[WL_OP_KIND_COUNT];
    struct bins lengths;
};
enum { MIX_DRAWS = 1000000, LENGTH_MAX = 100 };

static void tally_workload(struct tally *tally, const struct wl_config *config) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    *tally = (struct tally){.lengths = {.count = LENGTH_MAX}};
    assert_int_equal(wl_open(config, MIX_DRAWS, 1, 5, &wl, &err), 0);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    for (int i = 0; i < MIX_DRAWS; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        wl_done(stream, &op, 0);
        tally->kinds[op.kind] += 1.0;
        if (op.kind == WL_SCAN) {
            assert_in_range(op.scan_length, 1, LENGTH_MAX);
            tally->lengths.observed[op.scan_length - 1] += 1.0;
        }
    }
    wl_stream_close(stream);
    wl_close(wl);
}

static void the_mixes_of_a_to_f_and_load_are_drawn_in_their_shares(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double share[WL_OP_KIND_COUNT];
    } mixes[] = {
        {"a", {[WL_GET] = 0.5, [WL_UPDATE] = 0.5}},
        {"b", {[WL_GET] = 0.95, [WL_UPDATE] = 0.05}},
        {"c", {[WL_GET] = 1.0}},
        {"d", {[WL_GET] = 0.95, [WL_INSERT] = 0.05}},
        {"e", {[WL_SCAN] = 0.95, [WL_INSERT] = 0.05}},
        {"f", {[WL_GET] = 0.5, [WL_RMW] = 0.5}},
        {"load", {[WL_INSERT] = 1.0}},
        {"xstore_b", {[WL_GET] = 0.9, [WL_UPDATE] = 0.1}},
        {"prod1", {[WL_UPDATE] = 0.57, [WL_GET] = 0.41, [WL_SCAN] = 0.02}},
    };
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++) {
        struct tally tally;
        const struct wl_config config = {.workload = mixes[i].name, .keys = 1000};
        tally_workload(&tally, &config);
        for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
            double share = mixes[i].share[kind];
            double deviation = sqrt(MIX_DRAWS * share * (1.0 - share));
            assert_true(fabs(tally.kinds[kind] - MIX_DRAWS * share) <= 6.0 * deviation);
        }
    }
}

static void scan_lengths_are_uniform_from_one_to_the_longest(void **state) {
    (void)state;
    struct tally tally;
    tally_workload(&tally, &(struct wl_config){.workload = "e", .keys = 1000, .distribution = "uniform"});
    for (unsigned i = 0; i < LENGTH_MAX; i++) {
        tally.lengths.expected[i] = tally.kinds[WL_SCAN] / LENGTH_MAX;
    }
    assert_true(bins_fit(&tally.lengths));
    /* as if the longest length were 99 */
    tally.lengths.observed[98] += tally.lengths.observed[99];
    tally.lengths.observed[99] = 0.0;
    assert_false(bins_fit(&tally.lengths));
}

static void zipfian_scan_lengths_start_at_one(void **state) {
    (void)state;
    struct tally tally;
    struct bins bins;
    tally_workload(
        &tally,
        &(struct wl_config){.workload = "e", .keys = 1000, .distribution = "uniform", .scan_distribution = "zipfian"});
    rank_bins_expect(&bins, LENGTH_MAX, 0.99, gray_cdf, tally.kinds[WL_SCAN]);
    for (unsigned i = 0; i < LENGTH_MAX; i++) {
        bins.observed[rank_bin(i)] += tally.lengths.observed[i];
    }
    assert_true(bins_fit(&bins));
}

static void successive_draws_are_independent(void **state) {
    (void)state;
    const struct wl_config config = {
        .workload = "c", .distribution = "uniform", .insert_order = "ordered", .keys = 1600};
    struct wl *wl = NULL;
    struct dm_err err = {0};
    struct bins bins = {.count = 256};
    assert_int_equal(wl_open(&config, DRAWS, 1, 6, &wl, &err), 0);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    unsigned before = 0;
    for (int i = 0; i < DRAWS; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        unsigned cell = (unsigned)(op.key / 100);
        if (i % 2 != 0) {
            bins.observed[before * 16 + cell] += 1.0;
        }
        before = cell;
    }
    for (unsigned i = 0; i < bins.count; i++) {
        bins.expected[i] = DRAWS / 2.0 / bins.count;
    }
    assert_true(bins_fit(&bins));
    wl_stream_close(stream);
    wl_close(wl);
}

static void production_traces_choose_their_pieces_by_weight(void **state) {
    (void)state;
    static const struct {
        const char *name;
        unsigned pieces;
        double upto[7], end[7];
    } traces[] = {
        {"prod1", 6, {13, 8130, 9444, 9742, 9920, 10000}, {288, 628.8, 900, 960, 980, 1000}},
        {"prod2", 1, {10000}, {94.0328}},
        {"prod2_fixed",
         7,
         {1034.87, 5704.80, 8499.82, 9305.11, 9732.34, 9869.58, 10000},
         {94.0328, 518.3589, 772.3251, 845.4964, 884.316, 896.7858, 1000}},
    };
    for (size_t t = 0; t < 3; t++) {
        struct bins keys, bins = {.count = traces[t].pieces};
        count_workload_c(&keys, traces[t].name);
        unsigned piece = 0;
        for (unsigned key = 0; key < 1000; key++) {
            while (piece + 1 < bins.count && key >= (unsigned)traces[t].end[piece]) {
                piece++;
            }
            bins.observed[piece] += keys.observed[key];
        }
        for (unsigned i = 0; i < bins.count; i++) {
            double below = i > 0 ? traces[t].upto[i - 1] : 0.0;
            bins.expected[i] = DRAWS * (traces[t].upto[i] - below) / 10000.0;
        }
        assert_true(bins.count == 1 || bins_fit(&bins));
        assert_true(keys.observed[999] > 0.0 || bins.count == 1);
        assert_true(bins.count > 1 || keys.observed[94] == 0.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zipfian_ranks_follow_gray_and_not_zipf_itself),
        cmocka_unit_test(the_tail_uses_all_bits_of_the_random_number),
        cmocka_unit_test(workload_c_draws_each_key_with_its_exact_probability),
        cmocka_unit_test(a_zipfian_over_the_keys_themselves_is_rejected),
        cmocka_unit_test(uniform_reads_every_key_equally_often),
        cmocka_unit_test(hotspot_sends_four_fifths_to_the_first_fifth),
        cmocka_unit_test(latest_favours_the_newest_by_gray),
        cmocka_unit_test(exponential_passes_kolmogorov_and_smirnov),
        cmocka_unit_test(the_mixes_of_a_to_f_and_load_are_drawn_in_their_shares),
        cmocka_unit_test(scan_lengths_are_uniform_from_one_to_the_longest),
        cmocka_unit_test(zipfian_scan_lengths_start_at_one),
        cmocka_unit_test(successive_draws_are_independent),
        cmocka_unit_test(production_traces_choose_their_pieces_by_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
