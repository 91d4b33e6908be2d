#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Small histories of every index between two hosts (hosts.sh) are linearizable: memory nodes and index servers on
# machine 1, clients on machine 0; on a link that loses nothing, and on one that loses packets, delays, doubles and
# reorders them. The seeds are run in slices, each index and link in turn, so that a test that is ended early has tried
# all of them. DM_CHECK_SEEDS (200), DM_CHECK_SLICE
# (20), DM_CHECK_FIRST (1), DM_CHECK_JOBS (2), DM_CHECK_INDEXES (all) and DM_CHECK_LINKS (clean lossy) change it.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
port=7000 # others for each check, so that none meets the servers of the one before
jobs=${DM_CHECK_JOBS:-2}
slice=${DM_CHECK_SLICE:-20}
wrong=""

# With a rate netem keeps the order of packets but for the share that it is to reorder. Without one each packet has a
# delay of its own, and about half of the READs of several packets came out of order: software RoCE drops such an answer
# and waits for its timer, so that a world of 3000 keys took more than nine minutes instead of one.
link() {
    if [ "$1" = lossy ]; then
        tc qdisc replace dev eth0 root netem rate 1gbit delay 100us 50us loss 1% duplicate 0.5% reorder 2% ||
            fail "no netem"
    else
        tc qdisc del dev eth0 root 2>/dev/null || true
    fi
}

# check INDEX LINK FIRST SEEDS: both sides of it. A thread that polls takes the one processor from those that work, so
# none does. Connections are made by the control port: a world has some 50 of them, the connection manager's take more
# messages, and it sends a lost one again after six seconds only. Software RoCE executes resent verbs twice without
# order=alone. The device is not tried again for each world (probe=0). After a finding the side with the memory waits
# for three minutes.
check() {
    options="--jobs $jobs --transport-set spin=0 --transport-set probe=0 --transport-set connect=tcp"
    options="$options --transport-set start_timeout=5m"
    [ "$2" != lossy ] || options="$options --transport-set order=alone --transport-set ack_timeout=14"
    if [ "$DM_MACHINE" -eq 1 ]; then
        options="$options --listen 10.78.0.2:$port"
    else
        options="$options --mn 10.78.0.2:$port"
    fi
    port=$((port + 2 * jobs))
    [ "$port" -lt 32000 ] || port=7000
    # The options are separate words.
    # shellcheck disable=SC2046,SC2086
    "$DMBENCH" check --transport verbs --index "$1" --first-seed "$3" --seeds "$4" --coverage off --token-file token \
        $(patience "$1") $options >out 2>&1
}

first=${DM_CHECK_FIRST:-1}
end=$((first + ${DM_CHECK_SEEDS:-200}))
while [ "$first" -lt "$end" ]; do
    count=$((end - first < slice ? end - first : slice))
    for kind in ${DM_CHECK_LINKS:-clean lossy}; do
        link "$kind"
        for index in ${DM_CHECK_INDEXES:-$(indexes)}; do
            status=0
            check "$index" "$kind" "$first" "$count" || status=$?
            if [ "$status" -ne 0 ]; then
                wrong="$wrong $index:$kind:$first"
                echo "$kind link: $index: status $status: $(cat out)"
            elif [ "$DM_MACHINE" -eq 0 ]; then
                echo "$kind link: $(grep -m 1 seeds out)"
            fi
        done
    done
    first=$((first + count))
done
if [ "$DM_MACHINE" -eq 0 ] && [ "${DM_CHECK_LINKS:-lossy}" != clean ]; then
    lost=$(tc -s qdisc show dev eth0 | awk '/dropped/ { sub(",", "", $7); print $7 }')
    echo "machine 0 lost $lost packets"
    [ "${lost:-0}" -gt 0 ] || fail "no packet was lost"
fi
[ -z "$wrong" ] || fail "see above:$wrong"
