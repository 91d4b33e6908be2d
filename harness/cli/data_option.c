/* SPDX-License-Identifier: Apache-2.0
 *
 * The default of --plots.
 */
#include "harness/cli/data_option.h"

#include "common/data_folder.h"

enum { PATH_BYTES = 4200 };

void hx_plots_set(const struct dm_opt *table, void *values) {
    char path[PATH_BYTES];
    struct dm_err err = {0};
    dm_data_path("plots", path, sizeof(path));
    /* Any text is a valid string. */
    (void)dm_opt_set(table, values, "plots", path, &err);
}
