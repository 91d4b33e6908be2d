/* SPDX-License-Identifier: Apache-2.0
 *
 * Which points run at the same time: limits of cores and memory, points that overtake one that waits for memory, and
 * points in real time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/prng.h"
#include "harness/points/points_schedule.h"

enum { POINTS_MAX = 40, JOBS_MAX = 8, MEMORY = 20 };

/* Points that are groups of their own, with these sizes. */
struct set {
    struct hx_point items[POINTS_MAX];
    size_t order[POINTS_MAX], group[POINTS_MAX + 1];
    struct hx_points points;
    struct hx_schedule schedule;
    struct hx_schedule_job jobs[POINTS_MAX]; /* by index of the order */
    size_t started_count;
    /* What the test itself knows: which have started, how many run now, and their memory. */
    bool has_started[POINTS_MAX];
    size_t running_count;
    uint64_t running_bytes;
};

static void set_open(struct set *set, const unsigned *bytes, size_t count, size_t jobs) {
    *set = (struct set){.points = {.items = set->items, .count = count}};
    for (size_t i = 0; i < count; i++) {
        set->items[i].memory_bytes = bytes[i];
        set->items[i].config = json_pack("{s:s}", "transport", "sim");
        set->order[i] = i;
        set->group[i] = 1;
    }
    set->schedule = (struct hx_schedule){.points = &set->points,
                                         .order = set->order,
                                         .group = set->group,
                                         .count = count,
                                         .job_limit = jobs,
                                         .memory_limit = MEMORY};
    assert_int_equal(hx_schedule_open(&set->schedule), 0);
}

static void set_close(struct set *set) {
    for (size_t i = 0; i < set->points.count; i++) {
        json_decref(set->items[i].config);
    }
    hx_schedule_close(&set->schedule);
}

static void is_real_time(struct set *set, size_t at) {
    json_object_set_new(set->items[at].config, "transport", json_string("local"));
}

/* The next that starts; SIZE_MAX: none. */
static size_t next(struct set *set) {
    struct hx_schedule_job job;
    if (!hx_schedule_start(&set->schedule, &job)) {
        return SIZE_MAX;
    }
    assert_true(job.first < set->points.count);
    assert_false(set->has_started[job.first]);
    set->has_started[job.first] = true;
    set->jobs[job.first] = job;
    set->started_count++;
    set->running_count++;
    set->running_bytes += set->items[job.first].memory_bytes;
    assert_true(set->running_count <= set->schedule.job_limit);
    assert_true(set->running_bytes <= MEMORY || set->running_count == 1);
    return job.first;
}

static void end(struct set *set, size_t at) {
    hx_schedule_end(&set->schedule, &set->jobs[at]);
    set->running_count--;
    set->running_bytes -= set->items[at].memory_bytes;
}

#define STARTS(at) assert_int_equal(next(&set), (at))
#define WAITS()    assert_true(next(&set) == SIZE_MAX)

static void points_start_in_their_order_as_cores_permit(void **state) {
    (void)state;
    struct set set;
    set_open(&set, (unsigned[]){1, 1, 1}, 3, 2);
    STARTS(0);
    STARTS(1);
    WAITS();
    end(&set, 1);
    STARTS(2);
    end(&set, 0);
    end(&set, 2);
    WAITS();
    set_close(&set);
}

static void one_that_fits_beside_both_overtakes_one_that_waits(void **state) {
    (void)state;
    struct set set;
    set_open(&set, (unsigned[]){8, 14, 7, 6, 6}, 5, 2);
    STARTS(0);
    STARTS(3); /* not 2, beside which 1 would not fit when 0 has ended */
    WAITS();
    end(&set, 3);
    STARTS(4);
    end(&set, 0);
    STARTS(1);
    end(&set, 4);
    WAITS(); /* 14 and 7 are too many */
    end(&set, 1);
    STARTS(2);
    WAITS();
    set_close(&set);
}

static void those_that_overtake_leave_enough_together(void **state) {
    (void)state;
    struct set set;
    set_open(&set, (unsigned[]){8, 14, 3, 4, 3}, 5, 4);
    STARTS(0);
    STARTS(2);
    STARTS(4); /* 14 + 3 + 4 are too many */
    WAITS();
    end(&set, 2);
    WAITS();
    end(&set, 4);
    STARTS(3);
    end(&set, 0);
    STARTS(1);
    WAITS();
    set_close(&set);
}

/* What overtook one that has started since takes nothing from the next that waits but its memory. */
static void memory_of_an_earlier_overtaking_counts_once(void **state) {
    (void)state;
    struct set set;
    set_open(&set, (unsigned[]){15, 12, 12, 5, 3}, 5, 3);
    STARTS(0);
    STARTS(3);
    WAITS();
    end(&set, 0);
    STARTS(1);
    STARTS(4);
    end(&set, 3);
    end(&set, 1);
    STARTS(2);
    WAITS();
    end(&set, 4);
    end(&set, 2);
    assert_int_equal(set.schedule.memory_used, 0);
    assert_int_equal(set.schedule.memory_ahead, 0);
    set_close(&set);
}

static void one_larger_than_memory_runs_alone(void **state) {
    (void)state;
    struct set set;
    set_open(&set, (unsigned[]){2, 21, 1}, 3, 3);
    STARTS(0);
    WAITS();
    end(&set, 0);
    STARTS(1);
    WAITS();
    end(&set, 1);
    STARTS(2);
    set_close(&set);
}

static void one_in_real_time_runs_alone_and_overtakes_none(void **state) {
    (void)state;
    struct set set;
    set_open(&set, (unsigned[]){8, 14, 1, 2}, 4, 3);
    is_real_time(&set, 2);
    STARTS(0);
    STARTS(3);
    WAITS();
    end(&set, 0);
    STARTS(1);
    WAITS();
    end(&set, 1);
    WAITS();
    end(&set, 3);
    STARTS(2);
    WAITS();
    set_close(&set);
    set_open(&set, (unsigned[]){1, 1}, 2, 3);
    is_real_time(&set, 0);
    STARTS(0);
    WAITS();
    end(&set, 0);
    STARTS(1);
    set_close(&set);
}

/* All start once, memory suffices, and one that waits can start when all have ended but those that overtook it. */
static void random_sets_are_run_whole_and_none_is_put_off(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 1};
    for (unsigned round = 0; round < 2000; round++) {
        unsigned bytes[POINTS_MAX];
        size_t running[JOBS_MAX], running_count = 0, started;
        struct set set;
        for (size_t i = 0; i < POINTS_MAX; i++) {
            bytes[i] = 1 + (unsigned)dm_prng_below(&prng, MEMORY + 3);
        }
        set_open(&set, bytes, POINTS_MAX, 1 + dm_prng_below(&prng, JOBS_MAX));
        do {
            while ((started = next(&set)) != SIZE_MAX) {
                running[running_count++] = started;
            }
            assert_true(running_count > 0);
            assert_int_equal(set.schedule.memory_used, set.running_bytes);
            size_t ended = dm_prng_below(&prng, running_count);
            end(&set, running[ended]);
            running[ended] = running[--running_count];
            size_t earlier = 0, head = set.schedule.head;
            for (size_t i = 0; i < running_count; i++) {
                earlier += set.jobs[running[i]].overtaken != head;
            }
            if (head < POINTS_MAX && earlier == 0 && running_count > 0) {
                assert_true(set.running_bytes + bytes[head] <= MEMORY);
            }
        } while (set.started_count < POINTS_MAX || running_count > 0);
        assert_int_equal(set.schedule.head, POINTS_MAX);
        assert_int_equal(set.schedule.memory_used, 0);
        set_close(&set);
    }
}

/* Large ones first; then longest first, and of equal length in the order of the set. */
static void those_beside_which_others_run_come_first(void **state) {
    (void)state;
    static const double cost[] = {1, 5, 3, 5, 9};
    struct set set;
    set_open(&set, (unsigned[]){11, 10, 12, 1, 2}, 5, 2);
    for (size_t i = 0; i < 5; i++) {
        set.items[i].cost = cost[i];
    }
    hx_schedule_order(&set.schedule, 0);
    static const size_t expected[] = {2, 0, 4, 1, 3};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(set.order[i], expected[i]);
        assert_int_equal(set.group[i], 1);
    }
    set_close(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_start_in_their_order_as_cores_permit),
        cmocka_unit_test(one_that_fits_beside_both_overtakes_one_that_waits),
        cmocka_unit_test(those_that_overtake_leave_enough_together),
        cmocka_unit_test(memory_of_an_earlier_overtaking_counts_once),
        cmocka_unit_test(one_larger_than_memory_runs_alone),
        cmocka_unit_test(one_in_real_time_runs_alone_and_overtakes_none),
        cmocka_unit_test(those_beside_which_others_run_come_first),
        cmocka_unit_test(random_sets_are_run_whole_and_none_is_put_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
