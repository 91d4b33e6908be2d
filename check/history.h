/* SPDX-License-Identifier: Apache-2.0
 *
 * A history: what clients asked of an index and what they were told, in an order of invocations and responses that the
 * judge may rely on. Histories come from runs (run.h) and from files, and are judged by judge.h.
 */
#ifndef DM_CHECK_HISTORY_H
#define DM_CHECK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "workloads/workload.h"

/* Values are known by number. Every write has its own number, so a value that is read says which write it came from. */
enum { CK_VALUE_STRANGE = 0 }; /* bytes that no write of the history made */

struct ck_pair {
    uint64_t key, value;
};

/* One operation. Moments are ticks of one counter for all clients: a response before an invocation has the lower tick;
 * equal ticks say nothing. The ns are for people only. */
struct ck_op {
    unsigned client;
    enum wl_op_kind kind; /* all but WL_RMW */
    bool finished;        /* false: no response; outcome and response mean nothing */
    int outcome;          /* of index.h */
    uint64_t key;         /* of a scan: the first */
    uint64_t value;       /* written, or read by a get that found its key */
    uint32_t wanted;      /* by a scan */
    uint32_t found;       /* by a scan; may be more than wanted if the index is that wrong */
    struct ck_pair *pairs;
    uint64_t invoke, response;
    uint64_t invoke_ns, response_ns;
};

struct ck_history {
    char index[40];
    uint64_t seed;
    unsigned first_reader; /* clients from here on only read what was left in the end; 0: there are none */
    bool may_starve; /* a client stopped for good inside an operation: others may give up, nobody is judged for it */
    struct ck_pair *initial; /* loaded before the first operation; keys ascending */
    size_t initial_count;
    struct ck_op *ops; /* grouped by client, each client's in its order */
    size_t op_count;
    struct ck_pair *pool; /* where all pairs of scans are */
};

/* Releases what a history holds; harmless on a zeroed one. */
void ck_history_fini(struct ck_history *history);

/* The bytes that stand for a value number of a key, and the number that bytes of a key stand for, or CK_VALUE_STRANGE.
 * At least 8 bytes. Whether a write with that number was for that key is for the judge. */
void ck_value_write(uint64_t key, uint64_t value, void *bytes, uint32_t count);
uint64_t ck_value_read(uint64_t key, const void *bytes, uint32_t count);

/* Writes the history as JSON, one operation a line, whole or not at all. 0 or DM_ERR_IO, DM_ERR_NO_MEMORY. */
int ck_history_store(const struct ck_history *history, const char *path, struct dm_err *err);

/* Reads what ck_history_store wrote, or a person did. Anything malformed is refused with "file:line": unknown or absent
 * members, a response before its invocation, operations of one client that overlap, one value written twice. The caller
 * calls ck_history_fini, also after a failure. */
int ck_history_load(const char *path, struct ck_history *history, struct dm_err *err);

#endif
