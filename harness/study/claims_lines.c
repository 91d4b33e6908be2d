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

/* The middle of the expected range, in the plot's unit: a ratio is multiplied by its denominator. */
static double line_height(const struct hx_check *check) {
    double middle = isinf(check->low) ? check->high : isinf(check->high) ? check->low : (check->low + check->high) / 2;
    return check->over != NULL ? middle * check->base.over : middle;
}

int hx_claims_lines(const struct hx_claims *claims, const struct hx_figure *figure, struct hx_fig_lines *lines,
                    struct dm_err *err) {
    *lines = (struct hx_fig_lines){.count = 0};
    for (size_t i = 0; i < claims->count; i++) {
        for (size_t k = 0; k < claims->items[i].check_count; k++) {
            const struct hx_check *check = &claims->items[i].checks[k];
            if (check->line_plot == NULL || strcmp(check->figure, figure->id) != 0) {
                continue;
            }
            struct hx_fig_line line = {
                .plot = check->line_plot, .panel = line_panel(figure, check->line_panel), .y = line_height(check)};
            if (line.panel == SIZE_MAX || !isfinite(line.y) || check->base.verdict == HX_NOT_RUN) {
                continue;
            }
            snprintf(line.label, sizeof(line.label), "%.30s: %.30s", claims->items[i].id, check->what);
            struct hx_fig_line *items = realloc(lines->items, (lines->count + 1) * sizeof(*items));
            if (items == NULL) {
                return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for lines");
            }
            lines->items = items;
            items[lines->count++] = line;
        }
    }
    return 0;
}
