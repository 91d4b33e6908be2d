/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracing: each verb, call and wait is reported once, with ordered times, and tracing changes nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check/verb_log.h"
#include "unit/transport/sim_world.h"

static void keep(void *arg, const struct dm_trace_event *event) {
    ck_verb_log_add(arg, event, CK_NO_CLIENT);
}

static dm_addr word_at(uint64_t offset) {
    return dm_addr_make(0, DM_DRAM, 4096 + offset);
}

/* A batch of four, an unsignalled write, and an atomic that fails: six verbs. */
static void six_verbs(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    char line[192] = {0}, read[192];
    uint64_t old = 0, value = 7;
    dm_post_write(ctx, word_at(0), line, sizeof(line));
    dm_post_cas(ctx, word_at(256), 0, 5, &old);
    dm_post_faa(ctx, word_at(264), 3, &old);
    dm_post_read(ctx, word_at(0), read, sizeof(read));
    assert_int_equal(dm_commit(ctx), 0);
    dm_post_write(ctx, word_at(512), &value, sizeof(value));
    assert_int_equal(dm_commit_async(ctx), 0);
    assert_int_equal(dm_cas(ctx, word_at(256), 9, 1, &old), 0);
}

static const struct ck_verb *find(const struct ck_verb_log *verbs, unsigned kind, unsigned number) {
    for (size_t i = 0; i < verbs->count; i++) {
        if (verbs->items[i].event.kind == kind && number-- == 0) {
            return &verbs->items[i];
        }
    }
    fail_msg("no event of kind %u", kind);
    return NULL;
}

static void atomics_check(const struct ck_verb_log *verbs) {
    const struct dm_trace_event *first = &find(verbs, DM_VERB_CAS, 0)->event;
    const struct dm_trace_event *second = &find(verbs, DM_VERB_CAS, 1)->event;
    assert_true(first->has_found && first->is_swapped && first->found == 0 && first->op.swap == 5);
    assert_true(second->has_found && !second->is_swapped && second->found == 5 && second->op.compare == 9);
    assert_true(second->batch > first->batch);
    assert_int_equal(find(verbs, DM_VERB_READ, 0)->event.batch, first->batch);
    assert_false(find(verbs, DM_VERB_WRITE, 1)->event.is_waited);
}

static void each_verb_is_traced_once_with_its_stages_in_order(void **state) {
    (void)state;
    struct ck_verb_log verbs = {.count = 0};
    struct world world = {.clients = 1};
    world_open(&world);
    dm_fabric_trace(world.fabric, keep, &verbs);
    uint64_t before = dm_verb_total(world.fabric);
    world_spawn(&world, 0, six_verbs, NULL);
    world_run(&world);
    assert_int_equal(verbs.count, 6);
    assert_int_equal(dm_verb_total(world.fabric) - before, 6);
    for (size_t i = 0; i < verbs.count; i++) {
        const struct dm_trace_event *event = &verbs.items[i].event;
        assert_true(event->posted_ns < event->arrived_ns && event->arrived_ns <= event->effect_ns);
        assert_true(event->effect_ns <= event->landed_ns && event->landed_ns < event->done_ns);
        assert_int_equal(event->outcome, 0);
        assert_int_equal(event->target, 0);
        assert_int_equal(event->node, 1);
    }
    atomics_check(&verbs);
    ck_verb_log_fini(&verbs);
    world_close(&world);
}

static void tracing_changes_no_time(void **state) {
    (void)state;
    uint64_t end_ns[2];
    for (int traced = 0; traced < 2; traced++) {
        struct ck_verb_log verbs = {.count = 0};
        struct world world = {.clients = 3, .per_thread = 3};
        world_open(&world);
        dm_fabric_trace(world.fabric, traced ? keep : NULL, &verbs);
        for (unsigned client = 0; client < 3; client++) {
            world_spawn(&world, client, six_verbs, NULL);
        }
        world_run(&world);
        end_ns[traced] = world_ns(&world);
        assert_int_equal(verbs.count > 0, traced);
        ck_verb_log_fini(&verbs);
        world_close(&world);
    }
    assert_int_equal(end_ns[0], end_ns[1]);
}

static int six_verbs_in_set_up(struct dm_ctx *ctx, void *arg) {
    six_verbs(ctx, arg);
    return 0;
}

static void the_set_up_phase_is_not_traced(void **state) {
    (void)state;
    int rc = -1;
    struct ck_verb_log verbs = {.count = 0};
    struct world world = {.clients = 1};
    assert_int_equal(world_try_open(&world), 0);
    dm_fabric_trace(world.fabric, keep, &verbs);
    assert_int_equal(dm_fabric_do(world.fabric, 1, six_verbs_in_set_up, NULL, &rc, NULL), 0);
    assert_int_equal(rc, 0);
    assert_int_equal(verbs.count, 0);
    world_close(&world);
}

static int answer(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    (void)arg;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    dm_charge(ctx, DM_WORK_NODE_PROBE, 100);
    return DM_EXISTS;
}

static struct dm_mutex shared_mutex;

static void call_and_lock(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    assert_int_equal(dm_mutex_lock(ctx, &shared_mutex), 0);
    assert_int_equal(dm_call(ctx, 0, 20, "abc", 3, NULL, NULL), DM_EXISTS);
    dm_mutex_unlock(ctx, &shared_mutex);
}

static void calls_and_waits_are_traced_with_their_times(void **state) {
    (void)state;
    struct ck_verb_log verbs = {.count = 0};
    struct world world = {.clients = 2, .per_thread = 2};
    shared_mutex = (struct dm_mutex){.held = false};
    assert_int_equal(world_try_open(&world), 0);
    assert_int_equal(dm_register(world.fabric, 0, 20, answer, NULL), 0);
    dm_fabric_measure(world.fabric);
    dm_fabric_trace(world.fabric, keep, &verbs);
    world_spawn(&world, 0, call_and_lock, NULL);
    world_spawn(&world, 1, call_and_lock, NULL);
    world_run(&world);
    assert_int_equal(verbs.count, 3);
    const struct dm_trace_event *wait = &find(&verbs, DM_TRACE_WAIT, 0)->event;
    for (unsigned i = 0; i < 2; i++) {
        const struct dm_trace_event *call = &find(&verbs, DM_VERB_CALL, i)->event;
        assert_true(call->posted_ns < call->arrived_ns && call->arrived_ns < call->effect_ns);
        assert_true(call->effect_ns < call->done_ns);
        assert_int_equal(call->outcome, DM_EXISTS);
        assert_int_equal(call->method, 20);
        assert_int_equal(call->len, 3);
    }
    assert_true(wait->posted_ns < wait->done_ns);
    assert_true(wait->done_ns >= find(&verbs, DM_VERB_CALL, 0)->event.done_ns);
    ck_verb_log_fini(&verbs);
    world_close(&world);
}

static void a_client_that_a_fault_stops_is_traced_and_so_are_its_earlier_verbs(void **state) {
    (void)state;
    struct ck_verb_log verbs = {.count = 0};
    struct world world = {.clients = 1};
    world_set(&world, "faults", "stop:client=0,verb=6");
    world_open(&world);
    dm_fabric_trace(world.fabric, keep, &verbs);
    world_spawn(&world, 0, six_verbs, NULL);
    world_run(&world);
    assert_int_equal(find(&verbs, DM_TRACE_STOP, 0)->event.outcome, DM_ERR_STOPPED);
    assert_int_equal(verbs.count, 6); /* five verbs and the stop */
    ck_verb_log_fini(&verbs);
    world_close(&world);
}

static void on_local_verbs_are_traced_without_a_responder(void **state) {
    (void)state;
    struct ck_verb_log verbs = {.count = 0};
    struct dm_err err = {0};
    const struct dm_fabric_config config = {
        .transport = "local",
        .seed = 1,
        .topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 1, .clients_per_thread = 1, .mn_bytes = 1 << 22},
    };
    struct dm_fabric *fabric;
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), 0);
    dm_fabric_measure(fabric);
    dm_fabric_trace(fabric, keep, &verbs);
    assert_int_equal(dm_spawn(fabric, 1, 0, six_verbs, NULL), 0);
    assert_int_equal(dm_fabric_run(fabric, &err), 0);
    assert_int_equal(verbs.count, 6);
    for (size_t i = 0; i < verbs.count; i++) {
        assert_true(verbs.items[i].event.posted_ns <= verbs.items[i].event.done_ns);
        assert_int_equal(verbs.items[i].event.landed_ns, 0);
    }
    atomics_check(&verbs);
    ck_verb_log_fini(&verbs);
    dm_fabric_close(fabric);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verb_is_traced_once_with_its_stages_in_order),
        cmocka_unit_test(tracing_changes_no_time),
        cmocka_unit_test(the_set_up_phase_is_not_traced),
        cmocka_unit_test(calls_and_waits_are_traced_with_their_times),
        cmocka_unit_test(a_client_that_a_fault_stops_is_traced_and_so_are_its_earlier_verbs),
        cmocka_unit_test(on_local_verbs_are_traced_without_a_responder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
