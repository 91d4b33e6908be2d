/* SPDX-License-Identifier: Apache-2.0
 *
 * Percentiles of latencies that a user asks for, from the histograms of a result.
 */
#include "harness/run/percentiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "common/opt.h"

static int one_parse(const char *text, size_t length, struct hx_percentiles *percentiles, struct dm_err *err) {
    double number = 0;
    struct dm_err unread = {.code = 0};
    if (percentiles->count == HX_PERCENTILES_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d percentiles", HX_PERCENTILES_MAX);
    }
    char *typed = percentiles->at[percentiles->count].text;
    snprintf(typed, HX_PERCENTILE_TEXT_MAX, "%.*s", (int)length, text);
    if (length == 0 || length >= HX_PERCENTILE_TEXT_MAX || dm_parse_real(typed, &number, &unread) < 0 || number <= 0 ||
        number > 100) {
        return dm_fail(err, DM_ERR_INVALID, "'%.*s' is no percentile (use numbers above 0 and up to 100: 50,99,99.99)",
                       (int)(length < 40 ? length : 40), text);
    }
    for (size_t i = 0; i < percentiles->count; i++) {
        if (percentiles->at[i].share == number / 100) {
            return dm_fail(err, DM_ERR_INVALID, "%s is there twice", typed);
        }
    }
    percentiles->at[percentiles->count++].share = number / 100;
    return 0;
}

int hx_percentiles_parse(const char *text, struct hx_percentiles *percentiles, struct dm_err *err) {
    percentiles->count = 0;
    for (const char *at = text; *text && at;) {
        size_t length = strcspn(at, ",");
        DM_TRY(one_parse(at, length, percentiles, err));
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return 0;
}

/* The object of one operation; NULL when out of memory or without a histogram. */
static json_t *of_operation(const json_t *op, const struct hx_percentiles *percentiles) {
    struct dm_hist *hist = calloc(1, sizeof(*hist));
    const char *text = json_string_value(json_object_get(op, "histogram"));
    json_t *object = hist && text && dm_hist_decode(hist, text) == 0 ? json_object() : NULL;
    for (size_t i = 0; object && i < percentiles->count; i++) {
        uint64_t ns = dm_hist_quantile(hist, percentiles->at[i].share);
        json_object_set_new(object, percentiles->at[i].text, json_integer((json_int_t)ns));
    }
    free(hist);
    return object;
}

int hx_percentiles_add(json_t *result, const struct hx_percentiles *percentiles, struct dm_err *err) {
    const char *name;
    json_t *op;
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        json_t *object = percentiles->count > 0 ? of_operation(op, percentiles) : NULL;
        if (percentiles->count > 0 && json_object_set_new(op, "percentiles_ns", object) != 0) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
        }
    }
    return 0;
}
