/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the fuzz targets. Readers take a path, so each input is written to a file in a temporary folder of this
 * process.
 */
#ifndef DM_TESTS_FUZZ_FILE_H
#define DM_TESTS_FUZZ_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char fuzz_folder[64];
static char fuzz_path[96];

static void fuzz_folder_remove(void) {
    unlink(fuzz_path);
    rmdir(fuzz_folder);
}

/* Aborts with a message unless the property holds. */
static inline void fuzz_require(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

/* Writes the input to the file and returns its path. */
static inline const char *fuzz_file(const uint8_t *data, size_t size) {
    int fd = open(fuzz_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "cannot write the input's file");
    close(fd);
    return fuzz_path;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    /* In memory if possible, because every input is written to a file. */
    const char *parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(fuzz_folder, sizeof(fuzz_folder), "%s/dmbench_fuzz.XXXXXX", parent);
    fuzz_require(mkdtemp(fuzz_folder) != NULL, "cannot make a folder");
    snprintf(fuzz_path, sizeof(fuzz_path), "%s/input.json", fuzz_folder);
    dm_log_set_level(DM_LOG_ERROR);
    return atexit(fuzz_folder_remove);
}

#endif
