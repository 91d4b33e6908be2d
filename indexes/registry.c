/* SPDX-License-Identifier: Apache-2.0
 *
 * The indexes of indexes.def as an array. Adding one needs no edit here.
 */
#include <string.h>

#include "indexes/index.h"

#define IX_INDEX(name) extern const struct ix_ops ix_ops_##name;
#include "indexes/indexes.def"
#undef IX_INDEX

static const struct ix_ops *const all[] = {
#define IX_INDEX(name) &ix_ops_##name,
#include "indexes/indexes.def"
#undef IX_INDEX
    NULL,
};

const struct ix_ops *const *ix_all(void) {
    return all;
}

const struct ix_ops *ix_find(const char *name) {
    for (const struct ix_ops *const *ops = all; *ops; ops++) {
        if (strcmp((*ops)->name, name) == 0) {
            return *ops;
        }
    }
    return NULL;
}
