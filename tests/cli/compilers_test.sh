#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A simulated result depends on configuration and seed alone: this build and the one with the other compiler, at another
# level of optimisation and without sanitizers, give the same bytes.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
other=$DM_SOURCE_DIR/build/clang/dmbench
[ -x "$other" ] || skip "build/clang/dmbench is not there (run_tests.sh builds it)"

for workload in a d e f load; do
    words="--workload $workload --keys 50K --ops 20K --clients 40 --cns 4 --mns 2 --coroutines 2 --cache 100KB --seed 11"
    # shellcheck disable=SC2086
    expect 0 run $words --out this.json
    # shellcheck disable=SC2086
    "$other" run $words --out other.json >out 2>err || fail "the other build cannot run $words: $(cat err)"
    result same this.json other.json || fail "workload $workload: two compilers, two results"
done
