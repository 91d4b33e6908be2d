/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of HTML: escaped text, and pictures put into a page.
 */
#ifndef DM_HARNESS_STUDY_HTML_H
#define DM_HARNESS_STUDY_HTML_H

#include <stdio.h>

#include "common/err.h"

/* Text with & < > " ' escaped: safe between tags and in quoted attributes. NULL is nothing. */
void hx_html_text(FILE *out, const char *text);

/* An SVG file as part of a page: without prolog, its size left to the page, and the names inside it behind "pN-", so
 * that pictures of one page do not meet. `label` says what it shows to those who do not see it. DM_ERR_IO where the
 * file cannot be read or is no SVG; nothing is written then. */
int hx_html_svg(FILE *out, const char *path, unsigned number, const char *label, struct dm_err *err);

/* The style sheet of pages, between <style> tags. */
void hx_html_style(FILE *out);

#endif
