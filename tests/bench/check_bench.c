/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the judge on histories of 100 000 operations of many clients, on 1 000 keys and on one key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check/judge.h"
#include "common/prng.h"

enum { OPS = 100000 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Makes a history of registers with linearization points in order. Each operation overlaps those of about all other
 * clients. */
static void history_make(struct ck_op *ops, uint64_t *values, unsigned keys, unsigned clients) {
    struct dm_prng prng = dm_prng_stream(1, "check bench", keys);
    uint64_t *ends = calloc(clients, sizeof(*ends));
    for (size_t i = 0; ends && i < OPS; i++) {
        static const enum wl_op_kind kinds[] = {WL_GET, WL_GET, WL_GET, WL_INSERT, WL_UPDATE, WL_UPDATE, WL_DELETE};
        unsigned client = (unsigned)(i % clients);
        uint64_t key = dm_prng_below(&prng, keys), moment = 100 * i + 100 * clients;
        struct ck_op op = {.client = client, .key = key, .value = i + 1, .finished = true};
        op.invoke = ends[client] + 1 + dm_prng_below(&prng, moment - ends[client]);
        op.invoke = op.invoke < moment ? op.invoke : moment;
        op.response = moment + dm_prng_below(&prng, 99 * clients);
        ends[client] = op.response;
        op.kind = kinds[dm_prng_below(&prng, sizeof(kinds) / sizeof(kinds[0]))];
        bool is_present = values[key] != 0;
        op.outcome = op.kind == WL_INSERT ? (is_present ? DM_EXISTS : 0) : is_present ? 0 : DM_NOT_FOUND;
        if (op.kind == WL_GET) {
            op.value = values[key];
        } else if (op.outcome == 0) {
            values[key] = op.kind == WL_DELETE ? 0 : op.value;
        }
        ops[i] = op;
    }
    free(ends);
}

/* Judges one history; false when out of memory. */
static bool measure(struct ck_op *ops, uint64_t *values, unsigned keys, unsigned clients) {
    history_make(ops, values, keys, clients);
    struct ck_history history = {.ops = ops, .op_count = OPS};
    struct ck_verdict verdict;
    double begin = seconds();
    bool is_judged = ck_judge(&history, &verdict) == 0;
    printf("%d operations, %4u keys, %3u clients: %.3f s, %s\n", OPS, keys, clients, seconds() - begin,
           is_judged ? ck_fault_names[verdict.fault] : "out of memory");
    return is_judged;
}

int main(void) {
    static const struct {
        unsigned keys, clients;
    } shapes[] = {{1000, 16}, {1000, 640}, {1, 8}, {1, 16}, {1, 32}, {1, 64}};
    bool is_done = true;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct ck_op *ops = calloc(OPS, sizeof(*ops));
        uint64_t *values = calloc(shapes[i].keys, sizeof(*values));
        is_done = ops && values && measure(ops, values, shapes[i].keys, shapes[i].clients) && is_done;
        free(ops);
        free(values);
    }
    return is_done ? 0 : 1;
}
