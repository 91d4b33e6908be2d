/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what the kernel reports of a host, or of a folder that looks like one.
 */
#include "harness/lab/doctor_host.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/text.h"

/* ---- findings --------------------------------------------------------------------------------------------------- */

/* Writes a text that may hold anything as one clean line. */
static void line_write(char *line, size_t bytes, const char *format, va_list args) {
    vsnprintf(line, bytes, format, args);
    dm_text_clean(line);
}

struct hx_finding *hx_finding_add(struct hx_doctor *doctor, enum hx_finding_status status, const char *topic,
                                  const char *name, const char *format, ...) {
    static struct hx_finding spare;
    struct hx_finding *grown =
        dm_array_grow(doctor->findings, doctor->count, &doctor->capacity, sizeof(*doctor->findings));
    doctor->is_full = doctor->is_full || !grown;
    doctor->findings = grown ? grown : doctor->findings;
    struct hx_finding *finding = grown ? &doctor->findings[doctor->count++] : &spare;
    *finding = (struct hx_finding){.topic = topic, .name = name, .status = status};
    va_list args;
    va_start(args, format);
    line_write(finding->found, sizeof(finding->found), format, args);
    va_end(args);
    return finding;
}

struct hx_finding *hx_finding_advise(struct hx_finding *finding, const char *format, ...) {
    va_list args;
    va_start(args, format);
    line_write(finding->advice, sizeof(finding->advice), format, args);
    va_end(args);
    return finding;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void path_write(const struct hx_doctor *doctor, char path[HX_HOST_PATH], const char *format, va_list args) {
    int length = snprintf(path, HX_HOST_PATH, "%s", doctor->options.root);
    if (length >= 0 && length < HX_HOST_PATH) {
        vsnprintf(path + length, HX_HOST_PATH - (size_t)length, format, args);
    }
}

void hx_host_path(const struct hx_doctor *doctor, char path[HX_HOST_PATH], const char *format, ...) {
    va_list args;
    va_start(args, format);
    path_write(doctor, path, format, args);
    va_end(args);
}

static bool file_read(const char *path, char *text, size_t capacity) {
    text[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    size_t length = fread(text, 1, capacity - 1, file);
    bool is_read = ferror(file) == 0;
    fclose(file);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    text[length] = '\0';
    return is_read;
}

bool hx_host_read(const struct hx_doctor *doctor, char *text, size_t capacity, const char *format, ...) {
    char path[HX_HOST_PATH];
    va_list args;
    va_start(args, format);
    path_write(doctor, path, format, args);
    va_end(args);
    return file_read(path, text, capacity);
}

long long hx_host_number(const struct hx_doctor *doctor, long long otherwise, const char *format, ...) {
    char path[HX_HOST_PATH], text[64], *end = NULL;
    va_list args;
    va_start(args, format);
    path_write(doctor, path, format, args);
    va_end(args);
    if (!file_read(path, text, sizeof(text))) {
        return otherwise;
    }
    long long number = strtoll(text, &end, 10);
    return end != text ? number : otherwise;
}

bool hx_host_line(const char *text, const char *key, char *value, size_t capacity) {
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
        if (strncmp(line, key, length) == 0) {
            line += length;
            line += strspn(line, ": \t");
            snprintf(value, capacity, "%.*s", (int)strcspn(line, "\n"), line);
            return true;
        }
    }
    value[0] = '\0';
    return false;
}

static int compare_names(const void *a, const void *b) {
    return strverscmp(a, b);
}

void hx_host_list(const struct hx_doctor *doctor, struct hx_host_names *names, const char *folder) {
    char path[HX_HOST_PATH];
    hx_host_path(doctor, path, "%s", folder);
    names->count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && names->count < HX_HOST_NAMES;
         entry = readdir(dir)) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && length < sizeof(names->at[0])) {
            memcpy(names->at[names->count++], entry->d_name, length + 1);
        }
    }
    if (dir) {
        closedir(dir);
    }
    qsort(names->at, names->count, sizeof(names->at[0]), compare_names);
}

bool hx_host_program(const struct hx_doctor *doctor, const char *name, char path[HX_HOST_PATH]) {
    const char *folders = doctor->options.root[0] ? "/usr/bin:/bin" : getenv("PATH");
    for (const char *at = folders ? folders : ""; *at;) {
        size_t length = strcspn(at, ":");
        hx_host_path(doctor, path, "%.*s/%s", (int)length, at, name);
        if (length > 0 && access(path, X_OK) == 0) {
            return true;
        }
        at += length + (at[length] == ':');
    }
    path[0] = '\0';
    return false;
}

/* ---- sets of processors ----------------------------------------------------------------------------------------- */

void hx_cpus_parse(const char *text, struct hx_cpus *cpus) {
    memset(cpus, 0, sizeof(*cpus));
    while (isdigit((unsigned char)*text)) {
        char *end = NULL;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') {
            last = strtoul(end + 1, &end, 10);
        }
        for (unsigned long cpu = first; cpu <= last && cpu < HX_HOST_CPUS; cpu++) {
            cpus->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
        }
        text = *end == ',' ? end + 1 : "";
    }
}

bool hx_cpus_has(const struct hx_cpus *cpus, unsigned cpu) {
    return cpu < HX_HOST_CPUS && (cpus->bits[cpu / 64] >> (cpu % 64) & 1) != 0;
}

unsigned hx_cpus_count(const struct hx_cpus *cpus) {
    unsigned count = 0;
    for (unsigned cpu = 0; cpu < HX_HOST_CPUS; cpu++) {
        count += hx_cpus_has(cpus, cpu);
    }
    return count;
}

void hx_host_cpus(const struct hx_doctor *doctor, struct hx_cpus *online, struct hx_cpus *allowed) {
    char text[4096], list[HX_HOST_TEXT];
    hx_host_read(doctor, list, sizeof(list), "/sys/devices/system/cpu/online");
    hx_cpus_parse(list, online);
    hx_host_read(doctor, text, sizeof(text), "/proc/self/status");
    if (!hx_host_line(text, "Cpus_allowed_list", list, sizeof(list))) {
        *allowed = *online;
        return;
    }
    hx_cpus_parse(list, allowed);
    for (size_t i = 0; i < sizeof(online->bits) / sizeof(online->bits[0]); i++) {
        allowed->bits[i] &= online->bits[i];
    }
}
