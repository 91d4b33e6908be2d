/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed pages. A page is all zero, or a compressed copy, or, if it did not compress to a half once, in the mapping
 * for good. Reads and writes are done in frames, a cache of pages of FRAME_WAYS ways; a changed page is compressed when
 * its frame is needed for another.
 */
#include "transport/sim/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zstd.h>

#include "common/compiler.h"
#include "common/prng.h"

enum {
    PAGE_BYTES = 4096,
    FRAME_SETS = 4096,
    FRAME_WAYS = 4,
    FRAMES = FRAME_SETS * FRAME_WAYS,
    LEVEL = -7,    /* of the levels of zstd: pages of Dolphin take 8 % in 2.2 us, and 0.9 us to read */
    SAMPLED = 512, /* pages that are tried */
    ENOUGH = 64    /* of them that are not all zero, to decide */
};

#define NO_PAGE    UINT64_MAX
#define IS_CHANGED UINT64_C(1)

struct copy {
    uint32_t bytes;
    unsigned char data[];
};

struct frame {
    uint64_t page; /* NO_PAGE: none */
    uint64_t used; /* a count of uses that grows, and IS_CHANGED: the least of a set is replaced */
};
static_assert(FRAME_WAYS * sizeof(struct frame) == DM_LINE, "a set is found with one access");

struct sim_pages {
    struct copy **copies; /* of each page; NULL: all zero, unless a frame has it; &in_mapping: in the mapping */
    size_t map_bytes;
    uint64_t count;
    uint64_t uses;
    ZSTD_CCtx *compress;
    ZSTD_DCtx *expand;
    struct frame *frames;
    unsigned char bytes[FRAMES][PAGE_BYTES];
};

static struct copy in_mapping;

/* ---- pages ------------------------------------------------------------------------------------------------------ */

static void pages_free(struct sim_pages *pages) {
    if (pages == NULL) {
        return;
    }
    for (uint64_t page = 0; pages->copies != MAP_FAILED && page < pages->count; page++) {
        if (pages->copies[page] != &in_mapping) {
            free(pages->copies[page]);
        }
    }
    if (pages->copies != MAP_FAILED) {
        munmap(pages->copies, pages->map_bytes);
    }
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
    pages->count = (size + PAGE_BYTES - 1) / PAGE_BYTES;
    pages->map_bytes = (size_t)pages->count * sizeof(struct copy *);
    pages->copies =
        mmap(NULL, pages->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pages->compress = ZSTD_createCCtx();
    pages->expand = ZSTD_createDCtx();
    pages->frames = aligned_alloc(DM_LINE, FRAMES * sizeof(*pages->frames));
    if (pages->copies == MAP_FAILED || !pages->compress || !pages->expand || !pages->frames) {
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
static size_t page_compress(struct sim_pages *pages, const unsigned char *page, unsigned char out[PAGE_BYTES]) {
    size_t bytes = ZSTD_compress2(pages->compress, out, PAGE_BYTES, page, PAGE_BYTES);
    return ZSTD_isError(bytes) || bytes > PAGE_BYTES / 2 ? 0 : bytes;
}

static unsigned char *page_base(const struct sim_bytes *bytes, uint64_t page) {
    return bytes->mapping.base + page * PAGE_BYTES;
}

/* Keeps a changed page as a copy, or in the mapping if it does not compress or the host has no memory. */
static void page_store(const struct sim_bytes *bytes, uint64_t page, const unsigned char *data) {
    struct sim_pages *pages = bytes->pages;
    unsigned char out[PAGE_BYTES];
    size_t used = page_compress(pages, data, out);
    struct copy *copy = used > 0 ? realloc(pages->copies[page], sizeof(*copy) + used) : NULL;
    if (copy != NULL) {
        copy->bytes = (uint32_t)used;
        memcpy(copy->data, out, used);
    } else {
        free(pages->copies[page]);
        memmove(page_base(bytes, page), data, PAGE_BYTES);
    }
    pages->copies[page] = copy != NULL ? copy : &in_mapping;
}

static void page_load(const struct sim_pages *pages, uint64_t page, unsigned char *data) {
    const struct copy *copy = pages->copies[page];
    if (copy == NULL) {
        memset(data, 0, PAGE_BYTES);
        return;
    }
    size_t bytes = ZSTD_decompressDCtx(pages->expand, data, PAGE_BYTES, copy->data, copy->bytes);
    if (bytes != PAGE_BYTES) {
        abort(); /* the host's memory is corrupt */
    }
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

static unsigned set_of(uint64_t page) {
    return (unsigned)(dm_mix64(page) % FRAME_SETS) * FRAME_WAYS;
}

void sim_pages_prefetch(const struct sim_bytes *bytes, uint64_t offset) {
    const struct sim_pages *pages = bytes->pages;
    uint64_t page = offset / PAGE_BYTES;
    dm_prefetch_near(&pages->copies[page]);
    dm_prefetch_near(&pages->frames[set_of(page)]);
}

void sim_pages_prefetch_data(const struct sim_bytes *bytes, uint64_t offset, uint64_t len) {
    const struct sim_pages *pages = bytes->pages;
    uint64_t page = offset / PAGE_BYTES;
    const unsigned char *data = (const unsigned char *)pages->copies[page];
    if (pages->copies[page] == &in_mapping) {
        data = bytes->mapping.base + offset;
    }
    unsigned first = set_of(page);
    for (unsigned i = first; i < first + FRAME_WAYS; i++) {
        data = pages->frames[i].page == page ? pages->bytes[i] + offset % PAGE_BYTES : data;
    }
    for (uint64_t at = 0; data != NULL && at < len; at += DM_LINE) {
        dm_prefetch_near(data + at);
    }
}

/* The bytes of a page, in its frame or in the mapping; valid until the next call. */
static unsigned char *page_bytes(const struct sim_bytes *bytes, uint64_t page, bool is_write) {
    struct sim_pages *pages = bytes->pages;
    if (pages->copies[page] == &in_mapping) {
        return page_base(bytes, page);
    }
    unsigned first = set_of(page), at = first;
    for (unsigned i = first; i < first + FRAME_WAYS && pages->frames[at].page != page; i++) {
        bool better = pages->frames[i].page == page || pages->frames[i].used < pages->frames[at].used;
        at = better ? i : at;
    }
    struct frame *frame = &pages->frames[at];
    if (frame->page != page) {
        if (frame->used & IS_CHANGED) {
            page_store(bytes, frame->page, pages->bytes[at]);
        }
        page_load(pages, page, pages->bytes[at]);
        *frame = (struct frame){.page = page};
    }
    pages->uses += 2;
    frame->used = pages->uses | (frame->used & IS_CHANGED) | is_write;
    return pages->bytes[at];
}

/* The part of [offset, offset + len) that is on the page of `offset`. */
static uint64_t part_of(uint64_t offset, uint64_t len) {
    uint64_t left = PAGE_BYTES - offset % PAGE_BYTES;
    return len < left ? len : left;
}

static unsigned char *bytes_at(const struct sim_bytes *bytes, uint64_t offset, bool is_write) {
    return bytes->pages == NULL ? bytes->mapping.base + offset
                                : page_bytes(bytes, offset / PAGE_BYTES, is_write) + offset % PAGE_BYTES;
}

void sim_pages_read(const struct sim_bytes *bytes, uint64_t offset, void *out, uint64_t len) {
    for (uint64_t part; len > 0; offset += part, len -= part, out = (char *)out + part) {
        part = part_of(offset, len);
        memcpy(out, bytes_at(bytes, offset, false), part);
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
    for (uint64_t part = offset / DM_MAPPING_PART; bytes->own && part <= (offset + len - 1) / DM_MAPPING_PART; part++) {
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

void sim_bytes_copied(struct sim_bytes *bytes) {
    if (bytes->pages == NULL && bytes->own == NULL) {
        bytes->own = calloc(bytes->size / DM_MAPPING_PART / 64 + 1, sizeof(*bytes->own));
        plain_set(bytes, bytes->plain);
    }
}

void sim_pages_write(struct sim_bytes *bytes, uint64_t offset, const void *data, uint64_t len) {
    if (bytes->own && len > 0) {
        own(bytes, offset, len);
    }
    if (bytes->pages == NULL && offset + len > bytes->written_to) {
        bytes->written_to = offset + len;
    }
    for (uint64_t part; len > 0; offset += part, len -= part, data = (const char *)data + part) {
        part = part_of(offset, len);
        memcpy(bytes_at(bytes, offset, true), data, part);
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
    plain_set(bytes, bytes->limit);
    own_end(bytes);
    bytes->written_to = 0;
    if (bytes->mapping.map) {
        (void)madvise(bytes->mapping.map, bytes->mapping.map_bytes, MADV_DONTNEED);
    }
}

static bool is_zero(const unsigned char *page) {
    static const unsigned char zero[PAGE_BYTES];
    return memcmp(page, zero, PAGE_BYTES) == 0;
}

/* Tries pages below `end`, as many as are tried at most; returns how many are not all zero, and in *good how many of
 * these compress to a quarter. */
static unsigned pages_try(const struct sim_bytes *bytes, struct sim_pages *pages, uint64_t end, unsigned *good) {
    uint64_t count = end / PAGE_BYTES, step = count / SAMPLED + 1;
    unsigned filled = 0;
    *good = 0;
    for (uint64_t page = 0; page < count; page += step) {
        unsigned char out[PAGE_BYTES];
        if (!is_zero(page_base(bytes, page))) {
            size_t used = page_compress(pages, page_base(bytes, page), out);
            filled++;
            *good += used > 0 && used <= PAGE_BYTES / 4;
        }
    }
    return filled;
}

/* Compresses the pages below `end`, above which nothing was written, and returns their memory. */
static void compress(struct sim_bytes *bytes, uint64_t end) {
    /* Few pages stay in the mapping, and each alone. */
    (void)madvise(bytes->mapping.base, bytes->size, MADV_NOHUGEPAGE);
    plain_set(bytes, 0);
    own_end(bytes);
    for (uint64_t page = 0; page * PAGE_BYTES < end; page++) {
        if (!is_zero(page_base(bytes, page))) {
            page_store(bytes, page, page_base(bytes, page));
        }
        if (bytes->pages->copies[page] != &in_mapping) {
            (void)madvise(page_base(bytes, page), PAGE_BYTES, MADV_DONTNEED);
        }
    }
}

/* Decides, if enough is loaded, whether memory is compressed; without memory for that it is not. */
static void decide(struct sim_bytes *bytes, uint64_t offset) {
    struct sim_pages *pages = pages_new(bytes->size);
    unsigned good = 0, filled = pages != NULL ? pages_try(bytes, pages, offset, &good) : ENOUGH;
    if (good > filled / 2 && filled >= ENOUGH) {
        bytes->pages = pages;
        compress(bytes, offset > bytes->written_to ? offset : bytes->written_to);
        return;
    }
    pages_free(pages);
    plain_set(bytes, filled >= ENOUGH ? UINT64_MAX : bytes->plain);
}

void sim_bytes_expect(struct sim_bytes *bytes, uint64_t offset, uint64_t len) {
    if (bytes->pages == NULL && bytes->plain != UINT64_MAX && offset >= bytes->limit) {
        decide(bytes, offset);
    }
    if (bytes->pages == NULL) {
        dm_mapping_expect_bulk(&bytes->mapping, offset, len);
    }
}
