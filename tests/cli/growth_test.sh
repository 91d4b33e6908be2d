#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Indexes that grow to eleven times their keys by inserts of many clients: with the memory that they ask for every insert
# succeeds, and hardly any memory is given back unused; with too little each ends in "no memory" and none waits forever.
# Long values in blocks fit, too.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
is() {
    result true "$1" "$2" || fail "$1: not so: $2: $(result get "$1" ops.insert.outcomes) $(result get "$1" memory_bytes)"
}
grow() {
    index=$1
    shift
    expect 0 run --index "$index" --workload load --mix insert=1 --keys 20K --ops 200K --warmup 0 --clients 80 --cns 10 \
        --retry-limit 5000 --out "$index.json" "$@"
}
for index in $("$DMBENCH" list indexes --json | python3 -c '
import json, sys
print(*(i["name"] + (":2" if "servers" in i["capabilities"] else ":0")
        for i in json.load(sys.stdin)["indexes"] if i["keeps_data"]))'); do
    servers=${index#*:}
    index=${index%:*}
    grow "$index" --servers "$servers"
    is "$index.json" 'list(ops["insert"]["outcomes"]) == ["ok"]'
    if [ "$index" = xstore_d ]; then
        # Nothing but tables of models is freed: each doubling leaves one, and together these are as large as the last.
        is "$index.json" 'memory_bytes["free"] < 1.5 * memory_bytes["meta"]'
    else
        is "$index.json" 'memory_bytes["free"] < 0.02 * sum(memory_bytes.values())'
    fi
    # Half of what was taken; what is asked for by default may be three times that.
    bytes=$(python3 -c 'import json, sys; print(sum(json.load(open(sys.argv[1]))["memory_bytes"].values()))' "$index.json")
    grow "$index" --servers "$servers" --mn-memory $((bytes / 2))
    is "$index.json" '"no_memory" in ops["insert"]["outcomes"] and set(ops["insert"]["outcomes"]) <= {"ok", "no_memory"}'
done
# Chunks of 64 KiB hold five nodes of 11 KiB, and all nodes are half full: the ends of chunks are counted, too.
expect 0 run --index sherman --set fill=0.5 --set node_bytes=11264 --chunk 64KiB --keys 1M --workload load --mix insert=1 \
    --ops 50K --warmup 0 --clients 2 --cns 2 --out ends.json
is ends.json 'list(ops["insert"]["outcomes"]) == ["ok"]'
# Values of 1 KB in blocks, and one client, who leaves no slack. What blocks do not fill of their chunks is little.
for setting in xstore_d:values=indirect cell:block_check=on; do
    index=${setting%%:*}
    expect 0 run --index "$index" --set "${setting#*:}" --keys 20K --value-size 1000 --clients 1 --ops 100 --out blocks.json
    is blocks.json 'memory_bytes["unused"] < 0.05 * sum(memory_bytes.values())'
done
# Values of 16 KB in blocks, of which a chunk of 64 KiB holds three and loses its end: hardly more memory is asked for than
# chunks take.
for index in sherman fg chime rolex; do
    expect 0 run --index $index --set values=indirect --keys 10K --value-size 16000 --workload d --clients 2 --cns 2 \
        --ops 200 --warmup 0 --chunk 64KiB --out large.json
    is large.json 'list(ops["insert"]["outcomes"]) == ["ok"]'
    is large.json 'config["mns"] * config["mn_memory"] < 1.1 * sum(memory_bytes.values())'
done
# ROLEX's leaves are in 127 regions at most, however many memory nodes share them.
for mns in 9 32 43 64; do
    grow rolex --mns $mns --keys 500K
    is rolex.json 'list(ops["insert"]["outcomes"]) == ["ok"]'
done
# HStore's skip list keeps memory for what its log has not applied yet; what is left of that is used, too.
for wait in 0 100; do
    grow hstore --servers 2 --set apply_us=$wait
    is hstore.json 'list(ops["insert"]["outcomes"]) == ["ok"]'
    cp hstore.json "hstore_$wait.json"
done
inner() { result get "hstore_$1.json" memory_bytes.inner; }
[ "$(inner 100)" -lt $(($(inner 0) * 11 / 10)) ] || fail "a late log makes the list larger: $(inner 0), $(inner 100)"
