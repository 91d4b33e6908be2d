/* SPDX-License-Identifier: Apache-2.0
 *
 * A NIC that executes masked atomics from the bytes of their work requests. It follows the layout and semantics that
 * masked_format.h names, and is written for these tests: it shares nothing with the encoder, and it works bit by bit.
 * No NIC has confirmed it.
 */
#ifndef DM_TESTS_MASKED_NIC_H
#define DM_TESTS_MASKED_NIC_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Deviations of a NIC or a driver that the transport has to notice. */
struct masked_nic {
    bool answers_big_endian; /* the previous value */
    bool ignores_masks, ignores_boundaries;
};

/* What a work request says. */
struct masked_request {
    unsigned opcode, modifier, segments, flags;
    uint32_t queue_pair, rkey, lkey, length;
    uint64_t remote, local, operands[4];
};

static inline uint64_t masked_number(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

static inline struct masked_request masked_decode(const unsigned char *wqe) {
    struct masked_request request = {
        .modifier = wqe[0],
        .opcode = wqe[3],
        .queue_pair = (uint32_t)masked_number(wqe + 4, 3),
        .segments = wqe[7],
        .flags = wqe[11],
        .remote = masked_number(wqe + 16, 8),
        .rkey = (uint32_t)masked_number(wqe + 24, 4),
    };
    const unsigned char *local = wqe + ((size_t)request.segments - 1) * 16;
    for (unsigned i = 0; wqe + 32 + 8 * i < local && i < 4; i++) {
        request.operands[i] = masked_number(wqe + 32 + 8 * i, 8);
    }
    request.length = (uint32_t)masked_number(local, 4);
    request.lkey = (uint32_t)masked_number(local + 4, 4);
    request.local = masked_number(local + 8, 8);
    return request;
}

static inline uint64_t masked_cas(const struct masked_nic *nic, const struct masked_request *request, uint64_t found) {
    uint64_t swap_mask = nic->ignores_masks ? UINT64_MAX : request->operands[2], result = found;
    uint64_t compare_mask = nic->ignores_masks ? UINT64_MAX : request->operands[3];
    for (unsigned bit = 0; bit < 64; bit++) {
        if ((compare_mask >> bit & 1) && ((found ^ request->operands[1]) >> bit & 1)) {
            return found;
        }
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t one = UINT64_C(1) << bit;
        result = swap_mask & one ? (result & ~one) | (request->operands[0] & one) : result;
    }
    return result;
}

/* No carry leaves a bit that is set in the boundaries. */
static inline uint64_t masked_add(const struct masked_nic *nic, const struct masked_request *request, uint64_t found) {
    uint64_t boundaries = nic->ignores_boundaries ? 0 : request->operands[1], carry = 0, result = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t sum = (found >> bit & 1) + (request->operands[0] >> bit & 1) + carry;
        result |= (sum & 1) << bit;
        carry = boundaries >> bit & 1 ? 0 : sum >> 1;
    }
    return result;
}

/* Executes the request on the word; *old is the value that the NIC writes as the previous one. False if it refuses the
 * request. */
static inline bool masked_execute(const struct masked_nic *nic, const unsigned char *wqe, uint64_t *word,
                                  uint64_t *old) {
    struct masked_request request = masked_decode(wqe);
    bool is_cas = request.opcode == 0x14;
    if ((!is_cas && request.opcode != 0x15) || request.modifier != 0x09 || request.segments != (is_cas ? 5 : 4) ||
        request.length != 8 || request.remote % 8 != 0) {
        return false;
    }
    *old = nic->answers_big_endian ? htobe64(*word) : *word;
    *word = is_cas ? masked_cas(nic, &request, *word) : masked_add(nic, &request, *word);
    return true;
}

#endif
