/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys: sorting, the map from key numbers to keys, synthetic sets, key files and their errors; and that a key is never
 * inserted twice.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/log.h"
#include "unit/workloads/files.h"
#include "workloads/keyset.h"
#include "workloads/sort.h"
#include "workloads/workload.h"

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void the_sort_agrees_with_qsort(void **state) {
    (void)state;
    enum { COUNT = 50000 };
    uint64_t *keys = malloc(COUNT * sizeof keys[0]), *expected = malloc(COUNT * sizeof keys[0]);
    if (keys == NULL || expected == NULL) {
        fail_msg("no memory");
        abort();
    }
    struct dm_prng prng = {.state = 1};
    for (unsigned shift = 0; shift < 64; shift += 7) {
        for (uint64_t count = 0; count <= COUNT; count = count * 6 + 1) {
            for (uint64_t i = 0; i < count; i++) {
                keys[i] = dm_prng_u64(&prng) >> shift;
                expected[i] = keys[i];
            }
            wl_sort_u64(keys, count);
            qsort(expected, count, sizeof expected[0], compare_keys);
            assert_memory_equal(keys, expected, count * sizeof keys[0]);
        }
    }
    free(keys);
    free(expected);
}

static void unique_drops_repeated_keys(void **state) {
    (void)state;
    uint64_t keys[] = {1, 1, 2, 3, 3, 3, 9};
    assert_int_equal(wl_unique_u64(keys, 7), 4);
    assert_int_equal(keys[3], 9);
    assert_int_equal(wl_unique_u64(keys, 0), 0);
}

static void a_permutation_maps_to_every_number_once(void **state) {
    (void)state;
    for (uint64_t count = 1; count < 3000; count = count * 3 / 2 + 1) {
        struct wl_permutation permutation = wl_permutation_make(count, count);
        unsigned char *seen = calloc(count, 1);
        uint64_t fixed = 0;
        assert_non_null(seen);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t image = wl_permute(&permutation, i);
            assert_true(image < count);
            assert_false(seen[image]);
            seen[image] = 1;
            fixed += image == i ? 1 : 0;
        }
        assert_true(count < 50 || fixed < count / 10);
        free(seen);
    }
}

static struct wl_keymap map_open_for(const char *key_set, uint64_t keys, uint64_t inserts, bool ordered) {
    struct wl_keymap map;
    struct dm_err err = {0};
    if (wl_keymap_open(&map, key_set, keys, inserts, ordered, 42, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return map;
}

static struct wl_keymap map_open(const char *key_set, uint64_t keys, bool ordered) {
    return map_open_for(key_set, keys, 0, ordered);
}

/* Checks that the loaded keys ascend and are those of the first key numbers, and that no two numbers have the same key.
 */
static void map_check(const char *key_set, uint64_t keys, bool ordered, uint64_t inserts) {
    struct wl_keymap map = map_open_for(key_set, keys, inserts / 2, ordered);
    uint64_t count = 0, total = keys + inserts;
    const uint64_t *loaded = wl_keymap_load(&map, &count);
    uint64_t *all = malloc(total * sizeof all[0]);
    assert_true(all != NULL && loaded != NULL);
    assert_int_equal(count, keys);
    for (uint64_t i = 0; i < total; i++) {
        all[i] = wl_keymap_key(&map, i);
        assert_true(all[i] <= WL_KEY_MAX);
    }
    qsort(all, keys, sizeof all[0], compare_keys);
    for (uint64_t i = 1; i < keys; i++) {
        assert_true(loaded[i - 1] < loaded[i]);
    }
    assert_memory_equal(all, loaded, keys * sizeof all[0]);
    wl_sort_u64(all, total);
    assert_int_equal(wl_unique_u64(all, total), total);
    free(all);
    wl_keymap_close(&map);
}

static void inserted_keys_never_collide_with_loaded_ones_or_each_other(void **state) {
    (void)state;
    static const char *const sets[] = {"",          "dense",         "grown",        "uniform",          "normal",
                                       "lognormal", "lognormal:1e4", "linear_noise", "linear_noise:3000"};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        map_check(sets[i], 1000, true, 5000);
        map_check(sets[i], 1000, false, 5000);
        map_check(sets[i], 1, false, 10);
    }
}

static void a_grown_set_is_dense_in_the_end_and_its_inserts_are_in_random_order(void **state) {
    (void)state;
    enum { LOADED = 100, INSERTED = 900 };
    struct wl_keymap map = map_open_for("grown", LOADED, INSERTED, false);
    unsigned char seen[LOADED + INSERTED] = {0};
    unsigned descents = 0;
    for (uint64_t i = 0; i < LOADED + INSERTED; i++) {
        uint64_t key = wl_keymap_key(&map, i);
        assert_true(key < LOADED + INSERTED && !seen[key]);
        seen[key] = 1;
        descents += i > LOADED && key < wl_keymap_key(&map, i - 1);
    }
    assert_in_range(descents, INSERTED / 3, INSERTED * 2 / 3);
    assert_int_equal(wl_keymap_key(&map, LOADED + INSERTED), LOADED + INSERTED);
    wl_keymap_close(&map);
}

static void insert_order_says_whether_a_set_is_shuffled(void **state) {
    (void)state;
    struct wl_keymap ordered = map_open("uniform", 1000, true), shuffled = map_open("uniform", 1000, false);
    unsigned descents = 0;
    for (uint64_t i = 1; i < 1000; i++) {
        assert_true(wl_keymap_key(&ordered, i - 1) < wl_keymap_key(&ordered, i));
        descents += wl_keymap_key(&shuffled, i - 1) > wl_keymap_key(&shuffled, i) ? 1 : 0;
    }
    assert_in_range(descents, 400, 600);
    assert_int_equal(wl_keymap_key(&ordered, 1000),
                     (ordered.sorted[0] + 1 + (ordered.sorted[1] - ordered.sorted[0] - 1) / 2));
    wl_keymap_close(&ordered);
    wl_keymap_close(&shuffled);
}

static void hashed_keys_are_ycsbs_and_ordered_ones_the_numbers(void **state) {
    (void)state;
    struct wl_keymap hashed = map_open("", 10, false), ordered = map_open("", 10, true);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(wl_keymap_key(&hashed, i), wl_fnvhash64(i));
        assert_int_equal(wl_keymap_key(&ordered, i), i);
    }
    wl_keymap_close(&hashed);
    wl_keymap_close(&ordered);
}

static void the_same_seed_gives_the_same_set_and_another_does_not(void **state) {
    (void)state;
    uint64_t *first = NULL, *second = NULL, *other = NULL;
    struct dm_err err = {0};
    assert_int_equal(wl_keyset_generate("lognormal", 1000, 1, &first, &err), 0);
    assert_int_equal(wl_keyset_generate("lognormal", 1000, 1, &second, &err), 0);
    assert_int_equal(wl_keyset_generate("lognormal", 1000, 2, &other, &err), 0);
    assert_memory_equal(first, second, 1000 * sizeof first[0]);
    assert_true(memcmp(first, other, 1000 * sizeof first[0]) != 0);
    free(first);
    free(second);
    free(other);
}

static double normal_cdf(double x) {
    return 0.5 * erfc(-x / sqrt(2.0));
}

/* The greatest distance between the distribution of the set and `cdf` (Kolmogorov-Smirnov). */
static double set_distance(const char *name, double (*cdf)(double key)) {
    enum { COUNT = 100000 };
    uint64_t *keys = NULL;
    struct dm_err err = {0};
    double greatest = 0.0;
    assert_int_equal(wl_keyset_generate(name, COUNT, 5, &keys, &err), 0);
    for (int i = 0; i < COUNT; i++) {
        double share = cdf((double)keys[i]);
        greatest = fmax(greatest, fmax(fabs(share - (double)i / COUNT), fabs(share - (i + 1.0) / COUNT)));
    }
    free(keys);
    return greatest;
}

static double uniform_keys(double key) {
    return key / 0x1p63;
}

/* negatives are drawn again */
static double normal_keys(double key) {
    double below = normal_cdf(-2.0);
    return (normal_cdf(key / 1e12 / 2.0 - 2.0) - below) / (1.0 - below);
}

static double lognormal_keys(double key) {
    return normal_cdf(log(key / 1e12) / 2.0);
}

static double linear_keys(double key) {
    return key / 1e14;
}

static void synthetic_sets_have_their_distributions(void **state) {
    (void)state;
    const double limit = sqrt(log(2.0 / 1e-8) / (2.0 * 100000));
    assert_true(set_distance("uniform", uniform_keys) < limit);
    assert_true(set_distance("normal", normal_keys) < limit);
    assert_true(set_distance("lognormal:1e12", lognormal_keys) < limit);
    assert_true(set_distance("linear_noise", linear_keys) < limit);
    assert_false(set_distance("lognormal:1e12", normal_keys) < limit);
}

static void impossible_sets_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *set, *part;
    } bad[] = {
        {"gaussian", "there is no 'gaussian'"},     {"normal:0", "have a scale"},     {"uniform:5", "have a scale"},
        {"lognormal:x", "key_set lognormal:x"},     {"normal:nan", "key_set normal"}, {"lognormal:2", "different keys"},
        {"linear_noise:500", "range is too small"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t *keys = NULL;
        struct dm_err err = {0};
        assert_int_equal(wl_keyset_generate(bad[i].set, 1000, 1, &keys, &err), DM_ERR_INVALID);
        assert_null(keys);
        if (strstr(err.text, bad[i].part) == NULL) {
            fail_msg("'%s' should contain '%s'", err.text, bad[i].part);
        }
    }
}

/* Writes `count`, then `n` keys with `width` bytes each. */
static const char *sosd_write(const char *name, uint64_t count, const uint64_t *keys, size_t n, size_t width) {
    unsigned char bytes[8192];
    memcpy(bytes, &count, 8);
    for (size_t i = 0; i < n; i++) {
        memcpy(bytes + 8 + i * width, &keys[i], width);
    }
    return file_write(name, bytes, 8 + n * width);
}

static struct wl_keymap sosd_open(const char *path, uint64_t keys) {
    char key_set[300];
    snprintf(key_set, sizeof key_set, "sosd:%s", path);
    return map_open(key_set, keys, true);
}

static void sosd_refused(const char *scheme, const char *path, int code, const char *part) {
    char key_set[300];
    struct wl *wl = NULL;
    struct dm_err err = {0};
    snprintf(key_set, sizeof key_set, "%s:%s", scheme, path);
    assert_int_equal(wl_open(&(struct wl_config){.workload = "c", .key_set = key_set}, 1, 1, 1, &wl, &err), code);
    assert_null(wl);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s' should contain '%s'", err.text, part);
    }
}

static const uint64_t some_keys[] = {3, 5, 8, 1000, 70000, 4000000000};
enum { SOME = 6 };

static void a_sosd_file_of_64_bit_keys_is_not_copied(void **state) {
    (void)state;
    struct wl_keymap map = sosd_open(sosd_write("k_uint64", SOME, some_keys, SOME, 8), 0);
    uint64_t count = 0;
    assert_memory_equal(wl_keymap_load(&map, &count), some_keys, sizeof some_keys);
    assert_int_equal(count, SOME);
    assert_null(map.owned);
    wl_keymap_load_release(&map);
    /* releasing the array of the loaded keys leaves the map usable */
    assert_int_equal(wl_keymap_key(&map, 2), 8);
    wl_keymap_close(&map);
}

static void a_sosd_file_of_32_bit_keys_is_widened(void **state) {
    (void)state;
    struct wl_keymap map = sosd_open(sosd_write("k_uint32", SOME, some_keys, SOME, 4), 0);
    uint64_t count = 0;
    assert_memory_equal(wl_keymap_load(&map, &count), some_keys, sizeof some_keys);
    wl_keymap_close(&map);
}

static void fewer_keys_of_a_file_are_evenly_spaced(void **state) {
    (void)state;
    struct wl_keymap map = sosd_open(sosd_write("k_uint64", SOME, some_keys, SOME, 8), 3);
    uint64_t count = 0;
    const uint64_t *keys = wl_keymap_load(&map, &count);
    assert_int_equal(count, 3);
    assert_true(keys[0] == 3 && keys[1] == 8 && keys[2] == 70000);
    wl_keymap_close(&map);
}

static void repeated_keys_and_the_greatest_number_are_ignored(void **state) {
    (void)state;
    const uint64_t keys[] = {1, 4, 4, 4, 9, UINT64_MAX};
    struct wl_keymap map = sosd_open(sosd_write("k_uint64", 6, keys, 6, 8), 0);
    uint64_t count = 0;
    const uint64_t *loaded = wl_keymap_load(&map, &count);
    assert_int_equal(count, 3);
    assert_true(loaded[0] == 1 && loaded[1] == 4 && loaded[2] == 9);
    wl_keymap_close(&map);
}

static void inserts_near_the_end_of_the_key_range_still_find_free_keys(void **state) {
    (void)state;
    const uint64_t keys[] = {1, 2, 3, UINT64_MAX - 3, UINT64_MAX - 1};
    struct wl_keymap map = sosd_open(sosd_write("k_uint64", 5, keys, 5, 8), 0);
    uint64_t seen[1005];
    for (uint64_t i = 0; i < 1005; i++) {
        seen[i] = wl_keymap_key(&map, i);
        assert_true(seen[i] <= WL_KEY_MAX);
    }
    wl_sort_u64(seen, 1005);
    assert_int_equal(wl_unique_u64(seen, 1005), 1005);
    wl_keymap_close(&map);
}

static void raw_files_have_no_count(void **state) {
    (void)state;
    char key_set[300];
    snprintf(key_set, sizeof key_set, "raw:%s", file_write("raw", some_keys, sizeof some_keys));
    struct wl_keymap map = map_open(key_set, 0, true);
    uint64_t count = 0;
    assert_memory_equal(wl_keymap_load(&map, &count), some_keys, sizeof some_keys);
    wl_keymap_close(&map);
}

/* A count of 0 would be taken for a workload that loads nothing. */
static void an_array_of_keys_without_memory_still_has_its_count(void **state) {
    (void)state;
    const uint64_t beyond_memory = (UINT64_C(1) << 61) + 1; /* in bytes: 8, modulo 2^64 */
    struct wl_keymap map = map_open("dense", beyond_memory, false);
    uint64_t count = 0;
    assert_null(wl_keymap_load(&map, &count));
    assert_int_equal(count, beyond_memory);
    wl_keymap_close(&map);
}

static void damaged_key_files_are_refused_with_what_is_wrong(void **state) {
    (void)state;
    const uint64_t unsorted[] = {1, 5, 4, 9}, swapped = UINT64_C(4) << 56;
    sosd_refused("sosd", "/nowhere/k", DM_ERR_IO, "cannot be opened");
    sosd_refused("sosd", file_write("empty", "", 0), DM_ERR_CORRUPT, "holds no keys (0 bytes)");
    sosd_refused("sosd", sosd_write("zero", 0, some_keys, 0, 8), DM_ERR_CORRUPT, "count at its start is 0");
    sosd_refused("sosd", sosd_write("short_uint64", 7, some_keys, SOME, 8), DM_ERR_CORRUPT, "is 7 keys, but 48 bytes");
    sosd_refused("sosd", sosd_write("odd", 1, some_keys, 1, 5), DM_ERR_CORRUPT, "is 1 keys, but 5 bytes");
    sosd_refused("sosd", sosd_write("width_uint64", 6, some_keys, SOME, 4), DM_ERR_CORRUPT, "is 6 keys, but 24");
    sosd_refused("sosd", sosd_write("huge", UINT64_C(1) << 61, some_keys, SOME, 8), DM_ERR_CORRUPT, "truncated");
    sosd_refused("sosd", sosd_write("big", swapped, unsorted, 4, 8), DM_ERR_CORRUPT, "is big-endian");
    sosd_refused("sosd", sosd_write("unsorted", 4, unsorted, 4, 8), DM_ERR_CORRUPT,
                 "the key at position 2 is 4, the one before it 5");
    sosd_refused("raw", file_write("odd", "123456789", 9), DM_ERR_CORRUPT, "9 bytes are not a whole number");
    sosd_refused("sosd", files_directory, DM_ERR_CORRUPT, "holds no keys");
}

static void more_keys_than_a_file_has_are_refused(void **state) {
    (void)state;
    char key_set[300];
    struct wl *wl = NULL;
    struct dm_err err = {0};
    snprintf(key_set, sizeof key_set, "sosd:%s", sosd_write("k_uint64", SOME, some_keys, SOME, 8));
    assert_int_equal(wl_open(&(struct wl_config){.workload = "c", .key_set = key_set, .keys = 7}, 1, 1, 1, &wl, &err),
                     DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "holds 6 different keys"));
}

static void a_workload_over_a_file_loads_all_its_keys_by_default(void **state) {
    (void)state;
    char key_set[300];
    struct wl *wl = NULL;
    uint64_t count = 0;
    snprintf(key_set, sizeof key_set, "sosd:%s", sosd_write("k_uint64", SOME, some_keys, SOME, 8));
    assert_int_equal(wl_open(&(struct wl_config){.workload = "c", .key_set = key_set}, 1, 1, 1, &wl, NULL), 0);
    assert_int_equal(wl_effective(wl)->keys, SOME);
    assert_memory_equal(wl_keys(wl, &count), some_keys, sizeof some_keys);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    for (int i = 0; i < 100; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        assert_non_null(bsearch(&op.key, some_keys, SOME, sizeof some_keys[0], compare_keys));
    }
    wl_stream_close(stream);
    wl_close(wl);
}

static void a_set_with_fewer_free_keys_than_inserts_is_refused(void **state) {
    (void)state;
    uint64_t keys[1] = {UINT64_MAX - 4};
    char key_set[420];
    snprintf(key_set, sizeof key_set, "sosd:%s", sosd_write("k_uint64", 1, keys, 1, 8));
    struct wl_config config;
    struct dm_err err;
    struct wl *wl = NULL;
    dm_opt_defaults(wl_options, &config);
    assert_int_equal(dm_opt_set(wl_options, &config, "workload", "load", &err), 0);
    assert_int_equal(dm_opt_set(wl_options, &config, "key_set", key_set, &err), 0);
    assert_int_equal(wl_open(&config, 4, 1, 1, &wl, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "4 inserts are expected, but only 3 keys are free"));
    assert_int_equal(wl_open(&config, 3, 1, 1, &wl, &err), 0);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    struct wl_op op;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(wl_next(stream, &op), 0);
        assert_in_range(op.key, UINT64_MAX - 3, UINT64_MAX - 1);
    }
    assert_int_equal(wl_next(stream, &op), DM_ERR_NO_MEMORY);
    wl_stream_close(stream);
    wl_close(wl);
    dm_opt_free(wl_options, &config);
}

int main(void) {
    dm_log_set_level(DM_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sort_agrees_with_qsort),
        cmocka_unit_test(unique_drops_repeated_keys),
        cmocka_unit_test(a_permutation_maps_to_every_number_once),
        cmocka_unit_test(inserted_keys_never_collide_with_loaded_ones_or_each_other),
        cmocka_unit_test(a_grown_set_is_dense_in_the_end_and_its_inserts_are_in_random_order),
        cmocka_unit_test(insert_order_says_whether_a_set_is_shuffled),
        cmocka_unit_test(hashed_keys_are_ycsbs_and_ordered_ones_the_numbers),
        cmocka_unit_test(the_same_seed_gives_the_same_set_and_another_does_not),
        cmocka_unit_test(synthetic_sets_have_their_distributions),
        cmocka_unit_test(impossible_sets_are_refused),
        cmocka_unit_test(a_sosd_file_of_64_bit_keys_is_not_copied),
        cmocka_unit_test(a_sosd_file_of_32_bit_keys_is_widened),
        cmocka_unit_test(fewer_keys_of_a_file_are_evenly_spaced),
        cmocka_unit_test(repeated_keys_and_the_greatest_number_are_ignored),
        cmocka_unit_test(inserts_near_the_end_of_the_key_range_still_find_free_keys),
        cmocka_unit_test(raw_files_have_no_count),
        cmocka_unit_test(an_array_of_keys_without_memory_still_has_its_count),
        cmocka_unit_test(damaged_key_files_are_refused_with_what_is_wrong),
        cmocka_unit_test(more_keys_than_a_file_has_are_refused),
        cmocka_unit_test(a_set_with_fewer_free_keys_than_inserts_is_refused),
        cmocka_unit_test(a_workload_over_a_file_loads_all_its_keys_by_default),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
