#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a script in two or three virtual machines at once, each on its own as a host is, with links between them (run.sh
# --link). None needs special rights.
set -eu
usage() {
    cat <<'TEXT'
usage: tests/rxe/hosts.sh [--timeout SECONDS] [--machines 2|3] [--links 1|2] [--memory MEGABYTES]
                          [--process] -- SCRIPT [ARGUMENTS...]

Runs the script in all machines. DM_MACHINE is 0, 1 or 2 there, and /run/link a folder that all of them see. A file
`stop.N` in it, with N of 1 or 2, ends the emulator of machine N at once, as a loss of power does; its status does not
matter then. A file `start.N` starts that machine again, and DM_START is 1 there instead of 0. With two links each
machine has two devices. With --process they are no emulated machines, but kernels that are processes of the host
(run.sh): two machines with one link.

status  that of machine 0 if it is not 0, or else that of the first other machine where it is not 0
TEXT
}
here=$(cd "$(dirname "$0")" && pwd)
limit_s=600
machines=2
links=1
memory_mb=1536
kind=""
while [ $# -gt 0 ]; do
    case $1 in
    --process) kind=--process ;;
    --timeout) limit_s=$2 && shift ;;
    --machines) machines=$2 && shift ;;
    --links) links=$2 && shift ;;
    --memory) memory_mb=$2 && shift ;;
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
first=""
keepers=""
# Called by the trap.
# shellcheck disable=SC2317
finish() {
    for process in $first $keepers; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$link"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

# machine NUMBER START SCRIPT...
machine() {
    number=$1
    start=$2
    shift 2
    DM_MACHINE=$number DM_START=$start exec "$here/run.sh" ${kind:+"$kind"} --timeout "$limit_s" --cpus 1 --memory "$memory_mb" \
        --link "$link" --links "$links" --machines "$machines" --machine "$number" -- "$@"
}

# keep NUMBER SCRIPT...: runs the machine, ends it at stop.N, and starts it again at start.N. The status is that of its
# last run, or 0 if that was ended.
keep() {
    kept=$1
    shift
    start=0
    runner=""
    trap '[ -z "$runner" ] || kill "$runner" 2>/dev/null || true; exit 143' TERM
    while :; do
        (machine "$kept" $start "$@") &
        runner=$!
        is_stopped=no
        while [ $is_stopped = no ] && kill -0 "$runner" 2>/dev/null; do
            sleep 0.2
            [ ! -e "$link/stop.$kept" ] || is_stopped=yes
        done
        status=0
        if [ $is_stopped = yes ]; then
            kill -KILL "$(cat "$link/emulator.$kept")" # the emulator wrote its process id there
            wait "$runner" 2>/dev/null || true
        else
            wait "$runner" || status=$?
        fi
        runner=""
        while [ $is_stopped = yes ] && [ ! -e "$link/start.$kept" ]; do
            sleep 0.2
            [ ! -e "$link/end" ] || break 2
        done
        [ $is_stopped = yes ] || break
        rm -f "$link/stop.$kept" "$link/start.$kept"
        start=1
    done
    exit "$status"
}

for number in $(seq $((machines - 1))); do
    (keep "$number" "$@") >"$link/output.$number" 2>&1 &
    keepers="$keepers $!"
done
# In the background, so that a signal ends it at once.
(machine 0 0 "$@") &
first=$!
status=0
wait "$first" || status=$?
first=""
touch "$link/end"
number=0
for process in $keepers; do
    number=$((number + 1))
    [ "$status" -eq 0 ] || kill "$process" 2>/dev/null || true # it may wait for what will never come
    other=0
    wait "$process" || other=$?
    sed "s/^/machine $number: /" "$link/output.$number"
    [ "$status" -ne 0 ] || status=$other
done
keepers=""
exit "$status"
