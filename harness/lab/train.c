/* SPDX-License-Identifier: Apache-2.0
 *
 * Times training, and computes the errors of the models over every key in a second pass that is not timed. With leaves,
 * training is timed twice more: as a bulk load does it, which stores the pairs, and as a server does it later, which
 * reads them. A time is the least of some rounds, of the processor and not of the clock: other work of the host takes
 * turns with the thread, and evicts what it has in its caches.
 */
#include "harness/lab/train.h"

#include <stdlib.h>
#include <time.h>

#include "common/array.h"
#include "harness/lab/train_leaves.h"
#include "indexes/shared/plr.h"
#include "indexes/shared/rmi.h"

enum { EPSILON_FIRST = 4, EPSILON_LAST = 256, MODEL_STEPS = 8 }; /* of a sweep */
enum { ROUNDS = 3 };                                             /* of which the least time is kept */
enum { ERROR_COUNTS = UINT16_MAX + 1, PLR_MODEL_BYTES = 24, RMI_TOP_BYTES = 24, TABLE_ENTRY_BYTES = 8 };

/* ---- errors ----------------------------------------------------------------------------------------------------- */

struct errors {
    uint64_t *counts; /* of each distance; the last one counts all greater ones */
    uint64_t all, max;
    double sum;
};

static int errors_open(struct errors *errors) {
    *errors = (struct errors){.counts = calloc(ERROR_COUNTS, sizeof(*errors->counts))};
    return errors->counts ? 0 : DM_ERR_NO_MEMORY;
}

static void errors_add(struct errors *errors, int64_t distance) {
    uint64_t far = (uint64_t)(distance < 0 ? -distance : distance);
    errors->counts[far < ERROR_COUNTS ? far : ERROR_COUNTS - 1]++;
    errors->sum += (double)far;
    errors->max = far > errors->max ? far : errors->max;
    errors->all++;
}

static uint64_t quantile(const struct errors *errors, double share) {
    uint64_t below = 0, at = 0;
    while (at + 1 < ERROR_COUNTS && (double)(below + errors->counts[at]) < share * (double)errors->all) {
        below += errors->counts[at++];
    }
    return at;
}

static struct hx_train_error errors_close(struct errors *errors) {
    struct hx_train_error error = {.mean = errors->all > 0 ? errors->sum / (double)errors->all : 0,
                                   .p50 = quantile(errors, 0.5),
                                   .p99 = quantile(errors, 0.99),
                                   .max = errors->max};
    free(errors->counts);
    return error;
}

/* Processor time of this thread. */
static uint64_t thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A round ends: *least becomes its time a key if no round before was shorter. */
static void keep_least(double *least, uint64_t begin_ns, uint64_t count) {
    double ns = count > 0 ? (double)(thread_ns() - begin_ns) / (double)count : 0;
    *least = *least == 0 || ns < *least ? ns : *least;
}

/* ---- PLR -------------------------------------------------------------------------------------------------------- */

struct segments {
    struct ix_plr_segment *items;
    uint64_t count, capacity;
};

static int segment_add(struct segments *segments, const struct ix_plr_segment *segment) {
    struct ix_plr_segment *items = dm_array_grow(segments->items, segments->count, &segments->capacity, sizeof(*items));
    if (!items) {
        return DM_ERR_NO_MEMORY;
    }
    segments->items = items;
    items[segments->count++] = *segment;
    return 0;
}

static int plr_train(struct ix_plr *plr, const uint64_t *keys, uint64_t count, struct segments *segments) {
    struct ix_plr_segment closed;
    for (uint64_t i = 0; i < count; i++) {
        int rc = ix_plr_add(plr, keys[i], i, &closed);
        DM_TRY(rc);
        if (rc > 0) {
            DM_TRY(segment_add(segments, &closed));
        }
    }
    int rc = ix_plr_finish(plr, &closed);
    return rc > 0 ? segment_add(segments, &closed) : rc;
}

/* Each model has a leaf table of its own, whose last leaf may have fewer keys than the others. */
static uint64_t plr_leaves(const struct segments *segments, uint32_t fill) {
    uint64_t leaves = 0;
    for (uint64_t i = 0; i < segments->count; i++) {
        leaves += (segments->items[i].count + fill - 1) / fill;
    }
    return leaves;
}

/* The time of training with the pairs stored in leaves, and of training from the leaves with a new table. */
static int plr_leaves_time(struct ix_plr *plr, const uint64_t *keys, uint64_t count, struct hx_leaves *leaves,
                           struct segments *segments, struct hx_train_row *row) {
    struct ix_plr_segment closed;
    uint64_t key, read = 0;
    segments->count = 0;
    uint64_t begin_ns = thread_ns();
    for (uint64_t i = 0; i < count; i++) {
        int rc = ix_plr_add(plr, keys[i], i, &closed);
        DM_TRY(rc);
        if (rc > 0) {
            DM_TRY(segment_add(segments, &closed));
            hx_leaves_begin(leaves); /* each model begins with a leaf of its own */
        }
        hx_leaves_add(leaves, keys[i]);
    }
    int rc = ix_plr_finish(plr, &closed);
    DM_TRY(rc > 0 ? segment_add(segments, &closed) : rc);
    keep_least(&row->stored_ns_per_key, begin_ns, count);
    uint64_t *table = calloc(leaves->count + 1, sizeof(*table));
    segments->count = 0;
    rc = table ? hx_leaves_rewind(leaves) : DM_ERR_NO_MEMORY;
    begin_ns = thread_ns();
    for (; rc >= 0 && hx_leaves_next(leaves, &key); read++) {
        table[leaves->read] = leaves->table[leaves->read];
        rc = ix_plr_add(plr, key, read, &closed);
        rc = rc > 0 ? segment_add(segments, &closed) : rc;
    }
    rc = rc < 0 ? rc : ix_plr_finish(plr, &closed);
    rc = rc > 0 ? segment_add(segments, &closed) : rc;
    keep_least(&row->retrain_ns_per_key, begin_ns, count);
    free(table);
    return rc;
}

static int plr_with_leaves(struct ix_plr *plr, const uint64_t *keys, uint64_t count, uint32_t slots, uint32_t fill,
                           struct segments *segments, struct hx_train_row *row) {
    struct hx_leaves leaves;
    DM_TRY(hx_leaves_open(&leaves, plr_leaves(segments, fill), slots, fill));
    int rc = plr_leaves_time(plr, keys, count, &leaves, segments, row);
    hx_leaves_close(&leaves);
    return rc;
}

/* An optimal PLR, positions being ranks; leaves of more than one slot have a table. */
static int plr_measure(const uint64_t *keys, uint64_t count, uint32_t epsilon, uint32_t slots, uint32_t fill,
                       struct hx_train_row *row, struct dm_err *err) {
    struct segments segments = {.items = NULL};
    struct errors errors = {.counts = NULL};
    struct ix_plr *plr = NULL;
    *row = (struct hx_train_row){.setting = epsilon, .bound_mean = 2.0 * epsilon};
    int rc = ix_plr_open(epsilon, &plr);
    for (unsigned round = 0; rc == 0 && round < ROUNDS; round++) {
        segments.count = 0;
        uint64_t begin_ns = thread_ns();
        rc = plr_train(plr, keys, count, &segments);
        keep_least(&row->ns_per_key, begin_ns, count);
        rc = rc == 0 && slots > 1 ? plr_with_leaves(plr, keys, count, slots, fill, &segments, row) : rc;
    }
    rc = rc < 0 ? rc : errors_open(&errors);
    for (uint64_t i = 0; rc == 0 && i < segments.count; i++) {
        const struct ix_plr_segment *segment = &segments.items[i];
        for (uint64_t k = segment->first_position; k <= segment->last_position; k++) {
            uint64_t predicted = segment->first_position + ix_plr_predict(&segment->model, keys[k]);
            errors_add(&errors, (int64_t)(predicted - k));
        }
    }
    if (rc == 0) {
        row->models = segments.count;
        row->bytes = segments.count * PLR_MODEL_BYTES;
        row->table_bytes = slots > 1 ? plr_leaves(&segments, fill) * TABLE_ENTRY_BYTES : 0;
        row->error = errors_close(&errors);
    }
    free(segments.items);
    ix_plr_close(plr);
    return rc < 0 ? dm_fail(err, rc, "PLR with epsilon %u: %s", epsilon, dm_code_text(rc)) : 0;
}

/* ---- RMI -------------------------------------------------------------------------------------------------------- */

/* The time of training from leaves: the keys are gathered, and each leaf gets its entry in a new table. */
static int rmi_leaves_time(struct ix_rmi *rmi, const uint64_t *keys, uint64_t count, uint32_t slots, uint32_t fill,
                           struct hx_train_row *row) {
    struct hx_leaves leaves;
    uint64_t *gathered = calloc(count + 1, sizeof(*gathered)), key;
    uint64_t *table = calloc(count / fill + 2, sizeof(*table));
    int rc = hx_leaves_open(&leaves, count / fill + 2, slots, fill);
    rc = rc == 0 && gathered && table ? 0 : DM_ERR_NO_MEMORY;
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        hx_leaves_add(&leaves, keys[i]);
    }
    for (unsigned round = 0; rc == 0 && round < ROUNDS; round++) {
        rc = hx_leaves_rewind(&leaves);
        if (rc < 0) {
            break;
        }
        uint64_t begin_ns = thread_ns(), n = 0;
        while (hx_leaves_next(&leaves, &key)) {
            table[leaves.read] = leaves.table[leaves.read];
            gathered[n++] = key;
        }
        ix_rmi_train(rmi, gathered, n, slots, fill, 1);
        keep_least(&row->retrain_ns_per_key, begin_ns, count);
    }
    free(gathered);
    free(table);
    hx_leaves_close(&leaves);
    return rc;
}

/* A two-level RMI, positions as in ix_rmi_train. */
static int rmi_measure(const uint64_t *keys, uint64_t count, uint32_t models, uint32_t slots, uint32_t fill,
                       struct hx_train_row *row, struct dm_err *err) {
    struct errors errors = {.counts = NULL};
    struct ix_rmi rmi = {.top = {.models = models}, .models = calloc(models, sizeof(*rmi.models))};
    *row = (struct hx_train_row){.is_rmi = true, .setting = models, .models = models};
    if (!rmi.models || errors_open(&errors) < 0) {
        free(rmi.models);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for %u sub-models", models);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = thread_ns();
        ix_rmi_train(&rmi, keys, count, slots, fill, 1);
        keep_least(&row->ns_per_key, begin_ns, count);
    }
    if (slots > 1 && rmi_leaves_time(&rmi, keys, count, slots, fill, row) < 0) {
        (void)errors_close(&errors);
        free(rmi.models);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the leaves of %u sub-models", models);
    }
    int64_t last = count > 0 ? (int64_t)((count - 1) / fill * slots + (count - 1) % fill) : 0;
    double bounds = 0;
    for (uint64_t i = 0; i < count; i++) {
        double coord = ix_rmi_coord(&rmi.top, keys[i]);
        uint32_t number = ix_rmi_pick(&rmi.top, coord);
        int64_t position = (int64_t)(i / fill * slots + i % fill);
        errors_add(&errors, ix_rmi_predict(&rmi.models[number], number, coord, last) - position);
        bounds += rmi.models[number].under + rmi.models[number].over;
    }
    row->bytes = (uint64_t)models * IX_RMI_MODEL_BYTES + RMI_TOP_BYTES;
    row->table_bytes = slots > 1 ? (count + fill - 1) / fill * TABLE_ENTRY_BYTES : 0;
    row->bound_mean = count > 0 ? bounds / (double)count : 0;
    row->error = errors_close(&errors);
    free(rmi.models);
    return 0;
}

/* ---- one or a sweep ---------------------------------------------------------------------------------------------- */

static uint32_t models_of(const struct hx_training *training, uint64_t keys) {
    uint64_t models = training->models > 0 ? training->models : keys / 200;
    return models > 0 ? (uint32_t)models : 1;
}

int hx_train_measure(const struct hx_training *training, bool sweeps, const uint64_t *keys, uint64_t count,
                     struct hx_train_row *rows, uint32_t *row_count, struct dm_err *err) {
    uint64_t epsilon = sweeps ? EPSILON_FIRST : training->epsilon, last = sweeps ? EPSILON_LAST : epsilon;
    uint32_t models = models_of(training, count), steps = sweeps ? MODEL_STEPS : 1;
    uint32_t slots = (uint32_t)training->slots, fill = (uint32_t)training->fill;
    uint64_t each = sweeps ? models / 8 : models;
    *row_count = 0;
    for (bool more = true; more; epsilon *= 2) {
        DM_TRY(plr_measure(keys, count, (uint32_t)epsilon, slots, fill, &rows[(*row_count)++], err));
        more = epsilon < last;
    }
    for (uint32_t i = 0; i < steps; i++, each *= 2) {
        each = each > 0 ? each : 1;
        DM_TRY(rmi_measure(keys, count, (uint32_t)(each < UINT32_MAX ? each : UINT32_MAX), slots, fill,
                           &rows[(*row_count)++], err));
    }
    return 0;
}
