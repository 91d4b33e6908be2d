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

/* ---- style ------------------------------------------------------------------------------------------------------ */

void hx_html_style(FILE *out) {
    static const char *const lines[] = {
        ":root{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--back:#fff;--band:#f6f8fa}",
        "*{box-sizing:border-box}",
        "body{margin:0 auto;max-width:72rem;padding:1rem;font:16px/1.5 ",
        "system-ui,sans-serif;color:var(--ink);background:var(--back);overflow-wrap:break-word}",
        "h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}",
        "h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line)}",
        "h3{font-size:1.05rem;margin:1.6rem 0 .3rem}",
        "p,ul{margin:.4rem 0}",
        ".soft,figcaption{color:var(--soft);font-size:.9rem}",
        "a{color:#0550ae}",
        "nav ul{columns:9rem;padding-left:1.2rem}",
        ".wide{overflow-x:auto;-webkit-overflow-scrolling:touch}",
        "figure{margin:.6rem 0}",
        "figure svg{display:block;width:100%;height:auto}",
        "table{border-collapse:collapse;width:100%;font-size:.9rem}",
        "th,td{text-align:left;vertical-align:top;padding:.35rem .5rem;border-bottom:1px solid var(--line)}",
        "th{background:var(--band)}",
        ".claims{table-layout:fixed}.claims th:nth-child(1){width:13%}.claims th:nth-child(2){width:25%}",
        ".claims th:nth-child(3){width:30%}.claims th:nth-child(4){width:15%}",
        "th.n{text-align:right}",
        "td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}",
        ".v{display:inline-block;padding:0 .45rem;border-radius:.6rem;border:1px ",
        "solid;font-size:.85rem;white-space:nowrap}",
        ".reproduced{color:#116329;background:#dafbe1}",
        ".reading{color:#116329;background:#eef9e8}",
        ".direction-only{color:#7d4e00;background:#fff8c5}",
        ".not-reproduced{color:#a40e26;background:#ffebe9}",
        ".unresolved{color:#512a97;background:#fbefff}",
        ".not-run{color:#57606a;background:#f6f8fa}",
        ".missing{border-left:4px solid #a40e26;padding:.4rem .8rem;background:#ffebe9}",
        ".checks{margin:0;padding-left:1.1rem}",
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem .8rem;font-size:.9rem}",
        "dt{color:var(--soft)}dd{margin:0}",
        "@media(max-width:44rem){body{padding:.7rem;font-size:15px}",
        ".claims thead{display:none}.claims tr{display:block;border:1px solid ",
        "var(--line);border-radius:.4rem;margin:.5rem 0;padding:.3rem}",
        ".claims td{display:block;border:0;padding:.15rem .4rem}.claims ",
        "td:empty{display:none}dl{grid-template-columns:1fr}}",
        "@media ",
        "print{body{max-width:none;font-size:10pt;padding:0}a{color:inherit;text-decoration:none}nav{display:none}",
        "figure,tr{break-inside:avoid}h2,h3{break-after:avoid}.wide{overflow:visible}figure ",
        "svg{min-width:0!important;max-width:100%!important}",
        ".v{-webkit-print-color-adjust:exact;print-color-adjust:exact}}",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        fprintf(out, "%s\n", lines[i]);
    }
}
