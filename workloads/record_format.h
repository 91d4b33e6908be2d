/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures of a file of recorded operations. Only its writer and its reader use them.
 */
#ifndef DM_WORKLOADS_RECORD_FORMAT_H
#define DM_WORKLOADS_RECORD_FORMAT_H

#include <assert.h>
#include <stdint.h>

#include "workloads/workload.h"

/* "DMWLREC" and version 2, as one number; a machine of the other byte order reads another number. */
#define WL_RECORD_MAGIC UINT64_C(0x024345524c574d44)

/* The same of version 1, which had no hash. */
#define WL_RECORD_MAGIC_1 UINT64_C(0x014345524c574d44)

struct wl_record_header {
    uint64_t magic;
    uint64_t seed, operations, recorded;
    uint64_t by_kind[WL_OP_KIND_COUNT];
    uint32_t clients, scan_max;
    uint32_t config_bytes; /* of the text after the header, a multiple of 8 */
    uint32_t complete;     /* 1 when the totals are final */
    uint64_t hash;         /* XXH64 of all that follows the header, and then of the header with a hash of 0 */
};
static_assert(sizeof(struct wl_record_header) == 104, "no padding in the file");

struct wl_record_block {
    uint32_t client, count; /* count operations follow */
};

struct wl_record_op {
    uint64_t key;
    uint32_t scan_length, kind;
};
static_assert(sizeof(struct wl_record_op) == 16, "no padding in the file");

#endif
