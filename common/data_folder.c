/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the program's data. The executable's own path comes from /proc, since argv[0] may be a bare name.
 */
#include "common/data_folder.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, PARENTS_MAX = 3 };

static char folder[PATH_BYTES];

static bool is_there(const char *path, const char *name) {
    char whole[PATH_BYTES + 64];
    snprintf(whole, sizeof(whole), "%s/%s", path, name);
    return access(whole, F_OK) == 0;
}

static bool holds_data(const char *path) {
    return is_there(path, "transport/profiles") && is_there(path, "plots/figures");
}

/* Cuts the last name off an absolute path; false at the root. */
static bool to_parent(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* Looks beside the executable: first where an installed one has its data, then in the source tree of a build in it. */
static bool find_near(void) {
    char beside[PATH_BYTES] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof(beside) - 1);
    if (length <= 0 || !to_parent(beside)) {
        return false;
    }
    int needed = snprintf(folder, sizeof(folder), "%s/%s", beside, DM_INSTALLED_DATA);
    if (needed < PATH_BYTES && holds_data(folder)) {
        return true;
    }
    for (int i = 0; i < PARENTS_MAX && to_parent(beside); i++) {
        if (holds_data(beside)) {
            memcpy(folder, beside, sizeof(folder));
            return true;
        }
    }
    return false;
}

static void find(void) {
    const char *given = getenv("DMBENCH_DATA");
    if (given && given[0]) {
        snprintf(folder, sizeof(folder), "%s", given);
    } else if (!find_near()) {
        snprintf(folder, sizeof(folder), "%s", DM_SOURCE_DIR);
    }
}

const char *dm_data_folder(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return folder;
}

void dm_data_path(const char *name, char *path, size_t capacity) {
    snprintf(path, capacity, "%s/%s", dm_data_folder(), name);
}
