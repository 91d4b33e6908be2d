/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault injection: clients that stop, nodes that fail, verbs that fail or are late; and rules that make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

enum { WORD = 4096, METHOD = DM_METHOD_FIRST };

static dm_addr word_at(unsigned node, unsigned index) {
    return dm_addr_make(node, DM_DRAM, WORD + index * 64);
}

static void rules_that_make_no_sense_are_refused_with_a_reason(void **state) {
    (void)state;
    static const struct {
        const char *rules, *said;
    } cases[] = {
        {"halt:client=0,verb=1", "'halt'"},
        {"stop", "'stop'"},
        {"stop:client=0", "'verb' is missing"},
        {"stop:verb=3", "'client' is missing"},
        {"stop:client=9,verb=1", "only 2 clients"},
        {"stop:client=0,verb=0", "numbered from 1"},
        {"stop:client=0,verb=x", "'x'"},
        {"stop:client=0,verb=1,for=0ns", "more than 0"},
        {"stop:client=0,client=1,verb=1", "given twice"},
        {"stop:client=,verb=1", "needs a value"},
        {"stop:client=0,verb=1,at=5us", "unknown key 'at'"},
        {"fail:node=1,at=5us", "only 1 memory nodes"},
        {"fail:node=0", "'at' is missing"},
        {"fail:node=0,at=5", "5"},
        {"delay:by=1us", "either 'p' or 'verb'"},
        {"delay:p=0.5", "'by' is missing"},
        {"delay:p=1.5,by=1us", "0 to 1"},
        {"delay:p=nan,by=1us", "nan"},
        {"delay:p=0.5,by=1us,kind=send", "'send'"},
        {"error:p=0.5,verb=1", "either 'p' or 'verb'"},
        {"error:p=0.5;;", "''"},
        {"delay:p=0.5,by=1us stop:client=0,verb=1", "1us stop"},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(cases); i++) {
        struct world world = {.clients = 2};
        world_set(&world, "faults", cases[i].rules);
        assert_int_equal(world_try_open(&world), DM_ERR_INVALID);
        if (!strstr(world.err.text, cases[i].said) || !strstr(world.err.text, "faults")) {
            fail_msg("%s: said '%s'", cases[i].rules, world.err.text);
        }
    }
}

static void too_many_rules_are_refused(void **state) {
    (void)state;
    char rules[40 * SIM_FAULTS_MAX] = "";
    for (int i = 0; i <= SIM_FAULTS_MAX; i++) {
        strcat(rules, "delay:p=0.5,by=1us;");
    }
    struct world world = {.clients = 1};
    world_set(&world, "faults", rules);
    assert_int_equal(world_try_open(&world), DM_ERR_INVALID);
}

/* Writes 1 to three words in one batch, then 2 to the first; records the results. */
struct writer {
    int rc[2];
    uint64_t ns[2];
    bool returned;
};

static void write_three(struct dm_ctx *ctx, void *arg) {
    struct writer *writer = arg;
    uint64_t one = 1, two = 2;
    for (unsigned i = 0; i < 3; i++) {
        dm_post_write(ctx, word_at(0, i), &one, sizeof(one));
    }
    writer->rc[0] = dm_commit(ctx);
    writer->ns[0] = dm_now(ctx);
    writer->rc[1] = dm_write(ctx, word_at(0, 0), &two, sizeof(two));
    writer->ns[1] = dm_now(ctx);
    writer->returned = true;
}

static void other_words(struct dm_ctx *ctx, void *arg) {
    bool *returned = arg;
    uint64_t old;
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(dm_faa(ctx, word_at(0, 9), 1, &old), 0);
    }
    *returned = true;
}

static void a_client_that_stops_for_good_has_sent_its_earlier_verbs(void **state) {
    (void)state;
    struct world world = {.clients = 2};
    struct writer writer = {.returned = false};
    bool other = false;
    world_set(&world, "faults", "stop:client=0,verb=3");
    world_open(&world);
    world_spawn(&world, 0, write_three, &writer);
    world_spawn(&world, 1, other_words, &other);
    world_run(&world);
    assert_false(writer.returned);
    assert_true(other);
    assert_int_equal(world_word(&world, 0, WORD), 1);
    assert_int_equal(world_word(&world, 0, WORD + 64), 1);
    assert_int_equal(world_word(&world, 0, WORD + 128), 0);
    assert_int_equal(world_word(&world, 0, WORD + 9 * 64), 50);
    world_close(&world);
}

static void write_two(struct dm_ctx *ctx, void *arg) {
    static const uint64_t ones[2] = {1, 1};
    (void)arg;
    dm_post_write(ctx, word_at(0, 0), &ones[0], sizeof(ones[0]));
    dm_post_write(ctx, word_at(0, 1), &ones[1], sizeof(ones[1]));
    (void)dm_commit(ctx);
}

/* Final reads must not come before what the client has sent, whatever delays that. */
static void a_run_ends_when_the_verbs_of_a_stopped_client_have_landed(void **state) {
    (void)state;
    struct world world = {.clients = 1};
    world_set(&world, "faults", "stop:client=0,verb=2; delay:p=1,by=1ms");
    world_open(&world);
    world_spawn(&world, 0, write_two, NULL);
    world_run(&world);
    assert_int_equal(world_word(&world, 0, WORD), 1);
    assert_int_equal(world_word(&world, 0, WORD + 64), 0);
    world_close(&world);
}

static void write_and_add(struct dm_ctx *ctx, void *arg) {
    struct writer *writer = arg;
    uint64_t one = 1;
    dm_post_write(ctx, word_at(0, 0), &one, sizeof(one));
    dm_post_masked_faa(ctx, word_at(0, 1), 1, 0, NULL);
    writer->rc[0] = dm_commit(ctx);
    writer->returned = true;
}

/* The context never returns; the copy of its batch is freed with the fabric (the sanitizer of leaks sees it). */
static void a_run_may_end_while_a_masked_atomic_is_emulated(void **state) {
    (void)state;
    struct world world = {.clients = 1, .emulates_masked = true};
    struct writer writer = {.returned = false};
    world_set(&world, "faults", "stop:client=0,verb=2");
    world_open(&world);
    world_spawn(&world, 0, write_and_add, &writer);
    world_run(&world);
    assert_false(writer.returned);
    assert_int_equal(world_word(&world, 0, WORD), 1);
    assert_int_equal(world_word(&world, 0, WORD + 64), 0);
    world_close(&world);
}

static void a_client_that_stops_for_a_while_continues_afterwards(void **state) {
    (void)state;
    struct world world = {.clients = 1};
    struct writer writer = {.returned = false};
    world_set(&world, "faults", "stop:client=0,verb=2,for=50us");
    world_open(&world);
    world_spawn(&world, 0, write_three, &writer);
    world_run(&world);
    assert_true(writer.returned);
    assert_int_equal(writer.rc[0], 0);
    assert_int_equal(writer.rc[1], 0);
    assert_in_range(writer.ns[0], 50000, 55000);
    assert_in_range(writer.ns[1] - writer.ns[0], 0, 5000);
    assert_int_equal(world_word(&world, 0, WORD), 2);
    world_close(&world);
}

static void a_stop_at_the_last_verb_of_a_batch_keeps_the_others_completions(void **state) {
    (void)state;
    struct world world = {.clients = 1};
    struct writer writer = {.returned = false};
    world_set(&world, "faults", "stop:client=0,verb=3,for=50us");
    world_open(&world);
    world_spawn(&world, 0, write_three, &writer);
    world_run(&world);
    assert_true(writer.returned);
    assert_int_equal(writer.rc[0], 0);
    assert_int_equal(world_word(&world, 0, WORD + 128), 1);
    world_close(&world);
}

static void a_failed_verb_fails_those_behind_it_on_its_queue_pair_only(void **state) {
    (void)state;
    struct world world = {.clients = 1};
    struct writer writer = {.returned = false};
    world_set(&world, "faults", "error:client=0,verb=2");
    world_open(&world);
    world_spawn(&world, 0, write_three, &writer);
    world_run(&world);
    assert_int_equal(writer.rc[0], DM_ERR_IO);
    assert_int_equal(writer.rc[1], 0);
    assert_int_equal(world_word(&world, 0, WORD), 2);
    assert_int_equal(world_word(&world, 0, WORD + 128), 0);
    world_close(&world);
}

static void async_then_wait(struct dm_ctx *ctx, void *arg) {
    int *rc = arg;
    uint64_t one = 1;
    dm_post_write(ctx, word_at(0, 0), &one, sizeof(one));
    rc[0] = dm_commit_async(ctx);
    assert_int_equal(dm_sleep(ctx, 20000), 0);
    rc[1] = dm_write(ctx, word_at(0, 1), &one, sizeof(one));
    rc[2] = dm_write(ctx, word_at(0, 2), &one, sizeof(one));
}

static void an_unsignalled_verb_s_error_shows_at_the_next_commit(void **state) {
    (void)state;
    struct world world = {.clients = 1};
    int rc[3];
    world_set(&world, "faults", "error:client=0,verb=1");
    world_open(&world);
    world_spawn(&world, 0, async_then_wait, rc);
    world_run(&world);
    assert_int_equal(rc[0], 0);
    assert_int_equal(rc[1], DM_ERR_IO);
    assert_int_equal(rc[2], 0);
    world_close(&world);
}

/* ---- nodes that fail -------------------------------------------------------------------------------------------- */

static int slow_handler(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    (void)arg;
    (void)req;
    (void)req_len;
    memset(resp, 7, 8);
    *resp_len = 8;
    return dm_sleep(ctx, 30000);
}

static int relay_handler(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                         uint32_t *resp_len) {
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    uint64_t one = 1;
    (void)dm_sleep(ctx, 30000);
    *(bool *)arg = true;
    return dm_write(ctx, word_at(1, 0), &one, sizeof(one));
}

struct seen {
    int before, verb, other, call;
    uint64_t verb_ns, call_ns;
};

static void meet_failed_node(struct dm_ctx *ctx, void *arg) {
    struct seen *seen = arg;
    uint64_t word = 5;
    seen->before = dm_write(ctx, word_at(0, 0), &word, sizeof(word));
    (void)dm_sleep(ctx, 100000);
    uint64_t begin = dm_now(ctx);
    seen->verb = dm_read(ctx, word_at(0, 0), &word, sizeof(word));
    seen->verb_ns = dm_now(ctx) - begin;
    seen->other = dm_write(ctx, word_at(1, 0), &word, sizeof(word));
    begin = dm_now(ctx);
    seen->call = dm_call(ctx, 0, METHOD, &word, 8, NULL, NULL);
    seen->call_ns = dm_now(ctx) - begin;
}

static void verbs_and_calls_to_a_failed_node_end_in_peer_failed_after_the_timeout(void **state) {
    (void)state;
    struct world world = {.mns = 2, .clients = 1};
    struct seen seen;
    world_set(&world, "faults", "fail:node=0,at=50us");
    world_set(&world, "peer_timeout", "200us");
    assert_int_equal(world_try_open(&world), 0);
    assert_int_equal(dm_register(world.fabric, 0, METHOD, slow_handler, NULL), 0);
    dm_fabric_measure(world.fabric);
    world_spawn(&world, 0, meet_failed_node, &seen);
    world_run(&world);
    assert_int_equal(seen.before, 0);
    assert_int_equal(seen.verb, DM_ERR_PEER);
    assert_in_range(seen.verb_ns, 200000, 205000);
    assert_int_equal(seen.other, 0);
    assert_int_equal(seen.call, DM_ERR_PEER);
    assert_in_range(seen.call_ns, 200000, 205000);
    world_close(&world);
}

static void call_once(struct dm_ctx *ctx, void *arg) {
    int *rc = arg;
    uint64_t word = 0;
    *rc = dm_call(ctx, 0, METHOD, &word, 8, NULL, NULL);
}

static void a_handler_of_a_failed_node_stops_and_its_callers_get_an_error(void **state) {
    (void)state;
    struct world world = {.mns = 2, .clients = 300};
    static int rc[300];
    bool went_on = false;
    world_set(&world, "faults", "fail:node=0,at=10us");
    assert_int_equal(world_try_open(&world), 0);
    assert_int_equal(dm_register(world.fabric, 0, METHOD, relay_handler, &went_on), 0);
    dm_fabric_measure(world.fabric);
    for (unsigned i = 0; i < 300; i++) { /* more than there are handler contexts: some wait in the queue */
        rc[i] = 0;
        world_spawn(&world, i, call_once, &rc[i]);
    }
    world_run(&world);
    for (unsigned i = 0; i < 300; i++) {
        assert_int_equal(rc[i], DM_ERR_PEER);
    }
    assert_false(went_on);
    assert_int_equal(world_word(&world, 1, WORD), 0);
    world_close(&world);
}

static void a_failed_node_stays_failed_for_the_checks_after_a_run(void **state) {
    (void)state;
    struct world world = {.mns = 2, .clients = 1};
    struct seen seen;
    int rc = 0;
    world_set(&world, "faults", "fail:node=0,at=50us");
    assert_int_equal(world_try_open(&world), 0);
    assert_int_equal(dm_register(world.fabric, 0, METHOD, slow_handler, NULL), 0);
    dm_fabric_measure(world.fabric);
    world_spawn(&world, 0, meet_failed_node, &seen);
    world_run(&world);
    dm_fabric_setup(world.fabric);
    world_spawn(&world, 0, call_once, &rc);
    world_run(&world);
    assert_int_equal(rc, DM_ERR_PEER);
    world_close(&world);
}

/* ---- late verbs ------------------------------------------------------------------------------------------------- */

struct timing {
    uint64_t total_ns;
    bool is_ordered;
};

static void ordered_writes(struct dm_ctx *ctx, void *arg) {
    struct timing *timing = arg;
    timing->is_ordered = true;
    uint64_t begin = dm_now(ctx);
    for (uint64_t round = 1; round <= 300; round++) {
        uint64_t seen = 0, first = 2 * round, second = 2 * round + 1;
        dm_post_write(ctx, word_at(0, 0), &first, sizeof(first));
        dm_post_write(ctx, word_at(0, 0), &second, sizeof(second));
        dm_post_read(ctx, word_at(0, 0), &seen, sizeof(seen));
        assert_int_equal(dm_commit(ctx), 0);
        timing->is_ordered = timing->is_ordered && seen == second;
    }
    timing->total_ns = dm_now(ctx) - begin;
}

static struct timing timing_with(const char *faults, uint64_t seed) {
    struct world world = {.clients = 1, .seed = seed};
    struct timing timing;
    world_set(&world, "faults", faults);
    world_open(&world);
    world_spawn(&world, 0, ordered_writes, &timing);
    world_run(&world);
    world_close(&world);
    return timing;
}

static void delayed_verbs_keep_their_order_and_depend_on_the_seed_only(void **state) {
    (void)state;
    struct timing none = timing_with("", 1), some = timing_with("delay:p=0.1,by=20us,kind=write", 1);
    assert_true(none.is_ordered && some.is_ordered);
    /* 600 writes, a tenth of them late by 20 us: 1.2 ms in expectation, some of it side by side. */
    assert_in_range(some.total_ns - none.total_ns, 700000, 1600000);
    assert_int_equal(timing_with("delay:p=0.1,by=20us,kind=write", 1).total_ns, some.total_ns);
    assert_int_not_equal(timing_with("delay:p=0.1,by=20us,kind=write", 2).total_ns, some.total_ns);
    assert_int_equal(timing_with("delay:p=1,by=20us,kind=cas", 1).total_ns, none.total_ns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_that_make_no_sense_are_refused_with_a_reason),
        cmocka_unit_test(too_many_rules_are_refused),
        cmocka_unit_test(a_client_that_stops_for_good_has_sent_its_earlier_verbs),
        cmocka_unit_test(a_run_ends_when_the_verbs_of_a_stopped_client_have_landed),
        cmocka_unit_test(a_run_may_end_while_a_masked_atomic_is_emulated),
        cmocka_unit_test(a_client_that_stops_for_a_while_continues_afterwards),
        cmocka_unit_test(a_stop_at_the_last_verb_of_a_batch_keeps_the_others_completions),
        cmocka_unit_test(a_failed_verb_fails_those_behind_it_on_its_queue_pair_only),
        cmocka_unit_test(an_unsignalled_verb_s_error_shows_at_the_next_commit),
        cmocka_unit_test(verbs_and_calls_to_a_failed_node_end_in_peer_failed_after_the_timeout),
        cmocka_unit_test(a_handler_of_a_failed_node_stops_and_its_callers_get_an_error),
        cmocka_unit_test(a_failed_node_stays_failed_for_the_checks_after_a_run),
        cmocka_unit_test(delayed_verbs_keep_their_order_and_depend_on_the_seed_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
