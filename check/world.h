/* SPDX-License-Identifier: Apache-2.0
 *
 * A world: everything that one run of the checker does, drawn from one seed. An index with tiny nodes and caches, a few
 * nodes and clients, some keys, a fabric whose lines land in any order over some time, and a script for each client.
 * The same seed gives the same world on every machine; a subset of its steps is a smaller world that behaves as far as
 * possible alike, which is what shrinking needs.
 */
#ifndef DM_CHECK_WORLD_H
#define DM_CHECK_WORLD_H

#include "indexes/index.h"
#include "indexes/rdwc.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

enum {
    CK_KEYS_MAX = 64,
    CK_CLIENTS_MAX = 16,
    CK_CNS_MAX = 4,
    CK_STEPS_MAX = 640,
    CK_FAULTS_MAX = 8,
    CK_SETTINGS_MAX = 16,
    CK_SCAN_MAX = 24,
};

/* Read delegation and write combining around the index. */
enum ck_rdwc { CK_RDWC_DRAWN, CK_RDWC_OFF, CK_RDWC_ON, CK_RDWC_STALE };

/* What is the same for all seeds: the index, and what the user wants otherwise than drawn. */
struct ck_request {
    const struct ix_ops *index;
    const char *transport;
    const struct dm_setting *params; /* of the index */
    size_t param_count;
    const struct dm_setting *settings; /* of the transport */
    size_t setting_count;
    enum ck_rdwc rdwc;
};

/* One operation of a client. The value that it writes is numbered by its place: see ck_step_value. */
struct ck_step {
    unsigned client;
    enum wl_op_kind kind;
    unsigned key;    /* place in keys */
    uint32_t wanted; /* by a scan */
    uint32_t pause_ns;
};

/* What goes wrong on purpose, beside the fabric's own disorder. */
enum ck_fault_kind {
    CK_CLIENT_ENDS,   /* the client does no more after `after` of its steps */
    CK_CLIENT_STOPS,  /* it stops for good before its verb number `after`: most often inside an operation */
    CK_CLIENT_STALLS, /* it stands still there for `ns` */
    CK_VERBS_LATE,    /* `percent` of all verbs come `ns` later than they should */
    CK_SERVER_FAILS,  /* index server `server` fails `after` ns from the start, and is away for `ns` */
};
struct ck_world_fault {
    enum ck_fault_kind kind;
    unsigned client, server;
    size_t after;
    uint64_t ns;
    unsigned percent;
};

struct ck_world {
    uint64_t seed;
    const struct ix_ops *index;
    void *params;
    const char *transport;
    struct dm_topology topology;
    struct ix_shape shape; /* its topology is the fabric's; set by the run */
    uint32_t retry_limit;
    enum ix_rdwc_mode rdwc;
    uint32_t rdwc_places; /* of its table */
    struct dm_setting settings[CK_SETTINGS_MAX];
    size_t setting_count;
    char window_text[2][24];

    uint64_t keys[CK_KEYS_MAX]; /* ascending */
    bool loaded[CK_KEYS_MAX];
    unsigned key_count;

    struct ck_step steps[CK_STEPS_MAX]; /* grouped by client */
    size_t step_count;
    struct ck_world_fault faults[CK_FAULTS_MAX];
    size_t fault_count;
    bool logs_verbs; /* set by the caller: runs keep their verbs, for people */
};

/* A selection of a world: what shrinking has left. */
struct ck_part {
    bool steps[CK_STEPS_MAX];
    bool faults[CK_FAULTS_MAX];
    bool loaded[CK_KEYS_MAX]; /* of those that the world loads */
    uint64_t schedule;        /* the fabric's own seed is that of the world plus this */
    uint64_t idle_ns;         /* a client rests this long, and its pause, in place of a step that is left out */
};

/* Draws a world. The caller calls ck_world_fini, also after a failure: DM_ERR_INVALID for parameters that do not exist
 * or cannot work in any world, DM_ERR_NO_MEMORY. */
int ck_world_draw(const struct ck_request *request, uint64_t seed, struct ck_world *world, struct dm_err *err);
void ck_world_fini(struct ck_world *world); /* harmless on a zeroed one */

/* All of it. */
void ck_part_all(const struct ck_world *world, struct ck_part *part);

/* As text for a command line, and back: 0 or DM_ERR_INVALID. ck_part_text returns text. */
enum { CK_PART_TEXT_BYTES = 4096 };
const char *ck_part_text(const struct ck_part *part, char *text, size_t capacity);
int ck_part_parse(const char *text, struct ck_part *part, struct dm_err *err);

/* Draws what goes wrong; part of ck_world_draw. */
void ck_faults_draw(struct ck_world *world);

/* The fault as a rule of the fabric's, for the client that has this number there: "stop:client=3,verb=17;". Returns its
 * length, 0 if it is none of the fabric's. */
size_t ck_fault_rule(const struct ck_world *world, const struct ck_world_fault *fault, unsigned client, char *text,
                     size_t capacity);
const char *ck_fault_text(const struct ck_world_fault *fault, char *text, size_t capacity); /* for people; text */

/* The number of the value that step i writes, and of the value that key i is loaded with. */
static inline uint64_t ck_step_value(size_t step) {
    return CK_KEYS_MAX + 1 + step;
}
static inline uint64_t ck_loaded_value(size_t key) {
    return key + 1;
}

/* One line for people: "3 clients on 2 CNs, 1 MN, 12 keys, values of 8 bytes, node_bytes=192 ...". Returns text. */
const char *ck_world_text(const struct ck_world *world, char *text, size_t capacity);

#endif
