/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench compare`: compares two results or sets of results point by point, with intervals and tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/text.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/base/json.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/study/compare_text.h"

enum { LIMITS_MAX = 32, FILTERS_MAX = 8, NAME_BYTES = 128 };

struct compare_options {
    double confidence;
    uint64_t rounds, seed;
    bool force, certain, json;
};

#define ROW(member, ...) DM_OPT_ROW(struct compare_options, member, __VA_ARGS__)

static const struct dm_opt compare_table[] = {
    ROW(confidence, DM_OPT_REAL, .initial = "0.95", .min = 0.5, .max = 0.9999, .help = "of the interval of a ratio"),
    ROW(rounds, DM_OPT_COUNT, .initial = "5000", .min = 100, .max = 10000000, .help = "resamples of the bootstrap"),
    ROW(seed, DM_OPT_COUNT, .initial = "1", .help = "of the bootstrap"),
    ROW(certain, DM_OPT_BOOL, .initial = "0", .help = "--fail-if asks the whole interval, not its middle alone"),
    ROW(force, DM_OPT_BOOL, .initial = "0", .help = "compare although time base, workload or schema differ"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "print JSON"),
    DM_OPT_END,
};

struct session {
    struct compare_options options;
    struct hx_result_set sets[2];
    const char *names[2];
    size_t name_count;
    struct hx_compare_limit limits[LIMITS_MAX];
    const char *limit_texts[LIMITS_MAX];
    size_t limit_count;
    const char *filters[2][FILTERS_MAX]; /* NAME=VALUE */
    size_t filter_count[2];
    struct hx_compare *compare;
};

static const struct hx_help_option extra[] = {
    {"--fail-if 'METRIC > NUMBER'",
     "exit with status 3 if the ratio B/A of a point does; also <, >=, <=; repeatable. METRIC: throughput, "
     "cache_bytes, or p50, p99, round_trips, bytes of any operation, or of one as get.p99",
     "condition"},
    {"--a NAME=VALUE", "of A only the results whose option has this value; repeatable", "option"},
    {"--b NAME=VALUE", "likewise of B", "option"},
    {NULL, NULL, NULL},
};

void hx_help_compare(struct hx_help *help) {
    help->words = "file";
    help->usage = "compare A B [options]";
    help->about =
        "Compares two results, folders of results or patterns ('runs/*.json'). Results that differ in the seed alone "
        "are repetitions of one point. Points of A and B belong together when they agree in all options that vary "
        "within A or within B; what is the same all over A and another all over B is what is compared.\n"
        "For every point and metric: medians, the ratio B/A with its bootstrap interval, the p of a Mann-Whitney test "
        "and Cliff's delta (-1: all of B below all of A; 1: above). Holm is the p corrected for the number of tests. "
        "Few runs, other seeds and differences within a bucket of the histogram are said.";
    help->examples = "dmbench sweep base.json --repeat 10 --out before      (then change something)\n"
                     "dmbench sweep base.json --repeat 10 --out after\n"
                     "dmbench compare before after --fail-if 'p99 > 1.05' --fail-if 'throughput < 0.95'\n"
                     "dmbench sweep --grid index=sherman,chime --grid transport=local --repeat 10 --jobs 1 --out both\n"
                     "dmbench compare both --a index=sherman --b index=chime";
    help->status = "0 compared, 2 usage or unlike results, 3 a --fail-if condition holds.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .options = extra, .table = compare_table});
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct session *session = arg;
    if (name == NULL) {
        if (session->name_count == 2) {
            return dm_fail(err, DM_ERR_INVALID, "'%.40s': two things are compared, A and B", value);
        }
        session->names[session->name_count++] = value;
        return 0;
    }
    if (strcmp(name, "fail_if") != 0) {
        size_t side = strcmp(name, "b") == 0;
        if (session->filter_count[side] == FILTERS_MAX || strchr(value, '=') == NULL || value[0] == '=') {
            return dm_fail(err, DM_ERR_INVALID, "--%s: '%.40s' is not NAME=VALUE, or there are more than %d", name,
                           value, FILTERS_MAX);
        }
        session->filters[side][session->filter_count[side]++] = value;
        return 0;
    }
    if (session->limit_count == LIMITS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "--fail-if: more than %d conditions", LIMITS_MAX);
    }
    session->limit_texts[session->limit_count] = value;
    int rc = hx_compare_limit_parse(value, &session->limits[session->limit_count++], err);
    return rc < 0 ? dm_fail_in(err, rc, "--fail-if") : 0;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

/* A condition on a metric that no point has would never hold: an error, not a success. */
static int check_limits(const struct session *session, bool *failed, struct dm_err *err) {
    for (size_t i = 0; i < session->limit_count; i++) {
        const struct hx_compare_limit *limit = &session->limits[i];
        bool named = false;
        for (size_t k = 0; k < session->compare->point_count; k++) {
            const struct hx_compare_point *point = &session->compare->points[k];
            for (size_t m = 0; m < point->metric_count; m++) {
                const struct hx_compare_metric *metric = &point->metrics[m];
                named = named || hx_compare_limit_names(limit, metric->name);
                if (hx_compare_limit_holds(limit, metric, session->options.certain)) {
                    fprintf(stderr, "dmbench compare: %s: %s%s%s is %.4f times A's\n", session->limit_texts[i],
                            point->label, point->label[0] != '\0' ? ": " : "", metric->name, metric->ratio);
                    *failed = true;
                }
            }
        }
        if (!named) {
            return dm_fail(err, DM_ERR_INVALID, "--fail-if: no point has a metric '%s'", limit->name);
        }
    }
    return 0;
}

/* Whether a text, with or without a unit, is this number. */
static bool text_is_number(const char *text, double number) {
    int (*const parsers[])(const char *, uint64_t *, struct dm_err *) = {dm_parse_count, dm_parse_bytes,
                                                                         dm_parse_duration};
    uint64_t whole;
    double real;
    bool same = dm_parse_real(text, &real, NULL) == 0 && real == number;
    for (size_t i = 0; i < DM_ARRAY_LEN(parsers) && !same; i++) {
        same = parsers[i](text, &whole, NULL) == 0 && (double)whole == number;
    }
    return same;
}

/* Whether a text is this value of an option, as the command line takes it. */
static bool text_is_value(const char *text, const json_t *value) {
    static const char *const words[2][5] = {{"0", "false", "off", "no", NULL}, {"1", "true", "on", "yes", NULL}};
    return json_is_boolean(value)  ? dm_text_is_among(text, words[json_is_true(value)])
           : json_is_number(value) ? text_is_number(text, json_number_value(value))
                                   : json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Whether a result's option has the value of the filter. */
static bool filter_passes(const char *filter, const json_t *result) {
    char typed[NAME_BYTES], name[NAME_BYTES], path[NAME_BYTES + 8];
    const char *wanted = strchr(filter, '=') + 1;
    snprintf(typed, sizeof(typed), "%.*s", (int)(wanted - filter - 1), filter);
    if (!hx_option_name(typed, name, sizeof(name))) {
        return false;
    }
    snprintf(path, sizeof(path), "config.%s", name);
    return text_is_value(wanted, hx_json_find(result, path));
}

static int load_side(struct session *session, size_t side, struct dm_err *err) {
    struct hx_result_set *set = &session->sets[side];
    const char *name = session->names[side < session->name_count ? side : 0];
    size_t kept = 0;
    DM_TRY(hx_result_set_add(set, name, err));
    for (size_t i = 0; i < set->count; i++) {
        bool passes = true;
        for (size_t k = 0; k < session->filter_count[side]; k++) {
            passes = passes && filter_passes(session->filters[side][k], set->items[i]);
        }
        json_t *item = set->items[i];
        char *file = set->names[i];
        set->items[i] = set->items[kept];
        set->names[i] = set->names[kept];
        set->items[kept] = item;
        set->names[kept] = file;
        kept += passes;
    }
    hx_result_set_cut(set, kept);
    return kept > 0 ? 0
                    : dm_fail(err, DM_ERR_INVALID, "--%s: no result of %s is like that", side == 0 ? "a" : "b", name);
}

static int session_run(struct session *session, bool *failed, struct dm_err *err) {
    if (session->name_count != 2 &&
        (session->name_count != 1 || session->filter_count[0] == 0 || session->filter_count[1] == 0)) {
        return dm_fail(err, DM_ERR_INVALID, "name two results, folders or patterns (see --help)");
    }
    DM_TRY(load_side(session, 0, err));
    DM_TRY(load_side(session, 1, err));
    session->names[1] = session->names[session->name_count - 1];
    struct hx_compare_options options = {.force = session->options.force,
                                         .confidence = session->options.confidence,
                                         .rounds = (unsigned)session->options.rounds,
                                         .seed = session->options.seed};
    DM_TRY(hx_compare_make(&session->sets[0], &session->sets[1], &options, &session->compare, err));
    if (session->options.json) {
        json_t *object = hx_compare_object(session->compare, session->names, session->options.confidence);
        json_dumpf(object, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
        printf("\n");
        json_decref(object);
    } else {
        hx_compare_print(session->compare, session->names, session->options.confidence, stdout);
    }
    return check_limits(session, failed, err);
}

int hx_cmd_compare(int argc, char **argv) {
    static const char *const repeated[] = {"fail_if", "a", "b", NULL};
    struct session session = {.name_count = 0};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = compare_table, .values = &session.options, .repeated = repeated, .take = take, .arg = &session};
    bool failed = false;
    dm_opt_defaults(compare_table, &session.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc > 0) {
        hx_help_show(hx_help_compare);
        return HX_DONE;
    }
    rc = rc < 0 ? rc : session_run(&session, &failed, &err);
    hx_compare_free(session.compare);
    hx_result_set_fini(&session.sets[0]);
    hx_result_set_fini(&session.sets[1]);
    return rc < 0 ? hx_report("compare", &err) : failed ? HX_WRONG : HX_DONE;
}
