/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench map`: the plane of two parameters, the best system at each position and its lead.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/base/json.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/cli/point_args.h"
#include "harness/points/points_plan.h"
#include "harness/points/result_path.h"
#include "harness/points/sweep.h"
#include "harness/run/config.h"
#include "harness/run/options.h"
#include "harness/study/figure.h"
#include "harness/study/gnuplot.h"
#include "harness/study/map.h"
#include "indexes/index.h"
#include "workloads/workload.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 160, IDS_MAX = 64 };

struct map_options {
    const char *x, *y, *indexes, *metric, *name, *scale, *out, *plots;
    bool lowest, dry_run, no_plot, json, list;
    double margin;
    uint64_t resolution, start;
    struct hx_points_options run;
};

#define ROW(member, ...) DM_OPT_ROW(struct map_options, member, __VA_ARGS__)

static const struct dm_opt map_table[] = {
    ROW(x, DM_OPT_STRING, .initial = "", .values = "option",
        .help =
            "the horizontal axis, NAME=LOW..HIGH[/POSITIONS][:log|:linear] or NAME=V,V,...; NAME is as of a grid of "
            "`dmbench sweep`, A+B sets both options, and mix.update is the share of updates, the others being reads"),
    ROW(y, DM_OPT_STRING, .initial = "", .values = "option", .help = "the vertical axis"),
    ROW(indexes, DM_OPT_STRING, .initial = "", .values = "index",
        .help = "the systems to compare, separated by commas (default: all indexes that keep data)"),
    ROW(metric, DM_OPT_STRING, .initial = "throughput_ops_per_s", .values = "path",
        .help = "what is compared: a path in results, such as ops.get.latency_ns.p99"),
    ROW(lowest, DM_OPT_BOOL, .initial = "0", .help = "the lowest value is the best one"),
    ROW(margin, DM_OPT_REAL, .initial = "0.05", .min = 0, .max = 100,
        .help = "points are added also where the best leads by less than this share"),
    ROW(resolution, DM_OPT_COUNT, .initial = "17", .min = 2, .max = HX_MAP_POSITIONS_MAX,
        .help = "positions of a range on the finest grid"),
    ROW(start, DM_OPT_COUNT, .initial = "5", .min = 2, .max = HX_MAP_POSITIONS_MAX,
        .help = "positions an axis on the grid that is run first; others are added along borders alone"),
    ROW(name, DM_OPT_STRING, .initial = "", .help = "name of the files (default: those of the options)"),
    ROW(scale, DM_OPT_STRING, .initial = "quick", .help = "of maps that are named: quick or paper"),
    ROW(out, DM_OPT_STRING, .initial = "results", .values = "folder",
        .help = "folder with points/, as of figures; maps are in its folder maps"),
    ROW(plots, DM_OPT_STRING, .initial = "", .values = "folder",
        .help = "folder with style.gp and maps/*.json" HX_PLOTS_DEFAULT),
    HX_POINTS_ROWS(struct map_options, run),
    DM_OPT_ROW_AS("force", struct map_options, run.force, DM_OPT_BOOL, .initial = "0",
                  .help = "run again what is there already"),
    ROW(no_plot, DM_OPT_BOOL, .initial = "0", .help = "write tables and the gnuplot program, draw nothing"),
    ROW(dry_run, DM_OPT_BOOL, .initial = "0", .help = "check everything and print how many points there are"),
    ROW(list, DM_OPT_BOOL, .initial = "0", .help = "list the maps that have names"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print the map as JSON instead of the table"),
    DM_OPT_END,
};

static const struct hx_help_option extra[] = {
    {"--set INDEX.NAME=VALUE", "a parameter of one of the indexes", "parameter"},
    {NULL, NULL, NULL},
};

void hx_help_map(struct hx_help *help) {
    help->words = "file";
    help->usage = "map --x NAME=LOW..HIGH --y NAME=LOW..HIGH [--indexes A,B,...] [BASE.json] [options]\n"
                  "map ID|all [--scale quick|paper] [options]";
    help->about =
        "Which index, when: the best system at each position of the plane of two parameters, and its lead over "
        "the second. A coarse grid is run first; then points are added where the best system changes or "
        "leads by little. A point whose result is there already is not run again, so that an interrupted map "
        "continues. Options of `dmbench run` about what runs, the cluster, the load, "
        "memory and the workload may be given, too, and go over the base spec.\n"
        "Maps that have names are plots/maps/ID.json.";
    help->examples = "dmbench map --x value_size=8..64/3 --y cache=10KB..1MB/3 --indexes sherman,chime --keys 9K\n"
                     "dmbench map --list\n"
                     "dmbench map all --dry-run";
    help->status = "0 all points have results, 1 some failed, 2 usage, 130 interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .options = extra, .table = map_table});
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

struct session {
    struct map_options options;
    json_t *base; /* options of `dmbench run` that were given */
    const char *words[IDS_MAX];
    size_t word_count;
    struct hx_point_names names;
};

static int base_put(json_t *base, const char *path, const char *text, struct dm_err *err) {
    json_t *value = json_string(text);
    int rc = value ? hx_json_put(base, path, value) : DM_ERR_INVALID;
    json_decref(value);
    return rc < 0 ? dm_fail(err, rc, "'%.60s' cannot be kept: is it UTF-8?", text) : 0;
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct session *session = arg;
    char path[NAME_BYTES];
    if (!name) {
        if (session->word_count == IDS_MAX) {
            return dm_fail(err, DM_ERR_INVALID, "more than %d words", IDS_MAX);
        }
        session->words[session->word_count++] = value;
        return 0;
    }
    if (strcmp(name, "set") != 0 && strcmp(name, "transport_set") != 0) {
        return base_put(session->base, name, value, err);
    }
    const char *equals = strchr(value, '='), *dot = strchr(value, '.');
    bool is_set = strcmp(name, "set") == 0;
    if (!equals || equals == value || (is_set && (!dot || dot > equals))) {
        return dm_fail(err, DM_ERR_INVALID, "--%s: '%.60s' is not %s", is_set ? "set" : "transport-set", value,
                       is_set ? "INDEX.NAME=VALUE" : "NAME=VALUE");
    }
    snprintf(path, sizeof(path), "%s.%.*s", is_set ? "set_of" : name, (int)(equals - value), value);
    return base_put(session->base, path, equals + 1, err);
}

/* ---- maps of options -------------------------------------------------------------------------------------------- */

static int label_of(const char *plots, const char *index, char label[64], struct dm_err *err) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/systems.json", plots);
    json_t *systems = dm_json_load(path, err);
    const json_t *name = json_object_get(json_object_get(json_object_get(systems, "systems"), index), "name");
    snprintf(label, 64, "%s", json_is_string(name) ? json_string_value(name) : index);
    json_decref(systems);
    return 0;
}

static int add_index(struct hx_map *map, const char *plots, const char *index, struct dm_err *err) {
    char label[64];
    struct dm_err none = {0};
    DM_TRY(label_of(plots, index, label, &none));
    json_t *config = json_pack("{s:s}", "index", index);
    int rc = config ? hx_map_add_system(map, label, config, err) : dm_fail(err, DM_ERR_INVALID, "--indexes: no UTF-8");
    json_decref(config);
    return rc;
}

static int add_indexes(const struct map_options *options, struct hx_map *map, struct dm_err *err) {
    if (options->indexes[0] == '\0') {
        for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
            if (!((*ops)->caps & IX_CAP_NO_DATA)) {
                DM_TRY(add_index(map, options->plots, (*ops)->name, err));
            }
        }
        return 0;
    }
    char *names = strdup(options->indexes), *rest = NULL;
    int rc = names ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
    for (char *name = names ? strtok_r(names, ",", &rest) : NULL; rc == 0 && name; name = strtok_r(NULL, ",", &rest)) {
        const char *known[HX_MAP_SYSTEMS_MAX];
        size_t count = 0;
        bool is_known = false;
        for (const struct ix_ops *const *ops = ix_all(); *ops && count < HX_MAP_SYSTEMS_MAX; ops++) {
            known[count++] = (*ops)->name;
            is_known = is_known || strcmp((*ops)->name, name) == 0;
        }
        rc = is_known ? add_index(map, options->plots, name, err) : hx_fail_unknown(err, "index", name, known, count);
    }
    free(names);
    return rc == 0 && map->system_count < 2 ? dm_fail(err, DM_ERR_INVALID, "--indexes: at least two are compared") : rc;
}

/* What a result was run with, but for what follows from the rest. Its parameters are those of its index alone. */
static json_t *result_config(const json_t *result) {
    json_t *again = hx_config_again(result), *config = again ? hx_config_given(again) : NULL;
    const char *index = json_string_value(json_object_get(config, "index"));
    json_t *set = json_object_get(config, "set");
    if (config && index && json_is_object(set)) {
        json_object_set_new(config, "set_of", json_pack("{s:O}", index, set));
        json_object_del(config, "set");
    }
    json_decref(again);
    return config;
}

/* A workload that is named has its own mix, not the one that a result spells out. */
static bool names_workload(const struct session *session, const struct hx_map *map) {
    bool is_axis = strcmp(map->axes[0].option, "workload") == 0 || strcmp(map->axes[1].option, "workload") == 0;
    return is_axis || json_object_get(session->base, "workload") != NULL;
}

static int base_read(const struct session *session, struct hx_map *map, struct dm_err *err) {
    if (session->word_count == 0) {
        map->base = json_deep_copy(session->base);
        return 0;
    }
    json_t *file = dm_json_load(session->words[0], err);
    if (!file) {
        return err->code;
    }
    json_t *base = json_is_object(json_object_get(file, "config")) ? result_config(file) : json_incref(file);
    if (base && names_workload(session, map)) {
        hx_sweep_forget_details(base);
    }
    map->base = base ? hx_json_merge(base, session->base) : NULL;
    json_decref(base);
    json_decref(file);
    return map->base ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a map");
}

static int map_of_options(const struct session *session, struct hx_map *map, struct dm_err *err) {
    const struct map_options *options = &session->options;
    if (options->x[0] == '\0' || options->y[0] == '\0') {
        return dm_fail(err, DM_ERR_INVALID, "which plane? --x and --y, or the name of a map (--list)");
    }
    if (session->word_count > 1) {
        return dm_fail(err, DM_ERR_INVALID, "'%.40s': one base spec is enough", session->words[1]);
    }
    int rc = hx_map_axis_parse(options->x, options->resolution, &map->axes[0], err);
    rc = rc < 0 ? dm_fail_in(err, rc, "--x") : hx_map_axis_parse(options->y, options->resolution, &map->axes[1], err);
    if (rc < 0) {
        return map->axes[0].count ? dm_fail_in(err, rc, "--y") : rc;
    }
    if (strcmp(map->axes[0].option, map->axes[1].option) == 0) {
        return dm_fail(err, DM_ERR_INVALID, "--x and --y are the same option");
    }
    DM_TRY(add_indexes(options, map, err));
    DM_TRY(base_read(session, map, err));
    const char *workload = json_string_value(json_object_get(map->base, "workload"));
    bool is_rate = strcmp(map->metric, "throughput_ops_per_s") == 0;
    snprintf(map->title, sizeof(map->title), "Best by %.60s%s%.60s", is_rate ? "throughput" : map->metric,
             workload ? ", workload " : "", workload ? workload : "");
    snprintf(map->id, sizeof(map->id), "%.40s-%.40s%s%.20s", map->axes[0].option, map->axes[1].option,
             workload ? "-" : "", workload ? workload : "");
    for (char *at = map->id; *at; at++) {
        *at = isalnum((unsigned char)*at) || *at == '-' ? *at : '_';
    }
    return 0;
}

/* ---- running one ------------------------------------------------------------------------------------------------ */

static void plan_print(const struct hx_map *map, struct hx_points *points, const struct hx_points_options *run,
                       FILE *out) {
    char text[256];
    struct hx_points_plan plan;
    points->stale = (enum hx_stale)run->stale;
    hx_points_scan(points);
    hx_points_plan(points, run, NULL, points->count, &plan);
    hx_points_plan_text(&plan, text, sizeof(text));
    size_t positions = map->axes[0].count * map->axes[1].count;
    fprintf(out,
            "%s: %zu systems; %zu points at %zu positions to begin with, %s; at most %zu points at %zu positions\n",
            map->id, map->system_count, points->count, hx_map_run_count(map), text, positions * map->system_count,
            positions);
    for (size_t i = 0; i < map->system_count; i++) {
        if (map->systems[i].refused > 0) {
            fprintf(out, "  %s cannot run at %zu of them: %s\n", map->systems[i].label, map->systems[i].refused,
                    map->systems[i].reason);
        }
    }
}

/* What there is of the points to begin with, and nothing is run: the plan, or with --stale list the stale results. */
static int dry_run(const struct map_options *options, struct hx_map *map, struct dm_err *err) {
    struct hx_points *points = hx_points_new(options->out);
    int rc = points ? hx_map_first_points(map, points, err) : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points");
    if (rc == 0 && options->run.stale == HX_STALE_LIST) {
        printf("%s, to begin with:\n", map->id);
        hx_points_list_stale(points, stdout);
    } else if (rc == 0) {
        plan_print(map, points, &options->run, stdout);
    }
    hx_points_free(points);
    return rc;
}

static int draw(const struct map_options *options, const struct hx_map *map, struct dm_err *err) {
    char folder[PATH_BYTES], program[NAME_BYTES + 8], path[PATH_BYTES + 32];
    snprintf(folder, sizeof(folder), "%.4000s/maps", options->out);
    DM_TRY(hx_make_folder(folder, err));
    hx_pictures_remove(folder, map->id);
    DM_TRY(hx_map_write(map, folder, options->plots, err));
    if (options->json) {
        snprintf(path, sizeof(path), "%.3900s/%.127s.json", folder, map->id);
        json_t *json = dm_json_load(path, err);
        if (!json) {
            return err->code;
        }
        json_dumpf(json, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        printf("\n");
        json_decref(json);
    } else {
        hx_map_print(map, stdout);
    }
    fprintf(stderr, "map: %.3900s/%s.{json,csv,md,tsv,gp}%s\n", folder, map->id,
            options->no_plot ? "" : ", and png, svg, pdf");
    snprintf(program, sizeof(program), "%.127s.gp", map->id);
    return options->no_plot ? 0 : hx_gnuplot(folder, program, err);
}

/* The exit status. */
static int map_do(const struct map_options *options, struct hx_map *map, struct dm_err *err) {
    map->start = options->start;
    int rc = hx_map_begin(map, err);
    if (rc == 0 && (options->dry_run || options->run.stale == HX_STALE_LIST)) {
        rc = dry_run(options, map, err);
        return rc < 0 ? hx_report("map", err) : HX_DONE;
    }
    int status = rc < 0 ? rc : hx_map_run(map, options->out, &options->run, err);
    if (status < 0) {
        return hx_report("map", err);
    }
    if (status == HX_INTERRUPTED) {
        return status;
    }
    rc = draw(options, map, err);
    return rc < 0 ? hx_report("map", err) : status;
}

static void map_prepare(const struct map_options *options, struct hx_map *map) {
    *map = (struct hx_map){.is_lowest = options->lowest, .margin = options->margin};
    snprintf(map->metric, sizeof(map->metric), "%s", options->metric);
}

/* ---- maps with names -------------------------------------------------------------------------------------------- */

static int list_print(const char *plots, char **ids, struct dm_err *err) {
    for (; *ids; ids++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%.3900s/maps/%.100s.json", plots, *ids);
        json_t *file = dm_json_load(path, err);
        if (!file) {
            return err->code;
        }
        const char *title = json_string_value(json_object_get(file, "title"));
        const char *shows = json_string_value(json_object_get(file, "shows"));
        printf("%s: %s\n  shows: %s\n", *ids, title ? title : "", shows ? shows : "");
        json_decref(file);
    }
    return 0;
}

static bool is_named(char **ids, const char *name) {
    for (; *ids; ids++) {
        if (strcmp(*ids, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Options that are not at their defaults go over what the map's file says. */
static void file_overrule(const struct map_options *options, struct hx_map *map) {
    struct map_options usual;
    dm_opt_defaults(map_table, &usual);
    if (strcmp(options->metric, usual.metric) != 0) {
        snprintf(map->metric, sizeof(map->metric), "%s", options->metric);
    }
    if (options->margin < usual.margin || options->margin > usual.margin) {
        map->margin = options->margin;
    }
    map->is_lowest = map->is_lowest || options->lowest;
    if (options->name[0]) {
        snprintf(map->id, sizeof(map->id), "%s", options->name);
    }
    dm_opt_free(map_table, &usual);
}

static int named_do(const struct session *session, const char *id, struct dm_err *err) {
    const struct map_options *options = &session->options;
    struct hx_map map;
    map_prepare(options, &map);
    int rc = hx_map_load(options->plots, id, options->scale, options->resolution, &map, err);
    if (rc == 0) {
        file_overrule(options, &map);
        json_t *merged = hx_json_merge(map.base, session->base);
        json_decref(map.base);
        map.base = merged;
    }
    int status = rc < 0 ? hx_report("map", err) : map_do(options, &map, err);
    hx_map_fini(&map);
    return status;
}

static int all_named(const struct session *session, char **ids, struct dm_err *err) {
    int worst = HX_DONE;
    bool is_all = strcmp(session->words[0], "all") == 0;
    for (size_t i = 0; is_all ? ids[i] != NULL : i < session->word_count; i++) {
        int status = named_do(session, is_all ? ids[i] : session->words[i], err);
        if (status == HX_INTERRUPTED || status == HX_USAGE) {
            return status;
        }
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int check(const struct map_options *options, struct dm_err *err) {
    if (options->run.slurm[0] != '\0') {
        return dm_fail(err, DM_ERR_INVALID, "--slurm: which points a map needs follows from the first ones");
    }
    if (options->name[strcspn(options->name, "/'\"\\\n")] != '\0' || strlen(options->name) > 100) {
        return dm_fail(err, DM_ERR_INVALID, "--name: '%.60s' is not the name of a file", options->name);
    }
    return hx_result_path_check(options->metric, err) < 0 ? dm_fail_in(err, DM_ERR_INVALID, "--metric") : 0;
}

/* Options that go with one kind of map alone. */
static int check_kind(const struct session *session, bool is_named_map, struct dm_err *err) {
    const struct map_options *options = &session->options;
    if (!is_named_map) {
        return strcmp(options->scale, "quick") == 0 || options->list
                   ? 0
                   : dm_fail(err, DM_ERR_INVALID, "--scale is of maps that have names (--list)");
    }
    if (options->indexes[0] != '\0') {
        return dm_fail(err, DM_ERR_INVALID, "--indexes: a map that has a name has its systems; give --x and --y");
    }
    bool is_one = session->word_count == 1 && strcmp(session->words[0], "all") != 0;
    return options->name[0] == '\0' || is_one ? 0 : dm_fail(err, DM_ERR_INVALID, "--name: is for one map");
}

static int map_command(struct session *session, struct dm_err *err) {
    const struct map_options *options = &session->options;
    char **ids = NULL;
    bool has_axes = options->x[0] || options->y[0], is_named_map = session->word_count > 0 && !has_axes;
    int status = HX_DONE, rc = check(options, err);
    rc = rc < 0 ? rc : check_kind(session, is_named_map, err);
    if (rc == 0 && (options->list || is_named_map)) {
        rc = hx_spec_ids(options->plots, "maps", &ids, err);
    }
    if (rc == 0 && options->list) {
        rc = list_print(options->plots, ids, err);
    } else if (rc == 0 && is_named_map) {
        for (size_t i = 0; rc == 0 && i < session->word_count; i++) {
            const char *word = session->words[i];
            if (strcmp(word, "all") != 0 && !is_named(ids, word)) {
                size_t count = 0;
                while (ids[count]) {
                    count++;
                }
                rc = hx_fail_unknown(err, "map", word, (const char *const *)ids, count);
            }
        }
        status = rc < 0 ? status : all_named(session, ids, err);
    } else if (rc == 0) {
        struct hx_map map;
        map_prepare(options, &map);
        rc = map_of_options(session, &map, err);
        if (rc == 0 && options->name[0]) {
            snprintf(map.id, sizeof(map.id), "%s", options->name);
        }
        status = rc < 0 ? status : map_do(options, &map, err);
        hx_map_fini(&map);
    }
    hx_figure_ids_free(ids);
    return rc < 0 ? hx_report("map", err) : status;
}

int hx_cmd_map(int argc, char **argv) {
    struct session session = {.base = json_object()};
    struct dm_err err = {.text = ""};
    hx_point_names_collect(&session.names);
    struct hx_args args = {.table = map_table,
                           .values = &session.options,
                           .repeated = session.names.all,
                           .flags = session.names.flags,
                           .take = take,
                           .arg = &session};
    int status = HX_DONE;
    dm_opt_defaults(map_table, &session.options);
    hx_plots_set(map_table, &session.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc < 0) {
        status = hx_report("map", &err);
    } else if (rc > 0) {
        hx_help_show(hx_help_map);
    } else {
        status = map_command(&session, &err);
    }
    json_decref(session.base);
    dm_opt_free(map_table, &session.options);
    return status;
}
