/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the files are that the program reads as it runs: profiles of NICs, YCSB's workloads, figures, claims. They have
 * the same names in an installed copy as in the source tree (transport/profiles, plots/figures, ...).
 */
#ifndef DM_COMMON_DATA_FOLDER_H
#define DM_COMMON_DATA_FOLDER_H

#include <stddef.h>

/* The folder that holds them. The first of: $DMBENCH_DATA, if that is set; the folder where `cmake --install` put them,
 * seen from the executable, so that an installed tree can be moved; a source tree around the executable; the source
 * tree that the program was built from. Found once; any thread may call it. */
const char *dm_data_folder(void);

/* Writes the path of a file or folder in it. A path that does not fit is cut off, and then names nothing. */
void dm_data_path(const char *name, char *path, size_t capacity);

#endif
