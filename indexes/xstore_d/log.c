/* SPDX-License-Identifier: Apache-2.0
 *
 * Logging of writes, optional (XStore, section 5.4): every write appends {number, method, key, value} to a ring in the
 * memory node's DRAM, and a background context on the same cores drains it in batches. The storage device is a rate at
 * which it writes batches one by one (`log_rate`); it keeps nothing, as recovery is not part of this index. A
 * writer waits when the ring is full, so a device that is too slow limits the writes.
 */
#include "log.h"

enum { RING_BYTES = 1 << 18, BATCH_BYTES = 4096, WAIT_NS = 1000 };

static uint32_t record_bytes(const struct xstore_server *server) {
    return 24 + server->layout.user_words * 8;
}

int xstore_log_open(struct xstore_server *server, struct dm_ctx *ctx) {
    return dm_alloc(ctx, server->node, RING_BYTES, DM_LINE, DM_MEM_META, &server->log);
}

static void ring_write(struct xstore_server *server, struct dm_ctx *ctx, const uint64_t *words, uint32_t bytes) {
    uint64_t at = server->log_head % RING_BYTES;
    uint32_t part = RING_BYTES - at < bytes ? (uint32_t)(RING_BYTES - at) : bytes;
    dm_cpu_write(ctx, dm_addr_add(server->log, at), words, part);
    if (part < bytes) {
        dm_cpu_write(ctx, server->log, words + part / 8, bytes - part);
    }
    server->log_head += bytes;
}

int xstore_log_append(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned method,
                      const void *value) {
    uint32_t bytes = record_bytes(server);
    uint64_t words[3 + XSTORE_VALUE_MAX / 8] = {0, method, key};
    if (!server->params->logging) {
        return 0;
    }
    if (value) {
        memcpy(words + 3, value, server->layout.user_bytes);
    }
    DM_TRY(dm_mutex_lock(ctx, &server->log_lock));
    while (server->log_head + bytes - server->log_tail > RING_BYTES) {
        dm_mutex_unlock(ctx, &server->log_lock);
        DM_TRY(dm_sleep(ctx, WAIT_NS));
        DM_TRY(dm_mutex_lock(ctx, &server->log_lock));
    }
    words[0] = server->log_head / bytes;
    ring_write(server, ctx, words, bytes);
    dm_cond_wake_one(ctx, &server->log_work);
    dm_mutex_unlock(ctx, &server->log_lock);
    dm_charge(ctx, DM_WORK_LINE_COPY, bytes / DM_LINE + 1);
    return 0;
}

/* Waits until the device has written so many bytes. */
static int device_write(struct xstore_server *server, struct dm_ctx *ctx, uint32_t bytes) {
    uint64_t rate = server->params->log_rate, now = dm_now(ctx);
    if (rate == 0) {
        return 0;
    }
    server->log_busy_until =
        (server->log_busy_until > now ? server->log_busy_until : now) + bytes * UINT64_C(1000000000) / rate;
    return dm_sleep(ctx, server->log_busy_until - now);
}

void xstore_logger_main(struct dm_ctx *ctx, void *arg) {
    struct xstore_server *server = arg;
    char batch[BATCH_BYTES];
    int rc = dm_mutex_lock(ctx, &server->log_lock);
    while (rc >= 0) {
        uint64_t at = server->log_tail % RING_BYTES, left = server->log_head - server->log_tail;
        uint64_t most = RING_BYTES - at < BATCH_BYTES ? RING_BYTES - at : BATCH_BYTES;
        uint32_t bytes = (uint32_t)(left < most ? left : most);
        if (bytes == 0) {
            rc = dm_cond_wait(ctx, &server->log_work, &server->log_lock);
            continue;
        }
        dm_cpu_read(ctx, dm_addr_add(server->log, at), batch, bytes);
        dm_mutex_unlock(ctx, &server->log_lock);
        dm_charge(ctx, DM_WORK_LINE_COPY, bytes / DM_LINE + 1);
        rc = device_write(server, ctx, bytes);
        rc = rc < 0 ? rc : dm_mutex_lock(ctx, &server->log_lock);
        server->log_tail += rc < 0 ? 0 : bytes;
    }
}
