/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache trace is read twice: first to collect its keys and to find which of them are loaded, then again during the
 * run. So memory grows with the number of keys, not of requests.
 */
#include "workloads/trace.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/log.h"
#include "common/text.h"
#include "workloads/key_table.h"
#include "workloads/keyset.h"
#include "workloads/line_reader.h"
#include "workloads/sort.h"
#include "workloads/spec.h"

const char *const wl_trace_op_names[WL_TRACE_OP_COUNT] = {
#define X(name, text) text,
    WL_TRACE_OPS(X)
#undef X
};

/* The state of a key, as bits. */
enum key_state {
    KEY_KNOWN = 1,
    KEY_PRESENT = 2, /* in the index at the current position in the trace */
    KEY_LOADED = 4,  /* in the index before the trace begins */
    KEY_AGAIN = 8,   /* requested more than once */
};

struct request {
    uint64_t key, time_s, key_bytes, value_bytes;
    enum wl_trace_op op;
};

struct wl_trace {
    struct wl_line_reader *reader;
    char *path;
    bool lenient;
    struct wl_key_table keys;
    struct wl_trace_summary summary;
    uint64_t replayed;
    pthread_mutex_t lock; /* protects the reader and the states of the keys during the run */
};

/* A whole decimal number; false for anything else. */
static bool number_parse(const char *text, size_t bytes, uint64_t *number) {
    const size_t digits_max = 19;
    *number = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!isdigit((unsigned char)text[i])) {
            return false;
        }
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    }
    return bytes > 0 && bytes <= digits_max;
}

/* The key may contain commas, so the first field is split off from the left and the last five from the right. */
enum { FIELDS_RIGHT = 5 };
struct fields {
    const char *time, *key, *right[FIELDS_RIGHT];
    size_t time_bytes, key_bytes, right_bytes[FIELDS_RIGHT];
};

static const char *fields_split(const char *line, size_t bytes, struct fields *fields) {
    const char *comma = memchr(line, ',', bytes);
    if (comma == NULL) {
        return "has no commas";
    }
    fields->time = line;
    fields->time_bytes = (size_t)(comma - line);
    const char *end = line + bytes;
    for (int i = FIELDS_RIGHT - 1; i >= 0; i--) {
        const char *before = memrchr(comma + 1, ',', (size_t)(end - comma - 1));
        if (before == NULL) {
            return "has fewer than 7 fields";
        }
        fields->right[i] = before + 1;
        fields->right_bytes[i] = (size_t)(end - before - 1);
        end = before;
    }
    fields->key = comma + 1;
    fields->key_bytes = (size_t)(end - comma - 1);
    return NULL;
}

static bool op_parse(const char *text, size_t bytes, enum wl_trace_op *op) {
    for (unsigned i = 0; i < WL_TRACE_OP_COUNT; i++) {
        if (strlen(wl_trace_op_names[i]) == bytes && memcmp(text, wl_trace_op_names[i], bytes) == 0) {
            *op = (enum wl_trace_op)i;
            return true;
        }
    }
    return false;
}

static uint64_t key_hash(const char *key, size_t bytes) {
    uint64_t hash = XXH3_64bits(key, bytes);
    return hash <= WL_KEY_MAX ? hash : WL_KEY_MAX;
}

/* What is wrong with the line, or NULL. */
static const char *request_parse(const char *line, size_t bytes, struct request *request) {
    enum { KEY_SIZE, VALUE_SIZE, CLIENT, OP, TTL };
    struct fields fields;
    uint64_t ignored;
    const char *wrong = fields_split(line, bytes, &fields);
    if (wrong != NULL) {
        return wrong;
    }
    if (!number_parse(fields.time, fields.time_bytes, &request->time_s)) {
        return "has a timestamp that is not a number";
    }
    if (fields.key_bytes == 0) {
        return "has no key";
    }
    if (!number_parse(fields.right[KEY_SIZE], fields.right_bytes[KEY_SIZE], &request->key_bytes) ||
        !number_parse(fields.right[VALUE_SIZE], fields.right_bytes[VALUE_SIZE], &request->value_bytes)) {
        return "has a size that is not a number";
    }
    if (!number_parse(fields.right[CLIENT], fields.right_bytes[CLIENT], &ignored) ||
        !number_parse(fields.right[TTL], fields.right_bytes[TTL], &ignored)) {
        return "has a client or a TTL that is not a number";
    }
    if (!op_parse(fields.right[OP], fields.right_bytes[OP], &request->op)) {
        return "has an unknown operation";
    }
    request->key = key_hash(fields.key, fields.key_bytes);
    return NULL;
}

static int line_malformed(struct wl_trace *trace, char *line, const char *wrong, struct dm_err *err) {
    uint64_t number = wl_line_reader_line(trace->reader);
    struct wl_trace_summary *summary = &trace->summary;
    if (trace->lenient) {
        summary->malformed_first_line = summary->malformed++ == 0 ? number : summary->malformed_first_line;
        return 0;
    }
    dm_text_clean(line);
    return dm_fail(err, DM_ERR_CORRUPT,
                   "%s:%" PRIu64 ": the line %s: '%.100s' (time,key,key size,value size,client,operation,TTL; "
                   "lenient skips it)",
                   trace->path, number, wrong, line);
}

/* Returns the next well-formed request: 0, DM_NOT_FOUND, or a failure. Malformed lines are counted in the first pass.
 */
static int request_next(struct wl_trace *trace, bool first_pass, struct request *request, struct dm_err *err) {
    for (;;) {
        char *line = NULL;
        size_t bytes = 0;
        int rc = wl_line_reader_next(trace->reader, &line, &bytes, err);
        if (rc != 0) {
            return rc;
        }
        const char *wrong = request_parse(line, bytes, request);
        if (wrong == NULL) {
            return 0;
        }
        if (first_pass || !trace->lenient) {
            DM_TRY(line_malformed(trace, line, wrong, err));
        }
    }
}

/* Maps a request to an operation by the state of its key, and updates the state. */
static enum wl_op_kind request_kind(enum wl_trace_op op, uint8_t *state) {
    bool present = (*state & KEY_PRESENT) != 0;
    switch (op) {
    case WL_TRACE_GET:
    case WL_TRACE_GETS:
        return WL_GET;
    case WL_TRACE_DELETE:
        *state &= (uint8_t)~KEY_PRESENT;
        return WL_DELETE;
    default:
        *state |= KEY_PRESENT;
        return present ? WL_UPDATE : WL_INSERT;
    }
}

static int request_collect(struct wl_trace *trace, const struct request *request, struct dm_err *err) {
    struct wl_trace_summary *summary = &trace->summary;
    bool starts_absent = request->op == WL_TRACE_SET || request->op == WL_TRACE_ADD;
    uint64_t known = trace->keys.count;
    uint8_t *state =
        wl_key_table_put(&trace->keys, request->key, starts_absent ? KEY_KNOWN : KEY_KNOWN | KEY_PRESENT | KEY_LOADED);
    if (state == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory for more than %" PRIu64 " keys", trace->path, known);
    }
    if (trace->keys.count > known) {
        summary->keys_once++;
        summary->keys_loaded += starts_absent ? 0 : 1;
    } else if ((*state & KEY_AGAIN) == 0) {
        *state |= KEY_AGAIN;
        summary->keys_once--;
    }
    summary->by_kind[request_kind(request->op, state)]++;
    summary->by_trace_op[request->op]++;
    summary->key_bytes += request->key_bytes;
    summary->value_bytes += request->value_bytes;
    summary->values += request->value_bytes > 0 ? 1 : 0;
    summary->first_s = summary->requests == 0 ? request->time_s : summary->first_s;
    summary->last_s = request->time_s;
    summary->requests++;
    return 0;
}

static int first_pass(struct wl_trace *trace, uint64_t requests_max, struct dm_err *err) {
    struct request request;
    int rc = 0;
    while (requests_max == 0 || trace->summary.requests < requests_max) {
        rc = request_next(trace, true, &request, err);
        if (rc != 0) {
            break;
        }
        DM_TRY(request_collect(trace, &request, err));
    }
    DM_TRY(rc);
    trace->summary.keys = trace->keys.count;
    if (trace->summary.requests == 0) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: holds no requests", trace->path);
    }
    return 0;
}

/* Resets the states of the keys to those before the trace begins. */
static void states_reset(struct wl_key_table *keys) {
    for (uint64_t i = 0; i < keys->capacity; i++) {
        if (keys->states[i] != 0) {
            keys->states[i] = (keys->states[i] & KEY_LOADED) != 0 ? KEY_KNOWN | KEY_LOADED | KEY_PRESENT : KEY_KNOWN;
        }
    }
}

static int trace_prepare(struct wl_trace *trace, const char *path, uint64_t requests_max, struct dm_err *err) {
    trace->path = strdup(path);
    if (trace->path == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", path);
    }
    DM_TRY(wl_line_reader_open(path, &trace->reader, err));
    DM_TRY(first_pass(trace, requests_max, err));
    states_reset(&trace->keys);
    if (trace->summary.malformed > 0) {
        dm_log(DM_LOG_WARN, "%s: %" PRIu64 " malformed lines skipped, the first is line %" PRIu64, path,
               trace->summary.malformed, trace->summary.malformed_first_line);
    }
    return wl_line_reader_rewind(trace->reader, err);
}

int wl_trace_open(const char *path, bool lenient, uint64_t requests_max, struct wl_trace **trace, struct dm_err *err) {
    *trace = NULL;
    struct wl_trace *opened = calloc(1, sizeof *opened);
    if (opened == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", path);
    }
    pthread_mutex_init(&opened->lock, NULL);
    opened->lenient = lenient;
    int rc = trace_prepare(opened, path, requests_max, err);
    if (rc < 0) {
        wl_trace_close(opened);
        return rc;
    }
    *trace = opened;
    return 0;
}

void wl_trace_close(struct wl_trace *trace) {
    if (trace != NULL) {
        wl_line_reader_close(trace->reader);
        wl_key_table_fini(&trace->keys);
        pthread_mutex_destroy(&trace->lock);
        free(trace->path);
        free(trace);
    }
}

const struct wl_trace_summary *wl_trace_summary_of(const struct wl_trace *trace) {
    return &trace->summary;
}

int wl_trace_summarize(const char *path, bool lenient, uint64_t requests_max, struct wl_trace_summary *summary,
                       struct dm_err *err) {
    struct wl_trace *trace = NULL;
    DM_TRY(wl_trace_open(path, lenient, requests_max, &trace, err));
    assert(trace != NULL);
    *summary = trace->summary;
    wl_trace_close(trace);
    return 0;
}

uint64_t *wl_trace_keys(const struct wl_trace *trace, uint64_t *count) {
    *count = trace->summary.keys_loaded;
    uint64_t *keys = *count > 0 ? malloc(*count * sizeof keys[0]) : NULL;
    if (keys == NULL) {
        return NULL;
    }
    *count = 0;
    for (uint64_t i = 0; i < trace->keys.capacity; i++) {
        if ((trace->keys.states[i] & KEY_LOADED) != 0) {
            keys[(*count)++] = trace->keys.keys[i];
        }
    }
    wl_sort_u64(keys, *count);
    return keys;
}

/* Returns one request; the lock is held. The first pass has checked the file, so a request that does not match its keys
 * means that the file was changed since. */
static int request_replay(struct wl_trace *trace, struct wl_op *op) {
    struct request request;
    struct dm_err err = {0};
    if (trace->replayed == trace->summary.requests) {
        return DM_NOT_FOUND;
    }
    int rc = request_next(trace, false, &request, &err);
    uint8_t *state = rc == 0 ? wl_key_table_get(&trace->keys, request.key) : NULL;
    if (state == NULL) {
        dm_log(DM_LOG_ERROR, "%s: the file changed while it was read%s%s", trace->path, rc < 0 ? ": " : "", err.text);
        return rc < 0 ? rc : DM_ERR_CORRUPT;
    }
    trace->replayed++;
    *op = (struct wl_op){.kind = request_kind(request.op, state), .key = request.key};
    return 0;
}

int wl_trace_next(struct wl_trace *trace, struct wl_op *op) {
    pthread_mutex_lock(&trace->lock);
    int rc = request_replay(trace, op);
    pthread_mutex_unlock(&trace->lock);
    return rc;
}
