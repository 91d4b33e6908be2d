/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's models, and some or all of their leaf tables.
 */
#ifndef DM_INDEXES_ROLEX_CACHE_H
#define DM_INDEXES_ROLEX_CACHE_H

#include "env.h"

/* A compute node's models and some or all of their leaf tables; NULL if the budget is too small for the models. */
struct rolex_cache;

/* Reads the root and all models. 0 and NULL if they do not fit. *cache is set before the first wait, so that the
 * caller can free it if this context never resumes. [waits] */
int rolex_cache_open(struct rolex_env *env, uint64_t budget_bytes, struct rolex_cache **cache);
void rolex_cache_close(struct rolex_cache *cache);
uint64_t rolex_cache_bytes(const struct rolex_cache *cache);
bool rolex_cache_is_of(const struct rolex_cache *cache, uint64_t root);

/* A client's copy of a model. It has the table entries of the window, and all synonyms in use. */
struct rolex_view {
    dm_addr model;
    struct rolex_head head;
    struct rolex_window window;
    uint64_t used;     /* the used-slot counter, read with slots */
    uint32_t expected; /* synonyms that the model had when this compute node last read its tables */
    uint64_t *table, *slots;
    uint32_t group; /* the branch of the root above the model */
    bool has_tables, is_cached;
};

/* Fills the view from the cache. False if the key's model is not cached. The window is that of `key`, extended by
 * `more` leaves. */
bool rolex_cache_find(struct rolex_cache *cache, const struct rolex_env *env, uint64_t key, uint32_t more,
                      struct rolex_view *view);

/* True if the view's tables should be read as a whole, to be cached: there is space for them, or they are the ones for
 * which other tables are evicted. Otherwise the entries of the window are all that an operation needs. */
bool rolex_cache_wants(struct rolex_cache *cache, const struct rolex_view *view);

/* Caches a model's tables: `leaves` words of the leaf table, 1 + used words of the synonym leaf table. */
void rolex_cache_keep(struct rolex_cache *cache, const struct rolex_view *view, const uint64_t *table,
                      const uint64_t *slots);

/* Updates the cached tables after this client has changed the table entry of `leaf`, and unless slot is 0 also a slot
 * of the synonym leaf table. */
void rolex_cache_note(struct rolex_cache *cache, const struct rolex_view *view, uint32_t leaf, uint64_t entry,
                      unsigned slot, uint64_t slot_entry);

/* Updates the cached tables by the view, whose window and synonyms were read again. */
void rolex_cache_refresh(struct rolex_cache *cache, const struct rolex_view *view);

/* Drops the tables of this model, which are too old. */
void rolex_cache_drop(struct rolex_cache *cache, const struct rolex_view *view);

/* Exchanges the model for the `count` models that replaced it; 0: they are too many to be cached. True if the model was
 * still cached. */
bool rolex_cache_replace(struct rolex_cache *cache, const struct rolex_view *view, const dm_addr *models,
                         const struct rolex_head *heads, uint32_t count);

#endif
