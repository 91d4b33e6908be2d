/* SPDX-License-Identifier: Apache-2.0
 *
 * Proofs of the token.
 */
#include "transport/verbs/proof.h"

#include <string.h>

#include <openssl/hmac.h>
#include <openssl/rand.h>

enum { HASHED = 1 + 2 * WIRE_NONCE + WIRE_MAX };

/* Both numbers, and the message as it is on the wire. */
static int hash(const uint8_t token[WIRE_TOKEN], enum verbs_proof_kind kind, const struct verbs_nonces *nonces,
                const struct wire_message *message, uint8_t proof[WIRE_PROOF]) {
    unsigned char bytes[HASHED] = {(unsigned char)kind};
    unsigned int length = 0;
    memcpy(bytes + 1, nonces->caller, WIRE_NONCE);
    memcpy(bytes + 1 + WIRE_NONCE, nonces->server, WIRE_NONCE);
    size_t count = 1 + 2 * WIRE_NONCE + verbs_wire_encode(message, bytes + 1 + 2 * WIRE_NONCE);
    bool is_done = HMAC(EVP_sha256(), token, WIRE_TOKEN, bytes, count, proof, &length) && length == WIRE_PROOF;
    return is_done ? 0 : DM_ERR_IO;
}

int verbs_proof_make(const uint8_t token[WIRE_TOKEN], enum verbs_proof_kind kind, const struct verbs_nonces *nonces,
                     const struct wire_message *hello, uint8_t proof[WIRE_PROOF]) {
    return hash(token, kind, nonces, hello, proof);
}

int verbs_proof_request(const uint8_t token[WIRE_TOKEN], const struct verbs_nonces *nonces,
                        const struct wire_message *request, uint8_t proof[WIRE_PROOF]) {
    struct wire_message bare = *request;
    memset(bare.cm_request.proof, 0, sizeof(bare.cm_request.proof));
    return hash(token, VERBS_PROOF_REQUEST, nonces, &bare, proof);
}

int verbs_nonce_make(uint8_t nonce[WIRE_NONCE]) {
    return RAND_bytes(nonce, WIRE_NONCE) == 1 ? 0 : DM_ERR_IO;
}
