#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Small histories of every index between two hosts (hosts.sh) are linearizable: memory nodes and index servers on
# machine 1, clients on machine 0; on a link that loses nothing, and on one that loses packets, delays, doubles and
# reorders them. Prints a table of the seeds. DM_CHECK_SEEDS (200), DM_CHECK_INDEXES (all) and DM_CHECK_LINKS (clean
# lossy) shorten it.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
port=7000 # others for each check, so that none meets the servers of the one before

link() {
    if [ "$1" = lossy ]; then
        tc qdisc replace dev eth0 root netem delay 100us 50us loss 1% duplicate 0.5% reorder 2% || fail "no netem"
    else
        tc qdisc del dev eth0 root 2>/dev/null || true
    fi
}

# check INDEX LINK: both sides of it. Software RoCE executes resent verbs twice without order=alone.
check() {
    options=""
    [ "$2" != lossy ] || options="--transport-set order=alone --transport-set ack_timeout=14"
    # The options are separate words.
    # shellcheck disable=SC2046,SC2086
    set -- check --transport verbs --index "$1" --seeds "${DM_CHECK_SEEDS:-200}" --coverage off --token-file token \
        $(patience "$1") $options
    if [ "$DM_MACHINE" -eq 1 ]; then
        "$DMBENCH" "$@" --listen "10.78.0.2:$port" >out 2>&1 || fail "the memory side: $(cat out)"
    else
        "$DMBENCH" "$@" --mn "10.78.0.2:$port" >out 2>&1 || fail "$(cat out)"
    fi
    port=$((port + 2))
}

for kind in ${DM_CHECK_LINKS:-clean lossy}; do
    link "$kind"
    for index in ${DM_CHECK_INDEXES:-$(indexes)}; do
        check "$index" "$kind"
        [ "$DM_MACHINE" -ne 0 ] || echo "$kind link: $(grep -m 1 seeds out)"
    done
    if [ "$DM_MACHINE" -eq 0 ] && [ "$kind" = lossy ]; then
        lost=$(tc -s qdisc show dev eth0 | awk '/dropped/ { sub(",", "", $7); print $7 }')
        echo "machine 0 lost $lost packets"
        [ "$lost" -gt 0 ] || fail "no packet was lost"
    fi
done
