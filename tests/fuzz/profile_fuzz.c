/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles: any file is accepted or refused.
 */
#include "fuzz/fuzz_file.h"
#include "transport/fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dm_err err;
    char hash[17];
    (void)dm_profile_check(fuzz_file(data, size), hash, &err);
    return 0;
}
