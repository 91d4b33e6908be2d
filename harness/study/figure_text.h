/* SPDX-License-Identifier: Apache-2.0
 *
 * Widths of texts in the figures' font, so that labels can be positioned before anything is drawn.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_TEXT_H
#define DM_HARNESS_STUDY_FIGURE_TEXT_H

#include <stddef.h>

/* The width of the widest line of a text, in the unit of the font's size. */
double hx_text_width(const char *text, double size);

/* Breaks a text at blanks so that no line is wider than `width`, unless a single word is; breaks that it has are kept.
 * Returns the number of lines. */
int hx_text_wrap(const char *text, double size, double width, char *wrapped, size_t capacity);

/* 60000000 as "60 M", 1440 as "1440". */
void hx_text_number(double number, char *text, size_t capacity);

#endif
