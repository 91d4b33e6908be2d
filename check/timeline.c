/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a key:
 *
 *        us | client 0          | client 2
 *     1.204 | update #66        |
 *     1.310 | :                 | get
 *     4.001 | -> ok             | :
 *     4.377 |                   | -> #3             <== cannot be explained
 *
 * If verbs were logged, those that these operations posted are printed between the lines:
 *
 *     1.204 | . write 64        | :                     write 64 at 0:001a40, lands 2.310 to 2.340, done 3.800
 */
#include "check/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LANES_MAX = 8, CELL = 18, EVENTS_MAX = 60, VERBS_MAX = 150 };

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

/* Whether the operation concerns the key. Of the clients that only read at the end, one get is enough. */
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

/* Collects the clients of the moments in the order in which they appear. If there are more than LANES_MAX, the others
 * share the last column. */
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

/* The result of the operation for the key. */
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
        snprintf(text, capacity, "-> key not in it");
    } else if (value == CK_VALUE_STRANGE) {
        snprintf(text, capacity, "-> unwritten bytes");
    } else {
        snprintf(text, capacity, "-> #%" PRIu64, value);
    }
}

static void lanes_print(unsigned own, const char *text, unsigned lane_count, const unsigned *open, FILE *out) {
    for (unsigned lane = 0; lane < lane_count; lane++) {
        fprintf(out, " | %-*.*s", CELL, CELL, lane == own ? text : open[lane] > 0 ? ":" : "");
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
    lanes_print(own, text, lane_count, open, out);
    bool is_culprit = moment->op == verdict->op && (moment->is_response || !op->finished);
    fprintf(out, "%s\n", is_culprit ? " <== cannot be explained" : "");
    open[own] += !moment->is_response;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

/* What a verb did, without its times: "cas 8 at 0:001a40: 0 -> 5". Returns text. */
static const char *verb_text(const struct dm_trace_event *event, char *text, size_t capacity) {
    const char *name = dm_trace_names[event->kind];
    int at = snprintf(text, capacity, "%s", name);
    if (event->kind == DM_VERB_CALL) {
        at += snprintf(text + at, capacity - (size_t)at, " method %u of node %u, %u bytes", event->method,
                       event->target, event->len);
    } else if (event->kind < DM_VERB_KIND_COUNT) {
        at += snprintf(text + at, capacity - (size_t)at, " %u at %u:%s%06" PRIx64, event->len, event->target,
                       dm_addr_space(event->addr) == DM_CHIP ? "chip:" : "", dm_addr_offset(event->addr));
    }
    bool is_addition = event->kind == DM_VERB_FAA || event->kind == DM_VERB_MASKED_FAA;
    if (event->has_found && is_addition) {
        at += snprintf(text + at, capacity - (size_t)at, ": %" PRIx64 " + %" PRIx64, event->found, event->op.swap);
    } else if (event->has_found && event->is_swapped) {
        at += snprintf(text + at, capacity - (size_t)at, ": %" PRIx64 " -> %" PRIx64, event->found, event->op.swap);
    } else if (event->has_found) {
        at += snprintf(text + at, capacity - (size_t)at, ": not swapped, found %" PRIx64, event->found);
    }
    if (event->outcome < 0 && at < (int)capacity) {
        snprintf(text + at, capacity - (size_t)at, ": %s", dm_code_text(event->outcome));
    }
    return text;
}

/* A verb to show; operation `op` posted it. */
struct shown {
    const struct dm_trace_event *event;
    size_t op;
    bool is_open, is_printed; /* the invocation of its operation was printed; the verb was printed */
};

struct shown_list {
    struct shown *items;
    size_t count, hidden;
};

static int shown_compare(const void *a, const void *b) {
    const struct shown *x = a, *y = b;
    if (x->event->posted_ns != y->event->posted_ns) {
        return x->event->posted_ns < y->event->posted_ns ? -1 : 1;
    }
    if (x->event->batch != y->event->batch) {
        return x->event->batch < y->event->batch ? -1 : 1;
    }
    return x->event->landed_ns < y->event->landed_ns ? -1 : x->event->landed_ns > y->event->landed_ns;
}

static bool is_posted_by(const struct ck_op *op, const struct ck_verb *verb) {
    return verb->client == op->client && verb->event.posted_ns >= op->invoke_ns &&
           (!op->finished || verb->event.posted_ns <= op->response_ns);
}

/* Collects the verbs of the operations of the moments; only the last VERBS_MAX will be shown. */
static void shown_collect(const struct ck_history *history, const struct ck_verb_log *verbs,
                          const struct moment *moments, size_t count, struct shown_list *list) {
    list->items = verbs ? calloc(verbs->count + 1, sizeof(*list->items)) : NULL;
    for (size_t i = 0; list->items && i < verbs->count; i++) {
        for (size_t m = 0; m < count; m++) {
            if (!moments[m].is_response && is_posted_by(&history->ops[moments[m].op], &verbs->items[i])) {
                list->items[list->count++] = (struct shown){.event = &verbs->items[i].event, .op = moments[m].op};
                break;
            }
        }
    }
    if (list->count > 0) {
        qsort(list->items, list->count, sizeof(*list->items), shown_compare);
    }
    list->hidden = list->count > VERBS_MAX ? list->count - VERBS_MAX : 0;
}

static void shown_print(const struct shown *shown, unsigned own, unsigned lane_count, const unsigned *open, FILE *out) {
    const struct dm_trace_event *event = shown->event;
    char cell[64], text[160];
    snprintf(cell, sizeof(cell), event->kind < DM_VERB_CALL ? ". %s %u" : ". %s", dm_trace_names[event->kind],
             event->len);
    fprintf(out, "%12.3f", (double)event->posted_ns / 1000);
    lanes_print(own, cell, lane_count, open, out);
    fprintf(out, "  %s", verb_text(event, text, sizeof(text)));
    if (event->landed_ns > 0) {
        const char *what = event->kind == DM_VERB_READ    ? "sampled"
                           : event->kind == DM_VERB_WRITE ? "lands"
                           : event->kind == DM_VERB_CALL  ? "answered"
                                                          : "acts";
        fprintf(out, ", %s %.3f", what, (double)event->effect_ns / 1000);
        if (event->landed_ns > event->effect_ns) {
            fprintf(out, " to %.3f", (double)event->landed_ns / 1000);
        }
    }
    fprintf(out, ", done %.3f\n", (double)event->done_ns / 1000);
}

/* Prints the verbs that precede the moment: those posted earlier by operations that have begun, and at a response all
 * verbs of its operation. */
static void shown_print_before(struct shown_list *list, const struct ck_history *history, const struct moment *moment,
                               const unsigned *lanes, unsigned lane_count, const unsigned *open, FILE *out) {
    for (size_t i = list->hidden; i < list->count; i++) {
        struct shown *shown = &list->items[i];
        bool is_due = shown->event->posted_ns < moment->ns || (moment->is_response && shown->op == moment->op);
        if (shown->is_open && !shown->is_printed && is_due) {
            shown->is_printed = true;
            shown_print(shown, lane_of(lanes, lane_count, history->ops[shown->op].client), lane_count, open, out);
        }
    }
    for (size_t i = 0; i < list->count; i++) {
        list->items[i].is_open = list->items[i].is_open || list->items[i].op == moment->op;
    }
}

/* ---- the timeline ----------------------------------------------------------------------------------------------- */

static void initial_print(const struct ck_history *history, uint64_t key, FILE *out) {
    for (size_t i = 0; i < history->initial_count; i++) {
        if (history->initial[i].key == key) {
            fprintf(out, "key %" PRIu64 ", loaded with #%" PRIu64 ":\n", key, history->initial[i].value);
            return;
        }
    }
    fprintf(out, "key %" PRIu64 ", not loaded:\n", key);
}

static void head_print(const struct ck_history *history, uint64_t key, const unsigned *lanes, unsigned lane_count,
                       FILE *out) {
    initial_print(history, key, out);
    fprintf(out, "%12s", "us");
    for (unsigned lane = 0; lane < lane_count; lane++) {
        char name[32];
        bool is_reader = history->first_reader > 0 && lanes[lane] >= history->first_reader;
        snprintf(name, sizeof(name), is_reader ? "final read, CN %u" : "client %u",
                 lanes[lane] - (is_reader ? history->first_reader : 0));
        fprintf(out, " | %-*s", CELL, name);
    }
    fputc('\n', out);
}

void ck_timeline_print(const struct ck_history *history, const struct ck_verdict *verdict,
                       const struct ck_verb_log *verbs, FILE *out) {
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
    struct shown_list list = {.count = 0};
    shown_collect(history, verbs, moments + begin, stop - begin, &list);
    head_print(history, verdict->key, lanes, lane_count, out);
    fputs(begin > 0 ? "  ... earlier events are not shown\n" : "", out);
    if (list.hidden > 0) {
        fprintf(out, "  ... the first %zu verbs are not shown; --trace FILE writes all\n", list.hidden);
    }
    for (size_t i = 0; i < begin; i++) {
        unsigned lane = lane_of(lanes, lane_count, history->ops[moments[i].op].client);
        bool is_shown = lane < lane_count && lanes[lane] == history->ops[moments[i].op].client;
        open[lane] += is_shown && !moments[i].is_response;
        open[lane] -= is_shown && moments[i].is_response;
    }
    for (size_t i = begin; i < stop; i++) {
        shown_print_before(&list, history, &moments[i], lanes, lane_count, open, out);
        row_print(history, verdict, &moments[i], lanes, lane_count, open, out);
    }
    if (stop < count) {
        fprintf(out, "  ... %zu later events are not shown\n", count - stop);
    }
    free(list.items);
    free(moments);
}
