/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault injection: which faults a run has, when, and with what probability. The rules come from the transport's option
 * `faults`. They draw from a random stream of their own, so that a run without faults does not depend on this file.
 */
#ifndef DM_TRANSPORT_SIM_FAULTS_H
#define DM_TRANSPORT_SIM_FAULTS_H

#include "transport/fabric.h"

enum sim_fault_kind { SIM_FAULT_STOP, SIM_FAULT_FAIL, SIM_FAULT_DELAY, SIM_FAULT_ERROR, SIM_FAULT_KINDS };

enum { SIM_FAULTS_MAX = 32, SIM_ANY = -1 };

/* One rule. Verbs and calls of a client are numbered from 1. */
struct sim_fault {
    enum sim_fault_kind kind;
    int64_t client, node, verb_kind; /* SIM_ANY: every one */
    uint64_t verb;                   /* 0: by probability */
    double probability;
    uint64_t ns;      /* how long it stops (0: for good), when it fails, by how much it delays */
    uint64_t away_ns; /* time until a failed node comes back; 0: never */
};

struct sim_faults {
    struct sim_fault rules[SIM_FAULTS_MAX];
    uint32_t count;
    struct dm_prng prng;
};

/* "stop:client=3,verb=120,for=50us; fail:node=0,at=5ms,for=2ms; delay:p=0.01,by=10us,kind=read; error:client=1,verb=7".
 * Unknown or missing keys, bad numbers, nodes without memory and clients that do not exist are DM_ERR_INVALID. */
int sim_faults_parse(struct sim_faults *faults, const char *text, const struct dm_topology *topology,
                     struct dm_err *err);

/* What the rules do to the client's verb number `number`. */
struct sim_fate {
    bool stops;
    uint64_t stop_ns; /* 0: for good */
    uint64_t delay_ns;
    bool fails, lands; /* it completes in error; whether it takes effect nevertheless */
};
struct sim_fate sim_faults_draw(struct sim_faults *faults, int64_t client, uint64_t number, enum dm_verb_kind kind,
                                unsigned node);

#endif
