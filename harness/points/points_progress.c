/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress of many points: a line that changes on a terminal, and a new line every ten seconds elsewhere.
 */
#include "harness/points/points_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "harness/base/progress.h"

/* Between lines where stderr is no terminal. */
#define LINE_PAUSE UINT64_C(10000000000)

static double seconds_since(uint64_t start_ns) {
    return (double)(hx_host_ns() - start_ns) * 1e-9;
}

void hx_points_progress_init(struct hx_points_progress *progress, size_t total, double cost_total, double planned_s) {
    *progress = (struct hx_points_progress){.terminal = isatty(STDERR_FILENO) != 0,
                                            .total = total,
                                            .cost_total = cost_total,
                                            .planned_s = planned_s,
                                            .start_ns = hx_host_ns(),
                                            .printed_ns = hx_host_ns()};
}

void hx_points_progress_step(struct hx_points_progress *progress, double cost) {
    progress->done++;
    progress->cost_done += cost;
}

void hx_seconds_text(double seconds, char *text, size_t capacity) {
    unsigned long whole = (unsigned long)(seconds + 0.5);
    if (whole >= 3600) {
        snprintf(text, capacity, "%lu h %lu min", whole / 3600, whole % 3600 / 60);
    } else if (whole >= 60) {
        snprintf(text, capacity, "%lu min %lu s", whole / 60, whole % 60);
    } else {
        snprintf(text, capacity, "%lu s", whole);
    }
}

void hx_points_progress_elapsed(const struct hx_points_progress *progress, char *text, size_t capacity) {
    hx_seconds_text(seconds_since(progress->start_ns), text, capacity);
}

double hx_points_progress_left(const struct hx_points_progress *progress, double cost_running, double elapsed_s) {
    if (progress->cost_done <= 0) {
        return progress->planned_s - elapsed_s;
    }
    double done = progress->cost_done + cost_running / 2;
    return elapsed_s * (progress->cost_total - done) / done;
}

void hx_points_progress_show(struct hx_points_progress *progress, size_t running, double cost_running) {
    bool is_due = hx_host_ns() - progress->printed_ns >= LINE_PAUSE;
    if (!progress->terminal && !is_due) {
        return;
    }
    progress->printed_ns = hx_host_ns();
    double left = hx_points_progress_left(progress, cost_running, seconds_since(progress->start_ns));
    char remaining[48] = "estimating";
    if (left > 0) {
        char text[32];
        hx_seconds_text(left, text, sizeof(text));
        snprintf(remaining, sizeof(remaining), "about %s left", text);
    }
    fprintf(stderr, "%s[%zu/%zu] %zu running, %s%s", progress->terminal ? "\r" : "", progress->done, progress->total,
            running, remaining, progress->terminal ? "\x1b[K" : "\n");
    fflush(stderr);
    progress->shown = progress->terminal;
}

void hx_points_progress_clear(struct hx_points_progress *progress) {
    if (progress->shown) {
        fprintf(stderr, "\r\x1b[K");
        fflush(stderr);
        progress->shown = false;
    }
}
