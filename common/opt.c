/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables: values by name, to and from text. A value is parsed into `union value` first and stored only when it
 * is known to be right, so that a failure changes nothing.
 */
#include "common/opt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/compiler.h"
#include "common/opt_quote.h"
#include "common/text.h"

union value {
    bool flag;
    uint64_t number;
    double real;
    unsigned choice;
    const char *string;
};

static void *member_of(const struct dm_opt *row, void *values) {
    return (char *)values + row->offset;
}

static const void *member_at(const struct dm_opt *row, const void *values) {
    return (const char *)values + row->offset;
}

static union value value_load(const struct dm_opt *row, const void *values) {
    const void *member = member_at(row, values);
    union value value = {.number = 0};
    switch (row->type) {
    case DM_OPT_BOOL:
        value.flag = *(const bool *)member;
        break;
    case DM_OPT_COUNT:
    case DM_OPT_BYTES:
    case DM_OPT_DURATION:
        value.number = *(const uint64_t *)member;
        break;
    case DM_OPT_REAL:
        value.real = *(const double *)member;
        break;
    case DM_OPT_ENUM:
        value.choice = *(const unsigned *)member;
        break;
    case DM_OPT_STRING:
        value.string = *(const char *const *)member;
        break;
    }
    return value;
}

static void value_store(const struct dm_opt *row, void *values, union value value) {
    void *member = member_of(row, values);
    switch (row->type) {
    case DM_OPT_BOOL:
        *(bool *)member = value.flag;
        break;
    case DM_OPT_COUNT:
    case DM_OPT_BYTES:
    case DM_OPT_DURATION:
        *(uint64_t *)member = value.number;
        break;
    case DM_OPT_REAL:
        *(double *)member = value.real;
        break;
    case DM_OPT_ENUM:
        *(unsigned *)member = value.choice;
        break;
    case DM_OPT_STRING:
        *(const char **)member = value.string;
        break;
    }
}

static int bool_parse(const char *text, bool *flag, struct dm_err *err) {
    static const char *const words[] = {"0", "1", "false", "true", "off", "on", "no", "yes"};
    for (unsigned i = 0; i < DM_ARRAY_LEN(words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *flag = i % 2 != 0;
            return DM_OK;
        }
    }
    struct dm_quoted quoted = dm_quote(text);
    return dm_fail(err, DM_ERR_INVALID,
                   "%s is neither true nor false (use true or false, on or off, yes or no, 1 or 0)", quoted.text);
}

/* Appends to a string in a buffer of `capacity` bytes; what does not fit is cut. */
static void text_append(char *text, size_t capacity, const char *more) {
    size_t used = strlen(text);
    (void)snprintf(text + used, capacity - used, "%s", more);
}

/* "a, b, c" */
static void choices_format(const char *const *choices, char *text, size_t capacity) {
    text[0] = '\0';
    for (size_t i = 0; choices[i] != NULL; i++) {
        text_append(text, capacity, i > 0 ? ", " : "");
        text_append(text, capacity, choices[i]);
    }
}

static int enum_parse(const char *const *choices, const char *text, unsigned *choice, struct dm_err *err) {
    unsigned count = 0;
    for (; choices[count] != NULL; count++) {
        if (strcmp(text, choices[count]) == 0) {
            *choice = count;
            return DM_OK;
        }
    }
    struct dm_quoted quoted = dm_quote(text);
    char list[sizeof(err->text)];
    choices_format(choices, list, sizeof(list));
    const char *near = dm_suggest(text, choices, count);
    return dm_fail(err, DM_ERR_INVALID, "%s is not a choice (%s%s%suse one of: %s)", quoted.text,
                   near != NULL ? "did you mean '" : "", near != NULL ? near : "", near != NULL ? "'? " : "", list);
}

static int string_parse(const char *text, const char **string, struct dm_err *err) {
    char *copy = strdup(text);
    if (copy == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a string of %zu bytes", strlen(text));
    }
    /* results are JSON and messages are one line: neither could hold this value */
    if (dm_text_clean(copy) > 0) {
        (void)dm_fail(err, DM_ERR_INVALID, "'%.60s' has control characters or is not UTF-8", copy);
        free(copy);
        return DM_ERR_INVALID;
    }
    *string = copy;
    return DM_OK;
}

/* A whole number as a user would type it: in the largest unit that leaves no rest. */
static void number_format(enum dm_opt_type type, uint64_t number, char *text, size_t capacity) {
    static const struct {
        enum dm_opt_type type;
        const char *name;
        uint64_t factor;
    } units[] = {
        {DM_OPT_COUNT, "T", UINT64_C(1000000000000)},
        {DM_OPT_COUNT, "G", 1000000000},
        {DM_OPT_COUNT, "M", 1000000},
        {DM_OPT_BYTES, "TiB", UINT64_C(1) << 40},
        {DM_OPT_BYTES, "GiB", 1 << 30},
        {DM_OPT_BYTES, "MiB", 1 << 20},
        {DM_OPT_BYTES, "KiB", 1 << 10},
        {DM_OPT_BYTES, "TB", UINT64_C(1000000000000)},
        {DM_OPT_BYTES, "GB", 1000000000},
        {DM_OPT_BYTES, "MB", 1000000},
        {DM_OPT_DURATION, "h", UINT64_C(3600000000000)},
        {DM_OPT_DURATION, "m", UINT64_C(60000000000)},
        {DM_OPT_DURATION, "s", 1000000000},
        {DM_OPT_DURATION, "ms", 1000000},
        {DM_OPT_DURATION, "us", 1000},
        {DM_OPT_DURATION, "ns", 1},
    };
    for (size_t i = 0; number != 0 && i < DM_ARRAY_LEN(units); i++) {
        if (units[i].type == type && number % units[i].factor == 0) {
            (void)snprintf(text, capacity, "%" PRIu64 "%s", number / units[i].factor, units[i].name);
            return;
        }
    }
    (void)snprintf(text, capacity, "%" PRIu64, number);
}

static void bound_format(const struct dm_opt *row, double bound, char *text, size_t capacity) {
    if (row->type == DM_OPT_REAL) {
        (void)snprintf(text, capacity, "%g", bound);
    } else {
        /* 2^64, the double nearest to the largest number, does not convert */
        number_format(row->type, bound < 0x1p64 ? (uint64_t)bound : UINT64_MAX, text, capacity);
    }
}

static bool has_bounds(const struct dm_opt *row) {
    bool is_number = row->type == DM_OPT_COUNT || row->type == DM_OPT_BYTES || row->type == DM_OPT_DURATION ||
                     row->type == DM_OPT_REAL;
    return is_number && (row->min != 0.0 || row->max != 0.0);
}

/* "1 to 64 entries" */
static void range_format(const struct dm_opt *row, char *text, size_t capacity) {
    char low[32];
    char high[32];
    bound_format(row, row->min, low, sizeof(low));
    bound_format(row, row->max, high, sizeof(high));
    (void)snprintf(text, capacity, "%s to %s%s%s", low, high, row->unit != NULL ? " " : "",
                   row->unit != NULL ? row->unit : "");
}

static int check_range(const struct dm_opt *row, double number, const char *text, struct dm_err *err) {
    if (!has_bounds(row) || (number >= row->min && number <= row->max)) {
        return DM_OK;
    }
    char range[128];
    range_format(row, range, sizeof(range));
    return dm_fail(err, DM_ERR_INVALID, "%.60s is out of range (%s)", text, range);
}

/* Parses and checks; the caller owns a string. */
static int value_parse(const struct dm_opt *row, const char *text, union value *value, struct dm_err *err) {
    switch (row->type) {
    case DM_OPT_BOOL:
        return bool_parse(text, &value->flag, err);
    case DM_OPT_COUNT:
        DM_TRY(dm_parse_count(text, &value->number, err));
        return check_range(row, (double)value->number, text, err);
    case DM_OPT_BYTES:
        DM_TRY(dm_parse_bytes(text, &value->number, err));
        return check_range(row, (double)value->number, text, err);
    case DM_OPT_DURATION:
        DM_TRY(dm_parse_duration(text, &value->number, err));
        return check_range(row, (double)value->number, text, err);
    case DM_OPT_REAL:
        DM_TRY(dm_parse_real(text, &value->real, err));
        return check_range(row, value->real, text, err);
    case DM_OPT_ENUM:
        return enum_parse(row->choices, text, &value->choice, err);
    case DM_OPT_STRING:
        return string_parse(text, &value->string, err);
    }
    return dm_fail(err, DM_ERR_INVALID, "the option's row has no valid type");
}

/* The nearest name of the table, or NULL. */
static const char *table_suggest(const struct dm_opt *table, const char *name) {
    size_t count = 0;
    while (table[count].name != NULL) {
        count++;
    }
    const char **names = calloc(count + 1, sizeof(*names));
    if (names == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = table[i].name;
    }
    const char *near = dm_suggest(name, names, count);
    free(names);
    return near;
}

const struct dm_opt *dm_opt_find(const struct dm_opt *table, const char *name) {
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        if (strcmp(row->name, name) == 0) {
            return row;
        }
    }
    return NULL;
}

int dm_opt_set(const struct dm_opt *table, void *values, const char *name, const char *text, struct dm_err *err) {
    const struct dm_opt *row = dm_opt_find(table, name);
    if (row == NULL) {
        struct dm_quoted quoted = dm_quote(name);
        const char *near = table_suggest(table, name);
        return near == NULL ? dm_fail(err, DM_ERR_INVALID, "unknown option %s", quoted.text)
                            : dm_fail(err, DM_ERR_INVALID, "unknown option %s (did you mean '%s'?)", quoted.text, near);
    }
    union value value = {.number = 0};
    int rc = value_parse(row, text, &value, err);
    if (rc < 0) {
        (void)dm_fail_in(err, rc, "--%s", row->name);
        return rc;
    }
    if (row->type == DM_OPT_STRING) {
        free((void *)(uintptr_t)value_load(row, values).string);
    }
    value_store(row, values, value);
    return DM_OK;
}

/* For errors after which a program cannot continue: a wrong table, or no memory for a few bytes of configuration. */
static DM_NO_RETURN void opt_die(const struct dm_opt *row, const char *problem) {
    (void)fprintf(stderr, "option table: --%s: %s\n", row->name, problem);
    abort();
}

void dm_opt_defaults(const struct dm_opt *table, void *values) {
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        /* an option without a default starts at zero, false, the first choice or the empty string */
        static const char *const zeros[] = {
            [DM_OPT_BOOL] = "false", [DM_OPT_COUNT] = "0", [DM_OPT_BYTES] = "0",
            [DM_OPT_DURATION] = "0", [DM_OPT_REAL] = "0",  [DM_OPT_STRING] = "",
        };
        const char *zero = row->type == DM_OPT_ENUM ? row->choices[0] : zeros[row->type];
        struct dm_err err = {0};
        union value value = {.number = 0};
        if (value_parse(row, row->initial != NULL ? row->initial : zero, &value, &err) < 0) {
            opt_die(row, err.text);
        }
        value_store(row, values, value);
    }
}

/* The shortest decimal that reads back as the same number. */
static int real_format(double real, char *text, size_t capacity) {
    enum { DIGITS_KEPT = 15, DIGITS_ENOUGH = 17 };
    char digits[40];
    int precision = DIGITS_KEPT;
    do {
        (void)snprintf(digits, sizeof(digits), "%.*g", precision, real);
    } while (precision++ < DIGITS_ENOUGH && strtod(digits, NULL) != real);
    return snprintf(text, capacity, "%s", digits);
}

int dm_opt_format(const struct dm_opt *row, const void *values, char *text, size_t capacity) {
    union value value = value_load(row, values);
    switch (row->type) {
    case DM_OPT_BOOL:
        return snprintf(text, capacity, "%s", value.flag ? "true" : "false");
    case DM_OPT_COUNT:
    case DM_OPT_BYTES:
        return snprintf(text, capacity, "%" PRIu64, value.number);
    case DM_OPT_DURATION:
        return snprintf(text, capacity, "%" PRIu64 "ns", value.number);
    case DM_OPT_REAL:
        return real_format(value.real, text, capacity);
    case DM_OPT_ENUM:
        return snprintf(text, capacity, "%s", row->choices[value.choice]);
    case DM_OPT_STRING:
        return snprintf(text, capacity, "%s", value.string != NULL ? value.string : "");
    }
    return -1;
}

void dm_opt_copy(const struct dm_opt *table, void *into, const void *from) {
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        union value value = value_load(row, from);
        if (row->type == DM_OPT_STRING && value.string != NULL) {
            value.string = strdup(value.string);
            if (value.string == NULL) {
                opt_die(row, "no memory to copy its value");
            }
        }
        value_store(row, into, value);
    }
}

void dm_opt_free(const struct dm_opt *table, void *values) {
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        if (row->type == DM_OPT_STRING) {
            free((void *)(uintptr_t)value_load(row, values).string);
            value_store(row, values, (union value){.string = NULL});
        }
    }
}

const char *dm_opt_type_word(const struct dm_opt *row) {
    switch (row->type) {
    case DM_OPT_BOOL:
        return "BOOL";
    case DM_OPT_COUNT:
        return "COUNT";
    case DM_OPT_BYTES:
        return "BYTES";
    case DM_OPT_DURATION:
        return "TIME";
    case DM_OPT_REAL:
        return "REAL";
    case DM_OPT_ENUM:
        return "NAME";
    case DM_OPT_STRING:
        return "TEXT";
    }
    return "";
}

static void note_append(char *notes, size_t capacity, const char *label, const char *note) {
    text_append(notes, capacity, notes[0] == '\0' ? "" : "; ");
    text_append(notes, capacity, label);
    text_append(notes, capacity, note);
}

void dm_opt_notes(const struct dm_opt *row, char *notes, size_t capacity) {
    char part[512];
    notes[0] = '\0';
    if (row->derived != NULL) {
        note_append(notes, capacity, "default ", row->derived);
    } else if (row->initial != NULL && row->initial[0] != '\0') {
        bool needs_unit = row->unit != NULL && !has_bounds(row);
        (void)snprintf(part, sizeof(part), "%s%s%s", row->initial, needs_unit ? " " : "", needs_unit ? row->unit : "");
        note_append(notes, capacity, "default ", part);
    }
    if (has_bounds(row)) {
        range_format(row, part, sizeof(part));
        note_append(notes, capacity, "", part);
    }
    if (row->type == DM_OPT_ENUM) {
        choices_format(row->choices, part, sizeof(part));
        note_append(notes, capacity, "one of: ", part);
    }
    if (row->symbol != NULL) {
        note_append(notes, capacity, "paper: ", row->symbol);
    }
}

void dm_opt_help(const struct dm_opt *table, const char *indent, FILE *out) {
    enum { COLUMNS = 100, WIDTH_MAX = 40 };
    size_t width = 0;
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        size_t row_width = strlen("-- ") + strlen(row->name) + strlen(dm_opt_type_word(row));
        width = row_width > width && row_width <= WIDTH_MAX ? row_width : width;
    }
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        char notes[1024];
        char text[2048];
        dm_opt_notes(row, notes, sizeof(notes));
        const char *help = row->help != NULL ? row->help : "";
        bool has_notes = notes[0] != '\0';
        (void)snprintf(text, sizeof(text), "%s%s%s%s%s", help, help[0] != '\0' && has_notes ? " " : "",
                       has_notes ? "(" : "", notes, has_notes ? ")" : "");
        size_t typed = strlen("-- ") + strlen(row->name);
        int type_width = width > typed ? (int)(width - typed) : 0;
        int printed = fprintf(out, "%s--%s %-*s  ", indent, row->name, type_width, dm_opt_type_word(row));
        dm_text_wrap(text, strlen(text), printed > 0 ? (size_t)printed : 0, strlen(indent) + width + 2, COLUMNS, out);
    }
}
