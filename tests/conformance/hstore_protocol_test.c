/* SPDX-License-Identifier: Apache-2.0
 *
 * HStore's protocol between its servers, message by message: what each server answers to a batch that comes again, or
 * too late, to a delete that is repeated, and to a server that recovers in the middle of a batch. And what is in the
 * memory pool while items and their marks have landed in part. Most of it is a matter of some hundred nanoseconds that
 * random worlds rarely meet, so here the messages are sent, and the bytes written, by the test.
 */
#include "conformance/quiet.h"
#include "indexes/hstore/pool.h"
#include "indexes/hstore/server.h"

extern const struct ix_ops ix_ops_hstore;

enum { KEYS = 40, VALUE = 64, HTS = 1, SLS = 2, HELD_MAX = 16 };

/* One memory node, one shard, one log. */
static struct world_config protocol_config(void) {
    struct world_config config = world_least(&ix_ops_hstore);
    config.value_bytes = VALUE;
    config.cache_bytes = 0;
    config.expected_keys = 100;
    config.params[0] = (struct dm_setting){"workers", "1"};
    config.params[1] = (struct dm_setting){"grace_us", "200"};
    config.params[2] = (struct dm_setting){"probe_us", "10"};
    return config;
}

/* A server that fails is noticed soon. */
static struct world_config failing_config(const char *faults) {
    struct world_config config = protocol_config();
    config.settings[0] = (struct dm_setting){"peer_timeout", "20us"};
    config.settings[1] = (struct dm_setting){"faults", faults};
    return config;
}

static void protocol_begin(struct world *world, const struct world_config *config) {
    struct world_pairs pairs;
    world_begin(world, config, world_pairs(&pairs, KEYS, 1, VALUE));
}

/* Runs one context in such a world, with one more setting of the index (NULL: none); nothing is verified. */
static void protocol_alone(int (*entry)(struct dm_ctx *, void *), const char *setting, const char *value) {
    struct world_config config = protocol_config();
    struct world world;
    config.params[3] = (struct dm_setting){setting, value};
    protocol_begin(&world, &config);
    world_do(&world, 0, entry, &world);
    world_close(&world);
}

/* Runs two contexts side by side, each with `arg`. */
static void protocol_both(struct world *world, struct world_config config, void (*first)(struct dm_ctx *, void *),
                          void (*second)(struct dm_ctx *, void *), void *arg) {
    config.clients = 2;
    protocol_begin(world, &config);
    world_spawn(world, 0, 0, first, arg);
    world_spawn(world, 0, 1, second, arg);
    world_run(world);
}

static struct hstore_geometry geometry_of(const struct world *world) {
    return hstore_geometry_of(world->params, &world->shape);
}

static void value_of(uint64_t number, uint64_t write, char *value) {
    world_value(number, write, value, VALUE);
}

/* The write whose value a get of this key returns. */
static uint64_t write_seen(struct ix_client *client, uint64_t number) {
    char value[VALUE];
    WORLD_CHECK_EQ(ix_get(client, world_key(number, KEYS), value), 0);
    return world_write_of(number, value, VALUE);
}

/* ---- items that the test makes ----------------------------------------------------------------------------------- */

struct maker {
    const struct world *world;
    char *item;      /* device memory: one item */
    uint64_t *words; /* device memory: a line, and a word */
    dm_addr slab;
};

static struct maker maker_open(struct dm_ctx *ctx, const struct world *world) {
    struct maker maker = {.world = world};
    struct hstore_geometry geometry = geometry_of(world);
    maker.item = dm_local_alloc(ctx, geometry.item_bytes);
    maker.words = dm_local_alloc(ctx, 2 * DM_LINE);
    WORLD_CHECK_EQ(hstore_slab_new(ctx, 7, geometry.item_bytes, HELD_MAX, maker.words, &maker.slab), 0);
    maker.slab = dm_addr_add(maker.slab, DM_LINE);
    return maker;
}

/* Writes an item with this state to this address, as write number `write` of the key by a client that does not exist.
 */
static void item_write(struct dm_ctx *ctx, struct maker *maker, uint64_t packed, uint64_t number, uint64_t write,
                       uint64_t state) {
    struct hstore_geometry geometry = geometry_of(maker->world);
    struct hstore_item *head = (struct hstore_item *)(void *)maker->item;
    char value[VALUE];
    value_of(number, write, value);
    head->client = 77777;
    head->seq = (uint32_t)write;
    hstore_item_make(maker->item, geometry.key_bytes, VALUE, packed, world_key(number, KEYS), value);
    head->state = state;
    WORLD_CHECK_EQ(dm_write(ctx, hstore_unpack(packed), maker->item, geometry.item_bytes), 0);
}

static uint64_t item_new(struct dm_ctx *ctx, struct maker *maker, uint64_t number, uint64_t write, uint64_t state) {
    uint64_t packed = hstore_pack(maker->slab);
    maker->slab = dm_addr_add(maker->slab, geometry_of(maker->world).item_bytes);
    item_write(ctx, maker, packed, number, write, state);
    return packed;
}

/* Looks through the pool for the item of a key in this state. */
struct wanted {
    uint64_t key, state, packed;
};

static int wanted_visit(struct dm_ctx *ctx, void *arg, uint64_t packed, const void *item) {
    struct wanted *wanted = arg;
    const struct hstore_item *head = item;
    (void)ctx;
    if (head->key == wanted->key && head->state == wanted->state) {
        wanted->packed = packed;
    }
    return 0;
}

static uint64_t item_find(struct dm_ctx *ctx, const struct world *world, uint64_t number, uint64_t state) {
    struct wanted wanted = {.key = world_key(number, KEYS), .state = state};
    struct hstore_geometry geometry = geometry_of(world);
    struct hstore_pool_walk walk;
    WORLD_CHECK_EQ(hstore_pool_open(ctx, &walk, &geometry, 1), 0);
    WORLD_CHECK_EQ(hstore_pool_visit_all(ctx, &walk, wanted_visit, &wanted), 0);
    WORLD_CHECK(wanted.packed != 0);
    return wanted.packed;
}

/* ---- calls that the test makes ----------------------------------------------------------------------------------- */

struct batch_message {
    struct hstore_ship head;
    struct hstore_entry entries[HSTORE_BATCH_MAX];
};

static int ship_call(struct dm_ctx *ctx, uint32_t tag, const struct hstore_entry *entries, uint32_t count) {
    struct batch_message message = {.head = {.count = count, .tag = tag}};
    struct hstore_reply reply;
    uint32_t len = sizeof(reply);
    memcpy(message.entries, entries, count * sizeof(*entries));
    return dm_call(ctx, SLS, HSTORE_METHOD_SHIP, &message, (uint32_t)(sizeof(message.head) + count * sizeof(*entries)),
                   &reply, &len);
}

static struct hstore_begun begin_call(struct dm_ctx *ctx, unsigned server, uint32_t tag) {
    struct hstore_begin begin = {.tag = tag};
    struct hstore_begun begun = {0};
    uint32_t len = sizeof(begun);
    WORLD_CHECK_EQ(dm_call(ctx, server, HSTORE_METHOD_BEGIN, &begin, sizeof(begin), &begun, &len), 0);
    return begun;
}

/* The skip list's item of a key; 0: none. */
static uint64_t listed_item(struct dm_ctx *ctx, uint64_t key) {
    char message[DM_CALL_MAX];
    struct hstore_find find = {.key = key};
    struct hstore_reply reply;
    struct hstore_pair pair = {0};
    uint32_t len = sizeof(message);
    WORLD_CHECK_EQ(dm_call(ctx, SLS, HSTORE_METHOD_LIST, &find, sizeof(find), message, &len), 0);
    memcpy(&reply, message, sizeof(reply));
    memcpy(&pair, message + sizeof(reply), reply.count > 0 ? sizeof(pair) : 0);
    return pair.key == key ? pair.item : 0;
}

static uint32_t table_tag(struct dm_ctx *ctx) {
    char message[DM_CALL_MAX];
    struct hstore_range range = {0};
    struct hstore_reply reply;
    uint32_t len = sizeof(message);
    WORLD_CHECK_EQ(dm_call(ctx, HTS, HSTORE_METHOD_TABLE, &range, sizeof(range), message, &len), 0);
    memcpy(&reply, message, sizeof(reply));
    return reply.tag;
}

static int remove_call(struct dm_ctx *ctx, uint64_t number, uint32_t client, uint32_t seq, bool again) {
    struct hstore_write write = {
        .key = world_key(number, KEYS), .client = client, .seq = seq, .kind = HSTORE_REMOVE, .again = again, .tag = 1};
    struct hstore_reply reply;
    uint32_t len = sizeof(reply);
    return dm_call(ctx, HTS, HSTORE_METHOD_WRITE, &write, sizeof(write), &reply, &len);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static int batches_entry(struct dm_ctx *ctx, void *arg) {
    struct maker maker = maker_open(ctx, arg);
    uint64_t key = world_key(3, KEYS), before = listed_item(ctx, key);
    struct hstore_entry first = {.key = key, .old = before, .stamp = 1000, .client = 5, .seq = 1};
    first.item = item_new(ctx, &maker, 3, 1, HSTORE_PENDING);
    struct hstore_entry second = {.key = key, .old = first.item, .stamp = 1001, .client = 5, .seq = 2};
    second.item = item_new(ctx, &maker, 3, 2, HSTORE_PENDING);
    WORLD_CHECK_EQ(ship_call(ctx, 1, &first, 1), 0);
    WORLD_CHECK_EQ(listed_item(ctx, key), first.item);
    WORLD_CHECK_EQ(ship_call(ctx, 1, &second, 1), 0);
    WORLD_CHECK_EQ(listed_item(ctx, key), second.item);
    /* The answer to the first was lost, and it comes again. */
    WORLD_CHECK_EQ(ship_call(ctx, 1, &first, 1), 0);
    WORLD_CHECK_EQ(listed_item(ctx, key), second.item);
    /* A new table has begun to read the list: what the old one still sends is refused. */
    WORLD_CHECK_EQ(begin_call(ctx, SLS, 2).stamps[0], 1001);
    struct hstore_entry late = {.key = key, .old = second.item, .stamp = 1002, .client = 5, .seq = 3};
    WORLD_CHECK_EQ(ship_call(ctx, 1, &late, 1), HSTORE_NOT_READY);
    WORLD_CHECK_EQ(listed_item(ctx, key), second.item);
    WORLD_CHECK_EQ(ship_call(ctx, 2, &late, 1), 0);
    WORLD_CHECK_EQ(listed_item(ctx, key), 0);
    return 0;
}

static void a_batch_that_comes_again_or_from_a_table_that_failed_changes_nothing(void **state) {
    (void)state;
    protocol_alone(batches_entry, NULL, NULL);
}

/* ---- a server that recovers in the middle of a batch ------------------------------------------------------------- */

/* Rounds in which one context sends a batch or a write and another one, a little earlier or later, begins to recover.
 */
enum { ROUNDS = 120, ROUND_NS = 200000, STEP_NS = 100, FIRST_NS = 20000 };

struct rounds {
    struct world *world;
    bool of_list; /* the hash table server recovers, and the batch goes to the skip list */
    int shipped[ROUNDS];
    struct hstore_begun begun[ROUNDS];
    uint64_t stamps[ROUNDS];
    unsigned items;
};

static uint64_t round_ns(unsigned round) {
    return FIRST_NS + (uint64_t)round * ROUND_NS;
}

static void sender_entry(struct dm_ctx *ctx, void *arg) {
    struct rounds *rounds = arg;
    struct ix_client client = world_attach(rounds->world, 0, ctx, NULL);
    struct hstore_entry entries[HSTORE_BATCH_MAX] = {{.key = 0}};
    uint64_t item = listed_item(ctx, world_key(0, KEYS));
    char value[VALUE];
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_sleep_until(ctx, round_ns(round) + ROUNDS / 2 * STEP_NS);
        if (rounds->of_list) {
            for (unsigned i = 0; i < rounds->items; i++) {
                entries[i] = (struct hstore_entry){
                    .key = world_key(0, KEYS), .item = item, .stamp = 1000 + HSTORE_BATCH_MAX * round + i, .client = 5};
            }
            rounds->stamps[round] = entries[rounds->items - 1].stamp;
            rounds->shipped[round] = ship_call(ctx, round + 1, entries, rounds->items);
        } else {
            value_of(1, round + 1, value);
            rounds->shipped[round] = ix_update(&client, world_key(1, KEYS), value);
            rounds->stamps[round] = HSTORE_STAMP_FIRST + round + 1;
        }
    }
    ix_detach(&client);
}

static void recoverer_entry(struct dm_ctx *ctx, void *arg) {
    struct rounds *rounds = arg;
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_sleep_until(ctx, round_ns(round) + round * STEP_NS);
        rounds->begun[round] = begin_call(ctx, rounds->of_list ? SLS : HTS, rounds->of_list ? round + 2 : 0);
    }
}

static void rounds_run(struct rounds *rounds, const char *params) {
    struct world_config config = protocol_config();
    struct world world;
    config.params[3] = (struct dm_setting){"batch", params};
    rounds->world = &world;
    protocol_both(&world, config, sender_entry, recoverer_entry, rounds);
    world_close(&world);
}

static void what_the_list_reports_to_a_recovering_table_includes_every_batch_that_was_logged(void **state) {
    (void)state;
    static struct rounds rounds;
    rounds = (struct rounds){.of_list = true, .items = 16};
    rounds_run(&rounds, "16");
    unsigned logged = 0, refused = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        logged += rounds.shipped[round] == 0;
        refused += rounds.shipped[round] == HSTORE_NOT_READY;
        assert_true(rounds.shipped[round] != 0 || rounds.begun[round].stamps[0] >= rounds.stamps[round]);
    }
    assert_int_equal(logged + refused, ROUNDS);
    assert_true(logged > 10 && refused > 10);
}

static void what_the_table_reports_to_a_recovering_list_includes_every_batch_that_was_logged(void **state) {
    (void)state;
    static struct rounds rounds;
    rounds = (struct rounds){.of_list = false};
    rounds_run(&rounds, "1");
    unsigned before = 0, after = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool has = rounds.begun[round].stamps[0] >= rounds.stamps[round];
        assert_int_equal(rounds.shipped[round], 0);
        /* The skip list server answers, so a batch in process is logged, and must be applied. */
        assert_true(has || rounds.begun[round].doubts == 0);
        before += !has;
        after += has;
    }
    assert_true(before > 10 && after > 10);
}

/* ---- repeated deletes -------------------------------------------------------------------------------------------- */

static int deletes_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    char value[VALUE];
    WORLD_CHECK_EQ(remove_call(ctx, 1, 9, 5, false), 0);
    /* The answer was lost: the server knows that it has executed the delete. */
    WORLD_CHECK_EQ(remove_call(ctx, 1, 9, 5, true), 0);
    WORLD_CHECK_EQ(remove_call(ctx, 1, 9, 6, true), DM_NOT_FOUND);
    /* Another client inserts the key, and a third one's delete takes the slot where the server noted the first. */
    value_of(1, 1, value);
    WORLD_CHECK_EQ(ix_insert(&client, world_key(1, KEYS), value), 0);
    WORLD_CHECK_EQ(remove_call(ctx, 2, 9 + HSTORE_REMOVES, 1, false), 0);
    WORLD_CHECK_EQ(remove_call(ctx, 1, 9, 5, true), HSTORE_UNKNOWN);
    WORLD_CHECK_EQ(write_seen(&client, 1), 1);
    ix_detach(&client);
    return 0;
}

static void a_repeated_delete_is_executed_once(void **state) {
    (void)state;
    struct world_config config = protocol_config();
    struct world world;
    struct world_pairs pairs;
    world_pairs(&pairs, KEYS, 1, VALUE);
    assert_int_equal(quiet_world(&world, &config, &pairs.pairs, deletes_entry, &world).report.keys, KEYS - 1);
}

/* ---- the skip list's log ----------------------------------------------------------------------------------------- */

static int drained_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    char value[VALUE], values[10 * VALUE];
    uint64_t keys[10];
    uint32_t found;
    for (uint64_t i = 0; i < 100; i++) {
        value_of(i % KEYS, 1 + i / KEYS, value);
        WORLD_CHECK_EQ(ix_update(&client, world_key(i % KEYS, KEYS), value), 0);
        WORLD_CHECK_EQ(dm_sleep(ctx, 20000), 0);
    }
    WORLD_CHECK_EQ(ix_scan(&client, 0, 10, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, 10);
    WORLD_CHECK_EQ(ix_counts(&client)[HSTORE_LOG_FULL], 0);
    WORLD_CHECK_EQ(ix_counts(&client)[HSTORE_SCAN_DRAINED], 0);
    ix_detach(&client);
    return 0;
}

static void between_slow_writes_the_log_of_the_list_is_applied_before_a_scan_needs_it(void **state) {
    (void)state;
    protocol_alone(drained_entry, "log_entries", "16");
}

/* The worker waits for further entries, far longer than until the list is read. */
static int lingering_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    char value[VALUE];
    WORLD_CHECK_EQ(ix_remove(&client, world_key(2, KEYS)), 0);
    WORLD_CHECK_EQ(listed_item(ctx, world_key(2, KEYS)), 0);
    value_of(2, 1, value);
    WORLD_CHECK_EQ(ix_insert(&client, world_key(2, KEYS), value), 0);
    WORLD_CHECK(listed_item(ctx, world_key(2, KEYS)) != 0);
    ix_detach(&client);
    return 0;
}

static void a_copy_of_the_list_has_what_is_only_in_its_log(void **state) {
    (void)state;
    protocol_alone(lingering_entry, "apply_us", "1000000");
}

/* ---- items that have landed in part ------------------------------------------------------------------------------ */

struct half {
    struct world *world;
    uint64_t number, seen, ended_ns, replaced; /* the key that is read, and what of it */
};

enum { HALF_NS = 1000000, WHOLE_NS = 1060000 };

/* From HALF_NS to WHOLE_NS the item of key 1 is torn, and that of key 2 is the one of a later write. */
static void half_writer(struct dm_ctx *ctx, void *arg) {
    struct half *half = arg;
    struct maker maker = maker_open(ctx, half->world);
    uint32_t bytes = geometry_of(half->world).item_bytes;
    uint64_t packed = item_find(ctx, half->world, half->number, HSTORE_STAMP_LOADED);
    char *whole = dm_local_alloc(ctx, bytes);
    WORLD_CHECK_EQ(dm_read(ctx, hstore_unpack(packed), whole, bytes), 0);
    memset(maker.words, 0x55, DM_LINE);
    world_sleep_until(ctx, HALF_NS);
    if (half->number == 1) {
        WORLD_CHECK_EQ(dm_write(ctx, dm_addr_add(hstore_unpack(packed), DM_LINE), maker.words, sizeof(uint64_t)), 0);
    } else {
        item_write(ctx, &maker, packed, half->number, 9, HSTORE_PENDING);
    }
    world_sleep_until(ctx, WHOLE_NS);
    WORLD_CHECK_EQ(dm_write(ctx, hstore_unpack(packed), whole, bytes), 0);
}

static void half_reader(struct dm_ctx *ctx, void *arg) {
    struct half *half = arg;
    struct ix_client client = world_attach(half->world, 0, ctx, NULL);
    world_sleep_until(ctx, HALF_NS + 10000);
    half->seen = write_seen(&client, half->number);
    half->ended_ns = dm_now(ctx);
    half->replaced = ix_counts(&client)[HSTORE_ITEM_REPLACED];
    ix_detach(&client);
}

/* The get must have waited until the item was what it had been. */
static struct half half_run(uint64_t number, const char *lookup) {
    struct world_config config = protocol_config();
    struct world world;
    struct half half = {.world = &world, .number = number};
    config.params[3] = (struct dm_setting){"lookup", lookup};
    protocol_both(&world, config, half_writer, half_reader, &half);
    world_close(&world);
    assert_int_equal(half.seen, 0);
    assert_true(half.ended_ns > WHOLE_NS);
    return half;
}

static void a_get_of_an_item_that_is_being_written_waits_until_it_is_whole(void **state) {
    (void)state;
    half_run(1, "hash");
    half_run(1, "list");
}

static void an_item_of_another_write_than_the_list_named_is_not_believed(void **state) {
    (void)state;
    assert_true(half_run(2, "list").replaced > 0);
}

/* ---- recoveries -------------------------------------------------------------------------------------------------- */

struct failing {
    struct world *world;
    bool inserts;                                         /* the write is an insert of a key that is absent */
    void (*meanwhile)(struct dm_ctx *, struct failing *); /* NULL: nothing */
    int rc;
    uint64_t began_ns, ended_ns, seen, counts[HSTORE_COUNTER_COUNT];
    uint32_t tag_before, tag_after;
};

enum { WRITE_NS = 1000000, LATER_NS = 1000000 };

/* A first write gets the client's slab. The second one, at WRITE_NS, is what the failures are about. */
static void failing_entry(struct dm_ctx *ctx, void *arg) {
    struct failing *failing = arg;
    struct ix_client client = world_attach(failing->world, 0, ctx, NULL);
    char value[VALUE];
    value_of(5, 1, value);
    WORLD_CHECK_EQ(ix_update(&client, world_key(5, KEYS), value), 0);
    if (failing->inserts) {
        WORLD_CHECK_EQ(ix_remove(&client, world_key(4, KEYS)), 0);
    }
    failing->tag_before = table_tag(ctx);
    world_sleep_until(ctx, WRITE_NS);
    failing->began_ns = dm_now(ctx);
    value_of(4, 2, value);
    failing->rc = failing->inserts ? ix_insert(&client, world_key(4, KEYS), value)
                                   : ix_update(&client, world_key(4, KEYS), value);
    failing->ended_ns = dm_now(ctx);
    WORLD_CHECK_EQ(dm_sleep(ctx, LATER_NS), 0);
    failing->seen = write_seen(&client, 4);
    value_of(5, 2, value);
    WORLD_CHECK_EQ(ix_update(&client, world_key(5, KEYS), value), 0); /* its answer has what the servers counted */
    failing->tag_after = table_tag(ctx);
    memcpy(failing->counts, ix_counts(&client), sizeof(failing->counts));
    ix_detach(&client);
}

static void meanwhile_entry(struct dm_ctx *ctx, void *arg) {
    struct failing *failing = arg;
    if (failing->meanwhile) {
        failing->meanwhile(ctx, failing);
    }
}

/* The write must be done once, and its value be there. */
static struct failing failing_run(const char *faults, const char *probe_us, struct failing failing) {
    struct world_config config = failing_config(faults);
    struct world world;
    config.params[2].value = probe_us;
    failing.world = &world;
    protocol_both(&world, config, failing_entry, meanwhile_entry, &failing);
    assert_int_equal(failing.rc, 0);
    assert_int_equal(failing.seen, 2);
    dm_fabric_setup(world.fabric);
    assert_int_equal(world_verify(&world).keys, KEYS);
    world_close(&world);
    return failing;
}

/* Marks of items land 150 us after they were posted; an item's own write is waited for. */
#define LATE "delay:p=1,by=150us,kind=write"

static void a_write_whose_marks_land_late_is_found_to_be_done(void **state) {
    (void)state;
    struct failing quiet = failing_run(LATE, "10", (struct failing){.inserts = true});
    unsigned applied = 0;
    for (uint64_t before_ns = 0; before_ns < 3000; before_ns += 200) {
        char faults[120];
        snprintf(faults, sizeof(faults), LATE ";fail:node=1,at=%lluns,for=2us",
                 (unsigned long long)(quiet.ended_ns - before_ns));
        struct failing failing = failing_run(faults, "10", (struct failing){.inserts = true});
        applied += (unsigned)failing.counts[HSTORE_DOUBT_APPLIED];
        assert_true(failing.counts[HSTORE_HTS_FROM_LIST] == 1);
        assert_true(failing.tag_before != failing.tag_after);
    }
    assert_true(applied > 0);
}

static void a_recovery_from_the_pool_waits_for_marks_that_have_not_landed(void **state) {
    (void)state;
    struct failing quiet = failing_run(LATE, "10", (struct failing){.inserts = true});
    for (uint64_t after_ns = 0; after_ns < 2000; after_ns += 500) {
        char faults[160];
        unsigned long long at = quiet.ended_ns + after_ns;
        snprintf(faults, sizeof(faults), LATE ";fail:node=1,at=%lluns,for=2us;fail:node=2,at=%lluns,for=40us", at, at);
        struct failing failing = failing_run(faults, "10", (struct failing){.inserts = true});
        assert_true(failing.counts[HSTORE_HTS_FROM_POOL] == 1);
    }
}

/* The skip list server fails when it has posted the marks of a batch, and recovers from the hash table, which has not
 * the batch either. Before the batch is shipped again the hash table server fails too. Marks of what was not executed
 * must be taken back, also those that land later. */
static void marks_of_a_batch_that_two_failures_lost_are_taken_back(void **state) {
    (void)state;
    unsigned corrected = 0, redone = 0;
    for (unsigned late = 0; late < 2; late++) {
        const char *delay = late ? LATE ";" : "";
        uint64_t end_ns = failing_run(late ? LATE : "", "10", (struct failing){.inserts = false}).ended_ns;
        for (uint64_t before_ns = 0; before_ns < 5000; before_ns += 200) {
            char faults[160];
            unsigned long long at = end_ns - before_ns;
            snprintf(faults, sizeof(faults), "%sfail:node=2,at=%lluns,for=2us;fail:node=1,at=%lluns,for=2us", delay, at,
                     at + 80000);
            struct failing failing = failing_run(faults, "400", (struct failing){.inserts = false});
            corrected += (unsigned)failing.counts[HSTORE_POOL_CORRECTED];
            redone += (unsigned)failing.counts[HSTORE_DOUBT_REDONE];
        }
    }
    assert_true(corrected > 4);
    assert_true(redone > 4);
}

/* While the server is away the space of the write is used again, by a write that has not been executed yet. */
static void space_reuse(struct dm_ctx *ctx, struct failing *failing) {
    struct maker maker = maker_open(ctx, failing->world);
    world_sleep_until(ctx, WRITE_NS + 60000);
    uint64_t packed = item_find(ctx, failing->world, 4, HSTORE_PENDING);
    item_write(ctx, &maker, packed, 7, 1, HSTORE_PENDING);
}

static void a_client_learns_from_the_item_of_its_own_write_alone_that_it_was_not_done(void **state) {
    (void)state;
    struct world world;
    struct failing failing = {.world = &world, .meanwhile = space_reuse};
    protocol_both(&world, failing_config("fail:node=1,at=1ms,for=150us"), failing_entry, meanwhile_entry, &failing);
    world_close(&world);
    assert_int_equal(failing.rc, 0);
    assert_int_equal(failing.counts[HSTORE_DOUBT_APPLIED], 1);
    assert_int_equal(failing.counts[HSTORE_DOUBT_REDONE], 0);
}

/* ---- what a recovery from the pool believes ---------------------------------------------------------------------- */

/* Key 1 has a later item in force besides the loaded one, which is not marked dead yet, key 2 an older one, and key 3 a
 * later one that is torn. */
static int pool_entry(struct dm_ctx *ctx, void *arg) {
    struct maker maker = maker_open(ctx, arg);
    uint64_t packed = item_find(ctx, arg, 2, HSTORE_STAMP_LOADED);
    item_new(ctx, &maker, 1, 5, 5000);
    item_new(ctx, &maker, 2, 5, 5000);
    item_write(ctx, &maker, packed, 2, 6, 6000);
    packed = item_new(ctx, &maker, 3, 5, 5000);
    maker.words[0] = 1;
    WORLD_CHECK_EQ(dm_write(ctx, dm_addr_add(hstore_unpack(packed), DM_LINE), maker.words, sizeof(uint64_t)), 0);
    return 0;
}

static void pool_reader(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    world_sleep_until(ctx, WRITE_NS);
    WORLD_CHECK_EQ(write_seen(&client, 1), 5);
    WORLD_CHECK_EQ(write_seen(&client, 2), 6);
    WORLD_CHECK_EQ(write_seen(&client, 3), 0);
    ix_detach(&client);
}

static void of_two_items_in_force_the_later_one_that_is_whole_is_recovered(void **state) {
    (void)state;
    struct world_config config = failing_config("fail:node=1,at=100us,for=20us;fail:node=2,at=100us,for=40us");
    struct world world;
    struct world_pairs pairs;
    world_open(&world, &config);
    world_load(&world, world_pairs(&pairs, KEYS, 1, VALUE));
    world_do(&world, 0, pool_entry, &world);
    dm_fabric_measure(world.fabric);
    world_spawn(&world, 0, 0, pool_reader, &world);
    world_run(&world);
    world_close(&world);
}

/* ---- pages, and tags -----------------------------------------------------------------------------------------------
 */

enum { DENSE_KEYS = 3 * (int)HSTORE_PAIRS_MAX + 10 };

static void dense_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    char value[VALUE];
    uint32_t tags[3];
    for (unsigned failures = 0; failures < 3; failures++) {
        world_sleep_until(ctx, failures * 5 * WRITE_NS + 3 * WRITE_NS);
        for (uint64_t key = 0; key < DENSE_KEYS && failures == 2; key++) {
            WORLD_CHECK_EQ(ix_get(&client, key, value), 0);
            WORLD_CHECK_EQ(world_write_of(key, value, VALUE), 0);
        }
        tags[failures] = table_tag(ctx);
    }
    WORLD_CHECK(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
    ix_detach(&client);
}

/* Keys that follow one another, so that the last one of a page is next to the first one of the following page. */
static void a_table_that_is_read_in_pages_has_every_key_and_each_has_a_tag_of_its_own(void **state) {
    (void)state;
    struct world_config config = failing_config("fail:node=1,at=4ms,for=20us;fail:node=1,at=9ms,for=20us");
    struct world world;
    struct world_pairs pairs;
    world_begin(&world, &config, world_dense(&pairs, DENSE_KEYS, VALUE));
    world_spawn(&world, 0, 0, dense_entry, &world);
    world_run(&world);
    dm_fabric_setup(world.fabric);
    assert_int_equal(world_verify(&world).keys, DENSE_KEYS);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_that_comes_again_or_from_a_table_that_failed_changes_nothing),
        cmocka_unit_test(what_the_list_reports_to_a_recovering_table_includes_every_batch_that_was_logged),
        cmocka_unit_test(what_the_table_reports_to_a_recovering_list_includes_every_batch_that_was_logged),
        cmocka_unit_test(a_repeated_delete_is_executed_once),
        cmocka_unit_test(between_slow_writes_the_log_of_the_list_is_applied_before_a_scan_needs_it),
        cmocka_unit_test(a_copy_of_the_list_has_what_is_only_in_its_log),
        cmocka_unit_test(a_get_of_an_item_that_is_being_written_waits_until_it_is_whole),
        cmocka_unit_test(an_item_of_another_write_than_the_list_named_is_not_believed),
        cmocka_unit_test(a_write_whose_marks_land_late_is_found_to_be_done),
        cmocka_unit_test(a_recovery_from_the_pool_waits_for_marks_that_have_not_landed),
        cmocka_unit_test(marks_of_a_batch_that_two_failures_lost_are_taken_back),
        cmocka_unit_test(a_client_learns_from_the_item_of_its_own_write_alone_that_it_was_not_done),
        cmocka_unit_test(of_two_items_in_force_the_later_one_that_is_whole_is_recovered),
        cmocka_unit_test(a_table_that_is_read_in_pages_has_every_key_and_each_has_a_tag_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
