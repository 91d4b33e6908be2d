/* SPDX-License-Identifier: Apache-2.0
 *
 * What the conformance tests run on: every transport that can run here, or with DM_TEST_TRANSPORT=NAME that one; and
 * with DM_TEST_FILTER=PATTERN only the tests whose name matches; DM_TEST_SETTINGS="NAME=VALUE ..." are options of that
 * transport. tests/rxe runs the same programs where there is an RDMA device.
 */
#ifndef DM_TESTS_TRANSPORT_CHOICE_H
#define DM_TESTS_TRANSPORT_CHOICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/fabric.h"

enum { TEST_SKIPPED = 77 };

enum { TEST_SETTINGS_MAX = 8 };

/* The settings in DM_TEST_SETTINGS; returns how many. Their text stays for the life of the program. */
static inline size_t test_settings(struct dm_setting *settings) {
    static char text[512];
    const char *given = getenv("DM_TEST_SETTINGS");
    size_t count = 0;
    snprintf(text, sizeof(text), "%s", given ? given : "");
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) {
        char *value = strchr(at, '=');
        if (!value || count == TEST_SETTINGS_MAX) {
            fprintf(stderr, "DM_TEST_SETTINGS: '%s' is not a setting, or one too many\n", at);
            exit(2);
        }
        *value = 0;
        settings[count++] = (struct dm_setting){at, value + 1};
    }
    return count;
}

/* Transports that need a device are left out where there is none, with the reason. To be asked once a program. */
static inline bool test_runs_on(const struct dm_transport_info *info) {
    const char *only = getenv("DM_TEST_TRANSPORT");
    if (only && strcmp(only, info->name) != 0) {
        return false;
    }
    if (!(info->caps & DM_CAP_DEVICE)) {
        return true;
    }
    struct dm_fabric_config config = {
        .transport = info->name,
        .topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 1, .clients_per_thread = 1, .mn_bytes = 1 << 20},
        .seed = 1,
        .chunk_bytes = 1 << 16};
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    int rc = dm_fabric_open(&config, &fabric, &err);
    dm_fabric_close(fabric);
    if (rc < 0) {
        fprintf(stderr, "transport %s skipped: %s\n", info->name, err.text);
    }
    return rc == 0;
}

/* The program's status: of the tests, or "skipped" if there is none because the one transport asked for is not here. */
static inline int test_run(const char *group, const struct CMUnitTest *tests, size_t count) {
    const char *only = getenv("DM_TEST_TRANSPORT");
    if (count == 0 && only) {
        fprintf(stderr, "skipped: no transport '%s' here\n", only);
        return TEST_SKIPPED;
    }
    cmocka_set_test_filter(getenv("DM_TEST_FILTER"));
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

/* Likewise, of tests that choose their transport themselves: with DM_TEST_TRANSPORT=local those in real time, whose
 * names begin with in_real_time. The others have worlds in virtual time. */
static inline int test_run_chosen(const char *group, const struct CMUnitTest *tests, size_t count) {
    const char *only = getenv("DM_TEST_TRANSPORT"), *given = getenv("DM_TEST_FILTER");
    cmocka_set_test_filter(!given && only && strcmp(only, "local") == 0 ? "in_real_time*" : given);
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

/* The value of the fabric's note of that name, or "". */
static inline const char *fabric_note(struct dm_fabric *fabric, const char *name) {
    struct dm_note notes[DM_NOTES_MAX];
    size_t count = dm_fabric_notes(fabric, notes, DM_NOTES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(notes[i].name, name) == 0) {
            return notes[i].value;
        }
    }
    return "";
}

#endif
