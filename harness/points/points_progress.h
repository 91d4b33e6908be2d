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
    double cost_done, cost_total; /* of points, in estimated seconds */
    double planned_s;             /* what the plan says of all */
    uint64_t start_ns, printed_ns;
};

void hx_points_progress_init(struct hx_points_progress *progress, size_t total, double cost_total, double planned_s);

/* One more point is done. */
void hx_points_progress_step(struct hx_points_progress *progress, double cost);

/* The seconds that are left, `elapsed_s` after the start: by the plan until a point is done, then at the pace so far,
 * of which points that run are half done; their estimates add up to `cost_running`. Not above 0: unknown. */
double hx_points_progress_left(const struct hx_points_progress *progress, double cost_running, double elapsed_s);

/* `running` jobs have points whose estimates add up to `cost_running`. */
void hx_points_progress_show(struct hx_points_progress *progress, size_t running, double cost_running);

/* Erases the line, so that another can be printed. */
void hx_points_progress_clear(struct hx_points_progress *progress);

/* The time since the start as text. */
void hx_points_progress_elapsed(const struct hx_points_progress *progress, char *text, size_t capacity);

/* "42 s", "3 min 10 s", "2 h 5 min". */
void hx_seconds_text(double seconds, char *text, size_t capacity);

#endif
