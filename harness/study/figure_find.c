/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures by words.
 */
#include "harness/study/figure_find.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "harness/study/figure.h"

enum { WORDS_MAX = 12, WORD_BYTES = 32, LIST_BYTES = 300 };

struct words {
    char at[WORDS_MAX][WORD_BYTES];
    size_t count;
};

/* Adds a word as ids have it: "table 2" is t2, "18 a" is 18a, and "figure" is left out. */
static void word_add(struct words *words, const char *word, bool *is_table) {
    static const char *const tables[] = {"table", "tab", NULL};
    static const char *const left_out[] = {"figure", "figures", "fig", "figs", "the", "of", "in", "s", "paper", NULL};
    char *last = words->count > 0 ? words->at[words->count - 1] : NULL;
    if (dm_text_is_among(word, tables)) {
        *is_table = true;
        return;
    }
    if (dm_text_is_among(word, left_out) || words->count == WORDS_MAX) {
        return;
    }
    if (last && isdigit((unsigned char)last[strlen(last) - 1]) && isalpha((unsigned char)word[0]) && !word[1] &&
        strlen(last) + 1 < WORD_BYTES) {
        strcat(last, word);
        return;
    }
    snprintf(words->at[words->count++], WORD_BYTES, "%s%.*s", *is_table ? "t" : "", WORD_BYTES - 2, word);
    *is_table = false;
}

/* Letters and digits between anything else, in lower case. */
static void words_split(const char *text, struct words *words) {
    bool is_table = false;
    words->count = 0;
    while (*text) {
        char word[WORD_BYTES];
        size_t length = 0;
        while (isalnum((unsigned char)text[length])) {
            if (length + 1 < WORD_BYTES) {
                word[length] = (char)tolower((unsigned char)text[length]);
            }
            length++;
        }
        if (length > 0) {
            word[length < WORD_BYTES ? length : WORD_BYTES - 1] = '\0';
            word_add(words, word, &is_table);
        }
        text += length > 0 ? length : 1;
    }
}

enum likeness { UNLIKE, BEGINNINGS, PARTS, EQUAL };

/* Whether all words are among those of an id: as beginnings of them, as they are, or as all of them. */
static enum likeness likeness_of(const struct words *wanted, const char *id) {
    struct words own;
    enum likeness likeness = PARTS;
    words_split(id, &own);
    for (size_t i = 0; i < wanted->count; i++) {
        bool is_equal = false, is_beginning = false;
        for (size_t k = 0; k < own.count; k++) {
            is_equal = is_equal || strcmp(wanted->at[i], own.at[k]) == 0;
            is_beginning = is_beginning || strncmp(wanted->at[i], own.at[k], strlen(wanted->at[i])) == 0;
        }
        likeness = is_equal ? likeness : is_beginning && likeness != UNLIKE ? BEGINNINGS : UNLIKE;
    }
    return wanted->count == 0 ? UNLIKE : likeness == PARTS && wanted->count == own.count ? EQUAL : likeness;
}

/* The ids that are as like as that, in a list. Returns how many. */
static size_t candidates(const char *const *ids, size_t count, const struct words *wanted, enum likeness likeness,
                         const char **id, char list[LIST_BYTES]) {
    size_t found = 0, length = 0;
    for (size_t i = 0; i < count; i++) {
        if (likeness_of(wanted, ids[i]) != likeness) {
            continue;
        }
        *id = ids[i];
        if (length < LIST_BYTES) {
            int wrote = snprintf(list + length, LIST_BYTES - length, "%s%s", found > 0 ? ", " : "", ids[i]);
            length += wrote > 0 ? (size_t)wrote : 0;
        }
        found++;
    }
    return found;
}

int hx_figure_find(const char *const *ids, size_t count, const char *text, const char **id, struct dm_err *err) {
    struct words wanted;
    char list[LIST_BYTES] = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ids[i], text) == 0) {
            *id = ids[i];
            return 0;
        }
    }
    words_split(text, &wanted);
    for (enum likeness likeness = EQUAL; likeness != UNLIKE; likeness--) {
        size_t found = candidates(ids, count, &wanted, likeness, id, list);
        if (found == 1 && likeness != BEGINNINGS) {
            return 0;
        }
        if (found > 1) {
            return dm_fail(err, DM_ERR_INVALID, "'%.60s' may be %s: name one of them", text, list);
        }
    }
    return hx_figure_fail_unknown(err, text, ids, count);
}
