/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepting control connections. Any machine can open one, so those that have not sent the run's token are limited: the
 * oldest of them is closed for a new one. This file does not depend on RDMA, so that it can be tested anywhere.
 */
#ifndef DM_TRANSPORT_VERBS_INCOMING_H
#define DM_TRANSPORT_VERBS_INCOMING_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/wire.h"

enum { VERBS_INCOMING = 256, VERBS_UNAUTHENTICATED = 16 };

/* How long a new connection has to send the token, and how long none is accepted after descriptors ran out. */
#define VERBS_TOKEN_TIMEOUT_NS (UINT64_C(3) * 1000000000)
#define VERBS_ACCEPT_PAUSE_NS  (UINT64_C(100) * 1000000)

/* An incoming control connection. */
struct verbs_incoming {
    int fd;
    bool is_known; /* has sent the token */
    uint32_t node, caller;
    uint32_t ends;        /* made for it */
    uint64_t deadline_ns; /* for the token */
    unsigned char bytes[WIRE_MAX];
    uint32_t got;
};

struct verbs_arrivals {
    struct verbs_incoming items[VERBS_INCOMING];
    unsigned count;
    uint64_t accept_after_ns; /* until then the listener must not be polled: it would stay readable */
};

/* Accepts one connection from a listener that is readable, or closes it if all that are open have sent the token. If
 * the process or the machine has no descriptor or memory left, closes the oldest without the token, too, and sets
 * accept_after_ns. */
void verbs_incoming_accept(struct verbs_arrivals *arrivals, int listener, uint64_t now_ns);

#endif
