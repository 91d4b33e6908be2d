/* SPDX-License-Identifier: Apache-2.0
 *
 * Two processes, usually of two hosts, that run the same worlds together: one has all memory nodes and index servers,
 * the other one has the compute nodes and judges. Both draw each world from its seed, so nothing but the transport's
 * own messages passes between them.
 *
 * Several worlds run at a time if there are several teams, each with two ports of its own, from the port of the address
 * on: a world's fabric listens at the first one for even worlds of the team and at the second one for odd ones. The
 * serving process opens a world's port after it has closed the one before, so the compute side of a world never meets
 * the fabric of another one, however late that is closed.
 */
#ifndef DM_CHECK_TEAM_H
#define DM_CHECK_TEAM_H

#include "check/world.h"

enum { CK_TEAM_NODES = 16, CK_TEAM_ADDRESS_BYTES = 128, CK_TEAM_TOKEN_BYTES = 32 };

struct ck_team {
    bool is_server;
    char token[CK_TEAM_TOKEN_BYTES + 1];
    uint64_t worlds; /* begun */

    char address[2][CK_TEAM_ADDRESS_BYTES]; /* for even worlds, for odd ones */
    const char *addresses[CK_TEAM_NODES];
    bool hosted[CK_TEAM_NODES];
    struct dm_processes processes; /* of the current world */
};

/* Prepares `count` teams, for "host:port" of the serving process: it takes that port and those that follow it, two for
 * each team. 0 or DM_ERR_INVALID. */
int ck_teams_init(struct ck_team *teams, unsigned count, bool is_server, const char *address, const char *token,
                  struct dm_err *err);

/* Begins the next world: fills `processes`, and listens if this process serves. 0 or a failure. */
int ck_team_begin(struct ck_team *team, const struct ck_world *world, struct dm_err *err);

/* Whether this process has the node; with NULL it has all. */
static inline bool ck_team_has(const struct ck_team *team, unsigned node) {
    return !team || team->hosted[node];
}

#endif
