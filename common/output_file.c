/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a file under a temporary name.
 */
#include "common/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

/* What exists at the end of all symbolic links, as S_IFREG and so on; 0 if nothing does. */
static mode_t type_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

static int fail_write(struct dm_err *err, const char *path, int reason) {
    return dm_fail(err, DM_ERR_IO, "%s: cannot write: %s", path, strerror(reason));
}

/* Replaces the path of a symbolic link by what it names. 1: replaced; 0: it is no symbolic link; -1 with errno. */
static int link_step(char path[PATH_MAX]) {
    char target[PATH_MAX], folder[PATH_MAX], joined[2 * PATH_MAX];
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0) {
        return errno == EINVAL || errno == ENOENT ? 0 : -1;
    }
    target[length] = '\0';
    snprintf(folder, sizeof(folder), "%s", path);
    int bytes = target[0] == '/' ? snprintf(joined, sizeof(joined), "%s", target)
                                 : snprintf(joined, sizeof(joined), "%s/%s", dirname(folder), target);
    if (bytes >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, joined, (size_t)bytes + 1);
    return 1;
}

/* Follows symbolic links also where the last one names nothing yet. 0, or -1 with errno. */
static int links_follow(const char *path, char target[PATH_MAX]) {
    if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int links = 0; links < LINKS_MAX; links++) {
        int step = link_step(target);
        if (step <= 0) {
            return step;
        }
    }
    errno = ELOOP;
    return -1;
}

/* The file to write and the temporary name beside it. 0, or -1 with errno. */
static int names_find(const char *path, char target[PATH_MAX], char temporary[PATH_MAX]) {
    if (links_follow(path, target) < 0) {
        return -1;
    }
    if (snprintf(temporary, PATH_MAX, "%s.tmp.%ld", target, (long)getpid()) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return 0;
}

static int special_check(const char *path, mode_t type, bool is_seekable, struct dm_err *err) {
    if (type == S_IFDIR) {
        return fail_write(err, path, EISDIR);
    }
    if (is_seekable || (type != S_IFCHR && type != S_IFIFO)) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot write: it exists and is no regular file", path);
    }
    return 0;
}

int dm_output_check(const char *path, bool is_seekable, struct dm_err *err) {
    char target[PATH_MAX], temporary[PATH_MAX];
    mode_t type = type_of(path);
    if (type != 0 && type != S_IFREG) {
        DM_TRY(special_check(path, type, is_seekable, err));
        return access(path, W_OK) == 0 ? 0 : fail_write(err, path, errno);
    }
    if (names_find(path, target, temporary) < 0) {
        return fail_write(err, path, errno);
    }
    const char *folder = dirname(target);
    return access(folder, W_OK | X_OK) == 0
               ? 0
               : dm_fail(err, DM_ERR_IO, "cannot write in folder '%.200s': %s", folder, strerror(errno));
}

/* A FIFO is opened without waiting for a reader, and then written to with waiting. */
static FILE *special_open(const char *path, mode_t type, struct dm_err *err) {
    if (special_check(path, type, false, err) < 0) {
        return NULL;
    }
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0) {
        if (fd < 0 && errno == ENXIO) {
            dm_fail(err, DM_ERR_IO, "%s: cannot write: no process reads from it", path);
        } else {
            fail_write(err, path, errno);
        }
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    FILE *file = fdopen(fd, "w");
    if (file == NULL) {
        close(fd);
        fail_write(err, path, errno);
    }
    return file;
}

FILE *dm_output_open(const char *path, struct dm_err *err) {
    char target[PATH_MAX], temporary[PATH_MAX];
    mode_t type = type_of(path);
    if (type != 0 && type != S_IFREG) {
        return special_open(path, type, err);
    }
    FILE *file = names_find(path, target, temporary) == 0 ? fopen(temporary, "we") : NULL;
    if (file == NULL) {
        fail_write(err, path, errno);
    }
    return file;
}

/* Files under a temporary name are regular, and those that are written to directly are not. */
static bool is_temporary(FILE *file) {
    struct stat status;
    return fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
}

int dm_output_close(FILE *file, const char *path, struct dm_err *err) {
    char target[PATH_MAX], temporary[PATH_MAX];
    bool is_renamed = is_temporary(file);
    int reason = !ferror(file) ? 0 : errno != 0 ? errno : EIO;
    if (fflush(file) != 0 || (is_renamed && fsync(fileno(file)) != 0)) {
        reason = errno;
    }
    /* network file systems report a full disk only here */
    if (fclose(file) != 0 && reason == 0) {
        reason = errno;
    }
    if (is_renamed) {
        bool has_names = names_find(path, target, temporary) == 0;
        if (reason == 0 && (!has_names || rename(temporary, target) != 0)) {
            reason = errno;
        }
        if (reason != 0 && has_names) {
            unlink(temporary);
        }
    }
    return reason == 0 ? 0 : fail_write(err, path, reason);
}

void dm_output_abandon(FILE *file, const char *path) {
    char target[PATH_MAX], temporary[PATH_MAX];
    bool is_removed = is_temporary(file);
    fclose(file);
    if (is_removed && names_find(path, target, temporary) == 0) {
        unlink(temporary);
    }
}

char *dm_output_temporary(const char *path) {
    char target[PATH_MAX], temporary[PATH_MAX];
    mode_t type = type_of(path);
    return (type == 0 || type == S_IFREG) && names_find(path, target, temporary) == 0 ? strdup(temporary) : NULL;
}
