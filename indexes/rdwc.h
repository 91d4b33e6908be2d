/* SPDX-License-Identifier: Apache-2.0
 *
 * Read delegation and write combining (SMART, section 4.3; CHIME, section 5.1, for all its competitors): clients of one
 * compute node that get, or update, the same key at the same time do it with one operation on the index. It wraps a
 * client of any index; the wrapped client has the same contract, and the index does not know of it.
 *
 * Operations on one key form rounds. One client of a round, its leader, calls the index; the others wait on the compute
 * node and copy its outcome. A round is closed when its leader begins, so every member began before the leader called
 * the index and ends after the index has answered:
 *   - a get of the leader reads the key at a moment within each member's own get, so no member gets a value that is
 *     older than its own begin;
 *   - an update of the leader writes the value that was joined last. The other updates took effect at the same moment,
 *     one by one before it, and no client can have read what they wrote. If the key is absent, it was so for each.
 * Clients that come while the leader works are members of the next round. Rounds are numbered with 64 bits, and there
 * is no bound on members.
 *
 * IX_RDWC_PUBLISHED is what the public code does: a client that comes while the leader works joins its round and ends
 * with it. A get can return a value that is older than its begin, and an update can end without its value ever having
 * been in the index. (There the leader takes the value to write when it has locked the leaf, here when it calls the
 * index.)
 *
 * The table has more slots than the node has clients. A key whose slot is in use by another key goes to the index
 * alone: two keys never share an operation. Inserts, deletes and scans always go to the index.
 */
#ifndef DM_INDEXES_RDWC_H
#define DM_INDEXES_RDWC_H

#include "indexes/index.h"

enum ix_rdwc_mode {
    IX_RDWC_OFF,
    IX_RDWC_ON,
    IX_RDWC_PUBLISHED, /* not linearizable, see above */
    IX_RDWC_STALE,     /* only for `check`: of IX_RDWC_PUBLISHED, the gets */
};

struct ix_rdwc_config {
    enum ix_rdwc_mode mode; /* not off */
    uint32_t clients;       /* of the compute node */
    uint32_t slots;         /* of the table; 0: enough that keys seldom share one */
    uint32_t value_bytes;
};

struct ix_rdwc; /* of one compute node */

/* NULL when out of memory. Closed after every client has been unwrapped. */
struct ix_rdwc *ix_rdwc_open(const struct ix_ops *index, const struct ix_rdwc_config *config);
void ix_rdwc_close(struct ix_rdwc *rdwc); /* accepts NULL */

/* Bytes of local memory that the table and the clients' values take, 0 for NULL. Handles are not counted, as those of
 * the index are not. */
uint64_t ix_rdwc_bytes(const struct ix_rdwc *rdwc);

/* How a client's operations were done. Shared: with the outcome of another client's operation, without a verb. */
struct ix_rdwc_counts {
    uint64_t shared_gets, shared_updates;
    uint64_t bypassed; /* gets and updates whose slot was in use by another key */
};

/* Puts the wrapper around an attached client, and removes it, which leaves the client as it was. 0 or
 * DM_ERR_NO_MEMORY. Unwrapping a client that is not wrapped does nothing. */
int ix_rdwc_wrap(struct ix_rdwc *rdwc, struct dm_ctx *ctx, struct ix_client *client);
void ix_rdwc_unwrap(struct ix_client *client);

/* Of a wrapped client; borrowed. */
const struct ix_rdwc_counts *ix_rdwc_counts(const struct ix_client *client);

#endif
