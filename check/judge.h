/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a history, if anything: outcomes the contract does not have, values that nobody wrote, scans that
 * are no scans, and keys whose accesses no order explains.
 */
#ifndef DM_CHECK_JUDGE_H
#define DM_CHECK_JUDGE_H

#include "check/history.h"

#define CK_FAULTS(X)                                                                                                   \
    X(CK_RIGHT, "right")                                                                                               \
    X(CK_NOT_LINEARIZABLE, "not_linearizable") /* no order of a key's accesses explains what was seen */               \
    X(CK_STRANGE_VALUE, "strange_value")       /* bytes that no write of this key made */                              \
    X(CK_STRANGE_OUTCOME, "strange_outcome")   /* a result that the contract does not allow here */                    \
    X(CK_WRONG_SCAN, "wrong_scan")             /* unsorted, twice the same key, below the first, or too many */        \
    X(CK_NO_PROGRESS, "no_progress")           /* an operation gave up after its bound of retries */                   \
    X(CK_STUCK, "stuck")                       /* the run did not end */                                               \
    X(CK_BROKEN, "broken")                     /* verify found the structure broken */                                 \
    X(CK_UNDECIDED, "undecided")               /* too many orders to search */
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
    uint64_t key; /* whose timeline shows it */
    size_t op;    /* the operation that cannot be explained, or CK_NO_OP */
    char text[300];
};

/* Judges a whole history. 0 with the verdict, which may be CK_RIGHT; or DM_ERR_NO_MEMORY. Values must be unique a write
 * (ck_history_load sees to it). */
int ck_judge(const struct ck_history *history, struct ck_verdict *verdict);

#endif
