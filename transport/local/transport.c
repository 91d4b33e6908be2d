/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport's table and options; making and releasing nodes. Real time: nothing is modelled, and a verb costs what
 * its copy costs.
 */
#include <stdlib.h>

#include "common/aligned.h"
#include "transport/local/local.h"

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static int node_init(struct local *local, unsigned number, struct dm_err *err) {
    const struct dm_topology *topology = &local->rt.fabric->topology;
    struct local_node *node = &local->nodes[number];
    node->dram.salt = dm_mix64(2 * number + 1);
    node->chip.salt = dm_mix64(2 * number + 2);
    if (number < dm_first_cn(topology) && dm_mapping_open(&node->dram.bytes, topology->mn_bytes) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY,
                       "local: cannot reserve %llu bytes for node %u: fewer keys or a smaller mn_memory",
                       (unsigned long long)topology->mn_bytes, number);
    }
    return number < topology->mns && topology->chip_bytes > 0 ? dm_mapping_open(&node->chip.bytes, topology->chip_bytes)
                                                              : 0;
}

static const struct rt_hooks hooks = {.look = local_serve, .has_work = local_can_serve};

static void watch_queue(struct rt_thread *thread) {
    thread->watched = &local_node_of(thread)->queued;
}

static int local_open(struct dm_fabric *fabric, struct dm_err *err) {
    const struct local_options *own = fabric->options;
    struct local *local = calloc(1, sizeof(*local));
    struct local_node *nodes = calloc(fabric->node_count, sizeof(*nodes));
    if (!local || !nodes) {
        free(local);
        free(nodes);
        return DM_ERR_NO_MEMORY;
    }
    fabric->impl = local;
    local->rt = (struct rt){
        .fabric = fabric, .hooks = &hooks, .name = "local", .yield_every = own->yield_every, .pin = own->pin};
    local->options = own;
    local->nodes = nodes;
    /* The option states how much there is, as a device does elsewhere; a topology may use less. */
    if (fabric->topology.chip_bytes > own->chip_bytes) {
        fabric->topology.chip_bytes = (uint32_t)own->chip_bytes;
    }
    for (unsigned node = 0; node < fabric->node_count; node++) {
        pthread_mutex_init(&nodes[node].lock, NULL);
    }
    int rc = rt_open(&local->rt);
    rt_each_thread(&local->rt, watch_queue);
    DM_TRY(rc);
    local->stripes = dm_aligned_new(LOCAL_STRIPES, sizeof(*local->stripes));
    if (!local->stripes) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned node = 0; node < fabric->node_count; node++) {
        DM_TRY(node_init(local, node, err));
    }
    return 0;
}

static void local_close(struct dm_fabric *fabric) {
    struct local *local = local_of(fabric);
    rt_join(&local->rt); /* all have ended before any lock is destroyed: a waker may still hold one */
    for (unsigned node = 0; node < fabric->node_count; node++) {
        dm_mapping_close(&local->nodes[node].dram.bytes);
        dm_mapping_close(&local->nodes[node].chip.bytes);
        pthread_mutex_destroy(&local->nodes[node].lock);
    }
    rt_close(&local->rt);
    free(local->nodes);
    free(local->stripes);
    free(local);
    fabric->impl = NULL;
}

static void local_expect_bulk(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes) {
    dm_mapping_expect_bulk(&local_of(fabric)->nodes[node].dram.bytes, offset, bytes);
}

static int local_commit(struct dm_ctx *base, bool wait) {
    bool missed = local_memory_execute(local_of(base->fabric), base);
    if (wait) {
        /* A swap that missed may wait for the holder of a lock. */
        rt_yield((struct rt_ctx *)base, missed);
    }
    return 0;
}

#define ROW(member, ...) DM_OPT_ROW(struct local_options, member, __VA_ARGS__)

static const struct dm_opt options[] = {
    ROW(chip_bytes, DM_OPT_BYTES, .initial = "256KiB", .max = 1 << 24,
        .help = "memory of a node that replaces the on-chip memory of a NIC, at most; 0: none"),
    ROW(pin, DM_OPT_BOOL, .initial = "off",
        .help = "bind each thread to one of the processors that the program may use, in turn"),
    ROW(yield_every, DM_OPT_COUNT, .initial = "64", .min = 1, .max = 1e9, .unit = "waits",
        .help = "a thread lets the operating system run others after so many waits for verbs"),
    DM_OPT_END,
};

const struct dm_transport_ops dm_transport_local = {
    .info = {.name = "local",
             .summary = "threads and shared memory, in real time, at memory speed",
             .caps = DM_CAP_MASKED_ATOMICS | DM_CAP_CHIP_MEMORY,
             .options = options},
    .options_bytes = sizeof(struct local_options),
    .ctx_bytes = sizeof(struct rt_ctx),
    .thread_bytes = sizeof(struct rt_thread),
    .open = local_open,
    .close = local_close,
    .measure = rt_measure,
    .run = rt_run,
    .start = rt_start,
    .commit = local_commit,
    .call = local_call,
    .park = rt_park,
    .wake = rt_wake,
    .sleep = rt_sleep,
    .now = rt_now,
    .charge = rt_charge,
    .charge_access = rt_charge_access,
    .cpu_read = local_cpu_read,
    .cpu_write = local_cpu_write,
    .cpu_cas = local_cpu_cas,
    .expect_bulk = local_expect_bulk,
};
