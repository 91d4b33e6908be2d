/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts and names of the result codes, and the writing of error reports.
 */
#define DM_ERR_IMPLEMENTATION
#include "common/err.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"

const char *dm_code_text(int code) {
    switch ((enum dm_code)code) {
#define X(name, value, text)                                                                                           \
    case name:                                                                                                         \
        return text;
        DM_CODES(X)
#undef X
    }
    return "unknown result code";
}

/* No default: a code added to the table without a name here does not compile. */
const char *dm_code_name(int code) {
    switch ((enum dm_code)code) {
    case DM_OK:
        return "ok";
    case DM_NOT_FOUND:
        return "not_found";
    case DM_EXISTS:
        return "exists";
    case DM_ERR_INVALID:
        return "invalid";
    case DM_ERR_NO_MEMORY:
        return "no_memory";
    case DM_ERR_UNSUPPORTED:
        return "unsupported";
    case DM_ERR_RETRY_LIMIT:
        return "retry_limit";
    case DM_ERR_IO:
        return "io";
    case DM_ERR_STOPPED:
        return "stopped";
    case DM_ERR_CORRUPT:
        return "corrupt";
    case DM_ERR_BATCH_FULL:
        return "batch_full";
    case DM_ERR_ADDRESS:
        return "address";
    case DM_ERR_PEER:
        return "peer";
    }
    return "unknown";
}

/* Ends a text that did not fit with "...", so that a reader sees that it was cut. */
static void mark_cut(char *text, size_t capacity) {
    memcpy(text + capacity - sizeof("..."), "...", sizeof("..."));
}

/* Stores a formatted message of `needed` bytes, of which `text` holds what fits. */
static void err_store(struct dm_err *err, int code, char *text, int needed) {
    if (needed < 0 || (size_t)needed >= sizeof(err->text)) {
        mark_cut(text, sizeof(err->text));
    }
    (void)dm_text_clean(text);
    memcpy(err->text, text, sizeof(err->text));
    err->code = code;
}

int dm_fail(struct dm_err *err, int code, const char *format, ...) {
    if (err == NULL) {
        return code;
    }
    /* not straight into err: its present text may be one of the arguments */
    char text[sizeof(err->text)] = "";
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    err_store(err, code, text, needed);
    return code;
}

int dm_fail_in(struct dm_err *err, int code, const char *format, ...) {
    if (err == NULL) {
        return code;
    }
    if (err->code >= 0) {
        /* the failed function left no message: the code's own text is better than none */
        (void)dm_fail(err, code, "%s", dm_code_text(code));
    }
    char prefix[sizeof(err->text)] = "";
    va_list args;
    va_start(args, format);
    (void)vsnprintf(prefix, sizeof(prefix), format, args);
    va_end(args);
    char text[sizeof(err->text)] = "";
    int needed = snprintf(text, sizeof(text), "%s: %s", prefix, err->text);
    err_store(err, err->code, text, needed);
    return err->code;
}
