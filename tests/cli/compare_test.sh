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
sed 's/"schema_version": 1/"schema_version": 7/' "$one" >version.json
bad "differ in schema_version" "$one" version.json
