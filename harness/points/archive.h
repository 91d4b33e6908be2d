/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of many points in one file: zstd over lines of compact JSON. The first line is the header, with the number of
 * points, a hash of the other lines, and where the results come from; each other line is {"point": "points/HASH" or
 * "training/HASH", "result": {...}}, in the order of these names. A result is kept whole: what is unpacked is equal to
 * what was packed.
 */
#ifndef DM_HARNESS_POINTS_ARCHIVE_H
#define DM_HARNESS_POINTS_ARCHIVE_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "harness/points/points.h"

struct hx_archive {
    json_t *header;
    json_t *lines; /* an array of all others */
};

/* Writes the results of a set that are there; *packed and *missing are their numbers. A set without any result is
 * DM_ERR_INVALID; also DM_ERR_IO, DM_ERR_NO_MEMORY. */
int hx_archive_pack(const struct hx_points *points, const char *scale, const char *path, size_t *packed,
                    size_t *missing, struct dm_err *err);

/* Reads and checks all of an archive. DM_ERR_CORRUPT: it is no archive, cut short, or not what was packed. */
int hx_archive_read(const char *path, struct hx_archive *archive, struct dm_err *err);
void hx_archive_fini(struct hx_archive *archive);

struct hx_unpacked {
    size_t written, equal, kept; /* kept: another result of that point is there already */
};

/* Writes the results that are not there yet into out/points and out/training; with `force` all. */
int hx_archive_unpack(const struct hx_archive *archive, const char *out, bool force, struct hx_unpacked *unpacked,
                      struct dm_err *err);

/* Whether two results are equal in all that does not depend on host and time of day. Not: `where` is the path of the
 * first member that differs. */
bool hx_results_equal(const json_t *left, const json_t *right, char *where, size_t capacity);

#endif
