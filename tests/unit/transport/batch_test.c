/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches and their accounting over a fake transport; above all the emulation of masked atomics, which no transport of
 * this build needs.
 */
#include "transport/core/profile.h"
#include "unit/transport/fake_transport.h"

static dm_addr word_at(unsigned node, unsigned index) {
    return dm_addr_make(node, DM_DRAM, 64 + 8 * (uint64_t)index);
}

static uint64_t memory_word(const struct fake *fake, dm_addr addr) {
    uint64_t word;
    memcpy(&word, &fake->memory[dm_addr_node(addr)][dm_addr_offset(addr)], sizeof(word));
    return word;
}

static void memory_set(struct fake *fake, dm_addr addr, uint64_t word) {
    memcpy(&fake->memory[dm_addr_node(addr)][dm_addr_offset(addr)], &word, sizeof(word));
}

static void masked_addition_equals_addition_field_by_field(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(1, "fields", 0);
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t found = dm_prng_u64(&prng), add = dm_prng_u64(&prng), boundary = dm_prng_u64(&prng);
        if (round % 2) {
            boundary &= dm_prng_u64(&prng) & dm_prng_u64(&prng) & dm_prng_u64(&prng);
        }
        struct dm_verb verb = {.kind = DM_VERB_MASKED_FAA, .op = {.swap = add, .compare_mask = boundary}};
        bool swapped = false;
        uint64_t sum = dm_atomic_apply(&verb, found, &swapped), carry = 0;
        assert_true(swapped);
        for (unsigned bit = 0; bit < 64; bit++) {
            uint64_t total = (found >> bit & 1) + (add >> bit & 1) + carry;
            assert_int_equal(sum >> bit & 1, total & 1);
            carry = boundary >> bit & 1 ? 0 : total >> 1;
        }
    }
}

static void masked_swap_equals_its_definition_bit_by_bit(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(1, "bits", 0);
    unsigned swaps = 0;
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t found = dm_prng_u64(&prng);
        struct dm_mask mask = {dm_prng_u64(&prng), UINT64_C(3) << dm_prng_below(&prng, 60), dm_prng_u64(&prng),
                               dm_prng_u64(&prng)};
        struct dm_verb verb = {.kind = DM_VERB_MASKED_CAS, .op = mask};
        bool swapped = false, equal = true;
        uint64_t result = dm_atomic_apply(&verb, found, &swapped);
        for (unsigned bit = 0; bit < 64; bit++) {
            equal = equal && (!(mask.compare_mask >> bit & 1) || (found >> bit & 1) == (mask.compare >> bit & 1));
        }
        assert_int_equal(swapped, equal);
        for (unsigned bit = 0; bit < 64; bit++) {
            uint64_t from = equal && (mask.swap_mask >> bit & 1) ? mask.swap : found;
            assert_int_equal(result >> bit & 1, from >> bit & 1);
        }
        swaps += swapped;
    }
    assert_in_range(swaps, 300, 700); /* a quarter: two bits are compared */
}

static void an_emulated_addition_is_a_read_and_a_swap(void **state) {
    (void)state;
    struct fake *fake = fake_new(0);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    memory_set(fake, word_at(0, 0), UINT64_C(0x1000000ff));
    uint64_t old = 0;
    assert_int_equal(dm_masked_faa(ctx, word_at(0, 0), 1, 0x80, &old), 0);
    assert_true(old == UINT64_C(0x1000000ff));
    assert_true(memory_word(fake, word_at(0, 0)) == UINT64_C(0x100000000));
    assert_int_equal(account.round_trips, 2);
    assert_int_equal(account.verbs[DM_VERB_READ], 1);
    assert_int_equal(account.verbs[DM_VERB_CAS], 1);
    assert_int_equal(account.verbs[DM_VERB_MASKED_FAA], 0);
    assert_int_equal(account.masked_emulated, 1);
    assert_int_equal(account.cas_failures, 0);
    fake_free(fake);
}

/* Another client adds to the word before the second commit: between the read and the swap. */
static void disturb_once(struct fake *fake) {
    if (fake->commits == 2) {
        memory_set(fake, word_at(0, 0), memory_word(fake, word_at(0, 0)) + 100);
    }
}

static void disturb_always(struct fake *fake) {
    memory_set(fake, word_at(0, 0), memory_word(fake, word_at(0, 0)) + 100);
}

static void an_emulated_atomic_retries_after_a_conflict(void **state) {
    (void)state;
    struct fake *fake = fake_new(0);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    fake->before = disturb_once;
    uint64_t old = 0;
    assert_int_equal(dm_masked_faa(ctx, word_at(0, 0), 7, 0, &old), 0);
    assert_int_equal(old, 100);
    assert_int_equal(memory_word(fake, word_at(0, 0)), 107);
    assert_int_equal(account.round_trips, 3);
    assert_int_equal(account.cas_failures, 1);
    assert_int_equal(account.retries[DM_RETRY_CAS], 1);
    fake->before = disturb_always;
    assert_int_equal(dm_masked_faa(ctx, word_at(0, 0), 7, 0, &old), DM_ERR_RETRY_LIMIT);
    fake_free(fake);
}

static void an_emulated_swap_that_does_not_match_writes_nothing(void **state) {
    (void)state;
    struct fake *fake = fake_new(0);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    memory_set(fake, word_at(1, 0), 0x0102);
    uint64_t old = 0;
    assert_int_equal(dm_masked_cas(ctx, word_at(1, 0), (struct dm_mask){0x03, 0xff, 0xffff, 0xffff}, &old), 0);
    assert_int_equal(old, 0x0102);
    assert_int_equal(memory_word(fake, word_at(1, 0)), 0x0102);
    assert_int_equal(account.cas_failures, 1);
    assert_int_equal(account.verbs[DM_VERB_CAS], 0);
    assert_int_equal(dm_masked_cas(ctx, word_at(1, 0), (struct dm_mask){0x02, 0xff, 0xaa00, 0xff00}, &old), 0);
    assert_int_equal(memory_word(fake, word_at(1, 0)), 0xaa02);
    assert_int_equal(account.cas_failures, 1);
    fake_free(fake);
}

static void a_batch_with_emulated_atomics_keeps_its_order(void **state) {
    (void)state;
    struct fake *fake = fake_new(0);
    struct dm_ctx *ctx = &fake->contexts[0];
    uint64_t first = 5, seen = 0, last = 77, old = 0, end = 0;
    dm_addr word = word_at(0, 0);
    dm_post_write(ctx, word, &first, 8);
    dm_post_masked_faa(ctx, word, 3, 0, &old);
    dm_post_read(ctx, word, &seen, 8);
    dm_post_write(ctx, word, &last, 8);
    dm_post_masked_cas(ctx, word, (struct dm_mask){77, UINT64_MAX, 78, UINT64_MAX}, NULL);
    dm_post_read(ctx, word, &end, 8);
    assert_int_equal(dm_commit(ctx), 0);
    assert_int_equal(old, 5);
    assert_int_equal(seen, 8);
    assert_int_equal(end, 78);
    /* What was posted before an emulated atomic has completed when it begins with its read, and its swap follows. */
    assert_int_equal(fake->commits, 3 + 3 + 1);
    assert_int_equal(dm_commit(ctx), 0); /* nothing was left in the batch */
    assert_int_equal(memory_word(fake, word), 78);
    fake_free(fake);
}

static void native_masked_atomics_are_one_verb(void **state) {
    (void)state;
    struct fake *fake = fake_new(DM_CAP_MASKED_ATOMICS);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    assert_int_equal(dm_masked_faa(ctx, word_at(0, 0), 1, 0, NULL), 0);
    assert_int_equal(account.verbs[DM_VERB_MASKED_FAA], 1);
    assert_int_equal(account.round_trips, 1);
    assert_int_equal(fake->commits, 1);
    fake_free(fake);
}

static void a_profile_without_masked_atomics_has_them_emulated(void **state) {
    (void)state;
    struct fake *fake = fake_new(DM_CAP_MASKED_ATOMICS);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct dm_profile profile = {.masked_atomics = 0};
    struct dm_account account = {0};
    ctx->fabric->profile = &profile;
    dm_account_use(ctx, &account);
    assert_int_equal(dm_masked_faa(ctx, word_at(0, 0), 1, 0, NULL), 0);
    assert_int_equal(account.verbs[DM_VERB_MASKED_FAA], 0);
    assert_int_equal(account.verbs[DM_VERB_CAS], 1);
    assert_int_equal(account.masked_emulated, 1);
    profile.masked_atomics = 1;
    assert_int_equal(dm_masked_faa(ctx, word_at(0, 0), 1, 0, NULL), 0);
    assert_int_equal(account.verbs[DM_VERB_MASKED_FAA], 1);
    assert_int_equal(memory_word(fake, word_at(0, 0)), 2);
    ctx->fabric->profile = NULL;
    fake_free(fake);
}

static void a_failed_commit_leaves_no_verbs_behind(void **state) {
    (void)state;
    struct fake *fake = fake_new(DM_CAP_MASKED_ATOMICS);
    struct dm_ctx *ctx = &fake->contexts[0];
    uint64_t one = 1;
    fake->commit_result = DM_ERR_PEER;
    assert_int_equal(dm_write(ctx, word_at(0, 0), &one, 8), DM_ERR_PEER);
    fake->commit_result = 0;
    assert_int_equal(dm_commit(ctx), 0);
    assert_int_equal(fake->commits, 1);
    assert_int_equal(memory_word(fake, word_at(0, 0)), 0);
    fake_free(fake);
}

static void the_failure_of_an_unsignalled_verb_surfaces_once(void **state) {
    (void)state;
    struct fake *fake = fake_new(DM_CAP_MASKED_ATOMICS);
    struct dm_ctx *ctx = &fake->contexts[0];
    uint64_t one = 1;
    ctx->pending_error = DM_ERR_IO;
    dm_post_write(ctx, DM_NULL, &one, 8);
    assert_int_equal(dm_commit(ctx), DM_ERR_ADDRESS); /* the caller's own mistake first */
    assert_int_equal(dm_write(ctx, word_at(0, 0), &one, 8), DM_ERR_IO);
    assert_int_equal(fake->commits, 0);
    assert_int_equal(dm_write(ctx, word_at(0, 0), &one, 8), 0);
    assert_int_equal(memory_word(fake, word_at(0, 0)), 1);
    fake_free(fake);
}

static void after_a_stop_nothing_is_sent(void **state) {
    (void)state;
    struct fake *fake = fake_new(DM_CAP_MASKED_ATOMICS);
    struct dm_ctx *ctx = &fake->contexts[0];
    uint64_t one = 1;
    uint32_t attempts = 0;
    fake->fabric.stop = true;
    assert_int_equal(dm_write(ctx, word_at(0, 0), &one, 8), DM_ERR_STOPPED);
    dm_post_write(ctx, word_at(0, 0), &one, 8);
    assert_int_equal(dm_commit_async(ctx), DM_ERR_STOPPED);
    assert_int_equal(dm_call(ctx, 0, DM_METHOD_CHUNK, &one, 8, NULL, NULL), DM_ERR_STOPPED);
    assert_int_equal(dm_retry(ctx, DM_RETRY_TORN, &attempts), DM_ERR_STOPPED);
    assert_int_equal(dm_sleep(ctx, 1), DM_ERR_STOPPED);
    assert_int_equal(fake->commits + fake->calls, 0);
    fake_free(fake);
}

static void a_batch_rings_one_doorbell_for_each_node(void **state) {
    (void)state;
    struct fake *fake = fake_new(DM_CAP_MASKED_ATOMICS);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    uint64_t buffer[20];
    for (unsigned i = 0; i < 20; i++) {
        dm_post_read(ctx, word_at(0, i), &buffer[i], 8);
    }
    assert_int_equal(dm_commit(ctx), 0);
    assert_int_equal(account.doorbells, 1);
    for (unsigned i = 0; i < 20; i++) {
        dm_post_read(ctx, word_at(i % 2, i), &buffer[i], 8);
    }
    assert_int_equal(dm_commit(ctx), 0);
    assert_int_equal(account.doorbells, 3);
    assert_int_equal(account.round_trips, 2);
    fake_free(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_addition_equals_addition_field_by_field),
        cmocka_unit_test(masked_swap_equals_its_definition_bit_by_bit),
        cmocka_unit_test(an_emulated_addition_is_a_read_and_a_swap),
        cmocka_unit_test(an_emulated_atomic_retries_after_a_conflict),
        cmocka_unit_test(an_emulated_swap_that_does_not_match_writes_nothing),
        cmocka_unit_test(a_batch_with_emulated_atomics_keeps_its_order),
        cmocka_unit_test(native_masked_atomics_are_one_verb),
        cmocka_unit_test(a_profile_without_masked_atomics_has_them_emulated),
        cmocka_unit_test(a_failed_commit_leaves_no_verbs_behind),
        cmocka_unit_test(the_failure_of_an_unsignalled_verb_surfaces_once),
        cmocka_unit_test(after_a_stop_nothing_is_sent),
        cmocka_unit_test(a_batch_rings_one_doorbell_for_each_node),
    };
    return cmocka_run_group_tests_name("transport: batch", tests, NULL, NULL);
}
