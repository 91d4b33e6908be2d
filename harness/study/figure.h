/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of a figure. A spec (plots/figures/<id>.json) is data: the points, and the plots that are drawn from them.
 * Its axes are panels x series x cases, each with a label and a partial configuration; a combination of the three is a
 * slot; the configuration of a point is the figure's own, then the scale's, the panel's, the series' and the case's,
 * later ones winning member by member.
 *
 * A scale with a `factor` is a smaller version of the paper's: the options that the spec lists as `scaled` (keys, ops,
 * warmup and cache by default) are divided by the factor, or by their own member of `factors`, wherever paper, panel,
 * series or case set them, and the scale's own config is merged over that. `--scale NUMBER` does the same with any
 * factor.
 *
 * The paper's scale may have a `share`, 10, 100 or 1000, where its sizes take too much memory: they are divided by
 * that.
 *
 * A named change of the whole figure (figure_overlay.h) is in the paper's sizes, divided as the figure's own are, and
 * merged before the case; what it has for a case is merged over the case.
 *
 * A scale may say how many seeds each point has (`seeds`, otherwise 1). Claims read the first.
 *
 * Systems that are not built here are left out of series and cases, and listed in the figure.
 *
 *   figure.c reads and checks a spec, figure_points.c makes its points, figure_data.c loads what they measured,
 *   figure_table.c writes the tables, figure_plot.c the gnuplot programs.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_H
#define DM_HARNESS_STUDY_FIGURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "harness/study/figure_overlay.h"

enum { HX_METRICS_MAX = 6 };

/* A panel, a series or a case of the x axis. Pointers into the spec, except a case's config. */
struct hx_fig_item {
    const char *label;
    const char *style;    /* series: name of a style in plots/systems.json; by default the index's, one of the others
                             if another series has it */
    const json_t *config; /* NULL: nothing of its own */
};

/* A system that the spec asks for and that is not built here. Pointers into the spec. */
struct hx_fig_absent {
    const char *label, *index;
};

/* A number of a result: path, what it is multiplied by, the table's column and a label. With `over`, a list of paths,
 * it is divided by the sum of their numbers. With `plus`, their numbers are added to it. `otherwise` (in a spec:
 * "else") is used if a result has no such number: another path, or a number. */
struct hx_fig_metric {
    const char *path, *column, *label;
    const json_t *otherwise; /* a text, a number, or NULL */
    const json_t *over, *plus;
    double factor;
    bool host_time; /* measured in real time, so that another host has another number */
};

struct hx_fig_plot {
    const char *id;
    const char *title;
    bool bars;
    bool stacked;   /* bars: the metrics are parts of a whole, drawn on each other */
    bool table;     /* numbers, not a picture of them */
    bool by_metric; /* x is a metric too, in the order of the cases */
    bool over_time; /* x is time: every case of a series is a curve of its own, of columns of `over_time` */
    struct hx_fig_metric x;
    struct hx_fig_metric y[HX_METRICS_MAX];
    size_t y_count;
    const char *y_label;
    bool x_log;
    enum { HX_Y_BY_DATA, HX_Y_LINEAR, HX_Y_LOG } y_scale;
    double y_limit;   /* no value can be greater, as 100 %; 0: there is none */
    size_t reference; /* bars: the case to which gains are relative; SIZE_MAX: none */
};

struct hx_fig_published;

struct hx_figure {
    json_t *spec;         /* owned */
    json_t *styles;       /* owned: plots/systems.json */
    json_t *cases_config; /* owned: the configurations of the values of the x option */
    const char *id, *title, *shows, *keeps;
    char scale[32];                      /* "quick", "paper", "1/20", "1/10 of paper" */
    const json_t *config, *scale_config; /* with a divisor scale_config is the paper's */
    const json_t *over_config;           /* of a scale with a factor: merged over the divided options; or NULL */
    double divisor;                      /* of the scaled options; 0: the scale has a complete configuration */
    const json_t *divisors;              /* divisors of single options, instead of that; NULL: none */
    const json_t *scaled;                /* the spec's list; NULL: the usual ones */
    bool is_own;                         /* no paper has it */
    bool cases_as_is;                    /* the scale has its own x: nothing to divide */
    struct hx_fig_absent *absent;
    size_t absent_count;
    unsigned repeat;     /* seeds per slot: as many as the scale has after hx_figure_load; may be changed before
                            hx_figure_points */
    const char *profile; /* replaces the spec's own; NULL after hx_figure_load; borrowed */
    struct hx_fig_overlays overlays;
    const struct hx_fig_overlay *overlay; /* one of them that the points have; NULL after hx_figure_load */
    struct hx_fig_item *panels, *series, *cases;
    size_t panel_count, series_count, case_count;
    const char *x_option; /* NULL: the cases have names, not numbers */
    const char *x_label;
    double x_factor;
    bool x_log;
    struct hx_fig_plot *plots;
    size_t plot_count;
    struct hx_fig_published *published; /* figure_published.h */
    size_t published_count;
    size_t *points; /* [panel][series][case][seed]: index in the set of points; filled by hx_figure_points */
};

enum { HX_FIG_REPEAT_MAX = 1000 };

/* Reads <plots>/figures/<id>.json for a scale ("quick", "paper", or a number that the paper's sizes are divided by) and
 * checks all of it: an unknown or missing member, a wrong type, a missing scale, an index that is neither built nor in
 * <plots>/systems.json are errors with file and member path. The caller frees it. A figure without any built system has
 * no series, thus no points. */
int hx_figure_load(const char *plots, const char *id, const char *scale, struct hx_figure **figure, struct dm_err *err);
void hx_figure_free(struct hx_figure *figure); /* accepts NULL */

/* Refuses an invalid scale; the error names the option. */
int hx_figure_check_scale(const char *option, const char *scale, struct dm_err *err);

/* Sorted ids of the specs in <plots>/figures, NULL-terminated; the caller frees it with hx_figure_ids_free. */
int hx_figure_ids(const char *plots, char ***ids, struct dm_err *err);
void hx_figure_ids_free(char **ids); /* accepts NULL */

/* The same for the specs in another folder of plots. */
int hx_spec_ids(const char *plots, const char *folder, char ***ids, struct dm_err *err);

/* Fails with the message that no figure has that name, and suggests the nearest id, or the ids with the same figure
 * number. Returns DM_ERR_INVALID. */
int hx_figure_fail_unknown(struct dm_err *err, const char *name, const char *const *ids, size_t count);

/* The options that a smaller scale divides. */
size_t hx_figure_scaled(const struct hx_figure *figure);
const char *hx_figure_scaled_option(const struct hx_figure *figure, size_t i);

/* The divisor of an option of the paper's scale: 1 for one that is not scaled. */
double hx_figure_divisor(const struct hx_figure *figure, const char *option);

/* The number of slots: panels x series x cases. */
static inline size_t hx_figure_slots(const struct hx_figure *figure) {
    return figure->panel_count * figure->series_count * figure->case_count;
}

/* The point of a slot and seed. */
static inline size_t hx_figure_point(const struct hx_figure *figure, size_t slot, unsigned seed) {
    return figure->points[slot * figure->repeat + seed];
}

/* The number of a slot. */
static inline size_t hx_figure_at(const struct hx_figure *figure, size_t panel, size_t series, size_t at) {
    return (panel * figure->series_count + series) * figure->case_count + at;
}

/* Reads a metric without a column, {"path": ..., "over": [...], "factor": ...}. Pointers into the object. */
int hx_fig_metric_read(const json_t *object, const char *where, struct hx_fig_metric *metric, struct dm_err *err);

/* "Not built here: FG, EMT-D", or "". */
void hx_fig_absent_text(const struct hx_figure *figure, char *text, size_t capacity);

#endif
