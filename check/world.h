/* SPDX-License-Identifier: Apache-2.0
 *
 * A world is everything that one run of the checker does, drawn from one seed: an index with tiny nodes and caches, a
 * few nodes and clients, some keys, a fabric on which the cache lines of a verb land in any order within some time, and
 * a script for each client. The same seed gives the same world on every machine. A subset of its steps is a smaller
 * world that behaves as similarly as possible, which shrinking needs.
 */
#ifndef DM_CHECK_WORLD_H
#define DM_CHECK_WORLD_H

#include "indexes/index.h"
#include "indexes/rdwc.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

enum {
    CK_KEYS_MAX = 4096,
    CK_CLIENTS_MAX = 16,
    CK_CNS_MAX = 4,
    CK_STEPS_MAX = 640,
    CK_FAULTS_MAX = 16,
    CK_SETTINGS_MAX = 16,
    CK_SCAN_MAX = 24,
};

/* Read delegation and write combining around the index. */
enum ck_rdwc { CK_RDWC_DRAWN, CK_RDWC_OFF, CK_RDWC_ON, CK_RDWC_PUBLISHED, CK_RDWC_STALE };

struct ck_team; /* check/team.h */

/* The index, and the settings that the user fixes for all seeds instead of having them drawn. */
struct ck_request {
    const struct ix_ops *index;
    const char *transport;
    const struct dm_setting *params; /* of the index */
    size_t param_count;
    const struct dm_setting *settings; /* of the transport */
    size_t setting_count;
    enum ck_rdwc rdwc;
    struct ck_team *team; /* NULL: all nodes are in this process */
};

/* One operation of a client. Its index in the script determines the value that it writes: see ck_step_value. */
struct ck_step {
    unsigned client;
    enum wl_op_kind kind;
    unsigned key;    /* index in keys */
    uint32_t wanted; /* pairs that a scan asks for */
    uint32_t pause_ns;
};

/* Faults that a world injects, besides the disorder of its fabric. */
enum ck_fault_kind {
    CK_CLIENT_ENDS,   /* the client ends after `after` of its steps */
    CK_CLIENT_STOPS,  /* it stops for good before its verb number `after`, mostly inside an operation */
    CK_CLIENT_STALLS, /* it stalls there for `ns` */
    CK_VERBS_LATE,    /* `percent` of all verbs are delayed by `ns` */
    CK_SERVER_FAILS,  /* index server `server` fails `after` ns after the start, and is down for `ns` */
    CK_NODE_LATE,     /* `percent` of the verbs to memory node `server` are delayed by `ns` */
    CK_READ_FAILS,    /* always aimed: a read completes in error, in a batch of reads alone */
    CK_VERB_FAILS,    /* verb number `after` of the client completes in error, and may have taken effect */
    CK_MEMORY_ENDS,   /* after the load, each memory node has `after` bytes left */
    CK_FAULT_KINDS,
};

/* An aimed fault, of which a world has one at most, happens in one operation: `after` counts the verbs of the client's
 * step `step`, modulo their number. A server then fails `percent` / 100 us after that verb was posted. */
struct ck_world_fault {
    enum ck_fault_kind kind;
    unsigned client, server;
    size_t after;
    uint64_t ns;
    unsigned percent;
    bool is_aimed;
    size_t step;
};

struct ck_world {
    uint64_t seed;
    const struct ix_ops *index;
    void *params;
    const char *transport;
    struct dm_topology topology;
    struct ix_shape shape; /* the run replaces its topology by that of the fabric */
    uint32_t retry_limit;
    enum ix_rdwc_mode rdwc;
    uint32_t rdwc_slots; /* of the table of read delegation */
    struct dm_setting settings[CK_SETTINGS_MAX];
    size_t setting_count;
    char window_text[2][24];
    char profile[32];
    bool emulates_masked; /* masked atomics by plain CAS, as on devices without them */

    uint64_t keys[CK_KEYS_MAX]; /* ascending */
    bool loaded[CK_KEYS_MAX];
    unsigned key_count;

    struct ck_step steps[CK_STEPS_MAX]; /* grouped by client */
    size_t step_count;
    struct ck_world_fault faults[CK_FAULTS_MAX];
    size_t fault_count;
    bool logs_verbs;      /* set by the caller: runs log their verbs */
    struct ck_team *team; /* of the request */
    void *file;           /* what a world from a file owns; NULL for others */
};

/* A part of a world, as shrinking makes it. */
struct ck_part {
    bool steps[CK_STEPS_MAX];
    bool faults[CK_FAULTS_MAX];
    bool loaded[CK_KEYS_MAX]; /* of the keys that the world loads */
    uint64_t schedule;        /* added to the seed of the world to get that of the fabric */
    uint64_t idle_ns;         /* instead of a removed step a client is idle for its pause and this time */
};

/* Draws a world. Fails with DM_ERR_INVALID for parameters that do not exist or cannot work in any world, or with
 * DM_ERR_NO_MEMORY. The caller calls ck_world_fini, also after a failure. */
int ck_world_draw(const struct ck_request *request, uint64_t seed, struct ck_world *world, struct dm_err *err);
void ck_world_fini(struct ck_world *world); /* accepts a zeroed world */

/* Writes a world to a file, with the reason why it is kept; and reads it again, on sim: it is the same world whatever
 * seeds draw by then. Loading refuses what no world can have, and names it. The caller calls ck_world_fini, also after
 * a failure. */
int ck_world_store(const struct ck_world *world, const char *why, const char *path, struct dm_err *err);
int ck_world_load(const char *path, struct ck_world *world, struct dm_err *err);
void ck_world_file_free(void *file); /* ck_world_fini calls it; accepts NULL */

/* The part that is the complete world. */
void ck_part_all(const struct ck_world *world, struct ck_part *part);

/* A part as text for a command line, and back. ck_part_text returns `text`; ck_part_parse returns 0 or DM_ERR_INVALID.
 */
enum { CK_PART_TEXT_BYTES = 32 << 10 };
const char *ck_part_text(const struct ck_part *part, char *text, size_t capacity);
int ck_part_parse(const char *text, struct ck_part *part, struct dm_err *err);

/* Draws the faults; ck_world_draw calls it. */
void ck_faults_draw(struct ck_world *world);

/* Writes the fault as a rule of the fabric, for the client with this number in the fabric: "stop:client=3,verb=17;".
 * Returns its length, or 0 if the fabric does not inject this fault. */
size_t ck_fault_rule(const struct ck_world *world, const struct ck_world_fault *fault, unsigned client, char *text,
                     size_t capacity);
const char *ck_fault_text(const struct ck_world_fault *fault, char *text,
                          size_t capacity); /* a description; returns `text` */

/* The number of the value that step `step` writes, and of the value with which key `key` is loaded. */
static inline uint64_t ck_step_value(size_t step) {
    return CK_KEYS_MAX + 1 + step;
}
static inline uint64_t ck_loaded_value(size_t key) {
    return key + 1;
}

/* Describes the world in one line: "3 clients on 2 CNs (1 per thread), 1 MNs, 12 keys, values of 8 bytes, ...". Returns
 * `text`. */
const char *ck_world_text(const struct ck_world *world, char *text, size_t capacity);

#endif
