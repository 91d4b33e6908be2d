/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoding and decoding of control messages: a length word, a kind, and the members in order, little-endian.
 */
#include "transport/verbs/wire.h"

#include <string.h>

/* Reads or writes members in order; past the end it does nothing and sets is_short. */
struct cursor {
    unsigned char *out;
    const unsigned char *in;
    size_t at, end;
    bool is_short;
};

static void number(struct cursor *cursor, uint64_t *value, size_t bytes) {
    if (cursor->end - cursor->at < bytes) {
        cursor->is_short = true;
        return;
    }
    if (cursor->in) {
        *value = 0;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (cursor->in) {
            *value |= (uint64_t)cursor->in[cursor->at + i] << (8 * i);
        } else if (cursor->out) {
            cursor->out[cursor->at + i] = (unsigned char)(*value >> (8 * i));
        }
    }
    cursor->at += bytes;
}

static void u8(struct cursor *cursor, uint8_t *member) {
    uint64_t value = *member;
    number(cursor, &value, 1);
    *member = (uint8_t)value;
}

static void u16(struct cursor *cursor, uint16_t *member) {
    uint64_t value = *member;
    number(cursor, &value, 2);
    *member = (uint16_t)value;
}

static void u32(struct cursor *cursor, uint32_t *member) {
    uint64_t value = *member;
    number(cursor, &value, 4);
    *member = (uint32_t)value;
}

static void u64(struct cursor *cursor, uint64_t *member) {
    number(cursor, member, 8);
}

static void octets(struct cursor *cursor, uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        u8(cursor, &bytes[i]);
    }
}

static void region(struct cursor *cursor, struct verbs_region *region) {
    u64(cursor, &region->base);
    u64(cursor, &region->bytes);
    u32(cursor, &region->rkey);
}

static void facts(struct cursor *cursor, struct verbs_facts *facts) {
    u8(cursor, &facts->chip);
    u8(cursor, &facts->huge_pages);
    u8(cursor, &facts->mtu);
    u8(cursor, &facts->whole_lines);
    u8(cursor, &facts->write_order);
    u8(cursor, &facts->cpu_atomics);
    u8(cursor, &facts->masked);
    octets(cursor, facts->device, sizeof(facts->device));
}

static void end(struct cursor *cursor, struct verbs_end *end) {
    u32(cursor, &end->qpn);
    u32(cursor, &end->psn);
    u16(cursor, &end->lid);
    octets(cursor, end->gid, sizeof(end->gid));
    u8(cursor, &end->is_global);
    u8(cursor, &end->mtu);
    u8(cursor, &end->reads);
    u32(cursor, &end->slots);
}

static void body(struct cursor *cursor, struct wire_message *message) {
    uint32_t version = WIRE_VERSION, refused;
    switch (message->kind) {
    case WIRE_HELLO:
        u32(cursor, &version);
        cursor->is_short = cursor->is_short || version != WIRE_VERSION;
        u64(cursor, &message->hello.fabric);
        u32(cursor, &message->hello.node);
        u32(cursor, &message->hello.caller);
        octets(cursor, message->hello.nonce, WIRE_NONCE);
        break;
    case WIRE_CHALLENGE:
        octets(cursor, message->challenge.nonce, WIRE_NONCE);
        break;
    case WIRE_PROOF_SHOWN:
        octets(cursor, message->proof_shown.proof, WIRE_PROOF);
        break;
    case WIRE_WELCOME:
        octets(cursor, message->welcome.proof, WIRE_PROOF);
        u64(cursor, &message->welcome.session);
        u32(cursor, &message->welcome.node);
        region(cursor, &message->welcome.dram);
        region(cursor, &message->welcome.chip);
        octets(cursor, message->welcome.cm_address.gid, sizeof(message->welcome.cm_address.gid));
        u16(cursor, &message->welcome.cm_address.port);
        facts(cursor, &message->welcome.facts);
        break;
    case WIRE_CONNECT:
    case WIRE_CONNECTED:
        u32(cursor, &message->connect.node);
        u32(cursor, &message->connect.caller);
        end(cursor, &message->connect.end);
        break;
    case WIRE_REFUSED:
        refused = (uint32_t)message->refused.code;
        u32(cursor, &refused);
        message->refused.code = (int32_t)refused;
        break;
    case WIRE_CM_REQUEST:
        octets(cursor, message->cm_request.proof, WIRE_PROOF);
        u64(cursor, &message->cm_request.session);
        u32(cursor, &message->cm_request.node);
        u32(cursor, &message->cm_request.caller);
        u32(cursor, &message->cm_request.slots);
        u8(cursor, &message->cm_request.mtu);
        break;
    case WIRE_KIND_END:
        break;
    }
}

size_t verbs_wire_encode(const struct wire_message *message, unsigned char *bytes) {
    struct wire_message copy = *message;
    struct cursor cursor = {.out = bytes, .at = 4, .end = WIRE_MAX};
    uint64_t kind = (uint64_t)message->kind;
    number(&cursor, &kind, 1);
    body(&cursor, &copy);
    uint64_t rest = cursor.at - 4;
    struct cursor front = {.out = bytes, .at = 0, .end = 4};
    number(&front, &rest, 4);
    return cursor.at;
}

int verbs_wire_length(const unsigned char word[4]) {
    uint64_t length = 0;
    struct cursor cursor = {.in = word, .end = 4};
    number(&cursor, &length, 4);
    return length >= 1 && length <= WIRE_MAX - 4 ? (int)length : DM_ERR_CORRUPT;
}

static bool slots_are_possible(uint32_t slots) {
    return slots >= 1 && slots <= 1024;
}

static bool mtu_is_possible(uint8_t mtu) {
    return mtu >= 1 && mtu <= 5;
}

static bool end_is_possible(const struct verbs_end *end) {
    return end->qpn < 1u << 24 && end->psn < 1u << 24 && end->is_global <= 1 && mtu_is_possible(end->mtu) &&
           slots_are_possible(end->slots);
}

static bool facts_are_possible(const struct verbs_facts *facts) {
    return facts->chip < VERBS_CHIP_KIND_END && facts->huge_pages <= 1 && mtu_is_possible(facts->mtu) &&
           facts->whole_lines < VERBS_FINDING_END && facts->write_order < VERBS_FINDING_END &&
           facts->cpu_atomics < VERBS_FINDING_END && facts->masked < VERBS_FINDING_END &&
           facts->device[WIRE_DEVICE - 1] == 0;
}

static bool region_is_possible(const struct verbs_region *region) {
    return region->bytes < UINT64_C(1) << 48 && region->base <= UINT64_MAX - region->bytes;
}

static bool is_possible(const struct wire_message *message) {
    switch (message->kind) {
    case WIRE_HELLO:
        return message->hello.node < WIRE_NODES && message->hello.caller < WIRE_NODES;
    case WIRE_WELCOME:
        return message->welcome.node < WIRE_NODES && region_is_possible(&message->welcome.dram) &&
               region_is_possible(&message->welcome.chip) && facts_are_possible(&message->welcome.facts);
    case WIRE_CHALLENGE:
    case WIRE_PROOF_SHOWN:
        return true;
    case WIRE_CONNECT:
    case WIRE_CONNECTED:
        return message->connect.node < WIRE_NODES && message->connect.caller < WIRE_NODES &&
               end_is_possible(&message->connect.end);
    case WIRE_REFUSED:
        return message->refused.code < 0;
    case WIRE_CM_REQUEST:
        return message->cm_request.node < WIRE_NODES && message->cm_request.caller < WIRE_NODES &&
               slots_are_possible(message->cm_request.slots) && mtu_is_possible(message->cm_request.mtu);
    case WIRE_KIND_END:
        break;
    }
    return false;
}

int verbs_wire_decode(const unsigned char *bytes, size_t len, struct wire_message *message) {
    memset(message, 0, sizeof(*message));
    struct cursor cursor = {.in = bytes, .end = len};
    uint64_t kind = 0;
    number(&cursor, &kind, 1);
    if (cursor.is_short || kind < WIRE_HELLO || kind >= WIRE_KIND_END) {
        return DM_ERR_CORRUPT;
    }
    message->kind = (enum wire_kind)kind;
    body(&cursor, message);
    return cursor.is_short || cursor.at != len || !is_possible(message) ? DM_ERR_CORRUPT : 0;
}

bool verbs_wire_proof_equal(const uint8_t a[WIRE_PROOF], const uint8_t b[WIRE_PROOF]) {
    volatile uint8_t difference = 0;
    for (size_t i = 0; i < WIRE_PROOF; i++) {
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    }
    return difference == 0;
}

bool verbs_wire_token_from(const char *text, uint8_t token[WIRE_TOKEN]) {
    size_t length = strlen(text);
    if (length == 0 || length > WIRE_TOKEN) {
        return false;
    }
    memset(token, 0, WIRE_TOKEN);
    memcpy(token, text, length); /* NOLINT(bugprone-not-null-terminated-result): bytes, not text */
    return true;
}
