/* SPDX-License-Identifier: Apache-2.0
 *
 * Operation streams on disk, so that two indexes can be asked for exactly the same. A file is one header (the
 * configuration, the seed, totals) and blocks of one client's operations each, in the order they were drawn.
 */
#ifndef DM_WORKLOADS_RECORD_H
#define DM_WORKLOADS_RECORD_H

#include "workloads/workload.h"

/* What a file says about the run it was made by. */
struct wl_record_info {
    uint64_t seed, operations; /* as given to wl_open */
    uint64_t recorded;         /* operations in the file */
    uint64_t by_kind[WL_OP_KIND_COUNT];
    uint32_t clients, scan_max;
};

struct wl_recorder;        /* a file being written */
struct wl_recorder_stream; /* one client's part */

/* Begins "path.tmp.<pid>"; the configuration goes into the header. */
int wl_recorder_open(const char *path, const struct wl_config *config, const struct wl_record_info *info,
                     struct wl_recorder **recorder, struct dm_err *err);
/* Completes the file and renames it to its path; after a write error nothing is left, and the code says so. Accepts
 * NULL. */
int wl_recorder_close(struct wl_recorder *recorder, struct dm_err *err);
void wl_recorder_abandon(struct wl_recorder *recorder); /* leaves no file; accepts NULL */

/* NULL when out of memory. */
struct wl_recorder_stream *wl_recorder_stream_open(struct wl_recorder *recorder, unsigned client);
void wl_recorder_stream_close(struct wl_recorder_stream *stream); /* writes what is left; accepts NULL */
/* Keeps the first failure for wl_recorder_close. No allocation. */
void wl_recorder_add(struct wl_recorder_stream *stream, const struct wl_op *op);

struct wl_replay; /* a recorded file, mapped */

/* Maps and checks a file, and sets `config` (option defaults on entry) to the recorded configuration. The caller
 * closes. */
int wl_replay_open(const char *path, struct wl_config *config, struct wl_replay **replay, struct dm_err *err);
void wl_replay_close(struct wl_replay *replay); /* accepts NULL */
const struct wl_record_info *wl_replay_info(const struct wl_replay *replay);

struct wl_replay_cursor {
    const struct wl_replay *replay;
    uint64_t block, next; /* byte offset of the block, operation in it */
    uint32_t client, clients;
};
/* With as many clients as recorded each gets its own operations again; with fewer, client c gets those of c, c +
 * clients and so on, in the order of the file; with more, the last ones get none. */
struct wl_replay_cursor wl_replay_cursor_make(const struct wl_replay *replay, unsigned client, unsigned clients);
/* 0, or DM_NOT_FOUND at the end. */
int wl_replay_next(struct wl_replay_cursor *cursor, struct wl_op *op);

#endif
