/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunk allocation over a fake transport: when a call is made, what a chunk leaves behind, and requests that a chunk's
 * handler must refuse.
 */
#include "unit/transport/fake_transport.h"

static int reset(void **state) {
    struct fake *fake = fake_new(0);
    fake->fabric.measuring = true;
    *state = fake;
    return 0;
}

static int release(void **state) {
    fake_free(*state);
    return 0;
}

static void one_chunk_serves_many_pieces_with_one_call(void **state) {
    struct fake *fake = *state;
    dm_addr addr, previous = DM_NULL;
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(dm_alloc(&fake->contexts[i % FAKE_CONTEXTS], 0, 256, 64, DM_MEM_LEAF, &addr), 0);
        assert_true(i == 0 || addr.bits == previous.bits + 256);
        previous = addr;
    }
    assert_int_equal(fake->calls, 1); /* 4096 bytes a chunk */
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 256, 64, DM_MEM_LEAF, &addr), 0);
    assert_int_equal(fake->calls, 2);
}

static void a_piece_larger_than_a_chunk_gets_a_chunk_of_its_size(void **state) {
    struct fake *fake = *state;
    dm_addr addr;
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 3 * 4096, 4096, DM_MEM_MODEL, &addr), 0);
    assert_int_equal(dm_addr_offset(addr) % 4096, 0);
    assert_int_equal(fake->calls, 1);
    assert_int_equal(fake->nodes[0].memory_chunks, 4 * 4096);
}

static void the_last_chunk_of_a_node_is_what_is_left_of_it(void **state) {
    struct fake *fake = *state;
    dm_addr addr;
    fake->nodes[0].allocated = FAKE_BYTES - 1000;
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 2000, 8, DM_MEM_LEAF, &addr), DM_ERR_NO_MEMORY);
    assert_true(dm_addr_is_null(addr));
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 904, 8, DM_MEM_LEAF, &addr), 0);
    assert_int_equal(dm_addr_offset(addr), FAKE_BYTES - 1000);
    assert_int_equal(fake->nodes[0].memory_chunks, 1000);
    assert_int_equal(fake->nodes[0].allocated, FAKE_BYTES);
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 200, 8, DM_MEM_LEAF, &addr), DM_ERR_NO_MEMORY);
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 96, 8, DM_MEM_LEAF, &addr), 0); /* the chunk's rest */
    assert_int_equal(fake->nodes[0].memory_bytes[DM_MEM_LEAF], 1000);
}

static void allocations_for_any_node_avoid_a_full_node(void **state) {
    struct fake *fake = *state;
    for (unsigned measuring = 0; measuring < 2; measuring++) {
        fake->fabric.measuring = measuring;
        fake->nodes[0].allocated = FAKE_BYTES;
        for (unsigned i = 0; i < 3; i++) {
            dm_addr addr;
            assert_int_equal(dm_alloc(&fake->contexts[0], DM_ANY_NODE, 64, 64, DM_MEM_LEAF, &addr), 0);
            assert_int_equal(dm_addr_node(addr), 1);
        }
    }
}

static void freed_pieces_wait_for_a_request_that_fits(void **state) {
    struct fake *fake = *state;
    struct dm_ctx *ctx = &fake->contexts[0];
    dm_addr freed, addr;
    assert_int_equal(dm_alloc(ctx, 0, 64, 64, DM_MEM_LEAF, &addr), 0);
    assert_int_equal(dm_alloc(ctx, 0, 64, 64, DM_MEM_LEAF, &freed), 0);
    dm_free(ctx, freed, 64, DM_MEM_LEAF);
    assert_int_equal(dm_alloc(ctx, 0, 64, 4096, DM_MEM_LEAF, &addr), 0);
    assert_false(dm_addr_equal(addr, freed)); /* not aligned well enough */
    assert_int_equal(dm_alloc(ctx, 1, 64, 64, DM_MEM_LEAF, &addr), 0);
    assert_int_equal(dm_addr_node(addr), 1);
    assert_int_equal(dm_alloc(ctx, DM_ANY_NODE, 64, 64, DM_MEM_LEAF, &addr), 0);
    assert_true(dm_addr_equal(addr, freed));
    assert_int_equal(fake->nodes[0].memory_freed, 0);
}

static void freed_sizes_beyond_the_free_lists_are_counted_and_not_reused(void **state) {
    struct fake *fake = *state;
    struct dm_ctx *ctx = &fake->contexts[0];
    dm_addr addrs[DM_FREE_CLASSES + 1], addr;
    for (uint32_t i = 0; i <= DM_FREE_CLASSES; i++) {
        assert_int_equal(dm_alloc(ctx, 0, 8 + 8 * i, 8, DM_MEM_LEAF, &addrs[i]), 0);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= DM_FREE_CLASSES; i++) {
        dm_free(ctx, addrs[i], 8 + 8 * i, DM_MEM_LEAF);
        sum += 8 + 8 * i;
    }
    assert_int_equal(fake->nodes[0].memory_freed, sum);
    assert_int_equal(fake->nodes[0].memory_bytes[DM_MEM_LEAF], 0);
    assert_int_equal(dm_alloc(ctx, 0, 8 + 8 * DM_FREE_CLASSES, 8, DM_MEM_LEAF, &addr), 0);
    assert_false(dm_addr_equal(addr, addrs[DM_FREE_CLASSES]));
    assert_int_equal(dm_alloc(ctx, 0, 8, 8, DM_MEM_LEAF, &addr), 0);
    assert_true(dm_addr_equal(addr, addrs[0]));
}

static void a_stop_during_the_call_for_a_chunk_is_returned_and_releases_the_thread(void **state) {
    struct fake *fake = *state;
    dm_addr addr;
    fake->fabric.stop = true;
    assert_int_equal(dm_alloc(&fake->contexts[0], 0, 64, 64, DM_MEM_LEAF, &addr), DM_ERR_STOPPED);
    assert_false(fake->threads[FAKE_MNS].alloc_mutex.held);
    fake->fabric.stop = false;
    assert_int_equal(dm_alloc(&fake->contexts[1], 0, 64, 64, DM_MEM_LEAF, &addr), 0);
}

static void the_chunk_handler_refuses_requests_of_a_wrong_size(void **state) {
    struct fake *fake = *state;
    struct dm_ctx handler = {.fabric = &fake->fabric, .ops = &fake->ops, .node = 0};
    const uint64_t request[2] = {4096, 64};
    unsigned char response[64];
    uint32_t len = sizeof(response);
    assert_int_equal(dm_chunk_handler(&handler, NULL, request, 8, response, &len), DM_ERR_INVALID);
    assert_int_equal(dm_chunk_handler(&handler, NULL, request, 0, response, &len), DM_ERR_INVALID);
    len = 8;
    assert_int_equal(dm_chunk_handler(&handler, NULL, request, sizeof(request), response, &len), DM_ERR_INVALID);
    len = sizeof(response);
    const uint64_t greedy[2] = {UINT64_MAX, UINT64_MAX};
    assert_int_equal(dm_chunk_handler(&handler, NULL, greedy, sizeof(greedy), response, &len), DM_ERR_NO_MEMORY);
    assert_int_equal(fake->nodes[0].allocated, DM_RESERVED_BYTES);
    assert_int_equal(dm_chunk_handler(&handler, NULL, request, sizeof(request), response, &len), 0);
    assert_int_equal(len, 16);
}

static void local_memory_is_zero_aligned_and_disjoint(void **state) {
    struct fake *fake = *state;
    struct dm_ctx *ctx = &fake->contexts[0];
    static const uint32_t sizes[] = {1, 63, 64, 65, 4096, 32767, 32768, 65536, 1 << 20};
    for (size_t i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        unsigned char *local = dm_local_alloc(ctx, sizes[i]);
        assert_non_null(local);
        assert_int_equal((uintptr_t)local % DM_LINE, 0);
        for (uint32_t b = 0; b < sizes[i]; b++) {
            assert_int_equal(local[b], 0);
            local[b] = 0xff;
        }
    }
    dm_local_free(ctx->locals);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_chunk_serves_many_pieces_with_one_call, reset, release),
        cmocka_unit_test_setup_teardown(a_piece_larger_than_a_chunk_gets_a_chunk_of_its_size, reset, release),
        cmocka_unit_test_setup_teardown(the_last_chunk_of_a_node_is_what_is_left_of_it, reset, release),
        cmocka_unit_test_setup_teardown(allocations_for_any_node_avoid_a_full_node, reset, release),
        cmocka_unit_test_setup_teardown(freed_pieces_wait_for_a_request_that_fits, reset, release),
        cmocka_unit_test_setup_teardown(freed_sizes_beyond_the_free_lists_are_counted_and_not_reused, reset, release),
        cmocka_unit_test_setup_teardown(a_stop_during_the_call_for_a_chunk_is_returned_and_releases_the_thread, reset,
                                        release),
        cmocka_unit_test_setup_teardown(the_chunk_handler_refuses_requests_of_a_wrong_size, reset, release),
        cmocka_unit_test_setup_teardown(local_memory_is_zero_aligned_and_disjoint, reset, release),
    };
    return cmocka_run_group_tests_name("transport: alloc", tests, NULL, NULL);
}
