/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses and processes of worlds that two processes share.
 */
#include "check/team.h"

#include <stdio.h>
#include <string.h>

#include "common/prng.h"

enum { PORT_MAX = 65535, TEAM_PORTS = 2 };

int ck_teams_init(struct ck_team *teams, unsigned count, bool is_server, const char *address, const char *token,
                  struct dm_err *err) {
    const char *colon = strrchr(address, ':');
    uint64_t port = 0, last = PORT_MAX + 1 - TEAM_PORTS * (uint64_t)count;
    struct dm_err ignored = {0};
    bool is_address = colon && colon > address && (size_t)(colon - address) < CK_TEAM_ADDRESS_BYTES - 8 &&
                      dm_parse_count(colon + 1, &port, &ignored) == 0 && port >= 1 && port <= last;
    if (!is_address) {
        return dm_fail(err, DM_ERR_INVALID,
                       "'%.100s' is not HOST:PORT with a port of 1 to %u; the worlds take that one and %u more",
                       address, (unsigned)last, TEAM_PORTS * count - 1);
    }
    for (unsigned i = 0; i < count; i++) {
        struct ck_team *team = &teams[i];
        *team = (struct ck_team){.is_server = is_server};
        snprintf(team->token, sizeof(team->token), "%s", token);
        for (unsigned k = 0; k < TEAM_PORTS; k++) {
            snprintf(team->address[k], sizeof(team->address[k]), "%.*s:%u", (int)(colon - address), address,
                     (unsigned)port + TEAM_PORTS * i + k);
        }
    }
    return 0;
}

/* Of what both have to agree on beside the topology. */
static uint64_t fingerprint(const struct ck_world *world) {
    uint64_t hash = dm_mix64(world->seed ^ dm_mix64(world->rdwc));
    for (const char *at = world->index->name; *at; at++) {
        hash = dm_mix64(hash ^ (unsigned char)*at);
    }
    for (const struct dm_opt *row = world->index->params; row && row->name; row++) {
        char value[64];
        dm_opt_format(row, world->params, value, sizeof(value));
        for (const char *at = value; *at; at++) {
            hash = dm_mix64(hash ^ (unsigned char)*at);
        }
    }
    return hash;
}

int ck_team_begin(struct ck_team *team, const struct ck_world *world, struct dm_err *err) {
    const struct dm_topology *topology = &world->topology;
    unsigned first_cn = dm_first_cn(topology), nodes = first_cn + topology->cns;
    const char *address = team->address[team->worlds++ % TEAM_PORTS];
    if (nodes > CK_TEAM_NODES) {
        return dm_fail(err, DM_ERR_INVALID, "a world of %u nodes: %d at most in two processes", nodes, CK_TEAM_NODES);
    }
    for (unsigned node = 0; node < nodes; node++) {
        team->hosted[node] = (node < first_cn) == team->is_server;
        team->addresses[node] = node < first_cn ? address : NULL;
    }
    team->processes = (struct dm_processes){.process = team->is_server ? 1 : 0,
                                            .count = 2,
                                            .hosted = team->hosted,
                                            .addresses = team->addresses,
                                            .token = team->token,
                                            .fingerprint = fingerprint(world),
                                            .listener = -1};
    char own[CK_TEAM_ADDRESS_BYTES];
    return team->is_server ? dm_listen(address, &team->processes.listener, own, sizeof(own), err) : 0;
}
