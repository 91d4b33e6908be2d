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

/* An SVG file as part of a page: without prolog, its size left to the page, and its ids prefixed with "pN-", so that
 * those of several pictures differ. `label` describes the picture for screen readers. DM_ERR_IO if the file cannot be
 * read or is no SVG; then nothing is written. */
int hx_html_svg(FILE *out, const char *path, unsigned number, const char *label, struct dm_err *err);

/* The style sheet of pages, between <style> tags. */
void hx_html_style(FILE *out);

#endif
