/* SPDX-License-Identifier: Apache-2.0
 *
 * Trainings as a table, as JSON, as the result of a point, and as curves.
 */
#include "harness/lab/train_output.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/data_folder.h"
#include "common/opt_json.h"
#include "harness/lab/curve_file.h"
#include "harness/run/config.h"
#include "harness/run/interrupt.h"
#include "harness/run/sources.h"

static json_t *row_to_json(const struct hx_train_row *row, uint64_t keys) {
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f}", "kind", row->is_rmi ? "rmi" : "plr",
                  row->is_rmi ? "sub_models" : "epsilon", (json_int_t)row->setting, "models", (json_int_t)row->models,
                  "keys_per_model", row->models > 0 ? (double)keys / (double)row->models : 0, "bytes",
                  (json_int_t)row->bytes, "table_bytes", (json_int_t)row->table_bytes, "bound_mean", row->bound_mean,
                  "error_mean", row->error.mean, "error_p50", (json_int_t)row->error.p50, "error_p99",
                  (json_int_t)row->error.p99, "error_max", (json_int_t)row->error.max, "ns_per_key", row->ns_per_key);
    if (object && row->stored_ns_per_key > 0) {
        json_object_set_new(object, "stored_ns_per_key", json_real(row->stored_ns_per_key));
    }
    if (object && row->retrain_ns_per_key > 0) {
        json_object_set_new(object, "retrain_ns_per_key", json_real(row->retrain_ns_per_key));
    }
    return object;
}

void hx_train_print(const struct hx_training *training, uint64_t keys, const struct hx_train_row *rows,
                    uint32_t count) {
    printf("%s, %llu keys, seed %llu\n%-4s %10s %10s %10s %10s %10s %8s %8s %8s %8s %8s\n", training->key_set,
           (unsigned long long)keys, (unsigned long long)training->seed, "", "setting", "models", "keys/model", "bytes",
           "table", "bounds", "mean", "p50", "p99", "ns/key");
    for (uint32_t i = 0; i < count; i++) {
        const struct hx_train_row *row = &rows[i];
        printf("%-4s %10llu %10llu %10.1f %10llu %10llu %8.2f %8.3f %8llu %8llu %8.1f\n", row->is_rmi ? "RMI" : "PLR",
               (unsigned long long)row->setting, (unsigned long long)row->models,
               row->models > 0 ? (double)keys / (double)row->models : 0, (unsigned long long)row->bytes,
               (unsigned long long)row->table_bytes, row->bound_mean, row->error.mean,
               (unsigned long long)row->error.p50, (unsigned long long)row->error.p99, row->ns_per_key);
    }
}

int hx_train_print_json(const struct hx_training *training, uint64_t keys, const struct hx_train_row *rows,
                        uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(list, row_to_json(&rows[i], keys));
    }
    json_t *top = json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "key_set", training->key_set, "keys", (json_int_t)keys,
                            "seed", (json_int_t)training->seed, "slots", (json_int_t)training->slots, "fill",
                            (json_int_t)training->fill, "rows", list);
    int rc = top ? json_dumpf(top, stdout, JSON_INDENT(1) | JSON_SORT_KEYS) : -1;
    putchar('\n');
    json_decref(top);
    return rc < 0 ? DM_ERR_NO_MEMORY : 0;
}

int hx_train_store(const struct hx_training *training, uint64_t keys, const struct hx_train_row *rows, uint32_t count,
                   const char *path, struct dm_err *err) {
    json_t *result = json_pack("{s:i, s:s, s:o}", "schema_version", HX_SCHEMA_VERSION, "time_base", "none", "config",
                               hx_training_to_json(training));
    if (result) {
        json_object_set_new(result, "provenance",
                            json_pack("{s:o}", "sources", hx_sources_new(json_object_get(result, "config"))));
    }
    for (uint32_t i = 0; result && i < count; i++) {
        json_object_set_new(result, rows[i].is_rmi ? "rmi" : "plr", row_to_json(&rows[i], keys));
    }
    int rc = result ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a result");
    if (rc == 0) {
        hx_interrupt_hold(true);
        rc = dm_json_store(result, path, err);
        hx_interrupt_hold(false);
    }
    json_decref(result);
    return rc;
}

/* One curve: its data, and the program that draws it. */
static int curve_write(const struct hx_train_row *rows, uint32_t count, const char *title, const char *folder,
                       bool is_rmi, struct dm_err *err) {
    const char *name = is_rmi ? "train-error" : "train-segments";
    struct hx_curve_file out;
    DM_TRY(hx_curve_open(&out, folder, name, "tsv", err));
    fprintf(out.file, "%s\t%s\n", is_rmi ? "sub_models" : "epsilon", is_rmi ? "error_mean" : "segments");
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].is_rmi == is_rmi) {
            double y = is_rmi ? rows[i].error.mean : (double)rows[i].models;
            fprintf(out.file, "%llu\t%.10g\n", (unsigned long long)rows[i].setting, y);
        }
    }
    DM_TRY(hx_curve_close(&out, err));
    DM_TRY(hx_curve_open(&out, folder, name, "gp", err));
    fprintf(out.file,
            "# Usage: gnuplot %s.gp, in this folder\nname = '%s'; width = 480; height = 320\n"
            "load '%s/plots/style.gp'\nset datafile separator tab\nset title '%s'\nset xlabel '%s'\nset ylabel '%s'\n"
            "set logscale x 2\nset logscale y\nset key off\ndo for [kind in kinds] {\n    eval(open(kind))\n"
            "    plot name.'.tsv' using 1:2 every ::1 with linespoints linetype 1\n    unset output\n}\n",
            name, name, dm_data_folder(), title, is_rmi ? "sub-models" : "epsilon (positions)",
            is_rmi ? "mean error (positions)" : "segments");
    return hx_curve_close(&out, err);
}

int hx_train_write_curves(const struct hx_train_row *rows, uint32_t count, const char *title, const char *folder,
                          struct dm_err *err) {
    DM_TRY(hx_curve_folder(folder, err));
    DM_TRY(curve_write(rows, count, title, folder, false, err));
    return curve_write(rows, count, title, folder, true, err);
}
