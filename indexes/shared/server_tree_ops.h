/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tables of the indexes with a server-side tree have in common. Only their table includes this.
 */
#ifndef DM_INDEXES_SHARED_SERVER_TREE_OPS_H
#define DM_INDEXES_SHARED_SERVER_TREE_OPS_H

#include "indexes/shared/server_tree.h"

/* Rows of an index's parameter table: the parameters that are the same in all these trees, but for what is default. */
#define IX_SERVER_ROW(member, ...) DM_OPT_ROW(struct ix_server_params, member, __VA_ARGS__)
#define IX_SERVER_PARAM_ROWS(initial_order)                                                                            \
    IX_SERVER_ROW(order, DM_OPT_ENUM, .initial = (initial_order), .choices = ix_server_orders,                         \
                  .help =                                                                                              \
                      "Pairs of a leaf are moved into their order (sorted), or a word has the order of the slots."),   \
        IX_SERVER_ROW(validate, DM_OPT_BOOL, .initial = "on",                                                          \
                      .help = "Readers compare the version of a node before and after their copy; off is wrong."),     \
        IX_SERVER_ROW(follow, DM_OPT_BOOL, .initial = "on",                                                            \
                      .help = "Readers follow the right link of a node that was split; off is wrong.")

/* All members of an index's table but its name, summary, paper and parameters. */
#define IX_SERVER_OPS                                                                                                  \
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_CLIENT_STOP | IX_CAP_RESIZE,                          \
    .params_bytes = sizeof(struct ix_server_params), .counters = ix_server_counters,                                   \
    .counts_offset = offsetof(struct ix_server_client, counts), .wrong = ix_server_wrong, .tiny = ix_server_tiny,      \
    .value_bytes_max = IX_SERVER_VALUE_MAX, .cn_bytes = sizeof(struct ix_server_cn),                                   \
    .server_bytes = sizeof(struct ix_server), .client_bytes = sizeof(struct ix_server_client),                         \
    .check = ix_server_check, .memory_needed = ix_server_memory_needed, .serve = ix_server_serve,                      \
    .unserve = ix_server_unserve, .format = ix_server_format, .open = ix_server_open, .load = ix_server_load,          \
    .attach = ix_server_attach, .get = ix_server_get, .insert = ix_server_insert, .update = ix_server_update,          \
    .remove = ix_server_remove, .scan = ix_server_scan, .cache_bytes = ix_server_cache_bytes,                          \
    .verify = ix_server_verify

#endif
