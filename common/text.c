/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleaning of text for messages and JSON.
 */
#include "common/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

/* Bytes of the printable character at `at`, or 0 if there is none. Stops at the terminating 0, which no continuation
 * byte equals. */
static size_t char_bytes(const unsigned char *at) {
    unsigned char lead = at[0];
    if (lead < 0x80) {
        return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    }
    size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    /* 0x80 to 0xc1 never lead, and nothing above 0xf4 encodes a code point */
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < bytes; i++) {
        if (!is_continuation(at[i])) {
            return 0;
        }
    }
    /* the second byte rules out long forms, surrogates and numbers beyond the last code point */
    bool refused = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] > 0x9f) || (lead == 0xf0 && at[1] < 0x90) ||
                   (lead == 0xf4 && at[1] > 0x8f);
    /* U+0080 to U+009F are control characters too: a terminal may act on them */
    bool control = lead == 0xc2 && at[1] < 0xa0;
    return refused || control ? 0 : bytes;
}

size_t dm_text_clean(char *text) {
    size_t replaced = 0;
    unsigned char *at = (unsigned char *)text;
    while (*at != 0) {
        size_t bytes = char_bytes(at);
        if (bytes == 0) {
            *at = '?';
            replaced++;
            bytes = 1;
        }
        at += bytes;
    }
    return replaced;
}

bool dm_text_is_among(const char *word, const char *const *words) {
    for (; words && *words; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

void dm_text_wrap(const char *text, size_t length, size_t column, size_t indent, size_t width, FILE *out) {
    bool is_begun = false;
    for (size_t at = 0; at < length;) {
        size_t word = 0;
        while (at + word < length && text[at + word] != ' ') {
            word++;
        }
        size_t space = is_begun ? 1 : 0;
        if (word > 0 && column + space + word > width && column > indent) {
            (void)fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            space = 0;
        }
        if (word > 0) {
            (void)fprintf(out, "%s%.*s", space > 0 ? " " : "", (int)word, text + at);
            column += space + word;
            is_begun = true;
        }
        at += word + 1;
    }
    (void)fprintf(out, "\n");
}
