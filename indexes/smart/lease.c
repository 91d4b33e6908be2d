/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases (lease_us; not in the paper or the public code): what another client has held for so long does not stop
 * others.
 *
 * A verb of a client that is slow, or that has stopped, may arrive at any time later. So nothing here relies on time
 * for being right, only for how long to wait; and a lock is never taken from its holder. The leaf is taken out of the
 * tree instead, and what the holder still writes goes to a leaf that no client reads:
 *
 *  - A leaf whose lock has been held for a lease is claimed all the same, with its lock. An update in place replaces it
 *    then. Its memory is not used again, as the holder may still write to it.
 *  - The holder writes only checksum, key and value, and releases the lock by a compare-and-swap of state, lock and
 *    stamp. If that fails the leaf was claimed meanwhile. The update is done all the same: it came just before the
 *    claim, since no other client could change the leaf from the moment in which it was locked.
 *  - A leaf that has been claimed in order to be replaced, while its slot still leads to it, has the key's value:
 *    the slot is what decides. Reads and inserts take the leaf if they find its slot unchanged after they have read
 *    it. Updates and deletes change the slot themselves when a lease is over. The claimant's own
 *    compare-and-swap of the slot fails then, and its update came just before. A leaf is linked once with each stamp,
 *    so it cannot succeed later.
 *
 * A claimant never gives a claim back: its leaf may be out of the tree already.
 */
#include "smart.h"

enum { NS_PER_US = 1000 };

bool smart_lease_is_over(struct smart_client *client, struct smart_at *at, uint64_t word) {
    if (!smart_has_leases(client)) {
        return false;
    }
    uint64_t now = dm_now(client->ctx);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 1);
    if (at->watched != word) {
        at->watched = word;
        at->since_ns = now;
        return false;
    }
    return now - at->since_ns >= client->cn->params->lease_us * NS_PER_US;
}
