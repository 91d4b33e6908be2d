/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces the verbs of the first measured operations of a run. In virtual time a run measures the same with and without
 * a tracer.
 */
#ifndef DM_HARNESS_RUN_VERB_TRACER_H
#define DM_HARNESS_RUN_VERB_TRACER_H

#include "transport/fabric.h"
#include "workloads/workload.h"

struct hx_tracer;

enum { HX_TRACER_OPS_MAX = 1000000 };
#define HX_NOT_TRACED SIZE_MAX

/* For 1 to HX_TRACER_OPS_MAX operations of so many clients. NULL when out of memory. */
struct hx_tracer *hx_tracer_new(uint64_t ops, unsigned clients);
void hx_tracer_free(struct hx_tracer *tracer); /* accepts NULL; after the fabric */

/* Traces the fabric's verbs from now on. Called before its contexts run. */
void hx_tracer_watch(struct hx_tracer *tracer, struct dm_fabric *fabric);

/* Registers the context of a client. */
void hx_tracer_client(struct hx_tracer *tracer, struct dm_ctx *ctx, unsigned client);

/* A measured operation begins; returns its number for hx_tracer_end, or HX_NOT_TRACED. */
size_t hx_tracer_begin(struct hx_tracer *tracer, struct dm_ctx *ctx, unsigned client, const struct wl_op *op);
void hx_tracer_end(struct hx_tracer *tracer, struct dm_ctx *ctx, size_t number, int outcome);

/* Writes the trace file atomically, after the run. 0, DM_ERR_IO or DM_ERR_NO_MEMORY. */
int hx_tracer_store(struct hx_tracer *tracer, const struct dm_topology *topology, const char *path, struct dm_err *err);

#endif
