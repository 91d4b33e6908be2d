/* SPDX-License-Identifier: Apache-2.0
 *
 * A temporary directory for the files that a test of this folder writes.
 */
#ifndef DM_TESTS_UNIT_WORKLOADS_FILES_H
#define DM_TESTS_UNIT_WORKLOADS_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char files_directory[] = "/tmp/dm_workloads_XXXXXX";

/* Group fixtures for cmocka. */
static inline int files_setup(void **state) {
    (void)state;
    return mkdtemp(files_directory) != NULL ? 0 : -1;
}

static inline unsigned files_count(void) {
    unsigned count = 0;
    DIR *directory = opendir(files_directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(directory);
    return count;
}

/* A path in the directory. It is valid until the fourth call after this one. */
static inline const char *file_path(const char *name) {
    static char paths[4][400];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", files_directory, name);
    return path;
}

static inline const char *file_write(const char *name, const void *bytes, size_t count) {
    const char *path = file_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
    return path;
}

static inline const char *file_write_text(const char *name, const char *text) {
    return file_write(name, text, strlen(text));
}

static inline int files_teardown(void **state) {
    (void)state;
    DIR *directory = opendir(files_directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] != '.') {
            unlink(file_path(entry->d_name));
        }
    }
    closedir(directory);
    return rmdir(files_directory);
}

#endif
