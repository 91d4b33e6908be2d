/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources of the simulated network that serve one request after another. A request is admitted at the moment at which
 * it gets there, so that no server is idle while something that could use it waits; each server measures whether that
 * holds.
 */
#ifndef DM_TRANSPORT_SIM_SERVER_H
#define DM_TRANSPORT_SIM_SERVER_H

#include <stdint.h>

#include "common/compiler.h"

/* A FIFO resource. Times in ps. */
struct sim_server {
    uint64_t free_at;
    uint64_t gap_from, gap_to;     /* the last interval between two services, in which no request may have waited */
    uint64_t busy, waited, served; /* since the last reset; waited: queueing and service together, for Little's law */
    uint64_t idle_waited;          /* the time that it was idle while requests waited, summed over these */
};

/* A request that can begin at `from` and is there at `at` (from <= at: the service may have begun while it came in) is
 * served behind those before it. Returns when it has been served. */
static inline uint64_t sim_serve_from(struct sim_server *server, uint64_t from, uint64_t at, uint64_t service) {
    uint64_t start = server->free_at;
    if (from > start) {
        server->gap_from = start;
        server->gap_to = start = from;
    } else if (dm_unlikely(at < server->gap_to)) {
        uint64_t since = at > server->gap_from ? at : server->gap_from;
        server->idle_waited += server->gap_to - since;
    }
    server->free_at = start + service;
    server->busy += service;
    server->waited += start + service - from;
    server->served++;
    return start + service;
}

static inline uint64_t sim_serve(struct sim_server *server, uint64_t at, uint64_t service) {
    return sim_serve_from(server, at, at, service);
}

/* A resource that a message crosses packet by packet. Service can begin when the first packet has arrived (`first`) and
 * cannot end before the last one, which arrives at `last`, has crossed, which takes `packet`. */
static inline uint64_t sim_stream(struct sim_server *server, uint64_t first, uint64_t last, uint64_t service,
                                  uint64_t packet) {
    uint64_t end = sim_serve_from(server, first, last, service);
    return end > last + packet ? end : last + packet;
}

/* A pipeline: limits the rate, while the time through it is part of the NIC's fixed latency. Returns when the
 * verb enters. */
static inline uint64_t sim_pipeline(struct sim_server *server, uint64_t at, uint64_t service) {
    return sim_serve(server, at, service) - service;
}

/* The receiving end of a link or of PCIe: the time to cross it has been spent before `at`, here only the bandwidth is
 * shared. */
static inline uint64_t sim_receive(struct sim_server *server, uint64_t at, uint64_t service) {
    return sim_serve_from(server, at > service ? at - service : 0, at, service);
}

#endif
