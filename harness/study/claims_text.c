/* SPDX-License-Identifier: Apache-2.0
 *
 * Judged claims as text, Markdown and JSON.
 */
#include "harness/study/claims_text.h"

#include <math.h>
#include <string.h>

#include "harness/study/claims_judge.h"
#include "harness/study/claims_readings.h"

enum { LINE_BYTES = 1024 };

static const char *const kind_names[] = {"value", "ratio", "trend"};

static void expected_number(const struct hx_check *check, char *text, size_t capacity) {
    if (isinf(check->high)) {
        snprintf(text, capacity, "at least %.4g", check->low);
    } else if (isinf(check->low)) {
        snprintf(text, capacity, "at most %.4g", check->high);
    } else if (check->low == check->high) {
        snprintf(text, capacity, "%.6g", check->low);
    } else {
        snprintf(text, capacity, "%.4g to %.4g", check->low, check->high);
    }
}

void hx_check_expected(const struct hx_claim *claim, const struct hx_check *check, char *text, size_t capacity) {
    char number[64];
    if (claim->kind == HX_CLAIM_TREND) {
        snprintf(text, capacity, "holds");
        return;
    }
    double low, high;
    expected_number(check, number, sizeof(number));
    if (!hx_check_accepted(claim->kind, check, &low, &high)) {
        snprintf(text, capacity, "%s ± %.3g %%", number, check->tolerance * 100);
    } else if (isinf(low) || isinf(high)) {
        snprintf(text, capacity, "%s (%s %.3g)", number, isinf(low) ? "to" : "from", isinf(low) ? high : low);
    } else {
        snprintf(text, capacity, "%s (%.3g to %.3g)", number, low, high);
    }
}

void hx_check_measured(const struct hx_claim *claim, const struct hx_check *check, char *text, size_t capacity) {
    const char *host = check->base.host_time ? ", in this host's time" : "";
    if (check->base.verdict == HX_NOT_RUN) {
        snprintf(text, capacity, "not run: %s", check->base.why);
    } else if (claim->kind == HX_CLAIM_TREND) {
        snprintf(text, capacity, "%s%s", check->base.value != 0 ? "holds" : "does not hold", host);
    } else {
        double value = check->base.value;
        snprintf(text, capacity, fabs(value) >= 1e4 ? "%.0f%s" : "%.4g%s", value, host);
    }
}

void hx_claim_why(const struct hx_claim *claim, char *text, size_t capacity) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < claim->check_count && length < capacity; i++) {
        const char *why = claim->checks[i].base.why;
        bool again = why[0] == '\0';
        for (size_t k = 0; k < i; k++) {
            again = again || strcmp(claim->checks[k].base.why, why) == 0;
        }
        if (!again) {
            length += (size_t)snprintf(text + length, capacity - length, "%s%s", length > 0 ? "; " : "", why);
        }
    }
}

void hx_claim_sensitivity(const struct hx_claim *claim, char *text, size_t capacity) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < claim->variant_count && length < capacity; i++) {
        const struct hx_claim_variant *variant = &claim->variants[i];
        length += (size_t)snprintf(text + length, capacity - length, "%s%s (%s): %s", i > 0 ? "; " : "",
                                   variant->profile, variant->parameter, hx_verdict_names[variant->verdict]);
    }
}

/* The parameter that the verdict of an unresolved claim depends on. */
static void depends(const struct hx_claim *claim, char *text, size_t capacity) {
    text[0] = '\0';
    for (size_t i = 0; i < claim->variant_count; i++) {
        const struct hx_claim_variant *variant = &claim->variants[i];
        if (variant->verdict != HX_NOT_RUN && variant->verdict != claim->base_verdict) {
            snprintf(text, capacity, " (depends on %s: %s, but %s with %s)", variant->parameter,
                     hx_verdict_names[claim->base_verdict], hx_verdict_names[variant->verdict], variant->profile);
            return;
        }
    }
}

void hx_claim_under(const struct hx_claim *claim, char *text, size_t capacity) {
    char good[256], parts[64] = "";
    size_t count = hx_claim_readings_good(claim, good, sizeof(good));
    if (claim->run_count < claim->check_count) {
        snprintf(parts, sizeof(parts), ", %zu of %zu parts", claim->run_count, claim->check_count);
    }
    snprintf(text, capacity, "reproduced under %s (%zu of %zu readings%s); %s without", good, count,
             hx_claim_readings_tried(claim), parts, hx_verdict_names[claim->base_verdict]);
}

void hx_claim_verdict(const struct hx_claim *claim, char *text, size_t capacity) {
    char more[256] = "";
    if (claim->verdict == HX_READING) {
        hx_claim_under(claim, text, capacity);
        return;
    }
    if (claim->verdict == HX_UNRESOLVED) {
        depends(claim, more, sizeof(more));
    } else if (claim->run_count > 0 && claim->run_count < claim->check_count) {
        snprintf(more, sizeof(more), " (%zu of %zu parts)", claim->run_count, claim->check_count);
    }
    snprintf(text, capacity, "%s%s", hx_verdict_names[claim->verdict], more);
}

/* With several seeds a point: whether one alone gives another verdict than the medians, readings aside. */
static bool seeds_differ(const struct hx_claim *claim) {
    size_t all = 0;
    for (int i = 0; i < HX_VERDICTS; i++) {
        all += claim->seeds[i];
    }
    return claim->seeds[claim->base_verdict] < all;
}

/* "2 reproduced, 1 direction only" */
static void seeds_text(const struct hx_claim *claim, char *text, size_t capacity) {
    size_t length = 0;
    for (int i = 0; i < HX_VERDICTS && length < capacity; i++) {
        if (claim->seeds[i] > 0) {
            length += (size_t)snprintf(text + length, capacity - length, "%s%zu %s", length > 0 ? ", " : "",
                                       claim->seeds[i], hx_verdict_names[i]);
        }
    }
}

/* How many claims (of one paper; NULL: of all) have each verdict, and how many of them by some of their checks only. */
static void count_verdicts(const struct hx_claims *claims, const char *paper, const char *const *ids, size_t id_count,
                           size_t counts[HX_VERDICTS], size_t partly[HX_VERDICTS]) {
    memset(counts, 0, HX_VERDICTS * sizeof(*counts));
    memset(partly, 0, HX_VERDICTS * sizeof(*partly));
    for (size_t i = 0; i < claims->count; i++) {
        const struct hx_claim *claim = &claims->items[i];
        if (hx_claim_is_among(claim, ids, id_count) && (paper == NULL || strcmp(paper, claim->paper) == 0)) {
            counts[claim->verdict]++;
            partly[claim->verdict] += claim->run_count > 0 && claim->run_count < claim->check_count;
        }
    }
}

/* "; 40 reasons hold, 2 refuted" */
static void print_reason_counts(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out) {
    size_t reasons[HX_REASON_REFUTED + 1] = {0};
    for (size_t i = 0; i < claims->count; i++) {
        if (hx_claim_is_among(&claims->items[i], ids, id_count)) {
            hx_claim_count_reasons(&claims->items[i], reasons);
        }
    }
    if (reasons[HX_REASON_HOLDS] + reasons[HX_REASON_REFUTED] + reasons[HX_REASON_NOT_RUN] == 0) {
        return;
    }
    fprintf(out, "; reasons: %zu hold, %zu refuted", reasons[HX_REASON_HOLDS], reasons[HX_REASON_REFUTED]);
    if (reasons[HX_REASON_NOT_RUN] > 0) {
        fprintf(out, ", %zu not run", reasons[HX_REASON_NOT_RUN]);
    }
}

/* "; 2 with another verdict by some seed" */
static void print_seed_counts(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out) {
    size_t differ = 0;
    for (size_t i = 0; i < claims->count; i++) {
        const struct hx_claim *claim = &claims->items[i];
        differ += hx_claim_is_among(claim, ids, id_count) && seeds_differ(claim);
    }
    if (claims->repeat > 1) {
        fprintf(out, "; %zu with another verdict by some of %u seeds", differ, claims->repeat);
    }
}

void hx_claims_print_counts(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out) {
    size_t counts[HX_VERDICTS], partly[HX_VERDICTS], all = 0;
    count_verdicts(claims, NULL, ids, id_count, counts, partly);
    for (int i = 0; i < HX_VERDICTS; i++) {
        all += counts[i];
    }
    fprintf(out, "%zu claims:", all);
    for (int i = 0; i < HX_VERDICTS; i++) {
        fprintf(out, "%s %zu %s", i > 0 ? "," : "", counts[i], hx_verdict_names[i]);
        if (partly[i] > 0) {
            fprintf(out, " (%zu in part)", partly[i]);
        }
    }
    fprintf(out, " (scale %s)", claims->scale);
    print_seed_counts(claims, ids, id_count, out);
    print_reason_counts(claims, ids, id_count, out);
    fprintf(out, "\n");
}

/* ---- terminal --------------------------------------------------------------------------------------------------- */

void hx_claim_print_reasons(const struct hx_claim *claim, FILE *out) {
    char text[LINE_BYTES];
    for (size_t i = 0; hx_claim_has_reasons(claim) && i < claim->reason_count; i++) {
        hx_reason_text(&claim->reasons[i], text, sizeof(text));
        fprintf(out, "  %-14s why: %s\n", "", text);
    }
}

static void print_claim(const struct hx_claim *claim, FILE *out) {
    char verdict[LINE_BYTES], expected[LINE_BYTES], measured[LINE_BYTES];
    hx_claim_verdict(claim, verdict, sizeof(verdict));
    if (claim->run_count == 0) {
        hx_claim_why(claim, measured, sizeof(measured));
        fprintf(out, "  %-14s %s: %s\n  %-14s %s\n", claim->id, verdict, measured, "", claim->text);
        return;
    }
    fprintf(out, "  %-14s %s\n  %-14s %s\n", claim->id, verdict, "", claim->text);
    for (size_t i = 0; i < claim->check_count; i++) {
        const struct hx_check *check = &claim->checks[i];
        hx_check_expected(claim, check, expected, sizeof(expected));
        hx_check_measured(claim, check, measured, sizeof(measured));
        fprintf(out, "  %-14s   %s%s%s", "", check->what, check->what[0] != '\0' ? ": " : "", measured);
        bool plain = check->base.verdict == HX_NOT_RUN || claim->kind == HX_CLAIM_TREND;
        fprintf(out, plain ? "\n" : " (%s)\n", expected);
    }
    if (seeds_differ(claim)) {
        seeds_text(claim, measured, sizeof(measured));
        fprintf(out, "  %-14s seeds: %s\n", "", measured);
    }
    hx_claim_readings_text(claim, measured, sizeof(measured));
    if (measured[0] != '\0') {
        fprintf(out, "  %-14s readings: %s\n", "", measured);
    }
    hx_claim_print_reasons(claim, out);
}

void hx_claims_print_text(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out) {
    const char *paper = "";
    for (size_t i = 0; i < claims->count; i++) {
        const struct hx_claim *claim = &claims->items[i];
        if (!hx_claim_is_among(claim, ids, id_count)) {
            continue;
        }
        if (strcmp(paper, claim->paper) != 0) {
            fprintf(out, "%s%s\n", paper[0] != '\0' ? "\n" : "", claim->paper);
            paper = claim->paper;
        }
        print_claim(claim, out);
    }
    fprintf(out, "\n");
    hx_claims_print_counts(claims, ids, id_count, out);
}

/* ---- Markdown --------------------------------------------------------------------------------------------------- */

void hx_markdown_cell(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        fputs(*text == '|' ? "\\|" : *text == '\n' ? " " : (char[]){*text, '\0'}, out);
    }
}

void hx_claim_print_reasons_cell(const struct hx_claim *claim, FILE *out) {
    char text[LINE_BYTES];
    for (size_t i = 0; hx_claim_has_reasons(claim) && i < claim->reason_count; i++) {
        hx_reason_text(&claim->reasons[i], text, sizeof(text));
        fprintf(out, "%s", i > 0 ? " " : "");
        hx_markdown_cell(out, text);
    }
}

static void print_row(const struct hx_claim *claim, FILE *out) {
    char text[LINE_BYTES];
    fprintf(out, "| %s | ", claim->id);
    hx_markdown_cell(out, claim->text);
    fprintf(out, " | ");
    if (claim->run_count == 0) {
        hx_claim_why(claim, text, sizeof(text));
        hx_markdown_cell(out, text);
    }
    for (size_t i = 0; claim->run_count > 0 && i < claim->check_count; i++) {
        const struct hx_check *check = &claim->checks[i];
        hx_check_measured(claim, check, text, sizeof(text));
        fprintf(out, "%s%s%s", i > 0 ? "; " : "", check->what, check->what[0] != '\0' ? ": " : "");
        hx_markdown_cell(out, text);
        if (claim->kind != HX_CLAIM_TREND && check->base.verdict != HX_NOT_RUN) {
            hx_check_expected(claim, check, text, sizeof(text));
            fprintf(out, " (%s)", text);
        }
    }
    hx_claim_verdict(claim, text, sizeof(text));
    fprintf(out, " | %s", text);
    if (seeds_differ(claim)) {
        seeds_text(claim, text, sizeof(text));
        fprintf(out, "; seeds: %s", text);
    }
    hx_claim_readings_text(claim, text, sizeof(text));
    if (text[0] != '\0' && claim->verdict != HX_NOT_RUN) {
        fprintf(out, "; readings: ");
        hx_markdown_cell(out, text);
    }
    fprintf(out, " | ");
    hx_claim_print_reasons_cell(claim, out);
    fprintf(out, " |\n");
}

/* A row per paper; claims of one paper are consecutive in the file. */
static void print_papers(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out) {
    size_t counts[HX_VERDICTS], partly[HX_VERDICTS];
    const char *paper = "";
    fprintf(out, "\n| paper |");
    for (int i = 0; i < HX_VERDICTS; i++) {
        fprintf(out, " %s |", hx_verdict_names[i]);
    }
    fprintf(out, "\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < claims->count; i++) {
        const struct hx_claim *claim = &claims->items[i];
        if (!hx_claim_is_among(claim, ids, id_count) || strcmp(paper, claim->paper) == 0) {
            continue;
        }
        paper = claim->paper;
        count_verdicts(claims, paper, ids, id_count, counts, partly);
        fprintf(out, "| %s |", paper);
        for (int k = 0; k < HX_VERDICTS; k++) {
            fprintf(out, " %zu |", counts[k]);
        }
        fprintf(out, "\n");
    }
}

void hx_claims_print_markdown(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out) {
    const char *paper = "";
    hx_claims_print_counts(claims, ids, id_count, out);
    print_papers(claims, ids, id_count, out);
    for (size_t i = 0; i < claims->count; i++) {
        const struct hx_claim *claim = &claims->items[i];
        if (!hx_claim_is_among(claim, ids, id_count)) {
            continue;
        }
        if (strcmp(paper, claim->paper) != 0) {
            fprintf(
                out,
                "\n### %s\n\n| id | the paper says | measured (expected) | verdict | why |\n|---|---|---|---|---|\n",
                claim->paper);
            paper = claim->paper;
        }
        print_row(claim, out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *check_object(const struct hx_claim *claim, const struct hx_check *check) {
    json_t *object = json_pack("{s:s, s:s, s:s, s:o, s:s, s:b}", "what", check->what, "reads", check->figure,
                               "expression", check->value, "value", real(check->base.value), "verdict",
                               hx_verdict_names[check->base.verdict], "host_time", (int)check->base.host_time);
    if (check->over != NULL) {
        json_object_set_new(object, "over", json_string(check->over));
    }
    if (claim->kind != HX_CLAIM_TREND) {
        json_object_set_new(object, "expected", json_pack("[o, o]", real(check->low), real(check->high)));
        json_object_set_new(object, "tolerance", json_real(check->tolerance));
    }
    if (check->base.verdict == HX_NOT_RUN) {
        json_object_set_new(object, "why", json_string(check->base.why));
    }
    return object;
}

static json_t *claim_object(const struct hx_claim *claim) {
    json_t *checks = json_array(), *variants = json_array(), *seeds = json_object();
    for (int i = 0; i < HX_VERDICTS; i++) {
        if (claim->seeds[i] > 0) {
            json_object_set_new(seeds, hx_verdict_names[i], json_integer((json_int_t)claim->seeds[i]));
        }
    }
    for (size_t i = 0; i < claim->check_count; i++) {
        json_array_append_new(checks, check_object(claim, &claim->checks[i]));
    }
    for (size_t i = 0; i < claim->variant_count; i++) {
        const struct hx_claim_variant *variant = &claim->variants[i];
        json_array_append_new(variants, json_pack("{s:s, s:s, s:s}", "profile", variant->profile, "parameter",
                                                  variant->parameter, "verdict", hx_verdict_names[variant->verdict]));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "id", claim->id, "paper",
                     claim->paper, "figure", claim->figure, "text", claim->text, "kind", kind_names[claim->kind],
                     "verdict", hx_verdict_names[claim->verdict], "verdict_own_profile",
                     hx_verdict_names[claim->base_verdict], "seeds", seeds, "checks_run", (json_int_t)claim->run_count,
                     "checks", checks, "sensitivity", variants, "readings", hx_claim_readings_array(claim), "because",
                     hx_claim_reasons_array(claim));
}

json_t *hx_claims_object(const struct hx_claims *claims, const char *const *ids, size_t id_count) {
    size_t counts[HX_VERDICTS], partly[HX_VERDICTS];
    json_t *list = json_array(), *count_object = json_object(), *partly_object = json_object();
    count_verdicts(claims, NULL, ids, id_count, counts, partly);
    for (int i = 0; i < HX_VERDICTS; i++) {
        json_object_set_new(count_object, hx_verdict_names[i], json_integer((json_int_t)counts[i]));
        json_object_set_new(partly_object, hx_verdict_names[i], json_integer((json_int_t)partly[i]));
    }
    for (size_t i = 0; i < claims->count; i++) {
        if (hx_claim_is_among(&claims->items[i], ids, id_count)) {
            json_array_append_new(list, claim_object(&claims->items[i]));
        }
    }
    return json_pack("{s:i, s:s, s:I, s:o, s:o, s:o}", "schema_version", 1, "scale", claims->scale, "repeat",
                     (json_int_t)claims->repeat, "counts", count_object, "counts_in_part", partly_object, "claims",
                     list);
}
