/* SPDX-License-Identifier: Apache-2.0
 *
 * The node cache: budget, order of eviction, replacement, stamps, and readers against writers on real threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "common/prng.h"
#include "indexes/shared/node_cache.h"
#include "unit/transport/fake_transport.h"

enum { COPY = 200 };

static dm_addr addr_of(unsigned i) {
    return dm_addr_make(i % 3, DM_DRAM, 4096 + UINT64_C(1024) * i);
}

static struct ix_cache *cache_open(uint64_t bytes, unsigned threads) {
    struct ix_cache *cache;
    struct ix_cache_config config = {.bytes = bytes, .copy_bytes = COPY, .threads = threads};
    assert_int_equal(ix_cache_open(&config, &cache), 0);
    return cache;
}

static bool put(struct ix_cache *cache, unsigned i, unsigned level, unsigned char content) {
    unsigned char copy[COPY];
    memset(copy, content, sizeof(copy));
    return ix_cache_insert(cache, addr_of(i), level, copy);
}

/* The content of the copy, or -1. */
static int look(struct ix_cache *cache, unsigned i, uint32_t *stamp) {
    ix_cache_enter(cache, 0);
    const unsigned char *copy = ix_cache_find(cache, addr_of(i), stamp);
    int content = copy ? copy[COPY - 1] : -1;
    ix_cache_leave(cache, 0);
    return content;
}

static void a_budget_too_small_makes_no_cache(void **state) {
    (void)state;
    uint32_t stamp;
    struct ix_cache *cache = cache_open(100, 2);
    assert_null(cache);
    assert_false(put(cache, 1, 1, 1));
    assert_int_equal(look(cache, 1, &stamp), -1);
    assert_int_equal(ix_cache_used(cache), 0);
    ix_cache_drop(cache, addr_of(1), 1);
    ix_cache_close(cache);
}

static void the_budget_is_never_exceeded_and_filled_to_a_copy(void **state) {
    (void)state;
    for (uint64_t bytes = 1000; bytes < 20000; bytes += 777) {
        struct ix_cache *cache = cache_open(bytes, 1);
        for (unsigned i = 0; i < 300; i++) {
            put(cache, i, 1, 1);
            assert_true(ix_cache_used(cache) <= bytes);
        }
        assert_true(ix_cache_used(cache) + COPY + 100 > bytes);
        ix_cache_close(cache);
    }
}

static void content_add(void *arg, const void *node) {
    *(unsigned *)arg += *(const unsigned char *)node;
}

static void each_copy_that_can_be_found_is_visited_once(void **state) {
    (void)state;
    uint32_t stamp = 0;
    unsigned sum = 0;
    struct ix_cache *cache = cache_open(10000, 1);
    put(cache, 1, 1, 1);
    put(cache, 2, 3, 10);
    put(cache, 3, 1, 100);
    put(cache, 2, 3, 20);
    assert_int_equal(look(cache, 1, &stamp), 1);
    ix_cache_drop(cache, addr_of(1), stamp);
    ix_cache_each(cache, content_add, &sum);
    assert_int_equal(sum, 120);
    ix_cache_each(NULL, content_add, &sum);
    assert_int_equal(sum, 120);
    ix_cache_close(cache);
}

/* The table grows with the copies, so each is looked for after its bucket was split and split again, until the cache is
 * full and buckets have chains. */
static void copies_are_found_as_the_table_grows(void **state) {
    (void)state;
    for (unsigned one_thread = 0; one_thread < 2; one_thread++) {
        struct ix_cache *cache;
        struct ix_cache_config config = {
            .bytes = 1 << 20, .copy_bytes = COPY, .threads = 1, .one_thread = one_thread > 0};
        assert_int_equal(ix_cache_open(&config, &cache), 0);
        unsigned capacity = ix_cache_capacity(cache);
        assert_true(capacity > 1000);
        uint32_t stamp;
        for (unsigned i = 0; i < capacity; i++) {
            assert_false(put(cache, i, 1, (unsigned char)(i * 7)));
            assert_int_equal(look(cache, i / 2, &stamp), (unsigned char)(i / 2 * 7));
        }
        for (unsigned i = 0; i < capacity; i += 2) {
            assert_int_equal(look(cache, i, &stamp), (unsigned char)(i * 7));
            ix_cache_drop(cache, addr_of(i), stamp);
        }
        for (unsigned i = 0; i < capacity; i++) {
            assert_int_equal(look(cache, i, &stamp), i % 2 ? (unsigned char)(i * 7) : -1);
        }
        ix_cache_close(cache);
    }
}

static void lower_levels_are_evicted_first_and_never_evict_higher_ones(void **state) {
    (void)state;
    uint32_t stamp;
    struct ix_cache *cache = cache_open(10000, 1);
    unsigned capacity = ix_cache_capacity(cache);
    assert_true(capacity > 10);
    put(cache, 1000, 3, 30);
    put(cache, 1001, 2, 20);
    for (unsigned i = 0; i < 5 * capacity; i++) {
        put(cache, i, 1, 10);
    }
    assert_int_equal(look(cache, 1000, &stamp), 30);
    assert_int_equal(look(cache, 1001, &stamp), 20);
    for (unsigned i = 0; i < 2 * capacity; i++) {
        put(cache, 5000 + i, 3, 31);
    }
    assert_int_equal(look(cache, 1001, &stamp), -1);
    uint64_t used = ix_cache_used(cache);
    assert_false(put(cache, 1, 1, 10));
    assert_int_equal(look(cache, 1, &stamp), -1);
    assert_int_equal(ix_cache_used(cache), used);
    ix_cache_close(cache);
}

/* A tree of nodes with few entries may have more levels than the cache distinguishes. */
static void the_top_of_a_high_tree_stays_like_any_other(void **state) {
    (void)state;
    uint32_t stamp;
    struct ix_cache *cache = cache_open(10000, 1);
    for (unsigned level = IX_CACHE_LEVELS - 2; level < IX_CACHE_LEVELS + 8; level++) {
        put(cache, 1000 + level, level, (unsigned char)level);
    }
    for (unsigned i = 0; i < 5 * ix_cache_capacity(cache); i++) {
        put(cache, i, 1, 10);
    }
    for (unsigned level = IX_CACHE_LEVELS - 2; level < IX_CACHE_LEVELS + 8; level++) {
        assert_int_equal(look(cache, 1000 + level, &stamp), level);
    }
    struct fake *fake = fake_new(0);
    ix_cache_charge(cache, &fake->contexts[0], IX_CACHE_LEVELS + 7);
    assert_true(fake->accessed_bytes > 0);
    fake->accessed_bytes = 0;
    ix_cache_charge_list(cache, &fake->contexts[0], IX_CACHE_LEVELS + 7, 0);
    assert_true(fake->accessed_bytes > 0);
    fake_free(fake);
    ix_cache_close(cache);
}

static void a_copy_in_use_outlives_others_of_its_level(void **state) {
    (void)state;
    uint32_t stamp;
    struct ix_cache *cache = cache_open(10000, 1);
    put(cache, 7777, 1, 77);
    for (unsigned i = 0; i < 1000; i++) {
        put(cache, i, 1, 10);
        assert_int_equal(look(cache, 7777, &stamp), 77);
    }
    ix_cache_close(cache);
}

static void a_stale_verdict_does_not_drop_a_newer_copy(void **state) {
    (void)state;
    uint32_t old;
    uint32_t newer;
    struct ix_cache *cache = cache_open(10000, 1);
    put(cache, 1, 1, 1);
    assert_int_equal(look(cache, 1, &old), 1);
    put(cache, 1, 1, 2);
    assert_int_equal(look(cache, 1, &newer), 2);
    ix_cache_drop(cache, addr_of(1), old);
    assert_int_equal(look(cache, 1, &newer), 2);
    ix_cache_drop(cache, addr_of(1), newer);
    assert_int_equal(look(cache, 1, &newer), -1);
    ix_cache_close(cache);
}

/* A small cache of which worker 1 reads the copy of address 1, full of ones. */
static struct ix_cache *cache_read_open(const unsigned char **copy) {
    uint32_t stamp;
    struct ix_cache *cache = cache_open(3000, 2);
    put(cache, 1, 1, 1);
    ix_cache_enter(cache, 1);
    *copy = ix_cache_find(cache, addr_of(1), &stamp);
    assert_non_null(*copy);
    return cache;
}

static void copy_is(const unsigned char *copy, unsigned byte) {
    assert_int_equal(copy[0], byte);
    assert_int_equal(copy[COPY - 1], byte);
}

static void a_copy_being_read_stays_until_the_reader_leaves(void **state) {
    (void)state;
    const unsigned char *copy;
    struct ix_cache *cache = cache_read_open(&copy);
    for (unsigned i = 2; i < 200; i++) {
        put(cache, i, 1, 2);
        copy_is(copy, 1);
    }
    ix_cache_leave(cache, 1);
    for (unsigned i = 2; i < 200; i++) {
        put(cache, i, 1, 3);
    }
    assert_int_equal(copy[0], 3);
    ix_cache_close(cache);
}

static void a_copy_being_read_stays_with_one_thread_too(void **state) {
    (void)state;
    struct ix_cache *cache;
    struct ix_cache_config config = {.bytes = 6000, .copy_bytes = COPY, .threads = 2, .one_thread = true};
    assert_int_equal(ix_cache_open(&config, &cache), 0);
    uint32_t stamp;
    put(cache, 1, 1, 1);
    ix_cache_enter(cache, 1);
    const unsigned char *copy = ix_cache_find(cache, addr_of(1), &stamp);
    assert_non_null(copy);
    for (unsigned i = 2; i < 100; i++) {
        put(cache, i, 1, 2);
        copy_is(copy, 1);
    }
    ix_cache_leave(cache, 1);
    ix_cache_close(cache);
}

/* The first copy to be retired since the reader came: the reader may have found it before or after that. */
static void a_copy_that_is_replaced_while_it_is_read_stays_too(void **state) {
    (void)state;
    const unsigned char *copy;
    struct ix_cache *cache = cache_read_open(&copy);
    for (unsigned i = 0; i < 100; i++) {
        put(cache, 1, 1, 2);
        copy_is(copy, 1);
    }
    ix_cache_leave(cache, 1);
    ix_cache_close(cache);
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 */

enum { THREADS = 4, ROUNDS = 30000, FEW_ADDRS = 40, MANY_ADDRS = 3000 };

struct worker {
    struct ix_cache *cache;
    unsigned number, addrs;
    uint64_t wrong, hits;
};

/* Copies of address i hold the low byte of i in every byte. */
static void *worker_main(void *arg) {
    struct worker *worker = arg;
    struct dm_prng prng = {.state = worker->number};
    unsigned char copy[COPY];
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (unsigned)dm_prng_below(&prng, worker->addrs);
        uint32_t stamp = 0;
        ix_cache_enter(worker->cache, worker->number);
        const unsigned char *found = ix_cache_find(worker->cache, addr_of(i), &stamp);
        for (unsigned b = 0; found && b < COPY; b++) {
            worker->wrong += found[b] != (unsigned char)i;
        }
        worker->hits += found != NULL;
        ix_cache_leave(worker->cache, worker->number);
        if (!found) {
            memset(copy, (int)i, sizeof(copy));
            ix_cache_insert(worker->cache, addr_of(i), i % 4, copy);
        } else if (dm_prng_below(&prng, 8) == 0) {
            ix_cache_drop(worker->cache, addr_of(i), stamp);
        }
    }
    return NULL;
}

static void workers_find_the_right_copies(uint64_t bytes, unsigned addrs) {
    struct ix_cache *cache = cache_open(bytes, THREADS);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.cache = cache, .number = i, .addrs = addrs};
        assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
    }
    uint64_t hits = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
        hits += workers[i].hits;
    }
    assert_true(hits > 0);
    assert_true(ix_cache_used(cache) <= bytes);
    ix_cache_close(cache);
}

static void readers_on_threads_never_see_a_reused_copy(void **state) {
    (void)state;
    workers_find_the_right_copies(6000, FEW_ADDRS);
}

/* Buckets are split while others search them. */
static void readers_on_threads_never_see_another_copy_as_the_table_grows(void **state) {
    (void)state;
    workers_find_the_right_copies(1 << 20, MANY_ADDRS);
}

/* Copies of three levels, and how many descents through one copy of each were made when a copy was last passed. */
enum { TREE_LEVELS = 3, TREE_COPIES = 900, TREE_DESCENTS = 20000 };

static const unsigned tree_counts[TREE_LEVELS] = {TREE_COPIES, 30, 1}; /* from level 1 on */

struct descents {
    uint64_t passed[TREE_LEVELS][TREE_COPIES];
    double distinct[TREE_LEVELS]; /* copies of all levels between two finds of a copy of that level: the sum */
    unsigned finds[TREE_LEVELS];
};

/* Copies that were passed after `since`, which is a descent's number. */
static unsigned passed_since(const struct descents *descents, uint64_t since) {
    unsigned passed = 0;
    for (unsigned level = 0; level < TREE_LEVELS; level++) {
        for (unsigned copy = 0; copy < tree_counts[level]; copy++) {
            passed += descents->passed[level][copy] > since;
        }
    }
    return passed;
}

static void descend(struct descents *descents, struct dm_prng *prng, uint64_t number) {
    for (unsigned level = 0; level < TREE_LEVELS; level++) {
        uint64_t *passed = &descents->passed[level][dm_prng_below(prng, tree_counts[level])];
        if (*passed > 0 && number % 16 == 0) {
            descents->distinct[level] += passed_since(descents, *passed);
            descents->finds[level]++;
        }
        *passed = number;
    }
}

/* Random accesses to N copies alone have N / 2 others between two to the same one, and the curve of accesses is by N.
 */
static void a_level_is_charged_by_what_is_accessed_between_two_finds_of_a_copy(void **state) {
    (void)state;
    struct ix_cache *cache = cache_open(10 << 20, 1);
    uint64_t empty = ix_cache_used(cache);
    unsigned next = 0;
    for (unsigned level = 0; level < TREE_LEVELS; level++) {
        for (unsigned copy = 0; copy < tree_counts[level]; copy++) {
            put(cache, next++, level + 1, 1);
        }
    }
    uint64_t copy_bytes = (ix_cache_used(cache) - empty) / next;
    struct descents descents = {.finds = {0}};
    struct dm_prng prng = dm_prng_stream(1, "descents", 0);
    for (uint64_t number = 1; number <= TREE_DESCENTS; number++) {
        descend(&descents, &prng, number);
    }
    struct fake *fake = fake_new(0);
    for (unsigned level = 0; level < TREE_LEVELS; level++) {
        ix_cache_charge(cache, &fake->contexts[0], level + 1);
        double accessed = descents.distinct[level] / descents.finds[level] * (double)(copy_bytes + DM_LINE);
        assert_true((double)fake->accessed_bytes >= accessed && (double)fake->accessed_bytes <= 2.5 * accessed);
    }
    fake_free(fake);
    ix_cache_close(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_too_small_makes_no_cache),
        cmocka_unit_test(the_budget_is_never_exceeded_and_filled_to_a_copy),
        cmocka_unit_test(each_copy_that_can_be_found_is_visited_once),
        cmocka_unit_test(copies_are_found_as_the_table_grows),
        cmocka_unit_test(lower_levels_are_evicted_first_and_never_evict_higher_ones),
        cmocka_unit_test(the_top_of_a_high_tree_stays_like_any_other),
        cmocka_unit_test(a_copy_in_use_outlives_others_of_its_level),
        cmocka_unit_test(a_stale_verdict_does_not_drop_a_newer_copy),
        cmocka_unit_test(a_copy_being_read_stays_until_the_reader_leaves),
        cmocka_unit_test(a_copy_being_read_stays_with_one_thread_too),
        cmocka_unit_test(a_copy_that_is_replaced_while_it_is_read_stays_too),
        cmocka_unit_test(readers_on_threads_never_see_a_reused_copy),
        cmocka_unit_test(readers_on_threads_never_see_another_copy_as_the_table_grows),
        cmocka_unit_test(a_level_is_charged_by_what_is_accessed_between_two_finds_of_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
