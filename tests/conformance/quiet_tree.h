/* SPDX-License-Identifier: Apache-2.0
 *
 * The quiet case of a tree: each operation, with each outcome. quiet_run is for trees on memory nodes, whose inner
 * nodes the client has in its cache.
 */
#ifndef DM_TESTS_QUIET_TREE_H
#define DM_TESTS_QUIET_TREE_H

#include "conformance/quiet.h"

enum { QUIET_KEYS = 20000, QUIET_SCANNED = 20 };

/* Each operation on a key, with its outcomes. */
struct quiet {
    struct world world;
    struct kind get, absent /* a get */, update, missing /* an update */, insert, present /* an insert */, remove, scan;
};

/* Runs each of them once; the second key is absent before and after. Values have 8 bytes. */
static inline void quiet_points(struct dm_ctx *ctx, struct quiet *quiet, struct ix_client *client, uint64_t present,
                                uint64_t absent) {
    uint64_t value = 1;
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, client, GET, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, client, GET, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, client, UPDATE, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->missing, client, UPDATE, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->insert, client, INSERT, absent, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->present, client, INSERT, present, &value), DM_EXISTS);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, client, REMOVE, absent, &value), 0);
}

static inline int quiet_tree_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(&quiet->world, 0, ctx, NULL);
    uint64_t value = 1, present = world_key(5000, QUIET_KEYS), absent = world_key(5001, QUIET_KEYS);
    quiet_warm(&client, QUIET_KEYS, 0, 4, 0);
    /* What needs memory gets a chunk, which is a call. */
    WORLD_CHECK_EQ(ix_update(&client, present, &value), 0);
    WORLD_CHECK_EQ(ix_insert(&client, world_key(9001, QUIET_KEYS), &value), 0);
    quiet_points(ctx, quiet, &client, present, absent);
    kind_scan(ctx, &quiet->scan, &client, present, QUIET_SCANNED);
    ix_detach(&client);
    return 0;
}

static inline struct quiet_end quiet_run(const struct world_config *config, struct quiet *quiet) {
    memset(quiet, 0, sizeof(*quiet));
    return quiet_half_world(&quiet->world, config, QUIET_KEYS, quiet_tree_entry, quiet);
}

#endif
