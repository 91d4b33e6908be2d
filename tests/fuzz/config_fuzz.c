/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations: any JSON is accepted or refused, and what an accepted one resolves to is accepted again.
 */
#include <string.h>

#include "common/opt_json.h"
#include "fuzz/fuzz_file.h"
#include "harness/run/config.h"

/* Whether the input may name files. Such inputs are not resolved: other targets fuzz the contents of files. */
static bool names_files(const uint8_t *data, size_t size) {
    return memchr(data, '/', size) || memchr(data, '.', size) || memchr(data, '\\', size);
}

static void again_check(const struct hx_config *config) {
    struct dm_err err;
    struct hx_config *again = hx_config_new();
    json_t *spec = hx_config_to_json(config);
    fuzz_require(again && spec, "out of memory");
    fuzz_require(hx_config_apply_json(again, spec, "again", &err) == 0, err.text);
    json_decref(spec);
    hx_config_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dm_err err;
    json_t *spec = dm_json_load(fuzz_file(data, size), &err);
    if (!spec) {
        return 0;
    }
    struct hx_config *config = hx_config_new();
    fuzz_require(config, "out of memory");
    if (hx_config_apply_json(config, spec, "spec", &err) == 0 && !names_files(data, size) &&
        hx_config_resolve(config, &err) == 0) {
        again_check(config);
    }
    hx_config_close(config);
    json_decref(spec);
    return 0;
}
