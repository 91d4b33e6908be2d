/* SPDX-License-Identifier: Apache-2.0
 *
 * Greedy shrinking. A candidate leaves something out and is run again; it is kept if it fails in the same way. Leaving
 * out an operation shifts all that come after it, so a candidate gets a few schedules to fail in, with clients that
 * rest for about the time of what was left out, or do not.
 */
#include "check/shrink.h"

#include <string.h>

enum { SCHEDULES = 4, IDLES = 3, IDLE_STEP_NS = 2500 };

struct shrink {
    const struct ck_world *world;
    struct ck_part *part;
    struct ck_result *result;
    enum ck_fault fault;
    unsigned runs, runs_max;
    struct dm_err *err;
};

/* Runs the candidate under a few schedules. 1: it fails likewise and is the new part; 0: it does not; a failure. */
static int candidate_try(struct shrink *shrink, struct ck_part *candidate) {
    uint64_t idle = shrink->part->idle_ns / IDLE_STEP_NS;
    for (uint64_t i = 0; i < SCHEDULES * IDLES && shrink->runs < shrink->runs_max; i++) {
        candidate->schedule = (shrink->part->schedule + i) % SCHEDULES;
        candidate->idle_ns = (idle + i / SCHEDULES) % IDLES * IDLE_STEP_NS;
        struct ck_result result;
        shrink->runs++;
        int rc = ck_run(shrink->world, candidate, &result, shrink->err);
        if (rc == 0 && result.verdict.fault == shrink->fault) {
            ck_result_fini(shrink->result);
            *shrink->result = result;
            *shrink->part = *candidate;
            return 1;
        }
        ck_result_fini(&result);
        DM_TRY(rc);
    }
    return 0;
}

static bool part_equal(const struct ck_part *a, const struct ck_part *b) {
    return memcmp(a->steps, b->steps, sizeof(a->steps)) == 0 && memcmp(a->faults, b->faults, sizeof(a->faults)) == 0 &&
           memcmp(a->loaded, b->loaded, sizeof(a->loaded)) == 0;
}

/* Tries the candidate if it leaves anything out. */
static int try_smaller(struct shrink *shrink, struct ck_part *candidate) {
    return part_equal(candidate, shrink->part) ? 0 : candidate_try(shrink, candidate);
}

/* What can be left out of a part, by number. */
typedef void leave_out(const struct ck_world *world, size_t number, struct ck_part *part);

static void leave_client(const struct ck_world *world, size_t number, struct ck_part *part) {
    for (size_t i = 0; i < world->step_count; i++) {
        part->steps[i] = part->steps[i] && world->steps[i].client != number;
    }
}

static void leave_key(const struct ck_world *world, size_t number, struct ck_part *part) {
    part->loaded[number] = false;
    for (size_t i = 0; i < world->step_count; i++) {
        part->steps[i] = part->steps[i] && world->steps[i].key != number;
    }
}

static void leave_fault(const struct ck_world *world, size_t number, struct ck_part *part) {
    (void)world;
    part->faults[number] = false;
}

static void leave_loaded(const struct ck_world *world, size_t number, struct ck_part *part) {
    (void)world;
    part->loaded[number] = false;
}

/* Tries to leave out each of `count` things; how many went, or a failure. */
static int drop_each(struct shrink *shrink, leave_out *leave, size_t count) {
    int dropped = 0;
    for (size_t i = 0; i < count; i++) {
        struct ck_part candidate = *shrink->part;
        leave(shrink->world, i, &candidate);
        int rc = try_smaller(shrink, &candidate);
        DM_TRY(rc);
        dropped += rc;
    }
    return dropped;
}

static size_t steps_left(const struct ck_part *part) {
    size_t count = 0;
    for (size_t i = 0; i < CK_STEPS_MAX; i++) {
        count += part->steps[i];
    }
    return count;
}

/* Leaves out the steps from the first-th to before the (first + n)-th of those that are left. */
static int drop_steps_at(struct shrink *shrink, size_t first, size_t n) {
    struct ck_part candidate = *shrink->part;
    size_t seen = 0;
    for (size_t i = 0; i < CK_STEPS_MAX; i++) {
        if (candidate.steps[i]) {
            candidate.steps[i] = seen < first || seen >= first + n;
            seen++;
        }
    }
    return try_smaller(shrink, &candidate);
}

/* Halves, quarters and so on down to single steps. */
static int drop_steps(struct shrink *shrink) {
    int dropped = 0;
    for (size_t n = steps_left(shrink->part) / 2; n > 0; n /= 2) {
        for (size_t first = 0; first < steps_left(shrink->part) && shrink->runs < shrink->runs_max;) {
            int rc = drop_steps_at(shrink, first, n);
            DM_TRY(rc);
            dropped += rc;
            first += rc > 0 ? 0 : n;
        }
    }
    return dropped;
}

static int shrink_once(struct shrink *shrink) {
    int clients = drop_each(shrink, leave_client, shrink->world->topology.clients);
    DM_TRY(clients);
    int steps = drop_steps(shrink);
    DM_TRY(steps);
    int keys = drop_each(shrink, leave_key, shrink->world->key_count);
    DM_TRY(keys);
    int faults = drop_each(shrink, leave_fault, CK_FAULTS_MAX);
    DM_TRY(faults);
    int loaded = drop_each(shrink, leave_loaded, CK_KEYS_MAX);
    DM_TRY(loaded);
    return clients + steps + keys + faults + loaded;
}

int ck_shrink(const struct ck_world *world, struct ck_part *part, struct ck_result *result, unsigned runs_max,
              struct dm_err *err) {
    struct shrink shrink = {.world = world,
                            .part = part,
                            .result = result,
                            .fault = result->verdict.fault,
                            .runs_max = runs_max,
                            .err = err};
    int dropped;
    do {
        dropped = shrink_once(&shrink);
        DM_TRY(dropped);
    } while (dropped > 0 && shrink.runs < runs_max);
    return (int)shrink.runs;
}
