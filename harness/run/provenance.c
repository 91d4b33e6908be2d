/* SPDX-License-Identifier: Apache-2.0
 *
 * Provenance. The revision is that of the build; main.c alone is compiled with it, so that a commit that changes
 * nothing else compiles one file and links one program.
 */
#include "harness/run/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "harness/run/config_fields.h"
#include "harness/run/sources.h"
#include "harness/run/version.h"

enum { LINE_BYTES = 512 };

static const char *revision = "unknown";

void hx_revision_set(const char *text) {
    revision = text;
}

static const char *compiler_name(void) {
    /* clang's version text has its name; gcc's is only a number */
    return strchr(__VERSION__, 'l') ? __VERSION__ : "gcc " __VERSION__;
}

void hx_version_print(FILE *out) {
    const char *dirty = strchr(revision, '-');
    fprintf(out, "dmbench %s (revision %.12s%s, %s, %s%s%s)\n", DM_VERSION, revision, dirty ? dirty : "",
            compiler_name(), DM_BUILD_TYPE, DM_SANITIZE[0] ? ", " : "", DM_SANITIZE);
}

/* "model name : X" of the first processor. */
static void cpu_model(char *text, size_t capacity) {
    char line[LINE_BYTES];
    snprintf(text, capacity, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, capacity, "%s", colon + 1 + strspn(colon + 1, " \t"));
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

/* Whether a word names a file that is gone once the program has ended, or standard input. */
static bool is_passing(const char *word) {
    return strncmp(word, "/proc/self/fd/", 14) == 0 || strncmp(word, "/dev/fd/", 8) == 0 ||
           strcmp(word, "/dev/stdin") == 0;
}

/* As it was given, unless that cannot run again: then one that gives the same configuration. */
static json_t *command_line(const struct hx_config *config, int argc, char **argv) {
    bool is_lasting = argc > 0;
    for (int i = 0; i < argc; i++) {
        is_lasting = is_lasting && !is_passing(argv[i]);
    }
    if (!is_lasting) {
        return hx_config_command(config);
    }
    json_t *words = json_pack("[s]", "dmbench");
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);
        json_array_append_new(words, word ? word : json_string("(not UTF-8)"));
    }
    return words;
}

static json_t *sources_object(const struct hx_config *config) {
    json_t *names = json_pack("{s:s, s:s}", "transport", config->run.transport, "index", config->run.index);
    json_t *sources = hx_sources_new(names);
    json_decref(names);
    return sources;
}

static double seconds_of(const struct timeval *time) {
    return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

/* What the system counted of this process: a busy thread that gives up its core unasked was disturbed. */
static json_t *counters_object(const struct rusage *usage) {
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I}", "user_s", seconds_of(&usage->ru_utime), "system_s",
                     seconds_of(&usage->ru_stime), "voluntary_switches", (json_int_t)usage->ru_nvcsw,
                     "involuntary_switches", (json_int_t)usage->ru_nivcsw, "minor_faults", (json_int_t)usage->ru_minflt,
                     "major_faults", (json_int_t)usage->ru_majflt);
}

/* The machine, and the time and memory that the run took there. */
static json_t *host_object(const struct hx_measured *measured) {
    struct utsname system;
    struct rusage usage;
    char cpu[LINE_BYTES];
    if (uname(&system) != 0) {
        memset(&system, 0, sizeof(system));
    }
    getrusage(RUSAGE_SELF, &usage);
    cpu_model(cpu, sizeof(cpu));
    const struct hx_host_times *times = &measured->host;
    json_t *host = json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:I}", "name", system.nodename, "kernel",
                             system.release, "cpu", cpu, "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "keys_s",
                             times->keys_s, "setup_s", times->setup_s, "load_s", times->load_s, "run_s", times->run_s,
                             "wall_s", times->wall_s, "peak_rss_bytes", (json_int_t)usage.ru_maxrss * 1024);
    if (host && !measured->is_virtual) {
        json_object_set_new(host, "noise", hx_noise_json(&measured->noise));
        json_object_set_new(host, "counters", counters_object(&usage));
    }
    if (host && measured->is_virtual) {
        json_object_set_new(host, "load_cpu_s", json_real(times->load_cpu_s));
        json_object_set_new(host, "run_cpu_s", json_real(times->run_cpu_s));
    }
    if (host && measured->is_virtual && times->run_s > 0) {
        json_object_set_new(host, "simulated_ops_per_s", json_real((double)measured->totals.drawn / times->run_s));
        json_object_set_new(host, "simulated_verbs_per_s", json_real((double)measured->totals.verbs / times->run_s));
    }
    return host;
}

json_t *hx_provenance_new(const struct hx_config *config, const struct hx_measured *measured, int argc, char **argv) {
    char finished[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(finished, sizeof(finished), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *profile = json_null();
    if (config->profile_hash[0]) {
        profile = json_pack("{s:s, s:s}", "name", config->run.profile, "hash", config->profile_hash);
    }
    return json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:s, s:o}", "version", DM_VERSION, "revision", revision,
                     "sources", sources_object(config), "compiler", compiler_name(), "build_type", DM_BUILD_TYPE,
                     "sanitizer", DM_SANITIZE, "profile", profile, "command_line", command_line(config, argc, argv),
                     "finished_at", finished, "host", host_object(measured));
}
