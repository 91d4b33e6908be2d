/* SPDX-License-Identifier: Apache-2.0
 *
 * How the names of options are written.
 */
#include "harness/base/option_names.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 64 };

bool hx_option_name(const char *text, char *name, size_t capacity) {
    size_t length = strlen(text);
    if (length == 0 || length >= capacity) {
        return false;
    }
    for (size_t i = 0; i <= length; i++) {
        name[i] = text[i] == '-' ? '_' : text[i];
    }
    return true;
}

const char *hx_option_typed(const char *name, char *text, size_t capacity) {
    snprintf(text, capacity, "--%s", name);
    for (char *dash = text + 2; *dash; dash++) {
        *dash = *dash == '_' ? '-' : *dash;
    }
    return text;
}

void hx_parameters_help(const char *option, const struct dm_opt *table, FILE *out) {
    struct dm_opt rows[ROWS_MAX] = {{.name = NULL}};
    char names[ROWS_MAX][64];
    for (size_t i = 0; table[i].name && i + 1 < ROWS_MAX; i++) {
        rows[i] = table[i];
        snprintf(names[i], sizeof(names[i]), "%s %s", option, table[i].name);
        rows[i].name = names[i];
    }
    dm_opt_help(rows, "  ", out);
}
