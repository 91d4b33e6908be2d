/* SPDX-License-Identifier: Apache-2.0
 *
 * The indexes of indexes.def as an array, the check of their tables, and the callers of their hooks. Adding an index
 * needs no edit here.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "indexes/index.h"

#define IX_INDEX(name) extern const struct ix_ops ix_ops_##name;
#include "indexes/indexes.def"
#undef IX_INDEX

static const struct ix_ops *const all[] = {
#define IX_INDEX(name) &ix_ops_##name,
#include "indexes/indexes.def"
#undef IX_INDEX
    NULL,
};

/* ---- the check of a table ---------------------------------------------------------------------------------------- */

static int required_check(const struct ix_ops *ops, struct dm_err *err) {
    const struct {
        const char *name;
        bool is_there;
    } members[] = {
        {"summary", ops->summary},
        {"paper", ops->paper},
        {"params", ops->params},
        {"check", ops->check},
        {"memory_needed", ops->memory_needed},
        {"cn_bytes", ops->cn_bytes > 0},
        {"open", ops->open},
        {"load", ops->load},
        {"client_bytes", ops->client_bytes > 0},
        {"attach", ops->attach},
        {"get", ops->get},
        {"cache_bytes", ops->cache_bytes},
        {"verify", ops->verify},
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (!members[i].is_there) {
            return dm_fail(err, DM_ERR_INVALID, "%s is required", members[i].name);
        }
    }
    return 0;
}

static int caps_check(const struct ix_ops *ops, struct dm_err *err) {
    const struct {
        unsigned cap;
        const char *cap_name, *hook;
        bool is_there;
    } hooks[] = {
        {IX_CAP_INSERT, "IX_CAP_INSERT", "insert", ops->insert},
        {IX_CAP_INSERT, "IX_CAP_INSERT", "update", ops->update},
        {IX_CAP_DELETE, "IX_CAP_DELETE", "remove", ops->remove},
        {IX_CAP_SCAN, "IX_CAP_SCAN", "scan", ops->scan},
    };
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        bool is_claimed = ops->caps & hooks[i].cap;
        if (is_claimed != hooks[i].is_there) {
            return dm_fail(err, DM_ERR_INVALID, is_claimed ? "%s is required by %s" : "%s is there without %s",
                           hooks[i].hook, hooks[i].cap_name);
        }
    }
    if (ops->caps & IX_CAP_SERVERS && !ops->serve) {
        return dm_fail(err, DM_ERR_INVALID, "serve is required by IX_CAP_SERVERS");
    }
    if (ops->caps & IX_CAP_SERVER_FAULT && !(ops->caps & IX_CAP_SERVERS)) {
        return dm_fail(err, DM_ERR_INVALID, "IX_CAP_SERVER_FAULT is there without IX_CAP_SERVERS");
    }
    if (ops->unserve && !ops->serve) {
        return dm_fail(err, DM_ERR_INVALID, "unserve is there without serve");
    }
    if ((ops->server_bytes > 0) != (ops->serve != NULL)) {
        return dm_fail(err, DM_ERR_INVALID,
                       ops->serve ? "server_bytes is required by serve" : "server_bytes is there without serve");
    }
    return 0;
}

static int counters_check(const struct ix_ops *ops, struct dm_err *err) {
    size_t count = ix_counter_count(ops);
    if (ops->counts_offset % sizeof(uint64_t) != 0 ||
        ops->counts_offset + count * sizeof(uint64_t) > ops->client_bytes) {
        return dm_fail(err, DM_ERR_INVALID, "counts_offset %zu: %zu counters must be within the %zu bytes of a client",
                       ops->counts_offset, count, ops->client_bytes);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(ops->counters[i].name, ops->counters[k].name) == 0) {
                return dm_fail(err, DM_ERR_INVALID, "counter %s is there twice", ops->counters[i].name);
            }
        }
    }
    return 0;
}

static int setting_check(const struct ix_ops *ops, const char *list, const char *param, const char *value, void *params,
                         struct dm_err *err) {
    struct dm_err own = {0};
    int rc = dm_opt_set(ops->params, params, param, value, &own);
    return rc < 0 ? dm_fail(err, rc, "%s: %s", list, own.text) : 0;
}

static int settings_check(const struct ix_ops *ops, void *params, struct dm_err *err) {
    dm_opt_defaults(ops->params, params);
    for (const struct ix_wrong *wrong = ops->wrong; wrong && wrong->param; wrong++) {
        DM_TRY(setting_check(ops, "wrong", wrong->param, wrong->value, params, err));
        if (!wrong->why) {
            return dm_fail(err, DM_ERR_INVALID, "wrong: %s=%s has no reason", wrong->param, wrong->value);
        }
    }
    for (const struct ix_setting *tiny = ops->tiny; tiny && tiny->param; tiny++) {
        DM_TRY(setting_check(ops, "tiny", tiny->param, tiny->value, params, err));
    }
    for (const struct ix_setting *patient = ops->patient; patient && patient->param; patient++) {
        DM_TRY(setting_check(ops, "patient", patient->param, patient->value, params, err));
    }
    return 0;
}

static int table_check(const struct ix_ops *ops, struct dm_err *err) {
    DM_TRY(required_check(ops, err));
    DM_TRY(caps_check(ops, err));
    DM_TRY(counters_check(ops, err));
    void *params = calloc(1, ops->params_bytes + 1);
    if (!params) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = settings_check(ops, params, err);
    dm_opt_free(ops->params, params);
    free(params);
    return rc;
}

int ix_table_check(const struct ix_ops *ops, struct dm_err *err) {
    if (!ops->name) {
        return dm_fail(err, DM_ERR_INVALID, "an index without a name");
    }
    int rc = table_check(ops, err);
    return rc < 0 ? dm_fail_in(err, rc, "index %s", ops->name) : 0;
}

/* ---- the array --------------------------------------------------------------------------------------------------- */

static pthread_once_t checked = PTHREAD_ONCE_INIT;

static void all_check(void) {
    for (const struct ix_ops *const *ops = all; *ops; ops++) {
        struct dm_err err = {0};
        if (ix_table_check(*ops, &err) < 0) {
            fprintf(stderr, "dmbench: %s\n", err.text);
            exit(EXIT_FAILURE);
        }
    }
}

const struct ix_ops *const *ix_all(void) {
    pthread_once(&checked, all_check);
    return all;
}

const struct ix_ops *ix_find(const char *name) {
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        if (strcmp((*ops)->name, name) == 0) {
            return *ops;
        }
    }
    return NULL;
}

size_t ix_counter_count(const struct ix_ops *ops) {
    size_t count = 0;
    while (ops->counters && ops->counters[count].name) {
        count++;
    }
    return count;
}

int ix_settings_set(const struct ix_ops *ops, const struct ix_setting *settings, void *params, struct dm_err *err) {
    for (; settings && settings->param; settings++) {
        DM_TRY(dm_opt_set(ops->params, params, settings->param, settings->value, err));
    }
    return 0;
}

/* ---- the callers of the hooks ------------------------------------------------------------------------------------ */

/* The index's name before the hook's message, or before `what` and the code's text if the hook left none. */
static int fail(const struct ix_ops *ops, int rc, const struct dm_err *own, struct dm_err *err, const char *what,
                unsigned number) {
    return own->text[0] ? dm_fail(err, rc, "index %s: %s", ops->name, own->text)
                        : dm_fail(err, rc, "index %s: cannot %s %u: %s", ops->name, what, number, dm_code_text(rc));
}

int ix_check(const struct ix_ops *ops, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    struct dm_err own = {0};
    if (shape->topology->mns < 1 || shape->topology->mns > DM_MNS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "index %s: %u memory nodes: must be 1 to %d", ops->name,
                       shape->topology->mns, DM_MNS_MAX);
    }
    uint32_t most = ops->value_bytes_max > 0 ? ops->value_bytes_max : UINT32_MAX;
    if (shape->value_bytes < 1 || shape->value_bytes > most) {
        return dm_fail(err, DM_ERR_INVALID, "index %s: values of %u bytes: must be 1 to %u", ops->name,
                       shape->value_bytes, most);
    }
    uint32_t keys = ix_key_bytes(shape), keys_most = ops->key_bytes_max > 0 ? ops->key_bytes_max : IX_KEY_BYTES_MIN;
    if (keys < IX_KEY_BYTES_MIN || keys > keys_most) {
        return dm_fail(err, DM_ERR_INVALID,
                       keys_most > IX_KEY_BYTES_MIN ? "index %s: keys of %u bytes: must be %d to %u"
                                                    : "index %s: keys of %u bytes: it has keys of %d bytes only",
                       ops->name, keys, IX_KEY_BYTES_MIN, keys_most);
    }
    int rc = ops->check(params, shape, &own);
    return rc < 0 ? fail(ops, rc, &own, err, "work with value_bytes", shape->value_bytes) : 0;
}

uint64_t ix_memory_needed(const struct ix_ops *ops, const void *params, const struct ix_shape *shape, uint64_t keys) {
    return ops->memory_needed(params, shape, keys);
}

int ix_serve(const struct ix_ops *ops, struct dm_fabric *fabric, unsigned node, const void *params,
             const struct ix_shape *shape, void **server, struct dm_err *err) {
    struct dm_err own = {0};
    *server = NULL;
    if (!ops->serve) {
        return 0;
    }
    *server = calloc(1, ops->server_bytes);
    int rc = *server ? ops->serve(*server, fabric, node, params, shape, &own) : DM_ERR_NO_MEMORY;
    if (rc < 0) {
        ix_unserve(ops, *server);
        *server = NULL;
        return fail(ops, rc, &own, err, "serve on node", node);
    }
    return 0;
}

void ix_unserve(const struct ix_ops *ops, void *server) {
    if (server && ops->unserve) {
        ops->unserve(server);
    }
    free(server);
}

int ix_format(const struct ix_ops *ops, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape,
              struct dm_err *err) {
    struct dm_err own = {0};
    int rc = ops->format ? ops->format(ctx, params, shape, &own) : 0;
    return rc < 0 ? fail(ops, rc, &own, err, "write the empty index from node", dm_node(ctx)) : 0;
}

int ix_open(const struct ix_ops *ops, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, void **cn,
            struct dm_err *err) {
    struct dm_err own = {0};
    *cn = calloc(1, ops->cn_bytes);
    int rc = *cn ? ops->open(*cn, ctx, params, shape, &own) : DM_ERR_NO_MEMORY;
    if (rc < 0) {
        ix_close(ops, *cn);
        *cn = NULL;
        return fail(ops, rc, &own, err, "open on compute node", dm_node(ctx));
    }
    return 0;
}

void ix_close(const struct ix_ops *ops, void *cn) {
    if (cn && ops->close) {
        ops->close(cn);
    }
    free(cn);
}

int ix_load(const struct ix_ops *ops, void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct dm_err own = {0};
    int rc = ops->load(cn, ctx, pairs, &own);
    if (rc < 0 && !own.text[0]) {
        dm_fail(&own, rc, "cannot load %llu keys: %s", (unsigned long long)pairs->count,
                rc == DM_ERR_NO_MEMORY ? "the memory nodes are full" : dm_code_text(rc));
    }
    return rc < 0 ? fail(ops, rc, &own, err, NULL, 0) : 0;
}

int ix_attach(const struct ix_ops *ops, void *cn, struct dm_ctx *ctx, const struct ix_shape *shape,
              struct ix_client *client, struct dm_err *err) {
    struct dm_err own = {0};
    char *handle = calloc(1, ops->client_bytes);
    *client = (struct ix_client){.ops = ops, .handle = handle, .value_bytes = shape->value_bytes};
    if (handle && ops->counters) {
        client->counts = (const uint64_t *)(const void *)(handle + ops->counts_offset);
    }
    int rc = handle ? ops->attach(handle, cn, ctx, &own) : DM_ERR_NO_MEMORY;
    if (rc < 0) {
        ix_detach(client);
        return fail(ops, rc, &own, err, "attach a client on compute node", dm_node(ctx));
    }
    return 0;
}

void ix_detach(struct ix_client *client) {
    if (client->handle && client->ops->detach) {
        client->ops->detach(client->handle);
    }
    free(client->handle);
    client->handle = NULL;
    client->counts = NULL;
}

uint64_t ix_cache_bytes(const struct ix_ops *ops, const void *cn) {
    return ops->cache_bytes(cn);
}

uint64_t ix_cache_entry_bytes(const struct ix_ops *ops, const void *cn) {
    return ops->cache_entry_bytes ? ops->cache_entry_bytes(cn) : 0;
}

int ix_verify(const struct ix_ops *ops, void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct dm_err own = {0};
    int rc = ops->verify(cn, ctx, report, &own);
    return rc < 0 ? fail(ops, rc, &own, err, "walk the index from compute node", dm_node(ctx)) : 0;
}
