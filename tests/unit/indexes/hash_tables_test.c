/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash tables that are filled until a key does not fit: what must hold for each scheme, and the loads that were
 * published or that follow from counting.
 */
#include "indexes/hash_tables/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/prng.h"

enum { TABLES = 2000 };

/* Mean share of entries in use when the first key does not fit. */
static double load_of(enum hash_table_scheme scheme, uint32_t entries, uint32_t reach) {
    struct hash_table_shape shape = {scheme, entries, reach};
    struct dm_prng prng = dm_prng_stream(7, "hash tables", scheme);
    double sum = 0;
    for (unsigned i = 0; i < TABLES; i++) {
        struct hash_table table;
        hash_table_init(&table, &shape);
        while (hash_table_put(&table, dm_prng_u64(&prng))) {
        }
        sum += (double)table.used / hash_table_size(&shape);
    }
    return sum / TABLES;
}

static void near(double value, double wanted, double tolerance) {
    if (value < wanted - tolerance || value > wanted + tolerance) {
        fail_msg("%.3f is not within %.3f of %.3f", value, tolerance, wanted);
    }
}

static void a_reach_of_all_entries_fills_the_table(void **state) {
    (void)state;
    near(load_of(HASH_TABLE_HOPSCOTCH, 16, 16), 1, 1e-9);
    near(load_of(HASH_TABLE_ASSOCIATIVE, 16, 16), 1, 1e-9);
    near(load_of(HASH_TABLE_FARM, 16, 16), 1, 1e-9);
    near(load_of(HASH_TABLE_RACE, 12, 12), 1, 1e-9);
}

/* With buckets of one entry the first collision ends it, after about sqrt(pi n / 2) keys. */
static void buckets_of_one_end_with_the_first_collision(void **state) {
    (void)state;
    near(load_of(HASH_TABLE_ASSOCIATIVE, 128, 1), 13.9 / 128, 0.01);
}

/* Loads of an independent simulation of hopscotch with wrap-around. */
static void hopscotch_gets_as_full_as_it_should(void **state) {
    (void)state;
    static const struct {
        uint32_t entries, reach;
        double load;
    } cases[] = {{64, 2, 0.38}, {64, 4, 0.70}, {64, 8, 0.94}, {64, 16, 1.0}, {128, 8, 0.87}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        near(load_of(HASH_TABLE_HOPSCOTCH, cases[i].entries, cases[i].reach), cases[i].load, 0.02);
    }
}

static void more_reach_gives_more_load(void **state) {
    (void)state;
    for (int scheme = HASH_TABLE_HOPSCOTCH; scheme <= HASH_TABLE_FARM; scheme++) {
        double before = 0;
        for (uint32_t reach = 4; reach <= 32; reach *= 2) {
            double load = load_of((enum hash_table_scheme)scheme, 128, reach);
            assert_true(load > before);
            before = load;
        }
    }
}

static void impossible_shapes_have_no_bucket(void **state) {
    (void)state;
    assert_int_equal(hash_table_bucket(&(struct hash_table_shape){HASH_TABLE_RACE, 128, 6}), 0);
    assert_int_equal(hash_table_bucket(&(struct hash_table_shape){HASH_TABLE_FARM, 128, 7}), 0);
    assert_int_equal(hash_table_bucket(&(struct hash_table_shape){HASH_TABLE_HOPSCOTCH, 8, 16}), 0);
    assert_int_equal(hash_table_bucket(&(struct hash_table_shape){HASH_TABLE_RACE, 128, 16}), 4);
    assert_int_equal(hash_table_size(&(struct hash_table_shape){HASH_TABLE_RACE, 128, 16}), 120);
    assert_int_equal(hash_table_size(&(struct hash_table_shape){HASH_TABLE_FARM, 128, 16}), 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reach_of_all_entries_fills_the_table),
        cmocka_unit_test(buckets_of_one_end_with_the_first_collision),
        cmocka_unit_test(hopscotch_gets_as_full_as_it_should),
        cmocka_unit_test(more_reach_gives_more_load),
        cmocka_unit_test(impossible_shapes_have_no_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
