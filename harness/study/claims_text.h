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

/* The expected value of a check, as "4.3 within 25 %", and the measured one, as "3.21". */
void hx_check_expected(const struct hx_claim *claim, const struct hx_check *check, char *text, size_t capacity);
void hx_check_measured(const struct hx_claim *claim, const struct hx_check *check, char *text, size_t capacity);

/* Why a claim was not run: the reasons of its checks, each once. */
void hx_claim_why(const struct hx_claim *claim, char *text, size_t capacity);

/* "reproduced under coroutines (1 of 3 readings); direction only without". */
void hx_claim_under(const struct hx_claim *claim, char *text, size_t capacity);

/* The verdicts under other profiles as one line; "" if there are none. */
void hx_claim_sensitivity(const struct hx_claim *claim, char *text, size_t capacity);

#endif
