/* SPDX-License-Identifier: Apache-2.0
 *
 * The named workloads: YCSB's, which are property files, and the papers' own mixes. The same letter names different
 * mixes in different papers, so each paper's version carries the paper's name. The default is a million keys for all of
 * them; the summaries state the papers' counts, which users set with `keys`. README.md has where each comes from.
 */
#include "workloads/spec.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/compiler.h"
#include "common/data_folder.h"

const struct wl_name wl_names[] = {
    {"a", "YCSB A: 50 read, 50 update, zipfian"},
    {"b", "YCSB B: 95 read, 5 update, zipfian"},
    {"c", "YCSB C: read only, zipfian"},
    {"d", "YCSB D: 95 read, 5 insert, latest"},
    {"e", "YCSB E: 95 scan of up to 100, 5 insert, zipfian"},
    {"f", "YCSB F: 50 read, 50 read-modify-write, zipfian"},
    {"load", "insert only, after `keys` keys were loaded"},
    {"rolex_f", "ROLEX F as its traces count it, a modification as a read and an update: 2/3 read, 1/3 update, "
                "zipfian; 10 M keys"},
    {"xstore_a", "XStore A: 50 read, 50 update, zipfian; paper: 100 M keys, 8 B values"},
    {"xstore_b", "XStore B: 90 read, 10 update (not 95:5), zipfian; paper: 100 M keys, 8 B values"},
    {"xstore_c", "XStore C: read only, zipfian; paper: 100 M keys, 8 B values"},
    {"xstore_d", "XStore D: 95 read, 5 insert, latest; paper: 100 M keys, 8 B values"},
    {"xstore_e", "XStore E: 95 scan of 1..100, 5 insert, uniform; paper: 100 M keys, 8 B values"},
    {"xstore_f", "XStore F: 50 read, 50 read-modify-write, zipfian; paper: 100 M keys, 8 B values"},
    {"chime_d", "CHIME D: 95 read, 5 insert, latest; each client inserts a range; paper: 60 M keys, 8 B values"},
    {"chime_e", "CHIME E: as E on keys in order, each client inserts a range; paper: 60 M keys, 8 B values"},
    {"chime_load", "CHIME LOAD: insert only; paper: 5 M keys loaded, 120 M inserted, 8 B values"},
    {"chime_skew", "CHIME's skew sweep: 50 read, 50 upsert, Zipfian over folded keys with `theta`, a fifth of them "
                   "loaded; paper: 62.9 M keys, 8 B values"},
    {"sherman_bench",
     "Sherman's own benchmark: 50 read, 50 upsert, uniform over folded keys, 0.8 of them loaded; code: "
     "67.1 M keys, 8 B values"},
    {"dolphin_a", "Dolphin A: 50 read, 50 update, zipfian; paper: 512 M keys, 8 B values"},
    {"dolphin_c", "Dolphin C: read only, zipfian; paper: 512 M keys, 8 B values"},
    {"dolphin_load", "Dolphin LOAD: inserts between the keys of a set that is dense in the end; paper: 512 M keys, 8 B "
                     "values"},
    {"dolphin_range_only", "Dolphin range-only: scans of 100, uniform; paper: 512 M keys, 8 B values"},
    {"dolphin_range_write", "Dolphin range-write: 50 scan of 100, 50 insert between the keys, uniform; paper: 512 M "
                            "keys, 8 B values"},
    {"hstore_put", "HStore's db_bench PUT: insert only; paper: 16 B keys, 32 B values, 20 M operations"},
    {"hstore_get", "HStore's db_bench GET: read only, uniform; paper: 100 M keys of 16 B, 32 B values"},
    {"hstore_scan", "HStore's db_bench SCAN: scans of 100, uniform; paper: 100 M keys of 16 B, 32 B values"},
    {"prod1", "Nutanix Prod1: 57 update, 41 read, 2 scan, near-uniform; XStore paper: 500 M keys, 64 B values"},
    {"prod2", "Nutanix Prod2 as the published code runs it: uniform over the first 9.4 % of the keys; 64 B values"},
    {"prod2_fixed", "Nutanix Prod2 as its table says: skewed; XStore paper: 500 M keys, 64 B values"},
    {NULL, NULL},
};

/* The named workloads that are not property files. */
struct preset {
    const char *name;
    double share[WL_OP_KIND_COUNT];
    enum wl_dist dist;
    bool ordered;
    uint64_t scan_min, scan_max;
    const char *key_set; /* NULL: none of its own */
    double loaded;       /* 0: all keys */
    bool upserts, client_ranges;
};
#define HALF_UPDATES                                                                                                   \
    { [WL_GET] = 0.5, [WL_UPDATE] = 0.5 }
static const struct preset presets[] = {
    {"rolex_f", {[WL_GET] = 2.0 / 3, [WL_UPDATE] = 1.0 / 3}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"xstore_a", {[WL_GET] = 0.5, [WL_UPDATE] = 0.5}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"xstore_b", {[WL_GET] = 0.9, [WL_UPDATE] = 0.1}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"xstore_c", {[WL_GET] = 1.0}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"xstore_d", {[WL_GET] = 0.95, [WL_INSERT] = 0.05}, WL_DIST_LATEST, false, .scan_min = 1, .scan_max = 100},
    {"xstore_e", {[WL_SCAN] = 0.95, [WL_INSERT] = 0.05}, WL_DIST_UNIFORM, false, .scan_min = 1, .scan_max = 100},
    {"xstore_f", {[WL_GET] = 0.5, [WL_RMW] = 0.5}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"chime_d",
     {[WL_GET] = 0.95, [WL_INSERT] = 0.05},
     WL_DIST_LATEST,
     false,
     .scan_min = 1,
     .scan_max = 100,
     .client_ranges = true},
    {"chime_e",
     {[WL_SCAN] = 0.95, [WL_INSERT] = 0.05},
     WL_DIST_ZIPFIAN,
     true,
     .scan_min = 1,
     .scan_max = 100,
     .client_ranges = true},
    {"chime_load", {[WL_INSERT] = 1.0}, WL_DIST_UNIFORM, false, .scan_min = 1, .scan_max = 100, .client_ranges = true},
    {"chime_skew", HALF_UPDATES, WL_DIST_ZIPFIAN_HASHED, false, .scan_min = 1, .scan_max = 100, .key_set = "folded",
     .loaded = 0.2, .upserts = true},
    {"sherman_bench", HALF_UPDATES, WL_DIST_UNIFORM, false, .scan_min = 1, .scan_max = 100, .key_set = "folded",
     .loaded = 0.8, .upserts = true},
    {"dolphin_a", {[WL_GET] = 0.5, [WL_UPDATE] = 0.5}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"dolphin_c", {[WL_GET] = 1.0}, WL_DIST_ZIPFIAN, false, .scan_min = 1, .scan_max = 100},
    {"dolphin_load", {[WL_INSERT] = 1.0}, WL_DIST_UNIFORM, false, .scan_min = 1, .scan_max = 100, .key_set = "grown"},
    {"dolphin_range_only",
     {[WL_SCAN] = 1.0},
     WL_DIST_UNIFORM,
     false,
     .scan_min = 100,
     .scan_max = 100,
     .key_set = "dense"},
    {"dolphin_range_write",
     {[WL_SCAN] = 0.5, [WL_INSERT] = 0.5},
     WL_DIST_UNIFORM,
     false,
     .scan_min = 100,
     .scan_max = 100,
     .key_set = "grown"},
    {"hstore_put", {[WL_INSERT] = 1.0}, WL_DIST_UNIFORM, false, .scan_min = 1, .scan_max = 100},
    {"hstore_get", {[WL_GET] = 1.0}, WL_DIST_UNIFORM, false, .scan_min = 1, .scan_max = 100},
    {"hstore_scan", {[WL_SCAN] = 1.0}, WL_DIST_UNIFORM, false, .scan_min = 100, .scan_max = 100},
    {"prod1",
     {[WL_UPDATE] = 0.57, [WL_GET] = 0.41, [WL_SCAN] = 0.02},
     WL_DIST_PROD1,
     true,
     .scan_min = 1,
     .scan_max = 99},
    {"prod2",
     {[WL_UPDATE] = 0.57, [WL_GET] = 0.41, [WL_SCAN] = 0.02},
     WL_DIST_PROD2,
     true,
     .scan_min = 1,
     .scan_max = 99},
    {"prod2_fixed",
     {[WL_UPDATE] = 0.57, [WL_GET] = 0.41, [WL_SCAN] = 0.02},
     WL_DIST_PROD2_FIXED,
     true,
     .scan_min = 1,
     .scan_max = 99},
};

static const uint64_t PRESET_RECORD_COUNT = 1000000;

static const struct preset *preset_find(const char *name) {
    for (size_t i = 0; i < DM_ARRAY_LEN(presets); i++) {
        if (strcmp(name, presets[i].name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}

const char *wl_spec_named_key_set(const char *name) {
    const struct preset *preset = preset_find(name);
    return preset != NULL && preset->key_set != NULL ? preset->key_set : "";
}

static int preset_apply(struct wl_spec *spec, const char *name) {
    const struct preset *preset = preset_find(name);
    if (preset == NULL) {
        return DM_NOT_FOUND;
    }
    memcpy(spec->share, preset->share, sizeof spec->share);
    spec->dist = preset->dist;
    spec->ordered = preset->ordered;
    spec->scan_min = preset->scan_min;
    spec->scan_max = preset->scan_max;
    spec->record_count = PRESET_RECORD_COUNT;
    spec->key_set = wl_spec_named_key_set(name);
    spec->loaded = preset->loaded > 0.0 ? preset->loaded : 1.0;
    spec->upserts = preset->upserts;
    spec->client_ranges = preset->client_ranges;
    return 0;
}

int wl_spec_apply_name(struct wl_spec *spec, const char *name, struct dm_err *err) {
    const char *names[DM_ARRAY_LEN(wl_names) - 1];
    for (size_t i = 0; i < DM_ARRAY_LEN(names); i++) {
        names[i] = wl_names[i].name;
    }
    struct stat status;
    if (wl_name_index(name, names, DM_ARRAY_LEN(names)) == DM_ARRAY_LEN(names)) {
        if (strpbrk(name, "/.") != NULL || stat(name, &status) == 0) {
            return wl_spec_apply_file(spec, name, err);
        }
        return wl_fail_name(err, "workload", name, names, DM_ARRAY_LEN(names));
    }
    if (preset_apply(spec, name) == 0) {
        return 0;
    }
    char file[128], path[4096];
    snprintf(file, sizeof file, "workloads/ycsb/%s.properties", name);
    dm_data_path(file, path, sizeof path);
    return wl_spec_apply_file(spec, path, err);
}
