/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a context, and the regions of leaves (section 3.3). A region is on one memory node; a word on
 * memory node 0 holds its address.
 */
#include "env.h"

enum {
    REGION_LEAVES_LEAST = 16,
    REGION_PARTS = 32,        /* a node's first region has this part of its expected leaves, */
    REGION_SPARE = 2,         /* or, if many nodes share the regions, what makes all of its regions have so many times
                               * its expected leaves */
    REGION_DOUBLES_EVERY = 8, /* regions, or as many as there are memory nodes */
    REGION_BYTES_MAX = 1 << 30,
};

/* The part of an environment that sizes follow from. */
static struct rolex_env env_of(const struct rolex_params *params, const struct ix_shape *shape) {
    return (struct rolex_env){
        .params = params,
        .shape = shape,
        .layout = rolex_layout_of(params, shape),
        .per_leaf = rolex_per_leaf(params),
    };
}

static uint64_t leaves_of(const struct rolex_env *env, unsigned region) {
    return (rolex_region_bytes(env, region) - DM_LINE) / env->layout.wire_bytes;
}

int rolex_env_init(struct rolex_env *env, struct dm_ctx *ctx, const struct rolex_params *params,
                   const struct ix_shape *shape, uint64_t *counts) {
    *env = env_of(params, shape);
    env->ctx = ctx;
    env->counts = counts;
    for (unsigned r = 0; r < ROLEX_REGIONS_MAX; r++) {
        env->leaves[r] = leaves_of(env, r);
    }
    env->words = dm_local_alloc(ctx, ROLEX_WORDS * sizeof(uint64_t));
    return env->words ? rolex_regions_read(env) : DM_ERR_NO_MEMORY;
}

int rolex_head_read(struct rolex_env *env, dm_addr model, struct rolex_head *head) {
    uint64_t *words = env->words + ROLEX_W_HEAD;
    if (dm_addr_is_null(model) || !dm_addr_valid(env->ctx, model, sizeof(*head))) {
        return DM_NOT_FOUND;
    }
    DM_TRY(dm_read(env->ctx, model, words, sizeof(*head)));
    memcpy(head, words, sizeof(*head));
    bool is_model = head->leaves > 0 && head->leaves <= env->params->model_leaves &&
                    head->synonyms == env->params->synonyms &&
                    dm_addr_valid(env->ctx, model, rolex_model_bytes(head->leaves, head->synonyms));
    return is_model ? 0 : DM_NOT_FOUND;
}

/* After how many regions their size doubles: when each memory node has got one, if it is not the user's choice. */
static unsigned doubles_every(const struct rolex_env *env) {
    unsigned mns = env->shape->topology->mns;
    return mns > REGION_DOUBLES_EVERY && env->params->region_bytes == 0 ? mns : REGION_DOUBLES_EVERY;
}

/* Leaves of a node's first region, before the least: its regions double, so all together have 2^n - 1 times as many. */
static uint64_t first_leaves(const struct rolex_env *env) {
    unsigned mns = env->shape->topology->mns;
    uint64_t expected = env->shape->expected_keys / env->per_leaf;
    uint64_t times = (UINT64_C(1) << ROLEX_REGIONS_MAX / doubles_every(env)) - 1;
    return times < REGION_SPARE * REGION_PARTS ? REGION_SPARE * (expected + 2) / times / mns + 1
                                               : expected / REGION_PARTS / mns;
}

uint32_t rolex_region_bytes(const struct rolex_env *env, unsigned region) {
    uint64_t leaves = first_leaves(env);
    leaves = leaves < REGION_LEAVES_LEAST ? REGION_LEAVES_LEAST : leaves;
    uint64_t least = DM_LINE + (uint64_t)REGION_LEAVES_LEAST * env->layout.wire_bytes;
    uint64_t bytes = env->params->region_bytes;
    bytes = bytes == 0 ? DM_LINE + leaves * env->layout.wire_bytes : bytes < least ? least : bytes;
    bytes <<= region / doubles_every(env);
    return bytes > REGION_BYTES_MAX ? REGION_BYTES_MAX : (uint32_t)bytes;
}

double rolex_region_memory(const struct rolex_params *params, const struct ix_shape *shape, double leaves) {
    struct rolex_env env = env_of(params, shape);
    double bytes = 0, last = 0;
    for (unsigned r = 0; r < ROLEX_REGIONS_MAX && leaves > 0; r++) {
        last = rolex_region_bytes(&env, r);
        bytes += last;
        leaves -= (double)leaves_of(&env, r);
    }
    return bytes / shape->topology->mns + last;
}

int rolex_regions_read(struct rolex_env *env) {
    uint64_t *words = env->words + ROLEX_W_REGIONS;
    DM_TRY(dm_read(env->ctx, rolex_reserved(0, ROLEX_AT_REGIONS), words, sizeof(env->regions)));
    memcpy(env->regions, words, sizeof(env->regions));
    for (unsigned r = 0; r < ROLEX_REGIONS_MAX && env->regions[r] != 0; r++) {
        if (rolex_is_claim(env->regions[r])) {
            env->regions[r] = 0;
            break;
        }
        unsigned node = dm_addr_node((dm_addr){env->regions[r]});
        if (node < sizeof(env->current)) {
            env->current[node] = (uint8_t)(r + 1);
        }
    }
    return 0;
}

int rolex_leaf_addr(struct rolex_env *env, uint64_t entry, dm_addr *addr) {
    unsigned region = rolex_entry_region(entry);
    if (region >= ROLEX_REGIONS_MAX || rolex_entry_leaf(entry) >= rolex_region_leaves(env, region)) {
        return DM_NOT_FOUND;
    }
    if (env->regions[region] == 0) {
        DM_TRY(rolex_regions_read(env));
        if (env->regions[region] == 0) {
            return DM_NOT_FOUND;
        }
    }
    *addr = rolex_region_leaf(env, region, rolex_entry_leaf(entry));
    return dm_addr_valid(env->ctx, *addr, env->layout.wire_bytes) ? 0 : DM_NOT_FOUND;
}
