/* SPDX-License-Identifier: Apache-2.0
 *
 * Quoting of what a user typed, for error messages of the option code: short enough for the advice to fit behind it.
 */
#ifndef DM_COMMON_OPT_QUOTE_H
#define DM_COMMON_OPT_QUOTE_H

#include <stdio.h>

struct dm_quoted {
    char text[80];
};

/* The text in single quotes, cut with "..." where it is long. */
static inline struct dm_quoted dm_quote(const char *text) {
    enum { SHOWN_BYTES = 60 };
    struct dm_quoted quoted;
    int needed = snprintf(quoted.text, sizeof(quoted.text), "'%.*s", SHOWN_BYTES, text);
    size_t used = needed > 0 ? (size_t)needed : 0;
    /* the precision counted the quote's text, not its mark */
    const char *tail = used == SHOWN_BYTES + 1 && text[SHOWN_BYTES] != '\0' ? "...'" : "'";
    (void)snprintf(quoted.text + used, sizeof(quoted.text) - used, "%s", tail);
    return quoted;
}

#endif
