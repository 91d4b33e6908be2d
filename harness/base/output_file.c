/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a file under a temporary name.
 */
#include "harness/base/output_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static int temporary_path(const char *path, char temporary[4096]) {
    return snprintf(temporary, 4096, "%s.tmp.%d", path, (int)getpid()) < 4096 ? 0 : DM_ERR_IO;
}

FILE *hx_output_open(const char *path, struct dm_err *err) {
    char temporary[4096];
    FILE *file = temporary_path(path, temporary) == 0 ? fopen(temporary, "w") : NULL;
    if (file == NULL) {
        dm_fail(err, DM_ERR_IO, "%s: cannot write it: %s", path, strerror(errno));
    }
    return file;
}

int hx_output_close(FILE *file, const char *path, struct dm_err *err) {
    char temporary[4096];
    bool bad = ferror(file) != 0;
    bad = fclose(file) != 0 || bad;
    if (temporary_path(path, temporary) < 0 || bad || rename(temporary, path) != 0) {
        int reason = errno;
        unlink(temporary);
        return dm_fail(err, DM_ERR_IO, "%s: cannot write it: %s", path, strerror(reason));
    }
    return 0;
}
