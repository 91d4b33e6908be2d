/* SPDX-License-Identifier: Apache-2.0
 *
 * The signals by which a user stops a command that runs many points.
 */
#ifndef DM_HARNESS_BASE_INTERRUPTS_H
#define DM_HARNESS_BASE_INTERRUPTS_H

#include <signal.h>

/* SIGINT, SIGTERM and SIGHUP; not SIGHUP where it is ignored: `nohup` asks for that, and a signal that is blocked is
 * received even if it is ignored. */
void hx_interrupts(sigset_t *signals);

#endif
