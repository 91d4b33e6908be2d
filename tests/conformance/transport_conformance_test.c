/* SPDX-License-Identifier: Apache-2.0
 *
 * What every transport promises of one-sided verbs, batches, and what is counted of them. The same tests run on every
 * transport that is compiled in.
 */
#include "conformance/transport_world.h"

/* ---- addresses and bad batches ---------------------------------------------------------------------------------- */

static void check_validity(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    unsigned server = TW_MNS, cn = TW_MNS + TW_SERVERS;
    CHECK(!dm_addr_valid(ctx, DM_NULL, 8));
    CHECK(dm_addr_valid(ctx, dm_addr_make(0, DM_DRAM, 8), 8));
    CHECK(dm_addr_valid(ctx, dm_addr_make(1, DM_DRAM, 0), 8));
    CHECK(dm_addr_valid(ctx, dm_addr_make(2, DM_DRAM, TW_MN_BYTES - 8), 8));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(2, DM_DRAM, TW_MN_BYTES - 8), 9));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(2, DM_DRAM, TW_MN_BYTES), 1));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(2, DM_DRAM, UINT64_C(0xffffffffffff)), 8));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(2, DM_DRAM, 64), 0));
    CHECK(dm_addr_valid(ctx, dm_addr_make(server, DM_DRAM, 64), 8));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(server, DM_CHIP, 0), 8));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(cn, DM_DRAM, 64), 8));
    CHECK(!dm_addr_valid(ctx, dm_addr_make(255, DM_DRAM, 64), 8));
    CHECK(!dm_addr_valid(ctx, (dm_addr){UINT64_C(0x0007) << 48 | 64}, 8));
    CHECK_EQ(dm_addr_valid(ctx, dm_addr_make(0, DM_CHIP, 0), 8), dm_topology(ctx)->chip_bytes > 0);
    CHECK(!dm_addr_valid(ctx, dm_addr_make(0, DM_CHIP, TW_CHIP_BYTES), 8));
}

static void an_address_is_valid_exactly_where_memory_exists(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_validity, NULL);
    tw_close(&tw);
}

static void check_bad_addresses(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    const dm_addr bad[] = {DM_NULL, dm_addr_make(0, DM_DRAM, TW_MN_BYTES - 4), dm_addr_make(200, DM_DRAM, 64),
                           dm_addr_make(TW_MNS + TW_SERVERS, DM_DRAM, 64)};
    uint64_t one = 1, got = 77;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dm_post_write(ctx, tw_word(0, 0), &one, 8);
        dm_post_read(ctx, bad[i], &got, 8);
        CHECK_EQ(dm_commit(ctx), DM_ERR_ADDRESS);
        CHECK_EQ(got, 77);
        CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), 0);
        dm_post_write(ctx, tw_word(0, 0), &one, 8);
        dm_post_write(ctx, bad[i], &one, 8);
        CHECK_EQ(dm_commit_async(ctx), DM_ERR_ADDRESS);
        CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), 0);
    }
    CHECK_EQ(dm_write(ctx, tw_word(0, 0), &one, 8), 0);
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), 1);
}

static void a_bad_address_fails_the_commit_and_nothing_of_the_batch_is_sent(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_bad_addresses, NULL);
    tw_close(&tw);
}

static void check_misaligned(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t old;
    for (unsigned off = 1; off < 8; off++) {
        dm_addr addr = dm_addr_add(tw_word(0, 0), off);
        CHECK_EQ(dm_cas(ctx, addr, 0, 1, &old), DM_ERR_ADDRESS);
        CHECK_EQ(dm_faa(ctx, addr, 1, &old), DM_ERR_ADDRESS);
        CHECK_EQ(dm_masked_cas(ctx, addr, (struct dm_mask){0, 0, 1, 1}, &old), DM_ERR_ADDRESS);
        CHECK_EQ(dm_masked_faa(ctx, addr, 1, 0, &old), DM_ERR_ADDRESS);
    }
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), 0);
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 1)), 0);
}

static void an_atomic_on_a_misaligned_word_is_refused(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_misaligned, NULL);
    tw_close(&tw);
}

static void check_batch_limit(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    for (unsigned i = 0; i <= DM_BATCH_MAX; i++) {
        dm_post_faa(ctx, tw_word(0, 0), 1, NULL);
    }
    CHECK_EQ(dm_commit(ctx), DM_ERR_BATCH_FULL);
    CHECK_EQ(account.verbs[DM_VERB_FAA], 0);
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), 0);
    for (unsigned i = 0; i < DM_BATCH_MAX; i++) {
        dm_post_faa(ctx, tw_word(0, 0), 1, NULL);
    }
    CHECK_EQ(dm_commit(ctx), 0);
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), DM_BATCH_MAX);
    dm_account_use(ctx, NULL);
}

static void a_batch_of_512_verbs_works_and_of_513_is_refused(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_batch_limit, NULL);
    tw_close(&tw);
}

static void check_empty(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    struct dm_account account = {0}, nothing = {0};
    dm_account_use(ctx, &account);
    CHECK_EQ(dm_commit(ctx), 0);
    CHECK_EQ(dm_commit_async(ctx), 0);
    CHECK_EQ(memcmp(&account, &nothing, sizeof(account)), 0);
    dm_account_use(ctx, NULL);
}

static void an_empty_batch_costs_nothing(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_empty, NULL);
    tw_close(&tw);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static void check_batch_order(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    for (uint64_t round = 1; round <= 50; round++) {
        uint64_t sent = round * 1000, back = 0, old = 0, after_cas = 0, after_faa = 0;
        dm_addr word = tw_word(1, 0);
        dm_post_write(ctx, word, &sent, 8);
        dm_post_read(ctx, word, &back, 8);
        dm_post_cas(ctx, word, sent, sent + 1, &old);
        dm_post_read(ctx, word, &after_cas, 8);
        dm_post_faa(ctx, word, 5, NULL);
        dm_post_read(ctx, word, &after_faa, 8);
        CHECK_EQ(dm_commit(ctx), 0);
        CHECK_EQ(back, sent);
        CHECK_EQ(old, sent);
        CHECK_EQ(after_cas, sent + 1);
        CHECK_EQ(after_faa, sent + 6);
    }
}

static void verbs_of_one_batch_to_one_node_take_effect_in_posted_order(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run_one(&tw, check_batch_order, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_one(&tw, check_batch_order, NULL);
    tw_close(&tw);
}

/* The words are this client's alone. A verb that a device executes twice, because it resent it, shows in the next
 * value. */
static void check_once(struct dm_ctx *ctx, struct tw_client *client) {
    enum { ROUNDS = 100, WORDS = 128 };
    unsigned char block[DM_LINE] = {0}, back[4 * DM_LINE];
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t swapped = 0, added = 0, locked = 0;
        unsigned first = WORDS * client->number;
        dm_post_write(ctx, tw_word(0, first + 8), block, sizeof(block));
        dm_post_cas(ctx, tw_word(0, first), round, round + 1, &swapped);
        dm_post_read(ctx, tw_word(0, first), back, sizeof(back));
        CHECK_EQ(dm_commit(ctx), 0);
        CHECK_EQ(swapped, round);
        dm_post_write(ctx, tw_word(0, first + 8), block, sizeof(block));
        dm_post_faa(ctx, tw_word(0, first + 1), 1, &added);
        CHECK_EQ(dm_commit(ctx), 0);
        CHECK_EQ(added, round);
        dm_post_cas(ctx, tw_word(0, first + 2), 0, 1, &locked);
        CHECK_EQ(dm_commit(ctx), 0);
        CHECK_EQ(locked, 0);
        const uint64_t none = 0;
        dm_post_write(ctx, tw_word(0, first + 8), block, sizeof(block));
        dm_post_write(ctx, tw_word(0, first + 2), &none, sizeof(none));
        CHECK_EQ(dm_commit(ctx), 0);
    }
}

static void writes_and_atomics_take_effect_once(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_clients(&tw, TW_CLIENTS, false, check_once, NULL);
    tw_close(&tw);
}

static void check_unsignalled(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    unsigned char block[256], back[256];
    for (unsigned round = 1; round <= 100; round++) {
        memset(block, (int)round, sizeof(block));
        dm_post_write(ctx, tw_word(0, 0), block, sizeof(block));
        CHECK_EQ(dm_commit_async(ctx), 0);
        memset(block, 0xee, sizeof(block)); /* sources were taken */
        dm_post_faa(ctx, tw_word(0, 64), 1, NULL);
        CHECK_EQ(dm_commit_async(ctx), 0);
        uint64_t count;
        dm_post_read(ctx, tw_word(0, 64), &count, 8);
        dm_post_read(ctx, tw_word(0, 0), back, sizeof(back));
        CHECK_EQ(dm_commit(ctx), 0);
        CHECK_EQ(count, round);
        for (unsigned i = 0; i < sizeof(back); i++) {
            CHECK_EQ(back[i], round);
        }
    }
}

static void unsignalled_verbs_come_before_later_batches_to_the_same_node(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_unsignalled, NULL);
    tw_close(&tw);
}

enum { MESSAGES = 2000 };

/* Client 0 writes a message and then its number; the others must never see a number before its message. */
static void pass_messages(struct dm_ctx *ctx, struct tw_client *client) {
    dm_addr data = tw_word(0, 0), flag = tw_word(0, 64);
    uint64_t block[32];
    tw_barrier(ctx, tw_word(0, 128), client->count);
    if (client->number == 0) {
        for (uint64_t message = 1; message <= MESSAGES; message++) {
            for (unsigned i = 0; i < 32; i++) {
                block[i] = message;
            }
            dm_post_write(ctx, data, block, sizeof(block));
            dm_post_write(ctx, flag, &message, 8);
            CHECK_EQ(dm_commit(ctx), 0);
        }
        return;
    }
    for (uint64_t seen = 0; seen < MESSAGES;) {
        seen = tw_read_word(ctx, flag);
        CHECK_EQ(dm_read(ctx, data, block, sizeof(block)), 0);
        for (unsigned i = 0; i < 32; i++) {
            CHECK(block[i] >= seen);
        }
    }
}

static void others_see_the_writes_of_a_batch_in_order(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_clients(&tw, 4, false, pass_messages, NULL);
    tw_close(&tw);
}

enum { DUELS = 4000 };

/* Two clients write a word each and then read the other's: not both can have been first. They go in step, so that they
 * do it at the same time as often as can be. */
static void duel(struct dm_ctx *ctx, struct tw_client *client) {
    uint64_t(*seen)[DUELS] = client->shared;
    unsigned me = client->number;
    for (unsigned i = 0; i < DUELS; i++) {
        dm_addr mine = dm_addr_make(1 + me, DM_DRAM, DM_RESERVED_BYTES + (uint64_t)i * DM_LINE);
        dm_addr other = dm_addr_make(2 - me, DM_DRAM, DM_RESERVED_BYTES + (uint64_t)i * DM_LINE);
        uint64_t one = 1;
        CHECK_EQ(dm_write(ctx, mine, &one, 8), 0);
        seen[me][i] = tw_read_word(ctx, other);
        while (tw_read_word(ctx, other) == 0 && !dm_stopping(ctx)) {
        }
    }
}

static void a_completed_write_is_visible_to_every_later_read(void **state) {
    static uint64_t seen[2][DUELS];
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_clients(&tw, 2, false, duel, seen);
    for (unsigned i = 0; i < DUELS; i++) {
        assert_true(seen[0][i] || seen[1][i]);
    }
    tw_close(&tw);
}

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

static void check_atomics(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    dm_addr word = tw_word(0, 0);
    uint64_t old = 99;
    CHECK_EQ(dm_cas(ctx, word, 0, 10, &old), 0);
    CHECK_EQ(old, 0);
    CHECK_EQ(account.cas_failures, 0);
    CHECK_EQ(dm_cas(ctx, word, 0, 11, &old), 0);
    CHECK_EQ(old, 10);
    CHECK_EQ(account.cas_failures, 1);
    CHECK_EQ(dm_cas(ctx, word, 11, 12, NULL), 0);
    CHECK_EQ(account.cas_failures, 2);
    CHECK_EQ(dm_faa(ctx, word, 5, &old), 0);
    CHECK_EQ(old, 10);
    CHECK_EQ(dm_faa(ctx, word, (uint64_t)-20, &old), 0);
    CHECK_EQ(old, 15);
    CHECK_EQ(tw_read_word(ctx, word), (uint64_t)-5);
    CHECK_EQ(dm_faa(ctx, word, 5, NULL), 0);
    CHECK_EQ(tw_read_word(ctx, word), 0);
    CHECK_EQ(account.cas_failures, 2);
    dm_account_use(ctx, NULL);
}

static void compare_and_swap_and_fetch_and_add_do_what_they_say_and_failures_are_counted(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_atomics, NULL);
    tw_close(&tw);
}

static void check_masked_cas(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    dm_addr word = tw_word(0, 0);
    uint64_t start = UINT64_C(0x1122334455667788), old = 0;
    CHECK_EQ(dm_write(ctx, word, &start, 8), 0);
    /* Compares one byte, swaps another; what lies outside the masks does not matter. */
    struct dm_mask mask = {UINT64_C(0xffffffffffff66ff), 0xff00, UINT64_C(0xaaaaaaaaaaaaaaaa), UINT64_C(0xff) << 56};
    CHECK_EQ(dm_masked_cas(ctx, word, mask, &old), 0);
    CHECK_EQ(old, start);
    CHECK_EQ(tw_read_word(ctx, word), start); /* byte 1 holds 77 */
    CHECK_EQ(account.cas_failures, 1);
    mask.compare = UINT64_C(0x7700);
    CHECK_EQ(dm_masked_cas(ctx, word, mask, &old), 0);
    CHECK_EQ(old, start);
    CHECK_EQ(tw_read_word(ctx, word), UINT64_C(0xaa22334455667788));
    CHECK_EQ(account.cas_failures, 1);
    /* An empty compare mask always swaps. */
    CHECK_EQ(dm_masked_cas(ctx, word, (struct dm_mask){123, 0, 7, UINT64_MAX}, NULL), 0);
    CHECK_EQ(tw_read_word(ctx, word), 7);
    CHECK_EQ(account.cas_failures, 1);
    dm_account_use(ctx, NULL);
}

static void masked_compare_and_swap_looks_and_writes_only_under_its_masks(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_masked_cas, NULL);
    tw_close(&tw);
}

static void check_masked_faa(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    static const struct {
        uint64_t start, add, boundary, result;
    } cases[] = {
        /* One field of 64 bits. */
        {5, 7, 0, 12},
        {UINT64_MAX, 1, 0, 0},
        {UINT64_MAX, 1, UINT64_C(1) << 63, 0},
        /* Two fields of 32 bits: the carry of the lower is lost. */
        {UINT64_C(0x00000001ffffffff), 1, UINT64_C(1) << 31, UINT64_C(0x0000000100000000)},
        {UINT64_C(0x00000001ffffffff), UINT64_C(0x0000000300000002), UINT64_C(1) << 31, UINT64_C(0x0000000400000001)},
        /* Bytes, each of which overflows separately. */
        {UINT64_C(0xff00ff01807f0102), UINT64_C(0x0101010180810304), UINT64_C(0x8080808080808080),
         UINT64_C(0x0001000200000406)},
        /* Fields of 1, 3 and 60 bits; subtraction by the complement within a field. */
        {UINT64_C(0b1101), UINT64_C(0b0011), UINT64_C(0b1001), UINT64_C(0b1110)},
        {UINT64_C(0x0000000500000007), UINT64_C(0x00000000ffffffff), UINT64_C(1) << 31, UINT64_C(0x0000000500000006)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t old = 0;
        CHECK_EQ(dm_write(ctx, tw_word(0, 0), &cases[i].start, 8), 0);
        CHECK_EQ(dm_masked_faa(ctx, tw_word(0, 0), cases[i].add, cases[i].boundary, &old), 0);
        CHECK_EQ(old, cases[i].start);
        CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), cases[i].result);
    }
}

static void masked_fetch_and_add_keeps_carries_within_fields(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_masked_faa, NULL);
    tw_close(&tw);
}

enum { ADDS_VIRTUAL = 200, ADDS_REAL = 5000 };

struct counters {
    dm_addr words[3];
    unsigned adds;
};

static void add_many(struct dm_ctx *ctx, struct tw_client *client) {
    const struct counters *counters = client->shared;
    const dm_addr *words = counters->words;
    tw_barrier(ctx, tw_word(1, dm_addr_space(words[0])), client->count);
    for (unsigned i = 0; i < counters->adds; i++) {
        CHECK_EQ(dm_faa(ctx, words[0], 1, NULL), 0);
        CHECK_EQ(dm_masked_faa(ctx, words[1], UINT64_C(0x100000001), UINT64_C(1) << 31, NULL), 0);
        uint64_t seen = 0, old = 0;
        do {
            seen = old;
            CHECK_EQ(dm_cas(ctx, words[2], seen, seen + 3, &old), 0);
        } while (old != seen);
    }
}

static void check_sums(struct dm_ctx *ctx, struct tw_client *client) {
    const struct counters *counters = client->shared;
    const dm_addr *words = counters->words;
    uint64_t adds = (uint64_t)TW_CLIENTS * counters->adds;
    CHECK_EQ(tw_read_word(ctx, words[0]), adds);
    CHECK_EQ(tw_read_word(ctx, words[1]), adds << 32 | adds);
    CHECK_EQ(tw_read_word(ctx, words[2]), 3 * adds);
}

static void add_many_in(struct tw *tw, enum dm_space space) {
    struct counters counters = {.adds = tw->info->caps & DM_CAP_VIRTUAL_TIME ? ADDS_VIRTUAL : ADDS_REAL};
    for (unsigned i = 0; i < 3; i++) {
        counters.words[i] = dm_addr_make(0, space, 64 + 8 * i);
    }
    tw_run_clients(tw, TW_CLIENTS, false, add_many, &counters);
    tw_run_one(tw, check_sums, &counters);
}

static void atomics_of_many_clients_on_one_word_lose_nothing(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    add_many_in(&tw, DM_DRAM);
    tw_close(&tw);
}

static void atomics_on_chip_memory_lose_nothing_either(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    add_many_in(&tw, DM_CHIP);
    tw_close(&tw);
}

static void check_chip_order(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    dm_addr lock = DM_NULL, second = DM_NULL;
    CHECK_EQ(dm_chip_alloc(ctx, 1, 8, &lock), 0);
    CHECK_EQ(dm_chip_alloc(ctx, 1, 8, &second), 0);
    CHECK_EQ(dm_addr_space(lock), DM_CHIP);
    CHECK_EQ(dm_addr_node(lock), 1);
    CHECK(!dm_addr_equal(lock, second));
    for (uint64_t round = 1; round <= 50; round++) {
        uint64_t data = 0, old = 0, chip = 0;
        dm_post_cas(ctx, lock, round - 1, round, &old);
        dm_post_write(ctx, tw_word(1, 0), &round, 8);
        dm_post_read(ctx, lock, &chip, 8);
        dm_post_read(ctx, tw_word(1, 0), &data, 8);
        CHECK_EQ(dm_commit(ctx), 0);
        CHECK_EQ(old, round - 1);
        CHECK_EQ(chip, round);
        CHECK_EQ(data, round);
    }
    CHECK_EQ(tw_read_word(ctx, second), 0);
}

static void chip_memory_keeps_order_with_the_nodes_other_memory(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run_one(&tw, check_chip_order, NULL);
    tw_close(&tw);
}

static void check_chip_limits(struct dm_ctx *ctx, struct tw_client *client) {
    const unsigned *has_chip = client->shared;
    dm_addr addr;
    if (!*has_chip) {
        CHECK_EQ(dm_chip_alloc(ctx, 0, 8, &addr), DM_ERR_UNSUPPORTED);
        return;
    }
    CHECK_EQ(dm_chip_alloc(ctx, TW_MNS, 8, &addr), DM_ERR_INVALID);
    CHECK_EQ(dm_chip_alloc(ctx, 0, TW_CHIP_BYTES + 1, &addr), DM_ERR_NO_MEMORY);
    CHECK_EQ(dm_chip_alloc(ctx, 0, TW_CHIP_BYTES, &addr), 0);
    CHECK_EQ(dm_chip_alloc(ctx, 0, 1, &addr), DM_ERR_NO_MEMORY);
    CHECK(dm_addr_is_null(addr));
    CHECK_EQ(dm_chip_alloc(ctx, 1, 1, &addr), 0);
}

static void chip_memory_is_bounded_by_the_topology(void **state) {
    for (unsigned has_chip = 0; has_chip < 2; has_chip++) {
        struct tw tw;
        struct dm_topology topology = tw_topology();
        topology.chip_bytes = has_chip ? TW_CHIP_BYTES : 0;
        tw_open(&tw, *state, topology, TW_SEED);
        tw_run_one(&tw, check_chip_limits, &has_chip);
        tw_close(&tw);
    }
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

enum { AREA = 2048, ACCESSES = 600 };

static void check_any_range(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    static unsigned char oracle[AREA], data[AREA], back[AREA + 2];
    struct dm_prng prng = dm_prng_stream(TW_SEED, "ranges", 0);
    dm_addr area = dm_addr_make(2, DM_DRAM, DM_RESERVED_BYTES);
    memset(oracle, 0, sizeof(oracle));
    for (unsigned i = 0; i < ACCESSES; i++) {
        uint32_t from = (uint32_t)dm_prng_below(&prng, AREA);
        uint32_t len = 1 + (uint32_t)dm_prng_below(&prng, i % 2 ? AREA - from : (AREA - from < 70 ? AREA - from : 70));
        for (uint32_t b = 0; b < len; b++) {
            data[b] = (unsigned char)dm_prng_u64(&prng);
        }
        memcpy(oracle + from, data, len);
        CHECK_EQ(dm_write(ctx, dm_addr_add(area, from), data, len), 0);
        from = (uint32_t)dm_prng_below(&prng, AREA);
        len = 1 + (uint32_t)dm_prng_below(&prng, AREA - from);
        memset(back, 0xa5, sizeof(back));
        CHECK_EQ(dm_read(ctx, dm_addr_add(area, from), back + 1, len), 0);
        CHECK_EQ(memcmp(back + 1, oracle + from, len), 0);
        CHECK_EQ(back[0], 0xa5);
        CHECK_EQ(back[len + 1], 0xa5);
    }
}

static void reads_and_writes_of_any_range_touch_exactly_its_bytes(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_any_range, NULL);
    tw_close(&tw);
}

/* ---- accounting ------------------------------------------------------------------------------------------------- */

static void check_accounting(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    struct dm_account account = {0}, twice = {0};
    unsigned char buffer[1024];
    uint64_t old;
    memset(buffer, 0, sizeof(buffer));
    dm_account_use(ctx, &account);
    dm_post_read(ctx, tw_word(0, 0), buffer, 1000);
    dm_post_write(ctx, tw_word(1, 0), buffer, 100);
    dm_post_write(ctx, tw_word(1, 32), buffer, 50);
    dm_post_faa(ctx, tw_word(0, 0), 0, &old);
    CHECK_EQ(dm_commit(ctx), 0);
    CHECK_EQ(account.round_trips, 1);
    CHECK_EQ(account.doorbells, 2); /* two nodes */
    CHECK_EQ(account.verbs[DM_VERB_READ], 1);
    CHECK_EQ(account.verbs[DM_VERB_WRITE], 2);
    CHECK_EQ(account.verbs[DM_VERB_FAA], 1);
    CHECK_EQ(account.bytes_read, 1008);
    CHECK_EQ(account.bytes_written, 158);
    dm_post_write(ctx, tw_word(2, 0), buffer, 10);
    CHECK_EQ(dm_commit_async(ctx), 0);
    CHECK_EQ(account.round_trips, 1); /* nothing was waited for */
    CHECK_EQ(account.doorbells, 3);
    CHECK_EQ(account.bytes_written, 168);
    dm_account_use(ctx, NULL);
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), buffer, 8), 0);
    CHECK_EQ(account.round_trips, 1);
    CHECK_EQ(account.cas_failures, 0);
    dm_account_add(&twice, &account);
    dm_account_add(&twice, &account);
    CHECK_EQ(twice.bytes_read, 2016);
    CHECK_EQ(twice.verbs[DM_VERB_WRITE], 6);
}

static void round_trips_verbs_bytes_and_doorbells_are_counted_once(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_accounting, NULL);
    tw_close(&tw);
}

static void check_masked_counted(struct dm_ctx *ctx, struct tw_client *client) {
    const struct tw *tw = client->shared;
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    CHECK_EQ(dm_masked_faa(ctx, tw_word(0, 0), 1, 0, NULL), 0);
    if (dm_sends_masked(tw->fabric)) {
        CHECK_EQ(account.verbs[DM_VERB_MASKED_FAA], 1);
        CHECK_EQ(account.round_trips, 1);
        CHECK_EQ(account.masked_emulated, 0);
    } else {
        CHECK_EQ(account.verbs[DM_VERB_MASKED_FAA], 0);
        CHECK_EQ(account.round_trips, 2);
        CHECK_EQ(account.masked_emulated, 1);
    }
    dm_account_use(ctx, NULL);
}

static void masked_atomics_are_counted_as_what_was_sent(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_masked_counted, &tw);
    tw_close(&tw);
}

static void the_total_of_verbs_grows_by_what_was_sent(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    uint64_t before = dm_verb_total(tw.fabric);
    tw_run_one(&tw, check_batch_order, NULL);
    assert_int_equal(dm_verb_total(tw.fabric) - before, 50 * 6);
    tw_close(&tw);
}

static void check_retry(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    struct dm_account account = {0};
    uint32_t attempts = 0;
    dm_account_use(ctx, &account);
    unsigned passed = 0;
    while (dm_retry(ctx, DM_RETRY_LOCK, &attempts) == 0) {
        passed++;
    }
    CHECK_EQ(passed, 4);
    CHECK_EQ(account.retries[DM_RETRY_LOCK], 5);
    CHECK_EQ(dm_retry(ctx, DM_RETRY_TORN, &attempts), DM_ERR_RETRY_LIMIT);
    dm_account_use(ctx, NULL);
}

static void retries_are_counted_by_cause_and_end_at_the_limit(void **state) {
    const struct dm_transport_info *info = *state;
    struct dm_fabric_config config = {.transport = info->name,
                                      .profile = info->caps & DM_CAP_PROFILE ? "cx6-100g" : NULL,
                                      .topology = tw_topology(),
                                      .retry_limit = 5};
    struct tw tw = {.info = info, .topology = config.topology};
    assert_int_equal(dm_fabric_open(&config, &tw.fabric, &tw.err), 0);
    tw_run_one(&tw, check_retry, NULL);
    tw_close(&tw);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static void an_unknown_option_or_a_bad_value_is_named(void **state) {
    const struct dm_transport_info *info = *state;
    const struct dm_setting unknown = {"no_such_option", "1"};
    struct dm_fabric_config config = {.transport = info->name,
                                      .profile = info->caps & DM_CAP_PROFILE ? "cx6-100g" : NULL,
                                      .topology = tw_topology(),
                                      .settings = &unknown,
                                      .setting_count = 1};
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), DM_ERR_INVALID);
    assert_null(fabric);
    assert_non_null(strstr(err.text, "no_such_option"));
    if (info->options && info->options[0].name) {
        const struct dm_setting bad = {info->options[0].name, "no such value"};
        config.settings = &bad;
        assert_int_equal(dm_fabric_open(&config, &fabric, &err), DM_ERR_INVALID);
        assert_non_null(strstr(err.text, info->options[0].name));
    }
}

static void an_invalid_topology_is_refused_with_the_reason(void **state) {
    const struct dm_transport_info *info = *state;
    struct dm_topology topologies[6];
    for (size_t i = 0; i < 6; i++) {
        topologies[i] = tw_topology();
    }
    topologies[0].mns = 0;
    topologies[1].cns = 0;
    topologies[2].mn_cores = 0;
    topologies[3].clients = 0;
    topologies[4].mn_bytes = DM_RESERVED_BYTES;
    topologies[5].cns = 255;
    for (size_t i = 0; i < 6; i++) {
        struct dm_fabric_config config = {.transport = info->name,
                                          .profile = info->caps & DM_CAP_PROFILE ? "cx6-100g" : NULL,
                                          .topology = topologies[i]};
        struct dm_fabric *fabric = NULL;
        struct dm_err err = {0};
        assert_int_equal(dm_fabric_open(&config, &fabric, &err), DM_ERR_INVALID);
        assert_null(fabric);
        assert_true(err.text[0] != '\0');
    }
}

static void a_fabric_closes_without_ever_having_run(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_close(&tw);
    dm_fabric_close(NULL);
}

int main(void) {
    static const struct tw_row rows[] = {
        TW(an_address_is_valid_exactly_where_memory_exists),
        TW(a_bad_address_fails_the_commit_and_nothing_of_the_batch_is_sent),
        TW(an_atomic_on_a_misaligned_word_is_refused),
        TW(a_batch_of_512_verbs_works_and_of_513_is_refused),
        TW(an_empty_batch_costs_nothing),
        TW(writes_and_atomics_take_effect_once),
        TW(verbs_of_one_batch_to_one_node_take_effect_in_posted_order),
        TW(unsignalled_verbs_come_before_later_batches_to_the_same_node),
        TW(others_see_the_writes_of_a_batch_in_order),
        TW(a_completed_write_is_visible_to_every_later_read),
        TW(compare_and_swap_and_fetch_and_add_do_what_they_say_and_failures_are_counted),
        TW(masked_compare_and_swap_looks_and_writes_only_under_its_masks),
        TW(masked_fetch_and_add_keeps_carries_within_fields),
        TW(atomics_of_many_clients_on_one_word_lose_nothing),
        TW_NEEDS(atomics_on_chip_memory_lose_nothing_either, DM_CAP_CHIP_MEMORY),
        TW_NEEDS(chip_memory_keeps_order_with_the_nodes_other_memory, DM_CAP_CHIP_MEMORY),
        TW_NEEDS(chip_memory_is_bounded_by_the_topology, DM_CAP_CHIP_MEMORY),
        TW(reads_and_writes_of_any_range_touch_exactly_its_bytes),
        TW(round_trips_verbs_bytes_and_doorbells_are_counted_once),
        TW(masked_atomics_are_counted_as_what_was_sent),
        TW(the_total_of_verbs_grows_by_what_was_sent),
        TW(retries_are_counted_by_cause_and_end_at_the_limit),
        TW(an_unknown_option_or_a_bad_value_is_named),
        TW(an_invalid_topology_is_refused_with_the_reason),
        TW(a_fabric_closes_without_ever_having_run),
    };
    return tw_run_table("transport: verbs", rows, sizeof(rows) / sizeof(rows[0]));
}
