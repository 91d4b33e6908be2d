/* SPDX-License-Identifier: Apache-2.0
 *
 * End-to-end validation: published experiments of whole indexes, run under their conditions and compared.
 */
#include "harness/cli/end_to_end.h"

#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/base/errors.h"
#include "harness/study/experiment.h"
#include "harness/study/figure.h"

struct session {
    const struct hx_end_to_end_options *options;
    char **ids;
    struct hx_experiment **experiments;
    size_t count;
    struct hx_points *points;
};

static int check_only(const struct session *session, struct dm_err *err) {
    size_t count = 0;
    for (; session->ids[count] != NULL; count++) {
        if (strcmp(session->options->only, session->ids[count]) == 0) {
            return 0;
        }
    }
    return session->options->only[0] == '\0'
               ? 0
               : hx_fail_unknown(err, "experiment", session->options->only, (const char *const *)session->ids, count);
}

static bool is_run(const struct hx_experiment *experiment) {
    for (size_t i = 0; i < experiment->point_count; i++) {
        if (experiment->points[i].not_run == NULL) {
            return true;
        }
    }
    return false;
}

/* Puts the experiments of which nothing is run behind the others. */
static void run_first(struct session *session) {
    for (size_t i = 0, at = 0; i < session->count; i++) {
        struct hx_experiment *experiment = session->experiments[i];
        if (experiment != NULL && is_run(experiment)) {
            memmove(session->experiments + at + 1, session->experiments + at, (i - at) * sizeof(*session->experiments));
            session->experiments[at++] = experiment;
        }
    }
}

static int load(struct session *session, struct dm_err *err) {
    const struct hx_end_to_end_options *options = session->options;
    bool paper = strcmp(options->scale, "paper") == 0;
    if (!paper && strcmp(options->scale, "quick") != 0) {
        return dm_fail(err, DM_ERR_INVALID, "--scale: '%.40s' is neither quick nor paper", options->scale);
    }
    DM_TRY(hx_spec_ids(options->plots, "end_to_end", &session->ids, err));
    DM_TRY(check_only(session, err));
    size_t ids = 0;
    while (session->ids[ids] != NULL) {
        ids++;
    }
    session->experiments = calloc(ids + 1, sizeof(*session->experiments));
    session->points = hx_points_new(options->out);
    if (session->experiments == NULL || session->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for experiments");
    }
    for (size_t i = 0; i < ids; i++) {
        if (options->only[0] == '\0' || strcmp(options->only, session->ids[i]) == 0) {
            DM_TRY(hx_experiment_load(options->plots, session->ids[i], &session->experiments[session->count], err));
            session->count++;
            DM_TRY(hx_experiment_runs(session->experiments[session->count - 1], paper, session->points, err));
        }
    }
    run_first(session);
    return 0;
}

static int write_json(const struct session *session, const char *path, struct dm_err *err) {
    json_t *object = hx_experiments_object(session->experiments, session->count, session->options->scale);
    int rc =
        object == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for experiments") : dm_json_store(object, path, err);
    if (rc == 0 && session->options->json) {
        json_dumpf(object, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        printf("\n");
    }
    json_decref(object);
    return rc;
}

static int write_markdown(const struct session *session, const char *path, struct dm_err *err) {
    FILE *file = dm_output_open(path, err);
    if (file == NULL) {
        return err->code;
    }
    hx_experiments_markdown(session->experiments, session->count, file);
    return dm_output_close(file, path, err);
}

static int write_all(const struct session *session, struct dm_err *err) {
    char *json = hx_path_join(session->options->out, "end_to_end.json");
    char *table = hx_path_join(session->options->out, "end_to_end.md");
    int rc = json == NULL || table == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for paths") : 0;
    rc = rc < 0 ? rc : write_json(session, json, err);
    rc = rc < 0 ? rc : write_markdown(session, table, err);
    free(json);
    free(table);
    return rc;
}

static int session_run(struct session *session, struct dm_err *err) {
    DM_TRY(load(session, err));
    session->points->stale = session->options->run.stale;
    if (session->options->run.stale == HX_STALE_LIST) {
        hx_points_list_stale(session->points, stdout);
        return HX_DONE;
    }
    if (session->options->dry_run) {
        size_t absent = hx_points_scan(session->points);
        printf("%zu experiments, %zu runs in %s/points, %zu to run\n", session->count, session->points->count,
               session->points->out, absent);
        return HX_DONE;
    }
    int status = hx_points_run(session->points, &session->options->run);
    if (status == HX_INTERRUPTED || session->options->run.slurm[0] != '\0') {
        return status;
    }
    for (size_t i = 0; i < session->count; i++) {
        hx_experiment_judge(session->experiments[i], session->points, session->options->run.no_run);
    }
    DM_TRY(write_all(session, err));
    if (!session->options->json) {
        hx_experiments_print(session->experiments, session->count, stdout);
    }
    struct hx_exp_sum sum = hx_experiments_sum(session->experiments, session->count);
    bool off = sum.unexplained + sum.broken > 0;
    return status != HX_DONE ? status : sum.failed > 0 ? HX_FAILED : off ? HX_WRONG : HX_DONE;
}

int hx_end_to_end(const struct hx_end_to_end_options *options, struct dm_err *err) {
    struct session session = {.options = options};
    int status = session_run(&session, err);
    for (size_t i = 0; i < session.count; i++) {
        hx_experiment_free(session.experiments[i]);
    }
    free(session.experiments);
    hx_points_free(session.points);
    hx_figure_ids_free(session.ids);
    return status;
}
