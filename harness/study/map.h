/* SPDX-License-Identifier: Apache-2.0
 *
 * A map of who wins: the plane of two parameters, with the best system and its lead. A coarse grid of positions is run
 * first; then cells are divided where the winner changes or leads by little, so that points are spent along borders.
 */
#ifndef DM_HARNESS_STUDY_MAP_H
#define DM_HARNESS_STUDY_MAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/err.h"
#include "harness/points/points.h"

enum { HX_MAP_SYSTEMS_MAX = 32, HX_MAP_POSITIONS_MAX = 129, HX_MAP_NO_WINNER = -1 };

/* The positions that a parameter can take on the finest grid. */
struct hx_map_axis {
    char option[128]; /* "clients"; "scan_min+scan_max": both; "mix.update": its share, the rest are reads */
    char label[128];
    double *values;
    char **texts; /* as an option takes them */
    size_t count;
    bool is_log, is_bytes;
    bool has_names; /* a value is no number, but the number of its position */
};

struct hx_map_system {
    char label[64];
    json_t *config; /* owned; has the index */
    size_t refused; /* positions whose configuration is not possible */
    size_t failed;  /* positions that were run without a result */
    char reason[400];
};

/* What one system did at one position. */
struct hx_map_sample {
    double value; /* of the metric; NAN: none */
    char point[17];
};

/* A rectangle of positions whose corners were run, all ends inclusive. */
struct hx_map_cell {
    size_t low[2], high[2];
};

struct hx_map_best {
    int system, second; /* HX_MAP_NO_WINNER where there is none */
    double lead;        /* how much better than the second, as a share of it; INFINITY without a second */
};

struct hx_map {
    char id[128];
    char title[256];
    char scale[8]; /* of a map with a name; "": of the command line's options */
    struct hx_map_axis axes[2];
    json_t *base; /* the spec below all points; owned */
    struct hx_map_system systems[HX_MAP_SYSTEMS_MAX];
    size_t system_count;
    char metric[128]; /* a path in results */
    bool is_lowest;   /* the lowest value is the best one */
    double margin;    /* cells whose winner leads by less are divided */
    size_t start;     /* positions an axis to begin with */
    bool *is_run;     /* of every position, x slowest */
    struct hx_map_sample *samples;
    struct hx_map_best *bests; /* of every position, once all is run */
    struct hx_map_cell *cells;
    size_t cell_count, cell_capacity;
};

void hx_map_fini(struct hx_map *map);

/* Parses "NAME=LOW..HIGH[/POSITIONS][:log|:linear]" or "NAME=V,V,V...". Without a scale an axis is logarithmic if HIGH
 * is 16 times LOW or more. DM_ERR_INVALID with what is wrong. */
int hx_map_axis_parse(const char *text, size_t positions, struct hx_map_axis *axis, struct dm_err *err);

/* Puts the axis' value into a spec. */
int hx_map_axis_put(const struct hx_map_axis *axis, size_t at, json_t *spec, struct dm_err *err);

/* Adds a system; `config` is not consumed. */
int hx_map_add_system(struct hx_map *map, const char *label, const json_t *config, struct dm_err *err);

/* Reads plots/maps/ID.json at a scale ("quick" or "paper"). */
int hx_map_load(const char *plots, const char *id, const char *scale, size_t positions, struct hx_map *map,
                struct dm_err *err);

/* Prepares the first cells. The map's other members are set. */
int hx_map_begin(struct hx_map *map, struct dm_err *err);

/* Adds the points of the first positions to `points`, for a plan. */
int hx_map_first_points(struct hx_map *map, struct hx_points *points, struct dm_err *err);

/* Runs the points that are needed and divides cells until none has to be; results are kept in `out` as those of
 * figures. Systems that can run nowhere are an error. Returns the exit status of hx_points_run, or with err set a
 * failure. */
int hx_map_run(struct hx_map *map, const char *out, const struct hx_points_options *options, struct dm_err *err);

/* The best system at a position, after hx_map_run: as it was run, or else as at the nearest position that was. */
struct hx_map_best hx_map_best_at(const struct hx_map *map, size_t x, size_t y);

size_t hx_map_position(const struct hx_map *map, size_t x, size_t y);

/* Positions that were run. */
size_t hx_map_run_count(const struct hx_map *map);

/* Writes FOLDER/ID.{json,csv,md} and the data and program of the picture, FOLDER/ID.{tsv,gp}, which loads style.gp of
 * the folder `plots`. */
int hx_map_write(const struct hx_map *map, const char *folder, const char *plots, struct dm_err *err);

/* The table of winners, as Markdown. */
void hx_map_print(const struct hx_map *map, FILE *out);

/* Of map_plot.c: the data and the program of the picture. */
int hx_map_plot(const struct hx_map *map, const char *folder, const char *plots, struct dm_err *err);

#endif
