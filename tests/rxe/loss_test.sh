#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Small histories of every index are linearizable on a link that loses, delays, doubles and reorders packets.
# loss_long_test.sh does the same with many more seeds.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

for device in veth0 veth1; do
    tc qdisc add dev $device root netem delay 100us 50us loss 1% duplicate 0.5% reorder 2% || fail "tc netem on $device"
done
for index in $(indexes); do
    # The settings are separate words. A short timer, so that a lost packet costs little.
    # shellcheck disable=SC2046
    "$DMBENCH" check --index "$index" --transport verbs --seeds "${DM_LOSS_SEEDS:-2}" --coverage off $(patience "$index") \
        --transport-set device=rxe0 --transport-set mn_device=rxe1 --transport-set ack_timeout=14 >out 2>&1 ||
        fail "check of $index: $(cat out)"
    grep -m 1 seeds out
done
lost=$(tc -s qdisc show dev veth0 | awk '/dropped/ { sub(",", "", $7); print $7 }')
echo "veth0 lost $lost packets; requests sent again to rxe1: $(cat /sys/class/infiniband/rxe1/ports/1/hw_counters/duplicate_request)"
[ "$lost" -gt 0 ] || fail "no packet was lost"
