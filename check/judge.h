/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges a history: finds outcomes that the contract does not allow, values that no write wrote, wrong scans, and keys
 * whose accesses are not linearizable.
 */
#ifndef DM_CHECK_JUDGE_H
#define DM_CHECK_JUDGE_H

#include "check/history.h"

#define CK_FAULTS(X)                                                                                                   \
    X(CK_RIGHT, "right")                                                                                               \
    X(CK_NOT_LINEARIZABLE, "not_linearizable") /* no order of the accesses of a key explains their results */          \
    X(CK_STRANGE_VALUE, "strange_value")       /* bytes that no write of this key wrote */                             \
    X(CK_STRANGE_OUTCOME, "strange_outcome")   /* an outcome that the contract does not allow for this operation */    \
    X(CK_UNEXPLAINED, "unexplained_failure")   /* an operation failed without a fault of the run that explains it */   \
    X(CK_WRONG_SCAN, "wrong_scan")   /* unsorted, duplicate keys, keys below the lower bound, or too many pairs */     \
    X(CK_NO_PROGRESS, "no_progress") /* an operation gave up at the limit of retries */                                \
    X(CK_STUCK, "stuck")             /* the run did not end */                                                         \
    X(CK_BROKEN, "broken")           /* the index's verify found the structure broken */                               \
    X(CK_UNDECIDED, "undecided")     /* there are too many orders to search all */
enum ck_fault {
#define X(name, text) name,
    CK_FAULTS(X)
#undef X
        CK_FAULT_COUNT,
};
extern const char *const ck_fault_names[CK_FAULT_COUNT];

#define CK_NO_OP SIZE_MAX

struct ck_verdict {
    enum ck_fault fault;
    bool has_key;
    uint64_t key; /* the key whose timeline shows the fault */
    size_t op;    /* the operation whose result cannot be explained, or CK_NO_OP */
    char text[300];
};

/* Judges a history. Returns 0 with the verdict, which may be CK_RIGHT; or DM_ERR_NO_MEMORY. Every write must write a
 * different value, which ck_history_load checks. */
int ck_judge(const struct ck_history *history, struct ck_verdict *verdict);

#endif
