/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench archive`: the results of a scale in one file; lists it, unpacks it, and runs a part of its points again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/prng.h"
#include "common/stats.h"
#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/base/json.h"
#include "harness/cli/commands.h"
#include "harness/cli/data_option.h"
#include "harness/points/archive.h"
#include "harness/points/points_progress.h"
#include "harness/run/config.h"
#include "harness/study/figure.h"
#include "harness/study/scale_points.h"

enum { PATH_BYTES = 4096, WHERE_BYTES = 256, TIME_BYTES = 64 };

struct archive_options {
    const char *out, *scale, *plots;
    double sample;
    uint64_t seed, jobs, repeat;
    bool force, json;
};

#define ROW(member, ...) DM_OPT_ROW(struct archive_options, member, __VA_ARGS__)

static const struct dm_opt archive_table[] = {
    ROW(out, DM_OPT_STRING, .values = "folder", .initial = "",
        .help =
            "folder with points/ and training/ to pack from or to unpack into (default: results); verify keeps what "
            "it runs there, and continues with it (default: a temporary folder)"),
    ROW(scale, DM_OPT_STRING, .initial = "paper",
        .help = "pack: whose points: those of all figures, claims and published experiments at this scale"),
    ROW(repeat, DM_OPT_COUNT, .initial = "0", .max = HX_FIG_REPEAT_MAX,
        .help = "pack: seeds a point, as of `dmbench figure`"),
    ROW(sample, DM_OPT_REAL, .initial = "0.1", .min = 0, .max = 1, .help = "verify: the share of points to run again"),
    ROW(seed, DM_OPT_COUNT, .initial = "1", .max = 9007199254740991.0, .help = "verify: draws other points"),
    ROW(jobs, DM_OPT_COUNT, .initial = "0", .max = 4096, .help = "verify: points at once; 0: one per core"),
    ROW(force, DM_OPT_BOOL, .initial = "0", .help = "unpack: replace other results of the same points"),
    ROW(json, DM_OPT_BOOL, .initial = "0", .help = "list: print JSON, the header and every result"),
    ROW(plots, DM_OPT_STRING, .values = "folder", .initial = "",
        .help = "pack: folder with figures, claims and experiments" HX_PLOTS_DEFAULT),
    DM_OPT_END,
};

struct session {
    struct archive_options options;
    const struct action *action;
    const char *file;
    struct hx_archive archive;
};

void hx_help_archive(struct hx_help *help) {
    help->words = "=pack list unpack verify";
    help->usage = "archive pack FILE [options]\n"
                  "archive list|unpack|verify FILE [options]";
    help->about =
        "pack writes the results of all points of a scale that are there to one compressed file, with a hash and with "
        "the revisions and processors that they come from. list prints what is in it. unpack writes the results back, "
        "equal to what was packed, and keeps those that are there. verify runs a random share of the points again and "
        "compares all but provenance and other times of the host.";
    help->examples = "dmbench archive pack results/paper.zst --scale paper\n"
                     "dmbench archive unpack results/paper.zst --out elsewhere\n"
                     "dmbench archive verify results/paper.zst --sample 0.1";
    help->status = "0 done, and what was run again is equal; 1 failed, 2 usage, 3 a result is not equal, 130 "
                   "interrupted.";
    hx_help_add(help, (struct hx_help_section){.title = "Options", .table = archive_table});
}

static const char *folder_of(const struct session *session) {
    return session->options.out[0] != '\0' ? session->options.out : "results";
}

static double megabytes(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? (double)status.st_size * 1e-6 : 0;
}

static int pack(struct session *session, int *status, struct dm_err *err) {
    const struct archive_options *options = &session->options;
    size_t packed, missing;
    (void)status;
    DM_TRY(hx_figure_check_scale("--scale", options->scale, err));
    struct hx_points *points =
        hx_scale_points(options->plots, folder_of(session), options->scale, (unsigned)options->repeat, err);
    if (points == NULL) {
        return err->code < 0 ? err->code : DM_ERR_NO_MEMORY;
    }
    int rc = hx_archive_pack(points, options->scale, session->file, &packed, &missing, err);
    if (rc == 0) {
        printf("%s: %zu results of scale %s, %.1f MB; %zu points have none\n", session->file, packed, options->scale,
               megabytes(session->file), missing);
    }
    hx_points_free(points);
    return rc;
}

static void print_counts(const json_t *header, const char *member) {
    const char *name;
    json_t *count;
    json_object_foreach(json_object_get(header, member), name, count) {
        printf("  %s %s: %lld\n", member, name, (long long)json_integer_value(count));
    }
}

/* The processor time of all results that state it. A load that points shared counts once: each states the same time. */
static int print_processor_time(const json_t *lines, struct dm_err *err) {
    double *loads = calloc(json_array_size(lines) + 1, sizeof(*loads)), seconds = 0;
    char text[TIME_BYTES];
    size_t count = 0, at;
    const json_t *line;
    if (loads == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the times of %zu results", json_array_size(lines));
    }
    json_array_foreach(lines, at, line) {
        const json_t *host = hx_json_find(line, "result.provenance.host");
        if (json_object_get(host, "run_cpu_s") != NULL) {
            seconds += json_number_value(json_object_get(host, "run_cpu_s"));
            loads[count++] = json_number_value(json_object_get(host, "load_cpu_s"));
        }
    }
    dm_sort(loads, count);
    for (size_t i = 0; i < count; i++) {
        seconds += i > 0 && loads[i] <= loads[i - 1] ? 0 : loads[i];
    }
    free(loads);
    hx_seconds_text(seconds, text, sizeof(text));
    printf("  processor time of %zu results that state it: %s\n", count, text);
    return 0;
}

static int list(struct session *session, int *status, struct dm_err *err) {
    const struct hx_archive *archive = &session->archive;
    const json_t *line;
    size_t at;
    (void)status;
    if (session->options.json) {
        json_t *all = json_pack("{s:O, s:O}", "header", archive->header, "points", archive->lines);
        json_dumpf(all, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        printf("\n");
        json_decref(all);
        return 0;
    }
    json_array_foreach(archive->lines, at, line) {
        const json_t *result = json_object_get(line, "result"), *config = json_object_get(result, "config");
        const char *index = json_string_value(json_object_get(config, "index"));
        const char *workload = json_string_value(json_object_get(config, "workload"));
        printf("%s  %-10s %-10s %10lld keys %6lld clients  %.6g ops/s\n",
               json_string_value(json_object_get(line, "point")), index != NULL ? index : "training",
               workload != NULL ? workload : "", (long long)json_integer_value(json_object_get(config, "keys")),
               (long long)json_integer_value(json_object_get(config, "clients")),
               json_number_value(json_object_get(result, "throughput_ops_per_s")));
    }
    printf("%zu results of scale %s, packed at %s, hash %s\n", json_array_size(archive->lines),
           json_string_value(json_object_get(archive->header, "scale")),
           json_string_value(json_object_get(archive->header, "packed_at")),
           json_string_value(json_object_get(archive->header, "hash")));
    print_counts(archive->header, "revisions");
    print_counts(archive->header, "cpus");
    return print_processor_time(archive->lines, err);
}

static int unpack(struct session *session, int *status, struct dm_err *err) {
    struct hx_unpacked unpacked;
    (void)status;
    DM_TRY(hx_archive_unpack(&session->archive, folder_of(session), session->options.force, &unpacked, err));
    printf("%s: %zu results written, %zu there and equal, %zu others kept\n", folder_of(session), unpacked.written,
           unpacked.equal, unpacked.kept);
    return 0;
}

/* ---- verify -------------------------------------------------------------------------------------------------------
 */

/* Adds a random share of the archive's points to a set; at[i] is the line of point i of the set. */
static int draw(const struct session *session, struct hx_points *points, size_t *at, struct dm_err *err) {
    const json_t *lines = session->archive.lines;
    struct dm_prng prng = dm_prng_stream(session->options.seed, "archive verify", 0);
    size_t count = json_array_size(lines), wanted = (size_t)ceil((double)count * session->options.sample);
    for (size_t i = 0; i < count && points->count < wanted; i++) {
        /* As many of the rest as are wanted still, each with the same chance. */
        if (dm_prng_below(&prng, count - i) >= wanted - points->count) {
            continue;
        }
        const json_t *line = json_array_get(lines, i), *result = json_object_get(line, "result");
        const char *name = json_string_value(json_object_get(line, "point"));
        size_t index, before = points->count;
        json_t *config = hx_config_again(result);
        int rc = config != NULL ? hx_points_add(points, config, name, name, &index, err)
                                : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points");
        json_decref(config);
        DM_TRY(rc);
        if (points->count == before || strcmp(strchr(name, '/') + 1, points->items[index].hash) != 0) {
            return dm_fail(err, DM_ERR_INVALID,
                           "%s: its configuration has another hash, %s: this program has other options or profiles",
                           name, points->items[index].hash);
        }
        at[index] = i;
    }
    return 0;
}

/* A packed result to compare with a new one, of which it takes the size of memory nodes where that was not given. */
static json_t *with_memory_of(json_t *packed, const json_t *again) {
    json_t *result = json_copy(packed), *config = hx_config_again(packed);
    if (json_object_get(config, "mn_memory") == NULL) {
        json_object_set(config, "mn_memory", json_object_get(json_object_get(again, "config"), "mn_memory"));
    }
    json_object_set_new(result, "config", config);
    return result;
}

static size_t compare_all(const struct session *session, const struct hx_points *points, const size_t *at) {
    size_t equal = 0;
    for (size_t i = 0; i < points->count; i++) {
        struct dm_err err = {.text = ""};
        char where[WHERE_BYTES];
        json_t *packed = json_object_get(json_array_get(session->archive.lines, at[i]), "result");
        json_t *again = hx_points_load(points, i, &err), *wanted = with_memory_of(packed, again);
        if (again == NULL) {
            printf("%s: has no result now: %s\n", points->items[i].label, err.text);
        } else if (!hx_results_equal(wanted, again, where, sizeof(where))) {
            printf("%s: is not equal at %s\n", points->items[i].label, where);
        } else {
            equal++;
        }
        json_decref(again);
        json_decref(wanted);
    }
    printf("%zu of %zu points run again, %zu equal\n", points->count, json_array_size(session->archive.lines), equal);
    return equal;
}

static int verify_in(struct session *session, const char *out, int *status, struct dm_err *err) {
    struct hx_points *points = hx_points_new(out);
    size_t *at = calloc(json_array_size(session->archive.lines) + 1, sizeof(*at));
    int rc = points != NULL && at != NULL ? draw(session, points, at, err)
                                          : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points");
    if (rc == 0) {
        const struct hx_points_options run = {.jobs = session->options.jobs, .stale = HX_STALE_RUN};
        *status = hx_points_run(points, &run);
        if (*status != HX_INTERRUPTED && compare_all(session, points, at) < points->count) {
            *status = HX_WRONG;
        }
    }
    hx_points_free(points);
    free(at);
    return rc;
}

static void remove_folder(const char *out, const struct session *session) {
    char path[PATH_BYTES + 64];
    const json_t *line;
    size_t at;
    json_array_foreach(session->archive.lines, at, line) {
        snprintf(path, sizeof(path), "%s/%.40s.json", out, json_string_value(json_object_get(line, "point")));
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/points", out);
    rmdir(path);
    snprintf(path, sizeof(path), "%s/training", out);
    rmdir(path);
    rmdir(out);
}

static int verify(struct session *session, int *status, struct dm_err *err) {
    char folder[PATH_BYTES];
    const char *parent = getenv("TMPDIR");
    if (session->options.out[0] != '\0') {
        return verify_in(session, session->options.out, status, err);
    }
    snprintf(folder, sizeof(folder), "%s/dmbench_verify.XXXXXX", parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    if (mkdtemp(folder) == NULL) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot make the folder", folder);
    }
    int rc = verify_in(session, folder, status, err);
    if (rc == 0 && *status == HX_INTERRUPTED) {
        fprintf(stderr, "what was run is kept; to continue: --out %s\n", folder);
        return rc;
    }
    remove_folder(folder, session);
    return rc;
}

/* ---- the command --------------------------------------------------------------------------------------------------
 */

static const struct action {
    const char *name;
    int (*run)(struct session *session, int *status, struct dm_err *err);
    bool reads; /* the archive, first */
} actions[] = {
    {"pack", pack, .reads = false},
    {"list", list, .reads = true},
    {"unpack", unpack, .reads = true},
    {"verify", verify, .reads = true},
};

static int take_action(struct session *session, const char *name, struct dm_err *err) {
    const char *names[DM_ARRAY_LEN(actions)];
    for (size_t i = 0; i < DM_ARRAY_LEN(actions); i++) {
        names[i] = actions[i].name;
        session->action = strcmp(name, names[i]) == 0 ? &actions[i] : session->action;
    }
    return session->action != NULL ? 0 : hx_fail_unknown(err, "action", name, names, DM_ARRAY_LEN(actions));
}

static int take(void *arg, const char *name, const char *value, struct dm_err *err) {
    struct session *session = arg;
    (void)name;
    if (session->action == NULL) {
        return take_action(session, value, err);
    }
    if (session->file != NULL) {
        return dm_fail(err, DM_ERR_INVALID, "'%.40s': one file is enough", value);
    }
    session->file = value;
    return 0;
}

static int session_run(struct session *session, int *status, struct dm_err *err) {
    if (session->file == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "name pack, list, unpack or verify, and the file");
    }
    if (session->action->reads) {
        DM_TRY(hx_archive_read(session->file, &session->archive, err));
    }
    return session->action->run(session, status, err);
}

int hx_cmd_archive(int argc, char **argv) {
    static const char *const repeated[] = {NULL};
    struct session session = {.action = NULL};
    struct dm_err err = {.text = ""};
    struct hx_args args = {
        .table = archive_table, .values = &session.options, .repeated = repeated, .take = take, .arg = &session};
    int status = HX_DONE;
    dm_opt_defaults(archive_table, &session.options);
    hx_plots_set(archive_table, &session.options);
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc > 0) {
        hx_help_show(hx_help_archive);
    } else if (rc == 0) {
        rc = session_run(&session, &status, &err);
    }
    hx_archive_fini(&session.archive);
    dm_opt_free(archive_table, &session.options);
    return rc < 0 ? hx_report("archive", &err) : status;
}
