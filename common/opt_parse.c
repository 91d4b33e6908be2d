/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers with units. Integers are computed exactly, without floating point: "1.1K" is exactly 1100, and
 * a value that is not an integer or does not fit is refused rather than rounded.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/compiler.h"
#include "common/opt.h"
#include "common/opt_quote.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* powers of 10 and of 2 */
#define E3  UINT64_C(1000)
#define E6  UINT64_C(1000000)
#define E9  UINT64_C(1000000000)
#define E12 UINT64_C(1000000000000)
#define P10 (UINT64_C(1) << 10)
#define P20 (UINT64_C(1) << 20)
#define P30 (UINT64_C(1) << 30)
#define P40 (UINT64_C(1) << 40)

static const struct unit count_units[] = {{"", 1}, {"K", E3}, {"M", E6}, {"G", E9}, {"T", E12}};

static const struct unit byte_units[] = {
    {"", 1},    {"B", 1},   {"K", E3},   {"M", E6},    {"G", E9},    {"T", E12},   {"KB", E3},
    {"MB", E6}, {"GB", E9}, {"TB", E12}, {"KiB", P10}, {"MiB", P20}, {"GiB", P30}, {"TiB", P40},
};

static const struct unit duration_units[] = {
    {"ns", 1}, {"us", E3}, {"ms", E6}, {"s", E9}, {"m", 60 * E9}, {"h", 3600 * E9},
};

struct quantity {
    const char *what;  /* "a count" */
    const char *whole; /* what it must be a whole number of */
    const char *hint;  /* what is right */
    const struct unit *units;
    size_t unit_count;
};

static const struct quantity count_quantity = {
    .what = "a count",
    .whole = "a whole number",
    .hint = "use a whole number, with K, M, G or T for 10^3, 10^6, 10^9, 10^12",
    .units = count_units,
    .unit_count = DM_ARRAY_LEN(count_units),
};

static const struct quantity byte_quantity = {
    .what = "a number of bytes",
    .whole = "a whole number of bytes",
    .hint = "use a whole number, with KB, MB, GB or TB for powers of 1000, KiB, MiB, GiB or TiB for powers of 1024",
    .units = byte_units,
    .unit_count = DM_ARRAY_LEN(byte_units),
};

static const struct quantity duration_quantity = {
    .what = "a duration",
    .whole = "a whole number of nanoseconds",
    .hint = "use a number with its unit: ns, us, ms, s, m or h, as in 20us",
    .units = duration_units,
    .unit_count = DM_ARRAY_LEN(duration_units),
};

/* A number as written: mantissa * 10^exponent. */
struct decimal {
    unsigned __int128 mantissa;
    int exponent;
    bool is_huge; /* more digits than any value has that fits */
};

enum {
    /* any exponent beyond this one overflows, or leaves nothing, whatever the mantissa */
    EXPONENT_LIMIT = 1000,
};

/* Mantissas stay below this: times the largest unit they still fit into 128 bits. */
static const unsigned __int128 mantissa_limit = (unsigned __int128)1 << 80;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Appends a digit, and keeps mantissas short by holding back zeros behind the point until another digit follows. */
static void decimal_push(struct decimal *number, unsigned digit) {
    if (number->mantissa >= mantissa_limit / 10) {
        number->is_huge = true;
    } else {
        number->mantissa = number->mantissa * 10 + digit;
    }
}

/* Reads digits, a point with more digits, and an exponent; *at moves behind them. False if there is no digit. */
static bool decimal_read(const char **at, struct decimal *number) {
    const char *from = *at;
    int zeros = 0;
    *number = (struct decimal){0};
    for (; is_digit(**at); (*at)++) {
        decimal_push(number, (unsigned)(**at - '0'));
    }
    if (*at == from) {
        return false;
    }
    if (**at == '.' && is_digit((*at)[1])) {
        for ((*at)++; is_digit(**at); (*at)++) {
            zeros++;
            if (**at == '0') {
                continue;
            }
            for (; zeros > 1 && !number->is_huge; zeros--) {
                decimal_push(number, 0);
                number->exponent--;
            }
            decimal_push(number, (unsigned)(**at - '0'));
            number->exponent--;
            zeros = 0;
        }
    }
    if (**at == 'e' || **at == 'E') {
        const char *digits = *at + 1;
        bool is_negative = *digits == '-';
        digits += is_negative || *digits == '+' ? 1 : 0;
        if (!is_digit(*digits)) {
            return true;
        }
        int exponent = 0;
        for (; is_digit(*digits); digits++) {
            exponent = exponent < EXPONENT_LIMIT ? exponent * 10 + (*digits - '0') : EXPONENT_LIMIT;
        }
        number->exponent += is_negative ? -exponent : exponent;
        *at = digits;
    }
    return true;
}

static const struct unit *unit_find(const struct quantity *quantity, const char *name) {
    for (size_t i = 0; i < quantity->unit_count; i++) {
        const char *unit = quantity->units[i].name;
        /* units of durations differ by case (m, M), so it must match */
        bool is_same = quantity == &duration_quantity ? strcmp(unit, name) == 0 : strcasecmp(unit, name) == 0;
        if (is_same) {
            return &quantity->units[i];
        }
    }
    return NULL;
}

enum scale_result { SCALE_OK, SCALE_OVERFLOW, SCALE_NOT_WHOLE, SCALE_TOO_LONG };

/* number * factor as a whole number of 64 bits. */
static enum scale_result decimal_scale(const struct decimal *number, uint64_t factor, uint64_t *value) {
    unsigned __int128 product = number->mantissa * factor;
    if (number->is_huge) {
        return number->exponent < 0 ? SCALE_TOO_LONG : SCALE_OVERFLOW;
    }
    for (int i = number->exponent; i > 0 && product != 0; i--) {
        product *= 10;
        if (product > UINT64_MAX) {
            return SCALE_OVERFLOW;
        }
    }
    for (int i = number->exponent; i < 0 && product != 0; i++) {
        if (product % 10 != 0) {
            return SCALE_NOT_WHOLE;
        }
        product /= 10;
    }
    if (product > UINT64_MAX) {
        return SCALE_OVERFLOW;
    }
    *value = (uint64_t)product;
    return SCALE_OK;
}

static int quantity_parse(const struct quantity *quantity, const char *text, uint64_t *value, struct dm_err *err) {
    struct dm_quoted quoted = dm_quote(text);
    const char *at = text;
    struct decimal number;
    if (!decimal_read(&at, &number)) {
        return dm_fail(err, DM_ERR_INVALID, "%s is not %s (%s)", quoted.text, quantity->what, quantity->hint);
    }
    if (*at == '\0' && number.mantissa == 0 && !number.is_huge) {
        *value = 0;
        return DM_OK;
    }
    const struct unit *unit = unit_find(quantity, at);
    if (unit == NULL) {
        const char *problem = *at == '\0' ? "has no unit, so it is" : "is";
        return dm_fail(err, DM_ERR_INVALID, "%s %s not %s (%s)", quoted.text, problem, quantity->what, quantity->hint);
    }
    switch (decimal_scale(&number, unit->factor, value)) {
    case SCALE_OVERFLOW:
        return dm_fail(err, DM_ERR_INVALID, "%s is too large (at most 2^64 - 1 = %llu%s)", quoted.text,
                       (unsigned long long)UINT64_MAX, quantity == &duration_quantity ? "ns" : "");
    case SCALE_NOT_WHOLE:
        return dm_fail(err, DM_ERR_INVALID, "%s is not %s", quoted.text, quantity->whole);
    case SCALE_TOO_LONG:
        return dm_fail(err, DM_ERR_INVALID, "%s has too many digits", quoted.text);
    case SCALE_OK:
        break;
    }
    return DM_OK;
}

int dm_parse_count(const char *text, uint64_t *value, struct dm_err *err) {
    return quantity_parse(&count_quantity, text, value, err);
}

int dm_parse_bytes(const char *text, uint64_t *value, struct dm_err *err) {
    return quantity_parse(&byte_quantity, text, value, err);
}

int dm_parse_duration(const char *text, uint64_t *ns, struct dm_err *err) {
    return quantity_parse(&duration_quantity, text, ns, err);
}

int dm_parse_real(const char *text, double *value, struct dm_err *err) {
    struct dm_quoted quoted = dm_quote(text);
    /* strtod also takes spaces, hexadecimals, "inf" and "nan", which are never meant */
    bool is_plain = text[strspn(text, "0123456789.eE+-")] == '\0';
    char *end = NULL;
    double parsed = is_plain ? strtod(text, &end) : 0.0;
    if (!is_plain || end == text || *end != '\0') {
        return dm_fail(err, DM_ERR_INVALID, "%s is not a number (use digits, as in 0.99, 12 or 1e-3)", quoted.text);
    }
    if (!isfinite(parsed)) {
        return dm_fail(err, DM_ERR_INVALID, "%s is too large for a number (about 1.8e308 is the limit)", quoted.text);
    }
    *value = parsed;
    return DM_OK;
}
