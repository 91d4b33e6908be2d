/* SPDX-License-Identifier: Apache-2.0
 *
 * How two processes divide the nodes of a world, and where they meet.
 */
#include "check/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/compiler.h"
#include "tests/unit/check/toy_index.h"

static struct ck_world world;

static void draw(uint64_t seed, const char *fault) {
    const struct dm_setting setting = {"fault", fault};
    const struct ck_request request = {.index = &toy_index, .transport = "sim", .params = &setting, .param_count = 1};
    struct dm_err err = {0};
    ck_world_fini(&world);
    if (ck_world_draw(&request, seed, &world, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static struct dm_processes begin(struct ck_team *team) {
    struct dm_err err = {0};
    if (ck_team_begin(team, &world, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return team->processes;
}

/* Initialises one team at the address. */
static struct ck_team team_at(const char *address) {
    struct ck_team team;
    assert_int_equal(ck_teams_init(&team, 1, false, address, "t", NULL), 0);
    return team;
}

static void worlds_take_two_ports_in_turns(void **state) {
    (void)state;
    struct ck_team team = team_at("10.0.0.1:7000");
    draw(1, "none");
    for (unsigned i = 0; i < 4; i++) {
        struct dm_processes processes = begin(&team);
        assert_string_equal(processes.addresses[0], i % 2 == 0 ? "10.0.0.1:7000" : "10.0.0.1:7001");
        assert_int_equal(processes.listener, -1);
        assert_string_equal(processes.token, "t");
    }
    team = team_at("[fd00::1]:65534");
    assert_string_equal(team.address[1], "[fd00::1]:65535");
}

static void no_two_teams_share_a_port(void **state) {
    (void)state;
    struct ck_team teams[3];
    char wanted[32];
    assert_int_equal(ck_teams_init(teams, 3, true, "10.0.0.1:65530", "t", NULL), 0);
    for (unsigned i = 0; i < 6; i++) {
        snprintf(wanted, sizeof(wanted), "10.0.0.1:%u", 65530 + i);
        assert_string_equal(teams[i / 2].address[i % 2], wanted);
        assert_true(teams[i / 2].is_server);
        assert_string_equal(teams[i / 2].token, "t");
    }
    struct dm_err err = {0};
    assert_int_equal(ck_teams_init(teams, 3, true, "10.0.0.1:65531", "t", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "a port of 1 to 65530; the worlds take that one and 5 more"));
}

static void addresses_without_two_ports_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "host", "host:", ":7000", "host:0", "host:65535", "host:-1", "host:7x"};
    for (size_t i = 0; i < DM_ARRAY_LEN(wrong); i++) {
        struct ck_team team;
        struct dm_err err = {0};
        assert_int_equal(ck_teams_init(&team, 1, false, wrong[i], "t", &err), DM_ERR_INVALID);
        assert_non_null(strstr(err.text, "is not HOST:PORT"));
    }
}

static void one_side_has_the_memory_and_the_other_one_the_clients(void **state) {
    (void)state;
    struct ck_team sides[2] = {team_at("127.0.0.1:7000"), team_at("127.0.0.1:7000")};
    sides[1].is_server = true;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        draw(seed, "none");
        sides[1].address[0][0] = sides[1].address[1][0] = '\0'; /* no port of this machine is taken */
        struct dm_processes compute = begin(&sides[0]);
        struct dm_err err = {0};
        assert_true(ck_team_begin(&sides[1], &world, &err) < 0);
        unsigned first_cn = dm_first_cn(&world.topology), nodes = first_cn + world.topology.cns;
        for (unsigned node = 0; node < nodes; node++) {
            assert_int_equal(ck_team_has(&sides[0], node), node >= first_cn);
            assert_int_equal(ck_team_has(&sides[1], node), node < first_cn);
            assert_true(ck_team_has(NULL, node));
        }
        assert_int_not_equal(compute.process, sides[1].processes.process);
        assert_int_equal(compute.fingerprint, sides[1].processes.fingerprint);
    }
}

static void worlds_of_another_seed_or_setting_differ(void **state) {
    (void)state;
    struct ck_team team = team_at("10.0.0.1:7000");
    draw(1, "none");
    uint64_t first = begin(&team).fingerprint;
    draw(1, "none");
    assert_int_equal(begin(&team).fingerprint, first);
    draw(2, "none");
    assert_int_not_equal(begin(&team).fingerprint, first);
    draw(1, toy_fault_names[TOY_LOST_UPDATE]);
    assert_int_not_equal(begin(&team).fingerprint, first);
}

static int close_world(void **state) {
    (void)state;
    ck_world_fini(&world);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worlds_take_two_ports_in_turns),
        cmocka_unit_test(no_two_teams_share_a_port),
        cmocka_unit_test(addresses_without_two_ports_are_refused),
        cmocka_unit_test(one_side_has_the_memory_and_the_other_one_the_clients),
        cmocka_unit_test(worlds_of_another_seed_or_setting_differ),
    };
    return cmocka_run_group_tests(tests, NULL, close_world);
}
