/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of options in JSON, of strict loading and of storing that leaves a whole file or nothing.
 */
#include "common/opt_json.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/prng.h"

struct settings {
    bool strict;
    uint64_t clients;
    uint64_t cache;
    uint64_t warmup;
    double theta;
    unsigned transport;
    const char *name;
};

static const char *const transports[] = {"sim", "local", "verbs", NULL};

#define AT(member) .offset = offsetof(struct settings, member)

static const struct dm_opt table[] = {
    {.name = "strict", .type = DM_OPT_BOOL, AT(strict), .initial = "true"},
    {.name = "clients", .type = DM_OPT_COUNT, AT(clients), .initial = "8"},
    {.name = "cache", .type = DM_OPT_BYTES, AT(cache), .initial = "100MB"},
    {.name = "warmup", .type = DM_OPT_DURATION, AT(warmup), .initial = "10ms"},
    {.name = "theta", .type = DM_OPT_REAL, AT(theta), .initial = "0.99", .max = 2},
    {.name = "transport", .type = DM_OPT_ENUM, AT(transport), .initial = "sim", .choices = transports},
    {.name = "name", .type = DM_OPT_STRING, AT(name), .initial = ""},
    DM_OPT_END,
};

/* A folder of its own for every test; path_in gives paths in it. */
static char folder[128];

static const char *path_in(const char *name) {
    static char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int folder_make(void **state) {
    (void)state;
    const char *temp = getenv("TMPDIR");
    (void)snprintf(folder, sizeof(folder), "%.80s/dm_opt_json_XXXXXX", temp != NULL ? temp : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Calls visit for every entry; returns how many there are. */
static int folder_visit(void (*visit)(const char *name)) {
    int count = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return -1;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(entry->d_name);
            count++;
        }
    }
    (void)closedir(dir);
    return count;
}

static void entry_remove(const char *name) {
    (void)remove(path_in(name));
}

static void entry_ignore(const char *name) {
    (void)name;
}

static int folder_remove(void **state) {
    (void)state;
    (void)chmod(folder, 0700);
    (void)folder_visit(entry_remove);
    return rmdir(folder);
}

static const char *file_with(const char *content) {
    const char *path = path_in("in.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void assert_file(const char *path, const char *expected) {
    char content[512];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(content, 1, sizeof(content) - 1, file);
    content[length] = '\0';
    (void)fclose(file);
    assert_string_equal(content, expected);
}

static json_t *parsed(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

static void apply(struct settings *settings, const char *text) {
    struct dm_err err = {0};
    json_t *object = parsed(text);
    if (dm_opt_from_json(table, settings, object, "run.json", &err) != DM_OK) {
        fail_msg("%s", err.text);
    }
    json_decref(object);
}

static void assert_refused(const char *text, const char *message) {
    struct settings settings;
    struct dm_err err = {0};
    json_t *object = parsed(text);
    dm_opt_defaults(table, &settings);
    assert_int_equal(dm_opt_from_json(table, &settings, object, "run.json", &err), DM_ERR_INVALID);
    assert_string_equal(err.text, message);
    assert_int_equal(dm_opt_from_json(table, &settings, object, "run.json", NULL), DM_ERR_INVALID);
    assert_true(settings.strict && settings.clients == 8 && settings.cache == 100000000);
    assert_true(settings.warmup == 10000000 && settings.theta == 0.99 && settings.transport == 0);
    assert_string_equal(settings.name, "");
    dm_opt_free(table, &settings);
    json_decref(object);
}

static void a_file_is_loaded(void **state) {
    (void)state;
    struct dm_err err = {0};
    json_t *object = dm_json_load(file_with("{\"a\": [1, 2.5, \"\xc3\xa4\"]}\n"), &err);
    assert_non_null(object);
    assert_int_equal(json_array_size(json_object_get(object, "a")), 3);
    json_decref(object);
}

static void assert_not_loaded(const char *content, const char *position) {
    struct dm_err err = {0};
    const char *path = file_with(content);
    char expected[600];
    (void)snprintf(expected, sizeof(expected), "%s:%s", path, position);
    assert_null(dm_json_load(path, &err));
    if (err.code != DM_ERR_INVALID || strncmp(err.text, expected, strlen(expected)) != 0) {
        fail_msg("'%s' instead of '%s'", err.text, expected);
    }
    assert_null(dm_json_load(path, NULL));
}

static void malformed_files_are_refused_with_line_and_column(void **state) {
    (void)state;
    assert_not_loaded("{\n \"a\": 1,\n \"b\" 2\n}", "3:6: ':' expected");
    assert_not_loaded("{\"a\": 1", "1:7: '}' expected near end of file");
    assert_not_loaded("", "1:0: ");
    assert_not_loaded("{} x", "1:4: end of file expected");
    assert_not_loaded("{}\n{}", "2:1: end of file expected");
    assert_not_loaded("{\"a\": 1,\n\"a\": 2}", "2:3: duplicate");
    assert_not_loaded("{\"x\": {\"a\": 1, \"a\": 1}}", "1:18: duplicate");
    assert_not_loaded("{\"a\": \"\xff\"}", "1:7: unable to decode byte 0xff");
    assert_not_loaded("{\"a\": 99999999999999999999}", "1:26: too big integer");
    assert_not_loaded("{\"a\": NaN}", "1:");
    assert_not_loaded("[1]", "1:1: the top is an array, not an object");
    assert_not_loaded("7", "1:1: the top is an integer, not an object");
}

static void every_truncation_of_a_file_is_refused(void **state) {
    (void)state;
    static const char whole[] = "{\"clients\": 12, \"set\": {\"a\": [true, null, \"s\"]}}";
    for (size_t length = 0; length + 1 < sizeof(whole); length++) {
        char part[sizeof(whole)];
        memcpy(part, whole, length);
        part[length] = '\0';
        assert_not_loaded(part, "1:");
    }
}

static void unreadable_files_are_refused_with_the_reason(void **state) {
    (void)state;
    struct dm_err err = {0};
    char expected[600];
    (void)snprintf(expected, sizeof(expected), "%s: cannot open: No such file or directory", path_in("none.json"));
    assert_null(dm_json_load(path_in("none.json"), &err));
    assert_int_equal(err.code, DM_ERR_IO);
    assert_string_equal(err.text, expected);
    (void)snprintf(expected, sizeof(expected), "%s: is a folder, not a JSON file", folder);
    assert_null(dm_json_load(folder, &err));
    assert_string_equal(err.text, expected);
}

static void numbers_truths_and_strings_set_options(void **state) {
    (void)state;
    struct settings settings;
    dm_opt_defaults(table, &settings);
    apply(&settings, "{\"strict\": false, \"clients\": 16, \"cache\": 4096, \"warmup\": 1500, \"theta\": 1,"
                     " \"transport\": \"verbs\", \"name\": \"x\"}");
    assert_false(settings.strict);
    assert_int_equal(settings.clients, 16);
    assert_int_equal(settings.cache, 4096);
    assert_int_equal(settings.warmup, 1500);
    assert_true(settings.theta == 1.0);
    assert_int_equal(settings.transport, 2);
    assert_string_equal(settings.name, "x");

    apply(&settings, "{\"strict\": \"on\", \"clients\": \"2K\", \"cache\": \"1MiB\", \"warmup\": \"2s\","
                     " \"theta\": \"0.5\", \"name\": 7}");
    assert_true(settings.strict);
    assert_int_equal(settings.clients, 2000);
    assert_int_equal(settings.cache, 1048576);
    assert_int_equal(settings.warmup, 2000000000);
    assert_true(settings.theta == 0.5);
    assert_string_equal(settings.name, "7");

    apply(&settings, "{\"strict\": 0, \"clients\": 1e6, \"cache\": 1.5e3, \"warmup\": 1e9, \"theta\": 0.1}");
    assert_false(settings.strict);
    assert_int_equal(settings.clients, 1000000);
    assert_int_equal(settings.cache, 1500);
    assert_int_equal(settings.warmup, 1000000000);
    assert_true(settings.theta == 0.1);
    apply(&settings, "{}");
    assert_int_equal(settings.clients, 1000000);
    dm_opt_free(table, &settings);
}

static void bad_members_are_named_with_their_file_or_path(void **state) {
    (void)state;
    assert_refused("{\"cleints\": 1}", "run.json: unknown option 'cleints' (did you mean 'clients'?)");
    assert_refused("{\"colour\": null}", "run.json: unknown option 'colour'");
    assert_refused("{\"clients\": [1]}", "run.json: clients: is an array, but must be a count");
    assert_refused("{\"clients\": true}", "run.json: clients: is a truth value, but must be a count");
    assert_refused("{\"clients\": null}", "run.json: clients: is null, but must be a count");
    assert_refused("{\"cache\": {}}", "run.json: cache: is an object, but must be a number of bytes");
    assert_refused("{\"warmup\": false}", "run.json: warmup: is a truth value, but must be a duration");
    assert_refused("{\"theta\": false}", "run.json: theta: is a truth value, but must be a number");
    assert_refused("{\"strict\": 1.0}", "run.json: strict: is a real number, but must be true or false");
    assert_refused("{\"transport\": 1.5}",
                   "run.json: transport: is a real number, but must be one of its choices, as a string");
    assert_refused("{\"name\": true}", "run.json: name: is a truth value, but must be a string");
    assert_refused("{\"theta\": 2.5}", "run.json: theta: 2.5 is out of range (0 to 2)");
    assert_refused(
        "{\"warmup\": \"5\"}",
        "run.json: warmup: '5' has no unit, so it is not a duration (use a number with its unit: ns, us, ms, "
        "s, m or h, as in 20us)");
    assert_refused("{\"warmup\": 1.5}", "run.json: warmup: '1.5ns' is not a whole number of nanoseconds");
    assert_refused("{\"transport\": 1}", "run.json: transport: '1' is not a choice (use one of: sim, local, verbs)");
    assert_refused("[]", "run.json: is an array, but must be an object ({...})");
    assert_refused("{\"clients\": -1}", "run.json: clients: '-1' is not a count (use a whole number, with K, M, G or T "
                                        "for 10^3, 10^6, 10^9, 10^12)");
}

static void a_missing_object_is_refused(void **state) {
    (void)state;
    struct settings settings;
    struct dm_err err = {0};
    dm_opt_defaults(table, &settings);
    assert_int_equal(dm_opt_from_json(table, &settings, NULL, "run.json: set", &err), DM_ERR_INVALID);
    assert_string_equal(err.text, "run.json: set: is missing, but must be an object ({...})");
    dm_opt_free(table, &settings);
}

static void options_become_plain_json(void **state) {
    (void)state;
    struct settings settings;
    dm_opt_defaults(table, &settings);
    settings.cache = UINT64_MAX;
    json_t *object = dm_opt_to_json(table, &settings);
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(3));
    assert_string_equal(text, "{\"cache\":\"18446744073709551615\",\"clients\":8,\"name\":\"\",\"strict\":true,"
                              "\"theta\":0.99,\"transport\":\"sim\",\"warmup\":10000000}");
    free(text);
    json_decref(object);
    settings.theta = (double)NAN;
    object = dm_opt_to_json(table, &settings);
    assert_true(json_is_null(json_object_get(object, "theta")));
    json_decref(object);
    dm_opt_free(table, &settings);
}

static void options_survive_a_file(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 77};
    for (int round = 0; round < 200; round++) {
        struct settings settings = {
            .strict = dm_prng_below(&prng, 2) == 1,
            .clients = dm_prng_u64(&prng) >> dm_prng_below(&prng, 64),
            .cache = dm_prng_u64(&prng) >> dm_prng_below(&prng, 64),
            .warmup = dm_prng_u64(&prng) >> dm_prng_below(&prng, 64),
            .theta = dm_prng_double(&prng) * 2.0,
            .transport = (unsigned)dm_prng_below(&prng, 3),
            .name = "a \"quoted\" \\ \xe2\x82\xac name",
        };
        struct settings copy;
        struct dm_err err = {0};
        json_t *object = dm_opt_to_json(table, &settings);
        assert_int_equal(dm_json_store(object, path_in("out.json"), &err), DM_OK);
        json_decref(object);
        object = dm_json_load(path_in("out.json"), &err);
        assert_non_null(object);
        dm_opt_defaults(table, &copy);
        assert_int_equal(dm_opt_from_json(table, &copy, object, "out.json", &err), DM_OK);
        assert_int_equal(copy.strict, settings.strict);
        assert_true(copy.clients == settings.clients && copy.cache == settings.cache);
        assert_true(copy.warmup == settings.warmup && copy.theta == settings.theta);
        assert_int_equal(copy.transport, settings.transport);
        assert_string_equal(copy.name, settings.name);
        json_decref(object);
        dm_opt_free(table, &copy);
    }
}

static void members_added_later_are_dropped_at_their_defaults_alone(void **state) {
    static const struct dm_opt added[] = {
        {.name = "strict", .type = DM_OPT_BOOL, AT(strict), .initial = "true", .added = true},
        {.name = "clients", .type = DM_OPT_COUNT, AT(clients), .initial = "8"},
        {.name = "theta", .type = DM_OPT_REAL, AT(theta), .initial = "0.99", .added = true},
        {.name = "name", .type = DM_OPT_STRING, AT(name), .initial = "", .added = true},
        DM_OPT_END,
    };
    (void)state;
    json_t *defaults = parsed("{\"strict\": true, \"clients\": 8, \"theta\": 0.99, \"name\": \"\"}");
    json_t *kept = parsed("{\"clients\": 8}");
    assert_true(dm_opt_drop_added(added, defaults));
    assert_true(json_equal(defaults, kept));
    json_t *others = parsed("{\"strict\": false, \"theta\": 0.5, \"name\": \"a\", \"unknown\": 1}");
    json_t *same = json_deep_copy(others);
    assert_true(dm_opt_drop_added(added, others));
    assert_true(json_equal(others, same));
    json_decref(defaults);
    json_decref(kept);
    json_decref(others);
    json_decref(same);
}

static void stored_files_are_sorted_and_indented_by_one(void **state) {
    (void)state;
    struct dm_err err = {0};
    json_t *value = parsed("{\"b\": 0.1, \"a\": {\"d\": 1, \"c\": []}}");
    assert_int_equal(dm_json_store(value, path_in("out.json"), &err), DM_OK);
    assert_file(path_in("out.json"), "{\n \"a\": {\n  \"c\": [],\n  \"d\": 1\n },\n \"b\": 0.10000000000000001\n}\n");
    assert_int_equal(folder_visit(entry_ignore), 1);
    json_decref(value);
}

static void storing_replaces_an_older_file(void **state) {
    (void)state;
    struct dm_err err = {0};
    json_t *value = parsed("{\"new\": true}");
    const char *path = file_with("{\"old\": \"and much longer than the new one\"}");
    assert_int_equal(dm_json_store(value, path, &err), DM_OK);
    assert_file(path, "{\n \"new\": true\n}\n");
    assert_int_equal(folder_visit(entry_ignore), 1);
    json_decref(value);
}

/* Storing to path fails with the reason in words, and the folder still has as many entries. */
static void assert_not_stored(const char *path, const char *reason, int entries) {
    struct dm_err err = {0};
    char expected[600];
    json_t *value = parsed("{\"new\": true}");
    (void)snprintf(expected, sizeof(expected), "%s: cannot write: %s", path, reason);
    assert_int_equal(dm_json_store(value, path, &err), DM_ERR_IO);
    assert_int_equal(err.code, DM_ERR_IO);
    assert_string_equal(err.text, expected);
    assert_int_equal(folder_visit(entry_ignore), entries);
    json_decref(value);
}

static void a_missing_folder_is_an_error(void **state) {
    (void)state;
    assert_not_stored(path_in("none/out.json"), "No such file or directory", 0);
}

static void a_file_instead_of_the_folder_is_an_error(void **state) {
    (void)state;
    (void)file_with("{}");
    assert_not_stored(path_in("in.json/out.json"), "Not a directory", 1);
}

static void a_folder_instead_of_the_file_leaves_nothing_behind(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_in("out.json"), 0700), 0);
    assert_not_stored(path_in("out.json"), "Is a directory", 1);
}

static void an_unwritable_folder_is_an_error(void **state) {
    (void)state;
    if (geteuid() == 0) {
        /* permissions do not hold for the superuser */
        skip();
    }
    assert_int_equal(chmod(folder, 0500), 0);
    assert_not_stored(path_in("out.json"), "Permission denied", 0);
}

static void a_write_that_fails_half_way_keeps_the_old_file(void **state) {
    (void)state;
    struct rlimit before;
    const char *path = file_with("{\"old\": 1}");
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit tight = {.rlim_cur = 5, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    struct dm_err err = {0};
    json_t *value = parsed("{\"new\": true}");
    int rc = dm_json_store(value, path, &err);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    (void)signal(SIGXFSZ, handler);
    json_decref(value);
    assert_int_equal(rc, DM_ERR_IO);
    assert_non_null(strstr(err.text, "in.json: cannot write: File too large"));
    assert_file(path, "{\"old\": 1}");
    assert_int_equal(folder_visit(entry_ignore), 1);
}

static void what_is_not_json_is_not_stored(void **state) {
    (void)state;
    struct dm_err err = {0};
    json_t *value = json_true();
    assert_int_equal(dm_json_store(value, path_in("out.json"), &err), DM_ERR_INVALID);
    assert_int_equal(folder_visit(entry_ignore), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_is_loaded),
        IN_FOLDER(malformed_files_are_refused_with_line_and_column),
        IN_FOLDER(every_truncation_of_a_file_is_refused),
        IN_FOLDER(unreadable_files_are_refused_with_the_reason),
        cmocka_unit_test(numbers_truths_and_strings_set_options),
        cmocka_unit_test(bad_members_are_named_with_their_file_or_path),
        cmocka_unit_test(a_missing_object_is_refused),
        cmocka_unit_test(options_become_plain_json),
        cmocka_unit_test(members_added_later_are_dropped_at_their_defaults_alone),
        IN_FOLDER(options_survive_a_file),
        IN_FOLDER(stored_files_are_sorted_and_indented_by_one),
        IN_FOLDER(storing_replaces_an_older_file),
        IN_FOLDER(a_missing_folder_is_an_error),
        IN_FOLDER(a_file_instead_of_the_folder_is_an_error),
        IN_FOLDER(a_folder_instead_of_the_file_leaves_nothing_behind),
        IN_FOLDER(an_unwritable_folder_is_an_error),
        IN_FOLDER(a_write_that_fails_half_way_keeps_the_old_file),
        IN_FOLDER(what_is_not_json_is_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
