#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The contract of every index on real RDMA: compared with a map, with many clients and verify, with full memory nodes.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

DM_TEST_TRANSPORT=verbs "$DM_BUILD_DIR/tests/conformance_index_conformance_test" || fail "index_conformance_test"
