/* SPDX-License-Identifier: Apache-2.0
 *
 * Which optimistic schemes the simulated fabric catches. A writer rewrites an object of some lines again and again;
 * readers take a copy by a scheme and either reject it or accept it, and an accepted copy that mixes two writes is an
 * anomaly. Schemes that are known to be wrong must show anomalies where hardware may reorder, and must look right where
 * the fabric does all in ascending order; the sound ones must never show any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "unit/transport/sim_world.h"

enum { OBJECT = 4096, LINES = 8, WORDS = LINES * 8, LAST = WORDS - 1, ROUNDS = 3000, METHOD = DM_METHOD_FIRST };

enum scheme {
    BOOKEND,        /* version, data, version in one read */
    SPLIT_UNWAITED, /* reads of version, data, version posted together */
    SPLIT_WAITED,   /* the same, each waited for */
    LINE_VERSIONS,  /* a version in every line */
    CHECKSUM,
};

struct trial {
    enum scheme scheme;
    bool writing;
    unsigned accepted, rejected, anomalies;
};

static dm_addr object_word(unsigned word) {
    return dm_addr_make(0, DM_DRAM, OBJECT + word * 8);
}

static uint64_t sum_of(const uint64_t *object) {
    return XXH64(object, (WORDS - 1) * 8, 1);
}

/* All words of a state are equal, but for a checksum in the last one. */
static void fill(enum scheme scheme, uint64_t *object, uint64_t version) {
    for (unsigned i = 0; i < WORDS; i++) {
        object[i] = version;
    }
    if (scheme == CHECKSUM) {
        object[LAST] = sum_of(object);
    }
}

/* With versions apart from the data the writer marks its work: odd version, data, even version. Writes keep their
 * order, so one batch is enough. */
static int write_split(struct dm_ctx *ctx, const uint64_t *object, uint64_t version) {
    uint64_t busy = 2 * version - 1, idle = 2 * version;
    dm_post_write(ctx, object_word(0), &busy, 8);
    dm_post_write(ctx, object_word(8), object + 8, (WORDS - 8) * 8);
    dm_post_write(ctx, object_word(0), &idle, 8);
    return dm_commit(ctx);
}

static void writer_main(struct dm_ctx *ctx, void *arg) {
    struct trial *trial = arg;
    uint64_t *object = dm_local_alloc(ctx, WORDS * 8);
    /* Three round trips of a reader fit between two writes now and then. */
    uint64_t pause = trial->scheme == SPLIT_WAITED ? 20000 : 2000;
    for (uint64_t version = 1; version <= ROUNDS; version++) {
        fill(trial->scheme, object, version);
        bool split = trial->scheme == SPLIT_UNWAITED || trial->scheme == SPLIT_WAITED;
        int rc = split ? write_split(ctx, object, version) : dm_write(ctx, object_word(0), object, WORDS * 8);
        assert_int_equal(rc, 0);
        assert_int_equal(dm_sleep(ctx, dm_prng_below(dm_random(ctx), pause)), 0);
    }
    trial->writing = false;
}

static bool is_mixed(const uint64_t *object, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        if (object[i] != object[from]) {
            return true;
        }
    }
    return false;
}

static bool line_versions_agree(const uint64_t *object) {
    for (unsigned line = 1; line < LINES; line++) {
        if (object[line * 8] != object[0]) {
            return false;
        }
    }
    return true;
}

static void read_split(struct dm_ctx *ctx, struct trial *trial, uint64_t *object) {
    uint64_t *after = object + WORDS;
    bool waits = trial->scheme == SPLIT_WAITED;
    dm_post_read(ctx, object_word(0), object, 8);
    if (waits) {
        assert_int_equal(dm_commit(ctx), 0);
    }
    dm_post_read(ctx, object_word(8), object + 8, (WORDS - 8) * 8);
    if (waits) {
        assert_int_equal(dm_commit(ctx), 0);
    }
    dm_post_read(ctx, object_word(0), after, 8);
    assert_int_equal(dm_commit(ctx), 0);
    if (object[0] != *after || object[0] % 2 == 1) {
        trial->rejected++;
        return;
    }
    trial->accepted++;
    trial->anomalies += is_mixed(object, 8, WORDS) || object[8] != object[0] / 2;
}

static void read_object(struct dm_ctx *ctx, struct trial *trial, uint64_t *object) {
    assert_int_equal(dm_read(ctx, object_word(0), object, WORDS * 8), 0);
    bool good = trial->scheme == BOOKEND         ? object[0] == object[LAST]
                : trial->scheme == LINE_VERSIONS ? line_versions_agree(object)
                                                 : object[LAST] == sum_of(object);
    if (!good) {
        trial->rejected++;
        return;
    }
    trial->accepted++;
    trial->anomalies += is_mixed(object, 0, WORDS - (trial->scheme == CHECKSUM));
}

static void reader_main(struct dm_ctx *ctx, void *arg) {
    struct trial *trial = arg;
    uint64_t *object = dm_local_alloc(ctx, WORDS * 8 + 8);
    while (trial->writing) {
        if (trial->scheme == SPLIT_UNWAITED || trial->scheme == SPLIT_WAITED) {
            read_split(ctx, trial, object);
        } else {
            read_object(ctx, trial, object);
        }
    }
}

struct orders {
    const char *read_lines, *write_lines, *reads;
};

static struct trial try_scheme(enum scheme scheme, struct orders orders) {
    struct world world = {.clients = 5};
    struct trial trial = {.scheme = scheme, .writing = true};
    world_set(&world, "read_line_order", orders.read_lines);
    world_set(&world, "write_line_order", orders.write_lines);
    world_set(&world, "read_order", orders.reads);
    world_open(&world);
    uint64_t object[WORDS];
    fill(scheme, object, 0);
    sim_bytes_write(&sim_of(world.fabric)->nodes[0].dram.bytes, OBJECT, object, sizeof(object));
    world_spawn(&world, 0, writer_main, &trial);
    for (unsigned i = 1; i < 5; i++) {
        world_spawn(&world, i, reader_main, &trial);
    }
    world_run(&world);
    world_close(&world);
    assert_true(trial.accepted > ROUNDS / 10);
    return trial;
}

static const struct orders weak = {"random", "random", "any"}, today = {"random", "ascending", "any"},
                           strong = {"ascending", "ascending", "posted"},
                           backwards = {"descending", "ascending", "any"};

static void a_version_at_both_ends_of_one_read_is_caught_unless_lines_ascend(void **state) {
    (void)state;
    assert_true(try_scheme(BOOKEND, weak).anomalies > 0);
    assert_true(try_scheme(BOOKEND, today).anomalies > 0);
    assert_int_equal(try_scheme(BOOKEND, strong).anomalies, 0);
}

static void reads_of_version_and_data_posted_together_are_caught_unless_they_keep_their_order(void **state) {
    (void)state;
    assert_true(try_scheme(SPLIT_UNWAITED, weak).anomalies > 0);
    assert_int_equal(try_scheme(SPLIT_UNWAITED, strong).anomalies, 0);
}

static void sound_schemes_pass_under_every_order(void **state) {
    (void)state;
    const enum scheme sound[] = {SPLIT_WAITED, LINE_VERSIONS, CHECKSUM};
    const struct orders all[] = {weak, today, strong, backwards};
    for (size_t i = 0; i < DM_ARRAY_LEN(sound); i++) {
        for (size_t j = 0; j < DM_ARRAY_LEN(all); j++) {
            struct trial trial = try_scheme(sound[i], all[j]);
            assert_int_equal(trial.anomalies, 0);
            /* In ascending order two accesses of one speed cannot cross: there is nothing to reject. */
            assert_true(trial.rejected > 0 || strcmp(all[j].read_lines, "ascending") == 0);
        }
    }
}

/* ---- atomics and the CPU ---------------------------------------------------------------------------------------- */

enum { ADDS = 2000 };

static void adder_main(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    for (unsigned i = 0; i < ADDS; i++) {
        uint64_t old;
        assert_int_equal(dm_faa(ctx, object_word(0), 1, &old), 0);
    }
}

/* Adds on the memory node's CPU, each atomic against the node's other CPU accesses. */
static void cpu_adder_main(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    for (unsigned i = 0; i < ADDS; i++) {
        uint64_t seen;
        dm_cpu_read(ctx, object_word(0), &seen, 8);
        assert_int_equal(dm_cpu_cas(ctx, object_word(0), seen, seen + 1), seen);
        assert_int_equal(dm_sleep(ctx, 700 + dm_prng_below(dm_random(ctx), 500)), 0);
    }
}

static uint64_t adds_that_count(bool by_cpu) {
    struct world world = {.clients = 4};
    world_open(&world);
    for (unsigned i = 0; i < 3; i++) {
        world_spawn(&world, i, adder_main, NULL);
    }
    if (by_cpu) {
        assert_int_equal(dm_spawn(world.fabric, 0, 0, cpu_adder_main, NULL), 0);
    } else {
        world_spawn(&world, 3, adder_main, NULL);
    }
    world_run(&world);
    uint64_t sum = world_word(&world, 0, OBJECT);
    world_close(&world);
    return sum;
}

static void an_add_of_the_cpu_can_be_lost_to_the_nic_s_and_adds_of_the_nic_cannot(void **state) {
    (void)state;
    assert_int_equal(adds_that_count(false), 4 * ADDS);
    uint64_t mixed = adds_that_count(true);
    assert_in_range(mixed, 3 * ADDS, 4 * ADDS - 1);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

enum { LOCKS = 4, TURNS = 100, LOCKERS = 64 };

/* Word 0 of a lock is the lock itself, word 1 is what it guards; all locks are in one line. */
static dm_addr lock_word(unsigned lock, unsigned word) {
    return dm_addr_make(0, DM_DRAM, OBJECT + lock * 8 + word * 512);
}

/* Adds one to the word that a lock guards, with two round trips: {CAS, READ}, then {WRITE, CAS}. The write carries more
 * than a doorbell does, so it is sent later than the lock's release could be. */
static void locker_main(struct dm_ctx *ctx, void *arg) {
    unsigned *turns = arg;
    uint64_t *words = dm_local_alloc(ctx, 512);
    for (unsigned i = 0; i < TURNS; i++) {
        unsigned lock = (unsigned)dm_prng_below(dm_random(ctx), LOCKS);
        uint64_t found;
        do {
            dm_post_cas(ctx, lock_word(lock, 0), 0, 1, &found);
            dm_post_read(ctx, lock_word(lock, 1), words, 8);
            assert_int_equal(dm_commit(ctx), 0);
        } while (found != 0);
        words[0]++;
        dm_post_write(ctx, lock_word(lock, 1), words, 8);
        dm_post_cas(ctx, lock_word(lock, 0), 1, 0, NULL);
        assert_int_equal(dm_commit(ctx), 0);
        turns[lock]++;
    }
}

static void what_a_lock_guards_is_written_before_the_lock_is_free(void **state) {
    (void)state;
    for (unsigned per_thread = 1; per_thread <= 8; per_thread *= 2) {
        struct world world = {.clients = LOCKERS, .per_thread = per_thread};
        unsigned turns[LOCKS] = {0};
        world_open(&world);
        for (unsigned i = 0; i < LOCKERS; i++) {
            world_spawn(&world, i, locker_main, turns);
        }
        world_run(&world);
        for (unsigned lock = 0; lock < LOCKS; lock++) {
            assert_int_equal(world_word(&world, 0, OBJECT + lock * 8 + 512), turns[lock]);
        }
        world_close(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_at_both_ends_of_one_read_is_caught_unless_lines_ascend),
        cmocka_unit_test(reads_of_version_and_data_posted_together_are_caught_unless_they_keep_their_order),
        cmocka_unit_test(sound_schemes_pass_under_every_order),
        cmocka_unit_test(an_add_of_the_cpu_can_be_lost_to_the_nic_s_and_adds_of_the_nic_cannot),
        cmocka_unit_test(what_a_lock_guards_is_written_before_the_lock_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
