/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice among a port's addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/verbs/verbs.h"

static struct ibv_gid_entry entry(uint32_t type, const char *address) {
    static const struct {
        const char *name;
        uint8_t raw[16];
    } known[] = {
        {"link-local", {0xfe, 0x80, [15] = 1}},
        {"global", {0x20, 0x01, [15] = 1}},
        {"ipv4", {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}},
    };
    struct ibv_gid_entry made = {.gid_type = type};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, address) == 0) {
            memcpy(made.gid.raw, known[i].raw, sizeof(made.gid.raw));
        }
    }
    return made;
}

static void routable_addresses_of_the_second_version_come_first(void **state) {
    (void)state;
    const struct ibv_gid_entry entries[] = {
        entry(IBV_GID_TYPE_ROCE_V1, "link-local"), entry(IBV_GID_TYPE_ROCE_V2, "link-local"),
        entry(IBV_GID_TYPE_ROCE_V1, "ipv4"),       entry(IBV_GID_TYPE_ROCE_V2, "global"),
        entry(IBV_GID_TYPE_ROCE_V2, "ipv4"),
    };
    assert_int_equal(verbs_gid_choose(entries, 5, true), 4);
    assert_int_equal(verbs_gid_choose(entries, 4, true), 3);
    assert_int_equal(verbs_gid_choose(entries, 3, true), 1);
    assert_int_equal(verbs_gid_choose(entries, 1, true), 0);
    assert_int_equal(verbs_gid_choose(entries, 0, true), -1);
}

static void infiniband_has_its_own_kind_of_addresses(void **state) {
    (void)state;
    const struct ibv_gid_entry entries[] = {entry(IBV_GID_TYPE_ROCE_V2, "ipv4"), entry(IBV_GID_TYPE_IB, "link-local")};
    assert_int_equal(verbs_gid_choose(entries, 2, false), 1);
    assert_int_equal(verbs_gid_choose(entries, 1, false), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routable_addresses_of_the_second_version_come_first),
        cmocka_unit_test(infiniband_has_its_own_kind_of_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
