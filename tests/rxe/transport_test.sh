#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The contract of every transport, on real RDMA.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

export DM_TEST_TRANSPORT=verbs
for program in "$DM_BUILD_DIR"/tests/conformance_transport_*_test; do
    "$program" || fail "$(basename "$program")"
done
