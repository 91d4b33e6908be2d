/* SPDX-License-Identifier: Apache-2.0
 *
 * What this host allows, as text and as JSON.
 */
#include "harness/lab/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/lab/doctor_host.h"

enum { COLUMNS = 110, INDENT = 34 };

static const char *const status_names[HX_FINDING_STATUS_COUNT] = {"ok", "warning", "missing"};

int hx_doctor_look(const struct hx_doctor_options *options, struct hx_doctor *doctor, struct dm_err *err) {
    *doctor = (struct hx_doctor){.options = *options};
    if (options->root[0] && access(options->root, R_OK | X_OK) != 0) {
        return dm_fail(err, DM_ERR_INVALID, "--root: no folder '%s'", options->root);
    }
    /* What runs on this host says nothing of a host that was copied. */
    doctor->options.measure = options->measure && options->root[0] == '\0';
    hx_doctor_program(doctor);
    hx_doctor_processors(doctor);
    hx_doctor_memory(doctor);
    hx_doctor_devices(doctor);
    hx_doctor_tools(doctor);
    return doctor->is_full ? dm_fail(err, DM_ERR_NO_MEMORY, "out of memory") : 0;
}

void hx_doctor_free(struct hx_doctor *doctor) {
    free(doctor->findings);
    doctor->findings = NULL;
    doctor->count = 0;
}

bool hx_doctor_allows(const struct hx_doctor *doctor, const char *transport) {
    for (uint64_t i = 0; i < doctor->count; i++) {
        const struct hx_finding *finding = &doctor->findings[i];
        if (finding->status == HX_FINDING_MISSING && finding->blocks && strcmp(finding->blocks, transport) == 0) {
            return false;
        }
    }
    return true;
}

/* Behind an arrow, in lines of at most COLUMNS. */
static void advice_print(const char *advice, FILE *out) {
    const char *lead = "-> ";
    while (*advice) {
        int length = (int)strlen(advice);
        if (length > COLUMNS - INDENT) {
            length = COLUMNS - INDENT;
            while (length > 0 && advice[length] != ' ') {
                length--;
            }
            length = length > 0 ? length : (int)strcspn(advice, " ");
        }
        fprintf(out, "%*s%s%.*s\n", INDENT - 3, "", lead, length, advice);
        advice += length;
        advice += strspn(advice, " ");
        lead = "   ";
    }
}

void hx_doctor_print(const struct hx_doctor *doctor, FILE *out) {
    const char *topic = "";
    unsigned counts[HX_FINDING_STATUS_COUNT] = {0};
    for (uint64_t i = 0; i < doctor->count; i++) {
        const struct hx_finding *finding = &doctor->findings[i];
        if (strcmp(topic, finding->topic) != 0) {
            topic = finding->topic;
            fprintf(out, "%s%s\n", i ? "\n" : "", topic);
        }
        char name[96];
        snprintf(name, sizeof(name), "%s%s%s", finding->name, finding->subject[0] ? " " : "", finding->subject);
        fprintf(out, "  %-7s  %-18s  %s\n", status_names[finding->status], name, finding->found);
        advice_print(finding->advice, out);
        counts[finding->status]++;
    }
    fprintf(out, "\n%u ok, %u warning%s, %u missing", counts[HX_FINDING_OK], counts[HX_FINDING_WARNING],
            counts[HX_FINDING_WARNING] == 1 ? "" : "s", counts[HX_FINDING_MISSING]);
    if (doctor->options.transport[0]) {
        fprintf(out, "; the transport %s %s here", doctor->options.transport,
                hx_doctor_allows(doctor, doctor->options.transport) ? "should work" : "cannot work");
    }
    fprintf(out, "\n");
}

json_t *hx_doctor_to_json(const struct hx_doctor *doctor) {
    json_t *findings = json_array();
    for (uint64_t i = 0; i < doctor->count; i++) {
        const struct hx_finding *finding = &doctor->findings[i];
        json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "topic", finding->topic, "name", finding->name, "status",
                                   status_names[finding->status], "found", finding->found);
        if (finding->subject[0]) {
            json_object_set_new(object, "subject", json_string(finding->subject));
        }
        if (finding->advice[0]) {
            json_object_set_new(object, "advice", json_string(finding->advice));
        }
        if (finding->blocks && finding->status == HX_FINDING_MISSING) {
            json_object_set_new(object, "blocks", json_string(finding->blocks));
        }
        json_array_append_new(findings, object);
    }
    json_t *top = json_pack("{s:i, s:o}", "schema_version", 1, "findings", findings);
    if (top && doctor->options.transport[0]) {
        json_object_set_new(top, "transport", json_string(doctor->options.transport));
        json_object_set_new(top, "works", json_boolean(hx_doctor_allows(doctor, doctor->options.transport)));
    }
    return top;
}
