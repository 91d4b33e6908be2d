/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs gnuplot.
 */
#include "harness/study/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_THERE = 127, EXIT_NO_FOLDER = 126, MESSAGE_MAX = 256 };

const char *const hx_picture_kinds[HX_PICTURE_KINDS] = {"png", "svg", "pdf"};

void hx_pictures_remove(const char *folder, const char *name) {
    char path[PATH_MAX];
    for (unsigned i = 0; i < HX_PICTURE_KINDS; i++) {
        if (snprintf(path, sizeof(path), "%s/%s.%s", folder, name, hx_picture_kinds[i]) < (int)sizeof(path)) {
            unlink(path);
        }
    }
}

/* Only calls that are safe between fork and exec. A process group of its own: Ctrl-C does not stop it, and the picture
 * is finished. */
static void child_exec(const char *folder, const char *program, int messages) {
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    if (chdir(folder) != 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(messages, STDOUT_FILENO) < 0 ||
        dup2(messages, STDERR_FILENO) < 0) {
        _exit(EXIT_NO_FOLDER);
    }
    execlp("gnuplot", "gnuplot", program, (char *)NULL);
    _exit(EXIT_NOT_THERE);
}

/* gnuplot's last line, which is its error. */
static void last_line(int messages, char line[MESSAGE_MAX]) {
    off_t end = lseek(messages, 0, SEEK_END);
    off_t start = end > MESSAGE_MAX - 1 ? end - (MESSAGE_MAX - 1) : 0;
    ssize_t length = end > 0 ? pread(messages, line, (size_t)(end - start), start) : 0;
    length = length > 0 ? length : 0;
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == ' ')) {
        length--;
    }
    line[length] = '\0';
    char *newline = strrchr(line, '\n');
    if (newline != NULL) {
        memmove(line, newline + 1, strlen(newline + 1) + 1);
    }
}

int hx_gnuplot(const char *folder, const char *program, struct dm_err *err) {
    char line[MESSAGE_MAX] = "";
    int status = 0;
    int messages = memfd_create("gnuplot", MFD_CLOEXEC);
    pid_t pid = messages >= 0 ? fork() : -1;
    if (pid == 0) {
        child_exec(folder, program, messages);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    int reason = errno;
    if (messages >= 0) {
        last_line(messages, line);
        close(messages);
    }
    if (pid < 0) {
        return dm_fail(err, DM_ERR_IO, "cannot start gnuplot: %s", strerror(reason));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_THERE) {
        return dm_fail(err, DM_ERR_UNSUPPORTED, "gnuplot is not installed (Debian package gnuplot-nox)");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return dm_fail(err, DM_ERR_IO, "%s/%s: gnuplot failed: %s", folder, program, line);
    }
    return 0;
}
