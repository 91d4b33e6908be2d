/* SPDX-License-Identifier: Apache-2.0
 *
 * Which signals stop a command.
 */
#include "harness/base/interrupts.h"

#include <stddef.h>

void hx_interrupts(sigset_t *signals) {
    struct sigaction hang_up;
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hang_up) != 0 || hang_up.sa_handler != SIG_IGN) {
        sigaddset(signals, SIGHUP);
    }
}
