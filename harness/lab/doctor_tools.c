/* SPDX-License-Identifier: Apache-2.0
 *
 * The program itself, and programs beside it: what they are for, and what two of them measure.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/data_folder.h"
#include "harness/lab/doctor_host.h"
#include "harness/run/mpi.h"
#include "harness/run/version.h"
#include "transport/fabric.h"

enum { COMMAND_BYTES = 1024, OUTPUT_BYTES = 8192 };

/* ---- the program ------------------------------------------------------------------------------------------------ */

static void look_at_version(struct hx_doctor *doctor) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        return;
    }
    hx_version_print(out);
    fclose(out);
    hx_finding_add(doctor, HX_FINDING_OK, "program", "version", "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

static void look_at_data(struct hx_doctor *doctor) {
    unsigned profiles = 0;
    while (dm_profile_names()[profiles]) {
        profiles++;
    }
    struct hx_finding *finding = hx_finding_add(doctor, profiles ? HX_FINDING_OK : HX_FINDING_MISSING, "program",
                                                "data", "%s: %u profiles of NICs", dm_data_folder(), profiles);
    if (profiles == 0) {
        finding->blocks = "sim";
        hx_finding_advise(finding, "DMBENCH_DATA names the folder with transport/profiles and plots");
    }
}

static void look_at_transports(struct hx_doctor *doctor) {
    for (const struct dm_transport_info *const *info = dm_transports(); *info; info++) {
        struct hx_finding *finding =
            hx_finding_add(doctor, HX_FINDING_OK, "program", "transport", "compiled in: %s", (*info)->summary);
        snprintf(finding->subject, sizeof(finding->subject), "%s", (*info)->name);
    }
    for (const struct dm_transport_absence *absent = dm_transports_absent(); absent->name; absent++) {
        struct hx_finding *finding =
            hx_finding_add(doctor, HX_FINDING_MISSING, "program", "transport", "left out: %s", absent->reason);
        snprintf(finding->subject, sizeof(finding->subject), "%s", absent->name);
        finding->blocks = absent->name;
        hx_finding_advise(finding, "scripts/setup.sh run installs what it needs; then build again");
    }
}

void hx_doctor_program(struct hx_doctor *doctor) {
    look_at_version(doctor);
    look_at_data(doctor);
    look_at_transports(doctor);
}

/* ---- programs beside it ----------------------------------------------------------------------------------------- */

/* Runs a command of the shell and reads the first bytes of what it prints. False if it fails. */
static bool command_run(const char *command, char *output, size_t capacity) {
    output[0] = '\0';
    fflush(NULL);
    FILE *pipe = popen(command, "re");
    if (!pipe) {
        return false;
    }
    size_t length = fread(output, 1, capacity - 1, pipe);
    output[length] = '\0';
    char rest[512];
    while (fread(rest, 1, sizeof(rest), pipe) > 0) {
    }
    return pclose(pipe) == 0;
}

/* How mpirun binds two ranks on this host by default. */
static void look_at_binding(struct hx_doctor *doctor, const char *mpirun) {
    char command[COMMAND_BYTES + HX_HOST_PATH], output[OUTPUT_BYTES], list[HX_HOST_TEXT];
    struct hx_cpus online, allowed, bound;
    hx_host_cpus(doctor, &online, &allowed);
    snprintf(
        command, sizeof(command),
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader,tcp timeout 20 %s -np 2 "
        "grep Cpus_allowed_list /proc/self/status 2>/dev/null </dev/null",
        mpirun);
    if (!command_run(command, output, sizeof(output)) ||
        !hx_host_line(output, "Cpus_allowed_list", list, sizeof(list))) {
        hx_finding_add(doctor, HX_FINDING_WARNING, "tools", "binding", "unknown: mpirun does not start two ranks here");
        return;
    }
    hx_cpus_parse(list, &bound);
    if (hx_cpus_count(&bound) >= hx_cpus_count(&allowed)) {
        hx_finding_add(doctor, HX_FINDING_OK, "tools", "binding", "mpirun gives each of two ranks all processors");
        return;
    }
    hx_finding_advise(
        hx_finding_add(doctor, HX_FINDING_WARNING, "tools", "binding",
                       "mpirun gives the first of two ranks processors %s alone", list),
        "a rank has many threads: mpirun --bind-to none, or --map-by ppr:1:node:pe=N with the threads of a "
        "process as N");
}

static void look_at_mpirun(struct hx_doctor *doctor) {
    char path[HX_HOST_PATH];
    struct hx_finding *finding;
    if (!hx_host_program(doctor, "mpirun", path)) {
        finding = hx_finding_add(doctor, HX_FINDING_WARNING, "tools", "mpirun", "not installed");
        hx_finding_advise(finding, "several processes then need dmbench serve, or srun");
        return;
    }
    hx_finding_add(doctor, HX_FINDING_OK, "tools", "mpirun", "%s", path);
    if (doctor->options.measure && !hx_mpi_is_launched()) {
        look_at_binding(doctor, path);
    }
}

/* Both ends of ib_read_lat on this host, on the address that the transport would choose. */
static void look_at_latency(struct hx_doctor *doctor, const struct hx_doctor_port *port) {
    char command[COMMAND_BYTES], options[256], output[OUTPUT_BYTES];
    snprintf(options, sizeof(options),
             "timeout 40 ib_read_lat -F -d %.48s -i %u -x %u -p %u -s 64 -n 1000 "
             "--disable_pcie_relaxed",
             port->device, port->port, port->gid, 20000 + (unsigned)getpid() % 20000);
    snprintf(
        command, sizeof(command),
        "%s >/dev/null 2>&1 & server=$!; for i in $(seq 24); do sleep 0.5; %s 127.0.0.1 2>/dev/null && break; done; "
        "kill $server 2>/dev/null; true",
        options, options);
    double typical = 0, tail = 0;
    if (command_run(command, output, sizeof(output))) {
        for (const char *line = output; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
            double bytes, count, least, most, average, deviation;
            if (sscanf(line, " %lf %lf %lf %lf %lf %lf %lf %lf", &bytes, &count, &least, &most, &typical, &average,
                       &deviation, &tail) == 8 &&
                bytes == 64) {
                hx_finding_advise(
                    hx_finding_add(doctor, HX_FINDING_OK, "tools", "latency",
                                   "%.2f us for a READ of 64 bytes, 99 of 100 within %.2f us (ib_read_lat on "
                                   "this host)",
                                   typical, tail),
                    "a round trip of dmbench should take about that; between two hosts it is the floor");
                return;
            }
        }
    }
    hx_finding_advise(hx_finding_add(doctor, HX_FINDING_WARNING, "tools", "latency", "ib_read_lat does not work here"),
                      "ib_read_lat -d %s -x %u, and the same with this host's address in another terminal",
                      port->device, port->gid);
}

static void look_at_perftest(struct hx_doctor *doctor) {
    char path[HX_HOST_PATH];
    struct hx_doctor_port port;
    if (!hx_host_program(doctor, "ib_read_lat", path)) {
        struct hx_finding *finding = hx_finding_add(doctor, HX_FINDING_WARNING, "tools", "perftest", "not installed");
        hx_finding_advise(finding, "package perftest: its ib_read_lat is the floor of a round trip");
        return;
    }
    hx_finding_add(doctor, HX_FINDING_OK, "tools", "perftest", "%s", path);
    if (doctor->options.measure && hx_doctor_port_choose(doctor, &port)) {
        look_at_latency(doctor, &port);
    }
}

void hx_doctor_tools(struct hx_doctor *doctor) {
    static const struct {
        const char *name, *purpose;
    } others[] = {{"gnuplot", "figures are drawn with it"},
                  {"ibv_devinfo", "package ibverbs-utils: lists devices, ports and GIDs"},
                  {"numactl", "binds a process to the processors beside its NIC"}};
    look_at_mpirun(doctor);
    look_at_perftest(doctor);
    for (size_t i = 0; i < DM_ARRAY_LEN(others); i++) {
        char path[HX_HOST_PATH];
        if (hx_host_program(doctor, others[i].name, path)) {
            hx_finding_add(doctor, HX_FINDING_OK, "tools", others[i].name, "%s", path);
        } else {
            hx_finding_advise(hx_finding_add(doctor, HX_FINDING_WARNING, "tools", others[i].name, "not installed"),
                              "%s", others[i].purpose);
        }
    }
}
