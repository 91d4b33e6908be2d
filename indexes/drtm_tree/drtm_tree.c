/* SPDX-License-Identifier: Apache-2.0
 *
 * DrTM-Tree, a B+ tree of fanout 16 that servers alone touch, as XStore compares itself with: its parameters and table.
 * indexes/shared/server_tree.h has the tree.
 */
#include "indexes/shared/server_tree_ops.h"

static const struct dm_opt params_table[] = {
    IX_SERVER_ROW(slots, DM_OPT_COUNT, .initial = "16", .min = 2, .max = IX_SERVER_SLOTS_MAX, .unit = "pairs",
                  .help = "Pairs of a leaf."),
    IX_SERVER_ROW(fanout, DM_OPT_COUNT, .initial = "16", .min = 3, .max = IX_SERVER_SLOTS_MAX, .unit = "children",
                  .help = "Children of an inner node."),
    IX_SERVER_ROW(fill, DM_OPT_REAL, .initial = "0.5", .min = 0.1, .max = 1,
                  .help = "Share of a node's entries that bulk load fills; the trees of XStore's paper are half full."),
    IX_SERVER_ROW(inline_bytes, DM_OPT_BYTES, .initial = "128", .min = 0, .max = IX_SERVER_INLINE_MAX,
                  .help = "Largest value that is in the leaf, together with what keys have beyond 8 bytes; larger ones "
                          "are in rows of their own."),
    IX_SERVER_PARAM_ROWS("sorted"),
    DM_OPT_END,
};

const struct ix_ops ix_ops_drtm_tree = {
    .name = "drtm_tree",
    .summary = "B+ tree behind remote procedure calls: every operation is one call to a memory node's cores",
    .paper = "Y. Chen, X. Wei, J. Shi, R. Chen, H. Chen: Fast and General Distributed Transactions using RDMA and HTM, "
             "EuroSys 2016, as X. Wei, R. Chen, H. Chen compare XStore with it, OSDI 2020",
    .params = params_table,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    IX_SERVER_OPS,
};
