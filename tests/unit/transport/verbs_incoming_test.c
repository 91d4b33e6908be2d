/* SPDX-License-Identifier: Apache-2.0
 *
 * Control connections that never send the token do not keep others out, and a lack of descriptors pauses the listener.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/verbs/incoming.h"

struct port {
    int listener;
    struct sockaddr_in address;
    struct verbs_arrivals arrivals;
};

static void port_open(struct port *port) {
    *port = (struct port){.address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(port->address);
    port->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(port->listener >= 0);
    assert_int_equal(bind(port->listener, (struct sockaddr *)&port->address, bytes), 0);
    assert_int_equal(listen(port->listener, 64), 0);
    assert_int_equal(getsockname(port->listener, (struct sockaddr *)&port->address, &bytes), 0);
}

static void port_close(struct port *port) {
    for (unsigned i = 0; i < port->arrivals.count; i++) {
        close(port->arrivals.items[i].fd);
    }
    close(port->listener);
}

static int client_open(const struct port *port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&port->address, sizeof(port->address)), 0);
    return fd;
}

/* Whether the server has closed the connection. */
static bool is_closed(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

static void idle_connections_do_not_keep_a_new_one_out(void **state) {
    (void)state;
    enum { CLIENTS = VERBS_UNAUTHENTICATED + 3, KNOWN = 1 };
    struct port port;
    int clients[CLIENTS];
    port_open(&port);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(&port);
        verbs_incoming_accept(&port.arrivals, port.listener, (uint64_t)i + 1);
        port.arrivals.items[0].is_known = true; /* the first one has sent the token: it stays */
    }
    assert_int_equal(port.arrivals.count, KNOWN + VERBS_UNAUTHENTICATED);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(is_closed(clients[i]), i == 1 || i == 2); /* the oldest without the token */
        close(clients[i]);
    }
    port_close(&port);
}

static void a_connection_is_refused_when_all_have_sent_the_token(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    for (int i = 0; i < VERBS_INCOMING; i++) {
        port.arrivals.items[i] = (struct verbs_incoming){.fd = -1, .is_known = true};
    }
    port.arrivals.count = VERBS_INCOMING;
    int client = client_open(&port);
    verbs_incoming_accept(&port.arrivals, port.listener, 1);
    assert_int_equal(port.arrivals.count, VERBS_INCOMING);
    assert_true(is_closed(client));
    close(client);
    close(port.listener);
}

static void without_descriptors_the_listener_pauses_and_an_idle_connection_is_closed(void **state) {
    (void)state;
    struct port port;
    struct rlimit before;
    port_open(&port);
    int idle = client_open(&port);
    verbs_incoming_accept(&port.arrivals, port.listener, 1);
    int next = client_open(&port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int unused = fcntl(port.listener, F_DUPFD, 0);
    assert_true(unused >= 0);
    close(unused);
    struct rlimit tight = {.rlim_cur = (rlim_t)unused, .rlim_max = before.rlim_max}; /* none is free below */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    assert_int_equal(port.arrivals.accept_after_ns, 0);
    verbs_incoming_accept(&port.arrivals, port.listener, 7);
    assert_int_equal(port.arrivals.accept_after_ns, 7 + VERBS_ACCEPT_PAUSE_NS);
    assert_int_equal(port.arrivals.count, 0);
    verbs_incoming_accept(&port.arrivals, port.listener, 7 + VERBS_ACCEPT_PAUSE_NS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(port.arrivals.count, 1); /* with the descriptor of the idle one */
    assert_true(is_closed(idle));
    assert_false(is_closed(next));
    close(idle);
    close(next);
    port_close(&port);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_connections_do_not_keep_a_new_one_out),
        cmocka_unit_test(a_connection_is_refused_when_all_have_sent_the_token),
        cmocka_unit_test(without_descriptors_the_listener_pauses_and_an_idle_connection_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
