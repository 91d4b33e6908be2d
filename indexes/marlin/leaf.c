/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves in remote memory:
 *
 *     first line   | 0 8 | lock 8 | head 32 | entry[0] 16 |
 *     other lines  | entry 16 | entry 16 | entry 16 | entry 16 |
 *     entry        | key 8 | word 8 |     word: leaf version, generation, then 0 (free), a claim, or a block's word
 *
 * An entry is in one line, so it is read and written as a whole, and its word is aligned for atomics. Only a structure
 * change writes more than one line. It raises the version in all words, so a reader of lines from before and from after
 * it sees two versions: the bound of lines.h, 16 of them during one read. A change of one pointer leaves the version.
 *
 * The image is that of leaf.h, without versions, and with claims as free entries.
 */
#include "marlin.h"

enum { HEAD_BYTES = sizeof(struct ix_node_head) };

static uint32_t leaf_image_bytes(uint32_t wire_bytes) {
    return ix_format_word.image_bytes(wire_bytes); /* the buffers of a tree are made for its inner nodes */
}

static unsigned entries_of(uint32_t wire_bytes) {
    return (leaf_image_bytes(wire_bytes) - HEAD_BYTES) / (2 * (uint32_t)sizeof(uint64_t));
}

/* Words of the wire form; those behind the last entry have a version too. */
static unsigned words_of(uint32_t wire_bytes) {
    return (wire_bytes - marlin_entry_offset(0)) / (2 * (uint32_t)sizeof(uint64_t));
}

uint32_t marlin_node_bytes(uint64_t span) {
    uint64_t bytes = 2 * DM_LINE;
    while (entries_of((uint32_t)bytes) < span) {
        bytes += DM_LINE;
    }
    return (uint32_t)bytes;
}

static enum ix_node_state leaf_check(const void *wire, uint32_t wire_bytes, enum ix_versions versions) {
    unsigned words = words_of(wire_bytes);
    uint64_t version = marlin_word_version(marlin_word_at(wire, 0));
    if (versions == IX_VERSIONS_BOOKEND) {
        return marlin_word_version(marlin_word_at(wire, words - 1)) == version ? IX_NODE_CONSISTENT : IX_NODE_TORN;
    }
    uint64_t different = 0;
    for (unsigned i = 0; i < words && versions == IX_VERSIONS_LINES; i++) {
        different |= marlin_word_version(marlin_word_at(wire, i)) ^ version;
    }
    return different == 0 ? IX_NODE_CONSISTENT : IX_NODE_TORN;
}

static void leaf_decode(const void *wire, uint32_t wire_bytes, void *image) {
    memcpy(image, (const char *)wire + MARLIN_LEAF_AT, HEAD_BYTES);
    char *entry = (char *)image + HEAD_BYTES;
    for (unsigned i = 0; i < entries_of(wire_bytes); i++, entry += 2 * sizeof(uint64_t)) {
        uint64_t key = marlin_key_at(wire, i);
        uint64_t word = marlin_word_at(wire, i);
        word = marlin_word_is_block(word) ? marlin_word_content(word) : 0;
        memcpy(entry, &key, sizeof(key));
        memcpy(entry + sizeof(key), &word, sizeof(word));
    }
}

static void leaf_encode(const void *image, uint32_t wire_bytes, uint8_t version, void *wire) {
    memcpy((char *)wire + MARLIN_LEAF_AT, image, HEAD_BYTES);
    const char *entry = (const char *)image + HEAD_BYTES;
    char *to = (char *)wire + marlin_entry_offset(0);
    for (unsigned i = 0; i < words_of(wire_bytes); i++, to += 2 * sizeof(uint64_t)) {
        uint64_t pair[2] = {0, 0};
        if (i < entries_of(wire_bytes)) {
            memcpy(pair, entry + i * sizeof(pair), sizeof(pair));
        }
        pair[1] |= (uint64_t)version << MARLIN_VERSION_SHIFT;
        memcpy(to, pair, sizeof(pair));
    }
}

unsigned marlin_leaf_claims(const struct ix_leaf_layout *layout, const void *wire) {
    unsigned claims = 0;
    for (unsigned i = 0; i < layout->cap; i++) {
        claims += marlin_word_is_claim(marlin_word_at(wire, i));
    }
    return claims;
}

const struct ix_node_format marlin_leaf_format = {
    .image_bytes = leaf_image_bytes,
    .check = leaf_check,
    .decode = leaf_decode,
    .encode = leaf_encode,
};

bool marlin_leaf_take(struct marlin_client *client) {
    struct ix_tree *tree = &client->btree.tree;
    const struct ix_inner_layout *inner = &tree->cn->inner;
    dm_charge(client->ctx, DM_WORK_LINE_COPY, inner->node_bytes / DM_LINE);
    if (marlin_leaf_format.check(tree->wire, inner->node_bytes, inner->versions) != IX_NODE_CONSISTENT) {
        tree->counts[IX_TREE_TORN_NODE]++;
        return false;
    }
    marlin_leaf_format.decode(tree->wire, inner->node_bytes, tree->image);
    return ix_node_plausible(inner, tree->image, 0);
}
