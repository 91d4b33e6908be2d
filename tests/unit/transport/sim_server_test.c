/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers of the simulated network: order, and the time for which one is idle while a request waits.
 */
#include "transport/sim/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void requests_are_served_one_after_another(void **state) {
    (void)state;
    struct sim_server server = {0};
    assert_int_equal(sim_serve(&server, 100, 10), 110);
    assert_int_equal(sim_serve(&server, 105, 10), 120);
    assert_int_equal(sim_pipeline(&server, 115, 10), 120);
    assert_int_equal(sim_receive(&server, 300, 50), 300); /* its first bytes came while the server was free */
    assert_int_equal(sim_receive(&server, 310, 50), 350);
    assert_int_equal(server.busy, 130);
    assert_int_equal(server.served, 5);
    assert_int_equal(server.idle_waited, 0);
}

/* A message of two packets crosses while its last packet is still to come. */
static void a_stream_ends_a_packet_after_its_last_one_at_the_earliest(void **state) {
    (void)state;
    struct sim_server server = {0};
    assert_int_equal(sim_stream(&server, 100, 180, 60, 30), 210);
    assert_int_equal(server.free_at, 160);
    assert_int_equal(sim_stream(&server, 150, 150, 60, 60), 220);
}

/* A server that is booked for a time that has not come is idle while a request that comes earlier waits behind it. */
static void a_booking_ahead_of_time_is_seen(void **state) {
    (void)state;
    struct sim_server server = {0};
    assert_int_equal(sim_serve(&server, 100, 10), 110);
    assert_int_equal(sim_serve(&server, 500, 10), 510); /* booked ahead at 100 or so */
    assert_int_equal(server.idle_waited, 0);
    assert_int_equal(sim_serve(&server, 200, 10), 520);
    assert_int_equal(server.idle_waited, 300);
    assert_int_equal(sim_serve(&server, 505, 10), 530);
    assert_int_equal(server.idle_waited, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_served_one_after_another),
        cmocka_unit_test(a_stream_ends_a_packet_after_its_last_one_at_the_earliest),
        cmocka_unit_test(a_booking_ahead_of_time_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
