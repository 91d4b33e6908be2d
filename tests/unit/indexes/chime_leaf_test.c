/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's leaves: hopscotch hashing with wrap-around against a plain search, splits, the lock word, and how full a
 * table gets before an insert must split.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/chime/leaf.h"

enum { IMAGE_MAX = 1 << 15 };

static _Alignas(8) char image[IMAGE_MAX];
static _Alignas(8) char right[IMAGE_MAX];
static uint16_t order[CHIME_SPAN_MAX];

static const struct {
    unsigned span, hood;
    bool replicate;
} shapes[] = {{4, 2, true},  {8, 4, true},   {8, 8, false},   {37, 5, true},  {57, 8, true},  {64, 2, true},
              {64, 8, true}, {64, 16, true}, {100, 7, false}, {128, 8, true}, {512, 16, true}};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct chime_layout shape_layout(size_t i, uint32_t value_bytes) {
    return chime_layout_make(shapes[i].span, shapes[i].hood, (uint32_t)(i % 2 ? 8 + i : 8), value_bytes,
                             shapes[i].replicate, false);
}

static int insert(const struct chime_layout *layout, void *leaf, uint64_t key, unsigned *filled) {
    struct chime_set changed = {{0}};
    unsigned largest = 0;
    return chime_leaf_insert(layout, leaf, key, &key, layout->span, &changed, &largest, filled);
}

/* Fills an empty leaf with random keys until one does not fit; returns how many did, and the one that did not. */
static unsigned fill(const struct chime_layout *layout, struct dm_prng *prng, uint64_t *refused, unsigned *filled) {
    chime_leaf_init(layout, image, &(struct chime_meta){.valid = true});
    for (unsigned n = 0;; n++) {
        *refused = dm_prng_u64(prng) >> 1;
        if (insert(layout, image, *refused, filled) == CHIME_NONE) {
            return n;
        }
    }
}

static void assert_sound(const struct chime_layout *layout, const void *leaf) {
    for (unsigned i = 0; i < layout->span; i++) {
        assert_int_equal(chime_hop(layout, leaf, i), chime_hops_of(layout, leaf, i));
        uint64_t key = chime_key(layout, leaf, i);
        if (key != CHIME_NO_KEY) {
            assert_int_equal(chime_leaf_find(layout, leaf, key), i);
        }
    }
}

static void a_leaf_of_64_entries_is_as_large_as_published(void **state) {
    (void)state;
    struct chime_layout layout = chime_layout_make(64, 8, 8, 8, true, false);
    assert_int_equal(layout.entry_bytes, 19);
    assert_int_equal(layout.meta_bytes, 10);
    assert_int_equal(layout.image_bytes, 1296);
    assert_int_equal(layout.lock_offset, 1320);
    assert_int_equal(layout.argmax_bits, 6);
    assert_int_equal(layout.vacancy_bits, 57);
}

static void every_neighbourhood_comes_past_a_copy_of_the_metadata(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct chime_layout layout = shape_layout(s, 8);
        for (unsigned home = 0; layout.replicate && home < layout.span; home++) {
            unsigned first = chime_meta_near(&layout, home) * layout.hood;
            assert_true(chime_distance(&layout, home, first) < layout.hood);
        }
    }
}

static void a_filled_leaf_finds_every_key_and_a_refused_one_changes_nothing(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(1, "chime leaf", 0);
    for (size_t s = 0; s < SHAPES; s++) {
        struct chime_layout layout = shape_layout(s, 8);
        for (unsigned round = 0; round < 20; round++) {
            uint64_t refused;
            unsigned filled;
            unsigned n = fill(&layout, &prng, &refused, &filled);
            assert_sound(&layout, image);
            assert_int_equal(chime_leaf_sort(&layout, image, 0, order), n);
            for (unsigned i = 0; i < n; i++) {
                uint64_t key = chime_key(&layout, image, order[i]);
                assert_memory_equal(chime_value(&layout, image, order[i]), &key, sizeof(key));
            }
            while (n > 0) {
                struct chime_set changed = {{0}};
                chime_leaf_remove(&layout, image, order[--n], &changed);
                assert_true(chime_set_has(&changed, order[n]));
                assert_sound(&layout, image);
            }
            assert_int_equal(chime_word_of(&layout, image), 0);
        }
    }
}

/* What the readers' check of hop bitmaps relies on: see the head of read.c. */
static void a_key_never_follows_one_of_the_same_home_into_an_entry(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(2, "chime leaf", 0);
    struct chime_layout layout = chime_layout_make(64, 8, 8, 8, true, false);
    unsigned hops = 0;
    for (unsigned round = 0; round < 200; round++) {
        chime_leaf_init(&layout, image, &(struct chime_meta){.valid = true});
        for (;;) {
            unsigned filled;
            uint64_t key = dm_prng_u64(&prng) >> 1;
            memcpy(right, image, layout.image_bytes);
            if (insert(&layout, image, key, &filled) == CHIME_NONE) {
                break;
            }
            for (unsigned i = 0; i < layout.span; i++) {
                uint64_t before = chime_key(&layout, right, i);
                uint64_t after = chime_key(&layout, image, i);
                if (before != after && before != CHIME_NO_KEY) {
                    assert_int_not_equal(chime_home(&layout, before), chime_home(&layout, after));
                    hops++;
                }
            }
        }
    }
    assert_true(hops > 1000);
}

static void a_split_keeps_every_key_and_the_refused_one_fits(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(3, "chime leaf", 0);
    for (size_t s = 0; s < SHAPES; s++) {
        struct chime_layout layout = shape_layout(s, 8);
        unsigned without = 0;
        for (unsigned round = 0; round < 100; round++) {
            uint64_t refused;
            unsigned filled;
            unsigned n = fill(&layout, &prng, &refused, &filled);
            uint64_t pivot = chime_leaf_split_key(&layout, image, refused);
            chime_leaf_split(&layout, image, right, pivot);
            assert_sound(&layout, image);
            assert_sound(&layout, right);
            unsigned above = chime_leaf_sort(&layout, right, pivot, order);
            unsigned left = chime_leaf_sort(&layout, image, 0, order);
            assert_true(left + (refused < pivot) > 0 && above + (refused >= pivot) > 0);
            assert_int_equal(left + above, n);
            assert_int_equal(chime_leaf_sort(&layout, image, pivot, order), 0);
            without += insert(&layout, refused < pivot ? image : right, refused, &filled) == CHIME_NONE;
        }
        assert_int_equal(without, 0);
        print_message("span %u, H %u: refused again after %u of 100 splits\n", layout.span, layout.hood, without);
    }
}

static void the_lock_word_says_what_the_leaf_holds(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(4, "chime leaf", 0);
    for (size_t s = 0; s < SHAPES; s++) {
        struct chime_layout layout = shape_layout(s, 8);
        chime_leaf_init(&layout, image, &(struct chime_meta){.valid = true});
        for (unsigned i = 0; i < layout.span; i++) {
            assert_true(chime_group_of(&layout, i) < layout.vacancy_bits);
            assert_true(chime_group_begin(&layout, chime_group_of(&layout, i)) <= i);
            assert_true(chime_group_begin(&layout, chime_group_of(&layout, i) + 1) > i);
        }
        for (;;) {
            uint64_t word = chime_word_of(&layout, image);
            uint64_t key = dm_prng_u64(&prng) >> 1;
            unsigned home = chime_home(&layout, key);
            unsigned start;
            unsigned count;
            unsigned filled;
            chime_reach(&layout, word, home, &start, &count);
            assert_true(count <= layout.span && count >= layout.hood);
            int at = insert(&layout, image, key, &filled);
            if (at == CHIME_NONE) {
                break;
            }
            /* What was filled, and its whole group, lay in the range that the word gave. */
            unsigned group = chime_group_of(&layout, filled);
            assert_true(chime_distance(&layout, start, filled) < count);
            assert_true(chime_distance(&layout, start, chime_group_begin(&layout, group)) < count);
            assert_true(chime_distance(&layout, start, chime_group_begin(&layout, group + 1) - 1) < count);
            uint64_t next = chime_word_refresh(&layout, word, image, filled);
            uint64_t whole = chime_word_of(&layout, image);
            assert_int_equal(chime_word_set_largest(&layout, next, chime_word_largest(&layout, whole)), whole);
        }
    }
}

/* Every key at or above the split key, the refused one too, belongs to the right: so the refused one fits if the entry
 * of one critical key has become free in its half. Those are found here by trying: each entry is emptied in turn. */
static void a_split_key_is_the_median_of_the_keys_whose_absence_would_have_been_enough(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(6, "chime leaf", 0);
    for (size_t s = 0; s < SHAPES; s++) {
        struct chime_layout layout = shape_layout(s, 8);
        for (unsigned round = 0; round < 20; round++) {
            uint64_t refused;
            unsigned filled;
            fill(&layout, &prng, &refused, &filled);
            unsigned home = chime_home(&layout, refused);
            unsigned below = 0;
            unsigned all = 1;
            uint64_t pivot = chime_leaf_split_key(&layout, image, refused);
            below += refused < pivot;
            for (unsigned d = 0; d < layout.span; d++) {
                unsigned at = chime_at(&layout, home, d);
                uint64_t key = chime_key(&layout, image, at);
                if (key == CHIME_NO_KEY) {
                    break;
                }
                struct chime_set unused = {{0}};
                memcpy(right, image, layout.image_bytes);
                chime_leaf_remove(&layout, right, at, &unused);
                bool critical = insert(&layout, right, refused, &filled) != CHIME_NONE;
                all += critical;
                below += critical && key < pivot;
            }
            assert_true(all > layout.hood);
            assert_int_equal(below, all / 2);
        }
    }
}

/* ---- how full a table gets ------------------------------------------------------------------------------------------
 */

static double mean_load(unsigned span, unsigned hood) {
    struct dm_prng prng = dm_prng_stream(5, "chime load", span * 100 + hood);
    struct chime_layout layout = chime_layout_make(span, hood, 8, 8, true, false);
    enum { TABLES = 1000 };
    double sum = 0;
    for (unsigned i = 0; i < TABLES; i++) {
        uint64_t refused;
        unsigned filled;
        sum += 100.0 * fill(&layout, &prng, &refused, &filled) / span;
    }
    return sum / TABLES;
}

static void tables_fill_as_an_independent_simulation_says(void **state) {
    (void)state;
    static const struct {
        unsigned span, hood;
        double load;
    } expected[] = {{64, 2, 38}, {64, 4, 70}, {64, 8, 94}, {64, 16, 100}, {128, 8, 87}};
    print_message("span  H   load when an insert must split, %% (expected)\n");
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        double load = mean_load(expected[i].span, expected[i].hood);
        print_message("%4u %2u   %5.1f (%.0f)\n", expected[i].span, expected[i].hood, load, expected[i].load);
        assert_true(load > expected[i].load - 2 && load < expected[i].load + 2);
    }
}

/* What a hop moved an entry's key over: no key that was farther before it could have gone there. */
static void assert_farthest(const struct chime_layout *layout, const void *before, unsigned from, unsigned to) {
    for (unsigned d = chime_distance(layout, from, to) + 1; d < layout->hood; d++) {
        unsigned farther = chime_at(layout, to, layout->span - d);
        uint64_t key = chime_key(layout, before, farther);
        assert_true(key == CHIME_NO_KEY || chime_distance(layout, chime_home(layout, key), to) >= layout->hood);
    }
}

/* Hopscotch hashing moves an empty entry as far as it can with each hop; and the position of the largest key moves with
 * that key. */
static void the_farthest_key_hops_and_the_largest_one_is_followed(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(4, "hops", 0);
    unsigned hops = 0, followed = 0;
    for (size_t shape = 0; shape < SHAPES; shape++) {
        struct chime_layout layout = shape_layout(shape, 8);
        if (layout.hood == layout.span) {
            continue;
        }
        for (unsigned round = 0; round < 20; round++) {
            chime_leaf_init(&layout, image, &(struct chime_meta){.valid = true});
            uint64_t most = 0;
            unsigned largest = 0;
            for (int at = 0; at != CHIME_NONE;) {
                struct chime_set changed = {{0}};
                uint64_t key = dm_prng_u64(&prng) >> 1;
                unsigned filled, was = largest;
                memcpy(right, image, layout.image_bytes);
                at = chime_leaf_insert(&layout, image, key, &key, layout.span, &changed, &largest, &filled);
                for (unsigned to = 0; to < layout.span && at != CHIME_NONE; to++) {
                    uint64_t moved = chime_key(&layout, image, to);
                    int from = moved == CHIME_NO_KEY ? CHIME_NONE : chime_leaf_find(&layout, right, moved);
                    if (from != CHIME_NONE && (unsigned)from != to) {
                        assert_farthest(&layout, right, (unsigned)from, to);
                        hops++;
                    }
                }
                if (at != CHIME_NONE && key > most) {
                    most = key;
                    largest = (unsigned)at;
                } else if (most > 0) {
                    assert_int_equal(chime_key(&layout, image, largest), most);
                    followed += was != largest;
                }
            }
        }
    }
    assert_true(hops > 100 && followed > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_of_64_entries_is_as_large_as_published),
        cmocka_unit_test(every_neighbourhood_comes_past_a_copy_of_the_metadata),
        cmocka_unit_test(a_filled_leaf_finds_every_key_and_a_refused_one_changes_nothing),
        cmocka_unit_test(a_key_never_follows_one_of_the_same_home_into_an_entry),
        cmocka_unit_test(a_split_keeps_every_key_and_the_refused_one_fits),
        cmocka_unit_test(a_split_key_is_the_median_of_the_keys_whose_absence_would_have_been_enough),
        cmocka_unit_test(the_lock_word_says_what_the_leaf_holds),
        cmocka_unit_test(tables_fill_as_an_independent_simulation_says),
        cmocka_unit_test(the_farthest_key_hops_and_the_largest_one_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
