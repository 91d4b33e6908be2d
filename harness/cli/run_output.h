/* SPDX-License-Identifier: Apache-2.0
 *
 * Where `dmbench run` writes its results, and in which form.
 */
#ifndef DM_HARNESS_CLI_RUN_OUTPUT_H
#define DM_HARNESS_CLI_RUN_OUTPUT_H

#include <jansson.h>
#include <stdint.h>

#include "harness/cli/point_args.h"
#include "harness/run/percentiles.h"

struct hx_run_output {
    const struct hx_point_options *options;
    enum hx_format format;
    const char *file; /* of --out; "" for none or standard output */
    struct hx_percentiles percentiles;
    json_t *results; /* of --repeat, those that are complete */
    bool has_header;
};

/* Reads the options and checks that the files can be written, because after the run the result would be lost. `config`
 * is resolved. */
int hx_run_output_open(struct hx_run_output *output, const struct hx_point_options *options,
                       const struct hx_config *config, struct dm_err *err);
void hx_run_output_close(struct hx_run_output *output);

/* Writes a result to its file, and prints it: one of several runs as a line. A partial one goes to a file whose name
 * says so, never over a complete one. */
int hx_run_output_give(struct hx_run_output *output, json_t *result, struct dm_err *err);

/* After the last run: prints what --repeat found. */
int hx_run_output_end(struct hx_run_output *output, struct dm_err *err);

#endif
