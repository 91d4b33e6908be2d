/* SPDX-License-Identifier: Apache-2.0
 *
 * EMT, Masstree behind eRPC, and EMT-D, which is the same on the few cores of a memory node: its parameters and table.
 * indexes/shared/server_tree.h has the tree; README.md says what of Masstree it is.
 */
#include "indexes/shared/server_tree_ops.h"

static const struct dm_opt params_table[] = {
    IX_SERVER_ROW(slots, DM_OPT_COUNT, .initial = "15", .min = 2, .max = 15, .unit = "pairs",
                  .help = "Pairs of a border node (leaf)."),
    IX_SERVER_ROW(fanout, DM_OPT_COUNT, .initial = "16", .min = 3, .max = IX_SERVER_SLOTS_MAX, .unit = "children",
                  .help = "Children of an interior node, one more than its keys."),
    IX_SERVER_ROW(fill, DM_OPT_REAL, .initial = "0.7", .min = 0.1, .max = 1,
                  .help = "Share of a node's entries that bulk load fills; what random inserts leave."),
    IX_SERVER_ROW(inline_bytes, DM_OPT_BYTES, .initial = "0", .min = 0, .max = IX_SERVER_INLINE_MAX,
                  .help = "Largest value that is in the leaf, together with what keys have beyond 8 bytes; larger ones "
                          "are in rows of "
                          "their own, as all are in Masstree."),
    IX_SERVER_PARAM_ROWS("permuted"),
    DM_OPT_END,
};

const struct ix_ops ix_ops_emt = {
    .name = "emt",
    .summary = "Masstree behind remote procedure calls: every operation is one call to a memory node's cores",
    .paper =
        "Y. Mao, E. Kohler, R. Morris: Cache Craftiness for Fast Multicore Key-Value Storage, EuroSys 2012, behind "
        "A. Kalia, M. Kaminsky, D. Andersen: Datacenter RPCs can be General and Fast, NSDI 2019",
    .params = params_table,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    IX_SERVER_OPS,
};
