/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the transport `local` has: real threads. The rest of its contract is in the conformance tests.
 */
#include <pthread.h>
#include <sched.h>

#include "conformance/transport_world.h"

enum { SLEEPERS = 6 };

static void local_open_with(struct tw *tw, const struct dm_setting *settings, size_t count) {
    struct dm_fabric_config config = {
        .transport = "local", .topology = tw_topology(), .settings = settings, .setting_count = count};
    *tw = (struct tw){.info = dm_transport_find("local"), .topology = config.topology};
    if (dm_fabric_open(&config, &tw->fabric, &tw->err) < 0) {
        fail_msg("%s", tw->err.text);
    }
    dm_fabric_measure(tw->fabric);
}

struct outside {
    struct dm_fabric *fabric;
    _Atomic unsigned asleep;
};

static void sleep_for_ever(struct dm_ctx *ctx, struct tw_client *client) {
    struct outside *outside = client->shared;
    atomic_fetch_add(&outside->asleep, 1);
    CHECK_EQ(dm_sleep(ctx, UINT64_MAX), DM_ERR_STOPPED);
}

static void *stop_from_outside(void *arg) {
    struct outside *outside = arg;
    while (atomic_load(&outside->asleep) < SLEEPERS) {
        sched_yield();
    }
    dm_fabric_stop(outside->fabric);
    return NULL;
}

static void a_stop_from_outside_reaches_threads_that_sleep(void **state) {
    (void)state;
    struct tw tw;
    local_open_with(&tw, NULL, 0);
    struct outside outside = {.fabric = tw.fabric};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, stop_from_outside, &outside), 0);
    tw_run_clients_expecting(&tw, SLEEPERS, false, sleep_for_ever, &outside, DM_ERR_STOPPED);
    assert_int_equal(pthread_join(other, NULL), 0);
    tw_close(&tw);
}

static void check_pinned(struct dm_ctx *ctx, struct tw_client *client) {
    (void)ctx;
    cpu_set_t *cpus = client->shared;
    CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(*cpus), cpus), 0);
}

static void a_pinned_thread_has_one_processor(void **state) {
    (void)state;
    static const struct dm_setting on = {"pin", "on"};
    for (unsigned pinned = 0; pinned < 2; pinned++) {
        struct tw tw;
        cpu_set_t all, cpus;
        local_open_with(&tw, &on, pinned);
        CPU_ZERO(&cpus);
        tw_run_one(&tw, check_pinned, &cpus);
        assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
        assert_int_equal(CPU_COUNT(&cpus), pinned ? 1 : CPU_COUNT(&all));
        tw_close(&tw);
    }
}

/* One client waits for the other by verbs only; on one thread, with any setting, it must not wait forever. */
static void spin_or_work(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t old;
        do {
            CHECK_EQ(dm_cas(ctx, tw_word(0, 0), 0, 1, &old), 0);
        } while (old != 0);
        tw_read_word(ctx, tw_word(0, 8)); /* others run while the lock is held */
        CHECK_EQ(dm_faa(ctx, tw_word(0, 8), 1, NULL), 0);
        uint64_t none = 0;
        CHECK_EQ(dm_write(ctx, tw_word(0, 0), &none, 8), 0);
    }
}

static void a_spinning_context_lets_the_holder_of_the_lock_work(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"yield_every", "1"}, {"yield_every", "1000000"}};
    for (unsigned i = 0; i < 2; i++) {
        struct tw tw;
        local_open_with(&tw, &settings[i], 1);
        tw_run_clients(&tw, 3 * TW_CLIENTS, false, spin_or_work, NULL);
        tw_close(&tw);
    }
}

/* Two threads on one processor, with three clients each. The threads take turns in raising a number; meanwhile all
 * clients of the other one wait for it by swaps that miss. */
enum { TURNS = 100, TURN_THREADS = 2, TURN_CLIENTS = 3, TURN_WAITS_MAX = 500 };

static void wait_for_turns(struct dm_ctx *ctx, struct tw_client *client) {
    _Atomic uint64_t *waits = client->shared;
    unsigned thread = client->number % TURN_THREADS;
    bool raises = client->number < TURN_THREADS;
    uint64_t old = 0;
    for (uint64_t turn = thread; old < TURNS;) {
        CHECK_EQ(dm_cas(ctx, tw_word(0, 0), raises ? turn : UINT64_MAX, turn + 1, &old), 0);
        turn += raises && old == turn ? TURN_THREADS : 0;
        atomic_fetch_add(waits, 1);
    }
}

/* Otherwise the thread whose turn it is would wait until the operating system stops the other, thousands of swaps
 * later, and clients would end in the limit of retries because of it. */
static void a_thread_whose_clients_all_wait_lets_others_run(void **state) {
    (void)state;
    struct tw tw = {.info = dm_transport_find("local"), .topology = tw_topology()};
    tw.topology.cns = TURN_THREADS;
    tw.topology.clients = TURN_THREADS * TURN_CLIENTS;
    tw.topology.clients_per_thread = TURN_CLIENTS;
    struct dm_fabric_config config = {.transport = "local", .topology = tw.topology};
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0); /* the threads that are started inherit it */
    assert_int_equal(dm_fabric_open(&config, &tw.fabric, &tw.err), 0);
    dm_fabric_measure(tw.fabric);
    _Atomic uint64_t waits = 0;
    tw_run_clients(&tw, TURN_THREADS * TURN_CLIENTS, false, wait_for_turns, &waits);
    tw_close(&tw);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_in_range(waits / TURNS, 1, TURN_WAITS_MAX);
}

enum { LONG_LINES = 512, LONG_WRITES = 100000, VERSIONS = 16 };

struct long_read {
    _Atomic bool begun, raised;
};

static dm_addr long_line(unsigned line) {
    return dm_addr_make(0, DM_DRAM, DM_RESERVED_BYTES + (uint64_t)line * DM_LINE);
}

/* Client 0 reads many lines at once while client 1 raises a number in the last one and then in the first. */
static void read_or_raise(struct dm_ctx *ctx, struct tw_client *client) {
    struct long_read *shared = client->shared;
    if (client->number == 1) {
        while (!atomic_load(&shared->begun)) {
            sched_yield();
        }
        for (uint64_t i = 1; i <= LONG_WRITES; i++) {
            CHECK_EQ(dm_write(ctx, long_line(LONG_LINES - 1), &i, sizeof(i)), 0);
            CHECK_EQ(dm_write(ctx, long_line(0), &i, sizeof(i)), 0);
        }
        atomic_store(&shared->raised, true);
        return;
    }
    char *lines = dm_local_alloc(ctx, LONG_LINES * DM_LINE);
    for (bool is_last = false; !is_last;) {
        uint64_t first, last;
        is_last = atomic_load(&shared->raised);
        atomic_store(&shared->begun, true);
        CHECK_EQ(dm_read(ctx, long_line(0), lines, LONG_LINES * DM_LINE), 0);
        memcpy(&first, lines, sizeof(first));
        memcpy(&last, lines + (LONG_LINES - 1) * DM_LINE, sizeof(last));
        CHECK(last < first + VERSIONS);
    }
}

/* Versions of four bits would be the same again after sixteen writes (indexes/shared/lines.h). */
static void no_line_is_written_sixteen_times_during_a_read(void **state) {
    (void)state;
    struct tw tw;
    struct long_read shared = {.begun = false};
    local_open_with(&tw, NULL, 0);
    tw_run_clients(&tw, 2, false, read_or_raise, &shared);
    tw_close(&tw);
}

static void chip_memory_is_bounded_by_the_option(void **state) {
    (void)state;
    static const struct dm_setting small = {"chip_bytes", "128"}, none = {"chip_bytes", "0"};
    struct tw tw;
    local_open_with(&tw, &small, 1);
    assert_int_equal(dm_fabric_topology(tw.fabric)->chip_bytes, 128);
    tw_close(&tw);
    local_open_with(&tw, &none, 1);
    assert_int_equal(dm_fabric_topology(tw.fabric)->chip_bytes, 0);
    tw_close(&tw);
    local_open_with(&tw, NULL, 0);
    assert_int_equal(dm_fabric_topology(tw.fabric)->chip_bytes, TW_CHIP_BYTES);
    tw_close(&tw);
}

static void memory_that_cannot_be_reserved_is_reported_with_the_node(void **state) {
    (void)state;
    struct dm_fabric_config config = {.transport = "local", .topology = tw_topology()};
    config.topology.mn_bytes = (UINT64_C(1) << 48) - 4096;
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), DM_ERR_NO_MEMORY);
    assert_null(fabric);
    assert_non_null(strstr(err.text, "node 0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_from_outside_reaches_threads_that_sleep),
        cmocka_unit_test(a_pinned_thread_has_one_processor),
        cmocka_unit_test(a_spinning_context_lets_the_holder_of_the_lock_work),
        cmocka_unit_test(a_thread_whose_clients_all_wait_lets_others_run),
        cmocka_unit_test(no_line_is_written_sixteen_times_during_a_read),
        cmocka_unit_test(chip_memory_is_bounded_by_the_option),
        cmocka_unit_test(memory_that_cannot_be_reserved_is_reported_with_the_node),
    };
    return cmocka_run_group_tests_name("transport: local", tests, NULL, NULL);
}
