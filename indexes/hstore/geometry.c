/* SPDX-License-Identifier: Apache-2.0
 *
 * The geometry of an instance, which clients and servers derive alike from parameters and shape; see hstore.h.
 */
#include "hstore.h"

/* The shape's, unless that is the least: then the parameter's. */
static uint32_t key_bytes_of(const struct hstore_params *params, const struct ix_shape *shape) {
    uint32_t bytes = ix_key_bytes(shape);
    return bytes > IX_KEY_BYTES_MIN ? bytes : (uint32_t)params->key_bytes;
}

struct hstore_geometry hstore_geometry_of(const struct hstore_params *params, const struct ix_shape *shape) {
    struct hstore_geometry geometry = {
        .shards = shape->topology->servers / 2,
        .logs = (unsigned)params->workers,
        .key_bytes = key_bytes_of(params, shape),
        .value_bytes = shape->value_bytes,
        .item_bytes = hstore_item_bytes(key_bytes_of(params, shape), shape->value_bytes),
        .grace_ns = params->grace_us * 1000,
        .lease_ns = 1000 * (params->lease_us < params->grace_us ? params->lease_us : params->grace_us),
        .probe_ns = params->probe_us * 1000,
    };
    double shards = geometry.shards ? geometry.shards : 1;
    double wanted = (double)shape->expected_keys / shards / (HSTORE_SLOTS * params->fill) + 1;
    geometry.buckets = params->buckets ? params->buckets : (uint64_t)wanted;
    return geometry;
}
