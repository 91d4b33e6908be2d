#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench compare`: sets, single results, conditions and their exit status, JSON, and bad input.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >base.json <<'JSON'
{"index": "sherman", "workload": "a", "keys": "1K", "ops": "2K", "warmup": "0"}
JSON
expect 0 sweep base.json --grid clients=2,4 --repeat 4 --out before
expect 0 sweep base.json --grid clients=2,4,8 --grid set.combine=off --repeat 4 --out after

expect 0 compare before after
holds out "simulated: virtual time"
holds out "A and B differ in: set.combine true -> false"
holds out "clients=2: 4 and 4 runs"
holds out "clients=4: 4 and 4 runs"
holds out "without a partner: 0 results of A, 4 of B"
holds out "update.p99"
holds out "Cliff's delta"

# 4 and 4 runs give no p below 0.029, and there are 20 tests: said, with the number of runs that would do.
holds out "few runs: the intervals are too narrow"
holds out "few runs: p cannot be below 0.0286, so that none of 20 tests can show a difference; 6 a side can"
holds out "Holm: p corrected for the 20 tests above"
if grep -q " 0\.0000 " out; then fail "a p is printed as 0: $(cat out)"; fi

# Other seeds are said, the same ones not.
if grep -q "^seeds: " out; then fail "the same seeds are called different: $(cat out)"; fi
expect 0 sweep base.json --grid clients=2,4 --grid seed=11,12,13,14,15,16,17,18 --out others
expect 0 compare before others
holds out "seeds: A 1 2 3 4, B 11 12 13 ... 18"
holds out "A and B have the same configuration"

# 8 and 8 runs, of which all of one side are greater: a small p has an exponent, and what is one bucket apart is no effect.
expect 0 sweep base.json --grid clients=2,4 --grid seed=11,12,13,14,15,16,17,18 --grid set.combine=off --out apart
expect 0 compare others apart
if grep -q "few runs" out; then fail "eight runs are not few: $(cat out)"; fi
grep -q " [1-9]e-0[0-9] " out || fail "no p below 0.001: $(cat out)"
expect 0 compare others apart --json
python3 - <<'PYTHON' || fail "$(cat out)"
import json
made = json.load(open("out"))
p = sorted((m["p"], m["p_holm"]) for point in made["points"] for m in point["metrics"].values())
assert made["tests"] == len(p) == 20 and made["seeds"] == {"a": list(range(11, 19)), "b": list(range(11, 19))}
expected = 0
for rank, (plain, corrected) in enumerate(p):
    expected = max(expected, min(1, plain * (len(p) - rank)))
    assert abs(corrected - expected) < 1e-12, (rank, plain, corrected, expected)
for point in made["points"]:
    for name, metric in point["metrics"].items():
        larger, apart = max(metric["a"], metric["b"]), abs(metric["a"] - metric["b"])
        within = name.split(".")[-1] in ("p50", "p99") and 0 < apart <= 2 ** (int(larger).bit_length() - 8)
        assert metric["within_bucket"] == within and (metric["effect"] == "within one bucket") == within, (name, metric)
PYTHON

# Without combining, updates take a round trip more.
expect 3 compare before after --fail-if 'update.round_trips > 1.2' --certain
holds err "update.round_trips is"
expect 0 compare before after --fail-if 'get.round_trips > 1.2'
expect 0 compare before before --fail-if 'p99 > 1' --fail-if 'throughput < 1'
expect 2 compare before after --fail-if 'scan.p99 > 1'
holds err "no point has a metric 'scan.p99'"

expect 0 compare "before/points/*.json" after --json
python3 - <<'PYTHON' || fail "$(cat out)"
import json
made = json.load(open("out"))
assert [p["point"] for p in made["points"]] and all(p["runs_a"] == 4 for p in made["points"])
for point in made["points"]:
    metric = point["metrics"]["update.round_trips"]
    assert metric["interval"][0] <= metric["ratio"] <= metric["interval"][1]
    assert 0 < metric["p"] <= 1 and -1 <= metric["cliffs_delta"] <= 1
PYTHON

one=$(find before/points -name '*.json' | sort | head -n 1)
expect 0 compare "$one" "$one"
holds out "no interval without repetitions"
holds out "A and B have the same configuration"

# One set, whose two sides differ in an option.
expect 0 compare after --a clients=2 --b clients=8
holds out "A and B differ in: clients 2 -> 8"

# Values as the command line takes them.
expect 0 sweep base.json --grid set.fill=0.7,0.8 --grid cache=1MB,2MB --grid set.combine=on,off --grid mn_cores=1,2 --out typed
for pair in "set.fill=0.7 set.fill=0.8" "cache=1MB cache=2000KB" "set.combine=on set.combine=off" "mn-cores=1 mn_cores=2" \
    "keys=1K keys=1000"; do
    expect 0 compare typed --a "${pair% *}" --b "${pair#* }"
done

bad() {
    reason=$1
    shift
    expect 2 compare "$@"
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}
bad "name two results" before
bad "two things are compared" before after before
bad "--b: no result of after" after --a clients=2 --b clients=3
bad "name two results" after --a clients=2
bad "'clients' is not NAME=VALUE" after --a clients
bad "nowhere: no results there" before nowhere
bad "base.json: is not a result" before base.json
bad "'p99 = 1'" before after --fail-if 'p99 = 1'
head -c 200 "$one" >cut.json
bad "cut.json:" before cut.json
expect 0 sweep base.json --grid workload=c --out other
bad "the workloads differ" "$one" other
expect 0 compare "$one" other --force
expect 0 sweep base.json --grid transport=local --out local
bad "differ in time_base" "$one" local
sed 's/"schema_version": 2/"schema_version": 7/' "$one" >version.json
bad "differ in schema_version" "$one" version.json
