/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench train`: the learned models of ROLEX (PLR) and XStore (two-level RMI) trained on a key set, without an index
 * around them: how many models, how far off, how large, how long.
 */
#include <stdio.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/cli/commands.h"
#include "harness/lab/train_output.h"
#include "harness/points/points.h"
#include "harness/run/interrupt.h"
#include "workloads/keyset.h"

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

/* ---- the command ------------------------------------------------------------------------------------------------ */

static int train(const struct options *options, struct dm_err *err) {
    struct wl_keymap map;
    struct hx_train_row rows[HX_TRAIN_ROWS_MAX];
    uint32_t count = 0;
    bool sweeps = options->sweep || options->out[0];
    uint64_t key_count = 0;
    if (options->result[0] && (options->sweep || options->out[0] || options->json)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "--result is for one training of each kind: leave out --sweep, --out and --json");
    }
    if (options->training.fill > options->training.slots) {
        return dm_fail(err, DM_ERR_INVALID, "--fill %llu: a leaf of %llu slots does not hold so many keys",
                       (unsigned long long)options->training.fill, (unsigned long long)options->training.slots);
    }
    if (options->out[0]) {
        DM_TRY(hx_make_folder(options->out, err));
    }
    int rc =
        wl_keymap_open(&map, options->training.key_set, options->training.keys, 0, true, options->training.seed, err);
    if (rc < 0) {
        return hx_file_error(rc, err);
    }
    const uint64_t *keys = wl_keymap_load(&map, &key_count);
    rc = key_count == 0 ? dm_fail(err, DM_ERR_INVALID, "no keys to train on: --keys must be at least 1")
         : keys         ? hx_train_measure(&options->training, sweeps, keys, key_count, rows, &count, err)
                : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the array of %llu keys", (unsigned long long)key_count);
    if (rc == 0 && options->result[0]) {
        rc = hx_train_store(&options->training, key_count, rows, count, options->result, err);
    } else if (rc == 0 && options->json) {
        rc = hx_train_print_json(&options->training, key_count, rows, count);
    } else if (rc == 0) {
        hx_train_print(&options->training, key_count, rows, count);
    }
    if (rc == 0 && options->out[0]) {
        rc = hx_train_write_curves(rows, count, options->training.key_set, options->out, err);
    }
    wl_keymap_close(&map);
    return rc;
}

/* A file with a training's settings: options go over it, before it and behind it. */
static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct options *options = arg;
    (void)name;
    json_t *spec = dm_json_load(value, err);
    int rc = spec ? hx_training_from_json(spec, value, &options->training, err) : hx_fail_file(err);
    json_decref(spec);
    return rc;
}

static int skip_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    (void)arg;
    (void)name;
    (void)value;
    (void)err;
    return 0;
}

void hx_help_train(struct hx_help *help) {
    help->words = "file";
    help->usage = "train [SPEC] [options]";
    help->about =
        "Trains the models of the learned indexes on a key set: an optimal piecewise linear regression (ROLEX) and a "
        "two-level recursive model index (XStore). Errors are distances between predicted and true positions; bounds "
        "is what a look-up of a key has to consider beside the predicted position, on average.";
    help->examples = "dmbench train --keys 5M --epsilon 16\n"
                     "dmbench train --key-set lognormal --keys 10M --sweep\n"
                     "dmbench train --keys 100M --models 500K --slots 16 --fill 8 --json\n"
                     "dmbench train --key-set sosd:books_200M_uint64 --keys 0 --out results/train";
    help->status = "0 done, 1 failed, 2 usage, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = table});
}

int hx_cmd_train(int argc, char **argv) {
    struct options options = {.out = NULL};
    struct dm_err err = {0};
    dm_opt_defaults(table, &options);
    struct hx_args args = {.table = table, .values = &options, .take = take_word, .arg = &options};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 0) {
        args.take = skip_word;
        rc = hx_args_parse(&args, argc, argv, &err);
    }
    if (rc == 1) {
        hx_help_show(hx_help_train);
    } else if (rc == 0) {
        hx_interrupt_install("train");
        rc = train(&options, &err);
    }
    dm_opt_free(table, &options);
    return rc < 0 ? hx_report("train", &err) : HX_DONE;
}
