/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages for people, on stderr, one line each. Never used on the measured path.
 */
#ifndef DM_COMMON_LOG_H
#define DM_COMMON_LOG_H

enum dm_log_level { DM_LOG_ERROR, DM_LOG_WARN, DM_LOG_INFO, DM_LOG_DEBUG };

/* Messages above this level are dropped; the default is DM_LOG_WARN. */
void dm_log_set_level(enum dm_log_level level);

/* "dmbench: warning: ..." ; colour only when stderr is a terminal and NO_COLOR is not set. */
void dm_log(enum dm_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
