/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench validate`: the fabric model against published micro-benchmarks; the same micro-benchmarks on any transport;
 * a profile fitted to a transport, or to this host's CPU.
 */
#include "harness/lab/validate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/run/interrupt.h"

enum { PATH_BYTES = 1024 };

struct options {
    bool json, cpu;
    const char *out, *transport, *profile, *fit, *base, *only;
    uint64_t seed;
};

#define ROW(member, ...) DM_OPT_ROW(struct options, member, __VA_ARGS__)

static const struct dm_opt table[] = {
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    ROW(only, DM_OPT_STRING, .initial = "", .help = "one validation point, V1 to V14"),
    ROW(out, DM_OPT_STRING, .initial = "", .help = "write data and gnuplot programs of the curves into this folder"),
    ROW(transport, DM_OPT_STRING, .initial = "sim",
        .help = "with another than sim, or with a profile: the micro-benchmarks alone, nothing to compare with"),
    ROW(profile, DM_OPT_STRING, .initial = "",
        .help = "the micro-benchmarks of this profile, a name or a path ending in .json"),
    ROW(fit, DM_OPT_STRING, .initial = "",
        .help = "write a profile with what was measured on the transport to this file"),
    ROW(cpu, DM_OPT_BOOL, .initial = "0",
        .help = "measure the CPU work units on this host; with --fit FILE write them as a profile"),
    ROW(base, DM_OPT_STRING, .initial = "cx6-100g", .help = "the profile that a fitted one inherits from"),
    ROW(seed, DM_OPT_COUNT, .initial = "1", .max = 9007199254740991.0, .help = "of every random stream"),
    DM_OPT_END,
};

static void json_print(json_t *json) {
    json_dumpf(json, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
    putchar('\n');
}

/* ---- published points ------------------------------------------------------------------------------------------- */

static json_t *point_to_json(const struct hx_point *point, double model) {
    return json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:s}", "id", point->id, "what",
                     point->what, "profile", point->profile, "unit", hx_point_unit(point->value), "published",
                     point->published, "model", model, "ratio", model / point->published, "tolerance", point->tolerance,
                     "bound", point->bound == HX_NEAR ? "near" : "at_least", "kind",
                     point->is_calibration ? "calibration" : "validation", "source", point->source, "verdict",
                     hx_point_holds(point, model) ? "ok" : "out of tolerance");
}

static void point_print(const struct hx_point *point, double model) {
    printf("%-4s %-44s %-13s %c%10.3f %10.3f %-6s %6.3f %s%3.0f %% %-11s %-4s %s\n", point->id, point->what,
           point->profile, point->bound == HX_AT_LEAST ? '>' : ' ', point->published, model,
           hx_point_unit(point->value), model / point->published, point->bound == HX_AT_LEAST ? " -" : "+-",
           point->tolerance * 100, point->is_calibration ? "calibration" : "validation",
           hx_point_holds(point, model) ? "ok" : "OUT", point->source);
}

/* One curve's data, a line a point, and the gnuplot program that draws it beside the published values. */
static int curve_write(const struct hx_curve *curve, const char *folder, const double *models, struct dm_err *err) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s.tsv", folder, curve->name);
    FILE *file = fopen(path, "w");
    if (!file) {
        return dm_fail(err, DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    const char *series = "";
    unsigned blocks = 0;
    for (size_t i = 0; i < hx_point_count; i++) {
        const struct hx_point *point = &hx_points[i];
        if (!point->curve || strcmp(point->curve, curve->name) != 0) {
            continue;
        }
        if (strcmp(series, point->series) != 0) {
            series = point->series;
            fprintf(file, "%s\"%s\"\tpublished\tmodel\n", blocks++ ? "\n\n" : "", series);
        }
        fprintf(file, "%.10g\t%.10g\t%.10g\n", point->x, point->published, models[i]);
    }
    int rc = fclose(file) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "%s: cannot write", path);
    snprintf(path, sizeof(path), "%s/%s.gp", folder, curve->name);
    file = rc == 0 ? fopen(path, "w") : NULL;
    if (!file) {
        return rc < 0 ? rc : dm_fail(err, DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    fprintf(
        file,
        "# Usage: gnuplot %s.gp, in this folder\nname = '%s'; width = 480; height = 320\nload '%s/plots/style.gp'\n"
        "set datafile separator tab\nset xlabel '%s'\nset ylabel '%s'\nset yrange [0:*]\n%s"
        "do for [kind in kinds] {\n    eval(open(kind))\n"
        "    plot for [b=0:%u] name.'.tsv' index b using 1:3 with linespoints linestyle b + 1 title columnheader(1)."
        "' (model)', \\\n"
        "         for [b=0:%u] '' index b using 1:2 with points linestyle b + 101 title columnheader(1).' "
        "(published)'\n    unset output\n}\n",
        curve->name, curve->name, DM_SOURCE_DIR, curve->x_label, curve->y_label,
        curve->is_log_x ? "set logscale x 2\n" : "", blocks - 1, blocks - 1);
    return fclose(file) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "%s: cannot write", path);
}

static int curves_write(const char *folder, const double *models, struct dm_err *err) {
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        return dm_fail(err, DM_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    for (size_t i = 0; i < hx_curve_count; i++) {
        DM_TRY(curve_write(&hx_curves[i], folder, models, err));
    }
    fprintf(stderr, "curves: cd %s && for f in *.gp; do gnuplot $f; done\n", folder);
    return 0;
}

/* Measures all points, or those of one id. */
static int points_measure(const struct options *options, double *models, json_t *rows, unsigned counts[2],
                          struct dm_err *err) {
    for (size_t i = 0; i < hx_point_count; i++) {
        const struct hx_point *point = &hx_points[i];
        if (options->only[0] && strcmp(options->only, point->id) != 0) {
            continue;
        }
        int rc = hx_point_measure(point, &models[i], err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "%s, %s", point->id, point->what);
        }
        counts[hx_point_holds(point, models[i])]++;
        if (options->json) {
            json_array_append_new(rows, point_to_json(point, models[i]));
        } else {
            point_print(point, models[i]);
        }
    }
    return 0;
}

static int check_only(const char *only, struct dm_err *err) {
    for (size_t i = 0; i < hx_point_count; i++) {
        if (only[0] == '\0' || strcmp(only, hx_points[i].id) == 0) {
            return 0;
        }
    }
    return dm_fail(err, DM_ERR_INVALID, "--only: there is no point '%.40s' (V1 to V14)", only);
}

static int validate_points(const struct options *options, struct dm_err *err) {
    DM_TRY(check_only(options->only, err));
    if (options->out[0] && options->only[0]) {
        return dm_fail(err, DM_ERR_INVALID, "--out: needs all points, leave out --only");
    }
    double *models = calloc(hx_point_count, sizeof(*models));
    json_t *rows = json_array();
    unsigned counts[2] = {0};
    int rc = models && rows ? 0 : DM_ERR_NO_MEMORY;
    if (rc < 0) {
        dm_fail(err, rc, "out of memory");
    }
    if (rc == 0 && !options->json) {
        printf("%-4s %-44s %-13s  %10s %10s %-6s %6s %-6s %-11s %-4s %s\n", "id", "what", "profile", "published",
               "model", "unit", "ratio", "within", "kind", "is", "source");
    }
    rc = rc < 0 ? rc : points_measure(options, models, rows, counts, err);
    if (rc == 0 && options->out[0]) {
        rc = curves_write(options->out, models, err);
    }
    if (rc == 0 && options->json) {
        json_t *top =
            json_pack("{s:O, s:i, s:i}", "points", rows, "within", (int)counts[1], "out_of_tolerance", (int)counts[0]);
        json_print(top);
        json_decref(top);
    } else if (rc == 0) {
        printf("%u points within tolerance, %u out of it\n", counts[1], counts[0]);
    }
    json_decref(rows);
    free(models);
    return rc < 0 ? rc : counts[0] > 0;
}

/* ---- one fabric ------------------------------------------------------------------------------------------------- */

static int fabric_of(const struct options *options, struct hx_micro_fabric *fabric, struct dm_err *err) {
    const struct dm_transport_info *info = dm_transport_find(options->transport);
    if (!info) {
        const char *names[16];
        size_t count = 0;
        for (const struct dm_transport_info *const *one = dm_transports(); *one && count < DM_ARRAY_LEN(names); one++) {
            names[count++] = (*one)->name;
        }
        return hx_fail_unknown(err, "transport", options->transport, names, count);
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *fabric = (struct hx_micro_fabric){
        .transport = info->name,
        .profile = !(info->caps & DM_CAP_PROFILE) ? NULL
                   : options->profile[0]          ? options->profile
                                                  : "cx6-100g",
        .seed = options->seed,
        .is_virtual = info->caps & DM_CAP_VIRTUAL_TIME,
        .threads_max = cpus > 2 ? (unsigned)cpus - 1 : 1,
    };
    return 0;
}

static void rows_print(json_t *rows) {
    printf("%-34s %8s %8s %12s %12s\n", "what", "bytes", "clients", "M/s", "us");
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        printf("%-34s %8lld %8lld %12.3f %12.3f\n", json_string_value(json_object_get(row, "what")),
               (long long)json_integer_value(json_object_get(row, "bytes")),
               (long long)json_integer_value(json_object_get(row, "clients")),
               json_real_value(json_object_get(row, "mops")), json_real_value(json_object_get(row, "latency_us")));
    }
}

static int table_print(const struct options *options, struct dm_err *err) {
    struct hx_micro_fabric fabric = {0};
    json_t *rows = NULL;
    DM_TRY(fabric_of(options, &fabric, err));
    DM_TRY(hx_micro_table(&fabric, &rows, err));
    if (options->json) {
        json_print(rows);
    } else {
        printf("%s%s%s, %s time\n", fabric.transport, fabric.profile ? ", " : "", fabric.profile ? fabric.profile : "",
               fabric.is_virtual ? "virtual" : "real");
        rows_print(rows);
    }
    json_decref(rows);
    return 0;
}

static int cpu_measure(const struct options *options, struct dm_err *err) {
    json_t *costs = NULL;
    DM_TRY(hx_cpu_costs(&costs, err));
    int rc = 0;
    if (options->fit[0]) {
        rc = hx_profile_write(options->fit, options->base, "CPU work units of this host",
                              "measured by dmbench validate --cpu", costs, err);
    }
    if (rc == 0 && options->json) {
        json_print(costs);
    } else if (rc == 0) {
        const char *name;
        json_t *value;
        json_object_foreach(costs, name, value) {
            printf("%-22s %10.2f ns\n", name, json_real_value(value));
        }
    }
    json_decref(costs);
    return rc;
}

static int fit(const struct options *options, struct dm_err *err) {
    struct hx_micro_fabric fabric;
    DM_TRY(fabric_of(options, &fabric, err));
    return hx_fit(&fabric, options->base, options->fit, err);
}

static int validate(const struct options *options, struct dm_err *err) {
    if (options->cpu) {
        return cpu_measure(options, err);
    }
    if (options->fit[0]) {
        return fit(options, err);
    }
    if (options->profile[0] || strcmp(options->transport, "sim") != 0) {
        return options->only[0] || options->out[0]
                   ? dm_fail(err, DM_ERR_INVALID,
                             "--only and --out belong to the published points: leave out "
                             "--transport and --profile")
                   : table_print(options, err);
    }
    return validate_points(options, err);
}

static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    (void)arg;
    (void)name;
    return dm_fail(err, DM_ERR_INVALID, "'%.60s' is a word too many (see --help)", value);
}

int hx_cmd_validate(int argc, char **argv) {
    static const char *const none[] = {NULL};
    struct options options = {.out = NULL};
    struct dm_err err = {0};
    dm_opt_defaults(table, &options);
    struct hx_args args = {.table = table, .values = &options, .repeated = none, .take = take_word};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        printf("Usage: dmbench validate [options]\n\n"
               "Measures the simulated fabric with micro-benchmarks and compares it with published ones. Exit status "
               "3 if one\nis out of its tolerance. With --transport or --profile the micro-benchmarks alone.\n\n"
               "Examples:\n"
               "  dmbench validate\n"
               "  dmbench validate --only V6\n"
               "  dmbench validate --out results/validate       data and gnuplot programs of the curves\n"
               "  dmbench validate --profile my-nic.json\n"
               "  dmbench validate --transport local --fit host.json\n"
               "  dmbench validate --cpu --fit my-cpu.json\n\n");
        hx_args_help(table);
        dm_opt_free(table, &options);
        return HX_DONE;
    }
    if (rc == 0) {
        hx_interrupt_install("validate");
        rc = validate(&options, &err);
    }
    dm_opt_free(table, &options);
    return rc < 0 ? hx_report("validate", &err) : rc > 0 ? HX_WRONG : HX_DONE;
}
