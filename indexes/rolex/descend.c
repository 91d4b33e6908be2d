/* SPDX-License-Identifier: Apache-2.0
 *
 * From the root to a model, in remote memory: upper models (section 3.3), forks, replaced models. A client takes this
 * path when its compute node cannot cache the models, and to find the replacement of a model that it has.
 */
#include "descend.h"

enum { CHUNK = 11 /* entries that one read fetches: as many as an upper model predicts */ };

/* Reads entries number lo .. hi of an array at `base`. Each has `bytes` bytes and begins with its key. Returns the last
 * one whose key is not above `key`. */
static int entry_find(struct rolex_env *env, dm_addr base, uint32_t bytes, struct rolex_run run, uint64_t key,
                      uint64_t *entry) {
    uint64_t *words = env->words + ROLEX_W_FORK;
    bool found = false;
    for (uint32_t at = run.lo; at <= run.hi;) {
        uint32_t n = run.hi - at + 1 < CHUNK ? run.hi - at + 1 : CHUNK;
        dm_addr from = dm_addr_add(base, (uint64_t)at * bytes);
        if (!dm_addr_valid(env->ctx, from, n * bytes)) {
            return DM_NOT_FOUND;
        }
        DM_TRY(dm_read(env->ctx, from, words, n * bytes));
        dm_charge(env->ctx, DM_WORK_KEY_COMPARE, n);
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t *item = words + (size_t)i * bytes / 8;
            if (item[0] > key) {
                return found ? 0 : DM_NOT_FOUND;
            }
            memcpy(entry, item, bytes);
            found = true;
        }
        at += n;
    }
    return found ? 0 : DM_NOT_FOUND;
}

static int fork_follow(struct rolex_env *env, dm_addr fork, uint64_t key, uint64_t *pointer) {
    uint64_t *words = env->words + ROLEX_W_FORK;
    if (!dm_addr_valid(env->ctx, fork, 2 * sizeof(uint64_t))) {
        return DM_NOT_FOUND;
    }
    DM_TRY(dm_read(env->ctx, fork, words, 2 * sizeof(uint64_t)));
    if (words[0] == 0 || words[0] > UINT32_MAX) {
        return DM_NOT_FOUND;
    }
    struct rolex_branch branch;
    struct rolex_run run = {0, (uint32_t)words[0] - 1};
    uint64_t entry[sizeof(branch) / 8];
    int rc = entry_find(env, dm_addr_add(fork, 16), sizeof(branch), run, key, entry);
    *pointer = rc == 0 ? entry[1] : 0;
    return rc;
}

int rolex_resolve(struct rolex_env *env, uint64_t pointer, uint64_t key, dm_addr *model, struct rolex_head *head) {
    for (uint32_t attempts = 0;;) {
        if (pointer & ROLEX_FORK) {
            int rc = fork_follow(env, (dm_addr){pointer & ~ROLEX_FORK}, key, &pointer);
            if (rc != 0) {
                return rc;
            }
        } else {
            *model = (dm_addr){pointer};
            int rc = rolex_head_read(env, *model, head);
            if (rc != 0 || key < head->low || key >= head->high) {
                return rc < 0 ? rc : DM_NOT_FOUND;
            }
            if (head->forward == 0) {
                return 0;
            }
            pointer = head->forward;
        }
        /* Each step leads to a newer model, but after a stale read there could be a cycle. */
        DM_TRY(dm_retry(env->ctx, DM_RETRY_STALE, &attempts));
    }
}

int rolex_root_read(struct rolex_env *env, dm_addr *addr, struct rolex_root *root) {
    uint64_t *words = env->words + ROLEX_W_FORK;
    DM_TRY(dm_read(env->ctx, rolex_reserved(0, ROLEX_AT_ROOT), words, sizeof(*words)));
    *addr = (dm_addr){words[0]};
    if (!dm_addr_valid(env->ctx, *addr, sizeof(*root))) {
        return DM_NOT_FOUND;
    }
    DM_TRY(dm_read(env->ctx, *addr, words, sizeof(*root)));
    memcpy(root, words, sizeof(*root));
    return root->levels <= ROLEX_UPPER_LEVELS && root->branches > 0 ? 0 : DM_NOT_FOUND;
}

int rolex_descend(struct rolex_env *env, uint64_t key, dm_addr *model, struct rolex_head *head) {
    struct rolex_root root;
    dm_addr addr;
    int rc = rolex_root_read(env, &addr, &root);
    if (rc != 0) {
        return rc;
    }
    struct rolex_run run = {0, root.levels > 0 ? root.counts[0] - 1 : (uint32_t)root.branches - 1};
    dm_addr level = dm_addr_add(addr, sizeof(root));
    for (uint32_t l = 0; l < root.levels; l++) {
        struct rolex_upper upper;
        uint64_t entry[sizeof(upper) / 8];
        rc = entry_find(env, level, sizeof(upper), run, key, entry);
        if (rc != 0) {
            return rc;
        }
        memcpy(&upper, entry, sizeof(upper));
        dm_charge(env->ctx, DM_WORK_MODEL_EVAL, 1);
        run = rolex_upper_predict(&upper, key);
        level = dm_addr_add(level, (uint64_t)root.counts[l] * sizeof(upper));
    }
    uint64_t branch[sizeof(struct rolex_branch) / 8];
    rc = entry_find(env, level, sizeof(struct rolex_branch), run, key, branch);
    return rc != 0 ? rc : rolex_resolve(env, branch[1], key, model, head);
}
