# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What the black-box tests share. Sourced; needs DMBENCH and DM_SOURCE_DIR. Each test runs in a temporary folder,
# which is removed at the end.
set -eu
: "${DMBENCH:?the program to test}" "${DM_SOURCE_DIR:?the source tree}"

pid= # of what a test runs beside itself
work=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_test.XXXXXX")
# At the end, process $pid ends too, if it is still one of this shell: its number may be another process's by then. By a
# signal that a shell between fork and exec cannot lose. Called by the trap.
# shellcheck disable=SC2317
finish() {
    if [ -n "$pid" ] && grep -q "^PPid:[[:blank:]]*$$\$" "/proc/$pid/status" 2>/dev/null; then
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT
# dash does not run the trap of EXIT when a signal ends it.
trap 'exit 130' HUP INT TERM
cd "$work"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# skip REASON
skip() {
    echo "skipped: $*"
    exit 77
}

# missing WHAT: skips the test without what scripts/packages.txt installs; in CI it fails, where all of that is installed.
missing() {
    [ "${CI:-}" != true ] || fail "not installed: $*"
    skip "not installed: $*"
}

# expect STATUS WORDS...: runs dmbench with the words; output in `out`, errors in `err`.
expect() {
    wanted=$1
    shift
    status=0
    "$DMBENCH" "$@" >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || fail "dmbench $*: status $status instead of $wanted; stderr: $(cat err)"
}

# holds FILE TEXT
holds() {
    grep -qF -- "$2" "$1" || fail "'$2' is not in: $(cat "$1")"
}

# once COMMAND...: waits until the command succeeds while process $pid, whose errors are in `err`, runs.
once() {
    until "$@"; do
        kill -0 "$pid" 2>/dev/null || fail "ended too early: $(cat err)"
    done
}

# worked TICKS [PROCESS]: waits until process $pid, or another, has worked for so many clock ticks.
worked() {
    ticks=0
    while [ "$ticks" -lt "$1" ]; do
        read -r stat <"/proc/${2:-$pid}/stat" || fail "ended too early: $(cat err)"
        # user time is the 12th field after the name in parentheses
        # shellcheck disable=SC2086
        ticks=$(set -- ${stat##*) } && echo "${12}")
        case $stat in *") Z "*) fail "ended too early: $(cat err)" ;; esac
    done
}

# handles_interrupts: process $pid has its handler. A shell starts background jobs with interrupts ignored, so that one
# that is sent before is lost.
handles_interrupts() {
    [ ! -r "/proc/$pid/status" ] || grep -q '^SigCgt:.*[2367abef]$' "/proc/$pid/status"
}

# signal SIGNAL: sends it to process $pid, a `dmbench run`, once that handles interrupts.
signal() {
    once handles_interrupts
    kill -s "$1" "$pid"
}

# interrupt SIGNAL: ends process $pid, which must report it by its status. One that runs several points holds interrupts
# before it writes anything, and shows no handler.
interrupt() {
    kill -s "$1" "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || fail "interrupted: status $status: $(cat err)"
}

# has_results FOLDER [COUNT]: that many results are there, or one.
has_results() {
    [ "$(find "$1" -name '*.json' 2>/dev/null | wc -l)" -ge "${2:-1}" ]
}

# result WORDS...: looks into result files, see result.py.
result() {
    python3 "$DM_SOURCE_DIR/tests/cli/result.py" "$@"
}

# fits FILE...: results are as the schema says. Ends the test where the module for that is not installed.
fits() {
    status=0
    result validate "$DM_SOURCE_DIR/results/schema.json" "$@" || status=$?
    [ "$status" -ne 77 ] || missing "python3-jsonschema; the rest was tested"
    [ "$status" -eq 0 ] || fail "not as the schema says, see above: $*"
}

# same_result FILE OTHER: they differ in provenance alone.
same_result() {
    python3 -c "
import json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:])
a.pop('provenance'), b.pop('provenance')
sys.exit(a != b)" "$1" "$2" || fail "$1 and $2 differ"
}

# same_results FOLDER OTHER COUNT: so many results are in the first, and the other's are the same.
same_results() {
    [ "$(find "$1/points" -name '*.json' | wc -l)" -eq "$3" ] || fail "$(find "$1")"
    for file in "$2"/points/*.json; do
        same_result "$file" "$1/points/${file##*/}"
    done
}
