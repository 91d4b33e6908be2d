/* SPDX-License-Identifier: Apache-2.0
 *
 * Which transports a test program runs on: all that are compiled in, but for those whose device this machine lacks,
 * which are left out with the reason. DM_TEST_TRANSPORT=NAME in the environment leaves that one alone.
 */
#ifndef DM_TESTS_AVAILABLE_H
#define DM_TESTS_AVAILABLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/fabric.h"

static inline bool transport_is_there(const struct dm_transport_info *info) {
    const char *only = getenv("DM_TEST_TRANSPORT");
    if (only && strcmp(only, info->name) != 0) {
        return false;
    }
    if (!(info->caps & DM_CAP_DEVICE)) {
        return true;
    }
    struct dm_fabric_config config = {.transport = info->name,
                                      .topology = {.mns = 1,
                                                   .cns = 1,
                                                   .mn_cores = 1,
                                                   .clients = 1,
                                                   .clients_per_thread = 1,
                                                   .mn_bytes = 1 << 20}};
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    int rc = dm_fabric_open(&config, &fabric, &err);
    dm_fabric_close(fabric);
    if (rc < 0) {
        fprintf(stderr, "transport %s skipped: %s\n", info->name, err.text);
    }
    return rc == 0;
}

/* What the fabric says of itself under that name, or "". */
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
