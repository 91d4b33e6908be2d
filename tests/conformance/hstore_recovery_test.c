/* SPDX-License-Identifier: Apache-2.0
 *
 * How long HStore's index servers take to recover.
 */
#include "conformance/index_world.h"
#include "indexes/hstore/hstore.h"

extern const struct ix_ops ix_ops_hstore;

struct recovering {
    struct world *world;
    uint64_t keys;
    uint64_t hts_ns, sls_ns;
    uint64_t reads_ns;
};

static void recovering_entry(struct dm_ctx *ctx, void *arg) {
    struct recovering *recovering = arg;
    struct ix_client client = world_attach(recovering->world, 0, ctx, NULL);
    char value[32];
    for (unsigned i = 0; i < 20; i++) {
        world_value(i, 1, value, 32);
        WORLD_CHECK_EQ(ix_update(&client, world_key(i, recovering->keys), value), 0);
    }
    recovering->hts_ns = ix_counts(&client)[HSTORE_HTS_RECOVERY_NS];
    recovering->sls_ns = ix_counts(&client)[HSTORE_SLS_RECOVERY_NS];
    ix_detach(&client);
}

/* Reads for `reads_ns`, whatever becomes of the reads. */
static void reading_entry(struct dm_ctx *ctx, void *arg) {
    struct recovering *recovering = arg;
    struct ix_client client = world_attach(recovering->world, 0, ctx, NULL);
    char value[32];
    for (uint64_t since_ns = dm_now(ctx); dm_now(ctx) < since_ns + recovering->reads_ns;) {
        ix_get(&client, world_key(1, recovering->keys), value);
    }
    recovering->sls_ns = ix_counts(&client)[HSTORE_SLS_RECOVERY_NS];
    ix_detach(&client);
}

static void recovery_open(struct world *world, uint64_t keys, const char *faults, const char *recover_batch) {
    struct world_config config = world_least(&ix_ops_hstore);
    struct world_pairs pairs;
    config.mns = 2;
    config.value_bytes = 32;
    config.cache_bytes = 0;
    config.expected_keys = keys;
    config.profile =
        "cx6-100g-fast-client"; /* a recovering list posts a read for each key: not what is compared here */
    config.settings[0] = (struct dm_setting){"faults", faults};
    /* Small, so that the detection of the failure hardly counts: a batch that is being shipped ends only then. */
    config.settings[1] = (struct dm_setting){"peer_timeout", "20us"};
    config.params[0] = (struct dm_setting){"probe_us", "20"};
    config.params[1] = (struct dm_setting){"recover_batch", recover_batch};
    world_begin(world, &config, world_pairs(&pairs, keys, 1, config.value_bytes));
}

static struct recovering recovery_with(uint64_t keys, const char *faults, const char *recover_batch) {
    struct world world;
    recovery_open(&world, keys, faults, recover_batch);
    struct recovering recovering = {.world = &world, .keys = keys};
    world_spawn(&world, 0, 0, recovering_entry, &recovering);
    world_run(&world);
    assert_int_equal(world_verify(&world).keys, keys);
    world_close(&world);
    return recovering;
}

static struct recovering recovery_of(uint64_t keys, const char *faults) {
    return recovery_with(keys, faults, "64");
}

static void more_items_a_batch_make_a_list_recover_faster(void **state) {
    (void)state;
    const char *faults = "fail:node=3,at=20us,for=50us";
    uint64_t one = recovery_with(2000, faults, "1").sls_ns, four = recovery_with(2000, faults, "4").sls_ns;
    uint64_t many = recovery_with(2000, faults, "256").sls_ns;
    assert_true(one > 2 * four);
    assert_true(four > many);
}

static void recovery_takes_a_time_that_grows_with_the_keys(void **state) {
    (void)state;
    struct recovering small = recovery_of(5000, "fail:node=2,at=20us,for=50us");
    struct recovering large = recovery_of(20000, "fail:node=2,at=20us,for=50us");
    assert_int_equal(small.sls_ns, 0);
    assert_in_range(large.hts_ns, 3 * small.hts_ns, 5 * small.hts_ns);
    small = recovery_of(5000, "fail:node=3,at=20us,for=50us");
    struct recovering list = recovery_of(20000, "fail:node=3,at=20us,for=50us");
    assert_int_equal(small.hts_ns, 0);
    assert_in_range(list.sls_ns, 3 * small.sls_ns, 6 * small.sls_ns);
    /* Keys are read from the pool and sorted, but each is appended without a search. */
    assert_in_range(list.sls_ns, large.hts_ns, 3 * large.hts_ns);
}

/* The rebuild of the list is abandoned with the fabric; what it has gathered is freed with the server. */
static void a_run_may_end_while_a_list_recovers(void **state) {
    (void)state;
    const char *faults = "fail:node=3,at=20us,for=50us";
    const uint64_t keys = 20000, end_ns = 200000;
    assert_true(recovery_of(keys, faults).sls_ns > end_ns);
    struct world world;
    recovery_open(&world, keys, faults, "64");
    struct recovering recovering = {.world = &world, .keys = keys, .reads_ns = end_ns};
    world_spawn(&world, 0, 0, reading_entry, &recovering);
    world_run(&world);
    assert_int_equal(recovering.sls_ns, 0);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_items_a_batch_make_a_list_recover_faster),
        cmocka_unit_test(recovery_takes_a_time_that_grows_with_the_keys),
        cmocka_unit_test(a_run_may_end_while_a_list_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
