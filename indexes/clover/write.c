/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes: a new version is written to space that was granted beforehand, and is then added behind the last version by a
 * compare-and-swap of its header. A key that the metadata server does not know is added by a call.
 */
#include <string.h>

#include "clover.h"
#include "indexes/shared/retry.h"

enum kind { KIND_INSERT, KIND_UPDATE, KIND_REMOVE };

struct write {
    struct clover_client *client;
    enum kind kind;
    const void *value;
    struct clover_spot spot;
    uint64_t made; /* pointer to the new version, which no other client has seen; 0: there is none yet */
};

/* Writes the new version into space of its own. */
static int version_write(struct write *write) {
    struct clover_client *client = write->client;
    const struct clover_geometry *geometry = &client->cn->geometry;
    uint64_t space;
    bool is_tombstone = write->kind == KIND_REMOVE;
    DM_TRY(clover_space_take(client, &space));
    write->made = space | (is_tombstone ? CLOVER_TOMBSTONE : 0);
    clover_version_make(client->made, write->made, write->spot.key, write->value, geometry->value_bytes);
    clover_version_charge(client->ctx, is_tombstone ? 0 : geometry->value_bytes);
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
    int rc = dm_write(client->ctx, clover_addr_of(space), client->made, is_tombstone ? DM_LINE : geometry->space_bytes);
    dm_phase(client->ctx, before);
    return rc;
}

/* Adds the new version behind the one at the spot. 0, DM_EXISTS if that one is not the last, or a failure. */
static int version_link(struct write *write) {
    struct clover_client *client = write->client;
    uint64_t last = write->spot.pointer;
    uint64_t expected = clover_header_make(0, last), desired = clover_header_make(write->made, last);
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_INDEX);
    int rc;
    if (client->cn->params->link == CLOVER_LINK_WRITE) { /* known to be wrong */
        client->words[0] = desired;
        rc = dm_write(client->ctx, clover_addr_of(last), client->words, sizeof(desired));
        client->words[0] = expected;
    } else {
        rc = dm_cas(client->ctx, clover_addr_of(last), expected, desired, client->words);
    }
    dm_phase(client->ctx, before);
    DM_TRY(rc);
    return client->words[0] == expected ? 0 : DM_EXISTS;
}

/* The new version is the last one. */
static int write_end(struct write *write) {
    struct clover_client *client = write->client;
    const struct clover_garbage garbage = {
        .replaced = {.key = write->spot.key, .old = write->spot.pointer, .next = write->made},
        .shortcut = write->spot.shortcut};
    client->counts[CLOVER_REVIVED] += write->kind == KIND_INSERT;
    write->spot.pointer = write->made;
    write->spot.is_cached = false;
    write->made = 0;
    clover_spot_keep(client, &write->spot);
    return clover_garbage_put(client, &garbage);
}

/* The outcome if the last version forbids the write; 0 if it does not. */
static int refusal(const struct write *write) {
    bool is_absent = clover_is_tombstone(write->spot.pointer);
    if (write->kind == KIND_INSERT) {
        return is_absent ? 0 : DM_EXISTS;
    }
    return is_absent ? DM_NOT_FOUND : 0;
}

/* Replaces the last version of a key that the metadata server has. An update does not read it beforehand: if the
 * pointer's version was replaced, the compare-and-swap fails. */
static int replace(struct write *write, uint32_t *attempts) {
    struct clover_client *client = write->client;
    bool is_last = write->kind != KIND_INSERT && !clover_is_tombstone(write->spot.pointer);
    for (;;) {
        if (!is_last) {
            int rc = clover_tail_find(client, &write->spot, false, attempts);
            rc = rc == 0 ? refusal(write) : rc;
            if (rc != 0) {
                return rc;
            }
        }
        if (!write->made) {
            DM_TRY(version_write(write));
        }
        int rc = version_link(write);
        if (rc != DM_EXISTS) {
            DM_TRY(rc);
            return write_end(write);
        }
        client->counts[CLOVER_CAS_LOST]++;
        is_last = false;
        write->spot.has_shortcut = false; /* as published, each chase begins with it */
        DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, attempts, 0));
    }
}

/* Adds a key with its first version. DM_EXISTS: the server has the key; the spot is at its oldest version. */
static int key_create(struct write *write) {
    struct clover_client *client = write->client;
    const struct clover_pair pair = {.key = write->spot.key, .pointer = write->made};
    unsigned server = clover_server_of(&client->cn->geometry, write->spot.hash);
    struct clover_reply reply;
    int rc = clover_call(client->cn, client->ctx, server, CLOVER_METHOD_CREATE, &pair, sizeof(pair), &reply, NULL, 0);
    DM_TRY(rc);
    write->spot.shortcut = reply.shortcut;
    write->spot.pointer = reply.pointer;
    write->spot.was_asked = true;
    if (rc == 0) {
        write->made = 0;
        clover_spot_keep(client, &write->spot);
    }
    return rc;
}

/* The outcome of a write for which there is no memory: only if it would have needed it. */
static int without_memory(struct write *write, uint32_t *attempts) {
    int rc = clover_tail_find(write->client, &write->spot, false, attempts);
    if (rc == DM_NOT_FOUND) {
        return write->kind == KIND_INSERT ? DM_ERR_NO_MEMORY : rc;
    }
    rc = rc == 0 ? refusal(write) : rc;
    return rc == 0 ? DM_ERR_NO_MEMORY : rc;
}

static int write_do(struct write *write, uint64_t key, uint32_t *attempts) {
    struct clover_client *client = write->client;
    clover_spot_open(client, key, &write->spot);
    if (write->spot.pointer) {
        return replace(write, attempts);
    }
    if (write->kind != KIND_INSERT) {
        int rc = clover_spot_ask(client, &write->spot);
        return rc == 0 ? replace(write, attempts) : rc;
    }
    DM_TRY(version_write(write));
    int rc = key_create(write);
    return rc == DM_EXISTS ? replace(write, attempts) : rc;
}

static int write_run(struct clover_client *client, enum kind kind, uint64_t key, const void *value) {
    struct write write = {.client = client, .kind = kind, .value = value};
    uint32_t attempts = 0;
    int rc = write_do(&write, key, &attempts);
    if (write.made && (rc == DM_EXISTS || rc == DM_NOT_FOUND || rc == DM_ERR_NO_MEMORY)) {
        client->spare = write.made & ~CLOVER_TOMBSTONE;
        write.made = 0;
    }
    if (rc == DM_ERR_NO_MEMORY) {
        rc = without_memory(&write, &attempts);
    }
    if (rc == DM_EXISTS || rc == DM_NOT_FOUND) {
        clover_spot_keep(client, &write.spot);
    }
    return rc;
}

int clover_insert(void *client, uint64_t key, const void *value) {
    return write_run(client, KIND_INSERT, key, value);
}

int clover_update(void *client, uint64_t key, const void *value) {
    return write_run(client, KIND_UPDATE, key, value);
}

int clover_remove(void *client, uint64_t key) {
    return write_run(client, KIND_REMOVE, key, NULL);
}
