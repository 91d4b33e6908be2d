/* SPDX-License-Identifier: Apache-2.0
 *
 * When a process that serves memory ends: once compute processes have connected and all have left, or if none comes
 * within its patience.
 */
#include "unit/transport/fake_transport.h"

/* How many peers are connected at each look; the last look is repeated. */
static const unsigned *looks;
static unsigned look_count, looked, slept;
static int sleep_result;

static unsigned peers(struct dm_fabric *fabric, bool *have_been) {
    (void)fabric;
    unsigned at = looked < look_count ? looked : look_count - 1;
    looked++;
    *have_been = false;
    for (unsigned i = 0; i <= at; i++) {
        *have_been = *have_been || looks[i] > 0;
    }
    return looks[at];
}

static int sleep_once(struct dm_ctx *ctx, uint64_t ns) {
    (void)ctx;
    assert_true(ns > 0);
    slept++;
    return sleep_result;
}

static int serve(const unsigned *counts, unsigned count, uint64_t patience_ns) {
    struct fake *fake = fake_new(0);
    fake->ops.peers = peers;
    fake->ops.sleep = sleep_once;
    looks = counts;
    look_count = count;
    looked = slept = 0;
    int rc = dm_serve_peers(&fake->contexts[0], patience_ns);
    free(fake);
    return rc;
}

static void it_ends_when_all_have_left(void **state) {
    (void)state;
    static const unsigned counts[] = {0, 0, 1, 2, 1, 0};
    assert_int_equal(serve(counts, 6, 0), 0);
    assert_int_equal(slept, 5);
}

static void it_ends_without_peers_after_its_patience(void **state) {
    (void)state;
    static const unsigned none[] = {0};
    assert_int_equal(serve(none, 1, UINT64_C(1000000000)), DM_ERR_PEER);
    assert_in_range(slept, 1, 1000);
}

static void patience_does_not_bound_a_run(void **state) {
    (void)state;
    static unsigned counts[2000];
    for (unsigned i = 0; i + 1 < 2000; i++) {
        counts[i] = 1;
    }
    assert_int_equal(serve(counts, 2000, 1), 0);
    assert_int_equal(slept, 1999);
}

static void a_stop_ends_it(void **state) {
    (void)state;
    static const unsigned one[] = {1};
    sleep_result = DM_ERR_STOPPED;
    assert_int_equal(serve(one, 1, 0), DM_ERR_STOPPED);
    sleep_result = 0;
}

static void a_transport_without_other_processes_refuses(void **state) {
    (void)state;
    struct fake *fake = fake_new(0);
    assert_int_equal(dm_serve_peers(&fake->contexts[0], 0), DM_ERR_UNSUPPORTED);
    free(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_when_all_have_left),
        cmocka_unit_test(it_ends_without_peers_after_its_patience),
        cmocka_unit_test(patience_does_not_bound_a_run),
        cmocka_unit_test(a_stop_ends_it),
        cmocka_unit_test(a_transport_without_other_processes_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
