/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats of nodes; see node_format.h.
 */
#include "indexes/shared/node_format.h"

/* ---- versioned lines --------------------------------------------------------------------------------------------- */

static uint32_t lines_image_bytes(uint32_t wire_bytes) {
    return ix_lines_data_bytes(wire_bytes);
}

static enum ix_node_state lines_check(const void *wire, uint32_t wire_bytes, enum ix_versions versions) {
    return ix_lines_consistent(wire, wire_bytes, versions) ? IX_NODE_CONSISTENT : IX_NODE_TORN;
}

const struct ix_node_format ix_format_lines = {
    .image_bytes = lines_image_bytes,
    .check = lines_check,
    .decode = ix_lines_decode,
    .encode = ix_lines_encode,
};

/* ---- versioned lines with a word --------------------------------------------------------------------------------- */

enum { FIRST_AT = IX_NODE_WORD_OFFSET + 8, FIRST_BYTES = DM_LINE - FIRST_AT };

static uint32_t word_image_bytes(uint32_t wire_bytes) {
    return FIRST_BYTES + ix_lines_data_bytes(wire_bytes - DM_LINE);
}

static enum ix_node_state word_check(const void *wire, uint32_t wire_bytes, enum ix_versions versions) {
    if (ix_node_word(wire) & IX_NODE_WORD_LOCKED) {
        return IX_NODE_LOCKED;
    }
    return lines_check(wire, wire_bytes, versions);
}

static void word_decode(const void *wire, uint32_t wire_bytes, void *image) {
    memcpy(image, (const char *)wire + FIRST_AT, FIRST_BYTES);
    ix_lines_decode((const char *)wire + DM_LINE, wire_bytes - DM_LINE, (char *)image + FIRST_BYTES);
}

static void word_encode(const void *image, uint32_t wire_bytes, uint8_t version, void *wire) {
    *(uint8_t *)wire = ix_lines_fresh(version);
    memcpy((char *)wire + FIRST_AT, image, FIRST_BYTES);
    ix_lines_encode((const char *)image + FIRST_BYTES, wire_bytes - DM_LINE, version, (char *)wire + DM_LINE);
}

const struct ix_node_format ix_format_word = {
    .image_bytes = word_image_bytes,
    .check = word_check,
    .decode = word_decode,
    .encode = word_encode,
};
