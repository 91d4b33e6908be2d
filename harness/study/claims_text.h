/* SPDX-License-Identifier: Apache-2.0
 *
 * Judged claims as text, Markdown and JSON.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_TEXT_H
#define DM_HARNESS_STUDY_CLAIMS_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "harness/study/claims.h"

/* Everything as a new object. */
json_t *hx_claims_object(const struct hx_claims *claims, const char *const *ids, size_t id_count);

void hx_claims_print_text(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out);
void hx_claims_print_markdown(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out);

/* Two scales of the same claims side by side, as text or Markdown: the counts of both, then each claim that was run at
 * the second one, with its verdicts and values at both and, where the verdicts differ, the reasons at the second one.
 */
void hx_claims_print_beside(const struct hx_claims *one, const struct hx_claims *other, const char *const *ids,
                            size_t id_count, bool markdown, FILE *out);

/* "reproduced", with how much of it was run and under which reading. */
void hx_claim_verdict(const struct hx_claim *claim, char *text, size_t capacity);

/* "105 claims: 48 reproduced, ..." and how many reasons hold, as one line. */
void hx_claims_print_counts(const struct hx_claims *claims, const char *const *ids, size_t id_count, FILE *out);

/* A cell of a Markdown table: no bars, no ends of lines. */
void hx_markdown_cell(FILE *out, const char *text);

/* The reasons of a claim that is not reproduced, a line each, and as one cell of a Markdown table. */
void hx_claim_print_reasons(const struct hx_claim *claim, FILE *out);
void hx_claim_print_reasons_cell(const struct hx_claim *claim, FILE *out);

/* The expected value of a check, as "4.3 ± 25 %", and the measured one, as "3.21", or "3.21, in this host's time" where
 * another host has another one. */
void hx_check_expected(const struct hx_claim *claim, const struct hx_check *check, char *text, size_t capacity);
void hx_check_measured(const struct hx_claim *claim, const struct hx_check *check, char *text, size_t capacity);

/* Why a claim was not run: the reasons of its checks, each once. */
void hx_claim_why(const struct hx_claim *claim, char *text, size_t capacity);

/* "reproduced under coroutines (1 of 3 readings); direction only without". */
void hx_claim_under(const struct hx_claim *claim, char *text, size_t capacity);

/* The verdicts under other profiles as one line; "" if there are none. */
void hx_claim_sensitivity(const struct hx_claim *claim, char *text, size_t capacity);

#endif
