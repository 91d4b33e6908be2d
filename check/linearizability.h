/* SPDX-License-Identifier: Apache-2.0
 *
 * Linearizability of one key. A key is absent or has a value. Each access takes effect at one moment between its
 * invocation and its response, its linearization point. The accesses are linearizable if there are linearization points
 * whose order explains the result of every access.
 */
#ifndef DM_CHECK_LINEARIZABILITY_H
#define DM_CHECK_LINEARIZABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the key was at the linearization point of the access, and what the access makes of it. */
enum ck_access_kind {
    CK_READ_VALUE,   /* has this value */
    CK_READ_ABSENT,  /* is absent */
    CK_READ_PRESENT, /* has some value */
    CK_PUT_NEW,      /* was absent, has this value after it */
    CK_PUT_OVER,     /* had some value, has this one after it */
    CK_REMOVE,       /* had some value, is absent after it */
};

#define CK_NEVER UINT64_MAX

struct ck_access {
    enum ck_access_kind kind;
    bool optional; /* a write that may never have taken effect; its response is CK_NEVER */
    uint64_t value;
    uint64_t invoke, response; /* a is before b only if a.response < b.invoke */
    size_t op;                 /* for the caller */
};

/* Working memory, reused from one key to the next. */
struct ck_linear;
struct ck_linear *ck_linear_new(void);         /* NULL when out of memory */
void ck_linear_free(struct ck_linear *linear); /* accepts NULL */

enum { CK_LINEAR_CONFIGS_MAX = 1 << 20 };

/* Judges the accesses of one key. `initial` is its value before all of them, or 0 if it is absent. Values are above 0,
 * and no two puts write the same one. Returns 0 if the accesses are linearizable; 1 if not, and sets *culprit to the
 * access at whose response no order remained; 2 if the search needs more than CK_LINEAR_CONFIGS_MAX configurations at
 * once; or DM_ERR_NO_MEMORY. */
int ck_linear_judge(struct ck_linear *linear, const struct ck_access *accesses, size_t count, uint64_t initial,
                    size_t *culprit);

#endif
