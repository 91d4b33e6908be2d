/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process does that is a copy of the test, and whether it was right. Include after cmocka.h.
 */
#ifndef DM_TESTS_COPIED_H
#define DM_TESTS_COPIED_H

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* COPIED_SCARCE: right, but without memory for large pages of its own. */
enum copied { COPIED_RIGHT, COPIED_WRONG, COPIED_SCARCE };

/* Runs `work` in a copy of this process; fails the test if the copy does not end or was wrong. */
static inline enum copied copied_run(enum copied (*work)(void *arg), void *arg) {
    pid_t copy = fork();
    if (copy == 0) {
        _exit((int)work(arg));
    }
    int status = -1;
    assert_true(copy > 0 && waitpid(copy, &status, 0) == copy && WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == COPIED_RIGHT || WEXITSTATUS(status) == COPIED_SCARCE);
    return (enum copied)WEXITSTATUS(status);
}

/* Page faults of this process so far. */
static inline long copied_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : -1;
}

#endif
