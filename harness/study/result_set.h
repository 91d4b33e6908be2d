/* SPDX-License-Identifier: Apache-2.0
 *
 * Many result files at once: reading them from files, folders and patterns, and the numbers that commands take from
 * them by name.
 */
#ifndef DM_HARNESS_STUDY_RESULT_SET_H
#define DM_HARNESS_STUDY_RESULT_SET_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

struct hx_result_set {
    json_t **items; /* results; owned */
    char **names;   /* the files they came from; owned */
    size_t count, capacity;
};

/* Adds a result file, the results of a folder (of its subfolder points/ if it has one) or those that match a shell
 * pattern. A file that is named must be a result; in folders and patterns other JSON files are skipped. It is an error
 * if nothing is found or a file is damaged. */
int hx_result_set_add(struct hx_result_set *set, const char *what, struct dm_err *err);

/* Drops all but the first `count`. */
void hx_result_set_cut(struct hx_result_set *set, size_t count);
void hx_result_set_fini(struct hx_result_set *set);

/* The number at a dotted path of a result, NaN if there is none. "ops.all.latency_ns.*" is taken from the merged
 * histograms of all index operations, "ops.all.count" is their number, "ops.all.*_mean" (and "ops.all.*_mean.MEMBER")
 * the mean over them, weighted by their counts; read-modify-writes are left out, because their gets and updates are
 * included. */
double hx_result_number(const json_t *result, const char *path);

/* The result, or NULL (with a line on stderr, and freed) if operations of it ran out of memory or of retries: their
 * latencies distort what was measured. `label` and `hash` name the point. Accepts NULL. */
json_t *hx_result_usable(json_t *result, const char *label, const char *hash);

#endif
