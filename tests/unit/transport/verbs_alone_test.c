/* SPDX-License-Identifier: Apache-2.0
 *
 * order=alone: verbs that change something are outstanding alone on their connection, and contexts that share it take
 * turns. libibverbs and the device are replaced (fake_work.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/transport/fake_work.h"

#include "conformance/transport_world.h"
#include "transport/fabric.h"
#include "transport/verbs/verbs.h"

enum { CN = 1, CONTEXTS = 4, ALL = 400, POLLS_MOST = 8 };

static struct {
    unsigned polls_wanted, polls; /* after which what was posted completes */
    unsigned done[CONTEXTS], all, outstanding_most;
} seen;

static unsigned changes_in(const struct ibv_send_wr *wr) {
    unsigned count = 0;
    for (; wr; wr = wr->next) {
        count += wr->opcode != IBV_WR_RDMA_READ;
    }
    return count;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    unsigned at_once = changes_in(wr) + ((struct fake_cq *)qp->send_cq)->count;
    seen.outstanding_most = at_once > seen.outstanding_most ? at_once : seen.outstanding_most;
    fake_work(qp, wr);
    seen.polls = 0;
    *bad = NULL;
    return 0;
}

/* What is posted completes after some polls, so that other contexts ask for the connection meanwhile. */
static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    bool is_empty = ((struct fake_cq *)cq)->count == 0; /* as those of threads that serve, which poll too */
    return !is_empty && ++seen.polls >= seen.polls_wanted ? fake_poll_cq(cq, count, wc) : 0;
}

static dm_addr word_at(unsigned i) {
    return dm_addr_make(0, DM_DRAM, 64 + 8 * (uint64_t)i);
}

/* As one that waits for a lock: it asks again at once. */
static void spin_main(struct dm_ctx *ctx, void *arg) {
    unsigned *done = arg;
    uint64_t old;
    while (seen.all < ALL) {
        CHECK_EQ(dm_cas(ctx, word_at(0), 1, 2, &old), 0);
        ++*done;
        seen.all++;
    }
}

/* Whenever a completion arrives, while contexts wait or while one of them is about to ask, all get their share: one
 * that never does may be the holder of the lock that the others wait for. */
static void check_turns(unsigned polls) {
    const struct dm_setting settings[] = {{"probe", "0"}, {"order", "alone"}, {"yield_every", "1"}};
    struct dm_fabric_config config = {
        .transport = "verbs",
        .topology = {.mns = 1,
                     .mn_cores = 1,
                     .cns = 1,
                     .clients = CONTEXTS,
                     .clients_per_thread = CONTEXTS,
                     .mn_bytes = 1 << 20},
        .chunk_bytes = 1 << 16,
        .settings = settings,
        .setting_count = DM_ARRAY_LEN(settings),
    };
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    fake_reset();
    fake.post_send = post_send;
    fake.poll_cq = poll_cq;
    memset(&seen, 0, sizeof(seen));
    seen.polls_wanted = polls;
    if (dm_fabric_open(&config, &fabric, &err) < 0 || dm_fabric_connect(fabric, &err) < 0) {
        fail_msg("%s", err.text);
    }
    for (unsigned i = 0; i < CONTEXTS; i++) {
        assert_int_equal(dm_spawn(fabric, CN, 0, spin_main, &seen.done[i]), 0);
    }
    assert_int_equal(dm_fabric_run(fabric, &err), 0);
    tw_raise();
    assert_int_equal(seen.outstanding_most, 1);
    for (unsigned i = 0; i < CONTEXTS; i++) {
        assert_in_range(seen.done[i], ALL / CONTEXTS - 2, ALL / CONTEXTS + 2);
    }
    dm_fabric_close(fabric);
}

static void contexts_of_a_connection_take_turns(void **state) {
    (void)state;
    for (unsigned polls = 1; polls <= POLLS_MOST; polls++) {
        check_turns(polls);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_of_a_connection_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
