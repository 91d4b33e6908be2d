/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributes the seeds of a campaign over processes or threads. Seeds below one that failed are still run, so that the
 * reported seed does not depend on their number. Child processes take the next seed from shared memory and write one
 * record per seed to a shared pipe; a record is short enough to be written atomically. A timer of a child's processor
 * time ends a seed that takes too long: its handler writes the record that reports the seed, and ends the child.
 */
#include "check/campaign.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check/team.h"

enum { JOBS_MAX = 256 };

/* Shared by all processes or threads. */
struct shared {
    _Atomic uint64_t taken; /* how many seeds have been taken */
    _Atomic uint64_t limit; /* the lowest seed that failed, or UINT64_MAX; seeds from it on are not begun */
};

struct record {
    uint64_t seed;
    int rc; /* < 0: the world could not be run, and `text` is the reason */
    enum ck_fault fault;
    bool is_endless;
    uint64_t operations;
    uint64_t counters[CK_COUNTERS_MAX];
    struct ix_rdwc_counts shared;
    char text[400];
};
static_assert(sizeof(struct record) <= PIPE_BUF, "a record must be written atomically");

/* One process or thread of a campaign. */
struct worker {
    const struct ck_campaign *campaign;
    struct shared *shared;
    uint64_t begin_ns;
    unsigned job;      /* its number, of a thread */
    uint64_t own;      /* how many seeds it has taken */
    bool in_real_time; /* runs cannot be repeated */
    struct ck_world *world;
};

static uint64_t host_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Takes the next seed to run; false when there is none. */
static bool seed_take(struct worker *worker, uint64_t *seed) {
    const struct ck_campaign *campaign = worker->campaign;
    if (campaign->time_ns > 0 && host_ns() - worker->begin_ns >= campaign->time_ns) {
        return false;
    }
    /* The other process of a team cannot know who takes which seed, unless that is fixed. */
    uint64_t number =
        campaign->teams ? worker->job + worker->own * campaign->jobs : atomic_fetch_add(&worker->shared->taken, 1);
    worker->own++;
    *seed = campaign->first_seed + number;
    return (campaign->seeds == 0 || number < campaign->seeds) && *seed < atomic_load(&worker->shared->limit);
}

static void limit_lower(struct shared *shared, uint64_t seed) {
    uint64_t limit = atomic_load(&shared->limit);
    while (seed < limit && !atomic_compare_exchange_weak(&shared->limit, &limit, seed)) {
    }
}

/* Draws the seed's world for this worker: with its team. */
static int seed_draw(const struct worker *worker, uint64_t seed, struct dm_err *err) {
    struct ck_request request = worker->campaign->request;
    request.team = worker->campaign->teams ? &worker->campaign->teams[worker->job] : NULL;
    return ck_world_draw(&request, seed, worker->world, err);
}

/* The caller calls ck_result_fini. */
static void seed_run(const struct worker *worker, uint64_t seed, struct record *record, struct ck_result *result) {
    struct dm_err err = {0};
    struct ck_part part;
    *record = (struct record){.seed = seed};
    *result = (struct ck_result){.is_virtual = false};
    record->rc = seed_draw(worker, seed, &err);
    if (record->rc == 0) {
        ck_part_all(worker->world, &part);
        worker->world->logs_verbs = worker->in_real_time;
        record->rc = ck_run(worker->world, &part, result, &err);
    }
    if (record->rc < 0) {
        snprintf(record->text, sizeof(record->text), "%s", err.text);
    } else {
        record->fault = result->verdict.fault;
        record->operations = result->history.op_count;
        memcpy(record->counters, result->counters, sizeof(record->counters));
        record->shared = result->shared;
        snprintf(record->text, sizeof(record->text), "%s", result->verdict.text);
    }
    if (record->rc < 0 || record->fault != CK_RIGHT) {
        limit_lower(worker->shared, seed);
    }
    ck_world_fini(worker->world);
}

/* ---- the summary ------------------------------------------------------------------------------------------------ */

struct totals {
    const struct ck_campaign *campaign;
    struct ck_summary *summary;
    uint64_t unrun_seed; /* the lowest seed whose world could not be run */
    int unrun_rc;
    char unrun_text[400];
};

static void record_add(struct totals *totals, const struct record *record) {
    struct ck_summary *summary = totals->summary;
    if (record->rc < 0) {
        if (totals->unrun_rc == 0 || record->seed < totals->unrun_seed) {
            totals->unrun_seed = record->seed;
            totals->unrun_rc = record->rc;
            memcpy(totals->unrun_text, record->text, sizeof(totals->unrun_text));
        }
        return;
    }
    summary->seeds++;
    if (totals->campaign->on_seed) {
        totals->campaign->on_seed(totals->campaign->arg, summary->seeds);
    }
    summary->operations += record->operations;
    for (size_t i = 0; i < CK_COUNTERS_MAX; i++) {
        summary->counters[i] += record->counters[i];
    }
    summary->shared.shared_gets += record->shared.shared_gets;
    summary->shared.shared_updates += record->shared.shared_updates;
    summary->shared.bypassed += record->shared.bypassed;
    if (record->fault != CK_RIGHT && (!summary->has_failed || record->seed < summary->failed_seed)) {
        summary->has_failed = true;
        summary->failed_seed = record->seed;
        summary->is_endless = record->is_endless;
        summary->verdict = (struct ck_verdict){.fault = record->fault, .op = CK_NO_OP};
        snprintf(summary->verdict.text, sizeof(summary->verdict.text), "%.290s", record->text);
    }
}

static int totals_close(const struct totals *totals, struct dm_err *err) {
    const struct ck_summary *summary = totals->summary;
    if (totals->unrun_rc < 0 && (!summary->has_failed || totals->unrun_seed < summary->failed_seed)) {
        return dm_fail(err, totals->unrun_rc, "seed %llu: %s", (unsigned long long)totals->unrun_seed,
                       totals->unrun_text);
    }
    return 0;
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

/* What the signal handler of a child reports: the current seed. */
static struct {
    struct record record;
    struct shared *shared;
    int out;
} late;

static void late_report(int number) {
    (void)number;
    limit_lower(late.shared, late.record.seed);
    _exit(write(late.out, &late.record, sizeof(late.record)) == (ssize_t)sizeof(late.record) ? 0 : 1);
}

/* The handler needs a stack of its own, because those of contexts are small. */
static void late_prepare(const struct worker *worker, int out) {
    static char stack[1 << 16];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = late_report, .sa_flags = SA_ONSTACK};
    late.shared = worker->shared;
    late.out = out;
    late.record = (struct record){.fault = CK_STUCK, .is_endless = true};
    snprintf(late.record.text, sizeof(late.record.text), "the run did not end within %.3g s of processor time",
             (double)worker->campaign->seed_time_ns * 1e-9);
    sigaltstack(&own, NULL);
    sigaction(SIGPROF, &action, NULL);
}

/* Starts the time of a seed; 0 stops it. */
static void late_set(uint64_t time_ns) {
    uint64_t us = (time_ns + 999) / 1000;
    const struct itimerval timer = {.it_value = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)}};
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void child_main(struct worker *worker, int out) {
    uint64_t seed;
    struct record record;
    struct ck_result result;
    late_prepare(worker, out);
    while (seed_take(worker, &seed)) {
        late.record.seed = seed;
        late_set(worker->campaign->seed_time_ns);
        seed_run(worker, seed, &record, &result);
        late_set(0);
        ck_result_fini(&result);
        if (write(out, &record, sizeof(record)) != (ssize_t)sizeof(record)) {
            _exit(1);
        }
    }
    _exit(0);
}

static int children_start(struct worker *worker, unsigned jobs, int out, pid_t *pids) {
    pid_t parent = getpid();
    for (unsigned i = 0; i < jobs; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)signal(SIGINT, SIG_IGN); /* the parent handles it; its end kills the children */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                _exit(1);
            }
            child_main(worker, out);
        }
        if (pids[i] < 0) {
            return (int)i;
        }
    }
    return (int)jobs;
}

/* Reads one complete record: 1, 0 at the end, < 0 if the pipe broke. */
static int record_read(int in, struct record *record) {
    size_t have = 0;
    while (have < sizeof(*record)) {
        ssize_t n = read(in, (char *)record + have, sizeof(*record) - have);
        if (n == 0) {
            return have == 0 ? 0 : -1;
        }
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return 1;
}

static int run_in_children(struct worker *worker, unsigned jobs, struct totals *totals, struct dm_err *err) {
    int ends[2];
    pid_t pids[JOBS_MAX];
    if (pipe(ends) != 0) {
        return dm_fail(err, DM_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    }
    (void)fflush(NULL); /* otherwise every child would write what is buffered */
    int started = children_start(worker, jobs, ends[1], pids);
    close(ends[1]);
    struct record record;
    while (record_read(ends[0], &record) > 0) {
        record_add(totals, &record);
    }
    close(ends[0]);
    bool is_complete = started == (int)jobs;
    for (int i = 0; i < started; i++) {
        int status = 0;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR) {
        }
        is_complete = is_complete && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return is_complete ? 0
                       : dm_fail(err, DM_ERR_IO,
                                 "a process of the check could not be started or died: try --jobs 1 --seed-time 0");
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

/* What the threads of a campaign share; the lock is of `totals` and `kept`. */
struct threads {
    struct worker first; /* what all workers have in common */
    pthread_mutex_t lock;
    struct totals *totals;
    struct ck_result *kept; /* of the lowest seed that failed */
    uint64_t kept_seed;
    uint64_t patience_ns; /* of those that serve */
};

/* One thread. */
struct job {
    struct threads *threads;
    struct worker worker;
    pthread_t thread;
    bool is_started;
    int rc; /* of a thread that serves */
    struct dm_err err;
};

static void result_take(struct threads *threads, const struct record *record, struct ck_result *result) {
    pthread_mutex_lock(&threads->lock);
    record_add(threads->totals, record);
    bool is_kept = threads->first.in_real_time && record->rc == 0 && record->fault != CK_RIGHT &&
                   record->seed < threads->kept_seed;
    if (is_kept) {
        ck_result_fini(threads->kept);
        *threads->kept = *result;
        threads->kept_seed = record->seed;
    }
    pthread_mutex_unlock(&threads->lock);
    if (!is_kept) {
        ck_result_fini(result);
    }
}

static void *run_main(void *arg) {
    struct job *job = arg;
    uint64_t seed;
    struct record record;
    struct ck_result result;
    while (seed_take(&job->worker, &seed)) {
        seed_run(&job->worker, seed, &record, &result);
        result_take(job->threads, &record, &result);
    }
    return NULL;
}

static void *serve_main(void *arg) {
    struct job *job = arg;
    struct worker *worker = &job->worker;
    const struct ck_team *team = &worker->campaign->teams[worker->job];
    uint64_t seed;
    while (job->rc == 0 && seed_take(worker, &seed)) {
        uint64_t patience_ns = team->worlds > 0 ? job->threads->patience_ns : 0;
        job->rc = seed_draw(worker, seed, &job->err);
        job->rc = job->rc < 0 ? job->rc : ck_serve(worker->world, patience_ns, &job->err);
        ck_world_fini(worker->world);
        if (job->rc < 0) {
            limit_lower(worker->shared, seed);
            job->rc = dm_fail_in(&job->err, job->rc, "seed %llu", (unsigned long long)seed);
        }
    }
    return NULL;
}

/* Runs `main` in all jobs, the first one in this thread. Returns the first failure of one that serves. */
static int threads_run(struct threads *threads, unsigned jobs, void *(*main)(void *), struct dm_err *err) {
    struct job *all = calloc(jobs, sizeof(*all));
    struct ck_world *worlds = calloc(jobs, sizeof(*worlds));
    int rc = all && worlds ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    pthread_mutex_init(&threads->lock, NULL);
    for (unsigned i = 0; rc == 0 && i < jobs; i++) {
        struct job *job = &all[i];
        *job = (struct job){.threads = threads, .worker = threads->first};
        job->worker.job = i;
        job->worker.world = &worlds[i];
        job->is_started = i > 0 && pthread_create(&job->thread, NULL, main, job) == 0;
        if (i > 0 && !job->is_started) {
            rc = dm_fail(err, DM_ERR_IO, "only %u of %u threads can be started: use fewer --jobs", i, jobs);
            limit_lower(threads->first.shared, 0); /* ends those that have been */
        }
    }
    if (rc == 0) {
        main(&all[0]);
    }
    for (unsigned i = 0; all && i < jobs; i++) {
        if (all[i].is_started) {
            pthread_join(all[i].thread, NULL);
        }
        if (rc == 0 && all[i].rc < 0) {
            *err = all[i].err;
            rc = all[i].rc;
        }
    }
    pthread_mutex_destroy(&threads->lock);
    free(all);
    free(worlds);
    return rc;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

static struct shared *shared_new(void) {
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return NULL;
    }
    atomic_init(&shared->taken, 0);
    atomic_init(&shared->limit, UINT64_MAX);
    return shared;
}

static int run_in_processes(struct worker *worker, unsigned jobs, struct totals *totals, struct dm_err *err) {
    worker->world = malloc(sizeof(*worker->world));
    if (!worker->world) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = run_in_children(worker, jobs, totals, err);
    free(worker->world);
    return rc;
}

static unsigned jobs_of(const struct ck_campaign *campaign) {
    return campaign->jobs < 1 ? 1 : campaign->jobs > JOBS_MAX ? JOBS_MAX : campaign->jobs;
}

int ck_campaign_run(const struct ck_campaign *campaign, struct ck_summary *summary, struct ck_result *kept,
                    struct dm_err *err) {
    *summary = (struct ck_summary){.seeds = 0};
    *kept = (struct ck_result){.is_virtual = false};
    bool is_virtual = dm_transport_find(campaign->request.transport)->caps & DM_CAP_VIRTUAL_TIME;
    unsigned jobs = jobs_of(campaign);
    struct totals totals = {.campaign = campaign, .summary = summary};
    struct worker worker = {
        .campaign = campaign, .begin_ns = host_ns(), .in_real_time = !is_virtual, .shared = shared_new()};
    if (!worker.shared) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    struct threads threads = {.first = worker, .totals = &totals, .kept = kept, .kept_seed = UINT64_MAX};
    bool is_here = !is_virtual || (jobs == 1 && campaign->seed_time_ns == 0);
    int rc = is_here ? threads_run(&threads, jobs, run_main, err) : run_in_processes(&worker, jobs, &totals, err);
    summary->host_s = (double)(host_ns() - worker.begin_ns) * 1e-9;
    munmap(worker.shared, sizeof(*worker.shared));
    return rc < 0 ? rc : totals_close(&totals, err);
}

int ck_campaign_serve(const struct ck_campaign *campaign, uint64_t patience_ns, struct dm_err *err) {
    struct threads threads = {
        .first = {.campaign = campaign, .begin_ns = host_ns(), .in_real_time = true, .shared = shared_new()},
        .patience_ns = patience_ns};
    if (!threads.first.shared) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = threads_run(&threads, jobs_of(campaign), serve_main, err);
    munmap(threads.first.shared, sizeof(*threads.first.shared));
    return rc;
}
