/* SPDX-License-Identifier: Apache-2.0
 *
 * What every transport promises of contexts: calls and handlers, background work, synchronisation of one node, time,
 * runs and stops. The same tests run on every transport that is compiled in.
 */
#include "tests/conformance/transport_world.h"

enum { ECHO = DM_METHOD_FIRST, REFUSE, RELAY, COUNT, SLOW, TOUCH, UNUSED };

#define HOUR_NS (UINT64_C(3600) * 1000000000)

static void method_add(struct tw *tw, unsigned node, unsigned method, dm_handler handler, void *arg) {
    int rc = dm_register(tw->fabric, node, method, handler, arg);
    assert_int_equal(rc, 0);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* Answers with the request backwards. */
static int handle_echo(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                       uint32_t *resp_len) {
    (void)arg;
    CHECK(*resp_len >= req_len);
    const unsigned char *from = req;
    unsigned char *to = resp;
    for (uint32_t i = 0; i < req_len; i++) {
        to[i] = from[req_len - 1 - i];
    }
    *resp_len = req_len;
    dm_charge(ctx, DM_WORK_LINE_COPY, 1 + req_len / DM_LINE);
    return 0;
}

static void check_echo(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    static const uint32_t sizes[] = {0, 1, 8, 100, 4096, DM_CALL_MAX};
    unsigned char *req = malloc(DM_CALL_MAX), *resp = malloc(DM_CALL_MAX + 1);
    for (size_t s = 0; req && resp && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct dm_account account = {0};
        dm_account_use(ctx, &account);
        for (uint32_t i = 0; i < sizes[s]; i++) {
            req[i] = (unsigned char)(i * 7 + i / 256);
        }
        memset(resp, 0xa5, DM_CALL_MAX + 1);
        uint32_t len = DM_CALL_MAX;
        CHECK_EQ(dm_call(ctx, 1, ECHO, req, sizes[s], resp, &len), 0);
        CHECK_EQ(len, sizes[s]);
        for (uint32_t i = 0; i < sizes[s]; i++) {
            CHECK_EQ(resp[i], req[sizes[s] - 1 - i]);
        }
        CHECK_EQ(resp[len], 0xa5);
        CHECK_EQ(account.round_trips, 1);
        CHECK_EQ(account.doorbells, 1);
        CHECK_EQ(account.verbs[DM_VERB_CALL], 1);
        CHECK_EQ(account.bytes_written, sizes[s]);
        CHECK_EQ(account.bytes_read, sizes[s]);
        dm_account_use(ctx, NULL);
    }
    free(req);
    free(resp);
}

static void a_call_carries_up_to_16_kilobytes_there_and_back(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    method_add(&tw, 1, ECHO, handle_echo, NULL);
    tw_run_one(&tw, check_echo, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_one(&tw, check_echo, NULL);
    tw_close(&tw);
}

static int handle_refuse(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                         uint32_t *resp_len) {
    (void)ctx;
    (void)arg;
    (void)resp;
    (void)resp_len;
    int code = 0;
    CHECK_EQ(req_len, sizeof(code));
    memcpy(&code, req, sizeof(code));
    return code;
}

static void check_codes(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    const int codes[] = {DM_ERR_CORRUPT, DM_ERR_NO_MEMORY, 0, DM_NOT_FOUND, 12345};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        CHECK_EQ(dm_call(ctx, 0, REFUSE, &codes[i], sizeof(codes[i]), NULL, NULL), codes[i]);
    }
}

static void the_handlers_value_comes_back_as_it_is(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    method_add(&tw, 0, REFUSE, handle_refuse, NULL);
    tw_run_one(&tw, check_codes, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_one(&tw, check_codes, NULL);
    tw_close(&tw);
}

static void check_bad_calls(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    static unsigned char big[DM_CALL_MAX + 1];
    uint32_t len = DM_CALL_MAX + 1;
    CHECK_EQ(dm_call(ctx, 0, UNUSED, NULL, 0, NULL, NULL), DM_ERR_ADDRESS);
    CHECK_EQ(dm_call(ctx, 0, DM_METHOD_MAX + 1, NULL, 0, NULL, NULL), DM_ERR_ADDRESS);
    CHECK_EQ(dm_call(ctx, 250, ECHO, NULL, 0, NULL, NULL), DM_ERR_ADDRESS);
    CHECK_EQ(dm_call(ctx, 0, ECHO, big, sizeof(big), NULL, NULL), DM_ERR_INVALID);
    CHECK_EQ(dm_call(ctx, 0, ECHO, NULL, 0, big, &len), DM_ERR_INVALID);
    uint64_t word;
    dm_post_read(ctx, tw_word(0, 0), &word, 8);
    CHECK_EQ(dm_call(ctx, 0, ECHO, NULL, 0, NULL, NULL), DM_ERR_INVALID);
    CHECK_EQ(dm_commit(ctx), 0);
    CHECK_EQ(dm_call(ctx, 0, ECHO, NULL, 0, NULL, NULL), 0);
}

static void a_call_that_cannot_be_made_fails_at_once(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    method_add(&tw, 0, ECHO, handle_echo, NULL);
    assert_int_equal(dm_register(tw.fabric, 0, ECHO, handle_echo, NULL), DM_EXISTS);
    assert_int_equal(dm_register(tw.fabric, 0, DM_METHOD_FIRST - 1, handle_echo, NULL), DM_ERR_INVALID);
    assert_int_equal(dm_register(tw.fabric, 0, DM_METHOD_MAX + 1, handle_echo, NULL), DM_ERR_INVALID);
    assert_int_equal(dm_register(tw.fabric, 250, ECHO, handle_echo, NULL), DM_ERR_INVALID);
    dm_fabric_measure(tw.fabric);
    tw_run_one(&tw, check_bad_calls, NULL);
    tw_close(&tw);
}

/* Counts on the next node with a verb, then calls that node, which does the same, as often as the request says. */
static int handle_relay(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    (void)arg;
    uint32_t hops = 0;
    CHECK_EQ(req_len, sizeof(hops));
    CHECK_EQ(*resp_len, sizeof(hops));
    memcpy(&hops, req, sizeof(hops));
    unsigned next = (dm_node(ctx) + 1) % TW_MNS;
    DM_TRY(dm_faa(ctx, tw_word(next, 0), 1, NULL));
    uint32_t below = 0, len = sizeof(below);
    if (hops > 1) {
        hops--;
        DM_TRY(dm_call(ctx, next, RELAY, &hops, sizeof(hops), &below, &len));
    }
    below++;
    memcpy(resp, &below, sizeof(below));
    *resp_len = sizeof(below);
    return 0;
}

static void check_relay(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    for (unsigned i = 0; i < 20; i++) {
        uint32_t hops = 7, came = 0, len = sizeof(came);
        CHECK_EQ(dm_call(ctx, 0, RELAY, &hops, sizeof(hops), &came, &len), 0);
        CHECK_EQ(came, 7);
    }
}

static void check_relay_sum(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t sum = 0;
    for (unsigned node = 0; node < TW_MNS; node++) {
        sum += tw_read_word(ctx, tw_word(node, 0));
    }
    CHECK_EQ(sum, 4 * 20 * 7);
}

static void a_handler_may_use_verbs_and_calls_to_other_nodes(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    for (unsigned node = 0; node < TW_MNS; node++) {
        method_add(&tw, node, RELAY, handle_relay, NULL);
    }
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, 4, false, check_relay, NULL);
    tw_run_one(&tw, check_relay_sum, NULL);
    tw_close(&tw);
}

/* Waits in the handler, so that there are far more requests than cores. */
static int handle_slow(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                       uint32_t *resp_len) {
    _Atomic unsigned *inside = arg;
    atomic_fetch_add(inside, 1);
    DM_TRY(dm_sleep(ctx, 1 + dm_prng_below(dm_random(ctx), 20000)));
    memcpy(resp, req, req_len);
    *resp_len = req_len;
    atomic_fetch_sub(inside, 1);
    return (int)req_len;
}

static void check_slow(struct dm_ctx *ctx, struct tw_client *client) {
    for (uint64_t i = 0; i < 30; i++) {
        uint64_t mine = (uint64_t)client->number << 32 | i, back = 0;
        uint32_t len = sizeof(back);
        CHECK_EQ(dm_call(ctx, TW_MNS, SLOW, &mine, sizeof(mine), &back, &len), (int)sizeof(mine));
        CHECK_EQ(back, mine);
    }
}

static void many_callers_each_get_their_own_answer(void **state) {
    _Atomic unsigned inside = 0;
    struct tw tw;
    tw_open_setup(&tw, state);
    method_add(&tw, TW_MNS, SLOW, handle_slow, &inside);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, 2 * TW_CLIENTS, false, check_slow, NULL);
    assert_int_equal(inside, 0);
    tw_close(&tw);
}

/* Adds 1 with the node's own CPU; the word of client n lies behind that. */
static int handle_count(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    (void)arg;
    (void)req;
    (void)req_len;
    (void)resp;
    (void)resp_len;
    dm_addr word = tw_word(dm_node(ctx), 0);
    uint64_t seen, found = 0;
    do {
        seen = found;
        found = dm_cpu_cas(ctx, word, seen, seen + 1);
    } while (found != seen);
    return 0;
}

static int handle_touch(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    (void)arg;
    struct touch {
        uint64_t offset;
        uint32_t len;
    } touch;
    CHECK_EQ(req_len, sizeof(touch));
    memcpy(&touch, req, sizeof(touch));
    dm_addr addr = dm_addr_make(dm_node(ctx), DM_DRAM, touch.offset);
    unsigned char bytes[512];
    dm_cpu_read(ctx, addr, bytes, touch.len);
    memcpy(resp, bytes, touch.len);
    *resp_len = touch.len;
    for (uint32_t i = 0; i < touch.len; i++) {
        bytes[i] = (unsigned char)(bytes[i] + 1);
    }
    dm_cpu_write(ctx, addr, bytes, touch.len);
    return 0;
}

static void check_count(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(dm_call(ctx, 0, COUNT, NULL, 0, NULL, NULL), 0);
    }
}

static void check_touch(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 0)), TW_CLIENTS * 50);
    for (uint32_t from = 0; from < 20; from++) {
        for (uint32_t len = 1; len < 200; len += 13) {
            struct touch {
                uint64_t offset;
                uint32_t len;
            } touch;
            memset(&touch, 0, sizeof(touch));
            touch.offset = 2048 + from;
            touch.len = len;
            unsigned char before[512], seen[512], after[512];
            uint32_t seen_len = sizeof(seen);
            CHECK_EQ(dm_read(ctx, dm_addr_make(0, DM_DRAM, 2048), before, sizeof(before)), 0);
            CHECK_EQ(dm_call(ctx, 0, TOUCH, &touch, sizeof(touch), seen, &seen_len), 0);
            CHECK_EQ(seen_len, len);
            CHECK_EQ(memcmp(seen, before + from, len), 0);
            CHECK_EQ(dm_read(ctx, dm_addr_make(0, DM_DRAM, 2048), after, sizeof(after)), 0);
            for (uint32_t i = 0; i < sizeof(after); i++) {
                unsigned inside = i >= from && i < from + len;
                CHECK_EQ(after[i], (unsigned char)(before[i] + inside));
            }
        }
    }
}

static void the_nodes_cpu_reads_and_writes_the_same_bytes_and_its_swaps_are_atomic(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    method_add(&tw, 0, COUNT, handle_count, NULL);
    method_add(&tw, 0, TOUCH, handle_touch, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, TW_CLIENTS, false, check_count, NULL);
    tw_run_one(&tw, check_touch, NULL);
    tw_close(&tw);
}

/* ---- background contexts ---------------------------------------------------------------------------------------- */

struct background {
    unsigned beats;
    int end;
    bool ended;
};

static void beat(struct dm_ctx *ctx, void *arg) {
    struct background *background = arg;
    do {
        dm_charge(ctx, DM_WORK_TRAIN_KEY, 100);
        background->end = dm_faa(ctx, tw_word(0, 0), 1, NULL);
        background->end = background->end < 0 ? background->end : dm_sleep(ctx, 1000);
        background->beats++;
    } while (background->end == 0);
    background->ended = true;
}

/* Waits until the background context has beaten so often. */
static void await_beats(struct dm_ctx *ctx, struct tw_client *client) {
    const uint64_t *wanted = client->shared;
    while (tw_read_word(ctx, tw_word(0, 0)) < *wanted) {
        CHECK_EQ(dm_sleep(ctx, 1000), 0);
    }
}

static void await_beats_and_stop(struct dm_ctx *ctx, struct tw_client *client) {
    await_beats(ctx, client);
    dm_fabric_stop(dm_fabric_of(ctx));
    CHECK_EQ(dm_sleep(ctx, 1), DM_ERR_STOPPED);
}

static void a_background_context_lives_through_runs_and_ends_at_the_stop(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct background background = {0};
    assert_int_equal(dm_spawn_background(tw.fabric, 1, beat, &background), 0);
    for (uint64_t wanted = 10; wanted <= 30; wanted += 10) {
        tw_run_one(&tw, await_beats, &wanted);
        assert_false(background.ended);
        assert_true(background.beats + 1 >= wanted); /* its last verb has been seen, its count may be next */
    }
    uint64_t wanted = 40;
    tw_run_clients_expecting(&tw, 1, true, await_beats_and_stop, &wanted, DM_ERR_STOPPED);
    assert_true(background.ended);
    assert_int_equal(background.end, DM_ERR_STOPPED);
    tw_close(&tw);
}

static void count_down(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    CHECK_EQ(dm_faa(ctx, tw_word(0, 0), 1, NULL), 0);
}

static void start_more(struct dm_ctx *ctx, struct tw_client *client) {
    for (unsigned i = 0; i < 20; i++) {
        CHECK_EQ(dm_spawn_background(dm_fabric_of(ctx), i % (TW_MNS + TW_SERVERS + TW_CNS), count_down, NULL), 0);
    }
    await_beats(ctx, client);
}

static void a_context_may_start_background_contexts_on_any_node(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    uint64_t wanted = 20;
    tw_run_one(&tw, start_more, &wanted);
    tw_close(&tw);
}

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

/* All on one thread: nobody comes between taking a ticket and standing in line. */
static void stand_in_line(struct dm_ctx *ctx, struct tw_client *client) {
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
        clients[i] = (struct tw_client){i, QUEUE + 1, &shared, stand_in_line};
        tw_spawn(&tw, tw_first_cn(&tw), 0, &clients[i]);
    }
    tw_run(&tw);
    assert_int_equal(shared.ordered, QUEUE);
    tw_close(&tw);
}

/* Even clients put, odd ones take; a shelf of one place. */
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

static void time_begins_with_the_measured_phase_and_a_sleep_lasts_at_least_as_said(void **state) {
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

static void a_sleeper_does_not_keep_its_thread_and_is_not_forgotten(void **state) {
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

static void tell_who(struct dm_ctx *ctx, struct tw_client *client) {
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

static void every_context_has_its_own_number_place_and_random_stream(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct seen seen;
    tw_run_clients(&tw, TW_CLIENTS, false, tell_who, &seen);
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

static int do_and_tell(struct dm_ctx *ctx, void *arg) {
    const int *value = arg;
    uint64_t word;
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), 0);
    return *value;
}

static void a_fabric_runs_as_often_as_one_likes(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_run(&tw); /* nobody there: over at once */
    for (int i = 0; i < 30; i++) {
        if (i == 10) {
            dm_fabric_measure(tw.fabric);
        }
        if (i == 20) {
            dm_fabric_setup(tw.fabric);
        }
        int rc = 1000;
        assert_int_equal(dm_fabric_do(tw.fabric, tw_first_cn(&tw), do_and_tell, &i, &rc, &tw.err), 0);
        assert_int_equal(rc, i);
    }
    assert_int_equal(dm_spawn(tw.fabric, 200, 0, tw_client_entry, NULL), DM_ERR_INVALID);
    assert_int_equal(dm_spawn(tw.fabric, 0, TW_MN_CORES, tw_client_entry, NULL), DM_ERR_INVALID);
    tw_close(&tw);
}

static int handle_forever(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                          uint32_t *resp_len) {
    (void)arg;
    (void)req;
    (void)req_len;
    (void)resp;
    (void)resp_len;
    return dm_sleep(ctx, HOUR_NS);
}

/* Each of five kinds of waiting without end; the last client ends it. */
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
        rc = rc == 0 ? dm_sleep(ctx, HOUR_NS) : rc;
        break;
    case 1:
        rc = dm_sleep(ctx, HOUR_NS);
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
    method_add(&tw, 0, SLOW, handle_forever, NULL);
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

static void contexts_that_wait_for_one_another_are_reported(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct shared shared[2];
    memset(shared, 0, sizeof(shared));
    tw_run_clients_expecting(&tw, 2, true, lock_both, shared, DM_ERR_IO);
    assert_non_null(strstr(tw.err.text, "2 contexts"));
    tw_close(&tw);
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
            CHECK_EQ(dm_call(ctx, 0, ECHO, &mark, 8, &old, &len), 0);
        }
        mark = dm_mix64(mark ^ old ^ dm_now(ctx));
    }
    marks[client->number] = mark;
}

static uint64_t history_of(const struct dm_transport_info *info, uint64_t seed) {
    uint64_t marks[TW_CLIENTS], sum = 0;
    struct tw tw;
    tw_open(&tw, info, tw_topology(), seed);
    method_add(&tw, 0, ECHO, handle_echo, NULL);
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
        TW(a_call_carries_up_to_16_kilobytes_there_and_back),
        TW(the_handlers_value_comes_back_as_it_is),
        TW(a_call_that_cannot_be_made_fails_at_once),
        TW(a_handler_may_use_verbs_and_calls_to_other_nodes),
        TW(many_callers_each_get_their_own_answer),
        TW(the_nodes_cpu_reads_and_writes_the_same_bytes_and_its_swaps_are_atomic),
        TW(a_background_context_lives_through_runs_and_ends_at_the_stop),
        TW(a_context_may_start_background_contexts_on_any_node),
        TW(a_mutex_lets_one_context_in_whatever_threads_they_run_on),
        TW(a_mutex_serves_its_waiters_in_order),
        TW(a_condition_hands_work_from_context_to_context),
        TW(a_condition_wakes_all_that_wait),
        TW(time_begins_with_the_measured_phase_and_a_sleep_lasts_at_least_as_said),
        TW(a_sleeper_does_not_keep_its_thread_and_is_not_forgotten),
        TW(every_context_has_its_own_number_place_and_random_stream),
        TW(many_clients_run_each_on_a_thread_of_its_own),
        TW(a_fabric_runs_as_often_as_one_likes),
        TW(a_stop_ends_every_wait),
        TW_NEEDS(contexts_that_wait_for_one_another_are_reported, DM_CAP_VIRTUAL_TIME),
        TW_NEEDS(virtual_time_repeats_itself_and_another_seed_gives_another_history, DM_CAP_VIRTUAL_TIME),
    };
    return tw_run_table("transport: contexts", rows, sizeof(rows) / sizeof(rows[0]));
}
