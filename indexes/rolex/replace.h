/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacing a model by new ones over the same leaves; the steps are in replace.c.
 */
#ifndef DM_INDEXES_ROLEX_REPLACE_H
#define DM_INDEXES_ROLEX_REPLACE_H

#include "env.h"

/* A leaf of a model. */
struct rolex_member {
    uint64_t low, high;
    uint64_t entry; /* region and number */
    uint32_t count; /* keys in it */
    uint32_t index; /* in the leaf table. When the model is replaced: in the concatenated new leaf tables; a carried
                       leaf has the index of its trained leaf */
    bool is_carried;
};

/* In the order of their bounds. */
void rolex_members_sort(struct rolex_member *members, uint32_t count);

/* A line over consecutive leaves, which becomes a model. */
struct rolex_piece {
    struct ix_plr_model line;
    uint32_t first, count;
};

/* The buffers for a replacement, sized for the largest model. */
struct rolex_work {
    uint64_t *words;              /* the model's tables, as in remote memory */
    uint64_t *found;              /* results of atomics */
    struct rolex_member *members; /* all current leaves, in the order of their bounds */
    uint32_t member_count;
    struct rolex_member *trained; /* those that training read */
    uint32_t trained_count;
    struct rolex_piece *pieces;
    uint32_t piece_count;
    uint64_t *addrs;  /* of the new models, one for each piece */
    char *lines;      /* the first line of each leaf */
    uint64_t *object; /* a model or a fork before it is written */
    struct ix_plr *plr;
    uint32_t member_max;
};
struct rolex_work *rolex_work_open(const struct rolex_params *params);
void rolex_work_close(struct rolex_work *work);

/* Replaces a model: locks all of it, reads the bounds of its leaves, writes new models over the same leaves and makes
 * the pointers lead to them. If `trained`, the pieces in work come from training and are used if they still match the
 * leaves; otherwise lines over the leaves' bounds alone are fitted here. 0; DM_EXISTS: another context is replacing the
 * model, or has done so; DM_ERR_NO_MEMORY and other failures leave the model as it was. [waits] */
int rolex_replace(struct rolex_env *env, struct rolex_work *work, dm_addr model, bool trained);

/* Appends the segment of leaves first .. first + count - 1 to work->pieces. */
int rolex_piece_add(struct rolex_work *work, const struct ix_plr_segment *segment, uint32_t first, uint32_t count);

#endif
