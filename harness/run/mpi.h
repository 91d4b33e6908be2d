/* SPDX-License-Identifier: Apache-2.0
 *
 * What the harness needs of MPI: ranks, small exchanges, barriers. A program built without MPI has one rank.
 */
#ifndef DM_HARNESS_RUN_MPI_H
#define DM_HARNESS_RUN_MPI_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* True if MPI started this process together with others. */
bool hx_mpi_is_launched(void);

int hx_mpi_open(unsigned *rank, unsigned *count, struct dm_err *err);
void hx_mpi_close(bool has_failed); /* after a failure all ranks are ended */

/* The first `members` ranks form the group of the two functions that follow. Called by all ranks. */
int hx_mpi_group(unsigned members, struct dm_err *err);
void hx_mpi_barrier(void);
/* At the first rank `all` receives the bytes of every member, in the order of the ranks; elsewhere it is NULL. */
int hx_mpi_gather(const void *mine, size_t bytes, void *all);

/* Over all ranks: every rank receives the bytes of all ranks, in their order; every rank receives those of the first.
 */
int hx_mpi_all_gather(const void *mine, size_t bytes, void *all);
int hx_mpi_broadcast(void *bytes, size_t count);

#endif
