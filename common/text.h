/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that ends up in one-line messages and in JSON: both need valid UTF-8 without control characters, whatever a
 * user typed or a file held.
 */
#ifndef DM_COMMON_TEXT_H
#define DM_COMMON_TEXT_H

#include <stddef.h>

/* Replaces, in place, every control character and every byte that is not part of valid UTF-8 by '?'. Returns how many
 * it replaced: 0 means that the text was clean. */
size_t dm_text_clean(char *text);

#endif
