/* SPDX-License-Identifier: Apache-2.0
 *
 * Many points: a set of resolved configurations whose results live in one folder, <out>/points/<hash>.json, and running
 * those that have no result yet, each in a process of its own, several at once. Sweeps and figures use it; a point that
 * two of them share is run once.
 *
 * A configuration with "source": "train" is not a run but a training of models (`dmbench train`), whose result is in
 * <out>/training. Trainings are short and run on this machine alone.
 */
#ifndef DM_HARNESS_POINTS_POINTS_H
#define DM_HARNESS_POINTS_POINTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/opt.h"

enum hx_point_state {
    HX_POINT_ABSENT, /* no result yet */
    HX_POINT_STALE,  /* has a result by other sources than this program's, which counts as none (HX_STALE_RUN) */
    HX_POINT_THERE,  /* its result file is complete and of this schema */
    HX_POINT_FAILED, /* was run, and reported why it failed */
};

/* What happens to results that were made by other sources than this program was built from (harness/run/sources.h). */
enum hx_stale {
    HX_STALE_KEEP,  /* they count as if they were fresh */
    HX_STALE_RUN,   /* they are run again */
    HX_STALE_ADOPT, /* they are marked as fresh */
    HX_STALE_LIST,  /* they are listed, and nothing is run */
};

struct hx_point {
    json_t *config; /* resolved; owned */
    char *label;    /* describes what distinguishes the point; owned */
    char hash[17];
    bool is_memory_implied; /* the config's mn_memory is the size that follows from the rest */
    enum hx_point_state state;
    uint64_t memory_bytes; /* an estimate of what running it takes, with some more (points_cost.h) */
    double cost;           /* an estimate of the time, in seconds */
    double past_s;         /* the time that its result states; 0: has none */
    char error[400];       /* why it failed */
};

struct hx_points {
    struct hx_point *items;
    size_t count;
    size_t capacity;
    char *out;           /* the folder above points/ */
    enum hx_stale stale; /* HX_STALE_KEEP after hx_points_new */
    size_t stale_count;  /* results by other sources, as the last scan found them */
};

/* An empty set over a folder, which need not exist. The caller frees it; NULL when out of memory. */
struct hx_points *hx_points_new(const char *out);
void hx_points_free(struct hx_points *points); /* accepts NULL */

/* Resolves a spec and adds it, or finds the point that is the same; *index is its position. `where` begins errors. */
int hx_points_add(struct hx_points *points, const json_t *spec, const char *where, const char *label, size_t *index,
                  struct dm_err *err);

/* Whether it is a training, not a run. */
bool hx_point_trains(const struct hx_point *point);

/* Whether it runs in real time, where nothing else must run beside it. */
bool hx_point_is_real_time(const struct hx_point *point);

/* Threads of the compute node that has most of them; 0 for a training. */
unsigned hx_point_threads(const struct hx_point *point);

/* Of the points in an order that run in real time, the most threads of clients of one of them, over all its compute
 * nodes: each wants a processor. 0: there are none. */
unsigned hx_points_real_threads(const struct hx_points *points, const size_t *order, size_t count);

/* The folder in <out> of its result: "points" or "training". */
const char *hx_point_folder(const struct hx_point *point);

/* The path of a point's result; the caller frees it. NULL when out of memory. */
char *hx_points_file(const struct hx_points *points, size_t index);

/* The point's result as a new object, or NULL with the reason in err: absent, cut short, of another schema; stale, if
 * the set runs such points again. */
json_t *hx_points_load(const struct hx_points *points, size_t index, struct dm_err *err);

/* Reads the result files and sets every state. Returns how many are to be run. */
size_t hx_points_scan(struct hx_points *points);

/* Marks stale results as fresh, in their files; one that cannot be written is named and stays stale. */
void hx_points_adopt(const struct hx_points *points);

/* Prints the points with stale results, and the components that have changed since. */
void hx_points_list_stale(const struct hx_points *points, FILE *out);

/* One word for a plan: "run", "stale" (run again), "there". */
const char *hx_point_state_word(const struct hx_point *point, bool force);

struct hx_points_options {
    uint64_t jobs;            /* processes at once; 0: one per core, limited by memory */
    bool force;               /* run points that have a result, too */
    bool no_run;              /* take the results that are there, run nothing */
    unsigned stale;           /* enum hx_stale */
    const char *program;      /* what is run as `program run SPEC --out FILE`; NULL: this program */
    const char *sshloginfile; /* run them through GNU parallel on the machines of this file; NULL or "": here */
    const char *slurm;        /* run none, write a Slurm array script to this file; NULL or "": run them */
};

/* The values of --stale, as enum hx_stale. */
extern const char *const hx_stale_names[];

/* Rows of an option table for those that a user sets, with `run` the member of `struct whole` that holds them. */
#define HX_POINTS_ROWS(whole, run)                                                                                     \
    DM_OPT_ROW_AS("jobs", whole, run.jobs, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 4096,                        \
                  .help = "points that run at once; 0: one per core, limited by memory; in real time always one"),     \
        DM_OPT_ROW_AS("sshloginfile", whole, run.sshloginfile, DM_OPT_STRING, .initial = "", .values = "file",         \
                      .help =                                                                                          \
                          "machines for GNU parallel, one a line (\":\" is this one), which share this folder and "    \
                          "the program's path; --jobs is then by machine"),                                            \
        DM_OPT_ROW_AS("slurm", whole, run.slurm, DM_OPT_STRING, .initial = "", .values = "file",                       \
                      .help = "run nothing, write a Slurm array script for the points to this file"),                  \
        DM_OPT_ROW_AS("stale", whole, run.stale, DM_OPT_ENUM, .initial = "run", .choices = hx_stale_names,             \
                      .help =                                                                                          \
                          "results that other sources made than this program was built from: run them again, keep "    \
                          "them as they are, adopt them (mark them as fresh), or list them and run nothing")

/* Runs the points without a result. A point that fails prints one line and the others continue. SIGINT, SIGTERM and
 * SIGHUP stop the children, keep finished results and leave no partial file. Returns the exit status: 0 all points have
 * results, 1 some failed or the folder cannot be written (reported on stderr), 130 interrupted. */
int hx_points_run(struct hx_points *points, const struct hx_points_options *options);

/* Makes a folder and those above it. 0 or DM_ERR_IO. */
int hx_make_folder(const char *path, struct dm_err *err);

/* A file in a folder as a new string; NULL when out of memory. */
char *hx_path_join(const char *folder, const char *name);

#endif
