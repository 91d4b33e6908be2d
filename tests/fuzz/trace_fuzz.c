/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache traces, plain or compressed: any file is accepted or refused, and an accepted one yields as many requests as
 * its summary counts.
 */
#include "fuzz/fuzz_file.h"
#include "workloads/trace.h"

static void requests_take(const char *path, bool lenient) {
    struct dm_err err;
    struct wl_trace *trace = NULL;
    if (wl_trace_open(path, lenient, 0, &trace, &err) < 0) {
        return;
    }
    uint64_t wanted = wl_trace_summary_of(trace)->requests, taken = 0, keys = 0;
    struct wl_op op;
    while (taken <= wanted && wl_trace_next(trace, &op) == 0) {
        taken++;
    }
    fuzz_require(taken == wanted, "a trace has a different number of requests in the second pass");
    free(wl_trace_keys(trace, &keys));
    wl_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dm_err err;
    struct wl_trace_summary summary;
    const char *path = fuzz_file(data, size);
    (void)wl_trace_summarize(path, true, 3, &summary, &err);
    requests_take(path, false);
    requests_take(path, true);
    return 0;
}
