/* SPDX-License-Identifier: Apache-2.0
 *
 * What the published benchmarks of indexes do and YCSB does not: a share of the keys is loaded, writes insert or
 * update, hashes are folded onto a small key space, every client inserts into a range of its own, traces are repeated.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"
#include "unit/workloads/files.h"
#include "workloads/generators.h"
#include "workloads/workload.h"

static struct wl *open_well(const struct wl_config *config, uint64_t operations, unsigned clients) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    if (wl_open(config, operations, clients, 3, &wl, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return wl;
}

static struct wl_op next_of(struct wl_stream *stream) {
    struct wl_op op;
    assert_int_equal(wl_next(stream, &op), 0);
    return op;
}

enum { SPACE = 1000, DRAWS = 400000 };

static void folded_keys_are_hashes_modulo_the_key_space_and_only_a_share_is_loaded(void **state) {
    (void)state;
    unsigned char loaded[SPACE] = {0};
    uint64_t count = 0, expected = 0;
    for (uint64_t i = 0; i < SPACE / 5; i++) {
        unsigned char *mark = &loaded[wl_fnvhash64(i) % SPACE];
        expected += *mark == 0;
        *mark = 1;
    }
    struct wl *wl = open_well(&(struct wl_config){.workload = "chime_skew", .keys = SPACE}, DRAWS, 1);
    for (int again = 0; again < 2; again++) {
        const uint64_t *keys = wl_keys(wl, &count);
        assert_int_equal(count, expected);
        for (uint64_t i = 0; i < count; i++) {
            assert_true(keys[i] < SPACE && loaded[keys[i]] && (i == 0 || keys[i - 1] < keys[i]));
        }
        wl_keys_release(wl);
    }
    /* hashes that fall together are some, and not all */
    assert_true(expected > SPACE / 7 && expected < SPACE / 5);
    wl_close(wl);
}

/* The probability of each key when ranks follow Gray's Zipfian and are hashed onto the keys. */
static void folded_expect(double share[SPACE], double theta) {
    double zetan = 0.0, below = 0.0;
    for (int i = 1; i <= SPACE; i++) {
        zetan += pow(i, -theta);
    }
    double eta = (1.0 - pow(2.0 / SPACE, 1.0 - theta)) / (1.0 - (1.0 + pow(2.0, -theta)) / zetan);
    memset(share, 0, SPACE * sizeof share[0]);
    for (uint64_t rank = 0; rank < SPACE; rank++) {
        double upto = rank == 0 ? 1.0 / zetan : 1.0 - 1.0 / eta + pow((double)(rank + 1) / SPACE, 1.0 - theta) / eta;
        share[wl_fnvhash64(rank) % SPACE] += upto - below;
        below = upto;
    }
}

/* Six standard deviations for every key. */
static bool keys_fit(const struct wl_config *config, const double share[SPACE]) {
    double seen[SPACE] = {0};
    struct wl *wl = open_well(config, DRAWS, 1);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    for (int i = 0; i < DRAWS; i++) {
        struct wl_op op = next_of(stream);
        assert_true(op.key < SPACE);
        seen[op.key] += 1.0;
    }
    wl_stream_close(stream);
    wl_close(wl);
    bool fits = true;
    for (int key = 0; key < SPACE; key++) {
        fits = fits && fabs(seen[key] - DRAWS * share[key]) <= 6.0 * sqrt(DRAWS * share[key]) + 1e-9;
    }
    return fits;
}

static void the_hashed_zipfian_is_a_zipfian_over_the_key_space(void **state) {
    (void)state;
    static const double thetas[] = {0.5, 0.99};
    double share[SPACE];
    for (size_t i = 0; i < 2; i++) {
        struct wl_config config = {.workload = "chime_skew", .keys = SPACE, .theta = thetas[i]};
        folded_expect(share, thetas[i]);
        assert_true(keys_fit(&config, share));
        /* YCSB's, which draws ranks among 10^10, is another one */
        config.distribution = "zipfian";
        assert_false(keys_fit(&config, share));
    }
}

static void an_upsert_is_an_insert_of_an_absent_key_and_an_update_of_a_present_one(void **state) {
    (void)state;
    static const char *const sets[] = {"folded", "dense", "uniform", ""};
    for (size_t s = 0; s < 4; s++) {
        struct wl *wl =
            open_well(&(struct wl_config){.workload = "chime_skew", .key_set = sets[s], .keys = SPACE}, DRAWS, 2);
        struct wl_stream *streams[2] = {wl_stream_open(wl, 0), wl_stream_open(wl, 1)};
        uint64_t count = 0, present_count, inserts = 0;
        const uint64_t *keys = wl_keys(wl, &count);
        uint64_t *present = malloc((count + 20000) * sizeof present[0]);
        assert_non_null(present);
        memcpy(present, keys, count * sizeof present[0]);
        present_count = count;
        for (int i = 0; i < 20000; i++) {
            struct wl_op op = next_of(streams[i % 2]);
            bool is_there = false;
            for (uint64_t k = 0; k < present_count && op.kind != WL_GET; k++) {
                is_there |= present[k] == op.key;
            }
            assert_int_equal(op.upsert, op.kind != WL_GET);
            assert_true(op.kind == WL_GET || op.kind == (is_there ? WL_UPDATE : WL_INSERT));
            /* one that failed has not inserted its key */
            int outcome = i % 7 == 0 ? DM_ERR_NO_MEMORY : 0;
            if (op.kind == WL_INSERT && outcome == 0) {
                present[present_count++] = op.key;
                inserts++;
            }
            wl_done(streams[i % 2], &op, outcome);
        }
        assert_true(inserts > 100 && present_count <= SPACE);
        free(present);
        wl_stream_close(streams[0]);
        wl_stream_close(streams[1]);
        wl_close(wl);
    }
}

static void a_share_of_any_key_set_can_be_loaded(void **state) {
    (void)state;
    static const char *const sets[] = {"", "dense", "uniform", "linear_noise"};
    static const char *const orders[] = {"hashed", "ordered"};
    for (size_t i = 0; i < 8; i++) {
        struct wl_config config = {.workload = "c",
                                   .distribution = "uniform",
                                   .key_set = sets[i / 2],
                                   .insert_order = orders[i % 2],
                                   .keys = SPACE,
                                   .loaded = 0.3};
        struct wl *wl = open_well(&config, DRAWS, 1);
        uint64_t count = 0, found = 0;
        const uint64_t *keys = wl_keys(wl, &count);
        assert_int_equal(count, SPACE * 3 / 10);
        struct wl_stream *stream = wl_stream_open(wl, 0);
        for (int n = 0; n < 20000; n++) {
            struct wl_op op = next_of(stream);
            uint64_t low = 0, high = count;
            while (low < high) {
                uint64_t middle = (low + high) / 2;
                low = keys[middle] < op.key ? middle + 1 : low;
                high = keys[middle] < op.key ? high : middle;
            }
            found += low < count && keys[low] == op.key;
        }
        assert_true(fabs((double)found - 6000.0) < 6.0 * sqrt(20000 * 0.3 * 0.7));
        wl_stream_close(stream);
        wl_close(wl);
    }
}

enum { LOADED = 500, CLIENTS = 4, OPERATIONS = 8000, RANGE = OPERATIONS / 2 / CLIENTS };

/* A published trace ascends as a whole and is then split, so client c begins where client c - 1 will end. */
static void each_client_inserts_ascending_keys_of_its_own_range(void **state) {
    (void)state;
    enum { ROUNDS = 3 };
    unsigned char seen[LOADED + (ROUNDS + 1) * CLIENTS * RANGE] = {0};
    const struct wl_config config = {.workload = "d",
                                     .mix = "read=0.5,insert=0.5",
                                     .insert_order = "ordered",
                                     .insert_ranges = "client",
                                     .keys = LOADED};
    struct wl *wl = open_well(&config, OPERATIONS, CLIENTS);
    for (unsigned client = 0; client < CLIENTS; client++) {
        struct wl_stream *stream = wl_stream_open(wl, client);
        uint64_t newest = LOADED + (uint64_t)client * RANGE - 1;
        for (uint64_t i = 0; i < ROUNDS * RANGE;) {
            struct wl_op op = next_of(stream);
            if (op.kind == WL_INSERT) {
                uint64_t expected = LOADED + (i / RANGE * CLIENTS + client) * RANGE + i % RANGE;
                assert_int_equal(op.key, expected);
                assert_false(seen[op.key]);
                seen[op.key] = 1;
                newest = op.key;
                i++;
            } else {
                assert_true(op.key <= newest);
            }
            wl_done(stream, &op, 0);
        }
        wl_stream_close(stream);
    }
    for (uint64_t key = LOADED; key < LOADED + ROUNDS * CLIENTS * RANGE; key++) {
        assert_true(seen[key]);
    }
    wl_close(wl);
}

static void ranges_of_clients_do_not_depend_on_the_number_of_processes(void **state) {
    (void)state;
    const struct wl_config config = {.workload = "chime_e", .keys = LOADED};
    struct wl *one = open_well(&config, OPERATIONS, CLIENTS), *part = open_well(&config, OPERATIONS, CLIENTS);
    struct dm_err err = {0};
    assert_int_equal(wl_partition(part, 1, 3, &err), 0);
    struct wl_stream *a = wl_stream_open(one, 2), *b = wl_stream_open(part, 2);
    for (int i = 0; i < 2000; i++) {
        struct wl_op x = next_of(a), y = next_of(b);
        assert_true(x.key == y.key && x.kind == y.kind && x.scan_length == y.scan_length);
    }
    wl_stream_close(a);
    wl_stream_close(b);
    wl_close(one);
    wl_close(part);
}

static void a_trace_is_repeated_and_its_inserts_have_new_keys(void **state) {
    (void)state;
    enum { TRACE = 300, TURNS = 5 };
    static const char *const names[] = {"a", "c", "chime_d", "chime_e"};
    unsigned char seen[LOADED + 1000000] = {0};
    for (size_t w = 0; w < 4; w++) {
        const struct wl_config config = {
            .workload = names[w], .keys = LOADED, .insert_order = "ordered", .trace_ops_per_client = TRACE};
        struct wl *wl = open_well(&config, (uint64_t)TRACE * CLIENTS, CLIENTS);
        struct wl_op first[TRACE];
        memset(seen, 0, sizeof seen);
        for (unsigned client = 0; client < CLIENTS; client++) {
            struct wl_stream *stream = wl_stream_open(wl, client);
            for (int i = 0; i < TRACE * TURNS; i++) {
                struct wl_op op = next_of(stream), *same = &first[i % TRACE];
                if (i < TRACE) {
                    *same = op;
                }
                assert_true(op.kind == same->kind && op.scan_length == same->scan_length);
                if (op.kind == WL_INSERT) {
                    assert_true(op.key < sizeof seen && op.key >= LOADED && !seen[op.key]);
                    seen[op.key] = 1;
                } else {
                    assert_int_equal(op.key, same->key);
                }
                wl_done(stream, &op, 0);
            }
            assert_true(first[0].key != first[1].key || first[0].key != first[2].key);
            wl_stream_close(stream);
        }
        wl_close(wl);
    }
}

static void a_trace_begins_like_an_endless_workload(void **state) {
    (void)state;
    struct wl *trace =
        open_well(&(struct wl_config){.workload = "a", .keys = LOADED, .trace_ops_per_client = 200}, 1000, 2);
    struct wl *endless = open_well(&(struct wl_config){.workload = "a", .keys = LOADED}, 1000, 2);
    struct wl_stream *a = wl_stream_open(trace, 1), *b = wl_stream_open(endless, 1);
    unsigned differ = 0;
    for (int i = 0; i < 400; i++) {
        struct wl_op x = next_of(a), y = next_of(b);
        assert_true(i >= 200 || (x.key == y.key && x.kind == y.kind));
        differ += x.key != y.key;
    }
    assert_true(differ > 100);
    wl_stream_close(a);
    wl_stream_close(b);
    wl_close(trace);
    wl_close(endless);
}

static void recorded_upserts_stay_upserts(void **state) {
    (void)state;
    const char *path = file_path("upserts");
    struct dm_err err = {0};
    struct wl *wl = open_well(&(struct wl_config){.workload = "sherman_bench", .keys = SPACE}, 1000, 1);
    struct wl_op first[500];
    assert_int_equal(wl_record(wl, path, &err), 0);
    struct wl_stream *stream = wl_stream_open(wl, 0);
    for (int i = 0; i < 500; i++) {
        first[i] = next_of(stream);
        wl_done(stream, &first[i], 0);
    }
    wl_stream_close(stream);
    assert_int_equal(wl_record_finish(wl, &err), 0);
    struct wl *again = open_well(&(struct wl_config){.replay = path}, 1000, 1);
    uint64_t count = 0, recount = 0;
    wl_keys(wl, &count);
    wl_keys(again, &recount);
    assert_int_equal(count, recount);
    stream = wl_stream_open(again, 0);
    for (int i = 0; i < 500; i++) {
        struct wl_op op = next_of(stream);
        assert_true(op.key == first[i].key && op.kind == first[i].kind && op.upsert == first[i].upsert);
    }
    wl_stream_close(stream);
    wl_close(wl);
    wl_close(again);
}

static void refused(const struct wl_config *config, const char *part) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    assert_int_equal(wl_open(config, 1000, 2, 1, &wl, &err), DM_ERR_INVALID);
    assert_null(wl);
    if (strstr(err.text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, err.text);
    }
}

static void combinations_without_a_meaning_are_refused_by_name(void **state) {
    (void)state;
    refused(&(struct wl_config){.workload = "d", .trace_ops_per_client = 10}, "trace_ops_per_client: ");
    refused(&(struct wl_config){.workload = "c", .distribution = "sequential", .trace_ops_per_client = 10},
            "trace_ops_per_client: ");
    refused(&(struct wl_config){.workload = "c", .loaded = 1.5}, "loaded: ");
    refused(&(struct wl_config){.workload = "c", .loaded = -0.5}, "loaded: ");
    refused(&(struct wl_config){.workload = "dolphin_load", .loaded = 0.5}, "loaded: ");
    refused(&(struct wl_config){.workload = "c", .properties = "insertstart=10", .loaded = 0.5}, "loaded: ");
    refused(&(struct wl_config){.workload = "d", .key_set = "folded"}, "key_set: ");
    refused(&(struct wl_config){.workload = "c", .distribution = "zipfian_hashed", .insert_order = "ordered"},
            "zipfian_clustered");
    refused(&(struct wl_config){.workload = "c", .upserts = "maybe"}, "upserts: ");
    refused(&(struct wl_config){.workload = "c", .insert_ranges = "node"}, "insert_ranges: ");
}

static void a_workloads_own_key_set_differs_from_a_users(void **state) {
    (void)state;
    assert_true(wl_is_own_key_set("chime_skew", "folded"));
    assert_false(wl_is_own_key_set("chime_skew", "dense"));
    assert_false(wl_is_own_key_set("c", ""));
    assert_false(wl_is_own_key_set(NULL, NULL));
    struct wl *wl = open_well(&(struct wl_config){.workload = "dolphin_load", .keys = SPACE}, 1000, 1);
    assert_string_equal(wl_effective(wl)->key_set, "grown");
    wl_close(wl);
}

/* ---- keys to come ------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool has_key(const uint64_t *keys, uint64_t count, uint64_t key) {
    return count > 0 && bsearch(&key, keys, count, sizeof key, by_value) != NULL;
}

/* Draws all operations, from clients in turn: every insert is of a key to come. Returns the number of those. */
static uint64_t inserts_come(const struct wl_config *config, uint64_t operations, unsigned clients) {
    struct wl *wl = open_well(config, operations, clients);
    struct wl_stream *streams[CLIENTS];
    const uint64_t *come;
    uint64_t loaded_count, count, inserts = 0;
    const uint64_t *loaded = wl_keys(wl, &loaded_count);
    assert_int_equal(wl_keys_to_come(wl, &come, &count), 0);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(i == 0 || come[i - 1] < come[i]);
        assert_false(has_key(loaded, loaded_count, come[i]));
    }
    for (unsigned client = 0; client < clients; client++) {
        streams[client] = wl_stream_open(wl, client);
    }
    for (uint64_t i = 0; i < operations; i++) {
        struct wl_op op = next_of(streams[i % clients]);
        if (op.kind == WL_INSERT) {
            assert_true(has_key(come, count, op.key) || has_key(loaded, loaded_count, op.key));
            inserts++;
        }
        wl_done(streams[i % clients], &op, 0);
    }
    for (unsigned client = 0; client < clients; client++) {
        wl_stream_close(streams[client]);
    }
    wl_close(wl);
    assert_true(inserts > 0 || count == 0);
    return count;
}

static void every_key_that_a_run_inserts_is_one_of_those_to_come(void **state) {
    (void)state;
    static const struct wl_config configs[] = {
        {.workload = "d", .keys = 1000},          {.workload = "load", .keys = 1000},
        {.workload = "e", .keys = 1000},          {.workload = "load", .keys = 1000, .key_set = "uniform"},
        {.workload = "chime_e", .keys = 1000},    {.workload = "load", .keys = 1000, .key_set = "dense"},
        {.workload = "chime_load", .keys = 1000}, {.workload = "dolphin_load", .keys = 1000},
    };
    for (unsigned i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        uint64_t operations = strstr(configs[i].workload, "load") != NULL ? 2000 : 40000;
        uint64_t count = inserts_come(&configs[i], operations, CLIENTS);
        assert_in_range(count, 2000, configs[i].workload[0] == 'c' ? 6000 : 2500);
    }
    assert_int_equal(inserts_come(&(struct wl_config){.workload = "a", .keys = 1000}, 1000, CLIENTS), 0);
    /* upserts insert the keys that are chosen but not loaded */
    uint64_t count = inserts_come(&(struct wl_config){.workload = "chime_skew", .keys = SPACE}, 40000, CLIENTS);
    assert_in_range(count, SPACE * 2 / 5, SPACE * 4 / 5);
}

/* Inserts beyond the expected number must be between the loaded keys, too: in a row behind the last key they
 * would all be of one leaf. */
static void a_mix_that_inserts_more_than_expected_inserts_between_the_keys(void **state) {
    (void)state;
    enum { DRAWN = 10000 };
    unsigned followed = 0, longer = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct wl *wl = NULL;
        struct dm_err err;
        const struct wl_config config = {.workload = "dolphin_range_write", .keys = 100000};
        assert_int_equal(wl_open(&config, DRAWN, 1, seed, &wl, &err), 0);
        struct wl_stream *stream = wl_stream_open(wl, 0);
        uint64_t inserts = 0, last = 0;
        for (int i = 0; i < DRAWN; i++) {
            struct wl_op op = next_of(stream);
            if (op.kind == WL_INSERT) {
                followed += inserts > 0 && op.key == last + 1;
                last = op.key;
                inserts++;
            }
            wl_done(stream, &op, 0);
        }
        longer += inserts > DRAWN / 2;
        wl_stream_close(stream);
        wl_close(wl);
    }
    assert_true(longer > 0);
    assert_in_range(followed, 0, 10); /* one of 100000 by chance */
}

static void the_keys_that_a_trace_inserts_are_not_known(void **state) {
    (void)state;
    static const char line[] = "0,key,3,8,1,get,0\n";
    char path[300];
    const uint64_t *come;
    uint64_t count;
    snprintf(path, sizeof path, "%s", file_write("trace.csv", line, sizeof line - 1));
    struct wl *wl = open_well(&(struct wl_config){.trace = path}, 1, 1);
    assert_int_equal(wl_keys_to_come(wl, &come, &count), DM_ERR_UNSUPPORTED);
    assert_null(come);
    wl_close(wl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_keys_are_hashes_modulo_the_key_space_and_only_a_share_is_loaded),
        cmocka_unit_test(the_hashed_zipfian_is_a_zipfian_over_the_key_space),
        cmocka_unit_test(an_upsert_is_an_insert_of_an_absent_key_and_an_update_of_a_present_one),
        cmocka_unit_test(a_share_of_any_key_set_can_be_loaded),
        cmocka_unit_test(each_client_inserts_ascending_keys_of_its_own_range),
        cmocka_unit_test(ranges_of_clients_do_not_depend_on_the_number_of_processes),
        cmocka_unit_test(a_trace_is_repeated_and_its_inserts_have_new_keys),
        cmocka_unit_test(a_trace_begins_like_an_endless_workload),
        cmocka_unit_test(recorded_upserts_stay_upserts),
        cmocka_unit_test(combinations_without_a_meaning_are_refused_by_name),
        cmocka_unit_test(a_workloads_own_key_set_differs_from_a_users),
        cmocka_unit_test(every_key_that_a_run_inserts_is_one_of_those_to_come),
        cmocka_unit_test(a_mix_that_inserts_more_than_expected_inserts_between_the_keys),
        cmocka_unit_test(the_keys_that_a_trace_inserts_are_not_known),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
