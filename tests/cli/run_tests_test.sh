#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_tests.sh refuses a mistyped option before it builds; setup.sh and cmake are made commands.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir bin scripts
cp "$DM_SOURCE_DIR/run_tests.sh" .
printf '#!/bin/sh\nexit 0\n' >scripts/setup.sh
printf '#!/bin/sh\nexit 9\n' >bin/cmake
chmod +x bin/cmake scripts/setup.sh

# tests STATUS WORDS...: runs the script, which ends with 9 where it would build.
tests() {
    wanted=$1
    shift
    status=0
    PATH="$work/bin:$PATH" ./run_tests.sh "$@" >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || fail "run_tests.sh $*: status $status instead of $wanted: $(cat err)"
}
tests 2 --hepl
holds err "'--hepl' is no option of ctest"
holds err "usage: ./run_tests.sh"
tests 2 -R sherman -lable unit
holds err "'-lable'"
tests 9
tests 9 -R sherman -L unit -j2 --output-on-failure -V
tests 9 --tests-regex=sherman --parallel 2 --rerun-failed
tests 0 --help
holds out "usage: ./run_tests.sh"
