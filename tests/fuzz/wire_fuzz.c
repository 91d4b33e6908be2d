/* SPDX-License-Identifier: Apache-2.0
 *
 * Control messages between processes: any bytes are accepted or refused. An accepted message encodes to the same bytes,
 * and its numbers are within the limits that the rest of the transport relies on.
 */
#include <string.h>

#include "fuzz/fuzz_file.h"
#include "transport/verbs/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wire_message message;
    unsigned char again[WIRE_MAX];
    if (size < 4) {
        return 0;
    }
    int length = verbs_wire_length(data);
    fuzz_require(length == DM_ERR_CORRUPT || (length > 0 && length <= WIRE_MAX - 4), "an impossible length");
    if (verbs_wire_decode(data + 4, size - 4, &message) < 0) {
        return 0;
    }
    size_t bytes = verbs_wire_encode(&message, again);
    fuzz_require(bytes == size && memcmp(again + 4, data + 4, size - 4) == 0,
                 "an accepted message encodes to other bytes");
    fuzz_require(message.kind != WIRE_WELCOME || message.welcome.dram.base <= UINT64_MAX - message.welcome.dram.bytes,
                 "memory exceeds the address range");
    return 0;
}
