/* SPDX-License-Identifier: Apache-2.0
 *
 * The path of a scan through the inner nodes; see scan.h. Nodes are searched among those that this scan has read, then
 * in the cache. A child that is in neither is read, and so are its unknown neighbours that the scan may need (paper,
 * III-B2: batched reads of the next level until all leaves have been read); its leaves follow in the next round.
 *
 * What may be between the leaves is only believed of nodes that this scan has read. So a node is read along with the
 * leaves if the path passes two of its children, or its end, unless nothing can be between them anyway: the ranges of
 * leaves under a special node follow one another, and so do children with adjacent prefixes. Prefix and depth of a node
 * never change, so those of a copy are believed.
 */
#include "scan.h"

#include <limits.h>

/* A part of a node: words for bytes [begin, end). */
struct part {
    uint64_t prefix;
    const uint64_t *words;
    unsigned count;
    unsigned begin, end; /* the bytes that the words cover */
    struct dolphin_piece copy;
};

struct step {
    uint64_t word;
    unsigned depth;
    unsigned byte;                 /* the next child to visit */
    unsigned need_begin, need_end; /* bytes whose words this scan has to read */
    bool is_empty;                 /* no leaf of the node was found so far */
    struct part part;
};

struct path {
    struct dolphin_scan *scan;
    struct step steps[DOLPHIN_KEY_BYTES + 1];
    unsigned height;
    uint64_t expected; /* the cursor after everything found so far */
    int64_t budget;    /* pairs that the scan still needs, times DOLPHIN_DENSITY_ONE */
    bool misses;       /* an earlier node was unknown, so leaves cannot be read yet */
};

/* ---- nodes that this scan has read ------------------------------------------------------------------------------- */

void dolphin_path_reset(struct dolphin_scan *scan) {
    scan->bypasses_cache = true;
    scan->seen_count = 0;
    scan->seen_ready = 0;
    scan->seen_bytes = 0;
}

static const struct dolphin_seen *seen_find(struct dolphin_scan *scan, uint64_t word, unsigned byte, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const struct dolphin_seen *seen = &scan->seen[i];
        scan->compares++;
        if (seen->word == dolphin_word_with(word, 0) && byte >= seen->begin && byte < seen->end) {
            return seen;
        }
    }
    return NULL;
}

/* True if that many more nodes would fill half of the buffer. A round then begins with an empty one. */
static bool is_half_full(const struct dolphin_scan *scan, unsigned nodes) {
    return scan->seen_count + nodes > DOLPHIN_SEEN_MAX / 2 ||
           scan->seen_bytes + nodes * dolphin_node_bytes(DOLPHIN_N256) > DOLPHIN_SCAN_NODE_BYTES / 2;
}

/* Posts the read of a node, or of words [begin, end) of a node that stores them in order. Does nothing if the buffer is
 * full. */
static void node_post(struct dolphin_scan *scan, uint64_t word, unsigned begin, unsigned end, bool is_kept) {
    struct dm_ctx *ctx = scan->client->ctx;
    dm_addr addr = dolphin_word_addr(word);
    enum dolphin_type type = dolphin_word_type(word);
    bool is_direct = dolphin_is_direct(word);
    unsigned first = is_direct ? begin : 0;
    unsigned count = is_direct ? end - begin : dolphin_capacity(type);
    uint32_t bytes = (uint32_t)(sizeof(struct dolphin_head) + count * sizeof(uint64_t));
    if (scan->seen_count == DOLPHIN_SEEN_MAX || scan->seen_bytes + bytes > DOLPHIN_SCAN_NODE_BYTES ||
        !dm_addr_valid(ctx, addr, dolphin_node_bytes(type))) {
        return;
    }
    char *to = scan->client->scan_nodes + scan->seen_bytes;
    if (first == 0) {
        dm_post_read(ctx, addr, to, bytes);
    } else {
        dm_post_read(ctx, addr, to, sizeof(struct dolphin_head));
        dm_post_read(ctx, dolphin_word_address(word, (int)first), to + sizeof(struct dolphin_head),
                     count * (uint32_t)sizeof(uint64_t));
    }
    scan->seen[scan->seen_count++] = (struct dolphin_seen){
        .word = dolphin_word_with(word, 0),
        .head = (const struct dolphin_head *)(const void *)to,
        .words = (const uint64_t *)(const void *)(to + sizeof(struct dolphin_head)),
        .count = count,
        .begin = is_direct ? begin : 0,
        .end = is_direct ? end : DOLPHIN_CHILDREN_MAX,
        .is_kept = is_kept,
    };
    scan->seen_bytes += bytes;
}

bool dolphin_path_arrive(struct dolphin_scan *scan) {
    struct dolphin_client *client = scan->client;
    bool all = true;
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, scan->seen_count - scan->seen_ready);
    for (unsigned i = scan->seen_ready; i < scan->seen_count; i++) {
        const struct dolphin_seen *seen = &scan->seen[i];
        if (!dolphin_node_plausible(seen->head, seen->word) || seen->head->dead) {
            client->counts[DOLPHIN_DEAD_NODE]++;
            dolphin_cache_drop(client, seen->word);
            all = false;
        } else if (seen->is_kept) {
            dolphin_cache_put_words(client, seen->word, seen->head, seen->words, seen->begin, seen->end);
        }
    }
    scan->seen_ready = scan->seen_count;
    return all;
}

/* ---- ranges without keys ----------------------------------------------------------------------------------------- */

/* True if the node shows what comes next. The leaves of a special node cover all of its range, so only an empty one
 * does. */
static bool seen_decides(const struct dolphin_seen *seen) {
    return seen->head->depth < DOLPHIN_SPECIAL || dolphin_words_next(seen->words, seen->count, 0) == 0;
}

/* The lowest node read by this scan that shows what comes from the cursor on. */
static const struct dolphin_seen *lowest_seen(struct dolphin_scan *scan) {
    const struct dolphin_seen *lowest = NULL;
    scan->compares += 2 * scan->seen_ready;
    for (unsigned i = 0; i < scan->seen_ready; i++) {
        const struct dolphin_seen *seen = &scan->seen[i];
        unsigned depth = seen->head->depth;
        unsigned byte = dolphin_byte(scan->cursor, depth);
        if (seen_decides(seen) && dolphin_low(scan->cursor, depth) == seen->head->prefix && byte >= seen->begin &&
            byte < seen->end && (!lowest || depth > lowest->head->depth)) {
            lowest = seen;
        }
    }
    return lowest;
}

static bool prefix_find(struct dolphin_scan *scan, uint64_t word, uint64_t *prefix) {
    scan->compares += scan->seen_ready;
    for (unsigned i = 0; i < scan->seen_ready; i++) {
        if (scan->seen[i].word == dolphin_word_with(word, 0)) {
            *prefix = scan->seen[i].head->prefix;
            return true;
        }
    }
    struct dolphin_piece piece;
    bool is_there =
        dolphin_cache_find(scan->client, word, dolphin_byte(scan->cursor, dolphin_word_depth(word)), &piece) ||
        dolphin_cache_find(scan->client, word, 0, &piece);
    *prefix = is_there ? dolphin_piece_prefix(&piece) : 0;
    return is_there;
}

/* Called when the cursor is at the child `word`; it is at the beginning of its byte if it `has_moved`. True: the cursor
 * has moved further. False: it is where the child may have keys. */
static bool child_pass(struct dolphin_scan *scan, const struct dolphin_seen *seen, uint64_t word, bool has_moved,
                       bool *is_known) {
    uint64_t end = dolphin_high(scan->cursor, seen->head->depth + 1u);
    unsigned depth = dolphin_word_depth(word);
    *is_known = true;
    if (!dolphin_word_is_inner(word)) {
        /* The byte has no other leaf, and this one is done. */
        bool is_done = word == scan->last && dolphin_low(scan->cursor, DOLPHIN_SPECIAL) != scan->last_prefix;
        if (is_done) {
            dolphin_cursor_pass(scan, end);
        }
        return is_done;
    }
    uint64_t prefix;
    *is_known = depth > seen->head->depth && depth <= DOLPHIN_SPECIAL && prefix_find(scan, word, &prefix);
    if (!*is_known) {
        return false;
    }
    uint64_t low = dolphin_low(scan->cursor, depth);
    if (prefix < low) {
        dolphin_cursor_pass(scan, end);
        return true;
    }
    has_moved |= prefix > low;
    scan->cursor = prefix > scan->cursor ? prefix : scan->cursor;
    if (depth == DOLPHIN_SPECIAL) {
        const struct dolphin_seen *child = seen_find(scan, word, 0, scan->seen_ready);
        return child && seen_decides(child);
    }
    *is_known = has_moved;
    return has_moved;
}

static uint64_t gap_pass(struct dolphin_scan *scan) {
    const struct dolphin_seen *seen;
    while (!scan->end && (seen = lowest_seen(scan)) != NULL) {
        unsigned depth = seen->head->depth;
        uint64_t prefix = seen->head->prefix;
        uint64_t next = dolphin_words_next(seen->words, seen->count, dolphin_byte(scan->cursor, depth));
        dolphin_words_charge(scan->client, seen->count);
        if (next == 0) {
            dolphin_cursor_pass(scan, seen->end < DOLPHIN_CHILDREN_MAX ? dolphin_key_at(prefix, depth, seen->end) - 1
                                                                       : dolphin_high(prefix, depth));
            continue;
        }
        uint64_t begin = dolphin_key_at(prefix, depth, dolphin_word_byte(next));
        bool has_moved = begin > scan->cursor;
        bool is_known;
        scan->cursor = has_moved ? begin : scan->cursor;
        if (!child_pass(scan, seen, next, has_moved, &is_known)) {
            return is_known ? next : 0;
        }
    }
    return 0;
}

/* Charges the comparisons with nodes that this scan has read. */
static void compares_charge(struct dolphin_scan *scan) {
    dm_charge(scan->client->ctx, DM_WORK_KEY_COMPARE, scan->compares);
    scan->compares = 0;
}

uint64_t dolphin_gap_pass(struct dolphin_scan *scan) {
    uint64_t next = gap_pass(scan);
    compares_charge(scan);
    return next;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool part_find(struct dolphin_scan *scan, uint64_t word, unsigned byte, struct part *part) {
    const struct dolphin_seen *seen = seen_find(scan, word, byte, scan->seen_ready);
    if (seen) {
        part->prefix = seen->head->prefix;
        part->words = seen->words;
        part->count = seen->count;
        part->begin = seen->begin;
        part->end = seen->end;
        return true;
    }
    if (scan->bypasses_cache || !dolphin_cache_find(scan->client, word, byte, &part->copy)) {
        return false;
    }
    part->prefix = dolphin_piece_prefix(&part->copy);
    part->words = part->copy.words;
    part->count = DOLPHIN_PIECE_WORDS;
    part->begin = byte;
    part->end = dolphin_is_direct(word) ? (byte / DOLPHIN_PIECE_WORDS + 1) * DOLPHIN_PIECE_WORDS
                                        : dolphin_piece_next(&part->copy);
    return true;
}

/* Posts the read of those needed words that this scan has not read. */
static void step_close(const struct path *path, struct step *step) {
    struct dolphin_scan *scan = path->scan;
    unsigned begin = step->need_begin / DOLPHIN_PIECE_WORDS * DOLPHIN_PIECE_WORDS;
    unsigned end = (step->need_end + DOLPHIN_PIECE_WORDS - 1) / DOLPHIN_PIECE_WORDS * DOLPHIN_PIECE_WORDS;
    if (step->need_begin == step->need_end) {
        return;
    }
    while (begin < end && seen_find(scan, step->word, begin, scan->seen_count)) {
        begin += DOLPHIN_PIECE_WORDS;
    }
    while (begin < end && seen_find(scan, step->word, end - 1, scan->seen_count)) {
        end -= DOLPHIN_PIECE_WORDS;
    }
    if (begin < end) {
        node_post(scan, step->word, begin, end, false);
    }
}

/* Notes that this scan has to read the words of the top node for bytes [begin, end). False: the buffer is full. */
static bool need_words(struct path *path, unsigned begin, unsigned end) {
    struct dolphin_scan *scan = path->scan;
    struct step *top = &path->steps[path->height];
    if (path->misses || !scan->client->cn->check_scan) {
        return true;
    }
    if (top->need_begin < top->need_end) {
        top->need_begin = begin < top->need_begin ? begin : top->need_begin;
        top->need_end = end > top->need_end ? end : top->need_end;
        return true;
    }
    /* Every node of the path may still have to be read completely. */
    unsigned nodes = path->height + 2;
    if (scan->seen_count + nodes > DOLPHIN_SEEN_MAX ||
        scan->seen_bytes + nodes * dolphin_node_bytes(DOLPHIN_N256) > DOLPHIN_SCAN_NODE_BYTES) {
        return false;
    }
    top->need_begin = begin;
    top->need_end = end;
    return true;
}

/* The byte of the top node where the expected cursor is. */
static unsigned expected_byte(const struct path *path) {
    const struct step *top = &path->steps[path->height];
    return dolphin_low(path->expected, top->depth) == top->part.prefix ? dolphin_byte(path->expected, top->depth) : 0;
}

/* Moves the expected cursor behind `last`. False: the end of the key space. */
static bool expect_after(struct path *path, uint64_t last) {
    path->expected = last >= path->expected ? last + 1 : path->expected;
    return last < IX_KEY_MAX;
}

/* Makes the step to a node: its children from the expected cursor on. False: that part of the node is unknown. */
static bool step_open(const struct path *path, uint64_t word, struct step *step) {
    unsigned depth = dolphin_word_depth(word);
    unsigned byte = dolphin_byte(path->expected, depth);
    step->word = dolphin_word_with(word, 0);
    step->depth = depth;
    step->need_begin = 0;
    step->need_end = 0;
    step->is_empty = true;
    if (!part_find(path->scan, word, byte, &step->part)) {
        return false;
    }
    step->byte = byte;
    if (step->part.prefix != dolphin_low(path->expected, depth)) {
        step->byte = 0;
    } else if (depth == DOLPHIN_SPECIAL) {
        uint64_t leaf = dolphin_words_find(step->part.words, step->part.count, byte, true);
        step->byte = leaf != 0 ? dolphin_word_byte(leaf) : byte;
        step->part.begin = step->byte < step->part.begin ? step->byte : step->part.begin;
    }
    return true;
}

/* The least that an unknown node may contribute. */
static int64_t node_estimate(const struct dolphin_client *client, uint64_t word) {
    unsigned depth = dolphin_word_depth(word);
    if (depth < client->leaf_depth) {
        return INT_MAX;
    }
    int64_t capacity = dolphin_is_direct(word) ? DOLPHIN_PIECE_WORDS : dolphin_capacity(dolphin_word_type(word));
    return capacity / 2 * client->density[depth == DOLPHIN_SPECIAL];
}

/* Each of the next functions moves the path by one child, or out of the top node. False: it cannot be extended in this
 * round. */

static bool node_end(struct path *path) {
    struct step *top = &path->steps[path->height];
    uint64_t high = dolphin_high(top->part.prefix, top->depth);
    if ((top->depth != DOLPHIN_SPECIAL || top->is_empty) && path->expected <= high &&
        !need_words(path, expected_byte(path), DOLPHIN_CHILDREN_MAX)) {
        return false;
    }
    if (!expect_after(path, high) || path->height == 0) {
        return false;
    }
    step_close(path, top);
    path->height--;
    return true;
}

static bool child_enter(struct path *path, uint64_t word) {
    struct dolphin_scan *scan = path->scan;
    struct step *top = &path->steps[path->height];
    unsigned depth = dolphin_word_depth(word);
    unsigned byte = dolphin_word_byte(word);
    uint64_t last = dolphin_high(dolphin_key_at(top->part.prefix, top->depth, byte), top->depth + 1);
    if (depth <= top->depth || depth > DOLPHIN_SPECIAL) {
        return false;
    }
    struct step *child = &path->steps[path->height + 1];
    if (!step_open(path, word, child)) {
        bool is_first = path->expected < dolphin_low(last, top->depth + 1);
        unsigned begin = is_first ? 0 : dolphin_byte(path->expected, depth) / DOLPHIN_PIECE_WORDS * DOLPHIN_PIECE_WORDS;
        /* These reads come in addition to those needed for what was found before. */
        if (path->misses && is_half_full(scan, DOLPHIN_KEY_BYTES + 2)) {
            return false;
        }
        node_post(scan, word, begin, begin + DOLPHIN_PIECE_WORDS, true);
        path->misses = true;
        path->budget -= node_estimate(scan->client, word);
        top->byte = byte + 1;
        return expect_after(path, last);
    }
    uint64_t low = dolphin_low(path->expected, depth);
    if (child->part.prefix != low && !need_words(path, expected_byte(path), byte + 1)) {
        return false;
    }
    top->byte = byte + 1;
    if (child->part.prefix < low) {
        return expect_after(path, last);
    }
    path->expected = child->part.prefix > path->expected ? child->part.prefix : path->expected;
    path->height++;
    return true;
}

static bool leaf_add(struct path *path, uint64_t word) {
    struct dolphin_scan *scan = path->scan;
    struct dolphin_client *client = scan->client;
    struct step *top = &path->steps[path->height];
    unsigned byte = dolphin_word_byte(word);
    bool special = top->depth == DOLPHIN_SPECIAL;
    uint32_t bytes = client->cn->layout.leaf_bytes;
    client->leaf_depth = top->depth;
    top->is_empty = false;
    if (!path->misses) {
        if (!dm_addr_valid(client->ctx, dolphin_word_addr(word), bytes) ||
            (!special && !need_words(path, expected_byte(path), byte + 1))) {
            return false;
        }
        /* The scan may begin in the middle of the first leaf. */
        path->budget += scan->leaf_count == 0 ? client->density[special] : 0;
        scan->depths[scan->leaf_count] = (uint8_t)top->depth;
        dm_post_read(client->ctx, dolphin_word_addr(word), client->batch + (size_t)scan->leaf_count * bytes,
                     client->cn->layout.used_bytes);
        scan->leaves[scan->leaf_count++] = word;
    }
    path->budget -= client->density[special];
    top->byte = byte + 1;
    return special ||
           expect_after(path, dolphin_high(dolphin_key_at(top->part.prefix, top->depth, byte), top->depth + 1));
}

static bool path_next(struct path *path) {
    struct dolphin_scan *scan = path->scan;
    struct step *top = &path->steps[path->height];
    uint64_t next = 0;
    while (next == 0 && top->byte < DOLPHIN_CHILDREN_MAX) {
        if ((top->byte < top->part.begin || top->byte >= top->part.end) &&
            !part_find(scan, top->word, top->byte, &top->part)) {
            node_post(scan, top->word, top->byte / DOLPHIN_PIECE_WORDS * DOLPHIN_PIECE_WORDS, DOLPHIN_CHILDREN_MAX,
                      true);
            return false;
        }
        next = dolphin_words_next(top->part.words, top->part.count, top->byte);
        dolphin_words_charge(scan->client, top->part.count);
        top->byte = next != 0 ? top->byte : top->part.end;
    }
    return next == 0 ? node_end(path) : dolphin_word_is_inner(next) ? child_enter(path, next) : leaf_add(path, next);
}

void dolphin_path_post(struct dolphin_scan *scan) {
    struct dolphin_client *client = scan->client;
    struct path path;
    path.scan = scan;
    path.height = 0;
    path.expected = scan->cursor;
    path.budget = (int64_t)(scan->wanted - scan->found) * DOLPHIN_DENSITY_ONE;
    path.misses = false;
    scan->leaf_count = 0;
    if (is_half_full(scan, 0)) {
        scan->seen_count = 0;
        scan->seen_ready = 0;
        scan->seen_bytes = 0;
    }
    if (!step_open(&path, client->cn->root, &path.steps[0])) {
        unsigned begin = dolphin_byte(scan->cursor, 0) / DOLPHIN_PIECE_WORDS * DOLPHIN_PIECE_WORDS;
        node_post(scan, client->cn->root, begin, begin + DOLPHIN_PIECE_WORDS, true);
    } else {
        while (path.budget > 0 && scan->leaf_count < client->cn->scan_batch && path_next(&path)) {
        }
        for (unsigned i = path.height + 1; i-- > 0;) {
            step_close(&path, &path.steps[i]);
        }
    }
    compares_charge(scan);
}
