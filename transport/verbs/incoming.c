/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepting control connections.
 */
#include "transport/verbs/incoming.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

void verbs_socket_watch(int fd, uint64_t timeout_ns) {
    enum { NS_PER_MS = 1000000, PROBES = 5 };
    unsigned limit_ms = (unsigned)(timeout_ns / NS_PER_MS);
    int one = 1, idle_s = (int)(limit_ms / 2000), interval_s = (int)(limit_ms / 2000 / PROBES), probes = PROBES;
    idle_s = idle_s > 0 ? idle_s : 1;
    interval_s = interval_s > 0 ? interval_s : 1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

/* The connection without the token that has waited longest, or NULL. */
static struct verbs_incoming *oldest_unauthenticated(struct verbs_arrivals *arrivals) {
    struct verbs_incoming *oldest = NULL;
    for (unsigned i = 0; i < arrivals->count; i++) {
        struct verbs_incoming *incoming = &arrivals->items[i];
        if (!incoming->is_known && (!oldest || incoming->deadline_ns < oldest->deadline_ns)) {
            oldest = incoming;
        }
    }
    return oldest;
}

/* False if all connections have sent the token. */
static bool oldest_close(struct verbs_arrivals *arrivals) {
    struct verbs_incoming *oldest = oldest_unauthenticated(arrivals);
    if (oldest) {
        close(oldest->fd);
        *oldest = arrivals->items[--arrivals->count];
    }
    return oldest;
}

static unsigned unauthenticated(const struct verbs_arrivals *arrivals) {
    unsigned count = 0;
    for (unsigned i = 0; i < arrivals->count; i++) {
        count += !arrivals->items[i].is_known;
    }
    return count;
}

void verbs_incoming_accept(struct verbs_arrivals *arrivals, int listener, uint64_t now_ns) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            oldest_close(arrivals);
            arrivals->accept_after_ns = now_ns + VERBS_ACCEPT_PAUSE_NS;
        }
        return;
    }
    bool is_full = unauthenticated(arrivals) == VERBS_UNAUTHENTICATED || arrivals->count == VERBS_INCOMING;
    if (is_full && !oldest_close(arrivals)) {
        close(fd);
        return;
    }
    if (arrivals->timeout_ns > 0) {
        verbs_socket_watch(fd, arrivals->timeout_ns);
    }
    arrivals->items[arrivals->count++] =
        (struct verbs_incoming){.fd = fd, .deadline_ns = now_ns + VERBS_TOKEN_TIMEOUT_NS};
}
