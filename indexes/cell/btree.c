/* SPDX-License-Identifier: Apache-2.0
 *
 * The B-link tree of a memory node as its CPU works on it: nodes, descent, splits, the root.
 */
#include "mn.h"

int cell_node_alloc(struct cell_server *server, struct dm_ctx *ctx, unsigned level, uint32_t *ref) {
    dm_addr addr;
    uint32_t bytes = cell_form_of(&server->layout, level)->alloc_bytes;
    DM_TRY(dm_alloc(ctx, server->node, bytes, DM_LINE, level > 0 ? DM_MEM_INNER : DM_MEM_LEAF, &addr));
    *ref = cell_ref_of(addr);
    return 0;
}

void cell_node_free(struct cell_server *server, struct dm_ctx *ctx, unsigned level, uint32_t ref) {
    uint32_t bytes = cell_form_of(&server->layout, level)->alloc_bytes;
    dm_free(ctx, cell_addr(server->node, ref), bytes, level > 0 ? DM_MEM_INNER : DM_MEM_LEAF);
}

static uint32_t lines_of(const struct cell_form *form, unsigned count) {
    return (CELL_KEYS + count * (1 + form->entry_words)) * 8 / DM_LINE + 1;
}

void cell_node_store(struct cell_server *server, struct dm_ctx *ctx, struct cell_node *node) {
    const struct cell_form *form = cell_form_of(&server->layout, cell_level(node->words));
    dm_addr addr = cell_addr(server->node, node->ref);
    unsigned count = cell_count(node->words);
    node->words[CELL_CHECK] = cell_node_check(form, node->ref, node->words);
    dm_charge(ctx, DM_WORK_LINE_COPY, lines_of(form, count));
    dm_charge(ctx, DM_WORK_HASH, cell_node_hashes(form, node->words));
    dm_cpu_write(ctx, dm_addr_add(addr, (uint64_t)form->first * 8), node->words + form->first,
                 count * form->entry_words * 8);
    dm_cpu_write(ctx, addr, node->words, (CELL_KEYS + count) * 8);
}

/* Reads until the node is consistent: a writer on another core may be storing it. */
static int node_load(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned level,
                     struct cell_node *node) {
    const struct cell_form *form = cell_form_of(&server->layout, level);
    dm_addr addr = cell_addr(server->node, ref);
    uint32_t attempts = 0;
    if (ref == 0 || !dm_addr_valid(ctx, addr, form->words * 8)) {
        return DM_ERR_CORRUPT;
    }
    node->ref = ref;
    for (;;) {
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        dm_cpu_read(ctx, addr, node->words, form->words * 8);
        unsigned count = cell_count(node->words);
        dm_charge(ctx, DM_WORK_LINE_COPY, lines_of(form, count <= form->entries ? count : form->entries));
        dm_charge(ctx, DM_WORK_HASH, cell_node_hashes(form, node->words));
        dm_charge(ctx, DM_WORK_KEY_COMPARE, cell_compares(form));
        if (cell_node_consistent(form, ref, node->words)) {
            return cell_level(node->words) == level ? 0 : DM_ERR_CORRUPT;
        }
        DM_TRY(dm_retry(ctx, DM_RETRY_TORN, &attempts));
        DM_TRY(dm_sleep(ctx, 0));
    }
}

/* ---- the root ---------------------------------------------------------------------------------------------------- */

static dm_addr root_addr(const struct cell_server *server) {
    return dm_addr_make(server->node, DM_DRAM, CELL_ROOT_OFFSET);
}

static uint64_t root_load(struct cell_server *server, struct dm_ctx *ctx) {
    uint64_t word;
    dm_cpu_read(ctx, root_addr(server), &word, sizeof(word));
    return word;
}

void cell_root_store(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned level) {
    uint64_t word = cell_root_word(ref, level);
    dm_cpu_write(ctx, root_addr(server), &word, sizeof(word));
}

/* ---- descent ----------------------------------------------------------------------------------------------------- */

static int descend(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level, uint32_t *ref) {
    uint64_t root = root_load(server, ctx);
    unsigned at = (unsigned)(root >> 32);
    *ref = (uint32_t)root;
    if (at < level) {
        return CELL_ABOVE_ROOT;
    }
    while (at > level) {
        struct cell_node node;
        DM_TRY(node_load(server, ctx, *ref, at, &node));
        if (!cell_is_left_of_high(node.words, key)) {
            *ref = cell_right(node.words);
        } else if (cell_count(node.words) == 0) {
            return DM_ERR_CORRUPT;
        } else {
            *ref = cell_child(&server->layout.inner, node.words, cell_child_for(node.words, key));
            at--;
        }
    }
    return 0;
}

int cell_node_lock(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level,
                   struct cell_node *node) {
    uint32_t ref;
    int rc = descend(server, ctx, key, level, &ref);
    if (rc != 0) {
        return rc;
    }
    for (;;) {
        DM_TRY(dm_mutex_lock(ctx, cell_stripe(server, ref)));
        rc = node_load(server, ctx, ref, level, node);
        if (rc == 0 && cell_is_left_of_high(node->words, key)) {
            return 0;
        }
        /* The node was split since, or has no entry in a parent yet. Keys only move to the right. */
        dm_mutex_unlock(ctx, cell_stripe(server, ref));
        DM_TRY(rc);
        ref = cell_right(node->words);
    }
}

/* ---- entries and splits ------------------------------------------------------------------------------------------ */

static void count_set(uint64_t *words, unsigned count) {
    words[CELL_HEAD] = cell_head_word(count, cell_level(words), cell_right(words));
}

void cell_entry_insert(const struct cell_form *form, uint64_t *words, uint64_t key, const uint64_t *entry) {
    unsigned count = cell_count(words), at = cell_rank(words, key), each = form->entry_words;
    uint64_t *keys = words + CELL_KEYS, *entries = words + form->first;
    memmove(keys + at + 1, keys + at, (count - at) * 8);
    memmove(entries + (at + 1) * each, entries + at * each, (size_t)(count - at) * each * 8);
    keys[at] = key;
    memcpy(entries + at * each, entry, each * 8);
    count_set(words, count + 1);
}

void cell_entry_remove(const struct cell_form *form, uint64_t *words, unsigned position) {
    unsigned count = cell_count(words), each = form->entry_words, after = count - position - 1;
    uint64_t *keys = words + CELL_KEYS, *entries = words + form->first;
    memmove(keys + position, keys + position + 1, after * 8);
    memmove(entries + position * each, entries + (position + 1) * each, (size_t)after * each * 8);
    count_set(words, count - 1);
}

/* The right node is stored first: no reader can reach it until the left one is stored. */
uint64_t cell_node_split(struct cell_server *server, struct dm_ctx *ctx, struct cell_node *node, uint32_t right,
                         uint64_t key, const uint64_t *entry) {
    uint64_t *left = node->words;
    unsigned level = cell_level(left), count = cell_count(left), kept = count / 2, moved = count - kept;
    const struct cell_form *form = cell_form_of(&server->layout, level);
    struct cell_node upper = {.ref = right};
    uint64_t border = left[CELL_KEYS + kept];
    memcpy(upper.words + CELL_KEYS, left + CELL_KEYS + kept, moved * 8);
    memcpy(upper.words + form->first, cell_entry(form, left, kept), (size_t)moved * form->entry_words * 8);
    upper.words[CELL_HEAD] = cell_head_word(moved, level, cell_right(left));
    upper.words[CELL_LOW] = border;
    upper.words[CELL_HIGH] = left[CELL_HIGH];
    left[CELL_HEAD] = cell_head_word(kept, level, right);
    left[CELL_HIGH] = border;
    cell_entry_insert(form, key < border ? left : upper.words, key, entry);
    cell_node_store(server, ctx, &upper);
    cell_node_store(server, ctx, node);
    return border;
}

/* ---- entries of new nodes in their parents ----------------------------------------------------------------------- */

/* Makes a new root of the old root and `child`. CELL_ABOVE_ROOT: another context was first. */
static int root_grow(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level,
                     uint32_t fresh) {
    DM_TRY(dm_mutex_lock(ctx, &server->root_lock));
    uint64_t root = root_load(server, ctx);
    bool is_first = root >> 32 == level;
    if (is_first) {
        struct cell_node node = {.ref = fresh};
        uint64_t old = (uint32_t)root, entry = child;
        node.words[CELL_HEAD] = cell_head_word(0, level + 1, 0);
        node.words[CELL_HIGH] = UINT64_MAX;
        cell_entry_insert(&server->layout.inner, node.words, 0, &old);
        cell_entry_insert(&server->layout.inner, node.words, key, &entry);
        cell_node_store(server, ctx, &node);
        cell_root_store(server, ctx, fresh, level + 1);
    }
    dm_mutex_unlock(ctx, &server->root_lock);
    return is_first ? 0 : CELL_ABOVE_ROOT;
}

/* Inserts the entry into one level. *key and *child become the entry for the level above; *child is 0 if none is
 * needed. `fresh` is memory for a split or a new root, or 0; *used reports whether it was used. */
static int link_level(struct cell_server *server, struct dm_ctx *ctx, uint64_t *key, uint32_t *child, unsigned level,
                      uint32_t fresh, bool *used) {
    struct cell_node node;
    uint64_t entry = *child;
    *used = false;
    int rc = cell_node_lock(server, ctx, *key, level + 1, &node);
    if (rc == CELL_ABOVE_ROOT) {
        if (fresh == 0) {
            return DM_ERR_NO_MEMORY;
        }
        rc = root_grow(server, ctx, *key, *child, level, fresh);
        *used = rc == 0;
        *child = *used ? 0 : *child;
        return rc;
    }
    DM_TRY(rc);
    if (cell_count(node.words) < server->layout.inner.entries) {
        cell_entry_insert(&server->layout.inner, node.words, *key, &entry);
        cell_node_store(server, ctx, &node);
        *child = 0;
    } else if (fresh != 0) {
        *key = cell_node_split(server, ctx, &node, fresh, *key, &entry);
        *child = fresh;
        *used = true;
    } else {
        rc = DM_ERR_NO_MEMORY;
    }
    cell_node_unlock(server, ctx, &node);
    return rc;
}

int cell_link(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level) {
    while (child != 0) {
        uint32_t fresh = 0;
        bool used;
        int rc = cell_node_alloc(server, ctx, level + 1, &fresh);
        if (rc < 0 && rc != DM_ERR_NO_MEMORY) {
            return rc;
        }
        rc = link_level(server, ctx, &key, &child, level, fresh, &used);
        if (fresh != 0 && !used) {
            cell_node_free(server, ctx, level + 1, fresh);
        }
        if (rc == DM_ERR_NO_MEMORY) {
            ix_word_increment(ctx, dm_addr_make(server->node, DM_DRAM, CELL_UNLINKED_OFFSET));
            return 0;
        }
        DM_TRY(rc);
        level += rc == 0; /* else the tree has grown: the same level again */
    }
    return 0;
}
