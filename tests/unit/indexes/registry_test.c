/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of an index's table, and the callers of its hooks: a broken table is refused by the name of what is wrong,
 * objects are zeroed before a hook and freed after a failure, and an error names the index once.
 */
#include "indexes/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/transport/sim_world.h"

/* ---- an index whose hooks do what the test says ------------------------------------------------------------------ */

enum { COUNTED = 7 };

struct params {
    uint64_t size;
};
struct object {
    uint64_t touched; /* by the hook that fills it */
    uint64_t counts[2];
};

static struct {
    int outcome;          /* what hooks return */
    const char *message;  /* and say; NULL: nothing */
    unsigned calls;       /* of hooks that fill an object */
    unsigned frees;       /* of hooks that empty one */
    unsigned unzeroed;    /* objects that were not zeroed */
    unsigned empty_frees; /* hooks called to empty an object that was never filled */
} seen;

static int hook_end(struct dm_err *err) {
    return seen.outcome < 0 && seen.message ? dm_fail(err, seen.outcome, "%s", seen.message) : seen.outcome;
}

static int fill(struct object *object, struct dm_err *err) {
    seen.calls++;
    seen.unzeroed += object->touched != 0 || object->counts[0] != 0 || object->counts[1] != 0;
    object->touched = 1;
    object->counts[1] = COUNTED;
    return hook_end(err);
}

static void empty(struct object *object) {
    seen.frees++;
    seen.empty_frees += object->touched == 0;
}

static int check(const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    (void)shape;
    return hook_end(err);
}
static uint64_t memory_needed(const void *params, const struct ix_shape *shape, uint64_t keys) {
    (void)params;
    (void)shape;
    return keys;
}
static int serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err) {
    (void)fabric;
    (void)node;
    (void)params;
    (void)shape;
    return fill(server, err);
}
static void unserve(void *server) {
    empty(server);
}
static int format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)ctx;
    (void)params;
    (void)shape;
    return hook_end(err);
}
static int open_cn(void *cn, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)ctx;
    (void)params;
    (void)shape;
    return fill(cn, err);
}
static void close_cn(void *cn) {
    empty(cn);
}
static int load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)pairs;
    return hook_end(err);
}
static int attach(void *client, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    return fill(client, err);
}
static void detach(void *client) {
    empty(client);
}
static int get(void *client, uint64_t key, void *value) {
    (void)client;
    (void)key;
    (void)value;
    return 0;
}
static int put(void *client, uint64_t key, const void *value) {
    (void)client;
    (void)key;
    (void)value;
    return 0;
}
static int remove_key(void *client, uint64_t key) {
    (void)client;
    (void)key;
    return 0;
}
static int scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    (void)client;
    (void)first;
    (void)count;
    (void)keys;
    (void)values;
    *found = 0;
    return 0;
}
static uint64_t cache_bytes(const void *cn) {
    (void)cn;
    return 0;
}
static int verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)report;
    return hook_end(err);
}

static const struct dm_opt params_table[] = {
    DM_OPT_ROW(struct params, size, DM_OPT_COUNT, .initial = "8", .min = 1, .max = 64, .help = "A size."), DM_OPT_END};
static const struct ix_counter counters[] = {{"first", false}, {"second", true}, IX_COUNTERS_END};
static const struct ix_wrong wrong[] = {{"size", "1", 10, "too small"}, {.param = NULL}};
static const struct ix_setting small[] = {{"size", "2"}, {.param = NULL}};

static const struct ix_ops good = {
    .name = "good",
    .summary = "right in all its members",
    .paper = "none",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_SERVERS,
    .params = params_table,
    .params_bytes = sizeof(struct params),
    .counters = counters,
    .counts_offset = offsetof(struct object, counts),
    .wrong = wrong,
    .tiny = small,
    .patient = small,
    .cn_bytes = sizeof(struct object),
    .client_bytes = sizeof(struct object),
    .server_bytes = sizeof(struct object),
    .check = check,
    .memory_needed = memory_needed,
    .serve = serve,
    .unserve = unserve,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = load,
    .attach = attach,
    .detach = detach,
    .get = get,
    .insert = put,
    .update = put,
    .remove = remove_key,
    .scan = scan,
    .cache_bytes = cache_bytes,
    .verify = verify,
};

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void a_right_table_is_accepted(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(ix_table_check(&good, &err), 0);
    struct ix_ops least = good;
    least.caps = 0;
    least.insert = NULL;
    least.update = NULL;
    least.remove = NULL;
    least.scan = NULL;
    least.serve = NULL;
    least.unserve = NULL;
    least.server_bytes = 0;
    least.close = NULL;
    least.detach = NULL;
    least.counters = NULL;
    least.wrong = NULL;
    least.tiny = NULL;
    least.patient = NULL;
    assert_int_equal(ix_table_check(&least, &err), 0);
}

#define BROKEN(said, ...)                                                                                              \
    do {                                                                                                               \
        struct ix_ops ops = good;                                                                                      \
        struct dm_err err = {0};                                                                                       \
        __VA_ARGS__;                                                                                                   \
        assert_int_equal(ix_table_check(&ops, &err), DM_ERR_INVALID);                                                  \
        assert_string_equal(err.text, "index good: " said);                                                            \
    } while (0)

static void a_table_without_a_required_member_is_refused_by_its_name(void **state) {
    (void)state;
    BROKEN("summary is required", ops.summary = NULL);
    BROKEN("paper is required", ops.paper = NULL);
    BROKEN("params is required", ops.params = NULL);
    BROKEN("check is required", ops.check = NULL);
    BROKEN("memory_needed is required", ops.memory_needed = NULL);
    BROKEN("cn_bytes is required", ops.cn_bytes = 0);
    BROKEN("open is required", ops.open = NULL);
    BROKEN("load is required", ops.load = NULL);
    BROKEN("client_bytes is required", ops.client_bytes = 0);
    BROKEN("attach is required", ops.attach = NULL);
    BROKEN("get is required", ops.get = NULL);
    BROKEN("cache_bytes is required", ops.cache_bytes = NULL);
    BROKEN("verify is required", ops.verify = NULL);
    struct ix_ops nameless = good;
    struct dm_err err = {0};
    nameless.name = NULL;
    assert_int_equal(ix_table_check(&nameless, &err), DM_ERR_INVALID);
    assert_string_equal(err.text, "an index without a name");
}

static void hooks_and_capabilities_must_agree(void **state) {
    (void)state;
    BROKEN("insert is required by IX_CAP_INSERT", ops.insert = NULL);
    BROKEN("update is required by IX_CAP_INSERT", ops.update = NULL);
    BROKEN("remove is required by IX_CAP_DELETE", ops.remove = NULL);
    BROKEN("scan is required by IX_CAP_SCAN", ops.scan = NULL);
    BROKEN("insert is there without IX_CAP_INSERT", ops.caps &= ~(unsigned)IX_CAP_INSERT);
    BROKEN("remove is there without IX_CAP_DELETE", ops.caps &= ~(unsigned)IX_CAP_DELETE);
    BROKEN("scan is there without IX_CAP_SCAN", ops.caps &= ~(unsigned)IX_CAP_SCAN);
    BROKEN("serve is required by IX_CAP_SERVERS", ops.serve = NULL);
    BROKEN("IX_CAP_SERVER_FAULT is there without IX_CAP_SERVERS", ops.caps = IX_CAP_SERVER_FAULT | (ops.caps & 7));
    BROKEN("unserve is there without serve", (ops.serve = NULL, ops.caps &= 7));
    BROKEN("server_bytes is required by serve", ops.server_bytes = 0);
    BROKEN("server_bytes is there without serve", (ops.serve = NULL, ops.unserve = NULL, ops.caps &= 7));
}

static void counters_must_lie_in_the_client_and_differ(void **state) {
    (void)state;
    static const struct ix_counter twice[] = {{"same", false}, {"same", true}, IX_COUNTERS_END};
    BROKEN("counter same is there twice", ops.counters = twice);
    BROKEN("counts_offset 16: 2 counters must be within the 24 bytes of a client", ops.counts_offset = 16);
    BROKEN("counts_offset 4: 2 counters must be within the 24 bytes of a client", ops.counts_offset = 4);
}

static void settings_must_name_parameters_and_their_values(void **state) {
    (void)state;
    static const struct ix_wrong unknown[] = {{"sice", "1", 10, "no such parameter"}, {.param = NULL}};
    static const struct ix_wrong silent[] = {{"size", "1", 10, NULL}, {.param = NULL}};
    static const struct ix_setting large[] = {{"size", "65"}, {.param = NULL}};
    struct ix_ops misnamed = good;
    struct dm_err found = {0};
    misnamed.wrong = unknown;
    assert_int_equal(ix_table_check(&misnamed, &found), DM_ERR_INVALID);
    assert_non_null(strstr(found.text, "index good: wrong: "));
    assert_non_null(strstr(found.text, "sice"));
    BROKEN("wrong: size=1 has no reason", ops.wrong = silent);
    BROKEN("tiny: --size: 65 is out of range (1 to 64)", ops.tiny = large);
    BROKEN("patient: --size: 65 is out of range (1 to 64)", ops.patient = large);
}

static void every_index_of_the_list_is_found_by_its_name(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        assert_ptr_equal(ix_find((*ops)->name), *ops);
    }
    assert_null(ix_find("no such index"));
}

/* ---- callers ----------------------------------------------------------------------------------------------------- */

struct callers {
    struct ix_shape shape;
    struct params params;
};

/* Every caller with hooks that succeed, then with hooks that fail. */
static int callers_entry(struct dm_ctx *ctx, void *arg) {
    struct callers *callers = arg;
    const void *params = &callers->params;
    const struct ix_shape *shape = &callers->shape;
    struct ix_report report = {0};
    struct ix_client client;
    struct dm_err err = {0};
    void *cn, *server;
    memset(&seen, 0, sizeof(seen));
    assert_int_equal(ix_serve(&good, NULL, 0, params, shape, &server, &err), 0);
    assert_int_equal(ix_open(&good, ctx, params, shape, &cn, &err), 0);
    assert_int_equal(ix_attach(&good, cn, ctx, shape, &client, &err), 0);
    assert_int_equal(ix_counts(&client)[1], COUNTED);
    assert_int_equal(client.value_bytes, shape->value_bytes);
    assert_int_equal(ix_memory_needed(&good, params, shape, 5), 5);
    seen.outcome = DM_ERR_IO;
    assert_int_equal(ix_verify(&good, cn, ctx, &report, &err), DM_ERR_IO);
    ix_detach(&client);
    assert_null(client.handle);
    ix_detach(&client); /* once more does nothing */
    ix_close(&good, cn);
    ix_close(&good, NULL);
    ix_unserve(&good, server);
    ix_unserve(&good, NULL);
    assert_int_equal(seen.calls, 3);
    assert_int_equal(seen.frees, 3);
    return 0;
}

static int failures_entry(struct dm_ctx *ctx, void *arg) {
    struct callers *callers = arg;
    const void *params = &callers->params;
    const struct ix_shape *shape = &callers->shape;
    struct ix_client client;
    struct dm_err err = {0};
    void *cn = &err, *server = &err;
    memset(&seen, 0, sizeof(seen));
    seen.outcome = DM_ERR_NO_MEMORY;
    assert_int_equal(ix_serve(&good, NULL, 0, params, shape, &server, &err), DM_ERR_NO_MEMORY);
    assert_null(server);
    assert_string_equal(err.text, "index good: cannot serve on node 0: no memory");
    assert_int_equal(ix_open(&good, ctx, params, shape, &cn, &err), DM_ERR_NO_MEMORY);
    assert_null(cn);
    assert_string_equal(err.text, "index good: cannot open on compute node 1: no memory");
    assert_int_equal(ix_attach(&good, NULL, ctx, shape, &client, &err), DM_ERR_NO_MEMORY);
    assert_null(client.handle);
    assert_string_equal(err.text, "index good: cannot attach a client on compute node 1: no memory");
    assert_int_equal(seen.calls, 3);
    assert_int_equal(seen.frees, 3); /* what a hook has filled half-way */
    assert_int_equal(seen.empty_frees, 0);
    assert_int_equal(seen.unzeroed, 0);
    struct ix_pairs pairs = {.count = 10};
    assert_int_equal(ix_load(&good, NULL, ctx, &pairs, &err), DM_ERR_NO_MEMORY);
    assert_string_equal(err.text, "index good: cannot load 10 keys: the memory nodes are full");
    seen.message = "nodes are too small";
    assert_int_equal(ix_check(&good, params, shape, &err), DM_ERR_NO_MEMORY);
    assert_string_equal(err.text, "index good: nodes are too small");
    assert_int_equal(ix_format(&good, ctx, params, shape, &err), DM_ERR_NO_MEMORY);
    assert_string_equal(err.text, "index good: nodes are too small");
    assert_int_equal(ix_load(&good, NULL, ctx, &pairs, &err), DM_ERR_NO_MEMORY);
    assert_string_equal(err.text, "index good: nodes are too small");
    return 0;
}

static void objects_are_zeroed_filled_and_freed(void **state) {
    (void)state;
    struct world world = {0};
    struct dm_err err = {0};
    assert_int_equal(world_try_open(&world), 0);
    struct callers callers = {.shape = {.value_bytes = 8, .topology = dm_fabric_topology(world.fabric)}};
    int rc;
    assert_int_equal(dm_fabric_do(world.fabric, 1, callers_entry, &callers, &rc, &err), 0);
    assert_int_equal(dm_fabric_do(world.fabric, 1, failures_entry, &callers, &rc, &err), 0);
    world_close(&world);
}

static void the_size_of_values_is_checked_against_the_tables(void **state) {
    (void)state;
    struct params params = {8};
    struct dm_topology topology = {.mns = 1};
    struct ix_ops limited = good;
    limited.value_bytes_max = 100;
    memset(&seen, 0, sizeof(seen));
    for (uint32_t bytes = 0; bytes <= 101; bytes++) {
        struct ix_shape shape = {.value_bytes = bytes, .topology = &topology};
        struct dm_err err = {0};
        assert_int_equal(ix_check(&good, &params, &shape, &err), bytes >= 1 ? 0 : DM_ERR_INVALID);
        assert_int_equal(ix_check(&limited, &params, &shape, &err), bytes >= 1 && bytes <= 100 ? 0 : DM_ERR_INVALID);
        if (bytes > 100) {
            assert_string_equal(err.text, "index good: values of 101 bytes: must be 1 to 100");
        }
    }
}

static void the_size_of_keys_is_checked_against_the_tables(void **state) {
    (void)state;
    struct params params = {8};
    struct dm_topology topology = {.mns = 1};
    struct ix_ops longer = good;
    longer.key_bytes_max = 100;
    memset(&seen, 0, sizeof(seen));
    for (uint32_t bytes = 0; bytes <= 101; bytes++) {
        struct ix_shape shape = {.value_bytes = 8, .key_bytes = bytes, .topology = &topology};
        struct dm_err err = {0};
        bool is_usual = bytes == 0 || bytes == 8;
        assert_int_equal(ix_check(&longer, &params, &shape, &err),
                         is_usual || (bytes > 8 && bytes <= 100) ? 0 : DM_ERR_INVALID);
        if (bytes > 100) {
            assert_string_equal(err.text, "index good: keys of 101 bytes: must be 8 to 100");
        }
        assert_int_equal(ix_check(&good, &params, &shape, &err), is_usual ? 0 : DM_ERR_INVALID);
        if (bytes > 100) {
            assert_string_equal(err.text, "index good: keys of 101 bytes: it has keys of 8 bytes only");
        }
    }
}

static void the_number_of_memory_nodes_is_checked_for_every_index(void **state) {
    (void)state;
    struct params params = {8};
    memset(&seen, 0, sizeof(seen));
    for (unsigned mns = 0; mns <= DM_MNS_MAX + 1; mns++) {
        struct dm_topology topology = {.mns = mns};
        struct ix_shape shape = {.value_bytes = 8, .topology = &topology};
        struct dm_err err = {0};
        bool fits = mns >= 1 && mns <= DM_MNS_MAX;
        assert_int_equal(ix_check(&good, &params, &shape, &err), fits ? 0 : DM_ERR_INVALID);
        if (mns > DM_MNS_MAX) {
            assert_string_equal(err.text, "index good: 65 memory nodes: must be 1 to 64");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_table_is_accepted),
        cmocka_unit_test(a_table_without_a_required_member_is_refused_by_its_name),
        cmocka_unit_test(hooks_and_capabilities_must_agree),
        cmocka_unit_test(counters_must_lie_in_the_client_and_differ),
        cmocka_unit_test(settings_must_name_parameters_and_their_values),
        cmocka_unit_test(every_index_of_the_list_is_found_by_its_name),
        cmocka_unit_test(objects_are_zeroed_filled_and_freed),
        cmocka_unit_test(the_size_of_values_is_checked_against_the_tables),
        cmocka_unit_test(the_size_of_keys_is_checked_against_the_tables),
        cmocka_unit_test(the_number_of_memory_nodes_is_checked_for_every_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
