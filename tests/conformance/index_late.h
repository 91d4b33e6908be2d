/* SPDX-License-Identifier: Apache-2.0
 *
 * One verb of one write at a time is late, at every moment of that write: a client inserts and removes keys, so that
 * the structure grows, splits and shrinks; of the steps that took the most verbs, each verb in turn arrives late
 * (those to other nodes do not wait for it), or the client pauses before it, in the middle of a batch, too, or it
 * stops there for good. Meanwhile others read, scan and write near that key; after a stop for good they only read.
 * What each of them sees is compared with a reference that only judges keys which no operation was changing: those
 * must be as they are, whatever is still on the network.
 */
#ifndef DM_TESTS_INDEX_LATE_H
#define DM_TESTS_INDEX_LATE_H

#include "conformance/index_world.h"

enum { LATE_KEYS = 96, LATE_CLASSES = 3, LATE_NEAR = 12, LATE_TARGETS = 12, LATE_CLIENTS = 4, LATE_STEPS = 200 };
enum { LATE_UPDATES = 8, LATE_PLAIN = 3 /* targets beside the longest steps: an insert, an update, a removal */ };
enum { LATE_BY_US = 60, LATE_IDLE_NS = 8000, LATE_VERBS_MAX = 40, LATE_TAIL_US = 20, LATE_END_NS = 100000000 };

struct late_key {
    bool present, busy;
    uint64_t write;   /* the number of the value that it has */
    uint64_t changes; /* raised when a write of it begins and when it ends */
};

struct late_step {
    unsigned number; /* of the key */
    bool removes, updates;
};

/* One run. A run without a late verb counts the verbs of each step. */
struct late {
    struct world world;
    struct late_key keys[LATE_KEYS];
    struct late_step steps[LATE_STEPS];
    uint64_t verbs[LATE_STEPS + 1]; /* that the writer had sent before each step */
    unsigned step_count, target;    /* a target behind the last step: none */
    unsigned loaded;                /* every so many keys are loaded */
    uint64_t target_ns;             /* how long the target lasted */
    bool watched, ended;
    bool for_good; /* the writer stops and never continues */
    struct ix_client writer;
    unsigned running; /* clients that have not ended yet */
    char wrong[200];  /* the first thing that was wrong */
};

#define LATE_WRONG(late, ...)                                                                                          \
    ((late)->wrong[0] ? (void)0 : (void)snprintf((late)->wrong, sizeof((late)->wrong), __VA_ARGS__))

/* ---- operations that are judged ---------------------------------------------------------------------------------- */

static inline void late_get(struct late *late, struct ix_client *client, unsigned number) {
    struct late_key before = late->keys[number];
    unsigned char value[WORLD_VALUE_MAX];
    int rc = ix_get(client, world_key(number, LATE_KEYS), value);
    uint64_t write = rc == 0 ? world_write_of(number, value, client->value_bytes) : 0;
    if (rc < 0 || write == UINT64_MAX) {
        LATE_WRONG(late, "get of key %u: %s", number, rc < 0 ? dm_code_text(rc) : "a value that was never written");
    } else if (!before.busy && before.changes == late->keys[number].changes &&
               ((rc == 0) != before.present || (rc == 0 && write != before.write))) {
        LATE_WRONG(late, "get of key %u: %s, write %u; it was %s, write %u", number, rc == 0 ? "found" : "absent",
                   (unsigned)write, before.present ? "there" : "absent", (unsigned)before.write);
    }
}

static inline void late_scan(struct late *late, struct ix_client *client, unsigned first, uint32_t count) {
    struct late_key before[LATE_KEYS];
    uint64_t keys[LATE_KEYS];
    unsigned char *values = malloc((size_t)LATE_KEYS * client->value_bytes);
    bool seen[LATE_KEYS] = {false};
    uint32_t found = 0;
    memcpy(before, late->keys, sizeof(before));
    int rc = ix_scan(client, world_key(first, LATE_KEYS), count, keys, values, &found);
    if (rc < 0) {
        LATE_WRONG(late, "scan from key %u: %s", first, dm_code_text(rc));
        found = 0;
    }
    unsigned last = LATE_KEYS - 1;
    for (uint32_t i = 0; i < found; i++) {
        unsigned number = (unsigned)world_number_of(keys[i], LATE_KEYS);
        if (number >= LATE_KEYS || number < first) {
            LATE_WRONG(late, "scan from key %u: %#llx is no key from there on", first, (unsigned long long)keys[i]);
            continue;
        }
        uint64_t write = world_write_of(number, values + (size_t)i * client->value_bytes, client->value_bytes);
        bool is_still = !before[number].busy && before[number].changes == late->keys[number].changes;
        if (write == UINT64_MAX || (i > 0 && keys[i] <= keys[i - 1]) || (is_still && before[number].write != write)) {
            LATE_WRONG(late, "scan from key %u: write %u of key %u", first, (unsigned)write, number);
        }
        seen[number] = true;
        last = found == count ? number : last;
    }
    for (unsigned number = first; number <= last && rc == 0; number++) {
        if (!before[number].busy && before[number].changes == late->keys[number].changes &&
            seen[number] != before[number].present) {
            LATE_WRONG(late, "scan from key %u: key %u is %s", first, number, seen[number] ? "found" : "left out");
        }
    }
    free(values);
}

/* An insert, a removal or an update of a key that no other client is changing. */
static inline void late_write(struct late *late, struct ix_client *client, unsigned number, bool removes,
                              bool updates) {
    struct late_key *key = &late->keys[number];
    unsigned char value[WORLD_VALUE_MAX];
    if (key->busy) {
        return;
    }
    key->busy = true;
    key->changes++;
    world_value(number, key->write + 1, value, client->value_bytes);
    uint64_t name = world_key(number, LATE_KEYS);
    int rc = updates   ? ix_update(client, name, value)
             : removes ? ix_remove(client, name)
                       : ix_insert(client, name, value);
    bool acts = removes || updates ? key->present : !key->present;
    int expected = acts ? 0 : removes || updates ? DM_NOT_FOUND : DM_EXISTS;
    if (rc != expected) {
        LATE_WRONG(late, "%s of key %u, which was %s: %s",
                   updates   ? "update"
                   : removes ? "removal"
                             : "insert",
                   number, key->present ? "there" : "absent", dm_code_text(rc));
    }
    if (rc == 0) {
        key->present = !removes;
        key->write += !removes;
    }
    key->changes++;
    key->busy = false;
}

/* ---- the clients ------------------------------------------------------------------------------------------------- */

static inline void late_end(struct late *late, struct dm_ctx *ctx, struct ix_client *client) {
    late->running--;
    while (late->running > 0 && dm_sleep(ctx, LATE_IDLE_NS) == 0) {
    }
    for (unsigned number = 0; number < LATE_KEYS; number++) {
        late_get(late, client, number);
    }
    if (client->ops->caps & IX_CAP_SCAN) {
        late_scan(late, client, 0, LATE_KEYS);
    }
    ix_detach(client);
    dm_account_use(ctx, NULL);
}

static inline void late_writer(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct dm_account account = {0};
    dm_account_use(ctx, &account); /* rules of faults count the verbs of attaching, too */
    late->writer = world_attach(&late->world, 0, ctx, &account);
    for (unsigned i = 0; i < late->step_count && i <= late->target + 1; i++) {
        late->verbs[i] = world_verbs(&account);
        late->watched = i == late->target;
        uint64_t begin_ns = dm_now(ctx);
        late_write(late, &late->writer, late->steps[i].number, late->steps[i].removes, late->steps[i].updates);
        late->target_ns = i == late->target ? dm_now(ctx) - begin_ns : late->target_ns;
        late->verbs[i + 1] = world_verbs(&account);
    }
    dm_sleep(ctx, UINT64_C(1000) * LATE_TAIL_US);
    late->ended = true;
    dm_account_use(ctx, NULL);
    late_end(late, ctx, &late->writer);
}

/* A number near the key of the target. */
static inline unsigned late_near(const struct late *late, struct dm_ctx *ctx) {
    unsigned center = late->target < late->step_count ? late->steps[late->target].number : LATE_KEYS / 2;
    unsigned number = center + LATE_KEYS - LATE_NEAR / 2 + (unsigned)dm_prng_below(dm_random(ctx), LATE_NEAR);
    return number % LATE_KEYS;
}

/* Reads all along, so that its node knows what the structure was a moment ago. */
static inline void late_reader(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct ix_client client = world_attach(&late->world, 1, ctx, NULL);
    while (!late->ended) {
        if (late->watched) {
            late_get(late, &client, late_near(late, ctx));
        } else {
            late_get(late, &client, (unsigned)dm_prng_below(dm_random(ctx), LATE_KEYS));
            dm_sleep(ctx, LATE_IDLE_NS);
        }
    }
    late_end(late, ctx, &client);
}

static inline void late_scanner(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct ix_client client = world_attach(&late->world, 0, ctx, NULL);
    uint64_t begin_ns = UINT64_MAX;
    while (!late->ended) {
        if (late->watched && late->for_good) {
            begin_ns = begin_ns == UINT64_MAX ? dm_now(ctx) : begin_ns;
            late->ended = dm_now(ctx) - begin_ns > UINT64_C(1000) * LATE_BY_US;
        } else if (dm_now(ctx) > LATE_END_NS) {
            late->ended = true; /* this time the client stopped in an earlier step */
        }
        if (late->watched && client.ops->caps & IX_CAP_SCAN) {
            late_scan(late, &client, late_near(late, ctx), LATE_NEAR);
        } else {
            dm_sleep(ctx, LATE_IDLE_NS);
        }
    }
    late_end(late, ctx, &client);
}

/* Inserts and removes keys of its own class, and updates those of another. */
static inline void late_rival(struct dm_ctx *ctx, void *arg) {
    struct late *late = arg;
    struct ix_client client = world_attach(&late->world, 1, ctx, NULL);
    while (!late->ended) {
        unsigned number = late_near(late, ctx), class = number % LATE_CLASSES;
        if (late->watched && class != 1 && !late->for_good) {
            late_write(late, &client, number, class == 2 && late->keys[number].present, class == 0);
        } else {
            dm_sleep(ctx, LATE_IDLE_NS / 8);
        }
    }
    late_end(late, ctx, &client);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static inline void late_shuffle(struct dm_prng *prng, unsigned *order, unsigned count) {
    for (unsigned i = count; i > 1; i--) {
        unsigned other = (unsigned)dm_prng_below(prng, i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

static inline void late_steps(struct late *late, const unsigned *order, unsigned count, bool removes, bool updates) {
    for (unsigned i = 0; i < count && late->step_count < LATE_STEPS; i++) {
        late->steps[late->step_count++] =
            (struct late_step){.number = order[i], .removes = removes, .updates = updates};
    }
}

/* Keys that are loaded stay; the others are inserted, some updated, all removed and some inserted again, in random
 * order. An index of one key only grows. */
static inline void late_script(struct late *late, bool deletes) {
    struct dm_prng prng = dm_prng_stream(1, "late", 0);
    unsigned order[LATE_KEYS], count = 0;
    late->step_count = 0;
    for (unsigned number = 0; number < LATE_KEYS; number++) {
        if (number % late->loaded != 0) {
            order[count++] = number;
        }
    }
    late_shuffle(&prng, order, count);
    late_steps(late, order, count, false, false);
    late_steps(late, order, LATE_UPDATES, false, true);
    if (deletes && late->loaded == LATE_CLASSES) {
        late_steps(late, order, count, true, false);
        late_shuffle(&prng, order, count);
        late_steps(late, order, count / 3, false, false);
    }
}

/* Runs the script as far as the step behind the target with one fault rule. */
static inline void late_run(struct late *late, struct world_config config, unsigned loaded, unsigned target,
                            const char *fault) {
    static void (*const entries[LATE_CLIENTS])(struct dm_ctx *, void *) = {late_writer, late_reader, late_scanner,
                                                                           late_rival};
    struct world_pairs pairs;
    size_t setting = 0;
    memset(late, 0, sizeof(*late));
    late->loaded = loaded;
    late_script(late, config.ops->caps & IX_CAP_DELETE);
    late->target = target;
    late->for_good = strncmp(fault, "stop", 4) == 0 && !strstr(fault, "for=");
    late->running = LATE_CLIENTS - late->for_good;
    for (unsigned number = 0; number < LATE_KEYS; number += loaded) {
        late->keys[number].present = true;
    }
    while (config.settings[setting].name) {
        setting++;
    }
    config.settings[setting] = (struct dm_setting){"faults", fault};
    world_begin(&late->world, &config, world_pairs(&pairs, LATE_KEYS, loaded, config.value_bytes));
    for (unsigned i = 0; i < LATE_CLIENTS; i++) {
        unsigned cn = i % 2;
        assert_int_equal(dm_spawn(late->world.fabric, dm_first_cn(&late->world.topology) + cn, i / 2, entries[i], late),
                         0);
    }
    world_run(&late->world);
    struct world_step step = {.world = &late->world, .report = {.interrupted = late->for_good}};
    world_do(&late->world, 0, world_verify_entry, &step);
    if (step.report.broken > 0) {
        LATE_WRONG(late, "verify: %.150s", step.report.first_problem);
    }
    if (late->writer.handle) {
        ix_detach(&late->writer); /* it has stopped for good */
    }
    world_close(&late->world);
    if (late->wrong[0]) {
        fail_msg("%s, step %u, '%s': %s", config.ops->name, target, fault, late->wrong);
    }
}

/* The step that took the most verbs of those that are not chosen yet. */
static inline unsigned late_longest(const struct late *counted, const bool *chosen) {
    unsigned longest = 0;
    uint64_t most = 0;
    for (unsigned i = 0; i < counted->step_count; i++) {
        uint64_t verbs = counted->verbs[i + 1] - counted->verbs[i];
        if (!chosen[i] && verbs > most) {
            longest = i;
            most = verbs;
        }
    }
    return longest;
}

struct late_runs {
    unsigned count, missed;
};

/* The verb was one of the target's, and if its client was to stop or to pause there, it did. Not always: seeds differ,
 * and with them how often the writer repeats a verb before. */
static inline bool late_is_hit(const struct late *late, uint64_t verb, bool pauses) {
    uint64_t end = late->verbs[late->target + 1]; /* 0: the step has not ended */
    if (late->for_good) {
        return late->watched && end == 0;
    }
    return late->verbs[late->target] < verb && verb <= end &&
           (!pauses || late->target_ns >= UINT64_C(1000) * LATE_BY_US);
}

/* Makes each verb of a step late. */
static inline void late_step_run(const struct late *counted, struct world_config config, unsigned target,
                                 bool reads_continue, struct late_runs *runs) {
    static const char *const faults[] = {"delay:client=0,verb=%u,by=%uus", "stop:client=0,verb=%u,for=%uus",
                                         "stop:client=0,verb=%u"};
    static struct late late;
    uint64_t first = counted->verbs[target] + 1, end = counted->verbs[target + 1] + 1;
    end = end - first > LATE_VERBS_MAX ? first + LATE_VERBS_MAX : end;
    for (uint64_t verb = first; verb < end; verb++) {
        for (unsigned i = 0; i < 2U + reads_continue; i++) {
            char fault[80];
            snprintf(fault, sizeof(fault), faults[i], (unsigned)verb, LATE_BY_US);
            config.seed = 4 * verb + i;
            late_run(&late, config, counted->loaded, target, fault);
            runs->count++;
            runs->missed += !late_is_hit(&late, verb, i == 1);
        }
    }
}

/* Nothing is wrong whichever verb of the longest steps, and of some others, is late; nor, if the index promises that
 * reads continue, whichever is the last one of its client. Settings of the index are in config.params; every `loaded`th
 * key is loaded: LATE_CLASSES, or LATE_KEYS for an index that begins with one key. */
static inline void late_all_right(struct world_config config, unsigned loaded, bool reads_continue) {
    static struct late counted;
    bool chosen[LATE_STEPS] = {false};
    struct late_runs runs = {0};
    config.tiny = true;
    config.mns = 3;
    config.cns = 2;
    config.clients = LATE_CLIENTS;
    config.retry_limit = 20000;
    config.settings[0] = (struct dm_setting){"write_line_order", "random"};
    config.settings[1] = (struct dm_setting){"read_line_order", "random"};
    config.settings[2] = (struct dm_setting){"write_window", "2us"};
    config.settings[3] = (struct dm_setting){"read_window", "2us"};
    late_run(&counted, config, loaded, LATE_STEPS, "");
    unsigned keys = LATE_KEYS - (LATE_KEYS + loaded - 1) / loaded;
    const unsigned plain[LATE_PLAIN] = {keys / 3, keys, keys + LATE_UPDATES};
    for (unsigned n = 0; n < LATE_TARGETS + LATE_PLAIN; n++) {
        unsigned target = n < LATE_TARGETS ? late_longest(&counted, chosen) : plain[n - LATE_TARGETS];
        if (target < counted.step_count && !chosen[target]) {
            chosen[target] = true;
            late_step_run(&counted, config, target, reads_continue, &runs);
        }
    }
    print_message("%s: %u late verbs, %u of other steps\n", config.ops->name, runs.count, runs.missed);
    assert_true(10 * runs.missed < runs.count);
}

#endif
