/* SPDX-License-Identifier: Apache-2.0
 *
 * Control messages: a message is decoded as it was encoded, and invalid ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "transport/verbs/wire.h"

static struct wire_message sample(enum wire_kind kind) {
    struct wire_message message;
    memset(&message, 0, sizeof(message));
    message.kind = kind;
    switch (kind) {
    case WIRE_HELLO:
        memset(message.hello.nonce, 0x5a, WIRE_NONCE);
        message.hello.fabric = UINT64_C(0x1122334455667788);
        message.hello.node = 3;
        message.hello.caller = 255;
        break;
    case WIRE_CHALLENGE:
        memset(message.challenge.nonce, 0x3c, WIRE_NONCE);
        break;
    case WIRE_PROOF_SHOWN:
        memset(message.proof_shown.proof, 0xc3, WIRE_PROOF);
        break;
    case WIRE_WELCOME:
        memset(message.welcome.proof, 0x99, WIRE_PROOF);
        message.welcome.session = UINT64_C(0x8070605040302010);
        message.welcome.facts = (struct verbs_facts){.chip = VERBS_CHIP_DEVICE,
                                                     .huge_pages = 1,
                                                     .mtu = 5,
                                                     .whole_lines = VERBS_HOLDS,
                                                     .write_order = VERBS_FAILS,
                                                     .cpu_atomics = VERBS_ASSUMED,
                                                     .masked = VERBS_FAILS,
                                                     .device = "mlx5_0"};
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
        memset(message.cm_request.proof, 0xa5, WIRE_PROOF);
        message.cm_request.mtu = 4;
        message.cm_request.session = UINT64_C(0x8877665544332211);
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

/* Seeds of an earlier version would be refused at once, and the fuzzer would see little of the decoder. */
static void the_fuzzers_seeds_are_messages_of_this_version(void **state) {
    (void)state;
    static const char *const names[WIRE_KIND_END] = {
        [WIRE_HELLO] = "hello",     [WIRE_CHALLENGE] = "challenge",   [WIRE_PROOF_SHOWN] = "proof_shown",
        [WIRE_WELCOME] = "welcome", [WIRE_CONNECT] = "connect",       [WIRE_CONNECTED] = "connected",
        [WIRE_REFUSED] = "refused", [WIRE_CM_REQUEST] = "cm_request",
    };
    for (int kind = WIRE_HELLO; kind < WIRE_KIND_END; kind++) {
        unsigned char bytes[WIRE_MAX], wanted[WIRE_MAX];
        char path[1024];
        snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/wire/%s", DM_SOURCE_DIR, names[kind]);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        size_t count = fread(bytes, 1, sizeof(bytes), file);
        fclose(file);
        struct wire_message message = sample((enum wire_kind)kind);
        assert_int_equal(count, verbs_wire_encode(&message, wanted));
        assert_memory_equal(bytes, wanted, count);
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
    message = sample(WIRE_WELCOME);
    message.welcome.facts.mtu = 0;
    refuse(&message);
    message = sample(WIRE_WELCOME);
    message.welcome.facts.chip = VERBS_CHIP_KIND_END;
    refuse(&message);
    message = sample(WIRE_WELCOME);
    message.welcome.facts.whole_lines = VERBS_FINDING_END;
    refuse(&message);
    message = sample(WIRE_WELCOME);
    message.welcome.facts.masked = VERBS_FINDING_END;
    refuse(&message);
    message = sample(WIRE_WELCOME);
    memset(message.welcome.facts.device, 'x', WIRE_DEVICE); /* no end */
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
    message = sample(WIRE_CM_REQUEST);
    message.cm_request.mtu = 6;
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

static void proofs_are_compared_completely(void **state) {
    (void)state;
    uint8_t a[WIRE_PROOF], b[WIRE_PROOF];
    memset(a, 0x11, sizeof(a));
    memset(b, 0x11, sizeof(b));
    assert_true(verbs_wire_proof_equal(a, b));
    for (size_t i = 0; i < WIRE_PROOF; i++) {
        b[i] ^= 0x80;
        assert_false(verbs_wire_proof_equal(a, b));
        b[i] ^= 0x80;
    }
}

static void a_token_has_one_to_thirty_two_bytes(void **state) {
    (void)state;
    uint8_t a[WIRE_TOKEN];
    assert_true(verbs_wire_token_from("secret", a));
    assert_int_equal(a[6], 0);
    assert_false(verbs_wire_token_from("", a));
    assert_true(verbs_wire_token_from("12345678901234567890123456789012", a));
    assert_false(verbs_wire_token_from("123456789012345678901234567890123", a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_read_as_it_was_written),
        cmocka_unit_test(the_fuzzers_seeds_are_messages_of_this_version),
        cmocka_unit_test(a_message_of_any_other_length_is_refused),
        cmocka_unit_test(an_invalid_length_is_refused),
        cmocka_unit_test(invalid_numbers_are_refused),
        cmocka_unit_test(a_request_fits_the_private_data_of_the_connection_manager),
        cmocka_unit_test(unknown_kinds_and_other_versions_are_refused),
        cmocka_unit_test(proofs_are_compared_completely),
        cmocka_unit_test(a_token_has_one_to_thirty_two_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
