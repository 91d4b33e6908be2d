/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and SIGTERM end a run within a second, in any phase, and leave no partial file.
 */
#ifndef DM_HARNESS_RUN_INTERRUPT_H
#define DM_HARNESS_RUN_INTERRUPT_H

#include <stdbool.h>

struct dm_fabric;

/* From now on SIGINT and SIGTERM stop the watched fabric; while none is watched, and if the fabric does not stop soon,
 * they end the process with status 130. */
void hx_interrupt_install(const char *command);

/* The fabric to stop, or NULL. Must be reset to NULL before the fabric is closed. */
void hx_interrupt_watch(struct dm_fabric *fabric);

/* The fabric has stopped in time: the process continues until the next signal. */
void hx_interrupt_stopped(void);

/* A file that is being written: removed when a signal ends the process. The path is copied; NULL: none. */
void hx_interrupt_remove(const char *path);

/* Blocks signals, while a result is written, or unblocks them; a signal that arrived meanwhile then ends the process.
 */
void hx_interrupt_hold(bool is_held);

#endif
