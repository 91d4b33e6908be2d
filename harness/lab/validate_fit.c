/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-benchmarks of one fabric as a table, and a profile fitted to them.
 *
 * What is fitted: message rates, the time that an atomic holds its unit, link bandwidth, and latency. The model's idle
 * latency is a sum of parts that measurements cannot distinguish, so the difference from the base profile's is
 * distributed over the parts in a fixed order, and no part becomes negative.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/lab/validate.h"
#include "transport/core/profile.h"

struct row {
    const char *what;
    struct hx_micro micro;
};

#define VERBS(kind, size) .verb = DM_VERB_##kind, .bytes = (size)
#define ATOMICS(kind)                                                                                                  \
    { VERBS(kind, 8), .machines = 8, .threads = 16, .coroutines = 4, .addresses = 8192, .stride = 8 }
#define ALL(kind, size)                                                                                                \
    { VERBS(kind, size), .machines = 8, .threads = 16, .coroutines = 4, .addresses = 8192, .stride = 64 }
static const struct row rows[] = {
    {"READ, idle", {VERBS(READ, 8)}},
    {"READ, idle", {VERBS(READ, 64)}},
    {"READ, idle", {VERBS(READ, 256)}},
    {"READ, idle", {VERBS(READ, 1024)}},
    {"READ, idle", {VERBS(READ, 4096)}},
    {"READ, idle", {VERBS(READ, 65536)}},
    {"WRITE, idle", {VERBS(WRITE, 8)}},
    {"WRITE, idle", {VERBS(WRITE, 64)}},
    {"WRITE, idle", {VERBS(WRITE, 256)}},
    {"WRITE, idle", {VERBS(WRITE, 1024)}},
    {"WRITE, idle", {VERBS(WRITE, 4096)}},
    {"WRITE, idle", {VERBS(WRITE, 65536)}},
    {"CAS, idle", {VERBS(CAS, 8)}},
    {"FAA, idle", {VERBS(FAA, 8)}},
    {"call, idle", {.kind = HX_MICRO_CALL, .bytes = 8}},
    {"call, idle", {.kind = HX_MICRO_CALL, .bytes = 1024}},
    {"READ, 1 machine", {VERBS(READ, 64), .threads = 16, .coroutines = 4}},
    {"READ, 2 machines", {VERBS(READ, 64), .machines = 2, .threads = 16, .coroutines = 4}},
    {"READ, 4 machines", {VERBS(READ, 64), .machines = 4, .threads = 16, .coroutines = 4}},
    {"READ, 8 machines", ALL(READ, 64)},
    {"READ, 8 machines", {VERBS(READ, 1024), .machines = 8, .threads = 16, .coroutines = 4}},
    {"WRITE, 8 machines", ALL(WRITE, 64)},
    {"CAS on distinct words", ATOMICS(CAS)},
    {"FAA on distinct words", ATOMICS(FAA)},
    {"CAS on one word", {VERBS(CAS, 8), .machines = 8, .threads = 16, .addresses = 1, .stride = 8}},
    {"CAS 256 B apart",
     {VERBS(CAS, 8), .machines = 8, .threads = 16, .own_address = true, .addresses = 128, .stride = 256}},
    {"CAS 4 KB apart",
     {VERBS(CAS, 8), .machines = 8, .threads = 16, .own_address = true, .addresses = 128, .stride = 4096}},
    {"CAS on one on-chip word",
     {VERBS(CAS, 8), .space = DM_CHIP, .machines = 8, .threads = 16, .addresses = 1, .stride = 8}},
    {"CAS on distinct on-chip words",
     {VERBS(CAS, 8), .space = DM_CHIP, .machines = 8, .threads = 16, .addresses = 1024, .stride = 8}},
    {"READ, batches of 4", {VERBS(READ, 64), .batch = 4, .threads = 8}},
    {"READ, batches of 16", {VERBS(READ, 64), .batch = 16, .threads = 8}},
    {"WRITE, batches of 16", {VERBS(WRITE, 64), .batch = 16, .threads = 8}},
    {"READ, 1024 queue pairs", {VERBS(READ, 64), .machines = 16, .threads = 64}},
    {"READ, 4096 queue pairs", {VERBS(READ, 64), .machines = 32, .threads = 128}},
    {"call, 1 core", {.kind = HX_MICRO_CALL, .bytes = 64, .machines = 4, .threads = 16}},
    {"call, 4 cores", {.kind = HX_MICRO_CALL, .bytes = 64, .machines = 4, .threads = 16, .mn_cores = 4}},
};

static unsigned clients_of(const struct hx_micro *micro) {
    return (micro->machines ? micro->machines : 1) * (micro->threads ? micro->threads : 1) *
           (micro->coroutines ? micro->coroutines : 1);
}

int hx_micro_table(const struct hx_micro_fabric *fabric, json_t **table, struct dm_err *err) {
    *table = json_array();
    for (size_t i = 0; i < DM_ARRAY_LEN(rows); i++) {
        struct hx_micro_result result;
        int rc = hx_micro_run(fabric, &rows[i].micro, &result, err);
        if (rc == DM_ERR_UNSUPPORTED) {
            continue; /* a device without that memory */
        }
        if (rc < 0) {
            json_decref(*table);
            *table = NULL;
            return dm_fail_in(err, rc, "%s, %u B", rows[i].what, rows[i].micro.bytes);
        }
        json_array_append_new(*table, json_pack("{s:s, s:i, s:i, s:i, s:f, s:f}", "what", rows[i].what, "bytes",
                                                (int)rows[i].micro.bytes, "clients", (int)clients_of(&rows[i].micro),
                                                "batch", (int)(rows[i].micro.batch ? rows[i].micro.batch : 1), "mops",
                                                result.mops, "latency_us", result.latency_us));
    }
    return 0;
}

/* ---- fitting ---------------------------------------------------------------------------------------------------- */

int hx_profile_write(const char *path, const char *base, const char *summary, const char *source, json_t *numbers,
                     struct dm_err *err) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *suffix = strstr(file, ".json");
    char title[64];
    snprintf(title, sizeof(title), "%.*s", (int)(suffix ? suffix - file : (long)strlen(file)), file);
    json_t *parameters = json_object();
    const char *name;
    json_t *number;
    json_object_foreach(numbers, name, number) {
        json_object_set_new(parameters, name,
                            json_pack("{s:O, s:s, s:s}", "value", number, "source", source, "confidence", "m"));
    }
    json_t *top = json_pack("{s:i, s:s, s:s, s:s, s:o}", "schema_version", 1, "name", title, "summary", summary,
                            "inherits", base, "parameters", parameters);
    int rc = top ? dm_json_store(top, path, err) : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    json_decref(top);
    return rc;
}

struct fitting {
    const struct hx_micro_fabric *fabric;
    json_t *numbers;
};

static int measure(const struct hx_micro_fabric *fabric, struct hx_micro micro, struct hx_micro_result *result,
                   struct dm_err *err) {
    return hx_micro_run(fabric, &micro, result, err);
}

static void put(struct fitting *fitting, const char *name, double value, double least, double most) {
    value = value < least ? least : value > most ? most : value;
    json_object_set_new(fitting->numbers, name, json_real(round(value * 100) / 100));
}

static int fit_rates(struct fitting *fitting, struct dm_err *err) {
    static const struct {
        const char *rx, *tx;
        struct hx_micro all, one;
    } rates[] = {
        {"rx_read_mops", "tx_read_mops", ALL(READ, 8), {VERBS(READ, 8), .threads = 16, .coroutines = 8}},
        {"rx_write_mops", "tx_write_mops", ALL(WRITE, 8), {VERBS(WRITE, 8), .threads = 16, .coroutines = 8}},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(rates); i++) {
        struct hx_micro_result all, one;
        DM_TRY(measure(fitting->fabric, rates[i].all, &all, err));
        DM_TRY(measure(fitting->fabric, rates[i].one, &one, err));
        put(fitting, rates[i].rx, all.mops > one.mops ? all.mops : one.mops, 0.1, 10000);
        put(fitting, rates[i].tx, one.mops, 0.1, 10000);
    }
    return 0;
}

/* Atomics of several machines, or of one, on distinct words of a memory. */
static int atomic_rate(struct fitting *fitting, enum dm_space space, unsigned machines, double *mops,
                       struct dm_err *err) {
    struct hx_micro micro = ATOMICS(FAA);
    struct hx_micro_result result = {0};
    micro.space = space;
    micro.machines = machines;
    int rc = measure(fitting->fabric, micro, &result, err);
    *mops = result.mops;
    return rc;
}

/* How many atomics a NIC has in progress is their rate on host memory times the time of one. The rate at which it takes
 * them is measured on on-chip memory, where they take less time, if the device has any. */
static int fit_atomics(struct fitting *fitting, struct dm_err *err) {
    struct hx_micro one_word = {VERBS(FAA, 8), .machines = 4, .threads = 16, .addresses = 1, .stride = 8};
    struct hx_micro_result word;
    double all = 0, one = 0, chip_all = 0, chip_one = 0;
    DM_TRY(measure(fitting->fabric, one_word, &word, err));
    DM_TRY(atomic_rate(fitting, DM_DRAM, 8, &all, err));
    DM_TRY(atomic_rate(fitting, DM_DRAM, 1, &one, err));
    put(fitting, "atomic_hold_dram_ns", 1e3 / word.mops, 1, 1e5);
    put(fitting, "atomics_in_progress", round(all / word.mops), 1, 65536);
    one_word.space = DM_CHIP;
    int rc = measure(fitting->fabric, one_word, &word, err);
    if (rc == 0) {
        put(fitting, "atomic_hold_chip_ns", 1e3 / word.mops, 1, 1e5);
        rc = atomic_rate(fitting, DM_CHIP, 8, &chip_all, err);
        rc = rc < 0 ? rc : atomic_rate(fitting, DM_CHIP, 1, &chip_one, err);
    }
    put(fitting, "rx_atomic_mops", fmax(fmax(all, one), chip_all), 0.1, 10000);
    put(fitting, "tx_atomic_mops", fmax(one, chip_one), 0.1, 10000);
    return rc == DM_ERR_UNSUPPORTED ? 0 : rc;
}

static int fit_link(struct fitting *fitting, const struct dm_profile *base, struct dm_err *err) {
    struct hx_micro_result result;
    struct hx_micro bulk = {VERBS(WRITE, 65536), .machines = 2, .threads = 4, .count = 4000};
    DM_TRY(measure(fitting->fabric, bulk, &result, err));
    double gbits = result.mops * 65536 * 8 / 1e3 * (base->mtu + base->header_bytes) / base->mtu;
    put(fitting, "link_gbps", gbits, 1, 3200);
    return 0;
}

/* The difference of an idle READ here from that of the base profile's model. An atomic holds its unit for a PCIe read
 * at least, so that is no longer than what was measured for the atomic. */
static int fit_latency(struct fitting *fitting, const char *base_name, const struct dm_profile *base,
                       struct dm_err *err) {
    const struct hx_micro_fabric model = {.transport = "sim", .profile = base_name, .seed = 1, .is_virtual = true};
    struct hx_micro_result here, there;
    struct hx_micro read = {VERBS(READ, 64), .count = 4000};
    DM_TRY(measure(fitting->fabric, read, &here, err));
    DM_TRY(measure(&model, read, &there, err));
    double hold = json_real_value(json_object_get(fitting->numbers, "atomic_hold_dram_ns"));
    double pcie_read = base->pcie_read_ns < hold ? base->pcie_read_ns : hold;
    double difference = (here.latency_us - there.latency_us) * 1e3 + base->pcie_read_ns - pcie_read;
    put(fitting, "pcie_read_ns", floor(pcie_read * 100) / 100, 0, hold);
    const struct {
        const char *name;
        double now, times, most;
    } parts[] = {
        {"nic_fixed_ns", base->nic_fixed_ns, 4, 5000},
        {"propagation_ns", base->propagation_ns, 2, 5000},
        {"pcie_read_ns", pcie_read, 1, hold},
        {"mmio_ns", base->mmio_ns, 1, 5000},
        {"pcie_write_ns", base->pcie_write_ns, 1, 5000},
        {"cpu_post_ns", base->cpu_post_ns, 1, 5000},
        {"cpu_doorbell_ns", base->cpu_doorbell_ns, 1, 5000},
        {"cpu_completion_ns", base->cpu_completion_ns, 1, 5000},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(parts) && fabs(difference) > 0.5; i++) {
        double wanted = parts[i].now + difference / parts[i].times, value = wanted > 0 ? wanted : 0;
        value = value < parts[i].most ? value : parts[i].most;
        put(fitting, parts[i].name, value, 0, parts[i].most);
        difference -= (value - parts[i].now) * parts[i].times;
    }
    return 0;
}

int hx_fit(const struct hx_micro_fabric *fabric, const char *base_name, const char *path, struct dm_err *err) {
    struct dm_profile base;
    DM_TRY(dm_profile_load(base_name, &base, err));
    struct fitting fitting = {fabric, json_object()};
    int rc = fitting.numbers ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    rc = rc < 0 ? rc : fit_rates(&fitting, err);
    rc = rc < 0 ? rc : fit_atomics(&fitting, err);
    rc = rc < 0 ? rc : fit_link(&fitting, &base, err);
    rc = rc < 0 ? rc : fit_latency(&fitting, base_name, &base, err);
    if (rc == 0) {
        char summary[160];
        snprintf(summary, sizeof(summary), "fitted by dmbench validate to transport %s%s%s", fabric->transport,
                 fabric->profile ? " with profile " : "", fabric->profile ? fabric->profile : "");
        rc = hx_profile_write(path, base_name, summary, "measured by dmbench validate --fit", fitting.numbers, err);
    }
    json_decref(fitting.numbers);
    return rc;
}
