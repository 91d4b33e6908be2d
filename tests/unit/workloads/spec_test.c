/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolving workloads: names, YCSB property files, properties, mixes and options; and what must be refused, with the
 * text that the message must contain.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/log.h"
#include "unit/workloads/files.h"
#include "workloads/spec.h"

static struct wl *open_well(const struct wl_config *config) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    int rc = wl_open(config, 1000, 2, 3, &wl, &err);
    if (rc != 0) {
        fail_msg("%s", err.text);
    }
    return wl;
}

/* Checks that wl_open fails with a message that contains `part`. */
static void refused(const struct wl_config *config, const char *part) {
    struct wl *wl = NULL;
    struct dm_err err = {0};
    assert_int_equal(wl_open(config, 1000, 2, 3, &wl, &err), DM_ERR_INVALID);
    assert_null(wl);
    if (strstr(err.text, part) == NULL || strchr(err.text, '\n') != NULL) {
        fail_msg("'%s' should contain '%s'", err.text, part);
    }
}

static void refused_file(const char *text, const char *part) {
    const char *path = file_write_text("bad.properties", text);
    refused(&(struct wl_config){.workload = path}, part);
}

static const char *const OFFICIAL_E = "# A comment\n"
                                      "! another\n"
                                      "recordcount=1000\n"
                                      "operationcount=1000\n"
                                      "workload=site.ycsb.workloads.CoreWorkload\r\n"
                                      "\n"
                                      "readallfields=true\n"
                                      "readproportion : 0\n"
                                      "updateproportion 0\n"
                                      "  scanproportion=0.95\n"
                                      "insertproportion=\\\n  0.05\n"
                                      "requestdistribution=zipfian\n"
                                      "\tmaxscanlength\t=\t77\n"
                                      "scanlengthdistribution=uniform\n"
                                      "fieldcount=10\n"
                                      "table=usertable\n"
                                      "hdrhistogram.percentiles=50,95,99";

static void an_official_property_file_is_read_as_it_is(void **state) {
    (void)state;
    struct wl *wl = open_well(&(struct wl_config){.workload = file_write_text("e.properties", OFFICIAL_E)});
    const struct wl_config *effective = wl_effective(wl);
    assert_string_equal(effective->mix, "insert=0.05,scan=0.95");
    assert_string_equal(effective->distribution, "zipfian");
    assert_string_equal(effective->insert_order, "hashed");
    assert_int_equal(effective->keys, 1000);
    assert_int_equal(effective->scan_min, 1);
    assert_int_equal(effective->scan_max, 77);
    assert_int_equal(wl_scan_max(wl), 77);
    wl_close(wl);
}

static void properties_missing_in_a_file_have_the_defaults_of_ycsb(void **state) {
    (void)state;
    struct wl *wl = open_well(&(struct wl_config){.workload = file_write_text("x.properties", "recordcount=10\n")});
    const struct wl_config *effective = wl_effective(wl);
    assert_string_equal(effective->mix, "read=0.95,update=0.05");
    assert_string_equal(effective->distribution, "uniform");
    assert_int_equal(effective->scan_max, 1000);
    assert_true(effective->theta == 0.99);
    wl_close(wl);
}

static void properties_override_the_file_and_options_override_both(void **state) {
    (void)state;
    const char *path = file_write_text("e.properties", OFFICIAL_E);
    struct wl_config config = {.workload = path, .properties = "recordcount=20, maxscanlength=30"};
    struct wl *wl = open_well(&config);
    assert_int_equal(wl_effective(wl)->keys, 20);
    assert_int_equal(wl_effective(wl)->scan_max, 30);
    wl_close(wl);
    config.keys = 40;
    config.scan_max = 50;
    config.mix = "read=1";
    config.distribution = "latest";
    config.insert_order = "ordered";
    wl = open_well(&config);
    assert_int_equal(wl_effective(wl)->keys, 40);
    assert_int_equal(wl_effective(wl)->scan_max, 50);
    assert_string_equal(wl_effective(wl)->mix, "read=1");
    assert_string_equal(wl_effective(wl)->distribution, "latest");
    assert_string_equal(wl_effective(wl)->insert_order, "ordered");
    double share[WL_OP_KIND_COUNT];
    wl_mix(wl, share);
    assert_true(share[WL_GET] == 1.0 && share[WL_SCAN] == 0.0);
    assert_int_equal(wl_scan_max(wl), 0);
    wl_close(wl);
}

static void every_named_workload_opens_and_keeps_its_name(void **state) {
    (void)state;
    unsigned count = 0;
    for (const struct wl_name *name = wl_names; name->name != NULL; name++) {
        struct wl *wl = open_well(&(struct wl_config){.workload = name->name, .keys = 500});
        assert_string_equal(wl_effective(wl)->workload, name->name);
        assert_true(strlen(name->summary) > 10);
        wl_close(wl);
        count++;
    }
    assert_true(count >= 20);
}

static void mixes_are_those_of_the_papers(void **state) {
    (void)state;
    static const struct {
        const char *name, *mix, *distribution;
    } papers[] = {
        {"xstore_b", "read=0.9,update=0.1", "zipfian"},
        {"dolphin_range_write", "insert=0.5,scan=0.5", "uniform"},
        {"dolphin_range_only", "scan=1", "uniform"},
        {"chime_skew", "read=0.5,update=0.5", "zipfian_hashed"},
        {"chime_load", "insert=1", "uniform"},
        {"prod1", "read=0.41,update=0.57,scan=0.02", "prod1"},
        {"hstore_get", "read=1", "uniform"},
    };
    for (size_t i = 0; i < sizeof papers / sizeof papers[0]; i++) {
        struct wl *wl = open_well(&(struct wl_config){.workload = papers[i].name, .keys = 500});
        assert_string_equal(wl_effective(wl)->mix, papers[i].mix);
        assert_string_equal(wl_effective(wl)->distribution, papers[i].distribution);
        wl_close(wl);
    }
    struct wl *wl = open_well(&(struct wl_config){.workload = "dolphin_range_only", .keys = 500});
    assert_int_equal(wl_effective(wl)->scan_min, 100);
    assert_int_equal(wl_effective(wl)->scan_max, 100);
    wl_close(wl);
}

/* A digest of the first operations and of the loaded keys. */
static uint64_t digest(const struct wl_config *config) {
    struct wl *wl = open_well(config);
    struct wl_stream *stream = wl_stream_open(wl, 1);
    uint64_t sum = 0, count = 0;
    const uint64_t *keys = wl_keys(wl, &count);
    for (int i = 0; i < 1000; i++) {
        struct wl_op op;
        assert_int_equal(wl_next(stream, &op), 0);
        wl_done(stream, &op, 0);
        sum = sum * 31 + op.key * 7 + op.scan_length * 3 + op.kind;
    }
    sum = sum * 31 + count + keys[count / 2];
    wl_stream_close(stream);
    wl_close(wl);
    return sum;
}

static void the_effective_settings_give_the_same_workload_again(void **state) {
    (void)state;
    const char *path = file_write_text("e.properties", OFFICIAL_E);
    const struct wl_config configs[] = {
        {.workload = "a", .keys = 300},
        {.workload = "e", .keys = 300, .theta = 0.7, .scan_distribution = "zipfian"},
        {.workload = path, .properties = "insertstart=10,insertcount=200"},
        {.workload = "c", .properties = "hotspotdatafraction=0.3", .distribution = "hotspot", .keys = 300},
        {.workload = "d", .key_set = "lognormal", .keys = 300},
        {.workload = "rolex_f", .keys = 300},
        {.mix = "read=0.1,update=0.2,insert=0.3,scan=0.1,rmw=0.1,delete=0.2", .keys = 300},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct wl *wl = open_well(&configs[i]);
        struct wl_config copy;
        dm_opt_copy(wl_options, &copy, wl_effective(wl));
        wl_close(wl);
        assert_int_equal(digest(&copy), digest(&configs[i]));
        dm_opt_free(wl_options, &copy);
    }
}

static void proportions_that_do_not_sum_to_one_are_refused_with_their_sum(void **state) {
    (void)state;
    refused(&(struct wl_config){.workload = "a", .mix = "read=0.5,update=0.4"}, "sum to 0.9");
    refused(&(struct wl_config){.workload = "a", .mix = "read=0.7,update=0.7"}, "sum to 1.4");
    refused(&(struct wl_config){.workload = "a", .mix = ","}, "sum to 0");
    refused(&(struct wl_config){.workload = "a", .properties = "insertproportion=0.1"}, "sum to 1.1");
    /* the default of updateproportion is not 0 */
    refused_file("recordcount=10\nreadproportion=1\n",
                 "bad.properties: mix: the proportions read=1,update=0.05 sum to 1.05");
}

static void bad_mixes_are_refused(void **state) {
    (void)state;
    refused(&(struct wl_config){.workload = "a", .mix = "reed=1"}, "did you mean 'read'");
    refused(&(struct wl_config){.workload = "a", .mix = "read"}, "read=0.5,update=0.5");
    refused(&(struct wl_config){.workload = "a", .mix = "read=0.5,read=0.5"}, "twice");
    refused(&(struct wl_config){.workload = "a", .mix = "read=2,update=-1"}, "between 0 and 1");
    refused(&(struct wl_config){.workload = "a", .mix = "read=much"}, "much");
    refused(&(struct wl_config){.workload = "a", .mix = "read=nan,update=1"}, "mix: ");
}

static void a_mix_has_at_most_255_characters(void **state) {
    (void)state;
    char mix[257];
    memset(mix, ' ', sizeof mix);
    memcpy(mix, "read=1", 6);
    mix[256] = '\0';
    refused(&(struct wl_config){.workload = "a", .mix = mix}, "longer than 255 characters");
    mix[255] = '\0';
    wl_close(open_well(&(struct wl_config){.workload = "a", .mix = mix}));
}

static void theta_outside_of_zero_to_one_is_refused(void **state) {
    (void)state;
    refused(&(struct wl_config){.workload = "a", .theta = 1.0}, "theta: 1 must be above 0 and below 1");
    refused(&(struct wl_config){.workload = "a", .theta = -0.5}, "theta: -0.5");
    refused(&(struct wl_config){.workload = "a", .theta = 1.5}, "theta: 1.5");
    refused(&(struct wl_config){.workload = "a", .theta = (double)NAN}, "theta: ");
}

static void zero_records_and_impossible_ranges_are_refused(void **state) {
    (void)state;
    refused_file("recordcount=0\n", "at least one loaded key");
    refused(&(struct wl_config){.workload = "a", .properties = "recordcount=0"}, "at least one loaded key");
    refused(&(struct wl_config){.workload = "a", .keys = UINT64_C(1) << 60}, "more than 2^40");
    refused(&(struct wl_config){.workload = "a", .keys = 10, .properties = "insertstart=10"}, "insertstart 10");
    refused(&(struct wl_config){.workload = "a", .keys = 10, .properties = "insertstart=5,insertcount=6"},
            "insertcount 6");
    refused(&(struct wl_config){.workload = "e", .scan_min = 200}, "scan_min <= scan_max");
    refused(&(struct wl_config){.workload = "a", .keys = 3, .distribution = "hotspot"}, "hot and a cold key");
    refused(
        &(struct wl_config){.workload = "a", .distribution = "exponential", .properties = "exponential.percentile=100"},
        "exponential.percentile 100");
}

static void unknown_names_are_refused_with_the_nearest(void **state) {
    (void)state;
    refused(&(struct wl_config){.workload = "xstore_bb"}, "did you mean 'xstore_b'");
    refused(&(struct wl_config){.workload = "a", .distribution = "zipfain"}, "did you mean 'zipfian'");
    refused(&(struct wl_config){.workload = "a", .insert_order = "hash"}, "hashed");
    refused(&(struct wl_config){.workload = "a", .scan_distribution = "latest"}, "uniform, zipfian");
    refused(&(struct wl_config){.workload = "a", .key_set = "logonormal"}, "did you mean 'lognormal'");
}

static void a_bad_line_of_a_property_file_is_named_by_file_and_line(void **state) {
    (void)state;
    refused_file("recordcount=10\n\nreadpropotion=1\n",
                 "bad.properties:3: unknown YCSB property 'readpropotion'; did you mean 'readproportion'?");
    refused_file("recordcount=10\njunk\n", "bad.properties:2: 'junk' should be name=value");
    refused_file("recordcount=ten\n", "bad.properties:1: recordcount: ");
    refused_file("# x\nreadproportion=-1\n", "bad.properties:2: readproportion: -1 is negative");
    refused_file("requestdistribution=zipf\n", "bad.properties:1: requestdistribution: ");
    refused_file("insertorder=sorted\n", "bad.properties:1: insertorder: ");
    refused_file("workload=site.ycsb.workloads.TimeSeriesWorkload\n", "not YCSB's core workload");
    refused_file("recordcount=10\n\x01\x02=3\n", "bad.properties:2: the line is not text");
    refused_file("=3\n", "bad.properties:1: ");
    /* a continued line is named by its first physical line */
    refused_file("recordcount=\\\n\\\nten\n", "bad.properties:1: recordcount");
}

static void a_missing_property_file_is_an_error_of_input(void **state) {
    (void)state;
    struct wl *wl = NULL;
    struct dm_err err = {0};
    assert_int_equal(wl_open(&(struct wl_config){.workload = "/nowhere/x.properties"}, 1, 1, 1, &wl, &err), DM_ERR_IO);
    assert_non_null(strstr(err.text, "/nowhere/x.properties: cannot be opened"));
    assert_int_equal(wl_open(&(struct wl_config){.workload = files_directory}, 1, 1, 1, &wl, &err), DM_ERR_IO);
    assert_null(wl);
}

static void an_endless_line_is_refused(void **state) {
    (void)state;
    char *text = malloc(10001);
    assert_non_null(text);
    memset(text, 'x', 10000);
    text[10000] = '\0';
    refused_file(text, "bad.properties:1: the line is longer");
    for (int i = 0; i < 10000; i += 4) {
        memcpy(text + i, "xx\\\n", 4);
    }
    refused_file(text, "bad.properties:1: the line is longer");
    free(text);
}

int main(void) {
    dm_log_set_level(DM_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_official_property_file_is_read_as_it_is),
        cmocka_unit_test(properties_missing_in_a_file_have_the_defaults_of_ycsb),
        cmocka_unit_test(properties_override_the_file_and_options_override_both),
        cmocka_unit_test(every_named_workload_opens_and_keeps_its_name),
        cmocka_unit_test(mixes_are_those_of_the_papers),
        cmocka_unit_test(the_effective_settings_give_the_same_workload_again),
        cmocka_unit_test(proportions_that_do_not_sum_to_one_are_refused_with_their_sum),
        cmocka_unit_test(bad_mixes_are_refused),
        cmocka_unit_test(a_mix_has_at_most_255_characters),
        cmocka_unit_test(theta_outside_of_zero_to_one_is_refused),
        cmocka_unit_test(zero_records_and_impossible_ranges_are_refused),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
        cmocka_unit_test(a_bad_line_of_a_property_file_is_named_by_file_and_line),
        cmocka_unit_test(a_missing_property_file_is_an_error_of_input),
        cmocka_unit_test(an_endless_line_is_refused),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
