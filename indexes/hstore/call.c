/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's actions after a call to an index server, for all operations.
 */
#include "hstore.h"

int hstore_view_read(struct hstore_cn *cn, struct dm_ctx *ctx, unsigned shard, uint64_t *words, bool *is_usable) {
    unsigned count = hstore_part_count(cn->geometry.buckets);
    dm_addr addr = dm_addr_make(hstore_hts_node(cn->shape->topology, shard), DM_DRAM, HSTORE_PARTS_OFFSET);
    DM_TRY(dm_read(ctx, addr, words, count * (uint32_t)sizeof(*words)));
    *is_usable = true;
    for (unsigned i = 0; i < count; i++) {
        atomic_store(&cn->views[shard].parts[i], words[i]);
        *is_usable = *is_usable && words[i] != 0;
    }
    return 0;
}

void hstore_reply_take(struct hstore_client *client, const struct hstore_reply *reply) {
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, HSTORE_EVENT_COUNT);
    for (unsigned i = 0; i < HSTORE_EVENT_COUNT; i++) {
        client->counts[i] += reply->events[i];
    }
    dm_phase_move(client->ctx, DM_PHASE_CALL, DM_PHASE_QUEUE, reply->queue_ns);
    dm_phase_move(client->ctx, DM_PHASE_CALL, DM_PHASE_LOG, reply->log_ns);
    dm_phase_move(client->ctx, DM_PHASE_CALL, DM_PHASE_INDEX, reply->index_ns);
}

int hstore_failure_wait(struct hstore_client *client, uint32_t *attempts) {
    enum { SLOWER = 64, SLOWEST = 10 };
    client->counts[HSTORE_FAILURE_RETRY]++;
    DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, attempts));
    uint64_t times = 1 + *attempts / SLOWER;
    return dm_sleep(client->ctx, client->cn->geometry.probe_ns * (times < SLOWEST ? times : SLOWEST));
}
