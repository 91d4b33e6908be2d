/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tree's nodes are stored in remote memory, and what a reader without a lock makes of the bytes that it fetched.
 * A node has a wire form (what verbs transfer) and an image (what code works on); a format converts between them.
 *
 *     ix_format_lines   versioned lines (lines.h); lock words are stored elsewhere. Sherman, CHIME.
 *     ix_format_word    versioned lines, and in the first line a word that is both lock and version: a reader learns
 *                       the version that belongs to the image, and may upgrade to the lock by a compare-and-swap of it.
 *                       For optimistic lock coupling.
 *
 *     first line   | version 1 | zero 7 | word 8 | image[0 .. 47] |          word: version << 1 | locked
 *     line k       | version 1 | image[48 + 63 (k - 1) ...] |
 *
 * Why the word and the lines agree: a line is read and written atomically, so the word that a reader sees is the one
 * that was there with the image bytes beside it; equal node versions in all lines then make the image one write's
 * (lines.h). A holder writes the locked word along with the node and raises the version behind that write.
 */
#ifndef DM_INDEXES_SHARED_NODE_FORMAT_H
#define DM_INDEXES_SHARED_NODE_FORMAT_H

#include <stdint.h>
#include <string.h>

#include "indexes/shared/lines.h"

enum ix_node_state {
    IX_NODE_CONSISTENT, /* the image is one state of the node */
    IX_NODE_TORN,       /* parts of several writes: read again */
    IX_NODE_LOCKED,     /* another client is changing it: wait, then read again */
};

struct ix_node_format {
    /* Image bytes of a node of `wire_bytes`, a multiple of 64. */
    uint32_t (*image_bytes)(uint32_t wire_bytes);

    /* What was fetched, judged by as many versions as `versions` says. */
    enum ix_node_state (*check)(const void *wire, uint32_t wire_bytes, enum ix_versions versions);

    void (*decode)(const void *wire, uint32_t wire_bytes, void *image);

    /* Lays an image out for a write of the whole node with this node version (4 bits). A word stays as it is in wire.
     */
    void (*encode)(const void *image, uint32_t wire_bytes, uint8_t version, void *wire);
};

extern const struct ix_node_format ix_format_lines, ix_format_word;

/* The same for a node that is not linked yet: version 0, its word free. */
static inline void ix_node_encode_new(const struct ix_node_format *format, const void *image, uint32_t wire_bytes,
                                      void *wire) {
    memset(wire, 0, DM_LINE);
    format->encode(image, wire_bytes, 0, wire);
}

/* The node version of a write that replaces what is in `wire`. */
static inline uint8_t ix_node_next_version(const void *wire) {
    return (uint8_t)((ix_lines_node_version(wire) + 1) & 0xf);
}

/* ---- the word of ix_format_word ---------------------------------------------------------------------------------- */

enum { IX_NODE_WORD_OFFSET = 8, IX_NODE_WORD_LOCKED = 1 };

static inline uint64_t ix_node_word(const void *wire) {
    uint64_t word;
    memcpy(&word, (const char *)wire + IX_NODE_WORD_OFFSET, sizeof(word));
    return word;
}
static inline void ix_node_set_word(void *wire, uint64_t word) {
    memcpy((char *)wire + IX_NODE_WORD_OFFSET, &word, sizeof(word));
}

#endif
