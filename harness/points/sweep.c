/* SPDX-License-Identifier: Apache-2.0
 *
 * A sweep: the points of a grid, and the table of their results.
 */
#include "harness/points/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"
#include "harness/points/result_path.h"
#include "harness/run/config.h"
#include "workloads/workload.h"

enum { LABEL_BYTES = 512 };

/* The columns for every kind of operation in the results, below "ops.NAME.". */
static const char *const op_columns[] = {"count", "latency_ns.p50", "latency_ns.p99", "round_trips_mean", NULL};

int hx_sweep_add_column(struct hx_sweep *sweep, const char *path, struct dm_err *err) {
    for (size_t i = 0; i < sweep->path_count; i++) {
        if (strcmp(sweep->paths[i], path) == 0) {
            return 0;
        }
    }
    char **paths = realloc(sweep->paths, (sweep->path_count + 1) * sizeof(*paths));
    char *copy = strdup(path);
    if (paths == NULL || copy == NULL) {
        sweep->paths = paths != NULL ? paths : sweep->paths;
        free(copy);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a table");
    }
    sweep->paths = paths;
    paths[sweep->path_count++] = copy;
    return 0;
}

/* Repetitions are one more column: consecutive seeds, from the base's on. */
static int add_seeds(struct hx_sweep *sweep, struct dm_err *err) {
    if (sweep->repeat <= 1) {
        return 0;
    }
    const json_t *seed = json_object_get(sweep->base, "seed");
    json_int_t first = json_is_integer(seed) ? json_integer_value(seed) : 1;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for seeds");
    }
    fprintf(out, "seed=");
    for (uint64_t i = 0; i < sweep->repeat; i++) {
        fprintf(out, "%s%lld", i > 0 ? "," : "", first + (long long)i);
    }
    fclose(out);
    int rc = hx_grid_add(&sweep->grid, text, false, err);
    free(text);
    return rc < 0 ? dm_fail_in(err, rc, "--repeat") : 0;
}

/* Parameters of the base's index mean nothing to another index, nor do options of its transport to another one. */
static void forget_set(struct hx_sweep *sweep, const size_t *choice, json_t *spec) {
    static const char *const pairs[][2] = {{"index", "set"}, {"transport", "transport_set"}};
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
        const char *before = json_string_value(json_object_get(sweep->base, pairs[k][0]));
        for (size_t i = 0; before != NULL && i < sweep->grid.count; i++) {
            const struct hx_column *column = &sweep->grid.columns[i];
            if (strcmp(column->name, pairs[k][0]) == 0 && strcmp(column->values[choice[i]], before) != 0 &&
                json_object_del(spec, pairs[k][1]) == 0 && !sweep->is_forgotten[k]) {
                sweep->is_forgotten[k] = true;
                dm_log(DM_LOG_WARN, "%s: '%s' of %s %s does not apply to others and is left out there",
                       sweep->base_path != NULL ? sweep->base_path : "sweep", pairs[k][1], pairs[k][0], before);
            }
        }
    }
}

/* The base with one value of each column put over it. */
static int add_combination(struct hx_sweep *sweep, const size_t *choice, size_t *index, struct dm_err *err) {
    char label[LABEL_BYTES] = "";
    size_t length = 0;
    json_t *spec = json_deep_copy(sweep->base);
    int rc = spec == NULL ? DM_ERR_NO_MEMORY : 0;
    if (spec != NULL) {
        forget_set(sweep, choice, spec);
    }
    for (size_t i = 0; i < sweep->grid.count && rc == 0; i++) {
        const struct hx_column *column = &sweep->grid.columns[i];
        json_t *value = json_string(column->values[choice[i]]);
        rc = value == NULL ? DM_ERR_INVALID : hx_json_put(spec, column->name, value);
        json_decref(value);
        if (length < sizeof(label)) {
            length += (size_t)snprintf(label + length, sizeof(label) - length, "%s%s=%s", i > 0 ? " " : "",
                                       column->name, column->values[choice[i]]);
        }
    }
    const char *where = sweep->base_path != NULL ? sweep->base_path : "sweep";
    rc = rc < 0 ? dm_fail(err, rc, "%s: cannot build the spec of %s", where, label)
                : hx_points_add(sweep->points, spec, where, length > 0 ? label : "base", index, err);
    json_decref(spec);
    return rc;
}

void hx_sweep_forget_details(json_t *base) {
    if (wl_is_own_key_set(json_string_value(json_object_get(base, "workload")),
                          json_string_value(json_object_get(base, "key_set")))) {
        json_object_del(base, "key_set");
    }
    for (const char *const *name = hx_workload_details; *name; name++) {
        json_object_del(base, *name);
    }
}

static void forget_details(struct hx_sweep *sweep) {
    for (size_t i = 0; i < sweep->grid.count; i++) {
        if (strcmp(sweep->grid.columns[i].name, "workload") == 0) {
            hx_sweep_forget_details(sweep->base);
        }
    }
}

int hx_sweep_build(struct hx_sweep *sweep, struct dm_err *err) {
    err->code = DM_ERR_NO_MEMORY;
    sweep->base = sweep->base_path != NULL ? dm_json_load(sweep->base_path, err) : json_object();
    if (sweep->base == NULL) {
        return err->code == DM_ERR_NO_MEMORY ? err->code : hx_fail_file(err);
    }
    /* A complete result is accepted as a base spec: its configuration is used. */
    json_t *inner = json_object_get(sweep->base, "config");
    if (json_is_object(inner)) {
        inner = hx_config_given(inner);
        json_decref(sweep->base);
        sweep->base = inner;
    }
    if (sweep->base == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a spec");
    }
    for (size_t i = 0; i < sweep->path_count; i++) {
        int rc = hx_result_path_check(sweep->paths[i], err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "--column");
        }
    }
    forget_details(sweep);
    DM_TRY(add_seeds(sweep, err));
    sweep->row_count = hx_grid_size(&sweep->grid);
    sweep->rows = calloc(sweep->row_count, sizeof(*sweep->rows));
    sweep->points = hx_points_new(sweep->out);
    size_t *choice = calloc(sweep->grid.count + 1, sizeof(*choice));
    if (sweep->rows == NULL || sweep->points == NULL || choice == NULL) {
        free(choice);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for %zu points", sweep->row_count);
    }
    int rc = 0;
    for (size_t i = 0; i < sweep->row_count && rc == 0; i++) {
        hx_grid_choose(&sweep->grid, i, choice);
        rc = add_combination(sweep, choice, &sweep->rows[i], err);
    }
    free(choice);
    return rc;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static int add_op_paths(struct hx_sweep *sweep, const json_t *result, struct dm_err *err) {
    const char *name;
    json_t *op;
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        for (size_t i = 0; op_columns[i] != NULL; i++) {
            char path[LABEL_BYTES];
            snprintf(path, sizeof(path), "ops.%s.%s", name, op_columns[i]);
            DM_TRY(hx_sweep_add_column(sweep, path, err));
        }
    }
    return 0;
}

/* One object a row: the values that the columns chose, the point's name and state, and what it measured. */
static json_t *row_new(const struct hx_sweep *sweep, size_t row, const json_t *result, const size_t *choice) {
    const struct hx_point *point = &sweep->points->items[sweep->rows[row]];
    json_t *object = json_object();
    for (size_t i = 0; i < sweep->grid.count; i++) {
        const struct hx_column *column = &sweep->grid.columns[i];
        json_object_set_new(object, column->name, json_string(column->values[choice[i]]));
    }
    for (size_t i = 0; i < sweep->path_count; i++) {
        const json_t *value = hx_json_find(result, sweep->paths[i]);
        json_object_set_new(object, sweep->paths[i], value != NULL ? json_deep_copy(value) : json_null());
    }
    json_object_set_new(object, "point", json_string(point->hash));
    return object;
}

/* Rows in the order of the combinations; all have the same columns. */
static int table_fill(struct hx_sweep *sweep, json_t *table, json_t **results, size_t *choice, struct dm_err *err) {
    DM_TRY(hx_sweep_add_column(sweep, "throughput_ops_per_s", err));
    for (size_t i = 0; i < sweep->row_count; i++) {
        results[i] = hx_points_load(sweep->points, sweep->rows[i], NULL);
        DM_TRY(add_op_paths(sweep, results[i], err));
    }
    for (size_t i = 0; i < sweep->row_count; i++) {
        hx_grid_choose(&sweep->grid, i, choice);
        if (json_array_append_new(table, row_new(sweep, i, results[i], choice)) != 0) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a table");
        }
    }
    return 0;
}

static json_t *table_new(struct hx_sweep *sweep, struct dm_err *err) {
    json_t *table = json_array();
    json_t **results = calloc(sweep->row_count, sizeof(*results));
    size_t *choice = calloc(sweep->grid.count + 1, sizeof(*choice));
    int rc = DM_ERR_NO_MEMORY;
    if (table == NULL || results == NULL || choice == NULL) {
        dm_fail(err, rc, "no memory for a table");
    } else {
        rc = table_fill(sweep, table, results, choice, err);
    }
    for (size_t i = 0; results != NULL && i < sweep->row_count; i++) {
        json_decref(results[i]);
    }
    free(results);
    free(choice);
    if (rc < 0) {
        json_decref(table);
        table = NULL;
    }
    return table;
}

static void cell_print(FILE *out, const json_t *value) {
    if (json_is_string(value)) {
        fprintf(out, "%s", json_string_value(value));
    } else if (json_is_integer(value)) {
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_number(value)) {
        fprintf(out, "%.10g", json_number_value(value));
    } else if (json_is_boolean(value)) {
        fprintf(out, "%d", json_is_true(value) ? 1 : 0);
    } else {
        fprintf(out, "NaN");
    }
}

static int table_write(const struct hx_sweep *sweep, const json_t *table, const char *path, struct dm_err *err) {
    FILE *out = dm_output_open(path, err);
    if (out == NULL) {
        return DM_ERR_IO;
    }
    size_t at;
    json_t *row, *value;
    const char *name;
    json_array_foreach(table, at, row) {
        const char *separator = "";
        if (at == 0) {
            json_object_foreach(row, name, value) {
                fprintf(out, "%s%s", separator, name);
                separator = "\t";
            }
            fprintf(out, "\n");
            separator = "";
        }
        json_object_foreach(row, name, value) {
            fprintf(out, "%s", separator);
            cell_print(out, value);
            separator = "\t";
        }
        fprintf(out, "\n");
    }
    DM_TRY(dm_output_close(out, path, err));
    fprintf(stderr, "table of %zu rows: %s\n", sweep->row_count, path);
    return 0;
}

int hx_sweep_tabulate(struct hx_sweep *sweep, FILE *json, struct dm_err *err) {
    json_t *table = table_new(sweep, err);
    char *path = hx_path_join(sweep->points->out, "table.tsv");
    int rc = table == NULL  ? err->code
             : path == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path")
                            : table_write(sweep, table, path, err);
    if (rc == 0 && json != NULL) {
        json_dumpf(table, json, JSON_INDENT(2));
        fprintf(json, "\n");
    }
    free(path);
    json_decref(table);
    return rc;
}

void hx_sweep_fini(struct hx_sweep *sweep) {
    json_decref(sweep->base);
    hx_grid_fini(&sweep->grid);
    for (size_t i = 0; i < sweep->path_count; i++) {
        free(sweep->paths[i]);
    }
    free(sweep->paths);
    hx_points_free(sweep->points);
    free(sweep->rows);
}
