/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories as JSON files. The writer writes one operation per line. The reader checks everything and names the line
 * that it refuses.
 *
 *   {"kind": "dmbench history", "schema_version": 1, "index": "sherman", "seed": 7,
 *    "initial": [[KEY, VALUE], ...],
 *    "operations": [
 *     {"client": 0, "op": "update", "key": 3, "value": 41, "invoke": 5, "response": 9, "outcome": "ok"},
 *     {"client": 1, "op": "scan", "key": 0, "count": 2, "pairs": [[1, 7], [3, 41]], ...}]}
 *
 * "may_starve" is present if a client stopped for good inside an operation, so that others may be unable to proceed.
 * "may_fail" has the failures among the outcomes that faults of the run explain: "stopped", "io", "peer", "no_memory".
 * An operation without a response has neither "response" nor "outcome". A value that no write wrote is 0. Numbers above
 * 2^63 - 1 are strings.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/history.h"
#include "common/compiler.h"
#include "common/input_file.h"
#include "common/opt_json.h"
#include "common/output_file.h"

enum { SCHEMA_VERSION = 1, SCAN_MAX = 1 << 20 };
static const char kind_text[] = "dmbench history";

static const struct {
    unsigned bit;
    int outcome;
} failures[] = {
    {CK_MAY_BE_STOPPED, DM_ERR_STOPPED},
    {CK_MAY_FAIL_IO, DM_ERR_IO},
    {CK_MAY_FAIL_PEER, DM_ERR_PEER},
    {CK_MAY_RUN_OUT, DM_ERR_NO_MEMORY},
};

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void number_print(FILE *out, uint64_t number) {
    fprintf(out, number > INT64_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, number);
}

static void member_print(FILE *out, const char *name, uint64_t number) {
    fprintf(out, ", \"%s\": ", name);
    number_print(out, number);
}

static void pairs_print(FILE *out, const struct ck_pair *pairs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fputs(i == 0 ? "[" : ", [", out);
        number_print(out, pairs[i].key);
        fputs(", ", out);
        number_print(out, pairs[i].value);
        fputc(']', out);
    }
}

static void op_print(FILE *out, const struct ck_op *op) {
    bool has_value =
        op->kind == WL_INSERT || op->kind == WL_UPDATE || (op->kind == WL_GET && op->finished && op->outcome == 0);
    fprintf(out, "  {\"client\": %u, \"op\": \"%s\"", op->client, wl_op_names[op->kind]);
    member_print(out, "key", op->key);
    if (has_value) {
        member_print(out, "value", op->value);
    }
    if (op->kind == WL_SCAN) {
        member_print(out, "count", op->wanted);
    }
    if (op->kind == WL_SCAN && op->finished && op->outcome == 0) {
        fputs(", \"pairs\": [", out);
        pairs_print(out, op->pairs, op->found);
        fputc(']', out);
    }
    member_print(out, "invoke", op->invoke);
    member_print(out, "invoke_ns", op->invoke_ns);
    if (op->finished) {
        member_print(out, "response", op->response);
        member_print(out, "response_ns", op->response_ns);
        fprintf(out, ", \"outcome\": \"%s\"", dm_code_name(op->outcome));
    }
    fputc('}', out);
}

static bool has_outcome(const struct ck_history *history, int outcome) {
    for (size_t i = 0; i < history->op_count; i++) {
        if (history->ops[i].finished && history->ops[i].outcome == outcome) {
            return true;
        }
    }
    return false;
}

static void failures_print(FILE *out, const struct ck_history *history) {
    size_t count = 0;
    for (size_t i = 0; i < DM_ARRAY_LEN(failures); i++) {
        if (history->may_fail & failures[i].bit && has_outcome(history, failures[i].outcome)) {
            fprintf(out, "%s\"%s\"", count++ == 0 ? ", \"may_fail\": [" : ", ", dm_code_name(failures[i].outcome));
        }
    }
    fputs(count > 0 ? "]" : "", out);
}

static void history_print(FILE *out, const struct ck_history *history) {
    fprintf(out, "{\"kind\": \"%s\", \"schema_version\": %d, \"index\": \"%s\"", kind_text, SCHEMA_VERSION,
            history->index);
    member_print(out, "seed", history->seed);
    if (history->may_starve) {
        fputs(", \"may_starve\": true", out);
    }
    failures_print(out, history);
    fputs(",\n \"initial\": [", out);
    pairs_print(out, history->initial, history->initial_count);
    fputs("],\n \"operations\": [", out);
    for (size_t i = 0; i < history->op_count; i++) {
        fputs(i == 0 ? "\n" : ",\n", out);
        op_print(out, &history->ops[i]);
    }
    fputs("]}\n", out);
}

int ck_history_store(const struct ck_history *history, const char *path, struct dm_err *err) {
    FILE *out = dm_output_open(path, err);
    if (!out) {
        return DM_ERR_IO;
    }
    history_print(out, history);
    return dm_output_close(out, path, err);
}

/* ---- lines of elements in the file ------------------------------------------------------------------------------ */

struct reader {
    const char *path;
    json_t *top;
    struct ck_history *history;
    size_t *positions; /* of each operation in the file, counted from 0 */
    size_t pool_used;
    struct dm_err *err;
};

/* The line of element `index` of the array `member` of the top object, in a file that is valid JSON. 0 if the file
 * cannot be read again. */
static unsigned element_line(const char *path, const char *member, size_t index) {
    FILE *file = dm_input_open(path);
    if (!file) {
        return 0;
    }
    char word[32] = "";
    size_t length = 0, element = 0;
    unsigned line = 1, depth = 0;
    bool in_word = false, in_member = false, is_found = false;
    for (int c = fgetc(file); c != EOF && !is_found; c = fgetc(file)) {
        line += c == '\n';
        if (in_word) {
            in_word = c != '"';
            if (c == '\\') {
                (void)fgetc(file);
            }
            if (depth == 1 && length + 1 < sizeof(word)) {
                word[length] = in_word ? (char)c : '\0';
                length += in_word;
            }
        } else if (c == '"') {
            in_word = true;
            length = 0;
        } else if (c == '{' || c == '[') {
            in_member = in_member || (depth == 1 && c == '[' && strcmp(word, member) == 0);
            is_found = in_member && depth == 2 && element == index;
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
            in_member = in_member && depth > 1;
        } else if (c == ',' && in_member && depth == 2) {
            element++;
        }
    }
    (void)fclose(file);
    return is_found ? line : 0;
}

static int refuse(const struct reader *reader, const char *member, size_t index, const char *what) {
    return dm_fail(reader->err, DM_ERR_INVALID, "%s:%u: %s %zu: %s", reader->path,
                   element_line(reader->path, member, index), strcmp(member, "initial") == 0 ? "pair" : "operation",
                   index, what);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool number_read(const json_t *value, uint64_t max, uint64_t *number) {
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *number = (uint64_t)json_integer_value(value);
        return *number <= max;
    }
    const char *text = json_string_value(value);
    if (!text || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *number <= max;
}

static bool pair_read(const json_t *value, struct ck_pair *pair) {
    return json_is_array(value) && json_array_size(value) == 2 &&
           number_read(json_array_get(value, 0), UINT64_MAX - 1, &pair->key) &&
           number_read(json_array_get(value, 1), UINT64_MAX, &pair->value);
}

static bool kind_read(const char *text, enum wl_op_kind *kind) {
    for (int i = 0; text && i < WL_OP_KIND_COUNT; i++) {
        if (i != WL_RMW && strcmp(text, wl_op_names[i]) == 0) {
            *kind = (enum wl_op_kind)i;
            return true;
        }
    }
    return false;
}

static bool outcome_read(const char *text, int *outcome) {
    static const int codes[] = {
#define X(name, value, text) value,
        DM_CODES(X)
#undef X
    };
    for (size_t i = 0; text && i < DM_ARRAY_LEN(codes); i++) {
        if (strcmp(text, dm_code_name(codes[i])) == 0) {
            *outcome = codes[i];
            return true;
        }
    }
    return false;
}

static bool member_known(const char *name, const char *const *known) {
    while (*known && strcmp(*known, name) != 0) {
        known++;
    }
    return *known != NULL;
}

static int scan_read(struct reader *reader, const json_t *object, size_t index, struct ck_op *op) {
    const json_t *pairs = json_object_get(object, "pairs");
    uint64_t wanted;
    if (!number_read(json_object_get(object, "count"), SCAN_MAX, &wanted)) {
        return refuse(reader, "operations", index, "a scan needs a \"count\" of pairs");
    }
    op->wanted = (uint32_t)wanted;
    if (!op->finished || op->outcome != 0) {
        return pairs ? refuse(reader, "operations", index, "\"pairs\" without the outcome \"ok\"") : 0;
    }
    if (!json_is_array(pairs)) {
        return refuse(reader, "operations", index, "a scan with the outcome \"ok\" needs an array of \"pairs\"");
    }
    op->found = (uint32_t)json_array_size(pairs);
    op->pairs = reader->history->pool + reader->pool_used;
    reader->pool_used += op->found;
    for (uint32_t i = 0; i < op->found; i++) {
        if (!pair_read(json_array_get(pairs, i), &op->pairs[i])) {
            return refuse(reader, "operations", index, "\"pairs\" must be arrays of key and value, both numbers");
        }
    }
    return 0;
}

static int response_read(struct reader *reader, const json_t *object, size_t index, struct ck_op *op) {
    const json_t *response = json_object_get(object, "response");
    const json_t *outcome = json_object_get(object, "outcome");
    op->finished = response != NULL;
    if (!response != !outcome) {
        return refuse(reader, "operations", index, "\"response\" and \"outcome\" must both be present or both absent");
    }
    if (!response) {
        return 0;
    }
    if (!number_read(response, UINT64_MAX - 1, &op->response)) {
        return refuse(reader, "operations", index, "\"response\" must be a number from 0 up");
    }
    if (!outcome_read(json_string_value(outcome), &op->outcome)) {
        return refuse(reader, "operations", index, "\"outcome\" must be the name of an outcome (ok, not_found, ...)");
    }
    if (op->response < op->invoke) {
        return refuse(reader, "operations", index, "its response is before its invocation");
    }
    const json_t *ns = json_object_get(object, "response_ns");
    return !ns || number_read(ns, UINT64_MAX, &op->response_ns)
               ? 0
               : refuse(reader, "operations", index, "\"response_ns\" must be a number from 0 up");
}

static int value_read(struct reader *reader, const json_t *object, size_t index, struct ck_op *op) {
    const json_t *value = json_object_get(object, "value");
    bool is_put = op->kind == WL_INSERT || op->kind == WL_UPDATE;
    bool is_wanted = is_put || (op->kind == WL_GET && op->finished && op->outcome == 0);
    if (is_wanted != (value != NULL)) {
        return refuse(reader, "operations", index, is_wanted ? "needs a \"value\"" : "must not have a \"value\"");
    }
    if (value && (!number_read(value, UINT64_MAX, &op->value) || (is_put && op->value == CK_VALUE_STRANGE))) {
        return refuse(reader, "operations", index,
                      "\"value\" must be a number from 1 up (0 only where a value is read that no write wrote)");
    }
    return 0;
}

static int op_read(struct reader *reader, const json_t *object, size_t index, struct ck_op *op) {
    static const char *const members[] = {"client", "op",       "key",       "value",       "count",   "pairs",
                                          "invoke", "response", "invoke_ns", "response_ns", "outcome", NULL};
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        return refuse(reader, "operations", index, "is not an object");
    }
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        if (!member_known(name, members)) {
            char what[80];
            snprintf(what, sizeof(what), "unknown member \"%.40s\"", name);
            return refuse(reader, "operations", index, what);
        }
    }
    uint64_t client;
    const json_t *ns = json_object_get(object, "invoke_ns");
    if (!number_read(json_object_get(object, "client"), UINT32_MAX, &client)) {
        return refuse(reader, "operations", index, "\"client\" must be a number");
    }
    if (!kind_read(json_string_value(json_object_get(object, "op")), &op->kind)) {
        return refuse(reader, "operations", index, "\"op\" must be get, update, insert, scan or delete");
    }
    if (!number_read(json_object_get(object, "key"), UINT64_MAX - 1, &op->key)) {
        return refuse(reader, "operations", index, "\"key\" must be a number from 0 to 2^64 - 2");
    }
    if (!number_read(json_object_get(object, "invoke"), UINT64_MAX - 1, &op->invoke) ||
        (ns && !number_read(ns, UINT64_MAX, &op->invoke_ns))) {
        return refuse(reader, "operations", index, "\"invoke\" and \"invoke_ns\" must be numbers from 0 up");
    }
    op->client = (unsigned)client;
    DM_TRY(response_read(reader, object, index, op));
    DM_TRY(value_read(reader, object, index, op));
    bool has_scan = json_object_get(object, "pairs") || json_object_get(object, "count");
    if (op->kind == WL_SCAN) {
        return scan_read(reader, object, index, op);
    }
    return has_scan ? refuse(reader, "operations", index, "only scans have \"count\" and \"pairs\"") : 0;
}

static size_t pairs_in(const json_t *operations) {
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(operations); i++) {
        count += json_array_size(json_object_get(json_array_get(operations, i), "pairs"));
    }
    return count;
}

static int failures_read(struct reader *reader) {
    const json_t *may_fail = json_object_get(reader->top, "may_fail");
    bool is_right = !may_fail || json_is_array(may_fail);
    for (size_t i = 0; is_right && i < json_array_size(may_fail); i++) {
        int outcome = 0;
        is_right = outcome_read(json_string_value(json_array_get(may_fail, i)), &outcome);
        unsigned bit = 0;
        for (size_t k = 0; k < DM_ARRAY_LEN(failures); k++) {
            bit |= failures[k].outcome == outcome ? failures[k].bit : 0;
        }
        is_right = is_right && bit != 0;
        reader->history->may_fail |= bit;
    }
    return is_right ? 0
                    : dm_fail(reader->err, DM_ERR_INVALID,
                              "%s: \"may_fail\" must be an array of stopped, io, peer and no_memory", reader->path);
}

static int head_read(struct reader *reader) {
    static const char *const members[] = {"kind",     "schema_version", "index",      "seed", "may_starve",
                                          "may_fail", "initial",        "operations", NULL};
    const char *name;
    json_t *value;
    json_object_foreach(reader->top, name, value) {
        if (!member_known(name, members)) {
            return dm_fail(reader->err, DM_ERR_INVALID, "%s: unknown member \"%.40s\"", reader->path, name);
        }
    }
    const char *kind = json_string_value(json_object_get(reader->top, "kind"));
    if (!kind || strcmp(kind, kind_text) != 0) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: not a history: \"kind\" is not \"%s\"", reader->path,
                       kind_text);
    }
    if (json_integer_value(json_object_get(reader->top, "schema_version")) != SCHEMA_VERSION) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: \"schema_version\" is not %d", reader->path, SCHEMA_VERSION);
    }
    const char *index = json_string_value(json_object_get(reader->top, "index"));
    if (!index || !number_read(json_object_get(reader->top, "seed"), UINT64_MAX, &reader->history->seed)) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: \"index\" must be a string and \"seed\" a number",
                       reader->path);
    }
    const json_t *may_starve = json_object_get(reader->top, "may_starve");
    if (may_starve && !json_is_boolean(may_starve)) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: \"may_starve\" must be true or false", reader->path);
    }
    reader->history->may_starve = json_is_true(may_starve);
    DM_TRY(failures_read(reader));
    snprintf(reader->history->index, sizeof(reader->history->index), "%s", index);
    if (!json_is_array(json_object_get(reader->top, "initial")) ||
        !json_is_array(json_object_get(reader->top, "operations"))) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: \"initial\" and \"operations\" must be arrays", reader->path);
    }
    return 0;
}

static int body_read(struct reader *reader) {
    struct ck_history *history = reader->history;
    const json_t *initial = json_object_get(reader->top, "initial");
    const json_t *operations = json_object_get(reader->top, "operations");
    history->initial = calloc(json_array_size(initial) + 1, sizeof(*history->initial));
    history->ops = calloc(json_array_size(operations) + 1, sizeof(*history->ops));
    history->pool = calloc(pairs_in(operations) + 1, sizeof(*history->pool));
    reader->positions = calloc(json_array_size(operations) + 1, sizeof(*reader->positions));
    if (!history->initial || !history->ops || !history->pool || !reader->positions) {
        return dm_fail(reader->err, DM_ERR_NO_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < json_array_size(initial); i++) {
        struct ck_pair *pair = &history->initial[i];
        if (!pair_read(json_array_get(initial, i), pair) || pair->value == CK_VALUE_STRANGE ||
            (i > 0 && pair->key <= pair[-1].key)) {
            return refuse(reader, "initial", i, "must be [key, value], with ascending keys and values from 1 up");
        }
        history->initial_count++;
    }
    for (size_t i = 0; i < json_array_size(operations); i++) {
        DM_TRY(op_read(reader, json_array_get(operations, i), i, &history->ops[i]));
        history->op_count++;
    }
    return 0;
}

/* ---- checks across operations ---------------------------------------------------------------------------------- */

static int client_compare(const void *a, const void *b, void *ops) {
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const struct ck_op *x = (const struct ck_op *)ops + i, *y = (const struct ck_op *)ops + k;
    if (x->client != y->client) {
        return x->client < y->client ? -1 : 1;
    }
    if (x->invoke != y->invoke) {
        return x->invoke < y->invoke ? -1 : 1;
    }
    return i < k ? -1 : i > k;
}

/* Groups operations by client, and checks that the operations of a client do not overlap. */
static int clients_sort(struct reader *reader) {
    struct ck_history *history = reader->history;
    struct ck_op *sorted = calloc(history->op_count + 1, sizeof(*sorted));
    if (!sorted) {
        return dm_fail(reader->err, DM_ERR_NO_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < history->op_count; i++) {
        reader->positions[i] = i;
    }
    qsort_r(reader->positions, history->op_count, sizeof(*reader->positions), client_compare, history->ops);
    for (size_t i = 0; i < history->op_count; i++) {
        sorted[i] = history->ops[reader->positions[i]];
    }
    free(history->ops);
    history->ops = sorted;
    for (size_t i = 1; i < history->op_count; i++) {
        const struct ck_op *op = &history->ops[i], *before = op - 1;
        if (op->client == before->client && (!before->finished || op->invoke < before->response)) {
            return refuse(reader, "operations", reader->positions[i],
                          "begins before the previous operation of the same client has ended");
        }
    }
    return 0;
}

struct written {
    uint64_t value;
    size_t position; /* of the operation that writes it, counted from 1; 0 for an initial pair */
};

static int written_compare(const void *a, const void *b) {
    const struct written *x = a, *y = b;
    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    return x->position < y->position ? -1 : x->position > y->position;
}

static int values_unique(struct reader *reader) {
    const struct ck_history *history = reader->history;
    struct written *written = calloc(history->initial_count + history->op_count + 1, sizeof(*written));
    if (!written) {
        return dm_fail(reader->err, DM_ERR_NO_MEMORY, "out of memory");
    }
    size_t n = 0;
    for (size_t i = 0; i < history->initial_count; i++) {
        written[n++] = (struct written){history->initial[i].value, 0};
    }
    for (size_t i = 0; i < history->op_count; i++) {
        if (history->ops[i].kind == WL_INSERT || history->ops[i].kind == WL_UPDATE) {
            written[n++] = (struct written){history->ops[i].value, reader->positions[i] + 1};
        }
    }
    qsort(written, n, sizeof(*written), written_compare);
    int rc = 0;
    for (size_t i = 1; i < n && rc == 0; i++) {
        if (written[i].value == written[i - 1].value) {
            size_t position = written[i].position;
            rc = refuse(reader, position > 0 ? "operations" : "initial", position > 0 ? position - 1 : 0,
                        "writes the same value as another write");
        }
    }
    free(written);
    return rc;
}

int ck_history_load(const char *path, struct ck_history *history, struct dm_err *err) {
    *history = (struct ck_history){.seed = 0};
    struct dm_err own;
    struct reader reader = {.path = path, .history = history, .err = err ? err : &own};
    reader.top = dm_json_load(path, reader.err);
    if (!reader.top) {
        return reader.err->code;
    }
    int rc = head_read(&reader);
    rc = rc < 0 ? rc : body_read(&reader);
    rc = rc < 0 ? rc : clients_sort(&reader);
    rc = rc < 0 ? rc : values_unique(&reader);
    json_decref(reader.top);
    free(reader.positions);
    return rc;
}
