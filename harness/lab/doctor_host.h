/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of `dmbench doctor` share: reading a host's files, sets of processors, findings.
 */
#ifndef DM_HARNESS_LAB_DOCTOR_HOST_H
#define DM_HARNESS_LAB_DOCTOR_HOST_H

#include "harness/lab/doctor.h"

enum { HX_HOST_PATH = 1024, HX_HOST_TEXT = 512, HX_HOST_CPUS = 4096, HX_HOST_NAMES = 256 };

/* Adds a finding without advice. Returns it, for the caller to complete; never NULL. */
struct hx_finding *hx_finding_add(struct hx_doctor *doctor, enum hx_finding_status status, const char *topic,
                                  const char *name, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Sets what to do, and returns the finding. */
struct hx_finding *hx_finding_advise(struct hx_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the path of a host's file; the path in `format` begins with '/'. */
void hx_host_path(const struct hx_doctor *doctor, char path[HX_HOST_PATH], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads a small file without the white space at its end; false and "" if it cannot be read. */
bool hx_host_read(const struct hx_doctor *doctor, char *text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads a file that holds one number; `otherwise` if there is none. */
long long hx_host_number(const struct hx_doctor *doctor, long long otherwise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value behind "key:" or "key" in a text of lines; false if no line has it. */
bool hx_host_line(const char *text, const char *key, char *value, size_t capacity);

/* Names in a folder, sorted as numbers where they have numbers. */
struct hx_host_names {
    char at[HX_HOST_NAMES][64];
    size_t count;
};
void hx_host_list(const struct hx_doctor *doctor, struct hx_host_names *names, const char *folder);

/* Whether a program is there; its path in `path`. */
bool hx_host_program(const struct hx_doctor *doctor, const char *name, char path[HX_HOST_PATH]);

/* A set of processors, as the kernel writes it: "0-3,8". */
struct hx_cpus {
    uint64_t bits[HX_HOST_CPUS / 64];
};
void hx_cpus_parse(const char *text, struct hx_cpus *cpus);
bool hx_cpus_has(const struct hx_cpus *cpus, unsigned cpu);
unsigned hx_cpus_count(const struct hx_cpus *cpus);

/* Those that this process may use and that are online. */
void hx_host_cpus(const struct hx_doctor *doctor, struct hx_cpus *online, struct hx_cpus *allowed);

/* The parts. */
void hx_doctor_program(struct hx_doctor *doctor);
void hx_doctor_processors(struct hx_doctor *doctor);
void hx_doctor_memory(struct hx_doctor *doctor);
void hx_doctor_devices(struct hx_doctor *doctor);
void hx_doctor_tools(struct hx_doctor *doctor);

/* The address that the transport verbs would use: its device, port and index of the GID; false if there is none. */
struct hx_doctor_port {
    char device[64];
    unsigned port, gid;
};
bool hx_doctor_port_choose(const struct hx_doctor *doctor, struct hx_doctor_port *port);

/* Tries what indexes rely on at that address, if the doctor may measure. */
void hx_doctor_probe(struct hx_doctor *doctor, const struct hx_doctor_port *port);

#endif
