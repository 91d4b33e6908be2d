/* SPDX-License-Identifier: Apache-2.0
 *
 * One client writes key after key, and now and then one of its verbs lands tens of microseconds late. Two others, on
 * its compute node and on another one, follow: they read the key all the time, update it when it is there, and insert
 * it when it is gone. Once a state of a key has been seen no read that begins later may see an earlier one. So every
 * window between two verbs of an insert, update or delete, with its splits and merges, is long enough for complete
 * operations of others. late_verb_test.c makes each verb late in turn, but its judge knows nothing of a key while it is
 * written; here several clients write one key at once.
 */
#include "common/compiler.h"
#include "conformance/index_world.h"
#include "conformance/transport_choice.h"

enum { KEYS = 120, LOADED = 12, ROUNDS = 30, FOLLOWERS = 2, SEEDS = 48 };

/* The states of a key, in this order. */
enum state { ABSENT, INSERTED, UPDATED, REMOVED, AGAIN, GONE, STATES };

struct late {
    struct world *world;
    unsigned pattern;                    /* of keys */
    unsigned round;                      /* of the writer */
    uint64_t number;                     /* the key of this round */
    enum state seen;                     /* the latest state that a client has seen, or an operation has returned */
    unsigned removals;                   /* that have begun */
    unsigned inserts;                    /* that the followers have done in this round */
    unsigned writing;                    /* followers that are in a write */
    unsigned extra_tries, extra_inserts; /* of a second key, which both followers insert */
    bool is_over;
    unsigned errors, reads[STATES];
};

/* Keys of one order: neighbours, in groups whose paths separate in the middle, or spread over all. */
static uint64_t key_at(unsigned pattern, uint64_t number) {
    return pattern == 0   ? 8 * number
           : pattern == 1 ? (number >> 4) << 56 | (number >> 2 & 3) << 30 | (number & 3) << 12
                          : world_key(number, KEYS);
}

static uint64_t key_of(const struct late *late, uint64_t number) {
    return key_at(late->pattern, number);
}

static uint64_t pattern_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    const unsigned *pattern = pairs->arg;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = key_at(*pattern, LOADED * (first + i));
    }
    return n;
}

static void pattern_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    (void)pairs;
    memcpy(value, &key, sizeof(key));
}

static bool may_remove(const struct late *late) {
    return late->world->config.ops->caps & IX_CAP_DELETE;
}

static void saw(struct late *late, unsigned round, enum state state) {
    if (round == late->round && state > late->seen) {
        late->seen = state;
    }
}

static enum state state_of(const struct late *late, uint64_t number, int rc, const void *value, enum state before) {
    if (rc == DM_NOT_FOUND) {
        return before >= AGAIN ? GONE : before > ABSENT ? REMOVED : ABSENT;
    }
    uint64_t write = world_write_of(number, value, late->world->config.value_bytes);
    return write == 1 ? INSERTED : write == 2 ? UPDATED : write == 3 ? AGAIN : STATES;
}

/* Reads the key of the round once. */
static enum state look(struct late *late, struct ix_client *client) {
    char value[WORLD_VALUE_MAX];
    unsigned round = late->round;
    uint64_t number = late->number;
    enum state before = late->seen;
    int rc = ix_get(client, key_of(late, number), value);
    enum state state = state_of(late, number, rc, value, before);
    bool is_early = (state == REMOVED && late->removals == 0) || (state == GONE && late->removals < 2);
    if (round != late->round) {
        return ABSENT;
    }
    late->errors += rc < 0 || state < before || state == STATES || is_early;
    late->reads[state < STATES ? state : ABSENT]++;
    saw(late, round, state);
    return state;
}

static void wait_for(struct dm_ctx *ctx, const struct late *late, enum state state) {
    while (late->seen < state || late->writing > 0 || late->extra_tries < FOLLOWERS) {
        WORLD_CHECK_EQ(dm_sleep(ctx, 1000), 0);
    }
    WORLD_CHECK_EQ(dm_sleep(ctx, 40000), 0); /* what was late has landed */
}

static void key_remove(struct late *late, struct ix_client *client, enum state state) {
    late->removals++;
    late->errors += ix_remove(client, key_of(late, late->number)) != 0;
    saw(late, late->round, state);
}

/* Neighbours one by one, so that nodes fill. */
static void round_begin(struct late *late, unsigned round) {
    late->number = round + round / (LOADED - 1) + 1;
    late->seen = ABSENT;
    late->removals = late->inserts = late->extra_tries = late->extra_inserts = 0;
    late->round = round;
}

static void writer(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct ix_client client = world_attach(late->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_value(late->number, 1, value, late->world->config.value_bytes);
        late->errors += ix_insert(&client, key_of(late, late->number), value) != 0;
        saw(late, round, INSERTED);
        wait_for(ctx, late, UPDATED);
        late->errors += look(late, &client) != UPDATED || late->extra_inserts != round % 2;
        if (may_remove(late) && round % 5 != 0) {
            key_remove(late, &client, REMOVED);
            wait_for(ctx, late, AGAIN);
            late->errors += look(late, &client) != AGAIN || late->inserts != 1;
            if (round % 5 != 1) {
                key_remove(late, &client, GONE);
                wait_for(ctx, late, GONE);
            }
        }
        round_begin(late, round + 1);
    }
    late->is_over = true;
    ix_detach(&client);
}

/* A key that stays is never missed. */
static void stay_look(struct late *late, struct ix_client *client, struct dm_ctx *ctx) {
    char value[WORLD_VALUE_MAX];
    uint64_t number = LOADED * dm_prng_below(dm_random(ctx), KEYS / LOADED);
    late->errors += ix_get(client, key_of(late, number), value) != 0;
}

static void key_insert(struct late *late, struct ix_client *client) {
    char value[WORLD_VALUE_MAX];
    unsigned round = late->round;
    world_value(late->number, 3, value, late->world->config.value_bytes);
    late->writing++;
    int rc = ix_insert(client, key_of(late, late->number), value);
    late->writing--;
    late->errors += rc < 0;
    late->inserts += rc == 0;
    saw(late, round, AGAIN);
}

/* In every second round: inserts a second key at some moment of the writer's insert: its node may be in a split. */
static void extra_insert(struct late *late, struct ix_client *client, struct dm_ctx *ctx) {
    char value[WORLD_VALUE_MAX];
    uint64_t key = key_of(late, late->number) + 1;
    late->writing++;
    WORLD_CHECK_EQ(dm_sleep(ctx, 1 + dm_prng_below(dm_random(ctx), 40000)), 0);
    world_value(late->number, 1, value, late->world->config.value_bytes);
    int rc = ix_insert(client, key, value);
    late->errors += rc < 0;
    late->extra_inserts += rc == 0;
    late->errors += ix_get(client, key, value) != 0;
    late->writing--;
}

/* The first follower updates the key as soon as it is there, without having read it. Both insert it again as soon as it
 * has been removed, and one of them succeeds. The second one also looks for an absent key, so that it reads
 * nodes that it has copies of. */
static void follow(struct dm_ctx *ctx, struct late *late, unsigned cn, bool updates) {
    struct ix_client client = world_attach(late->world, cn, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t number = 0; number < KEYS; number += LOADED) {
        WORLD_CHECK_EQ(ix_get(&client, key_of(late, number), value), 0);
    }
    unsigned extra = ROUNDS; /* the last round in which this one has inserted a second key */
    while (!late->is_over) {
        unsigned round = late->round;
        if (extra != round) {
            extra = round;
            if (round % 2 == 1) {
                extra_insert(late, &client, ctx);
            }
            late->extra_tries++;
        }
        if (updates && late->seen < UPDATED) {
            world_value(late->number, 2, value, late->world->config.value_bytes);
            late->writing++;
            int rc = ix_update(&client, key_of(late, late->number), value);
            late->writing--;
            late->errors += rc < 0;
            saw(late, round, rc == 0 ? UPDATED : ABSENT);
        }
        enum state state = look(late, &client);
        if (state == REMOVED && late->removals == 1 && late->inserts == 0) {
            key_insert(late, &client);
        }
        stay_look(late, &client, ctx);
        if (!updates) {
            late->errors += ix_get(&client, key_of(late, late->number) ^ UINT64_C(1) << 29, value) != DM_NOT_FOUND;
        }
        WORLD_CHECK_EQ(dm_sleep(ctx, updates ? 500 : 200), 0);
    }
    ix_detach(&client);
}

static void far_follower(struct dm_ctx *ctx, void *arg) {
    follow(ctx, arg, 1, true);
}

static void near_follower(struct dm_ctx *ctx, void *arg) {
    follow(ctx, arg, 0, false);
}

static void late_run(const struct ix_ops *ops, uint64_t seed) {
    struct world_config config = world_least(ops);
    struct world world;
    struct late late = {.world = &world, .pattern = (unsigned)(seed % 3)};
    round_begin(&late, 0);
    struct ix_pairs pairs = {
        .count = KEYS / LOADED, .keys = pattern_keys, .value = pattern_value, .arg = (void *)(uintptr_t)&late.pattern};
    static const char *const rules[] = {"delay:client=0,p=0.15,by=30us", "delay:client=0,p=0.3,by=30us,node=0",
                                        "delay:client=0,p=0.3,by=30us,node=1", "delay:p=0.1,by=30us"};
    static const uint64_t caches[] = {4 << 20, 1500, 16, 0};
    config.tiny = true;
    config.mns = 2;
    config.cns = 2;
    config.clients = 3;
    config.seed = seed;
    config.cache_bytes = caches[seed / 4 % DM_ARRAY_LEN(caches)];
    config.expected_keys = KEYS;
    config.settings[0] = (struct dm_setting){"faults", rules[seed % DM_ARRAY_LEN(rules)]};
    world_begin(&world, &config, &pairs);
    world_spawn(&world, 0, 0, writer, &late);
    world_spawn(&world, 1, 0, far_follower, &late);
    world_spawn(&world, 0, 1, near_follower, &late);
    world_run(&world);
    dm_fabric_setup(world.fabric);
    world_verify(&world);
    world_close(&world);
    if (late.errors > 0) {
        fail_msg("%s, seed %llu: %u reads or writes are wrong", ops->name, (unsigned long long)seed, late.errors);
    }
    assert_true(late.reads[UPDATED] > 0);
}

static void no_late_verb_of_a_write_lets_others_see_an_earlier_state(void **state) {
    const struct ix_ops *ops = *state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        late_run(ops, seed);
    }
}

int main(void) {
    static struct CMUnitTest tests[64];
    size_t count = 0;
    for (const struct ix_ops *const *ops = ix_all(); *ops && count < DM_ARRAY_LEN(tests); ops++) {
        if ((*ops)->caps & IX_CAP_INSERT && !((*ops)->caps & IX_CAP_NO_DATA)) {
            tests[count++] = (struct CMUnitTest){.name = (*ops)->name,
                                                 .test_func = no_late_verb_of_a_write_lets_others_see_an_earlier_state,
                                                 .initial_state = (void *)(uintptr_t)*ops};
        }
    }
    return test_run("late", tests, count);
}
