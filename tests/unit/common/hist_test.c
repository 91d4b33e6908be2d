/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the histogram against the definition: a sorted array of everything that was recorded.
 */
#include "common/hist.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/err.h"
#include "common/prng.h"

/* Too large for the stack of a test; every test clears what it uses. */
static struct dm_hist first;
static struct dm_hist second;
static struct dm_hist third;

enum { VALUES_MAX = 2000, TEXT_MAX = 64 * 1024 };
static uint64_t recorded[VALUES_MAX];
static char encoded[TEXT_MAX];

static int compare_u64(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Values over the whole range: every bit length is as likely as any other. */
static uint64_t any_value(struct dm_prng *prng) {
    uint64_t bits = dm_prng_below(prng, 65);
    return bits == 0 ? 0 : dm_prng_u64(prng) >> (64 - bits);
}

/* Fills `recorded` with count random values and records them. */
static void record_random(struct dm_hist *hist, struct dm_prng *prng, size_t count) {
    for (size_t i = 0; i < count; i++) {
        recorded[i] = any_value(prng);
        dm_hist_record(hist, recorded[i]);
    }
}

/* The bucket that the one recorded value is in. */
static unsigned only_bucket(const struct dm_hist *hist) {
    unsigned found = DM_HIST_BUCKETS;
    for (unsigned i = 0; i < DM_HIST_BUCKETS; i++) {
        if (hist->buckets[i] != 0) {
            assert_int_equal(found, DM_HIST_BUCKETS);
            found = i;
        }
    }
    return found;
}

static unsigned bucket_of_value(uint64_t value) {
    dm_hist_clear(&third);
    dm_hist_record(&third, value);
    return only_bucket(&third);
}

static void small_values_have_a_bucket_each(void **state) {
    (void)state;
    for (unsigned value = 0; value < 256; value++) {
        assert_int_equal(bucket_of_value(value), value);
    }
    assert_int_equal(bucket_of_value(256), 256);
    assert_int_equal(bucket_of_value(257), 256);
    assert_int_equal(bucket_of_value(258), 257);
}

static void every_octave_has_128_buckets_of_equal_width(void **state) {
    (void)state;
    for (unsigned octave = 7; octave < 64; octave++) {
        uint64_t low = UINT64_C(1) << octave;
        uint64_t width = low / 128;
        unsigned bucket = (octave - 6) * 128;
        for (unsigned part = 0; part < 128; part += 127) {
            assert_int_equal(bucket_of_value(low + part * width), bucket + part);
            assert_int_equal(bucket_of_value(low + part * width + width - 1), bucket + part);
        }
        assert_int_equal(bucket_of_value(low - 1), bucket - 1);
    }
    assert_int_equal(bucket_of_value(UINT64_MAX), DM_HIST_BUCKETS - 1);
}

static void an_empty_histogram_is_all_zero(void **state) {
    (void)state;
    dm_hist_record(&first, 5);
    dm_hist_clear(&first);
    assert_int_equal(dm_hist_quantile(&first, 0.5), 0);
    assert_true(dm_hist_mean(&first) == 0.0);
    assert_int_equal(first.count + first.min + first.max, 0);
    assert_true(dm_hist_encode(&first, encoded, sizeof(encoded)) < sizeof(encoded));
    assert_string_equal(encoded, "min=0 max=0 sum=0");
}

static void count_min_max_and_mean_are_exact(void **state) {
    (void)state;
    dm_hist_clear(&first);
    dm_hist_record(&first, 1000003);
    dm_hist_record(&first, 17);
    dm_hist_record(&first, 999999);
    assert_int_equal(first.count, 3);
    assert_int_equal(first.min, 17);
    assert_int_equal(first.max, 1000003);
    assert_true(dm_hist_mean(&first) == (1000003.0 + 17.0 + 999999.0) / 3.0);
}

static void the_sum_does_not_overflow(void **state) {
    (void)state;
    dm_hist_clear(&first);
    for (int i = 0; i < 1000; i++) {
        dm_hist_record(&first, UINT64_MAX);
    }
    assert_true(first.sum == (unsigned __int128)UINT64_MAX * 1000);
    assert_true(fabs(dm_hist_mean(&first) - 0x1p64) <= 0x1p12);
    assert_true(dm_hist_encode(&first, encoded, sizeof(encoded)) < sizeof(encoded));
    assert_string_equal(encoded, "min=18446744073709551615 max=18446744073709551615 sum=18446744073709551615000 "
                                 "7423:1000");
}

static void quantiles_agree_with_the_sorted_values(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 1};
    static const double shares[] = {0.0, 1e-9, 0.01, 0.07, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0};
    for (int round = 0; round < 60; round++) {
        size_t count = 1 + dm_prng_below(&prng, VALUES_MAX);
        dm_hist_clear(&first);
        record_random(&first, &prng, count);
        qsort(recorded, count, sizeof(recorded[0]), compare_u64);
        for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]) + 5; s++) {
            double share = s < sizeof(shares) / sizeof(shares[0]) ? shares[s] : dm_prng_double(&prng);
            size_t rank = 1;
            while ((double)rank / (double)count < share) {
                rank++;
            }
            uint64_t exact = recorded[rank - 1];
            uint64_t found = dm_hist_quantile(&first, share);
            assert_true(found >= exact && found <= recorded[count - 1]);
            assert_true(found - exact <= exact / 128);
        }
        assert_int_equal(dm_hist_quantile(&first, 1.0), recorded[count - 1]);
    }
}

static void quantiles_of_small_values_are_exact(void **state) {
    (void)state;
    dm_hist_clear(&first);
    for (uint64_t value = 1; value <= 100; value++) {
        dm_hist_record(&first, value);
    }
    for (unsigned percent = 1; percent <= 100; percent++) {
        /* among them 7, 14, 28, 29 and others where the share times 100 is not whole in floating point */
        assert_int_equal(dm_hist_quantile(&first, (double)percent / 100.0), percent);
    }
}

static void shares_out_of_range_give_the_ends(void **state) {
    (void)state;
    dm_hist_clear(&first);
    dm_hist_record(&first, 10);
    dm_hist_record(&first, 20);
    assert_int_equal(dm_hist_quantile(&first, -1.0), 10);
    assert_int_equal(dm_hist_quantile(&first, 2.0), 20);
    assert_int_equal(dm_hist_quantile(&first, (double)NAN), 10);
}

static void quantiles_of_huge_counts_are_found(void **state) {
    (void)state;
    dm_hist_clear(&first);
    assert_int_equal(dm_hist_decode(&first, "min=1 max=2 sum=27670116110564327421 1:9223372036854775807 "
                                            "2:9223372036854775807"),
                     DM_OK);
    assert_int_equal(dm_hist_quantile(&first, 0.25), 1);
    assert_int_equal(dm_hist_quantile(&first, 0.75), 2);
    assert_int_equal(dm_hist_quantile(&first, 1.0), 2);
}

static void merging_equals_recording_both(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 2};
    for (int round = 0; round < 30; round++) {
        dm_hist_clear(&first);
        dm_hist_clear(&second);
        dm_hist_clear(&third);
        for (int i = 0; i < 300; i++) {
            uint64_t value = any_value(&prng);
            dm_hist_record(&third, value);
            dm_hist_record(dm_prng_below(&prng, 2) == 0 ? &first : &second, value);
        }
        dm_hist_merge(&first, &second);
        assert_memory_equal(&first, &third, sizeof(first));
    }
}

static void merging_with_an_empty_one_changes_nothing(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 3};
    dm_hist_clear(&first);
    record_random(&first, &prng, 100);
    third = first;
    dm_hist_clear(&second);
    dm_hist_merge(&first, &second);
    assert_memory_equal(&first, &third, sizeof(first));
    dm_hist_merge(&second, &first);
    assert_memory_equal(&second, &third, sizeof(first));
}

static void decoding_gives_back_what_was_encoded(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 4};
    for (int round = 0; round < 50; round++) {
        dm_hist_clear(&first);
        record_random(&first, &prng, dm_prng_below(&prng, VALUES_MAX));
        assert_true(dm_hist_encode(&first, encoded, sizeof(encoded)) == strlen(encoded));
        memset(&second, 0xee, sizeof(second));
        assert_int_equal(dm_hist_decode(&second, encoded), DM_OK);
        assert_int_equal(first.count, second.count);
        assert_int_equal(first.min, second.min);
        assert_int_equal(first.max, second.max);
        assert_true(first.sum == second.sum);
        assert_memory_equal(first.buckets, second.buckets, sizeof(first.buckets));
    }
}

static void the_text_is_the_documented_one(void **state) {
    (void)state;
    dm_hist_clear(&first);
    dm_hist_record(&first, 3);
    dm_hist_record(&first, 3);
    dm_hist_record(&first, 300);
    assert_true(dm_hist_encode(&first, encoded, sizeof(encoded)) == strlen(encoded));
    assert_string_equal(encoded, "min=3 max=300 sum=306 3:2 278:1");
}

static void encoding_reports_the_bytes_it_needs(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 5};
    dm_hist_clear(&first);
    record_random(&first, &prng, 500);
    size_t needed = dm_hist_encode(&first, NULL, 0);
    assert_true(needed > 500 && needed < sizeof(encoded));
    assert_true(dm_hist_encode(&first, encoded, sizeof(encoded)) == needed);
    for (size_t capacity = 1; capacity <= needed + 1; capacity += 97) {
        char *text = malloc(capacity);
        assert_non_null(text);
        assert_true(dm_hist_encode(&first, text, capacity) == needed);
        assert_true(strlen(text) < capacity);
        assert_int_equal(strncmp(text, encoded, strlen(text)), 0);
        free(text);
    }
}

static void text_that_is_not_a_histogram_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "min=1",
        "min=1 max=2 sum=3",
        "min=0 max=0 sum=1",
        "min=0 max=1 sum=0",
        " min=3 max=3 sum=3 3:1",
        "min=3 max=3 sum=3 3:1 ",
        "min=3 max=3 sum=3  3:1",
        "min=3 max=3 sum=3 3:1x",
        "min=3 max=3 sum=3 3",
        "min=3 max=3 sum=3 3:",
        "min=3 max=3 sum=3 :1",
        "min=3 max=3 sum=3 3:0",
        "min=3 max=3 sum=3 3:-1",
        "min=3 max=3 sum=3 03:1",
        "min=3 max=3 sum=4 3:1",
        "min=3 max=3 sum=2 3:1",
        "min=2 max=3 sum=3 3:1",
        "min=3 max=4 sum=3 3:1",
        "min=3 max=3 sum=6 3:1 3:1",
        "min=3 max=4 sum=7 4:1 3:1",
        "min=3 max=3 sum=5 2:1 3:1",
        "min=3 max=3 sum=7 3:1 4:1",
        "min=257 max=256 sum=513 256:2",
        "min=3 max=3 sum=3 7424:1",
        "min=3 max=3 sum=3 3:18446744073709551616",
        "min=3 max=3 sum=340282366920938463463374607431768211456 3:1",
        "min=1 max=2 sum=27670116110564327424 1:18446744073709551615 2:1",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        dm_hist_record(&first, 9);
        if (dm_hist_decode(&first, texts[i]) != DM_ERR_INVALID) {
            fail_msg("accepted: '%s'", texts[i]);
        }
        assert_int_equal(first.count, 0);
    }
}

static void no_damaged_text_decodes_to_something_inconsistent(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 6};
    for (int round = 0; round < 20000; round++) {
        char text[128] = "min=3 max=1000 sum=2303 3:1 278:1 500:1";
        size_t length = strlen(text);
        static const char alphabet[] = "0123456789:= minaxsu";
        text[dm_prng_below(&prng, length)] = alphabet[dm_prng_below(&prng, sizeof(alphabet) - 1)];
        if (dm_hist_decode(&first, text) < 0) {
            continue;
        }
        assert_true(dm_hist_encode(&first, encoded, sizeof(encoded)) < sizeof(encoded));
        assert_string_equal(encoded, text);
        assert_true(first.min <= first.max && dm_hist_quantile(&first, 1.0) == first.max);
        double mean = dm_hist_mean(&first);
        assert_true(mean >= (double)first.min && mean <= (double)first.max);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_have_a_bucket_each),
        cmocka_unit_test(every_octave_has_128_buckets_of_equal_width),
        cmocka_unit_test(an_empty_histogram_is_all_zero),
        cmocka_unit_test(count_min_max_and_mean_are_exact),
        cmocka_unit_test(the_sum_does_not_overflow),
        cmocka_unit_test(quantiles_agree_with_the_sorted_values),
        cmocka_unit_test(quantiles_of_small_values_are_exact),
        cmocka_unit_test(shares_out_of_range_give_the_ends),
        cmocka_unit_test(quantiles_of_huge_counts_are_found),
        cmocka_unit_test(merging_equals_recording_both),
        cmocka_unit_test(merging_with_an_empty_one_changes_nothing),
        cmocka_unit_test(decoding_gives_back_what_was_encoded),
        cmocka_unit_test(the_text_is_the_documented_one),
        cmocka_unit_test(encoding_reports_the_bytes_it_needs),
        cmocka_unit_test(text_that_is_not_a_histogram_is_refused),
        cmocka_unit_test(no_damaged_text_decodes_to_something_inconsistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
