/* SPDX-License-Identifier: Apache-2.0
 *
 * The claims of the project: all can be read, and fit the existing figures. Mistakes in claims are named.
 */
#include "harness/study/claims_judge.h"
#include "harness/study/claims_open.h"
#include "harness/study/claims_points.h"
#include "harness/study/claims_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/opt_json.h"

#define PLOTS DM_SOURCE_DIR "/plots"

static void every_claim_fits_its_figure_at_every_scale(void **state) {
    (void)state;
    const char *const scales[] = {"quick", "paper", "7"};
    for (size_t i = 0; i < 3; i++) {
        struct hx_claims *claims;
        struct dm_err err = {.text = ""};
        if (hx_claims_open(PLOTS, "nowhere", scales[i], 1, &claims, &err) < 0 || hx_claims_check(claims, &err) < 0) {
            fail_msg("%s: %s", scales[i], err.text);
        }
        assert_true(claims->count > 80);
        hx_claims_close(claims);
    }
}

/* Without results no claim may be judged, and every claim has a reason. */
static void without_results_every_claim_has_a_reason_why_it_was_not_run(void **state) {
    (void)state;
    struct hx_claims *claims;
    struct dm_err err = {.text = ""};
    assert_int_equal(hx_claims_open(PLOTS, "nowhere", "quick", 1, &claims, &err), 0);
    assert_int_equal(hx_claims_judge(claims, &err), 0);
    for (size_t i = 0; i < claims->count; i++) {
        assert_int_equal(claims->items[i].verdict, HX_NOT_RUN);
        for (size_t k = 0; k < claims->items[i].check_count; k++) {
            assert_true(claims->items[i].checks[k].base.why[0] != '\0');
        }
    }
    json_t *object = hx_claims_object(claims, NULL, 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "counts"), "not run")), claims->count);
    json_decref(object);
    hx_claims_close(claims);
}

static void every_profile_of_the_sensitivity_table_exists(void **state) {
    (void)state;
    struct hx_claims *claims;
    struct dm_err err = {.text = ""};
    const char *const ids[] = {"chime-12c", "rolex-14a"};
    assert_int_equal(hx_claims_open(PLOTS, "nowhere", "quick", 1, &claims, &err), 0);
    struct hx_points *own = hx_claims_points(claims, ids, 2, false, &err);
    struct hx_points *all = hx_claims_points(claims, ids, 2, true, &err);
    if (own == NULL || all == NULL) {
        fail_msg("%s", err.text);
        return;
    }
    assert_true(own->count > 0);
    assert_true(all->count > own->count);
    hx_points_free(own);
    hx_points_free(all);
    hx_claims_close(claims);
}

/* The reason why a claim cannot be measured is in the file, and needs no figure. */
static void a_claim_that_cannot_be_measured_has_its_reason(void **state) {
    (void)state;
    struct hx_claims *claims;
    struct dm_err err = {.text = ""};
    size_t found = 0;
    assert_int_equal(hx_claims_open(PLOTS, "nowhere", "quick", 1, &claims, &err), 0);
    assert_int_equal(hx_claims_judge(claims, &err), 0);
    for (size_t i = 0; i < claims->count; i++) {
        for (size_t k = 0; k < claims->items[i].check_count; k++) {
            const struct hx_check *check = &claims->items[i].checks[k];
            if (check->not_run != NULL && check->base.why[0] != '\0') {
                bool has_reason = strcmp(check->base.why, check->not_run) == 0 || claims->items[i].needs != NULL;
                assert_true(has_reason);
                found++;
            }
            bool has_figure = check->figure[0] != '\0' || check->not_run != NULL;
            assert_true(has_figure);
        }
    }
    assert_true(found > 0);
    hx_claims_close(claims);
}

/* Stores the text as JSON in a file of the folder. */
static void put(const char *folder, const char *name, const char *text) {
    char path[256];
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(dm_json_store(json, path, NULL), 0);
    json_decref(json);
}

static const char *const figure_text =
    "{\"id\": \"f\", \"title\": \"t\", \"shows\": \"s\", \"keeps\": \"k\", \"config\": {\"transport\": \"sim\"},"
    " \"scales\": {\"quick\": {\"config\": {\"keys\": \"1K\"}, \"x\": [2, 4]}, \"paper\": {\"config\": {}, \"x\": "
    "[2]}},"
    " \"panels\": [{\"label\": \"YCSB C\"}, {\"label\": \"YCSB A\"}], \"series\": [{\"label\": \"Sherman\"}],"
    " \"x\": {\"option\": \"clients\", \"label\": \"clients\"}, \"plots\": [{\"id\": \"p\", \"kind\": \"line\","
    " \"y_label\": \"y\", \"y\": [{\"path\": \"throughput_ops_per_s\", \"column\": \"rate\"}]}],"
    " \"readings\": [{\"id\": \"more\", \"says\": \"s\", \"from\": \"code: a/b\", \"config\": {\"cns\": 2}}],"
    " \"from\": {\"clients\": \"assumed: a test\"},"
    " \"experiments\": [{\"id\": \"less\", \"says\": \"s\", \"config\": {\"cns\": 2}}]}";

#define FOLDER "/tmp/dmbench_claims.XXXXXX"

/* Opens the claims of a new folder that has the given file of them. The caller removes it. */
static int open_file(char *folder, const char *file, struct hx_claims **claims, struct dm_err *err) {
    char path[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/claims", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put(folder, "claims/p.json", file);
    put(folder, "metrics.json", "{\"mops\": {\"path\": \"throughput_ops_per_s\"}}");
    put(folder, "sensitivity.json", "{}");
    put(folder, "systems.json",
        "{\"systems\": {\"sherman\": {\"name\": \"Sherman\", \"color\": \"#0072B2\", \"marker\": \"circle\"}},"
        " \"others\": [{\"color\": \"#000000\", \"marker\": \"square\"}]}");
    snprintf(path, sizeof(path), "%s/figures", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put(folder, "figures/f.json", figure_text);
    return hx_claims_open(folder, "nowhere", "quick", 1, claims, err);
}

static void remove_folder(const char *folder) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void must_refuse_file(const char *file, const char *reason) {
    char folder[] = FOLDER;
    struct hx_claims *claims;
    struct dm_err err = {.text = ""};
    int rc = open_file(folder, file, &claims, &err);
    remove_folder(folder);
    assert_int_equal(rc, DM_ERR_INVALID);
    if (strstr(err.text, reason) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, reason);
    }
}

static void must_refuse(const char *claim, const char *reason) {
    char file[2048];
    snprintf(file, sizeof(file), "{\"claims\": [%s]}", claim);
    must_refuse_file(file, reason);
}

#define HEAD "\"id\": \"x\", \"paper\": \"P\", \"figure\": \"1\", \"text\": \"t\", \"reads\": \"f\""

static void mistakes_in_a_claim_are_named(void **state) {
    (void)state;
    must_refuse("{\"id\": \"x\"}", "'paper' is missing");
    must_refuse("{" HEAD ", \"kind\": \"ratios\", \"checks\": []}", "unknown kind 'ratios'");
    must_refuse("{" HEAD ", \"kind\": \"ratio\", \"checks\": []}", "has no checks");
    must_refuse("{" HEAD ", \"kind\": \"ratio\", \"checks\": [{\"value\": \"1\"}]}", "x.checks[0].expect");
    must_refuse("{" HEAD ", \"kind\": \"trend\", \"checks\": [{\"value\": \"1\", \"expect\": 1}]}", "trends have none");
    must_refuse("{" HEAD ", \"kind\": \"trend\", \"checks\": [{\"what\": \"w\"}]}", "'value' is missing");
    must_refuse("{" HEAD ", \"kind\": \"value\", \"checks\": [{\"value\": \"1\", \"expect\": [2, 1]}]}", "wrong way");
    must_refuse("{" HEAD ", \"kind\": \"value\", \"checks\": [{\"valeu\": \"1\", \"expect\": 1}]}", "'valeu'");
    must_refuse("{" HEAD ", \"kind\": \"value\", \"checks\": [{\"value\": \"1\", \"expect\": \"2\"}]}", "a number or");
}

/* The verdict of a claim whose value is 3, with that range and tolerance. */
static enum hx_verdict judged(const char *expect, const char *tolerance) {
    char folder[] = FOLDER, file[1024];
    struct hx_claims *claims;
    struct dm_err err = {.text = ""};
    snprintf(file, sizeof(file),
             "{\"claims\": [{" HEAD
             ", \"kind\": \"value\", \"checks\": [{\"what\": \"w\", \"value\": \"3\", \"expect\": "
             "%s, \"tolerance\": %s}]}]}",
             expect, tolerance);
    assert_int_equal(open_file(folder, file, &claims, &err), 0);
    assert_int_equal(hx_claims_judge(claims, &err), 0);
    remove_folder(folder);
    enum hx_verdict verdict = claims->items[0].verdict;
    hx_claims_close(claims);
    return verdict;
}

static void an_open_end_is_open_without_a_tolerance_too(void **state) {
    (void)state;
    assert_int_equal(judged("[2, null]", "0"), HX_REPRODUCED);
    assert_int_equal(judged("[null, 4]", "0"), HX_REPRODUCED);
    assert_int_equal(judged("[3.1, null]", "0"), HX_NOT_REPRODUCED);
    assert_int_equal(judged("[3.1, null]", "0.1"), HX_REPRODUCED);
    assert_int_equal(judged("[null, 2.9]", "0"), HX_NOT_REPRODUCED);
}

static bool accepts(double low, double high, double tolerance, double value) {
    const struct hx_check check = {.low = low, .high = high, .tolerance = tolerance};
    double least, most;
    hx_check_accepted(HX_CLAIM_RATIO, &check, &least, &most);
    return value >= least && value <= most;
}

/* Where a quarter of the ratio is more than that, it decides as before. */
static void a_ratio_shows_between_half_and_twice_of_what_is_gained(void **state) {
    (void)state;
    assert_false(accepts(1.3, 1.3, 0.25, 1.14));
    assert_true(accepts(1.3, 1.3, 0.25, 1.16));
    assert_true(accepts(1.3, 1.3, 0.25, 1.59));
    assert_false(accepts(1.3, 1.3, 0.25, 1.61));
    assert_false(accepts(1 / 1.3, 1 / 1.3, 0.25, 1 / 1.14));
    assert_true(accepts(1 / 1.3, 1 / 1.3, 0.25, 1 / 1.16));
    assert_false(accepts(1 / 1.3, 1 / 1.3, 0.25, 1 / 1.61));
    assert_true(accepts(4, 4, 0.25, 3.01) && accepts(4, 4, 0.25, 4.99));
    assert_false(accepts(4, 4, 0.25, 2.99) || accepts(4, 4, 0.25, 5.01));
    assert_true(accepts(1, 1, 0.25, 0.76) && accepts(1, 1, 0.25, 1.24)); /* alike: nothing is gained */
    assert_true(accepts(1.2, 1.2, 0.05, 1.15));
    assert_false(accepts(1.2, 1.2, 0.05, 1.13)); /* a tolerance of its own that is less */
    assert_true(accepts(1.2, INFINITY, 0.25, 9));
    assert_false(accepts(1.2, INFINITY, 0.25, 1.09));
}

static void mistakes_in_a_file_of_claims_are_named(void **state) {
    (void)state;
    const char *const claim = "{" HEAD ", \"kind\": \"value\", \"checks\": [{\"value\": \"mops{A}\", \"expect\": 1}]}";
    char file[1024];
    snprintf(file, sizeof(file), "{\"claims\": [%s, %s]}", claim, claim);
    must_refuse_file(file, "claims/p.json: there are two claims 'x'");
    must_refuse_file("{\"metrics\": {\"mops\": {\"path\": \"keys\"}}, \"claims\": []}",
                     "metrics.mops: is in metrics.json already");
    must_refuse_file("{\"metrics\": {\"own\": {\"paht\": \"keys\"}}, \"claims\": []}",
                     "claims/p.json: metrics.own: unknown member 'paht'");
    must_refuse_file("{\"claim\": []}", "unknown member 'claim'");
}

/* A claim with one reason. */
static void must_refuse_reason(const char *reason, const char *why) {
    char claim[1024];
    snprintf(claim, sizeof(claim),
             "{" HEAD ", \"kind\": \"trend\", \"checks\": [{\"value\": \"1\"}], \"because\": [{%s}]}", reason);
    must_refuse(claim, why);
}

static void a_reason_has_an_expression_and_no_numbers_in_its_text(void **state) {
    (void)state;
    must_refuse_reason("\"text\": \"so\"", "a reason needs either 'value' and 'expect', or 'holds'");
    must_refuse_reason("\"text\": \"so\", \"value\": \"1\"", "a reason needs either");
    must_refuse_reason("\"text\": \"so\", \"holds\": \"1\", \"expect\": 1", "a reason needs either");
    must_refuse_reason("\"text\": \"so\", \"value\": \"1\", \"expect\": [2, 1]", "because[0].expect: its ends");
    must_refuse_reason("\"text\": \"so\", \"value\": \"1\", \"expect\": [null, null]", "or both open");
    must_refuse_reason("\"text\": \"so\", \"value\": \"1\", \"expect\": \"much\"", "must be a number or");
    static const char *const texts[] = {"reads 1.6 kB", "93 % busy", "at 18.5", "2 x", "from 4", "a 64-byte line"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char reason[128];
        snprintf(reason, sizeof(reason), "\"text\": \"it %s\", \"holds\": \"1\"", texts[i]);
        must_refuse_reason(reason, "x.because[0].text: a number is typed in at");
    }
}

/* Names may have digits: the reason is refused for its expression, which is looked at later. */
static void names_with_digits_are_no_numbers(void **state) {
    (void)state;
    static const char *const texts[] = {"P99", "ConnectX-6", "H = 2", "figure 12", "section 5.1", "cx6-100g", "CAS"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char reason[128];
        snprintf(reason, sizeof(reason), "\"text\": \"it is (%s)\", \"holds\": \"1 +\"", texts[i]);
        must_refuse_reason(reason, "because[0]: '1 +'");
    }
}

static void a_reason_that_does_not_fit_its_figure_is_refused(void **state) {
    (void)state;
#define HOLDS "\"text\": \"so\", \"holds\": "
    must_refuse_reason(HOLDS "\"1\", \"reads\": \"g\"", "claim x: because[0]: there is no figure g here yet");
    must_refuse_reason(HOLDS "\"max(rate{SMART, YCSB C}) > 1\"", "figure f has no series 'SMART'");
    must_refuse_reason(HOLDS "\"max(rate{Sherman, YCSB D}) > 1\"", "figure f has no panel 'YCSB D'");
    must_refuse_reason(HOLDS "\"max(rates{Sherman, YCSB C}) > 1\"", "no metric or column 'rates'");
    must_refuse_reason(HOLDS "\"rate{Sherman, YCSB C, 3} > 1\"", "figure f has no x of 3");
    must_refuse_reason(HOLDS "\"with(none, max(rate{Sherman, YCSB C})) > 1\"",
                       "figure f has no reading or experiment 'none' (it has: more; less)");
    must_refuse_reason(HOLDS "\"with(less, max(rate{SMART, YCSB C})) > 1\"", "figure f has no series 'SMART'");
    must_refuse_reason(HOLDS "\"max(rate{Sherman, YCSB C}) / (1 - 1) > 1\"",
                       "because[0]: 'max(rate{Sherman, YCSB C}) / "
                       "(1 - 1) > 1': division by nothing");
    must_refuse_reason(HOLDS "\"1 / max(from(rate{Sherman, YCSB C}, 5)) > 1\"", "nothing of the curve is left");
    must_refuse_reason(HOLDS "\"rate{Sherman, YCSB C} > 1\"", "is a curve");
#undef HOLDS
}

/* Files are opened at quick scale. */
static void a_reason_of_one_scale_is_judged_there_alone(void **state) {
    (void)state;
    static const char *const members[] = {"", ", \"scale\": \"quick\"", ", \"scale\": \"paper\""};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        char folder[] = FOLDER, file[1024];
        struct hx_claims *claims;
        struct dm_err err = {.text = ""};
        snprintf(file, sizeof(file),
                 "{\"claims\": [{" HEAD ", \"kind\": \"trend\", \"checks\": [{\"value\": \"0\"}], \"because\": ["
                 "{\"text\": \"so\", \"holds\": \"0\"%s}, {\"text\": \"and so\", \"holds\": \"1\"}]}]}",
                 members[i]);
        assert_int_equal(open_file(folder, file, &claims, &err), 0);
        remove_folder(folder);
        assert_int_equal(hx_claims_judge(claims, &err), 0);
        const struct hx_claim *claim = &claims->items[0];
        assert_int_equal(claim->reason_count, i < 2 ? 2 : 1);
        assert_int_equal(claim->refuted_count, i < 2 ? 1 : 0);
        assert_string_equal(claim->reasons[claim->reason_count - 1].text, "and so");
        hx_claims_close(claims);
    }
    must_refuse_reason("\"text\": \"so\", \"holds\": \"1\", \"scale\": \"papr\"",
                       "because[0]: unknown scale 'papr' (did you mean 'paper'");
    must_refuse_reason("\"text\": \"2 x\", \"holds\": \"1\", \"scale\": \"paper\"", "a number is typed in at");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_claim_fits_its_figure_at_every_scale),
        cmocka_unit_test(without_results_every_claim_has_a_reason_why_it_was_not_run),
        cmocka_unit_test(a_claim_that_cannot_be_measured_has_its_reason),
        cmocka_unit_test(every_profile_of_the_sensitivity_table_exists),
        cmocka_unit_test(mistakes_in_a_claim_are_named),
        cmocka_unit_test(an_open_end_is_open_without_a_tolerance_too),
        cmocka_unit_test(a_ratio_shows_between_half_and_twice_of_what_is_gained),
        cmocka_unit_test(mistakes_in_a_file_of_claims_are_named),
        cmocka_unit_test(a_reason_has_an_expression_and_no_numbers_in_its_text),
        cmocka_unit_test(names_with_digits_are_no_numbers),
        cmocka_unit_test(a_reason_that_does_not_fit_its_figure_is_refused),
        cmocka_unit_test(a_reason_of_one_scale_is_judged_there_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
