/* SPDX-License-Identifier: Apache-2.0
 *
 * The server of a memory node.
 */
#ifndef DM_INDEXES_XSTORE_D_SERVER_H
#define DM_INDEXES_XSTORE_D_SERVER_H

#include "indexes/index.h"

int xstore_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err);
void xstore_unserve(void *server);

#endif
