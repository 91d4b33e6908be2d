/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints under which readings claims hold, and whether their reasons do.
 */
#include "harness/study/claims_readings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_BYTES = 96 };

/* Appends to a text; what does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t capacity, const char *format, ...) {
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, capacity - length, format, arguments);
    va_end(arguments);
}

/* ---- readings --------------------------------------------------------------------------------------------------- */

/* The end of the readings that begin at `first` and are one: a single one, or the values of a range. */
static size_t group_end(const struct hx_claim *claim, size_t first) {
    size_t end = first + 1;
    while (end < claim->reading_count && claim->readings[first].option != NULL &&
           claim->readings[end].name == claim->readings[first].name) {
        end++;
    }
    return end;
}

size_t hx_claim_readings_tried(const struct hx_claim *claim) {
    size_t tried = 0;
    for (size_t i = 0; i < claim->reading_count; i = group_end(claim, i)) {
        tried++;
    }
    return tried;
}

static const char *value_of(const struct hx_claim_reading *reading) {
    const char *sign = strchr(reading->id, '=');
    return sign != NULL ? sign + 1 : "";
}

/* The values of a range at which the claim holds: "20MB to 80MB", or one by one if others lie between. */
static void add_values(const struct hx_claim *claim, size_t first, size_t end, char *text, size_t capacity) {
    size_t low = end, high = first, hits = 0;
    for (size_t i = first; i < end; i++) {
        if (claim->readings[i].verdict == HX_REPRODUCED) {
            low = low == end ? i : low;
            high = i;
            hits++;
        }
    }
    add(text, capacity, " with %s ", claim->readings[first].option);
    if (hits > 1 && hits == high - low + 1) {
        add(text, capacity, "%s to %s", value_of(&claim->readings[low]), value_of(&claim->readings[high]));
        return;
    }
    for (size_t i = low, shown = 0; i <= high && i < end; i++) {
        if (claim->readings[i].verdict == HX_REPRODUCED) {
            add(text, capacity, "%s%s", shown++ > 0 ? ", " : "", value_of(&claim->readings[i]));
        }
    }
}

static size_t count_good(const struct hx_claim *claim, size_t first, size_t end) {
    size_t good = 0;
    for (size_t i = first; i < end; i++) {
        good += claim->readings[i].verdict == HX_REPRODUCED;
    }
    return good;
}

size_t hx_claim_readings_good(const struct hx_claim *claim, char *text, size_t capacity) {
    size_t good = 0;
    text[0] = '\0';
    for (size_t i = 0, end; i < claim->reading_count; i = end) {
        end = group_end(claim, i);
        if (count_good(claim, i, end) > 0) {
            add(text, capacity, "%s%s", good++ > 0 ? ", " : "", claim->readings[i].name);
            if (claim->readings[i].option != NULL) {
                add_values(claim, i, end, text, capacity);
            }
        }
    }
    return good;
}

/* The values of the checks under a reading: " (4.1; 3.9)". */
static void add_measured(const struct hx_claim *claim, const struct hx_claim_reading *reading, char *text,
                         size_t capacity) {
    const char *separator = " (";
    for (size_t i = 0; i < claim->check_count && claim->kind != HX_CLAIM_TREND; i++) {
        if (reading->checks[i].verdict != HX_NOT_RUN) {
            add(text, capacity, "%s%.4g", separator, reading->checks[i].value);
            separator = "; ";
        }
    }
    add(text, capacity, separator[0] == ';' ? ")" : "");
}

void hx_claim_readings_text(const struct hx_claim *claim, char *text, size_t capacity) {
    text[0] = '\0';
    for (size_t i = 0, end; i < claim->reading_count; i = end) {
        const struct hx_claim_reading *reading = &claim->readings[i];
        end = group_end(claim, i);
        add(text, capacity, "%s%s: ", i > 0 ? "; " : "", reading->name);
        if (reading->option == NULL) {
            add(text, capacity, "%s", hx_verdict_names[reading->verdict]);
            add_measured(claim, reading, text, capacity);
            continue;
        }
        bool good = count_good(claim, i, end) > 0;
        add(text, capacity, good ? "reproduced" : "reproduced nowhere");
        if (good) {
            add_values(claim, i, end, text, capacity);
        }
        add(text, capacity, good ? " of %s to %s" : " from %s to %s", value_of(reading),
            value_of(&claim->readings[end - 1]));
    }
}

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *hx_claim_readings_array(const struct hx_claim *claim) {
    json_t *array = json_array();
    for (size_t i = 0; i < claim->reading_count; i++) {
        const struct hx_claim_reading *reading = &claim->readings[i];
        json_t *values = json_array();
        for (size_t k = 0; k < claim->check_count; k++) {
            json_array_append_new(values, number(reading->checks[k].value));
        }
        json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", reading->id, "says", reading->says,
                                               "from", reading->from, "verdict", hx_verdict_names[reading->verdict],
                                               "values", values));
    }
    return array;
}

/* ---- reasons ---------------------------------------------------------------------------------------------------- */

static const char *const reason_names[] = {
    [HX_REASON_NOT_RUN] = "not run",
    [HX_REASON_HOLDS] = "holds",
    [HX_REASON_REFUTED] = "refuted",
};

bool hx_claim_has_reasons(const struct hx_claim *claim) {
    return claim->verdict != HX_NOT_RUN && claim->verdict != HX_REPRODUCED && claim->reason_count > 0;
}

static void expected(const struct hx_reason *reason, char text[NUMBER_BYTES]) {
    if (isinf(reason->high)) {
        snprintf(text, NUMBER_BYTES, "at least %.4g", reason->low);
    } else if (isinf(reason->low)) {
        snprintf(text, NUMBER_BYTES, "at most %.4g", reason->high);
    } else {
        snprintf(text, NUMBER_BYTES, "%.4g to %.4g", reason->low, reason->high);
    }
}

void hx_reason_text(const struct hx_reason *reason, char *text, size_t capacity) {
    char range[NUMBER_BYTES];
    snprintf(text, capacity, "%s%s", reason->verdict == HX_REASON_REFUTED ? "refuted: " : "", reason->text);
    if (reason->verdict == HX_REASON_NOT_RUN) {
        add(text, capacity, " (not run: %s)", reason->why);
    } else if (reason->is_truth) {
        add(text, capacity, reason->found != 0 ? " (holds)" : " (does not hold)");
    } else {
        expected(reason, range);
        add(text, capacity, " (%.4g; expected %s)", reason->found, range);
    }
}

void hx_claim_count_reasons(const struct hx_claim *claim, size_t counts[HX_REASON_REFUTED + 1]) {
    for (size_t i = 0; hx_claim_has_reasons(claim) && i < claim->reason_count; i++) {
        counts[claim->reasons[i].verdict]++;
    }
}

json_t *hx_claim_reasons_array(const struct hx_claim *claim) {
    json_t *array = json_array();
    for (size_t i = 0; i < claim->reason_count; i++) {
        const struct hx_reason *reason = &claim->reasons[i];
        json_t *object =
            json_pack("{s:s, s:s, s:s, s:o, s:s}", "text", reason->text, "reads", reason->figure, "expression",
                      reason->value, "value", number(reason->found), "verdict", reason_names[reason->verdict]);
        if (!reason->is_truth) {
            json_object_set_new(object, "expected", json_pack("[o, o]", number(reason->low), number(reason->high)));
        }
        if (reason->verdict == HX_REASON_NOT_RUN) {
            json_object_set_new(object, "why", json_string(reason->why));
        }
        json_array_append_new(array, object);
    }
    return array;
}
