/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a node's memory: the process's own memory, at the same offsets. Where that is large and compresses well
 * (a radix tree of spread keys has a node of 1 KB for each key) its pages are kept compressed: those that are mostly
 * zero by leaving out the zeros (sparse.h), others by zstd, behind a cache of pages. That changes no byte of what is
 * read; it only saves memory of the host, at the price of host time.
 */
#ifndef DM_TRANSPORT_SIM_BYTES_H
#define DM_TRANSPORT_SIM_BYTES_H

#include <stdint.h>
#include <string.h>

#include "transport/core/core.h"

struct sim_pages;

struct sim_bytes {
    struct dm_mapping mapping;
    uint64_t size, limit;
    uint64_t plain;          /* bytes below this offset are in the mapping; it is decided when 0 or UINT64_MAX */
    uint64_t direct;         /* and those below this one may be written there */
    uint64_t *own;           /* after sim_bytes_copied, a bit for each part of the mapping: this process has its own */
    uint64_t written_to;     /* until then, the end of what was written behind `plain` */
    struct sim_pages *pages; /* NULL unless memory is compressed */
    bool is_not_sparse;      /* decided at a part of `limit` */
};

/* `size` bytes that are all zero. When `limit` of them are loaded, or a quarter if nearly all their pages are sparse,
 * it is decided whether they are compressed. 0 or DM_ERR_NO_MEMORY. Close accepts one that was never opened. */
int sim_bytes_open(struct sim_bytes *bytes, uint64_t size, uint64_t limit);
void sim_bytes_close(struct sim_bytes *bytes);

/* Makes all bytes zero and returns their memory to the host. */
void sim_bytes_clear(struct sim_bytes *bytes);

/* This process is a copy, made by fork: from now on it gets a large page of its own (dm_large_own) when one of its
 * bytes is written, or, of compressed memory, all of them at the first write, as long as an eighth of the host's memory
 * is available. */
void sim_bytes_copied(struct sim_bytes *bytes);

/* [offset, offset + len) is about to be loaded. Asks the host for huge pages, or, once `limit` bytes are loaded and
 * most of their pages compress to a quarter, or a quarter of it in sparse pages, compresses all memory. */
void sim_bytes_expect(struct sim_bytes *bytes, uint64_t offset, uint64_t len);

/* Ranges that end behind `plain`, or to write, behind `direct`. */
void sim_pages_read(const struct sim_bytes *bytes, uint64_t offset, void *out, uint64_t len);
void sim_pages_write(struct sim_bytes *bytes, uint64_t offset, const void *data, uint64_t len);

static inline void sim_bytes_read(const struct sim_bytes *bytes, uint64_t offset, void *out, uint64_t len) {
    if (dm_likely(offset + len <= bytes->plain)) {
        memcpy(out, bytes->mapping.base + offset, len);
    } else {
        sim_pages_read(bytes, offset, out, len);
    }
}

static inline void sim_bytes_write(struct sim_bytes *bytes, uint64_t offset, const void *data, uint64_t len) {
    if (dm_likely(offset + len <= bytes->direct)) {
        memcpy(bytes->mapping.base + offset, data, len);
    } else {
        sim_pages_write(bytes, offset, data, len);
    }
}

/* Before an access behind `plain`: asks for the entry that says where its first page is, and later, when this has come,
 * for `len` bytes of the page, compressed ones if that is how they are kept. */
void sim_pages_prefetch(const struct sim_bytes *bytes, uint64_t offset);
void sim_pages_prefetch_data(const struct sim_bytes *bytes, uint64_t offset, uint64_t len);

/* Exchanges `len` bytes of `data` with those at `offset`. */
void sim_bytes_swap(struct sim_bytes *bytes, uint64_t offset, void *data, uint64_t len);

#endif
