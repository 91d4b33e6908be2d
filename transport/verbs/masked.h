/* SPDX-License-Identifier: Apache-2.0
 *
 * Masked atomics that are the device's own. libibverbs has no verb for them, so they take a vendor's library: one file
 * with the functions of the first part is linked, masked_mlx5.c or, in a build without such a library, masked_none.c.
 * masked.c decides whether they are used. Where they are not, the core emulates them (transport/core/batch.c).
 */
#ifndef DM_TRANSPORT_VERBS_MASKED_H
#define DM_TRANSPORT_VERBS_MASKED_H

#include <infiniband/verbs.h>

#include "transport/verbs/masked_format.h"

/* ---- the vendor's library --------------------------------------------------------------------------------------- */

/* Why the device has no masked atomics, in words; NULL: it may have them. A device that does not report its
 * capabilities is not refused, since verbs_masked_try finds out. */
const char *verbs_masked_refusal(struct ibv_context *device);

/* As ibv_create_qp, for a queue pair that takes masked atomics beside all other work. NULL and errno on failure. */
struct ibv_qp *verbs_masked_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/* Posts masked atomics to such a queue pair: begin, add each, end, which rings the doorbell once. Nothing else may be
 * posted between. `number` is what the completion reports. `end` returns 0 or an errno, and then nothing was posted. */
void verbs_masked_begin(struct ibv_qp *qp);
void verbs_masked_add(struct ibv_qp *qp, uint64_t number, const struct verbs_masked_work *work);
int verbs_masked_end(struct ibv_qp *qp);

/* ---- masked.c --------------------------------------------------------------------------------------------------- */

struct verbs;
struct verbs_conn;
struct verbs_port;

/* Finds out whether the port's device has masked atomics: by what it reports, and by executing some on memory of this
 * process. Sets port->masked and port->masked_refusal. */
void verbs_masked_try(struct verbs *verbs, struct verbs_port *port);

/* Decides whether this process sends them, once it knows the devices of all nodes with memory. Before contexts run. */
void verbs_masked_choose(struct verbs *verbs);

/* As ibv_post_send, for a list with masked atomics in it. It rings the doorbell once for each change between them and
 * other work, and counts those after the first. */
int verbs_masked_post(struct verbs_conn *conn, struct ibv_send_wr *first);

#endif
