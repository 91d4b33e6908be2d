/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepting control connections. Any machine can open one, so those that have not shown the run's token are limited:
 * the oldest of them is closed for a new one. This file does not depend on RDMA, so that it can be tested anywhere.
 */
#ifndef DM_TRANSPORT_VERBS_INCOMING_H
#define DM_TRANSPORT_VERBS_INCOMING_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/proof.h"
#include "transport/verbs/wire.h"

enum { VERBS_INCOMING = 256, VERBS_UNAUTHENTICATED = 16 };

/* How long a new connection has to send the token, and how long none is accepted after descriptors ran out. */
#define VERBS_TOKEN_TIMEOUT_NS (UINT64_C(3) * 1000000000)
#define VERBS_ACCEPT_PAUSE_NS  (UINT64_C(100) * 1000000)

/* An incoming control connection. */
struct verbs_incoming {
    int fd;
    bool has_called; /* its HELLO has come, and the answer is awaited */
    bool is_known;   /* has shown that it has the token */
    struct wire_message hello;
    struct verbs_nonces nonces;
    uint64_t session;
    uint32_t node, caller;
    uint32_t ends;        /* made for it */
    uint64_t deadline_ns; /* for the token */
    unsigned char bytes[WIRE_MAX];
    uint32_t got;
};

struct verbs_arrivals {
    struct verbs_incoming items[VERBS_INCOMING];
    unsigned count;
    uint64_t timeout_ns;      /* of verbs_socket_watch; 0: not */
    uint64_t accept_after_ns; /* until then the listener must not be polled: it would stay readable */
};

/* Bounds how long the other host may be silent: what was sent must be acknowledged, and without data the kernel asks
 * whether it is still there. After that the socket reports an error. */
void verbs_socket_watch(int fd, uint64_t timeout_ns);

/* Accepts one connection from a listener that is readable, or closes it if all that are open have sent the token. If
 * the process or the machine has no descriptor or memory left, closes the oldest without the token, too, and sets
 * accept_after_ns. */
void verbs_incoming_accept(struct verbs_arrivals *arrivals, int listener, uint64_t now_ns);

#endif
