/* SPDX-License-Identifier: Apache-2.0
 *
 * Versioned lines; the scheme and its proof are in lines.h.
 */
#include "indexes/shared/lines.h"

#include <string.h>

enum { NODE_BITS = 0xf0, ENTRY_BITS = 0x0f };

bool ix_lines_consistent(const void *wire, uint32_t wire_bytes, enum ix_versions versions) {
    const uint8_t *line = wire;
    if (versions == IX_VERSIONS_NONE) {
        return true;
    }
    if (versions == IX_VERSIONS_BOOKEND) {
        return ((line[0] ^ line[wire_bytes - DM_LINE]) & NODE_BITS) == 0;
    }
    unsigned differ = 0;
    for (uint32_t at = DM_LINE; at < wire_bytes; at += DM_LINE) {
        differ |= (unsigned)(line[0] ^ line[at]);
    }
    return (differ & NODE_BITS) == 0;
}

bool ix_lines_object_consistent(const void *wire, uint32_t offset, uint32_t bytes, enum ix_versions versions) {
    const uint8_t *line = wire;
    if (versions == IX_VERSIONS_NONE) {
        return true;
    }
    uint8_t own = line[ix_lines_wire_offset(offset)];
    uint32_t last = (offset + bytes - 1) / IX_LINE_DATA;
    uint32_t first = offset / IX_LINE_DATA + 1;
    unsigned mask = UINT8_MAX;
    if (versions == IX_VERSIONS_BOOKEND) {
        first = first < last ? last : first;
        mask = ENTRY_BITS; /* the public code's entries have no node versions */
    }
    unsigned differ = 0;
    for (uint32_t k = first; k <= last; k++) {
        differ |= (unsigned)(own ^ line[k * DM_LINE]);
    }
    return (differ & mask) == 0;
}

void ix_lines_decode(const void *wire, uint32_t wire_bytes, void *image) {
    const uint8_t *from = wire;
    uint8_t *to = image;
    for (uint32_t at = 0; at < wire_bytes; at += DM_LINE) {
        memcpy(to, from + at + 1, IX_LINE_DATA);
        to += IX_LINE_DATA;
    }
}

void ix_lines_encode(const void *image, uint32_t wire_bytes, uint8_t node_version, void *wire) {
    const uint8_t *from = image;
    uint8_t *to = wire;
    for (uint32_t at = 0; at < wire_bytes; at += DM_LINE) {
        to[at] = ix_lines_fresh(node_version);
        memcpy(to + at + 1, from, IX_LINE_DATA);
        from += IX_LINE_DATA;
    }
}

struct ix_span ix_lines_put_object(void *wire, uint32_t offset, const void *object, uint32_t bytes) {
    uint8_t *to = wire;
    const uint8_t *from = object;
    uint8_t old = to[ix_lines_wire_offset(offset)];
    uint8_t version = (uint8_t)((old & NODE_BITS) | ((old + 1) & ENTRY_BITS));
    to[ix_lines_wire_offset(offset)] = version;
    for (uint32_t done = 1; done < bytes;) {
        uint32_t at = offset + done;
        uint32_t left = IX_LINE_DATA - at % IX_LINE_DATA; /* of this line */
        uint32_t part = left < bytes - done ? left : bytes - done;
        if (at % IX_LINE_DATA == 0) {
            to[at / IX_LINE_DATA * DM_LINE] = version;
        }
        memcpy(to + ix_lines_wire_offset(at), from + done, part);
        done += part;
    }
    return ix_lines_span(offset, bytes);
}
