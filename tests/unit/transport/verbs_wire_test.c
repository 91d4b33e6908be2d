/* SPDX-License-Identifier: Apache-2.0
 *
 * Control messages: a message is decoded as it was encoded, and invalid ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/verbs/wire.h"

static struct wire_message sample(enum wire_kind kind) {
    struct wire_message message;
    memset(&message, 0, sizeof(message));
    message.kind = kind;
    switch (kind) {
    case WIRE_HELLO:
        memset(message.hello.token, 0x5a, WIRE_TOKEN);
        message.hello.fabric = UINT64_C(0x1122334455667788);
        message.hello.node = 3;
        message.hello.caller = 255;
        break;
    case WIRE_WELCOME:
        message.welcome.node = 2;
        message.welcome.dram = (struct verbs_region){UINT64_C(0x7f0000000000), 1 << 20, 77};
        message.welcome.chip = (struct verbs_region){0, 4096, 78};
        message.welcome.cm_address = (struct verbs_cm_address){{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}, 40000};
        break;
    case WIRE_CONNECT:
    case WIRE_CONNECTED:
        message.connect.node = 1;
        message.connect.caller = 5;
        message.connect.end =
            (struct verbs_end){.qpn = 0xffffff, .psn = 1, .lid = 9, .is_global = 1, .mtu = 3, .reads = 16, .slots = 4};
        memset(message.connect.end.gid, 0xfe, sizeof(message.connect.end.gid));
        break;
    case WIRE_REFUSED:
        message.refused.code = DM_ERR_INVALID;
        break;
    case WIRE_CM_REQUEST:
        memset(message.cm_request.token, 0xa5, WIRE_TOKEN);
        message.cm_request.fabric = UINT64_C(0x8877665544332211);
        message.cm_request.node = 2;
        message.cm_request.caller = 254;
        message.cm_request.slots = 64;
        break;
    case WIRE_KIND_END:
        break;
    }
    return message;
}

static void a_message_is_read_as_it_was_written(void **state) {
    (void)state;
    for (int kind = WIRE_HELLO; kind < WIRE_KIND_END; kind++) {
        unsigned char bytes[WIRE_MAX], again[WIRE_MAX];
        struct wire_message message = sample((enum wire_kind)kind), back;
        size_t count = verbs_wire_encode(&message, bytes);
        assert_in_range(count, 6, WIRE_MAX);
        assert_int_equal(verbs_wire_length(bytes), count - 4);
        assert_int_equal(verbs_wire_decode(bytes + 4, count - 4, &back), 0);
        assert_int_equal(back.kind, kind);
        assert_int_equal(verbs_wire_encode(&back, again), count);
        assert_memory_equal(bytes, again, count);
    }
}

static void a_message_of_any_other_length_is_refused(void **state) {
    (void)state;
    for (int kind = WIRE_HELLO; kind < WIRE_KIND_END; kind++) {
        unsigned char bytes[WIRE_MAX + 1] = {0};
        struct wire_message message = sample((enum wire_kind)kind), back;
        size_t count = verbs_wire_encode(&message, bytes) - 4;
        for (size_t length = 0; length <= WIRE_MAX - 4; length++) {
            int rc = verbs_wire_decode(bytes + 4, length, &back);
            assert_int_equal(rc, length == count ? 0 : DM_ERR_CORRUPT);
        }
    }
}

static void an_invalid_length_is_refused(void **state) {
    (void)state;
    static const struct {
        unsigned char word[4];
        int length;
    } cases[] = {
        {{0, 0, 0, 0}, DM_ERR_CORRUPT},          {{1, 0, 0, 0}, 1},
        {{WIRE_MAX - 4, 0, 0, 0}, WIRE_MAX - 4}, {{WIRE_MAX - 3, 0, 0, 0}, DM_ERR_CORRUPT},
        {{0, 1, 0, 0}, DM_ERR_CORRUPT},          {{0xff, 0xff, 0xff, 0xff}, DM_ERR_CORRUPT},
        {{0, 0, 0, 0x80}, DM_ERR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(verbs_wire_length(cases[i].word), cases[i].length);
    }
}

/* Encodes the message and expects that decoding refuses it. */
static void refuse(const struct wire_message *message) {
    unsigned char bytes[WIRE_MAX];
    struct wire_message back;
    size_t count = verbs_wire_encode(message, bytes);
    assert_int_equal(verbs_wire_decode(bytes + 4, count - 4, &back), DM_ERR_CORRUPT);
}

static void invalid_numbers_are_refused(void **state) {
    (void)state;
    struct wire_message message = sample(WIRE_HELLO);
    message.hello.node = WIRE_NODES;
    refuse(&message);
    message = sample(WIRE_HELLO);
    message.hello.caller = WIRE_NODES;
    refuse(&message);
    message = sample(WIRE_WELCOME);
    message.welcome.dram.bytes = UINT64_C(1) << 48;
    refuse(&message);
    message = sample(WIRE_WELCOME);
    message.welcome.dram.base = UINT64_MAX - 4096;
    refuse(&message);
    message = sample(WIRE_CONNECT);
    message.connect.end.qpn = 1u << 24;
    refuse(&message);
    message = sample(WIRE_CONNECT);
    message.connect.end.mtu = 6;
    refuse(&message);
    message = sample(WIRE_CONNECT);
    message.connect.end.slots = 0;
    refuse(&message);
    message = sample(WIRE_CONNECTED);
    message.connect.end.slots = 1025;
    refuse(&message);
    message = sample(WIRE_REFUSED);
    message.refused.code = 0;
    refuse(&message);
    message = sample(WIRE_CM_REQUEST);
    message.cm_request.node = WIRE_NODES;
    refuse(&message);
    message = sample(WIRE_CM_REQUEST);
    message.cm_request.slots = 0;
    refuse(&message);
}

static void a_request_fits_the_private_data_of_the_connection_manager(void **state) {
    (void)state;
    unsigned char bytes[WIRE_MAX];
    struct wire_message message = sample(WIRE_CM_REQUEST);
    assert_int_equal(verbs_wire_encode(&message, bytes), 4 + WIRE_CM_REQUEST_BYTES);
    assert_true(WIRE_CM_REQUEST_BYTES <= 56);
}

static void unknown_kinds_and_other_versions_are_refused(void **state) {
    (void)state;
    unsigned char bytes[WIRE_MAX];
    struct wire_message message = sample(WIRE_HELLO), back;
    size_t count = verbs_wire_encode(&message, bytes);
    const unsigned char kinds[] = {0, WIRE_KIND_END, 255};
    for (size_t i = 0; i < sizeof(kinds); i++) {
        bytes[4] = kinds[i];
        assert_int_equal(verbs_wire_decode(bytes + 4, count - 4, &back), DM_ERR_CORRUPT);
    }
    bytes[4] = WIRE_HELLO;
    bytes[5] ^= 1; /* the version's lowest byte */
    assert_int_equal(verbs_wire_decode(bytes + 4, count - 4, &back), DM_ERR_CORRUPT);
}

static void tokens_are_compared_completely(void **state) {
    (void)state;
    uint8_t a[WIRE_TOKEN], b[WIRE_TOKEN];
    assert_true(verbs_wire_token_from("secret", a));
    assert_true(verbs_wire_token_from("secret", b));
    assert_true(verbs_wire_token_equal(a, b));
    for (size_t i = 0; i < WIRE_TOKEN; i++) {
        b[i] ^= 0x80;
        assert_false(verbs_wire_token_equal(a, b));
        b[i] ^= 0x80;
    }
    assert_true(verbs_wire_token_from("secret2", b));
    assert_false(verbs_wire_token_equal(a, b));
    assert_false(verbs_wire_token_from("", a));
    assert_true(verbs_wire_token_from("12345678901234567890123456789012", a));
    assert_false(verbs_wire_token_from("123456789012345678901234567890123", a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_read_as_it_was_written),
        cmocka_unit_test(a_message_of_any_other_length_is_refused),
        cmocka_unit_test(an_invalid_length_is_refused),
        cmocka_unit_test(invalid_numbers_are_refused),
        cmocka_unit_test(a_request_fits_the_private_data_of_the_connection_manager),
        cmocka_unit_test(unknown_kinds_and_other_versions_are_refused),
        cmocka_unit_test(tokens_are_compared_completely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
