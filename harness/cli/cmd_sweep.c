/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench sweep`: a grid of points over one base spec, run in parallel and resumed where it was left, and one table of
 * what came out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"
#include "harness/cli/commands.h"
#include "harness/points/points.h"
#include "harness/points/sweep_grid.h"
#include "harness/run/config.h"

enum { LABEL_BYTES = 512 };

struct sweep_options {
    const char *out;
    struct hx_points_options run;
    uint64_t repeat;
    bool dry_run, json;
};

#define ROW(member, ...)          DM_OPT_ROW(struct sweep_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct sweep_options, member, __VA_ARGS__)

static const struct dm_opt sweep_table[] = {
    ROW(out, DM_OPT_STRING, .initial = "results/sweep", .help = "folder for points/ and table.tsv"),
    HX_POINTS_ROWS(struct sweep_options, run),
    ROW(repeat, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 10000,
        .help = "runs of each point, with seeds that follow the base's"),
    ROW_AS("force", run.force, DM_OPT_BOOL, .initial = "0", .help = "run again what is there already"),
    ROW(dry_run, DM_OPT_BOOL, .initial = "0", .help = "check everything and print the plan, run nothing"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the table as JSON too"),
    DM_OPT_END,
};

/* What every table has of an operation that was done, below "ops.NAME.". */
static const char *const op_columns[] = {"count", "latency_ns.p50", "latency_ns.p99", "round_trips_mean", NULL};

struct sweep {
    struct sweep_options options;
    const char *base_path;
    json_t *base;
    struct hx_grid grid;
    char **paths; /* result paths that are columns of the table */
    size_t path_count;
    struct hx_points *points;
    size_t *rows; /* the point of each combination; two may be the same point */
    size_t row_count;
};

static void print_help(void) {
    printf(
        "usage: dmbench sweep [BASE.json] [--grid NAME=V,V,...]... [options]\n\n"
        "Runs every combination of the values over the base spec (without one: the defaults of `dmbench run`).\n"
        "A point whose result is in the folder already is not run again.\n\n"
        "  --grid NAME=V,V,...   values of an option (clients), an index parameter (set.node_bytes) or a transport\n"
        "                        option (transport_set.NAME); grids are crossed. Values that hold commas are parted\n"
        "                        by semicolons: --grid 'mix=read=1;read=0.5,update=0.5'\n"
        "  --list NAME=V,V,...   as --grid, but all lists go together: first values, second values, ...\n"
        "  --column PATH         one more column of the table, a path in results (throughput_ops_per_s is there)\n");
    hx_args_help(sweep_table);
    printf("\nexamples:\n"
           "  dmbench sweep base.json --grid clients=16,64,256 --grid set.node_bytes=512,1024 --out results/nodes\n"
           "  dmbench sweep --grid workload=a,c --list keys=1M,10M --list cache=10MB,100MB --repeat 5 --jobs 2\n"
           "  dmbench sweep base.json --grid clients=16,64 --sshloginfile machines --jobs 8\n"
           "  dmbench sweep base.json --grid clients=16,64 --slurm job.sh && sbatch job.sh\n");
}

static int path_add(struct sweep *sweep, const char *path, struct dm_err *err) {
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

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct sweep *sweep = arg;
    if (name == NULL) {
        if (sweep->base_path != NULL) {
            return dm_fail(err, DM_ERR_INVALID, "'%.40s': one base spec is enough", value);
        }
        sweep->base_path = value;
        return 0;
    }
    if (strcmp(name, "column") == 0) {
        return path_add(sweep, value, err);
    }
    int rc = hx_grid_add(&sweep->grid, value, strcmp(name, "list") == 0, err);
    return rc < 0 ? dm_fail_in(err, rc, "--%s", name) : 0;
}

/* Repetitions are one more column: seeds from the base's on. */
static int add_seeds(struct sweep *sweep, struct dm_err *err) {
    if (sweep->options.repeat <= 1) {
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
    for (uint64_t i = 0; i < sweep->options.repeat; i++) {
        fprintf(out, "%s%lld", i > 0 ? "," : "", first + (long long)i);
    }
    fclose(out);
    int rc = hx_grid_add(&sweep->grid, text, false, err);
    free(text);
    return rc < 0 ? dm_fail_in(err, rc, "--repeat") : 0;
}

/* The base with one value of each column put over it. */
static int add_combination(struct sweep *sweep, const size_t *choice, size_t *index, struct dm_err *err) {
    char label[LABEL_BYTES] = "";
    size_t length = 0;
    json_t *spec = json_deep_copy(sweep->base);
    int rc = spec == NULL ? DM_ERR_NO_MEMORY : 0;
    for (size_t i = 0; i < sweep->grid.count && rc == 0; i++) {
        const struct hx_column *column = &sweep->grid.columns[i];
        json_t *value = json_string(column->values[choice[i]]);
        rc = value == NULL ? DM_ERR_INVALID : hx_tree_put(spec, column->name, value);
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

/* A workload that the grid names means its own mix, not the one that the base (a result's configuration) spells out. */
static void forget_details(struct sweep *sweep) {
    for (size_t i = 0; i < sweep->grid.count; i++) {
        for (const char *const *name = hx_workload_details;
             strcmp(sweep->grid.columns[i].name, "workload") == 0 && *name; name++) {
            json_object_del(sweep->base, *name);
        }
    }
}

static int build(struct sweep *sweep, struct dm_err *err) {
    sweep->base = sweep->base_path != NULL ? dm_json_load(sweep->base_path, err) : json_object();
    if (sweep->base == NULL) {
        return err->code < 0 ? err->code : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a spec");
    }
    /* A result is a spec too: what counts is its configuration. */
    json_t *inner = json_object_get(sweep->base, "config");
    if (json_is_object(inner)) {
        json_incref(inner);
        json_decref(sweep->base);
        sweep->base = inner;
    }
    forget_details(sweep);
    DM_TRY(add_seeds(sweep, err));
    sweep->row_count = hx_grid_size(&sweep->grid);
    sweep->rows = calloc(sweep->row_count, sizeof(*sweep->rows));
    sweep->points = hx_points_new(sweep->options.out);
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

static int add_op_paths(struct sweep *sweep, const json_t *result, struct dm_err *err) {
    const char *name;
    json_t *op;
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        for (size_t i = 0; op_columns[i] != NULL; i++) {
            char path[LABEL_BYTES];
            snprintf(path, sizeof(path), "ops.%s.%s", name, op_columns[i]);
            DM_TRY(path_add(sweep, path, err));
        }
    }
    return 0;
}

/* One object a row: the values that the columns chose, the point's name and state, and what it measured. */
static json_t *row_new(const struct sweep *sweep, size_t row, const json_t *result, const size_t *choice) {
    const struct hx_point *point = &sweep->points->items[sweep->rows[row]];
    json_t *object = json_object();
    for (size_t i = 0; i < sweep->grid.count; i++) {
        const struct hx_column *column = &sweep->grid.columns[i];
        json_object_set_new(object, column->name, json_string(column->values[choice[i]]));
    }
    for (size_t i = 0; i < sweep->path_count; i++) {
        const json_t *value = hx_tree_find(result, sweep->paths[i]);
        json_object_set_new(object, sweep->paths[i], value != NULL ? json_deep_copy(value) : json_null());
    }
    json_object_set_new(object, "point", json_string(point->hash));
    return object;
}

/* Rows in the order of the combinations; all have the same columns. */
static int table_fill(struct sweep *sweep, json_t *table, json_t **results, size_t *choice, struct dm_err *err) {
    DM_TRY(path_add(sweep, "throughput_ops_per_s", err));
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

static json_t *table_new(struct sweep *sweep, struct dm_err *err) {
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

static int table_write(const struct sweep *sweep, const json_t *table, char *path, struct dm_err *err) {
    char *temporary = NULL;
    FILE *out = asprintf(&temporary, "%s.tmp.%d", path, (int)getpid()) < 0 ? NULL : fopen(temporary, "w");
    if (out == NULL) {
        free(temporary);
        return dm_fail(err, DM_ERR_IO, "%s: cannot write it", path);
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
    bool bad = ferror(out) != 0;
    bad = fclose(out) != 0 || bad || rename(temporary, path) != 0;
    if (bad) {
        unlink(temporary);
    }
    free(temporary);
    if (bad) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot write it: no space?", path);
    }
    fprintf(stderr, "table of %zu rows: %s\n", sweep->row_count, path);
    return 0;
}

static int table_make(struct sweep *sweep, struct dm_err *err) {
    json_t *table = table_new(sweep, err);
    char *path = hx_path_join(sweep->points->out, "table.tsv");
    int rc = table == NULL  ? err->code
             : path == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path")
                            : table_write(sweep, table, path, err);
    if (rc == 0 && sweep->options.json) {
        json_dumpf(table, stdout, JSON_INDENT(2));
        printf("\n");
    }
    free(path);
    json_decref(table);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static void print_plan(const struct sweep *sweep) {
    size_t absent = hx_points_scan(sweep->points);
    printf("%zu points in %s/points, %zu to run\n", sweep->points->count, sweep->points->out,
           sweep->options.run.force ? sweep->points->count : absent);
    for (size_t i = 0; i < sweep->points->count; i++) {
        const struct hx_point *point = &sweep->points->items[i];
        bool run = point->state != HX_POINT_THERE || sweep->options.run.force;
        printf("  %s  %-5s  %s\n", point->hash, run ? "run" : "there", point->label);
    }
}

static int sweep_run(struct sweep *sweep, struct dm_err *err) {
    int rc = build(sweep, err);
    if (rc < 0) {
        return hx_report("sweep", err);
    }
    if (sweep->options.dry_run) {
        print_plan(sweep);
        return HX_DONE;
    }
    int status = hx_points_run(sweep->points, &sweep->options.run);
    if (sweep->options.run.slurm[0] != '\0') {
        return status;
    }
    if (status != HX_INTERRUPTED && table_make(sweep, err) < 0) {
        return hx_report("sweep", err);
    }
    return status;
}

int hx_cmd_sweep(int argc, char **argv) {
    static const char *const repeated[] = {"grid", "list", "column", NULL};
    struct sweep sweep = {.base_path = NULL};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = sweep_table, .values = &sweep.options, .repeated = repeated, .take = take, .arg = &sweep};
    int status;
    dm_opt_defaults(sweep_table, &sweep.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc < 0) {
        status = hx_report("sweep", &err);
    } else if (rc > 0) {
        print_help();
        status = HX_DONE;
    } else {
        status = sweep_run(&sweep, &err);
    }
    json_decref(sweep.base);
    hx_grid_fini(&sweep.grid);
    for (size_t i = 0; i < sweep.path_count; i++) {
        free(sweep.paths[i]);
    }
    free(sweep.paths);
    hx_points_free(sweep.points);
    free(sweep.rows);
    dm_opt_free(sweep_table, &sweep.options);
    return status;
}
