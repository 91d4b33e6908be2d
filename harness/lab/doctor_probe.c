/* SPDX-License-Identifier: Apache-2.0
 *
 * What indexes take for granted and no specification promises, tried on the device that a run would choose: a fabric of
 * the transport verbs is opened, which probes the device, and says what it found.
 */
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "harness/lab/doctor_host.h"
#include "transport/fabric.h"

static const char topic[] = "devices";

/* The finding of that name among a fabric's notes. */
static const char *note_of(const struct dm_note *notes, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(notes[i].name, name) == 0) {
            return notes[i].value;
        }
    }
    return "assumed";
}

static void report(struct hx_doctor *doctor, struct dm_fabric *fabric) {
    static const char *const names[] = {"line_atomic", "write_order", "cpu_atomics"};
    struct dm_note notes[DM_NOTES_MAX];
    size_t count = dm_fabric_notes(fabric, notes, DM_NOTES_MAX);
    const char *values[DM_ARRAY_LEN(names)];
    bool holds = true;
    for (size_t i = 0; i < DM_ARRAY_LEN(names); i++) {
        values[i] = note_of(notes, count, names[i]);
        holds = holds && strcmp(values[i], "yes") == 0;
    }
    struct hx_finding *finding =
        hx_finding_add(doctor, holds ? HX_FINDING_OK : HX_FINDING_WARNING, topic, "order and lines",
                       "%s %s, %s %s, %s %s", names[0], values[0], names[1], values[1], names[2], values[2]);
    if (!holds) {
        hx_finding_advise(finding, "indexes rely on all three: a result on this device may be wrong. Software RoCE has "
                                   "whole lines on a machine with one processor only");
    }
}

/* A device without them is no fault of the host, but what a run measures on it differs. */
static void report_masked(struct hx_doctor *doctor, struct dm_fabric *fabric) {
    struct dm_note notes[DM_NOTES_MAX];
    size_t count = dm_fabric_notes(fabric, notes, DM_NOTES_MAX);
    struct hx_finding *finding =
        hx_finding_add(doctor, HX_FINDING_OK, topic, "masked atomics", "%s", note_of(notes, count, "masked_atomics"));
    if (!dm_sends_masked(fabric)) {
        hx_finding_advise(finding, "a masked lock takes two round trips or more here: do not compare it with published "
                                   "ones (docs/cluster.md)");
    }
}

void hx_doctor_probe(struct hx_doctor *doctor, const struct hx_doctor_port *port) {
    char number[16], gid[16];
    const struct dm_transport_info *verbs = dm_transport_find("verbs");
    if (!verbs || !doctor->options.measure) {
        return;
    }
    snprintf(number, sizeof(number), "%u", port->port);
    snprintf(gid, sizeof(gid), "%u", port->gid + 1);
    const struct dm_setting settings[] = {
        {"device", port->device}, {"port", number}, {"gid", gid}, {"probe", "200ms"}, {"huge_pages", "off"}};
    const struct dm_fabric_config config = {
        .transport = "verbs",
        .topology = {.mns = 1, .mn_cores = 1, .cns = 1, .clients = 1, .clients_per_thread = 1, .mn_bytes = 2 << 20},
        .settings = settings,
        .setting_count = DM_ARRAY_LEN(settings),
    };
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    if (dm_fabric_open(&config, &fabric, &err) == 0) {
        report(doctor, fabric);
        report_masked(doctor, fabric);
    } else {
        struct hx_finding *finding =
            hx_finding_add(doctor, HX_FINDING_MISSING, topic, "order and lines", "cannot be tried: %s", err.text);
        finding->blocks = "verbs";
    }
    dm_fabric_close(fabric);
}
