/* SPDX-License-Identifier: Apache-2.0
 *
 * The default of the option --plots, which several commands have: the program's own figures and claims.
 */
#ifndef DM_HARNESS_CLI_DATA_OPTION_H
#define DM_HARNESS_CLI_DATA_OPTION_H

#include "common/opt.h"

/* Behind the help of the option: its default is found as the program runs. */
#define HX_PLOTS_DEFAULT " (default: that of the program)"

/* Sets the option `plots` of a table's values to its default. */
void hx_plots_set(const struct dm_opt *table, void *values);

#endif
