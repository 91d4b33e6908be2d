/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line: phase, share done, and an estimate of the time left.
 */
#include "harness/base/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S      UINT64_C(1000000000)
#define PRINT_PAUSE   (NS_PER_S / 5)
#define LINE_PAUSE    (NS_PER_S * 10) /* between lines that stay */
#define ESTIMATE_FROM (NS_PER_S / 2)  /* earlier estimates vary too much */

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t hx_host_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t hx_cpu_ns(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void hx_progress_init(struct hx_progress *progress, bool is_quiet) {
    *progress = (struct hx_progress){.is_shown = !is_quiet,
                                     .is_terminal = isatty(STDERR_FILENO) == 1,
                                     .printed_ns = hx_host_ns(),
                                     .busy = ATOMIC_FLAG_INIT};
}

void hx_progress_phase(struct hx_progress *progress, const char *phase, uint64_t total) {
    progress->phase = phase;
    progress->total = total;
    progress->begun_ns = hx_host_ns();
    if (progress->is_shown && progress->is_terminal) {
        progress->printed_ns = 0;
        fprintf(stderr, "\r\033[K%s", phase);
    }
}

static void line_print(const struct hx_progress *progress, uint64_t done, uint64_t now) {
    double share = progress->total > 0 ? (double)done / (double)progress->total : 0;
    fprintf(stderr, "%s%s %3.0f %%", progress->is_terminal ? "\r\033[K" : "dmbench: ", progress->phase, share * 100);
    uint64_t elapsed = now - progress->begun_ns;
    if (elapsed > ESTIMATE_FROM && done > 0 && done < progress->total) {
        double left_s = (double)elapsed / (double)NS_PER_S * (1 / share - 1);
        fprintf(stderr, ", about %.0f s left", left_s);
    }
    if (!progress->is_terminal) {
        fprintf(stderr, "\n");
    }
}

void hx_progress_at(struct hx_progress *progress, uint64_t done) {
    if (!progress->is_shown || atomic_flag_test_and_set(&progress->busy)) {
        return;
    }
    uint64_t now = hx_host_ns();
    uint64_t pause = progress->is_terminal ? PRINT_PAUSE : LINE_PAUSE;
    if (now - progress->printed_ns >= pause && done <= progress->total) {
        progress->printed_ns = now;
        line_print(progress, done, now);
    }
    atomic_flag_clear(&progress->busy);
}

void hx_progress_end(struct hx_progress *progress) {
    if (progress->is_shown && progress->is_terminal) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
}
