/* SPDX-License-Identifier: Apache-2.0
 *
 * A masked atomic as mlx5 devices take it: segments of 16 bytes, all numbers big-endian.
 *
 *   control      opcode, its modifier, the queue pair, the number of segments, flags
 *   remote       address, key
 *   operands     CAS: swap, compare; then a second segment: swap mask, compare mask. Addition: addend, field boundaries
 *   local        8 (bytes), key, address
 *
 * The operands are big-endian in the queue and the word in memory is the processor's: the device converts. The previous
 * value is in the processor's byte order too if atomic_req_8B_endianness_mode is 1, which Linux sets where it can;
 * where it cannot, Linux reports IBV_ATOMIC_NONE and the transport does not open.
 */
#include "transport/verbs/masked_format.h"

#include <string.h>

enum {
    OPCODE_CAS = 0x14,
    OPCODE_ADD = 0x15,
    EXTENDED = 8,       /* of the opcode's modifier: operands have masks; the rest is log2(bytes of the word) - 2 */
    WORD_OF_8 = 1,      /* log2(8) - 2 */
    SIGNALLED = 2 << 2, /* flags: a completion is written; the device waits for reads and atomics before it */
    FENCED = 4 << 5,
    WORD_BYTES = 8,
};

enum {
    QUERY_HCA_CAP = 0x100,
    ATOMIC_CURRENT = 3 << 1 | 1,         /* which capabilities; their current values, not their greatest ones */
    ANSWER_HEAD = 16,                    /* bytes before the capabilities */
    BYTE_ORDER_AT = 8,                   /* of the capabilities: two bits at the top of this byte */
    OPERATIONS_AT = 18,                  /* 16 bits each */
    SIZES_AT = 22,                       /* a set of powers of two, in bytes */
    OPERATIONS_MASKED = 1 << 2 | 1 << 3, /* CAS, addition */
};

/* ---- the work request ------------------------------------------------------------------------------------------- */

static unsigned char *put(unsigned char *at, uint64_t value, unsigned bytes) {
    for (unsigned i = bytes; i > 0; i--) {
        *at++ = (unsigned char)(value >> (8 * (i - 1)));
    }
    return at;
}

size_t verbs_masked_encode(const struct verbs_masked_work *work, unsigned char bytes[VERBS_MASKED_CAS_BYTES]) {
    size_t length = work->is_addition ? VERBS_MASKED_FAA_BYTES : VERBS_MASKED_CAS_BYTES;
    unsigned char *at = bytes;
    memset(bytes, 0, VERBS_MASKED_CAS_BYTES);
    at = put(at, EXTENDED | WORD_OF_8, 1);
    at = put(at, 0, 2); /* the index */
    at = put(at, work->is_addition ? OPCODE_ADD : OPCODE_CAS, 1);
    at = put(at, (uint64_t)work->queue_pair << 8 | length / VERBS_MASKED_SEGMENT, 4);
    at = put(at, 0, 3); /* signature, and what other kinds of queue pairs have */
    at = put(at, (work->is_signalled ? SIGNALLED : 0u) | (work->is_fenced ? FENCED : 0u), 1);
    at = put(at, 0, 4);

    at = put(at, work->remote, 8);
    at = put(at, work->rkey, 4);
    at = put(at, 0, 4);

    at = put(at, work->op.swap, 8);
    if (work->is_addition) {
        at = put(at, work->op.compare_mask, 8);
    } else {
        at = put(at, work->op.compare, 8);
        at = put(at, work->op.swap_mask, 8);
        at = put(at, work->op.compare_mask, 8);
    }

    at = put(at, WORD_BYTES, 4);
    at = put(at, work->lkey, 4);
    put(at, work->local, 8);
    return length;
}

/* ---- capabilities ----------------------------------------------------------------------------------------------- */

void verbs_masked_ask(unsigned char bytes[VERBS_CAPS_ASK_BYTES]) {
    memset(bytes, 0, VERBS_CAPS_ASK_BYTES);
    put(bytes, QUERY_HCA_CAP, 2);
    put(bytes + 6, ATOMIC_CURRENT, 2);
}

static unsigned take(const unsigned char *at) {
    return (unsigned)at[0] << 8 | at[1];
}

const char *verbs_masked_caps_refusal(const unsigned char answer[VERBS_CAPS_ANSWER_BYTES]) {
    const unsigned char *caps = answer + ANSWER_HEAD;
    if ((take(caps + OPERATIONS_AT) & OPERATIONS_MASKED) != OPERATIONS_MASKED) {
        return "the device has none";
    }
    if (!(take(caps + SIZES_AT) & WORD_BYTES)) {
        return "the device has none of 8 bytes";
    }
    if (caps[BYTE_ORDER_AT] >> 6 == 0) {
        return "the device answers them in its own byte order";
    }
    return NULL;
}
