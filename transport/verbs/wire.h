/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of the control connection between the processes of one fabric: fixed sizes, little-endian, no pointers.
 * An incoming message is checked before it is used; a description of memory is only stored, never followed. This file
 * does not depend on RDMA, so that it can be tested and fuzzed anywhere.
 */
#ifndef DM_TRANSPORT_VERBS_WIRE_H
#define DM_TRANSPORT_VERBS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum {
    WIRE_VERSION = 4,
    WIRE_TOKEN = 32, /* bytes, zero-padded */
    WIRE_NONCE = 16,
    WIRE_PROOF = 32, /* bytes of an HMAC-SHA256 */
    WIRE_DEVICE = 32,
    WIRE_MAX = 256, /* bytes of a message, its length word included */
    WIRE_NODES = 256,
    WIRE_CM_REQUEST_BYTES = 54, /* without the length word; the connection manager carries 56 */
};

/* Memory that a node offers to all connections. */
struct verbs_region {
    uint64_t base, bytes; /* start, which a verb's offset is added to; 0 bytes: none */
    uint32_t rkey;
};

/* The address at which a process accepts connections through the RDMA connection manager. */
struct verbs_cm_address {
    uint8_t gid[16];
    uint16_t port; /* 0: it accepts none */
};

/* What a check of a device found. */
enum verbs_finding { VERBS_ASSUMED /* it was not checked */, VERBS_HOLDS, VERBS_FAILS, VERBS_FINDING_END };

/* Where the memory of a node is, for the result: it knows what its process got. */
enum verbs_chip_kind { VERBS_CHIP_NONE, VERBS_CHIP_DRAM, VERBS_CHIP_DEVICE, VERBS_CHIP_KIND_END };
struct verbs_facts {
    uint8_t chip;                                  /* enum verbs_chip_kind */
    uint8_t huge_pages;                            /* 0 or 1 */
    uint8_t mtu;                                   /* the port's, as enum ibv_mtu */
    uint8_t whole_lines, write_order, cpu_atomics; /* enum verbs_finding; see probe.c */
    uint8_t masked;                                /* likewise: HOLDS if it has masked atomics; see masked.c */
    uint8_t device[WIRE_DEVICE];                   /* its name, zero-padded, with a zero at the end */
};

/* One end of a connection. */
struct verbs_end {
    uint32_t qpn, psn;
    uint16_t lid;
    uint8_t gid[16];
    uint8_t is_global, mtu; /* mtu as enum ibv_mtu */
    uint8_t reads;          /* reads and atomics that it can serve at once */
    uint32_t slots;         /* calls at once */
};

enum wire_kind {
    WIRE_HELLO = 1,   /* caller: version, hash of its configuration, its node, a random number */
    WIRE_CHALLENGE,   /* the answer: another random number */
    WIRE_PROOF_SHOWN, /* caller: that it has the token */
    WIRE_WELCOME,     /* the answer: the same proof, which node this is, and its memory */
    WIRE_CONNECT,     /* caller: its end */
    WIRE_CONNECTED,   /* the answer: the other end */
    WIRE_REFUSED,     /* the answer to anything: why not, as a code; DM_ERR_PEER: the token is another one */
    WIRE_CM_REQUEST,  /* caller, through the connection manager: proof, session, its node, the node it wants */
    WIRE_KIND_END,
};

struct wire_message {
    enum wire_kind kind;
    union {
        struct {
            uint64_t fabric; /* hash of the configuration that both sides must share */
            uint32_t node;   /* that the caller wants to talk to */
            uint32_t caller; /* a node of the caller's process */
            uint8_t nonce[WIRE_NONCE];
        } hello;
        struct {
            uint8_t nonce[WIRE_NONCE];
        } challenge;
        struct {
            uint8_t proof[WIRE_PROOF];
        } proof_shown;
        struct {
            uint8_t proof[WIRE_PROOF];
            uint64_t session; /* names the control connection in requests through the connection manager */
            uint32_t node;
            struct verbs_region dram, chip;
            struct verbs_cm_address cm_address;
            struct verbs_facts facts;
        } welcome;
        struct {
            uint32_t node, caller; /* node to connect to; node of the caller */
            struct verbs_end end;
        } connect; /* CONNECTED too */
        struct {
            int32_t code;
        } refused;
        struct {
            uint8_t proof[WIRE_PROOF];
            uint64_t session;
            uint32_t node, caller; /* node to connect to; node of the caller */
            uint32_t slots;
            uint8_t mtu; /* the caller's port's, as enum ibv_mtu */
        } cm_request;
    };
};

/* Writes the message; returns its bytes, length word included, at most WIRE_MAX. */
size_t verbs_wire_encode(const struct wire_message *message, unsigned char *bytes);

/* The length of the rest of a message from its first four bytes, or DM_ERR_CORRUPT if it is invalid. */
int verbs_wire_length(const unsigned char word[4]);

/* Decodes the rest of a message, `len` bytes. 0, or DM_ERR_CORRUPT if any member is invalid. */
int verbs_wire_decode(const unsigned char *bytes, size_t len, struct wire_message *message);

/* Compares in time that depends on the length alone. */
bool verbs_wire_proof_equal(const uint8_t a[WIRE_PROOF], const uint8_t b[WIRE_PROOF]);

/* Zero-pads; false if the text is longer or empty. */
bool verbs_wire_token_from(const char *text, uint8_t token[WIRE_TOKEN]);

#endif
