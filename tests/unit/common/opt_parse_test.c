/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of numbers with units: what is accepted, what is refused with which words, and exactness.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/opt.h"
#include "common/prng.h"

typedef int (*parse_fn)(const char *, uint64_t *, struct dm_err *);

static void assert_parsed(parse_fn parse, const char *text, uint64_t expected) {
    uint64_t value = ~expected;
    struct dm_err err = {0};
    if (parse(text, &value, &err) != DM_OK || value != expected) {
        fail_msg("'%s': %" PRIu64 " instead of %" PRIu64 " (%s)", text, value, expected, err.text);
    }
}

/* Refused with a message that holds `words`, and without a value. */
static void assert_refused(parse_fn parse, const char *text, const char *words) {
    uint64_t value = 4711;
    struct dm_err err = {0};
    if (parse(text, &value, &err) != DM_ERR_INVALID || value != 4711 || strstr(err.text, words) == NULL) {
        fail_msg("'%s': value %" PRIu64 ", message: %s", text, value, err.text);
    }
    assert_int_equal(parse(text, &value, NULL), DM_ERR_INVALID);
}

static void counts_are_integers_with_decimal_units(void **state) {
    (void)state;
    assert_parsed(dm_parse_count, "0", 0);
    assert_parsed(dm_parse_count, "007", 7);
    assert_parsed(dm_parse_count, "65536", 65536);
    assert_parsed(dm_parse_count, "1K", 1000);
    assert_parsed(dm_parse_count, "1k", 1000);
    assert_parsed(dm_parse_count, "10M", 10000000);
    assert_parsed(dm_parse_count, "2G", 2000000000);
    assert_parsed(dm_parse_count, "3T", UINT64_C(3000000000000));
    assert_parsed(dm_parse_count, "18446744073709551615", UINT64_MAX);
    assert_parsed(dm_parse_count, "000000000000000000000000000000000000000000001", 1);
}

static void fractions_and_exponents_are_allowed_when_the_value_is_an_integer(void **state) {
    (void)state;
    assert_parsed(dm_parse_count, "1.5M", 1500000);
    assert_parsed(dm_parse_count, "0.001K", 1);
    assert_parsed(dm_parse_count, "1.05K", 1050);
    assert_parsed(dm_parse_count, "2.000", 2);
    assert_parsed(dm_parse_count, "2.0000000000000000000000000000000000000000000000", 2);
    assert_parsed(dm_parse_count, "1.1000000000000000000000000000000000K", 1100);
    assert_parsed(dm_parse_count, "1e6", 1000000);
    assert_parsed(dm_parse_count, "1E+6", 1000000);
    assert_parsed(dm_parse_count, "1.5e3", 1500);
    assert_parsed(dm_parse_count, "1500e-2", 15);
    assert_parsed(dm_parse_count, "2e3K", 2000000);
    assert_parsed(dm_parse_count, "0e99999999999999", 0);
    assert_parsed(dm_parse_count, "18446744073.709551615G", UINT64_MAX);
    assert_parsed(dm_parse_bytes, "1.5KiB", 1536);
    assert_parsed(dm_parse_bytes, "0.0009765625KiB", 1);
    assert_parsed(dm_parse_duration, "1.5us", 1500);
    assert_parsed(dm_parse_duration, "0.5h", UINT64_C(1800000000000));
}

static void bytes_have_units_of_ten_and_of_two(void **state) {
    (void)state;
    assert_parsed(dm_parse_bytes, "64", 64);
    assert_parsed(dm_parse_bytes, "64B", 64);
    assert_parsed(dm_parse_bytes, "100MB", 100000000);
    assert_parsed(dm_parse_bytes, "64KiB", 65536);
    assert_parsed(dm_parse_bytes, "64kib", 65536);
    assert_parsed(dm_parse_bytes, "1K", 1000);
    assert_parsed(dm_parse_bytes, "1KB", 1000);
    assert_parsed(dm_parse_bytes, "1M", 1000000);
    assert_parsed(dm_parse_bytes, "1MiB", 1048576);
    assert_parsed(dm_parse_bytes, "1GB", 1000000000);
    assert_parsed(dm_parse_bytes, "1GiB", 1073741824);
    assert_parsed(dm_parse_bytes, "2TB", UINT64_C(2000000000000));
    assert_parsed(dm_parse_bytes, "2TiB", UINT64_C(2199023255552));
}

static void durations_need_their_unit(void **state) {
    (void)state;
    assert_parsed(dm_parse_duration, "300ns", 300);
    assert_parsed(dm_parse_duration, "20us", 20000);
    assert_parsed(dm_parse_duration, "10ms", 10000000);
    assert_parsed(dm_parse_duration, "5s", UINT64_C(5000000000));
    assert_parsed(dm_parse_duration, "2m", UINT64_C(120000000000));
    assert_parsed(dm_parse_duration, "1h", UINT64_C(3600000000000));
    assert_parsed(dm_parse_duration, "0", 0);
    assert_parsed(dm_parse_duration, "0s", 0);
    assert_refused(dm_parse_duration, "5", "'5' has no unit");
    assert_refused(dm_parse_duration, "5", "ns, us, ms, s, m or h");
    /* M would be million elsewhere, and m is minutes: no guessing */
    assert_refused(dm_parse_duration, "5M", "'5M' is not a duration");
    assert_refused(dm_parse_duration, "5S", "ns, us, ms, s, m or h");
}

static void text_that_is_no_number_is_quoted_with_advice(void **state) {
    (void)state;
    assert_refused(dm_parse_count, "12q", "'12q' is not a count (use a whole number, with K, M, G or T for 10^3");
    assert_refused(dm_parse_bytes, "12KiBs", "'12KiBs' is not a number of bytes (use a whole number, with KB");
    static const char *const texts[] = {"",    " ",   " 1",  "1 ",    "-1",  "+1",  "x",   "K",   ".5",
                                        "5.",  "1e",  "1e+", "1K1",   "1KK", "0x1", "1,5", "1_0", "1..5",
                                        "inf", "nan", "--1", "1.5.2", "1 K", "0q",  "\n",  "1\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_refused(dm_parse_count, texts[i], "is not a count (");
        assert_refused(dm_parse_bytes, texts[i], "is not a number of bytes (");
        assert_refused(dm_parse_duration, texts[i], "not a duration (");
    }
    assert_refused(dm_parse_count, "", "'' is not a count");
    assert_refused(dm_parse_count, "1Ki", "'1Ki' is not a count");
}

static void values_that_do_not_fit_are_refused(void **state) {
    (void)state;
    assert_refused(dm_parse_count, "18446744073709551616", "'18446744073709551616' is too large");
    assert_refused(dm_parse_count, "18446744073709551.616K", "is too large");
    assert_refused(dm_parse_count, "1e20", "is too large");
    assert_refused(dm_parse_count, "1e2000000000000000", "is too large");
    assert_refused(dm_parse_count, "99999999999G", "18446744073709551615");
    assert_refused(dm_parse_count, "10000000000000000000000000000000000000000000000000000000000000000", "is too large");
    assert_refused(dm_parse_bytes, "16777216TiB", "is too large");
    assert_parsed(dm_parse_bytes, "16777215TiB", UINT64_MAX - ((UINT64_C(1) << 40) - 1));
    assert_refused(dm_parse_duration, "5124096h", "18446744073709551615ns");
    assert_parsed(dm_parse_duration, "5124095h", UINT64_C(18446742000000000000));
}

static void values_that_are_not_integers_are_refused(void **state) {
    (void)state;
    assert_refused(dm_parse_count, "1.5", "'1.5' is not a whole number");
    assert_refused(dm_parse_count, "1.2345K", "is not a whole number");
    assert_refused(dm_parse_count, "1e-1", "is not a whole number");
    assert_refused(dm_parse_count, "1e-99999999999", "is not a whole number");
    assert_refused(dm_parse_count, "1.0000000000000000000000000000000000001", "has too many digits");
    assert_refused(dm_parse_bytes, "0.3KiB", "is not a whole number of bytes");
    assert_refused(dm_parse_duration, "1.5ns", "is not a whole number of nanoseconds");
}

static void long_texts_are_cut_in_messages(void **state) {
    (void)state;
    char text[500];
    memset(text, '7', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_refused(dm_parse_count, text, "777...' is too large");
    text[60] = '\0';
    assert_refused(dm_parse_count, text, "777' is too large");
}

static void reals_are_plain_decimals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0", 0.0},  {"0.99", 0.99}, {"-2.5", -2.5},   {"+1", 1.0},    {"1e-3", 0.001},
                {".5", 0.5}, {"5.", 5.0},    {"1e308", 1e308}, {"1e-400", 0.0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double value = -1.0;
        assert_int_equal(dm_parse_real(rows[i].text, &value, NULL), DM_OK);
        assert_true(value == rows[i].value);
    }
}

static void reals_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"", " 1", "1 ", "0x10", "inf", "nan", "1e", "1.2.3", "1,5", "e5", "-", "1K"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double value = 3.25;
        struct dm_err err = {0};
        assert_int_equal(dm_parse_real(texts[i], &value, &err), DM_ERR_INVALID);
        assert_non_null(strstr(err.text, "is not a number"));
        assert_true(value == 3.25);
    }
    struct dm_err err = {0};
    double value = 0.0;
    assert_int_equal(dm_parse_real("-1e999", &value, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "'-1e999' is too large"));
}

/* A number written with a unit, random fraction digits and a random exponent is read back as its value. */
static void written_quantities_read_back_exactly(void **state) {
    (void)state;
    static const struct {
        parse_fn parse;
        const char *unit;
        unsigned zeros;
    } rows[] = {
        {dm_parse_count, "", 0},      {dm_parse_count, "K", 3},     {dm_parse_count, "M", 6},
        {dm_parse_count, "g", 9},     {dm_parse_count, "T", 12},    {dm_parse_bytes, "kB", 3},
        {dm_parse_bytes, "MB", 6},    {dm_parse_bytes, "GB", 9},    {dm_parse_bytes, "TB", 12},
        {dm_parse_duration, "ns", 0}, {dm_parse_duration, "us", 3}, {dm_parse_duration, "ms", 6},
        {dm_parse_duration, "s", 9},
    };
    struct dm_prng prng = {.state = 99};
    for (int round = 0; round < 20000; round++) {
        size_t row = dm_prng_below(&prng, sizeof(rows) / sizeof(rows[0]));
        uint64_t value = dm_prng_u64(&prng) >> dm_prng_below(&prng, 64);
        uint64_t factor = 1;
        for (unsigned i = 0; i < rows[row].zeros; i++) {
            factor *= 10;
        }
        char text[64];
        if (rows[row].zeros > 0) {
            (void)snprintf(text, sizeof(text), "%" PRIu64 ".%0*" PRIu64 "%s", value / factor, (int)rows[row].zeros,
                           value % factor, rows[row].unit);
        } else {
            (void)snprintf(text, sizeof(text), "%" PRIu64 "%s", value, rows[row].unit);
        }
        assert_parsed(rows[row].parse, text, value);
    }
}

static void no_random_text_breaks_the_parsers(void **state) {
    (void)state;
    static const char alphabet[] = "0123456789.eE+-KMGTkibBnsumh";
    struct dm_prng prng = {.state = 5};
    for (int round = 0; round < 100000; round++) {
        char text[12];
        size_t length = dm_prng_below(&prng, sizeof(text));
        for (size_t i = 0; i < length; i++) {
            text[i] = alphabet[dm_prng_below(&prng, sizeof(alphabet) - 1)];
        }
        text[length] = '\0';
        uint64_t value = 0;
        double real = 0.0;
        struct dm_err err = {0};
        assert_true(dm_parse_count(text, &value, &err) <= 0);
        assert_true(dm_parse_bytes(text, &value, &err) <= 0);
        assert_true(dm_parse_duration(text, &value, &err) <= 0);
        assert_true(dm_parse_real(text, &real, &err) <= 0 && isfinite(real));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_integers_with_decimal_units),
        cmocka_unit_test(fractions_and_exponents_are_allowed_when_the_value_is_an_integer),
        cmocka_unit_test(bytes_have_units_of_ten_and_of_two),
        cmocka_unit_test(durations_need_their_unit),
        cmocka_unit_test(text_that_is_no_number_is_quoted_with_advice),
        cmocka_unit_test(values_that_do_not_fit_are_refused),
        cmocka_unit_test(values_that_are_not_integers_are_refused),
        cmocka_unit_test(long_texts_are_cut_in_messages),
        cmocka_unit_test(reals_are_plain_decimals),
        cmocka_unit_test(reals_that_are_no_numbers_are_refused),
        cmocka_unit_test(written_quantities_read_back_exactly),
        cmocka_unit_test(no_random_text_breaks_the_parsers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
