/* SPDX-License-Identifier: Apache-2.0
 *
 * Greedy shrinking. A candidate lacks something that the current part has. It is run, and becomes the current part if
 * it fails in the same way. Removing an operation shifts all later ones, so each candidate is run under several
 * schedules, in which clients are idle for about the time of the removed operation, or not at all.
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

/* Runs the candidate under several schedules. Returns 1 if it fails in the same way and has become the current part, 0
 * if not, or a failure. */
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

/* Tries the candidate if it differs from the current part. */
static int try_smaller(struct shrink *shrink, struct ck_part *candidate) {
    return part_equal(candidate, shrink->part) ? 0 : candidate_try(shrink, candidate);
}

/* Removes the item with this number from a part. */
typedef void remove_item(const struct ck_world *world, size_t number, struct ck_part *part);

static void remove_client(const struct ck_world *world, size_t number, struct ck_part *part) {
    for (size_t i = 0; i < world->step_count; i++) {
        part->steps[i] = part->steps[i] && world->steps[i].client != number;
    }
}

static void remove_key(const struct ck_world *world, size_t number, struct ck_part *part) {
    part->loaded[number] = false;
    for (size_t i = 0; i < world->step_count; i++) {
        part->steps[i] = part->steps[i] && world->steps[i].key != number;
    }
}

static void remove_fault(const struct ck_world *world, size_t number, struct ck_part *part) {
    (void)world;
    part->faults[number] = false;
}

static void remove_loaded(const struct ck_world *world, size_t number, struct ck_part *part) {
    (void)world;
    part->loaded[number] = false;
}

/* Tries to remove each of `count` items. Returns how many were removed, or a failure. */
static int drop_each(struct shrink *shrink, remove_item *remove_one, size_t count) {
    int dropped = 0;
    for (size_t i = 0; i < count; i++) {
        struct ck_part candidate = *shrink->part;
        remove_one(shrink->world, i, &candidate);
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

/* Tries to remove n of the remaining steps, from the one with index `first` on. */
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

/* Tries to remove halves, quarters and so on, down to single steps. */
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
    int clients = drop_each(shrink, remove_client, shrink->world->topology.clients);
    DM_TRY(clients);
    int steps = drop_steps(shrink);
    DM_TRY(steps);
    int keys = drop_each(shrink, remove_key, shrink->world->key_count);
    DM_TRY(keys);
    int faults = drop_each(shrink, remove_fault, CK_FAULTS_MAX);
    DM_TRY(faults);
    int loaded = drop_each(shrink, remove_loaded, CK_KEYS_MAX);
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
