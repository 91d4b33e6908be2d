/* SPDX-License-Identifier: Apache-2.0
 *
 * YCSB property files: any text is accepted or refused, and the shares of an accepted specification sum to one.
 */
#include <math.h>

#include "fuzz/fuzz_file.h"
#include "workloads/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dm_err err;
    struct wl_spec spec;
    struct wl_config config;
    wl_spec_defaults(&spec);
    dm_opt_defaults(wl_options, &config);
    if (wl_spec_apply_file(&spec, fuzz_file(data, size), &err) == 0 && wl_spec_resolve(&spec, &config, &err) == 0) {
        double sum = 0;
        for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
            fuzz_require(spec.share[kind] >= 0, "a negative share");
            sum += spec.share[kind];
        }
        fuzz_require(fabs(sum - 1) < 1e-6, "shares do not sum to one");
    }
    dm_opt_free(wl_options, &config);
    return 0;
}
