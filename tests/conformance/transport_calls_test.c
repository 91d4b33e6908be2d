/* SPDX-License-Identifier: Apache-2.0
 *
 * What every transport promises of calls, of the contexts that serve them, and of background contexts. The same tests
 * run on every transport that is compiled in.
 */
#include "conformance/transport_world.h"

enum { ECHO = DM_METHOD_FIRST, REFUSE, RELAY, COUNT, SLOW, TOUCH, UNUSED };

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
    tw_method(&tw, 1, ECHO, handle_echo, NULL);
    tw_run_one(&tw, check_echo, NULL);
    dm_fabric_measure(tw.fabric);
    tw_run_one(&tw, check_echo, NULL);
    tw_close(&tw);
}

static int handle_once(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                       uint32_t *resp_len) {
    _Atomic uint64_t *counts = arg;
    unsigned number;
    (void)ctx;
    CHECK_EQ(req_len, sizeof(number));
    memcpy(&number, req, sizeof(number));
    uint64_t count = atomic_fetch_add(&counts[number % TW_CLIENTS], 1);
    memcpy(resp, &count, sizeof(count));
    *resp_len = sizeof(count);
    return 0;
}

static void check_calls_once(struct dm_ctx *ctx, struct tw_client *client) {
    enum { ROUNDS = 100 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t count = UINT64_MAX;
        uint32_t len = sizeof(count);
        CHECK_EQ(dm_call(ctx, 1, COUNT, &client->number, sizeof(client->number), &count, &len), 0);
        CHECK_EQ(count, round);
    }
}

/* Also where a device delivers a message twice, because it resent it. */
static void calls_take_effect_once(void **state) {
    struct tw tw;
    static _Atomic uint64_t counts[TW_CLIENTS];
    for (unsigned i = 0; i < TW_CLIENTS; i++) {
        atomic_store(&counts[i], 0);
    }
    tw_open_setup(&tw, state);
    tw_method(&tw, 1, COUNT, handle_once, (void *)counts);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, TW_CLIENTS, false, check_calls_once, NULL);
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

static void the_value_of_the_handler_is_returned_unchanged(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_method(&tw, 0, REFUSE, handle_refuse, NULL);
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

static void an_invalid_call_fails_at_once(void **state) {
    struct tw tw;
    tw_open_setup(&tw, state);
    tw_method(&tw, 0, ECHO, handle_echo, NULL);
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
        tw_method(&tw, node, RELAY, handle_relay, NULL);
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
    tw_method(&tw, TW_MNS, SLOW, handle_slow, &inside);
    dm_fabric_measure(tw.fabric);
    tw_run_clients(&tw, 2 * TW_CLIENTS, false, check_slow, NULL);
    assert_int_equal(inside, 0);
    tw_close(&tw);
}

/* Adds 1 with the node's own CPU; the word of client n follows it. */
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
    tw_method(&tw, 0, COUNT, handle_count, NULL);
    tw_method(&tw, 0, TOUCH, handle_touch, NULL);
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

static void a_background_context_lives_through_runs(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct background background = {0};
    assert_int_equal(dm_spawn_background(tw.fabric, 1, beat, &background), 0);
    for (uint64_t wanted = 10; wanted <= 30; wanted += 10) {
        tw_run_one(&tw, await_beats, &wanted);
        assert_false(background.ended);
        assert_true(background.beats + 1 >= wanted); /* its last verb has been seen, its count may be next */
    }
    tw_close(&tw);
}

static void beat_once_and_sleep(struct dm_ctx *ctx, void *arg) {
    struct background *background = arg;
    CHECK_EQ(dm_faa(ctx, tw_word(0, 0), 1, NULL), 0);
    background->end = dm_sleep(ctx, TW_HOUR_NS);
    background->ended = true;
}

static void await_beats_and_stop(struct dm_ctx *ctx, struct tw_client *client) {
    await_beats(ctx, client);
    CHECK_EQ(dm_sleep(ctx, 1000000), 0); /* by now it most likely sleeps; the outcome is the same if not */
    dm_fabric_stop(dm_fabric_of(ctx));
    CHECK_EQ(dm_sleep(ctx, 1), DM_ERR_STOPPED);
}

static void a_background_context_that_waits_ends_at_the_stop(void **state) {
    struct tw tw;
    tw_open_measured(&tw, state);
    struct background background = {0};
    assert_int_equal(dm_spawn_background(tw.fabric, 1, beat_once_and_sleep, &background), 0);
    uint64_t wanted = 1;
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

int main(void) {
    static const struct tw_row rows[] = {
        TW(a_call_carries_up_to_16_kilobytes_there_and_back),
        TW(calls_take_effect_once),
        TW(the_value_of_the_handler_is_returned_unchanged),
        TW(an_invalid_call_fails_at_once),
        TW(a_handler_may_use_verbs_and_calls_to_other_nodes),
        TW(many_callers_each_get_their_own_answer),
        TW(the_nodes_cpu_reads_and_writes_the_same_bytes_and_its_swaps_are_atomic),
        TW(a_background_context_lives_through_runs),
        TW(a_background_context_that_waits_ends_at_the_stop),
        TW(a_context_may_start_background_contexts_on_any_node),
    };
    return tw_run_table("transport: calls", rows, sizeof(rows) / sizeof(rows[0]));
}
