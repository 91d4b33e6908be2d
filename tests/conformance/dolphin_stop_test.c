/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of Dolphin's structure that are cut short: a client inserts and removes keys of a few prefixes, and before
 * each verb of each kind of change it stops for good, or that verb completes in error. Whatever is left behind, the
 * self-check accepts it and counts every key that can be read once, no other client gets a wrong answer, and keys of
 * another prefix are found. What is half done may keep others waiting, until the limit of retries; no further key waits
 * after that, unless a write was in error while a node grew: then others may change the smaller node, which lacks a
 * leaf.
 */
#include "conformance/quiet.h"
#include "indexes/dolphin/dolphin.h"

#include "common/compiler.h"

extern const struct ix_ops ix_ops_dolphin;

enum { PREFIXES = 3, PREFIX_KEYS = 48, KEYS = PREFIXES * PREFIX_KEYS, FAR_KEYS = 8, STEPS = 3 * KEYS };
enum { WRITER_NS = 100000000, NEAR = 8, RETRIES = 40, EACH = 2, ERROR_SEEDS = 2, AGAIN = 6 };

enum knowledge { ABSENT, PRESENT, UNKNOWN };

struct step {
    unsigned number; /* of the key */
    bool removes;
};

struct cut {
    struct world world;
    enum knowledge keys[KEYS];
    bool is_read[KEYS];     /* by the last get */
    bool is_answered[KEYS]; /* by the first pass of gets */
    struct step steps[STEPS];
    unsigned step_count, target; /* steps behind the target are not taken */
    uint64_t verbs[STEPS + 1];   /* that the writer had sent before each step */
    uint64_t counts[STEPS + 1][DOLPHIN_COUNTER_COUNT];
    struct ix_client writer;
    bool has_ended, may_spread;
    char wrong[160]; /* the first thing that was wrong */
};

#define CUT_WRONG(cut, ...)                                                                                            \
    ((cut)->wrong[0] ? (void)0 : (void)snprintf((cut)->wrong, sizeof((cut)->wrong), __VA_ARGS__))

/* Dense keys of prefixes that separate at two depths, and single keys at one more, so that ordinary nodes grow too. */
static uint64_t key_of(unsigned number) {
    static const uint64_t prefixes[PREFIXES] = {UINT64_C(0x1122334455667700), UINT64_C(0x1122334455998800), 0};
    unsigned prefix = number / PREFIX_KEYS, n = number % PREFIX_KEYS;
    return prefix < PREFIXES - 1 ? prefixes[prefix] | n * 3 : UINT64_C(0x3300000000000000) | (uint64_t)n * 5 << 40;
}

static uint64_t far_key(unsigned n) {
    return UINT64_C(0x7700000000000000) + n;
}

static uint64_t far_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    (void)pairs;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = far_key((unsigned)(first + i));
    }
    return n;
}

static void far_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    (void)pairs;
    memcpy(value, &key, sizeof(key));
}

static const struct ix_pairs far_pairs = {.count = FAR_KEYS, .keys = far_keys, .value = far_value};

/* ---- the clients ------------------------------------------------------------------------------------------------- */

/* One insert or removal, whose outcome must agree with what is known of the key, or be one of these failures. */
static int key_change(struct cut *cut, struct ix_client *client, struct step step) {
    enum knowledge before = cut->keys[step.number];
    uint64_t key = key_of(step.number);
    cut->keys[step.number] = UNKNOWN;
    int rc = step.removes ? ix_remove(client, key) : ix_insert(client, key, &key);
    int refusal = step.removes ? DM_NOT_FOUND : DM_EXISTS;
    enum knowledge needed = step.removes ? PRESENT : ABSENT;
    if (rc == 0 || rc == refusal) {
        if (before != UNKNOWN && (rc == 0) != (before == needed)) {
            CUT_WRONG(cut, "%s of key %u: %s", step.removes ? "removal" : "insert", step.number, dm_code_text(rc));
        }
        cut->keys[step.number] = step.removes ? ABSENT : PRESENT;
    } else if (rc != DM_ERR_RETRY_LIMIT && rc != DM_ERR_IO && rc != DM_ERR_STOPPED) {
        CUT_WRONG(cut, "%s of key %u: %s", step.removes ? "removal" : "insert", step.number, dm_code_text(rc));
    }
    return rc;
}

static void key_get(struct cut *cut, struct ix_client *client, unsigned number, bool is_first) {
    uint64_t value = 0;
    int rc = ix_get(client, key_of(number), &value);
    enum knowledge known = cut->keys[number];
    cut->is_read[number] = rc == 0;
    cut->is_answered[number] = is_first ? rc >= 0 : cut->is_answered[number];
    bool is_right = rc == 0 ? known != ABSENT && value == key_of(number)
                    : rc == DM_NOT_FOUND
                        ? known != PRESENT
                        : rc == DM_ERR_RETRY_LIMIT && (is_first || cut->may_spread || !cut->is_answered[number]);
    if (!is_right) {
        CUT_WRONG(cut, "get of key %u, which is %s: %s", number,
                  known == PRESENT  ? "there"
                  : known == ABSENT ? "absent"
                                    : "unknown",
                  dm_code_text(rc));
    }
}

static void writer_run(struct dm_ctx *ctx, void *arg) {
    struct cut *cut = arg;
    struct dm_account account = {0};
    dm_account_use(ctx, &account); /* rules of faults count the verbs of attaching, too */
    world_attach_into(&cut->world, 0, ctx, &account, &cut->writer);
    for (unsigned i = 0; i < cut->step_count && i <= cut->target; i++) {
        int rc = key_change(cut, &cut->writer, cut->steps[i]);
        cut->verbs[i + 1] = 0;
        for (unsigned kind = 0; kind < DM_VERB_KIND_COUNT; kind++) {
            cut->verbs[i + 1] += account.verbs[kind];
        }
        memcpy(cut->counts[i + 1], ix_counts(&cut->writer), sizeof(cut->counts[0]));
        if (rc < 0) {
            break;
        }
    }
    dm_account_use(ctx, NULL);
    cut->has_ended = true;
}

/* Reads all keys after the writer has ended or stopped, changes some near the target, and reads all again. */
static void rival_run(struct dm_ctx *ctx, void *arg) {
    struct cut *cut = arg;
    struct ix_client client = world_attach(&cut->world, 1, ctx, NULL);
    unsigned center = cut->steps[cut->target < cut->step_count ? cut->target : 0].number;
    while (!cut->has_ended && dm_now(ctx) < WRITER_NS) {
        dm_sleep(ctx, WRITER_NS / 100);
    }
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned number = 0; number < KEYS; number++) {
            key_get(cut, &client, number, pass == 0);
        }
        for (unsigned n = 0; n < FAR_KEYS; n++) {
            uint64_t value = 0;
            WORLD_CHECK_EQ(ix_get(&client, far_key(n), &value), 0);
            WORLD_CHECK_EQ(value, far_key(n));
        }
        for (unsigned i = 0; i < 4 * NEAR && pass == 0; i++) {
            /* The leaves beside what was cut short become empty, then full. */
            unsigned number = (center + KEYS + NEAR - i % (2 * NEAR)) % KEYS;
            bool removes = i < 2 * NEAR;
            if (cut->keys[number] != (removes ? ABSENT : PRESENT)) {
                key_change(cut, &client, (struct step){.number = number, .removes = removes});
            }
        }
    }
    ix_detach(&client);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void steps_add(struct cut *cut, struct dm_prng *prng, unsigned first, unsigned count, bool removes) {
    unsigned order[KEYS];
    for (unsigned i = 0; i < count; i++) {
        order[i] = first + i;
    }
    for (unsigned i = count; prng && i > 1; i--) {
        unsigned other = (unsigned)dm_prng_below(prng, i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
    for (unsigned i = 0; i < count; i++) {
        cut->steps[cut->step_count++] = (struct step){.number = order[i], .removes = removes};
    }
}

/* Inserts, removals in random order and upwards, so that leaves at either end of a node become empty first. */
static void steps_make(struct cut *cut) {
    struct dm_prng prng = dm_prng_stream(1, "dolphin stops", 0);
    steps_add(cut, &prng, 0, KEYS, false);
    steps_add(cut, &prng, 0, PREFIX_KEYS, true);
    steps_add(cut, &prng, 0, PREFIX_KEYS, false);
    for (unsigned i = 0; i < AGAIN; i++) {
        /* Deleted entries fill the leaf, until it is compacted. */
        steps_add(cut, NULL, PREFIX_KEYS + 1, 2, true);
        steps_add(cut, NULL, PREFIX_KEYS + 1, 2, false);
    }
    steps_add(cut, NULL, PREFIX_KEYS, PREFIX_KEYS, true);
    steps_add(cut, &prng, 2 * PREFIX_KEYS, PREFIX_KEYS, true);
}

static void verify_judge(struct cut *cut) {
    struct world_step step = {.world = &cut->world, .cn = 1, .report = {.interrupted = true}};
    uint64_t least = FAR_KEYS, most = FAR_KEYS;
    world_do(&cut->world, 1, world_verify_entry, &step);
    for (unsigned number = 0; number < KEYS; number++) {
        least += cut->is_read[number];
        most += cut->keys[number] != ABSENT;
    }
    if (step.report.broken > 0) {
        CUT_WRONG(cut, "verify: %.120s", step.report.first_problem);
    } else if (step.report.keys < least || step.report.keys > most) {
        CUT_WRONG(cut, "verify counts %u keys, not %u to %u", (unsigned)step.report.keys, (unsigned)least,
                  (unsigned)most);
    }
}

static void cut_run(struct cut *cut, unsigned mns, uint64_t seed, unsigned target, const char *fault, bool may_spread) {
    struct world_config config = world_least(&ix_ops_dolphin);
    memset(cut, 0, sizeof(*cut));
    steps_make(cut);
    cut->target = target;
    cut->may_spread = may_spread;
    config.mns = mns;
    config.cns = 2;
    config.clients = 2;
    config.seed = seed;
    config.retry_limit = RETRIES;
    config.params[0] = (struct dm_setting){"leaf_bytes", "128"};
    config.settings[0] = (struct dm_setting){"faults", fault};
    world_open(&cut->world, &config);
    world_load(&cut->world, &far_pairs);
    dm_fabric_measure(cut->world.fabric);
    unsigned cn = dm_first_cn(&cut->world.topology);
    assert_int_equal(dm_spawn(cut->world.fabric, cn, 0, writer_run, cut), 0);
    assert_int_equal(dm_spawn(cut->world.fabric, cn + 1, 0, rival_run, cut), 0);
    world_run(&cut->world);
    verify_judge(cut);
    ix_detach(&cut->writer);
    world_close(&cut->world);
    if (cut->wrong[0]) {
        fail_msg("%u memory nodes, seed %u, step %u, '%s': %s", mns, (unsigned)seed, target, fault, cut->wrong);
    }
}

/* Cuts short a step at each of its verbs; returns how many runs that were. */
static unsigned step_cut(const struct cut *whole, unsigned mns, unsigned target, const char *rule, unsigned seeds) {
    static struct cut cut;
    const uint64_t *before = whole->counts[target], *after = whole->counts[target + 1];
    bool grows = after[DOLPHIN_GROW_16] + after[DOLPHIN_GROW_48] > before[DOLPHIN_GROW_16] + before[DOLPHIN_GROW_48];
    unsigned runs = 0;
    for (uint64_t verb = whole->verbs[target] + 1; verb <= whole->verbs[target + 1]; verb++) {
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            char fault[64];
            snprintf(fault, sizeof(fault), rule, (unsigned)verb);
            cut_run(&cut, mns, seed, target, fault, grows && strncmp(rule, "error", 5) == 0);
            runs++;
        }
    }
    return runs;
}

/* Cuts short the first and the last steps in which each of these counters rises. */
static unsigned all_cut(unsigned mns, const char *rule, unsigned seeds) {
    static const enum dolphin_counter changes[] = {
        DOLPHIN_NEW_LEAF,        DOLPHIN_PATH_SPLIT,   DOLPHIN_LEAF_SPLIT_FIRST,
        DOLPHIN_LEAF_SPLIT_MORE, DOLPHIN_LEAF_COMPACT, DOLPHIN_LEAF_MERGE,
        DOLPHIN_MERGE_RANGE,     DOLPHIN_GROW_16,      DOLPHIN_GROW_48};
    static struct cut whole;
    unsigned runs = 0;
    cut_run(&whole, mns, 1, STEPS, "", false);
    for (unsigned c = 0; c < DM_ARRAY_LEN(changes); c++) {
        unsigned found[STEPS], count = 0;
        for (unsigned i = 0; i < whole.step_count; i++) {
            if (whole.counts[i + 1][changes[c]] > whole.counts[i][changes[c]]) {
                found[count++] = i;
            }
        }
        if (count == 0) {
            fail_msg("no step with %s", ix_ops_dolphin.counters[changes[c]].name);
        }
        for (unsigned n = 0; n < count; n++) {
            if (n < EACH || n >= count - EACH) {
                runs += step_cut(&whole, mns, found[n], rule, seeds);
            }
        }
    }
    return runs;
}

static void a_client_may_stop_before_any_verb_of_a_change(void **state) {
    (void)state;
    for (unsigned mns = 1; mns <= 3; mns += 2) {
        print_message("%u memory nodes: %u runs\n", mns, all_cut(mns, "stop:client=0,verb=%u", 1));
    }
}

static void any_verb_of_a_change_may_be_in_error(void **state) {
    (void)state;
    for (unsigned mns = 1; mns <= 3; mns += 2) {
        print_message("%u memory nodes: %u runs\n", mns, all_cut(mns, "error:client=0,verb=%u", ERROR_SEEDS));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_may_stop_before_any_verb_of_a_change),
        cmocka_unit_test(any_verb_of_a_change_may_be_in_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
