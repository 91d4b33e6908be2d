/* SPDX-License-Identifier: Apache-2.0
 *
 * What contexts of one thread wait for comes, or they return: more of them than call slots, after a stop and where
 * verbs are alone on their connection; a doorbell that fails. libibverbs and the device are replaced (fake_work.h).
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/transport/fake_work.h"

#include "common/compiler.h"
#include "conformance/transport_world.h"
#include "transport/fabric.h"

enum { MN, CN, CONTEXTS = 16, ALL = 600, POLLS_MOST = 8 };

static struct {
    pthread_mutex_t lock; /* of the device, which threads of both nodes use */
    unsigned polls_wanted, polls;
    unsigned calls, stop_at; /* the call after which the run is stopped; 0: none */
    bool refuses;            /* the device takes no lists of work requests */
    struct dm_fabric *fabric;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    if (world.refuses && wr->next) {
        *bad = wr;
        return ENOMEM;
    }
    pthread_mutex_lock(&world.lock);
    fake_work(qp, wr);
    pthread_mutex_unlock(&world.lock);
    *bad = NULL;
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    pthread_mutex_lock(&world.lock);
    int rc = fake_keep_recv(qp, wr, bad);
    pthread_mutex_unlock(&world.lock);
    return rc;
}

/* What is there is found after some polls, one at a time, so that contexts ask for slots and the connection meanwhile.
 */
static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    int found = 0;
    (void)count;
    pthread_mutex_lock(&world.lock);
    if (((struct fake_cq *)cq)->count > 0 && ++world.polls >= world.polls_wanted) {
        world.polls = 0;
        found = fake_poll_cq(cq, 1, wc);
    }
    if (((struct fake_cq *)cq)->count > 0) {
        fake_raise(cq); /* for a thread that is about to sleep */
    }
    pthread_mutex_unlock(&world.lock);
    return found;
}

static int answer(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    (void)ctx;
    (void)arg;
    memcpy(resp, req, req_len);
    *resp_len = req_len;
    return 0;
}

/* Calls, and every third time a verb that is alone on the connection. */
static void caller_main(struct dm_ctx *ctx, void *arg) {
    const unsigned *number = arg;
    int rc = 0;
    for (unsigned i = *number; rc == 0 && world.calls < ALL; i++) {
        uint64_t old, asked = i, answered = 0;
        uint32_t bytes = sizeof(answered);
        rc = dm_call(ctx, MN, DM_METHOD_FIRST, &asked, sizeof(asked), &answered, &bytes);
        if (rc == 0) {
            CHECK_EQ(answered, asked);
            world.calls++;
        }
        if (rc == 0 && world.stop_at > 0 && world.calls >= world.stop_at) {
            dm_fabric_stop(world.fabric);
        } else if (rc == 0 && i % 3 == 0) {
            rc = dm_faa(ctx, dm_addr_make(MN, DM_DRAM, 64), 1, &old);
        }
    }
    CHECK(rc == 0 || (world.stop_at > 0 && rc == DM_ERR_STOPPED));
}

/* A fabric of one compute node with one thread, and a memory node that answers calls. */
static void world_open(const struct dm_setting *settings, size_t count, unsigned contexts) {
    const struct dm_fabric_config config = {
        .transport = "verbs",
        .topology = {.mns = 1,
                     .mn_cores = 1,
                     .cns = 1,
                     .clients = contexts,
                     .clients_per_thread = contexts,
                     .mn_bytes = 1 << 20},
        .chunk_bytes = 1 << 16,
        .settings = settings,
        .setting_count = count,
    };
    struct dm_err err = {0};
    fake_reset();
    fake.post_send = post_send;
    fake.post_recv = post_recv;
    fake.poll_cq = poll_cq;
    world.polls_wanted = world.polls = world.calls = world.stop_at = 0;
    world.refuses = false;
    if (dm_fabric_open(&config, &world.fabric, &err) < 0 ||
        dm_register(world.fabric, MN, DM_METHOD_FIRST, answer, NULL) != 0 ||
        dm_fabric_connect(world.fabric, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void check_all_return(const char *slots, const char *order, unsigned polls, unsigned stop_at) {
    const struct dm_setting settings[] = {{"probe", "0"},           {"order", order}, {"yield_every", "1"},
                                          {"call_slots", slots},    {"spin", "1us"},  {"timeout", "1000s"},
                                          {"call_timeout", "1000s"}};
    unsigned numbers[CONTEXTS];
    struct dm_err err = {0};
    world_open(settings, DM_ARRAY_LEN(settings), CONTEXTS);
    world.polls_wanted = polls;
    world.stop_at = stop_at;
    for (unsigned i = 0; i < CONTEXTS; i++) {
        numbers[i] = i;
        assert_int_equal(dm_spawn(world.fabric, CN, 0, caller_main, &numbers[i]), 0);
    }
    assert_int_equal(dm_fabric_run(world.fabric, &err), stop_at > 0 ? DM_ERR_STOPPED : 0);
    tw_raise();
    assert_true(world.calls >= (stop_at > 0 ? stop_at : ALL));
    dm_fabric_close(world.fabric);
}

static void a_stop_wakes_all_that_wait_for_a_slot(void **state) {
    (void)state;
    for (unsigned stop_at = 1; stop_at <= 3 * CONTEXTS; stop_at += 5) {
        check_all_return("4", "fence", 1, stop_at);
        check_all_return("1", "fence", 2, stop_at);
    }
}

static void contexts_that_post_alone_get_slots(void **state) {
    (void)state;
    for (unsigned polls = 1; polls <= POLLS_MOST; polls++) {
        check_all_return("1", "alone", polls, 0);
        check_all_return("4", "alone", polls, 0);
    }
}

static void large_batch_main(struct dm_ctx *ctx, void *arg) {
    uint64_t words[DM_BATCH_MAX];
    (void)arg;
    for (unsigned i = 0; i < DM_BATCH_MAX; i++) {
        dm_post_read(ctx, dm_addr_make(MN, DM_DRAM, 64), &words[i], sizeof(words[i]));
    }
    CHECK_EQ(dm_commit(ctx), DM_ERR_IO);
}

/* Batches are held for one doorbell, which is rung when there are no work requests left for the third one. */
static void a_batch_does_not_wait_on_a_connection_that_broke(void **state) {
    enum { HOLDERS = 4 };
    const struct dm_setting settings[] = {{"probe", "0"}, {"gather", "1024"}, {"depth", "4096"}, {"timeout", "1000s"}};
    struct dm_err err = {0};
    (void)state;
    world_open(settings, DM_ARRAY_LEN(settings), HOLDERS);
    world.refuses = true;
    for (unsigned i = 0; i < HOLDERS; i++) {
        assert_int_equal(dm_spawn(world.fabric, CN, 0, large_batch_main, NULL), 0);
    }
    assert_int_equal(dm_fabric_run(world.fabric, &err), DM_ERR_IO);
    tw_raise();
    dm_fabric_close(world.fabric);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_wakes_all_that_wait_for_a_slot),
        cmocka_unit_test(contexts_that_post_alone_get_slots),
        cmocka_unit_test(a_batch_does_not_wait_on_a_connection_that_broke),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
