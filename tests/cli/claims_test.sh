#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench claims`: each verdict, from results alone; what is missing; the other ends of the fabric; marks in figures;
# bad input. The figure and the claims are small ones in a separate folder of plots.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p plots/figures plots/claims
cp "$DM_SOURCE_DIR/plots/style.gp" plots/
# A system that a paper compares with, and that is not built.
echo '{"systems": {"fatnode": {"name": "Fat node tree", "color": "#000000", "marker": "circle"}},
       "others": [{"color": "#33BBEE", "marker": "pentagon"}]}' >plots/systems.json
cat >plots/figures/small.json <<'JSON'
{
    "id": "small", "title": "Small", "shows": "two systems", "keeps": "everything",
    "config": {"profile": "cx6-100g", "keys": "1K", "ops": "2K", "warmup": "0"},
    "from": {"profile, keys, ops, warmup, workload, cache, clients": "assumed: a test"},
    "scales": {"quick": {"config": {}, "x": [2, 4]}, "paper": {"config": {"ops": "4K"}, "x": [2, 4, 8]}},
    "panels": [{"label": "A (half updates)", "config": {"workload": "a"}}, {"label": "C", "config": {"workload": "c"}}],
    "series": [{"label": "Sherman", "config": {"index": "sherman"}},
               {"label": "slow Sherman", "config": {"index": "sherman", "cache": 0}},
               {"label": "Fatnode", "config": {"index": "fatnode"}}],
    "x": {"option": "clients", "label": "clients", "log": true},
    "plots": [{"id": "throughput", "kind": "line", "y_label": "Mops/s",
               "y": [{"path": "throughput_ops_per_s", "column": "mops", "factor": 1e-6}]}]
}
JSON
cat >plots/sensitivity.json <<'JSON'
{"cx6-100g": [{"profile": "slow.json", "parameter": "the link"}]}
JSON
cat >slow.json <<'JSON'
{"schema_version": 1, "name": "slow", "summary": "slow", "inherits": "cx6-100g",
 "parameters": {"propagation_ns": {"value": 100000, "source": "a test", "confidence": "L"}}}
JSON
head='"paper": "P", "figure": "1", "text": "a claim", "reads": "small"'
echo '{"rtt": {"path": "ops.get.round_trips_mean"}}' >plots/metrics.json
cat >plots/claims/p.json <<JSON
{"claims": [
  {"id": "good", $head, "kind": "value", "checks": [{"value": "rtt{Sherman, C, 4}", "expect": 1},
     {"what": "of Fatnode", "value": "rtt{Fatnode, C, 4}", "expect": 1}]},
  {"id": "size", $head, "kind": "ratio", "because": [{"text": "because | so", "holds": "1 > 2"}],
   "checks": [{"what": "over the slow one", "value": "max(mops{Sherman, C})", "over": "max(mops{slow Sherman, C})",
               "expect": 50}]},
  {"id": "wrong", $head, "kind": "trend", "checks": [{"value": "falls(mops{Sherman, A})"}]},
  {"id": "fabric", $head, "kind": "value", "checks": [{"value": "mops{Sherman, C, 4} > 0.2", "expect": 1}]},
  {"id": "absent", $head, "kind": "value", "checks": [{"value": "rtt{Fatnode, C, 4}", "expect": 1}]},
  {"id": "others", $head, "needs": "fatnode", "kind": "value", "checks": [{"value": "rtt{Sherman, C, 4}", "expect": 1}]},
  {"id": "elsewhere", $head, "kind": "value", "checks": [{"reads": "large", "value": "rtt{Fatnode, C, 4}", "expect": 1}]},
  {"id": "misnamed", $head, "kind": "value", "checks": [{"value": "rtt{Shermann, C, 4}", "expect": 1}]}
]}
JSON

# verdict ID: from the JSON in `out`.
verdict() {
    python3 -c "import json, sys; print([c['verdict'] for c in json.load(open('out'))['claims'] if c['id'] == sys.argv[1]][0])" "$1"
}

expect 0 claims --plots plots --json
[ "$(verdict good)" = "not run" ] || fail "judged without results: $(cat out)"
holds out "2 of 2 points of figure small are missing"
[ ! -e results ] || fail "judging wrote something"

expect 0 claims --plots plots --run --dry-run
holds out "6 points in results/points, 6 to run, about "
expect 0 claims --plots plots --run --json
[ "$(find results/points -name '*.json' | wc -l)" -eq 6 ] || fail "$(find results)"
[ "$(verdict good)" = "reproduced" ] || fail "$(cat out)"
[ "$(verdict size)" = "direction only" ] || fail "$(cat out)"
[ "$(verdict wrong)" = "not reproduced" ] || fail "$(cat out)"
[ "$(verdict fabric)" = "reproduced" ] || fail "$(cat out)"
holds out "Fatnode is not built here"
holds out "the paper's own system, fatnode, is not built here"
holds out "there is no figure large here yet"
holds out "no series 'Shermann', or several (it has: Sherman; slow Sherman)"

expect 0 claims --plots plots
holds out "good           reproduced (1 of 2 parts)"
holds out "8 claims: 2 reproduced (1 in part), 0 reproduced under a reading, 1 direction only, 1 not reproduced, 0 unresolved, 4 not run (scale quick)"
expect 0 claims --plots plots --markdown
holds out "| paper | reproduced | reproduced under a reading | direction only | not reproduced | unresolved | not run |"
holds out "| size | a claim | over the slow one: "
holds out "because \\| so"

# A slower fabric: a claim that depends on it is unresolved.
expect 0 claims --plots plots --run --sensitivity --json
[ "$(verdict good)" = "reproduced" ] || fail "$(cat out)"
[ "$(verdict fabric)" = "unresolved" ] || fail "$(cat out)"
expect 0 claims fabric --plots plots
holds out "unresolved (depends on the link: reproduced, but not reproduced with slow.json)"
holds out "1 claims: 0 reproduced"

# The figure draws the claim.
if command -v gnuplot >/dev/null 2>&1; then
    expect 0 figure small --plots plots
    holds results/figures/small/throughput.svg "Paper: (1) 50 × the slow one, above the axis"
fi

# Readings, a range, an experiment, reasons. A reading that changes nothing for a claim is not counted.
sed 's/"plots": \[/"readings": [\
    {"id": "no-cache", "says": "clients have no cache", "from": "code: a\/b c.h", "series": {"Sherman": {"cache": 0}}},\
    {"id": "same", "says": "as it is", "from": "stated: section 1", "config": {"keys": "1K"}},\
    {"id": "limit", "says": "the cache", "from": "assumed: no limit is given", "option": "mns", "values": [1, 2, 4]}],\
    "experiments": [{"id": "long", "says": "longer", "config": {"ops": "8K"}}], &/' plots/figures/small.json >other.json
mv other.json plots/figures/small.json
cat >plots/claims/p.json <<JSON
{"metrics": {"mns": {"path": "config.mns"}}, "claims": [
  {"id": "under", $head, "kind": "trend", "checks": [{"value": "rtt{Sherman, C, 4} > 1.5"}],
   "because": [{"text": "One trip is enough.", "value": "rtt{Sherman, C, 4}", "expect": [0.9, 1.1]},
               {"text": "It grows.", "holds": "with(long, rtt{Sherman, C, 4}) > 2 * rtt{Sherman, C, 4}"},
               {"text": "Fatnode would show it.", "holds": "rtt{Fatnode, C, 4} > 0"}]},
  {"id": "range", $head, "kind": "trend", "checks": [{"value": "mns{Sherman, A, 4} >= 2"}]},
  {"id": "never", $head, "kind": "value", "checks": [{"value": "mns{Sherman, A, 4}", "expect": 3}]},
  {"id": "good", $head, "kind": "value", "checks": [{"value": "rtt{Sherman, C, 4}", "expect": 1}],
   "because": [{"text": "It is reproduced, so this is of no interest.", "holds": "1 > 2"}]}
]}
JSON
expect 0 claims --plots plots --run --dry-run
# No-cache is the slow Sherman, which is there for C; the first value of the range and "same" are the figure as it is.
holds out "9 points in results/points, 5 to run, about "
expect 0 claims --plots plots --run --json
[ "$(verdict under)" = "reproduced under a reading" ] || fail "$(cat out)"
[ "$(verdict good)" = "reproduced" ] || fail "$(cat out)"
expect 0 claims --plots plots
holds out "under          reproduced under no-cache (1 of 2 readings); not reproduced without"
holds out "readings: no-cache: reproduced; limit: reproduced nowhere from 1 to 4"
holds out "why: One trip is enough. (1.0"
holds out "; expected 0.9 to 1.1)"
holds out "why: refuted: It grows. (does not hold)"
holds out "why: Fatnode would show it. (not run: Fatnode is not built here)"
holds out "range          reproduced under limit with mns 2 to 4 (1 of 2 readings); not reproduced without"
holds out "never          not reproduced"
! grep -q "of no interest" out || fail "a reason of a claim that is reproduced: $(cat out)"
holds out "4 claims: 1 reproduced, 2 reproduced under a reading, 0 direction only, 1 not reproduced"
holds out "(scale quick); reasons: 1 hold, 1 refuted, 1 not run"
expect 0 claims --plots plots --markdown
holds out "| reproduced under no-cache (1 of 2 readings); not reproduced without; readings: no-cache: reproduced; limit"
holds out "expected 0.9 to 1.1) refuted: It grows. (does not hold) Fatnode"

# Two scales side by side: two of the claims have results at both.
expect 0 claims --plots plots --beside paper
holds out "2 not run (scale paper)"
holds out "2 claims were run at scale paper; 1 of them have the same verdict at both."
holds out "good           a claim (the same verdict)"
holds out "quick: reproduced; 1"
holds out "(1 ± 5 %)"
holds out "paper: reproduced; 1"
holds out "why: One trip is enough. (1.0"
expect 0 claims --plots plots --beside paper --markdown
holds out "| id | the paper says | quick (expected) | verdict | paper | verdict | why |"
holds out "± 5 %) | reproduced | 1"
! grep -q "^| range" out || fail "a claim that was not run at the other scale: $(cat out)"
expect 0 claims --plots plots --beside paper --json
[ "$(python3 -c "import json; print(json.load(open('out'))['beside']['scale'])")" = paper ] || fail "$(cat out)"

# Several seeds: medians are judged, and each seed alone; a claim that only the median fits says so.
cp plots/claims/p.json whole.json
near() {
    cat >plots/claims/p.json <<JSON
{"claims": [{"id": "near", $head, "kind": "value", "checks": [{"value": "mops{Sherman, A, 4}", "expect": $1, "tolerance": 1e-6}]},
            {"id": "far", $head, "kind": "value", "checks": [{"value": "rtt{Sherman, C, 4}", "expect": 1}]}]}
JSON
}
near 1
expect 0 claims --plots plots --run --repeat 3 --json
near "$(python3 -c "import json; print(json.load(open('out'))['claims'][0]['checks'][0]['value'])")"
expect 0 claims --plots plots --repeat 3
holds out "near           reproduced"
holds out "seeds: 1 reproduced, 2 not reproduced"
holds out "(scale quick); 1 with another verdict by some of 3 seeds"
[ "$(grep -c seeds: out)" -eq 1 ] || fail "$(cat out)"
expect 0 claims --plots plots --repeat 3 --markdown
holds out "| reproduced; seeds: 1 reproduced, 2 not reproduced"
expect 0 claims --plots plots --repeat 3 --json
[ "$(python3 -c "import json; print([c['seeds'] for c in json.load(open('out'))['claims']])")" = \
    "[{'not reproduced': 2, 'reproduced': 1}, {'reproduced': 3}]" ] || fail "$(cat out)"
expect 0 claims --plots plots
! grep -q seed out || fail "seeds of single results: $(cat out)"

# A number that another host would not have says so, and no other does.
cat >plots/claims/p.json <<JSON
{"metrics": {"timed": {"path": "ops.get.round_trips_mean", "host_time": true}}, "claims": [
  {"id": "here", $head, "kind": "value", "checks": [{"value": "timed{Sherman, C, 4}", "expect": 1}]},
  {"id": "share", $head, "kind": "trend", "checks": [{"value": "timed{Sherman, C, 4} >= rtt{Sherman, C, 4}"}]},
  {"id": "far", $head, "kind": "value", "checks": [{"value": "rtt{Sherman, C, 4}", "expect": 1}]}
]}
JSON
expect 0 claims --plots plots --markdown
grep -q "1[.0-9]*, in this host's time (1 ± 5 %) | reproduced" out || fail "$(cat out)"
holds out "holds, in this host's time | reproduced"
[ "$(grep -c "in this host's time" out)" -eq 2 ] || fail "$(cat out)"
expect 0 claims --plots plots --json
[ "$(python3 -c "import json; print([c['checks'][0]['host_time'] for c in json.load(open('out'))['claims']])")" = \
    "[True, True, False]" ] || fail "$(cat out)"
mv whole.json plots/claims/p.json

bad() {
    reason=$1
    shift
    expect 2 claims "$@"
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}
bad "unknown claim 'udner' (did you mean 'under'?" udner --plots plots
bad "go with --run" --plots plots --sensitivity
bad "--scale" --plots plots --scale tiny
bad "--beside: 'tiny'" --plots plots --beside tiny
expect 1 claims --plots nowhere
holds err "nowhere/claims"
sed 's/with(long/with(short/' plots/claims/p.json >other.json
cp plots/claims/p.json whole.json
mv other.json plots/claims/p.json
bad "claim under: because[1]: figure small has no reading or experiment 'short' (it has: no-cache; same; limit=1" --plots plots
mv whole.json plots/claims/p.json
sed 's/"kind": "trend"/"kidn": "trend"/' plots/claims/p.json >other.json
mv other.json plots/claims/p.json
bad "plots/claims/p.json: unknown member 'kidn'; did you mean 'kind'?" --plots plots
