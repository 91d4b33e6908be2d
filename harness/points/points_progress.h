/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line of many points: done of total and the remaining time, on stderr if it is a terminal.
 * (harness/base/progress.h is the line of one run.)
 */
#ifndef DM_HARNESS_POINTS_POINTS_PROGRESS_H
#define DM_HARNESS_POINTS_POINTS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hx_points_progress {
    bool terminal;
    bool shown; /* the terminal shows a line */
    size_t done, total;
    double cost_done, cost_total; /* in estimated seconds */
    uint64_t start_ns, printed_ns;
};

void hx_points_progress_init(struct hx_points_progress *progress, size_t total, double cost_total);

/* One more point is done. */
void hx_points_progress_step(struct hx_points_progress *progress, double cost);

void hx_points_progress_show(struct hx_points_progress *progress, size_t running);

/* Erases the line, so that another can be printed. */
void hx_points_progress_clear(struct hx_points_progress *progress);

/* The time since the start as text. */
void hx_points_progress_elapsed(const struct hx_points_progress *progress, char *text, size_t capacity);

/* "42 s", "3 min 10 s", "2 h 5 min". */
void hx_seconds_text(double seconds, char *text, size_t capacity);

#endif
