/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations: command line and JSON are equivalent, errors name option and origin, and a resolved configuration
 * survives the round trip through JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"

static struct hx_config *new_config(void) {
    struct hx_config *config = hx_config_new();
    assert_non_null(config);
    return config;
}

static void must_set(struct hx_config *config, const char *name, const char *text) {
    struct dm_err err = {0};
    if (hx_config_set(config, name, text, &err) != 0) {
        fail_msg("%s=%s: %s", name, text, err.text);
    }
}

static void must_apply(struct hx_config *config, const char *text) {
    struct dm_err err = {0};
    json_t *spec = json_loads(text, 0, NULL);
    assert_non_null(spec);
    if (hx_config_apply_json(config, spec, "spec.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    json_decref(spec);
}

static void must_resolve(struct hx_config *config) {
    struct dm_err err = {0};
    if (hx_config_resolve(config, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static struct hx_config *small_config(void) {
    struct hx_config *config = new_config();
    must_set(config, "index", "null");
    must_set(config, "workload", "a");
    must_set(config, "keys", "1K");
    must_set(config, "ops", "1K");
    must_set(config, "clients", "4");
    return config;
}

static void command_line_and_spec_give_the_same_configuration(void **state) {
    (void)state;
    struct hx_config *typed = new_config();
    struct hx_config *read = new_config();
    must_set(typed, "index", "sherman");
    must_set(typed, "mn-cores", "3");
    must_set(typed, "mn_cores", "2");
    must_set(typed, "cache", "3MiB");
    must_set(typed, "duration", "5ms");
    must_set(typed, "verify", "on");
    must_set(typed, "keys", "20K");
    must_set(typed, "theta", "0.5");
    must_apply(read, "{\"index\": \"sherman\", \"mn_cores\": 2, \"cache\": \"3MiB\", \"duration\": 5000000,"
                     " \"verify\": true, \"keys\": 20000, \"theta\": 0.5}");
    must_resolve(typed);
    must_resolve(read);
    json_t *first = hx_config_to_json(typed);
    json_t *second = hx_config_to_json(read);
    assert_true(json_equal(first, second));
    assert_int_equal(json_integer_value(json_object_get(first, "mn_cores")), 2);
    assert_int_equal(json_integer_value(json_object_get(first, "cache")), 3 * 1024 * 1024);
    json_decref(first);
    json_decref(second);
    hx_config_close(typed);
    hx_config_close(read);
}

static void a_resolved_configuration_survives_json(void **state) {
    (void)state;
    for (const struct ix_ops *const *index = ix_all(); *index; index++) {
        struct hx_config *config = small_config();
        struct hx_config *again = new_config();
        struct dm_err err = {0};
        char hash[17], hash_again[17];
        must_set(config, "index", (*index)->name);
        must_set(config, "workload", (*index)->caps & IX_CAP_INSERT ? "a" : "c");
        must_resolve(config);
        json_t *spec = hx_config_to_json(config);
        assert_int_equal(hx_config_apply_json(again, spec, "spec", &err), 0);
        must_resolve(again);
        json_t *spec_again = hx_config_to_json(again);
        assert_true(json_equal(spec, spec_again));
        hx_config_hash(config, hash);
        hx_config_hash(again, hash_again);
        assert_string_equal(hash, hash_again);
        json_decref(spec);
        json_decref(spec_again);
        hx_config_close(config);
        hx_config_close(again);
    }
}

static void different_configurations_have_different_hashes(void **state) {
    (void)state;
    static const char *const changes[][2] = {{"seed", "2"},   {"clients", "5"}, {"workload", "c"},
                                             {"cache", "1B"}, {"ops", "1001"},  {"profile", "cx5-100g"},
                                             {"rate", "1K"}};
    char hashes[DM_ARRAY_LEN(changes) + 1][17];
    for (size_t i = 0; i <= DM_ARRAY_LEN(changes); i++) {
        struct hx_config *config = small_config();
        if (i < DM_ARRAY_LEN(changes)) {
            must_set(config, changes[i][0], changes[i][1]);
        }
        must_resolve(config);
        hx_config_hash(config, hashes[i]);
        assert_int_equal(strlen(hashes[i]), 16);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(hashes[i], hashes[j]);
        }
        hx_config_close(config);
    }
}

static void the_path_of_a_recording_is_kept_but_is_not_in_the_hash(void **state) {
    (void)state;
    struct hx_config *plain = small_config(), *recorded = small_config();
    char hash[17], hash_recorded[17];
    must_set(recorded, "record", "run.ops");
    must_resolve(plain);
    must_resolve(recorded);
    hx_config_hash(plain, hash);
    hx_config_hash(recorded, hash_recorded);
    assert_string_equal(hash, hash_recorded);
    json_t *spec = hx_config_to_json(recorded);
    assert_string_equal(json_string_value(json_object_get(spec, "record")), "run.ops");
    json_decref(spec);
    hx_config_close(plain);
    hx_config_close(recorded);
}

static void the_size_of_memory_nodes_is_in_the_hash_only_if_it_does_not_follow(void **state) {
    (void)state;
    struct hx_config *implied = small_config(), *given = small_config(), *larger = small_config();
    char hash[17], hash_given[17], hash_larger[17];
    must_resolve(implied);
    json_t *spec = hx_config_to_json(implied);
    json_int_t bytes = json_integer_value(json_object_get(spec, "mn_memory"));
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)bytes);
    must_set(given, "mn_memory", text);
    must_resolve(given);
    must_set(larger, "mn_memory", "1GiB");
    must_resolve(larger);
    hx_config_hash(implied, hash);
    hx_config_hash(given, hash_given);
    hx_config_hash(larger, hash_larger);
    assert_string_equal(hash, hash_given);
    assert_string_not_equal(hash, hash_larger);

    /* a result of before an estimate was changed keeps its name */
    const char *profile = implied->profile_hash;
    json_object_set_new(spec, "mn_memory", json_integer(bytes + 1));
    assert_true(hx_config_has_hash(spec, profile, true, hash));
    assert_false(hx_config_has_hash(spec, profile, false, hash));
    json_decref(spec);
    spec = hx_config_to_json(larger);
    assert_true(hx_config_has_hash(spec, profile, false, hash_larger));
    assert_false(hx_config_has_hash(spec, profile, true, hash_larger));
    assert_false(hx_config_has_hash(spec, "another", false, hash_larger));
    json_decref(spec);
    hx_config_close(implied);
    hx_config_close(given);
    hx_config_close(larger);
}

static void properties_are_appended_to_those_of_a_spec(void **state) {
    (void)state;
    struct hx_config *config = small_config();
    struct dm_err err = {0};
    must_apply(config, "{\"properties\": \"readproportion=0.5,updateproportion=0.5\"}");
    must_set(config, "p", "readproportion=0.25");
    must_set(config, "p", "updateproportion=0.75");
    assert_int_equal(hx_config_set(config, "p", "readproportion", &err), DM_ERR_INVALID);
    assert_string_equal(err.text, "-p: 'readproportion' is not NAME=VALUE");
    assert_int_equal(hx_config_set(config, "p", "a=1,b=2", &err), DM_ERR_INVALID);
    assert_memory_equal(err.text, "-p: 'a=1,b=2' holds a comma", strlen("-p: 'a=1,b=2' holds a comma"));
    must_resolve(config);
    assert_string_equal(config->workload.mix, "read=0.25,update=0.75");
    hx_config_close(config);
}

static void ycsb_is_a_workload_that_is_a_file(void **state) {
    (void)state;
    struct hx_config *config = small_config();
    struct dm_err err = {0};
    must_set(config, "ycsb", "folder/c");
    assert_string_equal(config->workload.workload, "folder/c");
    must_set(config, "ycsb", "c");
    assert_string_equal(config->workload.workload, "./c");
    assert_true(hx_config_resolve(config, &err) < 0);
    assert_non_null(strstr(err.text, "./c"));
    hx_config_close(config);
}

/* Warm-up and ops add up to the length of the recording or trace, unless both were given. */
static void a_trace_defines_the_number_of_operations(void **state) {
    (void)state;
    struct hx_config *config = new_config();
    struct dm_err err = {0};
    must_set(config, "index", "null");
    must_set(config, "trace", DM_TEST_DATA "/cache-trace.csv");
    must_resolve(config);
    assert_int_equal(config->run.ops, 15);
    assert_int_equal(config->run.warmup, 1);
    assert_int_equal(config->workload.keys, 5);
    hx_config_close(config);

    config = new_config();
    must_set(config, "index", "null");
    must_set(config, "trace", DM_TEST_DATA "/cache-trace.csv");
    must_set(config, "warmup", "6");
    must_resolve(config);
    assert_int_equal(config->run.ops, 10);
    hx_config_close(config);

    config = new_config();
    must_set(config, "index", "null");
    must_set(config, "trace", DM_TEST_DATA "/cache-trace.csv");
    must_set(config, "warmup", "16");
    assert_int_equal(hx_config_resolve(config, &err), DM_ERR_INVALID);
    assert_memory_equal(err.text, "--warmup: there are only 16", strlen("--warmup: there are only 16"));
    hx_config_close(config);
}

static void derived_values_follow_unless_given(void **state) {
    (void)state;
    struct hx_config *config = small_config();
    must_resolve(config);
    assert_int_equal(config->run.warmup, 100);
    assert_true(config->run.mn_bytes > 0);
    hx_config_close(config);

    config = small_config();
    must_set(config, "warmup", "0");
    must_set(config, "mn_memory", "1GiB");
    must_resolve(config);
    assert_int_equal(config->run.warmup, 0);
    assert_int_equal(config->run.mn_bytes, 1024 * 1024 * 1024);
    hx_config_close(config);
}

static uint64_t timed_warmup_of(const char *transport, const char *warmup, const char *timed) {
    struct hx_config *config = small_config();
    must_set(config, "transport", transport);
    must_set(config, "warmup", warmup);
    must_set(config, "timed_warmup", timed);
    must_resolve(config);
    uint64_t left = config->run.timed_warmup;
    hx_config_close(config);
    return left;
}

/* NULL: without the option. */
static void hash_with(const char *option, const char *value, char hex[17]) {
    struct hx_config *config = small_config();
    if (value) {
        must_set(config, option, value);
    }
    must_resolve(config);
    hx_config_hash(config, hex);
    hx_config_close(config);
}

/* A configuration that does not use it has the name that it had before the option existed; so with load_reads. */
static void a_timed_warmup_is_shorter_than_the_warmup_or_left_out(void **state) {
    (void)state;
    assert_int_equal(timed_warmup_of("sim", "50", "49"), 49);
    assert_int_equal(timed_warmup_of("sim", "50", "50"), 0);
    assert_int_equal(timed_warmup_of("sim", "50", "51"), 0);
    assert_int_equal(timed_warmup_of("local", "50", "49"), 0);
    char usual[17], other[17], used[17];
    hash_with("timed_warmup", NULL, usual);
    hash_with("timed_warmup", "1M", other);
    hash_with("timed_warmup", "99", used);
    assert_string_equal(usual, other);
    assert_string_not_equal(usual, used);
    hash_with("warmup_samples", "9", other); /* of a warm-up that is timed as a whole */
    assert_string_equal(usual, other);
    hash_with("load_reads", "0", other);
    hash_with("load_reads", "99", used);
    assert_string_equal(usual, other);
    assert_string_not_equal(usual, used);
}

static void later_settings_win(void **state) {
    (void)state;
    struct hx_config *config = small_config();
    must_apply(config, "{\"clients\": 8, \"seed\": 3}");
    must_set(config, "seed", "4");
    must_resolve(config);
    assert_int_equal(config->run.clients, 8);
    assert_int_equal(config->run.seed, 4);
    hx_config_close(config);
}

static void a_complete_result_is_a_spec(void **state) {
    (void)state;
    struct hx_config *config = new_config();
    must_apply(config, "{\"schema_version\": 2, \"config\": {\"clients\": 9}, \"ops\": {\"get\": {}}}");
    assert_int_equal(config->run.clients, 9);
    hx_config_close(config);
}

/* A wrong input, and the text that its error must contain. */
struct refusal {
    const char *spec, *says;
};

static void errors_of_specs_name_file_and_member(void **state) {
    (void)state;
    static const struct refusal refusals[] = {
        {"{\"clents\": 4}", "spec.json: unknown member 'clents' (did you mean 'clients'?"},
        {"{\"clients\": 0}", "spec.json: clients: "},
        {"{\"clients\": \"4x\"}", "spec.json: clients: "},
        {"{\"clients\": -1}", "spec.json: clients: "},
        {"{\"verify\": 7}", "spec.json: verify: "},
        {"{\"set\": []}", "spec.json: set: must be an object"},
        {"{\"schema_version\": 1, \"config\": {}}", "spec.json: schema_version: this program reads version 2 only"},
        {"{\"schema_version\": 2, \"config\": 3}", "spec.json: config: must be an object"},
        {"[]", "spec.json: a spec must be a JSON object"},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(refusals); i++) {
        struct hx_config *config = new_config();
        struct dm_err err = {0};
        json_t *spec = json_loads(refusals[i].spec, 0, NULL);
        assert_non_null(spec);
        assert_int_equal(hx_config_apply_json(config, spec, "spec.json", &err), DM_ERR_INVALID);
        if (strncmp(err.text, refusals[i].says, strlen(refusals[i].says)) != 0) {
            fail_msg("'%s' does not begin with '%s'", err.text, refusals[i].says);
        }
        json_decref(spec);
        hx_config_close(config);
    }
}

static void errors_of_resolving_name_origin_and_option(void **state) {
    (void)state;
    static const struct refusal refusals[] = {
        {"{\"index\": \"shermann\"}", "spec.json: index: unknown index 'shermann' (did you mean 'sherman'?"},
        {"{\"transport\": \"sin\"}", "spec.json: transport: unknown transport 'sin' (did you mean 'sim'?"},
        {"{\"profile\": \"cx9\"}", "spec.json: profile: "},
        {"{\"workload\": \"zz\"}", "spec.json: workload: "},
        {"{\"mix\": \"read=2\"}", "spec.json: mix: "},
        {"{\"theta\": 0}", "spec.json: theta: 0 must be above 0 and below 1"},
        {"{\"arrival\": \"poisson\"}", "spec.json: arrival: goes with an open loop only"},
        {"{\"record\": \"a\", \"replay\": \"b\"}", "spec.json: record: b is a recording already"},
        {"{\"clients\": 2, \"cns\": 3}", "spec.json: clients: 2 clients are fewer than the 3 compute nodes"},
        {"{\"cns\": 128, \"mns\": 64, \"servers\": 32, \"clients\": 1000}", ""},
        {"{\"set\": {\"nothing\": 1}}", "spec.json: set: unknown index parameter 'nothing'"},
        {"{\"transport_set\": {\"nothing\": 1}}", "spec.json: transport_set: unknown transport option 'nothing'"},
        {"{\"index\": \"sherman\", \"keys\": 1000000, \"mn_memory\": 1000000}",
         "spec.json: mn_memory: too small for 1000000 keys in index sherman: a memory node needs at least "},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(refusals); i++) {
        struct hx_config *config = small_config();
        struct dm_err err = {0};
        must_apply(config, refusals[i].spec);
        if (refusals[i].says[0] == '\0') {
            must_resolve(config);
        } else {
            assert_int_equal(hx_config_resolve(config, &err), DM_ERR_INVALID);
            if (strncmp(err.text, refusals[i].says, strlen(refusals[i].says)) != 0) {
                fail_msg("'%s' does not begin with '%s'", err.text, refusals[i].says);
            }
        }
        hx_config_close(config);
    }
}

static void options_are_refused_by_their_typed_name(void **state) {
    (void)state;
    struct hx_config *config = new_config();
    struct dm_err err = {0};
    assert_int_equal(hx_config_set(config, "mn_cores", "0", &err), DM_ERR_INVALID);
    assert_memory_equal(err.text, "--mn-cores: ", strlen("--mn-cores: "));
    assert_int_equal(config->run.mn_cores, 1);
    assert_int_equal(hx_config_set(config, "mn-croes", "1", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "did you mean 'mn_cores'?"));
    hx_config_close(config);
}

/* The schema allows no other members in `config`: every option must be in it, and nothing else. */
static void the_schema_has_every_option(void **state) {
    (void)state;
    struct dm_err err = {0};
    json_t *schema = dm_json_load(DM_SOURCE_DIR "/results/schema.json", &err);
    if (!schema) {
        fail_msg("%s", err.text);
    }
    json_t *definition = json_object_get(json_object_get(schema, "definitions"), "config");
    json_t *properties = json_object_get(definition, "properties");
    struct hx_config *config = small_config();
    must_resolve(config);
    json_t *spec = hx_config_to_json(config);
    const char *name;
    json_t *value;
    json_object_foreach(spec, name, value) {
        if (!json_object_get(properties, name)) {
            fail_msg("results/schema.json has no option %s", name);
        }
    }
    json_object_foreach(properties, name, value) {
        if (!json_object_get(spec, name)) {
            fail_msg("results/schema.json has %s, which is no option", name);
        }
    }
    assert_int_equal(json_array_size(json_object_get(definition, "required")), json_object_size(properties));
    json_decref(spec);
    json_decref(schema);
    hx_config_close(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_line_and_spec_give_the_same_configuration),
        cmocka_unit_test(a_resolved_configuration_survives_json),
        cmocka_unit_test(different_configurations_have_different_hashes),
        cmocka_unit_test(the_path_of_a_recording_is_kept_but_is_not_in_the_hash),
        cmocka_unit_test(the_size_of_memory_nodes_is_in_the_hash_only_if_it_does_not_follow),
        cmocka_unit_test(properties_are_appended_to_those_of_a_spec),
        cmocka_unit_test(ycsb_is_a_workload_that_is_a_file),
        cmocka_unit_test(a_trace_defines_the_number_of_operations),
        cmocka_unit_test(derived_values_follow_unless_given),
        cmocka_unit_test(a_timed_warmup_is_shorter_than_the_warmup_or_left_out),
        cmocka_unit_test(later_settings_win),
        cmocka_unit_test(a_complete_result_is_a_spec),
        cmocka_unit_test(errors_of_specs_name_file_and_member),
        cmocka_unit_test(errors_of_resolving_name_origin_and_option),
        cmocka_unit_test(options_are_refused_by_their_typed_name),
        cmocka_unit_test(the_schema_has_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
