/* SPDX-License-Identifier: Apache-2.0
 *
 * Judged claims as lines across the plots of figures.
 */
#include "harness/study/claims_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t line_panel(const struct hx_figure *figure, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < figure->panel_count; i++) {
        if (strncmp(figure->panels[i].label, name, length) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* A number of the expected range in the plot's unit: a ratio is multiplied by its denominator. */
static double height(const struct hx_check *check, double expected) {
    return check->over != NULL ? expected * check->base.over : expected;
}

/* "paper: 4.3 x Sherman", "paper: 1 to 1.2 x Sherman", "paper: 0.95, span 64" */
static void line_label(const struct hx_claim *claim, const struct hx_check *check, double middle, char *label,
                       size_t capacity) {
    char number[48];
    const char *what = check->what;
    bool over = check->over != NULL && strncmp(what, "over ", 5) == 0;
    if (isfinite(check->low) && isfinite(check->high) && check->low < check->high) {
        snprintf(number, sizeof(number), "%.4g to %.4g", check->low, check->high);
    } else {
        snprintf(number, sizeof(number), "%s%.4g",
                 isinf(check->high)  ? "at least "
                 : isinf(check->low) ? "at most "
                                     : "",
                 middle);
    }
    snprintf(label, capacity, "paper: %s%s%.30s (%.30s)", number,
             over              ? " x "
             : what[0] != '\0' ? check->over != NULL ? " x, " : ", "
                               : "",
             over ? what + 5 : what, claim->id);
}

/* 0 where nothing is drawn: the check was not run, or the panel does not exist. */
static bool make_line(const struct hx_claim *claim, const struct hx_check *check, const struct hx_figure *figure,
                      struct hx_fig_line *line) {
    double middle = isinf(check->low) ? check->high : isinf(check->high) ? check->low : (check->low + check->high) / 2;
    bool range = isfinite(check->low) && isfinite(check->high);
    *line = (struct hx_fig_line){.plot = check->line_plot,
                                 .panel = line_panel(figure, check->line_panel),
                                 .y = height(check, middle),
                                 .low = range ? height(check, check->low) : 0,
                                 .high = range ? height(check, check->high) : 0};
    line_label(claim, check, middle, line->label, sizeof(line->label));
    return line->panel != SIZE_MAX && isfinite(line->y) && check->base.verdict != HX_NOT_RUN;
}

static int add_line(struct hx_fig_lines *lines, const struct hx_fig_line *line, struct dm_err *err) {
    struct hx_fig_line *items = realloc(lines->items, (lines->count + 1) * sizeof(*items));
    if (items == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for lines");
    }
    lines->items = items;
    items[lines->count++] = *line;
    return 0;
}

int hx_claims_lines(const struct hx_claims *claims, const struct hx_figure *figure, struct hx_fig_lines *lines,
                    struct dm_err *err) {
    *lines = (struct hx_fig_lines){.count = 0};
    for (size_t i = 0; i < claims->count; i++) {
        for (size_t k = 0; k < claims->items[i].check_count; k++) {
            const struct hx_check *check = &claims->items[i].checks[k];
            struct hx_fig_line line;
            bool drawn = check->line_plot != NULL && strcmp(check->figure, figure->id) == 0 &&
                         make_line(&claims->items[i], check, figure, &line);
            DM_TRY(drawn ? add_line(lines, &line, err) : 0);
        }
    }
    return 0;
}
