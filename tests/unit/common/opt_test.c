/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of option tables: defaults, setting, messages, formatting, copies and help.
 */
#include "common/opt.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"

struct settings {
    bool strict;
    uint64_t clients;
    uint64_t cache;
    uint64_t warmup;
    double theta;
    unsigned transport;
    const char *name;
    uint64_t free_count;
    uint64_t free_bytes;
    uint64_t free_ns;
    double free_real;
};

static const char *const transports[] = {"sim", "local", "verbs", NULL};

#define AT(member) .offset = offsetof(struct settings, member)

static const struct dm_opt table[] = {
    {.name = "strict", .type = DM_OPT_BOOL, AT(strict), .initial = "true", .help = "Repair what the paper gets wrong"},
    {.name = "clients", .type = DM_OPT_COUNT, AT(clients), .initial = "8", .min = 1, .max = 65536, .help = "Clients"},
    {.name = "cache",
     .type = DM_OPT_BYTES,
     AT(cache),
     .initial = "100MB",
     .min = 64,
     .max = 0x1p40,
     .symbol = "C",
     .help = "Cache of a compute node"},
    {.name = "warmup", .type = DM_OPT_DURATION, AT(warmup), .initial = "10ms", .max = 60e9, .help = "Unmeasured time"},
    {.name = "theta", .type = DM_OPT_REAL, AT(theta), .initial = "0.99", .max = 2, .help = "Skew"},
    {.name = "transport", .type = DM_OPT_ENUM, AT(transport), .initial = "local", .choices = transports, .help = "How"},
    {.name = "name", .type = DM_OPT_STRING, AT(name), .initial = "", .help = "Label"},
    {.name = "free-count", .type = DM_OPT_COUNT, AT(free_count), .unit = "entries", .initial = "5", .help = "Any"},
    {.name = "free-bytes", .type = DM_OPT_BYTES, AT(free_bytes), .help = "Any"},
    {.name = "free-ns", .type = DM_OPT_DURATION, AT(free_ns), .help = "Any"},
    {.name = "free-real", .type = DM_OPT_REAL, AT(free_real), .help = "Any"},
    DM_OPT_END,
};

static void set(struct settings *settings, const char *name, const char *text) {
    struct dm_err err = {0};
    if (dm_opt_set(table, settings, name, text, &err) != DM_OK) {
        fail_msg("%s", err.text);
    }
}

/* Refused with exactly this message, and nothing changes. */
static void assert_refused(const char *name, const char *text, const char *message) {
    struct settings settings;
    struct settings before;
    struct dm_err err = {0};
    memset(&settings, 0, sizeof(settings));
    dm_opt_defaults(table, &settings);
    memcpy(&before, &settings, sizeof(settings));
    assert_int_equal(dm_opt_set(table, &settings, name, text, &err), DM_ERR_INVALID);
    assert_int_equal(err.code, DM_ERR_INVALID);
    assert_string_equal(err.text, message);
    assert_memory_equal(&settings, &before, sizeof(settings));
    assert_int_equal(dm_opt_set(table, &settings, name, text, NULL), DM_ERR_INVALID);
    dm_opt_free(table, &settings);
}

static void defaults_are_those_of_the_rows(void **state) {
    (void)state;
    struct settings settings;
    memset(&settings, 0xa5, sizeof(settings));
    dm_opt_defaults(table, &settings);
    assert_true(settings.strict);
    assert_int_equal(settings.clients, 8);
    assert_int_equal(settings.cache, 100000000);
    assert_int_equal(settings.warmup, 10000000);
    assert_true(settings.theta == 0.99);
    assert_int_equal(settings.transport, 1);
    assert_string_equal(settings.name, "");
    assert_int_equal(settings.free_bytes, 0);
    assert_int_equal(settings.free_ns, 0);
    assert_true(settings.free_real == 0.0);
    dm_opt_free(table, &settings);
    assert_null(settings.name);
}

static void every_type_is_set_from_text(void **state) {
    (void)state;
    struct settings settings;
    dm_opt_defaults(table, &settings);
    set(&settings, "strict", "off");
    set(&settings, "clients", "64K");
    assert_int_equal(settings.clients, 64000);
    set(&settings, "cache", "64KiB");
    set(&settings, "warmup", "1.5s");
    set(&settings, "theta", "0.5");
    set(&settings, "transport", "verbs");
    set(&settings, "name", "first");
    set(&settings, "name", "second");
    assert_false(settings.strict);
    assert_int_equal(settings.cache, 65536);
    assert_int_equal(settings.warmup, 1500000000);
    assert_true(settings.theta == 0.5);
    assert_int_equal(settings.transport, 2);
    assert_string_equal(settings.name, "second");
    dm_opt_free(table, &settings);
}

static void truth_has_many_words(void **state) {
    (void)state;
    static const char *const yes[] = {"1", "true", "on", "yes", "TRUE", "Yes"};
    static const char *const no[] = {"0", "false", "off", "no", "False", "OFF"};
    struct settings settings;
    dm_opt_defaults(table, &settings);
    for (size_t i = 0; i < 6; i++) {
        set(&settings, "strict", yes[i]);
        assert_true(settings.strict);
        set(&settings, "strict", no[i]);
        assert_false(settings.strict);
    }
    dm_opt_free(table, &settings);
}

static void bounds_are_inclusive(void **state) {
    (void)state;
    struct settings settings;
    dm_opt_defaults(table, &settings);
    set(&settings, "clients", "1");
    set(&settings, "clients", "65536");
    set(&settings, "theta", "0");
    set(&settings, "theta", "2");
    set(&settings, "warmup", "1m");
    set(&settings, "free-count", "18446744073709551615");
    set(&settings, "free-real", "-1e300");
    assert_refused("clients", "0", "--clients: 0 is out of range (1 to 65536)");
    assert_refused("clients", "65537", "--clients: 65537 is out of range (1 to 65536)");
    assert_refused("clients", "66K", "--clients: 66K is out of range (1 to 65536)");
    assert_refused("cache", "63", "--cache: 63 is out of range (64 to 1TiB)");
    assert_refused("warmup", "61s", "--warmup: 61s is out of range (0 to 1m)");
    assert_refused("theta", "2.01", "--theta: 2.01 is out of range (0 to 2)");
    assert_refused("theta", "-0.5", "--theta: -0.5 is out of range (0 to 2)");
    dm_opt_free(table, &settings);
}

static void bad_values_name_the_option_and_what_is_right(void **state) {
    (void)state;
    assert_refused("clients", "12q",
                   "--clients: '12q' is not a count (use a whole number, with K, M, G or T for 10^3, 10^6, 10^9, "
                   "10^12)");
    assert_refused(
        "warmup", "5",
        "--warmup: '5' has no unit, so it is not a duration (use a number with its unit: ns, us, ms, s, m or "
        "h, as in 20us)");
    assert_refused("strict", "maybe",
                   "--strict: 'maybe' is neither true nor false (use true or false, on or off, yes or no, 1 or 0)");
    assert_refused("theta", "much", "--theta: 'much' is not a number (use digits, as in 0.99, 12 or 1e-3)");
    assert_refused("transport", "lcoal",
                   "--transport: 'lcoal' is not a choice (did you mean 'local'? use one of: sim, local, verbs)");
    assert_refused("transport", "", "--transport: '' is not a choice (use one of: sim, local, verbs)");
    assert_refused("transport", "LOCAL",
                   "--transport: 'LOCAL' is not a choice (did you mean 'local'? use one of: sim, local, verbs)");
    assert_refused("name", "a\nb", "--name: 'a?b' has control characters or is not UTF-8");
    assert_refused("name", "\xff", "--name: '?' has control characters or is not UTF-8");
}

static void unknown_names_get_a_suggestion(void **state) {
    (void)state;
    assert_refused("cleints", "1", "unknown option 'cleints' (did you mean 'clients'?)");
    assert_refused("colour", "1", "unknown option 'colour'");
    assert_refused("", "1", "unknown option ''");
    assert_refused("Clients", "1", "unknown option 'Clients' (did you mean 'clients'?)");
}

static void rows_are_found_by_their_full_name(void **state) {
    (void)state;
    assert_ptr_equal(dm_opt_find(table, "clients"), &table[1]);
    assert_null(dm_opt_find(table, "client"));
    assert_null(dm_opt_find(table, ""));
    assert_null(dm_opt_find(&table[sizeof(table) / sizeof(table[0]) - 1], "clients"));
}

/* Any double but those that are no numbers. */
static double any_real(struct dm_prng *prng) {
    for (;;) {
        uint64_t bits = dm_prng_u64(prng);
        double real = 0.0;
        memcpy(&real, &bits, sizeof(real));
        if (isfinite(real)) {
            return real;
        }
    }
}

static void randomise(struct settings *settings, struct dm_prng *prng) {
    char label[16];
    (void)snprintf(label, sizeof(label), "n\"%" PRIu64 "\xc3\xa4", dm_prng_below(prng, 1000000));
    set(settings, "name", label);
    settings->strict = dm_prng_below(prng, 2) == 1;
    settings->clients = 1 + dm_prng_below(prng, 65536);
    settings->cache = 64 + dm_prng_below(prng, 1 << 30);
    settings->warmup = dm_prng_below(prng, UINT64_C(60000000001));
    settings->theta = dm_prng_double(prng) * 2.0;
    settings->transport = (unsigned)dm_prng_below(prng, 3);
    settings->free_count = dm_prng_u64(prng) >> dm_prng_below(prng, 64);
    settings->free_bytes = dm_prng_u64(prng) >> dm_prng_below(prng, 64);
    settings->free_ns = dm_prng_u64(prng) >> dm_prng_below(prng, 64);
    settings->free_real = any_real(prng);
}

static void assert_same(const struct settings *a, const struct settings *b) {
    assert_int_equal(a->strict, b->strict);
    assert_true(a->clients == b->clients && a->cache == b->cache && a->warmup == b->warmup);
    assert_memory_equal(&a->theta, &b->theta, sizeof(a->theta));
    assert_int_equal(a->transport, b->transport);
    assert_string_equal(a->name, b->name);
    assert_true(a->free_count == b->free_count && a->free_bytes == b->free_bytes && a->free_ns == b->free_ns);
    assert_memory_equal(&a->free_real, &b->free_real, sizeof(a->free_real));
}

static void formatted_values_read_back_to_the_same_values(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 8};
    struct settings settings;
    dm_opt_defaults(table, &settings);
    for (int round = 0; round < 5000; round++) {
        struct settings copy;
        randomise(&settings, &prng);
        dm_opt_defaults(table, &copy);
        for (const struct dm_opt *row = table; row->name != NULL; row++) {
            char text[64];
            int length = dm_opt_format(row, &settings, text, sizeof(text));
            assert_int_equal(length, strlen(text));
            set(&copy, row->name, text);
        }
        assert_same(&settings, &copy);
        dm_opt_free(table, &copy);
    }
    dm_opt_free(table, &settings);
}

static void assert_formatted(const char *name, const char *text, const char *expected) {
    struct settings settings;
    char formatted[64];
    dm_opt_defaults(table, &settings);
    set(&settings, name, text);
    assert_int_equal(dm_opt_format(dm_opt_find(table, name), &settings, formatted, sizeof(formatted)),
                     strlen(expected));
    assert_string_equal(formatted, expected);
    dm_opt_free(table, &settings);
}

static void values_are_formatted_plainly(void **state) {
    (void)state;
    assert_formatted("strict", "on", "true");
    assert_formatted("strict", "0", "false");
    assert_formatted("clients", "64K", "64000");
    assert_formatted("cache", "64KiB", "65536");
    assert_formatted("warmup", "5s", "5000000000ns");
    assert_formatted("theta", "0.1", "0.1");
    assert_formatted("free-real", "0.30000000000000004", "0.30000000000000004");
    assert_formatted("free-real", "1e100", "1e+100");
    assert_formatted("transport", "sim", "sim");
    assert_formatted("name", "as it is", "as it is");
    assert_formatted("name", "", "");
}

static void formatting_reports_the_length_that_it_needs(void **state) {
    (void)state;
    struct settings settings;
    char text[4];
    dm_opt_defaults(table, &settings);
    set(&settings, "clients", "12345");
    set(&settings, "theta", "1.2345");
    assert_int_equal(dm_opt_format(dm_opt_find(table, "clients"), &settings, text, sizeof(text)), 5);
    assert_string_equal(text, "123");
    assert_int_equal(dm_opt_format(dm_opt_find(table, "theta"), &settings, NULL, 0), 6);
    dm_opt_free(table, &settings);
}

static void copies_have_strings_of_their_own(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 9};
    struct settings settings;
    struct settings copy;
    dm_opt_defaults(table, &settings);
    randomise(&settings, &prng);
    dm_opt_copy(table, &copy, &settings);
    assert_same(&settings, &copy);
    assert_ptr_not_equal(settings.name, copy.name);
    dm_opt_free(table, &settings);
    assert_int_equal(copy.name[0], 'n');
    /* a value set that was released, too */
    dm_opt_free(table, &copy);
    dm_opt_copy(table, &copy, &settings);
    assert_null(copy.name);
    dm_opt_free(table, &copy);
}

static void help_is_one_aligned_line_an_option(void **state) {
    (void)state;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    dm_opt_help(table, "  ", out);
    (void)fclose(out);
    assert_string_equal(text, "  --strict BOOL       Repair what the paper gets wrong (default true)\n"
                              "  --clients COUNT     Clients (default 8; 1 to 65536)\n"
                              "  --cache BYTES       Cache of a compute node (default 100MB; 64 to 1TiB; paper: C)\n"
                              "  --warmup TIME       Unmeasured time (default 10ms; 0 to 1m)\n"
                              "  --theta REAL        Skew (default 0.99; 0 to 2)\n"
                              "  --transport NAME    How (default local; one of: sim, local, verbs)\n"
                              "  --name TEXT         Label\n"
                              "  --free-count COUNT  Any (default 5 entries)\n"
                              "  --free-bytes BYTES  Any\n"
                              "  --free-ns TIME      Any\n"
                              "  --free-real REAL    Any\n");
    free(text);
}

static void long_help_is_broken_between_words(void **state) {
    (void)state;
    static const struct dm_opt rows[] = {
        {.name = "short", .type = DM_OPT_STRING, .offset = 0, .help = "S"},
        {.name = "long",
         .type = DM_OPT_STRING,
         .offset = 0,
         .help = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"},
        {.name = "derived", .type = DM_OPT_COUNT, .offset = 0, .initial = "0", .derived = "ops / 10", .help = "D"},
        DM_OPT_END,
    };
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    dm_opt_help(rows, "  ", out);
    (void)fclose(out);
    assert_string_equal(text, "  --short TEXT     S\n"
                              "  --long TEXT      one two three four five six seven eight nine ten eleven twelve "
                              "thirteen fourteen\n"
                              "                   fifteen sixteen\n"
                              "  --derived COUNT  D (default ops / 10)\n");
    free(text);
}

static void ranges_are_shown_in_the_units_that_people_type(void **state) {
    (void)state;
    static const struct dm_opt rows[] = {
        {.name = "a", .type = DM_OPT_COUNT, .offset = 0, .min = 1, .max = 60e6, .unit = "keys", .help = "A"},
        {.name = "b", .type = DM_OPT_COUNT, .offset = 0, .min = 1000, .max = 18446744073709551615.0, .help = "B"},
        {.name = "c", .type = DM_OPT_BYTES, .offset = 0, .min = 100, .max = 1e6, .help = "C"},
        {.name = "d", .type = DM_OPT_DURATION, .offset = 0, .min = 1, .max = 1500, .help = "D"},
        {.name = "e", .type = DM_OPT_REAL, .offset = 0, .min = -1, .max = 0.5, .unit = "bits", .help = "E"},
        DM_OPT_END,
    };
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    dm_opt_help(rows, "", out);
    (void)fclose(out);
    assert_string_equal(text, "--a COUNT  A (1 to 60M keys)\n"
                              "--b COUNT  B (1000 to 18446744073709551615)\n"
                              "--c BYTES  C (100 to 1MB)\n"
                              "--d TIME   D (1ns to 1500ns)\n"
                              "--e REAL   E (-1 to 0.5 bits)\n");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_rows),
        cmocka_unit_test(every_type_is_set_from_text),
        cmocka_unit_test(truth_has_many_words),
        cmocka_unit_test(bounds_are_inclusive),
        cmocka_unit_test(bad_values_name_the_option_and_what_is_right),
        cmocka_unit_test(unknown_names_get_a_suggestion),
        cmocka_unit_test(rows_are_found_by_their_full_name),
        cmocka_unit_test(formatted_values_read_back_to_the_same_values),
        cmocka_unit_test(values_are_formatted_plainly),
        cmocka_unit_test(formatting_reports_the_length_that_it_needs),
        cmocka_unit_test(copies_have_strings_of_their_own),
        cmocka_unit_test(help_is_one_aligned_line_an_option),
        cmocka_unit_test(long_help_is_broken_between_words),
        cmocka_unit_test(ranges_are_shown_in_the_units_that_people_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
