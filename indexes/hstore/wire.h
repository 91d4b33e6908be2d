/* SPDX-License-Identifier: Apache-2.0
 *
 * What HStore's clients and servers exchange: buckets, calls and their replies, fixed addresses.
 */
#ifndef DM_INDEXES_HSTORE_WIRE_H
#define DM_INDEXES_HSTORE_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "transport/dm.h"

/* ---- fixed offsets in reserved pages ----------------------------------------------------------------------------- */

enum {
    HSTORE_IDS_OFFSET = 64,     /* memory node 0: the number of clients so far */
    HSTORE_TAGS_OFFSET = 128,   /* memory node 0: the tag of each shard's hash table */
    HSTORE_SLABS_OFFSET = 1024, /* every memory node: the heads of its lists of slabs, see item.h */
    HSTORE_PARTS_OFFSET = 1024, /* hash table server: the parts of its table as in struct hstore_view; 0: not usable */
    HSTORE_SETTLED_OFFSET = 64, /* skip list server: for each log, the last stamp that the hash table has */
};

/* ---- the hash table ---------------------------------------------------------------------------------------------- */

enum { HSTORE_SLOTS = 7, HSTORE_BUCKET_STRIDE = 128 };

/* The heads of the chains are in parts of 32 MiB, each one allocation; the last part may be smaller. */
enum { HSTORE_PART_BUCKETS = 1 << 18, HSTORE_PARTS_MAX = 256 };
#define HSTORE_BUCKETS_MAX ((uint64_t)HSTORE_PART_BUCKETS * HSTORE_PARTS_MAX)
static_assert(HSTORE_PARTS_OFFSET + 8 * HSTORE_PARTS_MAX <= DM_RESERVED_BYTES, "the reserved page has all parts");

static inline unsigned hstore_part_count(uint64_t buckets) {
    return (unsigned)((buckets + HSTORE_PART_BUCKETS - 1) / HSTORE_PART_BUCKETS);
}
static inline unsigned hstore_part_of(uint64_t bucket) {
    return (unsigned)(bucket / HSTORE_PART_BUCKETS);
}
/* The bytes from the beginning of a bucket's part to the bucket. */
static inline uint64_t hstore_part_at(uint64_t bucket) {
    return bucket % HSTORE_PART_BUCKETS * HSTORE_BUCKET_STRIDE;
}

/* One line, which clients read atomically. A slot: 8 bits of the hash, 8 bits of length in units of 64 bytes, 48 bits
 * of address; 0: empty. The link: 16 bits, the tag of the table; 48 bits, offset >> 6 of the next bucket of the chain,
 * 0: none. A bucket whose tag is not the table's is unusable. */
struct hstore_bucket {
    uint64_t slots[HSTORE_SLOTS];
    uint64_t link;
};
static_assert(sizeof(struct hstore_bucket) == DM_LINE, "a bucket is one line");

#define HSTORE_ADDR_MASK UINT64_C(0xffffffffffff)

/* Addresses of items in 48 bits: node 8 | offset >> 6. */
static inline uint64_t hstore_pack(dm_addr addr) {
    return (uint64_t)dm_addr_node(addr) << 40 | dm_addr_offset(addr) >> 6;
}
static inline dm_addr hstore_unpack(uint64_t packed) {
    return dm_addr_make((unsigned)(packed >> 40 & 0xff), DM_DRAM, (packed & UINT64_C(0xffffffffff)) << 6);
}
static inline uint8_t hstore_fragment(uint64_t hash) {
    return (uint8_t)(hash >> 32);
}
static inline uint64_t hstore_slot_make(uint64_t hash, uint32_t item_bytes, uint64_t packed) {
    return (uint64_t)hstore_fragment(hash) << 56 | (uint64_t)(item_bytes / DM_LINE) << 48 | packed;
}
static inline uint32_t hstore_tag_of(uint64_t link_or_part) {
    return (uint32_t)(link_or_part >> 48);
}
static inline uint64_t hstore_offset_of(uint64_t link_or_part) { /* the offset */
    return (link_or_part & HSTORE_ADDR_MASK) << 6;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum hstore_method {
    HSTORE_METHOD_WRITE = DM_METHOD_FIRST, /* HTS: insert, update, delete */
    HSTORE_METHOD_SHIP,                    /* SLS: log entries of a batch */
    HSTORE_METHOD_FIND,                    /* SLS: one key */
    HSTORE_METHOD_SCAN,                    /* SLS: pairs in order of keys */
    HSTORE_METHOD_BEGIN,                   /* both: the other server is recovering from this one */
    HSTORE_METHOD_REMOVES,                 /* both: acknowledged deletes of each client */
    HSTORE_METHOD_TABLE,                   /* HTS: slots, in the order of buckets */
    HSTORE_METHOD_LIST,                    /* SLS: pairs of a partition */
    HSTORE_METHOD_FORMAT,                  /* both: make an empty index */
    HSTORE_METHOD_LOAD,                    /* both: pairs of a bulk load */
};

/* Outcomes of calls beside those of index.h. */
enum {
    HSTORE_NOT_READY = 100, /* the server is recovering; nothing was done */
    HSTORE_UNKNOWN, /* a repeated request, and the server cannot find out whether the first attempt was executed */
};

/* Counted by servers, sent in replies. X(name, text, rare) */
#define HSTORE_EVENTS(X)                                                                                               \
    X(BUCKET_CHAINED, "bucket_chained", 1) /* buckets added to chains */                                               \
    X(LOG_FULL, "log_full", 1)             /* entries that found the log full */                                       \
    X(SCAN_DRAINED, "scan_drained", 1)     /* entries applied by a scan or find */                                     \
    X(SCAN_WAITED, "scan_waited", 1)       /* scans or finds that waited until the hash table had an entry */          \
    X(HTS_FROM_LIST, "recovered_hts", 1)   /* hash tables rebuilt from the skip list */                                \
    X(SLS_FROM_TABLE, "recovered_sls", 1)  /* skip lists rebuilt from the hash table and the pool */                   \
    X(HTS_FROM_POOL, "recovered_pool", 1)  /* hash tables rebuilt from the pool alone */                               \
    X(POOL_CORRECTED, "pool_corrected", 1)                                                                             \
    /* marks in the pool corrected by the indexes, after two failures lost a batch */                                  \
    X(RECOVERY_NS, "recovery_ns", 0)         /* the next two; if both servers recover, the list's, which is longer */  \
    X(HTS_RECOVERY_NS, "hts_recovery_ns", 0) /* time from the server's return until it is ready */                     \
    X(SLS_RECOVERY_NS, "sls_recovery_ns", 0) /* likewise, with its wait for the other server */
enum hstore_event {
#define X(name, text, rare) HSTORE_EVENT_##name,
    HSTORE_EVENTS(X)
#undef X
        HSTORE_EVENT_COUNT,
};

enum hstore_kind { HSTORE_INSERT, HSTORE_UPDATE, HSTORE_REMOVE, HSTORE_KINDS };

/* The key's bytes beyond the first 8 follow the structure. */
struct hstore_write {
    uint64_t key;
    uint64_t item; /* packed address; 0 for a delete */
    uint32_t client, seq;
    uint8_t kind;  /* enum hstore_kind */
    uint8_t again; /* an earlier attempt had no answer */
    uint16_t tag;  /* of the table that the first attempt was sent to */
    uint32_t unused;
};

/* The head of every reply. */
struct hstore_reply {
    uint64_t item;   /* packed address: what a write replaced, what a find found; 0: none */
    uint64_t writer; /* of a find: the write that made the item, see hstore_writer */
    uint64_t gift;   /* packed address of an orphaned item that the client may reuse; 0: none */
    uint32_t tag;    /* of the hash table */
    uint32_t count;  /* of the elements that follow */
    uint64_t queue_ns, log_ns, index_ns;
    uint32_t near, far; /* nodes of the skip list that a find visited, see struct hstore_steps */
    uint64_t events[HSTORE_EVENT_COUNT];
};

/* Identifies a write. Together with the address of an item it identifies the item's content. */
static inline uint64_t hstore_writer(uint32_t client, uint32_t seq) {
    return (uint64_t)client << 32 | seq;
}

struct hstore_pair {
    uint64_t key, item, writer;
};
enum { HSTORE_PAIRS_MAX = (DM_CALL_MAX - (int)sizeof(struct hstore_reply)) / (int)sizeof(struct hstore_pair) };

struct hstore_find {
    uint64_t key;
    uint32_t count; /* of a scan */
    uint32_t log;   /* of HSTORE_METHOD_LIST */
};

/* A log entry as it is shipped; entries follow struct hstore_ship. */
struct hstore_entry {
    uint64_t key, item, old; /* packed addresses; item 0: a delete; old: what the hash table has now, 0: nothing */
    uint64_t stamp;          /* ascending within a log, hence for each key */
    uint32_t client, seq;
};
struct hstore_ship {
    uint32_t log, count, tag, unused;
};

/* The first request of a recovering server, and its answer. */
struct hstore_begin {
    uint32_t tag;       /* of the new hash table; 0 from a skip list server */
    uint32_t only_asks; /* a skip list server asks which stamps the table has, without recovering */
};
enum { HSTORE_LOGS_MAX = 16, HSTORE_REMOVES = 1024 };
struct hstore_begun {
    struct hstore_reply head;
    uint64_t stamps[HSTORE_LOGS_MAX]; /* the last of each log */
    /* Bit i: a skip list server may have marked a batch of log i in the pool, failed before it answered, and the batch
     * has not been shipped again. */
    uint64_t doubts;
};

/* From which slot of a table on: the bucket, and slots of its chain to leave out. The answer: words after struct
 * hstore_reply, whose `item` and `gift` are the next range. */
struct hstore_range {
    uint64_t first, skip;
};
enum { HSTORE_WORDS_MAX = (DM_CALL_MAX - (int)sizeof(struct hstore_reply)) / (int)sizeof(uint64_t) };

#endif
