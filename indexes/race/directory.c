/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory and its cache on compute nodes. Entries are written under the directory's lock, which is held for as
 * long as they are written or copied, and not while slots move.
 */
#include "common/large.h"
#include "race.h"

enum { BATCH = 256 };

static dm_addr root_addr(void) {
    return dm_addr_make(0, DM_DRAM, RACE_DEPTH_OFFSET);
}

static unsigned cached_bits(const struct race_directory *directory) {
    unsigned depth = atomic_load_explicit(&directory->depth, memory_order_relaxed);
    return depth < directory->bits ? depth : directory->bits;
}

uint64_t race_directory_bytes(const struct race_directory *directory) {
    return directory->entries ? sizeof(uint64_t) << cached_bits(directory) : 0;
}

void race_directory_close(struct race_directory *directory) {
    dm_large_free((void *)directory->entries, sizeof(uint64_t) << directory->bits);
}

/* Adopts a global depth and the address of its directory, with all entries that the cache has space for. [waits] */
static int read_all(struct race_directory *directory, struct dm_ctx *ctx, unsigned depth, dm_addr remote,
                    uint64_t *buffer) {
    unsigned bits = depth < directory->bits ? depth : directory->bits;
    uint64_t count = directory->entries ? UINT64_C(1) << bits : 0;
    uint64_t n;
    for (uint64_t first = 0; first < count; first += n) {
        n = count - first < RACE_STAGE_BYTES / 8 ? count - first : RACE_STAGE_BYTES / 8;
        DM_TRY(dm_read(ctx, dm_addr_add(remote, 8 * first), buffer, (uint32_t)n * 8));
        for (uint64_t i = 0; i < n; i++) {
            atomic_store_explicit(&directory->entries[first + i], buffer[i], memory_order_relaxed);
        }
        dm_charge(ctx, DM_WORK_LINE_COPY, (uint32_t)(n * 8 + DM_LINE - 1) / DM_LINE);
    }
    atomic_store_explicit(&directory->remote, remote.bits, memory_order_relaxed);
    atomic_store_explicit(&directory->depth, depth, memory_order_relaxed);
    return 0;
}

int race_directory_open(struct race_cn *cn, struct dm_ctx *ctx, uint64_t *buffer) {
    struct race_directory *directory = &cn->directory;
    DM_TRY(dm_read(ctx, root_addr(), buffer, RACE_ROOT_BYTES));
    unsigned depth = (unsigned)buffer[0];
    if (!directory->entries && cn->shape->cache_bytes >= sizeof(uint64_t)) {
        while (directory->bits < RACE_DEPTH_MAX &&
               sizeof(uint64_t) << (directory->bits + 1) <= cn->shape->cache_bytes) {
            directory->bits++;
        }
        directory->entries = dm_large_alloc(sizeof(uint64_t) << directory->bits);
        if (!directory->entries) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return read_all(directory, ctx, depth, (dm_addr){buffer[1]}, buffer);
}

/* Enters an entry under all indices that end in its suffix. */
static void learn(struct race_directory *directory, uint64_t hash, uint64_t entry) {
    if (!directory->entries) {
        return;
    }
    unsigned bits = cached_bits(directory);
    unsigned depth = race_entry_depth(entry) < bits ? race_entry_depth(entry) : bits;
    for (uint64_t i = hash & race_bits(depth); i <= race_bits(bits); i += UINT64_C(1) << depth) {
        atomic_store_explicit(&directory->entries[i], entry, memory_order_relaxed);
    }
}

int race_directory_find(struct race_client *client, uint64_t hash, uint64_t *entry) {
    struct race_directory *directory = &client->cn->directory;
    if (directory->entries) {
        unsigned bits = cached_bits(directory);
        dm_charge_access(client->ctx, 1, sizeof(uint64_t) << bits);
        *entry = atomic_load_explicit(&directory->entries[hash & race_bits(bits)], memory_order_relaxed);
        if (*entry != 0) {
            return 0;
        }
    }
    client->counts[RACE_DIRECTORY_MISS]++;
    return race_directory_refresh(client, hash, entry);
}

int race_directory_refresh(struct race_client *client, uint64_t hash, uint64_t *entry) {
    struct race_directory *directory = &client->cn->directory;
    unsigned depth = atomic_load_explicit(&directory->depth, memory_order_relaxed);
    dm_addr before = {atomic_load_explicit(&directory->remote, memory_order_relaxed)};
    dm_addr at = dm_addr_add(before, 8 * (hash & race_bits(depth)));
    dm_post_read(client->ctx, root_addr(), client->root, RACE_ROOT_BYTES);
    if (dm_addr_valid(client->ctx, at, sizeof(uint64_t))) {
        dm_post_read(client->ctx, at, &client->root[2], sizeof(uint64_t));
    }
    DM_TRY(dm_commit(client->ctx));
    unsigned now = (unsigned)client->root[0];
    dm_addr remote = {client->root[1]};
    if (now != depth || !dm_addr_equal(remote, before)) {
        DM_TRY(read_all(directory, client->ctx, now, remote, (uint64_t *)(void *)client->stage));
        DM_TRY(
            dm_read(client->ctx, dm_addr_add(remote, 8 * (hash & race_bits(now))), &client->root[2], sizeof(uint64_t)));
    }
    *entry = client->root[2];
    learn(directory, hash, *entry);
    return 0;
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* Makes a directory of twice the size, with each entry twice. Depth and address change by one write of a line. If that
 * one failed but had its effect, who repeats this finds the greater depth. [waits] */
static int double_entries(struct race_client *client, unsigned depth, dm_addr *remote) {
    uint64_t bytes = UINT64_C(8) << depth;
    dm_addr fresh;
    if (depth == RACE_DEPTH_MAX) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_alloc(client->ctx, 0, (uint32_t)(2 * bytes), DM_LINE, DM_MEM_INNER, &fresh));
    for (uint64_t done = 0; done < bytes; done += RACE_STAGE_BYTES) {
        uint32_t n = bytes - done < RACE_STAGE_BYTES ? (uint32_t)(bytes - done) : RACE_STAGE_BYTES;
        DM_TRY(dm_read(client->ctx, dm_addr_add(*remote, done), client->stage, n));
        dm_post_write(client->ctx, dm_addr_add(fresh, done), client->stage, n);
        dm_post_write(client->ctx, dm_addr_add(fresh, bytes + done), client->stage, n);
        DM_TRY(dm_commit(client->ctx));
    }
    *remote = fresh;
    client->words[0] = depth + 1;
    client->words[1] = fresh.bits;
    client->counts[RACE_DIRECTORY_DOUBLED]++;
    return dm_write(client->ctx, root_addr(), client->words, RACE_ROOT_BYTES);
}

/* Writes an entry under all indices that end in its suffix. [waits] */
static int write_entries(struct race_client *client, dm_addr remote, uint64_t suffix, uint64_t entry, unsigned global) {
    unsigned depth = race_entry_depth(entry);
    unsigned posted = 0;
    client->words[0] = entry;
    for (uint64_t i = suffix; i <= race_bits(global); i += UINT64_C(1) << depth) {
        dm_post_write(client->ctx, dm_addr_add(remote, 8 * i), client->words, sizeof(uint64_t));
        if (++posted == BATCH) {
            DM_TRY(dm_commit(client->ctx));
            posted = 0;
        }
    }
    return dm_commit(client->ctx);
}

/* With the directory's lock held; may be repeated. [waits] */
static int split_locked(struct race_client *client, uint64_t suffix, unsigned depth, dm_addr table, dm_addr fresh,
                        bool *entered) {
    DM_TRY(dm_read(client->ctx, root_addr(), client->root, RACE_ROOT_BYTES));
    unsigned global = (unsigned)client->root[0];
    dm_addr remote = {client->root[1]};
    if (depth > global) {
        DM_TRY(double_entries(client, global, &remote));
        global++;
    }
    *entered = true;
    DM_TRY(write_entries(client, remote, suffix | UINT64_C(1) << (depth - 1), race_entry(fresh, depth), global));
    return write_entries(client, remote, suffix, race_entry(table, depth), global);
}

int race_directory_split(struct race_client *client, uint64_t suffix, unsigned depth, dm_addr table, dm_addr fresh,
                         bool *entered) {
    dm_addr lock = dm_addr_make(0, DM_DRAM, RACE_LOCK_OFFSET);
    uint32_t attempts = 0;
    uint32_t failures = 0;
    for (;;) {
        bool taken;
        DM_TRY(race_lock_take(client, lock, &taken));
        if (taken) {
            break;
        }
        DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, &attempts, 0));
    }
    int rc;
    do {
        rc = race_repeat(client, split_locked(client, suffix, depth, table, fresh, entered), &failures);
    } while (rc == RACE_AGAIN);
    if (dm_is_final(rc) || (rc != 0 && *entered)) {
        return rc;
    }
    uint64_t entry;
    /* A read that fails leaves the cache as it was. */
    int refreshed = rc == 0 ? race_directory_refresh(client, suffix | UINT64_C(1) << (depth - 1), &entry) : 0;
    DM_TRY(refreshed == DM_ERR_IO ? 0 : refreshed);
    if (rc == 0) {
        learn(&client->cn->directory, suffix, race_entry(table, depth));
    }
    int given = race_locks_give(client, &lock, 1);
    return rc != 0 ? rc : given;
}
