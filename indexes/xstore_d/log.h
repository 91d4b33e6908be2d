/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of writes.
 */
#ifndef DM_INDEXES_XSTORE_D_LOG_H
#define DM_INDEXES_XSTORE_D_LOG_H

#include "mn.h"

int xstore_log_open(struct xstore_server *server, struct dm_ctx *ctx);
int xstore_log_append(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned method,
                      const void *value);
void xstore_logger_main(struct dm_ctx *ctx, void *server);

#endif
