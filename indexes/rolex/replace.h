/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacing a model by new ones over the same leaves; the steps are in replace.c.
 */
#ifndef DM_INDEXES_ROLEX_REPLACE_H
#define DM_INDEXES_ROLEX_REPLACE_H

#include "env.h"

/* A leaf of a model that is being replaced. */
struct rolex_member {
    uint64_t low, high;
    uint64_t entry; /* region and number */
    uint32_t count; /* of keys */
    uint32_t place; /* in the new leaf tables, laid end to end; of a carried one that of the leaf it is a synonym of */
    bool is_carried;
};

/* A line over some places in a row. */
struct rolex_piece {
    struct ix_plr_model line;
    uint32_t first, count;
};

/* Where a model is taken apart: sized for the largest. */
struct rolex_work {
    uint64_t *words;              /* its tables: as in remote memory */
    uint64_t *found;              /* results of atomics */
    struct rolex_member *members; /* all leaves there are now, by their bounds */
    uint32_t member_count;
    struct rolex_member *trained; /* those that training saw */
    uint32_t trained_count;
    struct rolex_piece *pieces;
    uint32_t piece_count;
    uint64_t *addrs;  /* of what is made: a model a piece */
    char *lines;      /* the first line of each leaf */
    uint64_t *object; /* a model or a fork to be written */
    struct ix_plr *plr;
    uint32_t member_max;
};
struct rolex_work *rolex_work_open(const struct rolex_params *params);
void rolex_work_close(struct rolex_work *work);

/* Replaces a model: locks all of it, takes stock of its leaves, makes new models of them, leads there. With pieces in
 * work (from training) those are used as far as they still fit; else lines over the leaves' bounds alone are made here.
 * 0; DM_EXISTS: somebody else is at it, or has been; DM_ERR_NO_MEMORY and other failures leave the model as it was.
 * [waits] */
int rolex_replace(struct rolex_env *env, struct rolex_work *work, dm_addr model, bool trained);

/* Closes a piece: work->pieces gets the segment that begins at place `first`. */
int rolex_piece_add(struct rolex_work *work, const struct ix_plr_segment *segment, uint32_t first, uint32_t count);

#endif
