#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The contract of every index on real RDMA, or of a sample of them (lib.sh): compared with a map, with many clients and
# verify, with full memory nodes.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

for index in null $(sampled_indexes); do
    DM_TEST_TRANSPORT=verbs DM_TEST_FILTER="$index on verbs: *" \
        "$DM_BUILD_DIR/tests/conformance_index_conformance_test" >out 2>&1 || fail "index_conformance_test of $index: $(cat out)"
    grep -q "OK \] $index on verbs" out || fail "no test of $index ran: $(cat out)"
    echo "$index: $(grep -c 'OK \]' out) tests passed"
done
