/* SPDX-License-Identifier: Apache-2.0
 *
 * Signal handling of `dmbench run`. The handler calls only what is safe there: dm_fabric_stop, timer_settime, unlink,
 * write and _exit. Signals are process-wide, hence the file's own state.
 */
#include "harness/run/interrupt.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/errors.h"
#include "transport/fabric.h"

/* How long a stopped fabric may take to return; after that the process ends. */
#define GRACE_NS 600000000L

static struct dm_fabric *_Atomic watched;
static atomic_bool is_stopping;
static timer_t grace_timer;
static bool has_timer;
static char farewell[64];
static char partial_path[PATH_MAX];
static atomic_bool has_partial;
static char handler_stack[65536]; /* coroutine stacks are too small for a handler's frame with wide registers */

static void leave_now(void) {
    if (atomic_load(&has_partial)) {
        unlink(partial_path);
    }
    ssize_t ignored = write(STDERR_FILENO, farewell, strlen(farewell));
    (void)ignored;
    _exit(HX_INTERRUPTED);
}

static void on_signal(int signal_number) {
    struct dm_fabric *fabric = atomic_load(&watched);
    bool is_first = !atomic_exchange(&is_stopping, true);
    if (signal_number == SIGALRM || !fabric || !is_first || !has_timer) {
        leave_now();
    }
    struct itimerspec grace = {.it_value = {.tv_sec = 0, .tv_nsec = GRACE_NS}};
    timer_settime(grace_timer, 0, &grace, NULL);
    dm_fabric_stop(fabric);
}

static void signals_of_interest(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGALRM);
}

void hx_interrupt_install(const char *command) {
    snprintf(farewell, sizeof(farewell), "dmbench %s: interrupted\n", command);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &grace_timer) == 0;
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    signals_of_interest(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

void hx_interrupt_watch(struct dm_fabric *fabric) {
    atomic_store(&watched, fabric);
}

void hx_interrupt_stopped(void) {
    struct itimerspec none = {.it_value = {.tv_sec = 0, .tv_nsec = 0}};
    timer_settime(grace_timer, 0, &none, NULL);
}

void hx_interrupt_remove(const char *path) {
    atomic_store(&has_partial, false);
    if (path) {
        snprintf(partial_path, sizeof(partial_path), "%s", path);
        atomic_store(&has_partial, strlen(path) < sizeof(partial_path));
    }
}

void hx_interrupt_hold(bool is_held) {
    sigset_t set;
    signals_of_interest(&set);
    pthread_sigmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}
