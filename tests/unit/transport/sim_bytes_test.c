/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory whose pages are compressed is the same memory: against an array, with accesses of all sizes and alignments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/large.h"
#include "common/prng.h"
#include "transport/sim/bytes.h"
#include "unit/common/copied.h"

enum { PAGE = 4096, PACKED = 64 * PAGE, SIZE_MOST = 3 * PAGE };

#define LIMIT (UINT64_C(8) << 20)

static const uint64_t total = LIMIT + PACKED;

/* Loads pages of one kind, as many as the decision looks at, and says that more is about to be loaded. */
static void load(struct sim_bytes *bytes, bool is_random, uint64_t expected) {
    struct dm_prng prng = {.state = 7};
    for (uint64_t page = 0; page < LIMIT / PAGE; page += 2) {
        uint64_t words[PAGE / 8];
        for (unsigned i = 0; i < PAGE / 8; i++) {
            words[i] = is_random ? dm_prng_u64(&prng) : page << 32 | 1;
        }
        sim_bytes_write(bytes, page * PAGE, words, sizeof(words));
    }
    sim_bytes_expect(bytes, expected, PAGE);
}

static void memory_that_compresses_is_compressed_and_other_memory_is_not(void **state) {
    (void)state;
    struct sim_bytes bytes;
    assert_int_equal(sim_bytes_open(&bytes, total, LIMIT), 0);
    load(&bytes, true, LIMIT);
    assert_null(bytes.pages);
    assert_true(bytes.plain == UINT64_MAX);
    sim_bytes_close(&bytes);
    assert_int_equal(sim_bytes_open(&bytes, total, LIMIT), 0);
    load(&bytes, false, LIMIT);
    assert_non_null(bytes.pages);
    assert_true(bytes.plain == 0);
    sim_bytes_close(&bytes);
}

static void nothing_is_decided_before_enough_is_loaded(void **state) {
    (void)state;
    struct sim_bytes bytes;
    assert_int_equal(sim_bytes_open(&bytes, total, LIMIT), 0);
    sim_bytes_expect(&bytes, LIMIT, PAGE);
    assert_null(bytes.pages);
    load(&bytes, false, LIMIT - PAGE);
    assert_null(bytes.pages);
    sim_bytes_expect(&bytes, LIMIT, PAGE);
    assert_non_null(bytes.pages);
    sim_bytes_close(&bytes);
}

/* A page of the load below: random if `page` is a multiple of `random_each`, else sparse. */
static void mixed_page(uint64_t page, unsigned random_each, uint64_t words[PAGE / 8]) {
    struct dm_prng prng = {.state = page};
    bool is_random = random_each > 0 && page % random_each == 0;
    for (unsigned i = 0; i < PAGE / 8; i++) {
        words[i] = is_random || i % 8 == page % 8 ? dm_prng_u64(&prng) : 0;
    }
}

/* Loads the first quarter of the limit and says so. */
static void load_mixed(struct sim_bytes *bytes, unsigned random_each) {
    for (uint64_t page = 0; page < LIMIT / 4 / PAGE; page++) {
        uint64_t words[PAGE / 8];
        mixed_page(page, random_each, words);
        sim_bytes_write(bytes, page * PAGE, words, sizeof(words));
    }
    sim_bytes_expect(bytes, LIMIT / 4 - PAGE, PAGE);
    assert_null(bytes->pages);
    sim_bytes_expect(bytes, LIMIT / 4, PAGE);
}

static void memory_that_is_nearly_all_sparse_is_compressed_early(void **state) {
    (void)state;
    static const unsigned random_each[] = {0, 20, 3};
    for (unsigned i = 0; i < 3; i++) {
        struct sim_bytes bytes;
        assert_int_equal(sim_bytes_open(&bytes, total, LIMIT), 0);
        load_mixed(&bytes, random_each[i]);
        assert_int_equal(bytes.pages != NULL, random_each[i] != 3);
        for (uint64_t page = 0; page < LIMIT / 4 / PAGE; page++) {
            uint64_t words[PAGE / 8], found[PAGE / 8], zero[PAGE / 8] = {0};
            mixed_page(page, random_each[i], words);
            sim_bytes_read(&bytes, page * PAGE, found, sizeof(found));
            assert_memory_equal(found, words, sizeof(found));
            bool is_there = !bytes.pages || (random_each[i] > 0 && page % random_each[i] == 0);
            assert_memory_equal(bytes.mapping.base + page * PAGE, is_there ? words : zero, sizeof(zero));
        }
        load(&bytes, false, LIMIT);
        assert_non_null(bytes.pages);
        sim_bytes_close(&bytes);
    }
}

static void what_was_written_before_is_kept(void **state) {
    (void)state;
    struct sim_bytes bytes;
    uint64_t word = 42, found;
    assert_int_equal(sim_bytes_open(&bytes, total, LIMIT), 0);
    sim_bytes_write(&bytes, LIMIT + 9 * PAGE + 8, &word, sizeof(word));
    load(&bytes, false, LIMIT);
    assert_non_null(bytes.pages);
    sim_bytes_read(&bytes, LIMIT + 9 * PAGE + 8, &found, sizeof(found));
    assert_int_equal(found, 42);
    for (uint64_t page = 0; page < LIMIT / PAGE; page++) {
        sim_bytes_read(&bytes, page * PAGE + 80, &found, sizeof(found));
        assert_true(found == (page % 2 == 0 ? page << 32 | 1 : 0));
    }
    sim_bytes_close(&bytes);
}

/* A range on the last page that was loaded, or behind it. */
static uint64_t draw_offset(struct dm_prng *prng, uint64_t len) {
    uint64_t from = LIMIT - PAGE;
    return from + dm_prng_below(prng, total - from - len + 1);
}

/* Words that compress, words that do not, some words between zeros, and now and then zeros. */
static void draw_data(struct dm_prng *prng, unsigned char *data, uint64_t len) {
    uint64_t kind = dm_prng_below(prng, 5), word = dm_prng_u64(prng);
    for (uint64_t i = 0; i < len; i++) {
        uint64_t byte = kind == 1 ? dm_prng_u64(prng) : word >> i % 8 * 8;
        byte = kind == 2 && i / 8 % 6 != word % 6 ? 0 : byte;
        data[i] = (unsigned char)(kind == 0 ? 0 : byte);
    }
}

/* There are more frames than pages that are used, so copies are only made when other pages, which are neither sparse
 * nor zero, replace them. */
static void fill_others(struct sim_bytes *bytes, uint64_t size) {
    for (uint64_t at = total; at < size; at += PAGE) {
        uint64_t words[PAGE / 8];
        for (unsigned i = 0; i < PAGE / 8; i++) {
            words[i] = at + i % 4;
        }
        sim_bytes_write(bytes, at, words, sizeof(words));
    }
}

static void replace_frames(struct sim_bytes *bytes, uint64_t size) {
    for (uint64_t at = total; at < size; at += PAGE) {
        uint64_t word;
        sim_bytes_read(bytes, at + 24, &word, sizeof(word));
        assert_int_equal(word, at + 3);
    }
}

static void compressed_memory_equals_an_array(void **state) {
    (void)state;
    const uint64_t size = total + 65536 * (uint64_t)PAGE, from = LIMIT - PAGE;
    unsigned char *model = calloc(1, total - from);
    assert_non_null(model);
    struct sim_bytes bytes;
    assert_int_equal(sim_bytes_open(&bytes, size, LIMIT), 0);
    load(&bytes, false, LIMIT);
    assert_non_null(bytes.pages);
    sim_bytes_read(&bytes, from, model, PAGE);
    fill_others(&bytes, size);
    struct dm_prng prng = {.state = 11};
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 200; i++) {
            unsigned char data[SIZE_MOST], found[SIZE_MOST];
            uint64_t len = 1 + dm_prng_below(&prng, dm_prng_below(&prng, 3) > 0 ? 64 : SIZE_MOST);
            uint64_t offset = draw_offset(&prng, len);
            draw_data(&prng, data, len);
            memcpy(found, data, len);
            sim_pages_prefetch(&bytes, offset);
            sim_pages_prefetch_data(&bytes, offset, len);
            switch (dm_prng_below(&prng, 3)) {
            case 0:
                sim_bytes_read(&bytes, offset, found, len);
                assert_memory_equal(found, model + (offset - from), len);
                break;
            case 1:
                sim_bytes_write(&bytes, offset, data, len);
                memcpy(model + (offset - from), data, len);
                break;
            default:
                sim_bytes_swap(&bytes, offset, found, len);
                assert_memory_equal(found, model + (offset - from), len);
                memcpy(model + (offset - from), data, len);
            }
        }
        replace_frames(&bytes, size);
    }
    sim_bytes_clear(&bytes);
    assert_null(bytes.pages);
    for (uint64_t at = from; at < total; at += 8) {
        uint64_t word;
        sim_bytes_read(&bytes, at, &word, sizeof(word));
        assert_int_equal(word, 0);
    }
    sim_bytes_close(&bytes);
    free(model);
}

/* What is compressed takes no memory in the mapping. */
static void compressed_pages_leave_the_mapping_empty(void **state) {
    (void)state;
    const uint64_t size = total + 65536 * (uint64_t)PAGE;
    struct sim_bytes bytes;
    assert_int_equal(sim_bytes_open(&bytes, size, LIMIT), 0);
    load(&bytes, false, LIMIT);
    uint64_t words[PAGE / 8], zero[PAGE / 8] = {0}, found[PAGE / 8];
    for (unsigned i = 0; i < PAGE / 8; i++) {
        words[i] = 5 + i % 8;
    }
    sim_bytes_write(&bytes, LIMIT, words, sizeof(words));
    fill_others(&bytes, size);
    replace_frames(&bytes, size);
    assert_memory_equal(bytes.mapping.base + LIMIT, zero, sizeof(zero));
    sim_bytes_read(&bytes, LIMIT, found, sizeof(found));
    assert_memory_equal(found, words, sizeof(words));
    sim_bytes_close(&bytes);
}

enum { COPIED_PARTS = 5 };

struct plain {
    struct sim_bytes bytes;
    unsigned char *model;
    uint64_t size;
};

/* Writes, reads and swaps of a copied process, near the borders of parts, of memory that is `model`. Right if all are
 * and the parts that were written, and only these, are its own. */
static enum copied plain_write(void *arg) {
    struct plain *plain = arg;
    struct sim_bytes *bytes = &plain->bytes;
    unsigned char *model = plain->model;
    struct dm_prng prng = {.state = 3};
    bool is_right = true;
    sim_bytes_copied(bytes);
    uint64_t mapped = (uintptr_t)bytes->mapping.map + bytes->mapping.map_bytes - (uintptr_t)bytes->mapping.base;
    for (unsigned i = 0; i < 2000; i++) {
        unsigned char data[SIZE_MOST], found[SIZE_MOST];
        uint64_t len = 1 + dm_prng_below(&prng, SIZE_MOST);
        uint64_t offset = (1 + dm_prng_below(&prng, COPIED_PARTS - 2)) * DM_LARGE_PAGE - dm_prng_below(&prng, len + 1);
        draw_data(&prng, data, len);
        memcpy(found, data, len);
        if (dm_prng_below(&prng, 2) > 0) {
            sim_bytes_swap(bytes, offset, found, len);
            is_right = is_right && memcmp(found, model + offset, len) == 0;
        } else {
            sim_bytes_write(bytes, offset, data, len);
        }
        memcpy(model + offset, data, len);
        sim_bytes_read(bytes, 0, data, sizeof(data));
        is_right = is_right && memcmp(data, model, sizeof(data)) == 0;
    }
    for (uint64_t at = 0; at < plain->size; at += PAGE) {
        unsigned char page[PAGE];
        sim_bytes_read(bytes, at, page, sizeof(page));
        is_right = is_right && memcmp(page, model + at, sizeof(page)) == 0;
    }
    /* The last part is not written; without free memory none is own. */
    bool none = bytes->own == NULL && bytes->direct == bytes->plain;
    is_right = is_right && mapped >= plain->size && (none || bytes->own[0] == (1U << (COPIED_PARTS - 1)) - 1);
    return is_right ? COPIED_RIGHT : COPIED_WRONG;
}

static bool has_memory_for_copies(void) {
    void *page = dm_large_alloc(DM_LARGE_PAGE);
    bool is_own = page != NULL && dm_large_own(page, DM_LARGE_PAGE);
    dm_large_free(page, DM_LARGE_PAGE);
    return is_own;
}

/* Words that a copied process writes to sparse pages, and all others. Behind the first write these pages are its own,
 * so that a write has no fault. */
static enum copied sparse_write(void *arg) {
    struct sim_bytes *bytes = arg;
    const uint64_t pages = LIMIT / 4 / PAGE;
    bool is_right = bytes->pages != NULL;
    long before = 0;
    sim_bytes_copied(bytes);
    for (uint64_t page = 0; page < pages; page++) {
        sim_bytes_write(bytes, page * PAGE + 8 * (page % 512), &page, sizeof(page));
        before = page == 0 ? copied_faults() : before;
    }
    long after = copied_faults();
    for (uint64_t page = 0; page < pages; page++) {
        uint64_t words[PAGE / 8], found[PAGE / 8];
        mixed_page(page, 0, words);
        words[page % 512] = page;
        sim_bytes_read(bytes, page * PAGE, found, sizeof(found));
        is_right = is_right && memcmp(found, words, sizeof(found)) == 0;
    }
    bool is_own = after - before < (long)pages / 16;
    if (!is_right || (!is_own && has_memory_for_copies())) {
        return COPIED_WRONG;
    }
    return is_own ? COPIED_RIGHT : COPIED_SCARCE;
}

static void a_copied_process_writes_to_sparse_pages_of_its_own(void **state) {
    (void)state;
    struct sim_bytes bytes;
    assert_int_equal(sim_bytes_open(&bytes, total, LIMIT), 0);
    load_mixed(&bytes, 0);
    enum copied outcome = copied_run(sparse_write, &bytes);
    for (uint64_t page = 0; page < LIMIT / 4 / PAGE; page++) {
        uint64_t words[PAGE / 8], found[PAGE / 8];
        mixed_page(page, 0, words);
        sim_bytes_read(&bytes, page * PAGE, found, sizeof(found));
        assert_memory_equal(found, words, sizeof(found));
    }
    sim_bytes_close(&bytes);
    if (outcome == COPIED_SCARCE) {
        skip();
    }
}

static void a_copied_process_writes_to_parts_of_its_own(void **state) {
    (void)state;
    struct plain plain = {.size = COPIED_PARTS * DM_LARGE_PAGE};
    plain.model = malloc(plain.size);
    assert_non_null(plain.model);
    struct dm_prng prng = {.state = 5};
    draw_data(&prng, plain.model, plain.size);
    plain.model[0] = 1;
    assert_int_equal(sim_bytes_open(&plain.bytes, plain.size, plain.size), 0);
    sim_bytes_write(&plain.bytes, 0, plain.model, plain.size);
    (void)copied_run(plain_write, &plain);
    assert_null(plain.bytes.own);
    assert_memory_equal(plain.bytes.mapping.base, plain.model, plain.size);
    sim_bytes_close(&plain.bytes);
    free(plain.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_compresses_is_compressed_and_other_memory_is_not),
        cmocka_unit_test(nothing_is_decided_before_enough_is_loaded),
        cmocka_unit_test(memory_that_is_nearly_all_sparse_is_compressed_early),
        cmocka_unit_test(what_was_written_before_is_kept),
        cmocka_unit_test(compressed_memory_equals_an_array),
        cmocka_unit_test(a_copied_process_writes_to_parts_of_its_own),
        cmocka_unit_test(a_copied_process_writes_to_sparse_pages_of_its_own),
        cmocka_unit_test(compressed_pages_leave_the_mapping_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
