/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening files that a user names.
 */
#include "common/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reading a pipe without a writer returns its end at once; with one, this waits for the first byte. */
static bool has_data(FILE *file) {
    int first = getc(file);
    return first != EOF && ungetc(first, file) != EOF;
}

FILE *dm_input_open(const char *path) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return NULL;
    }
    FILE *file = fstat(fd, &status) == 0 && fcntl(fd, F_SETFL, 0) == 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        int reason = errno;
        close(fd);
        errno = reason;
        return NULL;
    }
    if (S_ISFIFO(status.st_mode) && !has_data(file)) {
        fclose(file);
        errno = ENODATA;
        return NULL;
    }
    return file;
}
