#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts/tune.sh: its words, its two builds with the runs between them, notes that are there and notes made again, failures
# and an interrupt. A fake cmake installs a fake program, and both write down how they were called.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p tree/scripts bin
cp "$DM_SOURCE_DIR/scripts/tune.sh" tree/scripts/
cat >bin/cmake <<SH_END
#!/bin/sh
echo "cmake \$*" >>"$work/calls"
[ ! -e "$work/cmake.fails" ] || { echo "the compiler is unhappy"; exit 1; }
case \$1 in
-S)
    mkdir -p "\$4"
    touch "\$4/CMakeCache.txt"
    cat >"\$4/dmbench" <<'PROGRAM'
#!/bin/sh
case \$1 in list) printf 'one\ntwo\n' && exit ;; esac
echo "\$*" >>"$work/calls"
[ ! -e "$work/waits" ] || touch "$work/waiting"
while [ -e "$work/waits" ]; do sleep 0.1; done
case "\$*" in *"two --workload e"*) exit 2 ;; esac
[ ! -e "$work/program.fails" ] || { echo "the program is unhappy"; exit 2; }
PROGRAM
    chmod +x "\$4/dmbench"
    ;;
esac
SH_END
chmod +x bin/cmake
PATH=$work/bin:$PATH

# tune STATUS WORDS...
tune() {
    wanted=$1
    shift
    rm -f calls
    status=0
    tree/scripts/tune.sh "$@" >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || fail "tune.sh $*: status $status instead of $wanted: $(cat err)"
}
calls() {
    [ "$(grep -c -- "$1" calls)" -eq "$2" ] || fail "'$1' not $2 times: $(cat calls)"
}

for words in --agian "-x" "a b"; do
    # shellcheck disable=SC2086
    tune 2 $words
    holds err "usage: scripts/tune.sh"
    [ ! -e calls ] || fail "tune.sh $words: built something"
done

# Each index with each workload, between the build that takes notes and the one that uses them.
tune 0
calls "DM_TUNE=record" 1
calls "^run --index" 7
calls "--index two --workload c" 1
calls "DM_TUNE=use" 1
[ "$(sed -n 1p calls)" = "cmake -S . -B build/release -DCMAKE_BUILD_TYPE=Release -DDM_TUNE=record" ] || fail "$(cat calls)"
tail -n 2 calls | grep -q "DM_TUNE=use" || fail "the last build does not use the notes: $(cat calls)"

# Notes that are there are used; new ones on demand.
tune 0
calls "DM_TUNE=record" 0
calls "^run" 0
calls "DM_TUNE=use" 1
touch tree/build/release/tune/old
tune 0 --again
calls "DM_TUNE=record" 1
[ ! -e tree/build/release/tune/old ] || fail "old notes are kept"
tune 0 build/other
[ -e tree/build/other/tune/complete ] || fail "the folder was not used"

# Failures are said, and leave no notes that look complete.
touch cmake.fails
tune 1 build/broken
holds err "the compiler is unhappy"
holds err "build/broken.log has all of it"
rm cmake.fails
touch program.fails
tune 1 build/broken
holds err "the program is unhappy"
[ ! -e tree/build/broken/tune/complete ] || fail "notes of no run"
[ ! -e tree/build/broken/CMakeCache.txt ] || fail "the build that failed still takes notes"
rm program.fails

# An interrupt leaves no build that still takes notes.
touch waits
tree/scripts/tune.sh build/cut >out 2>err &
pid=$!
once test -e waiting
kill -s TERM $pid
rm waits
status=0
wait $pid || status=$?
[ "$status" -eq 130 ] || fail "status $status after a signal"
[ ! -e tree/build/cut/CMakeCache.txt ] || fail "the build still takes notes"
