/* SPDX-License-Identifier: Apache-2.0
 *
 * The only file that calls MPI. Every call is made on the main thread, and none while a measurement runs.
 */
#include "harness/run/mpi.h"

#include <stdlib.h>
#include <string.h>

#if DM_HAVE_MPI

#include <mpi.h>

static MPI_Comm group = MPI_COMM_NULL;

/* The launchers of Open MPI, MPICH and Slurm set these variables. They are read before MPI is initialized, which does
 * not happen in a single process. */
bool hx_mpi_is_launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && strtol(value, NULL, 10) > 1) {
            return true;
        }
    }
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    return tasks && getenv("PMIX_RANK") && strtol(tasks, NULL, 10) > 1;
}

int hx_mpi_open(unsigned *rank, unsigned *count, struct dm_err *err) {
    int provided = 0, own = 0, all = 1;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &own) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &all) != MPI_SUCCESS) {
        return dm_fail(err, DM_ERR_IO, "MPI does not start");
    }
    *rank = (unsigned)own;
    *count = (unsigned)all;
    return 0;
}

void hx_mpi_close(bool has_failed) {
    if (has_failed) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (group != MPI_COMM_NULL) {
        MPI_Comm_free(&group);
    }
    MPI_Finalize();
}

int hx_mpi_group(unsigned members, struct dm_err *err) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int color = (unsigned)rank < members ? 0 : MPI_UNDEFINED;
    return MPI_Comm_split(MPI_COMM_WORLD, color, rank, &group) == MPI_SUCCESS ? 0
                                                                              : dm_fail(err, DM_ERR_IO, "MPI failed");
}

void hx_mpi_barrier(void) {
    MPI_Barrier(group);
}

int hx_mpi_gather(const void *mine, size_t bytes, void *all) {
    int rc = MPI_Gather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, group);
    return rc == MPI_SUCCESS ? 0 : DM_ERR_IO;
}

int hx_mpi_all_gather(const void *mine, size_t bytes, void *all) {
    int rc = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    return rc == MPI_SUCCESS ? 0 : DM_ERR_IO;
}

int hx_mpi_broadcast(void *bytes, size_t count) {
    return MPI_Bcast(bytes, (int)count, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : DM_ERR_IO;
}

#else

bool hx_mpi_is_launched(void) {
    return false;
}

int hx_mpi_open(unsigned *rank, unsigned *count, struct dm_err *err) {
    (void)rank;
    (void)count;
    return dm_fail(err, DM_ERR_UNSUPPORTED, "built without MPI (packages libopenmpi-dev, openmpi-bin)");
}

void hx_mpi_close(bool has_failed) {
    (void)has_failed;
}

int hx_mpi_group(unsigned members, struct dm_err *err) {
    (void)members;
    (void)err;
    return 0;
}

void hx_mpi_barrier(void) {
}

/* The only rank gathers its own bytes. */
int hx_mpi_gather(const void *mine, size_t bytes, void *all) {
    memcpy(all, mine, bytes);
    return 0;
}

int hx_mpi_all_gather(const void *mine, size_t bytes, void *all) {
    memcpy(all, mine, bytes);
    return 0;
}

int hx_mpi_broadcast(void *bytes, size_t count) {
    (void)bytes;
    (void)count;
    return 0;
}

#endif
