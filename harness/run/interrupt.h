/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and SIGTERM of one run: they end it within a second and leave no partial file, whatever it is doing.
 */
#ifndef DM_HARNESS_RUN_INTERRUPT_H
#define DM_HARNESS_RUN_INTERRUPT_H

#include <stdbool.h>

struct dm_fabric;

/* From now on SIGINT and SIGTERM stop the watched fabric; while none is watched, and when the fabric does not come to
 * an end soon, they end the process with status 130. */
void hx_interrupt_install(const char *command);

/* The fabric to stop, or NULL. Must be taken back before it is closed. */
void hx_interrupt_watch(struct dm_fabric *fabric);

/* A file that is being written: removed when a signal ends the process. The path is copied; NULL: none. */
void hx_interrupt_remove(const char *path);

/* While held, signals wait: a result is being written. Released, an interrupt that came meanwhile ends the process. */
void hx_interrupt_hold(bool is_held);

#endif
