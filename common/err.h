/* SPDX-License-Identifier: Apache-2.0
 *
 * Result codes and error reports, one table for the whole project.
 *
 * A function that can fail returns int: 0 is done, < 0 is a failure from this table, > 0 is an ordinary
 * outcome that is not a failure (not found, exists). `rc < 0` is the only test for failure. Cold paths take a
 * `struct dm_err *` last (may be NULL) that states what went wrong, where, and what would be right; hot paths
 * have only the code.
 */
#ifndef DM_COMMON_ERR_H
#define DM_COMMON_ERR_H

#include <stdarg.h>
#include <stdbool.h>

/* X(name, value, text) */
#define DM_CODES(X)                                                                                                    \
    X(DM_OK, 0, "ok")                                                                                                  \
    X(DM_NOT_FOUND, 1, "not found")                                                                                    \
    X(DM_EXISTS, 2, "exists")                                                                                          \
    X(DM_ERR_INVALID, -1, "invalid argument")                                                                          \
    X(DM_ERR_NO_MEMORY, -2, "no memory")                                                                               \
    X(DM_ERR_UNSUPPORTED, -3, "unsupported")                                                                           \
    X(DM_ERR_RETRY_LIMIT, -4, "retry limit")                                                                           \
    X(DM_ERR_IO, -5, "input/output error")                                                                             \
    X(DM_ERR_STOPPED, -6, "stopped")                                                                                   \
    X(DM_ERR_CORRUPT, -7, "corrupt")                                                                                   \
    X(DM_ERR_BATCH_FULL, -8, "too many verbs in one batch")                                                            \
    X(DM_ERR_ADDRESS, -9, "remote address out of range or misaligned")                                                 \
    X(DM_ERR_PEER, -10, "peer failed")

enum dm_code {
#define X(name, value, text) name = (value),
    DM_CODES(X)
#undef X
};

/* Whether `rc` is a failure after which the caller can send no verb: the run ended, or a peer failed. What was locked
 * stays locked then. */
static inline bool dm_is_final(int rc) {
    return rc == DM_ERR_STOPPED || rc == DM_ERR_PEER;
}

/* What failed, in words; `text` is one line without a trailing full stop or newline. */
struct dm_err {
    int code;
    char text[400];
};

/* The table's text for a code; never NULL. */
const char *dm_code_text(int code);

/* A short identifier for a code as results use it: "ok", "not_found", "no_memory"; never NULL. */
const char *dm_code_name(int code);

/* Writes a message into err (which may be NULL) and returns code, so that `return dm_fail(err, ...)` reads well. */
int dm_fail(struct dm_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message already in err and returns err's code. For callers that know the file or option.
 */
int dm_fail_in(struct dm_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Returns the expression's value from the calling function when it is a failure. */
#define DM_TRY(expression)                                                                                             \
    do {                                                                                                               \
        int dm_try_rc = (expression);                                                                                  \
        if (dm_try_rc < 0) {                                                                                           \
            return dm_try_rc;                                                                                          \
        }                                                                                                              \
    } while (0)

/* The analyser sees one file at a time and cannot know that dm_fail returns the code it is given. */
#if defined(__clang_analyzer__) && !defined(DM_ERR_IMPLEMENTATION)
#define dm_fail(err, code, ...) ((dm_fail)(err, code, __VA_ARGS__), (code))
#endif

#endif
