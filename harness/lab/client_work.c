/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock that stops and goes costs time itself, and so does each call that charges, posts or commits: all are
 * measured first, on a context that does nothing else, and subtracted for every part, charge, verb and batch. What a
 * client's posting costs is no charge of an index but the profile's cpu_post and cpu_doorbell.
 *
 * A client on a NIC polls while it waits. Here something else runs meanwhile, and what it evicts is measured as time of
 * the index: over shared memory a call wakes a thread of the called node, with the operating system between them, and
 * on the simulated network the simulator runs between two parts of every operation. So each operation is measured on
 * both, and the lesser time counts: one-sided verbs over shared memory cost a copy in the same thread, and calls on the
 * simulated network a switch of contexts.
 *
 * Whatever else runs on the host makes index code and work units slower alike, but not always at the same time. So each
 * round measures the units anew, then every index, and of the ratios of all rounds the median counts.
 */
#include "harness/lab/client_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "harness/lab/validate.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/driver.h"

enum { ROUNDS_MAX = 32, EMPTY_PARTS = 20000, BATCHES = 2000, BATCH_VERBS = 8, CALIBRATIONS = 9, INDEXES_MAX = 32 };

/* What the measurement itself takes, in ns. */
struct overhead {
    double part, charge, verb, batch;
};

/* One operation of one index in one round. */
struct sample {
    uint64_t count;
    double charged_ns, real_ns;
};

struct round_samples {
    struct sample ops[WL_OP_KIND_COUNT];
};

/* ---- the overhead of measuring ---------------------------------------------------------------------------------- */

/* The time of a batch of so many READs, in index code alone. */
static double batch_ns(struct dm_ctx *ctx, void *buffer, unsigned verbs, double part) {
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    dm_code_begin(ctx);
    for (unsigned i = 0; i < BATCHES; i++) {
        for (unsigned verb = 0; verb < verbs; verb++) {
            dm_post_read(ctx, dm_addr_make(0, DM_DRAM, 0), buffer, DM_LINE);
        }
        (void)dm_commit(ctx);
    }
    dm_code_end(ctx);
    dm_account_use(ctx, NULL);
    return fmax((double)account.code_ns - (double)account.code_parts * part, 0) / BATCHES;
}

static void calibrate_main(struct dm_ctx *ctx, void *arg) {
    struct overhead *least = arg;
    void *buffer = dm_local_alloc(ctx, DM_LINE);
    double one = 1e9, many = 1e9;
    *least = (struct overhead){.part = 1e9, .charge = 1e9};
    for (unsigned round = 0; round < CALIBRATIONS; round++) {
        struct dm_account parts = {0}, charges = {0};
        dm_account_use(ctx, &parts);
        for (unsigned i = 0; i < EMPTY_PARTS; i++) {
            dm_code_begin(ctx);
            dm_code_end(ctx);
        }
        dm_account_use(ctx, &charges);
        dm_code_begin(ctx);
        for (unsigned i = 0; i < EMPTY_PARTS; i++) {
            dm_charge(ctx, DM_WORK_HASH, 1);
        }
        dm_code_end(ctx);
        dm_account_use(ctx, NULL);
        double part = (double)parts.code_ns / EMPTY_PARTS, charge = (double)charges.code_ns / EMPTY_PARTS;
        least->part = part < least->part ? part : least->part;
        least->charge = charge < least->charge ? charge : least->charge;
    }
    for (unsigned round = 0; buffer && round < CALIBRATIONS; round++) {
        one = fmin(one, batch_ns(ctx, buffer, 1, least->part));
        many = fmin(many, batch_ns(ctx, buffer, BATCH_VERBS, least->part));
    }
    if (buffer) {
        least->verb = fmax(many - one, 0) / (BATCH_VERBS - 1);
        least->batch = fmax(one - least->verb, 0);
    }
}

static int calibrate(const char *transport, const char *profile, const struct dm_meter *meter,
                     struct overhead *overhead, struct dm_err *err) {
    bool takes_profile = dm_transport_find(transport)->caps & DM_CAP_PROFILE;
    const struct dm_fabric_config config = {
        .transport = transport,
        .profile = takes_profile ? profile : NULL,
        .seed = 1,
        .topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 1, .clients_per_thread = 1, .mn_bytes = 1 << 22}};
    struct dm_fabric *fabric = NULL;
    DM_TRY(dm_fabric_open(&config, &fabric, err));
    dm_fabric_measure(fabric);
    dm_fabric_meter(fabric, meter);
    int rc = dm_spawn(fabric, dm_first_cn(&config.topology), 0, calibrate_main, overhead);
    rc = rc < 0 ? dm_fail(err, rc, "cannot start a client") : dm_fabric_run(fabric, err);
    dm_fabric_close(fabric);
    return rc;
}

/* ---- one run of one index --------------------------------------------------------------------------------------- */

static int config_make(const struct hx_client_work *wanted, const char *transport, const struct ix_ops *index,
                       unsigned seed, struct hx_config **out, struct dm_err *err) {
    bool scans = index->caps & IX_CAP_SCAN;
    char keys[32], ops[32], text[16];
    snprintf(keys, sizeof(keys), "%llu", (unsigned long long)wanted->keys);
    snprintf(ops, sizeof(ops), "%llu", (unsigned long long)wanted->ops);
    snprintf(text, sizeof(text), "%u", seed);
    const char *const settings[][2] = {
        {"index", index->name},
        {"transport", transport},
        {"mix", scans ? "read=0.4,update=0.3,insert=0.2,scan=0.1" : "read=0.5,update=0.3,insert=0.2"},
        {"distribution", "uniform"},
        {"scan_min", "50"},
        {"scan_max", "50"},
        {"keys", keys},
        {"ops", ops},
        {"warmup", ops},
        {"clients", "1"},
        {"cache", "100MB"},
        {"seed", text},
    };
    *out = hx_config_new();
    int rc = *out ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; rc == 0 && i < DM_ARRAY_LEN(settings); i++) {
        rc = hx_config_set(*out, settings[i][0], settings[i][1], err);
    }
    return rc < 0 ? rc : hx_config_resolve(*out, err);
}

/* Keeps what took less time. */
static void samples_take(const struct hx_measured *measured, const struct overhead *overhead,
                         struct round_samples *into) {
    for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        const struct hx_op_stats *stats = &measured->totals.ops[kind];
        const struct dm_account *account = &stats->account;
        double count = (double)stats->count;
        if (count == 0) {
            continue;
        }
        double calls = (double)account->verbs[DM_VERB_CALL], verbs = 0;
        for (unsigned verb = 0; verb < DM_VERB_KIND_COUNT; verb++) {
            verbs += (double)account->verbs[verb];
        }
        double spent = (double)account->code_parts * overhead->part + (double)account->charges * overhead->charge +
                       (verbs - calls) * overhead->verb +
                       fmax((double)account->round_trips - calls, 0) * overhead->batch;
        struct sample sample = {.count = stats->count,
                                .charged_ns = (double)account->charged_ps / 1e3 / count,
                                .real_ns = ((double)account->code_ns - spent) / count};
        if (into->ops[kind].count == 0 || sample.real_ns < into->ops[kind].real_ns) {
            into->ops[kind] = sample;
        }
    }
}

static int index_run(const struct hx_client_work *wanted, const char *transport, const struct ix_ops *index,
                     const struct dm_meter *meter, const struct overhead *overhead, unsigned seed,
                     struct round_samples *into, struct dm_err *err) {
    struct hx_config *config = NULL;
    struct hx_measured *measured = NULL;
    int rc = config_make(wanted, transport, index, seed, &config, err);
    if (rc == 0) {
        config->meter = meter;
        rc = hx_measure(config, NULL, &measured, err);
    }
    if (rc == 0) {
        samples_take(measured, overhead, into);
    }
    hx_measured_free(measured);
    hx_config_close(config);
    return rc < 0 ? dm_fail_in(err, rc, "%s", index->name) : 0;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static double ratio_of(const struct sample *sample) {
    return sample->charged_ns / sample->real_ns;
}

static int ratio_compare(const void *one, const void *other) {
    double a = ratio_of(one), b = ratio_of(other);
    return (a > b) - (a < b);
}

/* The harness makes the value of an update and hands the operation to the index: what index null takes for the same
 * operation is not the index's. Charged and real time are of the round with the median ratio. */
static void rows_add(json_t *rows, const char *index, const struct round_samples *samples,
                     const struct round_samples *floors, unsigned rounds) {
    for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        struct sample own[ROUNDS_MAX];
        if (samples[0].ops[kind].count == 0) {
            continue;
        }
        for (unsigned i = 0; i < rounds; i++) {
            own[i] = samples[i].ops[kind];
            own[i].real_ns = fmax(own[i].real_ns - fmax(floors[i].ops[kind].real_ns, 0), 1);
        }
        qsort(own, rounds, sizeof(*own), ratio_compare);
        const struct sample *median = &own[(rounds - 1) / 2];
        double ratio = ratio_of(median);
        bool within = ratio >= HX_CLIENT_WORK_LOW && ratio <= HX_CLIENT_WORK_HIGH;
        json_array_append_new(rows, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:b}", "index", index, "op",
                                              wl_op_names[kind], "charged_ns", median->charged_ns, "real_ns",
                                              median->real_ns, "ratio", ratio, "ratio_least", ratio_of(&own[0]),
                                              "ratio_most", ratio_of(&own[rounds - 1]), "within", within));
    }
}

/* A meter by a profile of the measured costs, which is a file for as long as it is read. */
static int meter_open(const char *base, json_t *costs, struct dm_meter **meter, struct dm_err *err) {
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof(path), "%s/dmbench-cpu-%ld.json", folder ? folder : "/tmp", (long)getpid());
    int rc = hx_profile_write(path, base, "CPU work units of this host", "measured", costs, err);
    rc = rc < 0 ? rc : dm_meter_open(path, meter, err);
    unlink(path);
    return rc;
}

/* Every index once on the transport. */
static int indexes_run(const struct hx_client_work *wanted, const char *transport, const struct ix_ops *const *indexes,
                       size_t count, const struct dm_meter *meter, unsigned round,
                       struct round_samples (*samples)[ROUNDS_MAX], struct dm_err *err) {
    struct overhead overhead;
    DM_TRY(calibrate(transport, wanted->base, meter, &overhead, err));
    for (size_t i = 0; i < count; i++) {
        DM_TRY(index_run(wanted, transport, indexes[i], meter, &overhead, round + 1, &samples[i][round], err));
    }
    return 0;
}

/* One round: the work units, and on both transports what measuring itself takes, and each index. */
static int round_run(const struct hx_client_work *wanted, const struct ix_ops *const *indexes, size_t count,
                     unsigned round, struct round_samples (*samples)[ROUNDS_MAX], struct dm_err *err) {
    static const char *const transports[] = {"local", "sim"};
    json_t *costs = NULL;
    struct dm_meter *meter = NULL;
    if (round == 0) {
        costs = json_incref(wanted->costs);
    } else {
        DM_TRY(hx_cpu_costs(&costs, err));
    }
    int rc = meter_open(wanted->base, costs, &meter, err);
    for (size_t i = 0; rc == 0 && i < DM_ARRAY_LEN(transports); i++) {
        rc = indexes_run(wanted, transports[i], indexes, count, meter, round, samples, err);
    }
    dm_meter_close(meter);
    json_decref(costs);
    return rc;
}

static int indexes_choose(const char *name, const struct ix_ops **indexes, size_t *count, struct dm_err *err) {
    indexes[0] = ix_find("null");
    *count = 1;
    for (const struct ix_ops *const *all = ix_all(); *all && *count < INDEXES_MAX; all++) {
        bool is_wanted = name[0] == '\0' || strcmp(name, (*all)->name) == 0;
        if (is_wanted && !((*all)->caps & IX_CAP_NO_DATA)) {
            indexes[(*count)++] = *all;
        }
    }
    return *count > 1 ? 0 : dm_fail(err, DM_ERR_INVALID, "--index: there is no index '%.60s' that keeps data", name);
}

int hx_client_work_measure(const struct hx_client_work *wanted, json_t **rows, struct dm_err *err) {
    const struct ix_ops *indexes[INDEXES_MAX];
    size_t count;
    *rows = NULL;
    if (wanted->rounds == 0 || wanted->rounds > ROUNDS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "1 to %d rounds", ROUNDS_MAX);
    }
    DM_TRY(indexes_choose(wanted->index, indexes, &count, err));
    struct round_samples(*samples)[ROUNDS_MAX] = calloc(count, sizeof(*samples));
    int rc = samples ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    for (unsigned round = 0; rc == 0 && round < wanted->rounds; round++) {
        rc = round_run(wanted, indexes, count, round, samples, err);
    }
    if (rc == 0) {
        *rows = json_array();
        for (size_t i = 1; i < count; i++) {
            rows_add(*rows, indexes[i]->name, samples[i], samples[0], wanted->rounds);
        }
    }
    free(samples);
    return rc;
}
