/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress of one run, on stderr: a line that changes on a terminal, and a new line every ten seconds elsewhere.
 */
#ifndef DM_HARNESS_BASE_PROGRESS_H
#define DM_HARNESS_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hx_progress {
    bool is_shown, is_terminal;
    const char *phase;
    uint64_t total;
    uint64_t begun_ns;
    uint64_t printed_ns;
    atomic_flag busy; /* clients of several threads report progress */
};

/* Checks whether stderr is a terminal. */
void hx_progress_init(struct hx_progress *progress, bool is_quiet);

/* A phase of `total` steps begins (0: unknown). */
void hx_progress_phase(struct hx_progress *progress, const char *phase, uint64_t total);

/* Prints when it is time to; cheap enough for every few thousand steps. */
void hx_progress_at(struct hx_progress *progress, uint64_t done);

/* Erases the line. */
void hx_progress_end(struct hx_progress *progress);

/* ns of the monotonic clock. */
uint64_t hx_host_ns(void);

/* ns that processors have spent in all threads of this process, its kernel calls included. */
uint64_t hx_cpu_ns(void);

#endif
