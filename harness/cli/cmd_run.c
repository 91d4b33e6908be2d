/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench run`: one point, from the command line to its result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/cli/point_args.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"
#include "harness/run/interrupt.h"
#include "harness/run/provenance.h"
#include "harness/run/result.h"
#include "harness/run/summary.h"

/* Checks before the run that a file can be written, because after the run its result would be lost. */
static int out_check(const char *option, const char *path, bool is_seekable, struct dm_err *err) {
    size_t length = strlen(path);
    if (length > 0 && path[length - 1] == '/') {
        return dm_fail(err, DM_ERR_INVALID, "%s: '%.200s' is a folder; name a file in it", option, path);
    }
    int rc = dm_output_check(path, is_seekable, err);
    return rc < 0 ? dm_fail_in(err, rc, "%s", option) : 0;
}

/* Result, recording and trace are each renamed to their path, so two with the same path would overwrite each other. */
static int outputs_check(const struct hx_point_options *options, const struct hx_config *config, struct dm_err *err) {
    const char *record = config->run.record ? config->run.record : "";
    const char *out = options->out, *trace = options->verb_trace;
    if (out[0]) {
        DM_TRY(out_check("--out", out, false, err));
    }
    if (record[0]) {
        DM_TRY(out_check("--record", record, true, err));
    }
    if (record[0] && strcmp(record, out) == 0) {
        return dm_fail(err, DM_ERR_INVALID, "--record: '%.200s' is where --out writes the result", record);
    }
    if (trace[0]) {
        DM_TRY(out_check("--verb-trace", trace, false, err));
    }
    if (trace[0] && (strcmp(trace, out) == 0 || strcmp(trace, record) == 0)) {
        return dm_fail(err, DM_ERR_INVALID, "--verb-trace: '%.200s' is where --out or --record writes", trace);
    }
    return 0;
}

static int result_give(const json_t *result, const struct hx_point_options *options, struct dm_err *err) {
    const char *file = options->out[0] ? options->out : NULL;
    if (file) {
        hx_interrupt_hold(true);
        int rc = dm_json_store(result, file, err);
        hx_interrupt_hold(false);
        DM_TRY(rc);
    }
    int printed = 0;
    if (options->json) {
        printed = json_dumpf(result, stdout, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
        putchar('\n');
    } else {
        hx_summary_print(result, file, stdout);
    }
    if (printed < 0 || fflush(stdout) != 0 || ferror(stdout)) {
        return dm_fail(err, DM_ERR_IO, "cannot write to standard output: %s", strerror(errno));
    }
    return 0;
}

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
    if (rc == 0) {
        rc = trace_give(tracer, config, options->verb_trace, err);
    }
    if (rc < 0) {
        hx_measured_free(*measured);
        *measured = NULL;
    }
    hx_tracer_free(tracer);
    return rc;
}

static int point_run(struct hx_config *config, const struct hx_point_options *options, int argc, char **argv,
                     bool *is_broken, struct dm_err *err) {
    struct hx_measured *measured = NULL;
    DM_TRY(point_measure(config, options, &measured, err));
    json_t *result = hx_result_new(config, measured);
    int rc = result && json_object_set_new(result, "provenance", hx_provenance_new(config, measured, argc, argv)) == 0
                 ? result_give(result, options, err)
                 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    *is_broken = measured && measured->verified && measured->report.broken > 0;
    json_decref(result);
    hx_measured_free(measured);
    return rc;
}

/* With more than one compute process there is no common order of operations to record. */
static int team_check(const struct hx_team *team, const struct hx_point_options *options,
                      const struct hx_config *config, struct dm_err *err) {
    if (hx_team_parts(team) > 1 && (options->verb_trace[0] || config->run.record[0] || config->workload.replay[0])) {
        return dm_fail(err, DM_ERR_INVALID, "--verb-trace, --record and --replay need one compute process");
    }
    return 0;
}

/* Runs the part of the point that belongs to this process. */
static int point_join(struct hx_config *config, struct hx_team *team, const struct hx_point_options *options, int argc,
                      char **argv, bool *is_broken, struct dm_err *err) {
    DM_TRY(hx_team_assign(team, config, &options->team, err));
    config->team = team;
    if (!hx_team_is_compute(team)) {
        return hx_serve(config, err);
    }
    DM_TRY(team_check(team, options, config, err));
    if (hx_team_is_first(team)) {
        DM_TRY(outputs_check(options, config, err));
        return point_run(config, options, argc, argv, is_broken, err);
    }
    struct hx_measured *measured = NULL;
    int rc = hx_measure(config, NULL, &measured, err);
    hx_measured_free(measured);
    return rc;
}

int hx_cmd_run(int argc, char **argv) {
    struct hx_point_request request = {.count = 0};
    struct dm_err err = {0};
    struct hx_team *team = NULL;
    bool is_broken = false;
    struct hx_config *config = hx_config_new();
    int rc = config ? hx_point_args_read(&request, argc, argv, config, &err)
                    : dm_fail(&err, DM_ERR_NO_MEMORY, "out of memory");
    if (rc == 0) {
        rc = hx_team_join(config, false, &request.options.team, &team, &err);
        rc = rc < 0 ? rc : hx_config_resolve(config, &err);
    }
    if (rc == 0) {
        hx_interrupt_install("run");
        rc = point_join(config, team, &request.options, argc, argv, &is_broken, &err);
    }
    hx_config_close(config);
    hx_point_args_free(&request);
    int status = rc < 0 ? hx_report("run", &err) : is_broken ? HX_WRONG : HX_DONE;
    hx_team_leave(team, rc < 0);
    return status;
}
