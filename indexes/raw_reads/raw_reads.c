/* SPDX-License-Identifier: Apache-2.0
 *
 * Not an index but a measurement in the form of one: READs alone, of the sizes that an index would use. Memory node 0
 * has an array of nodes, one for each expected key, of which nothing is written. A get hashes the key to a node and
 * reads a segment of its entries, alone, after the node's metadata, or with them by one doorbell. Other operations do
 * nothing, and values are zero.
 */
#include <stddef.h>
#include <string.h>

#include "common/prng.h"
#include "indexes/index.h"

enum {
    ENTRY_EXTRA = 4, /* hop bitmap and versions of an entry */
    LOCK_BYTES = 8,
};

enum { READS_SEGMENT, READS_METADATA_FIRST, READS_METADATA_BESIDE };

struct params {
    uint64_t entries, segment, metadata;
    unsigned reads;
};

static const char *const reads[] = {"segment", "metadata_first", "metadata_beside", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(entries, DM_OPT_COUNT, .initial = "64", .min = 1, .max = 4096, .help = "Entries of a node."),
    ROW(segment, DM_OPT_COUNT, .initial = "8", .min = 1, .max = 4096, .unit = "entries",
        .help = "Entries that a get reads."),
    ROW(metadata, DM_OPT_BYTES, .initial = "8", .min = 1, .max = 4096,
        .help = "Metadata in front of a node's entries."),
    ROW(reads, DM_OPT_ENUM, .initial = "segment", .choices = reads,
        .help = "What a get reads: the segment alone; the metadata and, when they are there, the segment; or both with "
                "one doorbell."),
    DM_OPT_END,
};

/* Sizes in bytes. */
struct layout {
    uint32_t entry, segment, metadata, node, segment_offset;
    uint64_t nodes;
};

static struct layout layout_of(const struct params *params, const struct ix_shape *shape) {
    struct layout layout = {
        .entry = ix_key_bytes(shape) + shape->value_bytes + ENTRY_EXTRA,
        .metadata = (uint32_t)params->metadata,
        .nodes = shape->expected_keys > 0 ? shape->expected_keys : 1,
    };
    uint64_t entries = params->segment > params->entries ? params->segment : params->entries;
    uint32_t all = layout.entry * (uint32_t)entries;
    layout.segment = layout.entry * (uint32_t)params->segment;
    layout.node = layout.metadata + all + LOCK_BYTES;
    /* From the middle of the node on, so that metadata and segment seldom adjoin; a long segment begins earlier. */
    uint32_t latest = all - layout.segment;
    layout.segment_offset = layout.metadata + (all / 2 < latest ? all / 2 : latest);
    return layout;
}

struct cn {
    const struct params *params;
    const struct ix_shape *shape;
    struct layout layout;
};

struct client {
    const struct cn *cn;
    struct dm_ctx *ctx;
    char *metadata, *segment; /* device memory */
};

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct params *params = values;
    (void)shape;
    if (params->segment > params->entries) {
        return dm_fail(err, DM_ERR_INVALID, "segment %llu: a node has %llu entries",
                       (unsigned long long)params->segment, (unsigned long long)params->entries);
    }
    return 0;
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    struct layout layout = layout_of(values, shape);
    uint64_t nodes = keys > layout.nodes ? keys : layout.nodes;
    return DM_RESERVED_BYTES + nodes * layout.node;
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct cn *cn = handle;
    (void)ctx;
    (void)err;
    *cn = (struct cn){.params = values, .shape = shape, .layout = layout_of(values, shape)};
    return 0;
}

static int load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    (void)handle;
    (void)ctx;
    (void)pairs;
    (void)err;
    return 0;
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct client *client = handle;
    const struct cn *cn = cn_handle;
    (void)err;
    *client = (struct client){
        .cn = cn,
        .ctx = ctx,
        .metadata = dm_local_alloc(ctx, cn->layout.metadata),
        .segment = dm_local_alloc(ctx, cn->layout.segment),
    };
    return client->metadata && client->segment ? 0 : DM_ERR_NO_MEMORY;
}

static int get(void *handle, uint64_t key, void *value) {
    struct client *client = handle;
    const struct cn *cn = client->cn;
    const struct layout *layout = &cn->layout;
    uint64_t number = (uint64_t)((unsigned __int128)dm_mix64(key) * layout->nodes >> 64);
    dm_addr node = dm_addr_make(0, DM_DRAM, DM_RESERVED_BYTES + number * layout->node);
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    memset(value, 0, cn->shape->value_bytes);
    if (cn->params->reads == READS_METADATA_FIRST) {
        DM_TRY(dm_read(client->ctx, node, client->metadata, layout->metadata));
    } else if (cn->params->reads == READS_METADATA_BESIDE) {
        dm_post_read(client->ctx, node, client->metadata, layout->metadata);
    }
    dm_post_read(client->ctx, dm_addr_add(node, layout->segment_offset), client->segment, layout->segment);
    return dm_commit(client->ctx);
}

static uint64_t cache_bytes(const void *cn) {
    (void)cn;
    return 0;
}

static int verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    (void)handle;
    (void)ctx;
    (void)err;
    *report = (struct ix_report){.interrupted = report->interrupted};
    return 0;
}

const struct ix_ops ix_ops_raw_reads = {
    .name = "raw_reads",
    .summary = "no index: READs of a node's metadata and entries, alone, one by one, or together",
    .paper = "figure 4 of the CHIME paper (SOSP 2024), which issues READs continuously, without an index",
    .caps = IX_CAP_NO_DATA,
    .params = params_table,
    .params_bytes = sizeof(struct params),
    .cn_bytes = sizeof(struct cn),
    .client_bytes = sizeof(struct client),
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .check = check,
    .memory_needed = memory_needed,
    .open = open_cn,
    .load = load,
    .attach = attach,
    .get = get,
    .cache_bytes = cache_bytes,
    .verify = verify,
};
