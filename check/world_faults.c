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

/* One memory node is slower than the others, so that what a client wrote to two nodes is seen in the other order. Its
 * delay is shorter than the shortest lease (20 us) of an index whose addresses expire: no read would be in time. */
static void node_late_draw(struct ck_world *world) {
    const uint64_t late_ns[] = {1000, 5000, world->index->patient ? 10000 : 20000};
    static const unsigned percents[] = {20, 50, 99};
    struct dm_prng prng = dm_prng_stream(world->seed, "check late node", 0);
    bool is_drawn = chance(&prng, 20);
    if (is_drawn && world->topology.mns > 1 && world->fault_count < CK_FAULTS_MAX) {
        world->faults[world->fault_count++] =
            (struct ck_world_fault){.kind = CK_NODE_LATE,
                                    .server = (unsigned)dm_prng_below(&prng, world->topology.mns),
                                    .ns = late_ns[dm_prng_below(&prng, 3)],
                                    .percent = percents[dm_prng_below(&prng, 3)]};
    }
}

/* A step that writes, most often: one of a few random ones. */
static size_t target_draw(const struct ck_world *world, struct dm_prng *prng) {
    enum { TRIES = 4 };
    size_t step = 0;
    for (int i = 0; i < TRIES; i++) {
        step = dm_prng_below(prng, world->step_count);
        if (world->steps[step].kind != WL_GET && world->steps[step].kind != WL_SCAN) {
            break;
        }
    }
    return step;
}

/* A fault in the middle of one operation: at any of its verbs with the same probability. One a world, because after it
 * the run is not the rehearsed one any more. */
static void aimed_draw(struct ck_world *world) {
    static const enum ck_fault_kind kinds[] = {CK_CLIENT_STOPS, CK_CLIENT_STALLS, CK_CLIENT_STALLS, CK_READ_FAILS,
                                               CK_READ_FAILS,   CK_READ_FAILS,    CK_VERB_FAILS,    CK_VERB_FAILS};
    static const uint64_t ns[] = {3000, 30000, 300000};
    enum { VERBS = 24 };
    struct dm_prng prng = dm_prng_stream(world->seed, "check aimed faults", 0);
    if (!chance(&prng, 25) || world->fault_count == CK_FAULTS_MAX) {
        return;
    }
    struct ck_world_fault fault = {.kind = kinds[dm_prng_below(&prng, 8)], .is_aimed = true};
    bool fails_server = dm_prng_below(&prng, 2) == 0 && world->index->caps & IX_CAP_SERVER_FAULT;
    fault.step = target_draw(world, &prng);
    fault.client = world->steps[fault.step].client;
    fault.after = 1 + dm_prng_below(&prng, VERBS);
    fault.ns = ns[dm_prng_below(&prng, 3)];
    if (fails_server) {
        fault.kind = CK_SERVER_FAILS;
        fault.server = (unsigned)dm_prng_below(&prng, world->topology.servers);
        fault.percent = (unsigned)dm_prng_below(&prng, 100);
    }
    world->faults[world->fault_count++] = fault;
}

static void memory_ends_draw(struct ck_world *world) {
    static const size_t left[] = {0, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10};
    struct dm_prng prng = dm_prng_stream(world->seed, "check memory", 0);
    if (chance(&prng, 8) && world->fault_count < CK_FAULTS_MAX) {
        world->faults[world->fault_count++] =
            (struct ck_world_fault){.kind = CK_MEMORY_ENDS, .after = left[dm_prng_below(&prng, 6)]};
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
    if (injects_faults) {
        node_late_draw(world);
        aimed_draw(world);
        memory_ends_draw(world);
    }
}

size_t ck_fault_rule(const struct ck_world *world, const struct ck_world_fault *fault, unsigned client, char *text,
                     size_t capacity) {
    int length = 0;
    switch (fault->kind) {
    case CK_CLIENT_ENDS:
    case CK_MEMORY_ENDS:
    case CK_FAULT_KINDS:
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
    case CK_NODE_LATE:
        length = snprintf(text, capacity, "delay:node=%u,p=0.%02u,by=%lluns;", fault->server, fault->percent,
                          (unsigned long long)fault->ns);
        break;
    case CK_READ_FAILS:
    case CK_VERB_FAILS:
        length = snprintf(text, capacity, "error:client=%u,verb=%zu;", client, fault->after);
        break;
    case CK_SERVER_FAILS:
        length =
            snprintf(text, capacity, "fail:node=%u,at=%zuns,for=%lluns;",
                     dm_first_server(&world->topology) + fault->server, fault->after, (unsigned long long)fault->ns);
        break;
    }
    return (size_t)length;
}

static const char *aimed_text(const struct ck_world_fault *fault, char *text, size_t capacity) {
    static const char *const what[CK_FAULT_KINDS] = {[CK_CLIENT_STOPS] = "stops for good before",
                                                     [CK_CLIENT_STALLS] = "stalls before",
                                                     [CK_READ_FAILS] = "has an error in, of the reads alone,",
                                                     [CK_VERB_FAILS] = "has an error in"};
    if (fault->kind == CK_SERVER_FAILS) {
        snprintf(text, capacity, "server %u fails %u.%02u us after verb %zu of step %zu, and is down for %llu ns",
                 fault->server, fault->percent / 100, fault->percent % 100, fault->after, fault->step,
                 (unsigned long long)fault->ns);
    } else {
        snprintf(text, capacity, "client %u %s verb %zu of step %zu, %llu ns", fault->client, what[fault->kind],
                 fault->after, fault->step, (unsigned long long)fault->ns);
    }
    return text;
}

const char *ck_fault_text(const struct ck_world_fault *fault, char *text, size_t capacity) {
    if (fault->is_aimed) {
        return aimed_text(fault, text, capacity);
    }
    switch (fault->kind) {
    case CK_NODE_LATE:
        snprintf(text, capacity, "%u %% of the verbs to memory node %u are delayed by %llu ns", fault->percent,
                 fault->server, (unsigned long long)fault->ns);
        break;
    case CK_READ_FAILS:
    case CK_VERB_FAILS:
        snprintf(text, capacity, "verb %zu of client %u has an error", fault->after, fault->client);
        break;
    case CK_MEMORY_ENDS:
        snprintf(text, capacity, "each memory node has %zu bytes left", fault->after);
        break;
    case CK_FAULT_KINDS:
        break;
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
