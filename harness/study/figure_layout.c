/* SPDX-License-Identifier: Apache-2.0
 *
 * Lays a picture out for the width at which it is printed: panels in as many columns as stay readable, the legend in
 * rows that fit, long texts on several lines.
 */
#include "harness/study/figure_layout.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/study/figure_published.h"
#include "harness/study/figure_text.h"

enum {
    COLUMNS_MAX = 4,
    EDGE = 4,           /* around the picture */
    LINE_PLOT_MIN = 96, /* the least width of a panel's plot area */
    BAR_MIN = 8,        /* of a bar */
    CASE_NAME_MAX = 40, /* of a name of a case that decides about columns */
    GAP_MIN = 6,        /* between cases */
    SAMPLE = 22,        /* of a line in the legend */
    SAMPLE_GAP = 4,     /* to its name */
    ENTRY_GAP = 12,     /* to the next one */
    ROTATED_DEGREES = 40,
};

/* ---- the legend ------------------------------------------------------------------------------------------------- */

static struct hx_fig_entry *entry_add(struct hx_fig_layout *layout) {
    static struct hx_fig_entry lost;
    return layout->entry_count < HX_ENTRIES_MAX ? &layout->entries[layout->entry_count++] : &lost;
}

static void add_curves(struct hx_picture *picture, bool marked) {
    const struct hx_figure *figure = picture->figure;
    size_t variants = hx_picture_variants(picture);
    if (figure->series_count * variants < 2 && figure->published_count == 0 && !marked) {
        return;
    }
    for (size_t series = 0; series < figure->series_count; series++) {
        for (size_t metric = 0; metric < variants; metric++) {
            const char *label = figure->series[series].label;
            const char *what = !picture->plot->over_time ? picture->plot->y[metric].label
                               : variants == 1           ? ""
                                                         : figure->cases[metric].label;
            bool alone = figure->series_count == 1 && what[0] != '\0';
            struct hx_fig_entry *entry = entry_add(&picture->layout);
            *entry = (struct hx_fig_entry){.kind = HX_ENTRY_CURVE, .series = series, .metric = metric};
            snprintf(entry->text, sizeof(entry->text), "%s%s%s", alone ? "" : label,
                     !alone && what[0] != '\0' ? ", " : "", what);
        }
    }
}

/* Each name once, whatever the panel. */
static void add_published(struct hx_picture *picture) {
    const struct hx_figure *figure = picture->figure;
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        bool again = picture->plot != &figure->plots[item->plot];
        for (size_t k = 0; k < i; k++) {
            again = again ||
                    (figure->published[k].plot == item->plot && strcmp(figure->published[k].label, item->label) == 0);
        }
        if (!again) {
            struct hx_fig_entry *entry = entry_add(&picture->layout);
            *entry = (struct hx_fig_entry){.kind = HX_ENTRY_PUBLISHED, .item = i};
            snprintf(entry->text, sizeof(entry->text), "%s", item->label);
        }
    }
}

static bool is_marked(const struct hx_picture *picture) {
    bool marked = false;
    for (size_t i = 0; i < picture->marks->count; i++) {
        marked = marked || hx_picture_mark_number(picture, i) > 0;
    }
    return marked;
}

static void add_marks(struct hx_picture *picture) {
    struct hx_fig_entry *entry = entry_add(&picture->layout);
    *entry = (struct hx_fig_entry){.kind = HX_ENTRY_MARK};
    snprintf(entry->text, sizeof(entry->text), "paper's claim (below)");
}

static double entry_width(const struct hx_fig_entry *entry) {
    return SAMPLE + SAMPLE_GAP + hx_text_width(entry->text, HX_FONT_LABEL);
}

/* Positions the entries in centred rows between `left` and `right`. Returns the number of rows. */
static int flow(struct hx_fig_layout *layout, double left, double right, double top) {
    int rows = 0;
    for (size_t first = 0; first < layout->entry_count; rows++) {
        double used = entry_width(&layout->entries[first]);
        size_t end = first + 1;
        while (end < layout->entry_count && used + ENTRY_GAP + entry_width(&layout->entries[end]) <= right - left) {
            used += ENTRY_GAP + entry_width(&layout->entries[end++]);
        }
        double x = (left + right - used) / 2;
        for (; first < end; first++) {
            layout->entries[first].x = x > left ? x : left;
            layout->entries[first].y = top + (rows + 0.5) * HX_LEGEND_STEP;
            x += entry_width(&layout->entries[first]) + ENTRY_GAP;
        }
    }
    return rows;
}

/* `head` is the share of the axis above the highest value. */
static void set_y_axes(struct hx_picture *picture, double plot_height, double head) {
    bool log = hx_picture_is_log(picture);
    for (size_t panel = 0; panel < picture->figure->panel_count; panel++) {
        double least, most;
        hx_picture_range(picture, panel, &least, &most);
        picture->y_axes[panel] = (struct hx_axis){.log = log && least > 0 && isfinite(least)};
        hx_axis_y(&picture->y_axes[panel], least, most, picture->plot->y_limit, head, (int)(plot_height / 20));
        for (size_t kept = picture->y_axes[panel].tic_count; (double)kept * 11 > plot_height && kept > 2;) {
            struct hx_axis *axis = &picture->y_axes[panel]; /* a logarithmic axis of many decades */
            for (kept = 0; kept * 2 < axis->tic_count; kept++) {
                axis->tics[kept] = axis->tics[kept * 2];
            }
            axis->tic_count = kept;
        }
    }
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

/* The widest text beside a y axis. */
static double y_tics_width(const struct hx_picture *picture) {
    double most = 0;
    for (size_t panel = 0; panel < picture->figure->panel_count; panel++) {
        for (size_t i = 0; i < picture->y_axes[panel].tic_count; i++) {
            char text[32];
            hx_text_number(picture->y_axes[panel].tics[i], text, sizeof(text));
            double width = hx_text_width(text, HX_FONT_TIC);
            most = width > most ? width : most;
        }
    }
    return most;
}

/* Of the longest word in the names of cases. */
static double longest_word(const struct hx_figure *figure) {
    double most = 0;
    for (size_t i = 0; i < figure->case_count; i++) {
        char words[HX_TITLE_BYTES];
        hx_text_wrap(figure->cases[i].label, HX_FONT_TIC, 1, words, sizeof(words));
        double width = hx_text_width(words, HX_FONT_TIC);
        most = width > most ? width : most;
    }
    return most;
}

/* A case of bars has space for them and for a name, unless that is very long. */
static double least_plot_width(const struct hx_picture *picture) {
    if (!picture->plot->bars) {
        return LINE_PLOT_MIN;
    }
    double bars = picture->plot->stacked ? 1 : (double)picture->figure->series_count;
    double word = longest_word(picture->figure) + 4;
    double least = bars * BAR_MIN + GAP_MIN, name = word < CASE_NAME_MAX ? word : CASE_NAME_MAX;
    double all = (double)picture->figure->case_count * (least > name ? least : name);
    return all > LINE_PLOT_MIN ? all : LINE_PLOT_MIN;
}

/* The names of cases below their bars: beside each other if they fit, otherwise at an angle. */
static void set_case_names(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    const struct hx_figure *figure = picture->figure;
    double slot = hx_picture_plot_width(picture) / (double)figure->case_count, longest = 0;
    int lines = 1;
    layout->rotated = false;
    for (size_t i = 0; i < figure->case_count; i++) {
        char wrapped[HX_TITLE_BYTES];
        int own = hx_text_wrap(figure->cases[i].label, HX_FONT_TIC, slot - 3, wrapped, sizeof(wrapped));
        lines = own > lines ? own : lines;
        layout->rotated = layout->rotated || own > 3 || hx_text_width(wrapped, HX_FONT_TIC) > slot - 2;
        snprintf(wrapped, sizeof(wrapped), "%s", figure->cases[i].label);
        for (char *at = strchr(wrapped, '\n'); at != NULL; at = strchr(at, '\n')) {
            *at = ' ';
        }
        double width = hx_text_width(wrapped, HX_FONT_TIC);
        longest = width > longest ? width : longest;
    }
    layout->panel_bottom =
        layout->rotated ? longest * sin(ROTATED_DEGREES * M_PI / 180) + HX_FONT_TIC + 8 : 6 + lines * (HX_FONT_TIC + 2);
}

/* Columns, and the heights of rows. */
static void set_cells(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    size_t panels = picture->figure->panel_count;
    double space = layout->width - layout->left - EDGE;
    int title_lines = 0;
    layout->panel_left = y_tics_width(picture) + 7;
    layout->panel_right = 5;
    layout->columns = (size_t)(space / (layout->panel_left + layout->panel_right + least_plot_width(picture)));
    layout->columns = layout->columns > COLUMNS_MAX ? COLUMNS_MAX : layout->columns;
    layout->columns = layout->columns > panels ? panels : layout->columns;
    layout->columns = layout->columns < 1 ? 1 : layout->columns;
    layout->rows = (panels + layout->columns - 1) / layout->columns;
    layout->cell_width = space / (double)layout->columns;
    for (size_t panel = 0; panel < panels; panel++) {
        char wrapped[HX_TITLE_BYTES];
        const char *label = picture->figure->panels[panel].label;
        int lines = hx_text_wrap(label, HX_FONT_LABEL, hx_picture_plot_width(picture), wrapped, sizeof(wrapped));
        title_lines = label[0] != '\0' && lines > title_lines ? lines : title_lines;
    }
    layout->panel_top = title_lines > 0 ? 10 + title_lines * 11 : 6;
    layout->panel_bottom = HX_FONT_TIC + 7;
    if (picture->plot->bars) {
        set_case_names(picture);
    }
}

static double plot_height(const struct hx_picture *picture) {
    double width = hx_picture_plot_width(picture);
    double height = width * (picture->figure->panel_count == 1 ? 0.6 : 0.75);
    double least = picture->plot->bars ? 100 : 90;
    double most = picture->figure->panel_count == 1 ? 210 : 130;
    return height < least ? least : height > most ? most : height;
}

/* Free space above bars for their numbers, which may be upright. */
static double head_of(const struct hx_picture *picture, double height) {
    return picture->plot->bars && picture->plot->y_limit == 0 ? 26 / height : 0.06;
}

static void set_head(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    layout->title_lines = hx_text_wrap(picture->plot->title, HX_FONT_TITLE, layout->width - 2 * EDGE, layout->title,
                                       sizeof(layout->title));
    layout->top = EDGE + layout->title_lines * (HX_FONT_TITLE + 3) + 2;
}

/* The legend takes a free cell if it fits there, else rows of its own below the title. */
static void set_legend(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    size_t panels = picture->figure->panel_count;
    double left = layout->left + (double)(panels % layout->columns) * layout->cell_width;
    double right = layout->width - EDGE;
    int rows = flow(layout, left, right, 0);
    bool fits = panels % layout->columns != 0 && rows * HX_LEGEND_STEP <= layout->cell_height - 10;
    for (size_t i = 0; i < layout->entry_count; i++) {
        fits = fits && entry_width(&layout->entries[i]) <= right - left;
    }
    if (fits) {
        double top = layout->top + (double)(layout->rows - 1) * layout->cell_height;
        flow(layout, left, right, top + (layout->cell_height - rows * HX_LEGEND_STEP) / 2);
        return;
    }
    rows = flow(layout, EDGE, layout->width - EDGE, layout->top);
    layout->top += rows * HX_LEGEND_STEP + (rows > 0 ? 3 : 0);
}

/* The lines below the panels, and the height of the whole. */
static void set_foot(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    char notes[HX_NOTES_BYTES];
    double bottom = layout->top + (double)layout->rows * layout->cell_height;
    const char *x_label = picture->plot->by_metric ? picture->plot->x.label : picture->figure->x_label;
    layout->foot = bottom + 7;
    bottom += x_label[0] != '\0' ? 15 : 4;
    hx_picture_notes(picture, notes, sizeof(notes));
    layout->note_lines =
        hx_text_wrap(notes, HX_FONT_NOTE, layout->width - 2 * EDGE, layout->notes, sizeof(layout->notes));
    layout->height = bottom + layout->note_lines * (HX_FONT_NOTE + 2) + EDGE + 2;
}

void hx_picture_layout(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    layout->width = floor(picture->look->width_cm / 2.54 * 96);
    bool marked = is_marked(picture);
    add_curves(picture, marked);
    add_published(picture);
    if (marked) {
        add_marks(picture);
    }
    set_head(picture);
    if (picture->plot->table) {
        hx_picture_grid_size(picture);
        return;
    }
    layout->left = EDGE + HX_FONT_LABEL + 4;
    set_y_axes(picture, 110, 0.1);
    set_cells(picture);
    double height = plot_height(picture);
    char label[HX_TITLE_BYTES];
    snprintf(label, sizeof(label), "%s%s", picture->plot->y_label, picture->y_axes[0].log ? ", log" : "");
    layout->y_label_lines =
        hx_text_wrap(label, HX_FONT_LABEL, (double)layout->rows * (height + layout->panel_top + layout->panel_bottom),
                     layout->y_label, sizeof(layout->y_label));
    layout->left = EDGE + layout->y_label_lines * (HX_FONT_LABEL + 2) + 2;
    set_y_axes(picture, height, head_of(picture, height));
    set_cells(picture);
    layout->cell_height = layout->panel_top + height + layout->panel_bottom;
    set_legend(picture);
    set_foot(picture);
}
