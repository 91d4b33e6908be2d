/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench train`: the learned models of ROLEX (PLR) and XStore (two-level RMI) trained on a key set, without an index
 * around them: how many models, how far off, how large, how long.
 */
#include "harness/lab/train.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/points/training.h"
#include "harness/run/interrupt.h"
#include "harness/run/result.h"
#include "workloads/keyset.h"

enum { ROWS_MAX = 32, PATH_BYTES = 1024, EPSILON_FIRST = 4, EPSILON_LAST = 256, MODEL_STEPS = 8 };

struct options {
    struct hx_training training;
    bool json, sweep;
    const char *out, *result;
};

#define ROW(member, ...) DM_OPT_ROW(struct options, member, __VA_ARGS__)

static const struct dm_opt table[] = {
    HX_TRAINING_ROWS(struct options, training),
    ROW(sweep, DM_OPT_BOOL, .initial = "0", .help = "epsilon from 4 to 256, and an eighth to 16 times the sub-models"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    ROW(out, DM_OPT_STRING, .initial = "",
        .help =
            "write data and gnuplot programs of models against epsilon and error against sub-models into this folder; "
            "implies --sweep"),
    ROW(result, DM_OPT_STRING, .initial = "",
        .help = "write one training of each kind to this file, as figures take it"),
    DM_OPT_END,
};

/* ---- output ----------------------------------------------------------------------------------------------------- */

static json_t *row_to_json(const struct hx_train_row *row, uint64_t keys) {
    return json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f}", "kind",
                     row->is_rmi ? "rmi" : "plr", row->is_rmi ? "sub_models" : "epsilon", (json_int_t)row->setting,
                     "models", (json_int_t)row->models, "keys_per_model",
                     row->models > 0 ? (double)keys / (double)row->models : 0, "bytes", (json_int_t)row->bytes,
                     "table_bytes", (json_int_t)row->table_bytes, "bound_mean", row->bound_mean, "error_mean",
                     row->error.mean, "error_p50", (json_int_t)row->error.p50, "error_p99", (json_int_t)row->error.p99,
                     "error_max", (json_int_t)row->error.max, "ns_per_key", row->ns_per_key);
}

static void rows_print(const struct options *options, uint64_t keys, const struct hx_train_row *rows, uint32_t count) {
    printf("%s, %llu keys, seed %llu\n%-4s %10s %10s %10s %10s %10s %8s %8s %8s %8s %8s\n", options->training.key_set,
           (unsigned long long)keys, (unsigned long long)options->training.seed, "", "setting", "models", "keys/model",
           "bytes", "table", "bounds", "mean", "p50", "p99", "ns/key");
    for (uint32_t i = 0; i < count; i++) {
        const struct hx_train_row *row = &rows[i];
        printf("%-4s %10llu %10llu %10.1f %10llu %10llu %8.2f %8.3f %8llu %8llu %8.1f\n", row->is_rmi ? "RMI" : "PLR",
               (unsigned long long)row->setting, (unsigned long long)row->models,
               row->models > 0 ? (double)keys / (double)row->models : 0, (unsigned long long)row->bytes,
               (unsigned long long)row->table_bytes, row->bound_mean, row->error.mean,
               (unsigned long long)row->error.p50, (unsigned long long)row->error.p99, row->ns_per_key);
    }
}

static int json_write(const struct options *options, uint64_t keys, const struct hx_train_row *rows, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(list, row_to_json(&rows[i], keys));
    }
    json_t *top =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "key_set", options->training.key_set, "keys", (json_int_t)keys,
                  "seed", (json_int_t)options->training.seed, "slots", (json_int_t)options->training.slots, "fill",
                  (json_int_t)options->training.fill, "rows", list);
    int rc = top ? json_dumpf(top, stdout, JSON_INDENT(1) | JSON_SORT_KEYS) : -1;
    putchar('\n');
    json_decref(top);
    return rc < 0 ? DM_ERR_NO_MEMORY : 0;
}

/* Without a sweep there is one row of each kind. */
static int result_write(const struct options *options, uint64_t keys, const struct hx_train_row *rows, uint32_t count,
                        struct dm_err *err) {
    json_t *result = json_pack("{s:i, s:s, s:o}", "schema_version", HX_SCHEMA_VERSION, "time_base", "none", "config",
                               hx_training_to_json(&options->training));
    for (uint32_t i = 0; result && i < count; i++) {
        json_object_set_new(result, rows[i].is_rmi ? "rmi" : "plr", row_to_json(&rows[i], keys));
    }
    int rc = result ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a result");
    if (rc == 0) {
        hx_interrupt_hold(true);
        rc = dm_json_store(result, options->result, err);
        hx_interrupt_hold(false);
    }
    json_decref(result);
    return rc;
}

/* One curve: its data, and the program that draws it. */
static int curve_write(const struct hx_train_row *rows, uint32_t count, const char *title, const char *folder,
                       bool is_rmi, struct dm_err *err) {
    const char *name = is_rmi ? "train-error" : "train-segments";
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s.tsv", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) {
        return dm_fail(err, DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    fprintf(file, "%s\t%s\n", is_rmi ? "sub_models" : "epsilon", is_rmi ? "error_mean" : "segments");
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].is_rmi == is_rmi) {
            double y = is_rmi ? rows[i].error.mean : (double)rows[i].models;
            fprintf(file, "%llu\t%.10g\n", (unsigned long long)rows[i].setting, y);
        }
    }
    int rc = fclose(file) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "%s: cannot write", path);
    snprintf(path, sizeof(path), "%s/%s.gp", folder, name);
    file = rc == 0 ? fopen(path, "w") : NULL;
    if (!file) {
        return rc < 0 ? rc : dm_fail(err, DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    fprintf(file,
            "# Usage: gnuplot %s.gp, in this folder\nname = '%s'; width = 480; height = 320\n"
            "load '%s/plots/style.gp'\nset datafile separator tab\nset title '%s'\nset xlabel '%s'\nset ylabel '%s'\n"
            "set logscale x 2\nset logscale y\nset key off\ndo for [kind in kinds] {\n    eval(open(kind))\n"
            "    plot name.'.tsv' using 1:2 every ::1 with linespoints linestyle 1\n    unset output\n}\n",
            name, name, DM_SOURCE_DIR, title, is_rmi ? "sub-models" : "epsilon (positions)",
            is_rmi ? "mean error (positions)" : "segments");
    return fclose(file) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "%s: cannot write", path);
}

/* Writes train-segments and train-error, data and gnuplot program each, into a folder, which is made. */
static int curves_write(const struct hx_train_row *rows, uint32_t count, const char *title, const char *folder,
                        struct dm_err *err) {
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        return dm_fail(err, DM_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    DM_TRY(curve_write(rows, count, title, folder, false, err));
    return curve_write(rows, count, title, folder, true, err);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static uint32_t models_of(const struct options *options, uint64_t keys) {
    uint64_t models = options->training.models > 0 ? options->training.models : keys / 200;
    return models > 0 ? (uint32_t)models : 1;
}

static int rows_measure(const struct options *options, const uint64_t *keys, uint64_t count, struct hx_train_row *rows,
                        uint32_t *row_count, struct dm_err *err) {
    bool sweeps = (options->sweep || options->out[0]) && !options->result[0];
    uint64_t epsilon = sweeps ? EPSILON_FIRST : options->training.epsilon, last = sweeps ? EPSILON_LAST : epsilon;
    uint32_t models = models_of(options, count), steps = sweeps ? MODEL_STEPS : 1;
    uint64_t each = sweeps ? models / 8 : models;
    *row_count = 0;
    for (bool more = true; more; epsilon *= 2) {
        DM_TRY(hx_train_plr(keys, count, (uint32_t)epsilon, &rows[(*row_count)++], err));
        more = epsilon < last;
    }
    for (uint32_t i = 0; i < steps; i++, each *= 2) {
        each = each > 0 ? each : 1;
        DM_TRY(hx_train_rmi(keys, count, (uint32_t)(each < UINT32_MAX ? each : UINT32_MAX),
                            (uint32_t)options->training.slots, (uint32_t)options->training.fill, &rows[(*row_count)++],
                            err));
    }
    return 0;
}

static int train(const struct options *options, struct dm_err *err) {
    struct wl_keymap map;
    struct hx_train_row rows[ROWS_MAX];
    uint32_t count = 0;
    uint64_t key_count = 0;
    if (options->training.fill > options->training.slots) {
        return dm_fail(err, DM_ERR_INVALID, "--fill %llu: a leaf of %llu slots does not hold so many keys",
                       (unsigned long long)options->training.fill, (unsigned long long)options->training.slots);
    }
    int rc =
        wl_keymap_open(&map, options->training.key_set, options->training.keys, 0, true, options->training.seed, err);
    if (rc < 0) {
        return rc == DM_ERR_CORRUPT ? hx_fail_file(err) : rc;
    }
    const uint64_t *keys = wl_keymap_load(&map, &key_count);
    rc = keys && key_count > 0 ? rows_measure(options, keys, key_count, rows, &count, err)
                               : dm_fail(err, DM_ERR_INVALID, "no keys to train on: --keys must be at least 1");
    if (rc == 0 && options->result[0]) {
        rc = result_write(options, key_count, rows, count, err);
    } else if (rc == 0 && options->json) {
        rc = json_write(options, key_count, rows, count);
    } else if (rc == 0) {
        rows_print(options, key_count, rows, count);
    }
    if (rc == 0 && options->out[0]) {
        rc = curves_write(rows, count, options->training.key_set, options->out, err);
    }
    wl_keymap_close(&map);
    return rc;
}

/* A file with a training's settings. */
static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct options *options = arg;
    (void)name;
    json_t *spec = dm_json_load(value, err);
    int rc = spec ? hx_training_from_json(spec, value, &options->training, err) : DM_ERR_INVALID;
    json_decref(spec);
    return rc;
}

int hx_cmd_train(int argc, char **argv) {
    static const char *const none[] = {NULL};
    struct options options = {.out = NULL};
    struct dm_err err = {0};
    dm_opt_defaults(table, &options);
    struct hx_args args = {.table = table, .values = &options, .repeated = none, .take = take_word, .arg = &options};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        printf(
            "Usage: dmbench train [SPEC] [options]\n\n"
            "Trains the models of the learned indexes on a key set: an optimal piecewise linear regression (ROLEX) and "
            "a\ntwo-level recursive model index (XStore). Errors are distances between predicted and true positions; "
            "bounds is\nwhat a look-up of a key has to consider beside the predicted position, on average.\n\n"
            "Examples:\n"
            "  dmbench train --keys 5M --epsilon 16\n"
            "  dmbench train --key-set lognormal --keys 10M --sweep\n"
            "  dmbench train --keys 100M --models 500K --slots 16 --fill 8 --json\n"
            "  dmbench train --key-set sosd:books_200M_uint64 --keys 0 --out results/train\n\n");
        hx_args_help(table);
    } else if (rc == 0) {
        hx_interrupt_install("train");
        rc = train(&options, &err);
    }
    dm_opt_free(table, &options);
    return rc < 0 ? hx_report("train", &err) : HX_DONE;
}
