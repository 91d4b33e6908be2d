#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the program with gcc's profile-guided optimisation: builds it once so that it notes which branches it takes, lets it
# run each index for a moment, and builds it by these notes. Results are the same to the byte, and points take less time.
#   scripts/tune.sh [--again] [FOLDER]      FOLDER: of the build, default build/release
# Notes that are there are used again; --again makes new ones, as after larger changes of the code.
set -eu
cd "$(dirname "$0")/.."

usage() {
    echo "usage: scripts/tune.sh [--again] [FOLDER]" >&2
    exit 2
}

again=no
if [ "${1:-}" = --again ]; then
    again=yes
    shift
fi
folder=${1:-build/release}
[ $# -le 1 ] || usage
case $folder in
-*) usage ;;
esac

built() {
    log=$folder.log
    mkdir -p "$(dirname "$folder")"
    {
        cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release -DDM_TUNE="$1" &&
            cmake --build "$folder" --parallel "$(nproc)" --target dmbench
    } >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        echo "tune.sh: the build failed; $log has all of it" >&2
        exit 1
    }
}

note() {
    ! "$folder/dmbench" run "$@" --clients 320 --cns 10 --quiet >>"$folder/tune.log" 2>&1 || runs=$((runs + 1))
}

# The indexes with workloads of gets, of updates and of scans; an index refuses those that it does not have.
noted() {
    runs=0
    : >"$folder/tune.log"
    for index in $("$folder/dmbench" list indexes --names); do
        for workload in a c e; do
            ops=400K
            [ "$workload" != e ] || ops=20K
            note --index "$index" --workload "$workload" --keys 1M --ops $ops
        done
    done
    note --index smart --workload a --keys 4M --ops 1M # more memory than is kept as it is
    [ $runs -gt 0 ] || {
        cat "$folder/tune.log" >&2
        echo "tune.sh: no index could be run" >&2
        exit 1
    }
}

# Neither an interrupt nor a failure leaves a folder whose next build would still be the slow one that takes notes.
trap 'rm -rf "$folder/tune" "$folder/CMakeCache.txt"' EXIT
trap 'exit 130' INT TERM HUP
if [ $again = yes ] || [ ! -e "$folder/tune/complete" ]; then
    rm -rf "$folder/tune"
    echo "tune.sh: building into $folder to note which branches are taken" >&2
    built record
    noted
    mkdir -p "$folder/tune"
    touch "$folder/tune/complete"
fi
trap - EXIT INT TERM HUP
echo "tune.sh: building into $folder by these notes" >&2
built use
