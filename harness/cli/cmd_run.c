/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench run`: one point, from the command line to its result, once or with several seeds.
 */
#include <inttypes.h>
#include <stdio.h>

#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/cli/point_args.h"
#include "harness/cli/run_output.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"
#include "harness/run/interrupt.h"
#include "harness/run/provenance.h"
#include "harness/run/result.h"

struct session {
    struct hx_point_request request;
    struct hx_run_output output;
    struct hx_team *team;
    int argc;
    char **argv;
    bool is_broken, is_partial;
};

static int trace_give(struct hx_tracer *tracer, const struct hx_config *config, const char *path, struct dm_err *err) {
    hx_interrupt_hold(true);
    int rc = hx_tracer_store(tracer, &config->topology, path, err);
    hx_interrupt_hold(false);
    return rc;
}

static int point_measure(struct hx_config *config, const struct hx_point_options *options,
                         struct hx_measured **measured, struct dm_err *err) {
    if (!options->verb_trace[0]) {
        return hx_measure(config, NULL, measured, err);
    }
    struct hx_tracer *tracer = hx_tracer_new(options->trace_ops, config->topology.clients);
    if (!tracer) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = hx_measure(config, tracer, measured, err);
    if (rc == 0 && !(*measured)->is_partial) {
        rc = trace_give(tracer, config, options->verb_trace, err);
    }
    if (rc < 0) {
        hx_measured_free(*measured);
        *measured = NULL;
    }
    hx_tracer_free(tracer);
    return rc;
}

static int point_run(struct session *session, struct hx_config *config, struct dm_err *err) {
    struct hx_measured *measured = NULL;
    const struct hx_point_options *options = &session->request.options;
    config->keeps_partial = options->partial && !session->team;
    config->is_quiet = options->quiet;
    DM_TRY(point_measure(config, options, &measured, err));
    json_t *result = hx_result_new(config, measured);
    int rc = result && json_object_set_new(result, "provenance",
                                           hx_provenance_new(config, measured, session->argc, session->argv)) == 0
                 ? hx_run_output_give(&session->output, result, err)
                 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    session->is_broken = session->is_broken || (measured->verified && measured->report.broken > 0);
    session->is_partial = measured->is_partial;
    if (rc == 0 && measured->is_partial) {
        rc = dm_fail(err, DM_ERR_STOPPED, "interrupted");
    }
    json_decref(result);
    hx_measured_free(measured);
    return rc;
}

/* The configuration of the command line once more, with a later seed. */
static int point_repeat(struct session *session, uint64_t seed, struct dm_err *err) {
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, seed);
    struct hx_config *config = hx_config_new();
    int rc = config ? hx_point_request_apply(&session->request, config, err)
                    : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    rc = rc < 0 ? rc : hx_config_set(config, "seed", text, err);
    rc = rc < 0 ? rc : hx_config_resolve(config, err);
    if (rc == 0) {
        config->is_repeated = true;
        rc = point_run(session, config, err);
    }
    hx_config_close(config);
    return rc;
}

static int points_run(struct session *session, struct hx_config *config, struct dm_err *err) {
    uint64_t first = config->run.seed;
    int rc = point_run(session, config, err);
    for (uint64_t i = 1; i < session->request.options.repeat && rc == 0; i++) {
        rc = point_repeat(session, first + i, err);
    }
    struct dm_err unprinted = {.code = 0};
    int ended = hx_run_output_end(&session->output, rc < 0 ? &unprinted : err);
    return rc < 0 ? rc : ended;
}

/* With more than one compute process there is no common order of operations to record. */
static int team_check(const struct session *session, const struct hx_config *config, struct dm_err *err) {
    const struct hx_point_options *options = &session->request.options;
    if (session->team && options->repeat > 1) {
        return dm_fail(err, DM_ERR_INVALID, "--repeat: not for a run of several processes");
    }
    if (hx_team_parts(session->team) > 1 &&
        (options->verb_trace[0] || config->run.record[0] || config->workload.replay[0])) {
        return dm_fail(err, DM_ERR_INVALID, "--verb-trace, --record and --replay need one compute process");
    }
    return 0;
}

/* Runs the part of the point that belongs to this process. */
static int point_join(struct session *session, struct hx_config *config, struct dm_err *err) {
    struct hx_team *team = session->team;
    DM_TRY(hx_team_assign(team, config, &session->request.options.team, err));
    config->team = team;
    if (!hx_team_is_compute(team)) {
        return hx_serve(config, err);
    }
    DM_TRY(team_check(session, config, err));
    if (hx_team_is_first(team)) {
        DM_TRY(hx_run_output_open(&session->output, &session->request.options, config, err));
        return points_run(session, config, err);
    }
    struct hx_measured *measured = NULL;
    int rc = hx_measure(config, NULL, &measured, err);
    hx_measured_free(measured);
    return rc;
}

int hx_cmd_run(int argc, char **argv) {
    struct session session = {.argc = argc, .argv = argv};
    struct dm_err err = {0};
    struct hx_config *config = hx_config_new();
    int rc = config ? hx_point_args_read(&session.request, argc, argv, config, &err)
                    : dm_fail(&err, DM_ERR_NO_MEMORY, "out of memory");
    if (rc == 0) {
        rc = hx_team_join(config, false, &session.request.options.team, &session.team, &err);
        rc = rc < 0 ? rc : hx_config_resolve(config, &err);
    }
    if (rc == 0) {
        hx_interrupt_install("run");
        rc = point_join(&session, config, &err);
    }
    hx_config_close(config);
    hx_run_output_close(&session.output);
    hx_point_args_free(&session.request);
    int status = rc < 0 ? hx_report("run", &err) : session.is_broken ? HX_WRONG : HX_DONE;
    hx_team_leave(session.team, rc < 0);
    return status;
}
