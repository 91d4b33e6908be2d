/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `dmbench validate`: published measurements as data, the table of micro-benchmarks of one fabric, fitting
 * a profile to a fabric, and measuring what the CPU work units cost on this host.
 */
#ifndef DM_HARNESS_LAB_VALIDATE_H
#define DM_HARNESS_LAB_VALIDATE_H

#include <jansson.h>

#include "harness/lab/micro.h"

/* How a point's value is made of its one or two micro-benchmarks. */
enum hx_published_value {
    HX_MOPS,
    HX_LATENCY_US,
    HX_P50_US,
    HX_P99_US,
    HX_GBITS,         /* payload */
    HX_RATIO_MOPS,    /* a over b */
    HX_RATIO_LATENCY, /* a over b */
    HX_DIFFERENCE_US, /* latency of a less that of b */
};

enum hx_published_bound { HX_NEAR, HX_AT_LEAST };

struct hx_published {
    const char *id, *what, *profile;
    bool is_calibration; /* the profile's numbers come from it: not evidence */
    enum hx_published_value value;
    enum hx_published_bound bound;
    double published, tolerance; /* tolerance as a share */
    const char *source;
    const char *curve; /* points of one plot; NULL: of none */
    const char *series;
    double x;
    struct hx_micro a, b;
    const char *cause; /* why it is out of its tolerance; NULL: it must be within */
};

extern const struct hx_published hx_published_points[];
extern const size_t hx_published_count;

/* The axes of a curve of points. */
struct hx_published_curve {
    const char *name, *x_label, *y_label;
    bool is_log_x;
};
extern const struct hx_published_curve hx_published_curves[];
extern const size_t hx_published_curve_count;

/* The unit of a point's value. */
const char *hx_published_unit(enum hx_published_value value);

/* Measures a point on the simulated fabric. */
int hx_published_measure(const struct hx_published *point, double *model, struct dm_err *err);
bool hx_published_holds(const struct hx_published *point, double model);

/* What became of a point: within its tolerance, out of it for the cause that it names, or out of it without one. */
enum hx_published_verdict { HX_WITHIN, HX_EXPLAINED, HX_OUT };
enum hx_published_verdict hx_published_judge(const struct hx_published *point, double model);

/* Micro-benchmarks of one fabric as a table: a new array of objects with what, bytes, clients, mops and latency_us. */
int hx_micro_table(const struct hx_micro_fabric *fabric, json_t **table, struct dm_err *err);

/* Measures the fabric and writes a profile that inherits from `base` and has what was measured. */
int hx_fit(const struct hx_micro_fabric *fabric, const char *base, const char *path, struct dm_err *err);

/* Measures the costs of work units on this host: a new object, name to ns. */
int hx_cpu_costs(json_t **costs, struct dm_err *err);

/* One dependent access to a structure of so many bytes, at least a line, with so much work before each. */
int hx_access_ns(uint64_t bytes, unsigned between_ns, double *ns, struct dm_err *err);

/* Adds the costs of accesses to local structures of several sizes, which hx_cpu_costs includes. */
int hx_access_costs(json_t *costs, struct dm_err *err);

/* A profile that inherits from `base` with these numbers and one source for all of them, written to `path`. */
int hx_profile_write(const char *path, const char *base, const char *summary, const char *source, json_t *numbers,
                     struct dm_err *err);

#endif
