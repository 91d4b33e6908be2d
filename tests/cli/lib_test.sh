#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the black-box tests share: a test that fails or that a signal ends leaves no folder and no process, and what is not
# installed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
[ -r /proc/self/status ] || skip "no /proc to see whose process one is"

cat >child.sh <<'SH'
. "$DM_SOURCE_DIR/tests/cli/lib.sh"
"$DMBENCH" run --workload a --keys 5K --ops 100G --warmup 10 --partial=off >/dev/null 2>err &
pid=$!
echo "$pid $work" >"$1/started.tmp"
mv "$1/started.tmp" "$1/started"
[ "$2" = waits ] || fail "as it was meant to"
wait "$pid"
SH

# left STATUS: the child ended with that, and left nothing.
left() {
    [ "$status" -eq "$1" ] || fail "status $status instead of $1: $(cat err)"
    read -r run folder <started
    [ ! -e "$folder" ] || fail "$folder is left"
    [ ! -e "/proc/$run" ] || fail "process $run is left"
    rm started
}
for signal in TERM HUP; do
    sh child.sh "$work" waits 2>err &
    pid=$!
    once [ -e started ]
    kill -s $signal "$pid"
    status=0
    wait "$pid" || status=$?
    left 130
done
status=0
sh child.sh "$work" fails 2>err || status=$?
left 1
holds err "FAILED: as it was meant to"

# What should be installed is skipped, but not in CI.
cat >lacks.sh <<'EOS'
. "$DM_SOURCE_DIR/tests/cli/lib.sh"
missing "a tool"
EOS
status=0
CI='' sh lacks.sh >out 2>err || status=$?
[ "$status" -eq 77 ] || fail "without a tool: status $status"
status=0
CI=true sh lacks.sh >out 2>err || status=$?
[ "$status" -eq 1 ] || fail "without a tool in CI: status $status"
holds err "not installed: a tool"
