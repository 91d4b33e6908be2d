/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults that a world injects: draws them, and writes them as rules of the fabric.
 */
#include <stdio.h>
#include <string.h>

#include "check/world.h"

static bool chance(struct dm_prng *prng, unsigned percent) {
    return dm_prng_below(prng, 100) < percent;
}

/* Draws clients that end after some of their steps. Every transport supports that. */
static void ends_draw(struct ck_world *world, size_t steps_each) {
    struct dm_prng prng = dm_prng_stream(world->seed, "check faults", 0);
    unsigned count = chance(&prng, 25) ? (unsigned)(1 + dm_prng_below(&prng, 2)) : 0;
    for (unsigned i = 0; i < count; i++) {
        world->faults[world->fault_count++] =
            (struct ck_world_fault){.kind = CK_CLIENT_ENDS,
                                    .client = (unsigned)dm_prng_below(&prng, world->topology.clients),
                                    .after = dm_prng_below(&prng, steps_each + 1)};
    }
}

static void fabric_fault_draw(struct ck_world *world, size_t steps_each, struct dm_prng *prng) {
    static const uint64_t stalls_ns[] = {3000, 30000, 300000}, late_ns[] = {500, 3000, 20000};
    static const unsigned late_percents[] = {1, 5, 20};
    unsigned which = (unsigned)dm_prng_below(prng, 10), size = (unsigned)dm_prng_below(prng, 3);
    struct ck_world_fault *fault = &world->faults[world->fault_count++];
    *fault = (struct ck_world_fault){.client = (unsigned)dm_prng_below(prng, world->topology.clients),
                                     .after = 1 + dm_prng_below(prng, 6 * (steps_each + 1)),
                                     .percent = late_percents[dm_prng_below(prng, 3)]};
    if (which < 3) {
        fault->kind = CK_CLIENT_STOPS;
    } else if (which < 7) {
        fault->kind = CK_CLIENT_STALLS;
        fault->ns = stalls_ns[size];
    } else {
        fault->kind = CK_VERBS_LATE;
        fault->ns = late_ns[size];
    }
}

/* Draws failures of one server, or several within a short time, so that a server may fail while it recovers from the
 * failure of another one. */
static void server_faults_draw(struct ck_world *world, size_t steps_each) {
    static const uint64_t down_ns[] = {2000, 20000, 100000, 400000}, apart_ns[] = {0, 2000, 20000, 200000};
    enum { STEP_NS = 8000 };
    struct dm_prng prng = dm_prng_stream(world->seed, "check server faults", 0);
    unsigned count = chance(&prng, 50) ? (unsigned)(1 + dm_prng_below(&prng, 3)) : 0;
    uint64_t at_ns = 1 + dm_prng_below(&prng, STEP_NS * (steps_each + 1));
    for (unsigned i = 0; i < count && world->fault_count < CK_FAULTS_MAX; i++) {
        world->faults[world->fault_count++] =
            (struct ck_world_fault){.kind = CK_SERVER_FAILS,
                                    .server = (unsigned)dm_prng_below(&prng, world->topology.servers),
                                    .after = at_ns,
                                    .ns = down_ns[dm_prng_below(&prng, 4)]};
        at_ns += dm_prng_below(&prng, apart_ns[dm_prng_below(&prng, 4)] + 1);
    }
}

void ck_faults_draw(struct ck_world *world) {
    size_t steps_each = world->step_count / world->topology.clients;
    struct dm_prng prng = dm_prng_stream(world->seed, "check fabric faults", 0);
    ends_draw(world, steps_each);
    unsigned count = chance(&prng, 30) ? (unsigned)(1 + dm_prng_below(&prng, 2)) : 0;
    bool injects_faults = dm_transport_find(world->transport)->caps & DM_CAP_FAULTS;
    for (unsigned i = 0; injects_faults && i < count && world->fault_count < CK_FAULTS_MAX; i++) {
        fabric_fault_draw(world, steps_each, &prng);
    }
    if (injects_faults && world->index->caps & IX_CAP_SERVER_FAULT) {
        server_faults_draw(world, steps_each);
    }
}

size_t ck_fault_rule(const struct ck_world *world, const struct ck_world_fault *fault, unsigned client, char *text,
                     size_t capacity) {
    int length = 0;
    switch (fault->kind) {
    case CK_CLIENT_ENDS:
        break;
    case CK_CLIENT_STOPS:
        length = snprintf(text, capacity, "stop:client=%u,verb=%zu;", client, fault->after);
        break;
    case CK_CLIENT_STALLS:
        length = snprintf(text, capacity, "stop:client=%u,verb=%zu,for=%lluns;", client, fault->after,
                          (unsigned long long)fault->ns);
        break;
    case CK_VERBS_LATE:
        length = snprintf(text, capacity, "delay:p=0.%02u,by=%lluns;", fault->percent, (unsigned long long)fault->ns);
        break;
    case CK_SERVER_FAILS:
        length =
            snprintf(text, capacity, "fail:node=%u,at=%zuns,for=%lluns;",
                     dm_first_server(&world->topology) + fault->server, fault->after, (unsigned long long)fault->ns);
        break;
    }
    return (size_t)length;
}

const char *ck_fault_text(const struct ck_world_fault *fault, char *text, size_t capacity) {
    switch (fault->kind) {
    case CK_CLIENT_ENDS:
        snprintf(text, capacity, "client %u ends after %zu operations", fault->client, fault->after);
        break;
    case CK_CLIENT_STOPS:
        snprintf(text, capacity, "client %u stops for good before its verb %zu", fault->client, fault->after);
        break;
    case CK_CLIENT_STALLS:
        snprintf(text, capacity, "client %u stalls for %llu ns before its verb %zu", fault->client,
                 (unsigned long long)fault->ns, fault->after);
        break;
    case CK_VERBS_LATE:
        snprintf(text, capacity, "%u %% of all verbs are delayed by %llu ns", fault->percent,
                 (unsigned long long)fault->ns);
        break;
    case CK_SERVER_FAILS:
        snprintf(text, capacity, "server %u fails after %zu ns and is down for %llu ns", fault->server, fault->after,
                 (unsigned long long)fault->ns);
        break;
    }
    return text;
}
