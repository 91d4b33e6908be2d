/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds as JSON files. A file has all of a world, so it stays the same world whatever seeds draw later:
 *
 *   {"kind": "dmbench world", "schema_version": 1, "why": "...", "index": "chime", "transport": "sim", "seed": 17,
 *    "rdwc": "off", "numbers": {"clients": 3, "cns": 2, ...}, "params": {...}, "settings": {"read_order": "any", ...},
 *    "keys": [[KEY, LOADED], ...], "steps": [[CLIENT, "insert", KEY INDEX, WANTED, PAUSE], ...],
 *    "faults": [["stops", CLIENT, SERVER, AFTER, NS, PERCENT], ...]}
 *
 * A fault with a seventh element is aimed at that step. "profile" and "emulates_masked" may be missing. "seed" is that
 * of the fabric alone. Numbers above 2^63 - 1 are strings. The reader refuses what no world can have.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/world.h"
#include "common/compiler.h"
#include "common/opt_json.h"
#include "common/output_file.h"

enum { SCHEMA_VERSION = 1 };
static const char kind_text[] = "dmbench world";
static const char *const rdwc_names[] = {
    [IX_RDWC_OFF] = "off", [IX_RDWC_ON] = "on", [IX_RDWC_PUBLISHED] = "published", [IX_RDWC_STALE] = "stale"};
static const char *const fault_names[] = {
    [CK_CLIENT_ENDS] = "ends",      [CK_CLIENT_STOPS] = "stops",    [CK_CLIENT_STALLS] = "stalls",
    [CK_VERBS_LATE] = "late",       [CK_SERVER_FAILS] = "fails",    [CK_NODE_LATE] = "node_late",
    [CK_READ_FAILS] = "read_fails", [CK_VERB_FAILS] = "verb_fails", [CK_MEMORY_ENDS] = "memory_ends"};

/* The numbers of a world: where each is, its size, and its bounds. */
#define NUMBER(name, member, least, most)                                                                              \
    { name, offsetof(struct ck_world, member), sizeof(((struct ck_world *)0)->member), least, most }
static const struct {
    const char *name;
    size_t offset, bytes;
    uint64_t least, most;
} numbers[] = {
    NUMBER("clients", topology.clients, 1, CK_CLIENTS_MAX),
    NUMBER("cns", topology.cns, 1, CK_CNS_MAX),
    NUMBER("mns", topology.mns, 1, 3),
    NUMBER("servers", topology.servers, 0, 4),
    NUMBER("mn_cores", topology.mn_cores, 1, 64),
    NUMBER("server_cores", topology.server_cores, 1, 64),
    NUMBER("clients_per_thread", topology.clients_per_thread, 1, CK_CLIENTS_MAX),
    NUMBER("mn_bytes", topology.mn_bytes, 1 << 20, 1 << 30),
    NUMBER("chip_bytes", topology.chip_bytes, 0, 1 << 20),
    NUMBER("value_bytes", shape.value_bytes, 8, 64),
    NUMBER("key_bytes", shape.key_bytes, 0, IX_KEY_BYTES_MAX),
    NUMBER("cache_bytes", shape.cache_bytes, 0, 1 << 30),
    NUMBER("retry_limit", retry_limit, 1, 1 << 30),
    NUMBER("rdwc_slots", rdwc_slots, 1, 1 << 20),
};

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static json_t *number_json(uint64_t number) {
    char text[24];
    if (number <= INT64_MAX) {
        return json_integer((json_int_t)number);
    }
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return json_string(text);
}

static json_t *numbers_json(const struct ck_world *world) {
    json_t *object = json_object();
    for (size_t i = 0; i < DM_ARRAY_LEN(numbers); i++) {
        const char *at = (const char *)world + numbers[i].offset;
        uint64_t wide = 0;
        uint32_t narrow = 0;
        memcpy(numbers[i].bytes == sizeof(wide) ? (void *)&wide : &narrow, at, numbers[i].bytes);
        json_object_set_new(object, numbers[i].name, number_json(numbers[i].bytes == sizeof(wide) ? wide : narrow));
    }
    return object;
}

static json_t *steps_json(const struct ck_world *world) {
    json_t *array = json_array();
    for (size_t i = 0; i < world->step_count; i++) {
        const struct ck_step *step = &world->steps[i];
        json_array_append_new(array, json_pack("[i, s, i, I, I]", (int)step->client, wl_op_names[step->kind],
                                               (int)step->key, (json_int_t)step->wanted, (json_int_t)step->pause_ns));
    }
    return array;
}

static json_t *faults_json(const struct ck_world *world) {
    json_t *array = json_array();
    for (size_t i = 0; i < world->fault_count; i++) {
        const struct ck_world_fault *fault = &world->faults[i];
        json_t *row = json_pack("[s, i, i, I, I, i]", fault_names[fault->kind], (int)fault->client, (int)fault->server,
                                (json_int_t)fault->after, (json_int_t)fault->ns, (int)fault->percent);
        if (fault->is_aimed) {
            json_array_append_new(row, json_integer((json_int_t)fault->step));
        }
        json_array_append_new(array, row);
    }
    return array;
}

/* Prints a member, and releases its value. */
static void member_print(FILE *out, const char *name, json_t *value) {
    fprintf(out, " \"%s\": ", name);
    json_dumpf(value, out, JSON_ENCODE_ANY);
    fputs(",\n", out);
    json_decref(value);
}

/* Prints a list, one element a line; the last list has no comma after it. */
static void list_print(FILE *out, const char *name, json_t *list) {
    fprintf(out, " \"%s\": [", name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        fputs(i == 0 ? "\n  " : ",\n  ", out);
        json_dumpf(json_array_get(list, i), out, JSON_COMPACT);
    }
    fputs(strcmp(name, "steps") == 0 ? "]" : "],\n", out);
    json_decref(list);
}

int ck_world_store(const struct ck_world *world, const char *why, const char *path, struct dm_err *err) {
    json_t *keys = json_array(), *settings = json_object();
    for (unsigned i = 0; i < world->key_count; i++) {
        json_array_append_new(keys, json_pack("[o, i]", number_json(world->keys[i]), world->loaded[i]));
    }
    for (size_t i = 0; i < world->setting_count; i++) { /* the last one of a name counts */
        json_object_set_new(settings, world->settings[i].name, json_string(world->settings[i].value));
    }
    FILE *out = dm_output_open(path, err);
    if (!out) {
        json_decref(keys);
        json_decref(settings);
        return DM_ERR_IO;
    }
    fputs("{\n", out);
    member_print(out, "kind", json_string(kind_text));
    member_print(out, "schema_version", json_integer(SCHEMA_VERSION));
    member_print(out, "why", json_string(why));
    member_print(out, "index", json_string(world->index->name));
    member_print(out, "transport", json_string(world->transport));
    member_print(out, "seed", number_json(world->seed));
    member_print(out, "rdwc", json_string(rdwc_names[world->rdwc]));
    member_print(out, "profile", json_string(world->profile));
    member_print(out, "emulates_masked", json_boolean(world->emulates_masked));
    member_print(out, "numbers", numbers_json(world));
    member_print(out, "params", dm_opt_to_json(world->index->params, world->params));
    member_print(out, "settings", settings);
    list_print(out, "keys", keys);
    list_print(out, "faults", faults_json(world));
    list_print(out, "steps", steps_json(world));
    fputs("\n}\n", out);
    return dm_output_close(out, path, err);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

struct reader {
    const char *path;
    struct ck_world *world;
    struct dm_err *err;
};

static int refuse(const struct reader *reader, const char *member, size_t at, const char *what) {
    return dm_fail(reader->err, DM_ERR_INVALID, "%s: %s %zu: %s", reader->path, member, at, what);
}

static bool number_read(const json_t *value, uint64_t least, uint64_t most, uint64_t *number) {
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *number = (uint64_t)json_integer_value(value);
    } else if (!json_is_string(value) || dm_parse_count(json_string_value(value), number, NULL) < 0) {
        return false;
    }
    return *number >= least && *number <= most;
}

/* The index of a text in a list; -1 if it is not there. */
static int name_read(const json_t *value, const char *const *names, size_t count) {
    for (size_t i = 0; i < count && json_is_string(value); i++) {
        if (names[i] && strcmp(names[i], json_string_value(value)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int numbers_read(const struct reader *reader, const json_t *object) {
    if (json_object_size(object) != DM_ARRAY_LEN(numbers)) {
        return refuse(reader, "numbers", json_object_size(object), "of them; too few or too many");
    }
    for (size_t i = 0; i < DM_ARRAY_LEN(numbers); i++) {
        uint64_t wide;
        if (!number_read(json_object_get(object, numbers[i].name), numbers[i].least, numbers[i].most, &wide)) {
            return dm_fail(reader->err, DM_ERR_INVALID, "%s: numbers.%s: must be %" PRIu64 " to %" PRIu64, reader->path,
                           numbers[i].name, numbers[i].least, numbers[i].most);
        }
        uint32_t narrow = (uint32_t)wide;
        memcpy((char *)reader->world + numbers[i].offset,
               numbers[i].bytes == sizeof(wide) ? (const void *)&wide : &narrow, numbers[i].bytes);
    }
    return 0;
}

static int keys_read(const struct reader *reader, const json_t *keys) {
    struct ck_world *world = reader->world;
    if (json_array_size(keys) < 1 || json_array_size(keys) > CK_KEYS_MAX) {
        return refuse(reader, "keys", json_array_size(keys), "of them; too few or too many");
    }
    for (unsigned i = 0; i < json_array_size(keys); i++) {
        const json_t *pair = json_array_get(keys, i);
        uint64_t loaded;
        if (!number_read(json_array_get(pair, 0), i > 0 ? world->keys[i - 1] + 1 : 0, IX_KEY_MAX, &world->keys[i]) ||
            !number_read(json_array_get(pair, 1), 0, 1, &loaded)) {
            return refuse(reader, "key", i, "must be [KEY, 0 or 1], ascending");
        }
        world->loaded[i] = loaded == 1;
        world->key_count = i + 1;
    }
    world->shape.expected_keys = world->key_count;
    return 0;
}

static int steps_read(const struct reader *reader, const json_t *steps) {
    struct ck_world *world = reader->world;
    if (json_array_size(steps) > CK_STEPS_MAX) {
        return refuse(reader, "steps", json_array_size(steps), "of them are too many");
    }
    uint64_t before = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        uint64_t client, key, wanted, pause;
        int kind = name_read(json_array_get(step, 1), wl_op_names, WL_OP_KIND_COUNT);
        if (kind < 0 || kind == WL_RMW || !number_read(json_array_get(step, 0), before, CK_CLIENTS_MAX - 1, &client) ||
            client >= world->topology.clients || !number_read(json_array_get(step, 2), 0, world->key_count - 1, &key) ||
            !number_read(json_array_get(step, 3), 0, CK_SCAN_MAX, &wanted) ||
            !number_read(json_array_get(step, 4), 0, UINT32_MAX, &pause)) {
            return refuse(reader, "step", i, "must be [CLIENT, KIND, KEY INDEX, WANTED, PAUSE], grouped by client");
        }
        world->steps[i] = (struct ck_step){.client = (unsigned)client,
                                           .kind = (enum wl_op_kind)kind,
                                           .key = (unsigned)key,
                                           .wanted = (uint32_t)wanted,
                                           .pause_ns = (uint32_t)pause};
        before = client;
        world->step_count = i + 1;
    }
    return 0;
}

static int faults_read(const struct reader *reader, const json_t *faults) {
    struct ck_world *world = reader->world;
    if (json_array_size(faults) > CK_FAULTS_MAX) {
        return refuse(reader, "faults", json_array_size(faults), "of them are too many");
    }
    for (size_t i = 0; i < json_array_size(faults); i++) {
        const json_t *fault = json_array_get(faults, i);
        uint64_t client, server, after, ns, percent, step = 0;
        bool is_aimed = json_array_size(fault) == 7;
        int kind = name_read(json_array_get(fault, 0), fault_names, DM_ARRAY_LEN(fault_names));
        if (kind < 0 || !number_read(json_array_get(fault, 1), 0, world->topology.clients - 1, &client) ||
            !number_read(json_array_get(fault, 2), 0, 3, &server) ||
            !number_read(json_array_get(fault, 3), 0, INT64_MAX, &after) ||
            !number_read(json_array_get(fault, 4), 0, INT64_MAX, &ns) ||
            !number_read(json_array_get(fault, 5), 0, 99, &percent) ||
            (is_aimed &&
             (world->step_count == 0 || !number_read(json_array_get(fault, 6), 0, world->step_count - 1, &step))) ||
            (kind == CK_READ_FAILS && !is_aimed)) {
            return refuse(reader, "fault", i, "must be [KIND, CLIENT, SERVER, AFTER, NS, PERCENT], or with a STEP");
        }
        world->faults[i] = (struct ck_world_fault){.kind = (enum ck_fault_kind)kind,
                                                   .client = (unsigned)client,
                                                   .server = (unsigned)server,
                                                   .after = after,
                                                   .ns = ns,
                                                   .percent = (unsigned)percent,
                                                   .is_aimed = is_aimed,
                                                   .step = step};
        world->fault_count = i + 1;
    }
    return 0;
}

static int settings_read(const struct reader *reader, json_t *settings) {
    struct ck_world *world = reader->world;
    const char *name;
    json_t *value;
    json_object_foreach(settings, name, value) {
        if (!json_is_string(value) || world->setting_count == CK_SETTINGS_MAX) {
            return refuse(reader, "setting", world->setting_count, "must be a text, and not one too many");
        }
        world->settings[world->setting_count++] = (struct dm_setting){name, json_string_value(value)};
    }
    return 0;
}

static int world_read(const struct reader *reader, json_t *top) {
    struct ck_world *world = reader->world;
    json_t *seed, *object, *params, *settings, *keys, *steps, *faults, *rdwc;
    const char *kind, *why, *index, *transport, *profile = "cx6-100g";
    int version, emulates_masked = 0;
    json_error_t at;
    if (json_unpack_ex(
            top, &at, JSON_STRICT, "{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s?s, s?b}",
            "kind", &kind, "schema_version", &version, "why", &why, "index", &index, "transport", &transport, "seed",
            &seed, "rdwc", &rdwc, "numbers", &object, "params", &params, "settings", &settings, "keys", &keys, "steps",
            &steps, "faults", &faults, "profile", &profile, "emulates_masked", &emulates_masked) < 0) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: %s", reader->path, at.text);
    }
    world->index = ix_find(index);
    int mode = name_read(rdwc, rdwc_names, DM_ARRAY_LEN(rdwc_names));
    if (strcmp(kind, kind_text) != 0 || version != SCHEMA_VERSION || !world->index ||
        world->index->caps & IX_CAP_NO_DATA || strcmp(transport, "sim") != 0 || mode < 0 ||
        !number_read(seed, 0, UINT64_MAX, &world->seed)) {
        return dm_fail(reader->err, DM_ERR_INVALID,
                       "%s: must be a world of this version, of an index that keeps data, on sim", reader->path);
    }
    world->transport = "sim";
    world->rdwc = (enum ix_rdwc_mode)mode;
    world->emulates_masked = emulates_masked;
    if (snprintf(world->profile, sizeof(world->profile), "%s", profile) >= (int)sizeof(world->profile)) {
        return dm_fail(reader->err, DM_ERR_INVALID, "%s: profile: too long", reader->path);
    }
    world->params = calloc(1, world->index->params_bytes + 1);
    if (!world->params) {
        return dm_fail(reader->err, DM_ERR_NO_MEMORY, "out of memory");
    }
    dm_opt_defaults(world->index->params, world->params);
    DM_TRY(dm_opt_from_json(world->index->params, world->params, params, reader->path, reader->err));
    DM_TRY(numbers_read(reader, object));
    world->shape.topology = &world->topology;
    DM_TRY(settings_read(reader, settings));
    DM_TRY(keys_read(reader, keys));
    DM_TRY(steps_read(reader, steps));
    DM_TRY(faults_read(reader, faults));
    return ix_check(world->index, world->params, &world->shape, reader->err);
}

int ck_world_load(const char *path, struct ck_world *world, struct dm_err *err) {
    memset(world, 0, sizeof(*world));
    struct reader reader = {.path = path, .world = world, .err = err};
    json_t *top = dm_json_load(path, err);
    if (!top) {
        return DM_ERR_INVALID;
    }
    world->file = top; /* has the texts of the settings */
    return world_read(&reader, top);
}

void ck_world_file_free(void *file) {
    json_decref(file);
}
