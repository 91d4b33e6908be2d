/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of values on their own: that values are read as written, that a reused block is detected by a reader of its
 * old word, and the result of a scan.
 */
#include "indexes/shared/indirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/shared/crc32.h"
#include "tests/unit/transport/sim_world.h"

enum { VALUE_BYTES = 300, STAMPS = 1 << 18, PAIRS = 300 };

static uint32_t value_bytes = VALUE_BYTES; /* of the values that are written */

/* Failures inside a context are noted here, because a failed assertion must not leave the context's stack. */
struct test {
    void (*body)(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test);
    enum ix_values values;
    bool checksum;
    uint64_t reused; /* reads of blocks that had been reused */
    unsigned failed_line;
};
#define CHECK(test, condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition) && (test)->failed_line == 0) {                                                                \
            (test)->failed_line = __LINE__;                                                                            \
        }                                                                                                              \
    } while (0)

static int entry(struct dm_ctx *ctx, void *arg) {
    struct test *test = arg;
    struct ix_indirect *indirect;
    struct ix_indirect_config config = {.values = test->values,
                                        .value_bytes = value_bytes,
                                        .checksum = test->checksum,
                                        .found_max = PAIRS,
                                        .reused = &test->reused};
    CHECK(test, ix_indirect_open(ctx, &config, &indirect) == 0);
    test->body(ctx, indirect, test);
    ix_indirect_close(indirect);
    return 0;
}

static void test_run(struct test test) {
    struct world world = {.mns = 2, .clients = 1};
    int rc;
    world_open(&world);
    assert_int_equal(dm_fabric_do(world.fabric, 2, entry, &test, &rc, &world.err), 0);
    world_close(&world);
    if (test.failed_line > 0) {
        fail_msg("line %u", test.failed_line);
    }
}

static void run(void (*body)(struct dm_ctx *, struct ix_indirect *, struct test *), enum ix_values values) {
    test_run((struct test){.body = body, .values = values});
}

static void value_fill(uint64_t number, unsigned char *value) {
    for (unsigned i = 0; i < VALUE_BYTES; i++) {
        value[i] = (unsigned char)(number * 31 + i);
    }
}

static uint64_t put(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test, unsigned node, uint64_t key,
                    uint64_t number) {
    unsigned char value[VALUE_BYTES];
    const void *stored;
    value_fill(number, value);
    CHECK(test, ix_indirect_make(indirect, node, key, value, &stored) == 0);
    ix_indirect_post(indirect);
    CHECK(test, dm_commit(ctx) == 0);
    return ix_indirect_word(indirect, stored);
}

static bool holds(struct ix_indirect *indirect, uint64_t key, uint64_t word, uint64_t number) {
    unsigned char value[VALUE_BYTES], wanted[VALUE_BYTES];
    uint32_t attempts = 0;
    value_fill(number, wanted);
    return ix_indirect_fetch(indirect, key, word, &attempts, value) == 0 && memcmp(value, wanted, value_bytes) == 0;
}

/* True if a reader learns that the block was reused, and the value stays as it was. */
static bool is_reused(struct ix_indirect *indirect, struct test *test, uint64_t key, uint64_t word) {
    unsigned char value[VALUE_BYTES] = {0};
    uint32_t attempts = 0;
    uint64_t before = test->reused;
    return ix_indirect_check(indirect, key, word) == IX_INDIRECT_REUSED &&
           ix_indirect_fetch(indirect, key, word, &attempts, value) == IX_INDIRECT_REUSED && attempts == 1 &&
           test->reused == before + 1 && value[0] == 0;
}

static void round_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    uint64_t words[2] = {put(ctx, indirect, test, 0, 7, 1), put(ctx, indirect, test, 1, 8, 2)};
    CHECK(test, holds(indirect, 7, words[0], 1));
    CHECK(test, ix_indirect_check(indirect, 7, words[0]) == 0);
    CHECK(test, holds(indirect, 8, words[1], 2));
    CHECK(test, is_reused(indirect, test, 9, words[0]));
    CHECK(test, is_reused(indirect, test, 9, 0));
    CHECK(test, is_reused(indirect, test, 9, UINT64_MAX));
    ix_indirect_drop(indirect, UINT64_MAX); /* a word of garbage does no harm */
}

static void values_are_read_by_their_word_and_key(void **state) {
    (void)state;
    run(round_body, IX_VALUES_INDIRECT);
}

static void reuse_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    uint64_t old = put(ctx, indirect, test, 0, 7, 1);
    ix_indirect_drop(indirect, old);
    CHECK(test, holds(indirect, 7, old, 1)); /* until it is reused it has its content */
    uint64_t other = put(ctx, indirect, test, 1, 7, 2);
    uint64_t now = put(ctx, indirect, test, 0, 7, 3);
    uint64_t addr_mask = (UINT64_C(1) << 46) - 1;
    CHECK(test, (now & addr_mask) == (old & addr_mask) && now != old); /* the same block, of its own node */
    CHECK(test, (other & addr_mask) != (old & addr_mask));
    CHECK(test, holds(indirect, 7, now, 3));
    CHECK(test, is_reused(indirect, test, 7, old));
}

static void a_block_reused_for_its_own_key_is_detected(void **state) {
    (void)state;
    run(reuse_body, IX_VALUES_INDIRECT);
}

static void unchecked_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    uint64_t old = put(ctx, indirect, test, 0, 7, 1);
    ix_indirect_drop(indirect, old);
    put(ctx, indirect, test, 0, 8, 3);
    CHECK(test, holds(indirect, 7, old, 3));
    CHECK(test, ix_indirect_check(indirect, 7, old) == IX_INDIRECT_REUSED); /* verify always checks */
}

static void without_validation_another_value_is_read(void **state) {
    (void)state;
    run(unchecked_body, IX_VALUES_UNCHECKED);
}

static void stamps_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    uint64_t first = put(ctx, indirect, test, 0, 7, 1);
    uint64_t word = first, before = 0;
    for (unsigned i = 0; i < STAMPS; i++) {
        before = word;
        ix_indirect_drop(indirect, word);
        const void *stored;
        CHECK(test, ix_indirect_make(indirect, 0, 7, (char[VALUE_BYTES]){0}, &stored) == 0);
        word = ix_indirect_word(indirect, stored);
        CHECK(test, word != before && (word == first) == (i + 1 == STAMPS));
    }
}

static void a_stamp_repeats_only_after_all_others(void **state) {
    (void)state;
    run(stamps_body, IX_VALUES_INDIRECT);
}

static void pool_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    uint64_t words[PAIRS];
    for (unsigned i = 0; i < PAIRS; i++) {
        words[i] = put(ctx, indirect, test, i % 2, i, i);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        ix_indirect_drop(indirect, words[i]);
    }
    struct dm_memory_use before, after;
    dm_memory_use(dm_fabric_of(ctx), &before);
    for (unsigned i = 0; i < PAIRS; i++) {
        put(ctx, indirect, test, i % 2, i, i);
    }
    dm_memory_use(dm_fabric_of(ctx), &after);
    CHECK(test, before.bytes[DM_MEM_VALUE] == (uint64_t)PAIRS * ix_indirect_block_bytes(VALUE_BYTES));
    CHECK(test, after.bytes[DM_MEM_VALUE] == before.bytes[DM_MEM_VALUE]);
}

static void any_number_of_blocks_is_kept(void **state) {
    (void)state;
    run(pool_body, IX_VALUES_INDIRECT);
}

/* The one that was given up first is used again first, so that its stamps last as long as they can. */
static void order_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    enum { EARLY = 5 };
    static uint64_t words[PAIRS];
    const uint64_t block = (UINT64_C(1) << 46) - 1; /* without the stamp */
    for (unsigned i = 0; i < PAIRS; i++) {
        words[i] = put(ctx, indirect, test, 0, i, i);
    }
    for (unsigned i = 0; i < EARLY; i++) { /* the ring does not begin at its start then */
        ix_indirect_drop(indirect, words[i]);
        words[i] = put(ctx, indirect, test, 0, i, i);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        ix_indirect_drop(indirect, words[i]);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        CHECK(test, (put(ctx, indirect, test, 0, i, i) & block) == (words[i] & block));
    }
}

static void blocks_are_used_again_in_the_order_in_which_they_were_given_up(void **state) {
    (void)state;
    run(order_body, IX_VALUES_INDIRECT);
}

/* What the index returns for a key whose block was reused: odd keys are absent, even ones have the value of key + 1000.
 */
static int again(void *arg, uint64_t key, void *value) {
    (*(unsigned *)arg)++;
    value_fill(key + 1000, value);
    return key % 2 ? DM_NOT_FOUND : 0;
}

static void scan_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    static uint64_t keys[PAIRS], words[PAIRS];
    static unsigned char values[PAIRS * VALUE_BYTES];
    for (unsigned i = 0; i < PAIRS; i++) {
        words[i] = put(ctx, indirect, test, i % 2, i, i);
    }
    for (unsigned i = 0; i < PAIRS; i += 3) {
        ix_indirect_drop(indirect, words[i]);
    }
    for (unsigned i = 0; i < PAIRS; i += 3) {
        put(ctx, indirect, test, i % 2, 5000, 5000);
    }
    unsigned asked = 0;
    struct ix_found found = ix_found_begin(indirect, VALUE_BYTES, PAIRS, keys, values);
    for (unsigned i = 0; i < PAIRS; i++) {
        ix_found_add(&found, i, &words[i]);
        if (i == PAIRS / 4) { /* a part at once, the others later */
            CHECK(test, !ix_found_full(&found, PAIRS - i - 1) && ix_found_full(&found, PAIRS - i));
            CHECK(test, ix_found_complete(&found, again, &asked) == 0 && !ix_found_full(&found, PAIRS));
        }
    }
    CHECK(test, ix_found_complete(&found, again, &asked) == 0);
    CHECK(test, asked == PAIRS / 3 && test->reused == asked);
    CHECK(test, found.count == PAIRS - PAIRS / 6 && !ix_found_all(&found));
    for (unsigned i = 0; i < found.count; i++) {
        unsigned char wanted[VALUE_BYTES];
        CHECK(test, i == 0 || keys[i] > keys[i - 1]);
        CHECK(test, keys[i] % 6 != 3);
        value_fill(keys[i] % 3 ? keys[i] : keys[i] + 1000, wanted);
        CHECK(test, memcmp(values + (size_t)i * VALUE_BYTES, wanted, VALUE_BYTES) == 0);
    }
}

static void a_scan_reads_the_index_for_reused_blocks_and_omits_absent_keys(void **state) {
    (void)state;
    run(scan_body, IX_VALUES_INDIRECT);
}

static void inline_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    (void)ctx;
    CHECK(test, indirect == NULL);
    uint64_t keys[2];
    unsigned char values[2 * VALUE_BYTES], value[VALUE_BYTES];
    const void *stored;
    uint32_t attempts = 0;
    value_fill(1, value);
    CHECK(test, ix_indirect_make(indirect, 0, 7, value, &stored) == 0 && stored == value);
    ix_indirect_post(indirect);
    CHECK(test, ix_indirect_load(indirect, 0, 7, value, &stored) == 0 && stored == value);
    CHECK(test, ix_indirect_flush(indirect) == 0);
    ix_indirect_drop(indirect, ix_indirect_word(indirect, stored));
    CHECK(test, ix_indirect_fetch(indirect, 7, 0, &attempts, value) == 0);
    CHECK(test, ix_indirect_check(indirect, 7, 0) == 0);
    struct ix_found found = ix_found_begin(indirect, VALUE_BYTES, 2, keys, values);
    ix_found_add(&found, 5, value);
    CHECK(test, !ix_found_full(&found, 1000) && !ix_found_all(&found));
    ix_found_add(&found, 7, value);
    CHECK(test, ix_found_complete(&found, NULL, NULL) == 0 && ix_found_all(&found));
    CHECK(test, keys[0] == 5 && keys[1] == 7 && memcmp(values + VALUE_BYTES, value, VALUE_BYTES) == 0);
}

static void inline_values_need_no_blocks(void **state) {
    (void)state;
    run(inline_body, IX_VALUES_INLINE);
}

/* Blocks that may lie in two lines, and the largest that has its stamps at both ends. */
static void compact_blocks_are_read_by_their_word_and_key(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 8, 40, 47, 48, 49, VALUE_BYTES};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        value_bytes = sizes[i];
        run(round_body, IX_VALUES_COMPACT);
        run(unchecked_body, IX_VALUES_COMPACT_UNCHECKED);
    }
    value_bytes = VALUE_BYTES;
    assert_int_equal(ix_indirect_compact_bytes(8), 24);
    assert_int_equal(ix_indirect_compact_bytes(48), 64);
    assert_int_equal(ix_indirect_compact_bytes(49), ix_indirect_block_bytes(49));
}

static void checksum_body(struct dm_ctx *ctx, struct ix_indirect *indirect, struct test *test) {
    uint32_t bytes = ix_indirect_block_bytes(value_bytes + IX_INDIRECT_CHECKSUM_BYTES);
    uint64_t word = put(ctx, indirect, test, 0, 7, 1), key = 0;
    unsigned char *wire = dm_local_alloc(ctx, bytes);
    CHECK(test, holds(indirect, 7, word, 1));
    CHECK(test, ix_indirect_post_read(indirect, word, true, wire) && dm_commit(ctx) == 0);
    CHECK(test, ix_indirect_has_key(indirect, word, wire, &key) && key == 7);
    CHECK(test, ix_indirect_intact(indirect, wire));
    for (uint32_t i = 0; i < bytes; i++) {
        wire[i] ^= 1;
        CHECK(test, ix_indirect_intact(indirect, wire) == !test->checksum);
        wire[i] ^= 1;
    }
}

static void a_checksum_is_over_all_bytes_of_a_block(void **state) {
    (void)state;
    static const uint32_t sizes[] = {8, 48, 49, VALUE_BYTES};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        value_bytes = sizes[i];
        test_run((struct test){.body = checksum_body, .values = IX_VALUES_SLOT, .checksum = true});
        test_run((struct test){.body = checksum_body, .values = IX_VALUES_SLOT});
    }
    value_bytes = VALUE_BYTES;
    assert_int_equal(ix_indirect_block_bytes(48 + IX_INDIRECT_CHECKSUM_BYTES), 64);
    assert_int_equal(ix_indirect_block_bytes(49 + IX_INDIRECT_CHECKSUM_BYTES), 128);
}

/* The check value of CRC-32 in the catalogues of such codes. */
static void a_checksum_is_the_crc_32_of_ethernet(void **state) {
    (void)state;
    assert_int_equal(ix_crc32_bitwise("123456789", 9), 0xcbf43926);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_by_their_word_and_key),
        cmocka_unit_test(a_block_reused_for_its_own_key_is_detected),
        cmocka_unit_test(without_validation_another_value_is_read),
        cmocka_unit_test(a_stamp_repeats_only_after_all_others),
        cmocka_unit_test(any_number_of_blocks_is_kept),
        cmocka_unit_test(blocks_are_used_again_in_the_order_in_which_they_were_given_up),
        cmocka_unit_test(a_scan_reads_the_index_for_reused_blocks_and_omits_absent_keys),
        cmocka_unit_test(inline_values_need_no_blocks),
        cmocka_unit_test(compact_blocks_are_read_by_their_word_and_key),
        cmocka_unit_test(a_checksum_is_over_all_bytes_of_a_block),
        cmocka_unit_test(a_checksum_is_the_crc_32_of_ethernet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
