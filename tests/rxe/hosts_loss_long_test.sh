#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Between two hosts (hosts.sh) on a link that loses, delays, doubles and reorders packets: results are right, or the
# error names the cause. Every index with `verify`; batches with fences, which software RoCE may never complete; a link
# that carries nothing for half a minute in the middle of a run; and another run when it is back.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
# With the timer of the default: one that is shorter than an answer takes on a busy host repeats all that is outstanding
# each time, and a run of marlin with ack_timeout=13 got nothing through within ten seconds.
fixed="--transport verbs --workload a --keys 1000 --clients 4 --coroutines 2"
port=7000 # others for each run, so that no run meets the servers of the one before
nodes=2   # of a run, with memory

link() {
    tc qdisc replace dev eth0 root netem "$@" || fail "tc netem $*"
}
lossy() {
    link delay 200us 100us loss 0.5% duplicate 0.5% reorder 2%
}

# options INDEX: what both sides of its run have in common. Software RoCE executes resent verbs twice without order=alone.
options() {
    echo "--transport-set order=alone"
    if can "$1" servers; then
        echo "$fixed --index $1 --mns 1 --servers 2 $(patience "$1")"
    else
        echo "$fixed --index $1 --mns 2"
    fi
}

# pair OPTIONS...: the nodes of a run on machine 1, until it has ended; the compute side on machine 0, as `expect`.
pair() {
    addresses=$(seq -f "10.78.0.2:%g" -s , "$port" $((port + nodes - 1)))
    if [ "$DM_MACHINE" -eq 1 ]; then
        for node in $(seq 0 $((nodes - 1))); do
            # Index servers call each other.
            "$DMBENCH" serve "$@" --mn "$addresses" --node "$node" --listen "10.78.0.2:$((port + node))" \
                --token-file token 2>"serve$node" &
        done
        wait
    else
        status=0
        "$DMBENCH" run "$@" --mn "$addresses" --token-file token --verify --json >out 2>err ||
            status=$?
    fi
    port=$((port + nodes))
}

# right WHAT: the run on machine 0 has a result without a fault.
right() {
    [ "$DM_MACHINE" -eq 0 ] || return 0
    [ "$status" -eq 0 ] || fail "$1: status $status: $(cat err)"
    holds out '"broken": 0'
    echo "$1: right"
}

# counter NAME: of the device
counter() {
    cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$1"
}

lossy
for index in $(indexes); do
    nodes=2
    ! can "$index" servers || nodes=3
    # shellcheck disable=SC2046
    pair $(options "$index") --ops 500
    right "$index on a bad link"
done
nodes=2
if [ "$DM_MACHINE" -eq 0 ]; then
    echo "requests that came twice: $(counter duplicate_request), out of order: $(counter out_of_seq_request)"
    [ "$(tc -s qdisc show dev eth0 | awk '/dropped/ { sub(",", "", $7); print $7 }')" -gt 0 ] || fail "no packet was lost"
fi

# shellcheck disable=SC2046
pair $(options sherman) --ops 500 --transport-set order=fence
if [ "$DM_MACHINE" -eq 0 ] && [ "$status" -ne 0 ]; then
    grep -q 'nothing completed within 10.0 s' err || fail "fences on a bad link: status $status: $(cat err)"
    echo "fences on a bad link: $(cat err)"
else
    right "fences on a bad link"
fi

# The link goes down while a run uses it, for longer than the limit of a verb.
if [ "$DM_MACHINE" -eq 0 ]; then
    (
        before=$(counter sent_pkts)
        while [ "$(counter sent_pkts)" -lt $((before + 8000)) ]; do # more than it takes to load the index
            sleep 0.2
        done
        date +%s >down
        link loss 100%
        sleep 30
        lossy
    ) &
fi
# shellcheck disable=SC2046
pair $(options fg) --ops 100M
if [ "$DM_MACHINE" -eq 0 ]; then
    [ -e down ] || fail "the run ended before the link went down: $(cat err)"
    took=$(($(date +%s) - $(cat down)))
    [ "$status" -eq 1 ] || fail "a link that is down: status $status: $(cat err)"
    grep -qE '(READ|WRITE|CAS|FAA) to memory node [01] .*: (transport retry counter exceeded|nothing completed)' err ||
        fail "a link that is down: $(cat err)"
    [ "$took" -lt 30 ] || fail "a link that is down was noticed after $took s"
    echo "a link that is down, after $took s: $(cat err)"
    wait
fi
# shellcheck disable=SC2046
pair $(options fg) --ops 500
right "the next run, when the link is back"
