#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench validate --end-to-end`: one published point from its file to the table; verdicts, statuses, files that are
# written; resuming; bad input. The points of the project are run by ./run_all.sh.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p plots/end_to_end
cat >plots/end_to_end/cheap.json <<'JSON'
{
    "id": "cheap", "title": "A cheap one", "source": "nowhere", "settings": "made up", "differs": "is a test",
    "config": {"index": "sherman", "workload": "c", "keys": "100K", "ops": "40K", "clients": 4},
    "quick": {"keys": "1K", "ops": "4K"},
    "points": [
        {"label": "reads", "metric": "mops", "bound": "bandwidth", "published": 16000},
        {"label": "reads, P50", "metric": "p50_us", "bound": "other", "published": 25000},
        {"label": "a step", "metric": "us_a_round_trip", "bound": "other", "published": 24000, "against": {"set": {"cache_levels": 0}}},
        {"label": "radix", "metric": "mops", "bound": "other", "published": 0.001, "not_run": "is not | built"}
    ],
    "orders": [["reads", "radix"]]
}
JSON

expect 0 validate --end-to-end --plots plots --dry-run
holds out "1 experiments, 2 runs in results/points, 2 to run"
[ ! -e results ] || fail "a dry run wrote something"

# What is measured becomes what was published, two thirds of it in one case: so that what the fabric gives may change.
expect 3 validate --end-to-end --plots plots
holds err "2 points: 0 there already, 2 to run"
ours() {
    sed -n "s/^ *\"ours\": \([0-9.]*\),\$/\1/p" results/end_to_end.json | sed -n "$1p"
}
[ -n "$(ours 3)" ] || fail "no values of ours: $(cat results/end_to_end.json)"
sed "s/\"published\": 16000/\"published\": $(ours 1)/; s/\"published\": 25000/\"published\": $(ours 2)/
    s/\"published\": 24000/\"published\": $(awk -v value="$(ours 3)" 'BEGIN { print value / 1.3 }')/" plots/end_to_end/cheap.json >filled.json
mv filled.json plots/end_to_end/cheap.json

# Then all of it holds; two points share a run.
expect 0 validate --end-to-end --plots plots
holds err "2 points: 2 there already, 0 to run"
holds out "3 of 3 published points are within tolerance (1 of 1 that a link or PCIe limits, 2 of 2 others)"
holds out "typical factor 1.09 (1.00 and 1.14)"
holds out "1 points not run"
holds results/end_to_end.md "| radix | other | 0.001 Mops/s | | | not run | is not \\| built |"
holds results/end_to_end.md "| reads > radix | not judged |"
head -n 1 results/end_to_end.md | grep -q '^3 of 3 published points' || fail "$(head -n 1 results/end_to_end.md)"
[ "$(find results/points -name '*.json' | wc -l)" -eq 2 ] || fail "$(find results/points)"

# A second time nothing runs, and the table is the same.
cp results/end_to_end.md first.md
expect 0 validate --end-to-end --plots plots --json
holds err "2 there already, 0 to run"
cmp -s first.md results/end_to_end.md || fail "another table"
cmp -s out results/end_to_end.json || fail "--json prints something else than end_to_end.json"

# A point that is out of its tolerance is status 3 unless it has a named cause; it stays in the table either way. A result
# that was lost is run again.
sed "s/\"published\": $(ours 1)/\"published\": 16000/; s/\"published\": $(ours 2)/\"published\": 25000, \"cause\": \"a law of nature\"/" \
    plots/end_to_end/cheap.json >changed.json
mv changed.json plots/end_to_end/cheap.json
rm "$(find results/points -name '*.json' | head -n 1)"
expect 3 validate --end-to-end --plots plots
holds err "1 there already, 1 to run"
holds out "OUT: a law of nature"
holds out "1 of 3 published points are within tolerance"
sed 's/"published": 16000/"published": 16000, "cause": "another law"/' plots/end_to_end/cheap.json >explained.json
mkdir -p explained/end_to_end
mv explained.json explained/end_to_end/cheap.json
expect 0 validate --end-to-end --plots explained
holds results/end_to_end.md "| **out** | another law |"

# Another folder, another scale, one experiment.
expect 3 validate --end-to-end --plots plots --out paper --scale paper --only cheap --jobs 2
grep -l '"keys": 100000,' paper/points/*.json >found || fail "no point has the published keys"

# Points of one bound alone: the other has no typical factor.
mkdir -p alone/end_to_end
sed '/"bandwidth"/d; s/\["reads", "radix"\]//' plots/end_to_end/cheap.json >alone/end_to_end/cheap.json
expect 0 validate --end-to-end --plots alone --no-run
holds out " (- and "

# Without results, and none to be made.
expect 0 validate --end-to-end --plots plots --no-run --out empty
holds out "0 of 0 published points are within tolerance"
holds out "4 points not run"
holds out "there is no result yet"

# Bad input is one line.
bad() {
    reason=$1
    shift
    expect 2 validate --end-to-end "$@"
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}
bad "unknown experiment 'cheep' (did you mean 'cheap'?" --plots plots --only cheep
bad "--scale: 'huge' is neither quick nor paper" --plots plots --scale huge
bad "leave out --transport" --plots plots --transport local
bad "leave out --transport" --plots plots --cpu
sed 's/"published": 16000/"published": 0/' plots/end_to_end/cheap.json >broken.json
mv broken.json plots/end_to_end/cheap.json
bad "plots/end_to_end/cheap.json: points[0].published: 0 is not above 0" --plots plots
head -c 200 plots/end_to_end/cheap.json >plots/end_to_end/torn.json
bad "plots/end_to_end/torn.json:" --plots plots --only torn
expect 1 validate --end-to-end --plots nowhere
holds err "nowhere/end_to_end"
expect 2 validate --force
holds err "go with --end-to-end"
