/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert, update and delete (paper, III-B2 and III-C). Each takes a share of the leaf's lock and reads the leaf's
 * words, but not the values, with one doorbell. Then
 *
 *  - an update writes the value and, with the same doorbell, releases the share;
 *  - a delete changes the word by compare-and-swap and, with the same doorbell, releases the share;
 *  - an insert reserves a word by compare-and-swap. Then, with one doorbell, it writes the value, makes the word live
 *    and releases the share.
 *
 * So they take two, two and three round trips. README.md, "Strict", has the reasons for compare-and-swap, for the
 * reserved state, and for entries that are not reused; with each of these parameters off the code follows the paper's
 * text.
 *
 * All clients search the entries for a byte in one order, from the byte's home on, and an insert takes the first free
 * one. While shares are held no entry becomes free. So of two inserts of one key the second cannot miss the entry of
 * the first: it reads it, or its compare-and-swap there fails.
 */
#include "dolphin.h"

#include <string.h>

/* Finds the leaf and takes a share of it. 0 with the share held and the words in client->leaf; DM_NOT_FOUND: there is
 * no leaf, and the target is absent; DOLPHIN_AGAIN; a failure. [waits] */
static int leaf_enter(struct dolphin_client *client, uint64_t key, struct dolphin_descent *descent,
                      struct dolphin_target *target) {
    DM_TRY(dolphin_descend(client, key, descent, target));
    if (target->is_absent) {
        return DM_NOT_FOUND;
    }
    dm_addr leaf = dolphin_word_addr(target->child);
    if (!dm_addr_valid(client->ctx, leaf, client->cn->layout.leaf_bytes)) {
        dolphin_descent_restart(descent);
        DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, &descent->attempts, 0));
        return DOLPHIN_AGAIN;
    }
    DM_TRY(dolphin_lock_share(client, leaf, &descent->attempts));
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(client->leaf);
    enum dolphin_verdict verdict = dolphin_judge(client, head, key, target);
    if (verdict == DOLPHIN_COVERS) {
        dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
        return 0;
    }
    DM_TRY(dolphin_release(client, 0));
    if (verdict == DOLPHIN_ABSENT) {
        return DM_NOT_FOUND;
    }
    DM_TRY(dolphin_backtrack(client, head, target, descent));
    return DOLPHIN_AGAIN;
}

/* Reads the words of the leaf, of which a share is held, again. [waits] */
static int words_reread(struct dolphin_client *client, dm_addr leaf, uint32_t *attempts) {
    client->counts[DOLPHIN_SLOT_CONFLICT]++;
    DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, attempts, 0));
    return dm_read(client->ctx, leaf, client->leaf, client->cn->layout.keys_bytes);
}

static char *cell_of(struct dolphin_client *client, unsigned i) {
    return client->left + dolphin_cell_offset(&client->cn->layout, i);
}

/* Posts the write of a value. */
static void value_post(struct dolphin_client *client, dm_addr leaf, unsigned i, uint32_t update, const void *value) {
    const struct dolphin_layout *layout = &client->cn->layout;
    uint32_t version = dolphin_leaf_head_in(client->leaf)->version;
    dolphin_cell_put(layout, cell_of(client, i), value, version, update);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, (layout->cell_bytes + DM_LINE - 1) / DM_LINE);
    dm_post_write(client->ctx, dm_addr_add(leaf, dolphin_cell_offset(layout, i)), cell_of(client, i),
                  layout->cell_bytes);
}

static void word_post(struct dolphin_client *client, dm_addr leaf, unsigned i, uint64_t word) {
    client->outs[0] = word;
    dm_post_write(client->ctx, dm_addr_add(leaf, dolphin_word_offset(i)), client->outs, sizeof(uint64_t));
}

/* Changes a word of the leaf from the content in client->leaf. 0; DM_NOT_FOUND: it has changed meanwhile, and
 * client->olds[0] is the new content; a failure. [waits] */
static int word_swap(struct dolphin_client *client, dm_addr leaf, unsigned i, uint64_t word) {
    uint64_t expected = dolphin_leaf_words_in(client->leaf)[i];
    dm_post_cas(client->ctx, dm_addr_add(leaf, dolphin_word_offset(i)), expected, word, &client->olds[0]);
    DM_TRY(dm_commit(client->ctx));
    return client->olds[0] == expected ? 0 : DM_NOT_FOUND;
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

enum { NO_ENTRY = -1, IN_INSERT = -2, PRESENT = -3 };

/* The index of the free entry for a byte, or NO_ENTRY; PRESENT if the byte is live, IN_INSERT if another client is
 * inserting it. */
static int entry_choose(struct dolphin_client *client, unsigned byte) {
    const struct dolphin_cn *cn = client->cn;
    const struct dolphin_layout *layout = &cn->layout;
    const uint64_t *words = dolphin_leaf_words_in(client->leaf);
    int chosen = NO_ENTRY;
    bool in_insert = false;
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->cap);
    unsigned first = cn->check_insert ? dolphin_leaf_home(layout, byte)
                                      : (unsigned)dm_prng_below(dm_random(client->ctx), layout->cap);
    for (unsigned n = 0; n < layout->cap; n++) {
        unsigned i = first + n < layout->cap ? first + n : first + n - layout->cap;
        enum dolphin_state state = dolphin_entry_state(words[i]);
        if (state == DOLPHIN_FREE) {
            chosen = chosen == NO_ENTRY ? (int)i : chosen;
        } else if (dolphin_entry_byte(words[i]) == byte) {
            in_insert |= state == DOLPHIN_RESERVED && cn->check_insert;
            if (dolphin_entry_is_live(words[i])) {
                return PRESENT;
            }
        }
    }
    return in_insert ? IN_INSERT : chosen;
}

/* Takes an entry for the byte. 0 with its index, or NO_ENTRY or PRESENT, in *entry; a failure. [waits] */
static int entry_take(struct dolphin_client *client, dm_addr leaf, unsigned byte, uint32_t *attempts, int *entry) {
    enum dolphin_state state = client->cn->publish ? DOLPHIN_RESERVED : DOLPHIN_LIVE;
    uint64_t word = dolphin_entry(byte, state, 0, dolphin_leaf_head_in(client->leaf)->version);
    *entry = entry_choose(client, byte);
    while (*entry >= 0 || *entry == IN_INSERT) {
        if (*entry >= 0) {
            int rc = word_swap(client, leaf, (unsigned)*entry, word);
            if (rc <= 0) {
                return rc;
            }
        }
        if (client->cn->check_insert || *entry == IN_INSERT) {
            DM_TRY(words_reread(client, leaf, attempts));
            *entry = entry_choose(client, byte);
            continue;
        }
        /* As published: takes another empty entry, and does not look at the content that took this one. */
        DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, attempts, 0));
        const struct dolphin_layout *layout = &client->cn->layout;
        dolphin_leaf_words(client->leaf)[*entry] = dolphin_entry(0, DOLPHIN_DELETED, 0, 0);
        unsigned i = 0;
        while (i < layout->cap && dolphin_entry_state(dolphin_leaf_words_in(client->leaf)[i]) != DOLPHIN_FREE) {
            i++;
        }
        *entry = i < layout->cap ? (int)i : NO_ENTRY;
    }
    return 0;
}

static int insert_once(struct dolphin_client *client, uint64_t key, const void *value,
                       struct dolphin_descent *descent) {
    struct dolphin_target target;
    int rc = leaf_enter(client, key, descent, &target);
    if (rc == DM_NOT_FOUND) {
        rc = dolphin_new_leaf(client, key, value, &target, &descent->attempts);
        if (rc == DOLPHIN_AGAIN) {
            dolphin_descent_restart(descent);
        }
        return rc;
    }
    if (rc != 0) {
        return rc;
    }
    dm_addr leaf = dolphin_word_addr(target.child);
    unsigned byte = (unsigned)(key & 0xff);
    int entry;
    DM_TRY(entry_take(client, leaf, byte, &descent->attempts, &entry));
    if (entry == PRESENT) {
        return DM_EXISTS;
    }
    if (entry == NO_ENTRY) {
        return dolphin_full_insert(client, leaf, key, value, &descent->attempts);
    }
    value_post(client, leaf, (unsigned)entry, 0, value);
    if (client->cn->publish) {
        uint32_t version = dolphin_leaf_head_in(client->leaf)->version;
        word_post(client, leaf, (unsigned)entry, dolphin_entry(byte, DOLPHIN_LIVE, 0, version));
    }
    dolphin_hold_post_all(client);
    return dm_commit(client->ctx);
}

int dolphin_insert(void *handle, uint64_t key, const void *value) {
    struct dolphin_client *client = handle;
    struct dolphin_descent descent = {0};
    int rc;
    do {
        rc = dolphin_release(client, insert_once(client, key, value, &descent));
    } while (rc == DOLPHIN_AGAIN);
    return rc;
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

/* Makes the entry of a byte busy, so that one client at a time writes its long value. 0; DM_NOT_FOUND; a failure.
 * [waits] */
static int entry_occupy(struct dolphin_client *client, dm_addr leaf, unsigned byte, uint32_t *attempts, int *entry) {
    for (;;) {
        *entry = dolphin_leaf_find(&client->cn->layout, client->leaf, byte);
        if (*entry < 0) {
            return DM_NOT_FOUND;
        }
        uint64_t word = dolphin_leaf_words_in(client->leaf)[*entry];
        if (dolphin_entry_state(word) == DOLPHIN_LIVE) {
            int rc =
                word_swap(client, leaf, (unsigned)*entry,
                          dolphin_entry(byte, DOLPHIN_BUSY, dolphin_entry_update(word), dolphin_entry_version(word)));
            if (rc <= 0) {
                return rc;
            }
        }
        DM_TRY(words_reread(client, leaf, attempts));
    }
}

static int update_once(struct dolphin_client *client, uint64_t key, const void *value,
                       struct dolphin_descent *descent) {
    struct dolphin_target target;
    int rc = leaf_enter(client, key, descent, &target);
    if (rc != 0) {
        return rc;
    }
    dm_addr leaf = dolphin_word_addr(target.child);
    unsigned byte = (unsigned)(key & 0xff);
    int entry;
    if (client->cn->layout.is_long && client->cn->lock_long) {
        rc = entry_occupy(client, leaf, byte, &descent->attempts, &entry);
        if (rc != 0) {
            return rc;
        }
        uint64_t word = dolphin_leaf_words_in(client->leaf)[entry];
        uint32_t update = dolphin_entry_update(word) + 1;
        value_post(client, leaf, (unsigned)entry, update, value);
        word_post(client, leaf, (unsigned)entry,
                  dolphin_entry(byte, DOLPHIN_LIVE, update, dolphin_entry_version(word)));
    } else {
        entry = dolphin_leaf_find(&client->cn->layout, client->leaf, byte);
        if (entry < 0) {
            return DM_NOT_FOUND;
        }
        value_post(client, leaf, (unsigned)entry, ++client->updates, value);
    }
    dolphin_hold_post_all(client);
    return dm_commit(client->ctx);
}

int dolphin_update(void *handle, uint64_t key, const void *value) {
    struct dolphin_client *client = handle;
    struct dolphin_descent descent = {0};
    int rc;
    do {
        rc = dolphin_release(client, update_once(client, key, value, &descent));
    } while (rc == DOLPHIN_AGAIN);
    return rc;
}

/* ---- delete ------------------------------------------------------------------------------------------------------ */

/* True if no other entry of the leaf is in use or reserved. */
static bool is_last(const struct dolphin_client *client, unsigned entry) {
    const uint64_t *words = dolphin_leaf_words_in(client->leaf);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, client->cn->layout.cap);
    for (unsigned i = 0; i < client->cn->layout.cap; i++) {
        enum dolphin_state state = dolphin_entry_state(words[i]);
        if (i != entry && state != DOLPHIN_FREE && state != DOLPHIN_DELETED) {
            return false;
        }
    }
    return true;
}

/* The delete of the paper: overwrites word and value. */
static int entry_clear(struct dolphin_client *client, dm_addr leaf, unsigned i, uint64_t word) {
    const struct dolphin_layout *layout = &client->cn->layout;
    memset(cell_of(client, i), 0, layout->cell_bytes);
    word_post(client, leaf, i, word);
    dm_post_write(client->ctx, dm_addr_add(leaf, dolphin_cell_offset(layout, i)), cell_of(client, i),
                  layout->cell_bytes);
    dolphin_hold_post_all(client);
    return dm_commit(client->ctx);
}

static int remove_once(struct dolphin_client *client, uint64_t key, struct dolphin_descent *descent,
                       struct dolphin_target *target, bool *last) {
    int rc = leaf_enter(client, key, descent, target);
    if (rc != 0) {
        return rc;
    }
    dm_addr leaf = dolphin_word_addr(target->child);
    for (;;) {
        int entry = dolphin_leaf_find(&client->cn->layout, client->leaf, (unsigned)(key & 0xff));
        if (entry < 0) {
            return DM_NOT_FOUND;
        }
        *last = is_last(client, (unsigned)entry);
        uint64_t word = dolphin_leaf_words_in(client->leaf)[entry];
        enum dolphin_state state = client->cn->keep_slots ? DOLPHIN_DELETED : DOLPHIN_FREE;
        unsigned byte = client->cn->keep_slots ? (unsigned)(key & 0xff) : 0;
        uint64_t deleted = dolphin_entry(byte, state, 0, dolphin_entry_version(word));
        if (!client->cn->cas_delete) {
            return entry_clear(client, leaf, (unsigned)entry, deleted);
        }
        if (dolphin_entry_state(word) == DOLPHIN_LIVE) {
            dm_post_cas(client->ctx, dm_addr_add(leaf, dolphin_word_offset((unsigned)entry)), word, deleted,
                        &client->olds[0]);
            dolphin_hold_post_all(client);
            DM_TRY(dm_commit(client->ctx));
            if (client->olds[0] == word) {
                return 0;
            }
            /* Another client has deleted it, or is writing its long value. */
            client->counts[DOLPHIN_SLOT_CONFLICT]++;
            DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, &descent->attempts, 0));
            return dolphin_entry_is_live(client->olds[0]) ? DOLPHIN_AGAIN : DM_NOT_FOUND;
        }
        DM_TRY(words_reread(client, leaf, &descent->attempts));
    }
}

int dolphin_remove(void *handle, uint64_t key) {
    struct dolphin_client *client = handle;
    struct dolphin_descent descent = {0};
    struct dolphin_target target;
    bool last = false;
    int rc;
    do {
        rc = dolphin_release(client, remove_once(client, key, &descent, &target, &last));
    } while (rc == DOLPHIN_AGAIN);
    if (rc == 0 && last && client->cn->params->merge) {
        int merged = dolphin_release(client, dolphin_merge(client, dolphin_word_addr(target.child)));
        rc = merged < 0 ? merged : rc;
    }
    return rc;
}
