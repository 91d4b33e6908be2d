/* SPDX-License-Identifier: Apache-2.0
 *
 * Linearizability of one key. A key is absent or has a value; every access of it happened at some moment between its
 * invocation and its response; is there an order of moments in which every access saw what it says it saw?
 */
#ifndef DM_CHECK_LINEARIZABILITY_H
#define DM_CHECK_LINEARIZABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an access says of the key at its moment, and what it does to it. */
enum ck_access_kind {
    CK_READ_VALUE,   /* had this value */
    CK_READ_ABSENT,  /* was absent */
    CK_READ_PRESENT, /* had some value */
    CK_PUT_NEW,      /* was absent, has this value now */
    CK_PUT_OVER,     /* had some value, has this one now */
    CK_REMOVE,       /* had some value, is absent now */
};

#define CK_NEVER UINT64_MAX

struct ck_access {
    enum ck_access_kind kind;
    bool optional; /* a write that may never have happened; its response is CK_NEVER */
    uint64_t value;
    uint64_t invoke, response; /* a before b only if a.response < b.invoke */
    size_t op;                 /* the caller's */
};

/* Working memory, kept from one key to the next. Zero-initialise. */
struct ck_linear;
struct ck_linear *ck_linear_new(void);         /* NULL when out of memory */
void ck_linear_free(struct ck_linear *linear); /* accepts NULL */

enum { CK_LINEAR_CONFIGS_MAX = 1 << 20 };

/* Judges the accesses of one key; `initial` is its value before all of them, 0: absent. Values are above 0, and no two
 * puts have the same. Returns 0 if they are linearizable; 1 if not, with *culprit the access at whose response no order
 * was left; 2 if the search needs more than CK_LINEAR_CONFIGS_MAX states at once; or DM_ERR_NO_MEMORY. */
int ck_linear_judge(struct ck_linear *linear, const struct ck_access *accesses, size_t count, uint64_t initial,
                    size_t *culprit);

#endif
