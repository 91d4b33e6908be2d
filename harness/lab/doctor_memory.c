/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: how much may be locked for a device, and on which pages.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/lab/doctor_host.h"

static const char topic[] = "memory";

enum { CAP_IPC_LOCK_BIT = 14 };
static const double locked_least = 256e6; /* no memory node does with less */

static double available_bytes(const struct hx_doctor *doctor) {
    char text[8192], value[64];
    hx_host_read(doctor, text, sizeof(text), "/proc/meminfo");
    return hx_host_line(text, "MemAvailable", value, sizeof(value)) ? strtod(value, NULL) * 1024 : 0;
}

static void look_at_size(struct hx_doctor *doctor) {
    char text[8192], value[64];
    hx_host_read(doctor, text, sizeof(text), "/proc/meminfo");
    if (!hx_host_line(text, "MemTotal", value, sizeof(value))) {
        return;
    }
    struct hx_host_names nodes;
    hx_host_list(doctor, &nodes, "/sys/devices/system/node");
    unsigned count = 0;
    for (size_t i = 0; i < nodes.count; i++) {
        count += strncmp(nodes.at[i], "node", 4) == 0;
    }
    hx_finding_add(doctor, HX_FINDING_OK, topic, "size", "%.1f GB, %.1f GB available, %u NUMA node%s",
                   strtod(value, NULL) * 1024e-9, available_bytes(doctor) * 1e-9, count, count == 1 ? "" : "s");
}

/* The files that set the limit for logins, with what they say of it. */
static void limit_files(const struct hx_doctor *doctor, char *text, size_t capacity) {
    struct hx_host_names names;
    hx_host_list(doctor, &names, "/etc/security/limits.d");
    text[0] = '\0';
    for (size_t i = 0; i <= names.count; i++) {
        char path[HX_HOST_PATH], line[256];
        const char *name = i < names.count ? names.at[i] : "limits.conf";
        hx_host_path(doctor, path, "/etc/security/%s%s", i < names.count ? "limits.d/" : "", name);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file)) {
            const char *start = line + strspn(line, " \t");
            if (*start != '#' && strstr(start, "memlock")) {
                size_t used = strlen(text);
                snprintf(text + used, capacity - used, "%s%s: %.*s", used ? "; " : "", name, (int)strcspn(start, "\n"),
                         start);
            }
        }
        if (file) {
            fclose(file);
        }
    }
}

static void look_at_locked(struct hx_doctor *doctor) {
    char text[8192], value[256], files[256];
    hx_host_read(doctor, text, sizeof(text), "/proc/self/status");
    bool is_capable =
        hx_host_line(text, "CapEff", value, sizeof(value)) && (strtoull(value, NULL, 16) >> CAP_IPC_LOCK_BIT & 1) != 0;
    hx_host_read(doctor, text, sizeof(text), "/proc/self/limits");
    if (!hx_host_line(text, "Max locked memory", value, sizeof(value))) {
        return;
    }
    bool is_unlimited = strncmp(value, "unlimited", 9) == 0;
    double limit = strtod(value, NULL);
    limit_files(doctor, files, sizeof(files));
    char by[400] = "";
    if (files[0]) {
        snprintf(by, sizeof(by), " (%s)", files);
    }
    if (is_unlimited) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "locked memory", "unlimited%s", by);
        return;
    }
    if (is_capable) {
        hx_finding_advise(hx_finding_add(doctor, HX_FINDING_OK, topic, "locked memory",
                                         "limited to %.1f MB, but this process may exceed that (CAP_IPC_LOCK)%s",
                                         limit * 1e-6, by),
                          "processes without that capability cannot: see docs/cluster.md for the limits of logins and "
                          "Slurm");
        return;
    }
    struct hx_finding *finding = hx_finding_add(doctor, limit < locked_least ? HX_FINDING_MISSING : HX_FINDING_WARNING,
                                                topic, "locked memory", "limited to %.1f MB%s", limit * 1e-6, by);
    finding->blocks = "verbs";
    hx_finding_advise(finding,
                      "a device's memory is locked: \"* soft memlock unlimited\" and \"* hard memlock unlimited\" "
                      "in a file in /etc/security/limits.d; for Slurm LimitMEMLOCK=infinity of slurmd; docker "
                      "--ulimit memlock=-1");
}

static void look_at_huge_pages(struct hx_doctor *doctor) {
    struct hx_host_names nodes;
    hx_host_list(doctor, &nodes, "/sys/devices/system/node");
    char text[256] = "";
    long long total = 0;
    for (size_t i = 0; i < nodes.count; i++) {
        const char *folder = "/sys/devices/system/node";
        long long all =
            hx_host_number(doctor, -1, "%s/%s/hugepages/hugepages-2048kB/nr_hugepages", folder, nodes.at[i]);
        long long left =
            hx_host_number(doctor, 0, "%s/%s/hugepages/hugepages-2048kB/free_hugepages", folder, nodes.at[i]);
        if (all >= 0) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%s: %.2f GB, %.2f GB free", used ? "; " : "", nodes.at[i],
                     (double)all * 2.097152e-3, (double)left * 2.097152e-3);
            total += all;
        }
    }
    const char *advice =
        "NICs keep few translations, so 4 KB pages cost latency; reserve a little more than the memory "
        "nodes need: echo 34000 >/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    if (text[0] == '\0') {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "huge pages", "of 2 MB: none in this kernel");
    } else if (total > 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "huge pages", "of 2 MB: %s", text);
    } else {
        hx_finding_advise(hx_finding_add(doctor, HX_FINDING_WARNING, topic, "huge pages", "of 2 MB: none are reserved"),
                          "%s", advice);
    }
    char mode[128];
    if (hx_host_read(doctor, mode, sizeof(mode), "/sys/kernel/mm/transparent_hugepage/enabled")) {
        bool is_off = strstr(mode, "[never]") != NULL;
        struct hx_finding *finding =
            hx_finding_add(doctor, is_off ? HX_FINDING_WARNING : HX_FINDING_OK, topic, "transparent", "%s", mode);
        if (is_off) {
            hx_finding_advise(finding, "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled");
        }
    }
}

void hx_doctor_memory(struct hx_doctor *doctor) {
    look_at_size(doctor);
    look_at_locked(doctor);
    look_at_huge_pages(doctor);
}
