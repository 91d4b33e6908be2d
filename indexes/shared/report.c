/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems in reports of self-checks; see report.h.
 */
#include "indexes/shared/report.h"

#include <stdarg.h>
#include <stdio.h>

void ix_report_problem(struct ix_report *report, const char *format, ...) {
    if (report->broken++ == 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(report->first_problem, sizeof(report->first_problem), format, args);
        va_end(args);
    }
}
