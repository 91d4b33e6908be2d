/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: writes the first versions of keys, then sends blocks of them to their metadata servers.
 */
#include <stdlib.h>

#include "clover.h"

struct load {
    struct clover_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    char *spaces; /* device memory: CLOVER_LOAD_MAX versions, or fewer */
    uint32_t spaces_max;
    uint64_t keys[CLOVER_LOAD_MAX], pointers[CLOVER_LOAD_MAX];
    uint32_t pointer_count;
    unsigned next_server;
    struct clover_pair *blocks; /* CLOVER_LOAD_MAX for each server */
    uint32_t block_counts[CLOVER_SERVERS_MAX];
};

/* Has space for at least `count` versions. */
static int space_get(struct load *load, uint32_t count) {
    unsigned servers = load->cn->geometry.servers;
    for (unsigned in_vain = 0; load->pointer_count < count;) {
        struct clover_grant request = {.count = count - load->pointer_count};
        struct clover_reply reply;
        DM_TRY(clover_call(load->cn, load->ctx, load->next_server, CLOVER_METHOD_GRANT, &request, sizeof(request),
                           &reply, load->pointers + load->pointer_count,
                           (uint32_t)sizeof(load->pointers[0]) * (CLOVER_LOAD_MAX - load->pointer_count)));
        load->pointer_count += (uint32_t)(reply.count < request.count ? reply.count : request.count);
        load->next_server = (load->next_server + 1) % servers;
        in_vain = reply.count > 0 ? 0 : in_vain + 1;
        if (in_vain > servers) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return 0;
}

static int versions_write(struct load *load, uint32_t count) {
    const struct clover_geometry *geometry = &load->cn->geometry;
    char value[CLOVER_VALUE_MAX];
    for (uint32_t i = 0; i < count; i++) {
        char *space = load->spaces + (size_t)i * geometry->space_bytes;
        load->pairs->value(load->pairs, load->keys[i], value);
        clover_version_make(space, load->pointers[i], load->keys[i], value, geometry->value_bytes);
        dm_post_write(load->ctx, clover_addr_of(load->pointers[i]), space, geometry->space_bytes);
        unsigned server = clover_server_of(geometry, clover_hash(load->keys[i]));
        load->blocks[(size_t)server * CLOVER_LOAD_MAX + load->block_counts[server]++] =
            (struct clover_pair){.key = load->keys[i], .pointer = load->pointers[i]};
    }
    load->pointer_count = 0;
    return dm_commit(load->ctx);
}

static int block_send(struct load *load, unsigned server) {
    const struct clover_pair *block = load->blocks + (size_t)server * CLOVER_LOAD_MAX;
    uint32_t count = load->block_counts[server];
    uint64_t shortcuts[CLOVER_LOAD_MAX];
    struct clover_reply reply;
    if (count == 0) {
        return 0;
    }
    load->block_counts[server] = 0;
    DM_TRY(clover_call(load->cn, load->ctx, server, CLOVER_METHOD_LOAD, block, count * (uint32_t)sizeof(*block), &reply,
                       shortcuts, sizeof(shortcuts)));
    if (reply.count != count) {
        return DM_ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < count && load->cn->params->load_cached; i++) {
        const struct clover_cached cached = {
            .key = block[i].key, .pointer = block[i].pointer, .shortcut = shortcuts[i]};
        (void)clover_cache_put(&load->cn->cache, clover_hash(block[i].key), &cached);
    }
    return 0;
}

static int load_all(struct load *load) {
    for (uint64_t first = 0; first < load->pairs->count;) {
        uint64_t left = load->pairs->count - first;
        uint64_t n =
            load->pairs->keys(load->pairs, first, left < load->spaces_max ? left : load->spaces_max, load->keys);
        DM_TRY(space_get(load, (uint32_t)n));
        DM_TRY(versions_write(load, (uint32_t)n));
        for (unsigned server = 0; server < load->cn->geometry.servers; server++) {
            DM_TRY(block_send(load, server));
        }
        first += n;
    }
    return 0;
}

int clover_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    enum { SPACES_BYTES = 1 << 20 };
    struct clover_cn *cn = handle;
    (void)err;
    struct load *load = calloc(1, sizeof(*load));
    if (!load) {
        return DM_ERR_NO_MEMORY;
    }
    uint32_t fits = SPACES_BYTES / cn->geometry.space_bytes;
    load->cn = cn;
    load->ctx = ctx;
    load->pairs = pairs;
    load->spaces_max = fits < CLOVER_LOAD_MAX ? fits : CLOVER_LOAD_MAX;
    load->spaces_max = load->spaces_max < DM_BATCH_MAX ? load->spaces_max : DM_BATCH_MAX;
    load->spaces = dm_local_alloc(ctx, load->spaces_max * cn->geometry.space_bytes);
    load->blocks = calloc((size_t)cn->geometry.servers * CLOVER_LOAD_MAX, sizeof(*load->blocks));
    int rc = load->spaces && load->blocks ? load_all(load) : DM_ERR_NO_MEMORY;
    free(load->blocks);
    free(load);
    return rc;
}
