#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every test: installs what is missing, builds with the sanitizers, compiles once with the other compiler, runs all with
# ctest and ends with its summary. Builds: build/test (address and undefined behaviour), build/tsan (threads; the tests of
# what threads share), build/mutation (a sample of planted mistakes), build/clang (compiled, the readers of files fuzzed a
# little, all points of all figures at a tiny scale, what says little of memory and takes minutes with a sanitizer, and the
# tests on RDMA, which run in an emulated machine that is too slow for sanitizers).
set -eu
cd "$(dirname "$0")"

usage() {
    cat <<'TEXT'
usage: ./run_tests.sh [--help] [CTEST-OPTIONS...]

  ./run_tests.sh                 everything
  ./run_tests.sh -L unit         tests of one label: unit, conformance, cli, style (fuzz, rxe and whole run always)
  ./run_tests.sh -R sherman      tests whose name matches

With CI=true nothing is skipped that could have been installed, and clang-tidy runs too.
TEXT
}
case ${1:-} in
--help | -h)
    usage
    exit 0
    ;;
esac

jobs=$(nproc)
scripts/setup.sh run test

# setup.sh installs modules for the system's python3. Another one that is first in the path need not have them, and if it
# is a script, such as a version manager's, each of a thousand calls takes half a second.
if [ -x /usr/bin/python3 ]; then
    mkdir -p build/bin
    ln -sf /usr/bin/python3 build/bin/python3
    export PATH="$PWD/build/bin:$PATH"
fi

# ctest ignores what it does not know, words too that are no option's value, and would run everything after the builds.
known=$(ctest --help)
# takes_value OPTION: its value is the next word.
takes_value() {
    case $1 in
    --tests-information | --test-load) return 0 ;; # the help does not show theirs
    *=*) return 1 ;;
    esac
    echo "$known" | grep -qE -- "(^|[ ,])$1 ([<[]|until-|after-)"
}
is_known() {
    case $1 in
    -j[0-9]*) ;;
    -*) echo "$known" | grep -qE -- "(^|[ ,=])${1%%=*}([ ,=]|\$)" ;;
    *) [ -n "$before" ] && takes_value "$before" ;;
    esac
}
before=""
for option in "$@"; do
    is_known "$option" || {
        echo "run_tests.sh: '$option' is no option of ctest" >&2
        usage >&2
        exit 2
    }
    case $option in
    -*) before=$option ;;
    *) before="" ;;
    esac
done

echo "== address and undefined behaviour: build/test"
cmake --preset test
cmake --build build/test --parallel "$jobs"

echo "== the other compiler: build/clang"
cmake --preset clang
cmake --build build/clang --parallel "$jobs"
clang_ok=yes
# On emulated RDMA the longest tests take two of the indexes, others at each revision, and the comparison with perftest one
# round; without this all, and three. Fuzzing has another seed at each revision.
revision=$(git rev-parse HEAD 2>/dev/null || date +%F)
export DM_RXE_SAMPLE=2 DM_RXE_SEED="$revision" DM_PERFTEST_ROUNDS=1 DM_FUZZ_SEED="$revision"
ctest --test-dir build/clang --no-tests=error --output-on-failure --parallel "$jobs" -L 'fuzz|rxe|whole' || clang_ok=no
# A report, which ctest keeps to itself.
grep -h ' ratio ' build/clang/Testing/Temporary/LastTest.log || true

echo "== threads: build/tsan"
cmake --preset tsan
# The tests that start threads, and of those for all transports the part in real time: a world in virtual time has one
# thread, and takes minutes under this sanitizer. late_test needs faults, which only virtual time has; and some are not
# built with a sanitizer or without libraries for RDMA.
sources=$(find tests/conformance tests/unit/indexes tests/unit/workloads tests/unit/transport -name '*_test.c')
# shellcheck disable=SC2086
threaded=$(grep -lE '"local"|pthread_create|transport_(choice|world)\.h' $sources |
    sed 's#^tests/##; s#\.c$##' | grep -vx conformance/late_test |
    grep -Fx "$(ctest --test-dir build/tsan -N | sed -n 's/^ *Test *#[0-9]*: //p')" | sort)
[ -n "$threaded" ] || {
    echo "run_tests.sh: no test of build/tsan starts threads" >&2
    exit 1
}
threads_ok=yes
# shellcheck disable=SC2046
cmake --build build/tsan --parallel "$jobs" --target $(echo "$threaded" | tr / _) conformance_guide_test dmbench
build/tsan/dmbench check --index all --transport local --seeds 5 --coverage off || threads_ok=no
DM_TEST_TRANSPORT=local ctest --test-dir build/tsan --no-tests=error --output-on-failure --parallel "$jobs" \
    -R "^($(echo "$threaded" | tr '\n' '|')conformance/guide_test)\$" || threads_ok=no

echo "== a sample of mutants, another one at each revision"
mutants_ok=yes
# One job, since each builds all of the project first.
scripts/mutate.sh --noticed --sample 2 --seed "$revision" --jobs 1 || mutants_ok=no

echo "== all tests"
status=0
export DM_TIDY_SAMPLE=8 DM_TIDY_SEED="$revision" DM_PLAIN_DMBENCH="$PWD/build/clang/dmbench"
# Freed memory is used again after 16 MB, not 256, and traces of allocations are shorter: a third less processor time.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=16:malloc_context_size=8}"
ctest --test-dir build/test --no-tests=error --output-on-failure --parallel "$jobs" "$@" || status=$?
if [ "$threads_ok" = no ]; then
    echo "run_tests.sh: tests of build/tsan failed, see above" >&2
    exit 1
fi
if [ "$clang_ok" = no ]; then
    echo "run_tests.sh: a fuzz target, a figure, or a test on RDMA, of build/clang failed, see above" >&2
    exit 1
fi
if [ "$mutants_ok" = no ]; then
    echo "run_tests.sh: a mutant was not noticed, or could not be planted, see above" >&2
    exit 1
fi
exit "$status"
