#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A result as a spec: values that follow from other options follow again when those change, what belongs to another index
# is left out, and the commands that results record give the same points again.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
small="--keys 10K --ops 4K --clients 4"

# hash FILE
hash() {
    result get "$1" config_hash
}

# shellcheck disable=SC2086
expect 0 run --workload a $small --set combine=off --out base.json
expect 0 run base.json --out same.json
result same base.json same.json || fail "a result does not run again to the same bytes"

# more keys need more memory, more operations more warm-up; what was given stays
expect 0 run base.json --keys 2M --ops 40K --out larger.json
[ "$(result get larger.json config.mn_memory)" -gt "$(result get base.json config.mn_memory)" ] ||
    fail "memory nodes keep the size of the old keys"
[ "$(result get larger.json config.warmup)" -eq 4000 ] || fail "warm-up does not follow the operations"
expect 0 run --keys 10K --ops 4K --warmup 123 --mn-memory 64MiB --out given.json
expect 0 run given.json --ops 40K --out given_larger.json
[ "$(result get given_larger.json config.warmup)" -eq 123 ] || fail "a warm-up that was given is lost"
[ "$(result get given_larger.json config.mn_memory)" -eq 67108864 ] || fail "a size that was given is lost"
expect 0 sweep base.json --grid keys=20K,1M --dry-run
holds out "2 to run"
grep -q 'about [0-9.]* s, up to [0-9.]* GB' out || fail "a dry run says neither time nor memory: $(cat out)"

# another index takes nothing of the old one's, and gets the servers it needs; another transport has its own options
expect 0 run base.json --index chime --out chime.json
holds err "parameters of sherman do not apply"
[ "$(result get chime.json config.set.span)" -gt 0 ] || fail "no parameters of chime"
expect 0 run --index chime --keys 10K --ops 4K --clients 4 --out direct.json
[ "$(hash chime.json)" = "$(hash direct.json)" ] || fail "another index over a result is another point"
expect 0 run base.json --index hstore --out hstore.json
[ "$(result get hstore.json config.servers)" -eq 2 ] || fail "hstore has no servers"
expect 0 run hstore.json --index sherman --out back.json
[ "$(result get back.json config.servers)" -eq 0 ] || fail "sherman keeps hstore's servers"
expect 0 run base.json --index sherman --out sherman.json
[ ! -s err ] || fail "the same index named again: $(cat err)"
result same base.json sherman.json || fail "the same index named again changes the point"
if "$DMBENCH" list transports | grep -q '^  local '; then
    expect 0 run base.json --transport local --out local.json
    holds err "options of sim do not apply"
    expect 0 run local.json --transport sim --out sim.json
    [ "$(hash sim.json)" = "$(hash base.json)" ] || fail "there and back again is another point"
fi
expect 0 sweep base.json --grid index=sherman,chime --out indexes
holds err "left out"
has_results indexes/points 2 || fail "no results of both indexes"

# a part of many keys that a few would not have
printf 'recordcount=100000\ninsertstart=50000\nreadproportion=1\nupdateproportion=0\n' >part.properties
expect 0 run --workload ./part.properties --ops 500 --out part.json
expect 0 run part.json --out again.json
same_result part.json again.json
expect 0 run --workload c --distribution hotspot -p hotspotdatafraction=0.0005 --keys 100K --ops 500

# recorded commands
printf 'recordcount=1000\noperationcount=5000\nreadproportion=1\nupdateproportion=0\n' >my.properties
expect 0 sweep --grid index=sherman,chime,hstore,rolex --grid workload=a,d --grid keys=5K --grid ops=3K --grid clients=4 \
    --out many
expect 0 sweep --grid set.combine=on,off --list rdwc=on,off --list theta=0.5,0.9 --grid keys=5K --grid ops=3K \
    --grid transport_set.read_line_order=random,ascending --grid workload=c,a --out parts
expect 0 sweep --grid cache=100B,64KiB --grid keys=5K --grid ops=3K --grid value_size=16 --grid mn_memory=32MiB \
    --out sizes
expect 0 sweep --grid workload=./my.properties --grid properties=requestdistribution=zipfian --grid rate=100K \
    --grid key_set=lognormal --out file
python3 - "$DMBENCH" <<'PY' || fail "a recorded command is another point"
import glob, json, subprocess, sys

files = glob.glob("*/points/*.json")
assert len(files) >= 19, len(files)
for file in files:
    with open(file, encoding="utf-8") as text:
        result = json.load(text)
    words = result["provenance"]["command_line"]
    assert words[:2] == ["dmbench", "run"] and not any("/fd/" in word or word == "SPEC" for word in words), words
    assert ("--mn-memory" in words) == ("sizes" in file) and "--warmup" not in words, words
    subprocess.run([sys.argv[1], *words[1:], "--out", "again.json"], check=True, capture_output=True)
    with open("again.json", encoding="utf-8") as text:
        again = json.load(text)
    assert again["config_hash"] == result["config_hash"], (words, file)
    first = {name: value for name, value in result.items() if name != "provenance"}
    second = {name: value for name, value in again.items() if name != "provenance"}
    assert first == second, words
PY
[ "$(result get again.json provenance.command_line.0)" = dmbench ] || fail "a command does not begin with dmbench"
expect 0 run /dev/stdin --out stdin.json <base.json
[ "$(result get stdin.json provenance.command_line.2)" != /dev/stdin ] || fail "standard input is no command to repeat"

# YCSB's number of operations counts, and --ops goes over it
expect 0 run --ycsb my.properties --out ycsb.json
[ ! -s err ] || fail "operationcount is not known: $(cat err)"
[ "$(result get ycsb.json config.ops)" -eq 5000 ] || fail "operationcount is ignored"
[ "$(result get ycsb.json config.warmup)" -eq 500 ] || fail "warm-up does not follow operationcount"
expect 0 run --ycsb my.properties --ops 2K --out ycsb.json
[ "$(result get ycsb.json config.ops)" -eq 2000 ] || fail "--ops does not go over operationcount"
expect 0 run --ycsb my.properties -p operationcount=300 --out ycsb.json
[ "$(result get ycsb.json config.ops)" -eq 300 ] || fail "-p operationcount is ignored"
