/* SPDX-License-Identifier: Apache-2.0
 *
 * What on this host disturbs measurements in real time.
 */
#ifndef DM_HARNESS_RUN_NOISE_H
#define DM_HARNESS_RUN_NOISE_H

#include <jansson.h>
#include <stddef.h>

struct hx_config;

enum { HX_NOISE_MAX = 4, HX_NOISE_BYTES = 160 };

/* What was found, a sentence each. */
struct hx_noise {
    char found[HX_NOISE_MAX][HX_NOISE_BYTES];
    size_t count;
};

/* Looks at the host before a run of so many busy threads: fewer cores than threads, load, the processors' governor,
 * other dmbench processes. */
void hx_noise_look(struct hx_noise *noise, unsigned threads);

/* Warns of each on stderr. */
void hx_noise_warn(const struct hx_noise *noise);

/* The busy threads of a resolved configuration: those of its clients, and of index servers. */
unsigned hx_noise_threads(const struct hx_config *config);

/* The sentences as a new array; NULL when out of memory. */
json_t *hx_noise_json(const struct hx_noise *noise);

#endif
