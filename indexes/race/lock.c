/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks of subtables and of the directory, and the repetition of verbs that complete in error. Such a verb may have
 * taken effect or not, so what other clients rely on is written by verbs that can be repeated.
 */
#include "race.h"

/* Commits the last insert if the compare-and-swap that does, which was not waited for, may be what failed: others wait
 * for its slot. It has no effect if the slot has been committed. [waits] */
static int settle(struct race_client *client) {
    uint32_t failures = 0;
    while (client->unsettled != 0 && failures < RACE_FAILURES_MAX) {
        int rc = dm_cas(client->ctx, client->unsettled_at, client->unsettled | RACE_SLOT_TENTATIVE, client->unsettled,
                        client->olds);
        if (rc == 0) {
            client->unsettled = 0;
        } else if (rc != DM_ERR_IO) {
            return rc;
        } else {
            DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, &failures, 0));
        }
    }
    return 0;
}

int race_repeat(struct race_client *client, int rc, uint32_t *failures) {
    if (rc != DM_ERR_IO) {
        return rc;
    }
    DM_TRY(settle(client));
    if (*failures >= RACE_FAILURES_MAX) {
        return rc;
    }
    int over = ix_retry(client->ctx, DM_RETRY_LOCK, failures, 0);
    return over == 0 ? RACE_AGAIN : over == DM_ERR_RETRY_LIMIT ? rc : over;
}

int race_end(struct race_client *client, int rc) {
    DM_TRY(rc == DM_ERR_IO ? settle(client) : 0);
    return rc;
}

int race_lock_take(struct race_client *client, dm_addr lock, bool *taken) {
    uint32_t failures = 0;
    int rc;
    do {
        rc = race_repeat(client, dm_cas(client->ctx, lock, 0, client->token, client->olds), &failures);
    } while (rc == RACE_AGAIN);
    *taken = rc == 0 && (client->olds[0] == 0 || client->olds[0] == client->token);
    return rc;
}

int race_locks_give(struct race_client *client, const dm_addr *locks, unsigned count) {
    uint32_t failures = 0;
    client->words[0] = 0;
    for (unsigned i = 0; i < count; i++) {
        dm_post_write(client->ctx, locks[i], client->words, sizeof(uint64_t));
    }
    int rc = race_repeat(client, dm_commit(client->ctx), &failures);
    while (rc == RACE_AGAIN) {
        /* The lock may be another client's by now. */
        for (unsigned i = 0; i < count; i++) {
            dm_post_cas(client->ctx, locks[i], client->token, 0, &client->olds[i]);
        }
        rc = race_repeat(client, dm_commit(client->ctx), &failures);
    }
    return rc;
}
