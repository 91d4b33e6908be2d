/* SPDX-License-Identifier: Apache-2.0
 *
 * Masked atomics of a device: when the transport `verbs` uses them, what it asks of the device for that, and what it
 * posts. libibverbs and libmlx5 are replaced (fake_mlx5.h), and so is the NIC (masked_nic.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/transport/fake_mlx5.h"

#include "conformance/transport_world.h"
#include "transport/fabric.h"
#include "transport/verbs/verbs.h"

enum { MNS = 2, CN = MNS, WORDS = 8 };

static struct dm_fabric *fabric_open(const char *masked) {
    const struct dm_setting settings[] = {{"probe", "0"}, {"masked", masked}};
    struct dm_fabric_config config = {
        .transport = "verbs",
        .topology = {.mns = MNS, .mn_cores = 1, .cns = 1, .clients = 1, .clients_per_thread = 1, .mn_bytes = 1 << 20},
        .chunk_bytes = 1 << 16,
        .settings = settings,
        .setting_count = DM_ARRAY_LEN(settings),
    };
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    if (dm_fabric_open(&config, &fabric, &err) < 0 || dm_fabric_connect(fabric, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return fabric;
}

static dm_addr word_at(unsigned node, unsigned i) {
    return dm_addr_make(node, DM_DRAM, 64 + 8 * (uint64_t)i);
}

static unsigned char *memory_at(const struct dm_fabric *fabric, dm_addr addr) {
    return verbs_of(fabric)->offers[dm_addr_node(addr)].dram.base + dm_addr_offset(addr);
}

static uint64_t word_of(const struct dm_fabric *fabric, dm_addr addr) {
    uint64_t word;
    memcpy(&word, memory_at(fabric, addr), sizeof(word));
    return word;
}

static void run(struct dm_fabric *fabric, int (*entry)(struct dm_ctx *ctx, void *arg), int expected) {
    struct dm_err err = {0};
    int rc = 0;
    dm_fabric_measure(fabric);
    if (dm_fabric_do(fabric, CN, entry, fabric, &rc, &err) < 0) {
        fail_msg("%s", err.text);
    }
    tw_raise();
    assert_int_equal(rc, expected);
}

/* ---- when they are used ----------------------------------------------------------------------------------------- */

static void a_device_that_does_them_right_is_sent_them(void **state) {
    (void)state;
    fake_mlx5_reset();
    struct dm_fabric *fabric = fabric_open("auto");
    assert_string_equal(fabric_note(fabric, "masked_atomics"), "native");
    assert_true(dm_sends_masked(fabric));
    dm_fabric_close(fabric);
}

/* What it reports of itself is missing, as without DevX: the trial decides. */
static void a_device_that_reports_nothing_is_tried(void **state) {
    (void)state;
    fake_mlx5_reset();
    fake_mlx5.is_mute = true;
    struct dm_fabric *fabric = fabric_open("auto");
    assert_string_equal(fabric_note(fabric, "masked_atomics"), "native");
    dm_fabric_close(fabric);
}

static void assert_emulated(const char *reason) {
    char expected[128];
    snprintf(expected, sizeof(expected), "emulated: %s", reason);
    struct dm_fabric *fabric = fabric_open("auto");
    assert_string_equal(fabric_note(fabric, "masked_atomics"), expected);
    assert_false(dm_sends_masked(fabric));
    for (unsigned i = 1; i < fake.qp_count; i++) { /* the first one may be the trial's */
        assert_false(fake_mlx5.is_raw[i]);
    }
    dm_fabric_close(fabric);
}

static void every_doubt_about_a_device_ends_in_the_emulation_and_its_reason(void **state) {
    (void)state;
    fake_mlx5_reset();
    fake.is_mlx5 = false;
    assert_emulated("the device is not an mlx5 device");
    assert_int_equal(fake_mlx5.qps_asked, 0);

    fake_mlx5_reset();
    fake_mlx5.operations = 0x3;
    assert_emulated("the device has none");
    assert_int_equal(fake_mlx5.qps_asked, 0);

    fake_mlx5_reset();
    fake_mlx5.refuses_qps = true;
    assert_emulated("the device gives no queue pair that takes them");

    fake_mlx5_reset();
    fake_mlx5.refuses_posts = true;
    assert_emulated("one that was tried could not be posted");

    fake_mlx5_reset();
    fake_mlx5.polls_fail = true;
    assert_emulated("one that was tried did not complete");

    fake_mlx5_reset();
    fake_mlx5.status = IBV_WC_REM_INV_REQ_ERR; /* what a queue pair in another atomic mode answers */
    assert_emulated(ibv_wc_status_str(IBV_WC_REM_INV_REQ_ERR));
}

static void a_device_that_does_something_else_is_found_out(void **state) {
    (void)state;
    static const struct masked_nic nics[] = {
        {.answers_big_endian = true}, {.ignores_masks = true}, {.ignores_boundaries = true}};
    for (size_t i = 0; i < DM_ARRAY_LEN(nics); i++) {
        fake_mlx5_reset();
        fake_mlx5.nic = nics[i];
        assert_emulated("one that was tried did something else");
    }
}

static void the_option_forbids_them(void **state) {
    (void)state;
    fake_mlx5_reset();
    struct dm_fabric *fabric = fabric_open("emulated");
    assert_string_equal(fabric_note(fabric, "masked_atomics"), "emulated: the option masked");
    assert_false(dm_sends_masked(fabric));
    assert_int_equal(fake_mlx5.qps_asked, 0);
    assert_int_equal(verbs_of(fabric)->facts[0].masked, VERBS_ASSUMED);
    dm_fabric_close(fabric);
}

/* What processes of memory nodes report of theirs. */
static void every_node_with_memory_has_to_have_them(void **state) {
    (void)state;
    fake_mlx5_reset();
    struct dm_fabric *fabric = fabric_open("auto");
    struct verbs_facts *facts = verbs_of(fabric)->facts;
    assert_int_equal(facts[0].masked, VERBS_HOLDS);
    for (unsigned found = VERBS_ASSUMED; found < VERBS_FINDING_END; found++) {
        fabric->has_masked = false;
        facts[1].masked = (uint8_t)found;
        verbs_masked_choose(verbs_of(fabric));
        assert_int_equal(dm_sends_masked(fabric), found == VERBS_HOLDS);
    }
    assert_string_equal(fabric_note(fabric, "masked_atomics"), "emulated: node 1 does not have them");
    facts[1] = (struct verbs_facts){.masked = VERBS_HOLDS};
    fabric->has_masked = false;
    verbs_masked_choose(verbs_of(fabric));
    assert_false(dm_sends_masked(fabric));
    assert_string_equal(fabric_note(fabric, "masked_atomics"), "emulated: node 1 has not reported its device yet");
    dm_fabric_close(fabric);
}

/* ---- what is asked of the device -------------------------------------------------------------------------------- */

static void calling_ends_take_them_beside_all_that_others_take(void **state) {
    (void)state;
    fake_mlx5_reset();
    struct dm_fabric *fabric = fabric_open("auto");
    /* The trial's two ends, then those of the thread and of each node in turns. */
    assert_int_equal(fake.qp_count, 2 + 2 * MNS);
    for (unsigned i = 0; i < fake.qp_count; i++) {
        assert_int_equal(fake_mlx5.is_raw[i], i % 2 == 0);
        assert_int_equal(fake.qps[i]->send.qp_state, IBV_QPS_RTS);
        assert_true(fake.qps[i]->init.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC);
    }
    assert_int_equal(fake_mlx5.asked.comp_mask, IBV_QP_INIT_ATTR_PD);
    assert_int_equal(fake_mlx5.asked.qp_type, IBV_QPT_RC);
    assert_int_equal(fake_mlx5.asked.sq_sig_all, 0);
    assert_int_equal(fake_mlx5.asked.cap.max_send_wr, 1024);
    assert_int_equal(fake_mlx5.asked.cap.max_inline_data, 220);
    assert_int_equal(fake_mlx5.asked_own.send_ops_flags, MLX5DV_QP_EX_WITH_RAW_WQE);
    assert_int_equal(fake_mlx5.asked_own.create_flags, MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE);
    assert_int_equal(fake_mlx5.asked_own.comp_mask,
                     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS);
    dm_fabric_close(fabric);
}

static void threads_keep_their_domains_and_inline_bytes_are_what_the_device_gives(void **state) {
    (void)state;
    fake_mlx5_reset();
    fake.has_thread_domains = true;
    fake.inline_most = 100;
    struct dm_fabric *fabric = fabric_open("auto");
    assert_ptr_not_equal(fake_mlx5.asked.pd, &fake.pd);
    assert_string_equal(fabric_note(fabric, "inline_max"), "100");
    assert_string_equal(fabric_note(fabric, "doorbell_registers"), "one a thread");
    dm_fabric_close(fabric);
}

/* The encoder's bytes by the names of the library's header. */
static void the_bytes_are_those_of_the_librarys_structures(void **state) {
    (void)state;
    struct {
        struct mlx5_wqe_ctrl_seg control;
        struct mlx5_wqe_raddr_seg remote;
        struct mlx5_wqe_atomic_seg values, masks;
        struct mlx5_wqe_data_seg local;
    } wqe;
    const struct verbs_masked_work work = {.op = {.compare = 1, .compare_mask = 2, .swap = 3, .swap_mask = 4},
                                           .is_fenced = true,
                                           .is_signalled = true,
                                           .queue_pair = 5,
                                           .remote = 6,
                                           .rkey = 7,
                                           .local = 8,
                                           .lkey = 9};
    assert_int_equal(sizeof(wqe), VERBS_MASKED_CAS_BYTES);
    assert_int_equal(verbs_masked_encode(&work, (unsigned char *)&wqe), sizeof(wqe));
    assert_int_equal(be32toh(wqe.control.opmod_idx_opcode), 0x09000000 | MLX5_OPCODE_ATOMIC_MASKED_CS);
    assert_int_equal(be32toh(wqe.control.qpn_ds), 5 << 8 | 5);
    assert_int_equal(wqe.control.fm_ce_se, MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE);
    assert_int_equal(be64toh(wqe.remote.raddr), 6);
    assert_int_equal(be32toh(wqe.remote.rkey), 7);
    assert_int_equal(be64toh(wqe.values.swap_add), 3);
    assert_int_equal(be64toh(wqe.values.compare), 1);
    assert_int_equal(be64toh(wqe.masks.swap_add), 4);
    assert_int_equal(be64toh(wqe.masks.compare), 2);
    assert_int_equal(be32toh(wqe.local.byte_count), 8);
    assert_int_equal(be32toh(wqe.local.lkey), 9);
    assert_int_equal(be64toh(wqe.local.addr), 8);
    const struct verbs_masked_work add = {.is_addition = true};
    verbs_masked_encode(&add, (unsigned char *)&wqe);
    assert_int_equal(be32toh(wqe.control.opmod_idx_opcode), 0x09000000 | MLX5_OPCODE_ATOMIC_MASKED_FA);
}

/* ---- what is posted --------------------------------------------------------------------------------------------- */

static int post_random(struct dm_ctx *ctx, void *arg) {
    const struct dm_fabric *fabric = arg;
    struct dm_prng prng = dm_prng_stream(1, "native", 0);
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    for (unsigned round = 0; round < 2000; round++) {
        dm_addr word = word_at(round % MNS, round % WORDS);
        uint64_t found = word_of(fabric, word), old = ~found, bits = dm_prng_u64(&prng) & dm_prng_u64(&prng);
        struct dm_verb verb = {.kind = round % 3 ? DM_VERB_MASKED_CAS : DM_VERB_MASKED_FAA,
                               .op = {.compare = round % 5 ? (found & bits) | ~bits : dm_prng_u64(&prng),
                                      .compare_mask = bits,
                                      .swap = dm_prng_u64(&prng),
                                      .swap_mask = dm_prng_u64(&prng)}};
        bool swapped;
        uint64_t expected = dm_atomic_apply(&verb, found, &swapped);
        DM_TRY(round % 3 ? dm_masked_cas(ctx, word, verb.op, &old)
                         : dm_masked_faa(ctx, word, verb.op.swap, verb.op.compare_mask, &old));
        CHECK_EQ(old, found);
        CHECK_EQ(word_of(fabric, word), expected);
    }
    dm_account_use(ctx, NULL);
    bool is_native = dm_sends_masked(fabric);
    CHECK_EQ(account.verbs[DM_VERB_MASKED_CAS] + account.verbs[DM_VERB_MASKED_FAA], is_native ? 2000 : 0);
    CHECK_EQ(account.masked_emulated, is_native ? 0 : 2000);
    CHECK_EQ(account.verbs[DM_VERB_READ], is_native ? 0 : 2000);
    CHECK_EQ(account.round_trips, 2000 + account.verbs[DM_VERB_CAS]);
    return 0;
}

/* Native, each is one verb and one round trip; emulated, a READ and, if it swaps, a CAS. */
static void both_kinds_do_what_the_contract_says(void **state) {
    (void)state;
    static const char *const kinds[] = {"auto", "emulated"};
    for (size_t i = 0; i < DM_ARRAY_LEN(kinds); i++) {
        fake_mlx5_reset();
        struct dm_fabric *fabric = fabric_open(kinds[i]);
        run(fabric, post_random, 0);
        dm_fabric_close(fabric);
    }
}

static int post_mixed(struct dm_ctx *ctx, void *arg) {
    uint64_t first = 11, last = 99, read = 0, olds[3] = {0};
    (void)arg;
    dm_post_write(ctx, word_at(0, 0), &first, 8);
    dm_post_masked_cas(ctx, word_at(0, 0), (struct dm_mask){3, 3, 0x100, 0xf00}, &olds[0]); /* 11 = 0b1011: it swaps */
    dm_post_read(ctx, word_at(0, 0), &read, 8);
    dm_post_masked_faa(ctx, word_at(0, 0), 0x1f5, 1 << 8, &olds[1]);
    dm_post_masked_faa(ctx, word_at(0, 0), 1, 0, &olds[2]);
    dm_post_write(ctx, word_at(0, 1), &last, 8);
    DM_TRY(dm_commit(ctx));
    CHECK_EQ(olds[0], 11);
    CHECK_EQ(read, 0x10b);
    CHECK_EQ(olds[1], 0x10b);
    CHECK_EQ(olds[2], 0x100); /* 0x300 without the carry out of bit 8 */
    return 0;
}

static void a_mixed_batch_keeps_its_order_and_rings_at_each_change(void **state) {
    (void)state;
    fake_mlx5_reset();
    struct dm_fabric *fabric = fabric_open("auto");
    const struct verbs_thread *thread = (const struct verbs_thread *)verbs_of(fabric)->rt.fabric->nodes[CN].threads[0];
    fake_mlx5.log[0] = '\0';
    fake_mlx5.raw_count = 0;
    run(fabric, post_mixed, 0);
    assert_string_equal(fake_mlx5.log, "p1 m1 p1 m2 p1 ");
    assert_int_equal(thread->doorbells, 5);
    assert_int_equal(fake_mlx5.raw_count, 3);
    /* Behind a READ and behind another atomic they have a fence; the last WRITE alone is signalled. */
    assert_int_equal(masked_decode(fake_mlx5.raws[0]).flags, 0);
    assert_int_equal(masked_decode(fake_mlx5.raws[1]).flags, MLX5_WQE_CTRL_FENCE);
    assert_int_equal(masked_decode(fake_mlx5.raws[2]).flags, MLX5_WQE_CTRL_FENCE);
    assert_int_equal(masked_decode(fake_mlx5.raws[0]).queue_pair, 102); /* the end that sends it */
    assert_int_equal(masked_decode(fake_mlx5.raws[0]).rkey, 8);
    assert_int_equal(masked_decode(fake_mlx5.raws[0]).lkey, 7);
    assert_int_equal(fake_mlx5.numbers[0] & VERBS_VERB_MASK, VERBS_MASKED_CAS);
    assert_int_equal(fake_mlx5.numbers[2] & VERBS_VERB_MASK, VERBS_MASKED_FAA);
    assert_int_equal(word_of(fabric, word_at(0, 1)), 99);
    dm_fabric_close(fabric);
}

static int post_unsignalled(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        dm_post_masked_cas(ctx, word_at(1, 0), (struct dm_mask){0, 0, UINT64_C(1) << i, UINT64_C(1) << i}, NULL);
        DM_TRY(dm_commit_async(ctx));
    }
    uint64_t read = 0;
    DM_TRY(dm_read(ctx, word_at(1, 0), &read, 8));
    CHECK_EQ(read, 7);
    return 0;
}

static void one_may_be_sent_and_not_waited_for(void **state) {
    (void)state;
    fake_mlx5_reset();
    struct dm_fabric *fabric = fabric_open("auto");
    fake_mlx5.log[0] = '\0';
    run(fabric, post_unsignalled, 0);
    assert_string_equal(fake_mlx5.log, "m1 m1 m1 p1 ");
    dm_fabric_close(fabric);
}

static int post_one(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    return dm_masked_cas(ctx, word_at(0, 0), (struct dm_mask){0, 1, 1, 1}, NULL);
}

static void a_failure_names_the_verb(void **state) {
    (void)state;
    static const struct {
        enum ibv_wc_status status;
        bool refuses;
        const char *said;
    } cases[] = {{IBV_WC_REM_ACCESS_ERR, false, "masked CAS to "}, {IBV_WC_SUCCESS, true, "posting to "}};
    for (size_t i = 0; i < DM_ARRAY_LEN(cases); i++) {
        fake_mlx5_reset();
        struct dm_fabric *fabric = fabric_open("auto");
        struct dm_err err = {0};
        int rc = 0;
        fake_mlx5.status = cases[i].status;
        fake_mlx5.refuses_posts = cases[i].refuses;
        assert_true(dm_fabric_do(fabric, CN, post_one, fabric, &rc, &err) < 0);
        assert_non_null(strstr(err.text, cases[i].said));
        dm_fabric_close(fabric);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_does_them_right_is_sent_them),
        cmocka_unit_test(a_device_that_reports_nothing_is_tried),
        cmocka_unit_test(every_doubt_about_a_device_ends_in_the_emulation_and_its_reason),
        cmocka_unit_test(a_device_that_does_something_else_is_found_out),
        cmocka_unit_test(the_option_forbids_them),
        cmocka_unit_test(every_node_with_memory_has_to_have_them),
        cmocka_unit_test(calling_ends_take_them_beside_all_that_others_take),
        cmocka_unit_test(threads_keep_their_domains_and_inline_bytes_are_what_the_device_gives),
        cmocka_unit_test(the_bytes_are_those_of_the_librarys_structures),
        cmocka_unit_test(both_kinds_do_what_the_contract_says),
        cmocka_unit_test(a_mixed_batch_keeps_its_order_and_rings_at_each_change),
        cmocka_unit_test(one_may_be_sent_and_not_waited_for),
        cmocka_unit_test(a_failure_names_the_verb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
