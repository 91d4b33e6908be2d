/* SPDX-License-Identifier: Apache-2.0
 *
 * What every transport promises of contexts: synchronisation of one node, time, runs and stops. The same tests run on
 * every transport that is compiled in.
 */
#include "conformance/transport_world.h"

enum { SLOW = DM_METHOD_FIRST, MIX };

/* ---- synchronisation -------------------------------------------------------------------------------------------- */

struct shared {
    struct dm_mutex mutex;
    struct dm_cond cond, other;
    unsigned inside, sum; /* under the mutex */
    unsigned tickets;
    unsigned order[64], ordered;
    bool open;
    _Atomic unsigned waiting, woken;
};

enum { ROUNDS = 60 };

static void take_turns(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_EQ(dm_mutex_lock(ctx, &shared->mutex), 0);
        CHECK_EQ(shared->inside++, 0);
        unsigned sum = shared->sum;
        CHECK(!dm_mutex_trylock(ctx, &shared->mutex));
        tw_read_word(ctx, tw_word(0, client->number)); /* lets others run */
        shared->sum = sum + 1;
        CHECK_EQ(--shared->inside, 0);
        dm_mutex_unlock(ctx, &shared->mutex);
    }
}

static void a_mutex_lets_one_context_in_whatever_threads_they_run_on(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared = {0};
    tw_run_clients(&tw, TW_CLIENTS, true, take_turns, &shared);
    assert_int_equal(shared.sum, TW_CLIENTS * ROUNDS);
    tw_close(&tw);
}

enum { QUEUE = 8 };

/* All on one thread: no other context runs between taking a ticket and queueing. */
static void queue_up(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    if (client->number == 0) {
        CHECK_EQ(dm_mutex_lock(ctx, &shared->mutex), 0);
        shared->open = true;
        while (shared->tickets < QUEUE) {
            CHECK_EQ(dm_sleep(ctx, 1000), 0);
        }
        dm_mutex_unlock(ctx, &shared->mutex);
        return;
    }
    while (!shared->open) {
        CHECK_EQ(dm_sleep(ctx, 1000), 0);
    }
    unsigned ticket = shared->tickets++;
    CHECK_EQ(dm_mutex_lock(ctx, &shared->mutex), 0);
    CHECK_EQ(shared->ordered, ticket);
    shared->ordered++;
    CHECK_EQ(dm_sleep(ctx, 1000), 0);
    dm_mutex_unlock(ctx, &shared->mutex);
}

static void a_mutex_serves_its_waiters_in_order(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared = {0};
    struct tw_client clients[QUEUE + 1];
    for (unsigned i = 0; i <= QUEUE; i++) {
        clients[i] = (struct tw_client){i, QUEUE + 1, &shared, queue_up};
        tw_spawn(&tw, tw_first_cn(&tw), 0, &clients[i]);
    }
    tw_run(&tw);
    assert_int_equal(shared.ordered, QUEUE);
    tw_close(&tw);
}

/* Even clients put, odd ones take; the buffer holds one item. */
static void put_and_take(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_EQ(dm_mutex_lock(ctx, &shared->mutex), 0);
        bool put = client->number % 2 == 0;
        while (shared->open == put) {
            CHECK_EQ(dm_cond_wait(ctx, put ? &shared->cond : &shared->other, &shared->mutex), 0);
        }
        shared->open = put;
        shared->sum += put;
        dm_cond_wake_one(ctx, put ? &shared->other : &shared->cond);
        dm_mutex_unlock(ctx, &shared->mutex);
    }
}

static void a_condition_hands_work_from_context_to_context(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared = {0};
    tw_run_clients(&tw, 8, true, put_and_take, &shared);
    assert_int_equal(shared.sum, 4 * ROUNDS);
    assert_false(shared.open);
    tw_close(&tw);
}

static void wait_for_all(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    CHECK_EQ(dm_mutex_lock(ctx, &shared->mutex), 0);
    if (++shared->sum == client->count) {
        shared->open = true;
        dm_cond_wake_all(ctx, &shared->cond);
    }
    while (!shared->open) {
        CHECK_EQ(dm_cond_wait(ctx, &shared->cond, &shared->mutex), 0);
    }
    shared->ordered++;
    dm_mutex_unlock(ctx, &shared->mutex);
}

static void a_condition_wakes_all_that_wait(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared = {0};
    tw_run_clients(&tw, TW_CLIENTS, true, wait_for_all, &shared);
    assert_int_equal(shared.ordered, TW_CLIENTS);
    tw_close(&tw);
}

/* ---- time and identity ------------------------------------------------------------------------------------------ */

static void check_time(struct dm_ctx *ctx, struct tw_client *client) {
    const struct tw *tw = client->shared;
    uint64_t before = dm_now(ctx);
    if (tw->info->caps & DM_CAP_VIRTUAL_TIME) {
        CHECK(before < 1000);
    }
    for (uint64_t ns = 1; ns < 1000000; ns *= 10) {
        CHECK_EQ(dm_sleep(ctx, ns), 0);
        uint64_t after = dm_now(ctx);
        CHECK(after >= before + ns);
        before = after;
    }
    CHECK_EQ(dm_sleep(ctx, 0), 0);
    CHECK(dm_now(ctx) >= before);
}

static void time_begins_with_the_measured_phase_and_a_sleep_lasts_at_least_its_duration(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    tw_run_one(&tw, check_time, &tw);
    tw_close(&tw);
}

/* Two on one thread: one sleeps long, the other works in short steps meanwhile. */
static void sleep_or_work(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    if (client->number == 0) {
        while (!shared->open) {
            CHECK_EQ(dm_sleep(ctx, 500000), 0);
            shared->sum++;
        }
        return;
    }
    for (unsigned i = 0; i < 2000 || shared->sum == 0; i++) {
        tw_read_word(ctx, tw_word(0, 0));
    }
    shared->open = true;
}

static void a_sleeper_frees_its_thread_and_is_woken(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared = {0};
    struct tw_client clients[2] = {{0, 2, &shared, sleep_or_work}, {1, 2, &shared, sleep_or_work}};
    tw_spawn(&tw, tw_first_cn(&tw), 0, &clients[0]);
    tw_spawn(&tw, tw_first_cn(&tw), 0, &clients[1]);
    tw_run(&tw);
    assert_true(shared.sum > 0);
    tw_close(&tw);
}

struct seen {
    unsigned id[TW_CLIENTS];
    uint64_t random[TW_CLIENTS];
};

static void record_identity(struct dm_ctx *ctx, struct tw_client *client) {
    struct seen *seen = client->shared;
    seen->id[client->number] = dm_ctx_id(ctx);
    seen->random[client->number] = dm_prng_u64(dm_random(ctx));
    CHECK_EQ(dm_node(ctx), TW_MNS + TW_SERVERS + client->number % TW_CNS);
    CHECK_EQ(dm_thread(ctx), client->number / TW_CNS % dm_thread_count(dm_fabric_of(ctx), dm_node(ctx)));
    CHECK_EQ(dm_topology(ctx)->clients, TW_CLIENTS);
    const unsigned char *local = dm_local_alloc(ctx, 200);
    CHECK(local != NULL);
    for (unsigned i = 0; local && i < 200; i++) {
        CHECK_EQ(local[i], 0);
    }
}

static void every_context_has_its_own_number_thread_and_random_stream(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct seen seen;
    tw_run_clients(&tw, TW_CLIENTS, false, record_identity, &seen);
    for (unsigned i = 0; i < TW_CLIENTS; i++) {
        assert_int_not_equal(seen.id[i], 0);
        for (unsigned j = 0; j < i; j++) {
            assert_int_not_equal(seen.id[i], seen.id[j]);
            assert_true(seen.random[i] != seen.random[j]);
        }
    }
    tw_close(&tw);
}

/* ---- runs and stops --------------------------------------------------------------------------------------------- */

static void add_one(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    for (unsigned i = 0; i < 10; i++) {
        CHECK_EQ(dm_faa(ctx, tw_word(0, 0), 1, NULL), 0);
    }
}

static void check_added(struct dm_ctx *ctx, struct tw_client *client) {
    const uint64_t *wanted = client->shared;
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), *wanted);
}

static void many_clients_run_each_on_a_thread_of_its_own(void **state) {
    enum { MANY = 640 };
    struct dm_topology topology = tw_topology();
    topology.clients = MANY;
    topology.clients_per_thread = 1;
    struct tw tw;
    tw_open(&tw, *state, topology, TW_SEED);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, MANY, false, add_one, NULL);
    uint64_t wanted = MANY * 10;
    tw_run_one(&tw, check_added, &wanted);
    tw_close(&tw);
}

static int read_and_return(struct dm_ctx *ctx, void *arg) {
    const int *value = arg;
    uint64_t word;
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), 0);
    return *value;
}

static void a_fabric_may_run_many_times(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run(&tw); /* no context: it ends at once */
    for (int i = 0; i < 30; i++) {
        if (i == 10) {
            dm_fabric_measure(tw.fabric);
        }
        if (i == 20) {
            dm_fabric_setup(tw.fabric);
        }
        int rc = 1000;
        assert_int_equal(dm_fabric_do(tw.fabric, tw_first_cn(&tw), read_and_return, &i, &rc, &tw.err), 0);
        assert_int_equal(rc, i);
    }
    assert_int_equal(dm_spawn(tw.fabric, 200, 0, tw_client_entry, NULL), DM_ERR_INVALID);
    assert_int_equal(dm_spawn(tw.fabric, 0, TW_MN_CORES, tw_client_entry, NULL), DM_ERR_INVALID);
    tw_close(&tw);
}

/* Five kinds of endless waits; the last client ends them. */
static void wait_for_ever(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    int rc = 0;
    if (client->number + 1 == client->count) {
        while (atomic_load(&shared->waiting) + 1 < client->count) {
            CHECK_EQ(dm_sleep(ctx, 1000), 0);
        }
        CHECK_EQ(dm_sleep(ctx, 1000000), 0); /* by now they most likely wait; the outcome is the same if not */
        dm_fabric_stop(dm_fabric_of(ctx));
        return;
    }
    atomic_fetch_add(&shared->waiting, 1);
    switch (client->number % 5) {
    case 0: /* one of them gets the mutex and keeps it */
        rc = dm_mutex_lock(ctx, &shared->mutex);
        rc = rc == 0 ? dm_sleep(ctx, TW_HOUR_NS) : rc;
        break;
    case 1:
        rc = dm_sleep(ctx, TW_HOUR_NS);
        break;
    case 2:
        while ((rc = dm_read(ctx, tw_word(0, 0), &(uint64_t){0}, 8)) == 0) {
        }
        break;
    case 3:
        rc = dm_call(ctx, 0, SLOW, NULL, 0, NULL, NULL);
        break;
    case 4: {
        struct dm_mutex own = {0};
        struct dm_cond never = {0};
        CHECK_EQ(dm_mutex_lock(ctx, &own), 0);
        rc = dm_cond_wait(ctx, &never, &own);
        break;
    }
    default:
        break;
    }
    CHECK_EQ(rc, DM_ERR_STOPPED);
    CHECK(dm_stopping(ctx));
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &(uint64_t){0}, 8), DM_ERR_STOPPED);
    uint32_t attempts = 0;
    CHECK_EQ(dm_retry(ctx, DM_RETRY_LOCK, &attempts), DM_ERR_STOPPED);
    atomic_fetch_add(&shared->woken, 1);
}

static void a_stop_ends_every_wait(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_method(&tw, 0, SLOW, tw_handle_never, NULL);
    dm_fabric_measure(tw.fabric);
    struct shared shared = {0};
    tw_run_clients_expecting(&tw, TW_CLIENTS, true, wait_for_ever, &shared, DM_ERR_STOPPED);
    assert_int_equal(shared.woken, TW_CLIENTS - 1);
    assert_true(dm_fabric_stopping(tw.fabric));
    tw_close(&tw);
}

static void lock_both(struct dm_ctx *ctx, struct tw_client *client) {
    struct shared *shared = client->shared;
    CHECK_EQ(dm_mutex_lock(ctx, &shared[client->number].mutex), 0);
    CHECK_EQ(dm_sleep(ctx, 1000), 0);
    (void)dm_mutex_lock(ctx, &shared[1 - client->number].mutex);
    CHECK(false);
}

static void contexts_that_wait_for_each_other_are_reported(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared[2];
    memset(shared, 0, sizeof(shared));
    tw_run_clients_expecting(&tw, 2, true, lock_both, shared, DM_ERR_IO);
    assert_non_null(strstr(tw.err.text, "2 contexts"));
    tw_close(&tw);
}

static int handle_mix(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                      uint32_t *resp_len) {
    (void)arg;
    uint64_t mark = 0;
    memcpy(&mark, req, req_len);
    mark = dm_mix64(mark ^ dm_now(ctx));
    memcpy(resp, &mark, sizeof(mark));
    *resp_len = sizeof(mark);
    return 0;
}

/* What a client did and when; all of it goes into one number. */
static void do_anything(struct dm_ctx *ctx, struct tw_client *client) {
    uint64_t *marks = client->shared;
    uint64_t mark = client->number;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t old = 0, choice = dm_prng_below(dm_random(ctx), 4);
        dm_addr word =
            tw_word((unsigned)dm_prng_below(dm_random(ctx), TW_MNS), (unsigned)dm_prng_below(dm_random(ctx), 4));
        if (choice == 0) {
            CHECK_EQ(dm_faa(ctx, word, client->number + 1, &old), 0);
        } else if (choice == 1) {
            CHECK_EQ(dm_cas(ctx, word, mark % 8, mark, &old), 0);
        } else if (choice == 2) {
            CHECK_EQ(dm_write(ctx, word, &mark, 8), 0);
        } else {
            uint32_t len = 8;
            CHECK_EQ(dm_call(ctx, 0, MIX, &mark, 8, &old, &len), 0);
        }
        mark = dm_mix64(mark ^ old ^ dm_now(ctx));
    }
    marks[client->number] = mark;
}

static uint64_t history_of(const struct dm_transport_info *info, uint64_t seed) {
    uint64_t marks[TW_CLIENTS], sum = 0;
    struct tw tw;
    tw_open(&tw, info, tw_topology(), seed);
    tw_method(&tw, 0, MIX, handle_mix, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, TW_CLIENTS, false, do_anything, marks);
    for (unsigned i = 0; i < TW_CLIENTS; i++) {
        sum = dm_mix64(sum ^ marks[i]);
    }
    tw_close(&tw);
    return sum;
}

static void virtual_time_repeats_itself_and_another_seed_gives_another_history(void **state) {
    uint64_t first = history_of(*state, 1);
    assert_true(first == history_of(*state, 1));
    assert_true(first != history_of(*state, 2));
}

int main(void) {
    static const struct tw_row rows[] = {
        TW(a_mutex_lets_one_context_in_whatever_threads_they_run_on),
        TW(a_mutex_serves_its_waiters_in_order),
        TW(a_condition_hands_work_from_context_to_context),
        TW(a_condition_wakes_all_that_wait),
        TW(time_begins_with_the_measured_phase_and_a_sleep_lasts_at_least_its_duration),
        TW(a_sleeper_frees_its_thread_and_is_woken),
        TW(every_context_has_its_own_number_thread_and_random_stream),
        TW(many_clients_run_each_on_a_thread_of_its_own),
        TW(a_fabric_may_run_many_times),
        TW(a_stop_ends_every_wait),
        TW_NEEDS(contexts_that_wait_for_each_other_are_reported, DM_CAP_VIRTUAL_TIME),
        TW_NEEDS(virtual_time_repeats_itself_and_another_seed_gives_another_history, DM_CAP_VIRTUAL_TIME),
    };
    return tw_run_table("transport: contexts", rows, sizeof(rows) / sizeof(rows[0]));
}
