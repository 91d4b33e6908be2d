#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench archive`: what is unpacked is equal to what was packed; points that are run again are equal; an archive that is
# damaged, or whose results were altered, is refused or found.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p plots/figures
cp "$DM_SOURCE_DIR/plots/systems.json" "$DM_SOURCE_DIR/plots/style.gp" plots/
cat >plots/figures/small.json <<'JSON'
{"id": "small", "title": "Small", "shows": "shape", "keeps": "all",
 "config": {"transport": "sim", "workload": "c", "keys": "2K", "ops": "2K", "warmup": "0", "clients": 2},
 "from": {"transport, workload, keys, ops, warmup, clients, seed": "assumed: a test"},
 "scales": {"paper": {"config": {}}, "quick": {"config": {}}},
 "series": [{"label": "Sherman", "config": {"index": "sherman"}}, {"label": "FG", "config": {"index": "fg"}},
            {"label": "CHIME", "config": {"index": "chime"}}],
 "x": {"label": "case", "cases": [{"label": "one", "config": {"seed": 1}}, {"label": "two", "config": {"seed": 2}}]},
 "plots": [{"id": "throughput", "kind": "bar", "y_label": "Mops",
            "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]}
JSON

# Nothing to pack yet.
expect 2 archive pack one.zst --plots plots --out first
holds err "first: has no results to pack"
[ ! -e one.zst ] || fail "an empty archive"

expect 0 figure small --plots plots --scale paper --no-plot --out first
rm "$(find first/points -name '*.json' | sort | tail -n 1)"
expect 0 archive pack one.zst --plots plots --out first
holds out "one.zst: 5 results of scale paper"
holds out "1 points have none"
expect 0 archive list one.zst
[ "$(grep -c '^points/' out)" -eq 5 ] || fail "not five points: $(cat out)"
holds out "5 results of scale paper"
holds out "revisions"
holds out "processor time of 5 results that state it: "
expect 0 archive list one.zst --json
holds out '"dmbench_archive": 1'

# Read back: the same files, byte for byte; what is there stays unless forced.
expect 0 archive unpack one.zst --out second
holds out "second: 5 results written, 0 there and equal, 0 others kept"
diff -r first/points second/points || fail "unpacked results differ"
victim=$(find second/points -name '*.json' | sort | head -n 1)
sed 's/"finished_at": "[^"]*"/"finished_at": "later"/' "$victim" >altered.json
cp altered.json "$victim"
expect 0 archive unpack one.zst --out second
holds out "0 results written, 4 there and equal, 1 others kept"
cmp -s altered.json "$victim" || fail "a result was replaced"
expect 0 archive unpack one.zst --out second --force
holds out "1 results written, 4 there and equal, 0 others kept"

# Packed again, it has the same lines.
expect 0 archive pack two.zst --plots plots --out second
hash_of() {
    "$DMBENCH" archive list "$1" | sed -n 's/.*, hash \([0-9a-f]*\)$/\1/p'
}
[ "$(hash_of one.zst)" = "$(hash_of two.zst)" ] || fail "another hash of the same results"

# Run again: equal; a share, and all; what is kept is continued.
expect 0 archive verify one.zst --sample 0.4
holds out "2 of 5 points run again, 2 equal"
expect 0 archive verify one.zst --sample 1 --out third
holds out "5 of 5 points run again, 5 equal"
expect 0 archive verify one.zst --sample 1 --out third
holds err "5 points: 5 there already, 0 to run"
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'dmbench_verify.*' -newer plots/figures/small.json)" ] || fail "a folder is left"

# Interrupted without a folder, it keeps what was run, and says where. One point ends soon and the other one, whose result
# is made up, never: once the first has a result, the second one runs.
mkdir -p long/plots/figures kept
cp plots/systems.json plots/style.gp long/plots/
sed 's/"ops": "2K", //; s/, seed"/"/; s/"seed": 1/"ops": "2K"/; s/"seed": 2/"ops": "100G"/; /"CHIME"/d
    s/, {"label": "FG".*/],/' plots/figures/small.json >long/plots/figures/small.json
expect 0 figure small --plots long/plots --scale paper --out long --dry-run
never=$(sed -n 's/^ *\([0-9a-f]*\) .*two$/\1/p' out)
short=$(sed -n 's/^ *\([0-9a-f]*\) .*one$/\1/p' out)
mkdir -p long/points
expect 0 run --index sherman --workload c --keys 2K --ops 2K --warmup 0 --clients 2 --out "long/points/$short.json"
sed "s/$short/$never/; s/\"ops\": 2000,/\"ops\": 100000000000,/" "long/points/$short.json" >"long/points/$never.json"
expect 0 archive pack long.zst --plots long/plots --out long
holds out "2 results"
TMPDIR=$PWD/kept "$DMBENCH" archive verify long.zst --sample 1 --jobs 2 >out 2>err &
pid=$!
once has_results kept
interrupt INT
holds err "to continue: --out $PWD/kept/dmbench_verify."
has_results kept || fail "the first result is not kept"

# A number that this program does not measure is found. Its point may be any, so all are run.
victim=$(find second/points -name '*.json' | sort | head -n 1)
sed 's/"round_trips_mean": [0-9.]*/"round_trips_mean": 77.5/' "$victim" >altered.json
! cmp -s altered.json "$victim" || fail "nothing was altered"
cp altered.json "$victim"
expect 0 archive pack altered.zst --plots plots --out second
expect 3 archive verify altered.zst --sample 1
holds out "is not equal at ops.get.round_trips_mean"
holds out "5 of 5 points run again, 4 equal"

# A result of a program that reckoned less memory for the same index is run with what is needed now, and is equal.
sed 's/"mn_memory": [0-9]*/"mn_memory": 65536/' third/points/"${victim##*/}" >"$victim"
grep -q '"mn_memory": 65536' "$victim" || fail "nothing was altered"
expect 0 archive pack smaller.zst --plots plots --out second
expect 0 archive verify smaller.zst --sample 1
holds out "5 of 5 points run again, 5 equal"

# A training takes another time at each run, and all else of it is equal.
mkdir -p trained/figures
cp plots/systems.json plots/style.gp trained/
cat >trained/figures/training.json <<'JSON'
{"id": "training", "title": "Training", "shows": "time", "keeps": "all",
 "config": {"source": "train", "epsilon": 16, "key_set": "uniform", "slots": 16, "fill": 16},
 "from": {"epsilon, key_set, slots, fill, keys": "assumed: a test"},
 "scales": {"paper": {"config": {"keys": "20K"}, "x": ["20K", "40K"]}, "quick": {"factor": 2}},
 "series": [{"label": "ROLEX"}],
 "x": {"option": "keys", "label": "keys"},
 "plots": [{"id": "training", "kind": "line", "y_label": "us",
            "y": [{"path": "plr.retrain_ns_per_key", "column": "us", "factor": 1e-3}]}]}
JSON
expect 0 figure training --plots trained --scale paper --no-plot --out trainings
grep -q '"stored_ns_per_key"' trainings/training/*.json || fail "no leaves are stored"
expect 0 archive pack trainings.zst --plots trained --out trainings
expect 0 archive verify trainings.zst --sample 1
holds out "2 of 2 points run again, 2 equal"

# Damaged archives.
bad() {
    expect "$1" archive "$2" "$3"
    holds err "$4"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}
size=$(wc -c <one.zst)
head -c $((size - 10)) one.zst >cut.zst
bad 1 list cut.zst "cut short"
{
    head -c 200 one.zst
    printf 'XXXXXXXX'
    tail -c +209 one.zst
} >damaged.zst
bad 1 unpack damaged.zst "damaged"
echo "no archive" >text
bad 1 list text "is no archive"
: >empty
bad 1 list empty "is no archive"
bad 1 list nowhere "nowhere"
bad 2 peck one.zst "unknown action 'peck'"
expect 2 archive pack
holds err "and the file"
expect 2 archive verify one.zst --sample 2
holds err "--sample"
