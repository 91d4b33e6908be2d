/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing trace files. Slices of one track may be nested but not overlap, so slices that overlap (verbs at a memory
 * node, and unsignalled ones) are distributed over as many tracks as they need.
 */
#include "harness/run/verb_trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output_file.h"

/* Track numbers of a process: clients have their own number. */
enum { TRACK_LANES = 100000, TRACK_CONTEXTS = 200000, LANES_MAX = 512 };

/* Tracks of one node for slices that overlap: when each is free again. */
struct lanes {
    uint64_t free_ns[LANES_MAX];
    unsigned count;
};

struct writer {
    FILE *out;
    const struct hx_trace *trace;
    uint64_t end_ns;
    unsigned node_count;
    bool is_first;
};

static void event_begin(struct writer *writer, const char *phase, const char *name, unsigned node, unsigned track) {
    fprintf(writer->out, "%s{\"ph\": \"%s\", \"name\": \"%s\", \"pid\": %u, \"tid\": %u", writer->is_first ? "" : ",\n",
            phase, name, node, track);
    writer->is_first = false;
}

/* Microseconds, exact to the ns. */
static void time_print(struct writer *writer, const char *name, uint64_t ns) {
    fprintf(writer->out, ", \"%s\": %" PRIu64 ".%03u", name, ns / 1000, (unsigned)(ns % 1000));
}

static void slice_begin(struct writer *writer, const char *name, unsigned node, unsigned track, uint64_t begin_ns,
                        uint64_t end_ns) {
    event_begin(writer, "X", name, node, track);
    time_print(writer, "ts", begin_ns);
    time_print(writer, "dur", end_ns > begin_ns ? end_ns - begin_ns : 0);
    fputs(", \"args\": {", writer->out);
}

static void name_print(struct writer *writer, const char *what, unsigned node, unsigned track, const char *name,
                       unsigned number) {
    event_begin(writer, "M", what, node, track);
    fprintf(writer->out, ", \"args\": {\"name\": \"%s %u\"}}", name, number);
}

static void processes_print(struct writer *writer) {
    const struct dm_topology *topology = writer->trace->topology;
    unsigned first_server = dm_first_server(topology), first_cn = dm_first_cn(topology);
    for (unsigned node = 0; node < writer->node_count; node++) {
        bool is_mn = node < first_server, is_server = !is_mn && node < first_cn;
        name_print(writer, "process_name", node, 0,
                   is_mn       ? "memory node"
                   : is_server ? "index server"
                               : "compute node",
                   node - (is_mn       ? 0
                           : is_server ? first_server
                                       : first_cn));
    }
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static void ops_print(struct writer *writer) {
    unsigned clients = writer->trace->topology->clients;
    bool *is_named = calloc(clients + 1, sizeof(*is_named));
    for (size_t i = 0; i < writer->trace->op_count; i++) {
        const struct hx_trace_op *op = &writer->trace->ops[i];
        if (is_named && op->client < clients && !is_named[op->client]) {
            is_named[op->client] = true;
            name_print(writer, "thread_name", op->node, op->client, "client", op->client);
        }
        slice_begin(writer, op->name, op->node, op->client, op->begin_ns, op->is_ended ? op->end_ns : writer->end_ns);
        fprintf(writer->out, "\"key\": \"%" PRIu64 "\", \"outcome\": \"%s\"}}", op->key,
                op->is_ended ? dm_code_name(op->outcome) : "none");
    }
    free(is_named);
}

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

static void verb_args_print(struct writer *writer, const struct ck_verb *verb) {
    const struct dm_trace_event *event = &verb->event;
    FILE *out = writer->out;
    fprintf(out, "\"bytes\": %u, \"batch\": %" PRIu64 ", \"outcome\": \"%s\"", event->len, event->batch,
            event->outcome > 0 ? "ok" : dm_code_name(event->outcome));
    if (event->kind == DM_VERB_CALL) {
        fprintf(out, ", \"method\": %u", event->method);
    } else if (event->kind < DM_VERB_CALL) {
        fprintf(out, ", \"address\": \"%u:%s0x%" PRIx64 "\"", event->target,
                dm_addr_space(event->addr) == DM_CHIP ? "chip:" : "", dm_addr_offset(event->addr));
    }
    if (event->kind < DM_VERB_CALL && event->kind != DM_VERB_READ && event->kind != DM_VERB_WRITE) {
        fprintf(out, ", \"compare\": \"0x%" PRIx64 "\", \"swap\": \"0x%" PRIx64 "\"", event->op.compare,
                event->op.swap);
    }
    if (event->has_found) {
        fprintf(out, ", \"found\": \"0x%" PRIx64 "\", \"swapped\": %s", event->found,
                event->is_swapped ? "true" : "false");
    }
    if (verb->client != CK_NO_CLIENT) {
        fprintf(out, ", \"client\": %u", verb->client);
    }
    fputs("}}", out);
}

/* The first track that is free at begin_ns; it is occupied until end_ns. A new track gets a name. */
static unsigned lane_take(struct writer *writer, struct lanes *lanes, unsigned node, const char *name,
                          uint64_t begin_ns, uint64_t end_ns) {
    unsigned lane = 0;
    while (lane < lanes->count && lanes->free_ns[lane] > begin_ns) {
        lane++;
    }
    if (lane == lanes->count && lane < LANES_MAX) {
        lanes->count++;
        name_print(writer, "thread_name", node, TRACK_LANES + lane, name, lane);
    }
    lane = lane < LANES_MAX ? lane : LANES_MAX - 1;
    lanes->free_ns[lane] = end_ns;
    return TRACK_LANES + lane;
}

/* Outer slices before inner ones. */
static int posted_compare(const void *a, const void *b) {
    const struct dm_trace_event *x = &((const struct ck_verb *)a)->event, *y = &((const struct ck_verb *)b)->event;
    if (x->posted_ns != y->posted_ns) {
        return x->posted_ns < y->posted_ns ? -1 : 1;
    }
    return x->done_ns > y->done_ns ? -1 : x->done_ns < y->done_ns;
}

static int arrived_compare(const void *a, const void *b) {
    const struct dm_trace_event *x = &((const struct ck_verb *)a)->event, *y = &((const struct ck_verb *)b)->event;
    if (x->arrived_ns != y->arrived_ns) {
        return x->arrived_ns < y->arrived_ns ? -1 : 1;
    }
    return x->landed_ns > y->landed_ns ? -1 : x->landed_ns < y->landed_ns;
}

/* The slice on the side of the client that posted the verb. */
static void requests_print(struct writer *writer, struct lanes *lanes) {
    const struct hx_trace *trace = writer->trace;
    qsort(trace->verbs, trace->verb_count, sizeof(*trace->verbs), posted_compare);
    for (size_t i = 0; i < trace->verb_count; i++) {
        const struct ck_verb *verb = &trace->verbs[i];
        const struct dm_trace_event *event = &verb->event;
        unsigned track = verb->client;
        if (!event->is_waited) {
            track =
                lane_take(writer, &lanes[event->node], event->node, "unsignalled", event->posted_ns, event->done_ns);
        } else if (verb->client == CK_NO_CLIENT) {
            track = TRACK_CONTEXTS + event->ctx;
        }
        slice_begin(writer, dm_trace_names[event->kind], event->node, track, event->posted_ns, event->done_ns);
        verb_args_print(writer, verb);
    }
}

/* The slice on the target node, from arrival to effect. */
static void responses_print(struct writer *writer, struct lanes *lanes) {
    const struct hx_trace *trace = writer->trace;
    qsort(trace->verbs, trace->verb_count, sizeof(*trace->verbs), arrived_compare);
    for (size_t i = 0; i < trace->verb_count; i++) {
        const struct ck_verb *verb = &trace->verbs[i];
        const struct dm_trace_event *event = &verb->event;
        if (event->landed_ns > 0 && event->target < writer->node_count) {
            unsigned track = lane_take(writer, &lanes[event->target], event->target, "responder", event->arrived_ns,
                                       event->landed_ns);
            slice_begin(writer, dm_trace_names[event->kind], event->target, track, event->arrived_ns, event->landed_ns);
            verb_args_print(writer, verb);
        }
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int trace_print(const struct hx_trace *trace, FILE *out) {
    const struct dm_topology *topology = trace->topology;
    struct writer writer = {
        .out = out, .trace = trace, .node_count = topology->mns + topology->servers + topology->cns, .is_first = true};
    struct lanes *lanes = calloc(writer.node_count, sizeof(*lanes));
    if (!lanes) {
        return DM_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < trace->op_count; i++) {
        uint64_t last_ns = trace->ops[i].is_ended ? trace->ops[i].end_ns : trace->ops[i].begin_ns;
        writer.end_ns = last_ns > writer.end_ns ? last_ns : writer.end_ns;
    }
    for (size_t i = 0; i < trace->verb_count; i++) {
        uint64_t done_ns = trace->verbs[i].event.done_ns;
        writer.end_ns = done_ns > writer.end_ns ? done_ns : writer.end_ns;
    }
    fputs("[", out);
    processes_print(&writer);
    ops_print(&writer);
    if (trace->verb_count > 0) {
        requests_print(&writer, lanes);
        responses_print(&writer, lanes);
    }
    fputs("]\n", out);
    free(lanes);
    return 0;
}

int hx_trace_store(const struct hx_trace *trace, const char *path, struct dm_err *err) {
    FILE *out = dm_output_open(path, err);
    if (!out) {
        return DM_ERR_IO;
    }
    int rc = trace_print(trace, out);
    if (rc < 0) {
        dm_output_abandon(out, path);
        return dm_fail(err, rc, "out of memory");
    }
    return dm_output_close(out, path, err);
}

int hx_trace_store_run(const struct ck_result *result, const char *path, struct dm_err *err) {
    const struct ck_history *history = &result->history;
    struct hx_trace_op *ops = calloc(history->op_count + 1, sizeof(*ops));
    if (!ops) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    struct hx_trace trace = {
        .topology = &result->topology, .ops = ops, .verbs = result->verbs.items, .verb_count = result->verbs.count};
    for (size_t i = 0; i < history->op_count; i++) {
        const struct ck_op *op = &history->ops[i];
        if (history->first_reader > 0 && op->client >= history->first_reader) {
            continue; /* the time of the final read is its effect */
        }
        ops[trace.op_count++] = (struct hx_trace_op){
            .client = op->client,
            .node = dm_first_cn(&result->topology) + op->client % result->topology.cns,
            .name = wl_op_names[op->kind],
            .key = op->key,
            .begin_ns = op->invoke_ns,
            .end_ns = op->response_ns,
            .is_ended = op->finished,
            .outcome = op->outcome,
        };
    }
    int rc = hx_trace_store(&trace, path, err);
    free(ops);
    return rc;
}
