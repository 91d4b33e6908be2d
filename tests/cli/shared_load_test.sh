#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Points of a sweep that share a load give the same bytes as each of them run alone, also after others that write;
# if one fails, the others still run.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >base.json <<'JSON'
{"index": "sherman", "keys": "20K", "ops": "4K", "warmup": "500", "clients": 8, "cns": 2, "verify": true}
JSON
# alone FILE: the same point run alone differs only in provenance.
alone() {
    expect 0 run "$1" --out again.json
    same_result "$1" again.json
}
for index in sherman chime; do
    expect 0 sweep base.json --grid index=$index --grid workload=a,b,c,f --grid theta=0.5,0.9 --jobs 1 --out "$index"
    [ "$(find "$index/points" -name '*.json' | wc -l)" -eq 8 ] || fail "$(find "$index")"
    for file in "$index"/points/*.json; do
        alone "$file"
    done
    # They shared a load: all but the first have the same loading time, to the last digit.
    [ "$(grep -h '"load_s"' "$index"/points/*.json | sort -u | wc -l)" -lt 8 ] || fail "nothing was shared"
done
expect 0 sweep base.json --grid index=chime --grid rdwc=off,on --grid key_set=uniform --grid 'mix=read=1;update=1' --jobs 1 --out sets
for file in sets/points/*.json; do
    alone "$file"
done
# Properties may say which keys are loaded: such points share none.
expect 0 sweep base.json --grid workload=c --grid keys=2K --grid properties=insertstart=0,insertstart=500 --jobs 1 --out starts
for file in starts/points/*.json; do
    alone "$file"
done
# Each states the processor time of its load and of its own run, and points of one load state the same for the former.
different() {
    grep -h "\"$1\": [0-9.]*[1-9]" sherman/points/*.json | sort -u | wc -l
}
[ "$(different load_cpu_s)" -eq "$(different load_s)" ] || fail "$(grep -h '"load_' sherman/points/*.json)"
[ "$(different run_cpu_s)" -eq 8 ] || fail "$(grep -h '"run_cpu_s"' sherman/points/*.json)"

# Points with other numbers of clients and threads, which the NIC's queue pairs and the hosts' cores depend on. Those of
# an index that keeps nothing by threads share one load.
loads() {
    grep -h '"load_s"' "$1"/points/*.json | sort -u | wc -l
}
for index in rolex xstore_d hstore smart emt drtm_tree clover race chime; do
    expect 0 sweep base.json --list clients=9,40,96 --list coroutines=1,4,1 --grid index=$index --grid keys=5K \
        --grid ops=2K --grid transport_set.cn_cores=24 --grid transport_set.nics=2 --jobs 1 --out "by_clients/$index"
    for file in "by_clients/$index"/points/*.json; do
        alone "$file"
    done
    wanted=1
    [ "$index" != chime ] || wanted=3
    [ "$(loads "by_clients/$index")" -eq $wanted ] || fail "$index was loaded $(loads "by_clients/$index") times"
done

# Points with inserts or other seeds have an index of their own.
expect 0 sweep base.json --grid workload=a,d,load --grid clients=4,8 --repeat 2 --jobs 1 --out apart
for file in apart/points/*.json; do
    alone "$file"
done

expect 0 sweep base.json --grid workload=a,b,c,f --jobs 1 --out failing --dry-run
point=$(sed -n 's/^ *\([0-9a-f]*\) .*workload=b$/\1/p' out)
mkdir -p "failing/points/$point.json"
expect 1 sweep base.json --grid workload=a,b,c,f --jobs 1 --out failing
[ "$(find failing/points -type f -name '*.json' | wc -l)" -eq 3 ] || fail "$(find failing)"
holds err "point workload=b ($point)"
holds err "3 points done"
holds err "1 failed"

# A member of a group that is killed, as for want of memory, is reported as such, and the others run. The longest
# one is the first.
if [ -r "/proc/$$/task/$$/children" ]; then
    "$DMBENCH" sweep base.json --grid workload=a --grid ops=2K,6K,100G --jobs 1 --out killed >out 2>err &
    pid=$!
    member_runs() {
        group=$(tr -d ' ' <"/proc/$pid/task/$pid/children") && [ -n "$group" ] &&
            member=$(tr -d ' ' <"/proc/$group/task/$group/children") && [ -n "$member" ]
    }
    once member_runs
    worked 50 "$member"
    kill -KILL "$member"
    wait "$pid" && fail "a killed point is no failure"
    holds err "ended by signal 9 (Killed): out of memory? try fewer --jobs"
    holds err "2 points done"
    has_results killed/points 2 || fail "the others did not run: $(find killed)"
fi

# An interrupt in the middle of a group: its first point never ends.
"$DMBENCH" sweep base.json --grid workload=a --grid ops=2K,4K,6K,100G --jobs 1 --out long >out 2>err &
pid=$!
once [ -d long/points ]
interrupt INT
[ -z "$(find long -name '*.tmp.*')" ] || fail "left: $(find long)"
