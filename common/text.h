/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that ends up in one-line messages and in JSON: both need valid UTF-8 without control characters, whatever a
 * user typed or a file held.
 */
#ifndef DM_COMMON_TEXT_H
#define DM_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Replaces, in place, every control character and every byte that is not part of valid UTF-8 by '?'. Returns how many
 * it replaced: 0 means that the text was clean. */
size_t dm_text_clean(char *text);

/* Whether `word` is one of `words`, which end with NULL; NULL in place of `words` is an empty list. */
bool dm_text_is_among(const char *word, const char *const *words);

/* Prints `length` bytes of text and a line end, broken between words so that no line is longer than `width` unless a
 * word is. The text begins at `column`, where the output is; its further lines are behind `indent` spaces. A word that
 * does not fit into the first line begins the second. */
void dm_text_wrap(const char *text, size_t length, size_t column, size_t indent, size_t width, FILE *out);

#endif
