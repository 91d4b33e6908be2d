/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and evaluates the expressions of claims in one pass, by recursive descent.
 */
#include "harness/study/claim_expr.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 40, ARGUMENTS_MAX = 8 };

struct parser {
    const char *text, *at;
    const struct hx_curve_source *source;
    struct dm_err *err;
    unsigned depth;
    bool inside; /* with() */
};

static int parse_any(struct parser *parser, struct hx_curve *value);
static int parse_label(struct parser *parser, char label[HX_LABEL_MAX]);

static int fail(const struct parser *parser, const char *what) {
    return dm_fail(parser->err, DM_ERR_INVALID, "'%.120s': %s at '%.20s'", parser->text, what, parser->at);
}

static void skip_blanks(struct parser *parser) {
    while (isspace((unsigned char)*parser->at)) {
        parser->at++;
    }
}

static bool accept(struct parser *parser, const char *token) {
    size_t length = strlen(token);
    skip_blanks(parser);
    if (strncmp(parser->at, token, length) != 0 ||
        (isalpha((unsigned char)token[0]) &&
         (isalnum((unsigned char)parser->at[length]) || parser->at[length] == '_'))) {
        return false;
    }
    parser->at += length;
    return true;
}

static struct hx_curve number(double value) {
    return (struct hx_curve){.single = true, .constant = true, .count = 1, .y = {value}};
}

/* ---- value by value --------------------------------------------------------------------------------------------- */

/* What follows from a number that is missing is missing, also the truth of a comparison. */
static double apply(char operation, double a, double b) {
    if (isnan(a) || isnan(b)) {
        return NAN;
    }
    switch (operation) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return b != 0 ? a / b : NAN;
    case '<':
        return a < b;
    case '>':
        return a > b;
    case 'l':
        return a <= b;
    case 'g':
        return a >= b;
    case '&':
        return a != 0 && b != 0;
    case '|':
        return a != 0 || b != 0;
    case 'M':
        return a > b ? a : b;
    case 'm':
        return a < b ? a : b;
    default:
        return NAN;
    }
}

static int combine(const struct parser *parser, char operation, struct hx_curve *a, const struct hx_curve *b) {
    if (!a->single && !b->single && a->count != b->count) {
        return fail(parser, "curves of different lengths");
    }
    for (size_t i = 0; operation == '/' && b->constant && i < b->count; i++) {
        if (b->y[i] == 0) {
            return fail(parser, "division by nothing before");
        }
    }
    struct hx_curve left = *a;
    if (left.single) {
        *a = *b;
    }
    a->constant = left.constant && b->constant;
    for (size_t i = 0; i < a->count; i++) {
        a->y[i] = apply(operation, left.y[left.single ? 0 : i], b->y[b->single ? 0 : i]);
    }
    return 0;
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

static double fold(const struct hx_curve *curve, char operation) {
    double value = curve->y[0];
    for (size_t i = 1; i < curve->count; i++) {
        value = apply(operation, value, curve->y[i]);
    }
    return value;
}

static bool lacks_number(const struct hx_curve *curve) {
    bool lacks = false;
    for (size_t i = 0; i < curve->count; i++) {
        lacks = lacks || isnan(curve->y[i]);
    }
    return lacks;
}

static bool rises(const struct hx_curve *curve, double slack, double sign) {
    bool steady = true;
    for (size_t i = 1; i < curve->count; i++) {
        steady = steady && (curve->y[i] - curve->y[i - 1]) * sign >= -slack * fabs(curve->y[i - 1]);
    }
    double whole = (curve->y[curve->count - 1] - curve->y[0]) * sign;
    return steady && whole > slack * fabs(curve->y[0]);
}

/* Along x are the paper's numbers: a size that was divided, rounded to whole bytes and multiplied again is the same. */
#define SAME_X 1e-3

static struct hx_curve part(const struct hx_curve *curve, double bound, bool above) {
    struct hx_curve kept = {.count = 0};
    for (size_t i = 0; i < curve->count; i++) {
        if (above ? curve->x[i] >= bound * (1 - SAME_X) : curve->x[i] <= bound * (1 + SAME_X)) {
            kept.x[kept.count] = curve->x[i];
            kept.y[kept.count++] = curve->y[i];
        }
    }
    return kept;
}

/* Least squares over the logarithms. */
static double power(const struct hx_curve *curve) {
    double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, count = (double)curve->count;
    for (size_t i = 0; i < curve->count; i++) {
        double x = log(curve->x[i]), y = log(curve->y[i]);
        sum_x += x;
        sum_y += y;
        sum_xx += x * x;
        sum_xy += x * y;
    }
    double spread = count * sum_xx - sum_x * sum_x;
    return spread > 0 ? (count * sum_xy - sum_x * sum_y) / spread : NAN;
}

static double best_x(const struct hx_curve *curve) {
    size_t best = 0;
    for (size_t i = 1; i < curve->count; i++) {
        best = curve->y[i] > curve->y[best] ? i : best;
    }
    return curve->x[best];
}

static double mean(const struct hx_curve *curve) {
    return fold(curve, '+') / (double)curve->count;
}

enum function {
    MAX,
    MIN,
    MEAN,
    FIRST,
    LAST,
    ALL,
    ANY,
    RISES,
    FALLS,
    FLAT,
    FROM,
    UPTO,
    POWER,
    BEST_X,
    OVER_X,
    FUNCTIONS
};

static const struct {
    const char *name;
    size_t least, most; /* arguments */
} functions[FUNCTIONS] = {
    [MAX] = {"max", 1, ARGUMENTS_MAX},
    [MIN] = {"min", 1, ARGUMENTS_MAX},
    [MEAN] = {"mean", 1, 1},
    [FIRST] = {"first", 1, 1},
    [LAST] = {"last", 1, 1},
    [ALL] = {"all", 1, 1},
    [ANY] = {"any", 1, 1},
    [RISES] = {"rises", 1, 2},
    [FALLS] = {"falls", 1, 2},
    [FLAT] = {"flat", 2, 2},
    [FROM] = {"from", 2, 2},
    [UPTO] = {"upto", 2, 2},
    [POWER] = {"power", 1, 1},
    [BEST_X] = {"best_x", 1, 1},
    [OVER_X] = {"over_x", 1, 1},
};

static int extreme(const struct parser *parser, char operation, struct hx_curve *arguments, size_t count,
                   struct hx_curve *value) {
    *value = arguments[0];
    for (size_t i = 1; i < count; i++) {
        DM_TRY(combine(parser, operation, value, &arguments[i]));
    }
    if (count == 1) {
        *value = number(fold(&arguments[0], operation));
    }
    return 0;
}

static int call(const struct parser *parser, enum function function, struct hx_curve *arguments, size_t count,
                struct hx_curve *value) {
    const struct hx_curve *curve = &arguments[0];
    double second = count > 1 ? arguments[1].y[0] : 0.02;
    switch (function) {
    case MAX:
        return extreme(parser, 'M', arguments, count, value);
    case MIN:
        return extreme(parser, 'm', arguments, count, value);
    case MEAN:
        *value = number(mean(curve));
        return 0;
    case FIRST:
        *value = number(curve->y[0]);
        return 0;
    case LAST:
        *value = number(curve->y[curve->count - 1]);
        return 0;
    case ALL:
        *value = number(lacks_number(curve) ? NAN : fold(curve, 'm') != 0);
        return 0;
    case ANY:
        *value = number(lacks_number(curve) ? NAN : fold(curve, 'M') != 0);
        return 0;
    case RISES:
    case FALLS:
        *value = number(lacks_number(curve) ? NAN : rises(curve, second, function == RISES ? 1 : -1));
        return 0;
    case FLAT:
        *value = number(apply('l', fold(curve, 'M'), fold(curve, 'm') * (1 + second)));
        return 0;
    case FROM:
    case UPTO:
        *value = part(curve, second, function == FROM);
        return value->count > 0 ? 0 : fail(parser, "nothing of the curve is left");
    case POWER:
        *value = number(power(curve));
        return 0;
    case BEST_X:
        *value = number(lacks_number(curve) ? NAN : best_x(curve));
        return 0;
    case OVER_X:
        *value = *curve;
        for (size_t i = 0; i < value->count; i++) {
            value->y[i] /= value->x[i] / parser->source->x_scale;
        }
        return 0;
    case FUNCTIONS:
        break;
    }
    return fail(parser, "unknown function");
}

static int parse_arguments(struct parser *parser, struct hx_curve *arguments, size_t *count) {
    do {
        if (*count == ARGUMENTS_MAX) {
            return fail(parser, "too many arguments");
        }
        int rc = parse_any(parser, &arguments[*count]);
        if (rc != 0) {
            return rc; /* also DM_NOT_FOUND for missing numbers, which is not a failure */
        }
        (*count)++;
    } while (accept(parser, ","));
    return accept(parser, ")") ? 0 : fail(parser, "')' is missing");
}

static int parse_call(struct parser *parser, const char *name, struct hx_curve *value) {
    enum function function = MAX;
    while (function < FUNCTIONS && strcmp(functions[function].name, name) != 0) {
        function++;
    }
    if (function == FUNCTIONS) {
        return fail(parser, "unknown function before");
    }
    struct hx_curve *arguments = calloc(ARGUMENTS_MAX, sizeof(*arguments));
    size_t count = 0;
    if (arguments == NULL) {
        return dm_fail(parser->err, DM_ERR_NO_MEMORY, "no memory for an expression");
    }
    int rc = parse_arguments(parser, arguments, &count);
    if (rc == 0 && (count < functions[function].least || count > functions[function].most)) {
        rc = fail(parser, "too few or too many arguments before");
    }
    bool constant = true;
    for (size_t i = 0; i < count; i++) {
        constant = constant && arguments[i].constant;
    }
    rc = rc != 0 ? rc : call(parser, function, arguments, count, value);
    value->constant = constant;
    free(arguments);
    return rc;
}

/* with(ID, expression), behind the opening parenthesis. */
static int parse_with(struct parser *parser, struct hx_curve *value) {
    char id[HX_LABEL_MAX];
    if (parser->source->enter == NULL || parser->inside) {
        return fail(parser, parser->inside ? "with() inside with()" : "with() outside a reason");
    }
    DM_TRY(parse_label(parser, id));
    if (!accept(parser, ",")) {
        return fail(parser, "with() needs the id of a reading or experiment, ',' and an expression");
    }
    int rc = parser->source->enter(parser->source->arg, id, parser->err);
    if (rc != 0) {
        return rc;
    }
    parser->inside = true;
    rc = parse_any(parser, value);
    parser->inside = false;
    int back = parser->source->enter(parser->source->arg, NULL, parser->err);
    rc = rc != 0 ? rc : back;
    return rc != 0 || accept(parser, ")") ? rc : fail(parser, "')' is missing");
}

/* ---- atoms ------------------------------------------------------------------------------------------------------ */

/* One label up to a comma or the closing brace; in single quotes it may contain both. */
static int parse_label(struct parser *parser, char label[HX_LABEL_MAX]) {
    skip_blanks(parser);
    bool quoted = *parser->at == '\'';
    parser->at += quoted;
    size_t length = strcspn(parser->at, quoted ? "'" : ",}");
    size_t kept = length;
    while (!quoted && kept > 0 && isspace((unsigned char)parser->at[kept - 1])) {
        kept--;
    }
    if (kept == 0 || kept >= HX_LABEL_MAX || parser->at[length] == '\0') {
        return fail(parser, "no label, or one without an end,");
    }
    snprintf(label, HX_LABEL_MAX, "%.*s", (int)kept, parser->at);
    parser->at += length + quoted;
    return 0;
}

static int parse_selection(struct parser *parser, const char *metric, struct hx_curve *value) {
    struct hx_select select = {.part_count = 0};
    snprintf(select.metric, sizeof(select.metric), "%s", metric);
    do {
        if (select.part_count == HX_SELECT_MAX) {
            return fail(parser, "more than a series, a panel and an x");
        }
        DM_TRY(parse_label(parser, select.parts[select.part_count++]));
    } while (accept(parser, ","));
    if (!accept(parser, "}")) {
        return fail(parser, "'}' is missing");
    }
    return parser->source->find(parser->source->arg, &select, value, parser->err);
}

static int parse_name(struct parser *parser, struct hx_curve *value) {
    char name[HX_LABEL_MAX];
    size_t length = 0;
    while (isalnum((unsigned char)parser->at[length]) || parser->at[length] == '_') {
        length++;
    }
    if (length == 0 || length >= sizeof(name)) {
        return fail(parser, "a number, a curve or a function is missing");
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, parser->at);
    parser->at += length;
    if (strcmp(name, "scale") == 0) {
        *value = number(parser->source->scale);
        value->constant = false;
        return 0;
    }
    if (accept(parser, "{")) {
        return parse_selection(parser, name, value);
    }
    if (!accept(parser, "(")) {
        return fail(parser, "'{' or '(' is missing");
    }
    return strcmp(name, "with") == 0 ? parse_with(parser, value) : parse_call(parser, name, value);
}

static int parse_atom(struct parser *parser, struct hx_curve *value) {
    skip_blanks(parser);
    if (accept(parser, "(")) {
        int rc = parse_any(parser, value);
        return rc != 0 || accept(parser, ")") ? rc : fail(parser, "')' is missing");
    }
    if (isdigit((unsigned char)*parser->at) || *parser->at == '.') {
        char *end;
        *value = number(strtod(parser->at, &end));
        parser->at = end;
        return 0;
    }
    return parse_name(parser, value);
}

/* ---- operators -------------------------------------------------------------------------------------------------- */

/* Left to right over operands of the next finer level; `tokens` and `operations` go together. */
static int parse_level(struct parser *parser, const char *const *tokens, const char *operations,
                       int (*finer)(struct parser *, struct hx_curve *), struct hx_curve *value) {
    int rc = finer(parser, value);
    for (bool more = true; rc == 0 && more;) {
        more = false;
        for (size_t i = 0; tokens[i] != NULL && rc == 0 && !more; i++) {
            if (accept(parser, tokens[i])) {
                struct hx_curve right;
                more = true;
                rc = finer(parser, &right);
                rc = rc != 0 ? rc : combine(parser, operations[i], value, &right);
            }
        }
    }
    return rc;
}

static int parse_product(struct parser *parser, struct hx_curve *value) {
    static const char *const tokens[] = {"*", "/", NULL};
    return parse_level(parser, tokens, "*/", parse_atom, value);
}

static int parse_sum(struct parser *parser, struct hx_curve *value) {
    static const char *const tokens[] = {"+", "-", NULL};
    return parse_level(parser, tokens, "+-", parse_product, value);
}

static int parse_comparison(struct parser *parser, struct hx_curve *value) {
    static const char *const tokens[] = {"<=", ">=", "<", ">", NULL};
    return parse_level(parser, tokens, "lg<>", parse_sum, value);
}

static int parse_and(struct parser *parser, struct hx_curve *value) {
    static const char *const tokens[] = {"and", NULL};
    return parse_level(parser, tokens, "&", parse_comparison, value);
}

static int parse_any(struct parser *parser, struct hx_curve *value) {
    static const char *const tokens[] = {"or", NULL};
    if (++parser->depth > DEPTH_MAX) {
        return fail(parser, "nested too deeply");
    }
    int rc = parse_level(parser, tokens, "|", parse_and, value);
    parser->depth--;
    return rc;
}

int hx_claim_eval(const char *text, const struct hx_curve_source *source, struct hx_curve *value, struct dm_err *err) {
    struct parser parser = {.text = text, .at = text, .source = source, .err = err};
    int rc = parse_any(&parser, value);
    if (rc != 0) {
        return rc;
    }
    skip_blanks(&parser);
    if (*parser.at != '\0') {
        return fail(&parser, "something is left over");
    }
    for (size_t i = 0; i < value->count; i++) {
        if (!isfinite(value->y[i])) {
            dm_fail(err, DM_ERR_INVALID, "it has no number: operations of that kind were not measured");
            return DM_NOT_FOUND;
        }
    }
    return 0;
}
