#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_tests.sh refuses a mistyped option, and a word that is no option's value, before it builds, and fails where ctest
# finds no test. setup.sh, mutate.sh, cmake, and ctest where it runs tests, are made commands.
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
# ctest would run everything.
tests 2 sherman
holds err "'sherman' is no option of ctest"
tests 2 -R sherman unit
holds err "'unit'"
tests 2 -V sherman
tests 2 --tests-regex=sherman unit
tests 9
tests 9 -R sherman -L unit -j2 --output-on-failure -V
tests 9 --tests-regex=sherman --parallel 2 --rerun-failed
tests 9 -LE long --repeat until-pass:2 -I 1,5 -j 2
tests 0 --help
holds out "usage: ./run_tests.sh"

# Up to the end: a name that no test has is a failure, as in the two builds whose tests are always the same.
ctest=$(command -v ctest)
cat >bin/ctest <<SH
#!/bin/sh
case " \$* " in
*" --help "*) exec "$ctest" "\$@" ;;
*" -N "*) printf '%s\n' "Test project" "  Test   #1: style/size_test" "  Test #12: conformance/some_test" && exit ;;
esac
echo "\$@" >>"$work/calls"
SH
printf '#!/bin/sh\necho "$@" >>built\n' | tee bin/cmake >scripts/mutate.sh
mkdir -p build/tsan tests/conformance tests/unit/indexes tests/unit/workloads tests/unit/transport
cp bin/cmake build/tsan/dmbench
chmod +x bin/ctest scripts/mutate.sh build/tsan/dmbench
echo '"local"' | tee tests/conformance/left_out_test.c >tests/conformance/some_test.c
tests 0 -R nosuch
for build in clang tsan test; do
    grep -q -- "--test-dir build/$build .*--no-tests=error" calls || fail "without tests build/$build passes: $(cat calls)"
done
# What the build for threads has no test of is no target of it.
holds built "conformance_some_test conformance_guide_test"
! grep -q left_out built calls || fail "a test that is left out: $(cat built calls)"
mkdir none
! "$ctest" --test-dir none --no-tests=error -R nosuch >out 2>&1 || fail "ctest passes without tests: $(cat out)"
