#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Recording a run's operations and running them again on other indexes and transports. A recording is
# complete, or after a failure or an interrupt does not exist.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
small="--keys 20K --ops 8K --clients 12 --cns 2 --coroutines 2"

# is FILE EXPRESSION
is() {
    result true "$1" "$2" || fail "$1: not so: $2"
}

# nothing_left PREFIX WHY
nothing_left() {
    [ -z "$(find . -name "$1*")" ] || fail "$2 left $(find . -name "$1*")"
}

# Recording changes only the member `record` of the configuration, and not the name of the point.
# shellcheck disable=SC2086
expect 0 run --index sherman --workload d $small --out plain.json
# shellcheck disable=SC2086
expect 0 run --index sherman --workload d $small --record run.ops --out recorded.json
holds out "recorded in run.ops"
[ -s run.ops ] || fail "no recording"
nothing_left "run.ops.tmp" "a recording"
[ "$(result get recorded.json config.record)" = run.ops ] || fail "the result does not name the recording"
[ "$(result get plain.json config_hash)" = "$(result get recorded.json config_hash)" ] ||
    fail "recording changes the configuration's hash"
[ "$(result get plain.json ops)" = "$(result get recorded.json ops)" ] || fail "recording changes the run"

# The result runs again as it is, and writes the same recording.
cp run.ops first.ops
expect 0 run recorded.json --out again.json
result same recorded.json again.json || fail "a recorded run does not run again as it is"
cmp run.ops first.ops || fail "the same run recorded something else"

# The same index gives the same result for the same operations; by default the complete recording is run.
# shellcheck disable=SC2086
expect 0 run --index sherman --replay run.ops --clients 12 --cns 2 --coroutines 2 --out replay.json
holds out "replay of run.ops"
[ "$(result get plain.json ops)" = "$(result get replay.json ops)" ] || fail "a replay is another run"
[ "$(result get plain.json config_hash)" != "$(result get replay.json config_hash)" ] ||
    fail "a replay has the name of another point"
is replay.json 'config["replay"] == "run.ops" and config["keys"] == 20000 and config["ops"] == 8000 and config["warmup"] == 800'
expect 0 run replay.json --out again.json
result same replay.json again.json || fail "a replay does not run again as it is"

# Other indexes, transports and numbers of clients run the same operations: every one of them once.
expect 0 run --index null --replay run.ops --warmup 0 --clients 12 --out null.json
expect 0 run --index null --replay run.ops --warmup 0 --clients 5 --out fewer.json
expect 0 run --index null --replay run.ops --warmup 0 --clients 12 --rate 1M --out paced.json
is null.json 'ops["get"]["count"] + ops["insert"]["count"] == 8800'
inserts=$(result get null.json ops.insert.count)
for file in fewer paced; do
    is $file.json "ops['insert']['count'] == $inserts and ops['get']['count'] == 8800 - $inserts"
done
if "$DMBENCH" list transports | grep -q '^  local '; then
    expect 0 run --index sherman --transport local --replay run.ops --warmup 0 --clients 4 --coroutines 2 --verify --out local.json
    is local.json "ops['insert']['count'] == $inserts and ops['get']['count'] == 8800 - $inserts"
    is local.json "ops['insert']['outcomes'] == {'ok': $inserts}"
fi
expect 0 run --index null --replay run.ops --warmup 0 --ops 100 --clients 12 --out part.json
is part.json 'phases[2]["operations"] == 100'

# Files that are no recording, and options that conflict, give one line and no file.
refused() {
    wanted=$1
    text=$2
    shift 2
    expect "$wanted" run --index null --clients 12 "$@" --out refused.json
    holds err "$text"
    [ "$(wc -l <err)" -eq 1 ] || fail "dmbench run $*: more than one line: $(cat err)"
    nothing_left refused "dmbench run $*"
}
: >empty.ops
refused 2 "empty.ops is not a file of recorded operations" --replay empty.ops
head -c 5000 run.ops >cut.ops
refused 2 "cut.ops is damaged or truncated" --replay cut.ops
refused 2 "plain.json is not a file of recorded operations" --replay plain.json
refused 2 "absent.ops cannot be opened" --replay absent.ops
refused 2 "--warmup: there are only 8800 operations in run.ops" --replay run.ops --warmup 8800
refused 2 "--key-set: run.ops was recorded with" --replay run.ops --key-set dense
refused 2 "--record: run.ops is a recording already" --replay run.ops --record refused.ops
refused 2 "--record: 'refused.json' is where --out writes" --record refused.json
refused 1 "--record: cannot write in folder 'absent'" --record absent/refused.ops
mkdir folder
refused 2 "--record: 'folder/' is a folder" --record folder/

# A run that fails leaves no recording, and does not change an existing one.
# shellcheck disable=SC2086
expect 1 run --index sherman --workload a $small --transport-set "faults=fail:node=0,at=1ms" --record failed.ops
nothing_left failed "a failed run"
cp run.ops kept.ops
# shellcheck disable=SC2086
expect 1 run --index sherman --workload a $small --transport-set "faults=fail:node=0,at=1ms" --record kept.ops
cmp run.ops kept.ops || fail "a failed run changed a recording"
nothing_left "kept.ops.tmp" "a failed run"

# The same holds for a run that is interrupted once or twice.
for signals in 1 2; do
    "$DMBENCH" run --index sherman --workload a --keys 10K --ops 100G --clients 16 --record interrupted.ops >out 2>err &
    pid=$!
    while [ ! -s "interrupted.ops.tmp.$pid" ]; do
        kill -0 "$pid" 2>/dev/null || fail "ended too early: $(cat err)"
    done
    signal INT
    [ "$signals" -eq 1 ] || kill -s INT "$pid" 2>/dev/null || true
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || fail "an interrupt: status $status; stderr: $(cat err)"
    nothing_left interrupted "an interrupt"
done

fits recorded.json replay.json null.json paced.json
