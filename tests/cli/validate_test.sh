#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dmbench validate: published points and their status, curves, micro-benchmarks of a fabric, fitted profiles, bad input.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 validate --only V10
expect 0 validate --only V13
expect 0 validate --only V5 --json
grep -q '"explained"' out || fail "no count of points that name a cause"
expect 0 validate --out curves
grep -q '^cores .* 0 ns$' out || fail "no time for which cores were idle while something waited"

# A network that is not the calibrated one: points out of tolerance for which the table has no cause.
mkdir profiles
cp "$DM_SOURCE_DIR"/transport/profiles/*.json profiles/
sed -i 's/"propagation_ns": {"value": [0-9]*/"propagation_ns": {"value": 800/' profiles/cx6-100g.json
DMBENCH_PROFILES=$PWD/profiles
export DMBENCH_PROFILES
expect 3 validate --only V1
unset DMBENCH_PROFILES
for curve in V4 V6 V10 V11-cib V15 V17 V23 V24; do
    [ -s "curves/$curve.tsv" ] || fail "no data of $curve"
    [ -s "curves/$curve.gp" ] || fail "no program for $curve"
done
expect 0 validate --profile cx5-100g
expect 0 validate --profile cx6-100g --fit fitted.json --base cx5-100g
expect 0 run --keys 1K --ops 1K --clients 4 --profile ./fitted.json

# Few keys and a busy host: any ratio will do here (client_work_long_test.sh judges them), but the status is the table's.
status=0
"$DMBENCH" validate --cpu --index sherman --keys 5K --rounds 2 --fit cpu.json >out 2>err || status=$?
wanted=0
! grep -q 'OUT$' out || wanted=3
[ "$status" -eq "$wanted" ] || fail "validate --cpu: status $status instead of $wanted; stderr: $(cat err)"
grep -q '^sherman .*get' out || fail "no charges of Sherman beside what its code takes"
expect 0 run --keys 1K --ops 1K --clients 4 --profile ./cpu.json

expect 2 validate --only V99
expect 2 validate --profile nothing
expect 2 validate --transport nothing
expect 2 validate --only V1 --profile cx5-100g
expect 2 validate --only V1 --out curves
expect 2 validate --fit fitted.json --base nothing
expect 2 validate --cpu --only V1
expect 2 validate --cpu --profile cx5-100g
expect 2 validate --transport local --fit fitted.json --out curves
expect 2 validate --jobs 2
expect 2 validate --stale keep
holds err "go with --end-to-end"
expect 2 validate --sed 3
expect 2 validate words
expect 0 validate --help
