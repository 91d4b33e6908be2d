/* SPDX-License-Identifier: Apache-2.0
 *
 * A sparse page is the same page: against an array, with accesses of all sizes and alignments, from none of its words
 * to as many as it takes; and what one page frees another one gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"
#include "transport/sim/sparse.h"

/* How many words of a page are not zero. */
static unsigned words_of(const void *page) {
    uint64_t words[SIM_PAGE_WORDS];
    memcpy(words, page, sizeof(words));
    unsigned count = 0;
    for (unsigned i = 0; i < SIM_PAGE_WORDS; i++) {
        count += words[i] != 0;
    }
    return count;
}

static void assert_page(const struct sim_sparse *sparse, const unsigned char *model) {
    unsigned char found[SIM_PAGE];
    sim_sparse_read(sparse, 0, found, SIM_PAGE);
    assert_memory_equal(found, model, SIM_PAGE);
    assert_int_equal(sim_sparse_count(sparse), words_of(model));
}

static void a_page_is_what_was_made_of_it(void **state) {
    (void)state;
    static const unsigned words[] = {0, 1, 2, 63, 64, 127, 200, SIM_SPARSE_MOST};
    struct sim_slab slab = {0};
    struct dm_prng prng = {.state = 3};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        uint64_t page[SIM_PAGE_WORDS] = {0};
        for (unsigned filled = 0; filled < words[i];) {
            uint64_t *word = &page[dm_prng_below(&prng, SIM_PAGE_WORDS)];
            filled += *word == 0;
            *word = dm_prng_u64(&prng) | 1;
        }
        assert_int_equal(words_of(page), words[i]);
        struct sim_sparse *sparse = sim_sparse_new(&slab, page);
        assert_non_null(sparse);
        assert_page(sparse, (const unsigned char *)page);
    }
    sim_slab_close(&slab);
}

static void a_page_takes_no_word_more(void **state) {
    (void)state;
    struct sim_slab slab = {0};
    uint64_t page[SIM_PAGE_WORDS] = {0};
    for (unsigned i = 0; i <= SIM_SPARSE_MOST; i++) {
        page[2 * i] = i + 1;
    }
    assert_null(sim_sparse_new(&slab, page));
    page[2 * SIM_SPARSE_MOST] = 0;
    struct sim_sparse *sparse = sim_sparse_new(&slab, page), *before = sparse;
    assert_non_null(sparse);
    uint64_t two[2] = {7, 8};
    assert_false(sim_sparse_write(&slab, &sparse, 0, two, sizeof(two)));
    assert_ptr_equal(sparse, before);
    assert_page(sparse, (const unsigned char *)page);
    /* The same word, or another one in its stead, fit. */
    memcpy(page, (uint64_t[2]){0, 9}, sizeof(two));
    assert_true(sim_sparse_write(&slab, &sparse, 0, page, sizeof(two)));
    assert_page(sparse, (const unsigned char *)page);
    sim_slab_close(&slab);
}

/* Writes of all lengths and alignments, half of them zeros, so that the page grows and shrinks. */
static void writes_and_reads_equal_an_array(void **state) {
    (void)state;
    struct sim_slab slab = {0};
    struct sim_sparse *sparse = NULL;
    unsigned char model[SIM_PAGE] = {0}, next[SIM_PAGE];
    struct dm_prng prng = {.state = 5};
    unsigned refused = 0, least = SIM_PAGE_WORDS, most = 0;
    for (unsigned i = 0; i < 20000; i++) {
        unsigned len = 1 + (unsigned)dm_prng_below(&prng, dm_prng_below(&prng, 16) > 0 ? 80 : SIM_PAGE);
        unsigned at = (unsigned)dm_prng_below(&prng, SIM_PAGE - len + 1);
        if (dm_prng_below(&prng, 2) > 0) {
            at &= ~7U;
            len = len < 8 ? 8 : len & ~7U;
        }
        unsigned char data[SIM_PAGE];
        uint64_t share = dm_prng_below(&prng, i / 2000 % 2 ? 40 : 4);
        for (unsigned byte = 0; byte < len; byte++) {
            data[byte] = dm_prng_below(&prng, 32) < share / 2 ? (unsigned char)dm_prng_u64(&prng) : 0;
        }
        memcpy(next, model, sizeof(next));
        memcpy(next + at, data, len);
        bool fits = words_of(next) <= SIM_SPARSE_MOST;
        assert_true(sim_sparse_write(&slab, &sparse, at, data, len) == fits);
        memcpy(model, fits ? next : model, sizeof(model));
        unsigned from = (unsigned)dm_prng_below(&prng, SIM_PAGE), range = SIM_PAGE - from < 100 ? SIM_PAGE - from : 100;
        unsigned char found[SIM_PAGE];
        sim_sparse_read(sparse, from, found, range);
        assert_memory_equal(found, model + from, range);
        assert_page(sparse, model);
        unsigned count = sim_sparse_count(sparse);
        refused += !fits;
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    assert_true(refused > 100 && least < 30 && most > SIM_SPARSE_MOST - 10);
    sim_slab_close(&slab);
}

static void a_block_is_used_again(void **state) {
    (void)state;
    struct sim_slab slab = {0};
    for (unsigned lines = 1; lines <= SIM_SLAB_LINES; lines++) {
        void *first = sim_slab_alloc(&slab, lines), *second = sim_slab_alloc(&slab, lines);
        assert_non_null(first);
        assert_int_equal((uintptr_t)first % DM_LINE, 0);
        assert_true((char *)second - (char *)first == (ptrdiff_t)lines * DM_LINE);
        memset(first, 1, (size_t)lines * DM_LINE);
        sim_slab_free(&slab, first, lines);
        sim_slab_free(&slab, second, lines);
        assert_ptr_equal(sim_slab_alloc(&slab, lines), second);
        assert_ptr_equal(sim_slab_alloc(&slab, lines), first);
    }
    sim_slab_close(&slab);
    assert_null(slab.chunks);
}

/* A page that grows by one word after the other leaves no block of each size behind. */
static void what_a_page_leaves_the_next_one_gets(void **state) {
    (void)state;
    struct sim_slab slab = {0};
    size_t used = 0;
    for (unsigned pages = 0; pages < 100; pages++) {
        struct sim_sparse *sparse = NULL;
        for (unsigned i = 0; i < SIM_SPARSE_MOST; i++) {
            uint64_t word = i + 1;
            assert_true(sim_sparse_write(&slab, &sparse, 16 * i, &word, sizeof(word)));
        }
        assert_int_equal(slab.used - used, pages == 0 ? slab.used : SIM_SLAB_LINES * DM_LINE);
        used = slab.used;
    }
    sim_slab_close(&slab);
}

static void blocks_fill_chunks(void **state) {
    (void)state;
    struct sim_slab slab = {0};
    void *chunk = NULL;
    unsigned chunks = 0;
    for (unsigned i = 0; i < 20000; i++) {
        unsigned char *block = sim_slab_alloc(&slab, SIM_SLAB_LINES);
        assert_non_null(block);
        block[0] = block[SIM_SLAB_LINES * DM_LINE - 1] = 1;
        chunks += slab.chunks != chunk;
        chunk = slab.chunks;
    }
    assert_int_equal(chunks, 3);
    sim_slab_close(&slab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_what_was_made_of_it),
        cmocka_unit_test(a_page_takes_no_word_more),
        cmocka_unit_test(writes_and_reads_equal_an_array),
        cmocka_unit_test(a_block_is_used_again),
        cmocka_unit_test(blocks_fill_chunks),
        cmocka_unit_test(what_a_page_leaves_the_next_one_gets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
