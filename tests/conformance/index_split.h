/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests look at after a split of a tree of indexes/shared.
 */
#ifndef DM_TESTS_INDEX_SPLIT_H
#define DM_TESTS_INDEX_SPLIT_H

#include "indexes/shared/tree.h"

/* The half that a split put to the right of `left`, from the parent that it wrote last. */
static inline dm_addr split_right_of(const struct ix_tree *tree, dm_addr left) {
    const dm_addr *children = ix_inner_children_in(&tree->cn->inner, tree->image);
    for (unsigned i = 0; i + 1 < ix_node_head_in(tree->image)->count; i++) {
        if (dm_addr_equal(children[i], left)) {
            return children[i + 1];
        }
    }
    return DM_NULL;
}

#endif
