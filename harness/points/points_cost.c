/* SPDX-License-Identifier: Apache-2.0
 *
 * What a point will cost in time and memory.
 */
#include "harness/points/points_cost.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/data_folder.h"
#include "common/opt_json.h"
#include "harness/run/options.h"

enum { PATH_BYTES = 4096 };

#define PROCESS_BYTES   (32.0 * 1024 * 1024)
#define OTHERWISE_BYTES 200.0 /* a key, where nothing is known of an index */
#define OTHERWISE_S     2e-6  /* an operation or a key, likewise */
#define TRAINING_S      1e-6  /* a key of a training */
#define TRAINING_BYTES  64.0

/* ---- quantities, as in scripts/costs.py ---------------------------------------------------------------------------
 */

static double number(const json_t *config, const char *name) {
    return json_number_value(json_object_get(config, name));
}

/* The share of a kind in "read=0.5,update=0.5". */
static double mix_share(const json_t *config, const char *kind) {
    const char *mix = json_string_value(json_object_get(config, "mix"));
    size_t length = strlen(kind);
    for (const char *part = mix; part != NULL && *part != '\0';) {
        if (strncmp(part, kind, length) == 0 && part[length] == '=') {
            return strtod(part + length + 1, NULL);
        }
        part = strchr(part, ',');
        part = part != NULL ? part + 1 : NULL;
    }
    return 0;
}

static double operations(const json_t *config) {
    return number(config, "ops") + number(config, "warmup");
}

/* Operations of the warm-up that do not meet the model of the network. */
static double untimed(const json_t *config) {
    double timed = number(config, "timed_warmup");
    double samples = number(config, "warmup_samples") * HX_SAMPLE_OPS * number(config, "clients");
    double left = number(config, "warmup") - timed - samples;
    return timed > 0 && left > 0 ? left : 0;
}

/* An untimed operation counts as `share` of one. A delete counts as an update: few results have any. */
static double quantity(const json_t *config, const char *name, double share) {
    double keys = number(config, "keys"), ops = operations(config), counted = ops - (1 - share) * untimed(config);
    if (strcmp(name, "start") == 0) {
        return 1;
    }
    if (strcmp(name, "key") == 0) {
        return keys;
    }
    if (strcmp(name, "client") == 0) {
        return number(config, "clients");
    }
    if (strcmp(name, "value_byte") == 0) {
        return keys * number(config, "value_size");
    }
    if (strcmp(name, "cache_byte") == 0) {
        double all = keys * (number(config, "value_size") + number(config, "key_size"));
        double cache = number(config, "cache");
        return number(config, "cns") * (cache < all ? cache : all);
    }
    double per_scan = (number(config, "scan_min") + number(config, "scan_max")) / 2;
    if (strcmp(name, "scan_entry") == 0) {
        return counted * mix_share(config, "scan") * per_scan;
    }
    /* Without inserts an index may make what a bulk load stores when it is first read. */
    double reads = number(config, "load_reads");
    double wanted = reads + ops + ops * mix_share(config, "scan") * per_scan, touched = wanted < keys ? wanted : keys;
    if (strcmp(name, "touched") == 0) {
        return touched;
    }
    if (strcmp(name, "built") == 0) {
        return ops * mix_share(config, "insert") > 0 ? keys - touched : 0;
    }
    if (strcmp(name, "inserted") == 0) {
        return ops * mix_share(config, "insert");
    }
    if (strcmp(name, "update") == 0) {
        return counted * (mix_share(config, "update") + mix_share(config, "delete"));
    }
    return counted * mix_share(config, name) + (strcmp(name, "read") == 0 ? share * reads : 0);
}

static double sum(const json_t *costs, const char *what, const json_t *config) {
    const json_t *share = json_object_get(costs, "untimed");
    double total = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(costs, what), name, value) {
        total += json_number_value(value) * quantity(config, name, share != NULL ? json_number_value(share) : 1);
    }
    return total;
}

/* ---- one point ----------------------------------------------------------------------------------------------------
 */

/* plots/costs.json, read once; NULL where there is none. */
static const json_t *all_costs(void) {
    static json_t *costs;
    static bool is_read;
    if (!is_read) {
        char path[PATH_BYTES];
        dm_data_path("plots/costs.json", path, sizeof(path));
        costs = dm_json_load(path, NULL);
        is_read = true;
    }
    return costs;
}

/* Where costs.json has what was measured of a configuration, this replaces its sum. */
static void use_measured(const char *hash, const char *what, double *value) {
    const json_t *found = json_object_get(json_object_get(json_object_get(all_costs(), "points"), hash), what);
    if (found != NULL) {
        *value = json_number_value(found);
    }
}

void hx_cost_of(const json_t *config, const char *hash, struct hx_cost *cost) {
    const char *index = json_string_value(json_object_get(config, "index"));
    const json_t *costs = index != NULL ? json_object_get(all_costs(), index) : NULL;
    double keys = number(config, "keys"), ops = operations(config);
    if (index == NULL) {
        *cost = (struct hx_cost){.run_s = keys * TRAINING_S, .bytes = keys * TRAINING_BYTES + PROCESS_BYTES};
        return;
    }
    costs = costs != NULL ? costs : json_object_get(all_costs(), "other");
    if (costs == NULL) {
        *cost = (struct hx_cost){
            .load_s = keys * OTHERWISE_S, .run_s = ops * OTHERWISE_S, .bytes = keys * OTHERWISE_BYTES + PROCESS_BYTES};
        return;
    }
    *cost = (struct hx_cost){.load_s = sum(costs, "load_s", config),
                             .run_s = sum(costs, "run_s", config),
                             .bytes = sum(costs, "bytes", config) + PROCESS_BYTES};
    use_measured(hash, "load_s", &cost->load_s);
    use_measured(hash, "run_s", &cost->run_s);
    use_measured(hash, "bytes", &cost->bytes);
}
