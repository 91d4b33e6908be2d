/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's models, and some or all of their leaf tables.
 */
#ifndef DM_INDEXES_ROLEX_CACHE_H
#define DM_INDEXES_ROLEX_CACHE_H

#include "env.h"

/* A compute node's models and leaf tables, all or some of them; NULL if the budget has no room for the models. */
struct rolex_directory;

/* Reads the root and all models. 0 and NULL if they do not fit. *directory is set before anything is waited for, so
 * that the caller can close what a context that never came back has begun. [waits] */
int rolex_directory_open(struct rolex_env *env, uint64_t budget_bytes, struct rolex_directory **directory);
void rolex_directory_close(struct rolex_directory *directory);
uint64_t rolex_directory_bytes(const struct rolex_directory *directory);
bool rolex_directory_is_of(const struct rolex_directory *directory, uint64_t root);

/* What a client knows of a model. The table's words are those of the window, the synonyms all that are in use. */
struct rolex_view {
    dm_addr model;
    struct rolex_head head;
    struct rolex_window window;
    uint64_t used; /* the counter's value that belongs to slots */
    uint64_t *table, *slots;
    uint32_t group; /* the branch of the root under which it is */
    bool has_tables, is_cached;
};

/* Fills the view from the cache. False if the key's model is not there. The window is that of `key` and `more` leaves
 * behind it. */
bool rolex_directory_find(struct rolex_directory *directory, const struct rolex_env *env, uint64_t key, uint32_t more,
                          struct rolex_view *view);

/* Keeps a model's tables: `leaves` words, then 1 + used. */
void rolex_directory_keep(struct rolex_directory *directory, const struct rolex_view *view, const uint64_t *table,
                          const uint64_t *slots);

/* This client has changed an entry of a leaf's group: the kept tables follow. slot 0: only the entry. */
void rolex_directory_note(struct rolex_directory *directory, const struct rolex_view *view, uint32_t leaf,
                          uint64_t entry, unsigned slot, uint64_t slot_entry);

/* The tables of this model are too old. */
void rolex_directory_drop(struct rolex_directory *directory, const struct rolex_view *view);

/* The model was replaced by `count` models; 0: by more than fit. True if it was still there. */
bool rolex_directory_replace(struct rolex_directory *directory, const struct rolex_view *view, const dm_addr *models,
                             const struct rolex_head *heads, uint32_t count);

#endif
