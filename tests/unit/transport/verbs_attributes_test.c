/* SPDX-License-Identifier: Apache-2.0
 *
 * What the transport `verbs` asks of a device, where software RoCE cannot show whether it is right: addressing, limits,
 * queues and domains, as attributes that a replacement of libibverbs records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/transport/fake_verbs.h"

#include "conformance/transport_choice.h"
#include "transport/fabric.h"
#include "transport/verbs/verbs.h"

enum { MNS = 2, MN_CORES = 2, THREADS = 3, A_THREAD = 2, SOFTWARE = 0xffffff };

/* The fabric is to be closed even if it did not connect; NULL if it did not open. */
static int fabric_try(const struct dm_processes *processes, const struct dm_setting *settings, size_t count,
                      struct dm_fabric **fabric, struct dm_err *err) {
    struct dm_setting all[8] = {{"probe", "0"}};
    for (size_t i = 0; i < count; i++) {
        all[i + 1] = settings[i];
    }
    struct dm_fabric_config config = {
        .transport = "verbs",
        .topology = {.mns = MNS,
                     .mn_cores = MN_CORES,
                     .cns = 1,
                     .clients = THREADS * A_THREAD,
                     .clients_per_thread = A_THREAD,
                     .mn_bytes = 1 << 20},
        .chunk_bytes = 1 << 16,
        .processes = processes,
        .settings = all,
        .setting_count = count + 1,
    };
    *fabric = NULL;
    DM_TRY(dm_fabric_open(&config, fabric, err));
    return dm_fabric_connect(*fabric, err);
}

static struct dm_fabric *fabric_open_as(const struct dm_processes *processes, const struct dm_setting *settings,
                                        size_t count) {
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    if (fabric_try(processes, settings, count, &fabric, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return fabric;
}

static struct dm_fabric *fabric_open(const struct dm_setting *settings, size_t count) {
    return fabric_open_as(NULL, settings, count);
}

/* Queue pairs of compute nodes and those that serve them have been made in turns. */
static const struct fake_qp *calling(unsigned i) {
    return fake.qps[2 * i];
}
static const struct fake_qp *serving(unsigned i) {
    return fake.qps[2 * i + 1];
}

static void all_connections_of_all_threads_are_made_before_the_measured_phase(void **state) {
    (void)state;
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    assert_int_equal(fake.qp_count, 2 * THREADS * MNS);
    for (unsigned i = 0; i < fake.qp_count; i++) {
        assert_int_equal(fake.qps[i]->send.qp_state, IBV_QPS_RTS);
    }
    dm_fabric_close(fabric);
}

/* Four of five questions for a link address may be lost; if all of them are, the failure says what failed. */
static void a_lost_question_for_a_link_address_is_asked_again(void **state) {
    (void)state;
    struct dm_err err = {0};
    struct dm_fabric *fabric = NULL;
    fake_reset();
    fake.unanswered = 4;
    assert_int_equal(fabric_try(NULL, NULL, 0, &fabric, &err), 0);
    assert_int_equal(fake.qps[0]->send.qp_state, IBV_QPS_RTS);
    dm_fabric_close(fabric);
    fake_reset();
    fake.unanswered = 5;
    assert_int_equal(fabric_try(NULL, NULL, 0, &fabric, &err), DM_ERR_IO);
    assert_non_null(strstr(err.text, "cannot connect its queue pair: Connection timed out"));
    dm_fabric_close(fabric);
}

/* Two nodes of two threads each, three connections to each: none of the four threads has none. */
static void the_threads_of_every_node_serve_in_turn(void **state) {
    (void)state;
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    for (unsigned node = 0; node < MNS; node++) {
        for (unsigned i = 0; i < MN_CORES; i++) {
            const struct verbs_thread *thread =
                (const struct verbs_thread *)verbs_of(fabric)->rt.fabric->nodes[node].threads[i];
            unsigned count = 0;
            for (const struct verbs_conn *conn = thread->incoming; conn; conn = conn->thread_next) {
                count++;
            }
            assert_in_range(count, 1, 2);
        }
    }
    dm_fabric_close(fabric);
}

static void a_port_that_demands_it_gets_a_global_route(void **state) {
    (void)state;
    for (int flags = 0; flags <= IBV_QPF_GRH_REQUIRED; flags += IBV_QPF_GRH_REQUIRED) {
        fake_reset();
        fake.link_layer = IBV_LINK_LAYER_INFINIBAND;
        fake.lid = 9;
        fake.port_flags = flags;
        struct dm_fabric *fabric = fabric_open(NULL, 0);
        const struct ibv_ah_attr *address = &calling(0)->receive.ah_attr;
        assert_int_equal(address->dlid, 9);
        assert_int_equal(address->is_global, flags > 0);
        assert_int_equal(address->grh.sgid_index, flags > 0 ? 3 : 0);
        assert_int_equal(address->grh.dgid.raw[15], flags > 0 ? 0x2a : 0);
        dm_fabric_close(fabric);
    }
}

static void partition_service_level_and_traffic_class_are_those_of_the_options(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"pkey", "5"}, {"sl", "3"}, {"traffic_class", "106"}};
    fake_reset();
    struct dm_fabric *fabric = fabric_open(settings, DM_ARRAY_LEN(settings));
    for (unsigned i = 0; i < fake.qp_count; i++) {
        assert_int_equal(fake.qps[i]->init.pkey_index, 5);
        assert_true(fake.qps[i]->masks[0] & IBV_QP_PKEY_INDEX);
        assert_int_equal(fake.qps[i]->receive.ah_attr.sl, 3);
        assert_int_equal(fake.qps[i]->receive.ah_attr.grh.traffic_class, 106);
    }
    dm_fabric_close(fabric);
}

static void the_path_mtu_is_the_smallest_of_both_ends_and_the_route(void **state) {
    (void)state;
    struct verbs_port port = {.mtu = IBV_MTU_2048};
    assert_int_equal(verbs_mtu_of(&port, IBV_MTU_4096, IBV_MTU_4096), IBV_MTU_2048);
    assert_int_equal(verbs_mtu_of(&port, IBV_MTU_1024, IBV_MTU_4096), IBV_MTU_1024);
    assert_int_equal(verbs_mtu_of(&port, IBV_MTU_4096, IBV_MTU_512), IBV_MTU_512);
    static const struct dm_setting settings[] = {{"mtu", "1024"}};
    fake_reset();
    struct dm_fabric *fabric = fabric_open(settings, 1);
    assert_int_equal(calling(0)->receive.path_mtu, IBV_MTU_1024);
    assert_int_equal(serving(0)->receive.path_mtu, IBV_MTU_1024);
    dm_fabric_close(fabric);
}

static void timeouts_and_order_depend_on_the_kind_of_device(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"ack_timeout", "12"}, {"retries", "3"}};
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    assert_int_equal(calling(0)->send.timeout, 14);
    assert_int_equal(calling(0)->send.retry_cnt, 7);
    assert_int_equal(calling(0)->send.rnr_retry, VERBS_RNR_RETRIES);
    assert_int_equal(calling(0)->send.max_rd_atomic, 16);
    assert_int_equal(verbs_of(fabric)->gather, 1);
    assert_string_equal(fabric_note(fabric, "order"), "fence");
    dm_fabric_close(fabric);
    fake_reset();
    fake.vendor_id = SOFTWARE;
    fabric = fabric_open(NULL, 0);
    assert_int_equal(calling(0)->send.timeout, 16);
    assert_int_equal(verbs_of(fabric)->gather, 8);
    assert_string_equal(fabric_note(fabric, "order"), "wait");
    dm_fabric_close(fabric);
    fake_reset();
    fabric = fabric_open(settings, DM_ARRAY_LEN(settings));
    assert_int_equal(calling(0)->send.timeout, 12);
    assert_int_equal(calling(0)->send.retry_cnt, 3);
    dm_fabric_close(fabric);
}

static void inline_bytes_and_depth_are_what_the_device_gives_and_the_result_says_so(void **state) {
    (void)state;
    static const struct {
        const char *wanted, *given, *inline_bytes;
        uint32_t entries_most, inline_most;
        int queue_most;
    } cases[] = {
        {"1024", "1024", "220", 1 << 17, 1024, 1 << 15}, /* all of it */
        {"1024", "1024", "60", 1 << 17, 60, 1 << 15},    /* fewer inline bytes, by what it returns */
        {"8192", "8192", "110", 1 << 14, 1024, 1 << 15}, /* fewer inline bytes, by trying */
        {"32768", "8192", "55", 1 << 13, 1024, 1 << 15}, /* a shorter queue, and then fewer inline bytes */
        {"32768", "4096", "220", 1 << 17, 1024, 4096},   /* a shorter queue, by its limit */
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(cases); i++) {
        const struct dm_setting setting = {"depth", cases[i].wanted};
        fake_reset();
        fake.entries_most = cases[i].entries_most;
        fake.inline_most = cases[i].inline_most;
        fake.queue_most = cases[i].queue_most;
        struct dm_fabric *fabric = fabric_open(&setting, 1);
        assert_string_equal(fabric_note(fabric, "depth"), cases[i].given);
        assert_string_equal(fabric_note(fabric, "inline_max"), cases[i].inline_bytes);
        dm_fabric_close(fabric);
    }
}

static void replies_may_be_inline_too(void **state) {
    (void)state;
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    assert_int_equal(serving(0)->asked.cap.max_inline_data, 220);
    dm_fabric_close(fabric);
}

static void each_thread_has_a_domain_where_the_device_has_some(void **state) {
    (void)state;
    enum { ALL = THREADS + MNS * MN_CORES };
    static const struct {
        bool has_them;
        unsigned most, own;
        const char *said;
    } cases[] = {{true, FAKE_PARENTS, ALL, "one a thread"}, {true, 2, 2, "mixed"}, {false, 0, 0, "shared"}};
    for (size_t i = 0; i < DM_ARRAY_LEN(cases); i++) {
        fake_reset();
        fake.has_thread_domains = cases[i].has_them;
        fake.domains_most = cases[i].most;
        struct dm_fabric *fabric = fabric_open(NULL, 0);
        assert_int_equal(fake.domains_open, cases[i].own);
        assert_string_equal(fabric_note(fabric, "doorbell_registers"), cases[i].said);
        for (unsigned q = 0; i == 0 && q < fake.qp_count; q++) {
            assert_ptr_not_equal(fake.qps[q]->pd, &fake.pd);
            for (unsigned other = 0; other < q; other++) { /* of one thread if of one completion queue */
                bool is_same_thread = fake.qps[q]->asked.send_cq == fake.qps[other]->asked.send_cq;
                assert_int_equal(fake.qps[q]->pd == fake.qps[other]->pd, is_same_thread);
            }
        }
        assert_true(i == 0 || fake.qps[fake.qp_count - 1]->pd == &fake.pd);
        dm_fabric_close(fabric);
        assert_int_equal(fake.domains_open, 0);
    }
}

static void completion_queues_take_the_devices_vectors_in_turn(void **state) {
    (void)state;
    fake_reset();
    fake.vectors = 3;
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    assert_int_equal(fake.cq_count, THREADS + MNS * MN_CORES);
    for (unsigned i = 0; i < fake.cq_count; i++) {
        assert_int_equal(fake.cq_vectors[i], i % 3);
    }
    dm_fabric_close(fabric);
}

static void what_nodes_report_is_merged(void **state) {
    (void)state;
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    struct verbs_facts *facts = verbs_of(fabric)->facts;
    assert_string_equal(fabric_note(fabric, "line_atomic"), "assumed"); /* probe=0 */
    assert_string_equal(fabric_note(fabric, "chip_memory"), "none");
    facts[0].chip = facts[1].chip = VERBS_CHIP_DEVICE;
    facts[0].huge_pages = facts[1].huge_pages = 1;
    facts[0].whole_lines = facts[1].whole_lines = VERBS_HOLDS;
    assert_string_equal(fabric_note(fabric, "chip_memory"), "device");
    assert_string_equal(fabric_note(fabric, "huge_pages"), "yes");
    assert_string_equal(fabric_note(fabric, "line_atomic"), "yes");
    facts[1].chip = VERBS_CHIP_DRAM;
    facts[0].huge_pages = 0;
    facts[1].whole_lines = VERBS_ASSUMED;
    facts[1].write_order = VERBS_FAILS;
    strcpy((char *)facts[1].device, "fake_1");
    assert_string_equal(fabric_note(fabric, "chip_memory"), "mixed");
    assert_string_equal(fabric_note(fabric, "huge_pages"), "mixed");
    assert_string_equal(fabric_note(fabric, "line_atomic"), "assumed");
    assert_string_equal(fabric_note(fabric, "write_order"), "no");
    assert_string_equal(fabric_note(fabric, "mn_device"), "mixed");
    facts[1].mtu = 0; /* nothing is known of it: it says nothing */
    assert_string_equal(fabric_note(fabric, "chip_memory"), "device");
    dm_fabric_close(fabric);
}

/* With pin=on, those of one host do not bind their threads to the same ones. */
static void each_process_begins_at_another_processor(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"pin", "on"}};
    bool hosted[MNS + 1] = {false};
    struct dm_processes processes = {.count = MNS + 1, .hosted = hosted, .token = "a token", .listener = -1};
    for (unsigned node = 0; node < MNS; node++) {
        fake_reset();
        hosted[node] = true;
        processes.process = node;
        struct dm_fabric *fabric = fabric_open_as(&processes, settings, 1);
        assert_int_equal(verbs_of(fabric)->rt.cpu_next, node * MN_CORES);
        dm_fabric_close(fabric);
        hosted[node] = false;
    }
}

/* With libmlx5 and without it; the reason differs. */
static void masked_atomics_of_a_device_of_another_kind_are_emulated(void **state) {
    (void)state;
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    assert_memory_equal(fabric_note(fabric, "masked_atomics"), "emulated: ", strlen("emulated: "));
    assert_false(dm_sends_masked(fabric));
    assert_int_equal(verbs_of(fabric)->facts[0].masked, VERBS_FAILS);
    dm_fabric_close(fabric);
}

static void local_buffers_begin_at_a_huge_page(void **state) {
    (void)state;
    fake_reset();
    struct dm_fabric *fabric = fabric_open(NULL, 0);
    assert_int_equal((uintptr_t)verbs_of(fabric)->arena % VERBS_SLAB, 0);
    dm_fabric_close(fabric);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_connections_of_all_threads_are_made_before_the_measured_phase),
        cmocka_unit_test(a_lost_question_for_a_link_address_is_asked_again),
        cmocka_unit_test(the_threads_of_every_node_serve_in_turn),
        cmocka_unit_test(a_port_that_demands_it_gets_a_global_route),
        cmocka_unit_test(partition_service_level_and_traffic_class_are_those_of_the_options),
        cmocka_unit_test(the_path_mtu_is_the_smallest_of_both_ends_and_the_route),
        cmocka_unit_test(timeouts_and_order_depend_on_the_kind_of_device),
        cmocka_unit_test(inline_bytes_and_depth_are_what_the_device_gives_and_the_result_says_so),
        cmocka_unit_test(replies_may_be_inline_too),
        cmocka_unit_test(each_thread_has_a_domain_where_the_device_has_some),
        cmocka_unit_test(completion_queues_take_the_devices_vectors_in_turn),
        cmocka_unit_test(what_nodes_report_is_merged),
        cmocka_unit_test(each_process_begins_at_another_processor),
        cmocka_unit_test(masked_atomics_of_a_device_of_another_kind_are_emulated),
        cmocka_unit_test(local_buffers_begin_at_a_huge_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
