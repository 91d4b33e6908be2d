/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the absent points of a set as child processes, several at once, limited by cores and memory. A child reads its
 * spec from a memory file and writes its result by rename, so that an interrupted child leaves no partial file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/errors.h"
#include "harness/base/interrupts.h"
#include "harness/base/progress.h"
#include "harness/points/points.h"
#include "harness/points/points_group.h"
#include "harness/points/points_host.h"
#include "harness/points/points_plan.h"
#include "harness/points/points_progress.h"
#include "harness/points/points_remote.h"
#include "harness/points/points_schedule.h"
#include "harness/run/noise.h"

#define NS_PER_S    UINT64_C(1000000000)
#define PATIENCE_NS NS_PER_S       /* between SIGINT and SIGKILL to a child */
#define POLL_NS     (NS_PER_S / 5) /* interval between updates of the progress line */
#define ERROR_MAX   ((size_t)400)  /* bytes of a child's message that are kept */

struct job {
    struct hx_schedule_job points; /* indexes into the runner's order */
    pid_t pid;
    int errors; /* memory file that is the child's stderr */
};

struct runner {
    struct hx_points *points;
    const struct hx_points_options *options;
    size_t *order; /* absent points, those of a group together; as hx_schedule_order leaves them */
    size_t order_count;
    size_t *group;      /* the size of the group that begins at an index of the order; 0 within a group */
    atomic_bool *taken; /* by index of the order: a group has its result; shared with the groups' processes */
    struct job *jobs;
    size_t job_count;
    struct hx_schedule schedule;
    sigset_t signals, old_signals;
    bool stopping;
    uint64_t kill_at_ns;
    size_t failed;
    struct hx_points_progress progress;
};

/* ---- a child ---------------------------------------------------------------------------------------------------- */

/* Only calls that are safe between fork and exec. */
static void child_streams(pid_t parent, int errors) {
    /* A group of its own: at a terminal Ctrl-C reaches this program alone, which then stops its children in order. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGINT);
    if (getppid() != parent) {
        _exit(HX_INTERRUPTED);
    }
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0) {
        _exit(HX_FAILED);
    }
}

/* As for this program, but that the child has no handlers, and heeds interrupts also where a shell had them ignored. */
static void child_signals(const struct runner *runner) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (sigismember(&runner->signals, SIGHUP) == 1) {
        signal(SIGHUP, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &runner->old_signals, NULL);
}

static void child_exec(const struct runner *runner, const char *program, char **arguments, int spec) {
    if (fcntl(spec, F_SETFD, 0) != 0) {
        _exit(HX_FAILED);
    }
    child_signals(runner);
    execv(program, arguments);
    dprintf(STDERR_FILENO, "cannot start %s: %s", program, strerror(errno));
    _exit(HX_FAILED);
}

/* A memory file that holds the spec, for the child to read as /proc/self/fd/N. -1 with errno. */
static int spec_open(const json_t *config) {
    int fd = memfd_create("spec", MFD_CLOEXEC);
    if (fd >= 0 && json_dumpfd(config, fd, 0) != 0) {
        close(fd);
        errno = ENOSPC;
        fd = -1;
    }
    return fd;
}

static void point_failed(struct runner *runner, size_t index, const char *why) {
    struct hx_point *point = &runner->points->items[index];
    point->state = HX_POINT_FAILED;
    snprintf(point->error, sizeof(point->error), "%s", why);
    runner->failed++;
    hx_points_progress_clear(&runner->progress);
    fprintf(stderr, "dmbench: point %s (%s): %s\n", point->label, point->hash, point->error);
}

static void job_failed(struct runner *runner, const struct job *job, const char *why) {
    for (size_t i = 0; i < job->points.count; i++) {
        point_failed(runner, runner->order[job->points.first + i], why);
    }
}

/* A single point in a program of its own. Returns the process or -1. */
static pid_t single_start(const struct runner *runner, size_t index, int errors) {
    const char *program = runner->options->program != NULL ? runner->options->program : "/proc/self/exe";
    const struct hx_point *point = &runner->points->items[index];
    char *file = hx_points_file(runner->points, index);
    int spec = spec_open(point->config);
    pid_t pid = -1;
    if (file != NULL && spec >= 0) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", spec);
        bool trains = hx_point_trains(point);
        char *command = trains ? (char *)"train" : (char *)"run", *out = trains ? (char *)"--result" : (char *)"--out";
        char *arguments[] = {(char *)"dmbench", command, path, out, file, NULL, NULL, NULL};
        if (!trains) {
            arguments[5] = (char *)"--quiet";
            arguments[6] = (char *)"--partial=off";
        }
        pid_t parent = getpid();
        pid = fork();
        if (pid == 0) {
            child_streams(parent, errors);
            child_exec(runner, program, arguments, spec);
        }
    }
    if (spec >= 0) {
        close(spec);
    }
    free(file);
    return pid;
}

/* Points that share a load, in a copy of this process. */
static pid_t group_start(const struct runner *runner, size_t first, size_t count, int errors) {
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        child_streams(parent, errors);
        child_signals(runner);
        _exit(hx_run_group(runner->points, runner->order + first, count, runner->taken + first));
    }
    return pid;
}

static void job_start(struct runner *runner, const struct hx_schedule_job *points) {
    struct job job = {.points = *points, .errors = memfd_create("errors", MFD_CLOEXEC)};
    char why[128];
    job.pid = job.errors < 0       ? -1
              : points->count == 1 ? single_start(runner, runner->order[points->first], job.errors)
                                   : group_start(runner, points->first, points->count, job.errors);
    if (job.pid < 0) {
        snprintf(why, sizeof(why), "cannot start a process: %s", strerror(errno));
        job_failed(runner, &job, why);
        hx_schedule_end(&runner->schedule, points);
        if (job.errors >= 0) {
            close(job.errors);
        }
        return;
    }
    setpgid(job.pid, job.pid);
    runner->jobs[runner->job_count++] = job;
}

/* The last line that the child wrote on stderr: its error, without the program's name in front. */
static void child_message(int fd, char message[ERROR_MAX]) {
    message[0] = '\0';
    off_t end = lseek(fd, 0, SEEK_END);
    off_t start = end > (off_t)ERROR_MAX - 1 ? end - ((off_t)ERROR_MAX - 1) : 0;
    ssize_t length = end > 0 ? pread(fd, message, (size_t)(end - start), start) : 0;
    length = length < 0 ? 0 : length;
    while (length > 0 && message[length - 1] == '\n') {
        length--;
    }
    message[length] = '\0';
    char *line = strrchr(message, '\n');
    line = line != NULL ? line + 1 : message;
    if (strncmp(line, "dmbench run: ", 13) == 0) {
        line += 13;
    }
    memmove(message, line, strlen(line) + 1);
}

/* A killed child cannot remove its temporary file. */
static void remove_partial(const struct runner *runner, const struct job *job) {
    char *file = hx_points_file(runner->points, runner->order[job->points.first]);
    char path[PATH_MAX];
    if (file != NULL && (size_t)snprintf(path, sizeof(path), "%s.tmp.%d", file, (int)job->pid) < sizeof(path)) {
        unlink(path);
    }
    free(file);
}

/* Why a job left a point without a result. */
static void failure_text(int status, const struct dm_err *err, char message[ERROR_MAX]) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == HX_DONE) {
        snprintf(message, ERROR_MAX, "%s", err->text);
    } else if (WIFSIGNALED(status)) {
        struct dm_err ended;
        hx_fail_signal(&ended, WTERMSIG(status));
        snprintf(message, ERROR_MAX, "%s", ended.text);
    } else if (message[0] == '\0') {
        snprintf(message, ERROR_MAX, "exit status %d without a message", WEXITSTATUS(status));
    }
}

/* A point has its result. */
static void point_done(struct runner *runner, struct hx_point *point) {
    if (point->state != HX_POINT_THERE) {
        point->state = HX_POINT_THERE;
        hx_points_progress_step(&runner->progress, point->cost);
    }
}

/* Whether a result that is there is the ended job's. An interrupt may arrive between a child's result and its exit, and
 * some points of a group may have failed; but where points with results are run again the old ones are still there. */
static bool result_counts(const struct runner *runner, const struct job *job, size_t at, bool done) {
    bool is_group = job->points.count > 1;
    if (runner->options->force) {
        return is_group ? atomic_load(&runner->taken[at]) : done;
    }
    return done || runner->stopping || is_group;
}

static void point_ended(struct runner *runner, const struct job *job, size_t at, int status, const char *said) {
    size_t index = runner->order[at];
    struct hx_point *point = &runner->points->items[index];
    char message[ERROR_MAX];
    struct dm_err err = {.text = ""};
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == HX_DONE;
    json_t *result = result_counts(runner, job, at, done) ? hx_points_load(runner->points, index, &err) : NULL;
    if (result != NULL) {
        json_decref(result);
        point_done(runner, point);
    } else if (runner->stopping) {
        point->state = HX_POINT_ABSENT;
    } else {
        snprintf(message, sizeof(message), "%s", said);
        failure_text(status, &err, message);
        point_failed(runner, index, message);
    }
}

static void job_ended(struct runner *runner, const struct job *job, int status) {
    char said[ERROR_MAX];
    child_message(job->errors, said);
    close(job->errors);
    remove_partial(runner, job);
    hx_schedule_end(&runner->schedule, &job->points);
    for (size_t i = 0; i < job->points.count; i++) {
        point_ended(runner, job, job->points.first + i, status, said);
    }
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static void jobs_reap(struct runner *runner) {
    for (size_t i = 0; i < runner->job_count;) {
        struct job job = runner->jobs[i];
        int status;
        if (waitpid(job.pid, &status, WNOHANG) == job.pid) {
            runner->jobs[i] = runner->jobs[--runner->job_count];
            job_ended(runner, &job, status);
        } else {
            i++;
        }
    }
}

static void jobs_signal(const struct runner *runner, int signal_number) {
    for (size_t i = 0; i < runner->job_count; i++) {
        kill(runner->jobs[i].pid, signal_number);
    }
}

static void jobs_fill(struct runner *runner) {
    struct hx_schedule_job points;
    while (!runner->stopping && hx_schedule_start(&runner->schedule, &points)) {
        job_start(runner, &points);
    }
}

static void wait_event(struct runner *runner) {
    struct timespec timeout = {.tv_nsec = (long)POLL_NS};
    int signal_number = sigtimedwait(&runner->signals, NULL, &timeout);
    if (signal_number > 0 && signal_number != SIGCHLD && !runner->stopping) {
        runner->stopping = true;
        runner->kill_at_ns = hx_host_ns() + PATIENCE_NS;
        jobs_signal(runner, SIGINT);
    }
    if (runner->stopping && hx_host_ns() >= runner->kill_at_ns) {
        jobs_signal(runner, SIGKILL);
    }
}

/* Points of groups that still run. */
static void taken_count(struct runner *runner) {
    for (size_t i = 0; i < runner->job_count; i++) {
        const struct job *job = &runner->jobs[i];
        for (size_t at = job->points.first; at < job->points.first + job->points.count; at++) {
            if (atomic_load(&runner->taken[at])) {
                point_done(runner, &runner->points->items[runner->order[at]]);
            }
        }
    }
}

static double running_cost(const struct runner *runner) {
    double cost = 0;
    for (size_t i = 0; i < runner->job_count; i++) {
        const struct hx_schedule_job *job = &runner->jobs[i].points;
        for (size_t at = job->first; at < job->first + job->count; at++) {
            const struct hx_point *point = &runner->points->items[runner->order[at]];
            cost += point->state == HX_POINT_THERE ? 0 : point->cost;
        }
    }
    return cost;
}

static void runner_loop(struct runner *runner) {
    jobs_fill(runner);
    while (runner->job_count > 0) {
        taken_count(runner);
        hx_points_progress_show(&runner->progress, runner->job_count, running_cost(runner));
        wait_event(runner);
        jobs_reap(runner);
        jobs_fill(runner);
    }
    hx_points_progress_clear(&runner->progress);
}

static int runner_init(struct runner *runner) {
    struct hx_points *points = runner->points;
    points->stale = runner->options->stale;
    hx_points_scan(points);
    if (points->stale == HX_STALE_ADOPT) {
        hx_points_adopt(points);
    }
    size_t jobs = hx_points_jobs(runner->options->jobs);
    runner->order = calloc(points->count + 1, sizeof(*runner->order));
    runner->group = calloc(points->count + 1, sizeof(*runner->group));
    runner->jobs = calloc(jobs, sizeof(*runner->jobs));
    void *taken = mmap(NULL, (points->count + 1) * sizeof(*runner->taken), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    runner->taken = taken != MAP_FAILED ? taken : NULL;
    if (runner->order == NULL || runner->group == NULL || runner->jobs == NULL || runner->taken == NULL) {
        return DM_ERR_NO_MEMORY;
    }
    struct hx_points_plan plan;
    hx_points_plan(points, runner->options, NULL, 0, &plan);
    double cost = 0;
    for (size_t i = 0; i < points->count; i++) {
        if (runner->options->force || points->items[i].state != HX_POINT_THERE) {
            points->items[i].state = HX_POINT_ABSENT;
            cost += points->items[i].cost;
            runner->order[runner->order_count++] = i;
        }
    }
    runner->schedule = (struct hx_schedule){
        .points = points,
        .order = runner->order,
        .group = runner->group,
        .count = runner->order_count,
        .job_limit = jobs,
        .memory_limit = hx_points_memory(),
    };
    hx_schedule_order(&runner->schedule, runner->options->program != NULL ? 0 : jobs);
    hx_points_progress_init(&runner->progress, runner->order_count, cost, plan.elapsed_s);
    return 0;
}

static int points_folder(const struct hx_points *points, struct dm_err *err) {
    const char *const names[] = {"points", "training"};
    int rc = 0;
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        char *folder = hx_path_join(points->out, names[i]);
        rc = folder == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path") : hx_make_folder(folder, err);
        if (rc == 0 && access(folder, W_OK | X_OK) != 0) {
            rc = dm_fail(err, DM_ERR_IO, "%s: cannot write there: %s", folder, strerror(errno));
        }
        free(folder);
    }
    return rc;
}

static unsigned real_time_threads(const struct runner *runner) {
    return hx_points_real_threads(runner->points, runner->order, runner->order_count);
}

static void print_plan(const struct runner *runner) {
    const struct hx_points *points = runner->points;
    size_t limit = runner->schedule.job_limit < runner->order_count ? runner->schedule.job_limit : runner->order_count;
    char stale[48] = "";
    if (points->stale_count > 0) {
        static const char *const what[] = {[HX_STALE_KEEP] = "stale but kept",
                                           [HX_STALE_RUN] = "stale",
                                           [HX_STALE_ADOPT] = "adopted",
                                           [HX_STALE_LIST] = "stale"};
        snprintf(stale, sizeof(stale), ", %zu %s", points->stale_count, what[points->stale]);
    }
    fprintf(stderr, "%zu point%s: %zu there already%s, %zu to run, %zu at once%s\n", points->count,
            points->count == 1 ? "" : "s", points->count - runner->order_count, stale, runner->order_count, limit,
            real_time_threads(runner) > 0 && limit > 1 ? ", those in real time alone" : "");
    if (points->stale_count > 0 && points->stale == HX_STALE_RUN) {
        fprintf(stderr, "stale: other sources made these results; --stale list shows which, --stale keep uses them\n");
    }
}

static void noise_warn(const struct runner *runner) {
    unsigned threads = real_time_threads(runner);
    struct hx_noise noise;
    if (threads > 0) {
        hx_noise_look(&noise, threads);
        hx_noise_warn(&noise);
    }
}

static int report_end(const struct runner *runner) {
    char elapsed[32];
    hx_points_progress_elapsed(&runner->progress, elapsed, sizeof(elapsed));
    if (runner->stopping) {
        fprintf(stderr, "interrupted: %zu of %zu points done; run it again to continue\n", runner->progress.done,
                runner->order_count);
        return HX_INTERRUPTED;
    }
    if (runner->order_count > 0) {
        fprintf(stderr, "%zu point%s done in %s%s", runner->progress.done, runner->progress.done == 1 ? "" : "s",
                elapsed, runner->failed == 0 ? "\n" : "");
    }
    if (runner->failed > 0) {
        fprintf(stderr, ", %zu failed\n", runner->failed);
        return HX_FAILED;
    }
    return HX_DONE;
}

static bool is_remote(const struct hx_points_options *options) {
    return (options->sshloginfile != NULL && options->sshloginfile[0] != '\0') ||
           (options->slurm != NULL && options->slurm[0] != '\0');
}

/* Runs points on other machines, except trainings. Returns 0 when all of them have results, else the exit status. */
static int run_remote(struct runner *runner) {
    struct hx_points_options own = *runner->options, *options = &own;
    struct dm_err err = {.text = ""};
    own.jobs = real_time_threads(runner) > 0 ? 1 : own.jobs;
    size_t *order = calloc(runner->order_count + 1, sizeof(*order)), runs = 0, trainings = 0;
    if (order == NULL) {
        fprintf(stderr, "dmbench: no memory for %zu points\n", runner->order_count);
        return HX_FAILED;
    }
    for (size_t i = 0; i < runner->order_count; i++) {
        if (hx_point_trains(&runner->points->items[runner->order[i]])) {
            runner->order[trainings] = runner->order[i];
            runner->group[trainings++] = 1;
        } else {
            order[runs++] = runner->order[i];
        }
    }
    bool has_script = options->slurm != NULL && options->slurm[0] != '\0';
    runner->order_count = has_script ? 0 : trainings;
    int status = runs > 0 || has_script ? hx_points_run_remote(runner->points, options, order, runs, &err) : HX_DONE;
    if (status < 0) {
        fprintf(stderr, "dmbench: %s\n", err.text);
        status = HX_FAILED;
    }
    free(order);
    return status;
}

/* Blocks signals: the loop receives them and stops its children in order. This is done before the run prints or writes
 * anything, so that a process that observes the run can already stop it; a shell starts background jobs with interrupts
 * ignored. */
static void signals_hold(struct runner *runner) {
    hx_interrupts(&runner->signals);
    sigaddset(&runner->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &runner->signals, &runner->old_signals);
}

static void signals_release(const struct runner *runner) {
    sigprocmask(SIG_SETMASK, &runner->old_signals, NULL);
}

static int run_held(struct runner *runner) {
    struct dm_err err = {.text = ""};
    if (points_folder(runner->points, &err) < 0) {
        fprintf(stderr, "dmbench: %s\n", err.text);
        return HX_FAILED;
    }
    if (runner_init(runner) < 0) {
        fprintf(stderr, "dmbench: no memory for %zu points\n", runner->points->count);
        return HX_FAILED;
    }
    print_plan(runner);
    if (runner->options->no_run) {
        return HX_DONE;
    }
    if (is_remote(runner->options)) {
        signals_release(runner); /* the group blocks them itself */
        int status = run_remote(runner);
        if (status != HX_DONE || runner->order_count == 0) {
            return status;
        }
        signals_hold(runner);
    }
    runner->schedule.count = runner->order_count;
    if (hx_schedule_open(&runner->schedule) < 0) {
        fprintf(stderr, "dmbench: no memory for %zu points\n", runner->order_count);
        return HX_FAILED;
    }
    noise_warn(runner);
    runner_loop(runner);
    hx_schedule_close(&runner->schedule);
    return report_end(runner);
}

int hx_points_run(struct hx_points *points, const struct hx_points_options *options) {
    struct runner runner = {.points = points, .options = options};
    signals_hold(&runner);
    int status = run_held(&runner);
    signals_release(&runner);
    if (runner.taken != NULL) {
        munmap(runner.taken, (points->count + 1) * sizeof(*runner.taken));
    }
    free(runner.order);
    free(runner.group);
    free(runner.jobs);
    return status;
}
