/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of HTML.
 */
#include "harness/study/html.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void hx_html_text(FILE *out, const char *text) {
    for (; text != NULL && *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

/* ---- pictures --------------------------------------------------------------------------------------------------- */

/* A file as text; the caller frees it. */
static char *read_file(const char *path, struct dm_err *err) {
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = in != NULL ? open_memstream(&text, &bytes) : NULL;
    char block[4096];
    for (size_t got; memory != NULL && (got = fread(block, 1, sizeof(block), in)) > 0;) {
        fwrite(block, 1, got, memory);
    }
    bool whole = memory != NULL && ferror(in) == 0;
    if (memory != NULL && fclose(memory) != 0) {
        whole = false;
    }
    if (in != NULL) {
        fclose(in);
    }
    if (!whole) {
        dm_fail(err, DM_ERR_IO, "%s: cannot read it: %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    return text;
}

/* The texts before names that get a prefix. */
static const char *const before_names[] = {" id=\"", " id='", "href='#", "href=\"#", "url(#"};

static size_t name_follows(const char *at) {
    for (size_t i = 0; i < sizeof(before_names) / sizeof(before_names[0]); i++) {
        size_t length = strlen(before_names[i]);
        if (strncmp(at, before_names[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

/* The value of an attribute of the first tag, as text after name=". */
static void copy_attribute(const char *tag, const char *name, char *value, size_t capacity) {
    const char *found = strstr(tag, name);
    const char *end = strchr(tag, '>');
    value[0] = '\0';
    if (found != NULL && end != NULL && found < end) {
        found += strlen(name);
        snprintf(value, capacity, "%.*s", (int)strcspn(found, "\"'"), found);
    }
}

int hx_html_svg(FILE *out, const char *path, unsigned number, const char *label, struct dm_err *err) {
    char *text = read_file(path, err);
    if (text == NULL) {
        return DM_ERR_IO;
    }
    const char *tag = strstr(text, "<svg"), *body = tag != NULL ? strchr(tag, '>') : NULL;
    const char *end = body != NULL ? strstr(body, "</svg>") : NULL;
    if (end == NULL) {
        free(text);
        return dm_fail(err, DM_ERR_IO, "%s: is no whole SVG picture", path);
    }
    char box[64], width[16];
    copy_attribute(tag, "viewBox=\"", box, sizeof(box));
    copy_attribute(tag, " width=\"", width, sizeof(width));
    int pixels = atoi(width);
    fprintf(out,
            "<svg xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"%s\" style=\"max-width:%dpx;min-width:%dpx\" ",
            box, pixels * 5 / 4, pixels > 480 ? pixels * 3 / 4 : 280);
    fputs("role=\"img\" aria-label=\"", out);
    hx_html_text(out, label);
    fputs("\">", out);
    for (const char *at = body + 1; at < end;) {
        size_t length = name_follows(at);
        if (length > 0) {
            fprintf(out, "%.*sp%u-", (int)length, at, number);
            at += length;
        } else {
            fputc(*at++, out);
        }
    }
    fputs("</svg>\n", out);
    free(text);
    return 0;
}

/* ---- files and data --------------------------------------------------------------------------------------------- */

int hx_html_file(FILE *out, const char *tag, const char *path, struct dm_err *err) {
    char end[32];
    char *text = read_file(path, err);
    if (text == NULL) {
        return DM_ERR_IO;
    }
    snprintf(end, sizeof(end), "</%.20s", tag);
    bool whole = strstr(text, end) == NULL;
    if (whole) {
        fprintf(out, "<%s>\n%s\n</%s>\n", tag, text, tag);
    }
    free(text);
    return whole ? 0 : dm_fail(err, DM_ERR_IO, "%s: holds %s, which would end it in a page", path, end);
}

/* "<" is in strings alone, where an escape stands for the same character. */
static int put_json(const char *text, size_t length, void *out) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '<') {
            fputs("\\u003c", out);
        } else {
            fputc(text[i], out);
        }
    }
    return 0;
}

int hx_html_json(FILE *out, const char *id, const json_t *data, struct dm_err *err) {
    fprintf(out, "<script type=\"application/json\" id=\"%s\">", id);
    int rc = json_dump_callback(data, put_json, out, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputs("</script>\n", out);
    return rc == 0 ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the page's data");
}
