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

/* Adds what `what` stands for: a result file, a folder (its points if it has such a folder, else what lies in it) or
 * a shell pattern. A file named by itself must be a result; in folders and patterns other JSON files are passed over.
 * Nothing found, and a damaged file, are errors. */
int hx_result_set_add(struct hx_result_set *set, const char *what, struct dm_err *err);

/* Drops all but the first `count`. */
void hx_result_set_cut(struct hx_result_set *set, size_t count);
void hx_result_set_fini(struct hx_result_set *set);

/* The number at a dotted path of a result, NaN where there is none. "ops.all.latency_ns.*" is taken from the merged
 * histograms of all index operations, "ops.all.*_mean" is the mean over them, weighted by their counts; a
 * read-modify-write is left out as a whole, because its get and its update are among the others. */
double hx_result_number(const json_t *result, const char *path);

#endif
