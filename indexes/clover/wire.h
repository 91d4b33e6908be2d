/* SPDX-License-Identifier: Apache-2.0
 *
 * What Clover's clients and metadata servers exchange: pointers to versions, the layout of a version in the memory
 * pool, calls and their replies.
 */
#ifndef DM_INDEXES_CLOVER_WIRE_H
#define DM_INDEXES_CLOVER_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

/* A pointer names one version: the space that holds it and the number of that space's use. 0: none.
 *
 *     unused 14 | memory node 6 | offset >> 6, 30 | tombstone 1 | use 13 |
 *
 * The first word of a version's space has the pointer to the next version and the number of its own use:
 *
 *     unused 1 | pointer to the next version, 50 | use 13 |
 *
 * So one compare-and-swap adds a version, and fails if the space has another next version or another use. */
enum { CLOVER_USE_BITS = 13, CLOVER_USE_MAX = (1 << CLOVER_USE_BITS) - 1 };
#define CLOVER_TOMBSTONE  (UINT64_C(1) << CLOVER_USE_BITS)
#define CLOVER_NODE_BYTES (UINT64_C(64) << 30) /* bytes of a memory node that pointers reach */

static inline uint64_t clover_pointer_make(dm_addr addr, uint64_t use) {
    return (uint64_t)dm_addr_node(addr) << 44 | dm_addr_offset(addr) >> 6 << 14 | use;
}
static inline dm_addr clover_addr_of(uint64_t pointer) {
    return dm_addr_make((unsigned)(pointer >> 44 & 63), DM_DRAM, (pointer >> 14 & 0x3fffffff) << 6);
}
static inline uint64_t clover_use_of(uint64_t pointer) {
    return pointer & CLOVER_USE_MAX;
}
static inline bool clover_is_tombstone(uint64_t pointer) {
    return pointer & CLOVER_TOMBSTONE;
}
static inline uint64_t clover_header_make(uint64_t next, uint64_t pointer) {
    return next << CLOVER_USE_BITS | clover_use_of(pointer);
}
static inline uint64_t clover_next_of(uint64_t header) {
    return header >> CLOVER_USE_BITS;
}
static inline uint64_t clover_header_use(uint64_t header) {
    return header & CLOVER_USE_MAX;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

/* Followed by the value; a tombstone has none. */
struct clover_version {
    uint64_t header;
    uint64_t check; /* over key and value, and the pointer to this version */
    uint64_t key;
};
enum { CLOVER_HEAD_BYTES = sizeof(struct clover_version), CLOVER_SPACE_MIN = 128, CLOVER_VALUE_MAX = 4096 };
static_assert((int)CLOVER_HEAD_BYTES <= (int)DM_LINE, "a version's head is read atomically");

/* Bytes of a version's space: a power of two from 128 on. */
uint32_t clover_space_bytes(uint32_t value_bytes);

/* Makes the bytes of a version for its pointer. `space` has clover_space_bytes, and is zero behind the value. */
void clover_version_make(void *space, uint64_t pointer, uint64_t key, const void *value, uint32_t value_bytes);

/* True if the bytes are of this one version, whatever its next pointer. */
bool clover_version_intact(const void *space, uint64_t pointer, uint64_t key, uint32_t value_bytes);

/* Charges the check of a version that was made or is verified. */
void clover_version_charge(struct dm_ctx *ctx, uint32_t value_bytes);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum clover_method {
    CLOVER_METHOD_QUERY = DM_METHOD_FIRST, /* a key's oldest version and shortcut */
    CLOVER_METHOD_CREATE,                  /* adds a key with its first version */
    CLOVER_METHOD_GRANT,                   /* space for versions */
    CLOVER_METHOD_COLLECT,                 /* versions that have been replaced */
    CLOVER_METHOD_LIST,                    /* keys of a range of buckets */
    CLOVER_METHOD_FORMAT,                  /* makes an empty table */
    CLOVER_METHOD_LOAD,                    /* keys of a bulk load */
};

/* Counted by servers, sent in replies. X(name, text, rare) */
#define CLOVER_EVENTS(X)                                                                                               \
    X(COLLECTED, "version_collected", 1) /* replaced versions whose space was taken back */                            \
    X(WALKED, "chain_walked", 1)         /* of these: by reading the chain, as a message was late or lost */           \
    X(REUSED, "space_reused", 1)         /* spaces granted that held a version before */                               \
    X(RETIRED, "space_retired", 1)       /* spaces given up because their numbers of uses were used up */
enum clover_event {
#define X(name, text, rare) CLOVER_EVENT_##name,
    CLOVER_EVENTS(X)
#undef X
        CLOVER_EVENT_COUNT,
};

struct clover_pair {
    uint64_t key, pointer;
};

struct clover_grant {
    uint64_t count;
};

/* `next` was added behind `old`. */
struct clover_replaced {
    uint64_t key, old, next;
};

struct clover_range {
    uint64_t first; /* bucket */
    uint64_t skip;  /* entries of it that were listed before */
};

/* The head of every reply. */
struct clover_reply {
    uint64_t pointer;  /* the oldest version that is not collected; of a list: the range's next `skip` */
    uint64_t shortcut; /* bits of its address */
    uint64_t count;    /* of the elements that follow: pointers of a grant, shortcuts of a load, entries of a list */
    uint64_t next;     /* of a list: the range's next `first` */
    uint64_t events[CLOVER_EVENT_COUNT];
};

/* A key of the server's table. */
struct clover_entry {
    uint64_t key, pointer, shortcut;
    uint64_t next; /* offset of the next entry of the bucket; 0: none */
};
enum {
    CLOVER_BATCH_MAX = 64, /* spaces of a client's grant, replaced versions of a message */
    CLOVER_GRANT_MAX = 512,
    CLOVER_LIST_MAX = (DM_CALL_MAX - (int)sizeof(struct clover_reply)) / (int)sizeof(struct clover_entry),
    CLOVER_LOAD_MAX = 512,
};
static_assert(CLOVER_LOAD_MAX * sizeof(struct clover_pair) <= DM_CALL_MAX, "a call takes a block of a load");

#endif
