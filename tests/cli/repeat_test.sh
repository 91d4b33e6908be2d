#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench run` beyond one run and one summary: --repeat, --percentiles, CSV, standard output, and what an interrupt
# leaves.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
[ -r /proc/self/stat ] || skip "no /proc to see how far a process is"
small="--keys 5K --ops 4K --clients 4"

# each run has its seed and is kept; a file is what a run with that seed writes
# shellcheck disable=SC2086
expect 0 run --workload a $small --seed 5 --repeat 3 --out r.json
holds out "seed 7: "
holds out "runs        3, seeds 5 to 7"
holds out "3 runs are few"
[ ! -e r.json ] || fail "--repeat wrote a result without a seed in its name"
# shellcheck disable=SC2086
expect 0 run --workload a $small --seed 6 --out six.json
result same six.json r.seed6.json || fail "the second run of --repeat is not that of the next seed"
# shellcheck disable=SC2086
expect 0 run --workload a $small --repeat 7 --percentiles 50,99.9
holds out "get 99.9 %"
if grep -q "runs are few" out; then fail "seven runs have an interval"; fi
grep -q '^  throughput .*Mops/s .*Mops/s .*Mops/s .*Mops/s .*Mops/s\|^  throughput .*Kops/s.*Kops/s.*Kops/s.*Kops/s.*Kops/s' out ||
    fail "no median, interval and extremes: $(cat out)"
# shellcheck disable=SC2086
expect 0 run --workload a $small --repeat 2 --json
python3 -c 'import json; assert [r["config"]["seed"] for r in json.load(open("out"))] == [1, 2]' || fail "--repeat --json"
expect 2 run --repeat 0
expect 2 run --repeat 2 --record x.ops
holds err "--repeat: --record"

# percentiles are those of the histogram; a list that is wrong names its part
# shellcheck disable=SC2086
expect 0 run --workload a $small --percentiles 50,90,99.99,100 --out p.json
holds out "99.99 %"
python3 - <<'PY' || fail "percentiles are not those of the histogram"
import json
for op in json.load(open("p.json"))["ops"].values():
    listed, usual = op["percentiles_ns"], op["latency_ns"]
    assert list(listed) == ["100", "50", "90", "99.99"] or set(listed) == {"50", "90", "99.99", "100"}, listed
    assert (listed["50"], listed["90"], listed["100"]) == (usual["p50"], usual["p90"], usual["max"])
    assert usual["p99_9"] <= listed["99.99"] <= usual["max"]
PY
for wrong in 0 101 50,,99 50,50 fast "50,"; do
    expect 2 run --percentiles "$wrong"
    holds err "--percentiles: "
done

# CSV: a header, then a line an operation with as many fields; numbers are those of the result
# shellcheck disable=SC2086
expect 0 run --workload a $small --repeat 2 --percentiles 99.5 --csv --out c.json
python3 - <<'PY' || fail "the CSV is not that of the results"
import csv, json
rows = list(csv.DictReader(open("out")))
assert len(rows) == 4 and all(None not in row and None not in row.values() for row in rows), rows
for row in rows:
    result = json.load(open(f"c.seed{row['seed']}.json"))
    op = result["ops"][row["operation"]]
    assert int(row["count"]) == op["count"] and row["is_partial"] == "0" and row["index"] == "sherman"
    assert int(row["latency_99.5_percent_ns"]) == op["percentiles_ns"]["99.5"]
    assert abs(float(row["throughput_ops_per_s"]) / result["throughput_ops_per_s"] - 1) < 1e-9
    assert float(row["latency_p99_9_ns"]) == op["latency_ns"]["p99_9"]
PY
# shellcheck disable=SC2086
expect 0 run --workload a $small --format csv
holds out "throughput_ops_per_s"
expect 2 run --csv --json

# standard output
# shellcheck disable=SC2086
expect 0 run --workload a $small --out -
[ ! -e ./- ] || fail "--out - made a file"
mv out stdout.json
# shellcheck disable=SC2086
expect 0 run --workload a $small --out file.json
result same stdout.json file.json || fail "--out - is not what --out writes"
expect 2 run --record -
holds err "standard output"

# An interrupt in the measurement: what was measured is kept beside, marked, and nothing takes it for a result.
"$DMBENCH" run --workload a --keys 5K --ops 100G --warmup 10 --out long.json >out 2>err &
pid=$!
worked 40
interrupt INT
holds err "dmbench run: interrupted"
holds out "PARTIAL     interrupted: "
[ ! -e long.json ] || fail "a partial result has the name of a complete one"
[ "$(result get long.partial.json is_partial)" = True ] || fail "the partial result is not marked"
[ "$(result get long.partial.json ops.get.count)" -gt 0 ] || fail "nothing was kept"
expect 2 compare long.partial.json long.partial.json
holds err "is partial"
mkdir -p both
cp long.partial.json both
cp file.json both
expect 0 compare both file.json
holds err "left out"
expect 0 run long.partial.json --ops 2K --out again.json
[ "$(result get again.json config.ops)" -eq 2000 ] || fail "a partial result is no spec"

# as the file of a sweep's point it counts as absent
expect 0 sweep --grid keys=5K --grid ops=2K --out sweep
point=$(find sweep/points -name '*.json')
cp long.partial.json "$point"
expect 0 sweep --grid keys=5K --grid ops=2K --out sweep --dry-run
holds out "1 to run"
holds err "is partial"
expect 0 sweep --grid keys=5K --grid ops=2K --out sweep
[ "$(result get "$point" phases.2.operations)" -eq 2000 ] || fail "the point was not run again"

# an interrupted sweep leaves no partial points; with --partial=off no run does
"$DMBENCH" sweep --grid keys=5K --grid ops=100G --grid warmup=10 --out stopped >out 2>err &
pid=$!
child() {
    running=$(cat "/proc/$pid/task/$pid/children") && [ -n "$running" ]
}
once child
worked 40 "${running%% *}"
interrupt INT
[ -z "$(find stopped -name '*.json')" ] || fail "an interrupted sweep left $(find stopped -name '*.json')"
"$DMBENCH" run --workload a --keys 5K --ops 100G --warmup 10 --partial=off --out none.json >out 2>err &
pid=$!
worked 40
interrupt TERM
[ -z "$(find . -name 'none*')" ] || fail "--partial=off left $(find . -name 'none*')"
[ ! -s out ] || fail "--partial=off printed $(cat out)"

fits p.json long.partial.json
