#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# On a link that loses, delays, doubles and reorders packets: verbs take effect once, and small histories of every index,
# or of a sample of them (lib.sh), are linearizable. loss_long_test.sh does the same with many more seeds. Software RoCE
# needs order=alone for this.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

for device in veth0 veth1; do
    tc qdisc add dev $device root netem delay 100us 50us loss 1% duplicate 0.5% reorder 2% || fail "tc netem on $device"
done
settings="device=rxe0 mn_device=rxe1 ack_timeout=14 order=alone"
for program in transport_conformance_test transport_calls_test; do
    DM_TEST_TRANSPORT=verbs DM_TEST_SETTINGS=$settings DM_TEST_FILTER='*take_effect_once' \
        "$DM_BUILD_DIR/tests/conformance_$program" || fail "something takes effect more than once"
done
for index in $(sampled_indexes); do
    # The settings are separate words. A short timer, so that a lost packet costs little.
    # shellcheck disable=SC2046,SC2086
    "$DMBENCH" check --index "$index" --transport verbs --seeds "${DM_LOSS_SEEDS:-2}" --coverage off $(patience "$index") \
        $(printf -- '--transport-set %s ' $settings) >out 2>&1 ||
        fail "check of $index: $(cat out)"
    grep -m 1 seeds out
done
lost=$(tc -s qdisc show dev veth0 | awk '/dropped/ { sub(",", "", $7); print $7 }')
echo "veth0 lost $lost packets; requests sent again to rxe1: $(cat /sys/class/infiniband/rxe1/ports/1/hw_counters/duplicate_request)"
[ "$lost" -gt 0 ] || fail "no packet was lost"
