/* SPDX-License-Identifier: Apache-2.0
 *
 * What crosses the fabric between HStore's clients and servers: buckets, calls and their replies, fixed places.
 */
#ifndef DM_INDEXES_HSTORE_WIRE_H
#define DM_INDEXES_HSTORE_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "transport/dm.h"

/* ---- fixed places in reserved pages ------------------------------------------------------------------------------ */

enum {
    HS_IDS_OFFSET = 64,     /* memory node 0: clients numbered so far */
    HS_TAGS_OFFSET = 128,   /* memory node 0: the tag of each shard's hash table */
    HS_SLABS_OFFSET = 1024, /* every memory node: its lists of slabs, see item.h */
    HS_TABLE_OFFSET = 64,   /* hash table server: where its table is, as in struct hs_view; 0: not usable yet */
    HS_SETTLED_OFFSET = 64, /* skip list server: for each log, up to which stamp the hash table has it */
};

/* ---- the hash table ---------------------------------------------------------------------------------------------- */

enum { HS_SLOTS = 7, HS_BUCKET_STRIDE = 128 };

/* One line, read whole by clients. slot: hash 8 | units of 64 bytes 8 | address 48; 0: empty. link: tag of the table
 * 16 | offset of the next bucket of the chain >> 6, 0: none. A tag that is not the table's: the bucket is not usable.
 */
struct hs_bucket {
    uint64_t slots[HS_SLOTS];
    uint64_t link;
};
static_assert(sizeof(struct hs_bucket) == DM_LINE, "a bucket is one line");

#define HS_ADDR_MASK UINT64_C(0xffffffffffff)

/* Addresses of items in 48 bits: node 8 | offset >> 6. */
static inline uint64_t hs_pack(dm_addr addr) {
    return (uint64_t)dm_addr_node(addr) << 40 | dm_addr_offset(addr) >> 6;
}
static inline dm_addr hs_unpack(uint64_t packed) {
    return dm_addr_make((unsigned)(packed >> 40 & 0xff), DM_DRAM, (packed & UINT64_C(0xffffffffff)) << 6);
}
static inline uint8_t hs_fragment(uint64_t hash) {
    return (uint8_t)(hash >> 32);
}
static inline uint64_t hs_slot_make(uint64_t hash, uint32_t item_bytes, uint64_t packed) {
    return (uint64_t)hs_fragment(hash) << 56 | (uint64_t)(item_bytes / DM_LINE) << 48 | packed;
}
static inline uint32_t hs_tag_of(uint64_t link_or_table) {
    return (uint32_t)(link_or_table >> 48);
}
static inline uint64_t hs_place_of(uint64_t link_or_table) { /* an offset */
    return (link_or_table & HS_ADDR_MASK) << 6;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum hs_method {
    HS_METHOD_WRITE = DM_METHOD_FIRST, /* HTS: insert, update, delete */
    HS_METHOD_SHIP,                    /* SLS: log entries */
    HS_METHOD_FIND,                    /* SLS: one key */
    HS_METHOD_SCAN,                    /* SLS: keys from one on */
    HS_METHOD_BEGIN,                   /* both: the other server wants to recover from this one */
    HS_METHOD_REMOVES,                 /* both: acknowledged deletes by client */
    HS_METHOD_TABLE,                   /* HTS: slots, in the order of buckets */
    HS_METHOD_LIST,                    /* SLS: pairs of a partition */
    HS_METHOD_FORMAT,                  /* both: an empty index */
    HS_METHOD_LOAD,                    /* both: pairs of a bulk load */
};

/* Ordinary outcomes of calls beside those of index.h. */
enum {
    HS_NOT_READY = 100, /* the server recovers; nothing was done */
    HS_UNKNOWN,         /* asked again, and the server cannot know whether the first attempt was done */
};

/* Counted by servers, sent in replies. X(name, text, rare) */
#define HS_EVENTS(X)                                                                                                   \
    X(BUCKET_CHAINED, "bucket_chained", 1) /* buckets linked behind full ones */                                       \
    X(LOG_FULL, "log_full", 1)             /* entries that waited for room in a log */                                 \
    X(SCAN_DRAINED, "scan_drained", 1)     /* entries applied because a scan or find came */                           \
    X(SCAN_WAITED, "scan_waited", 1)       /* scans or finds that waited until the hash table had an entry */          \
    X(HTS_FROM_LIST, "recovered_hts", 1)   /* hash tables rebuilt from the skip list */                                \
    X(SLS_FROM_TABLE, "recovered_sls", 1)  /* skip lists rebuilt from the hash table and the pool */                   \
    X(HTS_FROM_POOL, "recovered_pool", 1)  /* hash tables rebuilt from the pool alone */                               \
    X(POOL_CORRECTED, "pool_corrected", 1)                                                                             \
    /* marks in the pool compared with the indexes: of a batch that two failures have taken */                         \
    X(RECOVERY_NS, "recovery_ns", 0) /* the two below; of both servers at once the longer, which is the list's */      \
    X(HTS_RECOVERY_NS, "hts_recovery_ns", 0) /* time from the server's return to its being ready */                    \
    X(SLS_RECOVERY_NS, "sls_recovery_ns", 0) /* likewise; what it waited for the other server is part of it */
enum hs_event {
#define X(name, text, rare) HS_##name,
    HS_EVENTS(X)
#undef X
        HS_EVENT_COUNT,
};

enum hs_kind { HS_INSERT, HS_UPDATE, HS_REMOVE, HS_KINDS };

/* The key's bytes beyond the first 8 follow the structure, see hs_write_bytes. */
struct hs_write {
    uint64_t key;
    uint64_t item; /* packed; 0 for a delete */
    uint32_t client, seq;
    uint8_t kind;  /* enum hs_kind */
    uint8_t again; /* an attempt before this one had no answer */
    uint16_t tag;  /* of the table that the first attempt went to */
    uint32_t unused;
};

/* Begins every reply. */
struct hs_reply {
    uint64_t item;   /* packed: what a write replaced, what a find found; 0: nothing */
    uint64_t writer; /* whose write the item of a find is, see hs_writer */
    uint64_t gift;   /* packed: an item without an owner that the client may have; 0: none */
    uint32_t tag;    /* of the hash table */
    uint32_t count;  /* of what follows */
    uint64_t queue_ns, log_ns, index_ns;
    uint32_t near, far; /* nodes of the skip list that a find looked at, see struct hs_steps */
    uint64_t events[HS_EVENT_COUNT];
};

/* A write, told from all others. With the address of an item: exactly one content of that place. */
static inline uint64_t hs_writer(uint32_t client, uint32_t seq) {
    return (uint64_t)client << 32 | seq;
}

struct hs_pair {
    uint64_t key, item, writer;
};
enum { HS_PAIRS_MAX = (DM_CALL_MAX - (int)sizeof(struct hs_reply)) / (int)sizeof(struct hs_pair) };

struct hs_find {
    uint64_t key;
    uint32_t count; /* of a scan */
    uint32_t log;   /* of HS_METHOD_LIST */
};

/* A log entry as it is shipped; entries follow struct hs_ship. */
struct hs_entry {
    uint64_t key, item, old; /* item 0: a delete; old: what the hash table has now, 0: nothing */
    uint64_t stamp;          /* ascending within a log, hence for each key */
    uint32_t client, seq;
};
struct hs_ship {
    uint32_t log, count, tag, unused;
};

/* What a recovering server says and is told. */
struct hs_begin {
    uint32_t tag;       /* of the new hash table; 0 from a skip list server */
    uint32_t only_asks; /* a skip list server wants to know how far the table is, and that it is there */
};
enum { HS_LOGS_MAX = 16, HS_REMOVES = 1024 };
struct hs_begun {
    struct hs_reply head;
    uint64_t stamps[HS_LOGS_MAX]; /* the last of each log */
    /* Bit i: of log i a batch may have been marked in the pool by a skip list server that failed before it answered,
     * and has not been shipped again. */
    uint64_t doubts;
};

/* A part of a table, as a range. Answers: words behind struct hs_reply. */
struct hs_range {
    uint64_t first, count;
};
enum { HS_WORDS_MAX = (DM_CALL_MAX - (int)sizeof(struct hs_reply)) / (int)sizeof(uint64_t) };

#endif
