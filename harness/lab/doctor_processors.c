/* SPDX-License-Identifier: Apache-2.0
 *
 * Processors: which of them this process may use, and what changes their speed.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/lab/doctor_host.h"
#include "harness/run/mpi.h"

enum { SLEEP_US_MAX = 50 };

static const char topic[] = "processors";

static void look_at_affinity(struct hx_doctor *doctor, const struct hx_cpus *online, const struct hx_cpus *allowed) {
    unsigned all = hx_cpus_count(online), own = hx_cpus_count(allowed);
    if (all == 0) {
        hx_finding_add(doctor, HX_FINDING_WARNING, topic, "usable", "unknown: /sys/devices/system/cpu is not there");
        return;
    }
    if (own == all) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "usable", "all %u", all);
        return;
    }
    struct hx_finding *finding =
        hx_finding_add(doctor, HX_FINDING_WARNING, topic, "usable", "%u of %u: this process is bound", own, all);
    if (hx_mpi_is_launched()) {
        hx_finding_advise(finding, "a rank has many threads: mpirun --bind-to none, or --map-by ppr:1:node:pe=N; srun "
                                   "--cpus-per-task=N --cpu-bind=cores");
    } else {
        hx_finding_advise(finding, "a thread of a compute node and a core of a memory node need a processor each; see "
                                   "taskset -p $$, the cpuset of the container, or Slurm's --cpus-per-task");
    }
}

/* Hyper-threads of a core share its units: the first of each core is counted. */
static void look_at_cores(struct hx_doctor *doctor, const struct hx_cpus *online) {
    unsigned cores = 0, all = hx_cpus_count(online);
    for (unsigned cpu = 0; cpu < HX_HOST_CPUS; cpu++) {
        char text[HX_HOST_TEXT];
        struct hx_cpus siblings;
        if (!hx_cpus_has(online, cpu) ||
            !hx_host_read(doctor, text, sizeof(text), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
                          cpu)) {
            continue;
        }
        hx_cpus_parse(text, &siblings);
        unsigned first = 0;
        while (first < cpu && !hx_cpus_has(&siblings, first)) {
            first++;
        }
        cores += first == cpu;
    }
    if (cores == 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "cores", "unknown: the kernel does not report them");
    } else if (cores == all) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "cores", "%u, one hyper-thread each", cores);
    } else {
        hx_finding_advise(hx_finding_add(doctor, HX_FINDING_OK, topic, "cores", "%u with %u hyper-threads", cores, all),
                          "threads on one core slow each other down: bind to one processor of each core, as "
                          "numactl --physcpubind does, or compare runs with equal numbers of threads a core");
    }
}

static void look_at_quota(struct hx_doctor *doctor) {
    char text[HX_HOST_TEXT], group[HX_HOST_TEXT] = "";
    char *end = NULL;
    if (hx_host_read(doctor, text, sizeof(text), "/proc/self/cgroup")) {
        hx_host_line(text, "0:", group, sizeof(group));
    }
    bool is_there = hx_host_read(doctor, text, sizeof(text), "/sys/fs/cgroup%s/cpu.max", group) ||
                    hx_host_read(doctor, text, sizeof(text), "/sys/fs/cgroup/cpu.max");
    double quota = is_there ? strtod(text, &end) : 0, period = end ? strtod(end, NULL) : 0;
    if (!is_there || strncmp(text, "max", 3) == 0 || quota <= 0 || period <= 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "quota", "none");
        return;
    }
    hx_finding_advise(
        hx_finding_add(doctor, HX_FINDING_WARNING, topic, "quota", "%.1f processors in each %.0f ms", quota / period,
                       period / 1000),
        "threads that poll use it up and are then stopped: raise the limit of the container (docker --cpus, Kubernetes "
        "limits.cpu), or use fewer clients");
}

static void look_at_governor(struct hx_doctor *doctor, const struct hx_cpus *allowed) {
    char text[64], other[64] = "";
    unsigned known = 0, slow = 0;
    for (unsigned cpu = 0; cpu < HX_HOST_CPUS; cpu++) {
        if (hx_cpus_has(allowed, cpu) &&
            hx_host_read(doctor, text, sizeof(text), "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu)) {
            known++;
            if (strcmp(text, "performance") != 0) {
                slow++;
                snprintf(other, sizeof(other), "%s", text);
            }
        }
    }
    if (known == 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "governor", "none here: a virtual machine, or firmware decides");
    } else if (slow == 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "governor", "performance");
    } else {
        hx_finding_advise(
            hx_finding_add(doctor, HX_FINDING_WARNING, topic, "governor", "%s on %u of %u", other, slow, known),
            "frequencies follow the load, and latencies with them: cpupower frequency-set -g performance");
    }
}

static void look_at_frequency(struct hx_doctor *doctor, const struct hx_cpus *allowed) {
    long long least = 0, most = 0, limit = 0;
    for (unsigned cpu = 0; cpu < HX_HOST_CPUS; cpu++) {
        if (!hx_cpus_has(allowed, cpu)) {
            continue;
        }
        long long now = hx_host_number(doctor, 0, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", cpu);
        long long top = hx_host_number(doctor, 0, "/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cpu);
        least = now > 0 && (least == 0 || now < least) ? now : least;
        most = now > most ? now : most;
        limit = top > limit ? top : limit;
    }
    char text[16384], mhz[64], model[128];
    hx_host_read(doctor, text, sizeof(text), "/proc/cpuinfo");
    hx_host_line(text, "model name", model, sizeof(model));
    const char *name = model[0] ? model : "unknown model";
    if (most > 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "frequency", "%s: %.2f to %.2f GHz now, %.2f GHz at most", name,
                       (double)least * 1e-6, (double)most * 1e-6, (double)limit * 1e-6);
    } else if (hx_host_line(text, "cpu MHz", mhz, sizeof(mhz))) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "frequency", "%s: %.2f GHz now", name, strtod(mhz, NULL) / 1000);
    } else {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "frequency", "%s: not reported", name);
    }
}

/* A processor that has gone to sleep takes that long until it sees a completion. */
static void look_at_sleep(struct hx_doctor *doctor, const struct hx_cpus *allowed) {
    unsigned cpu = 0;
    while (cpu < HX_HOST_CPUS && !hx_cpus_has(allowed, cpu)) {
        cpu++;
    }
    long long longest = -1;
    char deepest[64] = "";
    for (unsigned state = 0; state < 16; state++) {
        long long us = hx_host_number(doctor, -1, "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/latency", cpu, state);
        long long off = hx_host_number(doctor, 0, "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/disable", cpu, state);
        if (us > longest && off == 0) {
            longest = us;
            hx_host_read(doctor, deepest, sizeof(deepest), "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/name", cpu,
                         state);
        }
    }
    if (longest < 0) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "sleep", "not reported");
    } else if (longest < SLEEP_US_MAX) {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "sleep", "%lld us to wake up from %s", longest, deepest);
    } else {
        hx_finding_advise(
            hx_finding_add(doctor, HX_FINDING_WARNING, topic, "sleep", "%lld us to wake up from %s", longest, deepest),
            "threads that poll do not sleep, those that wait longer than `spin` do: cpupower idle-set -D 10");
    }
}

static void look_at_load(struct hx_doctor *doctor) {
    char text[HX_HOST_TEXT];
    if (!hx_host_read(doctor, text, sizeof(text), "/proc/loadavg")) {
        return;
    }
    double load = strtod(text, NULL);
    struct hx_finding *finding = hx_finding_add(doctor, load < 1 ? HX_FINDING_OK : HX_FINDING_WARNING, topic, "load",
                                                "%.2f processes ran or waited in the last minute", load);
    if (load >= 1) {
        hx_finding_advise(finding, "other programs run here; measure in real time on an idle host");
    }
}

void hx_doctor_processors(struct hx_doctor *doctor) {
    struct hx_cpus online, allowed;
    hx_host_cpus(doctor, &online, &allowed);
    look_at_affinity(doctor, &online, &allowed);
    look_at_cores(doctor, &online);
    look_at_quota(doctor);
    look_at_governor(doctor, &allowed);
    look_at_frequency(doctor, &allowed);
    look_at_sleep(doctor, &allowed);
    look_at_load(doctor);
}
