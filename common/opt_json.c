/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables to and from JSON, strict reading and atomic writing of JSON files. A JSON value is turned into the text
 * that a user would type for it, so that both sources accept and refuse the same values.
 */
#include "common/opt_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/input_file.h"
#include "common/output_file.h"

static const char *json_kind(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    case JSON_NULL:
        return "null";
    }
    return "of no known kind";
}

/* Parses an open file; NULL with a report on failure. */
static json_t *json_read(FILE *file, const char *path, struct dm_err *err) {
    struct stat status;
    if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode)) {
        (void)dm_fail(err, DM_ERR_IO, "%s: is a folder, not a JSON file", path);
        return NULL;
    }
    json_error_t at;
    json_t *value = json_loadf(file, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &at);
    if (ferror(file) != 0) {
        /* the parser takes a failed read for the end of the file */
        (void)dm_fail(err, DM_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
        json_decref(value);
        return NULL;
    }
    if (value == NULL) {
        int code = json_error_code(&at) == json_error_out_of_memory ? DM_ERR_NO_MEMORY : DM_ERR_INVALID;
        (void)dm_fail(err, code, "%s:%d:%d: %s", path, at.line, at.column, at.text);
        return NULL;
    }
    if (!json_is_object(value)) {
        (void)dm_fail(err, DM_ERR_INVALID, "%s:1:1: the top is %s, not an object ({...})", path, json_kind(value));
        json_decref(value);
        return NULL;
    }
    return value;
}

json_t *dm_json_load(const char *path, struct dm_err *err) {
    FILE *file = dm_input_open(path);
    if (file == NULL) {
        (void)dm_fail(err, DM_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
        return NULL;
    }
    json_t *value = json_read(file, path, err);
    (void)fclose(file);
    return value;
}

/* "a count", for messages */
static const char *option_kind(enum dm_opt_type type) {
    switch (type) {
    case DM_OPT_BOOL:
        return "true or false";
    case DM_OPT_COUNT:
        return "a count";
    case DM_OPT_BYTES:
        return "a number of bytes";
    case DM_OPT_DURATION:
        return "a duration";
    case DM_OPT_REAL:
        return "a number";
    case DM_OPT_ENUM:
        return "one of its choices, as a string";
    case DM_OPT_STRING:
        return "a string";
    }
    return "";
}

enum { NUMBER_TEXT_BYTES = 48 };

/* What a user would type for the value: its own string or text written into the buffer; NULL if it makes no sense for
 * the type. */
static const char *text_of(enum dm_opt_type type, const json_t *value, char buffer[NUMBER_TEXT_BYTES]) {
    const char *unit = type == DM_OPT_DURATION ? "ns" : "";
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_boolean(value)) {
        return type == DM_OPT_BOOL ? (json_is_true(value) ? "true" : "false") : NULL;
    }
    if (json_is_integer(value)) {
        (void)snprintf(buffer, NUMBER_TEXT_BYTES, "%" JSON_INTEGER_FORMAT "%s", json_integer_value(value), unit);
        return buffer;
    }
    bool is_quantity = type == DM_OPT_COUNT || type == DM_OPT_BYTES || type == DM_OPT_DURATION || type == DM_OPT_REAL;
    if (json_is_real(value) && is_quantity) {
        (void)snprintf(buffer, NUMBER_TEXT_BYTES, "%.17g%s", json_real_value(value), unit);
        return buffer;
    }
    return NULL;
}

/* Copies a message of dm_opt_set behind `where`; a member of a file carries no dashes. */
static int fail_at(struct dm_err *err, const char *where, const struct dm_err *cause) {
    const char *text = cause->text;
    text += strncmp(text, "--", 2) == 0 ? 2 : 0;
    return dm_fail(err, cause->code, "%s: %s", where, text);
}

static int set_member(const struct dm_opt *table, void *values, const char *name, const json_t *value,
                      const char *where, struct dm_err *err) {
    const struct dm_opt *row = dm_opt_find(table, name);
    char buffer[NUMBER_TEXT_BYTES];
    const char *text = row != NULL ? text_of(row->type, value, buffer) : "";
    if (text == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s: is %s, but must be %s", where, name, json_kind(value),
                       option_kind(row->type));
    }
    /* an unknown name fails there, with a suggestion */
    struct dm_err cause = {0};
    int rc = dm_opt_set(table, values, name, text, &cause);
    return rc < 0 ? fail_at(err, where, &cause) : DM_OK;
}

int dm_opt_from_json(const struct dm_opt *table, void *values, const json_t *object, const char *where,
                     struct dm_err *err) {
    if (!json_is_object(object)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: is %s, but must be an object ({...})", where,
                       object != NULL ? json_kind(object) : "missing");
    }
    /* jansson iterates over an object through a pointer that could change it; nothing here does */
    json_t *members = (json_t *)(uintptr_t)object;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(members, name, value) {
        DM_TRY(set_member(table, values, name, value, where, err));
    }
    return DM_OK;
}

static json_t *number_to_json(const struct dm_opt *row, uint64_t number, const void *values) {
    if (number <= INT64_MAX) {
        return json_integer((json_int_t)number);
    }
    /* beyond JSON's integers here; as text it still reads back exactly */
    char text[NUMBER_TEXT_BYTES];
    (void)dm_opt_format(row, values, text, sizeof(text));
    return json_string(text);
}

/* NULL for lack of memory or a string that is not UTF-8. */
static json_t *member_to_json(const struct dm_opt *row, const void *values) {
    const void *member = (const char *)values + row->offset;
    switch (row->type) {
    case DM_OPT_BOOL:
        return json_boolean(*(const bool *)member);
    case DM_OPT_COUNT:
    case DM_OPT_BYTES:
    case DM_OPT_DURATION:
        return number_to_json(row, *(const uint64_t *)member, values);
    case DM_OPT_REAL: {
        double real = *(const double *)member;
        return isfinite(real) ? json_real(real) : json_null();
    }
    case DM_OPT_ENUM:
        return json_string(row->choices[*(const unsigned *)member]);
    case DM_OPT_STRING: {
        const char *string = *(const char *const *)member;
        return json_string(string != NULL ? string : "");
    }
    }
    return NULL;
}

json_t *dm_opt_to_json(const struct dm_opt *table, const void *values) {
    json_t *object = json_object();
    if (object == NULL) {
        return NULL;
    }
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        if (json_object_set_new(object, row->name, member_to_json(row, values)) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

bool dm_opt_drop_added(const struct dm_opt *table, json_t *object) {
    size_t bytes = 0;
    for (const struct dm_opt *row = table; row->name != NULL; row++) {
        bytes = row->offset > bytes ? row->offset : bytes;
    }
    void *values = calloc(1, bytes + sizeof(uint64_t));
    if (values == NULL) {
        return false;
    }
    dm_opt_defaults(table, values);
    bool is_done = true;
    for (const struct dm_opt *row = table; is_done && row->name != NULL; row++) {
        json_t *plain = row->added ? member_to_json(row, values) : NULL;
        is_done = !row->added || plain != NULL;
        if (plain != NULL && json_equal(plain, json_object_get(object, row->name))) {
            json_object_del(object, row->name);
        }
        json_decref(plain);
    }
    dm_opt_free(table, values);
    free(values);
    return is_done;
}

int dm_json_store(const json_t *value, const char *path, struct dm_err *err) {
    char *text = json_dumps(value, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    if (text == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "%s: cannot write: the value is no JSON object or array", path);
    }
    FILE *file = dm_output_open(path, err);
    if (file != NULL) {
        fputs(text, file);
        fputc('\n', file);
    }
    free(text);
    return file != NULL ? dm_output_close(file, path, err) : DM_ERR_IO;
}
