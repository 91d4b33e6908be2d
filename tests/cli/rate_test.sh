#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Open loops: the schedule is kept, a stall appears in the latencies of all operations after it, and a rate that cannot be
# reached is reported. Also the end of a measurement, and a run that takes no virtual time.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
small="--index sherman --keys 20K --ops 8K --warmup 800 --clients 12 --cns 2 --workload c"

# is FILE EXPRESSION
is() {
    result true "$1" "$2" || fail "$1: not so: $2"
}

# A rate below the limit is reached; no operation waits, so both latencies are equal except for the wake-up.
# shellcheck disable=SC2086
expect 0 run $small --rate 500K --out fixed.json
holds out "open loop, fixed arrivals at 500.00 Kops/s"
! grep -q "NOT REACHED" out || fail "500 Kops/s are too many: $(cat out)"
is fixed.json 'load["is_reached"] and load["target_ops_per_s"] == 500000'
is fixed.json '0.995 * 500000 < throughput_ops_per_s < 1.005 * 500000'
is fixed.json 'ops["get"]["service_ns"]["p50"] <= ops["get"]["latency_ns"]["p50"] < 1.1 * ops["get"]["service_ns"]["p50"]'
is fixed.json 'phases[1]["duration_s"] > 0.99 * 800 / 500000'

# The schedule of a Poisson process is different, and the same for every index.
# shellcheck disable=SC2086
expect 0 run $small --rate 500K --arrival poisson --out poisson.json
# shellcheck disable=SC2086
expect 0 run $small --rate 500K --arrival poisson --index null --out null.json
is poisson.json '0.95 * 500000 < load["offered_ops_per_s"] < 1.05 * 500000'
[ "$(result get poisson.json load.offered_ops_per_s)" = "$(result get null.json load.offered_ops_per_s)" ] ||
    fail "two indexes meet different arrivals"
# shellcheck disable=SC2086
expect 0 run $small --rate 500K --arrival poisson --seed 2 --out seed2.json
[ "$(result get poisson.json load.offered_ops_per_s)" != "$(result get seed2.json load.offered_ops_per_s)" ] ||
    fail "the seed changes no arrivals"
result config poisson.json >spec.json
expect 0 run spec.json --out again.json
result same poisson.json again.json || fail "an open loop does not run again as it is"

# A rate above the limit: it is reported with the achieved one; waiting is part of one latency only.
# shellcheck disable=SC2086
expect 0 run $small --rate 1G --out flood.json
holds out "TARGET NOT REACHED"
is flood.json 'not load["is_reached"] and load["achieved_ops_per_s"] < 0.5 * load["target_ops_per_s"]'
is flood.json 'load["start_delay_max_ns"] > 1000000'
is flood.json 'ops["get"]["latency_ns"]["p50"] > 100 * ops["get"]["service_ns"]["p50"]'
# the whole budget is done, at the pace of a closed loop
# shellcheck disable=SC2086
expect 0 run $small --out closed.json
is flood.json 'ops["get"]["count"] == 8000'
is closed.json '"load" not in globals() and "service_ns" not in ops["get"]'
paced=$(result get closed.json throughput_ops_per_s)
is flood.json "0.9 * $paced < throughput_ops_per_s < 1.1 * $paced"

# A client that stalls for 5 ms delays 500 scheduled operations: a closed loop would see one slow one.
stall="--index sherman --keys 20K --ops 8K --warmup 800 --clients 1 --workload c"
# shellcheck disable=SC2086
expect 0 run $stall --rate 100K --transport-set "faults=stop:client=0,verb=4000,for=5ms" --out stall.json
is stall.json 'ops["get"]["service_ns"]["max"] >= 5000000 and ops["get"]["service_ns"]["p99_9"] < 100000'
is stall.json 'ops["get"]["latency_ns"]["p99"] > 4000000 and ops["get"]["latency_ns"]["p50"] < 100000'
is stall.json 'load["is_reached"] and throughput_ops_per_s > 0.99 * 100000'

# The end of the measurement ends the schedule: 100 operations are due within 1 ms, and one where they begin late.
# shellcheck disable=SC2086
expect 0 run $small --rate 100K --ops 1M --duration 1ms --out duration.json
is duration.json '100 <= phases[2]["operations"] <= 101'

# Work of a client after the end of the measurement is not part of the utilisation.
# shellcheck disable=SC2086
expect 0 run $small --transport-set "faults=stop:client=3,verb=20,for=1s" --out late.json
is late.json 'ops["get"]["service_ns"]["max"] < 1e8 if "service_ns" in ops["get"] else ops["get"]["latency_ns"]["max"] < 1e8'
busy=$(result get closed.json bottleneck.busy)
is late.json "bottleneck['busy'] > 0.7 * $busy"

# One that never ends leaves no moment without an operation, and the utilisation is there all the same.
# shellcheck disable=SC2086
expect 0 run $small --transport-set "faults=stop:client=3,verb=6000" --interval 1ms --out ended.json
is ended.json 'all(node["resources"] for node in nodes) and bottleneck["busy"] > 0.3 and over_time["busy"]'

# Of a read-modify-write all three are measured from when they were due.
expect 0 run --index sherman --keys 20K --ops 4K --clients 4 --workload f --rate 200K --out rmw.json
is rmw.json 'all("service_ns" in op for op in ops.values()) and len(ops) == 3'
is rmw.json 'ops["rmw"]["latency_ns"]["min"] >= ops["rmw"]["service_ns"]["min"]'

# In real time, too: without a rate these take less than a millisecond, with it half a second, of which a busy machine may
# take a part before the clients begin.
if "$DMBENCH" list transports | grep -q '^  local '; then
    expect 0 run --index null --transport local --workload c --keys 1K --ops 5K --clients 2 --rate 10K --out local.json
    is local.json 'phases[2]["duration_s"] >= 0.2'
fi

# Without virtual time there is no throughput.
expect 0 run --index null --workload c --keys 1K --ops 1K --out timeless.json
holds out "no virtual time passed; "
is timeless.json 'throughput_ops_per_s == 0'

fits fixed.json poisson.json null.json flood.json closed.json stall.json late.json rmw.json timeless.json
