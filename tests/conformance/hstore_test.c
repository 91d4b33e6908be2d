/* SPDX-License-Identifier: Apache-2.0
 *
 * What only HStore promises: its message sequences in the quiet case, the sizes and topologies that it refuses, its
 * parameters, and that it survives failed index servers at any moment of a write and under load.
 */
#include "check/campaign.h"
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "conformance/transport_choice.h"
#include "indexes/hstore/server.h"
#include "transport/core/core.h"

extern const struct ix_ops ix_ops_hstore;

static struct world_config sim_config(void) {
    struct world_config config = world_least(&ix_ops_hstore);
    config.mns = 2;
    config.value_bytes = 32;
    config.cache_bytes = 0;
    config.expected_keys = 1000;
    return config;
}

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { QUIET_KEYS = 1000, QUIET_SCAN = 100, QUIET_SAMPLES = 100 };

struct quiet {
    struct world *world;
    struct dm_account get, absent, update, insert, remove, scan;
    uint64_t chain_reads, bucket_reads, item_misses, orphans;
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX], values[QUIET_SCAN * 32];
    uint64_t keys[QUIET_SCAN];
    uint32_t found;
    world_value(1, 1, value, 32);
    WORLD_CHECK_EQ(ix_update(&client, world_key(0, QUIET_KEYS), value), 0); /* gets the client's first slab */
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t present = world_key(2 * (n * 7 % 400), QUIET_KEYS), absent = present + 1;
        dm_account_use(ctx, &quiet->get);
        WORLD_CHECK_EQ(ix_get(&client, present, value), 0);
        dm_account_use(ctx, &quiet->absent);
        uint64_t misses = ix_counts(&client)[HSTORE_ITEM_MISS];
        WORLD_CHECK_EQ(ix_get(&client, absent, value), DM_NOT_FOUND);
        quiet->absent.round_trips -= ix_counts(&client)[HSTORE_ITEM_MISS] - misses;
        dm_account_use(ctx, &quiet->update);
        WORLD_CHECK_EQ(ix_update(&client, present, value), 0);
        dm_account_use(ctx, &quiet->insert);
        WORLD_CHECK_EQ(ix_insert(&client, absent, value), 0);
        dm_account_use(ctx, &quiet->remove);
        WORLD_CHECK_EQ(ix_remove(&client, absent), 0);
    }
    dm_account_use(ctx, &quiet->scan);
    WORLD_CHECK_EQ(ix_scan(&client, world_key(100, QUIET_KEYS), QUIET_SCAN, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, QUIET_SCAN);
    dm_account_use(ctx, NULL);
    const uint64_t *counts = ix_counts(&client);
    quiet->chain_reads = counts[HSTORE_CHAIN_READ];
    quiet->bucket_reads = counts[HSTORE_BUCKET_READ];
    quiet->item_misses = counts[HSTORE_ITEM_MISS];
    ix_detach(&client);
    return 0;
}

static void quiet_run(const struct world_config *config, struct quiet *quiet) {
    struct world world;
    struct world_pairs pairs;
    *quiet = (struct quiet){.world = &world};
    struct quiet_end end =
        quiet_world(&world, config, world_pairs(&pairs, QUIET_KEYS, 2, config->value_bytes), quiet_entry, quiet);
    assert_int_equal(end.report.keys, QUIET_KEYS / 2);
}

static struct world_config quiet_config(const char *buckets, const char *fetch) {
    struct world_config config = sim_config();
    config.params[0] = (struct dm_setting){"buckets", buckets};
    config.params[1] = (struct dm_setting){"fetch", fetch};
    config.params[2] = (struct dm_setting){"slab_items", "1024"};
    return config;
}

static void a_quiet_get_is_two_round_trips_and_a_write_two_waits(void **state) {
    (void)state;
    struct world_config config = quiet_config("2000", "serial");
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.chain_reads, 0);
    assert_int_equal(quiet.get.round_trips, 2 * QUIET_SAMPLES);
    assert_int_equal(quiet.get.verbs[DM_VERB_READ], 2 * QUIET_SAMPLES);
    assert_int_equal(quiet.get.bytes_read, QUIET_SAMPLES * (64 + 64)); /* a bucket, and an item of 8 and 32 bytes */
    assert_int_equal(quiet.absent.round_trips, QUIET_SAMPLES);
    assert_int_equal(quiet.update.round_trips, 2 * QUIET_SAMPLES);
    assert_int_equal(quiet.update.verbs[DM_VERB_WRITE], QUIET_SAMPLES);
    assert_int_equal(quiet.update.verbs[DM_VERB_CALL], QUIET_SAMPLES);
    assert_int_equal(quiet.insert.round_trips, 2 * QUIET_SAMPLES);
    assert_int_equal(quiet.remove.round_trips, QUIET_SAMPLES);
    assert_int_equal(quiet.remove.verbs[DM_VERB_CALL], QUIET_SAMPLES);
}

static void a_chained_bucket_costs_a_get_one_round_trip(void **state) {
    (void)state;
    struct world_config config = quiet_config("40", "serial"); /* 12.5 keys for 7 slots */
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(quiet.chain_reads > 0);
    uint64_t gets = quiet.get.round_trips + quiet.absent.round_trips;
    /* One read for each bucket, and one for each item found. Those of absent keys were counted without their item
     * misses. */
    assert_in_range(gets, quiet.bucket_reads + QUIET_SAMPLES, quiet.bucket_reads + QUIET_SAMPLES + quiet.item_misses);
}

static void a_quiet_scan_is_a_call_and_a_read_an_item_or_a_call_and_one_batch(void **state) {
    (void)state;
    struct quiet quiet;
    struct world_config config = quiet_config("2000", "serial");
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.scan.verbs[DM_VERB_CALL], 1);
    assert_int_equal(quiet.scan.verbs[DM_VERB_READ], QUIET_SCAN);
    assert_int_equal(quiet.scan.round_trips, 1 + QUIET_SCAN);
    config = quiet_config("2000", "batch");
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.scan.verbs[DM_VERB_READ], QUIET_SCAN);
    assert_int_equal(quiet.scan.round_trips, 2);
}

static int phases_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, &quiet->update);
    char value[32];
    world_value(2, 1, value, 32);
    WORLD_CHECK_EQ(ix_update(&client, world_key(2, QUIET_KEYS), value), 0);
    dm_phase(ctx, DM_PHASE_OTHER);
    dm_account_use(ctx, &quiet->get);
    WORLD_CHECK_EQ(ix_get(&client, world_key(2, QUIET_KEYS), value), 0);
    dm_phase(ctx, DM_PHASE_OTHER);
    dm_account_use(ctx, NULL);
    ix_detach(&client);
    return 0;
}

static void a_write_reports_the_phases_of_its_time(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    struct world_pairs pairs;
    world_begin(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, config.value_bytes));
    struct quiet quiet = {.world = &world};
    world_do(&world, 0, phases_entry, &quiet);
    static const enum dm_phase of_update[] = {DM_PHASE_INDEX, DM_PHASE_VALUE, DM_PHASE_CALL, DM_PHASE_LOG};
    for (size_t i = 0; i < sizeof(of_update) / sizeof(of_update[0]); i++) {
        assert_true(quiet.update.phase_ns[of_update[i]] > 0);
    }
    assert_true(quiet.get.phase_ns[DM_PHASE_INDEX] > 1000);
    assert_true(quiet.get.phase_ns[DM_PHASE_VALUE] > 1000);
    assert_int_equal(quiet.get.phase_ns[DM_PHASE_LOG], 0);
    world_close(&world);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void a_topology_without_pairs_of_servers_and_sizes_over_the_limit_are_refused(void **state) {
    (void)state;
    struct hstore_params params;
    struct dm_err err;
    static const struct {
        unsigned servers;
        uint32_t value_bytes;
        const char *text;
    } cases[] = {{0, 8, "index servers"}, {1, 8, "index servers"}, {3, 8, "index servers"}, {2, 4097, "4096"}};
    dm_opt_defaults(ix_ops_hstore.params, &params);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dm_topology topology = {.mns = 1, .servers = cases[i].servers, .cns = 1, .clients = 1};
        struct ix_shape shape = {.value_bytes = cases[i].value_bytes, .expected_keys = 10, .topology = &topology};
        assert_true(ix_memory_needed(&ix_ops_hstore, &params, &shape, 10) > 0); /* asked before check */
        assert_int_equal(ix_check(&ix_ops_hstore, &params, &shape, &err), DM_ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].text));
    }
    assert_int_equal(dm_opt_set(ix_ops_hstore.params, &params, "key_bytes", "65", &err), DM_ERR_INVALID);
    assert_int_equal(dm_opt_set(ix_ops_hstore.params, &params, "key_bytes", "7", &err), DM_ERR_INVALID);
}

/* 100 M keys, section 5.2: 3.7 GB of buckets, and the items. */
static void a_shard_takes_the_keys_of_the_paper(void **state) {
    (void)state;
    enum { KEYS = 100000000 };
    struct hstore_params params;
    struct dm_err err;
    struct dm_topology topology = {.mns = 1, .servers = 2, .cns = 1, .clients = 1};
    struct ix_shape shape = {.value_bytes = 32, .expected_keys = KEYS, .topology = &topology};
    dm_opt_defaults(ix_ops_hstore.params, &params);
    assert_int_equal(ix_check(&ix_ops_hstore, &params, &shape, &err), 0);
    uint64_t buckets = hstore_geometry_of(&params, &shape).buckets;
    assert_in_range(buckets * HSTORE_BUCKET_STRIDE, UINT64_C(3600000000), UINT64_C(3800000000));
    assert_true(ix_memory_needed(&ix_ops_hstore, &params, &shape, KEYS) > buckets * HSTORE_BUCKET_STRIDE);
    shape.expected_keys = 300 * (uint64_t)1000000;
    assert_int_equal(ix_check(&ix_ops_hstore, &params, &shape, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "--servers"));
}

/* ---- parameters and events --------------------------------------------------------------------------------------- */

static struct steady_result loaded_run(struct world_config config, struct dm_setting setting, unsigned servers,
                                       uint32_t value_bytes) {
    config.clients = 8;
    config.clients_per_thread = 2;
    config.cns = 2;
    config.servers = servers;
    config.value_bytes = value_bytes;
    config.params[0] = setting;
    return steady_run(config, 150);
}

static void each_parameter_value_serves_many_clients(void **state) {
    (void)state;
    static const struct {
        struct dm_setting setting;
        unsigned servers;
        uint32_t value_bytes;
    } cases[] = {
        {{"sync", "on"}, 2, 8},         {{"fetch", "batch"}, 4, 64}, {{"lookup", "list"}, 2, 8},
        {{"key_bytes", "64"}, 6, 200},  {{"workers", "1"}, 2, 8},    {{"workers", "16"}, 4, 8},
        {{"rpc_threads", "1"}, 2, 8},   {{"grace_us", "200"}, 2, 8}, {{"sweep_us", "20"}, 2, 8},
        {{"buckets", "1"}, 2, 8},       {{"slab_items", "1"}, 2, 8}, {{"key_bytes", "20"}, 2, 1000},
        {{"recover_batch", "1"}, 2, 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct steady_result result =
            loaded_run(sim_config(), cases[i].setting, cases[i].servers, cases[i].value_bytes);
        assert_int_equal(result.missing + result.backwards + result.torn + result.scan_missing + result.scan_wrong, 0);
        assert_int_equal(result.failed, 0);
        assert_int_equal(result.report.broken, 0);
    }
}

/* A client that ends leaves the space of what it replaced; another client that keeps writing gets it eventually. */
static int leave_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t i = 0; i < 50; i++) {
        world_value(2 * i, 1, value, 32);
        WORLD_CHECK_EQ(ix_update(&client, world_key(2 * i, QUIET_KEYS), value), 0);
    }
    ix_detach(&client);
    return 0;
}

static int reuse_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t number = 200 + 2 * (i % 100);
        world_value(number, i + 2, value, 32);
        WORLD_CHECK_EQ(ix_update(&client, world_key(number, QUIET_KEYS), value), 0);
        number = 2 * (i % 50);
        WORLD_CHECK_EQ(ix_get(&client, world_key(number, QUIET_KEYS), value), 0);
        WORLD_CHECK_EQ(world_write_of(number, value, 32), 1);
    }
    quiet->orphans = ix_counts(&client)[HSTORE_ORPHAN_RECLAIMED];
    ix_detach(&client);
    return 0;
}

static void orphaned_space_is_found_and_reused(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    struct world_pairs pairs;
    config.servers = 4;
    config.params[0] = (struct dm_setting){"sweep_us", "300"};
    config.params[1] = (struct dm_setting){"grace_us", "200"};
    world_begin(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, config.value_bytes));
    struct quiet quiet = {.world = &world};
    world_do(&world, 0, leave_entry, &world);
    world_do(&world, 0, reuse_entry, &quiet);
    assert_in_range(quiet.orphans, 50, 100); /* what the first client replaced, and a few of the second's own */
    assert_int_equal(world_verify(&world).keys, QUIET_KEYS / 2);
    world_close(&world);
}

/* A client that removes more than it writes keeps space for longer than the sweep waits: it is no longer its own. */
static int late_reuse_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    struct hstore_supply *supply = &((struct hstore_client *)client.handle)->supply;
    const uint64_t old = UINT64_C(1) << 38; /* beyond the node's memory */
    bool is_reused;
    uint64_t item;
    for (unsigned i = 0; i < HSTORE_RING; i++) {
        WORLD_CHECK_EQ(hstore_supply_retire(ctx, supply, old), 0);
    }
    WORLD_CHECK_EQ(dm_sleep(ctx, 20 * supply->grace_ns), 0);
    WORLD_CHECK_EQ(hstore_supply_retire(ctx, supply, old), 0);
    WORLD_CHECK_EQ(hstore_supply_take(ctx, supply, &item, &is_reused), 0);
    WORLD_CHECK(item != old);
    supply->ring_count = 0;
    ix_detach(&client);
    return 0;
}

static void space_that_a_sweep_may_have_taken_is_not_used_again(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    config.params[0] = (struct dm_setting){"sweep_us", "300"};
    world_begin(&world, &config, NULL);
    world_do(&world, 0, late_reuse_entry, &world);
    world_close(&world);
}

/* Many writers and one core for each server: the marks of items must keep pace with their reuse, and scans must not be
 * ahead of gets. */

enum { CROWD = 48, CROWD_WRITES = 300 };

struct crowd {
    struct world *world;
    uint64_t number; /* 0: the key that is read */
    unsigned backwards;
    bool is_over;
};

static void crowd_writer(struct dm_ctx *ctx, void *arg) {
    struct crowd *crowd = arg;
    struct ix_client client = world_attach(crowd->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t write = 1; write <= CROWD_WRITES; write++) {
        world_value(crowd->number, write, value, 32);
        WORLD_CHECK_EQ(ix_update(&client, world_key(crowd->number, QUIET_KEYS), value), 0);
    }
    ix_detach(&client);
    crowd->is_over = true;
}

/* Scans, then gets: the get must not return an older write. */
static void crowd_reader(struct dm_ctx *ctx, void *arg) {
    struct crowd *crowd = arg;
    struct ix_client client = world_attach(crowd->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    uint64_t key;
    uint32_t found;
    while (!crowd->is_over) {
        WORLD_CHECK_EQ(ix_scan(&client, 0, 1, &key, value, &found), 0);
        uint64_t scanned = world_write_of(0, value, 32);
        WORLD_CHECK_EQ(ix_get(&client, 0, value), 0);
        crowd->backwards += world_write_of(0, value, 32) < scanned;
    }
    ix_detach(&client);
}

static void under_load_marks_keep_up_and_a_get_is_not_behind_a_scan(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    struct world_pairs pairs;
    static struct crowd crowds[CROWD];
    config.clients = CROWD + 1;
    config.server_cores = 1;
    world_begin(&world, &config, world_pairs(&pairs, QUIET_KEYS, 1, config.value_bytes));
    for (unsigned i = 0; i < CROWD; i++) {
        crowds[i] = (struct crowd){.world = &world, .number = 7 * i};
        world_spawn(&world, 0, i, crowd_writer, &crowds[i]);
    }
    world_spawn(&world, 0, CROWD, crowd_reader, &crowds[0]);
    world_run(&world);
    assert_int_equal(crowds[0].backwards, 0);
    assert_int_equal(world_verify(&world).keys, QUIET_KEYS);
    world_close(&world);
}

/* More clients than a server can answer within the lease of an address: they wait longer, but no call is repeated. */

enum { QUEUE = 96, QUEUE_SCANS = 6, QUEUE_KEYS = 100 };

struct queued {
    struct world *world;
    struct dm_account account;
    int rc;
};

static void queued_scans(struct dm_ctx *ctx, void *arg) {
    struct queued *queued = arg;
    struct ix_client client = world_attach(queued->world, 0, ctx, &queued->account);
    char values[QUEUE_KEYS * 32];
    uint64_t keys[QUEUE_KEYS];
    for (unsigned i = 0; i < QUEUE_SCANS && queued->rc == 0; i++) {
        uint32_t found = 0;
        queued->rc = ix_scan(&client, world_key(i, QUIET_KEYS), QUEUE_KEYS, keys, values, &found);
        queued->rc = queued->rc == 0 ? ix_get(&client, keys[0], values) : queued->rc;
        WORLD_CHECK(queued->rc < 0 || found == QUEUE_KEYS);
    }
    ix_detach(&client);
}

static void queue_run(const struct world_config *config, void (*entry)(struct dm_ctx *, void *),
                      struct dm_account *account) {
    static struct queued queue[QUEUE];
    struct world world;
    struct world_pairs pairs;
    world_begin(&world, config, world_pairs(&pairs, QUIET_KEYS, 1, config->value_bytes));
    *account = (struct dm_account){0};
    for (unsigned i = 0; i < QUEUE; i++) {
        queue[i] = (struct queued){.world = &world};
        world_spawn(&world, 0, i, entry, &queue[i]);
    }
    world_run(&world);
    for (unsigned i = 0; i < QUEUE; i++) {
        assert_int_equal(queue[i].rc, 0);
        dm_account_add(account, &queue[i].account);
    }
    world_close(&world);
}

static void a_queue_longer_than_the_lease_of_an_address_repeats_no_call(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct dm_account account;
    config.clients = QUEUE;
    config.server_cores = 1;
    config.retry_limit = 100;
    config.params[0] = (struct dm_setting){"grace_us", "200"};
    config.params[1] = (struct dm_setting){"lookup", "list"};
    queue_run(&config, queued_scans, &account);
    assert_int_equal(account.verbs[DM_VERB_CALL], 2 * QUEUE * QUEUE_SCANS);
    assert_int_equal(account.retries[DM_RETRY_STALE], 0);
}

static void queued_first_write(struct dm_ctx *ctx, void *arg) {
    struct queued *queued = arg;
    struct ix_client client = world_attach(queued->world, 0, ctx, NULL);
    char value[32];
    dm_account_use(ctx, &queued->account);
    world_value(7, 1, value, 32);
    queued->rc = ix_update(&client, world_key(7, QUIET_KEYS), value);
    dm_account_use(ctx, NULL);
    ix_detach(&client);
}

static void clients_that_start_to_write_together_do_not_delay_each_other(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct dm_account account;
    config.clients = QUEUE;
    queue_run(&config, queued_first_write, &account);
    assert_int_equal(account.verbs[DM_VERB_CAS], QUEUE); /* each adds its slab at the first attempt */
}

/* ---- addresses that are followed too late ------------------------------------------------------------------------ */

enum { LATE_WRITES = 60, LATE_KEYS = 20, LATE_SPIN_NS = 50000 };

struct late {
    struct world *world;
    bool scans;               /* reads by an address from the skip list, else from the table */
    _Atomic uint64_t written; /* the newest acknowledged write of key 0 */
    _Atomic bool is_over;
    uint64_t expired, replaced;
};

static void late_reader(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct ix_client client = world_attach(late->world, 0, ctx, NULL);
    char value[32];
    while (!atomic_load(&late->is_over)) {
        uint64_t before = atomic_load(&late->written), key;
        uint32_t found = 1;
        int rc = late->scans ? ix_scan(&client, 0, 1, &key, value, &found) : ix_get(&client, 0, value);
        WORLD_CHECK_EQ(rc, 0);
        uint64_t write = world_write_of(0, value, 32);
        WORLD_CHECK(found == 1 && write >= before && write <= LATE_WRITES);
    }
    const uint64_t *counts = ix_counts(&client);
    late->expired = counts[HSTORE_LEASE_EXPIRED];
    late->replaced = counts[HSTORE_ITEM_REPLACED];
    ix_detach(&client);
}

/* Updates one key repeatedly: in virtual time for so long that the space of replaced items is reused, in real time with
 * turns on the processor that are longer than the lease of an address. */
static void late_writer(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct ix_client client = world_attach(late->world, 0, ctx, NULL);
    bool is_virtual = dm_fabric_transport(late->world->fabric)->caps & DM_CAP_VIRTUAL_TIME;
    char value[32];
    for (uint64_t write = 1; write <= LATE_WRITES; write++) {
        world_value(0, write, value, 32);
        WORLD_CHECK_EQ(ix_update(&client, 0, value), 0);
        atomic_store(&late->written, write);
        for (uint64_t since_ns = dm_now(ctx); !is_virtual && dm_now(ctx) - since_ns < LATE_SPIN_NS;) {
        }
    }
    atomic_store(&late->is_over, true);
    ix_detach(&client);
}

static struct late late_run(struct world_config config, bool scans) {
    struct world world;
    struct world_pairs pairs;
    config.clients = config.clients_per_thread = 2;
    config.params[0] = (struct dm_setting){"grace_us", "200"};
    config.params[1] = (struct dm_setting){"lease_us", "20"};
    world_begin(&world, &config, world_pairs(&pairs, LATE_KEYS, 1, config.value_bytes));
    struct late late = {.world = &world, .scans = scans};
    world_spawn(&world, 0, 0, late_reader, &late);
    world_spawn(&world, 0, 0, late_writer, &late);
    world_run(&world);
    assert_int_equal(world_verify(&world).keys, LATE_KEYS);
    world_close(&world);
    return late;
}

/* The reader's first verb gets its number; the third is the first that reads an item. */
static void an_address_that_is_followed_too_late_is_requested_again(void **state) {
    (void)state;
    struct world_config config = sim_config();
    config.settings[0] = (struct dm_setting){"faults", "stop:client=0,verb=3,for=250us"};
    struct late late = late_run(config, false);
    assert_int_equal(late.expired, 1);
    assert_int_equal(late.replaced, 0);
    late = late_run(config, true);
    assert_int_equal(late.expired, 0);
    assert_int_equal(late.replaced, 1);
}

static void in_real_time_addresses_expire_and_no_older_value_is_read(void **state) {
    (void)state;
    struct world_config config = sim_config();
    config.transport = "local";
    assert_true(late_run(config, false).expired > 0);
    assert_int_equal(late_run(config, true).expired, 0);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

enum { FAIL_KEYS = 40 };

/* A client that updates keys of its own one by one, and records which writes were acknowledged. */
struct writer {
    struct world *world;
    unsigned number, writes;
    bool has_gaps; /* pauses between writes */
    uint64_t acknowledged[FAIL_KEYS], tried[FAIL_KEYS];
    uint64_t counts[HSTORE_COUNTER_COUNT];
    uint64_t longest_get_ns;
    int rc;
};

static void writer_entry(struct dm_ctx *ctx, void *arg) {
    struct writer *writer = arg;
    unsigned clients = writer->world->config.clients;
    struct ix_client client = world_attach(writer->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t write = 1; write <= writer->writes && writer->rc == 0; write++) {
        uint64_t number = writer->number + dm_prng_below(dm_random(ctx), FAIL_KEYS / clients) * clients;
        world_value(number, write, value, 32);
        writer->tried[number] = write;
        writer->rc = ix_update(&client, world_key(number, FAIL_KEYS), value);
        if (writer->rc == 0) {
            writer->acknowledged[number] = write;
        }
        uint64_t since_ns = dm_now(ctx);
        WORLD_CHECK_EQ(ix_get(&client, world_key(number, FAIL_KEYS), value), 0);
        uint64_t took_ns = dm_now(ctx) - since_ns;
        writer->longest_get_ns = took_ns > writer->longest_get_ns ? took_ns : writer->longest_get_ns;
        WORLD_CHECK_EQ(world_write_of(number, value, 32), write);
        if (writer->has_gaps) {
            WORLD_CHECK_EQ(dm_sleep(ctx, dm_prng_below(dm_random(ctx), 20000)), 0);
        }
    }
    memcpy(writer->counts, ix_counts(&client), sizeof(writer->counts));
    ix_detach(&client);
}

static int read_back_entry(struct dm_ctx *ctx, void *arg) {
    struct writer *writers = arg;
    struct world *world = writers->world;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t number = 0; number < FAIL_KEYS; number++) {
        const struct writer *writer = &writers[number % world->config.clients];
        WORLD_CHECK_EQ(ix_get(&client, world_key(number, FAIL_KEYS), value), 0);
        uint64_t write = world_write_of(number, value, 32);
        WORLD_CHECK(write == writer->acknowledged[number] || write == writer->tried[number]);
    }
    ix_detach(&client);
    return 0;
}

/* Runs writers under the fabric's faults. All acknowledged writes must be there, and the indexes must agree. */
static void fail_run(struct world_config config, const char *faults, unsigned writes, bool has_gaps,
                     struct writer *writers) {
    struct world world;
    struct world_pairs pairs;
    config.settings[0] = (struct dm_setting){"faults", faults};
    config.settings[1] = (struct dm_setting){"peer_timeout", "20us"};
    config.params[0] = (struct dm_setting){"probe_us", "10"};
    config.params[1] = (struct dm_setting){"grace_us", "200"};
    world_begin(&world, &config, world_pairs(&pairs, FAIL_KEYS, 1, config.value_bytes));
    for (unsigned i = 0; i < config.clients; i++) {
        writers[i] = (struct writer){.world = &world, .number = i, .writes = writes, .has_gaps = has_gaps};
        world_spawn(&world, 0, i / config.clients_per_thread, writer_entry, &writers[i]);
    }
    world_run(&world);
    for (unsigned i = 0; i < config.clients; i++) {
        assert_int_equal(writers[i].rc, 0);
    }
    dm_fabric_setup(world.fabric);
    world_do(&world, 0, read_back_entry, writers);
    assert_int_equal(world_verify(&world).keys, FAIL_KEYS);
    world_close(&world);
}

static void indexes_and_items_agree_when_servers_fail_at_any_moment_of_a_write(void **state) {
    (void)state;
    struct writer writer;
    uint64_t counts[HSTORE_COUNTER_COUNT] = {0};
    /* The hash table server fails, the skip list server, or both, at steps through an update and what follows. */
    for (unsigned which = 1; which <= 3; which++) {
        for (unsigned at = 100; at < 20000; at += 100) {
            char faults[100] = "", *end = faults;
            end += which & 1 ? sprintf(end, "fail:node=2,at=%uns,for=30us;", at) : 0;
            if (which & 2) {
                sprintf(end, "fail:node=3,at=%uns,for=%uus;", at + 150, 10 + at / 200);
            }
            fail_run(sim_config(), faults, 3, false, &writer);
            for (unsigned i = 0; i < HSTORE_COUNTER_COUNT; i++) {
                counts[i] += writer.counts[i];
            }
        }
    }
    assert_true(counts[HSTORE_DOUBT_APPLIED] > 0);
    assert_true(counts[HSTORE_DOUBT_REDONE] > 0);
    assert_true(counts[HSTORE_DEGRADED_GET] > 0);
}

static void no_acknowledged_write_is_lost_in_a_thousand_runs_with_a_random_failure(void **state) {
    (void)state;
    static struct writer writers[4];
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct world_config config = sim_config();
        struct dm_prng prng = dm_prng_stream(seed, "failures", 0);
        config.clients = 4;
        config.clients_per_thread = 2;
        config.seed = seed;
        config.mn_bytes = 4 << 20;
        config.chunk_bytes = 64 << 10;
        unsigned which = (unsigned)dm_prng_below(&prng, 3), at = (unsigned)dm_prng_below(&prng, 300);
        unsigned later = (unsigned)dm_prng_below(&prng, 100), away = 1 + (unsigned)dm_prng_below(&prng, 200);
        char faults[100] = "", *end = faults;
        end += which != 1 ? sprintf(end, "fail:node=2,at=%uus,for=%uus;", at, away) : 0;
        if (which != 0) {
            sprintf(end, "fail:node=3,at=%uus,for=%uus;", at + later, 1 + away / 2);
        }
        fail_run(config, faults, 20, true, writers);
    }
}

static void gets_continue_while_one_server_is_away(void **state) {
    (void)state;
    struct world_config config = sim_config();
    static struct writer writers[2];
    config.clients = config.clients_per_thread = 2;
    /* Longer than the run without failures would take. A get waits for one time-out at most. */
    fail_run(config, "fail:node=2,at=40us,for=3ms", 10, false, writers);
    assert_true(writers[0].longest_get_ns < 100000);
    assert_true(writers[0].counts[HSTORE_HTS_FROM_LIST] + writers[1].counts[HSTORE_HTS_FROM_LIST] == 1);
    fail_run(config, "fail:node=3,at=40us,for=3ms", 10, false, writers);
    assert_true(writers[0].longest_get_ns < 10000);
    assert_int_equal(writers[0].counts[HSTORE_DEGRADED_GET], 0);
    assert_true(writers[0].counts[HSTORE_SLS_FROM_TABLE] + writers[1].counts[HSTORE_SLS_FROM_TABLE] == 1);
}

/* Four call threads and four workers: with eight threads each has its own. */
static void no_two_workers_share_a_thread_while_another_has_none(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    config.server_cores = 8;
    world_open(&world, &config);
    unsigned workers[2][8] = {0};
    for (const struct dm_ctx *ctx = world.fabric->contexts; ctx; ctx = ctx->all_next) {
        if (ctx->entry == hstore_hts_worker || ctx->entry == hstore_sls_worker) {
            workers[ctx->entry == hstore_sls_worker][ctx->thread->index]++;
        }
    }
    for (unsigned server = 0; server < 2; server++) {
        for (unsigned thread = 0; thread < 8; thread++) {
            assert_int_equal(workers[server][thread], thread >= 4);
        }
    }
    world_close(&world);
}

static void a_table_in_several_parts_survives_its_server(void **state) {
    (void)state;
    struct world_config config = sim_config();
    static struct writer writers[2];
    config.clients = config.clients_per_thread = 2;
    config.mn_bytes = 256 << 20;
    config.params[2] = (struct dm_setting){"buckets", "600000"};
    static_assert(600000 > 2 * HSTORE_PART_BUCKETS, "three parts");
    fail_run(config, "fail:node=2,at=40us,for=30us", 40, false, writers);
    assert_true(writers[0].counts[HSTORE_HTS_FROM_LIST] + writers[1].counts[HSTORE_HTS_FROM_LIST] == 1);
    assert_true(writers[0].counts[HSTORE_TABLE_REFRESHED] + writers[1].counts[HSTORE_TABLE_REFRESHED] > 0);
}

static void logs_that_fill_make_writers_wait_and_lose_nothing(void **state) {
    (void)state;
    static struct writer writers[FAIL_KEYS];
    struct world_config config = sim_config();
    uint64_t full = 0;
    config.clients = config.clients_per_thread = FAIL_KEYS;
    config.params[2] = (struct dm_setting){"log_entries", "4"};
    config.params[3] = (struct dm_setting){"batch", "4"};
    config.params[4] = (struct dm_setting){"workers", "1"};
    /* No batch can be shipped for a while, and the log has four entries for forty writers. */
    fail_run(config, "fail:node=3,at=40us,for=300us", 10, false, writers);
    for (unsigned i = 0; i < FAIL_KEYS; i++) {
        full += writers[i].counts[HSTORE_LOG_FULL];
    }
    assert_true(full > 0);
}

/* A server that never returns: a write ends with the bound on retries, gets continue. */
static int lost_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    char value[32];
    world_value(1, 1, value, 32);
    WORLD_CHECK_EQ(ix_update(&client, world_key(1, QUIET_KEYS), value), DM_ERR_RETRY_LIMIT);
    WORLD_CHECK_EQ(ix_get(&client, world_key(1, QUIET_KEYS), value), 0);
    WORLD_CHECK_EQ(world_write_of(1, value, 32), 0);
    ix_detach(&client);
    return 0;
}

static void a_server_that_stays_away_ends_writes_with_the_bound_on_retries(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    struct world_pairs pairs;
    config.retry_limit = 30;
    config.settings[0] = (struct dm_setting){"faults", "fail:node=3,at=0ns"};
    config.settings[1] = (struct dm_setting){"peer_timeout", "20us"};
    world_begin(&world, &config, world_pairs(&pairs, QUIET_KEYS, 1, config.value_bytes));
    world_do(&world, 0, lost_entry, &world);
    world_close(&world);
}

/* A short campaign beside check_test's, which is of all indexes. The seeds drew worlds with faults once, but seeds draw
 * other worlds since then; worlds that must remain are in tests/worlds. These notice four mutants of tests/mutation. */
static void some_seeds_of_the_checker_find_nothing(void **state) {
    (void)state;
    static const uint64_t seeds[] = {506, 1352, 3230, 9657, 10341, 17633, 39420};
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        const struct ck_campaign campaign = {
            .request = {.index = &ix_ops_hstore, .transport = "sim"}, .first_seed = seeds[i], .seeds = 1, .jobs = 1};
        struct ck_summary summary;
        struct ck_result kept;
        struct dm_err err = {0};
        WORLD_MUST(ck_campaign_run(&campaign, &summary, &kept, &err), &err);
        ck_result_fini(&kept);
        if (summary.has_failed) {
            fail_msg("seed %llu: %s", (unsigned long long)seeds[i], summary.verdict.text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_is_two_round_trips_and_a_write_two_waits),
        cmocka_unit_test(a_chained_bucket_costs_a_get_one_round_trip),
        cmocka_unit_test(a_quiet_scan_is_a_call_and_a_read_an_item_or_a_call_and_one_batch),
        cmocka_unit_test(a_write_reports_the_phases_of_its_time),
        cmocka_unit_test(a_topology_without_pairs_of_servers_and_sizes_over_the_limit_are_refused),
        cmocka_unit_test(each_parameter_value_serves_many_clients),
        cmocka_unit_test(orphaned_space_is_found_and_reused),
        cmocka_unit_test(space_that_a_sweep_may_have_taken_is_not_used_again),
        cmocka_unit_test(under_load_marks_keep_up_and_a_get_is_not_behind_a_scan),
        cmocka_unit_test(a_queue_longer_than_the_lease_of_an_address_repeats_no_call),
        cmocka_unit_test(clients_that_start_to_write_together_do_not_delay_each_other),
        cmocka_unit_test(an_address_that_is_followed_too_late_is_requested_again),
        cmocka_unit_test(in_real_time_addresses_expire_and_no_older_value_is_read),
        cmocka_unit_test(indexes_and_items_agree_when_servers_fail_at_any_moment_of_a_write),
        cmocka_unit_test(no_acknowledged_write_is_lost_in_a_thousand_runs_with_a_random_failure),
        cmocka_unit_test(gets_continue_while_one_server_is_away),
        cmocka_unit_test(no_two_workers_share_a_thread_while_another_has_none),
        cmocka_unit_test(a_table_in_several_parts_survives_its_server),
        cmocka_unit_test(a_shard_takes_the_keys_of_the_paper),
        cmocka_unit_test(logs_that_fill_make_writers_wait_and_lose_nothing),
        cmocka_unit_test(a_server_that_stays_away_ends_writes_with_the_bound_on_retries),
        cmocka_unit_test(some_seeds_of_the_checker_find_nothing),
    };
    return test_run_chosen("hstore", tests, DM_ARRAY_LEN(tests));
}
