/* SPDX-License-Identifier: Apache-2.0
 *
 * What mlx5 devices (ConnectX-4 and later) read and answer where masked atomics are concerned: the work request in the
 * send queue, and the capabilities. It depends on no library, so that it can be tested anywhere.
 *
 * The layout is that of three programs which agree: libmlx5 of Mellanox's OFED 4 (src/qp.c, `ext_cmp_swp` and
 * `ext_fetch_add`), UCX (uct/ib/mlx5/rc/rc_mlx5.inl) and NVSHMEM's transports for mlx5. Capabilities are in rdma-core's
 * providers/mlx5/mlx5_ifc.h (`mlx5_ifc_atomic_caps_bits`).
 */
#ifndef DM_TRANSPORT_VERBS_MASKED_FORMAT_H
#define DM_TRANSPORT_VERBS_MASKED_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/dm.h"

/* ---- the work request ------------------------------------------------------------------------------------------- */

enum {
    VERBS_MASKED_SEGMENT = 16, /* bytes, in which the device counts a work request's length */
    VERBS_MASKED_CAS_BYTES = 5 * VERBS_MASKED_SEGMENT,
    VERBS_MASKED_FAA_BYTES = 4 * VERBS_MASKED_SEGMENT,
};

struct verbs_masked_work {
    struct dm_mask op; /* of an addition: `swap` is the addend and `compare_mask` the top bits of its fields */
    bool is_addition, is_fenced, is_signalled;
    uint32_t queue_pair; /* its number at this end */
    uint64_t remote;     /* address of the word, a multiple of 8 */
    uint32_t rkey;
    uint64_t local; /* where the previous value goes: 8 bytes */
    uint32_t lkey;
};

/* Writes the work request and returns its bytes. Its index in the queue is left 0, and so is its signature: the driver
 * sets them. */
size_t verbs_masked_encode(const struct verbs_masked_work *work, unsigned char bytes[VERBS_MASKED_CAS_BYTES]);

/* ---- capabilities ----------------------------------------------------------------------------------------------- */

enum {
    VERBS_CAPS_ASK_BYTES = 16,
    VERBS_CAPS_ANSWER_BYTES = 16 + 4096,
};

/* Writes the command QUERY_HCA_CAP for the current capabilities of atomics. */
void verbs_masked_ask(unsigned char bytes[VERBS_CAPS_ASK_BYTES]);

/* Why a device with that answer has no masked atomics of 8 bytes that behave as dm.h demands; NULL: it has them. */
const char *verbs_masked_caps_refusal(const unsigned char answer[VERBS_CAPS_ANSWER_BYTES]);

#endif
