/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded operations: any file is accepted or refused, and all clients together get as many operations as its header
 * states.
 */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz/fuzz_file.h"
#include "workloads/record.h"
#include "workloads/record_format.h"

enum { CLIENTS = 3 };

/* Gives the input the hash that its other bytes have, which no mutation finds. */
static const char *hashed_file(const uint8_t *data, size_t size) {
    struct wl_record_header header;
    if (size < sizeof header) {
        return fuzz_file(data, size);
    }
    uint8_t *copy = malloc(size);
    fuzz_require(copy != NULL, "no memory for the input");
    memcpy(copy, data, size);
    memcpy(&header, data, sizeof header);
    header.hash = 0;
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    XXH64_update(&state, data + sizeof header, size - sizeof header);
    XXH64_update(&state, &header, sizeof header);
    header.hash = XXH64_digest(&state);
    memcpy(copy, &header, sizeof header);
    const char *path = fuzz_file(copy, size);
    free(copy);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dm_err err;
    struct wl_config config;
    struct wl_replay *replay = NULL;
    dm_opt_defaults(wl_options, &config);
    if (wl_replay_open(hashed_file(data, size), &config, &replay, &err) == 0) {
        uint64_t taken = 0;
        for (unsigned client = 0; client < CLIENTS; client++) {
            struct wl_replay_cursor cursor = wl_replay_cursor_make(replay, client, CLIENTS);
            struct wl_op op;
            while (wl_replay_next(&cursor, &op) == 0) {
                fuzz_require(op.kind < WL_OP_KIND_COUNT, "an operation of an unknown kind");
                taken++;
            }
        }
        fuzz_require(taken == wl_replay_info(replay)->recorded, "clients miss recorded operations");
    }
    wl_replay_close(replay);
    dm_opt_free(wl_options, &config);
    return 0;
}
