#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Limits, special files and damaged files: there is one line that says what is wrong, a status, and nothing is replaced
# or left behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# one_line STATUS TEXT: the last program ended with the status, and its only line of errors has the text.
one_line() {
    [ "$status" -eq "$1" ] || fail "status $status instead of $1: $(cat err)"
    holds err "$2"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
    [ -z "$(find . -name '*.tmp.*')" ] || fail "a temporary file is left"
}

# limited LIMITS WORDS...: runs dmbench below limits of the shell.
limited() {
    limits=$1
    shift
    status=0
    # shellcheck disable=SC2086 # several words
    (ulimit $limits && exec "$DMBENCH" "$@") >out 2>err || status=$?
}

# Keys that do not fit: no empty index is measured. Sanitizers reserve more than any limit of memory.
limited "-v 4000000" --version
if [ "$status" -eq 0 ]; then
    limited "-v 4000000" run --index null --keys 1G --ops 1K --clients 2
    one_line 1 "no memory for the array of 1000000000 keys to load"
    limited "-v 4000000" train --keys 1G --key-set dense
    one_line 1 "no memory for the array of 1000000000 keys"
fi

# tiny WORDS...: a run of no time, with more options.
tiny() {
    status=0
    "$DMBENCH" run --index null --keys 1K --ops 1K --clients 1 "$@" >out 2>err || status=$?
}

# An output never replaces what is no regular file, and follows symbolic links.
if [ -c /dev/full ] && [ -w /dev/full ]; then
    mkdir devices
    ln -s /dev/full devices/full
    for option in --out --verb-trace; do
        tiny $option devices/full
        one_line 1 "devices/full: cannot write: No space left on device"
        [ -c devices/full ] || fail "$option replaced a link to a device"
    done
    if mknod devices/node c 1 7 2>/dev/null; then
        tiny --out devices/node
        [ -c devices/node ] || fail "--out replaced a device"
        [ "$status" -ne 0 ] || fail "a full device went unnoticed"
    fi
    tiny --record devices/full
    one_line 1 "--record: devices/full: cannot write: it exists and is no regular file"
    [ -c devices/full ] || fail "--record replaced a device"
fi
ln -s /dev/null null.link
tiny --out null.link
[ "$status" -eq 0 ] || fail "/dev/null as output: $(cat err)"
mkfifo pipe
for option in --out --verb-trace; do
    tiny $option pipe
    one_line 1 "pipe: cannot write: no process reads from it"
done
tiny --record pipe
one_line 1 "--record: pipe: cannot write: it exists and is no regular file"
cat pipe >piped &
reader=$!
until tiny --out pipe && [ "$status" -eq 0 ]; do
    kill -0 "$reader" || fail "no output through a FIFO: $(cat err)"
done
wait "$reader"
[ -p pipe ] || fail "a FIFO was replaced"
holds piped '"throughput_ops_per_s"'
mkdir elsewhere
for option in out record verb-trace; do
    ln -s elsewhere/$option $option.link
    for time in first second; do
        tiny --$option $option.link
        [ "$status" -eq 0 ] || fail "--$option to a link, $time time: $(cat err)"
        [ -L $option.link ] || fail "--$option replaced a symbolic link"
        [ -s elsewhere/$option ] || fail "--$option did not follow a symbolic link"
    done
done
ln -s circle circle
tiny --out circle
one_line 1 "--out: circle: cannot write: Too many levels of symbolic links"

# A limit of file sizes ends no program silently. What is below it is written.
mkdir limit
limited "-f 4" run --index null --keys 1K --ops 1K --clients 1 --out limit/result.json
one_line 1 "limit/result.json: cannot write: File too large"
limited "-f 4" run --index null --keys 1K --ops 10K --clients 1 --record limit/run.ops
one_line 1 "record: limit/run.ops: cannot write: File too large"
limited "-f 4" run --index null --keys 1K --ops 1K --clients 1 --verb-trace limit/trace.json
one_line 1 "limit/trace.json: cannot write: File too large"
[ -z "$(ls limit)" ] || fail "files are left: $(ls limit)"

# A FIFO that no process writes to is refused, without waiting for a writer.
mkfifo silent
fifo_refused() {
    tiny "$@"
    one_line "$wanted" "$said"
}
wanted=2 said="silent: holds no keys"
fifo_refused --key-set sosd:silent
fifo_refused --key-set raw:silent
said="silent is not a file of recorded operations"
fifo_refused --replay silent
wanted=2 said="silent: cannot be opened: No data available"
fifo_refused --trace silent
fifo_refused --ycsb ./silent
said="silent: cannot open: No data available"
fifo_refused --profile ./silent
fifo_refused silent
# A pipe with a writer is read.
echo '{"seed": 7}' | expect 0 run --index null --keys 1K --ops 1K --clients 1 /dev/stdin

# A result that no run can have written is refused by its name, where results are compared and where points are read.
"$DMBENCH" run --index sherman --keys 1K --ops 1K --clients 2 --out good.json >/dev/null
"$DMBENCH" compare good.json good.json >/dev/null
# altered EXPRESSION TEXT: the edited result is refused.
altered() {
    sed "$1" good.json >bad.json
    ! cmp -s good.json bad.json || fail "'$1' changed nothing"
    status=0
    "$DMBENCH" compare good.json bad.json >out 2>err || status=$?
    one_line 2 "bad.json: "
    holds err "$2"
}
altered 's/"throughput_ops_per_s": .*/"throughput_ops_per_s": "fast",/' "throughput_ops_per_s is not a number"
altered 's/"throughput_ops_per_s": .*/"throughput_ops_per_s": -1e308,/' "throughput_ops_per_s is -1e+308"
altered 's/"throughput_ops_per_s": .*/"throughput_ops_per_s": 1e18,/' "throughput_ops_per_s is 1e+18"
altered 's/"config_hash": ".*"/"config_hash": "0123456789abcdef"/' "config_hash is '0123456789abcdef'"
altered 's/"seed": .*/"seed": 99,/' "it was altered"
altered 's/"hash": ".*"/"hash": "0123456789abcdef"/' "it was altered"
echo '{"index": "sherman", "keys": "1K", "ops": "1K", "seed": 1}' >base.json
sweep() {
    "$DMBENCH" sweep base.json --grid clients=1,2 --out swept >/dev/null 2>err
}
sweep || fail "a sweep: $(cat err)"
for edit in 's/"throughput_ops_per_s": .*/"throughput_ops_per_s": "fast",/' 's/"seed": .*/"seed": 99,/'; do
    cp swept/table.tsv table.tsv
    point=$(find swept/points -name '*.json' | sort | head -n 1)
    sed -i "$edit" "$point"
    sweep || fail "a sweep with a damaged point: $(cat err)"
    holds err "$point: "
    holds err "counts as absent"
    cmp -s swept/table.tsv table.tsv || fail "a damaged point is in the table"
done
# shellcheck disable=SC2046 # two names
set -- $(find swept/points -name '*.json')
cp "$1" "$2"
sweep || fail "a sweep with a point twice: $(cat err)"
holds err "$2: is the result of point $(basename "$1" .json)"
cmp -s swept/table.tsv table.tsv || fail "the result of another point is in the table"

# A recording that was changed is refused, also where any value is possible: bytes 8 to 15 of its header are the seed.
"$DMBENCH" run --index null --keys 1K --ops 1K --clients 1 --record run.ops >/dev/null
tiny --replay run.ops --warmup 0
[ "$status" -eq 0 ] || fail "a replay: $(cat err)"
{
    head -c 8 run.ops
    printf '\377\377\377\377\377\377\377\377'
    tail -c +17 run.ops
} >seed.ops
tiny --replay seed.ops
one_line 2 "replay: seed.ops was changed after it was recorded"
