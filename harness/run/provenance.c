/* SPDX-License-Identifier: Apache-2.0
 *
 * Provenance. Reads the revision from the .git folder itself: a result must not depend on git being installed.
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
#include "harness/run/version.h"

enum { PATH_BYTES = 1024, LINE_BYTES = 512, REVISION_DIGITS = 40 };

/* The first line of a file without its line end; false if there is none. */
static bool read_line(const char *path, char *line, size_t capacity) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    bool is_there = fgets(line, (int)capacity, file) != NULL;
    fclose(file);
    if (is_there) {
        line[strcspn(line, "\r\n")] = '\0';
    }
    return is_there;
}

static bool is_revision(const char *text) {
    return strlen(text) >= REVISION_DIGITS && strspn(text, "0123456789abcdef") >= REVISION_DIGITS;
}

/* Searches packed-refs for a reference: lines of "<revision> <name>". */
static bool find_packed(const char *git, const char *name, char *revision, size_t capacity) {
    char path[2 * PATH_BYTES + 16], line[LINE_BYTES];
    snprintf(path, sizeof(path), "%s/packed-refs", git);
    FILE *file = fopen(path, "re");
    bool is_found = false;
    while (file && !is_found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\r\n")] = '\0';
        is_found = is_revision(line) && strcmp(line + REVISION_DIGITS + 1, name) == 0;
    }
    if (file) {
        fclose(file);
    }
    if (is_found) {
        snprintf(revision, capacity, "%.*s", REVISION_DIGITS, line);
    }
    return is_found;
}

/* The folder with HEAD: .git itself, or what a .git file of a work tree points to. */
static void find_git(char *git, size_t capacity) {
    char line[LINE_BYTES];
    snprintf(git, capacity, "%s/.git", DM_SOURCE_DIR);
    if (read_line(git, line, sizeof(line)) && strncmp(line, "gitdir: ", 8) == 0) {
        snprintf(git, capacity, "%s%s%s", line[8] == '/' ? "" : DM_SOURCE_DIR, line[8] == '/' ? "" : "/", line + 8);
    }
}

/* References of a work tree live in the repository that it belongs to. */
static void find_common(const char *git, char *common, size_t capacity) {
    char path[PATH_BYTES + 16], line[LINE_BYTES];
    snprintf(path, sizeof(path), "%s/commondir", git);
    if (read_line(path, line, sizeof(line))) {
        snprintf(common, capacity, "%s%s%s", line[0] == '/' ? "" : git, line[0] == '/' ? "" : "/", line);
    } else {
        snprintf(common, capacity, "%s", git);
    }
}

/* The commit of the source tree the program was built from, "unknown" where there is none. Returns text. */
static const char *source_revision(char *text, size_t capacity) {
    char git[PATH_BYTES], common[2 * PATH_BYTES], path[3 * PATH_BYTES], line[LINE_BYTES];
    find_git(git, sizeof(git));
    find_common(git, common, sizeof(common));
    snprintf(path, sizeof(path), "%s/HEAD", git);
    bool is_found = read_line(path, line, sizeof(line));
    if (is_found && strncmp(line, "ref: ", 5) == 0) {
        char name[LINE_BYTES];
        snprintf(name, sizeof(name), "%s", line + 5);
        snprintf(path, sizeof(path), "%s/%s", common, name);
        is_found = read_line(path, line, sizeof(line)) || find_packed(common, name, line, sizeof(line));
    }
    snprintf(text, capacity, "%.*s", REVISION_DIGITS, is_found && is_revision(line) ? line : "unknown");
    return text;
}

static const char *compiler_name(void) {
    /* clang's version text has its name; gcc's is only a number */
    return strchr(__VERSION__, 'l') ? __VERSION__ : "gcc " __VERSION__;
}

void hx_version_print(FILE *out) {
    char revision[REVISION_DIGITS + 1];
    fprintf(out, "dmbench %s (revision %.12s, %s, %s%s%s)\n", DM_VERSION, source_revision(revision, sizeof(revision)),
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

static json_t *command_line(int argc, char **argv) {
    json_t *words = json_array();
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);
        json_array_append_new(words, word ? word : json_string("(not UTF-8)"));
    }
    return words;
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
    if (host && measured->is_virtual && times->run_s > 0) {
        json_object_set_new(host, "simulated_ops_per_s", json_real((double)measured->totals.drawn / times->run_s));
        json_object_set_new(host, "simulated_verbs_per_s", json_real((double)measured->totals.verbs / times->run_s));
    }
    return host;
}

json_t *hx_provenance_new(const struct hx_config *config, const struct hx_measured *measured, int argc, char **argv) {
    char revision[REVISION_DIGITS + 1], finished[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(finished, sizeof(finished), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *profile = json_null();
    if (config->profile_hash[0]) {
        profile = json_pack("{s:s, s:s}", "name", config->run.profile, "hash", config->profile_hash);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:o}", "version", DM_VERSION, "revision",
                     source_revision(revision, sizeof(revision)), "compiler", compiler_name(), "build_type",
                     DM_BUILD_TYPE, "sanitizer", DM_SANITIZE, "profile", profile, "command_line",
                     command_line(argc, argv), "finished_at", finished, "host", host_object(measured));
}
