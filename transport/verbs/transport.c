/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport's table and options; opening and closing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "transport/verbs/verbs.h"

/* Every thread has two file descriptors, and the usual limit is low. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int check_device(const struct verbs *verbs, struct dm_err *err) {
    for (unsigned i = 0; i < verbs->port_count; i++) {
        const struct verbs_port *port = &verbs->ports[i];
        if (port->attr.max_qp_wr < VERBS_DEPTH_MIN) {
            return dm_fail(err, DM_ERR_UNSUPPORTED, "verbs: device %s has queues of %d work requests at most, not %d",
                           port->name, port->attr.max_qp_wr, VERBS_DEPTH_MIN);
        }
        if (port->attr.atomic_cap == IBV_ATOMIC_NONE) {
            return dm_fail(err, DM_ERR_UNSUPPORTED, "verbs: device %s has no atomics", port->name);
        }
    }
    return 0;
}

/* Threads of the nodes before this process's first one: processes that share a host begin at different processors. */
static unsigned threads_before(const struct verbs *verbs) {
    const struct dm_fabric *fabric = verbs->rt.fabric;
    unsigned count = 0;
    for (unsigned node = 0; node < fabric->node_count && !verbs->hosted[node]; node++) {
        count += fabric->nodes[node].thread_count;
    }
    return count;
}

static bool hosts_memory(const struct verbs *verbs) {
    bool hosts = false;
    for (unsigned node = 0; node < dm_first_cn(&verbs->rt.fabric->topology); node++) {
        hosts = hosts || verbs->hosted[node];
    }
    return hosts;
}

static int verbs_parts_open(struct verbs *verbs, struct dm_err *err) {
    struct dm_topology *topology = &verbs->rt.fabric->topology;
    raise_file_limit();
    if (topology->chip_bytes > verbs->options->chip_bytes) {
        topology->chip_bytes = (uint32_t)verbs->options->chip_bytes;
    }
    DM_TRY(verbs_control_plan(verbs, err));
    verbs->rt.cpu_next = threads_before(verbs);
    DM_TRY(verbs_ports_open(verbs, err));
    DM_TRY(check_device(verbs, err));
    if (hosts_memory(verbs)) {
        verbs_probe(verbs, verbs_port_of(verbs, 0));
    }
    for (unsigned i = 0; i < verbs->port_count; i++) {
        verbs_masked_try(verbs, &verbs->ports[i]);
    }
    DM_TRY(verbs_arena_open(verbs, err));
    DM_TRY(verbs_offers_open(verbs, err));
    DM_TRY(verbs_control_open(verbs, err));
    verbs_masked_choose(verbs);
    return 0;
}

static int verbs_open(struct dm_fabric *fabric, struct dm_err *err) {
    const struct verbs_options *own = fabric->options;
    struct verbs *verbs = calloc(1, sizeof(*verbs));
    if (!verbs) {
        return DM_ERR_NO_MEMORY;
    }
    fabric->impl = verbs;
    verbs->options = own;
    verbs->rt = (struct rt){
        .fabric = fabric, .hooks = &verbs_hooks, .name = "verbs", .yield_every = own->yield_every, .pin = own->pin};
    verbs->connect_kind = "within the process";
    pthread_mutex_init(&verbs->connect_lock, NULL);
    pthread_mutex_init(&verbs->handshake_lock, NULL);
    pthread_mutex_init(&verbs->failure_lock, NULL);
    pthread_mutex_init(&verbs->arena_lock, NULL);
    DM_TRY(rt_open(&verbs->rt));
    verbs->offers = calloc(fabric->node_count, sizeof(*verbs->offers));
    verbs->regions = calloc(fabric->node_count, sizeof(*verbs->regions));
    verbs->hosted = calloc(fabric->node_count, sizeof(*verbs->hosted));
    verbs->serve_next = calloc(fabric->node_count, sizeof(*verbs->serve_next));
    verbs->facts = calloc(fabric->node_count, sizeof(*verbs->facts));
    if (!verbs->facts || !verbs->offers || !verbs->regions || !verbs->hosted || !verbs->serve_next) {
        return DM_ERR_NO_MEMORY;
    }
    int rc = verbs_parts_open(verbs, err);
    if (rc < 0 && atomic_load(&verbs->has_failed)) {
        return dm_fail(err, verbs->failure_code, "verbs: %s", verbs->failure);
    }
    return rc;
}

static void close_thread(struct rt_thread *thread) {
    verbs_thread_close((struct verbs_thread *)thread);
}

static void free_tags(const struct dm_fabric *fabric) {
    for (struct dm_ctx *ctx = fabric->contexts; ctx; ctx = ctx->all_next) {
        free(((struct verbs_ctx *)ctx)->tags);
    }
}

static void verbs_close(struct dm_fabric *fabric) {
    struct verbs *verbs = verbs_of(fabric);
    verbs_control_close(verbs); /* no process connects from here on */
    rt_join(&verbs->rt);
    rt_each_thread(&verbs->rt, close_thread);
    free_tags(fabric);
    verbs_offers_close(verbs);
    verbs_arena_close(verbs);
    verbs_ports_close(verbs);
    rt_close(&verbs->rt);
    pthread_mutex_destroy(&verbs->connect_lock);
    pthread_mutex_destroy(&verbs->handshake_lock);
    pthread_mutex_destroy(&verbs->failure_lock);
    pthread_mutex_destroy(&verbs->arena_lock);
    free(verbs->offers);
    free(verbs->regions);
    free(verbs->hosted);
    free(verbs->serve_next);
    free(verbs->facts);
    verbs_control_free(verbs);
    free(verbs);
    fabric->impl = NULL;
}

static void forget_counts(struct rt_thread *rt_thread) {
    struct verbs_thread *thread = (struct verbs_thread *)rt_thread;
    thread->fences = thread->doorbells = 0;
}

static int verbs_measure(struct dm_fabric *fabric) {
    rt_each_thread(rt_of(fabric), forget_counts);
    return rt_measure(fabric);
}

static int verbs_run(struct dm_fabric *fabric, struct dm_err *err) {
    struct verbs *verbs = verbs_of(fabric);
    verbs_control_serve(verbs); /* all handlers have been registered */
    int rc = rt_run(fabric, err);
    if (atomic_load(&verbs->has_failed)) {
        rc = verbs->failure_code;
        return dm_fail(err, rc, "verbs: %s", verbs->failure);
    }
    return rc;
}

/* In the order of enum verbs_order. */
static const char *const orders[] = {"either", "fence", "wait", "alone", NULL};

static void *verbs_local_alloc(struct dm_fabric *fabric, size_t bytes) {
    return verbs_arena_alloc(verbs_of(fabric), bytes);
}

/* In the order of enum verbs_connect. */
static const char *const connect_methods[] = {"either", "cm", "tcp", NULL};

/* In the order of enum verbs_masked_option. */
static const char *const masked_choices[] = {"auto", "emulated", NULL};

#if DM_HAVE_MLX5
#define MASKED_BUILD ""
#else
#define MASKED_BUILD ". This program was built without libmlx5: they are always emulated"
#endif

#define ROW(member, ...)          DM_OPT_ROW(struct verbs_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct verbs_options, member, __VA_ARGS__)

static const struct dm_opt options[] = {
    ROW(device, DM_OPT_STRING, .initial = "",
        .help = "RDMA device, as `ibv_devices` names it; empty: the first one with an active port"),
    ROW(mn_device, DM_OPT_STRING, .initial = "",
        .help = "another device for the memory nodes and index servers of this process; empty: the same"),
    ROW(port, DM_OPT_COUNT, .initial = "0", .max = 255,
        .help = "port of the device, counted from 1; 0: the first active one"),
    ROW(gid, DM_OPT_COUNT, .initial = "0", .max = 256,
        .help =
            "entry of the port's table of addresses, counted from 1; 0: RoCE v2 with an IPv4 address if there is one"),
    ROW(mtu, DM_OPT_BYTES, .initial = "0", .max = 4096,
        .help = "path MTU: 256, 512, 1024, 2048 or 4096, no more than the port's; 0: the port's"),
    ROW(traffic_class, DM_OPT_COUNT, .initial = "0", .max = 255,
        .help = "traffic class of packets, for a lossless class of the switches"),
    ROW(pkey, DM_OPT_COUNT, .initial = "0", .max = 65535,
        .help = "entry of the port's table of partition keys, counted from 0, for connections made with connect=tcp"),
    ROW(sl, DM_OPT_COUNT, .initial = "0", .max = 15,
        .help = "service level of connections; 0: the default, or what the connection manager finds"),
    ROW(connect, DM_OPT_ENUM, .initial = "either", .choices = connect_methods,
        .help =
            "how connections between processes are made: cm: by the RDMA connection manager, which needs IP addresses "
            "at both devices; tcp: by the control port alone; either: cm where it works"),
    ROW(order, DM_OPT_ENUM, .initial = "either", .choices = orders,
        .help =
            "how a write or atomic stays behind a read or atomic of its batch: fence: the device's; wait: it is posted "
            "after them; either: wait on software RoCE, whose fences may deadlock, fence elsewhere; alone: and a "
            "write, "
            "atomic or call waits until its connection has nothing else to do, for software RoCE on links that lose "
            "packets, which executes others twice"),
    ROW(masked, DM_OPT_ENUM, .initial = "auto", .choices = masked_choices,
        .help = "masked atomics: auto: the devices' own if all have them (mlx5 devices, tried when they are opened), "
                "otherwise emulated by READ and CAS; emulated: always" MASKED_BUILD),
    ROW(depth, DM_OPT_COUNT, .initial = "1024", .min = 1024, .max = 32768, .unit = "work requests",
        .help = "length of a connection's send queue; the result says what the device gave"),
    ROW(call_slots, DM_OPT_COUNT, .initial = "4", .min = 1, .max = 1024,
        .help = "calls of one thread to one node at once; more wait"),
    ROW(handler_slots, DM_OPT_COUNT, .initial = "64", .min = 1, .max = 1024,
        .help =
            "the same for threads of memory nodes and index servers, whose handlers may call on: at least as many as "
            "may wait for each other"),
    ROW_AS("inline_max", inline_bytes, DM_OPT_BYTES, .initial = "220", .max = 1024,
           .help = "largest write or message that is inlined in the work request; the result says what the device "
                   "gave"),
    ROW(gather, DM_OPT_COUNT, .initial = "0", .max = 1024, .unit = "batches",
        .help = "batches of different contexts of a thread that may share one doorbell; 1: each batch has its own; 0: "
                "8 on software RoCE, where a doorbell is a system call, 1 elsewhere"),
    ROW(thread_domains, DM_OPT_BOOL, .initial = "on",
        .help = "gives each thread a doorbell register of its own where the device's driver can"),
    ROW(ack_timeout, DM_OPT_COUNT, .initial = "0", .max = 31,
        .help = "a packet is resent after 4.096 us times 2 to this power; 0: 14, on software RoCE 16"),
    ROW(retries, DM_OPT_COUNT, .initial = "7", .max = 7,
        .help = "times that a packet is resent before the peer counts as failed"),
    ROW_AS("timeout", timeout_ns, DM_OPT_DURATION, .initial = "10s", .min = 1e6, .max = 1e12,
           .help = "verbs that have not completed by then, and processes that have not answered, count as failed"),
    ROW_AS("start_timeout", start_timeout_ns, DM_OPT_DURATION, .initial = "2m", .min = 1e6, .max = 1e13,
           .help = "time that another process has to start and to register its memory"),
    ROW_AS("call_timeout", call_timeout_ns, DM_OPT_DURATION, .initial = "30s", .min = 1e6, .max = 1e12,
           .help = "calls that have not been answered by then count as failed"),
    ROW_AS("spin", spin_ns, DM_OPT_DURATION, .initial = "1ms",
           .help = "time that a waiting thread polls its completion queue before it sleeps"),
    ROW(chip_bytes, DM_OPT_BYTES, .initial = "128KiB", .max = 1 << 24,
        .help = "on-chip memory to take of a memory node's device at most; where it has less, ordinary memory "
                "replaces it"),
    ROW_AS("probe", probe_ns, DM_OPT_DURATION, .initial = "20ms", .max = 1e10,
           .help = "time for which a device is tried when it is opened: whether a read finds a line as one write left "
                   "it, writes land in order, and atomics are atomic to the processor; 0: not at all, and the result "
                   "has `assumed`"),
    ROW(huge_pages, DM_OPT_BOOL, .initial = "on",
        .help = "puts the memory of nodes on huge pages if the system has some, and asks for transparent ones"),
    ROW(pin, DM_OPT_BOOL, .initial = "off",
        .help = "bind each thread to one of the processors that the program may use, in turn, beginning at another one "
                "in each process of a run"),
    ROW(yield_every, DM_OPT_COUNT, .initial = "64", .min = 1, .max = 1e9, .unit = "waits",
        .help = "waits for verbs after which a thread checks for stops and new work at the latest"),
    DM_OPT_END,
};

const struct dm_transport_ops dm_transport_verbs = {
    .info = {.name = "verbs",
             .summary = "RDMA devices through libibverbs, in real time",
             .caps = DM_CAP_CHIP_MEMORY | DM_CAP_DEVICE,
             .options = options},
    .options_bytes = sizeof(struct verbs_options),
    .ctx_bytes = sizeof(struct verbs_ctx),
    .thread_bytes = sizeof(struct verbs_thread),
    .open = verbs_open,
    .close = verbs_close,
    .connect = verbs_connect_all,
    .measure = verbs_measure,
    .run = verbs_run,
    .start = rt_start,
    .commit = verbs_commit,
    .call = verbs_call,
    .park = rt_park,
    .wake = rt_wake,
    .sleep = rt_sleep,
    .now = rt_now,
    .charge = rt_charge,
    .charge_access = rt_charge_access,
    .cpu_read = verbs_cpu_read,
    .cpu_write = verbs_cpu_write,
    .cpu_cas = verbs_cpu_cas,
    .local_alloc = verbs_local_alloc,
    .listen = verbs_listen,
    .peers = verbs_peers,
    .notes = verbs_notes,
};
