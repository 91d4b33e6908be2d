/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories: any file is accepted or refused, and an accepted one can be judged, written and read again.
 */
#include "check/judge.h"
#include "fuzz/fuzz_file.h"

enum { JUDGED_MAX = 12 }; /* operations; an arbitrary history may take long to judge */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ck_history history, again;
    struct dm_err err;
    if (ck_history_load(fuzz_file(data, size), &history, &err) == 0) {
        struct ck_verdict verdict;
        if (history.op_count <= JUDGED_MAX) {
            fuzz_require(ck_judge(&history, &verdict) == 0, "a history cannot be judged");
        }
        fuzz_require(ck_history_store(&history, fuzz_path, &err) == 0, "a history cannot be written");
        fuzz_require(ck_history_load(fuzz_path, &again, &err) == 0, err.text);
        fuzz_require(again.op_count == history.op_count && again.initial_count == history.initial_count,
                     "a history loses operations when it is written");
        ck_history_fini(&again);
    }
    ck_history_fini(&history);
    return 0;
}
