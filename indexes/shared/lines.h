/* SPDX-License-Identifier: Apache-2.0
 *
 * Versioned lines: how a node of many cache lines is stored in remote memory so that a reader without a lock can decide
 * whether what it fetched is one state of the node. Used by Sherman, CHIME and ROLEX; CHIME paper, section 4.1.1.
 *
 * A node has two forms. The image is what code works on: plain bytes, `data_bytes` of them. The wire form is what is
 * in remote memory: lines of 64 bytes, each one version byte followed by 63 bytes of the image.
 *
 *     line k:  | NV EV | image[63 k .. 63 k + 62] |        NV node version, EV entry version, 4 bits each
 *
 * An object is a part of the image that is written back on its own (an entry). Its first byte is a version byte too, so
 * an object has one version in every line that it touches: its own byte in the line it begins in, the line's byte in
 * every line that begins inside it. No line's byte belongs to two objects, so neighbours never disturb each other.
 *
 * Writers hold the node's lock. A write of the whole node raises NV in all lines and objects and sets EV to 0. An
 * object's write raises EV in the object's own byte and in the lines that begin inside it, and sends just the object's
 * bytes.
 *
 * Why a reader never accepts a mixture, whatever the order in which lines are sampled and written, given that one line
 * is atomic:
 *  - all NV equal: every line holds data of the same write of the whole node, or of an object's write after it;
 *  - all versions of an object equal: every part of it comes from the same write of the object. An object inside one
 *    line needs no such check; one over two lines has two versions, and any mixture of two writes shows as a
 * difference. The bound: 4 bits wrap. A mixture passes if 16 (or a multiple of it) writes of the same object, or 16
 * writes of the whole node, fall between the samples of two lines of one read. Each such write takes a lock holder two
 * round trips at least (read, write), so it needs a read whose sampling is spread over 30 round trips; a NIC samples a
 * node within a fraction of one. Where a copy loop can be descheduled in the middle (local), the transport has to bound
 * it.
 */
#ifndef DM_INDEXES_SHARED_LINES_H
#define DM_INDEXES_SHARED_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

enum { IX_LINE_DATA = DM_LINE - 1 };

/* How much of the version bytes a reader looks at. */
enum ix_versions {
    IX_VERSIONS_LINES,   /* all of them */
    IX_VERSIONS_BOOKEND, /* only the first and the last: known to be wrong under any sampling order, for the checker */
    IX_VERSIONS_NONE,    /* none: wrong, for the checker */
};

/* A byte range of the wire form. */
struct ix_span {
    uint32_t offset, bytes;
};

/* Bytes of image that `wire_bytes` (a multiple of 64) hold, and the least wire bytes for an image. */
static inline uint32_t ix_lines_data_bytes(uint32_t wire_bytes) {
    return wire_bytes / DM_LINE * IX_LINE_DATA;
}
static inline uint32_t ix_lines_wire_bytes(uint32_t data_bytes) {
    return (data_bytes + IX_LINE_DATA - 1) / IX_LINE_DATA * DM_LINE;
}

/* The offset in the wire form of the image's byte `offset`. */
static inline uint32_t ix_lines_wire_offset(uint32_t offset) {
    return offset + offset / IX_LINE_DATA + 1;
}

/* The wire range of an object of the image, version bytes of lines that begin inside it included. */
static inline struct ix_span ix_lines_span(uint32_t offset, uint32_t bytes) {
    uint32_t first = ix_lines_wire_offset(offset);
    return (struct ix_span){first, ix_lines_wire_offset(offset + bytes - 1) - first + 1};
}

static inline uint8_t ix_lines_node_version(const void *wire) {
    return *(const uint8_t *)wire >> 4;
}

/* The version byte that a write of the whole node with this version gives to lines and objects. */
static inline uint8_t ix_lines_fresh(uint8_t node_version) {
    return (uint8_t)(node_version << 4);
}

/* True if the node versions that `versions` looks at are equal. */
bool ix_lines_consistent(const void *wire, uint32_t wire_bytes, enum ix_versions versions);

/* True if the object at `offset` of the image has equal versions in all lines that it touches. */
bool ix_lines_object_consistent(const void *wire, uint32_t offset, uint32_t bytes, enum ix_versions versions);

/* Copies the image out of the wire form; image has ix_lines_data_bytes(wire_bytes) bytes. */
void ix_lines_decode(const void *wire, uint32_t wire_bytes, void *image);

/* Lays an image out for a write of the whole node. The caller has set version bytes of objects to ix_lines_fresh. */
void ix_lines_encode(const void *image, uint32_t wire_bytes, uint8_t node_version, void *wire);

/* Puts an object into the wire form with its entry version raised; object[0] stands for its own version byte and
 * is not read. Returns the range to be written back. */
struct ix_span ix_lines_put_object(void *wire, uint32_t offset, const void *object, uint32_t bytes);

#endif
