/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed pages. A page is all zero, or sparse, or compressed by zstd, or, if it did not compress to a half once, in
 * the mapping for good. Sparse pages are read and written where they are. Of those that zstd compressed reads and
 * writes are done in frames, a cache of pages of FRAME_WAYS ways; a changed page is stored when its frame is needed for
 * another.
 */
#include "transport/sim/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zstd.h>

#include "common/compiler.h"
#include "common/large.h"
#include "common/prng.h"
#include "transport/sim/sparse.h"

enum {
    FRAME_SETS = 4096,
    FRAME_WAYS = 4,
    FRAMES = FRAME_SETS * FRAME_WAYS,
    LEVEL = -7,    /* of the levels of zstd: pages of Dolphin take 8 % in 2.2 us, and 0.9 us to read */
    SAMPLED = 512, /* pages that are tried */
    ENOUGH = 64,   /* of them that are not all zero, to decide */
    EARLIER = 4,   /* sparse pages are looked for when this part of the limit is loaded */
    RETURNED = 512 /* pages whose memory is returned together, at most */
};

#define NO_PAGE    UINT64_MAX
#define IS_CHANGED UINT64_C(1)

/* What zstd made of a page. */
struct copy {
    uint32_t bytes;
    unsigned char data[];
};

/* Where a page is: the address of its block, of whole cache lines, and in the low bits what this is. */
typedef uintptr_t sim_entry;

enum { ALL_ZERO, IN_MAPPING, SPARSE, COMPRESSED, KINDS = DM_LINE };

struct frame {
    uint64_t page; /* NO_PAGE: none */
    uint64_t used; /* a count of uses that grows, and IS_CHANGED: the least of a set is replaced */
};
static_assert(FRAME_WAYS * sizeof(struct frame) == DM_LINE, "a set is found with one access");

struct sim_pages {
    sim_entry *entries; /* of each page */
    uint64_t count;
    uint64_t uses;
    bool is_shared; /* this process is a copy, and nothing was written since */
    struct sim_slab slab;
    ZSTD_CCtx *compress;
    ZSTD_DCtx *expand;
    struct frame *frames;
    unsigned char bytes[FRAMES][SIM_PAGE];
};

static unsigned kind_of(sim_entry entry) {
    return entry % KINDS;
}

static void *block_of(sim_entry entry) {
    return (void *)(entry - kind_of(entry));
}

static unsigned copy_lines(uint32_t bytes) {
    return sim_slab_lines(sizeof(struct copy) + bytes);
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

static void pages_free(struct sim_pages *pages) {
    if (pages == NULL) {
        return;
    }
    sim_slab_close(&pages->slab);
    dm_large_free(pages->entries, pages->count * sizeof(sim_entry));
    ZSTD_freeCCtx(pages->compress);
    ZSTD_freeDCtx(pages->expand);
    free(pages->frames);
    free(pages);
}

/* All zero; NULL if the host has no memory. */
static struct sim_pages *pages_new(uint64_t size) {
    struct sim_pages *pages = calloc(1, sizeof(*pages));
    if (pages == NULL) {
        return NULL;
    }
    pages->count = (size + SIM_PAGE - 1) / SIM_PAGE;
    pages->entries = dm_large_alloc(pages->count * sizeof(sim_entry));
    pages->compress = ZSTD_createCCtx();
    pages->expand = ZSTD_createDCtx();
    pages->frames = aligned_alloc(DM_LINE, FRAMES * sizeof(*pages->frames));
    if (!pages->entries || !pages->compress || !pages->expand || !pages->frames) {
        pages_free(pages);
        return NULL;
    }
    ZSTD_CCtx_setParameter(pages->compress, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(pages->compress, ZSTD_c_contentSizeFlag, 0);
    for (unsigned i = 0; i < FRAMES; i++) {
        pages->frames[i] = (struct frame){.page = NO_PAGE};
    }
    return pages;
}

/* Bytes of the compressed page in `out`, or 0 if it takes more than a half of a page. */
static size_t page_compress(struct sim_pages *pages, const unsigned char *page, unsigned char out[SIM_PAGE]) {
    size_t bytes = ZSTD_compress2(pages->compress, out, SIM_PAGE, page, SIM_PAGE);
    return ZSTD_isError(bytes) || bytes > SIM_PAGE / 2 ? 0 : bytes;
}

static unsigned char *page_base(const struct sim_bytes *bytes, uint64_t page) {
    return bytes->mapping.base + page * SIM_PAGE;
}

static void block_free(struct sim_pages *pages, sim_entry entry) {
    void *block = block_of(entry);
    if (kind_of(entry) == SPARSE) {
        sim_slab_free(&pages->slab, block, sim_sparse_lines(sim_sparse_count(block)));
    } else if (kind_of(entry) == COMPRESSED) {
        sim_slab_free(&pages->slab, block, copy_lines(((const struct copy *)block)->bytes));
    }
}

/* The page as zstd compresses it; ALL_ZERO if that is not to a half or the host has no memory. */
static sim_entry copy_new(struct sim_pages *pages, const unsigned char *data) {
    unsigned char out[SIM_PAGE];
    size_t used = page_compress(pages, data, out);
    struct copy *copy = used > 0 ? sim_slab_alloc(&pages->slab, copy_lines((uint32_t)used)) : NULL;
    if (copy == NULL) {
        return ALL_ZERO;
    }
    copy->bytes = (uint32_t)used;
    memcpy(copy->data, out, used);
    return (sim_entry)copy | COMPRESSED;
}

/* Keeps a page that is not all zero as what is smallest and quickest: sparse, else as zstd compresses it, else in the
 * mapping. */
static void page_store(const struct sim_bytes *bytes, uint64_t page, const unsigned char *data) {
    struct sim_pages *pages = bytes->pages;
    struct sim_sparse *sparse = sim_sparse_new(&pages->slab, data);
    sim_entry entry = sparse ? (sim_entry)sparse | SPARSE : copy_new(pages, data);
    if (entry == ALL_ZERO) {
        memmove(page_base(bytes, page), data, SIM_PAGE);
        entry = IN_MAPPING;
    }
    block_free(pages, pages->entries[page]);
    pages->entries[page] = entry;
}

/* A page that zstd compressed. */
static void copy_load(const struct sim_pages *pages, uint64_t page, unsigned char *data) {
    const struct copy *copy = block_of(pages->entries[page]);
    size_t bytes = ZSTD_decompressDCtx(pages->expand, data, SIM_PAGE, copy->data, copy->bytes);
    if (bytes != SIM_PAGE) {
        abort(); /* the host's memory is corrupt */
    }
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

static unsigned set_of(uint64_t page) {
    return (unsigned)(dm_mix64(page) % FRAME_SETS) * FRAME_WAYS;
}

void sim_pages_prefetch(const struct sim_bytes *bytes, uint64_t offset) {
    dm_prefetch_near(&bytes->pages->entries[offset / SIM_PAGE]);
}

/* The frame of the page, or NULL. */
static struct frame *frame_find(const struct sim_pages *pages, uint64_t page) {
    struct frame *frame = &pages->frames[set_of(page)];
    for (unsigned i = 0; i < FRAME_WAYS; i++, frame++) {
        if (frame->page == page) {
            return frame;
        }
    }
    return NULL;
}

/* The bytes of a page in its frame. */
static unsigned char *frame_bytes(struct sim_pages *pages, const struct frame *frame) {
    return pages->bytes[frame - pages->frames];
}

void sim_pages_prefetch_data(const struct sim_bytes *bytes, uint64_t offset, uint64_t len) {
    struct sim_pages *pages = bytes->pages;
    uint64_t page = offset / SIM_PAGE;
    sim_entry entry = pages->entries[page];
    const unsigned char *data = block_of(entry);
    if (kind_of(entry) == IN_MAPPING) {
        data = bytes->mapping.base + offset;
    } else if (kind_of(entry) == COMPRESSED) {
        const struct frame *frame = frame_find(pages, page);
        data = frame ? frame_bytes(pages, frame) + offset % SIM_PAGE : data;
    } else if (kind_of(entry) == SPARSE) {
        len = sizeof(struct sim_sparse) + DM_LINE; /* the header, and the first of the words */
    }
    for (uint64_t at = 0; data != NULL && at < len; at += DM_LINE) {
        dm_prefetch_near(data + at);
    }
}

/* The bytes of a page that zstd compressed, in its frame; valid until the next call. */
static unsigned char *page_frame(const struct sim_bytes *bytes, uint64_t page, bool is_write) {
    struct sim_pages *pages = bytes->pages;
    struct frame *frame = frame_find(pages, page);
    if (frame == NULL) {
        struct frame *first = &pages->frames[set_of(page)];
        frame = first;
        for (struct frame *other = first + 1; other < first + FRAME_WAYS; other++) {
            frame = other->used < frame->used ? other : frame;
        }
        if (frame->used & IS_CHANGED) {
            page_store(bytes, frame->page, frame_bytes(pages, frame));
        }
        copy_load(pages, page, frame_bytes(pages, frame));
        *frame = (struct frame){.page = page};
    }
    pages->uses += 2;
    frame->used = pages->uses | (frame->used & IS_CHANGED) | is_write;
    return frame_bytes(pages, frame);
}

/* ---- reads and writes ------------------------------------------------------------------------------------------- */

static void page_read(const struct sim_bytes *bytes, uint64_t page, unsigned at, void *out, unsigned len) {
    sim_entry entry = bytes->pages->entries[page];
    switch (kind_of(entry)) {
    case ALL_ZERO:
        memset(out, 0, len);
        break;
    case SPARSE:
        sim_sparse_read(block_of(entry), at, out, len);
        break;
    case IN_MAPPING:
        memcpy(out, page_base(bytes, page) + at, len);
        break;
    default:
        memcpy(out, page_frame(bytes, page, false) + at, len);
    }
}

/* A page that is sparse or all zero. */
static void sparse_write(const struct sim_bytes *bytes, uint64_t page, unsigned at, const void *data, unsigned len) {
    struct sim_pages *pages = bytes->pages;
    struct sim_sparse *sparse = block_of(pages->entries[page]);
    if (sim_sparse_write(&pages->slab, &sparse, at, data, len)) {
        pages->entries[page] = (sim_entry)sparse | SPARSE;
        return;
    }
    unsigned char whole[SIM_PAGE];
    page_read(bytes, page, 0, whole, SIM_PAGE);
    memcpy(whole + at, data, len);
    page_store(bytes, page, whole);
}

static void page_write(const struct sim_bytes *bytes, uint64_t page, unsigned at, const void *data, unsigned len) {
    unsigned kind = kind_of(bytes->pages->entries[page]);
    if (kind == SPARSE || kind == ALL_ZERO) {
        sparse_write(bytes, page, at, data, len);
    } else {
        memcpy((kind == IN_MAPPING ? page_base(bytes, page) : page_frame(bytes, page, true)) + at, data, len);
    }
}

/* The part of [offset, offset + len) that is on the page of `offset`. */
static uint64_t part_of(uint64_t offset, uint64_t len) {
    uint64_t left = SIM_PAGE - offset % SIM_PAGE;
    return len < left ? len : left;
}

void sim_pages_read(const struct sim_bytes *bytes, uint64_t offset, void *out, uint64_t len) {
    for (uint64_t part; len > 0; offset += part, len -= part, out = (char *)out + part) {
        part = part_of(offset, len);
        if (bytes->pages != NULL) {
            page_read(bytes, offset / SIM_PAGE, offset % SIM_PAGE, out, (unsigned)part);
        } else {
            memcpy(out, bytes->mapping.base + offset, part);
        }
    }
}

static void plain_set(struct sim_bytes *bytes, uint64_t plain) {
    bytes->plain = plain;
    bytes->direct = bytes->own ? 0 : plain;
}

/* From now on the host copies pages, if this process is a copy. */
static void own_end(struct sim_bytes *bytes) {
    free(bytes->own);
    bytes->own = NULL;
    plain_set(bytes, bytes->plain);
}

static void own(struct sim_bytes *bytes, uint64_t offset, uint64_t len) {
    for (uint64_t part = offset / DM_LARGE_PAGE; bytes->own && part <= (offset + len - 1) / DM_LARGE_PAGE; part++) {
        uint64_t *word = &bytes->own[part / 64], bit = UINT64_C(1) << part % 64;
        if (*word & bit) {
            continue;
        }
        if (!dm_mapping_own(&bytes->mapping, part)) {
            own_end(bytes);
            return;
        }
        *word |= bit;
    }
}

/* Sparse pages are small, so that whatever writes to some writes to most large pages that they are on: all at once. */
static void pages_own(struct sim_pages *pages) {
    pages->is_shared = false;
    if (sim_slab_own(&pages->slab)) {
        (void)dm_large_own(pages->entries, pages->count * sizeof(sim_entry));
    }
}

void sim_bytes_copied(struct sim_bytes *bytes) {
    if (bytes->pages != NULL) {
        bytes->pages->is_shared = true;
    } else if (bytes->own == NULL) {
        bytes->own = calloc(bytes->size / DM_LARGE_PAGE / 64 + 1, sizeof(*bytes->own));
        plain_set(bytes, bytes->plain);
    }
}

void sim_pages_write(struct sim_bytes *bytes, uint64_t offset, const void *data, uint64_t len) {
    if (bytes->own && len > 0) {
        own(bytes, offset, len);
    } else if (bytes->pages && bytes->pages->is_shared) {
        pages_own(bytes->pages);
    }
    if (bytes->pages == NULL && offset + len > bytes->written_to) {
        bytes->written_to = offset + len;
    }
    for (uint64_t part; len > 0; offset += part, len -= part, data = (const char *)data + part) {
        part = part_of(offset, len);
        if (bytes->pages != NULL) {
            page_write(bytes, offset / SIM_PAGE, offset % SIM_PAGE, data, (unsigned)part);
        } else {
            memcpy(bytes->mapping.base + offset, data, part);
        }
    }
}

void sim_bytes_swap(struct sim_bytes *bytes, uint64_t offset, void *data, uint64_t len) {
    unsigned char held[256];
    for (uint64_t part; len > 0; offset += part, len -= part, data = (char *)data + part) {
        part = len < sizeof(held) ? len : sizeof(held);
        sim_bytes_read(bytes, offset, held, part);
        sim_bytes_write(bytes, offset, data, part);
        memcpy(data, held, part);
    }
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

int sim_bytes_open(struct sim_bytes *bytes, uint64_t size, uint64_t limit) {
    *bytes = (struct sim_bytes){.size = size, .limit = limit, .plain = limit, .direct = limit};
    return dm_mapping_open(&bytes->mapping, size);
}

void sim_bytes_close(struct sim_bytes *bytes) {
    pages_free(bytes->pages);
    free(bytes->own);
    dm_mapping_close(&bytes->mapping);
}

void sim_bytes_clear(struct sim_bytes *bytes) {
    pages_free(bytes->pages);
    bytes->pages = NULL;
    bytes->is_not_sparse = false;
    plain_set(bytes, bytes->limit);
    own_end(bytes);
    bytes->written_to = 0;
    if (bytes->mapping.map) {
        (void)madvise(bytes->mapping.map, bytes->mapping.map_bytes, MADV_DONTNEED);
    }
}

static bool is_zero(const unsigned char *page) {
    static const unsigned char zero[SIM_PAGE];
    return memcmp(page, zero, SIM_PAGE) == 0;
}

/* What a page is tried for: that it takes a quarter at most, as zstd compresses it or as a sparse one. */
static bool is_small_copy(struct sim_pages *pages, const unsigned char *page) {
    unsigned char out[SIM_PAGE];
    size_t used = page_compress(pages, page, out);
    return used > 0 && used <= SIM_PAGE / 4;
}

static bool is_small_sparse(struct sim_pages *pages, const unsigned char *page) {
    struct sim_sparse *sparse = sim_sparse_new(&pages->slab, page);
    unsigned lines = sparse ? sim_sparse_lines(sim_sparse_count(sparse)) : SIM_SLAB_LINES;
    sim_slab_free(&pages->slab, sparse, lines);
    return sparse && lines * DM_LINE <= SIM_PAGE / 4;
}

enum verdict { TOO_FEW, NO, YES };

/* Tries pages below `end`, as many as are tried at most: whether of those that are not all zero, if these are enough,
 * less than one in `one_in` is not small. */
static enum verdict are_small(const struct sim_bytes *bytes, struct sim_pages *pages, uint64_t end,
                              bool (*is_small)(struct sim_pages *pages, const unsigned char *page), unsigned one_in) {
    uint64_t count = end / SIM_PAGE, step = count / SAMPLED + 1;
    unsigned filled = 0, others = 0;
    for (uint64_t page = 0; page < count; page += step) {
        if (!is_zero(page_base(bytes, page))) {
            filled++;
            others += !is_small(pages, page_base(bytes, page));
        }
    }
    return filled < ENOUGH ? TOO_FEW : others * one_in < filled ? YES : NO;
}

static void pages_return(const struct sim_bytes *bytes, uint64_t first, uint64_t end) {
    if (first < end) {
        (void)madvise(page_base(bytes, first), (end - first) * SIM_PAGE, MADV_DONTNEED);
    }
}

/* Compresses the pages below `end`, above which nothing was written, and returns their memory. */
static void compress(struct sim_bytes *bytes, uint64_t end) {
    /* Few pages stay in the mapping, and each alone. */
    (void)madvise(bytes->mapping.base, bytes->size, MADV_NOHUGEPAGE);
    plain_set(bytes, 0);
    own_end(bytes);
    uint64_t count = (end + SIM_PAGE - 1) / SIM_PAGE, first = 0; /* of those to return together */
    for (uint64_t page = 0; page < count; page++) {
        if (!is_zero(page_base(bytes, page))) {
            page_store(bytes, page, page_base(bytes, page));
        }
        if (bytes->pages->entries[page] == IN_MAPPING || page - first == RETURNED) {
            pages_return(bytes, first, page);
            first = page + (bytes->pages->entries[page] == IN_MAPPING);
        }
    }
    pages_return(bytes, first, count);
}

/* Decides, if enough is loaded, whether memory is compressed; without the host's memory for that it is not. Sparse
 * pages are accessed nearly as quickly as others, so that nearly all pages being sparse decides it early. */
static void decide(struct sim_bytes *bytes, uint64_t offset) {
    bool is_early = offset < bytes->limit;
    struct sim_pages *pages = pages_new(bytes->size);
    enum verdict verdict = !pages     ? NO
                           : is_early ? are_small(bytes, pages, offset, is_small_sparse, 8)
                                      : are_small(bytes, pages, offset, is_small_copy, 2);
    if (verdict == YES) {
        bytes->pages = pages;
        compress(bytes, offset > bytes->written_to ? offset : bytes->written_to);
        return;
    }
    pages_free(pages);
    bytes->is_not_sparse = verdict == NO;
    plain_set(bytes, verdict == NO && !is_early ? UINT64_MAX : bytes->plain);
}

void sim_bytes_expect(struct sim_bytes *bytes, uint64_t offset, uint64_t len) {
    uint64_t from = bytes->is_not_sparse ? bytes->limit : bytes->limit / EARLIER;
    if (bytes->pages == NULL && bytes->plain != UINT64_MAX && offset >= from) {
        decide(bytes, offset);
    }
    if (bytes->pages == NULL) {
        dm_mapping_expect_bulk(&bytes->mapping, offset, len);
    }
}
