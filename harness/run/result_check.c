/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of a result that was read from a file.
 */
#include "harness/run/result_check.h"

#include <math.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/run/config.h"

/* Of rounding: the throughput and the duration are printed with 17 digits. */
static const double tolerance = 1e-6;

static const json_t *measured_phase(const json_t *result) {
    const json_t *phase;
    size_t at;
    json_array_foreach(json_object_get(result, "phases"), at, phase) {
        const char *name = json_string_value(json_object_get(phase, "name"));
        if (name != NULL && strcmp(name, "measure") == 0) {
            return phase;
        }
    }
    return NULL;
}

/* Not more operations succeeded than were measured. */
static int throughput_check(const json_t *result, const char *path, struct dm_err *err) {
    const json_t *value = json_object_get(result, "throughput_ops_per_s"), *phase = measured_phase(result);
    if (value == NULL) {
        return 0;
    }
    if (!json_is_number(value)) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: throughput_ops_per_s is not a number", path);
    }
    double throughput = json_number_value(value);
    const json_t *duration = json_object_get(phase, "duration_s"), *operations = json_object_get(phase, "operations");
    bool is_known = json_is_number(duration) && json_is_number(operations);
    double most = is_known ? json_number_value(operations) * (1 + tolerance) : INFINITY;
    double succeeded = is_known ? throughput * json_number_value(duration) : throughput;
    if (!isfinite(throughput) || throughput < 0 || !(succeeded <= most)) {
        return dm_fail(err, DM_ERR_CORRUPT,
                       "%s: throughput_ops_per_s is %g, which its measured operations do not allow", path, throughput);
    }
    return 0;
}

static int hash_check(const json_t *result, const char *path, struct dm_err *err) {
    const json_t *config = json_object_get(result, "config"), *stated = json_object_get(result, "config_hash");
    if (stated == NULL || json_object_get(result, "provenance") == NULL) {
        return 0;
    }
    const char *profile = json_string_value(hx_json_find(result, "provenance.profile.hash"));
    const char *hash = json_string_value(stated);
    if (!json_is_string(stated) || !json_is_object(config)) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: config_hash is no text, or config no object", path);
    }
    return hx_config_has_hash(config, profile, true, hash) || hx_config_has_hash(config, profile, false, hash)
               ? 0
               : dm_fail(err, DM_ERR_CORRUPT,
                         "%s: config_hash is '%.20s', but the configuration beside it has another: it was altered",
                         path, hash);
}

int hx_result_check(const json_t *result, const char *path, struct dm_err *err) {
    if (json_is_true(json_object_get(result, "is_partial"))) {
        return dm_fail(err, DM_ERR_CORRUPT, "%s: is partial: its run was interrupted", path);
    }
    DM_TRY(throughput_check(result, path, err));
    return hash_check(result, path, err);
}
