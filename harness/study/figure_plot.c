/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the gnuplot program of a plot: title, legend, panels and notes, each at its position.
 */
#include "harness/study/figure_plot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/output_file.h"
#include "harness/study/figure_layout.h"
#include "harness/study/figure_published.h"
#include "harness/study/figure_text.h"

/* ---- axes ------------------------------------------------------------------------------------------------------- */

static void write_margins(const struct hx_picture *picture, size_t cell) {
    const struct hx_fig_layout *layout = &picture->layout;
    size_t whole = cell / layout->columns;
    double row = (double)whole;
    double left = layout->left + (double)(cell % layout->columns) * layout->cell_width;
    double top = layout->top + row * layout->cell_height;
    fprintf(picture->file,
            "    set lmargin at screen %.4f; set rmargin at screen %.4f\n"
            "    set tmargin at screen %.4f; set bmargin at screen %.4f\n",
            (left + layout->panel_left) / layout->width,
            (left + layout->cell_width - layout->panel_right) / layout->width,
            1 - (top + layout->panel_top) / layout->height,
            1 - (top + layout->cell_height - layout->panel_bottom) / layout->height);
}

static void write_axis(const struct hx_picture *picture, char name, const struct hx_axis *axis) {
    double low = axis->low;
    if (axis->log) {
        fprintf(picture->file, "    set logscale %c\n", name);
        low *= 1 - 1e-6; /* gnuplot may find a tic at the very end to be outside */
    }
    fprintf(picture->file, "    set %crange [%.10g:%.10g]\n    set %ctics (", name, low, axis->high, name);
    for (size_t i = 0; i < axis->tic_count; i++) {
        char text[32];
        hx_text_number(axis->tics[i], text, sizeof(text));
        fprintf(picture->file, "%s\"%s\" %.10g", i > 0 ? ", " : "", text, axis->tics[i]);
    }
    fprintf(picture->file, ")\n");
}

static void write_cases(const struct hx_picture *picture) {
    const struct hx_figure *figure = picture->figure;
    double slot = hx_picture_plot_width(picture) / (double)figure->case_count;
    fprintf(picture->file, "    set xtics (");
    for (size_t at = 0; at < figure->case_count; at++) {
        char text[HX_TITLE_BYTES];
        hx_text_wrap(figure->cases[at].label, HX_FONT_TIC, slot - 3, text, sizeof(text));
        for (char *line = strchr(text, '\n'); picture->layout.rotated && line != NULL; line = strchr(line, '\n')) {
            *line = ' ';
        }
        fprintf(picture->file, "%s", at > 0 ? ", " : "");
        hx_picture_quote_tic(picture->file, text);
        fprintf(picture->file, " %zu", at);
    }
    fprintf(picture->file, ") nomirror scale 0%s\n    set xrange [-0.6:%zu - 0.4]\n",
            picture->layout.rotated ? " rotate by 40 right" : "", figure->case_count);
}

static void write_axes(const struct hx_picture *picture, size_t panel) {
    if (picture->plot->bars) {
        write_cases(picture);
    } else {
        struct hx_axis axis;
        hx_picture_x_axis(picture, panel, &axis);
        write_axis(picture, 'x', &axis);
    }
    write_axis(picture, 'y', &picture->y_axes[panel]);
}

/* ---- panels ----------------------------------------------------------------------------------------------------- */

/* gnuplot's distance of lines depends on the terminal, so each line is a label of its own. `first` is the middle of the
 * first one; `x` is where `how` has its left end or middle. */
static void write_lines(const struct hx_picture *picture, const char *text, double x, double first, double step,
                        const char *how) {
    char line[HX_NOTES_BYTES];
    for (double y = first;; y += step) {
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        fprintf(picture->file, "    set label ");
        hx_picture_quote(picture->file, line);
        fprintf(picture->file, " at screen %.5f, %.5f %s\n", x / picture->layout.width, 1 - y / picture->layout.height,
                how);
        if (text[length] == '\0') {
            return;
        }
        text += length + 1;
    }
}

/* A panel that lacks points shows how many instead of partial curves, which could be mistaken for results. */
static void write_missing(const struct hx_picture *picture, size_t missing) {
    size_t total = picture->figure->series_count * picture->figure->case_count;
    fprintf(picture->file,
            "    set label 9999 \"not drawn:\\n%zu of %zu points\\nare missing\" at graph 0.5, graph 0.6 center\n"
            "    unset xtics; unset ytics\n    plot [0:1] [0:1] NaN notitle\n    unset label 9999; eval restore_tics\n",
            missing, total);
}

static void write_panel(const struct hx_picture *picture, size_t panel) {
    char title[HX_TITLE_BYTES];
    fprintf(picture->file, "\n    # ---- panel %zu\n", panel + 1);
    write_margins(picture, panel);
    const struct hx_fig_layout *layout = &picture->layout;
    size_t whole = panel / layout->columns;
    double row = (double)whole;
    double left = layout->left + (double)(panel % layout->columns) * layout->cell_width + layout->panel_left;
    double bottom = layout->top + row * layout->cell_height + layout->panel_top;
    int lines = hx_text_wrap(picture->figure->panels[panel].label, HX_FONT_LABEL, hx_picture_plot_width(picture), title,
                             sizeof(title));
    if (title[0] != '\0') {
        write_lines(picture, title, left + hx_picture_plot_width(picture) / 2, bottom - 5 - 11 * (lines - 0.5), 11,
                    "center font font_label");
    }
    size_t missing = hx_fig_data_missing(picture->figure, picture->data, panel);
    if (missing > 0) {
        write_missing(picture, missing);
        return;
    }
    write_axes(picture, panel);
    hx_picture_curves(picture, panel);
    fprintf(picture->file, "    unset logscale; eval restore_tics\n");
}

/* ---- the legend ------------------------------------------------------------------------------------------------- */

/* Two lines of program for an entry: its sample, and its name. */
static void write_entry(const struct hx_picture *picture, const struct hx_fig_entry *entry) {
    const struct hx_fig_layout *layout = &picture->layout;
    const struct hx_figure *figure = picture->figure;
    double left = entry->x / layout->width, right = (entry->x + 22) / layout->width;
    double middle = (left + right) / 2, y = 1 - entry->y / layout->height, half = 3.5 / layout->height;
    const char *style = entry->kind == HX_ENTRY_CURVE ? figure->series[entry->series].style : "";
    if (entry->kind == HX_ENTRY_MARK) {
        fprintf(picture->file, "    set label \"\" at screen %.5f, %.5f point linestyle style_claim\n", middle, y);
    } else if (entry->kind == HX_ENTRY_PUBLISHED) {
        const struct hx_fig_published *item = &figure->published[entry->item];
        fprintf(picture->file,
                "    set label \"\" at screen %.5f, %.5f point linestyle style_of(\"%s\", %zu) pointsize 0.8%s\n",
                middle, y, item->style, item->metric + 1, picture->plot->bars ? " linecolor rgb color_claim" : "");
    } else if (picture->plot->bars) {
        fprintf(picture->file, "    set object rectangle from screen %.5f, %.5f to screen %.5f, %.5f fillcolor rgb ",
                left + 5 / layout->width, y - half, right, y + half);
        if (picture->plot->stacked) {
            fprintf(picture->file, "part_color(%zu)", entry->metric);
        } else {
            fprintf(picture->file, "color_of(\"%s\")", style);
        }
        fprintf(picture->file, " fillstyle solid 0.9 noborder\n");
    } else {
        fprintf(picture->file,
                "    set arrow from screen %.5f, %.5f to screen %.5f, %.5f nohead linestyle style_of(\"%s\", %zu)\n",
                left, y, right, y, style, entry->metric);
        if (!picture->plot->over_time) {
            fprintf(picture->file, "    set label \"\" at screen %.5f, %.5f point linestyle style_of(\"%s\", %zu)\n",
                    middle, y, style, entry->metric);
        }
    }
    fprintf(picture->file, "    set label ");
    hx_picture_quote(picture->file, entry->text);
    fprintf(picture->file, " at screen %.5f, %.5f left font font_label\n", right + 4 / layout->width, y);
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static void write_head(const struct hx_picture *picture) {
    const struct hx_figure *figure = picture->figure;
    const struct hx_fig_plot *plot = picture->plot;
    const struct hx_fig_look *look = picture->look;
    fprintf(
        picture->file,
        "# Figure %s, plot %s, made by `dmbench figure %s --scale %s`.\n"
        "# To change it: edit, then run `gnuplot %s.gp` in this folder. Colours, lines and fonts are in ../style.gp,\n"
        "# the numbers in %s.tsv. Width: %g cm.\n"
        "# Shows: %s\n# Keeps: %s\n\n",
        figure->id, plot->id, figure->id, figure->scale, plot->id, plot->id, look->width_cm, figure->shows,
        figure->keeps);
    fprintf(picture->file,
            "name = \"%s\"\ndata = name.\".tsv\"\nwidth = %.0f\nheight = %.0f\nkinds = \"%s%s%s\"\nload "
            "\"../style.gp\"\n\n",
            plot->id, picture->layout.width, ceil(picture->layout.height), look->png ? "png " : "",
            look->svg ? "svg " : "", look->pdf ? "pdf" : "");
    fprintf(picture->file,
            "pick(panel, series, y) = strcol(\"panel\") eq panel && strcol(\"series\") eq series ? y : NaN\n\n");
}

static void write_texts(const struct hx_picture *picture) {
    const struct hx_fig_layout *layout = &picture->layout;
    double width = layout->width, height = layout->height;
    double middle = layout->top + (double)layout->rows * layout->cell_height / 2;
    write_lines(picture, layout->title, width / 2, 4 + HX_FONT_TITLE * 0.62, HX_FONT_TITLE + 3,
                "center font font_title");
    write_lines(picture, layout->notes, 4, height - 4 - (HX_FONT_NOTE + 2) * (layout->note_lines - 0.5),
                HX_FONT_NOTE + 2, "left font font_note textcolor rgb color_note");
    if (picture->plot->table) {
        return;
    }
    fprintf(picture->file, "    set label ");
    hx_picture_quote(picture->file, layout->y_label);
    fprintf(picture->file, " at screen %.5f, %.5f center rotate by 90 font font_label\n    set label ",
            (4 + HX_FONT_LABEL * 0.6) / width, 1 - middle / height);
    hx_picture_quote(picture->file, picture->plot->by_metric ? picture->plot->x.label : picture->figure->x_label);
    fprintf(picture->file, " at screen %.5f, %.5f center font font_label\n",
            (layout->left + layout->panel_left + width - 4) / 2 / width, 1 - layout->foot / height);
    for (size_t i = 0; i < layout->entry_count; i++) {
        write_entry(picture, &layout->entries[i]);
    }
}

/* What is outside of panels is drawn with the first one. */
static void write_body(const struct hx_picture *picture) {
    fprintf(picture->file, "do for [kind in kinds] {\n    eval open(kind)\n    set multiplot\n    eval panel_look\n");
    write_texts(picture);
    if (picture->plot->stacked) {
        fprintf(picture->file, "    set datafile missing \"-\"\n"); /* a part that is not there has no height */
    }
    if (picture->plot->table) {
        hx_picture_grid(picture);
        fprintf(picture->file, "    unset border; unset tics; unset key\n    plot [0:1] [0:1] NaN notitle\n");
    }
    for (size_t panel = 0; panel < picture->figure->panel_count && !picture->plot->table; panel++) {
        write_panel(picture, panel);
        fprintf(picture->file, "    unset label; unset arrow; unset object\n");
    }
    fprintf(picture->file, "    unset multiplot\n    unset output\n    reset\n    load \"../style.gp\"\n}\n");
}

int hx_fig_program(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                   const struct hx_fig_data *data, const struct hx_fig_marks *marks, const struct hx_fig_look *look,
                   const char *path, struct dm_err *err) {
    struct hx_picture *picture = calloc(1, sizeof(*picture));
    struct hx_axis *axes = calloc(figure->panel_count, sizeof(*axes));
    FILE *file = picture != NULL && axes != NULL ? dm_output_open(path, err) : NULL;
    int rc = picture == NULL || axes == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for %s", path)
             : file == NULL                  ? DM_ERR_IO
                                             : 0;
    if (rc == 0) {
        *picture = (struct hx_picture){.file = file,
                                       .figure = figure,
                                       .plot = plot,
                                       .points = points,
                                       .data = data,
                                       .marks = marks,
                                       .look = look,
                                       .y_axes = axes};
        hx_picture_layout(picture);
        write_head(picture);
        write_body(picture);
        rc = dm_output_close(file, path, err);
    }
    free(axes);
    free(picture);
    return rc;
}
