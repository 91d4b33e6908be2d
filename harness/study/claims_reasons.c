/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the reasons of claims.
 */
#include "harness/study/claims_reasons.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"

enum { WHERE_BYTES = 320 };

/* The share by which a value may miss a single expected number. */
#define NUMBER_TOLERANCE 0.05

static bool ends_in_word(const char *text, const char *at, const char *word) {
    size_t length = strlen(word);
    return (size_t)(at - text) >= length && strncmp(at - length, word, length) == 0;
}

/* Whether a word that begins with a digit is part of a name: "figure 12", "H = 2". */
static bool is_named(const char *text, const char *at) {
    static const char *const words[] = {"figure ", "figures ", "table ", "section ", "= "};
    for (size_t i = 0; i < DM_ARRAY_LEN(words); i++) {
        if (ends_in_word(text, at, words[i])) {
            return true;
        }
    }
    return false;
}

/* The first number of a text that is no name; NULL: none. Words that begin with a letter are names: P99, ConnectX-6. */
static const char *find_number(const char *text) {
    for (const char *at = text; *at != '\0';) {
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || (length > 0 && strchr("-._", at[length]) && at[length] != '\0')) {
            length++;
        }
        if (length > 0 && isdigit((unsigned char)*at) && !is_named(text, at)) {
            return at;
        }
        at += length > 0 ? length : 1;
    }
    return NULL;
}

static int read_bound(const json_t *value, double open, const char *where, double *bound, struct dm_err *err) {
    *bound = json_is_null(value) ? open : json_number_value(value);
    return json_is_null(value) || json_is_number(value)
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s.expect: must be a number or [from, to]", where);
}

static int read_expected(const json_t *expect, const char *where, struct hx_reason *reason, struct dm_err *err) {
    if (json_is_array(expect) && json_array_size(expect) == 2) {
        DM_TRY(read_bound(json_array_get(expect, 0), -INFINITY, where, &reason->low, err));
        DM_TRY(read_bound(json_array_get(expect, 1), INFINITY, where, &reason->high, err));
    } else {
        double number;
        DM_TRY(read_bound(expect, NAN, where, &number, err));
        reason->low = number - fabs(number) * NUMBER_TOLERANCE;
        reason->high = number + fabs(number) * NUMBER_TOLERANCE;
    }
    bool bounded = isfinite(reason->low) || isfinite(reason->high);
    return bounded && reason->low <= reason->high
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s.expect: its ends are the wrong way, or both open", where);
}

static int read_string(const json_t *object, const char *name, bool required, const char *where, const char **text,
                       struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, name, JSON_STRING, required, where, &value, err));
    *text = json_string_value(value);
    return 0;
}

static int read_scale(const json_t *object, const char *where, const char **scale, struct dm_err *err) {
    static const char *const names[] = {"quick", "paper"};
    DM_TRY(read_string(object, "scale", false, where, scale, err));
    bool known = *scale == NULL || strcmp(*scale, names[0]) == 0 || strcmp(*scale, names[1]) == 0;
    return known ? 0 : dm_fail_in(err, hx_fail_unknown(err, "scale", *scale, names, 2), "%s", where);
}

static int read_reason(const json_t *object, const char *figure, const char *where, struct hx_reason *reason,
                       struct dm_err *err) {
    static const char *const known[] = {"text", "value", "expect", "holds", "reads", "scale", NULL};
    const char *holds;
    const json_t *expect = json_object_get(object, "expect");
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_string(object, "text", true, where, &reason->text, err));
    DM_TRY(read_string(object, "value", false, where, &reason->value, err));
    DM_TRY(read_string(object, "holds", false, where, &holds, err));
    DM_TRY(read_string(object, "reads", figure == NULL, where, &reason->figure, err));
    DM_TRY(read_scale(object, where, &reason->scale, err));
    const char *number = find_number(reason->text);
    if (number != NULL) {
        return dm_fail(err, DM_ERR_INVALID,
                       "%s.text: a number is typed in at '%.30s'; the program prints those of today", where, number);
    }
    if ((reason->value != NULL) == (holds != NULL) || (expect != NULL) != (reason->value != NULL)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: a reason needs either 'value' and 'expect', or 'holds'", where);
    }
    reason->figure = reason->figure != NULL ? reason->figure : figure;
    reason->is_truth = holds != NULL;
    reason->value = holds != NULL ? holds : reason->value;
    return expect != NULL ? read_expected(expect, where, reason, err) : 0;
}

int hx_reasons_read(const json_t *array, const char *figure, const char *scale, const char *where,
                    struct hx_claim *claim, struct dm_err *err) {
    claim->reasons = calloc(json_array_size(array) + 1, sizeof(*claim->reasons));
    if (claim->reasons == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for reasons");
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        char member[WHERE_BYTES];
        snprintf(member, sizeof(member), "%.280s.because[%zu]", where, i);
        struct hx_reason reason = {.text = NULL};
        DM_TRY(read_reason(json_array_get(array, i), figure, member, &reason, err));
        if (reason.scale == NULL || strcmp(reason.scale, scale) == 0) {
            claim->reasons[claim->reason_count++] = reason;
        }
    }
    return 0;
}
