/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading profiles: those that come with the program, inheritance, and every kind of bad file, each with a message that
 * names the file and what is wrong.
 */
#include "transport/core/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/fabric.h"

static char folder[64];

static void path_of(const char *name, char path[160]) {
    snprintf(path, 160, "%s/%s.json", folder, name);
}

static void file_put(const char *name, const char *text) {
    char path[160];
    path_of(name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int folder_make(void **state) {
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/dm-profile-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

/* Loads a file of the folder by its path. */
static int load(const char *name, struct dm_profile *profile, struct dm_err *err) {
    char path[160];
    path_of(name, path);
    return dm_profile_load(path, profile, err);
}

static void must_fail(const char *name, const char *text, const char *said) {
    struct dm_profile profile;
    struct dm_err err = {0};
    file_put(name, text);
    assert_true(load(name, &profile, &err) < 0);
    if (!strstr(err.text, said) || !strstr(err.text, name)) {
        fail_msg("'%s' lacks '%s' or '%s'", err.text, said, name);
    }
    assert_null(strchr(err.text, '\n'));
}

static void every_profile_that_comes_with_the_program_loads(void **state) {
    (void)state;
    size_t count = 0;
    for (const char *const *name = dm_profile_names(); *name; name++, count++) {
        struct dm_profile profile;
        struct dm_err err = {0};
        char hash[17];
        if (dm_profile_load(*name, &profile, &err) < 0) {
            fail_msg("%s", err.text);
        }
        assert_string_equal(profile.name, *name);
        assert_true(profile.link_gbps > 0);
        assert_int_equal(dm_profile_check(*name, hash, &err), 0);
        assert_string_equal(hash, profile.hash);
        assert_int_equal(strlen(hash), 16);
        assert_true(count == 0 || strcmp(name[-1], *name) < 0);
    }
    assert_true(count > 0);
}

static void an_unknown_name_gets_the_nearest_name_as_a_suggestion(void **state) {
    (void)state;
    struct dm_profile profile;
    struct dm_err err = {0};
    char typo[80];
    snprintf(typo, sizeof(typo), "%sx", dm_profile_names()[0]);
    assert_int_equal(dm_profile_load(typo, &profile, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, typo));
    assert_non_null(strstr(err.text, dm_profile_names()[0]));
}

static void the_nearest_definition_of_a_number_wins(void **state) {
    (void)state;
    char text[512];
    struct dm_profile base, middle, top;
    struct dm_err err = {0};
    const char *shipped = dm_profile_names()[0];
    assert_int_equal(dm_profile_load(shipped, &base, &err), 0);
    snprintf(text, sizeof(text),
             "{\"schema_version\": 1, \"inherits\": \"%s\", \"parameters\": {\"mmio_ns\": 11, \"mtu\": 512}}", shipped);
    file_put("middle", text);
    file_put("top", "{\"schema_version\": 1, \"inherits\": \"middle\", \"parameters\": {\"mmio_ns\": {\"value\": 22, "
                    "\"source\": \"here\", \"confidence\": \"L\", \"range\": [1, 30]}}}");
    assert_int_equal(load("middle", &middle, &err), 0);
    assert_int_equal(load("top", &top, &err), 0);
    assert_true(middle.mmio_ns == 11 && middle.mtu == 512 && middle.link_gbps == base.link_gbps);
    assert_true(top.mmio_ns == 22 && top.mtu == 512 && top.link_gbps == base.link_gbps);
    assert_string_not_equal(base.hash, middle.hash);
    assert_string_not_equal(middle.hash, top.hash);
}

static void numbers_not_names_decide_the_hash(void **state) {
    (void)state;
    char text[256];
    struct dm_profile base, copy;
    struct dm_err err = {0};
    const char *shipped = dm_profile_names()[0];
    assert_int_equal(dm_profile_load(shipped, &base, &err), 0);
    snprintf(text, sizeof(text), "{\"schema_version\": 1, \"inherits\": \"%s\", \"parameters\": {}}", shipped);
    file_put("copy", text);
    assert_int_equal(load("copy", &copy, &err), 0);
    assert_string_equal(base.hash, copy.hash);
}

static void what_ships_is_kept_and_a_file_of_the_user_is_read_each_time(void **state) {
    (void)state;
    struct dm_profile first, again;
    struct dm_err err = {0};
    assert_int_equal(dm_profile_load("cx6-100g", &first, &err), 0);
    assert_int_equal(dm_profile_load("cx6-100g", &again, &err), 0);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_int_equal(dm_profile_load("cx5-100g", &again, &err), 0);
    assert_string_equal(again.name, "cx5-100g");
    assert_string_not_equal(again.hash, first.hash);
    file_put("edited", "{\"schema_version\": 1, \"inherits\": \"cx6-100g\", \"parameters\": {\"mmio_ns\": 11}}");
    assert_int_equal(load("edited", &first, &err), 0);
    file_put("edited", "{\"schema_version\": 1, \"inherits\": \"cx6-100g\", \"parameters\": {\"mmio_ns\": 12}}");
    assert_int_equal(load("edited", &again, &err), 0);
    assert_true(first.mmio_ns == 11 && again.mmio_ns == 12);
}

static void a_bad_file_is_named_with_what_is_wrong(void **state) {
    (void)state;
    must_fail("empty", "", "empty.json");
    must_fail("cut", "{\"schema_version\": 1, \"parameters\": {\"mtu\": 10", "cut.json");
    must_fail("list", "[1, 2]", "list.json");
    must_fail("twice", "{\"schema_version\": 1, \"schema_version\": 1, \"parameters\": {}}", "twice.json");
    must_fail("version", "{\"schema_version\": 2, \"parameters\": {}}", "schema_version");
    must_fail("versionless", "{\"parameters\": {}}", "schema_version");
    must_fail("member", "{\"schema_version\": 1, \"parametres\": {}, \"parameters\": {}}", "parametres");
    must_fail("numberless", "{\"schema_version\": 1}", "parameters");
    must_fail("array", "{\"schema_version\": 1, \"parameters\": []}", "parameters");
    must_fail("number", "{\"schema_version\": 1, \"parameters\": {\"mtuu\": 1024}}", "'mtu'");
    must_fail("text", "{\"schema_version\": 1, \"parameters\": {\"mtu\": \"big\"}}", "mtu");
    must_fail("valueless", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"source\": \"x\"}}}", "mtu");
    must_fail("extra", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"value\": 1024, \"unit\": \"B\"}}}",
              "unit");
    must_fail("sourceless", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"value\": 1024, \"source\": 7}}}",
              "mtu: source");
    must_fail("sure", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"value\": 1024, \"confidence\": \"X\"}}}",
              "mtu: confidence");
    must_fail("point", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"value\": 1024, \"points\": \"V1\"}}}",
              "mtu: points");
    must_fail("one end", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"value\": 1024, \"range\": [512]}}}",
              "mtu: range");
    must_fail("outside", "{\"schema_version\": 1, \"parameters\": {\"mtu\": {\"value\": 1024, \"range\": [256, 512]}}}",
              "mtu: range [256, 512]");
    must_fail("small", "{\"schema_version\": 1, \"parameters\": {\"mtu\": 1}}", "out of range");
    must_fail("large", "{\"schema_version\": 1, \"parameters\": {\"mtu\": 1e99}}", "out of range");
    must_fail("negative", "{\"schema_version\": 1, \"parameters\": {\"mmio_ns\": -1}}", "out of range");
    must_fail("few", "{\"schema_version\": 1, \"parameters\": {\"mtu\": 1024}}", "missing");
    must_fail("heir", "{\"schema_version\": 1, \"inherits\": 5, \"parameters\": {}}", "inherits");
    must_fail("circle", "{\"schema_version\": 1, \"inherits\": \"circle\", \"parameters\": {}}", "circle");
}

/* A profile that differs from a shipped one in these numbers. */
static void must_not_combine(const char *numbers, const char *said) {
    char text[512];
    snprintf(text, sizeof(text), "{\"schema_version\": 1, \"inherits\": \"%s\", \"parameters\": {%s}}",
             dm_profile_names()[0], numbers);
    must_fail("together", text, said);
}

static void numbers_that_cannot_be_true_together_are_named(void **state) {
    (void)state;
    must_not_combine("\"pcie_generation\": 3, \"pcie_lanes\": 16, \"pcie_gbytes_per_s\": 15.8",
                     "pcie_gbytes_per_s: 15.8 GB/s are more than PCIe 3.0 x16 has");
    must_not_combine("\"pcie_generation\": 4, \"pcie_lanes\": 8, \"pcie_gbytes_per_s\": 26", "PCIe 4.0 x8");
    must_not_combine("\"pcie_generation\": 3.5", "pcie_generation: 3.5");
    must_not_combine("\"pcie_lanes\": 12", "pcie_lanes: 12");
    must_not_combine("\"doorbell_registers\": 16, \"doorbell_shared_ns\": 10, \"cpu_doorbell_ns\": 50",
                     "doorbell_shared_ns");
    must_not_combine("\"atomic_hold_dram_ns\": 300, \"pcie_read_ns\": 301", "atomic_hold_dram_ns: 300");
    struct dm_profile profile;
    struct dm_err err = {0};
    char text[256];
    snprintf(text, sizeof(text),
             "{\"schema_version\": 1, \"inherits\": \"%s\", \"parameters\": {\"pcie_generation\": 4, "
             "\"pcie_lanes\": 16, \"pcie_gbytes_per_s\": 31.5}}",
             dm_profile_names()[0]);
    file_put("together", text);
    assert_int_equal(load("together", &profile, &err), 0);
}

static void a_file_that_is_not_there_is_named(void **state) {
    (void)state;
    struct dm_profile profile;
    struct dm_err err = {0};
    assert_true(load("nowhere", &profile, &err) < 0);
    assert_non_null(strstr(err.text, "nowhere.json"));
    file_put("orphan", "{\"schema_version\": 1, \"inherits\": \"no-such-profile\", \"parameters\": {}}");
    assert_true(load("orphan", &profile, &err) < 0);
    assert_non_null(strstr(err.text, "no-such-profile"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile_that_comes_with_the_program_loads),
        cmocka_unit_test(an_unknown_name_gets_the_nearest_name_as_a_suggestion),
        cmocka_unit_test(the_nearest_definition_of_a_number_wins),
        cmocka_unit_test(numbers_not_names_decide_the_hash),
        cmocka_unit_test(what_ships_is_kept_and_a_file_of_the_user_is_read_each_time),
        cmocka_unit_test(a_bad_file_is_named_with_what_is_wrong),
        cmocka_unit_test(numbers_that_cannot_be_true_together_are_named),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests_name("transport: profile", tests, folder_make, folder_remove);
}
