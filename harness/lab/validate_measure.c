/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring a published point on the simulated fabric, and judging what comes out.
 */
#include "harness/lab/validate.h"

const char *hx_published_unit(enum hx_published_value value) {
    static const char *const units[] = {"M/s", "us", "us", "us", "Gbit/s", "", "", "us"};
    return units[value];
}

int hx_published_measure(const struct hx_published *point, double *model, struct dm_err *err) {
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = point->profile, .seed = 1, .is_virtual = true};
    struct hx_micro_result a, b = {0};
    DM_TRY(hx_micro_run(&fabric, &point->a, &a, err));
    if (point->value >= HX_RATIO_MOPS) {
        DM_TRY(hx_micro_run(&fabric, &point->b, &b, err));
    }
    switch (point->value) {
    case HX_MOPS:
        *model = a.mops;
        break;
    case HX_LATENCY_US:
        *model = a.latency_us;
        break;
    case HX_P50_US:
        *model = a.p50_us;
        break;
    case HX_P99_US:
        *model = a.p99_us;
        break;
    case HX_GBITS:
        *model = a.mops * point->a.bytes * 8 / 1e3;
        break;
    case HX_RATIO_MOPS:
        *model = a.mops / b.mops;
        break;
    case HX_RATIO_LATENCY:
        *model = a.latency_us / b.latency_us;
        break;
    case HX_DIFFERENCE_US:
        *model = a.latency_us - b.latency_us;
        break;
    }
    return 0;
}

bool hx_published_holds(const struct hx_published *point, double model) {
    double ratio = model / point->published;
    return ratio >= 1 - point->tolerance && (point->bound == HX_AT_LEAST || ratio <= 1 + point->tolerance);
}

enum hx_published_verdict hx_published_judge(const struct hx_published *point, double model) {
    return hx_published_holds(point, model) ? HX_WITHIN : point->cause ? HX_EXPLAINED : HX_OUT;
}
