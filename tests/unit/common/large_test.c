/* SPDX-License-Identifier: Apache-2.0
 *
 * Large memory: zeroed, aligned, and refused where there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "common/compiler.h"
#include "common/large.h"
#include "unit/common/copied.h"

static void memory_is_zeroed_and_all_of_it_can_be_written(void **state) {
    (void)state;
    const uint64_t sizes[] = {1, 4095, DM_LARGE_PAGE - 1, DM_LARGE_PAGE, DM_LARGE_PAGE + 1, 3 * DM_LARGE_PAGE - 1};
    for (size_t i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        unsigned char *memory = dm_large_alloc(sizes[i]);
        assert_non_null(memory);
        for (uint64_t at = 0; at < sizes[i]; at++) {
            assert_int_equal(memory[at], 0);
            memory[at] = 0xff;
        }
        dm_large_free(memory, sizes[i]);
    }
}

static void large_memory_begins_at_a_large_page(void **state) {
    (void)state;
    void *blocks[8];
    for (size_t i = 0; i < DM_ARRAY_LEN(blocks); i++) {
        blocks[i] = dm_large_alloc(DM_LARGE_PAGE + i);
        assert_int_equal((uintptr_t)blocks[i] % DM_LARGE_PAGE, 0);
    }
    for (size_t i = 0; i < DM_ARRAY_LEN(blocks); i++) {
        dm_large_free(blocks[i], DM_LARGE_PAGE + i);
    }
}

static void nothing_and_too_much_are_handled(void **state) {
    (void)state;
    dm_large_free(dm_large_alloc(0), 0);
    dm_large_free(NULL, 1);
    dm_large_free(NULL, 2 * DM_LARGE_PAGE);
    assert_null(dm_large_alloc(UINT64_MAX));
    assert_null(dm_large_alloc(UINT64_MAX - 2 * DM_LARGE_PAGE));
    assert_null(dm_large_alloc(UINT64_C(1) << 60));
}

#define OWN_BYTES (3 * DM_LARGE_PAGE - 1)

/* All bytes are there, and a write then has no fault for each small page. */
static enum copied own_and_write(void *arg) {
    unsigned char *memory = arg;
    if (!dm_large_own(memory, OWN_BYTES)) {
        return COPIED_SCARCE;
    }
    long before = copied_faults();
    for (uint64_t at = 0; at < OWN_BYTES; at++) {
        if (memory[at] != at % 251) {
            return COPIED_WRONG;
        }
        memory[at] = 252;
    }
    return copied_faults() - before < (long)(OWN_BYTES / 4096 / 8) ? COPIED_RIGHT : COPIED_WRONG;
}

static void a_copied_process_gets_pages_of_its_own(void **state) {
    (void)state;
    unsigned char *memory = dm_large_alloc(OWN_BYTES);
    assert_non_null(memory);
    for (uint64_t at = 0; at < OWN_BYTES; at++) {
        memory[at] = (unsigned char)(at % 251);
    }
    enum copied outcome = copied_run(own_and_write, memory);
    for (uint64_t at = 0; at < OWN_BYTES; at++) {
        assert_int_equal(memory[at], at % 251);
    }
    dm_large_free(memory, OWN_BYTES);
    if (outcome == COPIED_SCARCE) {
        skip();
    }
}

/* What was never used reads as zero in the copied process. */
static enum copied own_unused(void *arg) {
    unsigned char *memory = arg;
    if (!dm_large_own(memory, OWN_BYTES)) {
        return COPIED_SCARCE;
    }
    for (uint64_t at = 0; at < OWN_BYTES; at++) {
        if (memory[at] != (at == DM_LARGE_PAGE + 5000)) {
            return COPIED_WRONG;
        }
    }
    return COPIED_RIGHT;
}

static void unused_parts_are_zero_in_a_copied_process(void **state) {
    (void)state;
    unsigned char *memory = dm_large_alloc(OWN_BYTES);
    assert_non_null(memory);
    memory[DM_LARGE_PAGE + 5000] = 1;
    enum copied outcome = copied_run(own_unused, memory);
    dm_large_free(memory, OWN_BYTES);
    if (outcome == COPIED_SCARCE) {
        skip();
    }
}

enum { SMALL_PAGE = 4096, POPULATED_PAGES = 256 };

static void populated_pages_are_zero_and_written_without_faults(void **state) {
    (void)state;
    size_t bytes = (size_t)POPULATED_PAGES * SMALL_PAGE;
    unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    dm_pages_populate(memory + 1, bytes - 1);
    long before = copied_faults();
    for (size_t at = 0; at < bytes; at += SMALL_PAGE) {
        assert_int_equal(memory[at], 0);
        memory[at] = 1;
    }
    long faults = copied_faults() - before;
    munmap(memory, bytes);
#ifdef MADV_POPULATE_WRITE
    assert_true(faults < POPULATED_PAGES / 4); /* a sanitizer has pages of its own */
#else
    (void)faults;
    skip();
#endif
}

static void small_memory_is_left_as_it_is(void **state) {
    (void)state;
    unsigned char *memory = dm_large_alloc(1);
    assert_non_null(memory);
    assert_true(dm_large_own(memory, 1));
    dm_large_free(memory, 1);
}

/* The heap begins anywhere in a large page, the rest of which has small ones: up to 512, however many blocks. */
enum { HEAP_BLOCKS = 8 * 4096, HEAP_BLOCK_BYTES = 4000 };

/* Whether pages that are large are had for the asking. */
static bool host_has_large_pages(void) {
    long before = copied_faults();
    volatile unsigned char *memory = dm_large_alloc(4 * DM_LARGE_PAGE);
    assert_non_null(memory);
    for (uint64_t at = 0; at < 4 * DM_LARGE_PAGE; at += 4096) {
        memory[at] = 1;
    }
    dm_large_free((void *)memory, 4 * DM_LARGE_PAGE);
    return copied_faults() - before < 1024;
}

/* As many blocks as pages, but no fault for each of them. */
static void small_blocks_of_the_heap_share_large_pages(void **state) {
    (void)state;
    static char *blocks[HEAP_BLOCKS];
    if (!dm_large_heap() || !host_has_large_pages()) {
        skip();
    }
    long before = copied_faults();
    for (size_t i = 0; i < HEAP_BLOCKS; i++) {
        blocks[i] = malloc(HEAP_BLOCK_BYTES);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, HEAP_BLOCK_BYTES);
    }
    assert_true(copied_faults() - before < HEAP_BLOCKS / 8);
    for (size_t i = 0; i < HEAP_BLOCKS; i++) {
        free(blocks[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_all_of_it_can_be_written),
        cmocka_unit_test(large_memory_begins_at_a_large_page),
        cmocka_unit_test(nothing_and_too_much_are_handled),
        cmocka_unit_test(a_copied_process_gets_pages_of_its_own),
        cmocka_unit_test(unused_parts_are_zero_in_a_copied_process),
        cmocka_unit_test(populated_pages_are_zero_and_written_without_faults),
        cmocka_unit_test(small_memory_is_left_as_it_is),
        cmocka_unit_test(small_blocks_of_the_heap_share_large_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
