/* SPDX-License-Identifier: Apache-2.0
 *
 * What this host allows: processors, memory, RDMA devices and tools, each with what to do about it.
 */
#ifndef DM_HARNESS_LAB_DOCTOR_H
#define DM_HARNESS_LAB_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

enum hx_finding_status {
    HX_FINDING_OK,
    HX_FINDING_WARNING, /* it works; numbers may suffer */
    HX_FINDING_MISSING, /* something does not work without it */
    HX_FINDING_STATUS_COUNT,
};

struct hx_finding {
    const char *topic, *name; /* "memory", "locked memory" */
    char subject[64];         /* the device or tool, where there may be several of them; else empty */
    char found[320];
    char advice[400];   /* what to do; empty: nothing */
    const char *blocks; /* the transport that cannot work while the status is `missing`; NULL: none */
    enum hx_finding_status status;
};

struct hx_doctor_options {
    const char *transport; /* what is asked for; "": nothing in particular */
    const char *device;    /* the RDMA device to use; "": the one that the transport would choose */
    const char *root;      /* look at the /sys, /proc, /dev, /etc and /usr/bin in this folder; "": at this host's */
    bool measure;          /* also run small programs: mpirun for its binding, perftest for its latency */
};

struct hx_doctor {
    struct hx_doctor_options options;
    struct hx_finding *findings;
    uint64_t count, capacity;
    bool is_full; /* out of memory: findings are missing */
};

/* Looks at everything. The caller releases the doctor, also after a failure (out of memory, or DM_ERR_INVALID for a
 * folder that is not there). */
int hx_doctor_look(const struct hx_doctor_options *options, struct hx_doctor *doctor, struct dm_err *err);
void hx_doctor_free(struct hx_doctor *doctor);

/* Whether a transport can work here, as far as that was found. */
bool hx_doctor_allows(const struct hx_doctor *doctor, const char *transport);

void hx_doctor_print(const struct hx_doctor *doctor, FILE *out);

/* A new object, or NULL when out of memory. */
json_t *hx_doctor_to_json(const struct hx_doctor *doctor);

#endif
