/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wanted of MPI: who am I, small exchanges, barriers. In a program built without it there is one rank.
 */
#ifndef DM_HARNESS_RUN_MPI_H
#define DM_HARNESS_RUN_MPI_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* True if MPI started this process together with others. */
bool hx_ranks_are_there(void);

int hx_ranks_open(unsigned *rank, unsigned *count, struct dm_err *err);
void hx_ranks_close(bool has_failed); /* after a failure all ranks are ended */

/* The first `members` ranks form the group of the two functions after it. Called by all. */
int hx_ranks_group(unsigned members, struct dm_err *err);
void hx_ranks_meet(void);
/* `all` has room for every member's bytes at the first rank, and is NULL elsewhere. */
int hx_ranks_gather(const void *mine, size_t bytes, void *all);

/* Of all ranks: everybody gets everybody's, in their order; everybody gets the first one's. */
int hx_ranks_share(const void *mine, size_t bytes, void *all);
int hx_ranks_tell(void *bytes, size_t count);

#endif
