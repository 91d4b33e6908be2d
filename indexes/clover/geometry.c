/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes that clients and servers derive alike from parameters and shape.
 */
#include "clover.h"

struct clover_geometry clover_geometry_of(const struct clover_params *params, const struct ix_shape *shape) {
    unsigned servers = shape->topology->servers > 0 ? shape->topology->servers : 1;
    uint64_t expected = shape->expected_keys / servers + 16;
    return (struct clover_geometry){.servers = servers,
                                    .buckets = params->buckets > 0 ? params->buckets : expected,
                                    .value_bytes = shape->value_bytes,
                                    .space_bytes = clover_space_bytes(shape->value_bytes)};
}
