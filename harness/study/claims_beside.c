/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims judged at two scales, side by side.
 */
#include <string.h>

#include "harness/study/claims_text.h"

enum { TEXT_BYTES = 1024 };

/* The checks that were run, with their values: "over Sherman: 4.1; over ROLEX: 2.2 (expected 2 ± 25 %)". */
static void values_text(const struct hx_claim *claim, bool expected, char *text, size_t capacity) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < claim->check_count && length < capacity; i++) {
        const struct hx_check *check = &claim->checks[i];
        char value[TEXT_BYTES], wanted[TEXT_BYTES] = "";
        if (check->base.verdict == HX_NOT_RUN) {
            continue;
        }
        hx_check_measured(claim, check, value, sizeof(value));
        if (expected && claim->kind != HX_CLAIM_TREND) {
            hx_check_expected(claim, check, wanted, sizeof(wanted));
        }
        length += (size_t)snprintf(text + length, capacity - length, "%s%s%s%s%s%s%s", length > 0 ? "; " : "",
                                   check->what, check->what[0] != '\0' ? ": " : "", value,
                                   wanted[0] != '\0' ? " (" : "", wanted, wanted[0] != '\0' ? ")" : "");
    }
}

static void print_row(const struct hx_claim *one, const struct hx_claim *other, FILE *out) {
    const struct hx_claim *claims[] = {one, other};
    char text[4 * TEXT_BYTES];
    fprintf(out, "| %s | ", one->id);
    hx_markdown_cell(out, one->text);
    for (int i = 0; i < 2; i++) {
        values_text(claims[i], i == 0, text, sizeof(text));
        fprintf(out, " | ");
        hx_markdown_cell(out, text);
        hx_claim_verdict(claims[i], text, sizeof(text));
        fprintf(out, " | ");
        hx_markdown_cell(out, text);
    }
    fprintf(out, " | ");
    if (one->verdict != other->verdict) {
        hx_claim_print_reasons_cell(other, out);
    }
    fprintf(out, " |\n");
}

static void print_lines(const struct hx_claims *scales[2], const struct hx_claim *claims[2], FILE *out) {
    char text[4 * TEXT_BYTES];
    bool differs = claims[0]->verdict != claims[1]->verdict;
    fprintf(out, "  %-14s %s%s\n", claims[0]->id, claims[0]->text, differs ? "" : " (the same verdict)");
    for (int i = 0; i < 2; i++) {
        hx_claim_verdict(claims[i], text, sizeof(text));
        fprintf(out, "  %-14s   %s: %s; ", "", scales[i]->scale, text);
        values_text(claims[i], i == 0, text, sizeof(text));
        fprintf(out, "%s\n", text);
    }
    if (differs) {
        hx_claim_print_reasons(claims[1], out);
    }
}

void hx_claims_print_beside(const struct hx_claims *one, const struct hx_claims *other, const char *const *ids,
                            size_t id_count, bool markdown, FILE *out) {
    const struct hx_claims *scales[] = {one, other};
    const char *paper = "";
    size_t alike = 0, shown = 0;
    hx_claims_print_counts(one, ids, id_count, out);
    hx_claims_print_counts(other, ids, id_count, out);
    for (size_t i = 0; i < one->count; i++) {
        const struct hx_claim *claims[] = {&one->items[i], &other->items[i]}; /* of the same files */
        if (!hx_claim_is_among(claims[0], ids, id_count) || claims[1]->run_count == 0) {
            continue;
        }
        if (strcmp(paper, claims[0]->paper) != 0) {
            paper = claims[0]->paper;
            fprintf(out,
                    markdown ? "\n### %s\n\n| id | the paper says | %s (expected) | verdict | %s | verdict | why |\n"
                               "|---|---|---|---|---|---|---|\n"
                             : "\n%s\n",
                    paper, one->scale, other->scale);
        }
        if (markdown) {
            print_row(claims[0], claims[1], out);
        } else {
            print_lines(scales, claims, out);
        }
        alike += claims[0]->verdict == claims[1]->verdict;
        shown++;
    }
    fprintf(out, "\n%zu claims were run at scale %s; %zu of them have the same verdict at both.\n", shown, other->scale,
            alike);
}
