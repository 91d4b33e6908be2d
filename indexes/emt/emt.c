/* SPDX-License-Identifier: Apache-2.0
 *
 * EMT, Masstree behind eRPC, and EMT-D, which is the same on the few cores of a memory node: its parameters and table.
 * indexes/shared/server_tree.h has the tree; README.md says what of Masstree it is.
 */
#include "indexes/shared/server_tree.h"

#define ROW(member, ...) DM_OPT_ROW(struct ix_server_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(slots, DM_OPT_COUNT, .initial = "15", .min = 2, .max = 15, .unit = "pairs",
        .help = "Pairs of a border node (leaf)."),
    ROW(fanout, DM_OPT_COUNT, .initial = "16", .min = 3, .max = IX_SERVER_SLOTS_MAX, .unit = "children",
        .help = "Children of an interior node, one more than its keys."),
    ROW(fill, DM_OPT_REAL, .initial = "0.7", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills; what random inserts leave."),
    ROW(inline_bytes, DM_OPT_BYTES, .initial = "0", .min = 0, .max = IX_SERVER_INLINE_MAX,
        .help = "Largest value that is in the leaf; larger ones are in rows of their own, as all are in Masstree."),
    ROW(order, DM_OPT_ENUM, .initial = "permuted", .choices = ix_server_orders,
        .help = "Pairs of a leaf are moved into their order (sorted), or a word has the order of the slots."),
    ROW(validate, DM_OPT_BOOL, .initial = "on",
        .help = "Readers compare the version of a node before and after their copy; off is wrong."),
    ROW(follow, DM_OPT_BOOL, .initial = "on",
        .help = "Readers follow the right link of a node that was split; off is wrong."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {IX_SERVER_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static const struct ix_wrong wrong_values[] = {
    {"validate", "off", 400, "a node is read while it is changed: keys and values of two states"},
    {"follow", "off", 2000, "a key that a split has moved is reported absent"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"slots", "3"}, {"fanout", "3"}, {.param = NULL}};

const struct ix_ops ix_ops_emt = {
    .name = "emt",
    .summary = "Masstree behind remote procedure calls: every operation is one call to a memory node's cores",
    .paper =
        "Y. Mao, E. Kohler, R. Morris: Cache Craftiness for Fast Multicore Key-Value Storage, EuroSys 2012, behind "
        "A. Kalia, M. Kaminsky, D. Andersen: Datacenter RPCs can be General and Fast, NSDI 2019",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_CLIENT_STOP,
    .params = params_table,
    .params_bytes = sizeof(struct ix_server_params),
    .counters = counters,
    .counts_offset = offsetof(struct ix_server_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .value_bytes_max = IX_SERVER_VALUE_MAX,
    .cn_bytes = sizeof(struct ix_server_cn),
    .server_bytes = sizeof(struct ix_server),
    .client_bytes = sizeof(struct ix_server_client),
    .check = ix_server_check,
    .memory_needed = ix_server_memory_needed,
    .serve = ix_server_serve,
    .unserve = ix_server_unserve,
    .format = ix_server_format,
    .open = ix_server_open,
    .load = ix_server_load,
    .attach = ix_server_attach,
    .get = ix_server_get,
    .insert = ix_server_insert,
    .update = ix_server_update,
    .remove = ix_server_remove,
    .scan = ix_server_scan,
    .cache_bytes = ix_server_cache_bytes,
    .verify = ix_server_verify,
};
