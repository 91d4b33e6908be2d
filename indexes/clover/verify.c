/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-check: each key is at its own server, its chain leads from the table's pointer to an end, and every version of
 * it is intact and the key's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clover.h"
#include "indexes/shared/report.h"

enum { CHAIN_MAX = 1 << 20, TRIES = 16 };

struct walk {
    struct clover_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    char *message; /* DM_CALL_MAX */
    char *space;   /* device memory */
};

static void problem(const struct walk *walk, const char *what, uint64_t key) {
    ix_report_problem(walk->report, "%s (key %" PRIu64 ")", what, key);
}

/* Follows a chain from a pointer. *last: the pointer to its end, 0 if a version is not the one that is pointed to. */
static int chain_follow(struct walk *walk, uint64_t key, uint64_t pointer, uint64_t *last) {
    const struct clover_geometry *geometry = &walk->cn->geometry;
    *last = 0;
    for (unsigned length = 0; length < CHAIN_MAX; length++) {
        dm_addr addr = clover_addr_of(pointer);
        if (dm_addr_node(addr) >= walk->cn->shape->topology->mns ||
            !dm_addr_valid(walk->ctx, addr, geometry->space_bytes)) {
            return 0;
        }
        DM_TRY(dm_read(walk->ctx, addr, walk->space, geometry->space_bytes));
        if (!clover_version_intact(walk->space, pointer, key, geometry->value_bytes)) {
            return 0;
        }
        walk->report->leaves++;
        uint64_t next = clover_next_of(((const struct clover_version *)(const void *)walk->space)->header);
        if (next == 0) {
            *last = pointer;
            return 0;
        }
        pointer = next;
    }
    return 0;
}

/* Background contexts may still collect versions: the pointer is requested again then. */
static int key_check(struct walk *walk, unsigned server, const struct clover_entry *entry) {
    uint64_t pointer = entry->pointer, last = 0;
    if (clover_server_of(&walk->cn->geometry, clover_hash(entry->key)) != server) {
        problem(walk, "a key is at the wrong server", entry->key);
    }
    for (unsigned i = 0; i < TRIES; i++) {
        DM_TRY(chain_follow(walk, entry->key, pointer, &last));
        if (last) {
            break;
        }
        struct clover_reply reply;
        DM_TRY(clover_call(walk->cn, walk->ctx, server, CLOVER_METHOD_QUERY, &entry->key, sizeof(entry->key), &reply,
                           NULL, 0));
        if (reply.pointer == pointer) {
            break;
        }
        pointer = reply.pointer;
    }
    if (!last) {
        problem(walk, "a chain leads to a version that is not the key's", entry->key);
    } else {
        walk->report->keys += !clover_is_tombstone(last);
    }
    return 0;
}

static int server_walk(struct walk *walk, unsigned server) {
    struct clover_range range = {0};
    unsigned node = dm_first_server(walk->cn->shape->topology) + server;
    while (range.first < walk->cn->geometry.buckets) {
        struct clover_reply reply;
        uint32_t len = DM_CALL_MAX;
        DM_TRY(dm_call(walk->ctx, node, CLOVER_METHOD_LIST, &range, sizeof(range), walk->message, &len));
        memcpy(&reply, walk->message, sizeof(reply));
        for (uint64_t i = 0; i < reply.count; i++) {
            struct clover_entry entry;
            memcpy(&entry, walk->message + sizeof(reply) + i * sizeof(entry), sizeof(entry));
            DM_TRY(key_check(walk, server, &entry));
        }
        range = (struct clover_range){.first = reply.next, .skip = reply.pointer};
    }
    return 0;
}

int clover_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct clover_cn *cn = handle;
    (void)err;
    struct walk walk = {.cn = cn, .ctx = ctx, .report = report};
    bool interrupted = report->interrupted;
    *report = (struct ix_report){.interrupted = interrupted};
    walk.message = malloc(DM_CALL_MAX);
    walk.space = dm_local_alloc(ctx, cn->geometry.space_bytes);
    int rc = walk.message && walk.space ? 0 : DM_ERR_NO_MEMORY;
    for (unsigned server = 0; server < cn->geometry.servers && rc == 0; server++) {
        rc = server_walk(&walk, server);
    }
    report->leaf_fill = report->leaves > 0 ? (double)report->keys / (double)report->leaves : 0;
    free(walk.message);
    return rc < 0 ? rc : 0;
}
