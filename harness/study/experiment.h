/* SPDX-License-Identifier: Apache-2.0
 *
 * End-to-end validation: what others measured of whole indexes on real NICs, beside what the simulated fabric gives
 * under their conditions. A published experiment is data (plots/end_to_end/<id>.json): where it is from, its settings
 * and where those are stated, how far ours differ, and its points. A point has a value, what the value is, and what
 * limits it, which sets its tolerance. No parameter of the fabric is set by these values.
 *
 *   experiment.c reads and checks a file, experiment_judge.c makes its points and compares, experiment_text.c writes.
 */
#ifndef DM_HARNESS_STUDY_EXPERIMENT_H
#define DM_HARNESS_STUDY_EXPERIMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/points/points.h"

/* What a published value is. */
enum hx_exp_metric {
    HX_EXP_MOPS,            /* millions of operations a second in all */
    HX_EXP_MEAN,            /* latency of all operations together, in us */
    HX_EXP_P50,             /* */
    HX_EXP_P90,             /* */
    HX_EXP_P99,             /* */
    HX_EXP_US_A_ROUND_TRIP, /* by how many us each dependent READ prolongs an operation, from two runs */
    HX_EXP_METRICS
};

/* What limits a point. Links and PCIe are known better than clients' processors and contention are. */
enum hx_exp_bound { HX_EXP_BANDWIDTH, HX_EXP_OTHER, HX_EXP_BOUNDS };

enum hx_exp_verdict {
    HX_EXP_IN,      /* within the tolerance of its bound */
    HX_EXP_OUT,     /* not */
    HX_EXP_NOT_RUN, /* the file has the reason */
    HX_EXP_FAILED,  /* should have been run and has no result */
};

/* Pointers into the experiment's spec. */
struct hx_exp_point {
    const char *label;
    enum hx_exp_metric metric;
    enum hx_exp_bound bound;
    double published;
    const char *differs; /* how its conditions differ, beside what all points of the experiment have; "" */
    const char *cause;   /* why it is out of its tolerance; "" */
    const char *not_run; /* why it cannot be run; NULL: it can */
    const json_t *config, *quick, *against; /* NULL: nothing of its own */
    size_t runs[2];                         /* its points in the set; the second only for metrics of two runs */
    enum hx_exp_verdict verdict;
    double ours; /* NaN unless it is in or out */
};

/* Two points whose published order is judged: `more` has the greater value. */
enum hx_exp_order { HX_EXP_HOLDS, HX_EXP_BROKEN, HX_EXP_TIE, HX_EXP_UNJUDGED };
struct hx_exp_pair {
    size_t more, less;
    enum hx_exp_order order;
};

struct hx_experiment {
    json_t *spec; /* owned */
    char *file;   /* its path, for errors; owned */
    const char *id, *title, *source, *settings, *differs;
    const json_t *config, *quick;
    struct hx_exp_point *points;
    size_t point_count;
    struct hx_exp_pair *pairs; /* of all lists of the member `orders` */
    size_t pair_count;
};

/* Reads <plots>/end_to_end/<id>.json. DM_ERR_INVALID with file and member for an unknown or missing member, a value of
 * a wrong type or out of range, a label that occurs twice, an order that the published values contradict. The caller
 * frees it. */
int hx_experiment_load(const char *plots, const char *id, struct hx_experiment **experiment, struct dm_err *err);
void hx_experiment_free(struct hx_experiment *experiment); /* accepts NULL */

/* Adds the runs of all points that can be run to the set. `paper`: as published, else at the size of the member
 * `quick`. */
int hx_experiment_runs(struct hx_experiment *experiment, bool paper, struct hx_points *points, struct dm_err *err);

/* Compares the points with what their runs measured. Points without a result have failed, or, with `as_is`, are not run
 * yet. */
void hx_experiment_judge(struct hx_experiment *experiment, const struct hx_points *points, bool as_is);

/* The factor by which a point of this bound may be off, up or down. */
double hx_exp_tolerance(enum hx_exp_bound bound);

/* max(r, 1 / r) of ours over published. */
double hx_exp_factor(const struct hx_exp_point *point);

extern const char *const hx_exp_metric_names[HX_EXP_METRICS + 1]; /* as in the files; ends with NULL */
extern const char *const hx_exp_bound_names[HX_EXP_BOUNDS + 1];

/* ---- all of them ------------------------------------------------------------------------------------------------ */

struct hx_exp_sum {
    size_t in[HX_EXP_BOUNDS], out[HX_EXP_BOUNDS];
    size_t unexplained; /* of those that are out, without a named cause */
    size_t not_run, failed;
    size_t holds, broken, ties, unjudged; /* pairs in published orders */
    double typical[HX_EXP_BOUNDS + 1];    /* geometric mean of the factors by bound, then of all; NaN: of none */
};

struct hx_exp_sum hx_experiments_sum(struct hx_experiment *const *experiments, size_t count);

/* One line each, then the counts. */
void hx_experiments_print(struct hx_experiment *const *experiments, size_t count, FILE *out);

/* For documents: the counts as the first line, a table of the experiments, then a part for each experiment. */
void hx_experiments_markdown(struct hx_experiment *const *experiments, size_t count, FILE *out);

/* All of it as a new object; NULL when out of memory. */
json_t *hx_experiments_object(struct hx_experiment *const *experiments, size_t count, const char *scale);

#endif
