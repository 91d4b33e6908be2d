/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a workload. An empty string or a zero stands for the named workload's own value.
 */
#include "workloads/workload.h"

#define ROW(member, ...) DM_OPT_ROW(struct wl_config, member, __VA_ARGS__)

const struct dm_opt wl_options[] = {
    ROW(workload, DM_OPT_STRING, .values = "workloads", .initial = "a",
        .help = "A named workload (a to f, load, or a paper's mix) or a YCSB property file."),
    ROW(properties, DM_OPT_STRING,
        .help = "YCSB properties that override those of the workload: name=value,name=value."),
    ROW(mix, DM_OPT_STRING,
        .help = "Shares of read, update, insert, scan, rmw and delete, as in read=0.5,update=0.5; must sum to 1."),
    ROW(distribution, DM_OPT_STRING,
        .help = "How keys are chosen: uniform, zipfian (scrambled), latest, hotspot, exponential, sequential, "
                "zipfian_clustered, zipfian_hashed, prod1, prod2, prod2_fixed."),
    ROW(theta, DM_OPT_REAL, .initial = "0", .max = 1.0, .symbol = "theta",
        .help = "Skew of the Zipfian, above 0 and below 1; 0 stands for the workload's own, 0.99."),
    ROW(insert_order, DM_OPT_STRING,
        .help =
            "hashed (keys are spread over 63 bits, or a key set is shuffled) or ordered (the key is the key number)."),
    ROW(scan_min, DM_OPT_COUNT, .initial = "0", .unit = "keys",
        .help = "The shortest scan; 0 stands for the workload's own."),
    ROW(scan_max, DM_OPT_COUNT, .initial = "0", .unit = "keys",
        .help = "The longest scan; 0 stands for the workload's own."),
    ROW(scan_distribution, DM_OPT_STRING, .help = "Lengths of scans: uniform or zipfian."),
    ROW(keys, DM_OPT_COUNT, .initial = "0", .max = 1e12, .unit = "keys",
        .help = "Keys loaded before the run, or from which a share is loaded; unless given, the workload's own, or all "
                "keys of a file."),
    ROW(loaded, DM_OPT_REAL, .initial = "0", .max = 1.0,
        .help = "Share of the keys that is loaded, above 0 and at most 1; the others can be chosen but are absent; 0 "
                "stands for the workload's own, 1."),
    ROW(upserts, DM_OPT_STRING,
        .help = "on: an update of an absent key inserts it, an insert of a present one updates it, and each is counted "
                "as what it was. off: they find what they find."),
    ROW(insert_ranges, DM_OPT_STRING,
        .help = "shared: all clients together insert consecutive key numbers; client: each client inserts into a range "
                "of its own."),
    ROW(trace_ops_per_client, DM_OPT_COUNT, .initial = "0", .unit = "operations",
        .help = "Each client repeats its first so many operations (its inserts with new keys); 0: no repetition."),
    ROW(key_set, DM_OPT_STRING,
        .help = "Keys to load: dense, grown (dense once the run has inserted its share), folded (hashes modulo the "
                "number of keys), uniform, normal, lognormal, linear_noise, sosd:FILE or raw:FILE; if empty, the "
                "workload or insert_order decides."),
    ROW(trace, DM_OPT_STRING, .values = "file",
        .help = "A Twitter cache trace (CSV, or compressed with zstd) instead of a mix and a distribution."),
    ROW(lenient, DM_OPT_BOOL, .initial = "false",
        .help = "Skip and count a trace's malformed lines instead of failing."),
    ROW(replay, DM_OPT_STRING, .values = "file",
        .help = "A file of recorded operations, which are run again one by one."),
    DM_OPT_END,
};
