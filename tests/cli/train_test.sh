#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench train`: rows of both models, JSON, curves, and what cannot be trained.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 train --keys 20K --epsilon 16 --models 100
holds out "PLR"
holds out "RMI"
expect 0 train --keys 20K --key-set dense --json
holds out '"kind": "plr"'
holds out '"error_mean"'
holds out '"models": 1,'
# A dense set has one model of full leaves: 20000 / 16 entries of 8 bytes in either table. Half full, twice as many.
expect 0 train --keys 20K --key-set dense --models 1 --slots 16 --fill 16 --json
[ "$(grep -c '"table_bytes": 10000' out)" = 2 ] || fail "two tables of 1250 entries: $(grep table_bytes out)"
expect 0 train --keys 20K --key-set dense --models 1 --slots 16 --fill 8 --json
[ "$(grep -c '"table_bytes": 20000' out)" = 2 ] || fail "two tables of 2500 entries: $(grep table_bytes out)"
# With leaves, training is timed with their writing (PLR), and with their reading.
[ "$(grep -c '"stored_ns_per_key"' out)" = 1 ] || fail "one time with the writing of leaves: $(grep ns_per_key out)"
[ "$(grep -c '"retrain_ns_per_key"' out)" = 2 ] || fail "two times with the reading of leaves: $(grep ns_per_key out)"
expect 0 train --keys 20K --key-set dense --json
! grep -q 'stored_ns\|retrain_ns' out || fail "there are no leaves: $(grep ns_per_key out)"
expect 0 train --keys 5K --key-set lognormal --out curves
for file in curves/train-segments.tsv curves/train-segments.gp curves/train-error.tsv curves/train-error.gp; do
    [ -s "$file" ] || fail "$file was not written"
done
echo '{"source": "train", "keys": "5K", "models": 25}' >spec.json
expect 0 train spec.json --result result.json
holds result.json '"time_base": "none"'
holds result.json '"sub_models": 25'
holds result.json '"plr"'
# Options go over the file wherever it is.
expect 0 train --keys 7K spec.json --json
holds out '"keys": 7000'
expect 0 train spec.json --keys 7K --json
holds out '"keys": 7000'
# Folders are made before anything is trained.
expect 0 train --keys 1K --out new/below
[ -s new/below/train-error.tsv ] || fail "no curves in a new folder"
echo >file
expect 1 train --keys 9G --out file/below
holds err "file"
expect 2 train --keys 1K --result other.json --sweep
holds err "--result is for one training"
echo '{"source": "train", "kyes": "5K"}' >spec.json
expect 2 train spec.json --result other.json
holds err "kyes"
[ ! -e other.json ] || fail "a result of a bad spec"
expect 2 train --keys 0
holds err "at least 1"
expect 2 train --keys 10 --fill 2
holds err "does not hold"
expect 2 train --key-set uniforn
holds err "did you mean 'uniform'?"
expect 2 train --epsilon 2M

# Times are of the processor: beside an endless loop on the same one they are no multiple. By the clock they are twice as
# long. Other work of the host evicts caches, so one of some pairs is enough.
fit_ns() {
    taskset -c "$cpu" "$DMBENCH" train --keys 4M --models 100 --json | awk -F: '/"ns_per_key"/ { print $2 + 0; exit }'
}
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
for pair in 1 2 3 4 5; do
    alone=$(fit_ns)
    # It has an end, should this shell be killed.
    taskset -c "$cpu" timeout 300 sh -c 'while :; do :; done' &
    pid=$!
    beside=$(fit_ns)
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    awk "BEGIN { exit !($beside < 1.4 * $alone) }" && break
    [ "$pair" -lt 5 ] || fail "a key takes $beside ns beside a loop, $alone ns alone"
done
