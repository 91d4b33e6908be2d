/* SPDX-License-Identifier: Apache-2.0
 *
 * How two processes show each other that both have the run's token without sending it: each sends a random number, and
 * each a hash (HMAC-SHA256 of libcrypto) of both numbers and of what it asks for, with the token as the key. A listener
 * can repeat none of it later. It protects no later message: on an RDMA network memory is protected by keys
 * that travel in the clear in any case.
 */
#ifndef DM_TRANSPORT_VERBS_PROOF_H
#define DM_TRANSPORT_VERBS_PROOF_H

#include "transport/verbs/wire.h"

/* Who shows it, or for what: a proof for one is worth nothing for another. */
enum verbs_proof_kind { VERBS_PROOF_CALLER = 1, VERBS_PROOF_SERVER, VERBS_PROOF_REQUEST };

/* The random numbers of both sides of a control connection. */
struct verbs_nonces {
    uint8_t caller[WIRE_NONCE], server[WIRE_NONCE];
};

/* Of a control connection: fabric, node and caller are those of its HELLO. 0 or DM_ERR_IO. */
int verbs_proof_make(const uint8_t token[WIRE_TOKEN], enum verbs_proof_kind kind, const struct verbs_nonces *nonces,
                     const struct wire_message *hello, uint8_t proof[WIRE_PROOF]);

/* Of a request through the connection manager, of which everything but the proof is covered. */
int verbs_proof_request(const uint8_t token[WIRE_TOKEN], const struct verbs_nonces *nonces,
                        const struct wire_message *request, uint8_t proof[WIRE_PROOF]);

/* 0 or DM_ERR_IO. */
int verbs_nonce_make(uint8_t nonce[WIRE_NONCE]);

#endif
