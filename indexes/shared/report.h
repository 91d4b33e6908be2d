/* SPDX-License-Identifier: Apache-2.0
 *
 * What a self-check reports: the number of problems, and the text of the first.
 */
#ifndef DM_INDEXES_SHARED_REPORT_H
#define DM_INDEXES_SHARED_REPORT_H

#include "indexes/index.h"

/* Counts a problem, and keeps its text if it is the first. */
void ix_report_problem(struct ix_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts a problem unless the condition holds, or a client was interrupted, which explains it. */
#define IX_REPORT_EXPECT(report, condition, ...)                                                                       \
    do {                                                                                                               \
        if (!(condition) && !(report)->interrupted) {                                                                  \
            ix_report_problem((report), __VA_ARGS__);                                                                  \
        }                                                                                                              \
    } while (0)

#endif
