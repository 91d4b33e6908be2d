/* SPDX-License-Identifier: Apache-2.0
 *
 * Piecewise linear regression; plr.h describes the method. "Above" are the upper points (x, y + epsilon), of which the
 * builder keeps the lower convex hull; "below" are the lower points, with their upper hull.
 */
#include "indexes/shared/plr.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

struct point {
    uint64_t x; /* key minus the first key */
    int64_t y;
};

/* The vertices from `start` on are those that a line may still touch. */
struct hull {
    struct point *points;
    uint32_t start, count, capacity;
};

/* A line, given by the two points that it touches. */
struct tangent {
    struct point from, to;
};

struct ix_plr {
    int64_t epsilon;
    uint64_t count, first_key, first_position, last_key, last_position;
    struct hull above, below;
    struct tangent least,
        greatest; /* least: from an upper point to a lower one; greatest: from a lower point to an upper one */
};

/* The sign of slope(a, b) - slope(c, d); b right of a, d right of c. */
static inline int slope_compare(struct point a, struct point b, struct point c, struct point d) {
    dm_int128 left = (dm_int128)(b.y - a.y) * (d.x - c.x);
    dm_int128 right = (dm_int128)(d.y - c.y) * (b.x - a.x);
    return (left > right) - (left < right);
}

static int hull_reserve(struct hull *hull) {
    if (dm_likely(hull->count < hull->capacity)) {
        return 0;
    }
    if (hull->start > hull->capacity / 2) {
        hull->count -= hull->start;
        memmove(hull->points, hull->points + hull->start, hull->count * sizeof(*hull->points));
        hull->start = 0;
        return 0;
    }
    uint32_t capacity = hull->capacity == 0 ? 64 : 2 * hull->capacity;
    struct point *points = capacity > hull->capacity ? realloc(hull->points, capacity * sizeof(*points)) : NULL;
    if (!points) {
        return DM_ERR_NO_MEMORY;
    }
    hull->points = points;
    hull->capacity = capacity;
    return 0;
}

/* Adds the rightmost point and removes the vertices that are inside the hull now. `turn` is 1 for a lower hull (slopes
 * ascend), -1 for an upper one. */
static void hull_push(struct hull *hull, struct point point, int turn) {
    struct point *points = hull->points;
    while (hull->count >= hull->start + 2 &&
           slope_compare(points[hull->count - 2], points[hull->count - 1], points[hull->count - 1], point) * turn >=
               0) {
        hull->count--;
    }
    points[hull->count++] = point;
}

/* Turns the line through `point` until it touches the hull. `turn` is 1 to find the least slope, -1 for the greatest.
 * Vertices left of the one that it touches will never be touched again. */
static struct tangent hull_touch(struct hull *hull, struct point point, int turn) {
    const struct point *points = hull->points;
    uint32_t at = hull->start;
    while (at + 1 < hull->count && slope_compare(points[at + 1], point, points[at], point) * turn <= 0) {
        at++;
    }
    hull->start = at;
    return (struct tangent){points[at], point};
}

int ix_plr_open(uint32_t epsilon, struct ix_plr **out) {
    *out = NULL;
    if (epsilon > IX_PLR_EPSILON_MAX) {
        return DM_ERR_INVALID;
    }
    struct ix_plr *plr = calloc(1, sizeof(*plr));
    if (!plr) {
        return DM_ERR_NO_MEMORY;
    }
    plr->epsilon = epsilon;
    *out = plr;
    return 0;
}

void ix_plr_close(struct ix_plr *plr) {
    if (plr) {
        free(plr->above.points);
        free(plr->below.points);
        free(plr);
    }
}

/* Both hulls have space for one more vertex. */
static void segment_begin(struct ix_plr *plr, uint64_t key, uint64_t position) {
    plr->count = 1;
    plr->first_key = plr->last_key = key;
    plr->first_position = plr->last_position = position;
    plr->above.start = plr->above.count = plr->below.start = plr->below.count = 0;
    hull_push(&plr->above, (struct point){0, plr->epsilon}, 1);
    hull_push(&plr->below, (struct point){0, -plr->epsilon}, -1);
}

/* Adds the key at x to the segment. False if no line fits all keys then: nothing has changed. */
static bool segment_take(struct ix_plr *plr, uint64_t x, int64_t y) {
    struct point high = {x, y + plr->epsilon};
    struct point low = {x, y - plr->epsilon};
    if (plr->count == 1) {
        plr->least = (struct tangent){plr->above.points[0], low};
        plr->greatest = (struct tangent){plr->below.points[0], high};
        hull_push(&plr->above, high, 1);
        hull_push(&plr->below, low, -1);
        return true;
    }
    struct tangent *least = &plr->least;
    struct tangent *greatest = &plr->greatest;
    if (slope_compare(least->from, high, least->from, least->to) < 0 ||
        slope_compare(greatest->from, low, greatest->from, greatest->to) > 0) {
        return false;
    }
    bool from_above = slope_compare(greatest->from, high, greatest->from, greatest->to) < 0;
    bool from_below = slope_compare(least->from, low, least->from, least->to) > 0;
    if (from_above) {
        *greatest = hull_touch(&plr->below, high, 1);
        hull_push(&plr->above, high, 1);
    }
    if (from_below) {
        *least = hull_touch(&plr->above, low, -1);
        hull_push(&plr->below, low, -1);
    }
    return true;
}

static double slope_of(struct tangent tangent) {
    return (double)(tangent.to.y - tangent.from.y) / (double)(tangent.to.x - tangent.from.x);
}

static void segment_model(const struct ix_plr *plr, struct ix_plr_model *model) {
    double slope = plr->count > 1 ? (slope_of(plr->least) + slope_of(plr->greatest)) / 2 : 0;
    slope = slope < 0 ? 0 : slope;
    const struct point *high = plr->above.points;
    const struct point *low = plr->below.points;
    double most = (double)high[plr->above.start].y - slope * (double)high[plr->above.start].x;
    double least = (double)low[plr->below.start].y - slope * (double)low[plr->below.start].x;
    for (uint32_t i = plr->above.start + 1; i < plr->above.count; i++) {
        double allowed = (double)high[i].y - slope * (double)high[i].x;
        most = allowed < most ? allowed : most;
    }
    for (uint32_t i = plr->below.start + 1; i < plr->below.count; i++) {
        double needed = (double)low[i].y - slope * (double)low[i].x;
        least = needed > least ? needed : least;
    }
    *model = (struct ix_plr_model){plr->first_key, slope, (least + most) / 2};
}

int ix_plr_finish(struct ix_plr *plr, struct ix_plr_segment *closed) {
    if (plr->count == 0) {
        return 0;
    }
    segment_model(plr, &closed->model);
    closed->first_position = plr->first_position;
    closed->last_position = plr->last_position;
    closed->last_key = plr->last_key;
    closed->count = plr->count;
    plr->count = 0;
    return 1;
}

int ix_plr_add(struct ix_plr *plr, uint64_t key, uint64_t position, struct ix_plr_segment *closed) {
    if (plr->count > 0 && (key <= plr->last_key || position < plr->last_position)) {
        return DM_ERR_INVALID;
    }
    DM_TRY(hull_reserve(&plr->above));
    DM_TRY(hull_reserve(&plr->below));
    int rc = 0;
    if (plr->count > 0) {
        uint64_t y = position - plr->first_position;
        if (y < IX_PLR_SPAN_MAX && segment_take(plr, key - plr->first_key, (int64_t)y)) {
            plr->count++;
            plr->last_key = key;
            plr->last_position = position;
            return 0;
        }
        rc = ix_plr_finish(plr, closed);
    }
    segment_begin(plr, key, position);
    return rc;
}
