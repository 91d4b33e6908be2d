/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses ranges and tics.
 */
#include "harness/study/figure_axis.h"

#include <math.h>

#include "harness/study/figure_text.h"

/* 1, 2, 2.5 or 5 times a power of ten: the smallest that is at least `wanted`. */
static double nice_step(double wanted) {
    static const double steps[] = {1, 2, 2.5, 5, 10};
    double power = pow(10, floor(log10(wanted)));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i] * power >= wanted * (1 - 1e-9)) {
            return steps[i] * power;
        }
    }
    return 10 * power;
}

static void add_tic(struct hx_axis *axis, double value) {
    if (axis->tic_count < HX_TICS_MAX) {
        axis->tics[axis->tic_count++] = value;
    }
}

static void linear_tics(struct hx_axis *axis, int tics) {
    double step = nice_step((axis->high - axis->low) / tics);
    axis->tic_count = 0;
    for (double i = ceil(axis->low / step - 1e-9); i * step <= axis->high * (1 + 1e-9); i++) {
        add_tic(axis, i * step + 0.0); /* never -0 */
    }
}

/* Powers of ten; where there are few of them also 2 and 5 times these, or all multiples. */
static void log_tics(struct hx_axis *axis) {
    static const double parts[] = {1, 2, 5}, all[] = {1, 1.5, 2, 3, 4, 5, 6, 8};
    double decades = log10(axis->high / axis->low);
    const bool is_short = decades < 0.9;
    size_t count = is_short ? sizeof(all) / sizeof(all[0]) : decades < 3.2 ? 3 : 1;
    int every = decades > 7 ? 2 : 1, last = (int)floor(log10(axis->high));
    axis->tic_count = 0;
    for (int exponent = (int)floor(log10(axis->low)); exponent <= last; exponent += every) {
        for (size_t i = 0; i < count; i++) {
            double value = (is_short ? all[i] : parts[i % 3]) * pow(10, exponent);
            if (value >= axis->low * (1 - 1e-9) && value <= axis->high * (1 + 1e-9)) {
                add_tic(axis, value);
            }
        }
    }
}

/* The largest number below `least` at which an axis up to `most` may begin: 1, 2 or 5 times a power of ten, or any
 * digit times it if the axis is short. */
static double log_floor(double least, double most) {
    double power = pow(10, floor(log10(least)));
    double digits = least / power;
    return most < 8 * least ? floor(digits) * power : digits >= 5 ? 5 * power : digits >= 2 ? 2 * power : power;
}

void hx_axis_y(struct hx_axis *axis, double least, double most, double limit, double head, int tics) {
    most = most > 0 && isfinite(most) ? most : 1;
    axis->tic_count = 0;
    if (axis->log) {
        axis->low = log_floor(least * 0.9, most);
        axis->high = most * pow(most / axis->low, head / (1 - head)) * 1.05;
        log_tics(axis);
        return;
    }
    axis->low = 0;
    bool limited = limit > 0 && most > limit * 0.6;
    axis->high = limited ? limit : most;
    linear_tics(axis, tics);
    axis->high /= 1 - head;
    if (limited) {
        return; /* no tic beyond what is possible */
    }
    double step = axis->tic_count > 1 ? axis->tics[1] - axis->tics[0] : axis->high;
    double last = ceil(axis->high / step - 0.35) * step;
    axis->high = last > axis->high ? last : axis->high;
    axis->tic_count = 0;
    for (double i = 0; i * step <= axis->high * (1 + 1e-9); i++) {
        add_tic(axis, i * step);
    }
}

void hx_axis_x(struct hx_axis *axis, const double *values, size_t count, int tics) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    if (!(low <= high)) {
        low = 0;
        high = 1;
    }
    axis->tic_count = 0;
    if (axis->log && low > 0) {
        axis->low = low / pow(high / low, 0.05) / 1.02;
        axis->high = high * pow(high / low, 0.05) * 1.02;
        for (size_t i = 0; i < count; i++) {
            add_tic(axis, values[i]);
        }
        return;
    }
    axis->log = false;
    double margin = (high > low ? high - low : fabs(high) > 0 ? fabs(high) : 1) * 0.06;
    axis->low = low >= 0 && low < high / 3 ? 0 : low - margin;
    axis->high = high + margin;
    linear_tics(axis, tics);
}

double hx_axis_at(const struct hx_axis *axis, double value) {
    return axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                     : (value - axis->low) / (axis->high - axis->low);
}

void hx_axis_thin(struct hx_axis *axis, double size, double pixels) {
    size_t kept = 0;
    double end = -INFINITY;
    for (size_t i = 0; i < axis->tic_count; i++) {
        char text[32];
        hx_text_number(axis->tics[i], text, sizeof(text));
        double half = hx_text_width(text, size) / 2, at = hx_axis_at(axis, axis->tics[i]) * pixels;
        if (at - half >= end + size * 0.4) {
            axis->tics[kept++] = axis->tics[i];
            end = at + half;
        }
    }
    axis->tic_count = kept;
}
