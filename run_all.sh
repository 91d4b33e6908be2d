#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The main job: installs what is missing, builds Release into build/release, runs the points of figures and claims in
# parallel, draws the figures, judges the claims, validates the model of the network with micro-benchmarks and, if the run
# is to be complete, whole indexes, and writes the report. Points that have a result are not run again.
set -eu
users=$PWD # the folder that a relative path is meant from
cd "$(dirname "$0")"

usage() {
    cat <<'TEXT'
usage: ./run_all.sh [options]

Installs missing packages, builds into build/release, runs the papers' figures, draws them into results/figures, judges
the papers' claims by them (results/claims.md), validates the model of the network and writes the report,
results/report.html. A point that has a result is not run again, so a second run takes seconds and an interrupted run
continues.

  --complete           also: figures that no paper has; three seeds a point where that is cheap, for error bars; the
                       readings of claims and the experiments behind their reasons; whole indexes beside published
                       results (results/end_to_end.md); maps of which index wins where (results/maps). Takes three
                       times as long
  --scale quick|paper  size of the points; quick (default) takes minutes, paper is what the papers used, always complete
  --only FIGURE        only this figure, no claims and no report; repeatable (build/release/dmbench list figures shows their names)
  --sensitivity        complete, and judge the claims also at the other ends of what sources say about the network (many
                       more points); scale paper always does
  --stale run|keep|adopt  results that other sources made than today's: run them again (default), keep them as they are,
                       or mark them as fresh; build/release/dmbench figure all --stale list shows them
  --from-archive FILE  unpack results of `dmbench archive pack` into results/, then draw, judge and report from them and run no point
  --jobs N             points that run at once (default: one a core, fewer if memory is short)
  --build-only         install and build, run nothing
  --clean              remove build/release and all results, and stop
  --help               this text

Exit status: 0 all done, whatever the verdicts; 1 something failed, 2 usage, 130 interrupted.
TEXT
}

die() {
    echo "run_all.sh: $*" >&2
    exit 2
}

scale=quick
jobs=0
stale=run
archive=""
only=""
build_only=no
clean=no
sensitivity=no
complete=no
while [ $# -gt 0 ]; do
    option=${1%%=*}
    value=""
    case $1 in
    --scale=* | --only=* | --jobs=* | --stale=* | --from-archive=*)
        value=${1#*=}
        ;;
    --scale | --only | --jobs | --stale | --from-archive)
        [ $# -ge 2 ] || die "$1 needs a value (see --help)"
        value=$2
        shift
        ;;
    --*=*)
        die "'$1': unknown, or takes no value (see --help)"
        ;;
    esac
    shift
    case $option in
    --scale)
        case $value in
        quick | paper) scale=$value ;;
        *) die "--scale: '$value' is neither quick nor paper" ;;
        esac
        ;;
    --only)
        [ -f "plots/figures/$value.json" ] || die "--only: no figure '$value'; there are: $(
            find plots/figures -name '*.json' | sed 's#.*/##; s#\.json$##' | sort | tr '\n' ' ')"
        only="$only $value"
        ;;
    --jobs)
        case $value in
        '' | 0* | *[!0-9]*) die "--jobs: '$value' is not a whole number from 1 on" ;;
        esac
        jobs=$value
        ;;
    --stale)
        case $value in
        run | keep | adopt) stale=$value ;;
        *) die "--stale: '$value' is neither run, keep nor adopt" ;;
        esac
        ;;
    --from-archive)
        case $value in
        /*) archive=$value ;;
        *) archive=$users/$value ;;
        esac
        [ -f "$archive" ] || die "--from-archive: '$value' is no file"
        ;;
    --sensitivity) sensitivity=yes ;;
    --complete) complete=yes ;;
    --build-only) build_only=yes ;;
    --clean) clean=yes ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) die "unknown option '$option' (see --help)" ;;
    esac
done

if [ "$clean" = yes ]; then
    rm -rf build/release results/points results/training results/figures results/specs results/maps
    rm -f results/maps.log results/claims.log results/end_to_end.log
    rm -f results/claims.md results/claims.json results/validation.json results/end_to_end.* results/report.html
    exit 0
fi

# Each step is a process group of its own, so that all its processes end when this script does.
child=""
partial=""
# Called by the trap.
# shellcheck disable=SC2317
stop() {
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        # Before setsid has run there is no such group yet, only the process.
        kill -s TERM -- "-$child" 2>/dev/null || kill -s TERM "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    rm -f "$partial"
    exit 130
}
trap stop INT TERM HUP

step() {
    setsid "$@" &
    child=$!
    status=0
    wait "$child" || status=$?
    child=""
    return "$status"
}

# quietly LOG COMMAND...: shows the command's output only if it fails.
quietly() {
    log=$1
    shift
    step "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "run_all.sh: failed: $*" >&2
        exit 1
    }
}

# keep FILE COMMAND...: writes the command's output to a temporary file, which replaces FILE only if the command succeeds.
# Status 3 is a verdict, not a failure.
keep() {
    file=$1
    partial=$1.tmp.$$
    shift
    step "$@" >"$partial" || [ $? -eq 3 ] || {
        rm -f "$partial"
        echo "run_all.sh: failed: $*" >&2
        exit 1
    }
    mv "$partial" "$file"
    partial=""
}

# points COMMAND...: runs points, and continues without those that fail.
points() {
    step "$@" || {
        [ "$status" -eq 1 ] || [ "$status" -eq 3 ] || exit "$status"
        [ "$status" -eq 3 ] || failed=1
    }
}

scripts/setup.sh run
mkdir -p build
echo "building into build/release" >&2
quietly build/release.log cmake --preset release
quietly build/release.log cmake --build build/release --parallel "$(nproc)" --target dmbench
[ "$build_only" = no ] || exit 0

dmbench=build/release/dmbench
failed=0
[ "$scale" != paper ] || sensitivity=yes
if [ "$sensitivity" = yes ] || [ -n "$only$archive" ]; then
    complete=yes
fi
figures=${only:-published}
repeat=1
if [ "$complete" = yes ]; then
    figures=${only:-all}
    repeat=0 # as many as the figures say
fi

norun=""
if [ -n "$archive" ]; then
    step "$dmbench" archive unpack "$archive" --out results
    scale=$("$dmbench" archive list "$archive" | sed -n 's/^[0-9]* results of scale \([^ ,]*\), packed at .*/\1/p')
    norun=--no-run
    stale=keep
    echo "drawing the figures from $archive, scale $scale" >&2
else
    echo "running the figures at scale $scale" >&2
fi
# Figure names hold no blanks, and --no-run is one word or none.
# shellcheck disable=SC2086
points "$dmbench" figure $figures $norun --scale "$scale" --repeat "$repeat" --jobs "$jobs" --stale "$stale" --out results
if [ -n "$only" ] || [ ! -d plots/claims ]; then
    exit "$failed"
fi

if [ -n "$archive" ] || [ "$complete" = no ]; then
    echo "judging the claims by the figures" >&2
    set --
elif [ "$sensitivity" = yes ]; then
    echo "judging the claims, also at the other ends of what sources say about the network" >&2
    set -- --run --sensitivity
else
    echo "judging the claims" >&2
    set -- --run
fi
[ $# -eq 0 ] || points "$dmbench" claims "$@" --scale "$scale" --jobs "$jobs" --stale "$stale" --out results >results/claims.log
judged=$stale
[ "$judged" != adopt ] || judged=keep
keep results/claims.md "$dmbench" claims --markdown --scale "$scale" --stale "$judged" --out results
keep results/claims.json "$dmbench" claims --json --scale "$scale" --stale keep --out results
if [ -z "$(find results/validation.json -newer "$dmbench" 2>/dev/null)" ]; then
    echo "validating the model of the network" >&2
    keep results/validation.json "$dmbench" validate --json
fi
if [ "$complete" = yes ]; then
    # The published numbers of keys need more memory than most machines have, so these are always the smaller ones.
    echo "comparing whole indexes with published results" >&2
    [ -n "$norun" ] || points "$dmbench" validate --end-to-end --jobs "$jobs" --stale "$stale" --out results >results/end_to_end.log
    keep results/end_to_end.txt "$dmbench" validate --end-to-end --no-run --stale "$judged" --out results
fi
# Hundreds of points, so that the maps are always the smaller ones, too.
if [ "$complete" = yes ] && [ -d plots/maps ] && [ -z "$norun" ]; then
    echo "mapping which index wins where" >&2
    points "$dmbench" map all --jobs "$jobs" --stale "$stale" --out results >results/maps.log
fi
step "$dmbench" report --scale "$scale" --repeat "$repeat" --out results
sed -n 1p results/claims.md
[ "$complete" = yes ] ||
    echo "./run_all.sh --complete adds figures of our own, error bars, the claims' readings and experiments, published results and maps" >&2
exit "$failed"
