/* SPDX-License-Identifier: Apache-2.0
 *
 * What every transport promises of memory: what allocation hands out, what it reports, and how far a read or a write is
 * atomic. The same tests run on every transport that is compiled in.
 */
#include "conformance/transport_world.h"

enum { PIECES = 120, OWNERS = TW_CLIENTS };

struct piece {
    dm_addr addr;
    uint32_t bytes, align;
};

/* ---- allocation ------------------------------------------------------------------------------------------------- */

static void check_reserved_page(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    unsigned char page[DM_RESERVED_BYTES - DM_LINE];
    for (unsigned node = 0; node < TW_MNS + TW_SERVERS; node++) {
        dm_addr addr;
        CHECK_EQ(dm_alloc(ctx, node, 8, 1, DM_MEM_META, &addr), 0);
        CHECK_EQ(dm_addr_node(addr), node);
        CHECK_EQ(dm_addr_space(addr), DM_DRAM);
        CHECK(dm_addr_offset(addr) >= DM_RESERVED_BYTES);
        memset(page, 0xa5, sizeof(page));
        CHECK_EQ(dm_read(ctx, dm_addr_make(node, DM_DRAM, DM_LINE), page, sizeof(page)), 0);
        for (unsigned i = 0; i < sizeof(page); i++) {
            CHECK_EQ(page[i], 0);
        }
    }
}

static void the_reserved_page_of_every_node_is_zero_and_never_handed_out(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run_one(&tw, check_reserved_page, NULL);
    tw_close(&tw);
}

static void alloc_many(struct dm_ctx *ctx, struct tw_client *client) {
    struct piece *pieces = (struct piece *)client->shared + (size_t)client->number * PIECES;
    static const unsigned char zeros[1024];
    unsigned char was[1024];
    for (unsigned i = 0; i < PIECES; i++) {
        struct piece *piece = &pieces[i];
        piece->bytes = 1 + (uint32_t)dm_prng_below(dm_random(ctx), sizeof(was));
        piece->align = 1u << dm_prng_below(dm_random(ctx), i % 16 ? 8 : 13);
        unsigned node = i % 3 == 0 ? DM_ANY_NODE : i % (TW_MNS + TW_SERVERS);
        CHECK_EQ(dm_alloc(ctx, node, piece->bytes, piece->align, DM_MEM_LEAF, &piece->addr), 0);
        CHECK(node == DM_ANY_NODE ? dm_addr_node(piece->addr) < TW_MNS : dm_addr_node(piece->addr) == node);
        CHECK_EQ(dm_addr_offset(piece->addr) % piece->align, 0);
        CHECK(dm_addr_valid(ctx, piece->addr, piece->bytes));
        CHECK_EQ(dm_read(ctx, piece->addr, was, piece->bytes), 0);
        CHECK_EQ(memcmp(was, zeros, piece->bytes), 0);
        memset(was, 0xff, piece->bytes); /* so that an overlap with a later piece shows */
        CHECK_EQ(dm_write(ctx, piece->addr, was, piece->bytes), 0);
    }
}

static int compare_pieces(const void *a, const void *b) {
    uint64_t first = ((const struct piece *)a)->addr.bits, second = ((const struct piece *)b)->addr.bits;
    return (first > second) - (first < second);
}

static void check_pieces(struct tw *tw, struct piece *pieces, size_t count) {
    uint64_t sum = 0;
    qsort(pieces, count, sizeof(*pieces), compare_pieces);
    for (size_t i = 0; i < count; i++) {
        sum += pieces[i].bytes;
        assert_true(i == 0 || pieces[i - 1].addr.bits + pieces[i - 1].bytes <= pieces[i].addr.bits);
    }
    struct dm_memory_use use;
    dm_memory_use(tw->fabric, &use);
    assert_int_equal(use.bytes[DM_MEM_LEAF], sum);
    assert_int_equal(use.bytes[DM_MEM_INNER], 0);
    assert_int_equal(use.freed, 0);
    assert_true(use.chunk_bytes >= sum);
    assert_true(use.chunk_bytes <= (TW_MNS + TW_SERVERS) * (uint64_t)TW_MN_BYTES);
}

static void allocations_of_many_clients_are_zero_aligned_and_disjoint(void **state) {
    static struct piece pieces[OWNERS * PIECES];
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_clients(&tw, OWNERS, false, alloc_many, pieces);
    check_pieces(&tw, pieces, OWNERS * PIECES);
    tw_close(&tw);
}

static void the_same_holds_in_the_set_up_phase(void **state) {
    static struct piece pieces[OWNERS * PIECES];
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run_clients(&tw, OWNERS, false, alloc_many, pieces);
    check_pieces(&tw, pieces, OWNERS * PIECES);
    tw_close(&tw);
}

static void check_bad_requests(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    dm_addr addr = dm_addr_make(1, DM_DRAM, 1);
    CHECK_EQ(dm_alloc(ctx, 0, 0, 8, DM_MEM_LEAF, &addr), DM_ERR_INVALID);
    CHECK(dm_addr_is_null(addr));
    CHECK_EQ(dm_alloc(ctx, 0, 8, 0, DM_MEM_LEAF, &addr), DM_ERR_INVALID);
    CHECK_EQ(dm_alloc(ctx, 0, 8, 24, DM_MEM_LEAF, &addr), DM_ERR_INVALID);
    CHECK_EQ(dm_alloc(ctx, 0, 8, 8192, DM_MEM_LEAF, &addr), DM_ERR_INVALID);
    CHECK_EQ(dm_alloc(ctx, TW_MNS + TW_SERVERS, 8, 8, DM_MEM_LEAF, &addr), DM_ERR_INVALID);
    CHECK_EQ(dm_alloc(ctx, 0, 8, 4096, DM_MEM_LEAF, &addr), 0);
    CHECK_EQ(dm_addr_offset(addr) % 4096, 0);
}

static void an_invalid_allocation_is_refused(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_bad_requests, NULL);
    tw_close(&tw);
}

static void check_reuse(struct dm_ctx *ctx, struct tw_client *client) {
    struct tw *tw = client->shared;
    dm_addr first[8], again;
    struct dm_memory_use use;
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQ(dm_alloc(ctx, i % TW_MNS, 256, 64, DM_MEM_VALUE, &first[i]), 0);
    }
    dm_free(ctx, first[3], 256, DM_MEM_VALUE); /* of node 0 */
    dm_memory_use(tw->fabric, &use);
    CHECK_EQ(use.bytes[DM_MEM_VALUE], 7 * 256);
    CHECK_EQ(use.freed, 256);
    CHECK_EQ(dm_alloc(ctx, 0, 255, 64, DM_MEM_VALUE, &again), 0); /* another size */
    CHECK(!dm_addr_equal(again, first[3]));
    CHECK_EQ(dm_alloc(ctx, 1, 256, 64, DM_MEM_VALUE, &again), 0); /* another node */
    CHECK(!dm_addr_equal(again, first[3]));
    CHECK_EQ(dm_alloc(ctx, 0, 256, 64, DM_MEM_INNER, &again), 0); /* another use is no matter */
    CHECK(dm_addr_equal(again, first[3]));
    dm_memory_use(tw->fabric, &use);
    CHECK_EQ(use.freed, 0);
    CHECK_EQ(use.bytes[DM_MEM_VALUE], 7 * 256 + 255 + 256);
    CHECK_EQ(use.bytes[DM_MEM_INNER], 256);
    dm_free(ctx, first[4], 256, DM_MEM_VALUE);
    CHECK_EQ(dm_alloc(ctx, DM_ANY_NODE, 256, 64, DM_MEM_VALUE, &again), 0);
    CHECK(dm_addr_equal(again, first[4]));
}

static void a_freed_piece_is_reused_for_its_size_and_node(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_reuse, &tw);
    tw_close(&tw);
}

enum { BIG = 4096 };

static void fill_up(struct dm_ctx *ctx, struct tw_client *client) {
    struct tw *tw = client->shared;
    struct dm_memory_use full, later;
    dm_addr addr, last[TW_MNS] = {DM_NULL, DM_NULL, DM_NULL};
    uint64_t got = 0;
    int rc;
    while ((rc = dm_alloc(ctx, DM_ANY_NODE, BIG, BIG, DM_MEM_LEAF, &addr)) == 0) {
        CHECK_EQ(dm_write(ctx, addr, &addr, sizeof(addr)), 0);
        last[dm_addr_node(addr)] = addr;
        got++;
    }
    CHECK_EQ(rc, DM_ERR_NO_MEMORY);
    CHECK(dm_addr_is_null(addr));
    dm_memory_use(tw->fabric, &full);
    CHECK_EQ(full.bytes[DM_MEM_LEAF], got * BIG);
    /* All but the reserved page and what alignment costs a chunk. */
    CHECK(got * BIG >= TW_MNS * (uint64_t)TW_MN_BYTES * 9 / 10);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_EQ(dm_alloc(ctx, i % 2 ? DM_ANY_NODE : 0, BIG, BIG, DM_MEM_LEAF, &addr), DM_ERR_NO_MEMORY);
    }
    dm_memory_use(tw->fabric, &later);
    CHECK_EQ(memcmp(&full, &later, sizeof(full)), 0);
    for (unsigned node = 0; node < TW_MNS; node++) {
        CHECK_EQ(tw_read_word(ctx, last[node]), last[node].bits);
        dm_free(ctx, last[node], BIG, DM_MEM_LEAF);
        CHECK_EQ(dm_alloc(ctx, node, BIG, BIG, DM_MEM_LEAF, &addr), 0);
        CHECK(dm_addr_equal(addr, last[node]));
    }
    /* The index servers' memory is not part of "any". */
    CHECK_EQ(dm_alloc(ctx, TW_MNS, BIG, BIG, DM_MEM_LEAF, &addr), 0);
}

static void full_nodes_report_no_memory_and_nothing_is_lost(void **state) {
    for (unsigned measured = 0; measured < 2; measured++) {
        struct tw tw;
        tw_open_setup(&tw, state);
        if (measured) {
            dm_fabric_measure(tw.fabric);
        }
        tw_run_one(&tw, fill_up, &tw);
        tw_close(&tw);
    }
}

static void alloc_spread(struct dm_ctx *ctx, struct tw_client *client) {
    uint64_t *bytes = client->shared;
    for (unsigned i = 0; i < 999; i++) {
        dm_addr addr;
        CHECK_EQ(dm_alloc(ctx, DM_ANY_NODE, 1024, 64, DM_MEM_LEAF, &addr), 0);
        bytes[dm_addr_node(addr)] += 1024;
    }
}

static void bulk_data_is_spread_evenly_over_the_memory_nodes(void **state) {
    uint64_t bytes[TW_MNS] = {0};
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run_one(&tw, alloc_spread, bytes);
    for (unsigned node = 0; node < TW_MNS; node++) {
        assert_int_equal(bytes[node], 333 * 1024);
    }
    tw_close(&tw);
}

/* Each piece needs a chunk of its own. */
static int handle_alloc(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    (void)arg, (void)req, (void)req_len;
    struct dm_account account = {0};
    dm_addr addr;
    dm_account_use(ctx, &account);
    int rc = dm_alloc(ctx, 1, TW_CHUNK_BYTES, 8, DM_MEM_VALUE, &addr);
    dm_account_use(ctx, NULL);
    CHECK_EQ(rc, 0);
    CHECK_EQ(account.verbs[DM_VERB_CALL], 0);
    memcpy(resp, &addr, sizeof(addr));
    *resp_len = sizeof(addr);
    return rc;
}

static void call_alloc(struct dm_ctx *ctx, struct tw_client *client) {
    enum { ROUNDS = 3 };
    dm_addr *addrs = client->shared;
    for (unsigned i = 0; i < ROUNDS; i++) {
        dm_addr *addr = &addrs[client->number * ROUNDS + i];
        uint32_t len = sizeof(*addr);
        CHECK_EQ(dm_call(ctx, 1, DM_METHOD_FIRST, NULL, 0, addr, &len), 0);
        CHECK_EQ(dm_addr_node(*addr), 1);
        for (unsigned before = 0; before < i; before++) {
            CHECK(!dm_addr_equal(*addr, addrs[client->number * ROUNDS + before]));
        }
    }
}

/* With a call, handlers that all wait for memory would leave none to give it to them. */
static void handlers_allocate_on_their_node_without_a_call(void **state) {
    struct tw tw;
    dm_addr addrs[TW_CLIENTS * 3] = {0};
    tw_open_setup(&tw, state);
    tw_method(&tw, 1, DM_METHOD_FIRST, handle_alloc, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, TW_CLIENTS, false, call_alloc, addrs);
    tw_close(&tw);
}

static void later_pieces_are_spread_chunk_by_chunk(void **state) {
    uint64_t bytes[TW_MNS] = {0};
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, alloc_spread, bytes);
    for (unsigned node = 0; node < TW_MNS; node++) {
        assert_true(bytes[node] + 2 * TW_CHUNK_BYTES >= 333 * 1024);
    }
    tw_close(&tw);
}

/* ---- atomicity -------------------------------------------------------------------------------------------------- */

enum { OBJECT = 1024, FLIPS_VIRTUAL = 3000, FLIPS_REAL = 200000 };

struct looks {
    uint64_t flips;
    uint64_t pause_ns;     /* between two accesses at most */
    _Atomic uint64_t torn; /* reads that saw two writes */
};

/* Even clients write the whole object full of one number; odd ones read it and look at each line. */
static void flip_or_look(struct dm_ctx *ctx, struct tw_client *client) {
    struct looks *looks = client->shared;
    dm_addr object = dm_addr_make(0, DM_DRAM, DM_RESERVED_BYTES);
    uint64_t words[OBJECT / 8];
    tw_barrier(ctx, tw_word(1, 0), client->count);
    for (uint64_t i = 1; i <= looks->flips; i++) {
        if (looks->pause_ns > 0) {
            CHECK_EQ(dm_sleep(ctx, dm_prng_below(dm_random(ctx), looks->pause_ns)), 0);
        }
        if (client->number % 2 == 0) {
            for (unsigned w = 0; w < OBJECT / 8; w++) {
                words[w] = i << 8 | client->number;
            }
            CHECK_EQ(dm_write(ctx, object, words, OBJECT), 0);
            continue;
        }
        CHECK_EQ(dm_read(ctx, object, words, OBJECT), 0);
        bool torn = false;
        for (unsigned w = 0; w < OBJECT / 8; w++) {
            CHECK(words[w] == words[w & ~7u]); /* the first word of the same line */
            torn = torn || words[w] != words[0];
        }
        atomic_fetch_add(&looks->torn, torn);
    }
}

static void a_line_is_never_torn(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    if (strcmp(fabric_note(tw.fabric, "line_atomic"), "no") == 0) {
        tw_close(&tw);
        print_message("skipped: the device is software that copies on several processors\n");
        skip();
    }
    /* Where time is real, an unlucky overlap takes many tries. */
    struct looks looks = {.flips = tw.info->caps & DM_CAP_VIRTUAL_TIME ? FLIPS_VIRTUAL : FLIPS_REAL};
    tw_run_clients(&tw, 4, false, flip_or_look, &looks);
    tw_close(&tw);
}

static void larger_objects_are_torn_where_accesses_overlap(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct looks looks = {.flips = FLIPS_VIRTUAL, .pause_ns = 3000}; /* out of step */
    tw_run_clients(&tw, 4, false, flip_or_look, &looks);
    assert_true(looks.torn > 0);
    tw_close(&tw);
}

/* Pieces that share lines but no byte: no write changes a neighbour. */
static void write_own_bytes(struct dm_ctx *ctx, struct tw_client *client) {
    enum { STRIDE = 13, ROUNDS = 300 };
    dm_addr own = dm_addr_make(0, DM_DRAM, DM_RESERVED_BYTES + 7 + (uint64_t)client->number * STRIDE);
    unsigned char mine[STRIDE], back[STRIDE];
    for (unsigned i = 0; i < ROUNDS; i++) {
        memset(mine, (int)(i * 16 + client->number), sizeof(mine));
        CHECK_EQ(dm_write(ctx, own, mine, sizeof(mine)), 0);
        CHECK_EQ(dm_read(ctx, own, back, sizeof(back)), 0);
        CHECK_EQ(memcmp(mine, back, sizeof(mine)), 0);
    }
}

static void writes_to_different_bytes_of_a_line_do_not_disturb_each_other(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_clients(&tw, TW_CLIENTS, false, write_own_bytes, NULL);
    tw_close(&tw);
}

/* An atomic on one word of a line and whole-line writes that leave the word out: no addition is lost. */
static void add_beside_writes(struct dm_ctx *ctx, struct tw_client *client) {
    unsigned char rest[DM_LINE - 8];
    memset(rest, (int)client->number, sizeof(rest));
    for (unsigned i = 0; i < 300; i++) {
        CHECK_EQ(dm_faa(ctx, tw_word(0, 0), 1, NULL), 0);
        CHECK_EQ(dm_write(ctx, tw_word(0, 1), rest, sizeof(rest)), 0);
    }
}

static void check_sum(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), TW_CLIENTS * 300);
}

static void atomics_lose_nothing_beside_writes_to_the_same_line(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_clients(&tw, TW_CLIENTS, false, add_beside_writes, NULL);
    tw_run_one(&tw, check_sum, NULL);
    tw_close(&tw);
}

int main(void) {
    static const struct tw_row rows[] = {
        TW(the_reserved_page_of_every_node_is_zero_and_never_handed_out),
        TW(allocations_of_many_clients_are_zero_aligned_and_disjoint),
        TW(the_same_holds_in_the_set_up_phase),
        TW(an_invalid_allocation_is_refused),
        TW(a_freed_piece_is_reused_for_its_size_and_node),
        TW(full_nodes_report_no_memory_and_nothing_is_lost),
        TW(bulk_data_is_spread_evenly_over_the_memory_nodes),
        TW(later_pieces_are_spread_chunk_by_chunk),
        TW(handlers_allocate_on_their_node_without_a_call),
        TW(a_line_is_never_torn),
        TW_NEEDS(larger_objects_are_torn_where_accesses_overlap, DM_CAP_VIRTUAL_TIME),
        TW(writes_to_different_bytes_of_a_line_do_not_disturb_each_other),
        TW(atomics_lose_nothing_beside_writes_to_the_same_line),
    };
    return tw_run_table("transport: memory", rows, sizeof(rows) / sizeof(rows[0]));
}
