#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For wrong input there is one line that names the option or file and what is valid, a status, and no file.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# refused STATUS TEXT WORDS...: the command is also asked to write a result, which must not exist.
refused() {
    wanted=$1
    text=$2
    shift 2
    expect "$wanted" "$@" --out refused.json
    holds err "$text"
    [ "$(wc -l <err)" -eq 1 ] || fail "dmbench $*: more than one line: $(cat err)"
    [ ! -s out ] || fail "dmbench $*: wrote to standard output"
    [ -z "$(find . -name 'refused*')" ] || fail "dmbench $*: left a file"
}

expect 2
expect 2 rnu
holds err "did you mean 'run'?"
expect 2 --versoin
holds err "unknown option"

refused 2 "--clents" run --clents 3
refused 2 "did you mean --clients?" run --clents 3
refused 2 "--index: unknown index 'shermann' (did you mean 'sherman'?" run --index shermann
refused 2 "--transport: unknown transport 'sin'" run --transport sin
refused 2 "--profile: " run --profile cx9-100g
refused 2 "--workload: " run --workload cc
refused 2 "--clients: " run --clients many
refused 2 "--clients: " run --clients 0
refused 2 "--clients: 2 clients are fewer than the 4 compute nodes" run --clients 2 --cns 4
refused 2 "--cache: " run --cache 10Q
refused 2 "--cache: 10 has no unit and would be 10 bytes: write 10MB, or 10B" run --cache 10
refused 2 "did you mean 'a'?" run --workload A
refused 2 "did you mean 'sherman'?" run --index Sherman
refused 2 "--duration: " run --duration 5
refused 2 "--mns: " run --mns 65
refused 2 "--theta: " run --theta wide
refused 2 "--theta: 0 must be above 0 and below 1" run --theta 0
refused 2 "--keys: 0 records leave nothing to ask for" run --keys 0
refused 2 "--theta: " run --theta 1
refused 2 "--theta: " run --theta -0.5
refused 2 "--theta: " run --theta nan
refused 2 "--rate: " run --rate fast
refused 2 "--rate: " run --rate 2.5
refused 2 "--arrival: " run --rate 1K --arrival sometimes
refused 2 "--arrival: goes with an open loop only" run --arrival poisson
refused 2 "--mix: " run --mix read=0.5,update=0.4
refused 2 "--mix: " run --mix read=0.5,read=0.5
refused 2 "--mix: " run --mix read=1.5
refused 2 "--distribution: " run --distribution zipfain
refused 2 "--set: unknown index parameter 'fil'" run --set fil=3
refused 2 "--set: 'node_bytes' is not NAME=VALUE" run --set node_bytes
refused 2 "--transport-set: unknown transport option 'nothing'" run --transport-set nothing=1
refused 2 "--mn-memory: too small for 1000000 keys" run --mn-memory 2MiB
refused 2 "1 index servers: a shard needs 2" run --index hstore --servers 1
refused 2 "3 index servers: a shard needs 2" run --index hstore --servers 3
refused 2 "values of 4104 bytes: must be 1 to 4096" run --index hstore --value-size 4104
refused 2 "--set key_bytes: 65 is out of range (8 to 64 bytes)" run --index hstore --set key_bytes=65
refused 2 "a log of 8 entries cannot hold a batch of 16" run --index hstore --set log_entries=8
# named INDEX TEXT WORDS...: an error that an index finds names the index, once.
named() {
    index=$1
    said=$2
    shift 2
    refused 2 "dmbench run: index $index: $said" run --index "$index" "$@"
    [ "$(grep -o "$index" err | wc -l)" -eq 1 ] || fail "$index is not named once: $(cat err)"
}
named sherman "node_bytes 200 is not a multiple of 64" --set node_bytes=200
named chime "a neighbourhood of 16 does not fit span 8" --set span=8 --set neighbourhood=16
named sherman "list_nodes: no list is searched without cache_find=list" --set list_nodes=1000
named rolex "a leaf of delta 1024 with keys of 8 bytes has 540992 bytes" --set delta=1024 --value-size 512
named xstore_d "values of 4104 bytes: must be 1 to" --value-size 4104
named dolphin "leaf_bytes 200 is not a multiple of 64" --set leaf_bytes=200
named hstore "values of 4104 bytes: must be 1 to 4096" --value-size 4104
named hash_tables "race cannot read 6 of 64 entries" --set scheme=race --set entries=64 --set reach=6
expect 2 run --clients
holds err "--clients: needs a value"
refused 2 "--verify: " run --verify=perhaps

# specs
echo '{"index": "null", "clients": 4' >truncated.json
refused 2 "truncated.json:" run truncated.json
echo '{"index": "null", "clents": 4}' >unknown.json
refused 2 "unknown.json: unknown member 'clents' (did you mean 'clients'?" run unknown.json
echo '{"index": "null", "clients": "4x"}' >unit.json
refused 2 "unit.json: clients: " run unit.json
echo '{"index": "null", "clients": [4]}' >type.json
refused 2 "type.json: clients: " run type.json
echo '{"index": "nul"}' >name.json
refused 2 "name.json: index: unknown index 'nul' (did you mean 'null'?" run name.json
echo '{"index": "sherman", "set": {"fil": 1}}' >parameter.json
refused 2 "parameter.json: set: unknown index parameter 'fil'" run parameter.json
echo '{"index": "sherman", "set": 3}' >object.json
refused 2 "object.json: set: " run object.json
echo '{"schema_version": 1, "config": {}}' >version.json
refused 2 "version.json: schema_version: this program reads version 2 only" run version.json
echo '{"index": "null", "index": "sherman"}' >twice.json
refused 2 "twice.json:" run twice.json
echo '[]' >array.json
refused 2 "array.json:" run array.json
refused 2 "absent.json: cannot open" run absent.json
echo '{"broken": ' >profile.json
refused 2 "profile.json" run --profile ./profile.json
refused 2 "absent.json: cannot open" run --profile ./absent.json

# YCSB property files and properties
printf 'recordcount=100\nreadproportion=0.5\nupdateproportion=0.5\nreadproprtion=1\n' >typo.properties
refused 2 "typo.properties:4: unknown YCSB property 'readproprtion'; did you mean 'readproportion'?" run --ycsb ./typo.properties
printf 'recordcount=100\nreadproportion\n' >bare.properties
refused 2 "bare.properties:2: 'readproportion' should be name=value" run --ycsb bare.properties
printf 'recordcount=100\nreadproportion=0.5\nupdateproportion=0.3\n' >sum.properties
refused 2 "sum.properties: " run --ycsb sum.properties
printf 'recordcount=0\nreadproportion=1\nupdateproportion=0\n' >none.properties
refused 2 "none.properties: " run --workload none.properties
refused 2 "absent.properties" run --ycsb absent.properties
refused 2 "-p: 'readproportion' is not NAME=VALUE" run -p readproportion
refused 2 "-p: " run -p readproprtion=1
refused 2 "did you mean 'readproportion'?" run -p readproprtion=1
refused 2 "-p: " run -p recordcount=many
expect 2 run -p
holds err "-p: needs a value"
refused 2 "unknown option '-q'" run -q a=b

# data sets: one of SOSD is a count and that many 64-bit keys
: >empty.sosd
printf '\002\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0' >short.sosd
printf '\001\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0\0' >odd.sosd
printf '\0\0\0\0\0\0\0\002\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0\002' >swapped.sosd
printf '\002\0\0\0\0\0\0\0\002\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0' >unsorted.sosd
for file in empty short odd swapped unsorted; do
    refused 2 "$file.sosd" run --index null --workload c --key-set sosd:$file.sosd
done
refused 2 "is big-endian" run --index null --workload c --key-set sosd:swapped.sosd
refused 2 "absent.sosd" run --index null --workload c --key-set sosd:absent.sosd
refused 2 "--key-set: " run --index null --workload c --key-set unifrom

# traces
refused 2 "absent.csv: cannot be opened" run --trace absent.csv
: >empty.csv
refused 2 "empty.csv: holds no requests" run --index null --trace empty.csv
printf '0,key,3,8,1,get,0\n0,key,3,8,1,got,0\n' >line.csv
refused 2 "line.csv:2: " run --index null --trace line.csv
printf '\0\0\0\0' >binary.csv
refused 2 "binary.csv:1: " run --index null --trace binary.csv

# paths that cannot be written are refused before anything runs
expect 1 run --out absent/folder/result.json
holds err "--out: cannot write in folder 'absent/folder'"
mkdir folder
expect 2 run --out folder/
holds err "--out: 'folder/' is a folder"
expect 1 run --index null --keys 1K --ops 1K --clients 1 --out folder
[ -z "$(find . -name '*.tmp.*')" ] || fail "temporary files are left"
if [ "$(id -u)" -ne 0 ]; then
    chmod a-w folder
    expect 1 run --out folder/result.json
    holds err "--out: cannot write in folder 'folder'"
fi
if [ -w /dev/full ]; then
    status=0
    "$DMBENCH" run --index null --keys 1K --ops 1K --clients 1 --json >/dev/full 2>err || status=$?
    [ "$status" -eq 1 ] || fail "a full disk went unnoticed"
    holds err "cannot write to standard output"
    for words in "list indexes --names" "figure --list" "train --keys 1K" "help run" "run --help"; do
        status=0
        # shellcheck disable=SC2086
        "$DMBENCH" $words >/dev/full 2>err || status=$?
        [ "$status" -eq 1 ] || fail "dmbench $words: a full disk went unnoticed"
        holds err "cannot write to standard output"
    done
fi
