/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures by the words that a reader of a paper has for them.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_FIND_H
#define DM_HARNESS_STUDY_FIGURE_FIND_H

#include <stddef.h>

#include "common/err.h"

/* Sets *id to the one of `ids` that a text names: the id itself, or words of it as in "CHIME figure 12" or "hstore
 * table 2". DM_ERR_INVALID names the candidates if it may be several, or what is near if it is none. */
int hx_figure_find(const char *const *ids, size_t count, const char *text, const char **id, struct dm_err *err);

#endif
