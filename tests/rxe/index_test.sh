#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What every index promises, held on real RDMA: against a map, many clients with verify behind them, full memory nodes.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

DM_TEST_TRANSPORT=verbs "$DM_BUILD_DIR/tests/conformance_index_conformance_test" || fail "index_conformance_test"
