/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a key:
 *
 *        us | client 0          | client 2
 *     1.204 | update #66        |
 *     1.310 | :                 | get
 *     4.001 | -> ok             | :
 *     4.377 |                   | -> #3             <== cannot be explained
 */
#include "check/report.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LANES_MAX = 8, CELL = 18, EVENTS_MAX = 60 };

struct moment {
    uint64_t tick, ns;
    size_t op;
    bool is_response;
};

static bool scan_covers(const struct ck_op *op, uint64_t key) {
    if (key < op->key || !op->finished || op->outcome != 0) {
        return false;
    }
    return op->found < op->wanted || (op->found > 0 && key <= op->pairs[op->found - 1].key);
}

/* Of those who only read in the end one get is enough. */
static bool is_of_interest(const struct ck_history *history, const struct ck_op *op, uint64_t key) {
    bool is_reader = history->first_reader > 0 && op->client >= history->first_reader;
    if (is_reader && (op->client > history->first_reader || op->kind == WL_SCAN)) {
        return false;
    }
    return op->kind == WL_SCAN ? scan_covers(op, key) : op->key == key;
}

static int moment_compare(const void *a, const void *b) {
    const struct moment *x = a, *y = b;
    if (x->tick != y->tick) {
        return x->tick < y->tick ? -1 : 1;
    }
    return (int)x->is_response - (int)y->is_response;
}

static size_t moments_collect(const struct ck_history *history, const struct ck_verdict *verdict,
                              struct moment *moments) {
    size_t n = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        const struct ck_op *op = &history->ops[i];
        if (!is_of_interest(history, op, verdict->key) && i != verdict->op) {
            continue;
        }
        moments[n++] = (struct moment){op->invoke, op->invoke_ns, i, false};
        if (op->finished) {
            moments[n++] = (struct moment){op->response, op->response_ns, i, true};
        }
    }
    qsort(moments, n, sizeof(*moments), moment_compare);
    return n;
}

/* Clients of the moments, in the order in which they appear; more than LANES_MAX share the last column. */
static unsigned lanes_find(const struct ck_history *history, const struct moment *moments, size_t count,
                           unsigned lanes[LANES_MAX]) {
    unsigned n = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned client = history->ops[moments[i].op].client, at = 0;
        while (at < n && lanes[at] != client) {
            at++;
        }
        if (at == n && n < LANES_MAX) {
            lanes[n++] = client;
        }
    }
    return n;
}

static unsigned lane_of(const unsigned *lanes, unsigned count, unsigned client) {
    for (unsigned i = 0; i < count; i++) {
        if (lanes[i] == client) {
            return i;
        }
    }
    return count - 1;
}

static void begin_text(const struct ck_op *op, char *text, size_t capacity) {
    if (op->kind == WL_INSERT || op->kind == WL_UPDATE) {
        snprintf(text, capacity, "%s #%" PRIu64, wl_op_names[op->kind], op->value);
    } else if (op->kind == WL_SCAN) {
        snprintf(text, capacity, "scan %u", op->wanted);
    } else {
        snprintf(text, capacity, "%s", wl_op_names[op->kind]);
    }
}

/* What the operation says of the key. */
static void end_text(const struct ck_op *op, uint64_t key, char *text, size_t capacity) {
    bool is_read = op->outcome == 0 && (op->kind == WL_GET || op->kind == WL_SCAN);
    if (!is_read) {
        snprintf(text, capacity, "-> %s", dm_code_text(op->outcome));
        return;
    }
    uint64_t value = op->value;
    bool is_there = op->kind == WL_GET;
    for (uint32_t i = 0; op->kind == WL_SCAN && i < op->found && i < op->wanted; i++) {
        if (op->pairs[i].key == key) {
            is_there = true;
            value = op->pairs[i].value;
        }
    }
    if (!is_there) {
        snprintf(text, capacity, "-> without it");
    } else if (value == CK_VALUE_STRANGE) {
        snprintf(text, capacity, "-> strange bytes");
    } else {
        snprintf(text, capacity, "-> #%" PRIu64, value);
    }
}

static void row_print(const struct ck_history *history, const struct ck_verdict *verdict, const struct moment *moment,
                      const unsigned *lanes, unsigned lane_count, unsigned *open, FILE *out) {
    const struct ck_op *op = &history->ops[moment->op];
    unsigned own = lane_of(lanes, lane_count, op->client);
    char text[64];
    if (moment->is_response) {
        end_text(op, verdict->key, text, sizeof(text));
        open[own]--;
    } else {
        begin_text(op, text, sizeof(text));
    }
    fprintf(out, "%12.3f", (double)moment->ns / 1000);
    for (unsigned lane = 0; lane < lane_count; lane++) {
        fprintf(out, " | %-*.*s", CELL, CELL, lane == own ? text : open[lane] > 0 ? ":" : "");
    }
    bool is_culprit = moment->op == verdict->op && (moment->is_response || !op->finished);
    fprintf(out, "%s\n", is_culprit ? " <== cannot be explained" : "");
    open[own] += !moment->is_response;
}

static void initial_print(const struct ck_history *history, uint64_t key, FILE *out) {
    for (size_t i = 0; i < history->initial_count; i++) {
        if (history->initial[i].key == key) {
            fprintf(out, "key %" PRIu64 ", loaded with #%" PRIu64 ":\n", key, history->initial[i].value);
            return;
        }
    }
    fprintf(out, "key %" PRIu64 ", not loaded:\n", key);
}

void ck_timeline_print(const struct ck_history *history, const struct ck_verdict *verdict, FILE *out) {
    struct moment *moments = verdict->has_key ? calloc(2 * history->op_count + 1, sizeof(*moments)) : NULL;
    if (!moments) {
        return;
    }
    size_t count = moments_collect(history, verdict, moments);
    size_t stop = count, begin = 0;
    for (size_t i = 0; i < count; i++) {
        stop = moments[i].op == verdict->op ? i + 1 : stop;
    }
    begin = stop > EVENTS_MAX ? stop - EVENTS_MAX : 0;
    stop = stop + EVENTS_MAX / 4 < count ? stop + EVENTS_MAX / 4 : count;
    unsigned lanes[LANES_MAX], open[LANES_MAX] = {0};
    unsigned lane_count = lanes_find(history, moments + begin, stop - begin, lanes);
    initial_print(history, verdict->key, out);
    fprintf(out, "%12s", "us");
    for (unsigned lane = 0; lane < lane_count; lane++) {
        char name[32];
        bool is_reader = history->first_reader > 0 && lanes[lane] >= history->first_reader;
        snprintf(name, sizeof(name), is_reader ? "in the end, CN %u" : "client %u",
                 lanes[lane] - (is_reader ? history->first_reader : 0));
        fprintf(out, " | %-*s", CELL, name);
    }
    fprintf(out, "\n%s", begin > 0 ? "  ... earlier events are left out\n" : "");
    for (size_t i = 0; i < begin; i++) {
        unsigned lane = lane_of(lanes, lane_count, history->ops[moments[i].op].client);
        bool is_shown = lane < lane_count && lanes[lane] == history->ops[moments[i].op].client;
        open[lane] += is_shown && !moments[i].is_response;
        open[lane] -= is_shown && moments[i].is_response;
    }
    for (size_t i = begin; i < stop; i++) {
        row_print(history, verdict, &moments[i], lanes, lane_count, open, out);
    }
    if (stop < count) {
        fprintf(out, "  ... %zu later events are left out\n", count - stop);
    }
    free(moments);
}
