/* SPDX-License-Identifier: Apache-2.0
 *
 * One-line errors of the commands.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/opt.h"
#include "harness/base/errors.h"

int hx_report(const char *command, const struct dm_err *err) {
    if (err->code == DM_ERR_STOPPED) {
        fprintf(stderr, "dmbench %s: interrupted\n", command);
        return HX_INTERRUPTED;
    }
    fprintf(stderr, "dmbench %s: %s\n", command, err->text);
    return err->code == DM_ERR_INVALID ? HX_USAGE : HX_FAILED;
}

int hx_fail_file(struct dm_err *err) {
    if (err) {
        err->code = DM_ERR_INVALID;
    }
    return DM_ERR_INVALID;
}

int hx_file_error(int rc, struct dm_err *err) {
    int code = rc < 0 && err != NULL && err->code < 0 ? err->code : rc;
    return code == DM_ERR_CORRUPT || code == DM_ERR_IO ? hx_fail_file(err) : rc;
}

int hx_fail_signal(struct dm_err *err, int number) {
    return dm_fail(err, DM_ERR_IO, "ended by signal %d (%s)%s", number, strsignal(number),
                   number == SIGKILL ? ": out of memory? try fewer --jobs" : "");
}

int hx_fail_unknown(struct dm_err *err, const char *what, const char *name, const char *const *known, size_t count) {
    char list[320] = "";
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof(list) - 1; i++) {
        int wrote = snprintf(list + length, sizeof(list) - length, "%s%s", i > 0 ? ", " : "", known[i]);
        length += wrote > 0 ? (size_t)wrote : 0;
    }
    if (length >= sizeof(list)) {
        memcpy(list + sizeof(list) - sizeof("..."), "...", sizeof("..."));
    }
    const char *near = dm_suggest(name, known, count);
    return dm_fail(err, DM_ERR_INVALID, "unknown %s '%.40s' (%s%s%savailable: %s)", what, name,
                   near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", list);
}
