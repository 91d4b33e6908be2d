/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on stderr. A message is put together first and written in one piece, so that lines of two threads do not
 * mix.
 */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

static atomic_int max_level = DM_LOG_WARN;

void dm_log_set_level(enum dm_log_level level) {
    atomic_store(&max_level, (int)level);
}

static const char *level_word(enum dm_log_level level) {
    switch (level) {
    case DM_LOG_ERROR:
        return "error";
    case DM_LOG_WARN:
        return "warning";
    case DM_LOG_INFO:
        return "info";
    case DM_LOG_DEBUG:
        return "debug";
    }
    return "message";
}

static const char *level_colour(enum dm_log_level level) {
    switch (level) {
    case DM_LOG_ERROR:
        return "\033[31m";
    case DM_LOG_WARN:
        return "\033[33m";
    case DM_LOG_INFO:
    case DM_LOG_DEBUG:
        break;
    }
    return "\033[2m";
}

/* By the NO_COLOR convention an empty variable counts as not set. */
static bool wants_colour(void) {
    const char *no_color = getenv("NO_COLOR");
    return (no_color == NULL || no_color[0] == '\0') && isatty(STDERR_FILENO) != 0;
}

void dm_log(enum dm_log_level level, const char *format, ...) {
    if ((int)level > atomic_load(&max_level)) {
        return;
    }
    int saved_errno = errno;
    char message[1024] = "";
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (needed >= (int)sizeof(message)) {
        memcpy(message + sizeof(message) - sizeof("..."), "...", sizeof("..."));
    }
    /* callers need not know whether a text brings its own line end */
    size_t length = strlen(message);
    while (length > 0 && message[length - 1] == '\n') {
        message[--length] = '\0';
    }
    (void)dm_text_clean(message);
    bool colour = wants_colour();
    char line[sizeof(message) + 64];
    (void)snprintf(line, sizeof(line), "dmbench: %s%s:%s %s\n", colour ? level_colour(level) : "", level_word(level),
                   colour ? "\033[0m" : "", message);
    (void)fputs(line, stderr);
    errno = saved_errno;
}
