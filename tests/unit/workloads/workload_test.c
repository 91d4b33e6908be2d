/* SPDX-License-Identifier: Apache-2.0
 *
 * The workload contract: loaded keys, streams that depend on seed and client only, values, inserts that other clients
 * then read, and several threads at once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"
#include "workloads/workload.h"

static struct wl *open_well(const struct wl_config *config, unsigned clients, uint64_t seed) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    if (wl_open(config, 10000, clients, seed, &wl, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return wl;
}

/* A digest of the first operations of a client. */
static uint64_t stream_digest(struct wl *wl, unsigned client) {
    struct wl_stream *stream = wl_stream_open(wl, client);
    uint64_t sum = 0;
    for (int i = 0; i < 500; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        sum = dm_mix64(sum ^ op.key ^ (uint64_t)op.kind << 60);
    }
    wl_stream_close(stream);
    return sum;
}

static void a_stream_depends_on_seed_and_client_only(void **state) {
    (void)state;
    const struct wl_config config = {.workload = "a", .keys = 1000};
    struct wl *wl = open_well(&config, 4, 7), *same = open_well(&config, 4, 7), *other = open_well(&config, 4, 8);
    uint64_t first = stream_digest(wl, 0);
    assert_int_equal(stream_digest(same, 3), stream_digest(wl, 3));
    assert_int_equal(stream_digest(same, 0), first);
    assert_int_not_equal(stream_digest(wl, 1), first);
    assert_int_not_equal(stream_digest(other, 0), first);
    wl_close(wl);
    wl_close(same);
    wl_close(other);
}

static void loaded_keys_ascend_and_can_be_made_again_after_their_release(void **state) {
    (void)state;
    static const char *const orders[] = {"hashed", "ordered"};
    for (int i = 0; i < 2; i++) {
        struct wl *wl = open_well(&(struct wl_config){.workload = "a", .keys = 5000, .insert_order = orders[i]}, 1, 1);
        uint64_t count = 0, again = 0;
        const uint64_t *keys = wl_keys(wl, &count);
        assert_int_equal(count, 5000);
        uint64_t last = keys[count - 1];
        for (uint64_t k = 1; k < count; k++) {
            assert_true(keys[k - 1] < keys[k]);
        }
        wl_keys_release(wl);
        wl_keys_release(wl);
        keys = wl_keys(wl, &again);
        assert_true(again == count && keys[again - 1] == last);
        wl_close(wl);
    }
}

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Every loaded key about as often as any other (200 times; a standard deviation is 14), of every key set, and the
 * operations of the stream stay what they are. */
static void loaded_keys_are_drawn_evenly_and_change_no_operation(void **state) {
    (void)state;
    enum { KEYS = 500, EACH = 200 };
    static const struct wl_config configs[] = {
        {.workload = "d", .keys = KEYS},
        {.workload = "c", .keys = KEYS, .insert_order = "ordered"},
        {.workload = "a", .keys = KEYS, .key_set = "uniform"},
        {.workload = "a", .keys = 2 * KEYS, .loaded = 0.5, .upserts = "on"},
    };
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct wl *wl = open_well(&configs[i], 2, 3);
        struct wl_stream *stream = wl_stream_open(wl, 1), *plain = wl_stream_open(wl, 1);
        uint64_t count = 0;
        const uint64_t *keys = wl_keys(wl, &count);
        assert_int_equal(count, KEYS);
        unsigned drawn[KEYS] = {0};
        for (int n = 0; n < KEYS * EACH; n++) {
            uint64_t key = wl_loaded_key(stream);
            const uint64_t *found = bsearch(&key, keys, count, sizeof(key), compare_keys);
            assert_non_null(found);
            drawn[found - keys]++;
        }
        for (int key = 0; key < KEYS; key++) {
            assert_in_range(drawn[key], EACH / 2, EACH * 3 / 2);
        }
        for (int n = 0; n < 100; n++) {
            struct wl_op op, other;
            assert_int_equal(wl_next(stream, &op), 0);
            assert_int_equal(wl_next(plain, &other), 0);
            assert_true(op.kind == other.kind && (op.kind == WL_INSERT || op.key == other.key));
        }
        wl_stream_close(stream);
        wl_stream_close(plain);
        wl_close(wl);
    }
}

static void reads_choose_loaded_keys_and_inserts_choose_new_ones(void **state) {
    (void)state;
    static const char *const sets[] = {"", "dense", "uniform", "lognormal", "linear_noise"};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        struct wl *wl = open_well(
            &(struct wl_config){
                .mix = "read=0.5,insert=0.5", .distribution = "uniform", .key_set = sets[i], .keys = 1000},
            1, 1);
        struct wl_stream *stream = wl_stream_open(wl, 0);
        uint64_t count = 0;
        const uint64_t *keys = wl_keys(wl, &count);
        for (int n = 0; n < 2000; n++) {
            struct wl_op op;
            assert_int_equal(wl_next(stream, &op), 0);
            bool loaded = bsearch(&op.key, keys, count, sizeof keys[0], compare_keys) != NULL;
            assert_int_equal(loaded, op.kind == WL_GET);
            wl_done(stream, &op, 0);
        }
        wl_stream_close(stream);
        wl_close(wl);
    }
}

static void a_key_that_one_client_inserted_is_read_by_others_once_acknowledged(void **state) {
    (void)state;
    struct wl *wl = open_well(
        &(struct wl_config){
            .mix = "read=0.5,insert=0.5", .distribution = "latest", .insert_order = "ordered", .keys = 100},
        2, 1);
    struct wl_stream *writer = wl_stream_open(wl, 0), *reader = wl_stream_open(wl, 1);
    struct wl_op op;
    do {
        assert_int_equal(wl_next(writer, &op), 0);
    } while (op.kind != WL_INSERT);
    assert_int_equal(op.key, 100);
    struct wl_op insert = op;
    bool seen = false;
    for (int i = 0; i < 300; i++) {
        struct wl_op read;
        assert_int_equal(wl_next(reader, &read), 0);
        seen |= read.kind == WL_GET && read.key == 100;
        if (read.kind == WL_INSERT && i < 150) {
            assert_false(seen);
        }
        if (i == 150) {
            assert_false(seen);
            /* a failed insert is acknowledged too, as in YCSB */
            wl_done(writer, &insert, DM_ERR_NO_MEMORY);
        }
    }
    assert_true(seen);
    wl_stream_close(writer);
    wl_stream_close(reader);
    wl_close(wl);
}

static void load_only_inserts_and_each_key_once(void **state) {
    (void)state;
    struct wl *wl = open_well(&(struct wl_config){.workload = "load", .insert_order = "ordered", .keys = 50}, 2, 1);
    struct wl_stream *streams[2] = {wl_stream_open(wl, 0), wl_stream_open(wl, 1)};
    for (uint64_t i = 0; i < 1000; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(streams[i % 2], &op), 0);
        assert_int_equal(op.kind, WL_INSERT);
        assert_int_equal(op.key, 50 + i);
        wl_done(streams[i % 2], &op, 0);
    }
    wl_stream_close(streams[0]);
    wl_stream_close(streams[1]);
    wl_close(wl);
}

static void deletes_are_drawn_when_asked_for(void **state) {
    (void)state;
    struct wl *wl = open_well(&(struct wl_config){.mix = "delete=0.5,read=0.5", .keys = 50}, 1, 1);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    unsigned deletes = 0;
    for (int i = 0; i < 1000; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        deletes += op.kind == WL_DELETE ? 1 : 0;
    }
    assert_in_range(deletes, 400, 600);
    wl_stream_close(stream);
    wl_close(wl);
}

static void a_value_begins_with_the_mix_of_key_and_version(void **state) {
    (void)state;
    unsigned char longer[40], shorter[12], other[40];
    uint64_t word;
    wl_value(77, 3, longer, sizeof longer);
    wl_value(77, 3, shorter, sizeof shorter);
    wl_value(77, 4, other, sizeof other);
    memcpy(&word, longer, sizeof word);
    assert_int_equal(word, dm_mix64(77 ^ dm_mix64(3)));
    assert_memory_equal(longer, shorter, sizeof shorter);
    for (size_t i = 0; i < sizeof longer; i += 8) {
        assert_true(memcmp(longer + i, other + i, 8) != 0);
        assert_true(i == 0 || memcmp(longer, longer + i, 8) != 0);
    }
}

static void the_smallest_workloads_work(void **state) {
    (void)state;
    static const char *const distributions[] = {"uniform",    "zipfian",           "latest", "exponential",
                                                "sequential", "zipfian_clustered", "prod1",  "prod2_fixed"};
    for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++) {
        for (uint64_t keys = 1; keys < 5; keys++) {
            struct wl *wl = open_well(
                &(struct wl_config){
                    .workload = "b", .insert_order = "ordered", .distribution = distributions[i], .keys = keys},
                1, 1);
            struct wl_stream *stream = wl_stream_open(wl, 0);
            for (int n = 0; n < 200; n++) {
                struct wl_op op;
                assert_int_equal(wl_next(stream, &op), 0);
                assert_true(op.key < keys);
            }
            wl_stream_close(stream);
            wl_close(wl);
        }
    }
}

struct thread_arg {
    struct wl *wl;
    unsigned client;
    uint64_t keys[2][20000]; /* inserted; read */
    unsigned counts[2];
    bool failed;
};

static void *thread_run(void *arg) {
    struct thread_arg *thread = arg;
    struct wl_stream *stream = wl_stream_open(thread->wl, thread->client);
    for (int i = 0; i < 20000; i++) {
        struct wl_op op;
        thread->failed |= wl_next(stream, &op) != 0;
        unsigned side = op.kind == WL_INSERT ? 0 : 1;
        thread->keys[side][thread->counts[side]++] = op.key;
        wl_done(stream, &op, 0);
    }
    wl_stream_close(stream);
    return NULL;
}

static void threads_insert_each_key_once_and_read_only_existing_keys(void **state) {
    (void)state;
    enum { THREADS = 4 };
    static struct thread_arg threads[THREADS];
    pthread_t handles[THREADS];
    struct wl *wl = open_well(
        &(struct wl_config){
            .mix = "read=0.5,insert=0.5", .distribution = "latest", .insert_order = "ordered", .keys = 1000},
        THREADS, 1);
    unsigned inserted = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].wl = wl;
        threads[i].client = i;
        assert_int_equal(pthread_create(&handles[i], NULL, thread_run, &threads[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(handles[i], NULL);
        assert_false(threads[i].failed);
        inserted += threads[i].counts[0];
    }
    unsigned char *seen = calloc(inserted, 1);
    assert_non_null(seen);
    for (unsigned i = 0; i < THREADS; i++) {
        for (unsigned n = 0; n < threads[i].counts[0]; n++) {
            uint64_t number = threads[i].keys[0][n] - 1000;
            assert_true(number < inserted && seen[number] == 0);
            seen[number] = 1;
        }
        for (unsigned n = 0; n < threads[i].counts[1]; n++) {
            assert_true(threads[i].keys[1][n] < 1000 + inserted);
        }
    }
    free(seen);
    wl_close(wl);
}

/* Three parts, each with its own counter. Together they insert the next numbers, each once, and each part reads loaded
 * keys and those that it inserted itself. */
static void parts_of_a_workload_insert_different_keys_and_read_their_own(void **state) {
    (void)state;
    enum { PARTS = 3, INSERTS = 300, LOADED = 1000 };
    const struct wl_config config = {
        .workload = "d", .mix = "read=0.5,insert=0.5", .keys = LOADED, .insert_order = "ordered"};
    unsigned char seen[PARTS * INSERTS] = {0};
    for (unsigned part = 0; part < PARTS; part++) {
        struct wl *wl = open_well(&config, PARTS, 5);
        struct dm_err err = {0};
        assert_int_equal(wl_partition(wl, part, PARTS, &err), 0);
        struct wl_stream *stream = wl_stream_open(wl, part);
        for (unsigned inserts = 0; inserts < INSERTS;) {
            struct wl_op op;
            assert_int_equal(wl_next(stream, &op), 0);
            uint64_t number = op.key - LOADED;
            if (op.kind == WL_INSERT) {
                assert_true(number < PARTS * INSERTS && number % PARTS == part && seen[number] == 0);
                seen[number] = 1;
                inserts++;
            } else {
                assert_true(op.key < LOADED || (number % PARTS == part && seen[number]));
            }
            wl_done(stream, &op, 0);
        }
        wl_stream_close(stream);
        wl_close(wl);
    }
    assert_null(memchr(seen, 0, sizeof(seen)));
}

static void closing_null_is_allowed(void **state) {
    (void)state;
    wl_close(NULL);
    wl_stream_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_depends_on_seed_and_client_only),
        cmocka_unit_test(loaded_keys_ascend_and_can_be_made_again_after_their_release),
        cmocka_unit_test(loaded_keys_are_drawn_evenly_and_change_no_operation),
        cmocka_unit_test(reads_choose_loaded_keys_and_inserts_choose_new_ones),
        cmocka_unit_test(a_key_that_one_client_inserted_is_read_by_others_once_acknowledged),
        cmocka_unit_test(load_only_inserts_and_each_key_once),
        cmocka_unit_test(deletes_are_drawn_when_asked_for),
        cmocka_unit_test(a_value_begins_with_the_mix_of_key_and_version),
        cmocka_unit_test(the_smallest_workloads_work),
        cmocka_unit_test(threads_insert_each_key_once_and_read_only_existing_keys),
        cmocka_unit_test(parts_of_a_workload_insert_different_keys_and_read_their_own),
        cmocka_unit_test(closing_null_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
