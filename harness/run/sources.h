/* SPDX-License-Identifier: Apache-2.0
 *
 * The sources that a result depends on, as hashes of components that the build makes: common, transport (what all
 * transports share), the transport itself, workloads, run (this folder), shared (of indexes) and the index. Comments
 * and format do not count (scripts/source_hashes.c). What a result depends on beside these is in its configuration.
 */
#ifndef DM_HARNESS_RUN_SOURCES_H
#define DM_HARNESS_RUN_SOURCES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct hx_source_hash {
    const char *component, *hash;
};

/* Ends with a row of NULL. The build writes it: components named as in CMakeLists.txt, "transport/sim", "index/chime".
 */
extern const struct hx_source_hash hx_source_hashes[];

/* A new object: the components of a configuration's sources, each with its hash; "source": "train" in it means a
 * training. NULL when out of memory. */
json_t *hx_sources_new(const json_t *config);

/* Whether a result was made, or adopted, by the sources that this program was built from. If not, `changed` names the
 * components that differ: "transport, chime", or "not recorded". */
bool hx_sources_fresh(const json_t *result, char *changed, size_t capacity);

/* States in the result that it counts as one of these sources; where it comes from stays as it was. DM_ERR_INVALID if
 * the result does not say where it comes from, DM_ERR_NO_MEMORY. */
int hx_sources_adopt(json_t *result);

#endif
