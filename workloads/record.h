/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the operations of a run in a file, so that two indexes can run exactly the same operations. A file is a
 * header (configuration, seed, totals) and blocks; a block has operations of one client, in the order in which they
 * were drawn.
 */
#ifndef DM_WORKLOADS_RECORD_H
#define DM_WORKLOADS_RECORD_H

#include "workloads/workload.h"

/* What a file states about the run that recorded it. */
struct wl_record_info {
    uint64_t seed, operations; /* as given to wl_open */
    uint64_t recorded;         /* operations in the file */
    uint64_t by_kind[WL_OP_KIND_COUNT];
    uint32_t clients, scan_max;
};

struct wl_recorder;        /* a file being written */
struct wl_recorder_stream; /* the operations of one client */

/* Creates "path.tmp.<pid>" and writes the header with the configuration. */
int wl_recorder_open(const char *path, const struct wl_config *config, const struct wl_record_info *info,
                     struct wl_recorder **recorder, struct dm_err *err);
/* Completes the file and renames it to its path. If a write failed, removes the file and returns that failure. Accepts
 * NULL. */
int wl_recorder_close(struct wl_recorder *recorder, struct dm_err *err);
void wl_recorder_abandon(struct wl_recorder *recorder); /* removes the file; accepts NULL */

/* NULL when out of memory. */
struct wl_recorder_stream *wl_recorder_stream_open(struct wl_recorder *recorder, unsigned client);
void wl_recorder_stream_close(struct wl_recorder_stream *stream); /* writes the last block; accepts NULL */
/* Adds an operation. wl_recorder_close returns the first failure. Does not allocate. */
void wl_recorder_add(struct wl_recorder_stream *stream, const struct wl_op *op);

struct wl_replay; /* a mapped file of recorded operations */

/* Maps and checks a file, and sets `config` (which has the defaults of the options) to the recorded configuration. The
 * caller closes the replay. */
int wl_replay_open(const char *path, struct wl_config *config, struct wl_replay **replay, struct dm_err *err);
void wl_replay_close(struct wl_replay *replay); /* accepts NULL */
const struct wl_record_info *wl_replay_info(const struct wl_replay *replay);

struct wl_replay_cursor {
    const struct wl_replay *replay;
    uint64_t block, next; /* byte offset of the current block; index of the next operation in it */
    uint32_t client, clients;
};
/* With as many clients as the recording, each client gets its own operations. With fewer, client c gets those of the
 * recorded clients c, c + clients and so on, in the order of the file. With more, the last clients get none. */
struct wl_replay_cursor wl_replay_cursor_make(const struct wl_replay *replay, unsigned client, unsigned clients);
/* Returns 0, or DM_NOT_FOUND at the end. */
int wl_replay_next(struct wl_replay_cursor *cursor, struct wl_op *op);

#endif
