/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous retraining on a memory node (sections 3.5 and 4.6). Workers, one for each core, take models from the
 * circular queues, first those that are about to run out of synonyms. Training reads tables and leaves with the node's
 * own processor while clients change them, so it may read inconsistent bytes: its result is lines over leaves with the
 * bounds that it read. rolex_replace then reads the bounds under the lock, with verbs, and uses a line only over leaves
 * whose bounds have not changed.
 */
#include "retrain.h"

#include <stdlib.h>

#include "replace.h"

enum { POLL_NS = 20000, UNWRITTEN_POLLS = 64, PAUSE_POLLS = 100000 };

struct rolex_worker {
    struct rolex_server *server;
    struct rolex_env env;
    struct rolex_work *work;
    char *wire, *image;
    uint64_t counts[ROLEX_COUNTER_COUNT];
};

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Adds the leaf to those for training, if its bounds are within this model. */
static void member_take(struct rolex_worker *worker, const struct rolex_head *head, uint64_t entry) {
    struct rolex_work *work = worker->work;
    dm_addr addr;
    char line[DM_LINE];
    entry = rolex_entry_link(entry, 0);
    if (work->trained_count == work->member_max || rolex_leaf_addr(&worker->env, entry, &addr) != 0 ||
        dm_addr_node(addr) != worker->server->node) {
        return;
    }
    dm_cpu_read(worker->env.ctx, addr, line, sizeof(line));
    dm_charge(worker->env.ctx, DM_WORK_DRAM_ACCESS, 1);
    const char *image = line + ix_lines_wire_offset(0);
    struct rolex_member member = {.low = rolex_low(image), .high = rolex_high(image), .entry = entry};
    if (member.low >= head->low && member.low < member.high && member.high <= head->high) {
        work->trained[work->trained_count++] = member;
    }
}

/* Lists the leaves in the order of their bounds; false if they cannot be those of a model. */
static bool members_collect(struct rolex_worker *worker, dm_addr model, const struct rolex_head *head) {
    struct rolex_work *work = worker->work;
    uint64_t *slots = work->words;
    uint64_t *table = slots + 1 + head->synonyms;
    dm_cpu_read(worker->env.ctx, rolex_slots(model), slots, 8 * (1 + (uint32_t)head->synonyms + head->leaves));
    work->trained_count = 0;
    for (uint32_t leaf = 0; leaf < head->leaves; leaf++) {
        uint64_t entry = table[leaf];
        member_take(worker, head, entry);
        unsigned slot = rolex_entry_synonym(entry);
        for (unsigned n = 0; slot != 0 && slot <= head->synonyms && slots[slot] != 0 && n < head->synonyms; n++) {
            member_take(worker, head, slots[slot]);
            slot = rolex_entry_synonym(slots[slot]);
        }
    }
    rolex_members_sort(work->trained, work->trained_count);
    for (uint32_t i = 1; i < work->trained_count; i++) {
        if (work->trained[i].low == work->trained[i - 1].low) {
            return false;
        }
    }
    return work->trained_count > 0 && work->trained[0].low == head->low;
}

/* Adds the point of a leaf's lower bound. If it does not fit, it ends a piece and begins the next. */
static int bound_add(struct rolex_worker *worker, uint64_t low, uint64_t label, uint32_t index, uint32_t *first) {
    struct ix_plr_segment segment;
    int rc = ix_plr_add(worker->work->plr, low, label, &segment);
    if (rc == 1) {
        DM_TRY(rolex_piece_add(worker->work, &segment, *first, index - *first));
        *first = index;
    }
    return rc < 0 ? rc : 0;
}

/* Adds the points of one leaf: its lower bound, and its keys spread over its labels. 1: a piece has ended, and the
 * caller must add the leaf again, to the next piece. */
static int leaf_train(struct rolex_worker *worker, uint32_t index, uint32_t *first) {
    const struct rolex_env *env = &worker->env;
    const struct rolex_member *member = &worker->work->trained[index];
    uint64_t label = (uint64_t)index * env->per_leaf;
    dm_addr addr;
    if (rolex_leaf_addr(&worker->env, member->entry, &addr) != 0) {
        return DM_ERR_IO;
    }
    dm_cpu_read(env->ctx, addr, worker->wire, env->layout.wire_bytes);
    ix_lines_decode(worker->wire, env->layout.wire_bytes, worker->image);
    uint32_t count = rolex_count(&env->layout, worker->image);
    uint64_t high = index + 1 < worker->work->trained_count ? member[1].low : member->high;
    dm_charge(env->ctx, DM_WORK_TRAIN_KEY, count + 1);
    DM_TRY(bound_add(worker, member->low, label, index, first));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = rolex_key(worker->image, i);
        if (key <= member->low || key >= high) {
            continue; /* torn, or moved to the next leaf since */
        }
        struct ix_plr_segment segment;
        int rc = ix_plr_add(worker->work->plr, key, label + (uint64_t)i * env->per_leaf / count, &segment);
        if (rc == 1) {
            /* The segment that ended is valid for the leaves before this one. */
            if (index > *first) {
                DM_TRY(rolex_piece_add(worker->work, &segment, *first, index - *first));
            }
            (void)ix_plr_finish(worker->work->plr, &segment);
            *first = index;
            return 1;
        }
        if (rc < 0 && rc != DM_ERR_INVALID) {
            return rc;
        }
    }
    return 0;
}

/* A leaf whose own keys need two lines gets one over its lower bound alone, which is enough to find every key. */
static int leaf_train_bound(struct rolex_worker *worker, uint32_t index) {
    struct ix_plr_segment segment;
    uint64_t label = (uint64_t)index * worker->env.per_leaf;
    return ix_plr_add(worker->work->plr, worker->work->trained[index].low, label, &segment);
}

static int members_train(struct rolex_worker *worker) {
    struct rolex_work *work = worker->work;
    struct ix_plr_segment segment;
    uint32_t first = 0;
    work->piece_count = 0;
    (void)ix_plr_finish(work->plr, &segment);
    for (uint32_t index = 0; index < work->trained_count; index++) {
        if (index - first == worker->env.params->model_leaves && ix_plr_finish(work->plr, &segment) == 1) {
            DM_TRY(rolex_piece_add(work, &segment, first, index - first));
            first = index;
        }
        int rc = leaf_train(worker, index, &first);
        rc = rc == 1 ? leaf_train(worker, index, &first) : rc;
        rc = rc == 1 ? leaf_train_bound(worker, index) : rc;
        DM_TRY(rc);
    }
    return ix_plr_finish(work->plr, &segment) == 1 ? rolex_piece_add(work, &segment, first, work->trained_count - first)
                                                   : DM_ERR_IO;
}

/* Trains a model and replaces it. A failure does no harm: clients continue with the old model, or ask again. */
static int model_retrain(struct rolex_worker *worker, dm_addr model) {
    struct rolex_head head;
    if (dm_addr_node(model) != worker->server->node) {
        return 0;
    }
    int rc = rolex_head_read(&worker->env, model, &head);
    if (rc != 0 || head.forward != 0) {
        return rc < 0 ? rc : 0;
    }
    bool trained = members_collect(worker, model, &head) && members_train(worker) >= 0;
    return rolex_replace(&worker->env, worker->work, model, trained);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* The next model of a queue: true and *model. */
static bool queue_take(struct rolex_server *server, struct dm_ctx *ctx, unsigned queue, dm_addr *model) {
    uint64_t put;
    uint64_t *head = &server->heads[queue];
    dm_cpu_read(ctx, rolex_reserved(server->node, ROLEX_AT_QUEUES + 8 * queue), &put, sizeof(put));
    if (put == *head) {
        return false;
    }
    if (put - *head > ROLEX_QUEUE_SLOTS) {
        *head = put - ROLEX_QUEUE_SLOTS; /* the words before were overwritten; clients ask again when it is urgent */
    }
    uint32_t at = queue * ROLEX_QUEUE_SLOTS + (uint32_t)(*head % ROLEX_QUEUE_SLOTS);
    dm_addr slot = rolex_reserved(server->node, ROLEX_AT_QUEUE_SLOTS + 8 * at);
    dm_cpu_read(ctx, slot, &model->bits, sizeof(model->bits));
    if (model->bits == 0) {
        /* Counted but not written yet. A client that stopped between the two must not block the queue. */
        if (++server->unwritten < UNWRITTEN_POLLS) {
            return false;
        }
    } else {
        uint64_t zero = 0;
        dm_cpu_write(ctx, slot, &zero, sizeof(zero));
    }
    server->unwritten = 0;
    ++*head;
    return model->bits != 0;
}

static int job_take(struct rolex_worker *worker, struct dm_ctx *ctx, dm_addr *model) {
    struct rolex_server *server = worker->server;
    DM_TRY(dm_mutex_lock(ctx, &server->taking));
    bool there = queue_take(server, ctx, 0, model) || queue_take(server, ctx, 1, model);
    dm_mutex_unlock(ctx, &server->taking);
    return there;
}

/* Does one job, unless retraining is paused. */
static int job_do(struct rolex_worker *worker, dm_addr model) {
    struct dm_ctx *ctx = worker->env.ctx;
    dm_addr busy = rolex_reserved(worker->server->node, ROLEX_AT_BUSY);
    dm_addr pause = rolex_reserved(worker->server->node, ROLEX_AT_PAUSE);
    uint64_t *word = worker->env.words + ROLEX_W_OWN;
    DM_TRY(dm_faa(ctx, busy, 1, NULL));
    DM_TRY(dm_read(ctx, pause, word, sizeof(*word)));
    int rc = *word == 0 ? model_retrain(worker, model) : 0;
    if (rc == DM_ERR_STOPPED) {
        return rc;
    }
    return dm_faa(ctx, busy, UINT64_MAX, NULL);
}

static void worker_entry(struct dm_ctx *ctx, void *arg) {
    struct rolex_worker *worker = arg;
    struct rolex_server *server = worker->server;
    if (rolex_env_init(&worker->env, ctx, server->params, server->shape, worker->counts) < 0) {
        return;
    }
    /* The worker must not be accessed after a stop: it may have been freed. */
    while (dm_sleep(ctx, POLL_NS) == 0) {
        dm_addr model;
        int rc;
        while ((rc = job_take(worker, ctx, &model)) > 0) {
            rc = job_do(worker, model);
            if (rc < 0) {
                return;
            }
        }
        if (rc < 0) {
            return;
        }
    }
}

void rolex_unserve(void *handle) {
    struct rolex_server *server = handle;
    for (unsigned i = 0; i < server->workers; i++) {
        rolex_work_close(server->worker[i].work);
        free(server->worker[i].wire);
        free(server->worker[i].image);
    }
    free(server->worker);
}

int rolex_serve(void *handle, struct dm_fabric *fabric, unsigned node, const void *values, const struct ix_shape *shape,
                struct dm_err *err) {
    struct rolex_server *server = handle;
    const struct rolex_params *params = values;
    unsigned workers = shape->topology->mn_cores;
    (void)err;
    if (!params->retrain || workers == 0 || node >= shape->topology->mns) {
        return 0;
    }
    server->worker = calloc(workers, sizeof(*server->worker));
    if (!server->worker) {
        return DM_ERR_NO_MEMORY;
    }
    server->params = params;
    server->shape = shape;
    server->node = node;
    server->workers = workers;
    uint32_t wire_bytes = rolex_layout_of(params, shape).wire_bytes;
    for (unsigned i = 0; i < workers; i++) {
        struct rolex_worker *worker = &server->worker[i];
        worker->server = server;
        worker->work = rolex_work_open(params);
        worker->wire = calloc(1, wire_bytes);
        worker->image = calloc(1, wire_bytes);
        if (!worker->work || !worker->wire || !worker->image) {
            return DM_ERR_NO_MEMORY;
        }
        DM_TRY(dm_spawn_background(fabric, node, worker_entry, worker));
    }
    return 0;
}

int rolex_pause(struct rolex_env *env, unsigned node, bool pause) {
    uint64_t *words = env->words + ROLEX_W_OWN;
    words[0] = pause;
    DM_TRY(dm_write(env->ctx, rolex_reserved(node, ROLEX_AT_PAUSE), &words[0], sizeof(words[0])));
    for (uint32_t polls = 0; pause; polls++) {
        DM_TRY(dm_read(env->ctx, rolex_reserved(node, ROLEX_AT_BUSY), &words[1], sizeof(words[1])));
        if (words[1] == 0) {
            return 0;
        }
        if (polls == PAUSE_POLLS) {
            return DM_NOT_FOUND;
        }
        DM_TRY(dm_sleep(env->ctx, POLL_NS));
    }
    return 0;
}
