/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the command line of a command.
 */
#include "harness/base/args.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "harness/base/option_names.h"

enum { NAME_BYTES = 64, NAMES_MAX = 48 };

static int fail_unknown(const struct hx_args *args, const char *name, struct dm_err *err) {
    const char *known[NAMES_MAX];
    size_t count = 0;
    known[count++] = "help";
    for (const struct dm_opt *row = args->table; row->name != NULL && count < NAMES_MAX; row++) {
        known[count++] = row->name;
    }
    for (size_t i = 0; args->repeated != NULL && args->repeated[i] != NULL && count < NAMES_MAX; i++) {
        known[count++] = args->repeated[i];
    }
    const char *near = dm_suggest(name, known, count);
    char typed[NAME_BYTES] = "see --help";
    if (near != NULL) {
        hx_option_typed(near, typed, sizeof(typed));
    }
    return dm_fail(err, DM_ERR_INVALID, "unknown option '--%.40s' (%s%s%s)", name, near != NULL ? "did you mean " : "",
                   typed, near != NULL ? "?" : "");
}

/* Reads the option at argv[*at], and advances *at if its value is the next word. */
static int parse_option(const struct hx_args *args, char **argv, int argc, int *at, struct dm_err *err) {
    const char *text = argv[*at] + 2;
    size_t length = strcspn(text, "=");
    char typed[NAME_BYTES], name[NAME_BYTES];
    snprintf(typed, sizeof(typed), "%.*s", (int)length, text);
    if (length >= sizeof(typed) || !hx_option_name(typed, name, sizeof(name))) {
        return fail_unknown(args, typed, err);
    }
    const struct dm_opt *row = dm_opt_find(args->table, name);
    if (row == NULL && !dm_text_is_among(name, args->repeated)) {
        return fail_unknown(args, typed, err);
    }
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    if (value == NULL && (row != NULL ? row->type == DM_OPT_BOOL : dm_text_is_among(name, args->flags))) {
        value = "1";
    }
    if (value == NULL) {
        if (*at + 1 >= argc) {
            return dm_fail(err, DM_ERR_INVALID, "--%s: needs a value", typed);
        }
        value = argv[++*at];
    }
    if (row == NULL) {
        return args->take(args->arg, name, value, err);
    }
    struct dm_opt named = *row; /* errors name the option as it is typed */
    named.name = typed;
    struct dm_opt table[] = {named, DM_OPT_END};
    return dm_opt_set(table, args->values, typed, value, err);
}

int hx_args_excess(const char *word, struct dm_err *err) {
    return dm_fail(err, DM_ERR_INVALID, "'%.60s' is one word too many (see --help)", word);
}

int hx_args_parse(const struct hx_args *args, int argc, char **argv, struct dm_err *err) {
    bool words_only = false;
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        if (words_only || word[0] != '-' || word[1] == '\0') {
            DM_TRY(args->take ? args->take(args->arg, NULL, word, err) : hx_args_excess(word, err));
        } else if (strcmp(word, "--") == 0) {
            words_only = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            return 1;
        } else if (word[2] == '\0' && dm_text_is_among(word + 1, args->repeated)) {
            if (at + 1 >= argc) {
                return dm_fail(err, DM_ERR_INVALID, "%s: needs a value", word);
            }
            DM_TRY(args->take(args->arg, word + 1, argv[++at], err));
        } else if (word[1] == '-') {
            DM_TRY(parse_option(args, argv, argc, &at, err));
        } else {
            return dm_fail(err, DM_ERR_INVALID, "unknown option '%.40s' (see --help)", word);
        }
    }
    return 0;
}

void hx_args_help(const struct dm_opt *table, FILE *out) {
    struct dm_opt named[NAMES_MAX] = {{.name = NULL}};
    char typed[NAMES_MAX][NAME_BYTES];
    for (size_t i = 0; table[i].name != NULL && i + 1 < NAMES_MAX; i++) {
        named[i] = table[i];
        named[i].name = hx_option_typed(table[i].name, typed[i], sizeof(typed[i])) + 2;
    }
    dm_opt_help(named, "  ", out);
}
