#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts/costs.py fits what points cost to results, and what it prints is what plots/costs.json has.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || missing python3

# Results get processor times of the test's own, as those of so few operations are noise: microseconds an operation by
# index and kind, of which an untimed one takes 0.4, and a tenth of one for each key that is loaded.
cat >times.py <<'PY'
import glob, json, sys

MICROSECONDS = {"sherman": {"read": 2, "insert": 5, "scan": 20}, "fg": {"read": 1, "insert": 4, "scan": 50}}
for path in glob.glob(sys.argv[1] + "/*.json"):
    result = json.load(open(path, encoding="utf-8"))
    config = result["config"]
    timed = config["timed_warmup"]
    untimed = config["warmup"] - timed if timed else 0
    shares = {kind: float(by) for kind, by in (part.split("=") for part in config["mix"].split(","))}
    each = sum(by * MICROSECONDS[config["index"]][kind] for kind, by in shares.items())
    counted = config["ops"] + config["warmup"] - 0.6 * untimed
    result["provenance"]["host"].update(load_cpu_s=1e-7 * config["keys"], run_cpu_s=1e-6 * each * counted)
    json.dump(result, open(path, "w", encoding="utf-8"))
PY

expect 0 sweep --grid index=sherman,fg --grid keys=2K,4K --grid workload=c,e --grid ops=2K,4K --out sweep
python3 times.py sweep/points
python3 "$DM_SOURCE_DIR/scripts/costs.py" sweep/points >costs.json || fail "costs.py failed"
python3 - costs.json "$DM_SOURCE_DIR/plots/costs.json" <<'PY'
import json, sys

made, kept = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert sorted(made) == ["fg", "other", "points", "sherman"], sorted(made)
for costs in (made, kept):
    for parts in costs.pop("points").values():
        assert set(parts) <= {"bytes", "load_s", "run_s"} and all(value > 0 for value in parts.values()), parts
    for index, parts in costs.items():
        assert 0 < parts.pop("untimed", 1) <= 1, (index, parts)
        assert sorted(parts) == ["bytes", "load_s", "run_s"], (index, parts)
        assert all(value > 0 for part in parts.values() for value in part.values()), (index, parts)
# What was put into the results is found; inserts and scans come together, so that their times are not found separately.
for index, by in (("sherman", 2e-6), ("fg", 1e-6)):
    assert abs(made[index]["run_s"]["read"] / by - 1) < 0.01, (index, made[index])
    assert abs(made[index]["load_s"]["key"] / 1e-7 - 1) < 0.01, (index, made[index])
assert made["sherman"]["bytes"], made
PY

# Calibrated by the same results, seconds that are twice as many become the same, and their sum is what was measured.
python3 - costs.json >twice.json <<'PY'
import json, sys

costs = json.load(open(sys.argv[1], encoding="utf-8"))
for index, parts in costs.items():
    for part in ("load_s", "run_s") if index != "points" else ():
        parts[part] = {name: 2 * by for name, by in parts[part].items()}
json.dump(costs, sys.stdout)
PY
for name in costs twice; do
    python3 "$DM_SOURCE_DIR/scripts/costs.py" --calibrate $name.json sweep/points >$name.calibrated 2>$name.ratios ||
        fail "costs.py --calibrate failed"
done
python3 - costs twice <<'PY'
import json, sys

one, two = (json.load(open(name + ".calibrated", encoding="utf-8")) for name in sys.argv[1:])
for index in ("fg", "other", "sherman"):
    assert sorted(one[index]) == sorted(two[index]), index
    for part in ("load_s", "run_s"):
        for name, by in one[index][part].items():
            assert 0.97 < two[index][part][name] / by < 1.03, (index, part, name)
    assert one[index]["bytes"] == two[index]["bytes"]
ratios = [
    {line.split(":")[0]: float(line.split("took")[1].split(", ")[1].split()[0]) for line in open(name + ".ratios")}
    for name in sys.argv[1:]
]
assert ratios[0].keys() == ratios[1].keys() and "run_s fg" in ratios[0], ratios
assert all(0.45 < ratios[1][name] / ratio < 0.55 for name, ratio in ratios[0].items()), ratios
PY

# What untimed operations take is a share of what timed ones do, by pairs of results; nothing else changes.
expect 0 sweep --grid index=sherman --grid keys=2K,4K --grid workload=c --grid ops=2K --grid warmup=200K \
    --grid timed_warmup=0,1K --out untimed
python3 times.py untimed/points
python3 "$DM_SOURCE_DIR/scripts/costs.py" --untimed costs.json untimed/points >untimed.json 2>untimed.said ||
    fail "costs.py --untimed failed"
grep -q "^untimed sherman: 0\.400 of a timed operation" untimed.said || fail "untimed: $(cat untimed.said)"
python3 - costs.json untimed.json <<'PY'
import json, sys

before, after = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
shares = {name: after[name].pop("untimed") for name in ("sherman", "fg", "other")}
assert set(shares.values()) == {0.4}, shares
assert before == after
PY

# A read before the warm-up costs what an untimed get does.
mkdir -p plots/figures
cp "$DM_SOURCE_DIR/plots/style.gp" "$DM_SOURCE_DIR/plots/systems.json" "$DM_SOURCE_DIR/plots/costs.json" plots/
cat >plots/figures/reads.json <<'JSON'
{
    "id": "reads", "title": "Reads", "shows": "reads", "keeps": "everything",
    "config": {"index": "sherman", "workload": "c", "keys": "1M"},
    "from": {"keys, workload, load_reads": "assumed: a test"},
    "scales": {"quick": {"config": {}, "x": [0, 100000000]}, "paper": {"config": {}, "x": [0]}},
    "series": [{"label": "Sherman"}],
    "x": {"option": "load_reads", "label": "reads"},
    "plots": [{"id": "throughput", "kind": "line", "y_label": "Mops/s",
               "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON
expect 0 figure reads --plots plots --dry-run --json
python3 - plots/costs.json out <<'PY' || fail "reads before the warm-up cost another time"
import json, sys

by, points = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
seconds = sorted(point["estimated_seconds"] for point in points)
assert len(seconds) == 2, points
one = 1e8 * by["sherman"]["untimed"] * by["sherman"]["run_s"]["read"]
assert abs(seconds[1] - seconds[0] - one) < 0.01 * one, (seconds, one)
PY

# A single point that is not run again gets the ratio of its index, where that is known, else that of all.
mkdir sample
python3 - costs.json sweep/points sample >single.json <<'PY'
import glob, json, os, sys

costs = json.load(open(sys.argv[1], encoding="utf-8"))
results = [(path, json.load(open(path, encoding="utf-8"))) for path in sorted(glob.glob(sys.argv[2] + "/*.json"))]
single = next(i for i, (_, result) in enumerate(results) if result["config"]["index"] == "fg")
costs["points"] = {results[single][1]["config_hash"]: {"run_s": 1000.0}}
for i, (path, _) in enumerate(results):
    if i != single:
        os.symlink(os.path.abspath(path), sys.argv[3] + "/" + os.path.basename(path))
for part in ("fg", "sherman", "other"):
    costs[part]["run_s"] = {name: (4 if part == "fg" else 2) * by for name, by in costs[part]["run_s"].items()}
json.dump(costs, sys.stdout)
PY
for known in "" "--indexes sweep/points"; do
    # shellcheck disable=SC2086
    python3 "$DM_SOURCE_DIR/scripts/costs.py" --calibrate single.json $known sample >"single.${known%% *}" 2>ratios ||
        fail "costs.py --calibrate $known failed"
done
python3 - single. single.--indexes ratios <<'PY'
import json, sys

said = {line.split(":")[0]: float(line.split(", ")[1].split()[0]) for line in open(sys.argv[3])}
for name, index in ((sys.argv[1], "other"), (sys.argv[2], "fg")):
    (point,) = json.load(open(name, encoding="utf-8"))["points"].values()
    assert abs(point["run_s"] / 1000 - said["run_s " + index]) < 0.006, (name, point, said)
assert abs(said["run_s fg"] - said["run_s other"]) > 0.05, said
PY
# A point that was run again has what it took then, here so little that its sum is enough; others keep what they have.
for again in sample sweep/points; do
    python3 "$DM_SOURCE_DIR/scripts/costs.py" --points single.json "$again" >"${again%%/*}.again" || fail "costs.py --points failed"
done
python3 - single.json sample.again sweep.again <<'PY'
import json, sys

before, others, again = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert others == before, others["points"]
assert before.pop("points") and again.pop("points") == {} and again == before, again
PY
if python3 "$DM_SOURCE_DIR/scripts/costs.py" --indexes sweep/points sweep/points >out 2>&1; then
    fail "--indexes without --calibrate: no error"
fi
grep -q "indexes is for --calibrate" out || fail "$(cat out)"

# What was measured of a point replaces the sum: here 7 GB, of a point that takes some MB.
mkdir data
for name in "$DM_SOURCE_DIR"/*; do
    ln -s "$name" data/
done
rm data/plots
cp -r "$DM_SOURCE_DIR/plots" data/plots
expect 0 sweep --grid index=sherman --grid keys=2K,4K --dry-run --out measured
point=$(sed -n 's/^ *\([0-9a-f]\{16\}\) .*keys=2K$/\1/p' out)
[ -n "$point" ] || fail "$(cat out)"
grep -q "up to 0.. GB each" out || fail "$(cat out)"
python3 - "$point" data/plots/costs.json <<'PY'
import json, sys

costs = json.load(open(sys.argv[2], encoding="utf-8"))
costs["points"] = {sys.argv[1]: {"bytes": 7e9}}
json.dump(costs, open(sys.argv[2], "w", encoding="utf-8"))
PY
DMBENCH_DATA=$PWD/data
export DMBENCH_DATA
expect 0 sweep --grid index=sherman --grid keys=2K,4K --dry-run --out measured
grep -q "up to [7-9].. GB each" out || fail "$(cat out)"
