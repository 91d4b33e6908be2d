#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A signal ends a run in any phase with status 130, and leaves no file. Without the signal these runs would take hours.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

[ -r /proc/self/stat ] || skip "no /proc to see how far a process is"

# stopped SIGNAL TICKS WORDS...: sends the signal when the process has worked for so many clock ticks.
stopped() {
    sent=$1
    least=$2
    shift 2
    "$DMBENCH" run "$@" --out interrupted.json >out 2>err &
    pid=$!
    worked "$least"
    signal "$sent"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || fail "$sent to dmbench run $*: status $status; stderr: $(cat err)"
    holds err "dmbench run: interrupted"
    [ -z "$(find . -name 'interrupted*')" ] || fail "$sent left $(ls)"
}

stopped INT 60 --index sherman --workload a --keys 10K --ops 100G --clients 16
stopped TERM 60 --index sherman --workload e --keys 10K --ops 100G --clients 16 --warmup 100G
stopped INT 5 --index sherman --workload c --keys 10M --ops 100G
if "$DMBENCH" list transports | grep -q '^  local '; then
    stopped INT 60 --index null --transport local --workload c --keys 10K --ops 1T --clients 2
fi
