#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What disturbs measurements in real time is said before they begin and kept with the result; simulated runs say nothing.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$DMBENCH" list transports | grep -q '^  local ' || skip "the transport local is left out"
command -v python3 >/dev/null || missing python3
cores=$(nproc)
small="--index null --keys 1K --ops 2K"

# noise_of FILE: the sentences that a result keeps.
noise_of() {
    python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["provenance"]["host"].get("noise", ["none"]), sep="\n")' "$1"
}

# more threads than cores
threads=$((cores + 1))
# shellcheck disable=SC2086
expect 0 run $small --transport local --clients "$threads" --out crowded.json
holds err "real time is disturbed: $threads threads on $cores cores take turns"
noise_of crowded.json >kept
holds kept "$threads threads on $cores cores take turns"
# shellcheck disable=SC2086
expect 0 run $small --transport local --clients "$threads" --coroutines "$threads" --out single.json
if grep -q "take turns" err; then fail "one thread is said to take turns: $(cat err)"; fi
# shellcheck disable=SC2086
expect 0 run $small --transport local --clients "$threads" --quiet --out quiet.json
[ ! -s err ] || fail "--quiet warns: $(cat err)"
noise_of quiet.json >kept
holds kept "take turns"
# shellcheck disable=SC2086
expect 0 run $small --transport local --clients "$threads" --repeat 3
[ "$(grep -c "take turns" err)" -eq 1 ] || fail "--repeat warns of each run: $(cat err)"

# the system's counters: two threads on one core are switched; the kernel divides a short time into that of user and
# system by its ticks, so that one of the two may be zero
python3 - <<'PY' || fail "no counters of the host"
import json
counters = json.load(open("crowded.json"))["provenance"]["host"]["counters"]
assert counters["user_s"] + counters["system_s"] > 0 and counters["minor_faults"] > 0, counters
assert counters["voluntary_switches"] + counters["involuntary_switches"] > 0, counters
PY

# simulated runs have the same results whatever the host does
# shellcheck disable=SC2086
expect 0 run $small --clients "$threads" --out sim.json
[ ! -s err ] || fail "a simulated run warns: $(cat err)"
[ "$(noise_of sim.json)" = none ] || fail "a simulated result has noise"

# another dmbench that runs; the one that waits for its memory node does not count, nor do parents
"$DMBENCH" run --workload a --keys 5K --ops 100G --warmup 10 --partial=off >/dev/null 2>other &
pid=$!
once grep -q "dmbench" "/proc/$pid/cmdline"
# shellcheck disable=SC2086
expect 0 run $small --transport local --clients 1 --out beside.json
grep -q "[1-9][0-9]* other dmbench process" err || fail "the other dmbench is not seen: $(cat err)"
signal INT
wait "$pid" || true

# a sweep warns once, for all of its points, and runs them one by one
expect 0 sweep --grid transport=local,sim --grid clients="$threads,1" --grid index=null --grid keys=1K --grid ops=2K \
    --jobs 4 --out sweep
[ "$(grep -c "take turns" err)" -eq 1 ] || fail "a sweep warns not once: $(cat err)"
holds err "those in real time alone"
has_results sweep/points 4 || fail "not all points ran"

fits crowded.json
