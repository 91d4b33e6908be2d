/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench list`: indexes, workloads and the like, and the parameters of one of them. All of it comes from the tables
 * that the program uses.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/data_folder.h"
#include "common/opt_json.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/run/options.h"
#include "harness/study/figure.h"
#include "indexes/index.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

enum { NAMES_MAX = 128, PATH_BYTES = 1024 };

/* One thing that can be named: the form in which every kind is listed. */
struct item {
    char name[64];
    char summary[400];
    const char *paper;                 /* NULL where there is none */
    const struct dm_opt *params;       /* NULL where there are none */
    const struct ix_counter *counters; /* NULL where there are none */
    const struct ix_wrong *wrong;      /* likewise */
    const struct ix_ops *index;        /* likewise */
};

struct items {
    struct item *at;
    size_t count;
};

static struct item *items_add(struct items *items, const char *name, const char *summary) {
    if (items->count == NAMES_MAX) {
        return NULL;
    }
    struct item *item = &items->at[items->count++];
    *item = (struct item){.params = NULL};
    snprintf(item->name, sizeof(item->name), "%s", name);
    snprintf(item->summary, sizeof(item->summary), "%s", summary);
    return item;
}

static void collect_indexes(struct items *items) {
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        struct item *item = items_add(items, (*ops)->name, (*ops)->summary);
        if (item) {
            item->paper = (*ops)->paper;
            item->params = (*ops)->params;
            item->counters = (*ops)->counters;
            item->wrong = (*ops)->wrong && (*ops)->wrong->param ? (*ops)->wrong : NULL;
            item->index = *ops;
        }
    }
}

static void collect_workloads(struct items *items) {
    for (const struct wl_name *name = wl_names; name->name; name++) {
        items_add(items, name->name, name->summary);
    }
}

static void collect_transports(struct items *items) {
    for (const struct dm_transport_info *const *info = dm_transports(); *info; info++) {
        struct item *item = items_add(items, (*info)->name, (*info)->summary);
        if (item) {
            item->params = (*info)->options;
        }
    }
    for (const struct dm_transport_absence *absent = dm_transports_absent(); absent->name; absent++) {
        char summary[PATH_BYTES];
        snprintf(summary, sizeof(summary), "left out: %s", absent->reason);
        items_add(items, absent->name, summary);
    }
}

static void collect_profiles(struct items *items) {
    for (const char *const *name = dm_profile_names(); *name; name++) {
        char hash[17], summary[64];
        struct dm_err err = {0};
        if (dm_profile_check(*name, hash, &err) < 0) {
            items_add(items, *name, err.text);
        } else {
            snprintf(summary, sizeof(summary), "hash %s", hash);
            items_add(items, *name, summary);
        }
    }
}

static void collect_figures(struct items *items) {
    char **ids = NULL, plots[PATH_BYTES];
    struct dm_err err = {0};
    dm_data_path("plots", plots, sizeof(plots));
    if (hx_figure_ids(plots, &ids, &err) < 0) {
        return;
    }
    for (char **id = ids; *id; id++) {
        char path[PATH_BYTES + 300];
        snprintf(path, sizeof(path), "%s/figures/%s.json", plots, *id);
        json_t *figure = dm_json_load(path, &err);
        const char *title = json_string_value(json_object_get(figure, "title"));
        items_add(items, *id, !figure ? err.text : title ? title : "");
        json_decref(figure);
    }
    hx_figure_ids_free(ids);
}

static const struct kind {
    const char *name, *title;
    void (*collect)(struct items *items);
} kinds[] = {
    {"indexes", "Indexes (--index)", collect_indexes},
    {"workloads", "Workloads (--workload)", collect_workloads},
    {"profiles", "Profiles (--profile)", collect_profiles},
    {"transports", "Transports (--transport)", collect_transports},
    {"figures", "Figures (dmbench figure)", collect_figures},
};

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static const char *type_name(enum dm_opt_type type) {
    static const char *const names[] = {
        [DM_OPT_BOOL] = "bool", [DM_OPT_COUNT] = "count", [DM_OPT_BYTES] = "bytes",   [DM_OPT_DURATION] = "duration",
        [DM_OPT_REAL] = "real", [DM_OPT_ENUM] = "enum",   [DM_OPT_STRING] = "string",
    };
    return names[type];
}

static json_t *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

static json_t *row_to_json(const struct dm_opt *row) {
    json_t *object = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", row->name, "type", type_name(row->type),
                               "default", text_or_null(row->initial), "unit", text_or_null(row->unit), "symbol",
                               text_or_null(row->symbol), "help", text_or_null(row->help));
    if (row->min != 0 || row->max != 0) {
        json_object_set_new(object, "min", json_real(row->min));
        json_object_set_new(object, "max", json_real(row->max));
    }
    if (row->type == DM_OPT_ENUM) {
        json_t *choices = json_array();
        for (const char *const *choice = row->choices; *choice; choice++) {
            json_array_append_new(choices, json_string(*choice));
        }
        json_object_set_new(object, "choices", choices);
    }
    return object;
}

static json_t *capabilities_to_json(const struct ix_ops *index) {
    static const struct {
        unsigned cap;
        const char *name;
    } names[] = {
        {IX_CAP_INSERT, "insert"}, {IX_CAP_DELETE, "delete"}, {IX_CAP_SCAN, "scan"}, {IX_CAP_SERVERS, "servers"}};
    json_t *array = json_array();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (index->caps & names[i].cap) {
            json_array_append_new(array, json_string(names[i].name));
        }
    }
    return array;
}

static json_t *item_to_json(const struct item *item) {
    json_t *object = json_pack("{s:s, s:s}", "name", item->name, "summary", item->summary);
    if (item->paper) {
        json_object_set_new(object, "paper", json_string(item->paper));
    }
    if (item->index) {
        json_object_set_new(object, "keeps_data", json_boolean(!(item->index->caps & IX_CAP_NO_DATA)));
        json_object_set_new(object, "capabilities", capabilities_to_json(item->index));
    }
    if (item->params) {
        json_t *parameters = json_array();
        for (const struct dm_opt *row = item->params; row->name; row++) {
            json_array_append_new(parameters, row_to_json(row));
        }
        json_object_set_new(object, "parameters", parameters);
    }
    if (item->counters) {
        json_t *counters = json_array();
        for (const struct ix_counter *counter = item->counters; counter->name; counter++) {
            json_array_append_new(counters, json_string(counter->name));
        }
        json_object_set_new(object, "counters", counters);
    }
    if (item->wrong) {
        json_t *values = json_array();
        for (const struct ix_wrong *wrong = item->wrong; wrong->param; wrong++) {
            json_array_append_new(values, json_pack("{s:s, s:s, s:i, s:s}", "parameter", wrong->param, "value",
                                                    wrong->value, "seeds", (int)wrong->seeds, "why", wrong->why));
        }
        json_object_set_new(object, "known_wrong", values);
    }
    return object;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void items_print(const struct kind *kind, const struct items *items) {
    int width = 0;
    for (size_t i = 0; i < items->count; i++) {
        int length = (int)strlen(items->at[i].name);
        width = length > width ? length : width;
    }
    printf("%s:\n", kind->title);
    for (size_t i = 0; i < items->count; i++) {
        printf("  %-*s  %s\n", width, items->at[i].name, items->at[i].summary);
    }
    if (items->count == 0) {
        printf("  none\n");
    }
}

static void item_names_print(const struct items *items) {
    for (size_t i = 0; i < items->count; i++) {
        printf("%s\n", items->at[i].name);
    }
}

static void parameter_names_print(const struct dm_opt *table) {
    for (const struct dm_opt *row = table; row && row->name; row++) {
        printf("%s\n", row->name);
    }
}

static void item_print(const struct kind *kind, const struct item *item) {
    printf("%s: %s\n", item->name, item->summary);
    if (item->paper) {
        printf("  paper: %s\n", item->paper);
    }
    if (item->params) {
        bool is_index = strcmp(kind->name, "indexes") == 0;
        printf("Parameters (--%s NAME=VALUE):\n", is_index ? "set" : "transport-set");
        hx_parameters_help(is_index ? "set" : "transport-set", item->params, stdout);
    }
    if (item->counters) {
        printf("Counters:");
        for (const struct ix_counter *counter = item->counters; counter->name; counter++) {
            printf(" %s", counter->name);
        }
        printf("\n");
    }
    if (item->wrong) {
        printf("Known to be wrong, for `dmbench check` to find:\n");
        for (const struct ix_wrong *wrong = item->wrong; wrong->param; wrong++) {
            printf("  %s=%s: %s\n", wrong->param, wrong->value, wrong->why);
        }
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

struct list_options {
    bool json, names;
    const char *kind, *name; /* words of the command line, or NULL */
};

#define ROW(member, ...) DM_OPT_ROW(struct list_options, member, __VA_ARGS__)

static const struct dm_opt list_options[] = {
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    ROW(names, DM_OPT_BOOL, .initial = "0", .help = "print names alone, one a line; of one thing: of its parameters"),
    DM_OPT_END,
};

static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct list_options *options = arg;
    (void)name;
    if (!options->kind) {
        options->kind = value;
    } else if (!options->name) {
        options->name = value;
    } else {
        return hx_args_excess(value, err);
    }
    return 0;
}

static const struct kind *kind_find(const char *name, struct dm_err *err) {
    const char *names[DM_ARRAY_LEN(kinds)];
    for (size_t i = 0; i < DM_ARRAY_LEN(kinds); i++) {
        names[i] = kinds[i].name;
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    hx_fail_unknown(err, "kind", name, names, DM_ARRAY_LEN(kinds));
    return NULL;
}

static const struct item *item_find(const struct items *items, const char *name, struct dm_err *err) {
    const char *names[NAMES_MAX];
    for (size_t i = 0; i < items->count; i++) {
        names[i] = items->at[i].name;
        if (strcmp(items->at[i].name, name) == 0) {
            return &items->at[i];
        }
    }
    hx_fail_unknown(err, "name", name, names, items->count);
    return NULL;
}

/* Lists one kind, or one item of it, as text or into `json`. */
static int kind_list(const struct kind *kind, const struct list_options *options, struct items *items, json_t *json,
                     struct dm_err *err) {
    items->count = 0;
    kind->collect(items);
    if (options->name) {
        const struct item *item = item_find(items, options->name, err);
        if (!item) {
            return err->code;
        }
        if (options->json) {
            json_object_set_new(json, kind->name, item_to_json(item));
        } else if (options->names) {
            parameter_names_print(item->params);
        } else {
            item_print(kind, item);
        }
        return 0;
    }
    if (!options->json && options->names) {
        item_names_print(items);
        return 0;
    }
    if (!options->json) {
        items_print(kind, items);
        return 0;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < items->count; i++) {
        json_array_append_new(array, item_to_json(&items->at[i]));
    }
    json_object_set_new(json, kind->name, array);
    return 0;
}

static int list(const struct list_options *options, struct dm_err *err) {
    struct items items = {calloc(NAMES_MAX, sizeof(struct item)), 0};
    json_t *json = json_object();
    int rc = items.at && json ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    if (rc == 0 && options->kind) {
        const struct kind *kind = kind_find(options->kind, err);
        rc = kind ? kind_list(kind, options, &items, json, err) : err->code;
    }
    for (size_t i = 0; rc == 0 && !options->kind && i < DM_ARRAY_LEN(kinds); i++) {
        if (i > 0 && !options->json && !options->names) {
            printf("\n");
        }
        rc = kind_list(&kinds[i], options, &items, json, err);
    }
    if (rc == 0 && options->json) {
        json_dumpf(json, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        putchar('\n');
    }
    json_decref(json);
    free(items.at);
    return rc;
}

void hx_help_list(struct hx_help *help) {
    help->words = "=indexes workloads profiles transports figures";
    help->usage = "list [indexes|workloads|profiles|transports|figures [NAME]] [--json|--names]";
    help->about =
        "Lists what there is, or one of them with its parameters, their defaults, ranges and the papers' symbols.";
    help->examples = "dmbench list\n"
                     "dmbench list indexes sherman\n"
                     "dmbench list transports sim --json";
    help->status = "0 done, 2 usage.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = list_options});
}

int hx_cmd_list(int argc, char **argv) {
    struct list_options options;
    struct dm_err err = {0};
    options.kind = NULL;
    options.name = NULL;
    dm_opt_defaults(list_options, &options);
    struct hx_args args = {.table = list_options, .values = &options, .take = take_word};
    args.arg = &options;
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc == 1) {
        hx_help_show(hx_help_list);
        return HX_DONE;
    }
    rc = rc < 0 ? rc : list(&options, &err);
    return rc < 0 ? hx_report("list", &err) : HX_DONE;
}
