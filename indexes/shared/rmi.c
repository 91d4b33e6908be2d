/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of two-level linear models. Bounds are computed with the function that predicts, after the parameters have
 * been rounded, so that they are exact.
 */
#include "indexes/shared/rmi.h"

uint64_t ix_rmi_first_key(const struct ix_rmi_top *top, uint32_t number) {
    uint64_t low = 0, high = UINT64_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (ix_rmi_pick(top, ix_rmi_coord(top, middle)) >= number) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void ix_rmi_fit_add(struct ix_rmi_fit *fit, double x, double y) {
    if (fit->count == 0) {
        fit->x0 = x;
        fit->y0 = y;
    }
    x -= fit->x0;
    y -= fit->y0;
    fit->count += 1;
    fit->x += x;
    fit->y += y;
    fit->xx += x * x;
    fit->xy += x * y;
}

/* The least-squares line through the points; its slope is never negative. */
static void fit_line(const struct ix_rmi_fit *fit, double *slope, double *intercept) {
    if (fit->count == 0) {
        *slope = *intercept = 0;
        return;
    }
    double spread = fit->xx - fit->x * fit->x / fit->count;
    double common = fit->xy - fit->x * fit->y / fit->count;
    *slope = spread > 0 && common > 0 ? common / spread : 0;
    *intercept = fit->y0 + (fit->y - *slope * fit->x) / fit->count - *slope * fit->x0;
}

/* A parameter too large for a float becomes 0: the model is constant then, and its bounds are wide. */
static float narrow(double value) {
    const double most = 0x1p120;
    return value < most && value > -most ? (float)value : 0;
}

struct ix_rmi_model ix_rmi_fit_model(const struct ix_rmi_fit *fit) {
    double slope, intercept;
    fit_line(fit, &slope, &intercept);
    return (struct ix_rmi_model){.slope = narrow(slope), .intercept = narrow(intercept)};
}

struct ix_rmi_top ix_rmi_fit_top(const struct ix_rmi_fit *fit, uint64_t base, uint32_t models) {
    struct ix_rmi_top top = {.base = base, .models = models};
    fit_line(fit, &top.slope, &top.intercept);
    top.slope *= (double)models;
    top.intercept *= (double)models;
    return top;
}

static uint16_t bound_of(uint16_t now, int64_t wanted) {
    return wanted <= now ? now : wanted < IX_RMI_BOUND_MAX ? (uint16_t)wanted : IX_RMI_BOUND_MAX;
}

void ix_rmi_widen(struct ix_rmi_model *model, uint32_t number, double coord, int64_t last, int64_t least,
                  int64_t most) {
    int64_t predicted = ix_rmi_predict(model, number, coord, last);
    model->over = bound_of(model->over, least - predicted);
    model->under = bound_of(model->under, predicted - most);
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

struct array {
    const uint64_t *keys;
    uint64_t count, slots, fill;
};

static int64_t position_of(const struct array *array, uint64_t rank) {
    return (int64_t)(rank / array->fill * array->slots + rank % array->fill);
}

/* Trains sub-model `number` on keys number first .. last - 1, for which it is picked. */
static struct ix_rmi_model train_model(const struct array *array, const struct ix_rmi_top *top, uint32_t number,
                                       uint64_t first, uint64_t last) {
    struct ix_rmi_fit fit = {0};
    for (uint64_t i = first; i < last; i++) {
        ix_rmi_fit_add(&fit, ix_rmi_coord(top, array->keys[i]) - number, (double)position_of(array, i));
    }
    uint64_t before = first > 0 ? first - 1 : 0;
    if (first == last) {
        ix_rmi_fit_add(&fit, 0, (double)position_of(array, before));
    }
    struct ix_rmi_model model = ix_rmi_fit_model(&fit);
    int64_t end = position_of(array, array->count - 1);
    for (uint64_t i = first; i < last; i++) {
        int64_t position = position_of(array, i);
        ix_rmi_widen(&model, number, ix_rmi_coord(top, array->keys[i]), end, position, position);
    }
    /* The gaps to the keys of the neighbouring models: an absent key there is between the keys on either side. */
    uint64_t low = ix_rmi_first_key(top, number);
    uint64_t high = number + 1 < top->models ? ix_rmi_first_key(top, number + 1) : UINT64_MAX;
    ix_rmi_widen(&model, number, ix_rmi_coord(top, low), end, position_of(array, before), INT64_MAX / 2);
    if (high > low) {
        uint64_t after = last < array->count ? last : array->count - 1;
        ix_rmi_widen(&model, number, ix_rmi_coord(top, high - 1), end, INT64_MIN / 2, position_of(array, after));
    }
    return model;
}

void ix_rmi_train(struct ix_rmi *rmi, const uint64_t *keys, uint64_t count, uint32_t slots, uint32_t fill,
                  uint64_t sample) {
    struct array array = {keys, count, slots, fill};
    struct ix_rmi_fit fit = {0};
    uint32_t models = rmi->top.models;
    for (uint64_t i = 0; i < count; i += sample) {
        ix_rmi_fit_add(&fit, (double)(keys[i] - keys[0]), (double)i / (double)count);
    }
    rmi->top = ix_rmi_fit_top(&fit, count > 0 ? keys[0] : 0, models);
    uint64_t first = 0;
    for (uint32_t number = 0; number < models; number++) {
        uint64_t last = first;
        while (last < count && ix_rmi_pick(&rmi->top, ix_rmi_coord(&rmi->top, keys[last])) == number) {
            last++;
        }
        rmi->models[number] =
            count > 0 ? train_model(&array, &rmi->top, number, first, last) : (struct ix_rmi_model){0};
        if (rmi->counts) {
            rmi->counts[number] = (uint32_t)(last - first);
        }
        first = last;
    }
}
