#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Small points end to end: results fit the schema, their configuration runs again to the same bytes, and the seed
# decides.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
small="--keys 20K --ops 8K --clients 12 --cns 2 --mns 2 --coroutines 3"

# every workload over Sherman, and the null index
for workload in a b c d e f load; do
    # shellcheck disable=SC2086
    expect 0 run --index sherman --workload $workload $small --verify --out "sherman_$workload.json"
    holds out "virtual time"
    holds out "throughput"
    holds out "sherman_$workload.json"
done
# the largest span, whose last line has space for some entries more
# shellcheck disable=SC2086
expect 0 run --index sherman --set span=1024 $small --verify
# shellcheck disable=SC2086
expect 0 run --index null --workload c $small --out null.json
if "$DMBENCH" list transports | grep -q '^  local '; then
    # shellcheck disable=SC2086
    expect 0 run --index null --transport local --workload c --keys 20K --ops 8K --clients 2 --out local.json
    holds out "real time"
    [ "$(result get local.json time_base)" = real ] || fail "local is not in real time"
fi
results=$(echo ./*.json) # what fits the schema is tested at the end

# as many operations are measured as were asked for
[ "$(result get sherman_c.json ops.get.count)" -eq 8000 ] || fail "8000 gets were asked for"
[ "$(result get sherman_c.json ops.get.outcomes.ok)" -eq 8000 ] || fail "every key of workload c is there"
[ "$(result get sherman_c.json config.warmup)" -eq 800 ] || fail "warm-up is a tenth of the operations"
[ "$(result get sherman_c.json verify.keys)" -eq 20000 ] || fail "verify counts the keys"
[ "$(result get sherman_f.json ops.rmw.count)" -eq "$(result get sherman_f.json ops.update.count)" ] ||
    fail "every read-modify-write has an update"
gets=$(result get sherman_f.json ops.get.count)
[ "$gets" -eq 8000 ] || fail "a read-modify-write has a get: $gets of 8000"

# how full hash tables get: the real table and its choice of slots alone, with subtables of 126 slots
for index in "race --set slots=1 --set subtable=8064" "hash_tables --set scheme=race --set reach=4"; do
    # shellcheck disable=SC2086
    expect 0 run --index $index --workload load --keys 128 --ops 20K --warmup 0 --clients 1 --out "${index%% *}.json"
done
full="lambda c: c['split_entries'] / c['split_slots']"
result true hash_tables.json "0.5 < ($full)(counters) < 0.62 and counters['split_slots'] == 126 * counters['split']" ||
    fail "tables that are filled one by one are not as full as they should be"
result true race.json "0.42 < ($full)(counters) < 0.54 and counters['split_slots'] == 126 * counters['split']" ||
    fail "subtables of RACE do not split at the load that they should have"

# read delegation: shared operations are counted separately, and the configuration has the option
expect 0 run --index sherman --workload a --keys 20 --ops 8K --clients 12 --rdwc on --out shared.json
holds out "answered by another client's operation"
[ "$(result get shared.json config.rdwc)" = on ] || fail "the configuration does not say that reads are delegated"
[ "$(result get shared.json ops.update.shared)" -gt 0 ] || fail "twelve clients on 20 keys share nothing"
[ "$(result get shared.json rdwc.is_linearizable)" = True ] || fail "delegation of reads is reported as not linearizable"
expect 0 run --index sherman --workload a --keys 20 --ops 8K --clients 12 --rdwc published --out published.json
holds out "this is not linearizable"
[ "$(result get published.json rdwc.is_linearizable)" = False ] || fail "the published protocol is reported as linearizable"
expect 2 run --index sherman --rdwc stale
holds err "--rdwc"

# nodes that hold an odd number of entries are filled to the lesser half: memory is taken for that
expect 0 run --index sherman --set span=5 --set fill=0.5 --keys 300K --ops 1K --warmup 0 --clients 1 --chunk 64KiB --verify

# two trainers with more work than they can do: an expansion is published all the same
expect 0 run --index xstore_d --mix read=0.8,insert=0.2 --distribution uniform --keys 3K --ops 60K --warmup 0 \
    --clients 480 --cns 8 --mn-cores 24 --value-size 8 --set keys_per_model=50 --set expand_at=100 --set trainers=2 \
    --verify --out expanded.json
[ "$(result get expanded.json counters.expansion)" -gt 0 ] || fail "two busy trainers publish no expansion"

# clients that wait long for a leaf region, which one of them makes, do not all make it themselves
expect 0 run --index rolex --mix insert=1 --distribution uniform --keys 100K --ops 80K --warmup 20K --clients 72 --cns 3 \
    --mns 3 --value-size 8 --set epsilon=256 --chunk 64KiB --out regions.json
python3 - <<'PY' || fail "regions were made that are not used"
import json
memory = json.load(open("regions.json", encoding="utf-8"))["memory_bytes"]
assert memory["free"] < memory["leaves"] / 10, memory
PY

# keys of any size: bytes, memory and cache follow; an index without them is refused by name
for bytes in 8 64 256; do
    # shellcheck disable=SC2086
    expect 0 run --index sherman --set span=16 --workload a $small --key-size $bytes --verify --out "keys_$bytes.json"
    holds out "verify      whole: 20000 keys"
done
python3 - <<'PY' || fail "longer keys do not cost what they should"
import json
short, middle, long = (json.load(open(f"keys_{n}.json", encoding="utf-8")) for n in (8, 64, 256))
for result, entry in ((short, 18), (middle, 74), (long, 266)):
    read = result["ops"]["get"]["bytes_read_mean"]
    assert 16 * entry < read < 16 * entry * 1.25 + 600, (read, entry)
counted = "cache_entry_bytes_per_cn"
assert short[counted] * 2 < middle[counted] < long[counted] / 2
assert short["memory_bytes"]["leaves"] * 3 < middle["memory_bytes"]["leaves"] < long["memory_bytes"]["leaves"] / 3
assert short["throughput_ops_per_s"] > middle["throughput_ops_per_s"] > long["throughput_ops_per_s"]
PY
holds out "keys of 256 B"
expect 2 run --index null --key-size 16
holds err "index null: keys of 16 bytes: it has keys of 8 bytes only"
expect 2 run --index sherman --key-size 300
holds err "--key-size"

# upserts: what they insert is counted and kept; a workload's own key set does not outlive the workload
# shellcheck disable=SC2086
expect 0 run --index sherman --workload sherman_bench $small --warmup 0 --verify --out upserts.json
loaded=$(result get upserts.json phases.0.operations)
inserted=$(result get upserts.json ops.insert.outcomes.ok)
[ "$inserted" -gt 100 ] || fail "upserts insert nothing"
[ "$(result get upserts.json ops.update.outcomes.ok)" -gt 1000 ] || fail "upserts update nothing"
[ "$(result get upserts.json verify.keys)" -eq $((loaded + inserted)) ] ||
    fail "$loaded loaded and $inserted inserted keys are not what is there"
[ "$(result get upserts.json config.key_set)" = folded ] || fail "sherman_bench has folded keys"
expect 0 run upserts.json --workload c --out not_folded.json
[ -z "$(result get not_folded.json config.key_set)" ] || fail "workload c keeps the folded keys of another workload"
[ "$(result get not_folded.json ops.get.outcomes.ok)" -eq 8000 ] || fail "workload c finds every key"

# values over time: they change nothing else, are the same each time, and add up to the whole
# shellcheck disable=SC2086
expect 0 run --index sherman --workload a $small --interval 20us --out slices.json
expect 0 run slices.json --out slices_again.json
result same slices.json slices_again.json || fail "values over time differ from run to run"
python3 - sherman_a.json slices.json <<'PY' || fail "values over time are not those of the run"
import json, sys
plain, slices = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:3])
over, last = slices["over_time"], slices["phases"][2]["duration_s"]
for result in plain, slices:
    for member in "provenance", "config", "config_hash", "over_time", "verify":
        result.pop(member, None)
assert plain == slices
ends = over["time_s"][1:] + [last]
widths = [end - begin for begin, end in zip(over["time_s"], ends)]
assert len(widths) > 10 and all(0 < width <= over["interval_s"] * 1.001 for width in widths)
operations = sum(rate * width for rate, width in zip(over["throughput_ops_per_s"], widths))
assert abs(operations - 8000) < 1, operations
for resource in plain["nodes"][0]["resources"]:
    column = over["busy"]["memory_" + resource["name"]]
    mean = sum(busy * width for busy, width in zip(column, widths)) / last
    assert mean >= resource["busy"] - 0.01, (resource, mean)
PY

# a load that the index cannot take: latencies grow, and the run says that it had not settled
expect 0 run --index sherman --workload a --keys 20K --ops 20K --clients 12 --rate 20M --out not_settled.json
holds out "NOT SETTLED"
[ "$(result get not_settled.json settled.is_settled)" = False ] || fail "growing latencies count as settled"
expect 0 run --index sherman --workload c --keys 20K --ops 20K --clients 12 --out settled.json
grep -q "NOT SETTLED" out && fail "a run that does the same all the time counts as not settled"
[ "$(result get settled.json settled.is_settled)" = True ] || fail "the result does not say that the run had settled"

# the configuration of a result, and a whole result, run again to the same bytes
result config sherman_a.json >spec.json
expect 0 run spec.json --out again.json
result same sherman_a.json again.json || fail "a result's configuration gives another result"
expect 0 run --config sherman_a.json --json
cp out printed.json
result same sherman_a.json printed.json || fail "a whole result as spec, printed, gives another result"

# spec and command line are equivalent, and the command line overrides the file
echo '{"index": "sherman", "workload": "a", "keys": "20K", "ops": 8000, "clients": 12, "cns": 2, "mns": 2,
       "coroutines": 3, "verify": true}' >hand.json
expect 0 run hand.json --out hand_result.json
result same sherman_a.json hand_result.json || fail "spec and command line differ"
expect 0 run hand.json --seed 2 --out seed2.json
result differ sherman_a.json seed2.json || fail "the seed changes nothing"
[ "$(result get seed2.json config.seed)" -eq 2 ] || fail "the command line does not go over the file"
[ "$(result get seed2.json ops.get.latency_ns.mean)" != "$(result get sherman_a.json ops.get.latency_ns.mean)" ] ||
    fail "another seed gives the same latencies"

# dashes and underscores are the same; a duration ends the measurement early
expect 0 run hand.json --mn_cores 2 --out cores1.json
expect 0 run hand.json --mn-cores=2 --out cores2.json
result same cores1.json cores2.json || fail "--mn_cores and --mn-cores differ"
# an untimed part of the warm-up counts as warm-up, runs again equal, and leaves an index whole
expect 0 run hand.json --ops 4K --warmup 4K --timed-warmup 500 --verify --out untimed1.json
expect 0 run untimed1.json --out untimed2.json
result same untimed1.json untimed2.json || fail "two runs with a partly untimed warm-up differ"
expect 0 run hand.json --ops 4K --warmup 9K --timed-warmup 500 --warmup-samples 2 --verify --out sampled1.json
expect 0 run sampled1.json --out sampled2.json
result same sampled1.json sampled2.json || fail "two runs with a sampled warm-up differ"
expect 0 run sampled1.json --timed-warmup 0 --out timed.json
[ "$(result get timed.json config.warmup_samples)" -eq 0 ] || fail "a timed warm-up has samples"
expect 2 run hand.json --warmup-samples -1
holds err "--warmup-samples"
[ "$(result get untimed1.json phases.1.operations)" -eq 4000 ] || fail "untimed operations are not warm-up"
[ "$(result get untimed1.json phases.2.operations)" -eq 4000 ] || fail "untimed operations were measured"
for index in "sherman --workload a" "smart --workload load" "rolex --workload d" "chime --workload a" \
    "dolphin --workload a" "hstore --workload load"; do
    # shellcheck disable=SC2086
    expect 0 run --index $index --keys 20K --ops 4K --warmup 40K --timed-warmup 2K --clients 24 --cns 2 --verify
done
# gets of loaded keys fill the caches of all compute nodes before anything counts, on any transport
inner="--index sherman --set span=8 --workload c --keys 100K --cns 2 --clients 16 --cache 16MB --ops 4K --warmup 0"
# shellcheck disable=SC2086
expect 0 run $inner --out cold.json
# shellcheck disable=SC2086
expect 0 run $inner --load-reads 200K --out filled.json
expect 0 run filled.json --out filled_again.json
result same filled.json filled_again.json || fail "two runs with reads before the warm-up differ"
# shellcheck disable=SC2086
expect 0 run $inner --load-reads 200K --transport local --out filled_local.json
python3 - cold.json filled.json filled_local.json <<'PY' || fail "reads before the warm-up do not fill the caches"
import json, sys

cold, filled, local = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert cold["ops"]["get"]["round_trips_mean"] > 1.3 > 1.02 > filled["ops"]["get"]["round_trips_mean"] >= 1
assert local["ops"]["get"]["round_trips_mean"] < 1.02
for result in (filled, local):
    assert result["ops"]["get"]["count"] == 4000 and result["phases"][1]["operations"] == 0, result["phases"]
    assert result["cache_bytes_per_cn"] > 1.5 * cold["cache_bytes_per_cn"]
assert filled["throughput_ops_per_s"] > 1.1 * cold["throughput_ops_per_s"]
PY
expect 0 run hand.json --load-reads 5K --ops 4K --warmup 4K --timed-warmup 500 --verify
expect 2 run hand.json --load-reads -1
holds err "--load-reads"
expect 0 run hand.json --ops 1M --warmup 100 --duration 200us --out duration.json
measured=$(result get duration.json phases.2.operations)
[ "$measured" -gt 0 ] || fail "--duration measured nothing"
[ "$measured" -lt 1000000 ] || fail "--duration did not end the run"

# without --out nothing is written, and nothing temporary is left anywhere
mkdir empty
(cd empty && "$DMBENCH" run ../hand.json >/dev/null) || fail "a run without --out"
[ -z "$(ls empty)" ] || fail "a run without --out wrote $(ls empty)"
[ -z "$(find . -name '*.tmp.*')" ] || fail "temporary files are left"

# help and version
expect 0 run --help
holds out "--mn-cores"
holds out "--set NAME=VALUE"
expect 0 run --index sherman --help
holds out "Parameters of index sherman"
expect 0 --version
holds out "dmbench"
expect 0 --help
holds out "sweep"

# a workload that is named over a result has its own mix; the keys stay
expect 0 run sherman_a.json --workload c --out renamed.json
[ "$(result get renamed.json config.mix)" = "$(result get sherman_c.json config.mix)" ] || fail "the old mix is kept"
[ "$(result get renamed.json config.keys)" -eq 20000 ] || fail "the keys of the file are gone"
expect 0 run sherman_a.json --workload c --mix read=0.5,insert=0.5 --out mixed.json
[ "$(result get mixed.json ops.insert.count)" -gt 3000 ] || fail "a mix given with the workload does not count"

# shellcheck disable=SC2086
fits $results shared.json upserts.json slices.json sampled1.json filled.json
