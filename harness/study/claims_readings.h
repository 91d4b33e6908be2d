/* SPDX-License-Identifier: Apache-2.0
 *
 * Readings and reasons of judged claims as text and JSON.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_READINGS_H
#define DM_HARNESS_STUDY_CLAIMS_READINGS_H

#include "harness/study/claims.h"

/* How many readings were tried; the values of a range are one. */
size_t hx_claim_readings_tried(const struct hx_claim *claim);

/* The readings under which the claim is reproduced: "coroutines, cache-limit with cache 20MB to 80MB". Returns their
 * number; "" if there are none. */
size_t hx_claim_readings_good(const struct hx_claim *claim, char *text, size_t capacity);

/* The verdict under each: "coroutines: direction only; cache-limit: reproduced with cache 20MB to 80MB of 10MB to
 * 300MB"; "" if there are none. */
void hx_claim_readings_text(const struct hx_claim *claim, char *text, size_t capacity);

/* Whether the reasons are of interest: the claim was judged, and is not reproduced. */
bool hx_claim_has_reasons(const struct hx_claim *claim);

/* A reason with the numbers of today: "the link is full (0.97; expected 0.9 to 1)", "refuted: ..." */
void hx_reason_text(const struct hx_reason *reason, char *text, size_t capacity);

/* The reasons of a claim by their verdicts; added to counts. */
void hx_claim_count_reasons(const struct hx_claim *claim, size_t counts[HX_REASON_REFUTED + 1]);

/* As new arrays. */
json_t *hx_claim_readings_array(const struct hx_claim *claim);
json_t *hx_claim_reasons_array(const struct hx_claim *claim);

#endif
