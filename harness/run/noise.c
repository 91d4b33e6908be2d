/* SPDX-License-Identifier: Apache-2.0
 *
 * What on this host disturbs measurements in real time.
 */
#include "harness/run/noise.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "harness/run/config_fields.h"
#include "harness/run/fabric_settings.h"

/* The load of other programs, in cores, from which on it is worth a warning. */
static const double load_noticed = 0.3;

static void __attribute__((format(printf, 2, 3))) found_add(struct hx_noise *noise, const char *format, ...) {
    va_list arguments;
    if (noise->count == HX_NOISE_MAX) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(noise->found[noise->count++], HX_NOISE_BYTES, format, arguments);
    va_end(arguments);
}

/* The beginning of a file, "" if it cannot be read. Returns its length; the text has zeros in it where the file has. */
static size_t file_read(const char *path, char *text, size_t capacity) {
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, capacity - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[length] = '\0';
    return length;
}

static unsigned cores_usable(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? (unsigned)count : 1;
}

static pid_t parent_of(pid_t process) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    file_read(path, text, sizeof(text));
    const char *behind = strrchr(text, ')');
    return behind && strlen(behind) > 4 ? (pid_t)strtol(behind + 4, NULL, 10) : 0;
}

static bool is_ancestor(pid_t process) {
    for (pid_t at = getpid(); at > 1; at = parent_of(at)) {
        if (at == process) {
            return true;
        }
    }
    return false;
}

/* Whether a process is a dmbench that measures or simulates: not one that waits as a server of this run. */
static bool is_busy_dmbench(const char *process) {
    char path[300], text[256];
    snprintf(path, sizeof(path), "/proc/%s/cmdline", process);
    size_t length = file_read(path, text, sizeof(text)), program = strlen(text) + 1;
    const char *name = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
    return strcmp(name, "dmbench") == 0 && length > program && strcmp(text + program, "serve") != 0;
}

static unsigned others_running(void) {
    unsigned count = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0]) && is_busy_dmbench(entry->d_name)) {
            count += !is_ancestor((pid_t)strtol(entry->d_name, NULL, 10));
        }
    }
    if (processes) {
        closedir(processes);
    }
    return count;
}

void hx_noise_look(struct hx_noise *noise, unsigned threads) {
    char text[64];
    unsigned cores = cores_usable(), others = others_running();
    noise->count = 0;
    if (threads > cores) {
        found_add(noise, "%u threads on %u cores take turns: latencies have waits of milliseconds", threads, cores);
    }
    file_read("/proc/loadavg", text, sizeof(text));
    double load = strtod(text, NULL);
    if (load >= load_noticed) {
        found_add(noise, "the load average is %.2f before the run: other programs take part of the %u cores", load,
                  cores);
    }
    file_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    if (text[0] && strcmp(text, "performance") != 0) {
        found_add(noise, "the governor of the processors is '%s': their frequency changes during the run", text);
    }
    if (others > 0) {
        found_add(noise, "%u other dmbench process%s run%s", others, others == 1 ? "" : "es", others == 1 ? "s" : "");
    }
}

void hx_noise_warn(const struct hx_noise *noise) {
    for (size_t i = 0; i < noise->count; i++) {
        dm_log(DM_LOG_WARN, "real time is disturbed: %s", noise->found[i]);
    }
}

unsigned hx_noise_threads(const struct hx_config *config) {
    const struct dm_topology *topology = &config->topology;
    unsigned threads = config->index->caps & IX_CAP_SERVERS ? topology->servers * topology->server_cores : 0;
    for (unsigned cn = 0; cn < topology->cns; cn++) {
        threads += hx_cn_threads(topology, cn);
    }
    return threads;
}

json_t *hx_noise_json(const struct hx_noise *noise) {
    json_t *array = json_array();
    for (size_t i = 0; i < noise->count; i++) {
        json_array_append_new(array, json_string(noise->found[i]));
    }
    return array;
}
