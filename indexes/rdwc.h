/* SPDX-License-Identifier: Apache-2.0
 *
 * Read delegation and write combining (SMART, section 4.3; CHIME, section 5.1, for all its competitors): clients of one
 * compute node that get, or update, the same key at the same time do it with one operation on the index. A wrapper
 * around any index, seen by nobody below: a client handle goes in and one with the same contract comes out.
 *
 * Operations on one key form rounds. One client of a round, its leader, calls the index; the others wait on the node
 * and take over its outcome. A round is closed when its leader begins, so every member began before the index was asked
 * and ends after it has answered:
 *   - a get of the leader saw the key at a moment that lies within each member's own get, so no member is given a value
 *     that is older than its own beginning;
 *   - an update of the leader writes the value that was joined last. The others took effect at the same moment, one
 *     after the other before it, and nobody can have read what they wrote. If the key is absent it was so for each.
 * Whoever comes while the leader is at work is a member of the next round. Rounds are numbered with 64 bits, and there
 * is no bound on members.
 *
 * The table has some places more than the node has clients. A key that finds its place in use by another key goes to
 * the index by itself: two keys never share anything. Inserts, deletes and scans always go by themselves.
 */
#ifndef DM_INDEXES_RDWC_H
#define DM_INDEXES_RDWC_H

#include "indexes/index.h"

enum ix_rdwc_mode {
    IX_RDWC_OFF,
    IX_RDWC_ON,
    IX_RDWC_STALE, /* wrong on purpose: a get also joins a round whose leader has begun already */
};

struct ix_rdwc_config {
    enum ix_rdwc_mode mode; /* not off */
    uint32_t clients;       /* of the compute node */
    uint32_t places;        /* of the table; 0: enough that keys seldom meet */
    uint32_t value_bytes;
};

struct ix_rdwc; /* of one compute node */

/* NULL when out of memory. Closed after every client has been unwrapped. */
struct ix_rdwc *ix_rdwc_open(const struct ix_ops *index, const struct ix_rdwc_config *config);
void ix_rdwc_close(struct ix_rdwc *rdwc); /* accepts NULL */

/* Bytes of local memory that the table and the clients' values take, 0 for NULL. Handles are not counted, as those of
 * the index are not. */
uint64_t ix_rdwc_bytes(const struct ix_rdwc *rdwc);

/* What a client's operations came to. Shared: answered by another client's operation, without any of the network's. */
struct ix_rdwc_counts {
    uint64_t shared_gets, shared_updates;
    uint64_t bypassed; /* gets and updates whose place was in use by another key */
};

/* Puts the wrapper around an attached client, and takes it off again, which leaves the client as it was before. 0 or
 * DM_ERR_NO_MEMORY. Unwrapping a client that is not wrapped does nothing. */
int ix_rdwc_wrap(struct ix_rdwc *rdwc, struct dm_ctx *ctx, struct ix_client *client);
void ix_rdwc_unwrap(struct ix_client *client);

/* Of a wrapped client; borrowed. */
const struct ix_rdwc_counts *ix_rdwc_counts(const struct ix_client *client);

#endif
