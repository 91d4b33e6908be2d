#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench sweep`: the grid, the table, resuming, seeds, what is missing, and bad input.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# results: how many are there.
results() {
    find sweep/points -name '*.json' | wc -l
}

cat >base.json <<'JSON'
{"index": "null", "workload": "a", "keys": "1K", "ops": "2K", "warmup": "0", "clients": 4}
JSON

# The plan, and nothing but the plan.
expect 0 sweep base.json --grid clients=2,4 --grid workload=a,c --out sweep --dry-run
holds out "4 points in sweep/points, 4 to run"
holds out "clients=2 workload=c"
[ ! -e sweep ] || fail "a dry run wrote something"

# The grid and its table: a header, one row a combination, the columns' own order.
expect 0 sweep base.json --grid clients=2,4 --grid workload=a,c --column config.ops --out sweep --jobs 2
[ "$(results)" -eq 4 ] || fail "$(results) results instead of 4"
[ "$(wc -l <sweep/table.tsv)" -eq 5 ] || fail "table: $(cat sweep/table.tsv)"
[ "$(cut -f 1,2 sweep/table.tsv | tr '\t\n' ', ')" = "clients,workload 2,a 2,c 4,a 4,c " ] || fail "table: $(cat sweep/table.tsv)"
holds sweep/table.tsv throughput_ops_per_s
holds sweep/table.tsv ops.get.latency_ns.p99
holds sweep/table.tsv config.ops
! grep -q '\.tmp\.' sweep/table.tsv || fail "temporary names in the table"
[ -z "$(find sweep -name '*.tmp.*')" ] || fail "temporary files are left"

# Again with one more value: only the new points are run, and existing results are unchanged files.
cp -R sweep/points before
expect 0 sweep base.json --grid clients=2,4,8 --grid workload=a,c --out sweep
holds err "6 points: 4 there already, 2 to run"
[ "$(results)" -eq 6 ] || fail "$(results) results instead of 6"
for file in before/*.json; do
    cmp -s "$file" "sweep/points/${file##*/}" || fail "a result that was there has changed: ${file##*/}"
done

# A damaged result counts as missing.
victim=$(find sweep/points -name '*.json' | sort | head -n 1)
head -c 100 "$victim" >cut.json
cp cut.json "$victim"
expect 0 sweep base.json --grid clients=2,4,8 --grid workload=a,c --out sweep
holds err "5 there already, 1 to run"

# A result is a base, too; seeds repeat; lists go together; JSON goes to standard output.
expect 0 sweep "$victim" --list keys=1K,2K --list clients=2,3 --repeat 3 --out seeds --json
[ "$(find seeds/points -name '*.json' | wc -l)" -eq 6 ] || fail "seeds: $(find seeds)"
holds out '"seed": "3"'
holds out '"point"'

# Bad input: status 2, one line that names the cause, nothing written.
bad() {
    reason=$1
    shift
    expect 2 sweep "$@" --out never
    holds err "$reason"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
    [ ! -e never ] || fail "dmbench sweep $*: wrote something"
}
bad "--gird" base.json --gird clients=2
bad "--grid: 'clients'" base.json --grid clients
bad "clients: given twice" base.json --grid clients=2 --grid clients=3
bad "need as many" base.json --list clients=2,4 --list keys=1K
bad "clents" base.json --grid clents=2
bad "clients" base.json --grid clients=two
bad "nowhere" base.json --grid set.nowhere=1
bad "write 10MB" base.json --grid cache=10,20MB
bad "unknown member of results in 'nosuch'" base.json --column nosuch --dry-run
bad "did you mean 'p90'?" base.json --column ops.get.latency_ns.p98
bad "absent.json: cannot open" absent.json
bad "--jobs" base.json --jobs many
bad "--repeat" base.json --repeat 0
bad "one base spec" base.json base.json
printf '{"index": "null", "keys": }' >torn.json
bad "torn.json:1" torn.json
printf '{"index": "null", "kyes": 5}' >unknown.json
bad "unknown.json" unknown.json
expect 0 sweep --help
holds out "--grid NAME=V,V"

# With hang-ups ignored, as `nohup` has them, a run continues.
cat >long.json <<'JSON'
{"index": "null", "workload": "a", "keys": "1K", "ops": "2M", "warmup": "0", "clients": 4}
JSON
(
    trap '' HUP
    exec "$DMBENCH" sweep long.json --grid seed=1,2,3,4 --jobs 1 --out held
) >out 2>err &
pid=$!
once has_results held/points
kill -s HUP "$pid"
wait "$pid" || fail "a hang-up that was to be ignored ended a sweep: $(cat err)"
[ "$(find held/points -name '*.json' | wc -l)" -eq 4 ] || fail "$(find held)"

# Points that are run again and have no new result failed, though the old ones are there. They share a load.
cat >again.json <<'JSON'
{"index": "sherman", "keys": "2K", "ops": "1K", "warmup": "0", "clients": 4}
JSON
expect 0 sweep again.json --grid workload=a,b,c --jobs 1 --out forced
(
    ulimit -f 1 # no file can have more than 512 bytes, as on a full disk
    "$DMBENCH" sweep again.json --grid workload=a,b,c --jobs 1 --out forced --force 2>&1 >/dev/null || true
) | cat >err
holds err "0 points done"
holds err "3 failed"

# A folder that cannot be written is reported before anything runs.
echo >file
expect 1 sweep base.json --out file/below
holds err "file"
