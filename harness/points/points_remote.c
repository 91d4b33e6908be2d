/* SPDX-License-Identifier: Apache-2.0
 *
 * Points on many machines that share the folder of results and the program's path: through GNU parallel, or as a script
 * for Slurm. Specs go to <out>/specs/<hash>.json, results to <out>/points/<hash>.json as for local runs, so that the
 * next run does what was not finished.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/base/errors.h"
#include "harness/base/interrupts.h"
#include "harness/points/points.h"
#include "harness/points/points_remote.h"

enum { TASKS_MAX = 1000, ARGUMENT_BYTES = 32, EXIT_NOT_THERE = 127 }; /* Slurm's arrays have 1001 tasks by default */

struct remote {
    struct hx_points *points;
    const size_t *order;
    size_t count;
    char folder[PATH_MAX];                /* <out>/specs, absolute */
    char results[PATH_MAX];               /* <out>/points, absolute */
    char list[PATH_MAX + ARGUMENT_BYTES]; /* in the folder: the points' names, a line each */
    char program[PATH_MAX];
};

/* Paths go into a shell's single quotes. */
static int check_path(const char *path, struct dm_err *err) {
    return strpbrk(path, "'\n") == NULL
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s: a path with ' or a line break cannot be given to a shell", path);
}

static int absolute(const char *out, const char *name, char path[PATH_MAX], struct dm_err *err) {
    char *relative = hx_path_join(out, name);
    int rc = relative == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path") : hx_make_folder(relative, err);
    if (rc == 0 && realpath(relative, path) == NULL) {
        rc = dm_fail(err, DM_ERR_IO, "%s: %s", relative, strerror(errno));
    }
    free(relative);
    return rc < 0 ? rc : check_path(path, err);
}

static int find_program(const char *given, char path[PATH_MAX], struct dm_err *err) {
    if (realpath(given != NULL ? given : "/proc/self/exe", path) == NULL) {
        return dm_fail(err, DM_ERR_IO, "cannot find the program's own path: %s", strerror(errno));
    }
    return check_path(path, err);
}

/* An implied size of memory nodes is left to the program that runs the spec: another version may reckon another size,
 * and the point is the same. */
static int store_spec(const struct hx_point *point, const char *path, struct dm_err *err) {
    json_t *spec = json_copy(point->config);
    if (spec == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a spec");
    }
    if (point->is_memory_implied) {
        json_object_del(spec, "mn_memory");
    }
    int rc = dm_json_store(spec, path, err);
    json_decref(spec);
    return rc;
}

/* The list's name follows from the points: a script of Slurm reads it when its tasks run, and that may be after other
 * points of this folder have got a script. */
static void name_list(struct remote *remote) {
    uint64_t all = 0;
    for (size_t i = 0; i < remote->count; i++) {
        const char *hash = remote->points->items[remote->order[i]].hash;
        all = XXH3_64bits_withSeed(hash, strlen(hash), all);
    }
    snprintf(remote->list, sizeof(remote->list), "%s/list.%016" PRIx64, remote->folder, all);
}

/* One spec a point, and the list of their names, longest first. */
static int write_specs(const struct remote *remote, struct dm_err *err) {
    char path[PATH_MAX + ARGUMENT_BYTES];
    for (size_t i = 0; i < remote->count; i++) {
        const struct hx_point *point = &remote->points->items[remote->order[i]];
        snprintf(path, sizeof(path), "%s/%s.json", remote->folder, point->hash);
        DM_TRY(store_spec(point, path, err));
    }
    FILE *list = dm_output_open(remote->list, err);
    if (list == NULL) {
        return err->code;
    }
    for (size_t i = 0; i < remote->count; i++) {
        fprintf(list, "%s\n", remote->points->items[remote->order[i]].hash);
    }
    return dm_output_close(list, remote->list, err);
}

static int prepare(struct remote *remote, struct hx_points *points, const struct hx_points_options *options,
                   const size_t *order, size_t count, struct dm_err *err) {
    remote->points = points;
    remote->order = order;
    remote->count = count;
    DM_TRY(absolute(points->out, "specs", remote->folder, err));
    DM_TRY(absolute(points->out, "points", remote->results, err));
    DM_TRY(find_program(options->program, remote->program, err));
    name_list(remote);
    return write_specs(remote, err);
}

/* ---- GNU parallel ----------------------------------------------------------------------------------------------- */

static void parallel_exec(const struct remote *remote, const struct hx_points_options *options, pid_t parent) {
    char jobs[ARGUMENT_BYTES], *command = NULL;
    if (options->jobs > 0) {
        snprintf(jobs, sizeof(jobs), "%" PRIu64, options->jobs);
    } else {
        snprintf(jobs, sizeof(jobs), "100%%");
    }
    if (asprintf(&command, "'%s' run '%s'/{}.json --out '%s'/{}.json --quiet --partial=off >'%s'/{}.txt 2>&1",
                 remote->program, remote->folder, remote->results, remote->folder) < 0) {
        _exit(HX_FAILED);
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(HX_INTERRUPTED);
    }
    /* GNU parallel prints its line with the remaining time only on a terminal. */
    char *quiet = isatty(STDERR_FILENO) ? (char *)"--eta" : (char *)"--will-cite";
    execlp("parallel", "parallel", "--will-cite", "--sshloginfile", options->sshloginfile, "--jobs", jobs, "--termseq",
           "INT,1000,KILL,25", "--arg-file", remote->list, quiet, command, (char *)NULL);
    _exit(EXIT_NOT_THERE);
}

/* The last line of the messages of a failed point. */
static void report_failure(const struct remote *remote, struct hx_point *point) {
    char path[PATH_MAX + ARGUMENT_BYTES], line[sizeof(point->error)];
    snprintf(path, sizeof(path), "%s/%s.txt", remote->folder, point->hash);
    snprintf(point->error, sizeof(point->error), "no result, and no message in %.300s", path);
    FILE *in = fopen(path, "r");
    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(point->error, sizeof(point->error), "%s", line);
    }
    if (in != NULL) {
        fclose(in);
    }
    point->state = HX_POINT_FAILED;
    fprintf(stderr, "dmbench: point %s (%s): %s\n", point->label, point->hash, point->error);
}

/* Whether the point's result was written after the list. */
static bool is_new(const struct remote *remote, const struct hx_point *point) {
    char path[PATH_MAX + ARGUMENT_BYTES];
    struct stat list, result;
    snprintf(path, sizeof(path), "%s/%s.json", remote->results, point->hash);
    return stat(remote->list, &list) == 0 && stat(path, &result) == 0 &&
           (result.st_mtim.tv_sec > list.st_mtim.tv_sec ||
            (result.st_mtim.tv_sec == list.st_mtim.tv_sec && result.st_mtim.tv_nsec > list.st_mtim.tv_nsec));
}

/* With `force` the results that were there before do not count. */
static int report_results(const struct remote *remote, bool force, bool stopped) {
    size_t done = 0;
    for (size_t i = 0; i < remote->count; i++) {
        struct hx_point *point = &remote->points->items[remote->order[i]];
        json_t *result =
            force && !is_new(remote, point) ? NULL : hx_points_load(remote->points, remote->order[i], NULL);
        point->state = result != NULL ? HX_POINT_THERE : HX_POINT_ABSENT;
        done += result != NULL;
        if (result == NULL && !stopped) {
            report_failure(remote, point);
        }
        json_decref(result);
    }
    if (stopped) {
        fprintf(stderr, "interrupted: %zu of %zu points done; run it again to continue\n", done, remote->count);
        return HX_INTERRUPTED;
    }
    fprintf(stderr, "%zu of %zu points done\n", done, remote->count);
    return done == remote->count ? HX_DONE : HX_FAILED;
}

/* Waits for parallel; passes a signal on to it once. Returns its status as of waitpid, -1 where waiting failed. */
static int parallel_wait(pid_t pid, const sigset_t *signals, bool *stopped) {
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct timespec timeout = {.tv_nsec = 200000000};
        int signal_number = sigtimedwait(signals, NULL, &timeout);
        if (signal_number > 0 && signal_number != SIGCHLD) {
            /* The first TERM lets running jobs end, the second one ends them. */
            kill(pid, SIGTERM);
            kill(pid, SIGTERM);
            *stopped = true;
        }
    }
    return status;
}

static int run_parallel(const struct remote *remote, const struct hx_points_options *options, struct dm_err *err) {
    sigset_t signals, old;
    bool stopped = false;
    hx_interrupts(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &old);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        sigprocmask(SIG_SETMASK, &old, NULL);
        parallel_exec(remote, options, parent);
    }
    int status = pid > 0 ? parallel_wait(pid, &signals, &stopped) : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (pid < 0) {
        return dm_fail(err, DM_ERR_IO, "cannot start a process: %s", strerror(errno));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_THERE) {
        return dm_fail(err, DM_ERR_UNSUPPORTED,
                       "--sshloginfile: GNU parallel is not installed (Debian package parallel)");
    }
    return report_results(remote, options->force, stopped);
}

/* ---- Slurm ------------------------------------------------------------------------------------------------------ */

static uint64_t largest_memory(const struct remote *remote) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < remote->count; i++) {
        const struct hx_point *point = &remote->points->items[remote->order[i]];
        bytes = point->memory_bytes > bytes ? point->memory_bytes : bytes;
    }
    return bytes;
}

/* What the array's tasks are given. In real time a task has a machine to itself. */
static void write_demands(const struct remote *remote, const struct hx_points_options *options, size_t tasks,
                          FILE *out) {
    unsigned threads = hx_points_real_threads(remote->points, remote->order, remote->count);
    fprintf(out, "#SBATCH --job-name=dmbench\n#SBATCH --array=1-%zu", tasks);
    if (options->jobs > 0) {
        fprintf(out, "%%%" PRIu64, options->jobs);
    }
    fprintf(out, "\n#SBATCH --cpus-per-task=%u\n%s#SBATCH --mem=%lluM\n#SBATCH --output='", threads > 0 ? threads : 1,
            threads > 0 ? "#SBATCH --exclusive\n" : "", (unsigned long long)largest_memory(remote) / 1000000 + 100);
    for (const char *at = remote->folder; *at != '\0'; at++) {
        fputc(*at, out);
        if (*at == '%') {
            fputc('%', out); /* a single one begins a pattern of Slurm's */
        }
    }
    fprintf(out, "/slurm-%%a.txt'\n");
}

/* Task i of T runs lines i, i + T, ... of the list: arrays are limited, lists are not. Without points one task does
 * nothing. */
static int write_slurm(const struct remote *remote, const struct hx_points_options *options, struct dm_err *err) {
    size_t tasks = remote->count == 0 ? 1 : remote->count < TASKS_MAX ? remote->count : TASKS_MAX;
    FILE *out = dm_output_open(options->slurm, err);
    if (out == NULL) {
        return err->code;
    }
    fprintf(out, "#!/bin/sh\n");
    write_demands(remote, options, tasks, out);
    fprintf(out,
            "# %zu points. Submit it with sbatch; afterwards run the command that wrote it again, without --slurm.\n"
            "status=0\n"
            "line=${SLURM_ARRAY_TASK_ID:?is set by Slurm: submit this with sbatch}\n"
            "while [ \"$line\" -le %zu ]; do\n"
            "    point=$(sed -n \"${line}p\" '%s')\n"
            "    [ -n \"$(find '%s'/\"$point.json\" -newer '%s' 2>/dev/null)\" ] ||\n"
            "        '%s' run '%s'/\"$point.json\" --out '%s'/\"$point.json\" --quiet --partial=off || status=$?\n"
            "    line=$((line + %zu))\n"
            "done\nexit \"$status\"\n",
            remote->count, remote->count, remote->list, remote->results, remote->list, remote->program, remote->folder,
            remote->results, tasks);
    DM_TRY(dm_output_close(out, options->slurm, err));
    fprintf(stderr, "%zu points in %s: submit it with sbatch, then run this again without --slurm\n", remote->count,
            options->slurm);
    return HX_DONE;
}

int hx_points_run_remote(struct hx_points *points, const struct hx_points_options *options, const size_t *order,
                         size_t count, struct dm_err *err) {
    struct remote *remote = calloc(1, sizeof(*remote));
    int rc = remote == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for %zu points", count)
                            : prepare(remote, points, options, order, count, err);
    if (rc == 0) {
        rc = options->slurm != NULL && options->slurm[0] != '\0' ? write_slurm(remote, options, err)
                                                                 : run_parallel(remote, options, err);
    }
    free(remote);
    return rc;
}
