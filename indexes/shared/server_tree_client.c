/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients of the server-side tree: sizes, attaching, and operations, which are calls.
 */
#include "indexes/shared/fill.h"
#include "indexes/shared/indirect.h"
#include "indexes/shared/served.h"
#include "indexes/shared/server_tree_node.h"

int ix_server_check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    (void)values;
    return ix_served_check(shape, 32, err);
}

/* Splits leave nodes half full. */
uint64_t ix_server_memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    enum { LEVELS = 24, SLACK = 1 << 19 };
    const struct ix_server_params *params = values;
    struct ix_server_layout layout = ix_server_layout_make(params, shape);
    double fill = params->fill < 0.5 ? params->fill : 0.5;
    double mine = (double)keys / shape->topology->mns + 1;
    double leaves = mine / ix_filled(fill, layout.slots, 1) + 2;
    double inners = leaves / (ix_filled(fill, layout.fanout, 2) - 1) + LEVELS;
    double bytes = leaves * layout.leaf_bytes + inners * layout.inner_bytes;
    if (layout.rows) { /* a node behind a row begins at the next line */
        bytes += (mine + shape->topology->mn_cores) * layout.row_bytes * 17 / 16 + (leaves + inners) * DM_LINE;
    }
    return DM_RESERVED_BYTES + (uint64_t)bytes + SLACK;
}

/* ---- compute nodes and clients ----------------------------------------------------------------------------------- */

int ix_server_open(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct ix_server_cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->layout = ix_server_layout_make(cn->params, shape);
    return 0;
}

/* Compute nodes cache nothing. */
uint64_t ix_server_cache_bytes(const void *handle) {
    (void)handle;
    return 0;
}

int ix_server_attach(void *handle, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    struct ix_server_client *client = handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    uint64_t *words = dm_local_alloc(ctx, IX_RANGES_WORDS * 8);
    uint32_t request_bytes =
        (uint32_t)sizeof(struct ix_server_scan_request) + client->cn->layout.padding + client->cn->layout.value_bytes;
    client->request = dm_local_alloc(ctx, request_bytes);
    client->reply = dm_local_alloc(ctx, DM_CALL_MAX);
    if (!words || !client->request || !client->reply) {
        return DM_ERR_NO_MEMORY;
    }
    return ix_ranges_read(ctx, IX_SERVER_BORDERS_OFFSET, words, &client->ranges);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static unsigned node_of(const struct ix_server_client *client, uint64_t key) {
    return ix_ranges_node(&client->ranges, client->cn->shape->topology->mns, key);
}

/* Calls a memory node with the client's request; *len becomes the bytes behind the reply's head. */
static int call(struct ix_server_client *client, unsigned node, unsigned method, uint32_t request_bytes,
                struct ix_server_reply *reply, uint32_t *len) {
    uint32_t got = DM_CALL_MAX;
    *reply = (struct ix_server_reply){.found = 0};
    *len = 0;
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1); /* the memory node, and the request */
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
    int rc = dm_call(client->ctx, node, method, client->request, request_bytes, client->reply, &got);
    dm_phase(client->ctx, before);
    if (rc < 0) {
        return rc;
    }
    if (got < sizeof(*reply)) {
        return DM_ERR_CORRUPT;
    }
    memcpy(reply, client->reply, sizeof(*reply));
    *len = got - (uint32_t)sizeof(*reply);
    for (unsigned i = 0; i < IX_SERVER_EVENTS; i++) {
        client->counts[i] += reply->events[i];
    }
    return rc;
}

static uint32_t pair_bytes(const struct ix_server_client *client) {
    return ix_server_key_bytes(&client->cn->layout) + client->cn->layout.value_bytes;
}

/* Writes the key and its padding into the request. */
static uint32_t key_put(struct ix_server_client *client, const void *head, uint32_t head_bytes) {
    memcpy(client->request, head, head_bytes);
    memset(client->request + head_bytes, 0, client->cn->layout.padding);
    return head_bytes + client->cn->layout.padding;
}

static void value_charge(struct ix_server_client *client, uint32_t values) {
    dm_charge(client->ctx, DM_WORK_LINE_COPY, values * pair_bytes(client) / DM_LINE + 1);
}

int ix_server_get(void *handle, uint64_t key, void *value) {
    struct ix_server_client *client = handle;
    struct ix_server_reply reply;
    uint32_t len;
    uint32_t request_bytes = key_put(client, &key, sizeof(key));
    int rc = call(client, node_of(client, key), IX_SERVER_GET, request_bytes, &reply, &len);
    if (rc != 0) {
        return rc;
    }
    if (len != client->cn->layout.value_bytes) {
        return DM_ERR_CORRUPT;
    }
    value_charge(client, 1);
    memcpy(value, client->reply + sizeof(reply), len);
    return 0;
}

static int write_call(struct ix_server_client *client, unsigned method, uint64_t key, const void *value) {
    struct ix_server_reply reply;
    uint32_t len = value ? client->cn->layout.value_bytes : 0;
    uint32_t key_bytes = key_put(client, &key, sizeof(key));
    if (value) {
        value_charge(client, 1);
        memcpy(client->request + key_bytes, value, len);
    }
    return call(client, node_of(client, key), method, key_bytes + len, &reply, &len);
}

int ix_server_insert(void *client, uint64_t key, const void *value) {
    return write_call(client, IX_SERVER_INSERT, key, value);
}

int ix_server_update(void *client, uint64_t key, const void *value) {
    return write_call(client, IX_SERVER_UPDATE, key, value);
}

int ix_server_remove(void *client, uint64_t key) {
    return write_call(client, IX_SERVER_REMOVE, key, NULL);
}

/* Takes the pairs of a reply. */
static void pairs_take(struct ix_server_client *client, uint32_t count, uint64_t *keys, char *values) {
    uint32_t value_bytes = client->cn->layout.value_bytes;
    const char *pair = client->reply + sizeof(struct ix_server_reply);
    for (uint32_t i = 0; i < count; i++, pair += pair_bytes(client)) {
        memcpy(&keys[i], pair, sizeof(*keys));
        memcpy(values + (size_t)i * value_bytes, pair + ix_server_key_bytes(&client->cn->layout), value_bytes);
    }
    value_charge(client, count);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, IX_PAIR_COMPARES * count);
}

int ix_server_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct ix_server_client *client = handle;
    unsigned nodes = client->cn->shape->topology->mns;
    uint32_t value_bytes = client->cn->layout.value_bytes;
    uint64_t calls = 0;
    *found = 0;
    for (unsigned node = node_of(client, first); node < nodes && *found < count; calls++) {
        struct ix_server_scan_request request = {.first = first, .wanted = count - *found};
        struct ix_server_reply reply;
        uint32_t len;
        uint32_t request_bytes = key_put(client, &request, sizeof(request));
        DM_TRY(call(client, node, IX_SERVER_SCAN, request_bytes, &reply, &len));
        if (reply.found > request.wanted || len != (uint64_t)reply.found * pair_bytes(client) ||
            (reply.more && reply.found == 0)) {
            return DM_ERR_CORRUPT;
        }
        pairs_take(client, reply.found, keys + *found, (char *)values + (size_t)*found * value_bytes);
        *found += reply.found;
        if (reply.more) {
            first = keys[*found - 1] + 1;
        } else {
            node++;
        }
    }
    client->counts[IX_SERVER_SCAN_CONTINUED] += calls > 1 ? calls - 1 : 0;
    return 0;
}

/* ---- an index's table -------------------------------------------------------------------------------------------- */

const struct ix_counter ix_server_counters[] = {IX_SERVER_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

const struct ix_wrong ix_server_wrong[] = {
    {"validate", "off", 400, "a node is read while it is changed: keys and values of two states"},
    {"follow", "off", 2000, "a key that a split has moved is reported absent"},
    {.param = NULL},
};

const struct ix_setting ix_server_tiny[] = {{"slots", "3"}, {"fanout", "3"}, {.param = NULL}};
