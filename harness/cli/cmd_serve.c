/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench serve`: the process of a memory node or index server, in a run of several processes.
 */
#include "harness/base/errors.h"
#include "harness/cli/commands.h"
#include "harness/cli/point_args.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"
#include "harness/run/interrupt.h"

static int serve(struct hx_config *config, struct hx_team *team, const struct hx_team_options *options,
                 struct dm_err *err) {
    DM_TRY(hx_config_resolve(config, err));
    hx_interrupt_install("serve");
    DM_TRY(hx_team_assign(team, config, options, err));
    config->team = team;
    return hx_serve(config, err);
}

int hx_cmd_serve(int argc, char **argv) {
    struct hx_point_request request = {.count = 0};
    struct dm_err err = {0};
    struct hx_team *team = NULL;
    struct hx_config *config = hx_config_new();
    int rc = config ? hx_point_args_read(&request, argc, argv, config, &err)
                    : dm_fail(&err, DM_ERR_NO_MEMORY, "out of memory");
    if (rc == 0) {
        rc = hx_team_join(config, true, &request.options.team, &team, &err);
        rc = rc < 0 ? rc : serve(config, team, &request.options.team, &err);
    }
    hx_config_close(config);
    hx_point_args_free(&request);
    int status = rc < 0 ? hx_report("serve", &err) : HX_DONE;
    hx_team_leave(team, rc < 0);
    return status;
}
