/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the candidate nearest to a mistyped name, where an insertion, a deletion, a replacement and a swap
 * of neighbours each count as one edit (optimal string alignment). A candidate in other case is the nearest.
 */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "common/opt.h"

enum { NAME_MAX_LEN = 63 };

static size_t min_of(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Edits between two names of at most NAME_MAX_LEN characters. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len) {
    size_t rows[3][NAME_MAX_LEN + 1];
    size_t *before = rows[0];
    size_t *above = rows[1];
    size_t *row = rows[2];
    for (size_t j = 0; j <= b_len; j++) {
        before[j] = 0;
        above[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
            row[j] = min_of(replaced, min_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = min_of(row[j], before[j - 2] + 1);
            }
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_len];
}

const char *dm_suggest(const char *name, const char *const *candidates, size_t count) {
    size_t length = strlen(name);
    if (length > NAME_MAX_LEN) {
        return NULL;
    }
    size_t limit = length / 3 > 1 ? length / 3 : 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, candidates[i]) == 0) {
            return candidates[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t candidate_len = strlen(candidates[i]);
        if (candidate_len > NAME_MAX_LEN) {
            continue;
        }
        size_t distance = edit_distance(name, length, candidates[i], candidate_len);
        /* a name that shares no character with the candidate is not a slip of the finger */
        size_t longer = length > candidate_len ? length : candidate_len;
        if (distance <= limit && (distance == 0 || distance < longer)) {
            nearest = candidates[i];
            limit = distance > 0 ? distance - 1 : 0;
            if (distance == 0) {
                break;
            }
        }
    }
    return nearest;
}
