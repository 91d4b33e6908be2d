#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a script in two virtual machines at once, each on its own as a host is, with a link between them (run.sh --link).
# Neither needs special rights.
set -eu
usage() {
    cat <<'TEXT'
usage: tests/rxe/hosts.sh [--timeout SECONDS] -- SCRIPT [ARGUMENTS...]

Runs the script in both machines. DM_MACHINE is 0 or 1 there, and /run/link a folder that both see. A file named `stop`
in it ends the emulator of machine 1 at once, as a loss of power does; then the status of machine 1 does not matter.

status  that of machine 0 if it is not 0, or else that of machine 1
TEXT
}
here=$(cd "$(dirname "$0")" && pwd)
limit_s=600
while [ $# -gt 0 ]; do
    case $1 in
    --timeout) limit_s=$2 && shift ;;
    --help | -h)
        usage
        exit 0
        ;;
    --)
        shift
        break
        ;;
    *)
        echo "hosts.sh: unknown option '$1' (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done
[ $# -gt 0 ] || {
    usage >&2
    exit 2
}

link=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_link.XXXXXX")
second=""
# Called by the trap.
# shellcheck disable=SC2317
finish() {
    [ -z "$second" ] || kill "$second" 2>/dev/null || true
    [ -z "$second" ] || wait "$second" 2>/dev/null || true
    rm -rf "$link"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

# machine NUMBER SCRIPT...
machine() {
    number=$1
    shift
    DM_MACHINE=$number "$here/run.sh" --timeout "$limit_s" --cpus 1 --memory 1536 --link "$link" --machine "$number" -- "$@"
}

machine 1 "$@" >"$link/output" 2>&1 &
second=$!
(
    # The emulator of machine 1 writes its process id there.
    while [ ! -e "$link/stop" ]; do
        sleep 0.2
        kill -0 "$second" 2>/dev/null || exit 0
    done
    kill -KILL "$(cat "$link/emulator.1")"
) &
watcher=$!
status=0
machine 0 "$@" || status=$?
if [ "$status" -ne 0 ] && [ ! -e "$link/stop" ]; then
    kill "$second" 2>/dev/null || true # it may wait for what will never come
fi
other=0
wait "$second" || other=$?
second=""
kill "$watcher" 2>/dev/null || true
sed 's/^/machine 1: /' "$link/output"
[ "$status" -eq 0 ] || exit "$status"
[ ! -e "$link/stop" ] || exit 0
exit "$other"
