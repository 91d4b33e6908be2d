/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of HTML: escaped text, and files and data put into a page.
 */
#ifndef DM_HARNESS_STUDY_HTML_H
#define DM_HARNESS_STUDY_HTML_H

#include <jansson.h>
#include <stdio.h>

#include "common/err.h"

/* Text with & < > " ' escaped: safe between tags and in quoted attributes. NULL is nothing. */
void hx_html_text(FILE *out, const char *text);

/* An SVG file as part of a page: without prolog, its size left to the page, and its ids prefixed with "pN-", so that
 * those of several pictures differ. `label` describes the picture for screen readers. DM_ERR_IO if the file cannot be
 * read or is no SVG; then nothing is written. */
int hx_html_svg(FILE *out, const char *path, unsigned number, const char *label, struct dm_err *err);

/* A style sheet or script as it is, between <style> or <script> tags. DM_ERR_IO if the file cannot be read, or holds
 * the tag's end, which would end it there; then nothing is written. */
int hx_html_file(FILE *out, const char *tag, const char *path, struct dm_err *err);

/* Data for scripts: <script type="application/json" id="ID">. No "<" is in it, so that nothing ends it early. 0 or
 * DM_ERR_NO_MEMORY. */
int hx_html_json(FILE *out, const char *id, const json_t *data, struct dm_err *err);

#endif
