#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench map`: the winners are those of the results, points are added along borders alone, and a second run has nothing to
# do.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# bad TEXT WORDS...: refused in one line that holds the text.
bad() {
    reason=$1
    shift
    expect 2 map "$@"
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}
bad "which plane?" --x clients=1..4
bad "did you mean 'clients'?" --x client=1..4 --y cache=1MB..2MB
bad "--x: clients: the low end is not below the high one" --x clients=4..1 --y cache=1MB..2MB
bad "--y: cache: '2XB'" --x clients=1..4 --y cache=1MB..2XB
bad "neither log nor linear" --x clients=1..4:lin --y cache=1MB..2MB
bad "begins above 0" --x clients=0..4:log --y cache=1MB..2MB
bad "is no number of positions" --x clients=1..4/1 --y cache=1MB..2MB
bad "not above the value before it" --x clients=4,2 --y cache=1MB..2MB
bad "one value is no axis" --x clients=4 --y cache=1MB..2MB
bad "the ends are the same" --x theta=0.5..0.50000001 --y cache=1MB..2MB
bad "the same option" --x clients=1..4 --y clients=1..4
bad "has no numbers" --x rdwc=off..on --y clients=1..4
bad "did you mean 'sherman'?" --x clients=1..4 --y cache=1MB..2MB --indexes sherman,shermann
bad "at least two" --x clients=1..4 --y cache=1MB..2MB --indexes sherman
bad "INDEX.NAME=VALUE" --x clients=1..4 --y cache=1MB..2MB --set combine=off
bad "unknown map 'nosuch'" nosuch
bad "--metric" --x clients=1..4 --y cache=1MB..2MB --metric nosuch
bad "--slurm" --x clients=1..4 --y cache=1MB..2MB --slurm job.sh
bad "no system can run here" --x value_size=2KB..4KB --y cache=1MB..2MB --indexes sherman,dolphin
bad "is of maps that have names" --x clients=1..4 --y cache=1MB..2MB --scale paper
expect 0 map --x clients=1,2 --y cache=1MB,2MB --indexes sherman,chime --stale list
holds out "8 points in results, 0 stale"
expect 0 map --x clients=1,2 --y cache=1MB,2MB --indexes sherman,chime --verify --keys 9K --dry-run
[ ! -e results ] || fail "something was run"

# A plane with a border: ROLEX needs less cache than CHIME.
set -- --x value_size=8..128/9 --y cache=10KB..10MB/9 --start 3 --indexes chime,rolex --workload b --keys 20K --ops 2K \
    --name border --no-plot
expect 0 map "$@" --dry-run
holds out "border: 2 systems; 18 points at 9 positions to begin with, 18 to run"
holds out "at most 162 points at 81 positions"
expect 0 map "$@"
holds out "Best in so much of the plane: "
holds out "| 10.00 MB | CHIME"
cp out first
expect 0 map "$@"
cmp -s out first || fail "the second run has another map: $(diff first out)"
! grep ' to run' err | grep -v ' 0 to run' || fail "points were run twice: $(cat err)"
# A system that refuses some positions is not there, and that is said.
expect 0 map --x value_size=128,1KB --y cache=1MB,2MB --indexes chime,sherman --keys 1K --ops 500 --no-plot
holds out "Sherman has no result at 2 of them: "
holds out "CHIME alone"
expect 0 map --x mix.update=0..1/3 --y theta=0.5,0.9 --indexes chime,sherman --set sherman.combine=off --keys 1K --ops 500 \
    --metric ops.get.latency_ns.p99 --lowest --no-plot --json
holds out '"set_of"'

# A result as the base: of another workload that is named it is that workload's mix, and the result's parameters are its
# index's alone.
expect 0 run --index sherman --workload a --keys 1K --ops 500 --set combine=off --out one.json
expect 0 map one.json --workload c --x clients=1,4 --y cache=1MB,2MB --indexes chime,sherman --no-plot --json
python3 - out <<'PY' || fail "$(cat out)"
import json
import sys

the_map = json.load(open(sys.argv[1], encoding="utf-8"))
assert all(len(one["values"]) == 2 for one in the_map["positions"]), the_map["systems"]
for one in the_map["positions"]:
    for label, name in one["points"].items():
        config = json.load(open(f"results/points/{name}.json", encoding="utf-8"))["config"]
        assert config["mix"] == "read=1", config["mix"]
        assert config["set"].get("combine") == ({"Sherman": False}.get(label)), (label, config["set"])
PY

# Operations that gave up distort a point, which then has no value.
expect 0 map --x clients=160,320 --y cache=1MB,2MB --indexes chime,sherman --cns 10 --workload a --keys 1K --ops 4K \
    --rdwc off --retry-limit 1 --no-plot
holds out "operations ran out of memory or of retries"

if command -v python3 >/dev/null; then
    python3 - results/maps/border.json results/maps/border.csv results <<'PY'
import csv
import json
import sys

the_map = json.load(open(sys.argv[1], encoding="utf-8"))
rows = list(csv.DictReader(open(sys.argv[2], encoding="utf-8")))
xs, ys = the_map["x"]["values"], the_map["y"]["values"]
assert xs[0] == "8" and xs[-1] == "128" and ys[0] == "10000" and ys[-1] == "10000000", (xs, ys)
found = {(xs.index(one["x"]), ys.index(one["y"])): one for one in the_map["positions"]}
assert len(rows) == len(found)
for one in found.values():
    values = one["values"]
    for label, name in one["points"].items():
        result = json.load(open(f"{sys.argv[3]}/points/{name}.json", encoding="utf-8"))
        assert result["throughput_ops_per_s"] == values[label]
        assert str(result["config"]["value_size"]) == one["x"] and str(result["config"]["cache"]) == one["y"]
    best = max(values, key=values.get)
    assert one["best"] == best, one
    assert abs(one["lead"] - (values[best] / values[one["second"]] - 1)) < 1e-9, one
for row in rows:
    one = found[xs.index(row["value_size"]), ys.index(row["cache"])]
    assert row["best"] == one["best"] and float(row["CHIME"]) - one["values"]["CHIME"] < 1
# The cells of the first grid: those with a border were divided, the others were not.
divided = whole = 0
for x in (0, 4):
    for y in (0, 4):
        corners = [found[a, b] for a in (x, x + 4) for b in (y, y + 4)]
        is_border = len({one["best"] for one in corners}) > 1 or min(one["lead"] for one in corners) < 0.05
        inner = [at for at in found if x < at[0] < x + 4 and y < at[1] < y + 4]
        on_edge = [at for at in found if x <= at[0] <= x + 4 and y <= at[1] <= y + 4 and at not in inner]
        if is_border:
            assert inner, (x, y)
            divided += 1
        elif len(on_edge) == 4:
            assert not inner, (x, y, inner)
            whole += 1
assert divided and len(found) < len(xs) * len(ys), (divided, whole, len(found))
PY
fi

# A map with a name, and its picture.
mkdir -p plots/maps
cp "$DM_SOURCE_DIR/plots/style.gp" "$DM_SOURCE_DIR/plots/systems.json" plots/
cat >plots/maps/small.json <<'JSON'
{"id": "small", "title": "A map's title", "shows": "little",
 "config": {"workload": "c", "keys": "1K", "warmup": "0"}, "scales": {"quick": {"config": {"ops": "500"}}},
 "x": {"values": "clients=1,4", "label": "clients"}, "y": {"values": "cache=0,1MB", "label": "it's a cache"},
 "systems": [{"label": "Sherman", "config": {"index": "sherman"}}, {"label": "CHIME", "config": {"index": "chime"}}]}
JSON
expect 0 map --plots plots --list
holds out "small: A map's title"
bad "has no scale 'huge'" small --plots plots --scale huge
bad "has its systems" small --plots plots --indexes sherman,chime
bad "is for one map" all --plots plots --name other
sed -i 's/"label": "clients"/"labell": "clients"/' plots/maps/small.json
bad "labell" small --plots plots
sed -i 's/labell/label/' plots/maps/small.json
command -v gnuplot >/dev/null || missing "gnuplot; the tables were checked"
expect 0 map all --plots plots
holds out "# A map's title"
for kind in png svg pdf; do
    [ -s results/maps/small.$kind ] || fail "no picture small.$kind"
done
grep -q '>Sherman<\|>CHIME<' results/maps/small.svg || fail "the picture names no system"
# Options go over the file, and a picture of other results is not kept.
expect 0 map small --plots plots --metric ops.get.latency_ns.p99 --lowest --no-plot
holds results/maps/small.json '"metric": "ops.get.latency_ns.p99"'
holds results/maps/small.json '"scale": "quick"'
[ ! -e results/maps/small.svg ] || fail "a picture of another metric"
expect 0 map small --plots plots --name tiny --no-plot
[ -e results/maps/tiny.json ] || fail "no map of this name"
# Values without numbers are named in the picture.
expect 0 map --x rdwc=off,on --y clients=1,4 --indexes sherman,chime --keys 1K --ops 500 --name named
grep -q '>off<' results/maps/named.svg || fail "the picture does not name the values"
# Those of the project can be run.
expect 0 map all --dry-run
[ "$(wc -l <out)" -ge "$(find "$DM_SOURCE_DIR/plots/maps" -name '*.json' | wc -l)" ] || fail "maps are missing: $(cat out)"
