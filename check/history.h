/* SPDX-License-Identifier: Apache-2.0
 *
 * A history: the operations that clients invoked on an index and the responses they got, with a reliable order of
 * invocations and responses. Histories come from runs (run.h) and from files; judge.h judges them.
 */
#ifndef DM_CHECK_HISTORY_H
#define DM_CHECK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "workloads/workload.h"

/* Values are identified by a number. Every write has a different one, so the number of a value that is read identifies
 * the write. */
enum { CK_VALUE_STRANGE = 0 }; /* for bytes that no write of the history wrote */

struct ck_pair {
    uint64_t key, value;
};

/* One operation. Times are ticks of one counter for all clients: a response before an invocation has the lower tick;
 * equal ticks mean that the order is unknown. The ns are only for display. */
struct ck_op {
    unsigned client;
    enum wl_op_kind kind; /* all but WL_RMW */
    bool finished;        /* false: there was no response; outcome and response are undefined */
    int outcome;          /* one of index.h */
    uint64_t key;         /* of a scan: the lower bound */
    uint64_t value;       /* written, or read by a get that found its key */
    uint32_t wanted;      /* pairs that a scan asked for */
    uint32_t found;       /* pairs that a scan returned; a broken index may return more than wanted */
    struct ck_pair *pairs;
    uint64_t invoke, response;
    uint64_t invoke_ns, response_ns;
};

/* Failures of operations that faults of the run explain: bits of ck_history.may_fail. Without its bit a failure is a
 * finding. The limit of retries is judged by may_starve. */
enum ck_failure {
    CK_MAY_BE_STOPPED = 1 << 0, /* DM_ERR_STOPPED: a client stops for good */
    CK_MAY_FAIL_IO = 1 << 1,    /* DM_ERR_IO: verbs complete in error */
    CK_MAY_FAIL_PEER = 1 << 2,  /* DM_ERR_PEER: nodes fail */
    CK_MAY_RUN_OUT = 1 << 3,    /* DM_ERR_NO_MEMORY: memory can be used up */
};

struct ck_history {
    char index[40];
    uint64_t seed;
    unsigned first_reader; /* clients from this one on only read everything at the end; 0: there are none */
    /* A client stopped for good inside an operation, so the operations of others may give up without being wrong. */
    bool may_starve;
    unsigned may_fail;
    struct ck_pair *initial; /* loaded before the first operation; keys ascending */
    size_t initial_count;
    struct ck_op *ops; /* grouped by client, in each client's order */
    size_t op_count;
    struct ck_pair *pool; /* the memory of the pairs of all scans */
};

/* Frees the members of a history; a zeroed history is accepted. */
void ck_history_fini(struct ck_history *history);

/* Encodes value number `value` of a key as bytes, and decodes the number from bytes, or CK_VALUE_STRANGE. A value has
 * at least 8 bytes. Only the judge checks that the write with that number wrote that key. */
void ck_value_write(uint64_t key, uint64_t value, void *bytes, uint32_t count);
uint64_t ck_value_read(uint64_t key, const void *bytes, uint32_t count);

/* Writes the history as JSON, one operation per line. The file appears atomically. 0, DM_ERR_IO or DM_ERR_NO_MEMORY. */
int ck_history_store(const struct ck_history *history, const char *path, struct dm_err *err);

/* Reads a file that ck_history_store or a person wrote. Anything malformed is refused with "file:line": unknown or
 * missing members, a response before its invocation, operations of one client that overlap, a value written twice. The
 * caller calls ck_history_fini, also after a failure. */
int ck_history_load(const char *path, struct ck_history *history, struct dm_err *err);

#endif
