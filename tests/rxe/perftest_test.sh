#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares reads through the contract with perftest on the same devices, in turns: the latency of one client, and the
# rate of sixteen clients on one thread against sixteen outstanding reads. With -Q 1 conditions are equal: each read has
# a completion (see tests/bench/verbs_bench.c). This is a report: the reader judges the speed, and the test fails only
# if results are missing, or if `dmbench doctor` misjudges this machine. DM_PERFTEST_ROUNDS is the number of turns, or 3.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${DM_PERFTEST_ROUNDS:-3}
for round in $(seq "$rounds"); do
    for bytes in 64 1024; do
        perftest_row "$bytes" ib_read_lat -n 2000 | awk '{ print "perftest latency_p50", $1, 1, $5 }'
        perftest_row "$bytes" ib_read_bw -n 20000 -t 16 -Q 1 | awk '{ print "perftest rate", $1, 16, 1e6 * $5 }'
    done
    "$DM_BUILD_DIR/bench/verbs_bench" verbs device=rxe0 mn_device=rxe1 >bench || fail "verbs_bench, round $round"
    sed '/^#/d; s/^/contract /' bench
done >figures

# Ratios of medians over the rounds.
awk -v rounds="$rounds" '
    function median(who, what,    i, j, t, n, v) {
        n = 0
        for (i = 1; i <= count[who, what]; i++)
            v[++n] = figure[who, what, i]
        for (i = 1; i <= n; i++)
            for (j = i + 1; j <= n; j++)
                if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
        return n ? v[int((n + 1) / 2)] : 0
    }
    function row(title, what, unit, wanted,    ours, theirs) {
        ours = median("contract", what)
        theirs = median("perftest", what)
        if (ours <= 0 || theirs <= 0) { print "no figures for " title; bad = 1; return }
        printf "%-42s %12.2f %12.2f %-8s ratio %.3f (%s)\n", title, ours, theirs, unit, ours / theirs, wanted
    }
    { what = $2 " " $3 " " $4; figure[$1, what, ++count[$1, what]] = $5 }
    END {
        print "both: software RoCE from rxe0 to rxe1, one thread, a completion for each read (ib_read_lat; ib_read_bw -t 16 -Q 1)"
        printf "%-42s %12s %12s\n", "medians of " rounds " rounds", "contract", "perftest"
        row("read of 64 B, one client, median", "latency_p50 64 1", "us", "wanted: at most 1.15")
        row("read of 1 KB, one client, median", "latency_p50 1024 1", "us", "wanted: at most 1.15")
        row("reads of 64 B, 16 coroutines or depth 16", "rate 64 16", "reads/s", "wanted: at least 0.9")
        row("reads of 1 KB, 16 coroutines or depth 16", "rate 1024 16", "reads/s", "wanted: at least 0.9")
        printf "%-42s %12.2f %12.2f %-8s ratio %.3f (emulated, by a READ and a CAS)\n", "masked CAS beside CAS, one client, median",
            median("contract", "masked_cas_p50 8 1"), median("contract", "cas_p50 8 1"), "us",
            median("contract", "masked_cas_p50 8 1") / median("contract", "cas_p50 8 1")
        exit bad
    }' figures || fail "figures are missing: $(cat figures)"

# `dmbench doctor` beside real devices: it names the device, port and address that the transport chooses.
expect 0 doctor --transport verbs
holds out "the transport verbs should work here"
cat out
# On two processors a copy of a line may be seen half done; whether it is within the time of the probe depends on the
# host. A run on such a device warns.
grep -qE 'order and lines +line_atomic (yes|no), write_order yes, cpu_atomics yes' out || fail "no probe: $(cat out)"
choice=$(sed -n 's/.*--transport-set device=\([^ ]*\) port=\([0-9]*\) gid=\([0-9]*\)$/\1 \2 \3/p' out)
[ -n "$choice" ] || fail "no device was chosen"
# One name a word.
# shellcheck disable=SC2086
set -- $choice
"$DMBENCH" run --transport verbs --index sherman --workload c --keys 1K --ops 200 --clients 2 --out run.json >/dev/null 2>warned ||
    fail "a run fails where the doctor finds nothing"
if grep -q '"line_atomic": "no"' run.json; then
    holds warned "the device fails a probe: line_atomic is no."
else
    ! grep -q 'fails a probe' warned || fail "a warning of what was not found: $(cat warned)"
fi
grep -q "\"device\": \"$1\"" run.json || fail "the transport chose another device than $1: $(grep '"device"' run.json)"
"$DMBENCH" run --transport verbs --transport-set "device=$1" --transport-set "port=$2" --transport-set "gid=$3" \
    --index sherman --workload c --keys 1K --ops 200 --clients 2 >/dev/null || fail "the address that was chosen does not work"
grep -q 'latency .* us for a READ of 64 bytes' out || fail "perftest's latency is missing"
