/* SPDX-License-Identifier: Apache-2.0
 *
 * The axes of a map: from a range to the values that an option takes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"
#include "harness/base/option_names.h"
#include "harness/run/options.h"
#include "harness/study/map.h"
#include "workloads/workload.h"

enum { TEXT_BYTES = 64 };

static const double log_least = 16; /* a range of that ratio is logarithmic unless the user says otherwise */

/* The type of the option; that of a parameter of an index is not known here and is found by its numbers. */
static enum dm_opt_type option_type(const char *option) {
    char first[128];
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(option, "+"), option);
    if (strncmp(option, "mix.", 4) == 0) {
        return DM_OPT_REAL;
    }
    const struct dm_opt *row = hx_run_option(first);
    row = row ? row : dm_opt_find(wl_options, first);
    return row ? row->type : DM_OPT_STRING;
}

static int value_parse(enum dm_opt_type *type, const char *text, double *value, struct dm_err *err) {
    uint64_t whole = 0;
    int rc = DM_ERR_INVALID;
    switch (*type) {
    case DM_OPT_BYTES:
        rc = dm_parse_bytes(text, &whole, err);
        break;
    case DM_OPT_DURATION:
        rc = dm_parse_duration(text, &whole, err);
        break;
    case DM_OPT_COUNT:
        rc = dm_parse_count(text, &whole, err);
        break;
    case DM_OPT_REAL:
        return dm_parse_real(text, value, err);
    case DM_OPT_STRING:
        rc = dm_parse_count(text, &whole, err);
        if (rc < 0 && dm_parse_real(text, value, err) == 0) {
            *type = DM_OPT_REAL;
            return 0;
        }
        break;
    default:
        return dm_fail(err, DM_ERR_INVALID, "has no numbers, which a range needs: list its values");
    }
    *value = (double)whole;
    return rc;
}

/* Whole numbers have three digits that matter, unless they come out whole anyway, as powers of two do. */
static double value_round(double value) {
    double whole = round(value);
    if (fabs(value - whole) < 1e-6) {
        return whole;
    }
    double unit = pow(10, fmax(0, floor(log10(value)) - 2));
    return unit * round(value / unit);
}

static void value_write(enum dm_opt_type type, double value, char text[TEXT_BYTES]) {
    if (type == DM_OPT_REAL) {
        snprintf(text, TEXT_BYTES, "%.6g", value);
    } else {
        snprintf(text, TEXT_BYTES, "%.0f%s", value, type == DM_OPT_DURATION ? "ns" : "");
    }
}

static int axis_add(struct hx_map_axis *axis, double value, const char *text, struct dm_err *err) {
    if (axis->count > 0 && strcmp(axis->texts[axis->count - 1], text) == 0) {
        return 0; /* two positions of a fine grid may be the same whole number */
    }
    if (axis->count == HX_MAP_POSITIONS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "more than %d positions", HX_MAP_POSITIONS_MAX);
    }
    double *values = realloc(axis->values, (axis->count + 1) * sizeof(*values));
    axis->values = values ? values : axis->values;
    char **texts = realloc(axis->texts, (axis->count + 1) * sizeof(*texts));
    axis->texts = texts ? texts : axis->texts;
    char *copy = strdup(text);
    if (!values || !texts || !copy) {
        free(copy);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for an axis");
    }
    values[axis->count] = value;
    texts[axis->count++] = copy;
    return 0;
}

static int range_fill(struct hx_map_axis *axis, enum dm_opt_type type, double low, double high, size_t positions,
                      struct dm_err *err) {
    for (size_t i = 0; i < positions; i++) {
        char text[TEXT_BYTES];
        double share = (double)i / (double)(positions - 1);
        double value = axis->is_log ? low * pow(high / low, share) : low + share * (high - low);
        value = i == 0 ? low : i == positions - 1 ? high : type == DM_OPT_REAL ? value : value_round(value);
        value_write(type, value, text);
        DM_TRY(axis_add(axis, value, text, err));
    }
    return 0;
}

/* "LOW..HIGH/POSITIONS:SCALE"; changes the text. */
static int range_parse(char *text, size_t positions, struct hx_map_axis *axis, struct dm_err *err) {
    char *colon = strrchr(text, ':'), *slash = strrchr(text, '/'), *dots = strstr(text, "..");
    enum dm_opt_type type = option_type(axis->option);
    double low = 0, high = 0;
    uint64_t given = positions;
    if (colon) {
        *colon++ = '\0';
        if (strcmp(colon, "log") != 0 && strcmp(colon, "linear") != 0) {
            return dm_fail(err, DM_ERR_INVALID, "'%.20s' is neither log nor linear", colon);
        }
    }
    if (slash) {
        *slash++ = '\0';
        if (dm_parse_count(slash, &given, NULL) < 0 || given < 2 || given > HX_MAP_POSITIONS_MAX) {
            return dm_fail(err, DM_ERR_INVALID, "'%.20s' is no number of positions, 2 to %d", slash,
                           HX_MAP_POSITIONS_MAX);
        }
    }
    *dots = '\0';
    DM_TRY(value_parse(&type, text, &low, err));
    DM_TRY(value_parse(&type, dots + 2, &high, err));
    if (type == DM_OPT_REAL) {
        DM_TRY(value_parse(&type, text, &low, err)); /* the first end may have looked like a whole number */
    }
    if (!(low < high)) {
        return dm_fail(err, DM_ERR_INVALID, "the low end is not below the high one");
    }
    axis->is_log = colon ? strcmp(colon, "log") == 0 : low > 0 && high / low >= log_least;
    if (axis->is_log && low <= 0) {
        return dm_fail(err, DM_ERR_INVALID, "a logarithmic axis begins above 0");
    }
    DM_TRY(range_fill(axis, type, low, high, given, err));
    return axis->count >= 2 ? 0 : dm_fail(err, DM_ERR_INVALID, "the ends are the same value");
}

/* Values that increase; what has no numbers is numbered. */
static int list_parse(char *text, struct hx_map_axis *axis, struct dm_err *err) {
    char *rest = NULL;
    enum dm_opt_type type = option_type(axis->option);
    bool has_numbers = type != DM_OPT_ENUM && type != DM_OPT_BOOL;
    for (const char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        double value = 0;
        if (!has_numbers || value_parse(&type, word, &value, err) < 0) {
            has_numbers = false;
            value = (double)axis->count;
        }
        DM_TRY(axis_add(axis, value, word, err));
    }
    for (size_t i = 1; i < axis->count; i++) {
        if (axis->values[i] <= axis->values[i - 1]) {
            return dm_fail(err, DM_ERR_INVALID, "'%.40s' is not above the value before it", axis->texts[i]);
        }
    }
    axis->has_names = !has_numbers;
    axis->is_log = has_numbers && axis->count > 1 && axis->values[0] > 0 &&
                   axis->values[axis->count - 1] / axis->values[0] >= log_least;
    return axis->count >= 2 ? 0 : dm_fail(err, DM_ERR_INVALID, "one value is no axis");
}

/* Every option of the axis exists, as far as that is known without an index. */
static int option_check(const char *option, struct dm_err *err) {
    const char *known[HX_OPTIONS_MAX];
    size_t count = 0;
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        for (const struct dm_opt *row = group->table; row->name && count < HX_OPTIONS_MAX; row++) {
            known[count++] = row->name;
        }
    }
    for (const struct dm_opt *row = wl_options; row->name && count < HX_OPTIONS_MAX; row++) {
        known[count++] = row->name;
    }
    while (*option) {
        char name[128];
        size_t length = strcspn(option, "+");
        snprintf(name, sizeof(name), "%.*s", (int)length, option);
        if (!strchr(name, '.') && hx_option_position(name) == SIZE_MAX) {
            return hx_fail_unknown(err, "option", name, known, count);
        }
        option += length + (option[length] == '+');
    }
    return 0;
}

int hx_map_axis_parse(const char *text, size_t positions, struct hx_map_axis *axis, struct dm_err *err) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || equals[1] == '\0' || (size_t)(equals - text) >= sizeof(axis->option)) {
        return dm_fail(err, DM_ERR_INVALID, "'%.60s' is not NAME=LOW..HIGH or NAME=V,V,...", text);
    }
    char name[sizeof(axis->option)];
    snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
    if (!hx_option_name(name, axis->option, sizeof(axis->option))) {
        return dm_fail(err, DM_ERR_INVALID, "'%.60s' is no option", name);
    }
    DM_TRY(option_check(axis->option, err));
    snprintf(axis->label, sizeof(axis->label), "%s", axis->option);
    char *copy = strdup(equals + 1);
    if (!copy) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for an axis");
    }
    axis->is_bytes = option_type(axis->option) == DM_OPT_BYTES;
    int rc = strstr(copy, "..") ? range_parse(copy, positions, axis, err) : list_parse(copy, axis, err);
    free(copy);
    return rc < 0 ? dm_fail_in(err, rc, "%s", axis->option) : 0;
}

int hx_map_axis_put(const struct hx_map_axis *axis, size_t at, json_t *spec, struct dm_err *err) {
    char mix[160];
    const char *text = axis->texts[at];
    bool is_mix = strncmp(axis->option, "mix.", 4) == 0;
    if (is_mix) {
        const char *kind = axis->option + 4, *rest = strcmp(kind, "read") == 0 ? "update" : "read";
        snprintf(mix, sizeof(mix), "%s=%s,%s=%.12g", kind, text, rest, 1 - axis->values[at]);
        text = mix;
    }
    json_t *value = json_string(text);
    int rc = value ? 0 : DM_ERR_NO_MEMORY;
    char names[sizeof(axis->option)], *rest = NULL;
    snprintf(names, sizeof(names), "%s", is_mix ? "mix" : axis->option);
    for (const char *name = strtok_r(names, "+", &rest); rc == 0 && name; name = strtok_r(NULL, "+", &rest)) {
        rc = hx_json_put(spec, name, value);
    }
    json_decref(value);
    return rc < 0 ? dm_fail(err, rc, "no memory for a point") : 0;
}
